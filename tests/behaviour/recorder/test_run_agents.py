"""Agents that edit files: recorded and replayed as stand-ins, with the same files for the checks after them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

# An ACP agent that edits the files of its session, in two turns.
AGENT = r"""
import json, os, shutil, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def first():
    with open("notes.txt", "r+") as file:
        text = file.read()
        file.seek(0)
        file.write(text.replace("two", "TWO") + f"work in {os.getcwd()}\n")
    os.makedirs("new/deep")
    os.makedirs("empty")
    open("new/deep/data.bin", "wb").write(bytes(range(256)) * 20)
    open("new/run.sh", "w").write("#!/bin/sh\necho hi\n")
    os.chmod("new/run.sh", 0o755)
    os.rename("old name.txt", "new/räume.txt")
    os.unlink("gone.txt")
    os.symlink("notes.txt", "link")
    open("token.txt", "w").write("api_key: sk-ant-api03-" + "x" * 40 + "\n")
    os.chmod("tool", 0o755)
    os.unlink("tool2"); os.mkdir("tool2"); open("tool2/in", "w").write("x")

def second():
    open("notes.txt", "a").write("no end")
    shutil.rmtree("gone")
    with open("blob", "r+b") as file:
        file.seek(5)
        file.write(b"changed")
    os.unlink("link"); os.symlink("new", "link")

turns = [first, second]
for line in sys.stdin:
    message = json.loads(line)
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}}
    elif message["method"] == "session/new":
        os.chdir(message["params"]["cwd"])
        result = {"sessionId": os.urandom(8).hex()}
        own = result["sessionId"]
    elif message["method"] == "session/prompt":
        turns.pop(0)()
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}
        send(method="session/update", params={"sessionId": own, "update": update})
        result = {"stopReason": "end_turn"}
    send(id=message["id"], result=result)
"""

# Prepares a new folder, runs the agent in it, kills it right after its last response, and prints the files.
HOST = r"""
import hashlib, json, os, pathlib, signal, subprocess, sys, tempfile, yaml

agent = yaml.safe_load(open(sys.argv[1]))["acp"]
root = pathlib.Path(tempfile.mkdtemp(dir="."), "work").resolve()
root.mkdir()
(root / "notes.txt").write_text(os.environ.get("NOTES", "one\ntwo\nthree\n"))
(root / "old name.txt").write_text("stays the same\n")
(root / "gone.txt").write_text("a\nb\n")
(root / "gone").mkdir()
(root / "gone" / "x").write_text("x")
(root / "tool").write_text("#!/bin/sh\n")
(root / "tool2").write_text("")
(root / "blob").write_bytes(b"\0" * 100)

child = subprocess.Popen([agent["cmd"], *agent.get("args", [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         start_new_session=True)

def ask(number, method, **params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    child.stdin.write(json.dumps(message).encode() + b"\n")
    child.stdin.flush()
    while line := child.stdout.readline():
        answer = json.loads(line)
        if "id" in answer:
            return answer.get("result") or answer
    print("the agent has ended")
    sys.exit(1)

def show(step):
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_symlink():
            print(step, name, "->", os.readlink(path))
        elif path.is_dir():
            print(step, name)
        else:
            content = path.read_bytes().replace(str(root).encode(), b"ROOT")
            print(step, name, oct(path.stat().st_mode & 0o100), hashlib.sha1(content).hexdigest(), len(content))

ask(1, "initialize", protocolVersion=1)
session = ask(2, "session/new", cwd=str(root), mcpServers=[])["sessionId"]
print(ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "first"}]))
show(1)
(root / "of-the-host.txt").write_text("between the turns\n")
print(ask(4, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "second"}]))
os.killpg(child.pid, signal.SIGKILL)
child.wait()
show(2)
"""


class Run:
    """Result of a run."""

    def __init__(self, folder: Path, *words: str, **environ: str) -> None:
        done = subprocess.run(
            [*RECORDER, "run", *words, "--", sys.executable, "host.py", "agent.yaml"],
            cwd=folder,
            env={**os.environ, **environ},
            capture_output=True,
            timeout=PATIENCE_S,
            text=True,
            check=False,
        )
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with a host, an agent, and its configuration."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "host.py").write_text(HOST)
    acp = {"cmd": sys.executable, "args": [str(tmp_path / "agent.py")]}
    (tmp_path / "agent.yaml").write_text(json.dumps({"kind": "Agent", "metadata": {"name": "editor"}, "acp": acp}))
    return tmp_path


def test_a_stand_in_leaves_the_files_that_the_agent_left(project: Path) -> None:
    recorded = Run(project, "--wrap", "agent.yaml", "rec")
    assert recorded.code == 0, recorded.err
    assert "1 new/run.sh 0o100" in recorded.out
    assert "1 empty\n" in recorded.out
    assert "2 link -> new\n" in recorded.out
    patch = (project / "rec" / "children" / "editor.patch").read_text()
    assert "+work in /tmp/cwd\n" in patch
    assert "rename to new/räume.txt" in patch
    assert "sk-ant-api03" not in patch
    assert "of-the-host" not in patch
    assert str(project) not in patch
    assert "changes that are not recorded: token.txt: its secrets" in recorded.err
    secret = [line for line in recorded.out.splitlines() if "token.txt" in line]
    expected = [line for line in recorded.out.splitlines() if line not in secret]
    real = Run(project, "--real", "editor", "rec")
    assert (real.code, real.out) == (0, recorded.out), real.err
    (project / "agent.py").unlink()
    replayed = Run(project, "--mode", "none", "rec")
    assert replayed.code == 0, replayed.err
    assert [line for line in replayed.out.splitlines() if "token.txt" not in line] == expected


def test_other_files_than_the_recorded_ones_are_an_error_at_once(project: Path) -> None:
    assert Run(project, "--wrap", "agent.yaml", "rec").code == 0
    replayed = Run(project, "rec", NOTES="one\n2\nthree\n")
    assert replayed.code == 3
    assert replayed.out == "the agent has ended\n"
    problem = (
        "notes.txt: line 2: expected 'two\\n', found '2\\n'; begin with the recorded files, run the child with --real"
    )
    assert problem in replayed.err
    (project / "rec" / "children" / "editor.patch").unlink()
    replayed = Run(project, "rec")
    assert replayed.code == 3
    assert "editor.patch: cannot be read: No such file or directory; " in replayed.err
