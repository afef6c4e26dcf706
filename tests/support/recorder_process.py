"""Recorders as real processes around real children, and the cassettes that they write."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data, Event, Mark
from ext_recorder.cassette.reader import Reader
from tests.support.host import PATIENCE_S, HostProcess, Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RECORDER = (sys.executable, "-P", "-m", "ext_recorder")


def python(program: str) -> list[str]:
    """The command of a child that is a few lines of Python."""
    return [sys.executable, "-S", "-E", "-c", program]


ECHO = python("import os\nwhile data := os.read(0, 65536):\n    os.write(1, data)")
# Ends by no end of input, and by no signal but SIGKILL.
DEAF = python(
    "import os, signal\n"
    "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n"
    "os.write(1, b'%d\\n' % os.getpid())\n"
    "while True: signal.pause()"
)


def recorder(cassette: Path, child: Sequence[str], *options: str) -> list[str]:
    """The command line that records a child."""
    return [*RECORDER, "record", *options, str(cassette), "--", *child]


def after_headline(err: bytes) -> bytes:
    """Return what a replay wrote on standard error after the line about what is replayed, which has to be there."""
    headline, _, rest = err.partition(b"\n")
    assert headline.startswith(b"ext-recorder: replaying "), headline
    return rest


def patched(command: Sequence[str], *changes: str) -> list[str]:
    """The same command line of the recorder, with some of its constants changed."""
    program = "import sys\nfrom ext_recorder.posix import child\n"
    program += "from ext_recorder.record import note_queue, proxy, writer_process\n" + "\n".join(changes)
    program += "\nfrom ext_recorder.__main__ import main\nsys.exit(main())"
    return [sys.executable, "-P", "-c", program, *command[len(RECORDER) :]]


def run(
    cassette: Path,
    child: Sequence[str],
    *options: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Session:
    """Record a session whose input is known from the start."""
    command = recorder(cassette, child, *options)
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=PATIENCE_S,
        check=False,
    )
    return Session(done.returncode, done.stdout, done.stderr)


def start(cassette: Path, child: Sequence[str], *options: str, env: Mapping[str, str] | None = None) -> HostProcess:
    """Record a session, and be its host step by step."""
    return HostProcess(recorder(cassette, child, *options), env)


def wait_until_gone(pid: int) -> None:
    """Wait for the end of a process that is not a child of ours. A zombie is gone, too."""
    try:
        guard = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        gone = select.poll()
        gone.register(guard, select.POLLIN)
        assert gone.poll(PATIENCE_S * 1000), f"process {pid} is still there"
    finally:
        os.close(guard)


def wait_for(path: Path, content: bytes = b"", times: int = 1) -> None:
    """Wait until a file is there and has this in it, so many times."""
    deadline = time.monotonic() + PATIENCE_S
    pause = select.poll()
    while not path.exists() or path.read_bytes().count(content) < times:
        assert time.monotonic() < deadline, f"{content!r} does not come into {path}"
        pause.poll(5)


def children_of(pid: int) -> list[int]:
    """The process ids of a process' children."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_of(pid: int) -> list[str]:
    """The command line of a process."""
    return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]]


def scribe_of(host: HostProcess) -> int:
    """The process id of a recorder's scribe: the child of the recorder that runs the same program."""
    mine = command_of(host.pid)
    (scribe,) = [pid for pid in children_of(host.pid) if command_of(pid) == mine]
    return scribe


def partial_of(cassette: Path) -> Path:
    """Where a cassette is while its session goes on."""
    return cassette.with_name(cassette.name + ".partial")


def events(cassette: Path) -> list[Event]:
    """All events of a cassette."""
    with Reader(cassette) as reader:
        return list(reader)


def messages(cassette: Path, kind: str) -> list[bytes]:
    """The payloads of one stream."""
    return [event.payload for event in events(cassette) if isinstance(event, Data) and event.kind == kind]


def wire(cassette: Path, kind: str) -> bytes:
    """The bytes of one stream, of a session of lines."""
    data = [event for event in events(cassette) if isinstance(event, Data) and event.kind == kind]
    return b"".join(event.payload if event.raw else event.payload + b"\n" for event in data)


def marks(cassette: Path, *kinds: str) -> list[tuple[str, int | str]]:
    """What happened without bytes: (kind, value)."""
    return [(event.kind, event.value) for event in events(cassette) if isinstance(event, Mark) and event.kind in kinds]
