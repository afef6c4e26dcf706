"""Service of the proxy within the HTTP worker: listeners, certificates for programs, and the connections."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.http.event_loop import READ

from .certificates import Authority, bundle
from .client import Client, Entry
from .recording import RecordedConnection, RecordingContext
from .replaying import ReplayedConnection
from .upstream import Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_recorder.http.capture import TrafficCapture
    from ext_recorder.http.event_loop import EventLoop
    from ext_recorder.http.interaction import Interaction
    from ext_recorder.http.interaction_store import InteractionStore
    from ext_recorder.http.playback import Playback

    from .client import Backend

BACKLOG = 512  # connections that wait
CA_FILE, BUNDLE_FILE = "ca.pem", "bundle.pem"  # in the folder of the session: our authority; ours and all others


class Listener(NamedTuple):
    """Listener on loopback, opened before the worker is forked, so that its port is known."""

    socket: socket.socket
    entry: Entry

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self.socket.getsockname()[1])


class ProxyOptions(NamedTuple):
    """What the proxy serves.

    Attributes:
        listeners: of the proxy, and of reverse routes.
        trusted: files of certificates that the user's programs trust.
    """

    listeners: Sequence[Listener]
    trusted: Sequence[str] = ()


def open_listener(entry: Entry | None = None) -> Listener:
    """Return a listener at a free port of loopback."""
    return Listener(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG), entry or Entry())


def record_requests(
    loop: EventLoop, options: ProxyOptions, folder: str, capture: TrafficCapture, started: float
) -> None:
    """Serve programs from real servers, and record that.

    Args:
        folder: of the session, for the certificates.
        started: zero of the recording's clock.
    """

    def done(interaction: Interaction) -> None:
        bodies = [body.size for body in (interaction.body, interaction.request_body) if body is not None]
        loop.defer(lambda: capture.add(interaction), min(sum(bodies), 1024 * 1024))

    authority = Authority()
    context = RecordingContext(loop, Trust(options.trusted), authority, done, capture.problem, started)
    context = context._replace(server=capture.servers.setdefault)
    _serve(loop, options, folder, authority, lambda: RecordedConnection(context), capture.problem)


def replay_requests(
    loop: EventLoop, options: ProxyOptions, folder: str, playback: Playback, store: InteractionStore
) -> None:
    """Serve programs from a recording. Arguments as of `record_requests`."""
    authority = Authority()
    _serve(
        loop,
        options,
        folder,
        authority,
        lambda: ReplayedConnection(playback, store, authority),
        playback.misses.append,
    )


def _serve(
    loop: EventLoop,
    options: ProxyOptions,
    folder: str,
    authority: Authority,
    backend: Callable[[], Backend],
    problem: Callable[[str], None],
) -> None:
    (Path(folder) / CA_FILE).write_bytes(authority.pem)
    (Path(folder) / BUNDLE_FILE).write_bytes(bundle(authority.pem, options.trusted))
    for listener in options.listeners:
        listener.socket.settimeout(0)
        loop.watch(listener.socket.fileno(), READ, _accepting(loop, listener, backend, problem))


def _accepting(
    loop: EventLoop, listener: Listener, backend: Callable[[], Backend], problem: Callable[[str], None]
) -> Callable[[int], None]:
    def accept(_events: int) -> None:
        with suppress(OSError):  # the program has given up
            while True:
                sock, _ = listener.socket.accept()
                Client(loop, sock, listener.entry, backend(), problem)

    return accept
