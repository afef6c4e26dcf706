"""Write kubeconfig files."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.certificates import Certificate

Entry: TypeAlias = dict[str, Any]  # one of the file's `clusters` or `users`, without its name

NAME = "live"  # of cluster and context; the user has the name of the file


def write(path: Path, cluster: Entry, user: Entry) -> Path:
    """Write a kubeconfig with one cluster, one user, one context, readable by this user alone.

    Returns:
        the path.
    """
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": path.stem, "user": user}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": path.stem}}],
        "current-context": NAME,
    }
    new = path.with_name(f"{path.name}.new")
    new.touch(0o600)
    new.write_text(yaml.safe_dump(content, sort_keys=False))
    return new.replace(path)


def replace(path: Path, text: str) -> None:
    """Give a file that others read another content, so that nobody reads half of it."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


def cluster(server: str, authority: bytes) -> Entry:
    """Describe a cluster.

    Args:
        server: its address.
        authority: PEM that its certificate is checked against.
    """
    return {"server": server, "certificate-authority-data": _base64(authority)}


def with_certificate(certificate: Certificate) -> Entry:
    """Describe a user who has a certificate."""
    return {
        "client-certificate-data": _base64(certificate.certificate),
        "client-key-data": _base64(certificate.key),
    }


def with_token(token: str) -> Entry:
    """Describe a user who has a token."""
    return {"token": token}


def with_token_file(path: Path) -> Entry:
    """Describe a user whose token is what a file has in it."""
    return {"tokenFile": str(path)}


def with_plugin(program: Path) -> Entry:
    """Describe a user whose token is what a program says."""
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(program), "interactiveMode": "Never"}}


def cluster_of(path: Path, context: str = "") -> Entry:
    """The cluster of a context in a file; "" is its current one."""
    content = yaml.safe_load(path.read_text())
    by_name = {entry["name"]: entry["context"] for entry in content["contexts"]}
    name = by_name[context or content["current-context"]]["cluster"]
    found: Entry = next(entry["cluster"] for entry in content["clusters"] if entry["name"] == name)
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
