"""`run --wrap`: children of a command have a cassette each, and are replayed without their programs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import yaml

from ext_recorder.cassette.recording import read_header
from tests.support.raw_server import RawServer, sends
from tests.support.recorder_process import RECORDER
from tests.support.run_recordings import run_recorder

if TYPE_CHECKING:
    from pathlib import Path

# Opens a conversation, whose id is another one each time, and adds the numbers that belong to it.
CHILD = """
import json, os, sys
own = os.urandom(8).hex()
for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params", {})
    if message["method"] == "open":
        result = {"conversation": own}
    else:
        assert params["conversation"] == own
        result = {"conversation": own, "sum": sum(params["of"]), "args": sys.argv[1:]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
# Starts each server twice, in parallel, and sends them different requests; REVERSED: in the other order.
HOST = """
import json, os, signal, subprocess, sys

def start(server):
    env = {"PATH": os.environ["PATH"], **server.get("env", {})} if os.environ.get("STRIPPED") else None
    command = [server["command"], *server.get("args", [])]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

def ask(child, method, **params):
    child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\\n")
    child.stdin.flush()
    answer = json.loads(child.stdout.readline())
    return answer.get("result", answer.get("error"))

config = json.load(open(sys.argv[1].removeprefix("--config=")))
numbers = (2, 1) if os.environ.get("REVERSED") else (1, 2)
for name, server in config["mcpServers"].items():
    children = {number: start(server) for number in numbers}
    opened = {number: ask(child, "open")["conversation"] for number, child in children.items()}
    sums = {number: ask(child, "sum", of=[number], conversation=opened[number]) for number, child in children.items()}
    for number in (1, 2):
        assert sums[number].pop("conversation") == opened[number]
        print(name, number, sums[number])
    for child in children.values():
        if os.environ.get("KILL"):
            child.kill()
        child.stdin.close()
        child.wait()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with a host, a child, and a configuration of two servers."""
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "host.py").write_text(HOST)
    server = {"command": sys.executable, "args": ["child.py", "x"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"sum": server, "add up": server}}))
    return tmp_path


COMMAND = ("rec", "--", sys.executable, "host.py", "--config=mcp.json")
EXPECTED = "".join(f"{name} {n} {{'sum': {n}, 'args': ['x']}}\n" for name in ("sum", "add up") for n in (1, 2))


def header(project: Path) -> dict[str, object]:
    return dict(yaml.safe_load((project / "rec" / "recording.yaml").read_text()))


def test_children_in_parallel_are_replayed_in_another_order_without_their_programs(project: Path) -> None:
    before = (project / "mcp.json").read_text()
    recorded = run_recorder(project, "--wrap", "mcp.json", *COMMAND, STRIPPED="1")
    assert (recorded.code, recorded.out) == (0, EXPECTED), recorded.err
    assert (project / "mcp.json").read_text() == before
    children = header(project)["children"]
    assert isinstance(children, list)
    assert [(child["name"], child["command"][1:]) for child in children] == [
        ("sum", ["child.py", "x"]),
        ("add-up", ["child.py", "x"]),
    ]
    assert sorted(path.name for path in (project / "rec" / "children").iterdir()) == [
        "add-up-2.yaml", "add-up.yaml", "sum-2.yaml", "sum.yaml",
    ]  # fmt: skip
    zeros = [zero for child in read_header(project / "rec").children for zero in child.started]
    assert len(zeros) == 4
    assert all(0 < zero < read_header(project / "rec").seconds for zero in zeros), zeros
    assert max(zeros[:2]) < min(zeros[2:]), "the host starts the second server when the first one has ended"
    assert str(project) not in "".join(path.read_text() for path in (project / "rec").rglob("*.yaml"))
    (project / "child.py").unlink()
    for environ in ({}, {"REVERSED": "1"}, {"STRIPPED": "1"}):
        replayed = run_recorder(project, "--mode", "none", *COMMAND, **environ)
        assert (replayed.code, replayed.out) == (0, EXPECTED), replayed.err
        assert "child sum: 2 of 2 sessions\next-recorder: child add-up: 2 of 2 sessions" in replayed.err


def test_children_are_recorded_and_run_by_choice(project: Path) -> None:
    assert run_recorder(project, "--wrap", "mcp.json", "--only", "sum", *COMMAND).out == EXPECTED
    assert [path.name[:3] for path in (project / "rec" / "children").iterdir()] == ["sum", "sum"]
    assert run_recorder(project, *COMMAND).out == EXPECTED  # the other one runs
    (project / "child.py").write_text(CHILD.replace("sum(params", "7 + sum(params"))
    changed = EXPECTED.replace("'sum': 2", "'sum': 9").replace("'sum': 1", "'sum': 8")
    assert run_recorder(project, *COMMAND).out == "".join(EXPECTED.splitlines(keepends=True)[:2]) + "".join(
        changed.splitlines(keepends=True)[2:]
    )
    real = run_recorder(project, "--real", "sum", *COMMAND)
    assert (real.code, real.out) == (0, changed)
    wrong = run_recorder(project, "--real", "some", *COMMAND)
    assert (wrong.code, wrong.err) == (
        2, "ext-recorder: --real some: no such child; children of this command: add-up, sum\n",
    )  # fmt: skip


def test_a_difference_of_a_child_is_one_of_the_run(project: Path) -> None:
    assert run_recorder(project, "--wrap", "mcp.json", *COMMAND).code == 0
    host = (project / "host.py").read_text()
    (project / "host.py").write_text(host.replace("of=[number]", "of=[number, 5]").replace("sums[number].pop", "str"))
    replayed = run_recorder(project, *COMMAND)
    assert replayed.code == 3, replayed.err
    assert "children/sum.yaml: request sum" in replayed.err or "children/sum-2.yaml: request sum" in replayed.err
    (project / "host.py").write_text(host.replace("for number in numbers}", "for number in (1, 2, 3)}"))
    replayed = run_recorder(project, *COMMAND)
    assert "child sum: started more often than recorded (2 sessions)" in replayed.err


def test_a_host_that_starts_a_child_more_often_than_recorded_is_told_so_at_once(project: Path) -> None:
    assert run_recorder(project, "--wrap", "mcp.json", *COMMAND).code == 0
    asked = "print(ask(start(server), 'initialize')['message'])"  # stdin stays open until the host ends
    (project / "host.py").write_text(f"{HOST}\n{asked}\n")
    replayed = run_recorder(project, "--mode", "none", *COMMAND)
    assert replayed.code == 3
    assert "ext-recorder: child add-up: started more often than recorded (2 sessions); record" in replayed.out


def test_a_replay_has_placeholders_of_the_secret_variables_in_the_recording(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import os, sys, urllib.request\n"
        "headers = {'Authorization': 'Bearer ' + os.environ['MODEL_KEY']}\n"
        "print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers)).read().decode())\n"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Fresh", (Counter,), {})) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        command = ["rec", "--", sys.executable, "agent.py", f"http://127.0.0.1:{server.server_port}/"]
        recorded = run_recorder(tmp_path, *command, MODEL_KEY="k3y-of-the-m0del", UNUSED_TOKEN="an0ther-s3cret")
        server.shutdown()
    assert recorded.code == 0, recorded.err
    written = (tmp_path / "rec" / "recording.yaml").read_text()
    assert read_header(tmp_path / "rec").environment["MODEL_KEY"] == "ext-recorder"
    assert "UNUSED_TOKEN" not in written
    assert "k3y" not in written
    replayed = run_recorder(tmp_path, "--mode", "none", *command)
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err


def test_variables_of_a_recording_run_no_code(tmp_path: Path) -> None:
    program = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
    with RawServer(sends(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")) as server:
        command = ["rec", "--", sys.executable, "-c", program, server.url]
        assert run_recorder(tmp_path, *command).code == 0
    (tmp_path / "rec" / "sitecustomize.py").write_text("print('code of the recording')\n")
    header = tmp_path / "rec" / "recording.yaml"
    header.write_text(header.read_text() + f"environment: {{PYTHONPATH: '{tmp_path / 'rec'}'}}\n")
    for mode in ("none", "new_episodes"):
        replayed = run_recorder(tmp_path, "--mode", mode, *command)
        assert (replayed.code, replayed.out) == (0, "hi\n")
        assert "PYTHONPATH is not set: expected the address of an API" in replayed.err


def test_a_child_that_its_host_kills_is_recorded(project: Path) -> None:
    recorded = run_recorder(project, "--wrap", "mcp.json", *COMMAND, KILL="1")
    assert (recorded.code, recorded.out) == (0, EXPECTED), recorded.err
    assert not list((project / "rec").rglob("*.partial"))
    replayed = run_recorder(project, *COMMAND, KILL="1")
    assert replayed.out == EXPECTED, replayed.err


def test_a_shim_of_the_user_takes_part(project: Path) -> None:
    shim = [
        *RECORDER,
        "shim",
        "--redact",
        "key:x",
        "./shim",
        "elsewhere/{args}-sum.yaml",
        "--",
        sys.executable,
        "child.py",
    ]
    subprocess.run(shim, cwd=project, check=True, capture_output=True)
    (project / "mcp.json").write_text(json.dumps({"mcpServers": {"sum": {"command": "./shim", "args": ["x"]}}}))
    expected = "".join(EXPECTED.splitlines(keepends=True)[:2])
    assert run_recorder(project, *COMMAND).out == expected
    assert not (project / "elsewhere").exists()
    assert sorted(path.name for path in (project / "rec" / "children").iterdir()) == ["sum-2.yaml", "sum.yaml"]
    (project / "child.py").unlink()
    replayed = run_recorder(project, *COMMAND, REVERSED="1")
    assert (replayed.code, replayed.out) == (0, expected), replayed.err
    only = [*RECORDER, "shim", "--mode", "none", "--force", "./shim", "elsewhere/{args}-sum.yaml"]
    subprocess.run(only, cwd=project, check=True, capture_output=True)
    replayed = run_recorder(project, *COMMAND)
    assert (replayed.code, replayed.out) == (0, expected), replayed.err


class Counter(BaseHTTPRequestHandler):
    """Handler that responds with the number of the request."""

    count = 0

    def do_GET(self) -> None:
        type(self).count += 1
        body = str(type(self).count).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


def test_a_child_runs_on_the_replayed_http(project: Path) -> None:
    code = CHILD.replace("sum(params", "int(urllib.request.urlopen(sys.argv[1]).read()) + sum(params")
    (project / "child.py").write_text(code.replace("import json, os", "import json, os, urllib.request"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Counter) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{server.server_port}/n"
        servers = {"sum": {"command": sys.executable, "args": ["child.py", url]}}
        (project / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        recorded = run_recorder(
            project, "--wrap", "mcp.json", *COMMAND, STRIPPED="1"
        )  # even without the variables of a proxy
        server.shutdown()
    assert recorded.out == f"sum 1 {{'sum': 2, 'args': ['{url}']}}\nsum 2 {{'sum': 4, 'args': ['{url}']}}\n", (
        recorded.err
    )
    for options in ((), ("--real", "sum")):
        replayed = run_recorder(project, *options, *COMMAND, STRIPPED="1")
        assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err


# Requests a page unless SKIP is set, and starts the child that requests another one.
ASKING_HOST = """
import json, os, subprocess, sys, urllib.request
server = json.load(open(sys.argv[1]))["mcpServers"]["page"]
if "SKIP" not in os.environ:
    urllib.request.urlopen(sys.argv[2] + "/host").read()
call = '{"jsonrpc": "2.0", "id": 1, "method": "ask"}\\n'
print(subprocess.run([server["command"], *server["args"]], input=call, capture_output=True, text=True).stdout.strip())
"""
ASKED_CHILD = """
import sys, urllib.request
sys.stdin.readline()
body = urllib.request.urlopen(sys.argv[1] + "/child").read().decode()
print('{"jsonrpc": "2.0", "id": 1, "result": ' + body + '}', flush=True)
"""


def test_requests_of_a_replayed_child_are_not_expected_those_of_the_host_are(tmp_path: Path) -> None:
    (tmp_path / "host.py").write_text(ASKING_HOST)
    (tmp_path / "child.py").write_text(ASKED_CHILD)
    with ThreadingHTTPServer(("127.0.0.1", 0), Counter) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{server.server_port}"
        servers = {"page": {"command": sys.executable, "args": ["child.py", url]}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        command = ["rec", "--", sys.executable, "host.py", "mcp.json", url]
        recorded = run_recorder(tmp_path, "--wrap", "mcp.json", *command)
        server.shutdown()
    assert recorded.code == 0, recorded.err
    traffic = yaml.safe_load((tmp_path / "rec" / "traffic.http.yaml").read_text())["interactions"]
    assert [(item["request"]["uri"], item.get("client")) for item in traffic] == [
        (f"{url}/host", None),
        (f"{url}/child", "page"),
    ]
    replayed = run_recorder(tmp_path, *command)
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err
    skipped = run_recorder(tmp_path, *command, SKIP="1")
    assert skipped.code == 3
    assert f"one recorded request was never sent:\next-recorder: rec/traffic.http.yaml:   GET {url}/host" in skipped.err
    assert "/child" not in skipped.err
    both = run_recorder(tmp_path, "--real", "page", *command, SKIP="1")
    assert both.out == recorded.out
    assert "one recorded request was never sent:" in both.err


# Starts the extension of an Eval and runs one command with it, as mcpchecker does.
EVAL_HOST = """
import json, pathlib, subprocess, sys, yaml
file = pathlib.Path(sys.argv[1]).absolute()
config = yaml.safe_load(file.read_text())["config"]
agent = yaml.safe_load((file.parent / config["agent"]["path"]).read_text())
print(config["extensions"]["shell"]["config"], agent["commands"], (file.parent / config["taskSets"][0]["glob"]))
context = {"workdir": sys.argv[2], "phase": "setup"}
program = file.parent / config["extensions"]["shell"]["package"]
child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for number, (method, params) in enumerate([
    ("initialize", {"protocolVersion": "0.0.1", "config": {}}),
    ("execute", {"operation": "run", "args": {"command": ["date", "+%s%N"]}, "context": context}),
    ("shutdown", {}),
]):
    child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\\n")
    child.stdin.flush()
    result = next(answer for line in child.stdout if "id" in (answer := json.loads(line)))["result"]
    if method == "execute":
        print(result["success"], result["outputs"]["stdout"])
child.stdin.close()
assert child.wait() == 0
"""


def test_an_extension_of_an_eval_is_replayed_without_its_program(tmp_path: Path) -> None:
    evals = tmp_path / "evals"
    evals.mkdir()
    (tmp_path / "host.py").write_text(EVAL_HOST)
    (evals / "ext-shell").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m ext_shell "$@"\n')
    (evals / "ext-shell").chmod(0o755)
    (evals / "agent.yaml").write_text("kind: Agent\ncommands: {runPrompt: echo}\n")
    (evals / "eval.yaml").write_text(
        "kind: Eval # ours\nconfig:\n  agent: {type: file, path: agent.yaml}\n  extensions:\n    shell:\n"
        "      package: ./ext-shell # built\n      config: {a: '1e3', b: yes}\n  taskSets: [{glob: '*/task.yaml'}]\n"
    )
    command = ("rec", "--", sys.executable, "host.py", "evals/eval.yaml", str(tmp_path))
    recorded = run_recorder(tmp_path, "--wrap", "evals/eval.yaml", *command)
    assert recorded.code == 0, recorded.err
    about, output = recorded.out.splitlines()[:2]
    assert about == f"{{'a': '1e3', 'b': True}} {{'runPrompt': 'echo'}} {evals}/*/task.yaml"
    assert output.startswith("True ")
    (evals / "ext-shell").unlink()
    replayed = run_recorder(tmp_path, "--mode", "none", *command)
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err


# Sends a path of its working directory to the server of the file, and prints the result.
PATH_HOST = """
import json, os, subprocess, sys
server = json.load(open(sys.argv[1]))["mcpServers"]["read"]
request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"path": os.path.abspath("data/a.txt")}}
command = [server["command"], *server["args"]]
print(subprocess.run(command, input=json.dumps(request), capture_output=True, text=True).stdout)
"""
PATH_CHILD = """
import json
request = json.loads(input())
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"read": request["params"]["path"]}}))
"""


def test_paths_in_messages_of_children_are_those_of_the_working_directory_of_the_replay(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "another" / "folder"]
    for folder in folders:
        folder.mkdir(parents=True)
        server = {"command": sys.executable, "args": [str(folder / "child.py")]}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"read": server}}))
        (folder / "child.py").write_text(PATH_CHILD)
    command = (str(tmp_path / "rec"), "--", sys.executable, "-c", PATH_HOST, "mcp.json")
    recorded = run_recorder(folders[0], "--wrap", "mcp.json", *command)
    assert recorded.code == 0, recorded.err
    assert f'"read": "{folders[0]}/data/a.txt"' in recorded.out
    assert str(tmp_path) not in "".join(path.read_text() for path in (tmp_path / "rec").rglob("*.yaml"))
    replayed = run_recorder(folders[1], *command)
    assert (replayed.code, replayed.out) == (0, recorded.out.replace(str(folders[0]), str(folders[1]))), replayed.err


def test_a_child_that_cannot_be_started_is_reported_with_the_reason(project: Path) -> None:
    (project / "mcp.json").write_text('{"mcpServers": {"sum": {"command": "no-such-server"}}}')
    failed = run_recorder(project, "--wrap", "mcp.json", *COMMAND)
    assert failed.code != 0
    summary = failed.err[failed.err.index("ext-recorder: child sum: ") :].splitlines()
    assert summary[:2] == [
        "ext-recorder: child sum: not recorded: the command 'no-such-server' is not in PATH",
        "ext-recorder: child sum: 0 sessions",
    ]


def test_problems_of_a_wrapped_file_have_the_path_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "eval.yaml").write_text(
        "kind: Eval\nconfig:\n  extensions:\n    shell: {package: ./ext-shell}\n  taskSets: [{glob: 3}]\n"
    )
    host = (sys.executable, "-P", "-m", "ext_host", "run", "evals/eval.yaml")
    failed = run_recorder(tmp_path, "--wrap", "evals/eval.yaml", "rec", "--", *host)
    assert failed.code == 2
    assert failed.err.splitlines()[0].startswith("ext-host: evals/eval.yaml:5:")
    shown = (sys.executable, "-c", "import sys; print(sys.argv[1])")
    failed = run_recorder(tmp_path, "--wrap", "evals/eval.yaml", "rec", "--", *shown, "evals/eval.yaml")
    assert failed.out.endswith(f"/config{tmp_path.resolve()}/evals/eval.yaml\n")


def test_a_run_without_traffic_and_sessions_makes_no_recording_and_replaces_none(project: Path) -> None:
    forgotten = run_recorder(project, *COMMAND)
    assert (forgotten.code, forgotten.out) == (3, EXPECTED), forgotten.err
    assert "not recorded: the children that mcp.json names; to record them: --wrap mcp.json" in forgotten.err
    assert "rec: not made, the command ended without an HTTP request and without a session" in forgotten.err
    assert not (project / "rec").exists()
    wrong = run_recorder(project, "rec", "--", sys.executable, "-c", "raise SystemExit(2)")
    assert (wrong.code, (project / "rec").exists()) == (2, False)
    assert "rec: not made, the command exited with 2 without" in wrong.err
    assert run_recorder(project, "--wrap", "mcp.json", *COMMAND).code == 0
    before = {path: path.read_bytes() for path in (project / "rec").rglob("*.yaml")}
    host = (project / "host.py").read_text()
    (project / "host.py").write_text("raise SystemExit(2)")
    again = run_recorder(project, "--mode", "all", "--wrap", "mcp.json", *COMMAND)
    assert (again.code, "rec: not changed, the command exited with 2 without" in again.err) == (2, True), again.err
    assert {path: path.read_bytes() for path in (project / "rec").rglob("*.yaml")} == before
    (project / "host.py").write_text(f"{host}\nraise SystemExit(1)")
    failed = run_recorder(project, "--mode", "all", "--wrap", "mcp.json", *COMMAND)
    assert (failed.code, "the command exited with 1, and a replay will, too" in failed.err) == (1, True), failed.err


def test_a_replay_states_that_replayed_children_do_not_check_an_agent(project: Path) -> None:
    remark = "replayed children do not check the work of an agent"
    recorded = run_recorder(project, "--wrap", "mcp.json", *COMMAND)
    assert remark not in recorded.err
    assert (
        f"{remark}: their results are the recorded ones; to run one of add-up, sum:"
        in run_recorder(project, *COMMAND).err
    )
    assert remark not in run_recorder(project, "--real", "sum", "--real", "add-up", *COMMAND).err
