"""Client settings from arguments: TLS, proxy, Unix socket, name resolution."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

import ext_sdk
from ext_http.client.settings import Proxy, Settings, Tls
from ext_http.client.url import parse
from ext_http.config import config_of
from ext_sdk.files import Workdir, os_errors

from .secrets import read_pem, resolve_secret

if TYPE_CHECKING:
    from ext_http.client.ssrf_guard import Guard
    from ext_http.client.url import Origin

    from .args import ServerArgs, TlsArgs


NO_PROXY = "none"
FROM_ENV = "env"


def build_settings(
    args: ServerArgs, origin: Origin, guard: Guard, context: ext_sdk.Context, *, other_origin: bool = False
) -> Settings:
    """Return the client settings for one redirect hop.

    Args:
        args: of the operation.
        origin: of the hop.
        guard: hosts that may be reached.
        other_origin: the origin is not that of the operation, so the client certificate is not presented.

    Raises:
        InvalidArgs, OperationFailed: a file or a value of the arguments is not valid.
    """
    tls = _tls(args.tls, context) if origin.scheme == "https" else Tls()
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
    return Settings(guard, tls, _proxy(args, origin, context), unix_socket, tuple(resolve), args.http_version)


def _tls(args: TlsArgs, context: ext_sdk.Context) -> Tls:
    ca = "" if args.ca is UNSET else read_pem(args.ca, "tls.ca", context)
    if not ca and not args.insecure and (path := config_of(context).ca_file):
        with os_errors("read", path):
            ca = Path(path).read_text(encoding="utf-8", errors="replace")
    if isinstance(args.key, str) and "-----BEGIN" not in args.key:
        key = args.key  # a path is not a secret
    else:
        key = "" if args.key is UNSET else resolve_secret(args.key, "tls.key", context)
    certificate = "" if args.certificate is UNSET else read_pem(args.certificate, "tls.certificate", context)
    password = "" if args.key_password is UNSET else resolve_secret(args.key_password, "tls.keyPassword", context)
    server_name = "" if args.server_name is UNSET else args.server_name
    return Tls(ca, certificate, read_pem(key, "tls.key", context) if key else "", password, args.insecure, server_name)


def _proxy(args: ServerArgs, origin: Origin, context: ext_sdk.Context) -> Proxy | None:
    if args.proxy is UNSET:
        url = config_of(context).proxy
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
