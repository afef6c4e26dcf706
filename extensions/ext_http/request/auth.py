"""Secrets of requests: values and PEM files, and authentication (Basic, Bearer, Digest, OAuth2, netrc)."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.client.errors import ExchangeFailed
from ext_http.mock.registry import Mocks
from ext_sdk.args import Scalar, scalar_text
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_http.client.response import Response
    from ext_http.client.url import Target

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


class FromEnv(ext_sdk.Args):
    """Reference to a value that the task file does not contain."""

    env: Annotated[str, Meta(min_length=1, description="Name of a variable of the task or of the extension's process")]


# As users write it: the value itself, or a reference to it.
Secret = str | FromEnv


def resolve_value(value: Scalar | FromEnv, field: str, context: ext_sdk.Context) -> str:
    """Return a value as text; one from the extension's own environment is redacted from here on.

    Raises:
        InvalidArgs: the variable is missing.
    """
    if isinstance(value, FromEnv):
        return context.env[value.env] if value.env in context.env else resolve_secret(value, field, context)
    return scalar_text(value)


def resolve_secret(secret: Secret, field: str, context: ext_sdk.Context) -> str:
    """Return a secret value, redacted from here on.

    Args:
        field: path of the argument, for the error and the placeholder.

    Raises:
        InvalidArgs: the variable is missing.
    """
    value = secret if isinstance(secret, str) else context.env.get(secret.env, os.environ.get(secret.env))
    if value is None:
        raise ext_sdk.InvalidArgs(field, f"expected the name of a variable, found no variable {secret.env!r:.100}")  # type: ignore[union-attr]
    context.secrets.add(field, value)
    return value


MAX_FILE_BYTES = 64 * 1024 * 1024  # of a file that is sent; it is held in memory


def read_file(path: str, context: ext_sdk.Context) -> bytes:
    """Return the content of a file. Raises OperationFailed if it is outside the workdir, missing, or over 64 MiB."""
    with os_errors("read", path):
        return Workdir(context.workdir).read(path, limit=MAX_FILE_BYTES)


def read_pem(text: str, field: str, context: ext_sdk.Context) -> str:
    """Return PEM that is given as text, as a file of the workdir, or as the `caFile` of a mock."""
    if "-----BEGIN" in text:
        return text
    if text in context.state(Mocks).ca_files():
        with os_errors("read", text):
            return Path(text).read_text(encoding="ascii")
    data = read_file(text, context)
    if b"-----BEGIN" not in data:
        raise ext_sdk.InvalidArgs(field, f"expected PEM, or a file that contains PEM, found none in {text!r:.100}")
    return data.decode("utf-8", "replace")
