"""What `make demo` shows: an extension runs, its session is recorded, and the recording plays without the extension.

Everything here is what a user would do; the commands are printed as one would type them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from examples.host import Host

from ext_sdk.wire import RpcError

if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPTS = Path(sys.executable).parent
RECORDER = str(SCRIPTS / "ext-recorder")
AGENT = {"prompt": "Greet the world from greet.sh", "output": "Done: greet.sh says hello now."}
# One eval task: a file is prepared, the agent (played by a command) works on it, its work is checked, all is removed.
STEPS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("setup", "write-file", {"path": "greet.sh", "content": "echo helo\n"}),
    ("setup", "run", {"command": ["sed", "-i", "s/helo/hello/", "greet.sh"]}),
    ("verify", "run", {"command": ["sh", "greet.sh"], "expect": {"stdout": {"equals": "hello\n"}}}),
    ("verify", "assert-agent", {"output": {"contains": "greet.sh"}}),
    ("cleanup", "remove", {"path": "greet.sh"}),
)
OUT_OF_REACH = {"PATH": "/nonexistent"}  # no ext-shell, and nothing that ext-shell would run


def main() -> int:
    """Play the three acts. Returns 1 where the recording did not play as it was recorded."""
    with tempfile.TemporaryDirectory(prefix="demo-") as directory:
        workdir = Path(directory) / "task"
        workdir.mkdir()
        cassette = str(Path(directory) / "demo.yaml")

        heading("1. An extension runs the steps of a task, and its session is recorded")
        recorded = session([RECORDER, "record", cassette, "--", str(SCRIPTS / "ext-shell")], workdir)

        heading("2. The recording is a text that people can review")
        show(["ext-recorder", "show", cassette])

        heading("3. It plays without the extension: nothing is in PATH now")
        replayed = session([RECORDER, "replay", cassette], workdir, OUT_OF_REACH)
        same = recorded == replayed
        print(f"{len(replayed)} bytes, {'the same as' if same else 'NOT the same as'} those of the extension")

        heading("4. What was never recorded is told, with what differs")
        missed = miss([RECORDER, "replay", cassette], workdir)
    return 0 if same and missed else 1


def session(command: Sequence[str], workdir: Path, environment: dict[str, str] | None = None) -> bytes:
    """Be the host of a whole session; what the extension said."""
    print(f"$ {typed(command)}")
    with Host(command, {**os.environ, **(environment or {})}) as host:
        host.call("initialize", {"protocolVersion": "0.0.1"})
        for step in STEPS:
            result = host.call("execute", request(step, workdir))
            assert isinstance(result, dict)
            mark = "ok    " if result["success"] else "FAILED"
            print(f"  {mark} {step[0]:8} {step[1]:13} {result['message']}")
        host.call("shutdown")
        if code := host.end():
            raise SystemExit(f"{typed(command)} ended with exit code {code}")
        return host.received


def miss(command: Sequence[str], workdir: Path) -> bool:
    """Ask a replay for a step that the recording does not have; whether it said so and failed."""
    with Host(command, {**os.environ, **OUT_OF_REACH}) as host:
        host.call("initialize", {"protocolVersion": "0.0.1"})
        phase, operation, args = STEPS[0]
        try:
            host.call("execute", request((phase, operation, args | {"content": "echo goodbye\n"}), workdir))
        except RpcError as error:
            print(f"  {error}")
            return host.end() != 0
    return False


def request(step: tuple[str, str, dict[str, object]], workdir: Path) -> dict[str, object]:
    """Params of `execute` for a step."""
    phase, operation, args = step
    context: dict[str, object] = {"workdir": str(workdir), "phase": phase}
    if phase == "verify":
        context["agent"] = AGENT
    return {"operation": operation, "args": args, "context": context}


def show(command: Sequence[str]) -> None:
    """Run a command in sight."""
    print(f"$ {typed(command)}", flush=True)
    subprocess.run([str(SCRIPTS / command[0]), *command[1:]], check=True)


def heading(text: str) -> None:
    """A title, bold on a terminal."""
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{text}{plain}", flush=True)


def typed(command: Sequence[str]) -> str:
    """A command as a user would type it: programs by name."""
    return shlex.join(Path(word).name if Path(word).parent == SCRIPTS else word for word in command)


if __name__ == "__main__":
    sys.exit(main())
