"""Sessions of ext-shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassettes.session import INITIALIZE, SHUTDOWN, Session, execute

if TYPE_CHECKING:
    from cassettes.session import Step

AGENT = {
    "prompt": "The program greet.py misspells its greeting. Fix it.",
    "output": "I fixed greet.py: Helo is Hello now.",
}

_STEPS: dict[str, list[Step]] = {
    # A whole eval task: a program is prepared, an agent (the second write) corrects it, its work is checked.
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

SESSIONS = {name: Session(steps) for name, steps in _STEPS.items()}
