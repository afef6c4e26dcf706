"""Upstream server of a mock: forwards requests that no route matches, and records its responses as routes."""

from __future__ import annotations

import base64
import json
import threading
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.client.errors import ExchangeFailed
from ext_http.client.settings import Settings, Tls
from ext_http.client.url import Guard, host_is_literal, parse
from ext_sdk.expect.json_equality import MISSING, NotJson
from ext_sdk.expect.json_equality import parse as parse_json
from ext_sdk.files import Workdir, os_errors

from .response import STATUS_WITHOUT_BODY, MockResponse, plain_response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .request import ReceivedRequest

TIMEOUT_SECONDS = 30.0
MAX_BODY = 16 * 1024 * 1024  # bytes of a response
MAX_RECORDED = 1000  # responses
MAX_RECORDED_BYTES = 64 * 1024 * 1024  # of their bodies
# Headers of one connection (RFC 9110, 7.6.1), or computed from the message.
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "host",
        "content-length",
        "accept-encoding",
        "content-encoding",
        "expect",
    }
)
NOT_RECORDED = HOP_BY_HOP | {"date", "server", "set-cookie"}


class Upstream(ext_sdk.Args):
    """Server that responds to requests that no route matches."""

    url: Annotated[
        str, Meta(min_length=1, description="http:// or https:// URL; the path of a request is appended to it")
    ]
    record: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType,
        Meta(
            description="File of the workdir for the responses as arguments of mock-start, `verbatim` and `routes`, "
            "in JSON, without secrets"
        ),
    ] = UNSET


class Forwarder:
    """Forwards requests to the upstream server. Thread-safe.

    Args:
        settings: of the client, apart from the guard.
        allow: patterns of `allowHosts`.
        redact: removes secrets from the file.

    Attributes:
        note: on secrets in the file, for messages; "" if it has none.

    Raises:
        InvalidArgs: the URL is not valid.
        OperationFailed: the host is refused, or the file can't be written.
    """

    def __init__(
        self,
        upstream: Upstream,
        context: ext_sdk.Context,
        *,
        ca: str,
        allow: Sequence[str],
        redact: Callable[[str], str],
    ) -> None:
        from ext_http.client.client import Client

        given = context.given.get("upstream")
        written = given.get("url") if isinstance(given, dict) else upstream.url
        target = parse(upstream.url, "upstream.url")
        literal = isinstance(written, str) and host_is_literal(context.with_chosen(written), upstream.url)
        guard = Guard(tuple(map(str.lower, allow)), target._replace(literal=literal).trusted)
        guard.check_host(target.origin.host, target.origin.port)
        self.url = target.url.partition("?")[0].rstrip("/")
        self._base = self.url[len(str(target.origin)) :]
        self._path = upstream.record if isinstance(upstream.record, str) else ""
        self._workdir = Workdir(context.workdir)
        self._redact = redact
        self._lock = threading.Lock()
        self._recorded: dict[tuple[str, str, bytes], tuple[ReceivedRequest, list[dict[str, object]]]] = {}
        self._room = MAX_RECORDED_BYTES
        self.count = 0
        self.note = ""
        self._stopped = threading.Event()
        self.write()
        self._client = Client(Settings(guard, Tls(ca=ca)))

    def respond(self, request: ReceivedRequest) -> tuple[MockResponse, str]:
        """Return the response of the upstream server; or a plain 502, and the reason."""
        from ext_http.client.client import Outgoing
        from ext_http.client.network import ExchangeDeadline

        path = (
            request.target
            if request.target.startswith("/")
            else f"/{request.target.partition('://')[2].partition('/')[2]}"
        )
        headers = tuple((name, value) for name, value in request.headers if name.lower() not in HOP_BY_HOP)
        outgoing = Outgoing(request.method, self.url + path, headers, request.body or None, raw=self._base + path)
        deadline = ExchangeDeadline(ext_sdk.Deadline(TIMEOUT_SECONDS, self._stopped))
        try:
            received = self._client.send(outgoing, deadline, limit=MAX_BODY)
        except ExchangeFailed as failure:
            return plain_response(502), f"the upstream server did not respond: {failure.message}"
        if received.truncated or received.status < 200:
            return plain_response(502), f"a response with status {received.status}, or a body over {MAX_BODY:,} bytes"
        kept = [(name, value) for name, value in received.headers if name.lower() not in HOP_BY_HOP]
        body = None if received.status in STATUS_WITHOUT_BODY else received.body
        self._record(request, received.status, kept, body)
        return MockResponse(received.status, kept, body), ""

    def _record(
        self, request: ReceivedRequest, status: int, headers: Sequence[tuple[str, str]], body: bytes | None
    ) -> None:
        answer: dict[str, object] = {"status": status}
        named: dict[str, object] = {}
        for name, value in headers:
            if name.lower() not in NOT_RECORDED:
                known = named.get(name)
                named[name] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
        answer |= {"headers": named} if named else {}
        if body:
            try:
                text = body.decode()
                answer |= {"json": parse_json(text)}
            except NotJson:
                answer |= {"text": body.decode()}
            except UnicodeDecodeError:
                answer |= {"base64": base64.b64encode(body).decode()}
        with self._lock:
            self._room -= len(body or b"") + len(request.body)
            if not self._path or self.count >= MAX_RECORDED or self._room < 0:
                return
            self.count += 1
            _, answers = self._recorded.setdefault((request.method, request.target, request.body), (request, []))
            if not answers or answers[-1] != answer:  # the last one repeats
                answers.append(answer)

    def write(self) -> None:
        """Write the recorded routes. Raises OperationFailed if the file can't be written."""
        if not self._path:
            return
        with self._lock:
            routes = [
                _route(number, request, answers)
                for number, (request, answers) in enumerate(self._recorded.values(), start=1)
            ]
        lines, redacted = [], 0
        for route in routes:
            line = json.dumps(route, ensure_ascii=False)
            hidden = self._redact(line)
            if hidden != line:
                redacted += 1
                try:
                    hidden = json.dumps(_matching_any_secret(route, parse_json(hidden)), ensure_ascii=False)
                except NotJson as error:
                    problem = f"{self._path}: redacted route {redacted} is not valid JSON without its secrets: {error}"
                    raise ext_sdk.OperationFailed("the recording can't be written", error=problem) from None
            lines.append(hidden)
        self.note = (
            f"secrets are redacted in {redacted} of the {len(routes)} routes of {self._path}: requests match with any "
            "value in their place, responses contain placeholders"
            if redacted
            else ""
        )
        with os_errors("write", self._path), self._workdir.writing(self._path, parents=True) as file:
            text = ",\n".join(lines)
            file.write(f'{{"verbatim": true, "routes": [\n{text}\n]}}\n'.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        """End requests that are being forwarded, and close connections."""
        self._stopped.set()
        self._client.close()


def _route(number: int, request: ReceivedRequest, answers: list[dict[str, object]]) -> dict[str, object]:
    """Return a recorded request and its responses as a route."""
    path = quote(request.path, safe="/:@!$&'()*+,;=~")
    route: dict[str, object] = {"name": f"{number} {request.method} {path}", "method": request.method, "path": path}
    query = _by_name(request.query)
    route |= {"query": query} if query else {}
    if request.body and isinstance(text := request.decoded, str):
        try:
            route |= {"body": {"jsonEquals": parse_json(text)}}
        except NotJson:
            form = _by_name(request.form or ())
            route |= {"form": form} if form and "" not in form else {"body": {"exactly": text}}
    return route | {"answer": answers if len(answers) > 1 else answers[0]}


def _by_name(pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Return the values of each name, in the order received."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return dict(values)


def _matching_any_secret(route: dict[str, object], hidden: object) -> dict[str, object]:
    """Return the redacted route with conditions that any value in place of a secret fulfills.

    Args:
        hidden: the route after redaction.
    """
    if not isinstance(hidden, dict):
        raise NotJson("it is not an object")
    path, hidden_path = str(route["path"]), str(hidden.get("path"))
    if path != hidden_path:
        pairs = list(zip(path.split("/"), hidden_path.split("/"), strict=False))
        if path.count("/") == hidden_path.count("/"):
            hidden["path"] = "/".join(
                shown if shown == segment else f"{{secret{at}}}" for at, (segment, shown) in enumerate(pairs)
            )
        else:
            del hidden["path"]
    for part in ("query", "form"):
        given, shown = route.get(part), hidden.pop(part, None)
        if isinstance(given, dict) and isinstance(shown, dict):
            known = {name: values for name, values in given.items() if name in shown}
            open_values = {
                name: values if shown[name] == values else {"exists": True} for name, values in known.items()
            }
            hidden |= {part: open_values} if open_values else {}
    given, shown = route.get("body"), hidden.get("body")
    if given != shown:
        del hidden["body"]
        if isinstance(given, dict) and isinstance(shown, dict) and "jsonEquals" in given:
            secret: list[str] = []
            kept = _without_secrets(given["jsonEquals"], shown.get("jsonEquals"), "$", secret)
            body: dict[str, object] = {} if kept is MISSING else {"jsonContains": kept}
            hidden["body"] = body | ({"json": [{"path": at, "exists": True} for at in secret]} if secret else {})
    return hidden


def _without_secrets(value: object, hidden: object, at: str, secret: list[str]) -> object:
    """Return a JSON value without the members that redaction changed; MISSING if it is such a member itself.

    Args:
        at: JSONPath of the value.
        secret: receives the paths of these members.
    """
    if value == hidden:
        return value
    if isinstance(value, dict) and isinstance(hidden, dict):
        shown = {name: member for name, member in value.items() if name in hidden}  # a name may be secret, too
        members = {
            name: _without_secrets(member, hidden[name], f"{at}[{json.dumps(name)}]", secret)
            for name, member in shown.items()
        }
        return {name: member for name, member in members.items() if member is not MISSING}
    if isinstance(value, list) and isinstance(hidden, list) and len(value) == len(hidden):
        pairs = zip(value, hidden, strict=True)
        items = [_without_secrets(item, shown, f"{at}[{number}]", secret) for number, (item, shown) in enumerate(pairs)]
        return MISSING if any(item is MISSING for item in items) else items
    secret.append(at)
    return MISSING
