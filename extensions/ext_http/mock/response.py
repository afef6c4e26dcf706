"""Responses of a mock, with templates filled in."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.response import values_of
from ext_http.response.header_check import header_value_problem
from ext_sdk.args import Scalar, scalar_text
from ext_sdk.expect.check import Json  # noqa: TC001 - msgspec reads it
from ext_sdk.expect.json_equality import MISSING, NotJson, parse
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .request import ReceivedRequest


MAX_INSERTED = 16 * 1024 * 1024  # characters
_REFERENCE = re.compile(r"\$\$\(|\$\(([^()|]*)(?:\|([^()]*))?\)")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_PLAIN: Mapping[str, Callable[[ReceivedRequest], str]] = {
    "method": lambda request: request.method,
    "url": lambda request: request.target,
    "body": lambda request: request.body.decode("utf-8", "replace"),
    "count": lambda request: str(request.count),
}
_NAMED = ("path", "query", "header")


class TemplateError(Exception):
    """A reference to a missing part of the request, or too much inserted text; str() is the reason."""


def template_problem(value: object, parameters: frozenset[str] | None) -> str:
    """Return the first invalid reference in a text, or in the strings of a JSON value; "" if all are valid.

    Args:
        parameters: names of the path parameters; None if a regular expression sets them.
    """
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, (list, Mapping)):
            pending.extend(value if isinstance(value, list) else value.values())
        for match in _REFERENCE.finditer(value if isinstance(value, str) else ""):
            reference = match[1]
            if reference is None or reference in {*_PLAIN, "json"} or reference.startswith("json/"):
                continue
            kind, _, name = reference.partition(".")
            if kind not in _NAMED or not name:
                problem = "expected method, url, body, count, json, json/POINTER, path.NAME, query.NAME or header.NAME"
            elif kind == "path" and parameters is not None and name not in parameters:
                known = ", ".join(sorted(parameters)) or "none"
                problem = f"the path has no parameter {name!r:.40}; its parameters: {known}"
            else:
                continue
            return f"{match[0]:.100}: {problem}; write $$( for a literal $("
    return ""


class Template:
    """Fills in the references of one response, such as `Hello, $(query.name|stranger)!`.

        $(method)          GET                        $(path.city)      path parameter
        $(url)             path and query as sent     $(query.units)    first query parameter of this name
        $(body)            complete body as text      $(header.X-Id)    first header of this name
        $(json)            complete body as JSON      $(json/user/0)    part of it, by JSON Pointer (RFC 6901)
        $(count)           number of requests that the route has matched, including this one
        $(query.units|C)   C if the parameter is missing
        $$(                a literal $(

    A string in a JSON body that is a single reference to JSON becomes that value in its own type; elsewhere, a value
    other than a string is inserted as JSON. Values from the request are never interpreted as templates. A response has
    at most 16 MiB of text from its request.
    """

    def __init__(self, request: ReceivedRequest) -> None:
        self._request = request
        self._room = MAX_INSERTED
        self._document: object = None
        self._parsed = False

    def fill_json(self, value: object) -> object:
        """Return a JSON value with the references in its strings filled in, but not in names. Raises TemplateError."""
        if isinstance(value, str):
            reference = _REFERENCE.fullmatch(value)
            if reference and reference[1] is not None and reference[1].partition("/")[0] == "json":
                self._take(len(self._request.body))  # about the length of the value as text
                return self._value(reference)
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_json(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self.fill_json(item) for name, item in value.items()}
        return value

    def fill(self, text: str) -> str:
        """Return a text with its references filled in. Raises TemplateError."""
        return _REFERENCE.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return "$("
        value = self._value(match)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._take(len(text))
        return text

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise TemplateError(f"the references insert more than {MAX_INSERTED:,} characters")

    def _value(self, match: re.Match[str]) -> object:
        reference, default = match[1], match[2]
        kind, _, name = reference.partition(".")
        if reference.startswith("json"):
            value = self._resolve_pointer(reference.removeprefix("json"))
        elif kind == "path":
            value = self._request.parameters.get(name, MISSING)
        elif kind == "query":
            value = next((value for parameter, value in self._request.query if parameter == name), MISSING)
        elif kind == "header":
            value = next(iter(values_of(name, self._request.headers)), MISSING)
        else:
            value = _PLAIN[reference](self._request)
        if value is not MISSING:
            return value
        if default is None:
            raise TemplateError(
                f"the request has no value for $({reference:.100}); set a default with $({reference:.100}|TEXT)"
            )
        return default

    def _resolve_pointer(self, pointer: str) -> object:
        """Return the value at a JSON Pointer, MISSING if there is none or the body is not JSON."""
        if not self._parsed:
            self._parsed = True
            try:
                self._document = parse(self._request.body.decode())
            except (NotJson, UnicodeDecodeError):
                self._document = MISSING
        value = self._document
        for token in pointer.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict):
                value = value.get(name, MISSING)
            elif isinstance(value, list) and _INDEX.fullmatch(name) and int(name) < len(value):
                value = value[int(name)]
            else:
                return MISSING
        return value


Fault = Literal["reset", "close", "truncate", "malformed"]
Name = Annotated[str, Meta(pattern="^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
STATUS_WITHOUT_BODY = (204, 205, 304)
_BODIES = ("text", "json", "file", "base64")
_COMPUTED = ("content-length", "transfer-encoding")


def header_texts(values: Scalar | list[Scalar]) -> list[str]:
    """Return the values of a header as texts."""
    return [scalar_text(value) for value in (values if isinstance(values, list) else [values])]


class Answer(ext_sdk.Args):
    """Response of a route, or a fault instead of it.

    In `text`, `json` and `headers`, $(path.NAME), $(query.NAME), $(header.NAME), $(json/POINTER), $(body), $(method),
    $(url) and $(count) are replaced by parts of the request; $(query.NAME|TEXT) has a default; $$( is a literal $(.
    """

    status: Annotated[int, Meta(ge=200, le=599, description="Status code")] = 200
    headers: Annotated[
        dict[Name, Scalar | list[Scalar]],
        Meta(description="Headers; a list repeats one. The default Content-Type depends on the kind of body"),
    ] = field(default_factory=dict)
    text: Annotated[
        str | UnsetType, Meta(description="Text body; $(path.NAME) and the like are replaced by parts of the request")
    ] = UNSET
    json: Annotated[
        Json | UnsetType,
        Meta(description='JSON body; its strings are templates, and "$(json/user)" alone keeps the type of the value'),
    ] = UNSET
    file: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType, Meta(description="File of the workdir to send, read now")
    ] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Bytes to send, in Base64")] = UNSET
    chunked: Annotated[bool, Meta(description="Send the body in chunks, without Content-Length")] = False
    delay: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Delay before the response")] = UNSET
    drip: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Time over which the body is sent in pieces")] = (
        UNSET
    )
    fault: Annotated[
        Fault | UnsetType,
        Meta(
            description="Fault instead of a response. reset: reset the connection. close: close it. truncate: close it "
            "after half of the response. malformed: send invalid HTTP"
        ),
    ] = UNSET
    times: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType,
        Meta(description="Number of requests that get this response before the next one of the list; 1 by default"),
    ] = UNSET

    def __post_init__(self) -> None:
        bodies = [name for name in _BODIES if getattr(self, name) is not UNSET]
        if len(bodies) > 1:
            raise ValueError(f"expected one body, found {' and '.join(bodies)}")
        if bodies and self.status in STATUS_WITHOUT_BODY:
            raise ValueError(f"a response with status {self.status} has no body (RFC 9110), found {bodies[0]}")
        for name, values in self.headers.items():
            if name.lower() in _COMPUTED:
                raise ValueError(f"{name} is computed from the body; set `chunked` or `fault` instead")
            for value in header_texts(values):
                if problem := header_value_problem(value):
                    raise ValueError(f"headers.{name}: {problem}")
        for name in ("delay", "drip"):
            given = getattr(self, name)
            if isinstance(given, ext_sdk.Duration) and given.seconds < 0:
                raise ValueError(f"{name}: expected 0s or more, found {given}")
        sends_nothing = self.fault in {"reset", "close", "malformed"}
        if sends_nothing and (bodies or self.headers or self.drip is not UNSET):
            raise ValueError(f"`fault: {self.fault}` sends no response, so it excludes body, headers and drip")

    def template_problem(self, parameters: frozenset[str] | None) -> str:
        """Return the first invalid reference to the request, or ""; see the function of this name."""
        values: list[object] = [*map(header_texts, self.headers.values()), self.text, self.json]
        return next(filter(None, (template_problem(value, parameters) for value in values)), "")


# As users write it: one, or several in turn, of which the last one repeats.
Answers = Answer | Annotated[list[Answer], Meta(min_length=1)]


def answer_for(count: int, answers: Answers) -> Answer:
    """Return the answer to a request.

    Args:
        count: 1 for the first request of the route.
    """
    if isinstance(answers, Answer):
        return answers
    for answer in answers:
        count -= 1 if isinstance(answer.times, UnsetType) else answer.times
        if count <= 0:
            break
    return answer


MAX_FILE_BYTES = 64 * 1024 * 1024  # of a file that is a body; it is held in memory


class MockResponse(NamedTuple):
    """Response that is ready to be sent.

    Attributes:
        headers: (name, value) pairs, without Content-Length.
        body: None if the status does not permit one.
        answer: the configuration, which sets how the response is sent; None for a response of the mock itself.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes | None
    answer: Answer | None = None


def reason_phrase(status: int) -> str:
    """Return the reason phrase of a status: `Not Found`; "" for an unknown status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def plain_response(status: int, text: str = "") -> MockResponse:
    """Return a response of the mock itself. Without a text, it does not reveal that the server is a mock.

    Args:
        text: body; by default the reason phrase.
    """
    body = f"{text or reason_phrase(status)}\n".encode("utf-8", "replace")
    return MockResponse(status, [("Content-Type", "text/plain; charset=utf-8")], body)


class Renderer:
    """Renders configured answers. Files and Base64 are read when the mock starts.

    Raises:
        OperationFailed: a file can't be read, or is outside the workdir.
        InvalidArgs: Base64 is not valid.
    """

    def __init__(self, answers: Sequence[Answer], workdir: Path) -> None:
        self._files: dict[str, bytes] = {}
        self._decoded: dict[str, bytes] = {}
        self._workdir = workdir
        self.read(answers)

    def read(self, answers: Sequence[Answer]) -> None:
        """Read the files and Base64 of further answers. Raises as the constructor does."""
        for answer in answers:
            if isinstance(answer.file, str):
                with os_errors("read", answer.file):
                    self._files[answer.file] = Workdir(self._workdir).read(answer.file, limit=MAX_FILE_BYTES)
            if isinstance(answer.base64, str):
                text = answer.base64
                try:
                    self._decoded[text] = base64.b64decode("".join(text.split()), validate=True)
                except (binascii.Error, ValueError) as error:
                    problem = f"answer.base64: expected base64, found {text!r:.60}: {error}"
                    raise ext_sdk.InvalidArgs("routes", problem) from error

    def render(self, answer: Answer, request: ReceivedRequest) -> MockResponse:
        """Return the response to a request. Raises TemplateError if a referenced part of the request is missing."""
        template = Template(request)
        headers: list[tuple[str, str]] = []
        for name, values in answer.headers.items():
            headers += [(name, template.fill(value)) for value in header_texts(values)]
        body: bytes | None = None if answer.status in STATUS_WITHOUT_BODY else b""
        kind = ""
        if isinstance(answer.text, str):
            body, kind = template.fill(answer.text).encode("utf-8", "replace"), "text/plain; charset=utf-8"
        elif answer.json is not UNSET:
            try:
                text = json.dumps(template.fill_json(answer.json), ensure_ascii=False, allow_nan=False)
            except (ValueError, RecursionError) as error:
                raise TemplateError(f"the references insert a value that is not valid JSON: {error}") from error
            body, kind = text.encode("utf-8", "replace"), "application/json"
        elif isinstance(answer.file, str):
            body, kind = self._files[answer.file], mimetypes.guess_type(answer.file)[0] or "application/octet-stream"
        elif not isinstance(answer.base64, UnsetType):
            body, kind = self._decoded[answer.base64], "application/octet-stream"
        if body is not None and kind and all(name.lower() != "content-type" for name, _ in headers):
            headers.insert(0, ("Content-Type", kind))
        return MockResponse(answer.status, headers, body, answer)
