"""A mock reads requests alike however they are cut, and whatever comes is a request, a refusal, or an end."""

from __future__ import annotations

import json
import string

import h11
from hypothesis import example, given
from hypothesis import strategies as st

from ext_http.mock.request import HEAD_BYTES, Limits, PathTemplate, ReceivedRequest
from ext_http.mock.response import RequestValues, TemplateError, request_problem
from ext_http.mock.server import InvalidRequest, RequestReader
from ext_sdk.references import REQUEST, Template

LIMITS = Limits(body=200)
TOKENS = st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=8)
VALUES = st.text(string.ascii_letters + string.digits + " ,;=", max_size=12).map(str.strip)
TARGETS = st.text(string.ascii_letters + string.digits + "/?&=%+.{}", max_size=20).map(lambda text: f"/{text}")
SNIPPETS = st.sampled_from(
    [
        *(b"GET ", b"POST / HTTP/1.1\r\n", b"Host: a\r\n", b"\r\n", b"\n", b" ", b":", b"\x00", b"\xff", b"0\r\n\r\n"),
        *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n", b"Expect: 100-continue\r\n"),
        *(b"Content-Length: ", b"99999999999999999999999\r\n", b"-1\r\n", b"HTTP/1.0\r\n", b"Connection: close\r\n"),
    ]
)


class Pieces:
    """Stands for a socket that gives what it was given, in these pieces."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data = data
        self._sizes = sizes or [len(data) or 1]
        self._turn = 0
        self.sent = b""

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def recv(self, most: int) -> bytes:
        size = min(self._sizes[self._turn % len(self._sizes)], most)
        self._turn += 1
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    def sendall(self, data: bytes) -> None:
        self.sent += data


def events(data: bytes, sizes: list[int]) -> list[tuple[object, ...]]:
    """What a mock makes of these bytes: each request, and how it ended."""
    state = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
    reader = RequestReader(Pieces(data, sizes), state, LIMITS)  # type: ignore[arg-type]  # all it uses of a socket
    found: list[tuple[object, ...]] = []
    while True:
        try:
            request = reader.read()
        except InvalidRequest as refused:
            return [*found, (refused.status,)]
        if request is None:
            return [*found, ("end",)]
        found.append((request.method, request.target, request.headers, request.body))
        answer = h11.Response(status_code=200, headers=[("Content-Length", "0")])
        state.send(answer)
        state.send(h11.EndOfMessage())
        if state.our_state is not h11.DONE or state.their_state is not h11.DONE:
            return [*found, ("closed",)]
        state.start_next_cycle()


@given(
    st.lists(
        st.tuples(TOKENS, TARGETS, st.lists(st.tuples(TOKENS, VALUES), max_size=3), st.binary(max_size=30)), max_size=3
    ),
    st.lists(st.integers(1, 7), max_size=5),
    st.booleans(),
)
def test_requests_are_read_as_they_were_written_however_they_are_cut(
    requests: list[tuple[str, str, list[tuple[str, str]], bytes]], sizes: list[int], chunked: bool
) -> None:
    data, expected = b"", []
    for method, target, pairs, body in requests:
        if method.upper() == "CONNECT":
            return
        headers = [("Host", "a"), *((f"X-{name}", value) for name, value in pairs)]
        framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))
        headers.append(framing)
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
        coded = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n" if chunked else body
        data += "\r\n".join(lines).encode() + coded
        expected.append((method, target, tuple(headers), body))
    assert events(data, sizes) == [*expected, ("end",)]


@given(st.lists(SNIPPETS | st.binary(max_size=5), max_size=25).map(b"".join), st.lists(st.integers(1, 9), max_size=4))
@example(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", [])
@example(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 3, [1])
def test_whatever_comes_is_a_request_a_refusal_or_an_end_and_cutting_changes_nothing(
    data: bytes, sizes: list[int]
) -> None:
    whole = events(data, [])
    assert events(data, sizes) == whole
    last = whole[-1]
    assert last[0] in {"end", "closed", 400, 408, 413, 431, 501, 505}


@given(TARGETS)
def test_any_target_has_a_path_and_its_own_template_fits_it(target: str) -> None:
    parsed = ReceivedRequest("GET", target)
    assert parsed.path.startswith("/")
    path = target.partition("?")[0]
    if "{" not in path and "}" not in path:
        assert PathTemplate(path).match(parsed.segments) == {}


@given(st.lists(st.text(max_size=6).filter(bool), min_size=1, max_size=4))
def test_a_template_finds_the_parts_that_a_client_encoded(parts: list[str]) -> None:
    from urllib.parse import quote

    names = [f"p{number}" for number in range(len(parts))]
    template = PathTemplate("".join(f"/{{{name}}}" for name in names))
    target = "".join(f"/{quote(part, safe='', errors='surrogatepass')}" for part in parts)
    try:
        expected = [part.encode("utf-8").decode() for part in parts]
    except UnicodeEncodeError:
        return
    assert template.match(ReceivedRequest("GET", target).segments) == dict(zip(names, expected, strict=True))


@given(st.text("${}|ab.requestjsonqueryhd/0", max_size=40), st.binary(max_size=20))
def test_a_text_is_filled_in_unless_the_request_lacks_something(text: str, body: bytes) -> None:
    template = Template.parse(text)
    if any(it.name != REQUEST or request_problem(it, frozenset()) for it in template.references):
        return
    request = ReceivedRequest("GET", "/?a=1", [("h", "v")], body)
    try:
        filled = RequestValues(request).fill(template)
    except TemplateError:
        assert "${request." in text
        return
    if "${" not in text:
        assert filled == text


@given(st.text(max_size=20))
def test_what_a_request_brings_in_comes_out_as_it_was(text: str) -> None:
    values = RequestValues(ReceivedRequest("GET", "/", [], json.dumps({"a": text}).encode()))
    part, whole = Template.parse("${request.json/a}"), Template.parse("${request.json}")
    assert values.fill_json({"b": part, "c": [whole]}) == {"b": text, "c": [{"a": text}]}
    assert values.fill(Template.parse("<${request.json/a}>")) == f"<{text}>"
