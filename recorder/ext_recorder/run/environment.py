"""Environment of a recorded command: the proxy, and the certificates to trust, for programs in any language.

A replay without recording gets a network of its own, too: a namespace with nothing but loopback.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ext_recorder.cassette.recording import KEY_PLACEHOLDER
from ext_recorder.http.proxy.client import Entry, origin_of
from ext_recorder.http.proxy.service import Listener, open_listener

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ext_recorder.http.proxy.upstream import Origin
    from ext_recorder.messages.redaction import Redaction

PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
PROXIES = frozenset((*PROXY_NAMES, *(name.lower() for name in PROXY_NAMES)))
# Variables that take precedence over a proxy in the configuration file of a program.
OWN_PROXY_NAMES = ("npm_config_proxy", "npm_config_https_proxy")
# Files with the certificates that a program trusts, or trusts in addition. The value is that of our bundle, which
# includes the user's, because servers that are passed through have their own certificates.
BUNDLE_NAMES = (
    "SSL_CERT_FILE",  # OpenSSL, Go, Python, Ruby, Rust
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "npm_config_cafile",
    "NIX_SSL_CERT_FILE",
    "DENO_CERT",
    "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
)

# Variables with the base URL of a model API, for programs that ignore proxies, such as those in Go for loopback.
BASE_URLS = {
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
    "OLLAMA_HOST": "http://127.0.0.1:11434",
}
# Only changed if the user has set them.
OTHER_BASE_URLS = (
    "OPENAI_API_BASE", "GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "MISTRAL_BASE_URL", "GROQ_BASE_URL",
    "DEEPSEEK_BASE_URL", "OPENROUTER_BASE_URL", "XAI_BASE_URL", "CO_API_URL", "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL", "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "HF_ENDPOINT", "LITELLM_PROXY_API_BASE",
    "LLM_BASE_URL", "MODEL_BASE_URL",
)  # fmt: skip
# Credentials without which clients of model APIs refuse to start. A replay gives a placeholder for those that were set.
KEY_SUFFIX = "_API_KEY"
KEYS = (
    "ANTHROPIC_AUTH_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK", "HF_TOKEN",
    "OPENAI_ADMIN_KEY",
)  # fmt: skip
KEPT = (*BASE_URLS, *OTHER_BASE_URLS, "AWS_REGION", "AWS_DEFAULT_REGION", "OPENAI_API_VERSION", "OPENAI_ORG_ID")


REDACTED_TAIL_BYTES = 65_536  # at the end of a file, with the list of the rules that have replaced something


def kept_variables(
    environ: Mapping[str, str], clean: Callable[[str], str], secrets: Collection[str] = ()
) -> dict[str, str]:
    """Return the variables of a recorded command that its replay needs, for the header: addresses, no credentials.

    Args:
        clean: replaces secrets.
        secrets: names of variables whose values are secrets.
    """
    kept = {name: clean(environ[name]) for name in KEPT if environ.get(name)}
    wanted = {name for name in environ if name.endswith(KEY_SUFFIX)}.union(KEYS, secrets) - PROXIES - kept.keys()
    return kept | dict.fromkeys(sorted(name for name in wanted if environ.get(name)), KEY_PLACEHOLDER)


def replay_variables(recorded: Mapping[str, str], redaction: Redaction) -> tuple[dict[str, str], list[str]]:
    """Return the variables of a recording that its replay may set, and remarks on the others.

    A recording may come from anyone. It must not be able to run code, as `PYTHONPATH` or `LD_PRELOAD` could.
    """
    secrets = redaction.secrets(dict.fromkeys(recorded, KEY_PLACEHOLDER))
    kept, remarks = {}, []
    for name, value in recorded.items():
        is_key = f"env.{name}" in secrets or name in KEYS or name.endswith((KEY_SUFFIX, "_URL"))
        if name in KEPT or (is_key and value == KEY_PLACEHOLDER):
            kept[name] = value
        elif name not in os.environ:
            remedy = "set it, or name it by --redact if it was recorded with that option"
            remarks.append(f"{name} is not set: expected the address of an API or a placeholder of a secret; {remedy}")
    return kept, remarks


def redacted_variables(files: Iterable[Path]) -> set[str]:
    """Return the names of the variables whose values were redacted in these complete files of a recording."""
    found: set[str] = set()
    for path in files:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - REDACTED_TAIL_BYTES))
            rules = file.read().rpartition(b"\nredacted:")[2]
        found.update(name.decode() for name in re.findall(rb"\benv\.(\w+)", rules))
    return found


class BaseUrl(NamedTuple):
    """Variable with a base URL, and the listener that leads to it."""

    name: str
    path: str
    listener: Listener


def base_urls(environ: Mapping[str, str], served: Collection[str], client: str = "") -> list[BaseUrl]:
    """Open a listener for each server that is the base URL of a model API.

    Args:
        served: hosts and ports on loopback that may be used. The command may itself start a server at a usual address.
        client: child that uses them; "" for the command.
    """
    usual = {name: url for name, url in BASE_URLS.items() if "//127." not in url or urlsplit(url).netloc in served}
    urls = usual | {name: environ[name] for name in (*BASE_URLS, *OTHER_BASE_URLS) if environ.get(name)}
    listeners: dict[Origin, Listener] = {}
    found = []
    for name, url in urls.items():
        complete = url if "://" in url else f"http://{url}"  # OLLAMA_HOST may be a host and a port
        if (origin := origin_of(complete)) is not None:
            if origin not in listeners:
                listeners[origin] = open_listener(Entry(origin, client=client))
            found.append(BaseUrl(name, urlsplit(complete).path.rstrip("/"), listeners[origin]))
    return found


def user_bundles(environ: Mapping[str, str]) -> list[str]:
    """Return the files of certificates that the user's programs trust already."""
    named = [environ[name] for name in BUNDLE_NAMES if environ.get(name)]
    return [path for path in dict.fromkeys(named) if Path(path).is_file()]


def variables(
    environ: Mapping[str, str], port: int, bundle: str, java: str, bases: Sequence[BaseUrl]
) -> dict[str, str]:
    """Return the variables of a command whose traffic goes through the proxy.

    Args:
        environ: of the user.
        port: of the proxy, on 127.0.0.1.
        bundle: file with our certificate and all others.
        java: the same as a trust store of Java.
        bases: base URLs with listeners of their own.
    """
    proxy = f"http://127.0.0.1:{port}"
    values = dict.fromkeys((*PROXY_NAMES, *(name.lower() for name in PROXY_NAMES), *OWN_PROXY_NAMES), proxy)
    values |= dict.fromkeys(("NO_PROXY", "no_proxy", "npm_config_noproxy"), "")
    values |= dict.fromkeys(BUNDLE_NAMES, bundle)
    values |= {base.name: f"http://127.0.0.1:{base.listener.port}{base.path}" for base in bases}
    preload = str(NODE_PRELOAD).replace("\\", "\\\\").replace('"', '\\"')  # in quotes, for a path with spaces
    node = f'--require "{preload}" {environ.get("NODE_OPTIONS", "")}'.strip()
    values |= {"EXT_RECORDER_PROXY": f"127.0.0.1:{port}", "NODE_OPTIONS": node}
    values["JAVA_TOOL_OPTIONS"] = " ".join(
        [
            environ.get("JAVA_TOOL_OPTIONS", ""),
            *(f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={port}" for kind in ("http", "https")),
            "-Dhttp.nonProxyHosts=",
            f"-Djavax.net.ssl.trustStore='{java}' -Djavax.net.ssl.trustStoreType=PKCS12",  # in quotes, for spaces
        ]
    ).strip()
    return values


NODE_PRELOAD = Path(__file__).with_name("node_proxy.cjs")


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


# --- Network ----------------------------------------------------------------------------------------------------------

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET of unshare(2)
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP of netdevice(7)
ISOLATED = "isolated: the command ran without any network but loopback"
NOT_ISOLATED = "not isolated from the network ({}), so it was not checked that no program bypassed the proxy"


def isolate() -> str:
    """Move this process, and those that it starts, to a namespace with nothing but loopback.

    Another process tries it first: a process that has entered a namespace cannot leave it, and systems may forbid any
    of the later steps.

    Returns:
        "" if it is done, or the reason why this system does not allow it.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, _enter().encode() or b"\0")
        finally:
            os._exit(0)
    os.close(write)
    result = os.read(read, 1024)
    os.close(read)
    os.waitpid(pid, 0)
    return _enter() if result == b"\0" else result.decode() or "it could not be tried"


def remark(reason: str) -> str:
    """Return the line of the summary for the result of `isolate`."""
    return NOT_ISOLATED.format(reason) if reason else ISOLATED


def _enter() -> str:
    """Enter a namespace with nothing but loopback. Return "", or the reason why this is not possible."""
    user, group = os.getuid(), os.getgid()
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (AttributeError, OSError):
        return "this system has no network namespaces"
    if unshare(NEW_NETWORK) != 0:
        if unshare(NEW_USER | NEW_NETWORK) != 0:
            return f"namespaces: {os.strerror(ctypes.get_errno())}"
        try:
            # The process keeps its user and group, and must not change them.
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
        except OSError as error:
            return f"users in a namespace: {error.strerror}"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            request = struct.pack("16sh14x", b"lo", 0)
            flags = struct.unpack("16sh14x", fcntl.ioctl(control, GET_FLAGS, request))[1]
            fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))
    except OSError as error:
        return f"loopback in a namespace: {error.strerror}"
    return ""
