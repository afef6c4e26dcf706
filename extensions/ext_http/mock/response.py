"""Responses of a mock: as configured, with templates filled."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.response.header_check import header_value_problem as header_problem
from ext_sdk.expect.check import Json  # noqa: TC001 - msgspec reads it
from ext_sdk.files import Workdir, os_errors

from .template import Filler, Unfilled, problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .request import Request


Fault = Literal["reset", "close", "truncate", "malformed"]
Name = Annotated[str, Meta(pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
WITHOUT_BODY = (204, 205, 304)
_BODIES = ("text", "json", "file", "base64")
_OURS = ("content-length", "transfer-encoding")


class Answer(ext_sdk.Args):
    """An answer, or a fault in its place.

    In `text`, `json` and `headers`, $(path.NAME), $(query.NAME), $(header.NAME), $(json/POINTER), $(body), $(method),
    $(url) and $(count) stand for parts of the request; $(query.NAME|TEXT) says what else; $$( is a literal $(.
    """

    status: Annotated[int, Meta(ge=200, le=599)] = 200
    headers: Annotated[
        dict[Name, str | list[str]], Meta(description="A list repeats one. Content-Type goes by the kind of the body")
    ] = field(default_factory=dict)
    text: Annotated[str | UnsetType, Meta(description="Body; $(path.NAME) and the like stand for the request's")] = (
        UNSET
    )
    json: Annotated[
        Json | UnsetType,
        Meta(description='Body; its texts are as `text`, and "$(json/user)" alone is that value in its own type'),
    ] = UNSET
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType, Meta(description="Body: a file of the workdir, as it is now")
    ] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Body")] = UNSET
    chunked: Annotated[bool, Meta(description="Send the body in chunks, without its length")] = False
    delay: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Before the answer")] = UNSET
    drip: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Send the body in pieces over this long")] = UNSET
    fault: Annotated[
        Fault | UnsetType,
        Meta(
            description="reset: of the connection, in place of an answer. close: of it, without a word. "
            "truncate: of the answer, after half of it. malformed: no HTTP"
        ),
    ] = UNSET
    times: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType, Meta(description="For so many calls, then the next of the list; 1")
    ] = UNSET

    def __post_init__(self) -> None:
        bodies = [name for name in _BODIES if getattr(self, name) is not UNSET]
        if len(bodies) > 1:
            raise ValueError(f"expected one body, found {' and '.join(bodies)}")
        if bodies and self.status in WITHOUT_BODY:
            raise ValueError(f"an answer with status {self.status} has no body (RFC 9110), found {bodies[0]}")
        for name, values in self.headers.items():
            if name.lower() in _OURS:
                raise ValueError(f"{name} goes by the body; `chunked` and `fault` are for others")
            for value in [values] if isinstance(values, str) else values:
                if wrong := header_problem(value):
                    raise ValueError(f"headers.{name}: {wrong}")
        for name in ("delay", "drip"):
            given = getattr(self, name)
            if isinstance(given, ext_sdk.Duration) and given.seconds < 0:
                raise ValueError(f"{name}: expected 0s or more, found {given}")
        self._refuse_faults_with_more(bodies)

    def _refuse_faults_with_more(self, bodies: list[str]) -> None:
        if self.fault in {"reset", "close", "malformed"} and (bodies or self.headers or self.drip is not UNSET):
            raise ValueError(f"`fault: {self.fault}` sends no answer, so that it has neither body nor headers")

    def problem(self, parameters: frozenset[str] | None) -> str:
        """What is wrong with the references to requests, or ""; `parameters` as in template.problem."""
        values: list[object] = list(self.headers.values())
        return next(filter(None, (problem(one, parameters) for one in (*values, self.text, self.json))), "")


# As users write it: one, or one after the other; the last one repeats.
Answers = Answer | Annotated[list[Answer], Meta(min_length=1)]


def answer_for(count: int, answers: Answers) -> Answer:
    """The answer to a call.

    Args:
        count: 1 for the first call, and so on.
        answers: one, or those one after the other.
    """
    several = answers if isinstance(answers, list) else [answers]
    for one in several:
        count -= 1 if isinstance(one.times, UnsetType) else one.times
        if count <= 0:
            return one
    return several[-1]


LARGEST_FILE = 64 * 1024 * 1024  # bytes of a file that is a body; it is held in memory
Pairs = list[tuple[str, str]]


class Response:
    """An answer, ready to be sent.

    Attributes:
        status: such as 200.
        headers: name and value of each; Content-Length is not among them.
        body: None where there is none, as with 204.
        answer: what it was made of, which says how it is sent; None for an answer of the mock's own.
    """

    __slots__ = ("answer", "body", "headers", "status")

    def __init__(self, status: int, headers: Pairs, body: bytes | None, answer: Answer | None = None) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.answer = answer


def reason(status: int) -> str:
    """The words of a status: `Not Found`; "" where there are none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def plain(status: int, text: str = "") -> Response:
    """Return an answer of the mock's own, as any server gives it: without a text, it does not reveal the mock.

    Args:
        status: of the answer.
        text: body; the words of the status if it is empty.
    """
    body = f"{text or reason(status)}\n".encode("utf-8", "replace")
    return Response(status, [("Content-Type", "text/plain; charset=utf-8")], body)


class Bodies:
    """The bodies that stand still: files and base64, read when the mock starts.

    Args:
        answers: all that the mock may give.
        workdir: where files are.

    Raises:
        OperationFailed: a file that can't be read, or is not in the workdir.
        InvalidArgs: what is no base64.
    """

    def __init__(self, answers: Sequence[Answer], workdir: Path) -> None:
        self._files: Mapping[str, bytes] = {
            one.file: _read(one.file, workdir) for one in answers if isinstance(one.file, str)
        }
        self._decoded: Mapping[str, bytes] = {
            one.base64: _decoded(one.base64) for one in answers if isinstance(one.base64, str)
        }

    def respond(self, answer: Answer, request: Request) -> Response:
        """The answer to a request. Raises Unfilled where it refers to what the request does not have."""
        filler = Filler(request)
        headers: Pairs = []
        for name, values in answer.headers.items():
            headers += [(name, filler.fill(one)) for one in (values if isinstance(values, list) else [values])]
        body, kind = self._body(answer, filler)
        if body is not None and kind and all(name.lower() != "content-type" for name, _ in headers):
            headers.insert(0, ("Content-Type", kind))
        return Response(answer.status, headers, body, answer)

    def _body(self, answer: Answer, filler: Filler) -> tuple[bytes | None, str]:
        """The body, and its type; "" for none."""
        if isinstance(answer.text, str):
            return filler.fill(answer.text).encode("utf-8", "replace"), "text/plain; charset=utf-8"
        if answer.json is not UNSET:
            return _json(filler.fill_json(answer.json)), "application/json"
        if isinstance(answer.file, str):
            guessed, _ = mimetypes.guess_type(answer.file)
            return self._files[answer.file], guessed or "application/octet-stream"
        if not isinstance(answer.base64, UnsetType):
            return self._decoded[answer.base64], "application/octet-stream"
        return (None if answer.status in WITHOUT_BODY else b""), ""


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except (ValueError, RecursionError) as error:
        raise Unfilled(f"what the references bring in is no JSON that can be written: {error}") from error


def _read(path: str, workdir: Path) -> bytes:
    with os_errors("read", path):
        return Workdir(workdir).read(path, limit=LARGEST_FILE)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ext_sdk.InvalidArgs("routes", f"answer.base64: expected base64, found {text!r:.60}: {error}") from error
