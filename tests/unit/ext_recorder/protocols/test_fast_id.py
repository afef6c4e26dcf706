"""Kinds and ids of messages without parsing: the same as with it, or none."""

from __future__ import annotations

import pytest

from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.protocols.fast_id import is_simple_id, scan_first_id, scan_id


@pytest.mark.parametrize(
    "payload",
    [
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1.0,"method":"a"}',
        b'{"jsonrpc":"2.0","id":01,"method":"a"}',
        b'{"jsonrpc":"2.0","id":"a\\u0062","method":"a"}',
        b'{"jsonrpc":"2.0","id":"a,b","method":"a"}',
        b'{"jsonrpc":"2.0","id":1,"params":1,"method":"a"}',
        b'{"jsonrpc":"2.0","id":1,"method":"a","id":2}',
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":2}}',
        b'{"jsonrpc":"2.0","method":"a"}',
        b'{"method":"a","id":1,"jsonrpc":"2.0"}',
        b'{"method":"a","params":{"id":1},"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc" : "2.0","id":1,"method":"a"}',
        b"",
    ],
)
def test_other_forms_are_left_to_the_parser(payload: bytes) -> None:
    assert scan_id(payload) is None


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (b'{"jsonrpc":"2.0","id":12,"method":"a"}', ("request", 22, 24)),
        (b'{"jsonrpc": "2.0", "id": 12, "method": "a"}', ("request", 25, 27)),
        (b'{"jsonrpc":"2.0","id":0,"result":1}', ("response", 22, 23)),
        (b'{"jsonrpc":"2.0","id":"a-1","error":{}}', ("response", 22, 27)),
        (b'{"method":"a","params":{},"jsonrpc":"2.0","id":7}', ("request", 47, 48)),
        (b'{"result":{},"jsonrpc":"2.0","id":7}', ("response", 34, 35)),
    ],
)
def test_the_forms_of_most_peers_are_found_without_parsing(payload: bytes, found: tuple[str, int, int]) -> None:
    assert scan_id(payload) == found
    message = DIALECTS["jsonrpc"].classify(payload)
    assert (message.kind, *message.span) == found


def test_a_second_id_is_only_searched_if_all_of_the_message_is_there() -> None:
    payload = b'{"jsonrpc":"2.0","id":1,"method":"a","id":2}'
    assert scan_id(payload) is None
    assert scan_first_id(payload) == ("request", 22, 23)


@pytest.mark.parametrize("token", [b"0", b"17", b'"a-1"', b'"7"'])
def test_an_id_with_one_form_is_simple(token: bytes) -> None:
    assert is_simple_id(token)


@pytest.mark.parametrize("token", [b"007", b"-1", b"1.0", b"null", b'"a b"', b'"\\u0061"', b'""', b""])
def test_an_id_that_has_other_forms_or_is_none_is_not_simple(token: bytes) -> None:
    assert not is_simple_id(token)
