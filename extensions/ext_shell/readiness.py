"""When a process in the background is ready: conditions, and the wait for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.expect.pattern import problem

from .arguments import Codes, Part, codes_of
from .conditions import Exited, FileThere, HttpAnswers, LineLogged, PortOpen, local_url
from .present import LineLog
from .processes import STREAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_sdk.expect import Searcher

    from .conditions import Condition
    from .processes import Process

FIRST_PAUSE = 0.02  # seconds between two looks; each pause is half as long again as the one before
LONGEST_PAUSE = 0.25  # seconds
FIELDS = ("port", "log_line", "file", "http", "exit")
GOOD_STATUS = tuple(range(200, 400))

Port = Annotated[int, Meta(ge=1, le=65535)]


class Ready(ext_sdk.Args):
    """When a process is ready: when all that is given holds. It is a failure when the process ends before."""

    port: Annotated[
        bool | Port | UnsetType,
        Meta(description="This TCP port of this machine takes connections; true: the process's own `port`"),
    ] = UNSET
    log_line: Annotated[
        Part | UnsetType,
        Meta(description="This regular expression (Python's re) is found in a line of its output"),
    ] = UNSET
    file: Annotated[Part | UnsetType, Meta(description="This file or directory exists in the workdir")] = UNSET
    http: Annotated[
        Part | UnsetType,
        Meta(description="GET of this URL on this machine, or of a path at the process's own `port`, is answered"),
    ] = UNSET
    http_status: Annotated[
        Codes | UnsetType, Meta(description="With this status, or one of these; 200 to 399 if left out")
    ] = UNSET
    exit: Annotated[
        Codes | UnsetType,
        Meta(
            description="The command ends with this exit code, or one of these. What it leaves running, such as a "
            "daemon, runs until `stop`; `port`, `logLine`, `file` and `http` are of that then"
        ),
    ] = UNSET

    def __post_init__(self) -> None:
        given = [name for name in FIELDS if getattr(self, name) is not UNSET]
        if not given or (given == ["port"] and self.port is False):
            raise ValueError("this waits for nothing; give at least one of port, logLine, file, http and exit")
        if self.log_line is not UNSET and (wrong := problem(self.log_line)):
            raise ValueError(f"logLine: {self.log_line!r} is {wrong}")
        if self.http_status is not UNSET and self.http is UNSET:
            raise ValueError("httpStatus is for http")


def conditions_of(ready: Ready, process: Process, context: ext_sdk.Context, searcher: Searcher) -> list[Condition]:
    """The conditions that `ready` stands for. Raises InvalidArgs for one that can't be."""
    conditions: list[Condition] = []
    if ready.port is not UNSET and ready.port is not False:
        conditions.append(PortOpen(_port(ready.port, process.port)))
    if ready.log_line is not UNSET:
        conditions.append(LineLogged(ready.log_line, process, searcher))
    if ready.file is not UNSET:
        conditions.append(FileThere(ready.file, context))
    if ready.http is not UNSET:
        good = GOOD_STATUS if ready.http_status is UNSET else codes_of(ready.http_status)
        conditions.append(HttpAnswers(local_url(ready.http, process.port), good))
    if ready.exit is not UNSET:
        conditions.append(Exited(codes_of(ready.exit), process))
    return conditions


def _port(wanted: int, own: int | None) -> int:  # a bool is an int
    if wanted is not True:
        return wanted
    if own is None:
        raise ext_sdk.InvalidArgs(
            "ready.port", "true stands for the process's `port`, which is not given; name a number"
        )
    return own


def await_ready(
    process: Process, conditions: Sequence[Condition], context: ext_sdk.Context, *, log: bool = False
) -> None:
    """Wait until all conditions have held. The first look is at once, the last one at the deadline.

    Args:
        process: whose conditions they are.
        conditions: see conditions_of.
        context: of the call.
        log: whether to log the lines that it writes meanwhile.

    Raises:
        OperationFailed: it ended before, or the time is up; the text says what was missing.
    """
    waiting = list(conditions)
    logs = _Logs(process, context) if log else None
    pause, last = FIRST_PAUSE, False
    while True:
        over = process.ended if process.kept else process.exited
        waiting = [condition for condition in waiting if not condition.holds()]
        if logs:
            logs.send()
        if not waiting:
            return
        if over:
            raise _not_ready(process, waiting, _why_over(process))
        if last:
            raise _not_ready(process, waiting, f"it was not ready in time ({process.attempt().duration})")
        last = not context.deadline.wait(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


class _Logs:
    """The lines that a process writes, as far as they have not been logged yet."""

    def __init__(self, process: Process, context: ext_sdk.Context) -> None:
        self._process = process
        self._logs = {stream: LineLog(context.log, context.secrets, stream) for stream in STREAMS}
        self._offsets = dict.fromkeys(STREAMS, 0)

    def send(self) -> None:
        """Log what is new."""
        for stream, log in self._logs.items():
            data, self._offsets[stream] = self._process.written_since(stream, self._offsets[stream])
            log.feed(data)


def _why_over(process: Process) -> str:
    """Return why a process of which nothing runs any more can't get ready."""
    status = process.attempt().status
    why = f"it ended before it was ready: {status or 'its supervisor was killed'}"
    if process.kept:
        return f"{why}, and nothing that it started runs any more"
    if status is not None and status.code == 0:
        return f"{why}; for a program that goes into the background by itself, add `exit: 0`"
    return why


def _not_ready(process: Process, waiting: Sequence[Condition], why: str) -> ext_sdk.OperationFailed:
    missing = "; ".join(f"waited for {condition.what} (last: {condition.last()})" for condition in waiting)
    return ext_sdk.OperationFailed(f"{process.name}: {why}", error=f"{process.name}: {why}; {missing}")
