"""Kubeconfig of a recorded command: each context leads to a listener of the proxy, which has the credentials.

Go programs never use a proxy for loopback, where the API server of kind is, and client certificates can't pass through
one. So the command gets a kubeconfig of its own: with our addresses and our authority, and without credentials.
"""

from __future__ import annotations

import base64
import binascii
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import yaml

from ext_recorder.http.proxy.client import Entry
from ext_recorder.http.proxy.service import Listener, open_listener
from ext_recorder.http.proxy.upstream import ClusterTrust, Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_BYTES = 16 * 1024 * 1024
PLACEHOLDER = "ext-recorder"  # token of a user whose credentials the proxy has
OWN_LOGIN = ("exec", "auth-provider")  # of users whose program gets a token by itself, and sends it


class Route(NamedTuple):
    """Context of a kubeconfig, with the listener for it."""

    name: str
    context: Mapping[str, object]
    user: Mapping[str, object]
    server: str
    listener: Listener


class Kubeconfig:
    """Contexts of the kubeconfig that a command would use.

    Args:
        texts: of its files, in the order of their precedence.
        folder: that relative paths in each of them refer to.
    """

    def __init__(self, texts: list[tuple[str, Path]]) -> None:
        self.current = ""
        self._contexts: dict[str, dict[str, object]] = {}
        self._clusters: dict[str, dict[str, object]] = {}
        self._users: dict[str, dict[str, object]] = {}
        for text, folder in texts:
            with suppress(yaml.YAMLError):  # the program reports the problem
                content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
                if isinstance(content, dict):
                    self._add(content, folder)

    def _add(self, content: Mapping[str, object], folder: Path) -> None:
        current = content.get("current-context")
        self.current = self.current or (current if isinstance(current, str) else "")
        for kind, single, known in (
            ("contexts", "context", self._contexts),
            ("clusters", "cluster", self._clusters),
            ("users", "user", self._users),
        ):
            for name, entry in _named(content, kind, single):
                known.setdefault(name, {**entry, FOLDER: str(folder)})

    def routes(self, client: str = "") -> list[Route]:
        """Open a listener for each context that names a server.

        Args:
            client: child that uses them; "" for the command.
        """
        found = []
        for name, context in self._contexts.items():
            cluster = self._clusters.get(str(context.get("cluster")), {})
            user = self._users.get(str(context.get("user")), {})
            server = cluster.get("server")
            origin = _origin(server)
            if origin is None:
                continue
            entry = Entry(
                origin,
                tls=True,
                headers=_headers(user),
                trust=_trust(cluster, user),
                drop=_dropped(user),
                client=client,
            )
            found.append(Route(name, context, user, str(server), open_listener(entry)))
        return found

    def rewritten(self, routes: list[Route], authority: bytes) -> str:
        """Return the kubeconfig for the command.

        Args:
            authority: our certificate.
        """
        clusters, users, contexts = [], [], []
        for route in routes:
            path = urlsplit(route.server).path
            server = f"https://127.0.0.1:{route.listener.port}{path}"
            data = base64.b64encode(authority).decode()
            clusters.append({"name": route.name, "cluster": {"server": server, "certificate-authority-data": data}})
            own = {key: route.user[key] for key in OWN_LOGIN if key in route.user}
            users.append({"name": route.name, "user": own or {"token": PLACEHOLDER}})
            kept = {key: value for key, value in route.context.items() if key in {"namespace", "extensions"}}
            contexts.append({"name": route.name, "context": {**kept, "cluster": route.name, "user": route.name}})
        content: dict[str, object] = {"apiVersion": "v1", "kind": "Config", "current-context": self.current}
        content |= {"clusters": clusters, "users": users, "contexts": contexts}
        return yaml.safe_dump(content, sort_keys=False, width=1 << 20)


FOLDER = "(folder)"  # key of an entry: the folder of its file


def of_environment(environ: Mapping[str, str]) -> Kubeconfig:
    """Return the kubeconfig that a program with this environment would use."""
    names = [name for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name] or ["~/.kube/config"]
    texts = []
    for file in [Path(name).expanduser() for name in names]:
        with suppress(OSError, UnicodeDecodeError):
            if file.stat().st_size <= MOST_BYTES:
                texts.append((file.read_text(encoding="utf-8"), file.resolve().parent))
    return Kubeconfig(texts)


def _origin(server: object) -> Origin | None:
    parts = urlsplit(server) if isinstance(server, str) else urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return None
    with suppress(ValueError):
        return Origin(parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
    return None


def _headers(user: Mapping[str, object]) -> dict[str, str]:
    """Return the credentials of a user that are headers."""
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = _file(user, "tokenFile").decode("utf-8", "replace").strip()
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        login = f"{user['username']}:{user.get('password', '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}
    return {}


def _dropped(user: Mapping[str, object]) -> frozenset[str]:
    """Return the headers that the program sends because of our placeholder."""
    return frozenset() if any(key in user for key in OWN_LOGIN) else frozenset({"authorization"})


def _trust(cluster: Mapping[str, object], user: Mapping[str, object]) -> ClusterTrust:
    return ClusterTrust(
        authority=_data(cluster, "certificate-authority"),
        certificate=_data(user, "client-certificate"),
        key=_data(user, "client-key"),
        insecure=cluster.get("insecure-skip-tls-verify") is True,
        name=str(cluster.get("tls-server-name") or ""),
    )


def _data(entry: Mapping[str, object], key: str) -> bytes:
    """Return a certificate or key that is given as data or as a file; none if it is neither."""
    data = entry.get(f"{key}-data")
    if isinstance(data, str):
        with suppress(binascii.Error):
            return base64.b64decode(data)
    return _file(entry, key)


def _file(entry: Mapping[str, object], key: str) -> bytes:
    path = entry.get(key)
    if not isinstance(path, str):
        return b""
    with suppress(OSError):
        return Path(str(entry[FOLDER]), path).read_bytes()
    return b""


def _named(content: Mapping[str, object], kind: str, single: str) -> Iterator[tuple[str, dict[str, object]]]:
    entries = content.get(kind)
    for item in entries if isinstance(entries, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get(single), dict):
            yield item["name"], item[single]
