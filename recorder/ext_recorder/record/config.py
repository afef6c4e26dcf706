"""Record modes: the actions for an existing and for a missing cassette, with the names that VCR libraries use."""

from __future__ import annotations

import os

from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from ext_recorder.cassette.writer import Writer
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.messages.redaction import Redaction

    Act = Literal["record", "replay", "go-on", "refuse"]


class Mode:
    """A record mode.

    Attributes:
        there: action if the cassette exists.
        missing: action if it does not.
        help: both actions in one line.
    """

    __slots__ = ("help", "missing", "there")

    def __init__(self, *, there: Act, missing: Act, help: str) -> None:
        self.there = there
        self.missing = missing
        self.help = help


MODES = {
    "once": Mode(there="replay", missing="record", help="replay the cassette if it exists, otherwise record it"),
    "none": Mode(there="replay", missing="refuse", help="replay only"),
    "new_episodes": Mode(
        there="go-on", missing="record", help="replay, and record requests without a recorded response"
    ),
    "all": Mode(
        there="record", missing="record", help="record again; the old cassette stays until the new one is complete"
    ),
}


def known(mode: str) -> Mode:
    """Return the mode of this name. Raises UsageError if it does not exist."""
    if mode in MODES:
        return MODES[mode]
    names = ", ".join(MODES)
    raise UsageError(f"--mode {mode}: expected one of {names}")


def act(mode: str, cassette: str) -> Literal["record", "replay", "go-on"]:
    """Return the action of a mode.

    Args:
        mode: its name.
        cassette: the file.

    Raises:
        UsageError: the mode is unknown; or the cassette is missing, and the mode does not record.
    """
    chosen = known(mode)
    result = chosen.there if os.path.exists(cassette) else chosen.missing  # noqa: PTH110 - pathlib costs 5 ms
    if result == "refuse":
        raise UsageError(f"{cassette}: no such cassette, and --mode {mode} does not record; use --mode once")
    return result


class ResumeFrom:
    """Cassette to resume from: its events are kept, and the new ones appended.

    Attributes:
        path: the cassette.
        upto: its events above this line are kept; 0 for all of them, without the end.
        early: lines below it that are kept as well, because they were replayed early.
        bindings: paths and their placeholders.
        lines: number of lines of the new cassette that were copied from it, with the header.
    """

    __slots__ = ("bindings", "early", "lines", "path", "upto")

    def __init__(self, path: str, upto: int, early: frozenset[int], bindings: ReplayBindings) -> None:
        self.path = path
        self.early = early
        self.upto = upto
        self.lines = 0
        self.bindings = bindings

    def copy_to(self, writer: Writer) -> float:
        """Append the events that are kept to a new cassette. Return the time of the last one, in seconds."""
        from ext_recorder.cassette.events import Data, event_line
        from ext_recorder.cassette.reader import Reader

        last_time, last_early = 0.0, max(self.early, default=0)
        with Reader(self.path) as reader:
            for event in reader:
                if event.kind == "files":
                    raise UsageError(
                        f"{self.path}: has changed files; --mode new_episodes does not keep them, --mode all does"
                    )
                if self.upto and reader.line >= self.upto and reader.line not in self.early:
                    if reader.line > last_early:
                        break
                    continue
                if isinstance(event, Data) or event.kind in {"signal", "omitted"}:
                    writer.append([event_line(event)])
                    self.lines += 1
                    last_time = event.time
        return last_time


class RecordingConfig:
    """Configuration of one recording.

    Attributes:
        name: the cassette, as it was given.
        cassette: the file that it becomes: the same, or where a symbolic link of that name leads.
        partial: the file while it is being written.
        command: what is run, with its arguments; () where the server is there already.
        protocol: the name of a dialect.
        framing: the name of a framing; "" for the dialect's own.
        bind: further bindings, name to value of this machine.
        listen: where clients of a socket server connect; "" for a child on stdio.
        connect: where that server listens.
        match_env: names of the environment variables that are part of what is recorded, kept with their values.
        base: what is recorded on; None: nothing.
        http: the HTTP traffic of the child is recorded, too.
        headed: messages have header lines, see `event_encoder.HeadedLines`.
        redact: what is redacted; None: what looks secret.
        files: changed files are recorded: "cwd", those of the working directory; "sessions", those of ACP sessions.
        on_start: is called with the zero of the cassette's clock, on the monotonic clock.

    Raises:
        UsageError: a variable to be redacted is missing, or the cassette has the name of something else than a file.
    """

    __slots__ = (
        "base",
        "bind",
        "cassette",
        "command",
        "connect",
        "files",
        "framing",
        "headed",
        "http",
        "listen",
        "match_env",
        "name",
        "on_start",
        "partial",
        "protocol",
        "redact",
    )

    def __init__(
        self,
        cassette: str,
        command: tuple[str, ...],
        *,
        protocol: str,
        framing: str = "",
        bind: Mapping[str, str] | None = None,
        redact: Redaction | None = None,
        listen: str = "",
        connect: str = "",
        match_env: tuple[str, ...] = (),
        http: bool = False,
        files: str = "",
        on_start: Callable[[float], None] | None = None,
        headed: bool = False,
    ) -> None:
        from ext_recorder.cassette.paths import target_of  # every replay imports this module for its modes

        self.name = cassette
        self.cassette = target_of(cassette)
        self.partial = f"{self.cassette}.partial"
        self.command = command
        self.protocol = protocol
        self.framing = framing
        self.bind = bind or {}
        self.base: ResumeFrom | None = None
        self.http = http
        self.files = files
        self.on_start = on_start
        self.headed = headed
        self.listen = listen
        self.connect = connect
        self.match_env = match_env
        if redact:
            redact.require()
        self.redact = redact
