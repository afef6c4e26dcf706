"""Service of the proxy within the HTTP worker: listeners, certificates for programs, and the connections."""

from __future__ import annotations

import os
import socket
import time
from copy import copy
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.http.event_loop import READ, EventLoop
from ext_recorder.http.inject.ext_recorder_agent.channel import SOCKET, frame
from ext_recorder.http.interaction import frames_of, held_bytes, place_of
from ext_sdk.core.wire.json_codec import dumps

from .certificates import Authority, bundle, java_trust_store
from .client import Entry, accepting
from .recording import OwnServers, RecordedConnection, RecordingContext, Unrecorded
from .replaying import ExtendedConnection, ReplayedConnection
from .streams import Stream
from .upstream import ParentProxies, Trust, is_listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ext_recorder.http.capture import TrafficCapture
    from ext_recorder.http.interaction import Interaction
    from ext_recorder.http.interaction_store import InteractionStore
    from ext_recorder.http.playback import Playback
    from ext_recorder.record.config import RecordingConfig
    from ext_recorder.replay.replay import Options

    from .client import Backend, Routing
    from .mcp_recording import McpRecording
    from .mcp_replaying import McpReplay
    from .upstream import Origin

BACKLOG = 512  # connections that wait
MOST_HELD_BYTES = 16 * 1024 * 1024  # of interactions that wait for the worker; servers are paused above
HEAD_BYTES = 4096  # about as much as an interaction without its bodies
# In the folder of the session: our authority; ours and all others, as PEM and for Java.
CA_FILE, BUNDLE_FILE, JAVA_FILE = "ca.pem", "bundle.pem", "bundle.p12"


class Listener(NamedTuple):
    """Listener on loopback, opened before the worker is forked, so that its port is known."""

    socket: socket.socket
    entry: Entry
    port: int


class ProxyOptions(NamedTuple):
    """Listeners of the proxy, and the servers that it records.

    Attributes:
        listeners: of the proxy, and of reverse routes.
        trusted: files of certificates that the user's programs trust.
        outside: ports on this machine that were open before the command: of services that are recorded. Others belong
            to the command itself, and are passed. None if they are not known: all are recorded.
        parents: proxies of the user.
        pass_through: servers whose traffic is forwarded unrecorded, as in NO_PROXY.
        mcp: files of MCP sessions; None if these are recorded like other HTTP.
    """

    listeners: Sequence[Listener]
    trusted: Sequence[str] = ()
    outside: Collection[int] | None = None
    parents: ParentProxies = ParentProxies({})
    pass_through: Sequence[str] = ()
    mcp: McpFiles | None = None


class McpFiles(NamedTuple):
    """Files of the MCP sessions of a run, and options for them.

    Attributes:
        cassettes: folder for new cassettes.
        recorded: cassettes by the URL of their endpoint.
        starts, claims, report: names of files in the folder of the session, see `run.children`.
        bind: `--bind`.
        options: for the replay.
    """

    cassettes: str
    recorded: Mapping[str, Sequence[str]]
    starts: str
    claims: str
    report: str
    bind: Mapping[str, str]
    options: Options

    def record(self, loop: EventLoop, folder: str, problem: Callable[[str], None]) -> McpRecording:
        """Return the sessions that are being recorded.

        Args:
            folder: of the session.
        """
        from .mcp_recording import McpRecording

        return McpRecording(loop, self._config(folder), problem)

    def _config(self, folder: str) -> Callable[[str], RecordingConfig]:
        """Return a function that makes the configuration of the next session with an endpoint.

        Args:
            folder: of the session.
        """
        from ext_recorder.record.config import RecordingConfig

        from .mcp_recording import cassette_of

        local: dict[str, int] = {}  # servers on loopback, which may have another port each time, by number

        def make(endpoint: str) -> RecordingConfig:
            place = endpoint.partition("://")[2].partition("/")[0].rpartition("@")[2]
            if place.rpartition(":")[0] in {"127.0.0.1", "localhost", "[::1]"}:
                place = str(local.setdefault(place, len(local) + 1))
            name = "mcp-" + "".join(char if char.isalnum() or char in ".-" else "-" for char in place)
            Path(self.cassettes).mkdir(exist_ok=True)
            names = (f"{self.cassettes}/{cassette_of(f'{name}.yaml', number)}" for number in count(1))
            cassette = next(path for path in names if not Path(path).exists() and not Path(f"{path}.partial").exists())

            def begun(zero: float) -> None:
                lines = ({"name": name, "cassette": cassette}, {"cassette": cassette, "zero": zero})
                with (Path(folder) / self.starts).open("a", encoding="utf-8") as file:
                    file.writelines(f"{dumps(line)}\n" for line in lines)

            return RecordingConfig(
                cassette,
                (endpoint,),
                protocol="mcp",
                bind=self.bind,
                redact=self.options.redact,
                listen=endpoint,
                headed=True,
                on_start=begun,
            )

        return make

    def replay(self, loop: EventLoop, folder: str, problem: Callable[[str], None]) -> McpReplay:
        """Return the recorded sessions.

        Args:
            folder: of the session.
        """
        from ext_recorder.posix.output import OutputSink

        from .mcp_replaying import McpReplay

        options = copy(self.options)
        options.report = f"{folder}/{self.report}"
        quiet = OutputSink(2, len, lambda: None)
        return McpReplay(loop, self.recorded, options, err=quiet, problem=problem, claims=f"{folder}/{self.claims}")


class Backends(NamedTuple):
    """Makers of back ends, each called with the certificates of the server, if it has its own.

    Attributes:
        recorded: of a server that is recorded, or replayed.
        own: of a server of the command.
        through: of a server that is passed through.
    """

    recorded: Callable[[Trust | None], Backend]
    own: Callable[[Trust | None], Backend]
    through: Callable[[Trust | None], Backend]


class ProxyRouting:
    """Chooses between the recording, a server of the command itself, and a server that is passed through.

    Args:
        is_own: returns True for a server of the command.
        note: receives each server that is passed through, as host and port.
        problem: receives a text about traffic that can't be recorded, or answered.
    """

    def __init__(
        self,
        options: ProxyOptions,
        backends: Backends,
        *,
        is_own: Callable[[Origin], bool],
        note: Callable[[str], None],
        problem: Callable[[str], None],
    ) -> None:
        self._routes = {listener.port: listener.entry for listener in options.listeners if listener.entry.origin}
        self._pass_through = options.pass_through
        self._backends, self._is_own, self._note = backends, is_own, note
        self.problem = problem

    def backend(self, origin: Origin, trust: Trust | None) -> Backend:
        """Return a back end for a connection to a server, with its own certificates if there are any."""
        if self.passes(origin):
            self._note(origin.place)
            return self._backends.through(trust)
        is_own = origin.is_local and self._is_own(origin)
        return (self._backends.own if is_own else self._backends.recorded)(trust)

    def passes(self, origin: Origin) -> bool:
        """Return True if traffic with a server is passed through without reading it."""
        return is_listed(origin, self._pass_through)

    def route(self, origin: Origin) -> Entry | None:
        """Return the reverse route that listens at an address; None if none does."""
        return self._routes.get(origin.port) if origin.is_local else None


def open_listener(entry: Entry | None = None) -> Listener:
    """Return a listener at a free port of loopback."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    return Listener(listener, entry or Entry(), listener.getsockname()[1])


class ProxyProcess:
    """Process that serves programs from real servers and sends what happened to the worker, which writes it.

    It is a child of the worker, so that writing a recording does not delay a connection.

    Args:
        folder: of the session: the worker's socket, and the certificates.
        started: zero of the recording's clock.

    Attributes:
        was_killed: it has ended before `stop`.
    """

    def __init__(self, options: ProxyOptions, folder: str, started: float) -> None:
        self._alive, alive = os.pipe()
        control, self._control = os.pipe()
        (Path(folder) / CA_FILE).touch()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._alive)
            os.close(self._control)
            try:
                _record(options, folder, started, control, alive)
                os._exit(0)
            finally:
                os._exit(1)
        os.close(alive)
        os.close(control)
        for listener in options.listeners:  # connections are refused if the process is killed
            listener.socket.close()
        self.was_killed = False
        os.read(self._alive, 1)  # it serves

    def stop(self, loop: EventLoop) -> None:
        """End all connections; process events until the last one has been reported."""
        ended: list[bool] = []
        os.close(self._control)
        loop.watch(self._alive, READ, lambda _: ended.append(True))
        while not ended:
            loop.turn(None)
        loop.unwatch(self._alive)
        os.close(self._alive)
        self.was_killed = os.waitpid(self._pid, 0)[1] != 0


class Feed:
    """Connection of the proxy process to the worker.

    The worker searches bodies for secrets, which takes longer than to transfer them. Its backlog does not delay
    connections until it takes much memory; long bodies wait on disk.
    """

    def __init__(self, loop: EventLoop, folder: str) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(os.path.join(folder, SOCKET))  # noqa: PTH118
        self._loop = loop
        self._count = 0
        self._held = 0  # bytes
        self._waiting: list[Stream] = []
        self.stream = Stream(loop, sock, self)

    def add(self, interaction: Interaction) -> None:
        """Send an interaction when no program waits for the proxy."""
        self._count += 1
        size = HEAD_BYTES + held_bytes(interaction)
        self._held += size
        source = self._frames(interaction, self._count, size)
        self._loop.defer(lambda: self.stream.stream(source, end=False), size)

    def _frames(self, interaction: Interaction, number: int, size: int) -> Iterator[bytes]:
        yield from frames_of(interaction, number)
        self._held -= size
        if self._held < MOST_HELD_BYTES // 2:
            waiting, self._waiting = self._waiting, []
            for paused in waiting:
                paused.resume()

    def problem(self, text: str) -> None:
        """Send a text about traffic that can't be recorded."""
        self.stream.stream(iter([frame({"k": "problem", "text": text})]), end=False)

    def server(self, place: str, properties: dict[str, str]) -> None:
        """Send the properties of a server."""
        self.stream.stream(iter([frame({"k": "server", "place": place, "properties": properties})]), end=False)

    def passed(self, place: str) -> None:
        """Send the name of a server that is passed through."""
        self.stream.stream(iter([frame({"k": "passed", "place": place})]), end=False)

    def slow_down(self, stream: Stream) -> None:
        """Pause a stream while the worker has much to write."""
        if self._held > MOST_HELD_BYTES:
            stream.pause()
            self._waiting.append(stream)

    def received(self, stream: Stream, data: bytes) -> None:
        """Do nothing: the worker sends nothing."""

    def ended(self, stream: Stream, error: OSError | None) -> None:
        """End with the worker."""
        os._exit(1)

    def secured(self, stream: Stream, error: OSError | None) -> None:
        """Do nothing."""

    def drained(self, stream: Stream) -> None:
        """Do nothing: streams continue when little is held."""


def _record(options: ProxyOptions, folder: str, started: float, control: int, alive: int) -> None:
    """Serve until the worker closes the control pipe."""
    loop = EventLoop()
    feed = Feed(loop, folder)
    authority = Authority()
    connections: set[RecordedConnection] = set()
    context = RecordingContext(loop, Trust(options.trusted), authority, feed, started, connections, options.parents)
    through = context._replace(feed=Unrecorded(), connections=set(), is_raw=True)
    own = OwnServers()
    passing = context._replace(feed=own, connections=set(), reached=own.reached)
    sessions = options.mcp.record(loop, folder, feed.problem) if options.mcp is not None else None
    context = context._replace(watch=sessions)
    outside = options.outside

    def is_own(origin: Origin) -> bool:
        return outside is not None and origin.port not in outside

    backends = Backends(context.connection, passing.connection, through.connection)
    routing = ProxyRouting(options, backends, is_own=is_own, note=feed.passed, problem=feed.problem)
    _serve(loop, options, folder, authority, routing)
    over: list[bool] = []
    loop.watch(control, READ, lambda _: over.append(True))
    os.write(alive, b"\0")
    while not over:
        loop.turn(None)
    for connection in list(connections):
        connection.cut()
    for failed in own.failed.values():
        for interaction in failed:
            feed.add(interaction)
    loop.drain()
    for report in sessions.finish() if sessions is not None else ():
        if not report.ok:
            feed.problem(report.text)
    feed.stream.end()
    while not feed.stream.is_ended:
        loop.turn(None)


def replay_requests(
    loop: EventLoop, options: ProxyOptions, folder: str, playback: Playback, store: InteractionStore
) -> Callable[[EventLoop], None]:
    """Serve programs from a recording. Return a function that ends this.

    An unrecorded server on loopback belongs to the command unless its port was open before.

    Args:
        folder: of the session, for the certificates.
    """
    authority = Authority()
    through = RecordingContext(
        loop, Trust(options.trusted), authority, Unrecorded(), time.monotonic(), set(), options.parents, is_raw=True
    )
    own, outside = OwnServers(), options.outside or ()
    passing = through._replace(feed=own, is_raw=False, reached=own.reached)
    sessions = options.mcp.replay(loop, folder, playback.misses.append) if options.mcp is not None else None
    backends = Backends(
        lambda trust: ReplayedConnection(playback, store, authority, sessions),
        passing.connection,
        through.connection,
    )

    def end(_: EventLoop) -> None:
        playback.misses += [
            f"{place}: never recorded, and no server of the command listens there" for place in own.failed
        ]

    routing = ProxyRouting(
        options,
        backends,
        is_own=lambda origin: (
            origin.port not in outside
            and not (store.serves(origin.place) or store.tls(origin.place))
            and (sessions is None or not sessions.serves(origin.place))
        ),
        note=lambda place: playback.passed.update([place]),
        problem=lambda text: None if text in playback.misses else playback.misses.append(text),
    )
    _serve(loop, options, folder, authority, routing)
    return end


class DirectFeed:
    """Recipient of new interactions in the process that writes them."""

    def __init__(self, loop: EventLoop, capture: TrafficCapture) -> None:
        self._loop = loop
        self._capture = capture

    def add(self, interaction: Interaction) -> None:
        """Write an interaction when no program waits for the proxy."""
        self._capture.addresses |= {place_of(interaction), interaction.peer}
        self._loop.defer(lambda: self._capture.add(interaction), HEAD_BYTES + held_bytes(interaction))

    def problem(self, text: str) -> None:
        """Report traffic that can't be recorded."""
        self._capture.problem(text)

    def server(self, place: str, properties: dict[str, str]) -> None:
        """Keep the properties of a server."""
        self._capture.servers.setdefault(place, properties)

    def slow_down(self, stream: Stream) -> None:
        """Do nothing: the loop writes when much is deferred."""


def extend_requests(
    loop: EventLoop,
    options: ProxyOptions,
    folder: str,
    playback: Playback,
    store: InteractionStore,
    *,
    capture: TrafficCapture,
    started: float,
) -> Callable[[EventLoop], None]:
    """Serve programs from a recording, and from servers what it does not have. Return a function that ends this.

    Args:
        folder: of the session, for the certificates.
        capture: receives new interactions.
        started: zero of the recording's clock.
    """
    authority = Authority()
    connections: set[RecordedConnection] = set()
    feed, trust, outside = DirectFeed(loop, capture), Trust(options.trusted), options.outside
    context = RecordingContext(loop, trust, authority, feed, started, connections, options.parents)
    through = context._replace(feed=Unrecorded(), connections=set(), is_raw=True)
    own_servers = OwnServers()
    passing = context._replace(feed=own_servers, connections=set(), reached=own_servers.reached)
    sessions = options.mcp.replay(loop, folder, playback.misses.append) if options.mcp is not None else None
    backends = Backends(
        lambda own: ExtendedConnection(playback, store, authority, context.connection(own), sessions),
        passing.connection,
        through.connection,
    )

    def is_own(origin: Origin) -> bool:
        is_recorded = store.serves(origin.place) or (sessions is not None and sessions.serves(origin.place))
        return outside is not None and origin.port not in outside and not is_recorded

    def end(_: EventLoop) -> None:
        for connection in list(connections):
            connection.cut()
        for failed in own_servers.failed.values():
            for interaction in failed:
                feed.add(interaction)

    def note(place: str) -> None:
        playback.passed.update([place])

    routing = ProxyRouting(options, backends, is_own=is_own, note=note, problem=feed.problem)
    _serve(loop, options, folder, authority, routing)
    return end


def _serve(
    loop: EventLoop,
    options: ProxyOptions,
    folder: str,
    authority: Authority,
    routing: Routing,
) -> None:
    (Path(folder) / CA_FILE).write_bytes(authority.pem)
    certificates = bundle(authority.pem, options.trusted)
    (Path(folder) / BUNDLE_FILE).write_bytes(certificates)
    (Path(folder) / JAVA_FILE).write_bytes(java_trust_store(certificates))
    for listener in options.listeners:
        listener.socket.settimeout(0)
        loop.watch(listener.socket.fileno(), READ, accepting(loop, listener.socket, listener.entry, routing))
