"""Authentication: Basic, Bearer, Digest, OAuth2 client credentials, netrc."""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.client.errors import ExchangeFailed

from .secrets import Secret, read_file, resolve_secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_http.client.response import Response
    from ext_http.client.url import Target

    # Sends a form to a URL, with the value of an Authorization header, or "".
    PostForm = Callable[[str, list[tuple[str, str]], str], Response]


EXPIRY_MARGIN = 10.0  # seconds before its expiry from which on a token is not used
DEFAULT_LIFETIME = 300.0  # seconds that a token is used if the response does not contain expires_in


class Password(ext_sdk.Args):
    """User name and password."""

    username: Annotated[str, Meta(description="User name")]
    password: Annotated[Secret, Meta(description="Password")]


class OAuth2(ext_sdk.Args):
    """Client credentials grant (RFC 6749, 4.4). The token is kept until it expires or is refused."""

    token_url: Annotated[str, Meta(description="URL of the token endpoint")]
    client_id: Annotated[str, Meta(description="Client id")]
    client_secret: Annotated[Secret, Meta(description="Client secret")]
    scope: Annotated[str | UnsetType, Meta(description="Scopes, separated by spaces")] = UNSET
    audience: Annotated[str | UnsetType, Meta(description="Parameter `audience`, which some servers require")] = UNSET
    send: Annotated[
        Literal["header", "body"], Meta(description="Send id and secret as Basic authentication or in the form")
    ] = "header"


class Auth(ext_sdk.Args, one_of=("basic", "bearer", "digest", "oauth2", "netrc")):
    """One authentication scheme. Client certificates are in `tls`."""

    basic: Annotated[Password | UnsetType, Meta(description="HTTP Basic")] = UNSET
    bearer: Annotated[Secret | UnsetType, Meta(description="Bearer token")] = UNSET
    digest: Annotated[Password | UnsetType, Meta(description="HTTP Digest")] = UNSET
    oauth2: Annotated[OAuth2 | UnsetType, Meta(description="OAuth2 client credentials")] = UNSET
    netrc: Annotated[
        str | UnsetType, Meta(description="Path of a netrc file in the workdir, with user and password for the host")
    ] = UNSET


class Credentials(NamedTuple):
    """Credentials of one request.

    Attributes:
        header: value of the Authorization header; "" for none.
        digest: user and password for a Digest challenge; None for none.
        forget: called when the server refuses the header; returns True if new credentials may be available.
    """

    header: str = ""
    digest: tuple[str, str] | None = None
    forget: Callable[[], bool] = lambda: False


def credentials_for(
    auth: Auth | UnsetType, target: Target, post_form: PostForm, context: ext_sdk.Context
) -> Credentials:
    """Return the credentials of a request; for OAuth2 a token may be requested.

    Args:
        auth: argument of the operation; if not given, the user of the target counts.

    Raises:
        InvalidArgs, OperationFailed: the credentials are not valid or not available.
    """
    if auth is UNSET:
        return _basic(*target.user, context) if target.user else Credentials()
    if auth.basic is not UNSET:
        password = resolve_secret(auth.basic.password, "auth.basic.password", context)
        return _basic(auth.basic.username, password, context)
    if auth.bearer is not UNSET:
        token = resolve_secret(auth.bearer, "auth.bearer", context)
        return Credentials(f"Bearer {token}")
    if auth.digest is not UNSET:
        password = resolve_secret(auth.digest.password, "auth.digest.password", context)
        return Credentials(digest=(auth.digest.username, password))
    if auth.oauth2 is not UNSET:
        args = auth.oauth2
        secret = resolve_secret(args.client_secret, "auth.oauth2.clientSecret", context)
        cache = context.extension_state(TokenCache)
        key = (args.token_url, args.client_id, secret, str(args.scope), str(args.audience))
        token = cache.get(key, lambda: _fetch_token(args, secret, post_form, context))
        context.secrets.add("auth.oauth2.token", token)
        return Credentials(f"Bearer {token}", forget=lambda: cache.forget(key, token))
    return _netrc(str(auth.netrc), target.origin.host, context)


def _basic(username: str, password: str, context: ext_sdk.Context) -> Credentials:
    if ":" in username:
        raise ext_sdk.InvalidArgs("auth.basic.username", "expected a name without a colon (RFC 7617)")
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode()
    context.secrets.add("auth.basic", encoded)
    return Credentials(f"Basic {encoded}")


def _netrc(path: str, host: str, context: ext_sdk.Context) -> Credentials:
    import netrc
    import tempfile

    with tempfile.NamedTemporaryFile("wb", prefix="ext-http-") as file:  # netrc reads only files
        file.write(read_file(path, context).decode("utf-8", "replace").encode())
        file.flush()
        try:
            entry = netrc.netrc(file.name).authenticators(host)
        except netrc.NetrcParseError as error:
            raise ext_sdk.OperationFailed(
                f"{path!r} is not a valid netrc file", error=f"auth.netrc: {path}: {error.msg}, line {error.lineno}"
            ) from None
    if entry is None:
        raise ext_sdk.OperationFailed(
            f"{path!r} has no entry for {host}",
            error=f"auth.netrc: expected an entry `machine {host}` in {path}, found none",
        )
    user, _, password = entry
    context.secrets.add("auth.netrc", password)
    return _basic(user, password, context)


def _fetch_token(args: OAuth2, secret: str, post_form: PostForm, context: ext_sdk.Context) -> tuple[str, float]:
    """Return a new token and its lifetime in seconds. Raises OperationFailed if the server returns none."""
    form = [("grant_type", "client_credentials")]
    form += [(name, str(value)) for name, value in (("scope", args.scope), ("audience", args.audience)) if value]
    header = ""
    if args.send == "header":
        from urllib.parse import quote_plus

        # RFC 6749, 2.3.1: both are form-encoded before they are encoded in Base64.
        header = _basic(quote_plus(args.client_id), quote_plus(secret), context).header
    else:
        form += [("client_id", args.client_id), ("client_secret", secret)]
    response = post_form(args.token_url, form, header)
    token_name = f"token of {args.client_id!r:.100} from {args.token_url}"
    try:
        document: object = json.loads(response.body)
    except ValueError:
        document = None
    members = document if isinstance(document, dict) else {}
    token = members.get("access_token")
    if response.status >= 500:  # may be temporary
        raise ExchangeFailed("connection", f"no {token_name}: status {response.status}")
    if response.status != 200 or not isinstance(token, str) or not token:
        reason = " ".join(str(members[name]) for name in ("error", "error_description") if name in members)
        raise ext_sdk.OperationFailed(
            f"no {token_name}",
            error=f"expected the {token_name}, got status {response.status}{f': {reason:.300}' if reason else ''}; "
            "check clientId, clientSecret and scope",
        )
    kind = members.get("token_type", "Bearer")
    if str(kind).lower() != "bearer":
        raise ext_sdk.OperationFailed(
            f"the {token_name} is of type {kind!r:.40}",
            error=f"expected a bearer token, got the {token_name} of type {kind!r:.40}",
        )
    lifetime = members.get("expires_in")
    is_number = isinstance(lifetime, (int, float)) and not isinstance(lifetime, bool)
    return token, float(lifetime) if is_number else DEFAULT_LIFETIME  # type: ignore[arg-type]


class TokenCache:
    """OAuth2 tokens of the process. Thread-safe; concurrent calls for one token request it once."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, ...], tuple[str, float]] = {}
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: tuple[str, ...], fetch: Callable[[], tuple[str, float]]) -> str:
        """Return the token of a key, fetched if there is none or it has expired."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            token, expiry = self._tokens.get(key, ("", 0.0))
            if time.monotonic() >= expiry:
                token, seconds = fetch()
                self._tokens[key] = token, time.monotonic() + max(0.0, seconds - EXPIRY_MARGIN)
            return token

    def forget(self, key: tuple[str, ...], token: str) -> bool:
        """Delete a refused token, so that the next call fetches a new one. Returns True."""
        with self._lock:
            if self._tokens.get(key, ("", 0.0))[0] == token:
                del self._tokens[key]
        return True
