"""Patches of the `kubernetes` package, each with its reason.

The package has no setting for any of these. Everything else uses its documented interface: `InClusterConfigLoader` and
`load_kube_config_from_dict` for credentials, `DynamicClient.request` for requests, `create_websocket` for exec.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, Self, cast

from ext_sdk import Deadline
from ext_sdk.deferred_imports import attach, defer, undo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Headers = tuple[tuple[str, str], ...]


# --- Imports: sys.modules ---------------------------------------------------------------------------------------------

# `import kubernetes.dynamic` first runs the `__init__` of `kubernetes`. It imports informers, leader election, OpenID,
# pydantic and, in versions 35 and 36, the 800 typed models. That takes 250 to 400 ms; a request needs a quarter of it.
# For MODULES and USED_LATER see ext_sdk.deferred_imports.
MODULES: Mapping[str, Mapping[str, str]] = {
    "dateutil": {},
    "dateutil.parser": {},
    "kubernetes": {},
    "kubernetes.client": {
        "ApiClient": "kubernetes.client.api_client",
        "Configuration": "kubernetes.client.configuration",
    },
    "kubernetes.client.api_response": {},
    "kubernetes.client.models": {},
    "kubernetes.dynamic": {"DynamicClient": "kubernetes.dynamic.client"},
    "kubernetes.dynamic.discovery": {},
    "kubernetes.utils": {},
    "kubernetes.utils.retry": {},
    "kubernetes.watch": {},
    "multiprocessing": {"cpu_count": "os"},
    "multiprocessing.pool": {},
    "oauthlib.oauth2": {},
    "pprint": {},
    "pydantic": {},
    "requests_oauthlib": {},
    "urllib3.http2": {},
    "yaml": {
        "AliasEvent": "yaml.events",
        "CSafeLoader": "yaml.cyaml",
        "CollectionEndEvent": "yaml.events",
        "CollectionStartEvent": "yaml.events",
        "MappingNode": "yaml.nodes",
        "MarkedYAMLError": "yaml.error",
        "ScalarNode": "yaml.nodes",
        "YAMLError": "yaml.error",
    },
    "yaml.composer": {},
    "yaml.emitter": {},
    "yaml.parser": {},
    "yaml.reader": {},
    "yaml.scanner": {},
}

USED_LATER = frozenset(
    {
        ("dateutil.parser", "parse"),
        ("kubernetes.client.api_response", "ApiResponse"),
        ("kubernetes.client.api_response", "T"),
        ("kubernetes.dynamic.discovery", "EagerDiscoverer"),
        ("kubernetes.dynamic.discovery", "LazyDiscoverer"),
        ("kubernetes.utils.retry", "is_retry_after_response"),
        ("kubernetes.utils.retry", "on_retry_after_error"),
        ("kubernetes.utils.retry", "retry_after_backoff"),
        ("multiprocessing.pool", "ThreadPool"),
        ("pprint", "pformat"),
        ("pydantic", "SecretStr"),
        ("requests_oauthlib", "OAuth2Session"),
        ("yaml.composer", "ComposerError"),
        ("yaml.emitter", "EmitterError"),
        ("yaml.parser", "ParserError"),
        ("yaml.reader", "ReaderError"),
        ("yaml.scanner", "ScannerError"),
    }
)

# Two threads must not import the library: its modules import each other, and `import http.client` of one thread ends
# before `http` has the attribute `client`, if the import by another thread is about to end.
LOCK = threading.Lock()


def warm_up() -> None:
    """Import the modules that the first request needs, once."""
    with LOCK:
        if "kubernetes.dynamic.client" in sys.modules:
            return
        collected = gc.isenabled()
        gc.disable()  # it would scan all that is imported again and again, and free nothing
        try:
            defer(MODULES, USED_LATER)
            _import()
            attach()
        except (ImportError, AttributeError):  # another version, whose modules can't be imported separately
            undo("kubernetes")
            _import()
        finally:
            if collected:
                gc.enable()


def _import() -> None:
    import_module("kubernetes.config.kube_config")
    import_module("kubernetes.client.api_client")
    import_module("kubernetes.dynamic.client")


# --- Credential plugins: subprocess -----------------------------------------------------------------------------------

# The package runs a credential plugin without a time limit, and lets it read the standard input of the extension, on
# which the host sends requests.

PLUGIN_SECONDS = 20.0  # for a plugin, if the call that needs it has more
TICK = 0.2  # seconds between two checks of the deadline
_DEADLINE: ContextVar[Deadline] = ContextVar("deadline of plugins")


class Plugin(subprocess.Popen[str]):
    """A running plugin; replaces `subprocess.Popen` in the package. A plugin at a terminal has no time limit."""

    def __init__(self, args: list[str], **options: object) -> None:
        self._interactive = options.get("stdin") is not None
        bounds = {} if self._interactive else {"stdin": subprocess.DEVNULL, "start_new_session": True}
        super().__init__(args, **(options | bounds))  # type: ignore[call-overload]  # as the package has them

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Return the output of the plugin. Raises TimeoutError at the deadline, which the package logs."""
        if self._interactive:
            return super().communicate(input, timeout)
        deadline = _DEADLINE.get(Deadline()).limit(PLUGIN_SECONDS)
        while True:
            with suppress(subprocess.TimeoutExpired):
                return super().communicate(input, min(TICK, deadline.remaining()))
            if deadline.expired:
                break
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        raise TimeoutError("it timed out and was killed; it may wait for a login")


class _Subprocess:
    """Replaces the module `subprocess` in the package's module that runs plugins."""

    Popen = Plugin
    PIPE = subprocess.PIPE


@contextmanager
def plugins_until(deadline: Deadline) -> Iterator[None]:
    """Kill plugins that are started within the block at the deadline."""
    from kubernetes.config import exec_provider

    vars(exec_provider)["subprocess"] = _Subprocess
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


# --- Errors of credential plugins: the root logger --------------------------------------------------------------------

# The package reports the error of a plugin only to the log, and continues without credentials.


class ErrorLog(logging.Handler):
    """Collects the errors that this thread logs within the `with` block.

    Attributes:
        lines: their messages.
    """

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


# --- Requests: the pool of urllib3 ------------------------------------------------------------------------------------

# The package reads the body of an error response without limits of size and time, and its headers are a dict, which
# can't have a name twice, as Impersonate-Group requires.


class RawResponse(Protocol):
    """Response of urllib3 whose body has not been read."""

    status: int
    headers: Mapping[str, str]

    def read1(self, amt: int) -> bytes:
        """Return the available bytes of the body; b"" at its end."""

    def close(self) -> None:
        """Close the connection."""

    def release_conn(self) -> None:
        """Return the connection to the pool."""


class Pool(Protocol):
    """Pool manager of urllib3, as far as the package uses it."""

    request: Callable[..., RawResponse]


class UnreadErrorResponse(Exception):
    """Response with an error status, whose body has not been read."""

    def __init__(self, response: RawResponse) -> None:
        super().__init__(f"HTTP status {response.status}")
        self.response = response


def wrap_pool(pool: Pool, headers: Headers) -> None:
    """Make a pool send headers with every request, and raise UnreadErrorResponse unless the status is 2xx."""
    from urllib3 import HTTPHeaderDict

    send = pool.request

    def request(*args: object, **options: object) -> RawResponse:
        if headers:
            sent = HTTPHeaderDict(cast("Mapping[str, str] | None", options.get("headers")))
            for name, value in headers:
                sent.add(name, value.encode().decode("latin-1"))  # http.client encodes as Latin-1: UTF-8 is sent
            options["headers"] = sent
        response = send(*args, **options)
        if 200 <= response.status <= 299:
            return response
        raise UnreadErrorResponse(response)

    pool.request = request


# --- Websockets: the class of the websocket library -------------------------------------------------------------------

# `create_websocket` passes only two headers on, those for authorization and the subprotocol.

_HEADERS: ContextVar[Headers] = ContextVar("headers of websockets", default=())


@contextmanager
def websocket_headers(headers: Headers) -> Iterator[None]:
    """Send headers with the websockets that this thread opens within the block."""
    from kubernetes.stream import ws_client
    from websocket import WebSocket

    if vars(ws_client)["WebSocket"] is WebSocket:

        class WithHeaders(WebSocket):
            """Websocket whose opening request has further headers."""

            def connect(self, url: str, **options: object) -> None:
                """Connect; see the base class."""
                lines = cast("list[str]", options.get("header") or [])
                more = [f"{name}: {value}" for name, value in _HEADERS.get()]
                super().connect(url, **(options | {"header": [*lines, *more]}))  # type: ignore[no-untyped-call]

        vars(ws_client)["WebSocket"] = WithHeaders
    token = _HEADERS.set(headers)
    try:
        yield
    finally:
        _HEADERS.reset(token)
