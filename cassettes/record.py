"""Record the cassettes of this folder anew: `make cassettes`, or `make cassettes ARGS=NAME`.

Each session is told here as a host would send it; the extension is the real one, run under `ext-recorder record`. A
cassette is a test (it is replayed byte for byte) and an example, so record again only when a session should change, and
review what changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.examples.host import Host
from ext_sdk.wire import Request, encode

Step = tuple[str, dict[str, object]]

FOLDER = Path(__file__).parent
BIN = Path(sys.executable).parent
INITIALIZE: Step = ("initialize", {"protocolVersion": "0.0.1"})
SHUTDOWN: Step = ("shutdown", {})
AGENT = {
    "prompt": "The program greet.py misspells its greeting. Fix it.",
    "output": "I fixed greet.py: Helo is Hello now.",
}


def execute(operation: str, args: dict[str, object], *, phase: str = "setup", **context: object) -> Step:
    """A request to run an operation in the session's workdir."""
    return "execute", {
        "operation": operation,
        "args": args,
        "context": {"workdir": "{workdir}", "phase": phase} | context,
    }


SESSIONS: dict[str, list[Step]] = {
    # A whole eval task: a program is prepared, an agent (played by the second write) mends it, its work is checked.
    "shell/eval-task": [
        INITIALIZE,
        execute("write-file", {"path": "greet.py", "content": 'print("Helo, world")\n'}),
        execute(
            "run",
            {
                "command": ["python3", "greet.py"],
                "expect": {"stdout": "Helo, world"},
                "capture": {"text": {}},
                "as": "before",
            },
        ),
        execute("start", {"name": "server", "script": "echo ready; exec sleep 60", "ready": {"logLine": "ready"}}),
        execute("write-file", {"path": "greet.py", "content": 'print("Hello, world")\n'}),
        execute(
            "run",
            {"command": ["python3", "greet.py"], "timeout": "10s", "expect": {"exitCode": 0, "stdout": "Hello, world"}},
            phase="verify",
            agent=AGENT,
        ),
        execute("run", {"command": ["echo", "it was: ${before.text}"]}, phase="verify", agent=AGENT),
        execute("assert-file", {"path": "greet.py", "content": {"contains": "Hello"}}, phase="verify", agent=AGENT),
        execute("assert-agent", {"output": {"contains": "greet.py"}}, phase="verify", agent=AGENT),
        execute("stop", {"name": "server"}, phase="cleanup"),
        execute("remove", {"path": "greet.py"}, phase="cleanup"),
        SHUTDOWN,
    ],
    # Every way to fail that a task's author meets: a result, and the two errors.
    "shell/failing": [
        INITIALIZE,
        execute("run", {"command": ["python3", "-c", "print('4'); raise SystemExit(3)"], "expect": {"stdout": "5"}}),
        execute("assert-file", {"path": "missing.txt"}, phase="verify"),
        execute("assert-agent", {"output": {"contains": "greet.py"}}, phase="verify", agent=AGENT | {"output": "No."}),
        execute("run", {"comand": ["true"]}),
        execute("runn", {"command": ["true"]}),
        SHUTDOWN,
    ],
    "shell/timed-out": [
        INITIALIZE,
        execute("run", {"script": "echo started; sleep 60", "timeout": "500ms"}),
        SHUTDOWN,
    ],
    "shell/one-shot": [execute("run", {"command": ["echo", "hi"]})],
}


def record(name: str) -> Path:
    """Record one session. Returns the cassette's path."""
    path = FOLDER / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    program = f"ext-{path.parent.name}"
    workdir = Path(tempfile.mkdtemp())
    environment = {"PATH": f"{BIN}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    command = [str(BIN / "ext-recorder"), "record", "--mode", "all", str(path), "--", program]
    told = [(method, in_workdir(params, str(workdir))) for method, params in SESSIONS[name]]
    try:
        code = _converse(command, environment, told) if len(told) > 1 else _pipe(command, environment, *told[0])
    finally:
        shutil.rmtree(workdir)
    if code != 0:
        raise SystemExit(f"{name}: the extension ended with exit code {code}")
    return path


def _converse(command: list[str], environment: dict[str, str], requests: list[tuple[str, object]]) -> int:
    """Be the host of a session. Returns the exit code."""
    with Host(command, environment) as host:
        for method, params in requests:
            host.try_call(method, params)
        return host.end()


def _pipe(command: list[str], environment: dict[str, str], method: str, params: object) -> int:
    """Use an extension for one shot, as `echo … | ext-shell` does: its input ends at once. Returns the exit code."""
    line = encode(Request(1, method, params)) + b"\n"
    return subprocess.run(command, input=line, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


def in_workdir(value: object, workdir: str) -> object:
    """Put the live workdir where the session says {workdir}."""
    if isinstance(value, dict):
        return {name: in_workdir(item, workdir) for name, item in value.items()}
    return workdir if value == "{workdir}" else value


def main(names: list[str]) -> int:
    """See the module."""
    for name in names or SESSIONS:
        if name not in SESSIONS:
            print(f"{name}: no such session; there are {', '.join(SESSIONS)}", file=sys.stderr)
            return 2
        path = record(name)
        shown = subprocess.run([BIN / "ext-recorder", "show", path], capture_output=True, text=True, check=True)
        print(f"{path}: {len(shown.stdout.splitlines())} lines")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
