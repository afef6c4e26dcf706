"""The configuration of a connection: what the `kubernetes` package makes of a kubeconfig, or of a pod's account."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Protocol, Self, cast

from ext_kubernetes.errors import NoConfiguration
from ext_kubernetes.manifests import load_plain_yaml
from ext_kubernetes.settings import read

from .checking import check
from .plugins import bounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_kubernetes.settings import Source
    from ext_sdk import Deadline


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
