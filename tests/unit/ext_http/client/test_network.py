"""Sockets with the deadline of an exchange."""

from __future__ import annotations

import socket

import httpcore2
import pytest

from ext_http.client.errors import Refused
from ext_http.client.network import Backend, ExchangeDeadline, Stream, current
from ext_http.client.url import Guard
from ext_sdk import Deadline


def test_the_deadline_of_an_exchange_applies_within_its_block_only() -> None:
    outside = current()
    deadline = ExchangeDeadline(Deadline(5.0))
    with deadline:
        assert current() is deadline
    assert current() is outside


def test_time_to_connect_has_a_limit_of_its_own_and_each_connection_is_counted() -> None:
    deadline = ExchangeDeadline(Deadline(60.0), connect=1.0)
    assert deadline.for_connection().deadline.remaining() <= 1.0
    assert deadline.connections == 1
    with pytest.raises(TimeoutError, match="timed out"):
        ExchangeDeadline(Deadline(0.0)).next_poll_timeout()


def test_a_read_ends_at_the_deadline() -> None:
    left, right = socket.socketpair()
    with left, right, ExchangeDeadline(Deadline(0.0)), pytest.raises(httpcore2.ReadTimeout):
        Stream(left).read(10)


def test_the_guard_checks_names_and_addresses() -> None:
    resolve = {("inner.test", 0): "127.0.0.1"}
    with pytest.raises(Refused, match="does not name it"):
        Backend(Guard(), resolve).connect_tcp("inner.test", 80)
    with pytest.raises(Refused, match=r"its address 127\.0\.0\.1 is private"):
        Backend(Guard(allow=("*",)), resolve).connect_tcp("inner.test", 80)
