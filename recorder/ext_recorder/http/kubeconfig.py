"""Kubeconfigs of recorded programs: that of a command, and that of a replay without a cluster.

Go programs never use a proxy for loopback, where the API server of kind is, and client certificates can't pass through
one. So a recorded command gets a kubeconfig of its own: with our addresses and our authority, and without credentials,
which the proxy has. The file of a recording contains the names and addresses that were used.
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

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from .proxy.service import Listener
    from .proxy.upstream import ClusterTrust

    Entries = dict[str, dict[str, object]]

VARIABLE = "KUBECONFIG"
MOST_BYTES = 16 * 1024 * 1024
CLUSTER = ("server", "tls-server-name", "insecure-skip-tls-verify")
PLACEHOLDER = "ext-recorder"  # token of a user whose credentials the proxy has
OWN_LOGIN = ("exec", "auth-provider")  # of users whose program gets a token by itself, and sends it
FOLDER = "(folder)"  # key of an entry: the folder of its file
KINDS = (("contexts", "context"), ("clusters", "cluster"), ("users", "user"))
# Of a program in a pod without a kubeconfig.
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
IN_CLUSTER = "in-cluster"


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
        self._entries: dict[str, Entries] = {kind: {} for kind, _ in KINDS}
        for text, folder in texts:
            content = _parsed(text)
            current = content.get("current-context")
            self.current = self.current or (current if isinstance(current, str) else "")
            for kind, single in KINDS:
                for name, entry in _named(content, kind, single):
                    self._entries[kind].setdefault(name, {**entry, FOLDER: str(folder)})

    def routes(self, client: str = "") -> list[Route]:
        """Open a listener for each context that names a server.

        Args:
            client: child that uses them; "" for the command.
        """
        from .proxy.client import Entry, origin_of
        from .proxy.service import open_listener

        found = []
        for name, context in self._entries["contexts"].items():
            cluster = self._entries["clusters"].get(str(context.get("cluster")), {})
            user = self._entries["users"].get(str(context.get("user")), {})
            server = cluster.get("server")
            origin = origin_of(server) if isinstance(server, str) else None
            if origin is not None:
                has_placeholder = not any(key in user for key in OWN_LOGIN)
                drop = frozenset({"authorization"} if has_placeholder else ())
                login, trust = headers_of(user), trust_of(cluster, user)
                entry = Entry(origin, tls=True, headers=login, trust=trust, drop=drop, client=client)
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


class KubeconfigTemplate:
    """Kubeconfig that a recording contains.

    Args:
        environ: of the recorded program.

    Attributes:
        credentials: values that must not be written.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._contents = [_parsed(text) for text, _ in texts_of(environ)]
        users = [user for content in self._contents for _, user in _named(content, "users", "user")]
        values = [user.get(key) for user in users for key in ("token", "password", "client-key-data")]
        self.credentials = [value for value in values if isinstance(value, str)]

    def of(self, addresses: Container[str]) -> str:
        """Return a kubeconfig without credentials, with the clusters that were used; "" if none was used.

        Args:
            addresses: hosts and ports that were used.
        """
        from .proxy.client import origin_of

        merged: dict[str, dict[str, object]] = {"clusters": {}, "contexts": {}, "users": {}}
        current = ""
        for content in self._contents:
            context = content.get("current-context")
            current = current or (context if isinstance(context, str) else "")
            for name, entry in _named(content, "clusters", "cluster"):
                origin = origin_of(str(entry.get("server")))
                if origin is not None and origin.place in addresses:
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


def texts_of(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the kubeconfig files that a program with this environment would use, each with its folder.

    In a pod without one, programs use its service account. That needs addresses and a token, as in a file.
    """
    texts = []
    for name in [name for name in environ.get(VARIABLE, "").split(os.pathsep) if name] or ["~/.kube/config"]:
        file = Path(name).expanduser()
        with suppress(OSError, UnicodeDecodeError):  # the program reports the problem
            if file.stat().st_size <= MOST_BYTES:
                texts.append((file.read_text(encoding="utf-8"), file.resolve().parent))
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    account = Path(ACCOUNT)
    if not texts and host and port and (account / "token").is_file():
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        cluster = {"server": server, "certificate-authority": str(account / "ca.crt")}
        context = {"cluster": IN_CLUSTER, "user": IN_CLUSTER}
        with suppress(OSError):
            context["namespace"] = (account / "namespace").read_text(encoding="utf-8").strip()
        content: dict[str, object] = {"current-context": IN_CLUSTER}
        values = {"context": context, "cluster": cluster, "user": {"tokenFile": str(account / "token")}}
        content |= {kind: [{"name": IN_CLUSTER, single: values[single]}] for kind, single in KINDS}
        texts.append((yaml.safe_dump(content), account))
    return texts


def headers_of(user: Mapping[str, object]) -> dict[str, str]:
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


def trust_of(cluster: Mapping[str, object], user: Mapping[str, object]) -> ClusterTrust:
    """Return the certificates of a cluster and of its user."""
    from .proxy.upstream import ClusterTrust

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


def _parsed(text: str) -> dict[str, object]:
    """Return the content of a file; {} if it is not valid, which the program reports."""
    with suppress(yaml.YAMLError, ValueError):
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
        if isinstance(content, dict):
            return content
    return {}


def _named(content: Mapping[str, object], kind: str, single: str) -> Iterator[tuple[str, dict[str, object]]]:
    entries = content.get(kind)
    for item in entries if isinstance(entries, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get(single), dict):
            yield item["name"], item[single]
