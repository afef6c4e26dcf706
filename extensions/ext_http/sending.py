"""A request from its arguments to its answer, redirects included."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET

import ext_sdk
from ext_sdk.redaction.names import looks_secret
from ext_sdk.version import __version__

from . import auth as ways
from .addresses import DEFAULT_PORTS, Guard, Origin, host_is_literal, origin_of, split
from .bodies import Encoded, encode
from .config import config_of
from .connecting import settings_for
from .errors import ExchangeFailed, Refused
from .headers import Headers
from .hidden import plain, revealed
from .mock.mocks import Mocks
from .sessions import Session, Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .answer import Answer
    from .arguments import ServerArgs
    from .bodies import Body

USER_AGENT = f"ext-http/{__version__} gevals-extensions"
REDIRECTS = frozenset({301, 302, 303, 307, 308})
REFUSED_METHODS = frozenset({"CONNECT"})


class Ask(NamedTuple):
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


class Prepared:
    """A request that can be sent, again and again.

    Args:
        args: where to, and with what.
        ask: what.
        context: of the call.

    Raises:
        InvalidArgs: an argument can't be used.
        OperationFailed: a file can't be read, a host must not be asked, or no token is to be had.
    """

    def __init__(self, args: ServerArgs, ask: Ask, context: ext_sdk.Context) -> None:
        self._args = args
        self._ask = ask
        self._context = context
        self._session = context.state(Sessions).get(args.session) if args.session is not UNSET else None
        self.url, literal = _url(args, ask.query, self._session, context)
        self._origin = origin_of(self.url)
        allow = (*config_of(context).allow_hosts, *args.allow_hosts, *context.state(Mocks).addresses())
        here = (self._origin.host, self._origin.port) if literal else None
        self._guard = Guard(tuple(map(str.lower, allow)), here)
        self._guard.check_host(self._origin.host, self._origin.port)
        self._body = encode(ask.body, context) if ask.body else None
        self.method = (ask.method or ("POST" if self._body else "GET")).upper()
        if self.method in REFUSED_METHODS:
            raise ext_sdk.InvalidArgs("method", f"{self.method} asks a proxy for a tunnel; name one with `proxy`")
        self._headers = self._made_headers()
        self._credentials: ways.Credentials | None = None

    @property
    def where(self) -> str:
        """Method and URL, for messages."""
        return f"{self.method} {self.url}"

    def send(self, deadline: ext_sdk.Deadline, sink: Callable[[bytes], object] | None = None) -> Answer:
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

    def _chain(self, deadline: ext_sdk.Deadline, sink: Callable[[bytes], object] | None) -> Answer:
        hop = _Hop(self.url, self.method, self._body, self._guard)
        hops: list[str] = []
        while True:
            answer = self._sent(hop, deadline, sink)
            location = next(iter(answer.values("location")), None)
            if not self._args.redirects or answer.status not in REDIRECTS or location is None:
                return msgspec.structs.replace(answer, hops=tuple(hops))
            if len(hops) >= self._args.redirects:
                raise ExchangeFailed(
                    "redirect",
                    f"more than {self._args.redirects} redirects, the last one to {location!r:.300}",
                    self.where,
                )
            hops.append(hop.url)
            hop = self._followed(hop, answer.status, location)

    def _sent(self, hop: _Hop, deadline: ext_sdk.Deadline, sink: Callable[[bytes], object] | None) -> Answer:
        from .client import ACCEPTED, Budget, Clients, Outgoing

        origin = origin_of(hop.url)
        elsewhere = origin != self._origin
        headers = self._headers.items(elsewhere=elsewhere, body=hop.body is not None)
        credentials = ways.Credentials() if elsewhere else self._authenticated(deadline)
        if credentials.header:
            headers.append(("Authorization", credentials.header))
        if self._session and not (not elsewhere and self._headers.has("cookie")):
            headers += [("Cookie", cookie)] if (cookie := self._session.cookies.header(hop.url)) else []
        if not self._headers.has("accept-encoding"):
            headers.append(("Accept-Encoding", ACCEPTED))
        settings = settings_for(self._args, origin, hop.guard, self._context)
        client = self._context.extension_state(Clients).get(settings)
        connect = None if self._args.connect_timeout is UNSET else self._args.connect_timeout.seconds
        content = hop.body.content if hop.body else None
        outgoing = Outgoing(hop.method, hop.url, tuple(headers), content, credentials.digest)
        answer = client.send(outgoing, Budget(deadline, connect), limit=self._ask.max_body, sink=sink)
        self._keep_cookies(answer)
        return answer

    def _keep_cookies(self, answer: Answer) -> None:
        if self._session and answer.values("set-cookie"):
            for name, value in self._session.cookies.store(answer):
                self._context.secrets.add(f"cookie.{name}", value)

    def _followed(self, hop: _Hop, status: int, location: str) -> _Hop:
        """The next hop (RFC 9110, 15.4)."""
        from .client import joined

        try:
            url = joined(hop.url, location)
            origin = origin_of(url)
        except (ValueError, ext_sdk.InvalidArgs) as error:
            raise ExchangeFailed("redirect", f"a redirect to {location!r:.200}: {error}", self.where) from None
        url, _ = _without_user(url)
        guard = Guard(self._guard.allow, _trusted(self._origin if hop.guard.trusted else None, origin))
        try:
            guard.check_host(origin.host, origin.port)
        except Refused as error:
            raise Refused(f"redirected to {url}: {error.reason}", self.where) from None
        get = (status == 303 and hop.method != "HEAD") or (status in {301, 302} and hop.method == "POST")
        return _Hop(url, "GET" if get else hop.method, None if get else hop.body, guard)

    # --- What it is made of ------------------------------------------------------------------------------------------

    def _made_headers(self) -> Headers:
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
            values = given if isinstance(given, list) else plain(given, f"headers.{name}", self._context)
            headers.set(name, values, "headers")
        for name, secret in self._args.secret_headers.items():
            text = revealed(secret, f"secretHeaders.{name}", self._context)
            headers.set(name, text, "secretHeaders", secret=True)
        for name, value in headers.secrets():
            self._context.secrets.add(name, value)
        return headers

    def _authenticated(self, deadline: ext_sdk.Deadline) -> ways.Credentials:
        if self._credentials is None:
            self._credentials = self._credentials_now(deadline)
        return self._credentials

    def _credentials_now(self, deadline: ext_sdk.Deadline) -> ways.Credentials:
        wanted, context = self._args.auth, self._context
        if wanted is UNSET:
            user = _without_user(_completed(self._args, self._session, context)[0])[1]
            return ways.basic(*user, context) if user else ways.Credentials()
        if wanted.basic is not UNSET:
            password = revealed(wanted.basic.password, "auth.basic.password", context)
            return ways.basic(wanted.basic.username, password, context)
        if wanted.bearer is not UNSET:
            return ways.bearer(revealed(wanted.bearer, "auth.bearer", context), context)
        if wanted.digest is not UNSET:
            password = revealed(wanted.digest.password, "auth.digest.password", context)
            return ways.Credentials(digest=(wanted.digest.username, password))
        if wanted.oauth2 is not UNSET:
            return ways.oauth2(
                wanted.oauth2, lambda url, form, header: self._post(url, form, header, deadline), context
            )
        return ways.netrc(str(wanted.netrc), self._origin.host, context)

    def _post(self, url: str, form: list[tuple[str, str]], header: str, deadline: ext_sdk.Deadline) -> Answer:
        """Ask for a token. Its server is asked in the same way as the one that wants it."""
        from .client import ACCEPTED, Budget, Clients, Outgoing, normalized

        url = normalized(url, "auth.oauth2.tokenUrl")
        origin = origin_of(url, "auth.oauth2.tokenUrl")
        given = _member(self._context.given, "auth", "oauth2", "tokenUrl")
        literal = isinstance(given, str) and host_is_literal(given, str(self._args.auth.oauth2.token_url))  # type: ignore[union-attr]
        guard = Guard(self._guard.allow, (origin.host, origin.port) if literal else None)
        guard.check_host(origin.host, origin.port)
        headers = [("User-Agent", USER_AGENT), ("Accept", "application/json"), ("Accept-Encoding", ACCEPTED)]
        headers.append(("Content-Type", "application/x-www-form-urlencoded"))
        headers += [("Authorization", header)] if header else []
        outgoing = Outgoing("POST", url, tuple(headers), urlencode(form).encode())
        client = self._context.extension_state(Clients).get(settings_for(self._args, origin, guard, self._context))
        return client.send(outgoing, Budget(deadline), limit=1024 * 1024)


class _Hop(NamedTuple):
    """One request of a chain of redirects."""

    url: str
    method: str
    body: Encoded | None
    guard: Guard


def _trusted(first: Origin | None, next_: Origin) -> tuple[str, int] | None:
    """Where a redirect may lead without being allowed: to the same server, and from http to https of the same name."""
    if first is None or first.host != next_.host:
        return None
    upgrade = (first.scheme, first.port, next_.scheme, next_.port) == (
        "http",
        DEFAULT_PORTS["http"],
        "https",
        DEFAULT_PORTS["https"],
    )
    return (next_.host, next_.port) if first == next_ or upgrade else None


def _completed(args: ServerArgs, session: Session | None, context: ext_sdk.Context) -> tuple[str, str]:
    """The URL with its base before it, and the same as the task has it."""
    given = context.given.get("url", args.url)
    given = given if isinstance(given, str) else args.url
    if not args.url.startswith("/"):
        return args.url, given
    base, base_given = (session.base_url, session.base_given) if session else ("", "")
    base, base_given = (base, base_given) if base else (config_of(context).base_url,) * 2
    if not base:
        wrong = f"expected a URL with http:// or https://, found {args.url!r:.100}, and no baseUrl to complete it"
        raise ext_sdk.InvalidArgs("url", f"{wrong}; set one in the configuration or with `session`")
    return base.rstrip("/") + args.url, base_given.rstrip("/") + given


def _url(
    args: ServerArgs, added: Sequence[tuple[str, str]], session: Session | None, context: ext_sdk.Context
) -> tuple[str, bool]:
    """The URL to ask, and whether its host stands in the task itself."""
    from .client import normalized

    text, given = _completed(args, session, context)
    split(text)
    url, user = _without_user(normalized(text))
    if user:
        context.secrets.add("url.password", user[1])
    parts = split(url)
    for name, value in [*parse_qsl(parts.query, keep_blank_values=True), *added]:
        if looks_secret(name):
            context.secrets.add(f"query.{name}", value)
    parts = parts._replace(query="&".join(filter(None, [parts.query, urlencode(added)])))
    return urlunsplit(parts), host_is_literal(given, text)


def _without_user(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without user and password, and these."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, None
    user, password = (unquote(text or "") for text in (parts.username, parts.password))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), (user, password)


def _member(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
