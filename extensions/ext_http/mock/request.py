"""Requests received by a mock, its limits, and the journal of the requests: in memory, and in a redacted file."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import parse_qsl, unquote

from msgspec import Meta

import ext_sdk
from ext_http.client.response import decode_text, values_of
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.expect.check import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ext_http.client.response import NotText
    from ext_sdk import Secrets

HEAD_BYTES = 64 * 1024  # of a request line and its headers
HANDSHAKE_SECONDS = 10.0  # for TLS
IDLE_SECONDS = 60.0  # that a connection may wait for its next request
SEND_SECONDS = 30.0  # that a client may take to read a part of a response
LINGER_SECONDS = 1.0  # in which a client that still sends can read a refusal
LINGER_BYTES = 1024 * 1024  # that are read and dropped meanwhile


class Limits(ext_sdk.Args):
    """Resource limits of a mock."""

    body: Annotated[
        int, Meta(ge=0, le=64 * 1024 * 1024, description="Maximum bytes of a request body; 413 for more")
    ] = 1024 * 1024
    connections: Annotated[int, Meta(ge=1, le=1000, description="Maximum open connections; 503 for more")] = 200
    calls: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Maximum requests kept for mock-verify, with 64 MiB of bodies; mock-verify fails after more",
        ),
    ] = 10_000
    request_time: Annotated[
        ext_sdk.Duration, Meta(description="Maximum time from the first to the last byte of a request; 408 after that")
    ] = ext_sdk.Duration.parse("10s")

    def __post_init__(self) -> None:
        if self.request_time.seconds <= 0:
            raise ValueError(f"requestTime: expected a duration over 0, found {self.request_time}")


_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SCHEME = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class ReceivedRequest:
    """Request that was read completely.

    Args:
        method: case-sensitive (RFC 9110, 9.1).
        target: of the request line (RFC 9112, 3.2): `/path?query`, `http://host/path`, `*`.
        headers: (name, value) in the order received, repeated headers repeated.
        body: after transfer decoding; a content coding is not decoded.

    Attributes:
        path: decoded, without query.
        segments: of the path, decoded.
        query: decoded (name, value) pairs, in order. Invalid escapes stay unchanged, `+` is a space.
        parameters: path parameters of the matching route.
        truncated: the body was not kept completely.
        count: number of requests that the route has matched, including this one.
    """

    __slots__ = ("body", "count", "headers", "method", "parameters", "path", "query", "segments", "target", "truncated")

    def __init__(self, method: str, target: str, headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> None:
        path, _, query = _SCHEME.sub("", target, count=1).partition("?")
        pairs = [pair.replace("+", " ").partition("=") for pair in query.split("&") if pair]
        self.method = method
        self.target = target
        self.headers = tuple(headers)
        self.body = body
        self.path = unquote(path) or "/"
        self.segments = _segments(path or "/")
        self.query = tuple((unquote(name), unquote(value)) for name, _, value in pairs)
        self.parameters: Mapping[str, str] = {}
        self.truncated = False
        self.count = 0

    @property
    def form(self) -> Sequence[tuple[str, str]] | None:
        """Return the fields of a web form, decoded, of files their content; None if the body is not a form."""
        header = next(iter(values_of("content-type", self.headers)), "")
        kind = header.partition(";")[0].strip().lower()
        if kind == "application/x-www-form-urlencoded":
            return parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        if kind != "multipart/form-data":
            return None
        from email.parser import BytesParser

        head = f"Content-Type: {header}\r\n\r\n".encode("utf-8", "replace")
        fields = []
        for part in BytesParser().parsebytes(head + self.body).walk():
            name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
            if isinstance(name, str) and isinstance(content, bytes):
                fields.append((name, content.decode("utf-8", "replace")))
        return fields

    @property
    def decoded(self) -> str | NotText:
        """Return the body as text, or the reason why it is not text."""
        return decode_text(self.body, values_of("content-type", self.headers))


def _segments(path: str) -> tuple[str, ...]:
    return tuple(map(unquote, path.split("/")))


class PathTemplate:
    """Path with `{name}` in place of complete segments.

    Raises:
        ValueError: the text does not begin with `/`, or a name is not valid or occurs twice.
    """

    def __init__(self, text: str) -> None:
        if not text.startswith("/"):
            raise ValueError(f"path: expected one that begins with /, found {text!r:.100}")
        if "?" in text:
            raise ValueError(f"path: expected a path without query, found {text!r:.100}; set `query` instead")
        self._segments = _segments(text)
        self.names: list[str] = []  # of the segments; "" for a literal segment
        for segment in text.split("/"):
            is_parameter = segment.startswith("{") and segment.endswith("}")
            if not is_parameter and set("{}") & set(segment):
                problem = "a parameter is a complete segment, as in /cities/{city}"
                raise ValueError(f"path: {problem}, found {segment!r:.100}")
            if is_parameter and not _PARAMETER.fullmatch(segment[1:-1]):
                raise ValueError(f"path: expected a name of letters, digits, - and _ in braces, found {segment!r:.100}")
            self.names.append(segment[1:-1] if is_parameter else "")
        names = [name for name in self.names if name]
        if len(set(names)) < len(names):
            raise ValueError(f"path: expected each name once, found {text!r:.100}")

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the parameters of a path that matches, else None. A parameter has at least one character."""
        if len(segments) != len(self._segments):
            return None
        parameters: dict[str, str] = {}
        for name, expected, segment in zip(self.names, self._segments, segments, strict=True):
            if name and segment:
                parameters[name] = segment
            elif name or expected != segment:
                return None
        return parameters


MAX_BODIES = 64 * 1024 * 1024  # bytes of the bodies kept in memory, all together
BODY_CHARACTERS = 4096  # of a body in the file
REDACTED_BYTES = 64 * 1024  # of a body that is redacted before it is cut
MAX_FILE = 32 * 1024 * 1024  # bytes of the file
TARGET_CHARACTERS = 300  # of a request's target in an error
MAX_PROBLEMS = 10
_WORD_AT_END = re.compile(r"[\w+/=.~%:@-]+\Z")


class Call:
    """One request and its response.

    Attributes:
        number: 1 for the first.
        seconds: since the mock was started.
        route: label of the matching route; "" if none matched.
        answer: status of the response, or the name of a fault.
        problem: reason why the response could not be rendered; "" if it was.
        miss: reason why no route matched; None if one did.
    """

    __slots__ = ("answer", "miss", "number", "problem", "request", "route", "seconds")

    def __init__(
        self, request: ReceivedRequest, route: str, answer: str, *, problem: str = "", miss: Miss | None = None
    ) -> None:
        self.number = 0
        self.seconds = 0.0
        self.request = request
        self.route = route
        self.answer = answer
        self.problem = problem
        self.miss = miss

    @property
    def miss_reasons(self) -> list[str]:
        """Return the reasons why no route matched, on several lines; empty if one did."""
        return [f"nearest route: {self.miss.nearest}", *self.miss.differences] if self.miss else []


class Miss(NamedTuple):
    """Reason why no route matched a request, redacted.

    Attributes:
        nearest: label of the nearest route.
        differences: expectations of that route that the request does not meet.
    """

    nearest: str
    differences: Sequence[str]

    def __str__(self) -> str:
        return f"the nearest is {self.nearest}: {'; '.join(self.differences)}"


class Journal:
    """All requests of one mock. Thread-safe.

    Args:
        path: of the file, which exists and is private.
        secrets: known secrets; values that look like secrets are redacted, too.
        max_calls: number of calls that are kept; later ones are only counted.

    Attributes:
        count: number of calls, including those that were not kept.
        unmatched: number of calls that no route matched.
    """

    def __init__(self, path: Path, secrets: Secrets, max_calls: int) -> None:
        self.path = path
        self.max_calls = max_calls
        self._secrets = secrets
        self._rules = Redactor(rules=True)
        self._changed = threading.Condition()
        self._calls: list[Call] = []
        self.count = self.unmatched = 0
        self._room = MAX_BODIES
        self._problems: list[str] = []
        self._begun = time.monotonic()
        self._file: BinaryIO | None = None
        self._file_room = MAX_FILE

    def redact(self, text: str) -> str:
        """Return a text without secrets."""
        return self._rules.redact_text(self._secrets.redact(text))

    def add(self, call: Call) -> None:
        """Record a call before its response is sent, so that a client with a response finds its call here."""
        request = call.request
        headers: dict[str, object] = {}
        for name, value in request.headers:
            known = headers.get(name)
            headers[name] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
        body = request.body[:REDACTED_BYTES].decode("utf-8", "backslashreplace")
        if len(body) > BODY_CHARACTERS:  # redacted first and cut between words, so that no half secret remains
            body = _WORD_AT_END.sub("", self.redact(body)[:BODY_CHARACTERS]) + " …"
        with self._changed:
            self.count += 1
            self.unmatched += not call.route
            call.number, call.seconds = self.count, time.monotonic() - self._begun
            entry: dict[str, object] = {
                "n": call.number,
                "at": f"{call.seconds:.3f}s",
                "method": request.method,
                "target": request.target,
                "headers": headers,
                "route": call.route or None,
                "answer": call.answer,
                "bodyBytes": len(request.body),
                "body": body,
            }
            if call.miss:
                entry |= {"nearest": call.miss.nearest, "differences": call.miss.differences}
            self._write(entry | ({"problem": call.problem} if call.problem else {}))
            if len(self._calls) < self.max_calls:
                self._room -= len(request.body)
                if self._room < 0:
                    request.body, request.truncated = b"", True
                self._calls.append(call)
            self._changed.notify_all()

    def add_problem(self, problem: str) -> None:
        """Record received bytes that were not a valid request, or a response that could not be sent."""
        with self._changed:
            self._problems = [*self._problems[1 - MAX_PROBLEMS :], self.redact(problem)]
            self._write({"at": f"{time.monotonic() - self._begun:.3f}s", "problem": problem})
            self._changed.notify_all()

    @property
    def calls(self) -> Sequence[Call]:
        """Return the calls that were kept, in the order in which they were read completely."""
        with self._changed:
            return list(self._calls)

    @property
    def problems(self) -> Sequence[str]:
        """Return the latest problems, redacted."""
        with self._changed:
            return self._problems

    @property
    def complete(self) -> bool:
        """Return True if all calls were kept."""
        return self.count <= self.max_calls

    def wait(self, count: int, seconds: float) -> bool:
        """Wait until there are more calls than `count`, or time is up; return True if there are."""
        with self._changed:
            return self._changed.wait_for(lambda: self.count > count, seconds)

    def describe(self, call: Call, reasons: Sequence[str] = ()) -> str:
        """Return a call on several indented lines, redacted: request and response, reasons, body.

        Args:
            reasons: why the call is shown, redacted.
        """
        request = call.request
        target = self.redact(request.target)
        target = target if len(target) <= TARGET_CHARACTERS else f"{target[:TARGET_CHARACTERS]} …"
        text = f"#{call.number} {request.method} {target} got {call.answer} from {call.route or 'no route'}"
        lines = [f"  {self.redact(text)}", *(f"    {reason}" for reason in reasons)]
        if call.problem:
            lines.append(f"    the response failed: {self.redact(call.problem)}")
        if request.body:
            body = request.body[:REDACTED_BYTES].decode("utf-8", "replace")
            lines.append(f"    body: {quoted(body, self.redact)}")
        return "\n".join(lines)

    def clear(self) -> None:
        """Forget all calls and problems, so that the next call is #1. The file keeps its lines."""
        with self._changed:
            self._calls, self._problems = [], []
            self.count = self.unmatched = 0
            self._room = MAX_BODIES
            self._write({"at": f"{time.monotonic() - self._begun:.3f}s", "cleared": True})
            self._changed.notify_all()

    def redact_file(self) -> None:
        """Redact the file again, for a secret that was not known when its lines were written."""
        with self._changed, suppress(OSError):
            if self._file:
                lines = self.path.read_bytes().decode("utf-8", "backslashreplace").splitlines(keepends=True)
                self._file.seek(0)
                self._file.truncate()
                self._file.write("".join(map(self._secrets.redact, lines)).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """Close the file."""
        with self._changed, suppress(OSError):
            if self._file:
                self._file.close()
            self._file_room = 0

    def _write(self, entry: dict[str, object]) -> None:
        """Append a line. A full disk does not keep the mock from responding."""
        line = self.redact(json.dumps(entry, ensure_ascii=False)).encode("utf-8", "backslashreplace") + b"\n"
        self._file_room -= len(line)
        if self._file_room < 0:
            return
        with suppress(OSError):
            self._file = self._file or self.path.open("wb", buffering=0)
            self._file.write(line)
