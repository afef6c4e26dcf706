"""Environment of a recorded command: the proxy, and the certificates to trust, for programs in any language."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
# Files with all certificates that a program trusts. The value is that of our bundle, which includes the user's.
BUNDLE_NAMES = (
    "SSL_CERT_FILE",  # OpenSSL, Go, Python, Ruby, Rust
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "NIX_SSL_CERT_FILE",
    "DENO_CERT",
    "HTTPLIB2_CA_CERTS",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
)
EXTRA_NAMES = ("NODE_EXTRA_CA_CERTS",)  # certificates in addition to those of the program


def user_bundles(environ: Mapping[str, str]) -> list[str]:
    """Return the files of certificates that the user's programs trust already."""
    named = [environ[name] for name in (*BUNDLE_NAMES, *EXTRA_NAMES) if environ.get(name)]
    return [path for path in dict.fromkeys(named) if Path(path).is_file()]


def variables(port: int, authority: str, bundle: str) -> dict[str, str]:
    """Return the variables of a command whose traffic goes through the proxy.

    Args:
        port: of the proxy, on 127.0.0.1.
        authority: file with our certificate.
        bundle: file with ours and all others.
    """
    proxy = f"http://127.0.0.1:{port}"
    values = dict.fromkeys((*PROXY_NAMES, *(name.lower() for name in PROXY_NAMES)), proxy)
    values |= dict.fromkeys(("NO_PROXY", "no_proxy"), "")
    values |= dict.fromkeys(BUNDLE_NAMES, bundle)
    values |= dict.fromkeys(EXTRA_NAMES, authority)
    values["NODE_USE_ENV_PROXY"] = "1"
    options = os.environ.get("JAVA_TOOL_OPTIONS", "")
    java = " ".join(f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={port}" for kind in ("http", "https"))
    values["JAVA_TOOL_OPTIONS"] = f"{options} {java} -Dhttp.nonProxyHosts=".strip()
    return values


LISTENING = "0A"  # state of a socket in /proc/net/tcp


def open_ports() -> frozenset[int] | None:
    """Return the TCP ports on which a process of this machine listens; None if the system does not tell."""
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        fields = [line.split() for line in lines]
        ports |= {int(field[1].rpartition(":")[2], 16) for field in fields if field[3] == LISTENING}
    return frozenset(ports) if Path("/proc/net/tcp").exists() else None
