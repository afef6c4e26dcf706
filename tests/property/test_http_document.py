"""What is written of an interaction is read again, whatever bytes it has, however they come in pieces."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.http.http1_observer import Http1Observer, Unreadable
from ext_recorder.http.interaction import TEXT_LIMIT, Body, Headers, Interaction, decoded, encoded
from ext_recorder.http.reader import load
from ext_recorder.http.writer import Writer

TOKENS = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_", min_size=1, max_size=12)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=30)
HEADERS = st.lists(st.tuples(TOKENS, VALUES), max_size=6)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from([b"x" * (TEXT_LIMIT + 1), bytes(range(256)) * 2000, b"\n  call: null\n"]),
)


@given(HEADERS, BODIES, BODIES, st.sampled_from([None, 3, "b", 1.5]), VALUES)
def test_an_interaction_is_read_as_it_was_written(
    headers: Headers, sent: bytes, received: bytes, call: str | float | None, reason: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.http.yaml"
        writer = Writer(path)
        writer.head({"seed": "x"})
        each = Interaction(
            "POST", "http://h/a?b=%20", [("Host", "h")], Body(sent), 200, reason, headers, Body(received)
        )
        each.call, each.time, each.reads, each.chunks = call, 1.5, [1, 2], [3]
        writer.append(each)
        writer.finish({"redacted": []}, [7] if call is None else [])
        (found,) = load(path).interactions
    assert found.request_body
    assert found.body
    assert (found.request_body.whole(), found.body.whole()) == (sent, received)
    assert (found.headers, found.reason, found.time) == (headers, reason, 1.5)
    assert (found.call, found.reads, found.chunks) == (7 if call is None else call, [1, 2], [3])


@given(st.lists(st.binary(max_size=300)), st.sampled_from(["gzip", "deflate"]))
def test_content_that_is_packed_is_unpacked_as_it_was(pieces: list[bytes], encoding: str) -> None:
    assert b"".join(decoded(encoded(pieces, encoding), encoding)) == b"".join(pieces)


@given(st.binary(max_size=2000), st.data())
def test_an_exchange_is_seen_however_its_bytes_are_cut(body: bytes, data: st.DataObject) -> None:
    request = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (
        b"%x\r\n%b\r\n" % (len(body), body) if body else b""
    )
    found: list[Interaction] = []
    observer = Http1Observer(found.append, "h", ["h", 80])
    for piece in _cut(request, data):
        observer.sent(piece, 0.0, 1)
    for piece in _cut(answer + b"0\r\n\r\n", data):
        observer.received(piece, 1.0)
    (each,) = found
    assert each.request_body
    assert each.body
    assert (each.uri, each.request_body.whole(), each.body.whole()) == ("http://h/a", body, body)
    assert each.chunks == ([len(body)] if body else [])


@given(st.binary(min_size=8, max_size=400), st.binary(max_size=400))
def test_bytes_of_any_kind_are_an_exchange_or_unreadable(sent: bytes, received: bytes) -> None:
    observer = Http1Observer(lambda each: None, "h", ["h", 80])
    with suppress(Unreadable):
        observer.sent(sent, 0.0, None)
        observer.received(received, 1.0)
        observer.received(b"", 2.0)
        observer.closed(3.0)


def _cut(wire: bytes, data: st.DataObject) -> list[bytes]:
    places = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    return [wire[begin:end] for begin, end in zip([0, *places], [*places, len(wire)], strict=True) if begin < end]
