"""Agents that edit files: recorded and replayed as stand-ins, with the same files for the checks after them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S
from tests.support.http_stub import Stub
from tests.support.model_api import stream
from tests.support.program_packages import coding_agent
from tests.support.recorder_process import RECORDER
from tests.support.run_recordings import Recording, run_recorder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http_stub import Asked, Handler

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


COMMAND = ("--", sys.executable, "host.py", "agent.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with a host, an agent, and its configuration."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "host.py").write_text(HOST)
    acp = {"cmd": sys.executable, "args": [str(tmp_path / "agent.py")]}
    (tmp_path / "agent.yaml").write_text(json.dumps({"kind": "Agent", "metadata": {"name": "editor"}, "acp": acp}))
    return tmp_path


def test_a_stand_in_leaves_the_files_that_the_agent_left(project: Path) -> None:
    recorded = run_recorder(project, "--wrap", "agent.yaml", "rec", *COMMAND)
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
    real = run_recorder(project, "--real", "editor", "rec", *COMMAND)
    assert (real.code, real.out) == (0, recorded.out), real.err
    (project / "agent.py").unlink()
    replayed = run_recorder(project, "--mode", "none", "rec", *COMMAND)
    assert replayed.code == 0, replayed.err
    assert [line for line in replayed.out.splitlines() if "token.txt" not in line] == expected


def test_other_files_than_the_recorded_ones_are_an_error_at_once(project: Path) -> None:
    assert run_recorder(project, "--wrap", "agent.yaml", "rec", *COMMAND).code == 0
    replayed = run_recorder(project, "rec", *COMMAND, NOTES="one\n2\nthree\n")
    assert replayed.code == 3
    assert replayed.out == "the agent has ended\n"
    problem = (
        "notes.txt: line 2: expected 'two\\n', found '2\\n'; begin with the recorded files, run the child with --real"
    )
    assert problem in replayed.err
    (project / "rec" / "children" / "editor.patch").unlink()
    replayed = run_recorder(project, "rec", *COMMAND)
    assert replayed.code == 3
    assert "editor.patch: cannot be read: No such file or directory; " in replayed.err


# A program without a protocol, which changes its working directory.
SCRIPT = "echo begin; printf 'new\\n' > made; rm given; echo end; printf 'key sk-ant-api03-%040d' 7 > after"


def test_a_script_is_replayed_with_its_files(tmp_path: Path) -> None:
    def call(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
        folder.mkdir(exist_ok=True)
        (folder / "given").touch()
        command = [*RECORDER, *words]
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=PATIENCE_S, check=False)

    one, other = tmp_path / "one", tmp_path / "other"
    recorded = call(one, "record", "--files", "--no-redact", "s.yaml", "--", "sh", "-c", SCRIPT)
    assert (recorded.returncode, recorded.stdout) == (0, b"begin\nend\n"), recorded.stderr
    assert b"key sk-ant-api03" in (one / "s.patch").read_bytes()
    scrubbed = call(one, "scrub", "s.yaml")
    assert b"s.patch: replaced" in scrubbed.stdout, scrubbed
    assert b"key sk-ant-api03" not in (one / "s.patch").read_bytes()
    assert call(one, "trim", "s.yaml", "-o", "part.yaml").returncode == 0
    replayed = call(other, "replay", "../one/part.yaml")
    assert (replayed.returncode, replayed.stdout) == (0, b"begin\nend\n"), replayed.stderr
    assert sorted(path.name for path in other.iterdir()) == ["after", "made"]
    assert (other / "made").read_text() == "new\n"
    (other / "made").write_text("of the user")
    refused = call(other, "replay", "../one/s.yaml")
    assert refused.returncode == 2
    problem = b"patch 1 in s.patch: made: it exists already, with other content; begin with the recorded files"
    assert problem in refused.stderr
    assert (other / "given").exists()
    wrong = call(one, "record", "--files", "--listen", "tcp:127.0.0.1:0", "--connect", "tcp:127.0.0.1:1", "t.yaml")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        b"ext-recorder: --files is for a child on stdio, not for a socket server: omit it\n",
    )


# Calls of tools that a model makes one after the other, and its last words.
CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("read", {"path": "notes.txt"}),
    ("edit", {"path": "notes.txt", "edits": [{"oldText": "two", "newText": "TWO"}]}),
    ("write", {"path": "new/greeting.txt", "content": "Hello\n"}),
    ("bash", {"command": "chmod +x new/greeting.txt && mv old.txt new/ && rm gone.txt"}),
)


def scripted_model(handler: Handler, asked: Asked) -> None:
    """Stream the next call of a tool, in pieces; after the last one, a text with a random word."""
    request = json.loads(asked.body)
    count = sum(message["role"] == "tool" for message in request["messages"])
    base = {"id": f"chatcmpl-{os.urandom(4).hex()}", "created": 1, "object": "chat.completion.chunk", "model": "m"}
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    if count < len(CALLS):
        name, arguments = CALLS[count]
        text = json.dumps(arguments)
        function: dict[str, object] = {"name": name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": 0, "id": f"call_{os.urandom(4).hex()}", "function": function}]})
        pieces = (text[at : at + 7] for at in range(0, len(text), 7))
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    else:
        deltas += [{"content": "All is done: "}, {"content": os.urandom(8).hex()}]
    events = [("", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    reason = "tool_calls" if count < len(CALLS) else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    events.append(("", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}))
    stream(handler, [*events, ("", "[DONE]")])


def files_of(folder: Path) -> dict[str, tuple[bytes, bool]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file()
    }


def prepare(work: Path) -> None:
    for path in sorted(work.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    work.mkdir(exist_ok=True)
    for name in ("notes.txt", "old.txt", "gone.txt"):
        (work / name).write_text("one\ntwo\nthree\n")


def test_a_real_coding_agent_does_its_task_again_without_its_model(tmp_path: Path) -> None:
    program = coding_agent()
    work, settings = tmp_path / "work", tmp_path / "home" / ".pi" / "agent"
    settings.mkdir(parents=True)
    prepare(work)
    words = ["--provider", "scripted", "--model", "m", "--no-session", "-p", "Change the notes."]
    command = ["sh", "-c", 'cd work && exec node "$@"', "sh", str(program), *words]
    environ = {"HOME": str(tmp_path / "home"), "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"}
    with Stub() as server:
        server.routes["/v1/chat/completions"] = scripted_model
        provider = {
            "baseUrl": f"{server.origin}/v1",
            "api": "openai-completions",
            "apiKey": "k-scripted-" + "7" * 20,
            "models": [{"id": "m"}],
        }
        (settings / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        recording = Recording(tmp_path, command, **environ)
        recorded = recording.record()
        requests = len(server.asked)
    assert "All is done: " in recorded.out
    assert requests == len(CALLS) + 1
    expected = {
        "notes.txt": (b"one\nTWO\nthree\n", False),
        "new/greeting.txt": (b"Hello\n", True),
        "new/old.txt": (b"one\ntwo\nthree\n", False),
    }
    assert files_of(work) == expected
    assert "k-scripted-" not in recording.traffic
    prepare(work)
    replayed = recording.check_replay()
    assert files_of(work) == expected
    assert f"{requests} of {requests} requests, {requests} model calls" in replayed.err
