"""Send a prepared request: credentials, redirects, session."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import UNSET

import ext_sdk
from ext_http.client.errors import ExchangeFailed, Refused
from ext_http.client.ssrf_guard import DEFAULT_PORTS, Guard, Origin, origin_of
from ext_http.config import config_of
from ext_http.mock.registry import Mocks
from ext_http.response.excerpt import excerpt, status_line

from .auth import Credentials
from .body import Encoded, encode
from .connection_settings import build_settings
from .credentials import credentials_for
from .headers import Headers
from .secrets import resolve_secret, resolve_value
from .session_store import Sessions
from .url import strip_userinfo, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_http.client.response import Response

    from .args import ServerArgs
    from .body import Body


REDIRECTS = frozenset({301, 302, 303, 307, 308})
REFUSED_METHODS = frozenset({"CONNECT"})


class RequestSpec(NamedTuple):
    """What is asked, beside where.

    Attributes:
        method: in any case; "" for GET, or POST with a body.
        body: None for none.
        query: parameters that are added to those of the URL.
        max_body: bytes of the answer's body that are kept.
        accept: types that the answer may have.
    """

    method: str = ""
    query: Sequence[tuple[str, str]] = ()
    body: Body | None = None
    max_body: int = 0
    accept: str = "*/*"


class PreparedRequest:
    """A request that can be sent, again and again.

    Args:
        args: where to, and with what.
        ask: what.
        context: of the call.

    Raises:
        InvalidArgs: an argument can't be used.
        OperationFailed: a file can't be read, a host must not be asked, or no token is to be had.
    """

    def __init__(self, args: ServerArgs, ask: RequestSpec, context: ext_sdk.Context) -> None:
        self._args = args
        self._ask = ask
        self._context = context
        self._session = context.state(Sessions).get(args.session) if args.session is not UNSET else None
        self._target = target_of(args, ask.query, self._session, context)
        self.url, self._origin = self._target.url, self._target.origin
        allow = (*config_of(context).allow_hosts, *args.allow_hosts, *context.state(Mocks).addresses())
        self._guard = Guard(tuple(map(str.lower, allow)), self._target.trusted)
        self._guard.check_host(self._origin.host, self._origin.port)
        self._body = encode(ask.body, context) if ask.body else None
        self.method = (ask.method or ("POST" if self._body else "GET")).upper()
        if self.method in REFUSED_METHODS:
            raise ext_sdk.InvalidArgs("method", f"{self.method} asks a proxy for a tunnel; name one with `proxy`")
        self._headers = self._made_headers()
        self._credentials: Credentials | None = None

    @property
    def where(self) -> str:
        """Method and URL, for messages."""
        return f"{self.method} {self.url}"

    def send(self, deadline: ext_sdk.Deadline, sink: Callable[[bytes], object] | None = None) -> Response:
        """Send it, and follow redirects as far as they may be followed.

        Args:
            deadline: for all of it.
            sink: takes the body of an answer with a status from 200 to 299.

        Raises:
            ExchangeFailed: there was no answer, or none in time.
            OperationFailed: no token is to be had.
        """
        begun = time.monotonic()
        answer = self._chain(deadline, sink)
        if answer.status == 401 and self._credentials and self._credentials.forget():
            self._credentials = None
            answer = self._chain(deadline, sink)
        return msgspec.structs.replace(answer, elapsed=time.monotonic() - begun)

    def _chain(self, deadline: ext_sdk.Deadline, sink: Callable[[bytes], object] | None) -> Response:
        hop = _RedirectHop(self.url, self.method, self._body, self._guard)
        hops: list[str] = []
        while True:
            answer = self._sent(hop, deadline, sink)
            location = next(iter(answer.values("location")), None)
            followed = self._args.redirects and answer.status in REDIRECTS and not answer.excess
            if not followed or location is None:
                return msgspec.structs.replace(answer, hops=tuple(hops))
            if len(hops) >= self._args.redirects:
                raise ExchangeFailed(
                    "redirect",
                    f"more than {self._args.redirects} redirects, the last one to {location!r:.300}",
                    self.where,
                )
            hops.append(hop.url)
            hop = self._followed(hop, answer.status, location)

    def _sent(self, hop: _RedirectHop, deadline: ext_sdk.Deadline, sink: Callable[[bytes], object] | None) -> Response:
        from ext_http.client.client import ACCEPTED, Clients, Outgoing
        from ext_http.client.network import ExchangeDeadline

        origin = origin_of(hop.url)
        elsewhere = origin != self._origin
        headers = self._headers.items(elsewhere=elsewhere, body=hop.body is not None)
        credentials = Credentials() if elsewhere else self._authenticated(deadline)
        if credentials.header:
            headers.append(("Authorization", credentials.header))
        if self._session and not (not elsewhere and self._headers.has("cookie")):
            headers += [("Cookie", cookie)] if (cookie := self._session.cookies.header(hop.url)) else []
        if not self._headers.has("accept-encoding"):
            headers.append(("Accept-Encoding", ACCEPTED))
        settings = build_settings(self._args, origin, hop.guard, self._context, elsewhere=elsewhere)
        client = self._context.extension_state(Clients).get(settings)
        connect = None if self._args.connect_timeout is UNSET else self._args.connect_timeout.seconds
        content = hop.body.content if hop.body else None
        outgoing = Outgoing(hop.method, hop.url, tuple(headers), content, credentials.digest)
        try:
            answer = client.send(outgoing, ExchangeDeadline(deadline, connect), limit=self._ask.max_body, sink=sink)
        except ExchangeFailed as failure:
            if failure.answer:
                self._tell_of_part(failure, failure.answer)
            raise
        self._keep_cookies(answer)
        return answer

    def _tell_of_part(self, failure: ExchangeFailed, answer: Response) -> None:
        """Add to a failure what was received of the answer before it."""
        body = excerpt(answer, self._context.secrets)
        told = f"received: {status_line(answer)}, {answer.encoded_size:,} bytes of its body"
        failure.add_answer(f"{told}: {body}" if body else told, {"status": answer.status, "url": answer.url})

    def _authenticated(self, deadline: ext_sdk.Deadline) -> Credentials:
        if self._credentials is None:
            allow = self._guard.allow
            self._credentials = credentials_for(self._args, self._target, allow, self._context, deadline)
        return self._credentials

    def _keep_cookies(self, answer: Response) -> None:
        if self._session and answer.values("set-cookie"):
            for name, value in self._session.cookies.store(answer):
                self._context.secrets.add(f"cookie.{name}", value)

    def _followed(self, hop: _RedirectHop, status: int, location: str) -> _RedirectHop:
        """The next hop (RFC 9110, 15.4)."""
        from ext_http.client.encoding import joined

        try:
            url = joined(hop.url, location)
            origin = origin_of(url)
        except (ValueError, ext_sdk.InvalidArgs) as error:
            raise ExchangeFailed("redirect", f"a redirect to {location!r:.200}: {error}", self.where) from None
        url, _ = strip_userinfo(url)
        guard = Guard(self._guard.allow, _trusted(self._origin if hop.guard.trusted else None, origin))
        try:
            guard.check_host(origin.host, origin.port)
        except Refused as error:
            raise Refused(f"redirected to {url}: {error.reason}", self.where) from None
        get = (status == 303 and hop.method != "HEAD") or (status in {301, 302} and hop.method == "POST")
        return _RedirectHop(url, "GET" if get else hop.method, None if get else hop.body, guard)

    def _made_headers(self) -> Headers:
        from ext_http.client.client import USER_AGENT

        headers = Headers()
        headers.set("User-Agent", USER_AGENT, "headers")
        headers.set("Accept", self._ask.accept, "headers")
        if self._body and self._body.content_type:
            headers.set("Content-Type", self._body.content_type, "body.contentType")
        for name, value in config_of(self._context).headers.items():
            headers.set(name, value, "config.headers")
        if self._session:
            for name, value in self._session.headers.items():
                headers.set(name, value, "headers", secret=name.lower() in self._session.secret_headers)
        for name, given in self._args.headers.items():
            values = given if isinstance(given, list) else resolve_value(given, f"headers.{name}", self._context)
            headers.set(name, values, "headers")
        for name, secret in self._args.secret_headers.items():
            text = resolve_secret(secret, f"secretHeaders.{name}", self._context)
            headers.set(name, text, "secretHeaders", secret=True)
        for name, value in headers.secrets():
            self._context.secrets.add(name, value)
        return headers


class _RedirectHop(NamedTuple):
    """One request of a chain of redirects."""

    url: str
    method: str
    body: Encoded | None
    guard: Guard


def _trusted(first: Origin | None, next_: Origin) -> tuple[str, int] | None:
    """Where a redirect may lead without being allowed: to the same server, and from http to https of the same name."""
    if first is None or first.host != next_.host:
        return None
    ports = [(each, DEFAULT_PORTS[each]) for each in ("http", "https")]
    upgraded = [(each.scheme, each.port) for each in (first, next_)] == ports
    return (next_.host, next_.port) if first == next_ or upgraded else None
