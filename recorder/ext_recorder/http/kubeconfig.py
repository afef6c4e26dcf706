"""Kubeconfig for a child on replay without a cluster: recorded names and addresses, without credentials."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

VARIABLE = "KUBECONFIG"
MOST_BYTES = 16 * 1024 * 1024
CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify")


class KubeconfigTemplate:
    """Kubeconfig that a child would use.

    Args:
        environ: environment of the child.

    Attributes:
        credentials: values that must not be written.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        names = [name for name in environ.get(VARIABLE, "").split(os.pathsep) if name] or ["~/.kube/config"]
        self._contents: list[dict[str, object]] = []
        for file in [Path(name).expanduser() for name in names]:
            with suppress(OSError, ValueError, yaml.YAMLError):  # the child reports the problem
                if file.stat().st_size <= MOST_BYTES:
                    content = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
                    self._contents += [content] if isinstance(content, dict) else []
        users = [user for content in self._contents for _, user in _named(content, "users", "user")]
        values = [user.get(key) for user in users for key in ("token", "password", "client-key-data")]
        self.credentials = [value for value in values if isinstance(value, str)]

    def of(self, addresses: Container[str]) -> str:
        """Return a kubeconfig without credentials, with the clusters that were used; "" if none was used.

        Args:
            addresses: hosts and ports that were used.
        """
        merged: dict[str, dict[str, object]] = {"clusters": {}, "contexts": {}, "users": {}}
        current = ""
        for content in self._contents:
            context = content.get("current-context")
            current = current or (context if isinstance(context, str) else "")
            for name, entry in _named(content, "clusters", "cluster"):
                if _place(entry.get("server")) in addresses:
                    kept = {key: entry[key] for key in CLUSTER if key in entry}
                    merged["clusters"].setdefault(name, {"name": name, "cluster": kept})
            for name, entry in _named(content, "contexts", "context"):
                if entry.get("cluster") in merged["clusters"]:
                    merged["contexts"].setdefault(name, {"name": name, "context": entry})
                    user = entry.get("user")
                    merged["users"].setdefault(str(user), {"name": user, "user": {}})
        if not merged["contexts"]:
            return ""
        kept = {"apiVersion": "v1", "kind": "Config", "current-context": current}
        kept |= {kind: list(entries.values()) for kind, entries in merged.items()}
        return yaml.safe_dump(kept, sort_keys=False, width=1 << 20)


def _place(server: object) -> str:
    """Return host and port of a URL."""
    parts = urlsplit(server) if isinstance(server, str) else urlsplit("")
    try:
        return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    except ValueError:
        return ""


def _named(content: Mapping[str, object], kind: str, single: str) -> Iterator[tuple[str, dict[str, object]]]:
    entries = content.get(kind)
    for item in entries if isinstance(entries, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get(single), dict):
            yield item["name"], item[single]
