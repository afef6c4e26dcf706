"""From what a user says about authentication to what one request is sent with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from msgspec import UNSET

from ext_http.client.ssrf_guard import Guard

from .auth import Credentials, basic, bearer, netrc, oauth2
from .connection_settings import build_settings
from .secrets import resolve_secret
from .url import parse_url

if TYPE_CHECKING:
    import ext_sdk
    from ext_http.client.response import Response

    from .args import ServerArgs
    from .url import Target


LONGEST_ANSWER = 1024 * 1024  # bytes of what a token server says


def credentials_for(
    args: ServerArgs, target: Target, allow: tuple[str, ...], context: ext_sdk.Context, deadline: ext_sdk.Deadline
) -> Credentials:
    """What a request is sent with; for OAuth2 a server may be asked for a token.

    Args:
        args: of the operation.
        target: what is asked: its user counts where the arguments say nothing.
        allow: as a Guard has it, for the token's server.
        context: of the call.
        deadline: for that server's answer.

    Raises:
        InvalidArgs, OperationFailed: there are none to be had.
    """
    wanted = args.auth
    if wanted is UNSET:
        return basic(*target.user, context) if target.user else Credentials()
    if wanted.basic is not UNSET:
        password = resolve_secret(wanted.basic.password, "auth.basic.password", context)
        return basic(wanted.basic.username, password, context)
    if wanted.bearer is not UNSET:
        return bearer(resolve_secret(wanted.bearer, "auth.bearer", context), context)
    if wanted.digest is not UNSET:
        password = resolve_secret(wanted.digest.password, "auth.digest.password", context)
        return Credentials(digest=(wanted.digest.username, password))
    if wanted.oauth2 is not UNSET:
        server = _TokenServer(args, allow, context, deadline)
        return oauth2(wanted.oauth2, server.post, context)
    return netrc(str(wanted.netrc), target.origin.host, context)


class _TokenServer(NamedTuple):
    """Where tokens come from. It is connected to in the same way as the server that wants them."""

    args: ServerArgs
    allow: tuple[str, ...]
    context: ext_sdk.Context
    deadline: ext_sdk.Deadline

    def post(self, url: str, form: list[tuple[str, str]], header: str) -> Response:
        """Send a form, with an Authorization header, or ""."""
        from ext_http.client.client import ACCEPTED, USER_AGENT, Clients, Outgoing
        from ext_http.client.network import ExchangeDeadline

        given = _member(self.context.given, "auth", "oauth2", "tokenUrl")
        target = parse_url(url, given, "auth.oauth2.tokenUrl")
        guard = Guard(self.allow, target.trusted)
        guard.check_host(target.origin.host, target.origin.port)
        headers = [
            ("User-Agent", USER_AGENT),
            ("Accept", "application/json"),
            ("Accept-Encoding", ACCEPTED),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ]
        headers += [("Authorization", header)] if header else []
        outgoing = Outgoing("POST", target.url, tuple(headers), urlencode(form).encode())
        settings = build_settings(self.args, target.origin, guard, self.context)
        client = self.context.extension_state(Clients).get(settings)
        return client.send(outgoing, ExchangeDeadline(self.deadline), limit=LONGEST_ANSWER)


def _member(value: object, *names: str) -> object:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
