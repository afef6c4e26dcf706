"""Checks and corrections of a loaded configuration, before the first request."""

from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it

from ext_kubernetes.errors import NoConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable

    from .loading import Configuration


def check(configuration: Configuration, where: str) -> None:
    """Correct what the package leaves as it is, and refuse what would fail later without its reason.

    Args:
        configuration: as the package loaded it.
        where: the kubeconfig or the service account, for messages.

    Raises:
        NoConfiguration: it can't be used.
    """
    _trim_tokens(configuration)
    for value in configuration.api_key.values():
        if not value.isprintable():
            raise _unusable(where, "its token has characters that a header can't have")
    if not configuration.verify_ssl and configuration.ssl_ca_cert:
        raise _unusable(
            where, "`insecure-skip-tls-verify` and a certificate authority exclude each other; remove one of them"
        )
    _check_certificate(configuration, where)
    _use_proxy(configuration, where)


class _Trimmed:
    """Hook that refreshes a token by the package's hook, and trims it."""

    def __init__(self, refresh: Callable[[Configuration], None]) -> None:
        self._refresh = refresh

    def __call__(self, configuration: Configuration) -> None:
        self._refresh(configuration)
        _trim_tokens(configuration)


def _trim_tokens(configuration: Configuration) -> None:
    """Trim tokens, as client-go does: files with a token end in a newline. A refresh sets both token and hook again."""
    configuration.api_key = {name: value.strip() for name, value in configuration.api_key.items()}
    hook = configuration.refresh_api_key_hook
    if hook is not None and not isinstance(hook, _Trimmed):
        configuration.refresh_api_key_hook = _Trimmed(hook)


def _check_certificate(configuration: Configuration, where: str) -> None:
    if not configuration.cert_file or not configuration.host.startswith("https"):
        return
    try:
        # The password keeps OpenSSL from asking for one at the terminal.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
    except (OSError, ssl.SSLError) as error:
        reason = error.reason or "no key, or one that is not PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise _unusable(where, f"its client certificate and key can't be used: {reason}") from error


def _use_proxy(configuration: Configuration, where: str) -> None:
    """Send user and password of a proxy's address to it; the package does not."""
    address = urlsplit(configuration.host).netloc
    if not configuration.proxy or proxy_bypass_environment(address, {"no": configuration.no_proxy or ""}):
        return
    parts = urlsplit(configuration.proxy)
    if parts.scheme.startswith("socks"):
        raise _unusable(where, f"its proxy is of the kind {parts.scheme}, which is not supported; use an HTTP proxy")
    if credentials := proxy_credentials(configuration.proxy):
        encoded = base64.b64encode(":".join(credentials).encode()).decode()
        configuration.proxy_headers = {"proxy-authorization": f"Basic {encoded}"}


def proxy_credentials(proxy: str | None) -> tuple[str, str] | None:
    """Return user and password of a proxy's address; None if it has none."""
    parts = urlsplit(proxy or "")
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def _unusable(where: str, reason: str) -> NoConfiguration:
    return NoConfiguration("the kubeconfig can't be used", error=f"{where} can't be used: {reason}")
