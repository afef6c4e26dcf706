"""Sanitizer of recorded HTTP interactions."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode

import pytest

from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.sanitizer import HELD_BACK, WHOLE, Sanitizer
from ext_sdk.core.redaction.redactor import Redactor

SECRET = b"hunter2"


def clean(data: bytes) -> bytes:
    return data.replace(SECRET, b"[redacted]")


SANITIZER = Sanitizer(clean)


def test_the_value_of_a_cookie_is_removed_and_its_attributes_stay() -> None:
    headers = [("Set-Cookie", "id=hunter2; Path=/hunter2"), ("Set-Cookie", "id=; Path=/"), ("X", "hunter2")]
    assert SANITIZER.headers(headers) == [
        ("Set-Cookie", "id=[redacted]; Path=/[redacted]"),
        ("Set-Cookie", "id=; Path=/"),
        ("X", "[redacted]"),
    ]


def test_a_changed_body_has_its_new_length_and_no_recorded_chunks() -> None:
    interaction = Interaction("GET", "http://h/hunter2", body=Body(b"a hunter2"), chunks=[9])
    interaction.headers = [("Content-Length", "9")]
    SANITIZER.interaction(interaction)
    assert interaction.uri == "http://h/[redacted]"
    assert interaction.body is not None
    assert interaction.body.whole() == b"a [redacted]"
    assert (interaction.headers, interaction.chunks) == ([("Content-Length", "12")], [])


@pytest.mark.parametrize("start", [0, WHOLE - 3, WHOLE + HELD_BACK, 2 * WHOLE])
def test_a_secret_is_found_anywhere_in_a_long_body_also_across_windows(start: int) -> None:
    data = bytearray(b"x" * (2 * WHOLE + len(SECRET)))
    data[start : start + len(SECRET)] = SECRET
    recorded = Body()
    recorded.write(data)
    body = SANITIZER.body(recorded, [])
    assert body is not None
    assert body.whole() == clean(bytes(data))
    recorded.close()
    body.close()


def test_compressed_content_is_sanitized_and_a_clean_body_is_the_same_object() -> None:
    packed = Body(gzip.compress(b"a hunter2"))
    for headers in ([("Content-Encoding", "gzip")], []):  # or a compressed file
        body = SANITIZER.body(packed, headers)
        assert body is not None
        assert gzip.decompress(body.whole()) == b"a [redacted]"
    unchanged = Body(gzip.compress(b"nothing"))
    assert SANITIZER.body(unchanged, [("Content-Encoding", "gzip")]) is unchanged


def test_a_body_that_cannot_be_decoded_is_refused_or_searched_as_it_is() -> None:
    with pytest.raises(ValueError, match="a body in br, which cannot be searched for secrets"):
        SANITIZER.body(Body(b"?"), [("Content-Encoding", "br")])
    body = SANITIZER.body(Body(b"not gzip: hunter2"), [("Content-Encoding", "gzip")])
    assert body is not None
    assert body.whole() == b"not gzip: [redacted]"


def streamed(clean: Redactor) -> Sanitizer:
    return Sanitizer(clean.redact, clean.replacements)


def test_a_secret_in_pieces_of_a_text_is_removed_from_server_sent_events() -> None:
    redactor = Redactor({"env.KEY": "abcdefgh12345678"})
    pieces = ("the key: abcd", "efgh1", "2345678", ", ok", "!")
    lines = [f'data: {{"n": {number}, "text": "{piece}"}}\n\n' for number, piece in enumerate(pieces)]
    body = Body("".join(["event: begin\n", *lines, "data: [DONE]\n\n"]).encode())
    cleaned = streamed(redactor).body(body, [("Content-Type", "text/event-stream; charset=utf-8")])
    assert cleaned is not None
    changed = ("the key: [redacted:env.KEY#1]", "", "", ", ok", "!")
    lines = [f'data: {{"n": {number}, "text": "{piece}"}}\n\n' for number, piece in enumerate(changed)]
    assert cleaned.whole().decode() == "".join(["event: begin\n", *lines, "data: [DONE]\n\n"])
    other = Body(b'data: {"text": "a"}\n\ndata: {"text": "b"}\n')
    assert streamed(redactor).body(other, [("Content-Type", "text/event-stream")]) is other


def test_messages_of_a_websocket_are_searched_decoded_and_the_pieces_of_a_text_together() -> None:
    redactor = Redactor({"env.KEY": "abcdefgh12345678"})
    mask = "[redacted:env.KEY#1]"
    messages = [
        ("client", "text", 'say "abcdefgh12345678"', f'say "{mask}"'),
        ("client", "base64", b64encode(b"\0abcdefgh12345678").decode(), b64encode(b"\0" + mask.encode()).decode()),
        ("server", "base64", b64encode(b"\0\xff").decode(), b64encode(b"\0\xff").decode()),
        ("server", "text", '{"delta": "abcdefgh"}', f'{{"delta": "{mask}"}}'),
        ("server", "text", '{"delta": "12345678"}', '{"delta": ""}'),
        ("server", "text", "é", "é"),
    ]

    def body(column: int) -> bytes:
        lines = [{"t": 0.5, "from": message[0], message[1]: message[column]} for message in messages]
        return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)

    interaction = Interaction("GET", "http://h/", status=101, body=Body(body(2)))
    streamed(redactor).interaction(interaction)
    assert interaction.body is not None
    assert interaction.body.whole() == body(3)
    unchanged = Body(
        b'{"t": 0.1, "from": "client", "text": "a"}\n{"t": 0.2, "from": "server", "close": 1000, "reason": ""}\n'
    )
    interaction = Interaction("GET", "http://h/", status=101, body=unchanged)
    streamed(redactor).interaction(interaction)
    assert interaction.body is unchanged
