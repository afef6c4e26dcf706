"""Configuration and credentials of a connection: loaded by the `kubernetes` package, checked, in a private folder."""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
import ssl
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import unquote, urlsplit

from ext_kubernetes.objects.fields import text

from .errors import NoConfiguration
from .kubeconfig import KINDS
from .package_patches import ErrorLog, plugins_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_sdk import Deadline

    from .kubeconfig import Kubeconfig, Source


PREFIX = "ext-kubernetes-credentials-"
LOCK = "lock"
YOUNGEST_SECONDS = 60.0  # a folder that is not locked may be a new one


class PrivateFolder:
    """A new folder that only this user can read, for the certificates and keys that the package writes to files.

    A killed process can't remove its folder, so the next connection does. A folder in use is locked: unlike a process
    id, that also holds for processes of other containers that share the directory for temporary files.
    """

    def __init__(self) -> None:
        remove_stale()
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        self._lock = os.open(Path(self.path, LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder and its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):  # removed before
            os.close(self._lock)


def remove_stale(directory: str = "", now: float | None = None) -> None:
    """Remove folders of this user that no process has locked.

    Args:
        directory: their parent; default: the directory for temporary files.
        now: seconds since 1970.
    """
    before = (time.time() if now is None else now) - YOUNGEST_SECONDS
    with suppress(OSError), os.scandir(directory or tempfile.gettempdir()) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            with suppress(OSError), ExitStack() as stack:
                status = entry.stat(follow_symlinks=False)
                is_own = entry.is_dir(follow_symlinks=False) and status.st_uid == os.getuid()
                if not is_own or status.st_mtime > before:
                    continue
                with suppress(FileNotFoundError):  # killed before it had a lock
                    lock = os.open(Path(entry.path, LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
                    stack.callback(os.close, lock)
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError if it is in use
                shutil.rmtree(entry.path, ignore_errors=True)


def _check(configuration: Configuration, where: str) -> None:
    """Correct what the package does not, and raise NoConfiguration for what would fail later without its reason.

    Args:
        where: the kubeconfig or the service account, for messages.
    """
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it

    _trim_tokens(configuration)
    for value in configuration.api_key.values():
        if not value.isprintable():
            raise _unusable(where, "its token has characters that are not allowed in a header")
    if not configuration.verify_ssl and configuration.ssl_ca_cert:
        raise _unusable(
            where, "`insecure-skip-tls-verify` and a certificate authority exclude each other; remove one of them"
        )
    if configuration.cert_file and configuration.host.startswith("https"):
        try:
            # The password keeps OpenSSL from asking for one at the terminal.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror
            if isinstance(error, ssl.SSLError):
                reason = error.reason or "the key is missing or not PEM"
            raise _unusable(where, f"its client certificate and key can't be used: {reason}") from error
    # The package does not send user and password of the proxy URL to the proxy.
    address = urlsplit(configuration.host).netloc
    if configuration.proxy and not proxy_bypass_environment(address, {"no": configuration.no_proxy or ""}):
        scheme = urlsplit(configuration.proxy).scheme
        if scheme.startswith("socks"):
            raise _unusable(where, f"proxies of the type {scheme} are not supported; use an HTTP proxy")
        if credentials := proxy_credentials(configuration.proxy):
            encoded = base64.b64encode(":".join(credentials).encode()).decode()
            configuration.proxy_headers = {"proxy-authorization": f"Basic {encoded}"}


class _Trimmed:
    """Hook that refreshes a token by the hook of the package, and trims it."""

    def __init__(self, refresh: Callable[[Configuration], None]) -> None:
        self._refresh = refresh

    def __call__(self, configuration: Configuration) -> None:
        self._refresh(configuration)
        _trim_tokens(configuration)


def _trim_tokens(configuration: Configuration) -> None:
    """Trim tokens, as client-go does: token files end in a newline. A refresh sets both token and hook again."""
    configuration.api_key = {name: value.strip() for name, value in configuration.api_key.items()}
    hook = configuration.refresh_api_key_hook
    if hook is not None and not isinstance(hook, _Trimmed):
        configuration.refresh_api_key_hook = _Trimmed(hook)


def proxy_credentials(proxy: str | None) -> tuple[str, str] | None:
    """Return user and password of a proxy URL; None if it has none."""
    parts = urlsplit(proxy or "")
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def _unusable(where: str, reason: str) -> NoConfiguration:
    return NoConfiguration("the kubeconfig can't be used", error=f"{where} can't be used: {reason}")


class Configuration(Protocol):
    """Configuration of the package, as far as it is read or set here."""

    host: str
    api_key: dict[str, str]
    cert_file: str | None
    key_file: str | None
    ssl_ca_cert: str | None
    verify_ssl: bool
    proxy: str | None
    proxy_headers: dict[str, str] | None
    retries: object
    connection_pool_maxsize: int
    no_proxy: str | None
    refresh_api_key_hook: Callable[[Configuration], None] | None

    def get_api_key_with_prefix(self, identifier: str) -> str | None:
        """Return the Authorization header, refreshed if it has expired."""


class _InCluster(Protocol):
    """Loader of the package for pods."""

    def load_and_set(self, client_configuration: Configuration) -> None:
        """Set address, certificate and token; the token is read again every minute."""


def load_credentials(
    source: Source, kubeconfig: Kubeconfig | None, directory: str, deadline: Deadline
) -> Configuration:
    """Return the configuration of the package for a source.

    Args:
        kubeconfig: content of the files of the source; None for a service account.
        directory: private, for certificates and keys.
        deadline: for a credential plugin.

    Raises:
        NoConfiguration: the configuration can't be used.
    """
    from kubernetes.client.configuration import Configuration as PackageConfiguration
    from kubernetes.config import config_exception, incluster_config, kube_config

    configuration = cast("Configuration", cast("Callable[[], object]", PackageConfiguration)())
    where = str(source) if kubeconfig is None else f"the kubeconfig {source}"
    try:
        with ErrorLog() as log, plugins_until(deadline):
            if kubeconfig is None:
                make = cast("Callable[..., _InCluster]", incluster_config.InClusterConfigLoader)
                make(str(source.account / "token"), str(source.account / "ca.crt")).load_and_set(configuration)
            else:
                node = cast("Callable[..., object]", kube_config.ConfigNode)
                content: dict[str, object] = {"current-context": kubeconfig.current}
                for kind in KINDS:  # a ConfigNode has the path to which paths in an entry are relative
                    content[kind] = [
                        node(name, {"name": name, kind.removesuffix("s"): entry}, kubeconfig.files[kind, name])
                        for name, entry in getattr(kubeconfig, kind).items()
                    ]
                cast("Callable[..., None]", kube_config.load_kube_config_from_dict)(
                    node("kubeconfig", content),
                    source.context or kubeconfig.current,
                    configuration,
                    persist_config=False,
                    temp_file_path=directory,
                )
    except (config_exception.ConfigException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = str(error) if isinstance(error, (config_exception.ConfigException, OSError)) else type(error).__name__
        raise NoConfiguration(
            "the service account can't be used" if kubeconfig is None else "the kubeconfig can't be used",
            error=f"{where} can't be used: {reason}",
        ) from error
    if not configuration.no_proxy:  # version 35 reads the variable, and then discards it
        configuration.no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    if kubeconfig is not None:
        cluster = kubeconfig.clusters.get(text(kubeconfig.context(source.context), "cluster"))
        configuration.proxy = text(cluster, "proxy-url") or configuration.proxy  # versions 35 and 36 do not read it
    if kubeconfig is not None and log.lines:
        user = text(kubeconfig.context(source.context), "user")
        hint = text(kubeconfig.users.get(user), "exec", "installHint").strip()
        raise NoConfiguration(
            "no credentials",
            error=f"the credential plugin of {where} failed: {log.lines[-1]}{f'. {hint}' if hint else ''}",
        )
    _check(configuration, where)
    return configuration
