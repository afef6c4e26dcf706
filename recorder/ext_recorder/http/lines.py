"""A connection of the child on replay, as the server's end of it: requests are read from its bytes."""

from __future__ import annotations

import h11

from .body import Body
from .interaction import HEAD_LIMIT, Interaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .interaction import Call

HELLO = b"\0"  # replaces the handshake of TLS within memory, see the agent's `channel`
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Line:
    """One connection.

    Args:
        address: host and port, or the path of a unix socket.
        call: for which call it is used.
        local: it is a unix socket.

    Attributes:
        address, call: as given; the call may change.
        tls: it stands for one in TLS.
        tunnel: where it leads behind a proxy.
        why: what it was ended by, where that was not the server's wish.
        silent: the recorded server did not complete the handshake before the child gave up, and so it is here.
    """

    def __init__(self, address: str, call: Call, *, local: bool) -> None:
        self.address = address
        self.call = call
        self.tls = False
        self.tunnel = ""
        self.why: dict[str, object] | None = None
        self.silent = False
        self._local = local
        self._request: Interaction | None = None  # that has begun
        self._begin(b"")

    def receive_data(self, data: bytes) -> bytes:
        """Take bytes of requests. Returns what is to be sent at once. Raises h11.RemoteProtocolError."""
        hello = b"" if self._request else data[: len(data) - len(data.lstrip(HELLO))]
        if len(data) > len(hello):
            self._reader.receive_data(data[len(hello) :])
        return b"" if self.silent else hello

    def next_event(self) -> Interaction | bytes | None:
        """The next whole request; or bytes that are to be sent at once; None where more has to come first.

        Raises:
            h11.RemoteProtocolError: it is no HTTP/1.1.
        """
        while True:
            event = self._reader.next_event()
            if isinstance(event, h11.Request):
                self._request = self._begun(event)
                if self._reader.they_are_waiting_for_100_continue:
                    return CONTINUE
            elif isinstance(event, h11.Data):
                if self._request is not None and self._request.request_body is not None:
                    self._request.request_body.write(event.data)
            elif isinstance(event, h11.EndOfMessage) and self._request is not None:
                request = self._request
                rest, _ = self._reader.trailing_data
                self._begin(rest)
                return request
            else:
                return None

    def _begin(self, rest: bytes) -> None:
        """Be ready for a request."""
        self._reader = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self._request = None
        if rest:
            self._reader.receive_data(rest)

    def _begun(self, event: h11.Request) -> Interaction:
        made = Interaction(event.method.decode("ascii", "replace"), call=self.call)
        made.request_headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers.raw_items()
        ]
        target = event.target.decode("ascii", "replace")
        scheme = "https" if self.tls else "http"
        if made.method == "CONNECT":
            made.uri = f"{scheme}://{target}"
        elif "://" in target.partition("?")[0]:
            made.uri = target
        else:
            host = next((value.decode() for name, value in event.headers if name == b"host"), self.address)
            made.uri = f"{scheme}://{self.tunnel or host}{target if target.startswith('/') else '/' + target}"
        made.socket = self.address if self._local else ""
        made.request_body = Body()
        return made
