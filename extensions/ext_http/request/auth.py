"""How a request says who sends it: Basic, Bearer, Digest, OAuth2 client credentials, netrc."""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.client.errors import ExchangeFailed

from .secrets import Secret, resolve_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_http.client.response import Response


SPARE = 10.0  # seconds before its end in which a token is not used any more
LIFETIME = 300.0  # seconds that a token is used whose server does not say how long it is valid


class Password(ext_sdk.Args):
    """Who, and the password."""

    username: str
    password: Secret


class OAuth2(ext_sdk.Args):
    """Client credentials (RFC 6749, 4.4). The token is kept until it ends, or is refused."""

    token_url: str
    client_id: str
    client_secret: Secret
    scope: str | UnsetType = UNSET
    audience: Annotated[str | UnsetType, Meta(description="Sent as `audience`, which some servers want")] = UNSET
    send: Annotated[
        Literal["header", "body"], Meta(description="Whether id and secret go as Basic authentication or in the form")
    ] = "header"


class Auth(ext_sdk.Args, one_of=("basic", "bearer", "digest", "oauth2", "netrc")):
    """One way to authenticate. Client certificates are in `tls`."""

    basic: Password | UnsetType = UNSET
    bearer: Secret | UnsetType = UNSET
    digest: Password | UnsetType = UNSET
    oauth2: OAuth2 | UnsetType = UNSET
    netrc: Annotated[
        str | UnsetType, Meta(description="A netrc file in the workdir, with user and password for the host")
    ] = UNSET


class Credentials(NamedTuple):
    """What a request is sent with.

    Attributes:
        header: the Authorization header; "" for none.
        digest: user and password for a Digest challenge; None for none.
        forget: called when the server refuses the header; True: another one may be had.
    """

    header: str = ""
    digest: tuple[str, str] | None = None
    forget: Callable[[], bool] = lambda: False


def basic(username: str, password: str, context: ext_sdk.Context) -> Credentials:
    """HTTP Basic (RFC 7617). Raises InvalidArgs for a colon in the user's name."""
    if ":" in username:
        raise ext_sdk.InvalidArgs("auth.basic.username", "expected a name without a colon (RFC 7617)")
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode()
    context.secrets.add("auth.basic", encoded)
    return Credentials(f"Basic {encoded}")


def bearer(token: str, context: ext_sdk.Context) -> Credentials:
    """A bearer token (RFC 6750)."""
    context.secrets.add("auth.bearer", token)
    return Credentials(f"Bearer {token}")


# Sends a form to a URL; gets the Authorization header, or "".
Post = "Callable[[str, list[tuple[str, str]], str], Answer]"


def oauth2(
    wanted: OAuth2, post: Callable[[str, list[tuple[str, str]], str], Response], context: ext_sdk.Context
) -> Credentials:
    """A token for client credentials, kept as long as it is valid.

    Args:
        wanted: see OAuth2.
        post: sends a form to a URL, with an Authorization header, or "".
        context: of the call.

    Raises:
        OperationFailed: the server gave none.
    """
    secret = resolve_secret(wanted.client_secret, "auth.oauth2.clientSecret", context)
    tokens = context.extension_state(Tokens)
    key = (wanted.token_url, wanted.client_id, secret, str(wanted.scope), str(wanted.audience))

    def fetch() -> tuple[str, float]:
        return _token(wanted, secret, post, context)

    token = tokens.get(key, fetch)
    context.secrets.add("auth.oauth2.token", token)
    return Credentials(f"Bearer {token}", forget=lambda: tokens.forget(key, token))


def _token(
    wanted: OAuth2, secret: str, post: Callable[[str, list[tuple[str, str]], str], Response], context: ext_sdk.Context
) -> tuple[str, float]:
    """A new token, and for how many seconds it can be used."""
    form = [("grant_type", "client_credentials")]
    form += [(name, str(value)) for name, value in (("scope", wanted.scope), ("audience", wanted.audience)) if value]
    header = ""
    if wanted.send == "header":
        from urllib.parse import quote_plus

        # RFC 6749, 2.3.1: both are encoded as in a form first.
        header = basic(quote_plus(wanted.client_id), quote_plus(secret), context).header
    else:
        form += [("client_id", wanted.client_id), ("client_secret", secret)]
    answer = post(wanted.token_url, form, header)
    where = f"the token of {wanted.client_id!r:.100} from {wanted.token_url}"
    try:
        told: object = json.loads(answer.body)
    except ValueError:
        told = None
    told = told if isinstance(told, dict) else {}
    token = told.get("access_token")
    if answer.status >= 500:  # which may pass
        raise ExchangeFailed("connection", f"no {where.removeprefix('the ')}: status {answer.status}")
    if answer.status != 200 or not isinstance(token, str) or not token:
        reason = " ".join(str(told[name]) for name in ("error", "error_description") if name in told)
        raise ext_sdk.OperationFailed(
            f"no {where.removeprefix('the ')}",
            error=f"expected {where}, got status {answer.status}{f': {reason:.300}' if reason else ''}; "
            "are clientId, clientSecret and scope right?",
        )
    kind = told.get("token_type", "Bearer")
    if str(kind).lower() != "bearer":
        raise ext_sdk.OperationFailed(
            f"{where} is of type {kind!r:.40}", error=f"expected a bearer token, got {where} of type {kind!r:.40}"
        )
    lifetime = told.get("expires_in")
    seconds = float(lifetime) if isinstance(lifetime, (int, float)) and not isinstance(lifetime, bool) else LIFETIME
    return token, seconds


class Tokens:
    """The tokens of a process; safe in several threads."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, ...], tuple[str, float]] = {}
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, ...], fetch: Callable[[], tuple[str, float]]) -> str:
        """The token of a key; who needs it while it is fetched waits for it."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            token, end = self._tokens.get(key, ("", 0.0))
            if time.monotonic() >= end:
                token, seconds = fetch()
                self._tokens[key] = token, time.monotonic() + max(0.0, seconds - SPARE)
            return token

    def forget(self, key: tuple[str, ...], token: str) -> bool:
        """This one was refused; the next call fetches another. Returns True: it is worth a try."""
        with self._lock:
            if self._tokens.get(key, ("", 0.0))[0] == token:
                del self._tokens[key]
        return True


def netrc(path: str, host: str, context: ext_sdk.Context) -> Credentials:
    """User and password of a host, from a netrc file in the working directory.

    Raises:
        OperationFailed: the file can't be read, or has nothing for the host.
    """
    import netrc as library

    from .secrets import read_file

    text = read_file(path, context).decode("utf-8", "replace")
    import os
    import tempfile

    with tempfile.NamedTemporaryFile("w", prefix="ext-http-") as file:  # the library reads files only
        file.write(text)
        file.flush()
        try:
            entry = library.netrc(file.name).authenticators(host)
        except library.NetrcParseError as error:
            raise ext_sdk.OperationFailed(
                f"{path!r} is no netrc file", error=f"auth.netrc: {path}: {error.msg}, line {error.lineno}"
            ) from None
        finally:
            os.fsync(file.fileno())
    if entry is None:
        raise ext_sdk.OperationFailed(
            f"{path!r} has nothing for {host}",
            error=f"auth.netrc: expected an entry `machine {host}` in {path}, found none",
        )
    user, _, password = entry
    context.secrets.add("auth.netrc", password)
    return basic(user, password, context)
