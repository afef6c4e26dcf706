"""URLs of requests: base URL, path, query, user information."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import ext_sdk
from ext_http.client.ssrf_guard import Origin, host_is_literal, origin_of, split
from ext_http.config import config_of
from ext_sdk.core.redaction.secret_names import looks_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .args import ServerArgs
    from .session_store import Session


User = tuple[str, str]  # name and password


class Target(NamedTuple):
    """A URL to ask.

    Attributes:
        url: absolute, without user and password.
        user: these; None where it had none.
        literal: whether the host stands in the task itself, and not in a variable.
    """

    url: str
    user: User | None
    literal: bool

    @property
    def origin(self) -> Origin:
        """Its scheme, host and port."""
        return origin_of(self.url)

    @property
    def trusted(self) -> tuple[str, int] | None:
        """Host and port, as a Guard has it."""
        return (self.origin.host, self.origin.port) if self.literal else None


def target_of(
    args: ServerArgs, added: Sequence[tuple[str, str]], session: Session | None, context: ext_sdk.Context
) -> Target:
    """The URL that an operation is to ask. What is secret in it is hidden from here on.

    Args:
        args: of the operation.
        added: parameters beside those of the URL.
        session: that may have a base URL; None for none.
        context: of the call.

    Raises:
        InvalidArgs: it is none, or there is nothing to complete it.
    """
    text, given = _completed(args, session, context)
    url, user, literal = parse_url(text, given)
    if user:
        context.secrets.add("url.password", user[1])
    parts = split(url)
    for name, value in [*parse_qsl(parts.query, keep_blank_values=True), *added]:
        if looks_secret(name):
            context.secrets.add(f"query.{name}", value)
    whole = urlunsplit(parts._replace(query="&".join(filter(None, [parts.query, urlencode(added)]))))
    _check(whole, "query")
    return Target(whole, user, literal)


def parse_url(text: str, given: object, field: str = "url") -> Target:
    """The URL that a text names.

    Args:
        text: with the values of variables.
        given: the same as the task has it.
        field: path of the argument.

    Raises:
        InvalidArgs: it is none.
    """
    from ext_http.client.encoding import normalized

    split(text, field)
    url, user = strip_userinfo(normalized(text, field))
    return Target(url, user, isinstance(given, str) and host_is_literal(given, text))


def _check(url: str, field: str) -> None:
    """Raise InvalidArgs where it can't be sent: it is too long, for one."""
    from ext_http.client.encoding import normalized

    normalized(url, field)


def strip_userinfo(url: str) -> tuple[str, User | None]:
    """The URL without user and password, and these."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, None
    user, password = (unquote(text or "") for text in (parts.username, parts.password))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), (user, password)


def _completed(args: ServerArgs, session: Session | None, context: ext_sdk.Context) -> tuple[str, object]:
    """The URL with its base before it, and the same as the task has it."""
    given = context.given.get("url", args.url)
    if not args.url.startswith("/"):
        return args.url, given
    base, base_given = (session.base_url, session.base_given) if session else ("", "")
    base, base_given = (base, base_given) if base else (config_of(context).base_url,) * 2
    if not base:
        wrong = f"expected a URL with http:// or https://, found {args.url!r:.100}, and no baseUrl to complete it"
        raise ext_sdk.InvalidArgs("url", f"{wrong}; set one in the configuration or with `session`")
    return base.rstrip("/") + args.url, f"{base_given.rstrip('/')}{given}"
