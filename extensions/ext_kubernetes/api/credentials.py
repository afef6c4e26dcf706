"""Configuration and credentials of a connection, loaded by the `kubernetes` package and checked."""

from __future__ import annotations

import base64
import logging
import os
import signal
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, Self, cast
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it

from ext_kubernetes.objects.yaml_loader import load_plain_yaml
from ext_sdk import Deadline

from .errors import NoConfiguration
from .kubeconfig import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .kubeconfig import Source


SECONDS = 20.0  # for a plugin, where the call that needs it has more
SLICE = 0.2  # seconds between two looks at whether it has to end
_DEADLINE: ContextVar[Deadline] = ContextVar("deadline of plugins")


class Plugin(subprocess.Popen[str]):
    """A plugin that runs: what the package makes of `subprocess.Popen`. A person at a terminal has all the time."""

    def __init__(self, args: list[str], **options: object) -> None:
        self._interactive = options.get("stdin") is not None
        bounds = {} if self._interactive else {"stdin": subprocess.DEVNULL, "start_new_session": True}
        super().__init__(args, **(options | bounds))  # type: ignore[call-overload]  # as the package has them

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """What it writes, to its end. Raises TimeoutError where that does not come; the package tells it."""
        if self._interactive:
            return super().communicate(input, timeout)
        deadline = _DEADLINE.get(Deadline()).limit(SECONDS)
        while True:
            with suppress(subprocess.TimeoutExpired):
                return super().communicate(input, min(SLICE, deadline.remaining()))
            if deadline.expired:
                self._end()
                raise TimeoutError("it did not end in time, and was ended; does it wait for somebody to log in?")

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


class Programs:
    """Stands for the module `subprocess` in the package's module that runs plugins."""

    Popen = Plugin
    PIPE = subprocess.PIPE


@contextmanager
def bounded(deadline: Deadline) -> Iterator[None]:
    """Plugins that are run within the block end by then."""
    from kubernetes.config import exec_provider

    vars(exec_provider)["subprocess"] = Programs
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


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


class Configuration(Protocol):
    """What the package knows about a server, as far as it is read or set here."""

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
        """The Authorization header, refreshed where it has expired."""


class _InCluster(Protocol):
    """The package's loader for pods."""

    def load_and_set(self, client_configuration: Configuration) -> None:
        """Set address, certificate and token, and read the token again every minute."""


def loaded(source: Source, directory: str, deadline: Deadline) -> Configuration:
    """The configuration.

    Args:
        source: where it is.
        directory: of ours, for certificates and keys.
        deadline: for a credential plugin.

    Raises:
        NoConfiguration: it can't be used.
    """
    from kubernetes.client.configuration import Configuration as TheirConfiguration
    from kubernetes.config import config_exception, incluster_config, kube_config

    configuration = cast("Configuration", cast("Callable[[], object]", TheirConfiguration)())
    try:
        with _Told() as told, bounded(deadline):
            if source.in_cluster:
                make = cast("Callable[..., _InCluster]", incluster_config.InClusterConfigLoader)
                make(str(source.account / "token"), str(source.account / "ca.crt")).load_and_set(configuration)
            else:
                vars(kube_config)["yaml"] = _Yaml
                cast("Callable[..., None]", kube_config.load_kube_config)(
                    os.pathsep.join(source.files),
                    source.context or None,
                    configuration,
                    persist_config=False,
                    temp_file_path=directory,
                )
    except (config_exception.ConfigException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = str(error) if isinstance(error, (config_exception.ConfigException, OSError)) else type(error).__name__
        raise NoConfiguration(
            "the kubeconfig can't be used" if source.files else "the service account can't be used",
            error=f"{'the kubeconfig ' if source.files else ''}{source} can't be used: {reason}",
        ) from error
    if not configuration.no_proxy:  # version 35 reads the variable, and forgets it again
        configuration.no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    if told.lines:  # the package says what a credential plugin did wrong to the log, and goes on without credentials
        hint = _install_hint(source)
        raise NoConfiguration(
            "no credentials",
            error=f"the credential plugin of the kubeconfig {source} failed: {told.lines[-1]}{hint and f'. {hint}'}",
        )
    check(configuration, f"{'the kubeconfig ' if source.files else ''}{source}")
    return configuration


class _Yaml:
    """Replaces the YAML library in the package's loader, which would use the parser that is written in Python."""

    safe_load = staticmethod(load_plain_yaml)


def _install_hint(source: Source) -> str:
    """Return what the kubeconfig says about installing its credential plugin; "" if it says nothing."""
    found = read(source)
    plugin = found.users.get(str(found.context(source.context).get("user")), {}).get("exec")
    hint = plugin.get("installHint") if isinstance(plugin, dict) else None
    return hint.strip() if isinstance(hint, str) else ""


class _Told(logging.Handler):
    """Collects what is logged as an error by the thread that is within the `with` block."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.lines.append(record.getMessage())

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        return self

    def __exit__(self, *exc: object) -> None:
        logging.getLogger().removeHandler(self)
