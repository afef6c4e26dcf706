"""Interactions arrive as they were sent, whatever the length of their bodies."""

from __future__ import annotations

import json

import pytest

from ext_recorder.http.inject.ext_recorder_agent.channel import HEAD
from ext_recorder.http.interaction import (
    BODY_PIECE,
    IN_MEMORY,
    SHORT_BYTES,
    Arrivals,
    Body,
    Interaction,
    frames_of,
    held_bytes,
)

LONG = bytes(range(256)) * (SHORT_BYTES // 128)


def exchange(request: bytes, response: bytes | None) -> Interaction:
    interaction = Interaction("POST", "http://h/ä", [("A", "1"), ("A", "2")], Body(request))
    interaction.status, interaction.headers, interaction.call = 200, [("B", "é")], 7
    interaction.body = None if response is None else Body(response)
    interaction.chunks, interaction.tls, interaction.error = [1, 2], {"version": "TLSv1.3"}, {"type": "OSError"}
    interaction.time, interaction.elapsed, interaction.cut = 1.25, 0.5, True
    return interaction


def split(frame: bytes) -> tuple[dict[str, object], bytes]:
    length, size = HEAD.unpack_from(frame)
    line, data = frame[HEAD.size : HEAD.size + length], frame[HEAD.size + length :]
    assert len(data) == size
    event: dict[str, object] = json.loads(line)
    return event, data


@pytest.mark.parametrize("request_body", [b"", b"short", LONG])
@pytest.mark.parametrize("response_body", [None, b"", b"short", LONG])
def test_an_interaction_arrives_as_it_was_sent(request_body: bytes, response_body: bytes | None) -> None:
    sent, expected = exchange(request_body, response_body), exchange(request_body, response_body)
    arrivals, arrived = Arrivals(), None
    for event, data in map(split, frames_of(sent, 1)):
        if event["k"] == BODY_PIECE:
            arrivals.piece(event, data)
        else:
            arrived = arrivals.interaction(event, data)
    assert arrived is not None
    for name in Interaction.__slots__:
        value, other = getattr(arrived, name), getattr(expected, name)
        assert (value.whole() if isinstance(value, Body) else value) == (
            other.whole() if isinstance(other, Body) else other
        ), name


def test_long_bodies_of_two_interactions_may_be_interleaved() -> None:
    arrivals, bodies = Arrivals(), []
    one, two = (frames_of(exchange(letter * len(LONG), b""), number) for number, letter in ((1, b"a"), (2, b"b")))
    for pair in zip(one, two, strict=True):
        for event, data in map(split, pair):
            if event["k"] == BODY_PIECE:
                arrivals.piece(event, data)
            else:
                bodies.append(arrivals.interaction(event, data).request_body)
    assert [body.whole() for body in bodies if body is not None] == [b"a" * len(LONG), b"b" * len(LONG)]


def test_only_bodies_in_memory_are_held() -> None:
    assert held_bytes(exchange(b"four", b"x" * (IN_MEMORY + 1))) == 4
    assert held_bytes(exchange(b"", None)) == 0
