"""Further headers of requests and websockets: the package passes few headers on, and none of them twice."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_kubernetes.impersonation import Headers

    from .connection import RawResponse
    from .failing import Pool

_WEBSOCKET: ContextVar[Headers] = ContextVar("headers of websockets", default=())


def add_headers(pool: Pool, headers: Headers) -> None:
    """Have a pool send headers with every request; a name may occur several times."""
    from urllib3 import HTTPHeaderDict

    send = pool.request

    def request(*args: object, **options: object) -> RawResponse:
        sent = HTTPHeaderDict(cast("Mapping[str, str] | None", options.get("headers")))
        for name, value in headers:
            sent.add(name, value.encode().decode("latin-1"))  # http.client encodes as Latin-1: UTF-8 is sent
        return send(*args, **(options | {"headers": sent}))

    pool.request = request


@contextmanager
def added(headers: Headers) -> Iterator[None]:
    """Send headers with the websockets that this thread opens within the block; see patch_websockets."""
    token = _WEBSOCKET.set(headers)
    try:
        yield
    finally:
        _WEBSOCKET.reset(token)


def patch_websockets() -> None:
    """Have the package open websockets with the headers of `added`; it passes only two of its own on."""
    from kubernetes.stream import ws_client
    from websocket import WebSocket

    if isinstance(vars(ws_client)["WebSocket"], type) and vars(ws_client)["WebSocket"] is not WebSocket:
        return

    class WithHeaders(WebSocket):
        """A websocket whose first request has further headers."""

        def connect(self, url: str, **options: object) -> None:
            """Connect; see the base."""
            lines = cast("list[str]", options.get("header") or [])
            more = [f"{name}: {value}" for name, value in _WEBSOCKET.get()]
            super().connect(url, **(options | {"header": [*lines, *more]}))  # type: ignore[no-untyped-call]

    vars(ws_client)["WebSocket"] = WithHeaders
