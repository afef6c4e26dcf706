"""From what a user says about the way to a server to the settings of a client."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

import ext_sdk
from ext_http.client.settings import Proxy, Settings, Tls
from ext_http.config import config_of
from ext_sdk.files import Workdir, os_errors

from .secrets import pem, resolve_secret
from .url import parse_url

if TYPE_CHECKING:
    from ext_http.client.ssrf_guard import Guard, Origin

    from .args import ServerArgs, TlsArgs


NO_PROXY = "none"
FROM_ENV = "env"


def build_settings(
    args: ServerArgs, origin: Origin, guard: Guard, context: ext_sdk.Context, *, elsewhere: bool = False
) -> Settings:
    """The settings of the client for one hop.

    Args:
        args: of the operation.
        origin: to be asked.
        guard: what may be reached.
        context: of the call.
        elsewhere: it is another origin than the operation was given: this client does not say who it is.

    Raises:
        InvalidArgs, OperationFailed: a file or a value of the arguments can't be used.
    """
    tls = _tls(args.tls, context) if origin.scheme == "https" else Tls()
    return Settings(
        guard=guard,
        tls=tls._replace(certificate="", key="", key_password="", server_name="") if elsewhere else tls,
        proxy=_proxy(args, origin, context),
        unix_socket=_unix_socket(args, context),
        resolve=tuple(_resolve(args.resolve)),
        http_version=args.http_version,
    )


def _tls(args: TlsArgs, context: ext_sdk.Context) -> Tls:
    ca = "" if args.ca is UNSET else pem(args.ca, "tls.ca", context)
    if not ca and not args.insecure and (path := config_of(context).ca_file):
        with os_errors("read", path):
            ca = Path(path).read_text(encoding="utf-8", errors="replace")
    key = "" if args.key is UNSET else pem(revealed_key(args, context), "tls.key", context)
    certificate = "" if args.certificate is UNSET else pem(args.certificate, "tls.certificate", context)
    password = "" if args.key_password is UNSET else resolve_secret(args.key_password, "tls.keyPassword", context)
    server_name = "" if args.server_name is UNSET else args.server_name
    return Tls(ca, certificate, key, password, args.insecure, server_name)


def revealed_key(args: TlsArgs, context: ext_sdk.Context) -> str:
    """The key, or the path of its file; the path is no secret."""
    if isinstance(args.key, str) and "-----BEGIN" not in args.key:
        return args.key
    return "" if args.key is UNSET else resolve_secret(args.key, "tls.key", context)


def _proxy(args: ServerArgs, origin: Origin, context: ext_sdk.Context) -> Proxy | None:
    text = config_of(context).proxy if args.proxy is UNSET else revealed_proxy(args, context)
    if text == FROM_ENV:
        text = _proxy_of_environment(origin)
    if text in {"", NO_PROXY}:
        return None
    target = parse_url(text, None, "proxy")
    if target.origin.scheme != "http":
        raise ext_sdk.InvalidArgs("proxy", "expected a proxy that is asked over http://, found https://")
    auth = None
    if target.user:
        user, password = target.user
        context.secrets.add("proxy.password", password)
        context.secrets.add("proxy.basic", base64.b64encode(f"{user}:{password}".encode()).decode())
        auth = (user.encode(), password.encode())
    return Proxy(str(target.origin), auth)


def revealed_proxy(args: ServerArgs, context: ext_sdk.Context) -> str:
    """The proxy's URL; only its password is a secret."""
    if isinstance(args.proxy, str):
        return args.proxy
    return "" if args.proxy is UNSET else resolve_secret(args.proxy, "proxy", context)


def _proxy_of_environment(origin: Origin) -> str:
    """As HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say, in lower case too."""
    from urllib.request import getproxies_environment, proxy_bypass

    if proxy_bypass(f"{origin.host}:{origin.port}"):
        return ""
    known = getproxies_environment()
    found = known.get(origin.scheme, known.get("all", ""))
    return found if "://" in found or not found else f"http://{found}"


def _unix_socket(args: ServerArgs, context: ext_sdk.Context) -> str:
    """The absolute path of a socket in the workdir, or one that the task names by an absolute path."""
    if args.unix_socket is UNSET:
        return ""
    path = args.unix_socket
    if Path(path).is_absolute() and context.given.get("unixSocket") == path:
        return path
    with os_errors("connect to", path):
        return str(Workdir(context.workdir).path(path))


def _resolve(given: dict[str, str]) -> list[tuple[tuple[str, int], str]]:
    found = []
    for name, address in given.items():
        host, _, port = name.partition(":")
        if not host or (port and not port.isdecimal()) or not address or "/" in name + address:
            raise ext_sdk.InvalidArgs("resolve", f"expected name: address, or name:port: address, found {name!r:.100}")
        found.append(((host.lower(), int(port or 0)), address.strip("[]")))
    return found
