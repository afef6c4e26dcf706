"""Responses of a mock, with references to the request filled in."""

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
from ext_sdk.references import REQUEST, Reference, Template, new_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .request import ReceivedRequest


MAX_INSERTED = 16 * 1024 * 1024  # characters
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


def request_problem(reference: Reference, parameters: frozenset[str] | None) -> str:
    """Return the problem of a reference to the request; "" if it is valid.

    Args:
        parameters: names of the path parameters; None if a regular expression sets them.
    """
    key = reference.key
    kind, _, name = key.partition(".")
    if key in {*_PLAIN, "json"} or key.startswith("json/"):
        return ""
    if kind not in _NAMED or not name:
        parts = ", ".join(f"request.{part}" for part in (*_PLAIN, "json", "json/POINTER", "path.NAME", "query.NAME"))
        return f"{reference}: expected {parts} or request.header.NAME"
    if kind == "path" and parameters is not None and name not in parameters:
        known = ", ".join(sorted(parameters)) or "none"
        return f"{reference}: the path has no parameter {name!r:.40}; its parameters: {known}"
    return ""


def templates_in(value: object) -> Iterator[Template]:
    """Yield the templates in a JSON value."""
    if isinstance(value, Template):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value if isinstance(value, list) else value.values():
            yield from templates_in(item)


class RequestValues:
    """Values of the references to one request, such as `${request.query.name|stranger}`.

        request.method          GET                        request.path.city      path parameter
        request.url             path and query as sent     request.query.units    first query parameter of this name
        request.body            complete body as text      request.header.X-Id    first header of this name
        request.json            complete body as JSON      request.json/user/0    part of it, by JSON Pointer (RFC 6901)
        request.count           number of requests that the route has matched, including this one

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
        """Return a JSON value with its templates filled in. Raises TemplateError."""
        if isinstance(value, Template):
            single = value.single
            if single and single.name == REQUEST and single.key.partition("/")[0] == "json":
                self._take(len(self._request.body))  # about the length of the value as text
                return self._value(single)
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_json(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self.fill_json(item) for name, item in value.items()}
        return value

    def fill(self, value: object) -> str:
        """Return a text, or a template with its references filled in. Raises TemplateError."""
        return value.fill(self._text) if isinstance(value, Template) else str(value)

    def _text(self, reference: Reference) -> str:
        value = self._value(reference)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        self._take(len(text))
        return text

    def _take(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise TemplateError(f"the references insert more than {MAX_INSERTED:,} characters")

    def _value(self, reference: Reference) -> object:
        key = reference.key
        kind, _, name = key.partition(".")
        value: object
        if reference.name != REQUEST:
            value = new_value(reference.path)
        elif key.startswith("json"):
            value = self._resolve_pointer(key.removeprefix("json"))
        elif kind == "path":
            value = self._request.parameters.get(name, MISSING)
        elif kind == "query":
            value = next((value for parameter, value in self._request.query if parameter == name), MISSING)
        elif kind == "header":
            value = next(iter(values_of(name, self._request.headers)), MISSING)
        else:
            value = _PLAIN[key](self._request)
        if value is not MISSING:
            return value
        if reference.default is None:
            hint = f"set a default with ${{{reference.path:.100}|TEXT}}"
            raise TemplateError(f"the request has no value for {reference}; {hint}")
        return reference.default.fill(self._text)

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

    In `text`, `json` and `headers`, ${request.path.NAME}, ${request.query.NAME}, ${request.header.NAME},
    ${request.json/POINTER}, ${request.body}, ${request.method}, ${request.url} and ${request.count} are replaced by
    parts of the request; ${request.query.NAME|TEXT} has a default. ${now}, ${uuid} and the like are new each time.
    """

    status: Annotated[int, Meta(ge=200, le=599, description="Status code")] = 200
    headers: Annotated[
        dict[Name, Scalar | list[Scalar]],
        ext_sdk.Template,
        Meta(description="Headers; a list repeats one. The default Content-Type depends on the kind of body"),
    ] = field(default_factory=dict)
    text: Annotated[
        str | UnsetType,
        ext_sdk.Template,
        Meta(description="Text body; ${request.path.NAME} and the like are replaced by parts of the request"),
    ] = UNSET
    json: Annotated[
        Json | UnsetType,
        ext_sdk.Template,
        Meta(
            description='JSON body; its strings are templates, and "${request.json/user}" alone keeps the type of the '
            "value"
        ),
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


# As users write it: one, or several in turn, of which the last one repeats.
Answers = Answer | Annotated[list[Answer], Meta(min_length=1)]


def answer_for(count: int, replies: Sequence[Reply]) -> Reply:
    """Return the reply to a request.

    Args:
        count: 1 for the first request of the route.
    """
    for reply in replies:
        count -= 1 if isinstance(reply.answer.times, UnsetType) else reply.answer.times
        if count <= 0:
            break
    return reply


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


class Reply(NamedTuple):
    """Answer that is ready to be rendered for requests.

    Attributes:
        headers: (name, value) pairs; a value is a text or a Template.
        content: text or JSON, with a Template for each text that has references; bytes of a file.
    """

    answer: Answer
    headers: Sequence[tuple[str, object]]
    content: object

    def problems(self, parameters: frozenset[str] | None) -> list[str]:
        """Return the problems of references to requests; see request_problem."""
        templates = templates_in([value for _, value in self.headers] + [self.content])
        references = [reference for template in templates for reference in template.references]
        problems = [request_problem(reference, parameters) for reference in references if reference.name == REQUEST]
        return list(filter(None, dict.fromkeys(problems)))

    def render(self, request: ReceivedRequest) -> MockResponse:
        """Return the response to a request. Raises TemplateError if a referenced part of the request is missing."""
        answer, values = self.answer, RequestValues(request)
        headers: list[tuple[str, str]] = []
        for name, value in self.headers:
            headers.append((name, values.fill(value)))
            if problem := header_value_problem(headers[-1][1]):
                raise TemplateError(f"header {name}: {problem}")
        body: bytes | None = None if answer.status in STATUS_WITHOUT_BODY else b""
        kind = ""
        if isinstance(self.content, bytes):
            file = answer.file if isinstance(answer.file, str) else ""
            body, kind = self.content, mimetypes.guess_type(file)[0] or "application/octet-stream"
        elif answer.text is not UNSET:
            body, kind = values.fill(self.content).encode("utf-8", "replace"), "text/plain; charset=utf-8"
        elif answer.json is not UNSET:
            try:
                text = json.dumps(values.fill_json(self.content), ensure_ascii=False, allow_nan=False)
            except (ValueError, RecursionError) as error:
                raise TemplateError(f"the references insert a value that is not valid JSON: {error}") from error
            body, kind = text.encode("utf-8", "replace"), "application/json"
        if body is not None and kind and all(name.lower() != "content-type" for name, _ in headers):
            headers.insert(0, ("Content-Type", kind))
        return MockResponse(answer.status, headers, body, answer)


def prepare_answer(answer: Answer, field: str, context: ext_sdk.Context, *, verbatim: bool = False) -> Reply:
    """Return the reply of an answer: with the values that steps have kept, and with the content of its file.

    Args:
        field: path of the answer in the arguments, for errors.
        verbatim: nothing is replaced in this answer.

    Raises:
        OperationFailed: a file can't be read, or is outside the workdir.
        InvalidArgs: Base64 or a header is not valid.
    """

    def template(value: object, path: str) -> object:
        return value if verbatim else context.template(value, path)

    headers: list[tuple[str, object]] = []
    for name, values in answer.headers.items():
        path = f"{field}.headers.{name}"
        for value in header_texts(values):
            filled = template(value, path)
            if isinstance(filled, str) and (problem := header_value_problem(filled)):
                raise ext_sdk.InvalidArgs(path, problem)
            headers.append((name, filled))
    content: object = None
    if isinstance(answer.file, str):
        with os_errors("read", answer.file):
            content = Workdir(context.workdir).read(answer.file, limit=MAX_FILE_BYTES)
    elif isinstance(answer.base64, str):
        try:
            content = base64.b64decode("".join(answer.base64.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            problem = f"expected base64, found {answer.base64!r:.60}: {error}"
            raise ext_sdk.InvalidArgs(f"{field}.base64", problem) from error
    elif answer.text is not UNSET:
        content = template(answer.text, f"{field}.text")
    elif answer.json is not UNSET:
        content = template(answer.json, f"{field}.json")
    return Reply(answer, headers, content)
