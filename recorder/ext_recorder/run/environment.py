"""Environment of a recorded command: the proxy, and the certificates to trust, for programs in any language."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ext_recorder.http.proxy.client import Entry, origin_of
from ext_recorder.http.proxy.service import Listener, open_listener

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ext_recorder.http.proxy.upstream import Origin

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


# Variables with the base URL of a model API, for programs that ignore proxies: Go for loopback, old versions of Node.
BASE_URLS = {
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "OLLAMA_HOST": "http://127.0.0.1:11434",
}
# Only changed if the user has set them.
OTHER_BASE_URLS = (
    "OPENAI_API_BASE", "GEMINI_BASE_URL", "MISTRAL_BASE_URL", "GROQ_BASE_URL", "DEEPSEEK_BASE_URL",
    "OPENROUTER_BASE_URL", "XAI_BASE_URL", "CO_API_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_BASE_URL",
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "HF_ENDPOINT",
    "LITELLM_PROXY_API_BASE", "LLM_BASE_URL", "MODEL_BASE_URL",
)  # fmt: skip


class BaseUrl(NamedTuple):
    """Variable with a base URL, and the listener that leads to it."""

    name: str
    path: str
    listener: Listener


def base_urls(environ: Mapping[str, str]) -> list[BaseUrl]:
    """Open a listener for each server that is the base URL of a model API."""
    urls = BASE_URLS | {name: environ[name] for name in (*BASE_URLS, *OTHER_BASE_URLS) if environ.get(name)}
    listeners: dict[Origin, Listener] = {}
    found = []
    for name, url in urls.items():
        complete = url if "://" in url else f"http://{url}"  # OLLAMA_HOST may be a host and a port
        if (origin := origin_of(complete)) is not None:
            if origin not in listeners:
                listeners[origin] = open_listener(Entry(origin))
            found.append(BaseUrl(name, urlsplit(complete).path.rstrip("/"), listeners[origin]))
    return found


def user_bundles(environ: Mapping[str, str]) -> list[str]:
    """Return the files of certificates that the user's programs trust already."""
    named = [environ[name] for name in (*BUNDLE_NAMES, *EXTRA_NAMES) if environ.get(name)]
    return [path for path in dict.fromkeys(named) if Path(path).is_file()]


def variables(port: int, authority: str, bundle: str, bases: Sequence[BaseUrl]) -> dict[str, str]:
    """Return the variables of a command whose traffic goes through the proxy.

    Args:
        port: of the proxy, on 127.0.0.1.
        authority: file with our certificate.
        bundle: file with ours and all others.
        bases: base URLs with listeners of their own.
    """
    proxy = f"http://127.0.0.1:{port}"
    values = dict.fromkeys((*PROXY_NAMES, *(name.lower() for name in PROXY_NAMES)), proxy)
    values |= dict.fromkeys(("NO_PROXY", "no_proxy"), "")
    values |= dict.fromkeys(BUNDLE_NAMES, bundle)
    values |= dict.fromkeys(EXTRA_NAMES, authority)
    values |= {base.name: f"http://127.0.0.1:{base.listener.port}{base.path}" for base in bases}
    values["NODE_USE_ENV_PROXY"] = "1"
    options = os.environ.get("JAVA_TOOL_OPTIONS", "")
    java = " ".join(f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={port}" for kind in ("http", "https"))
    values["JAVA_TOOL_OPTIONS"] = f"{options} {java} -Dhttp.nonProxyHosts=".strip()
    return values


LISTENING = "0A"  # state of a socket in /proc/net/tcp


def open_ports() -> frozenset[int] | None:
    """Return the TCP ports on which a process of this machine listens; None if the system does not list them."""
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        fields = [line.split() for line in lines]
        ports |= {int(field[1].rpartition(":")[2], 16) for field in fields if field[3] == LISTENING}
    return frozenset(ports) if Path("/proc/net/tcp").exists() else None
