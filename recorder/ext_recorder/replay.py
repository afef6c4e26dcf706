"""`ext-recorder replay`: the child, without the child. A thin shell of poll() around a player.

Nothing of the recorded extension is needed here, and nothing that takes long to import: the first answer is out some
30 ms after the start, however long the cassette is.
"""

from __future__ import annotations

import os
import sys
from select import POLLIN, POLLOUT, poll
from time import monotonic

from ext_sdk.protocols.dialect import DIALECTS
from ext_sdk.wire.framing import FRAMINGS

from .bindings import Playing
from .calls import Calls
from .cassette.reader import Reader
from .errors import CassetteError, RecorderError, UsageError
from .hearing import Ear
from .matching import MATCH_ON, Matcher
from .outlets import claim_standard_files, host_outlet, tell
from .signals import Signals, signal_name
from .stage import Close, Stage, Write
from .strict import StrictPlayer
from .voice import Voice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .outlets import Outlet
    from .player import Player
    from .stage import Action, Output

EXIT_CANNOT_PLAY = 2  # a cassette or options that can't be used
ORDERS = ("strict", "any")
_READ_BYTES = 65_536  # what a Linux pipe holds
# A host that writes without reading is read on, because a child would do so as well, until this much waits for it.
_BACKLOG_BYTES = 8_388_608
_STDIN = 0


class Options:
    """How to replay.

    Attributes:
        order: "strict" (the host repeats its messages in their order) or "any".
        ignore: JSON pointers of what need not match.
        match_on: "method", "params" or JSON pointers: what has to.
        bind: live values of bindings, by name.
        redact: names of further environment variables whose values are secrets.
        speed: 1.0: at the recorded pace, 2.0: twice as fast; 0.0: as fast as possible.
    """

    __slots__ = ("bind", "ignore", "match_on", "order", "redact", "speed")

    def __init__(
        self,
        *,
        order: str = "strict",
        ignore: tuple[str, ...] = (),
        match_on: tuple[str, ...] = MATCH_ON,
        bind: Mapping[str, str] | None = None,
        redact: tuple[str, ...] = (),
        speed: float = 0.0,
    ) -> None:
        self.order = order
        self.ignore = ignore
        self.match_on = match_on
        self.bind = bind or {}
        self.redact = redact
        self.speed = speed


def run_replay(path: str, options: Options | None = None) -> int:
    """Be the recorded child on this process' own stdin, stdout and stderr.

    Args:
        path: the cassette.
        options: how.

    Returns:
        The exit code: the recorded one; EXIT_DIFFERS when the session was another one; EXIT_CANNOT_PLAY. Where the
        recorded child was ended by a signal, so is this process, and nothing is returned.
    """
    claim_standard_files()
    options = options or Options()
    outlets: dict[Output, Outlet] = {"out": host_outlet(1), "err": host_outlet(2)}
    try:
        with Reader(path) as reader:
            if os.isatty(_STDIN) and os.isatty(2):
                tell(outlets["err"], f"replaying {path}; what you type is the host's ({reader.header.protocol})")
            stage = Stage(paced=options.speed > 0)
            shell = _Shell(make_player(reader, stage, options), stage, outlets, options.speed)
            status = shell.run()
    except RecorderError as error:
        tell(outlets["err"], str(error))
        return EXIT_CANNOT_PLAY
    return status if isinstance(status, int) else _die(status)


def make_player(reader: Reader, stage: Stage, options: Options, environ: Mapping[str, str] = os.environ) -> Player:
    """The player for a cassette. Raises CassetteError, UsageError."""
    header = reader.header
    dialect = DIALECTS.get(header.protocol)
    if dialect is None:
        known = ", ".join(DIALECTS)
        raise CassetteError(reader.path, 1, f"expected `protocol` to be one of {known}, found {header.protocol!r}")
    bindings = Playing(header.bindings, options.bind, environ.get("HOME", ""))
    calls = Calls()
    framing = FRAMINGS[header.framing]
    voice = Voice(dialect, framing, bindings, calls)
    matcher = Matcher(dialect, bindings, calls, ignore=options.ignore, match_on=options.match_on)
    ear = Ear(dialect, matcher, bindings, calls, redact=_Redaction(options.redact, environ), minted=voice.minted)
    if options.order == "strict":
        return StrictPlayer(reader, ear, voice, stage, framing)
    if options.order == "any":
        from .any_order import AnyOrderPlayer

        return AnyOrderPlayer(reader, ear, voice, stage, framing)
    raise UsageError(f"--order {options.order}: expected one of {', '.join(ORDERS)}")


class _Redaction:
    """What a recorder would take out here, made when the first message has to be looked at that closely."""

    def __init__(self, names: tuple[str, ...], environ: Mapping[str, str]) -> None:
        self._names = names
        self._environ = environ

    def __call__(self, data: bytes) -> bytes:
        return self._redact(data)

    def _redact(self, data: bytes) -> bytes:
        from ext_sdk.redaction import Redactor, secret_variables

        secrets = secret_variables(self._environ)
        secrets.update({f"env.{name}": self._environ[name] for name in self._names if name in self._environ})
        self._redact = Redactor(secrets, rules=True).redact  # type: ignore[method-assign]
        return self._redact(data)


class _Shell:
    """Does what a player says, and tells it what happens, on real files.

    Args:
        player: the child's part.
        stage: where the player says what to do.
        outlets: stdout and stderr.
        speed: see Options.
    """

    def __init__(self, player: Player, stage: Stage, outlets: Mapping[Output, Outlet], speed: float) -> None:
        self._player = player
        self._stage = stage
        self._speed = speed
        self._outlets = dict(outlets)
        self._queues: dict[Output, list[bytes | None]] = {"out": [], "err": []}  # None: close
        self._later: list[tuple[float, Action]] = []  # what is to be done at a time of its own
        self._status: int | str | None = None
        self._open = True  # the host may still write

    def run(self) -> int | str:
        """Play to the end: the exit code, or the name of the signal to end by."""
        signals = Signals()
        signals.catch()
        waiting = poll()
        waiting.register(signals.fd, POLLIN)
        try:
            try:
                self._player.start()
                self._take()
                while self._status is None:
                    self._wait(waiting, signals)
            except RecorderError as error:
                self._status = self._give_up(error)
            while self._backlog():
                self._wait(waiting, signals)
        finally:
            signals.close()
        return self._status

    def _give_up(self, error: RecorderError) -> int:
        """The cassette is broken from here on: what was played so far goes out, then the reason."""
        self._later += [(0.0, action) for action in self._stage.take()]
        for _, action in self._later:
            self._do(action)
        self._later = []
        self._queues["err"].append(f"ext-recorder: {error}\n".encode("utf-8", "backslashreplace"))
        return EXIT_CANNOT_PLAY

    def _wait(self, waiting: poll, signals: Signals) -> None:
        listening = self._open and self._status is None and not self._player.more and self._backlog() < _BACKLOG_BYTES
        if listening:
            waiting.register(_STDIN, POLLIN)
        for stream, queue in self._queues.items():
            if queue:
                waiting.register(self._outlets[stream].fd, POLLOUT)
        ready = {fd for fd, _ in waiting.poll(self._patience())}
        if signals.fd in ready:
            for number, _ in signals.take():
                self._player.receive_signal(signal_name(number))
        if listening:
            waiting.unregister(_STDIN)
            if _STDIN in ready:
                self._listen()
        for stream, queue in self._queues.items():
            if queue:
                waiting.unregister(self._outlets[stream].fd)
        self._take()

    def _listen(self) -> None:
        try:
            data = os.read(_STDIN, _READ_BYTES)
        except OSError:  # a closed file, a terminal that is gone
            data = b""
        if data:
            self._player.receive_data(data)
        else:
            self._open = False
            self._player.receive_eof()

    def _take(self) -> None:
        """Do what the player has said, and what is due by now."""
        while True:
            actions = self._stage.take()
            for action in self._due(actions) if self._speed else actions:
                self._do(action)
            for stream in self._queues:
                self._send(stream)
            if not self._player.more or self._later or self._backlog() > _BACKLOG_BYTES:
                break
            self._player.proceed()

    def _do(self, action: Action) -> None:
        if isinstance(action, Write):
            self._queues[action.stream].append(action.data)
        elif isinstance(action, Close):
            self._queues[action.stream].append(None)
        else:
            self._status = action.status

    def _due(self, actions: list[Action]) -> list[Action]:
        """At a pace: keep each action until its time has come."""
        now = monotonic()
        for action in actions:
            earliest = self._later[-1][0] if self._later else now
            self._later.append((max(earliest, now + action.after / self._speed), action))
        due = [action for at, action in self._later if at <= now]
        del self._later[: len(due)]
        return due

    def _patience(self) -> float | None:
        """Milliseconds until something is due."""
        return max(0.0, (self._later[0][0] - monotonic()) * 1000 + 1) if self._later else None

    def _backlog(self) -> int:
        return sum(len(data) + 1 if data is not None else 1 for queue in self._queues.values() for data in queue)

    def _send(self, stream: Output) -> None:
        queue, outlet = self._queues[stream], self._outlets[stream]
        while queue:
            data = queue[0]
            if data is None:
                outlet.close()
                queue.pop(0)
                continue
            try:
                sent = outlet.send(data)
            except BlockingIOError:
                return
            except OSError:  # nobody reads any more
                queue.clear()
                return
            if sent < len(data):
                queue[0] = data[sent:]
                return
            queue.pop(0)


def _die(name: str) -> int:
    """End as the recorded child did: by a signal, without a core file."""
    import resource
    import signal

    number = _number(name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    sys.stdout = sys.stderr = None  # nothing of ours is left in them
    os.kill(os.getpid(), number)
    return 128 + number  # a signal that ends nobody, by a shell's convention


def _number(name: str) -> int:
    import signal

    base, _, offset = name.partition("+")
    number = getattr(signal, base, None)
    if not isinstance(number, int):
        raise UsageError(f"the recorded child was ended by {name}, a signal that this system does not have")
    return number + int(offset or 0)
