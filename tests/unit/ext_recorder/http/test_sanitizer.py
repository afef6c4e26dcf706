"""Sanitizer of recorded HTTP interactions."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from base64 import b64encode
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.sanitizer import (
    ENCODED_SECRET,
    HELD_BACK,
    WHOLE,
    Sanitizer,
    resized,
    with_decodable_secrets,
    with_whole_texts,
)
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


def test_a_changed_body_has_its_new_length_and_chunks() -> None:
    interaction = Interaction("GET", "http://h/hunter2", body=Body(b"a hunter2"), chunks=[9])
    interaction.headers = [("Content-Length", "9")]
    SANITIZER.interaction(interaction)
    assert interaction.uri == "http://h/[redacted]"
    assert interaction.body is not None
    assert interaction.body.whole() == b"a [redacted]"
    assert (interaction.headers, interaction.chunks) == ([("Content-Length", "12")], [12])


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


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_the_files_of_an_archive_stay_except_for_known_values(mode: Literal["w", "w:gz"]) -> None:
    """Programs verify the digest of a package, and code contains much that looks like a secret."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as file:
        entry = tarfile.TarInfo("package/index.js")
        text = b"const password = 'Wq7Rk2nX9v'; // hunter2hunter2"
        entry.size = len(text)
        file.addfile(entry, io.BytesIO(text))
    body = Body(packed.getvalue())
    redactor = Redactor(rules=True)
    known = Redactor({"TOKEN": "hunter2hunter2"}, rules=True)
    assert Sanitizer(redactor.redact).body(body, []) is body
    assert Sanitizer(redactor.redact, known=redactor.redact_known).body(body, []) is body
    changed = Sanitizer(known.redact, known=known.redact_known).body(body, [])
    assert changed is not None
    content = gzip.decompress(changed.whole()) if mode == "w:gz" else changed.whole()
    assert re.search(rb"password = .Wq7Rk2nX9v.; // \[redacted:[a-zA-Z.]+#1\]", content)


def test_clients_can_decode_the_data_of_a_secret_that_was_redacted() -> None:
    text = b'{"kind":"Secret","metadata":{"name":"[redacted:a#1]"},"data":{"a":"[redacted:b#2]","c":"eA=="}}'
    encoded = b64encode(b"[redacted:b#2]")
    expected = text.replace(b"[redacted:b#2]", encoded)
    assert with_decodable_secrets(text) == expected
    for other in (text.replace(b"Secret", b"ConfigMap"), text.replace(b"[redacted:", b"["), b"[redacted:x#1]"):
        assert with_decodable_secrets(other) == other


def test_a_secret_in_protocol_buffers_is_not_written() -> None:
    body = b"k8s\0\n\x0c\n\x02v1\x12\x06Secret\x12\x20hunter"
    interaction = Interaction("POST", "http://h/api/v1/namespaces/n/secrets", request_body=Body(body))
    SANITIZER.interaction(interaction)
    assert interaction.request_body is not None
    assert interaction.request_body.whole() == ENCODED_SECRET
    interaction.request_body = Body(body.replace(b"Secret", b"Pod..."))
    SANITIZER.interaction(interaction)
    assert b"hunter" in interaction.request_body.whole()


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


# Events of a streamed text, for each API: the pieces are in place of "…".
STREAMED = {
    "anthropic": '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"…"}}',
    "anthropic, arguments": '{"index":1,"delta":{"type":"input_json_delta","partial_json":"…"}}',
    "openai": '{"choices":[{"index":0,"delta":{"content":"…"}}],"obfuscation":"x7"}',
    "openai, arguments": '{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"…"}}]}}]}',
    "openai, responses": '{"type":"response.output_text.delta","item_id":"m","output_index":0,"delta":"…"}',
    "gemini": '{"candidates":[{"content":{"role":"model","parts":[{"text":"…"}]}}]}',
}


def stream(form: str, pieces: list[str], end: str = "\n\n", prefix: str = "data: ") -> bytes:
    events = [form.replace('"…"', json.dumps(piece)) for piece in pieces]
    return "".join(f"{prefix}{event}{end}" for event in ["not json", *events, "[DONE]"]).encode()


def texts(data: bytes) -> list[str]:
    """Return the pieces of the streams above."""
    found = []
    todo: list[object] = [json.loads(line[line.index(b"{") :]) for line in data.splitlines() if b"{" in line]
    for value in todo:
        if isinstance(value, dict):
            known = {"text", "partial_json", "content", "arguments", "delta"}
            found += [text for name, text in value.items() if name in known and isinstance(text, str)]
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return found


@pytest.mark.parametrize("form", STREAMED.values(), ids=STREAMED)
@given(words=st.lists(st.sampled_from(["a", "hunter2", " é\n", '"', "hunt"]), max_size=6), data=st.data())
def test_a_text_that_is_streamed_in_pieces_is_sanitized_as_a_whole(
    form: str, words: list[str], data: st.DataObject
) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=1, max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    before = stream(form, pieces)
    after = with_whole_texts(before, clean)
    assert "".join(texts(after)) == clean(text.encode()).decode()
    assert len(texts(after)) == len(pieces)
    if SECRET not in text.encode():
        assert after is before


def test_texts_of_one_stream_are_kept_apart_and_its_form_is_kept() -> None:
    first, second = (STREAMED["anthropic, arguments"].replace('"index":1', f'"index":{number}') for number in (1, 2))
    apart = stream(first, ["a hun"], "\r\n\r\n") + stream(second, ["ter2 b"], "\r\n\r\n")
    assert with_whole_texts(apart, clean) is apart
    one = with_whole_texts(stream(first, ["a hun", "ter2 b", " c"], "\r\n\r\n"), clean)
    assert texts(one) == ["a [redacted]", " b", " c"]
    assert one.count(b"\r\n\r\n") == 5
    lines = b'{"message":{"content":"hun"}}\n{"message":{"content":"ter2"}}\n'
    assert with_whole_texts(lines, clean) == b'{"message":{"content":"[redacted]"}}\n{"message":{"content":""}}\n'


def test_a_stream_keeps_its_chunks_and_its_compression() -> None:
    data = stream(STREAMED["anthropic"], ["a hun", "ter2 b"])
    sizes = [len(event) + 2 for event in data.split(b"\n\n")[:-1]]
    interaction = Interaction("GET", "http://h/", body=Body(data), chunks=sizes)
    interaction.headers = [("Content-Type", "text/event-stream; charset=utf-8")]
    SANITIZER.interaction(interaction)
    assert interaction.body is not None
    changed = interaction.body.whole()
    assert texts(changed) == ["a [redacted]", " b"]
    assert interaction.chunks == [len(event) + 2 for event in changed.split(b"\n\n")[:-1]]
    packed = SANITIZER.body(Body(gzip.compress(data)), [*interaction.headers, ("Content-Encoding", "gzip")])
    assert packed is not None
    assert gzip.decompress(packed.whole()) == changed


@given(st.binary(max_size=60), st.data())
def test_chunks_of_a_changed_body_have_its_size(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.sets(st.integers(1, max(1, len(data) - 1)), max_size=5)))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if end > start]
    after = Body(data.replace(b"a", b"bcd").replace(b"\0", b""))
    found = resized(sizes, Body(data), after)
    assert all(found)
    assert sum(found) == after.size or sum(sizes) != len(data)
