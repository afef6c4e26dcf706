"""The gevals extension protocol, version 0.0.1, on the wire."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ext_sdk.core import gevals_spec
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import RpcError

from .manifest import build_manifest
from .server import Adapter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_sdk.core.wire.errors import Id
    from ext_sdk.core.wire.jsonrpc import Notification, Request
    from ext_sdk.result import Result

    from .server import InitialIO, Server
    from .session import Call


class GevalsAdapter(Adapter):
    """Adapter of gevals 0.0.1: `initialize`, `execute`, `shutdown`, and notifications `log`."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._manifest_sent = False
        self._compare: Callable[[], str] | None = None

    def opening(self, initial: InitialIO) -> bytes:
        self._manifest_sent, self._compare = initial.manifest_sent, initial.compare
        return b""

    def request(self, request: Request, payload: bytes) -> None:
        if request.method == gevals_spec.EXECUTE:
            # The line shows a reference `${NAME.key}`, unless one of its characters is escaped.
            references = b"${" in payload or b"\\u" in payload
            self.server.execute(request.id, request.params, references=references)
        elif request.method == gevals_spec.INITIALIZE:
            self._initialize(request)
        elif request.method == gevals_spec.SHUTDOWN:
            self._shutdown(request)
        else:
            text = f"unknown method: {request.method[:LONGEST_NAME]}"
            raise RpcError(gevals_spec.METHOD_NOT_FOUND, f"{text}; {suggest(request.method, gevals_spec.METHODS)}")

    def _initialize(self, request: Request) -> None:
        server = self.server
        if self._manifest_sent:
            self._manifest_sent = False
            with suppress(RpcError):  # of changes since the early check, such as a file that was removed
                server.session.initialize(request.params, accepted=True)
            server.warm_up(self._compare)
        else:
            server.session.initialize(request.params)
            server.write(server.limiter.plain(request.id, build_manifest(server.extension)))
            server.warm_up()

    def _shutdown(self, request: Request) -> None:
        """Clean up, then respond: hosts take the response for the end (gevals 0.0.1, "Shutdown")."""
        server = self.server
        server.close()
        for call in server.calls.unclaimed():
            text = f"{call.operation.name}: the extension was shut down before the operation ended"
            server.cancel(call.id, self.error(call.id, RpcError(gevals_spec.OPERATION_FAILED, text)))
        server.write(server.limiter.plain(request.id, {}))
        server.finish()

    def notification(self, notification: Notification) -> None:
        if notification.method == gevals_spec.SHUTDOWN:
            self.server.finish()

    def result(self, call: Call, result: Result) -> bytes:
        return self.server.limiter.result(call.id, result)

    def log(self, id: Id, level: str, message: str, data: Mapping[str, object]) -> bytes:
        return self.server.limiter.log(level, message, data)
