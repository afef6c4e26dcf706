"""Prepare and send a request: headers, connection settings, credentials, session cookies, redirects."""

from __future__ import annotations

import base64
import os
import re
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET

import ext_sdk
from ext_http.client.errors import ExchangeFailed, Refused
from ext_http.client.response import excerpt, status_line
from ext_http.client.settings import RECORDER, Proxy, Sessions, Settings, Tls
from ext_http.client.url import Guard, host_is_literal, join, normalized, parse, raw_target
from ext_http.config import HttpConfig
from ext_http.mock.registry import Mocks
from ext_http.request.auth import read_pem, resolve_secret, resolve_value
from ext_http.response.events import EventParser
from ext_http.response.header_check import header_value_problem
from ext_sdk.core.redaction.secret_names import looks_secret
from ext_sdk.core.text import suggest
from ext_sdk.files import Workdir, os_errors

from .auth import Credentials, credentials_for
from .body import EncodedBody, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ext_http.client.client import Converse, Outgoing
    from ext_http.client.response import Response
    from ext_http.client.url import Origin, Target

    from .args import ServerArgs
    from .body import Body

    Sink = Callable[[bytes], object]

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
COMPUTED = frozenset({"content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"})
BODY_HEADERS = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "cookie2"})
_WEBSOCKET = re.compile(r"(?i)^ws(?=s?://)")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey) +")


class Headers:
    """Ordered headers; a name may repeat. Setting a header replaces all values of that name, in any case.

    Args:
        defaults: headers without secrets, which are known to be valid.
    """

    def __init__(self, *defaults: tuple[str, str]) -> None:
        self._headers = {name.lower(): [(name, value)] for name, value in defaults}
        self._secret: set[str] = set()

    def set(self, name: str, values: str | list[str], field: str, *, secret: bool = False) -> None:
        """Set a header.

        Args:
            name: in any case.
            values: one, or several for a repeated header.
            field: path of the argument, for errors.
            secret: redact the value, and do not send it to another origin.

        Raises:
            InvalidArgs: the name or a value is not valid, or the header is computed from the request.
        """
        lower = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise ext_sdk.InvalidArgs(field, f"expected the name of a header, found {name!r:.100}")
        if lower in COMPUTED:
            raise ext_sdk.InvalidArgs(f"{field}.{name}", "this header is computed from the request and can't be set")
        values = [values] if isinstance(values, str) else values
        for value in values:
            if problem := header_value_problem(value):
                raise ext_sdk.InvalidArgs(f"{field}.{name}", problem)
        self._headers.pop(lower, None)  # a header that is set again moves to the end
        self._headers[lower] = [(name, value.strip(" \t")) for value in values]
        if secret or lower in CREDENTIALS or looks_secret(name):
            self._secret.add(lower)

    def __contains__(self, lower: str) -> bool:
        """Return True if a header of this name, in lower case, has a value."""
        return bool(self._headers.get(lower))

    def secrets(self) -> Iterable[tuple[str, str]]:
        """Yield name and value of secret headers; of `Bearer TOKEN` only the token."""
        for lower in self._secret:
            for _, value in self._headers[lower]:
                yield f"header.{lower}", _SCHEME.sub("", value, count=1)

    def items(self, *, other_origin: bool = False, body: bool = True) -> list[tuple[str, str]]:
        """Return the headers to send.

        Args:
            other_origin: leave out secret headers and Host.
            body: the request has a body; otherwise leave out headers that describe one.
        """
        omitted = (self._secret | {"host"} if other_origin else set()) | (set() if body else BODY_HEADERS)
        return [header for lower, headers in self._headers.items() if lower not in omitted for header in headers]


NO_PROXY = "none"
FROM_ENV = "env"


def build_settings(
    args: ServerArgs, origin: Origin, guard: Guard, context: ext_sdk.Context, *, other_origin: bool = False
) -> Settings:
    """Return the client settings for one redirect hop.

    Args:
        origin: of the hop.
        other_origin: the origin is not that of the operation, so the client certificate is not presented.

    Raises:
        InvalidArgs, OperationFailed: a file or a value of the arguments is not valid.
    """
    tls, given = Tls(), args.tls
    if origin.scheme == "https":
        ca = "" if given.ca is UNSET else read_pem(given.ca, "tls.ca", context)
        if not ca and not given.insecure and (path := context.config_as(HttpConfig).ca_file):
            with os_errors("read", path):
                ca = Path(path).read_text(encoding="utf-8", errors="replace")
        key = "" if given.key is UNSET else given.key
        if not isinstance(key, str) or "-----BEGIN" in key:  # a path is not a secret
            key = resolve_secret(key, "tls.key", context)
        certificate = "" if given.certificate is UNSET else read_pem(given.certificate, "tls.certificate", context)
        password = "" if given.key_password is UNSET else resolve_secret(given.key_password, "tls.keyPassword", context)
        key = read_pem(key, "tls.key", context) if key else ""
        server_name = "" if given.server_name is UNSET else given.server_name
        tls = Tls(ca, certificate, key, password, given.insecure, server_name)
    if other_origin:
        tls = tls._replace(certificate="", key="", key_password="", server_name="")
    unix_socket = "" if args.unix_socket is UNSET else args.unix_socket
    if unix_socket and not (Path(unix_socket).is_absolute() and context.given.get("unixSocket") == unix_socket):
        with os_errors("connect to", unix_socket):
            unix_socket = str(Workdir(context.workdir).path(unix_socket))
    resolve = []
    for name, address in args.resolve.items():
        host, _, port = name.partition(":")
        if not host or (port and not port.isdecimal()) or not address or "/" in name + address:
            raise ext_sdk.InvalidArgs("resolve", f"expected name: address, or name:port: address, found {name!r:.100}")
        resolve.append(((host.lower(), int(port or 0)), address.strip("[]")))
    return Settings(guard, tls, _proxy_of(args, origin, context), unix_socket, tuple(resolve), args.http_version)


def _proxy_of(args: ServerArgs, origin: Origin, context: ext_sdk.Context) -> Proxy | None:
    if args.proxy is UNSET:
        url = context.config_as(HttpConfig).proxy
        if not url and RECORDER in os.environ and args.unix_socket is UNSET and not args.resolve:
            url = FROM_ENV
    else:  # only the password in a URL is secret
        url = args.proxy if isinstance(args.proxy, str) else resolve_secret(args.proxy, "proxy", context)
    if url == FROM_ENV:  # HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, also in lower case
        from urllib.request import getproxies_environment, proxy_bypass

        proxies = getproxies_environment()
        url = proxies.get(origin.scheme, proxies.get("all", ""))
        if proxy_bypass(f"{origin.host}:{origin.port}"):
            url = ""
        elif url and "://" not in url:
            url = f"http://{url}"
    if url in {"", NO_PROXY}:
        return None
    target = parse(url, "proxy")
    if target.origin.scheme != "http":
        raise ext_sdk.InvalidArgs("proxy", "expected the http:// URL of a proxy, found https://")
    auth = None
    if target.user:
        user, password = target.user
        context.secrets.add("proxy.password", password)
        context.secrets.add("proxy.basic", base64.b64encode(f"{user}:{password}".encode()).decode())
        auth = (user.encode(), password.encode())
    return Proxy(str(target.origin), auth)


REDIRECTS = frozenset({301, 302, 303, 307, 308})
MAX_TOKEN_RESPONSE = 1024 * 1024  # bytes of a token endpoint's response


class Upgrade(NamedTuple):
    """Change to another protocol on the connection of a request.

    Attributes:
        headers: that request it.
        converse: called with the connection and the headers of a response with status 101.
    """

    headers: Sequence[tuple[str, str]]
    converse: Converse


def is_websocket(url: str) -> bool:
    """Return True for a ws or wss URL."""
    return bool(_WEBSOCKET.match(url))


def websocket_headers(key: str, subprotocols: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the headers that request a WebSocket (RFC 6455, 4.1).

    Args:
        key: 16 random bytes in Base64.
        subprotocols: that are offered.
    """
    headers = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key),
    ]
    return [*headers, *([("Sec-WebSocket-Protocol", ", ".join(subprotocols))] if subprotocols else [])]


class RequestSpec(NamedTuple):
    """Request apart from its server.

    Attributes:
        method: in any case; "" for GET, or POST with a body.
        max_body: bytes of the response body that are kept.
        path_as_is: send path and query of the URL without normalization.
        events: number of events after which to stop reading; 0 reads the complete response.
        fresh: open a new connection, because that is what is checked.
        upgrade: None for HTTP only.
    """

    method: str = ""
    query: Sequence[tuple[str, str]] = ()
    body: Body | None = None
    max_body: int = 0
    accept: str = "*/*"
    path_as_is: bool = False
    events: int = 0
    fresh: bool = False
    upgrade: Upgrade | None = None


class PreparedRequest:
    """Request that can be sent several times.

    Raises:
        InvalidArgs: an argument is not valid.
        OperationFailed: a file can't be read, or the host is refused.
    """

    def __init__(self, args: ServerArgs, spec: RequestSpec, context: ext_sdk.Context) -> None:
        from ext_http.client.client import USER_AGENT

        self._args = args
        self._spec = spec
        self._context = context
        self._session = context.state(Sessions).get(args.session) if args.session is not UNSET else None
        name = args.session if isinstance(args.session, str) else ""
        self._target = _target_of(args.url, spec, name, context)
        self.url = f"{self._target.origin}{self._target.raw}" if self._target.raw else self._target.url
        allow = (*context.config_as(HttpConfig).allow_hosts, *args.allow_hosts, *context.state(Mocks).addresses)
        self._guard = Guard(tuple(map(str.lower, allow)), self._target.trusted)
        self._guard.check_host(self._target.origin.host, self._target.origin.port)
        self._body = encode(spec.body, context) if spec.body else None
        self.method = (spec.method or ("POST" if self._body else "GET")).upper()
        if self.method == "CONNECT":
            raise ext_sdk.InvalidArgs("method", "CONNECT opens a tunnel through a proxy; set `proxy` instead")
        headers = Headers(("User-Agent", USER_AGENT), ("Accept", spec.accept))
        if self._body and self._body.content_type:
            headers.set("Content-Type", self._body.content_type, "body.contentType")
        for name, value in context.config_as(HttpConfig).headers.items():
            headers.set(name, value, "config.headers")
        if self._session:
            for name, value in self._session.headers.items():
                headers.set(name, value, "headers", secret=name.lower() in self._session.secret_headers)
        for name, given in args.headers.items():
            each = given if isinstance(given, list) else [given]
            values = [resolve_value(value, f"headers.{name}", context) for value in each]
            headers.set(name, values, "headers")
        for name, secret in args.secret_headers.items():
            headers.set(name, resolve_secret(secret, f"secretHeaders.{name}", context), "secretHeaders", secret=True)
        for name, value in headers.secrets():
            context.secrets.add(name, value)
        self._headers = headers
        self._credentials: Credentials | None = None
        self.where = f"{self.method} {self.url}"  # for messages
        if spec.upgrade:
            self.url = self.url.replace("http", "ws", 1)
            self.where = f"WebSocket {self.url}"

    def send(self, deadline: ext_sdk.Deadline, sink: Sink | None = None) -> Response:
        """Send the request and follow redirects up to the limit.

        Args:
            deadline: for all exchanges together.
            sink: receives the body of a response with status 200 to 299.

        Raises:
            ExchangeFailed: no complete response before the deadline.
            OperationFailed: no token is available.
        """
        begun = time.monotonic()
        response = self._follow(deadline, sink)
        if response.status == 401 and self._credentials and self._credentials.forget():
            self._credentials = None
            response = self._follow(deadline, sink)
        url = response.url.replace("http", "ws", 1) if self._spec.upgrade else response.url
        return msgspec.structs.replace(response, elapsed=time.monotonic() - begun, url=url)

    def _follow(self, deadline: ext_sdk.Deadline, sink: Sink | None) -> Response:
        hop = _RedirectHop(self._target, self.method, self._body, self._guard)
        hops: list[str] = []
        while True:
            response = self._exchange(hop, deadline, sink)
            location = next(iter(response.values("location")), None) if response.status in REDIRECTS else None
            if location is None or not self._args.redirects or response.excess:
                return msgspec.structs.replace(response, hops=tuple(hops)) if hops else response
            if len(hops) >= self._args.redirects:
                reason = f"more than {self._args.redirects} redirects, the last one to {location!r:.300}"
                raise ExchangeFailed("redirect", reason, self.where)
            hops.append(hop.target.url)
            try:
                target = join(hop.target.url, location)
            except (ValueError, ext_sdk.InvalidArgs) as error:
                raise ExchangeFailed("redirect", f"a redirect to {location!r:.200}: {error}", self.where) from None
            # Without `allowHosts`, a redirect may lead to the same server, and from http to https on default ports.
            first, following = self._target.origin, target.origin
            upgraded = first.host == following.host and (first[::2], following[::2]) == (("http", 80), ("https", 443))
            trusted = hop.guard.trusted and (following == first or upgraded)
            guard = Guard(self._guard.allow, following[1:] if trusted else None)
            try:
                guard.check_host(following.host, following.port)
            except Refused as error:
                raise Refused(f"redirected to {target.url}: {error.reason}", self.where) from None
            # RFC 9110, 15.4: after 303 any method but HEAD becomes GET, after 301 and 302 only POST does.
            get = (response.status == 303 and hop.method != "HEAD") or (
                response.status in {301, 302} and hop.method == "POST"
            )
            hop = _RedirectHop(target, "GET" if get else hop.method, None if get else hop.body, guard)

    def _exchange(self, hop: _RedirectHop, deadline: ext_sdk.Deadline, sink: Sink | None) -> Response:
        from ext_http.client.client import ACCEPT_ENCODING, Outgoing

        other_origin = hop.target.origin != self._target.origin
        headers = self._headers.items(other_origin=other_origin, body=hop.body is not None)
        credentials = Credentials()
        if not other_origin and (self._args.auth is not UNSET or self._target.user):
            if self._credentials is None:
                post_form = partial(self._post_token_form, deadline)
                self._credentials = credentials_for(self._args.auth, self._target, post_form, self._context)
            credentials = self._credentials
        if credentials.header:
            headers.append(("Authorization", credentials.header))
        if self._session and (other_origin or "cookie" not in self._headers):
            cookie = self._session.cookies.header(hop.target.url)
            headers += [("Cookie", cookie)] if cookie else []
        if self._spec.upgrade:
            headers += self._spec.upgrade.headers
        if "accept-encoding" not in self._headers:
            headers.append(("Accept-Encoding", ACCEPT_ENCODING))
        settings = build_settings(self._args, hop.target.origin, hop.guard, self._context, other_origin=other_origin)
        content = hop.body.content if hop.body else None
        outgoing = Outgoing(hop.method, hop.target.url, tuple(headers), content, credentials.digest, raw=hop.target.raw)
        response = self._transmit(outgoing, settings, deadline, sink)
        if self._session and response.values("set-cookie"):
            for name, value in self._session.cookies.store(response):
                self._context.secrets.add(f"cookie.{name}", value)
        return response

    def _transmit(
        self, outgoing: Outgoing, settings: Settings, deadline: ext_sdk.Deadline, sink: Sink | None
    ) -> Response:
        """Send one request. A failure describes the part of the response that was received."""
        from ext_http.client.client import Client, Clients
        from ext_http.client.network import ExchangeDeadline

        connect = None if self._args.connect_timeout is UNSET else self._args.connect_timeout.seconds
        client = Client(settings) if self._spec.fresh else self._context.extension_state(Clients).get(settings)
        try:
            enough = EventParser(self._spec.events).feed if self._spec.events else None
            exchange, limit = ExchangeDeadline(deadline, connect), self._spec.max_body
            converse = self._spec.upgrade.converse if self._spec.upgrade else None
            return client.send(outgoing, exchange, limit=limit, sink=sink, enough=enough, converse=converse)
        except ExchangeFailed as failure:
            if received := failure.response:
                body = excerpt(received, self._context.secrets)
                text = f"received: {status_line(received)}, {received.encoded_size:,} bytes of its body"
                failure.add_response(
                    f"{text}: {body}" if body else text, {"status": received.status, "url": received.url}
                )
            raise
        finally:
            if self._spec.fresh:
                client.close()

    def _post_token_form(
        self, deadline: ext_sdk.Deadline, url: str, form: list[tuple[str, str]], header: str
    ) -> Response:
        """Send a form to a token endpoint, over the same kind of connection as the request."""
        from ext_http.client.client import ACCEPT_ENCODING, USER_AGENT, Clients, Outgoing
        from ext_http.client.network import ExchangeDeadline

        given: object = self._context.given
        for name in ("auth", "oauth2", "tokenUrl"):
            given = given.get(name) if isinstance(given, dict) else None
        literal = isinstance(given, str) and host_is_literal(self._context.with_chosen(given), url)
        target = parse(url, "auth.oauth2.tokenUrl")._replace(literal=literal)
        guard = Guard(self._guard.allow, target.trusted)
        guard.check_host(target.origin.host, target.origin.port)
        headers = [
            ("User-Agent", USER_AGENT),
            ("Accept", "application/json"),
            ("Accept-Encoding", ACCEPT_ENCODING),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ]
        headers += [("Authorization", header)] if header else []
        outgoing = Outgoing("POST", target.url, tuple(headers), urlencode(form).encode())
        settings = build_settings(self._args, target.origin, guard, self._context)
        client = self._context.extension_state(Clients).get(settings)
        return client.send(outgoing, ExchangeDeadline(deadline), limit=MAX_TOKEN_RESPONSE)


class _RedirectHop(NamedTuple):
    """One request of a chain of redirects."""

    target: Target
    method: str
    body: EncodedBody | None
    guard: Guard


def _base_url(url: str, session_name: str, context: ext_sdk.Context) -> tuple[str, str]:
    """Return the base URL of the session or configuration, and its text in the task. Raises InvalidArgs if unset."""
    if session_name:
        session = context.state(Sessions).get(session_name)
        if session.base_url:
            return session.base_url, session.base_given
    base = context.config_as(HttpConfig).base_url
    if not base:
        problem = f"expected a URL with http:// or https://, found {url!r:.100} without a baseUrl"
        remedy = "set one in the configuration or with `session`"
        if session_name:
            known = suggest(session_name, context.state(Sessions).with_base_url(), none=remedy)
            remedy = f"session {session_name!r} has none in this workdir and scope: {known}"
        raise ext_sdk.InvalidArgs("url", f"{problem}; {remedy}")
    return base, base


def _target_of(url: str, spec: RequestSpec, session_name: str, context: ext_sdk.Context) -> Target:
    """Return the target of an operation. Its secrets are redacted from here on.

    Args:
        url: argument of the operation; if it begins with /, the base URL of the session or configuration is added.
        session_name: name of a session that may have a base URL; "" for none.

    Raises:
        InvalidArgs: the URL is not valid, or the base URL is missing.
    """
    given, query = context.given.get("url", url), spec.query
    if spec.upgrade:  # a WebSocket is opened by an HTTP request to the same host
        url = _WEBSOCKET.sub("http", url)
        given = _WEBSOCKET.sub("http", given) if isinstance(given, str) else given
    if url.startswith("/"):
        base, base_given = _base_url(url, session_name, context)
        url, given = base.rstrip("/") + url, f"{base_given.rstrip('/')}{given}"
    target = parse(url)._replace(literal=isinstance(given, str) and host_is_literal(context.with_chosen(given), url))
    if spec.path_as_is:
        raw = raw_target(url)
        encoded = urlencode(query)
        target = target._replace(raw=f"{raw}{'&' if '?' in raw else '?'}{encoded}" if encoded else raw)
    if target.user:
        context.secrets.add("url.password", target.user[1])
    parts = urlsplit(target.url)
    for name, value in [*parse_qsl(parts.query, keep_blank_values=True), *query]:
        if looks_secret(name):
            context.secrets.add(f"query.{name}", value)
    if not query:
        return target
    complete = urlunsplit(parts._replace(query="&".join(filter(None, [parts.query, urlencode(query)]))))
    normalized(complete, "query")  # raises InvalidArgs for a URL that is too long
    return target._replace(url=complete)
