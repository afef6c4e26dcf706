"""A relay in front of an API server: what is asked and answered is seen, and some of it kept from the server."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config.kube_config import load_kube_config

from tests.live import kubeconfig as kubeconfigs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

TIMEOUT = urllib3.Timeout(connect=5.0, read=60.0)  # seconds
PIECE = 65_536  # bytes


class Watched(NamedTuple):
    """A watch that was asked for.

    Attributes:
        version: where it was to go on from; "" from what is there.
        too_old: the server has answered 410: that version is too old.
    """

    version: str
    too_old: bool


class Relay(ThreadingHTTPServer):
    """Passes on what it is asked to the server of a kubeconfig, as its user; within a `with` block.

    Args:
        kubeconfig: whose server, and as whom.

    Attributes:
        watches: the watches that the server has answered, in the order of its answers.
        lists: how many lists of ConfigMaps the server was asked for.
    """

    daemon_threads = True
    block_on_close = False  # watches go on

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        configuration: Any = Configuration()
        load: Any = load_kube_config
        load(str(kubeconfig), None, configuration, persist_config=False)
        client: Any = ApiClient(configuration)
        self.pool: urllib3.PoolManager = client.rest_client.pool_manager
        self.target: str = configuration.host
        self.watches: list[Watched] = []
        self.lists = 0
        self._held: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def hold(self, *what: str) -> int:
        """Answer "lists" or "watches" of ConfigMaps, or both, by 503 from now on; all else is passed on.

        Returns:
            how many lists were passed on until now.
        """
        with self._lock:
            self._held = frozenset(what)
            return self.lists

    def passes(self, path: str, *, watch: bool) -> bool:
        """Whether a request is to be passed on; counts lists."""
        with self._lock:
            if not path.endswith("/configmaps"):
                return True
            passes = ("watches" if watch else "lists") not in self._held
            self.lists += passes and not watch
            return passes

    def begun(self, watch: Watched) -> int:
        """Add a watch that the server has answered. Returns its place in `watches`."""
        with self._lock:
            self.watches.append(watch)
            return len(self.watches) - 1

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here."""
        return kubeconfigs.write(path, {"server": f"http://127.0.0.1:{self.server_port}"}, {})

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()
        self.server_close()
        self.pool.clear()


class _Handler(BaseHTTPRequestHandler):
    server: Relay

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        watch = "watch" in query
        if not self.server.passes(url.path, watch=watch):
            self._answer(503, [b'{"kind": "Status", "code": 503, "message": "held"}'])
            return
        headers = {"Accept": self.headers["Accept"]}
        try:
            response = self.server.pool.request(
                "GET", self.server.target + self.path, headers=headers, timeout=TIMEOUT, retries=False,
                preload_content=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError:  # the server is away: no answer here either
            self.close_connection = True
            return
        pieces = iter(lambda: response.read1(PIECE), b"")
        with suppress(urllib3.exceptions.HTTPError):
            if watch:
                self._watched("".join(query.get("resourceVersion", [])), response.status, pieces)
            else:
                self._answer(response.status, pieces)
        response.close()

    def _watched(self, version: str, status: int, pieces: Iterator[bytes]) -> None:
        number = self.server.begun(Watched(version, too_old=status == 410))

        def looked_at() -> Iterator[bytes]:
            said = b""
            for piece in pieces:
                said += piece  # what comes in one piece here may come in two elsewhere
                if b'"code":410' in said:
                    self.server.watches[number] = Watched(version, too_old=True)
                yield piece

        self._answer(status, looked_at())

    def _answer(self, status: int, pieces: Iterable[bytes]) -> None:
        self.close_connection = True  # which is the end of the body
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        with suppress(ConnectionError):
            for piece in pieces:
                self.wfile.write(piece)

    def log_message(self, format: str, *args: object) -> None:
        """Quietly."""
