"""`ext-host serve`: the clauses, a client, runs side by side, cancellation, ends of a session, and invalid input."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, cast

import pytest

from ext_recorder.conformance.peer import ChildUnderTest
from ext_recorder.conformance.protocol_clauses import clauses_of, run_conversation
from ext_recorder.sockets.address import Address
from tests.support.host import PATIENCE_S, HostProcess, Message, MessageHost, MessageStream, connected
from tests.support.ports import reserved_port
from tests.support.process_tracker import ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVE = (sys.executable, "-P", "-m", "ext_host", "serve")
STUCK = "never=echo working; sleep 600"  # an executor, for runs that are cancelled

AGENT = """
apiVersion: mcpchecker/v1alpha2
kind: Agent
metadata: {name: writer}
commands: {runPrompt: 'echo hello > "$EXT_HOST_TASK_FOLDER/out.txt"'}
"""
CHECKER_EVAL = """
apiVersion: mcpchecker/v1alpha2
kind: Eval
metadata: {name: files}
config:
  agent: {type: file, path: agent.yaml}
  taskSets: [{glob: tasks/*.yaml}]
"""
CHECKER_TASK = """
apiVersion: mcpchecker/v1alpha2
kind: Task
metadata: {name: write}
spec:
  setup: [{script: {inline: echo prepared}}]
  verify: [{script: {inline: grep -q hello out.txt}}]
  cleanup: [{script: {inline: 'rm -f out.txt; touch cleaned'}}]
  prompt: {inline: Write a file}
"""
WAZA_EVAL = """
name: greetings
skill: greeter
version: "1.2"
config: {executor: mock, trials_per_task: 2, timeout_seconds: 60}
metrics:
  - {name: task_completion, weight: 1.0, threshold: 0.8}
tasks: ["tasks/*.yaml"]
"""
WAZA_TASK = """
id: greet
name: Greet the user
description: A greeting
inputs: {prompt: Say hello}
graders:
  - {type: text, name: greets, config: {contains: [hello]}}
"""
FAILING_TASK = "id: fail\nname: Fail\ninputs: {prompt: Bye}\ngraders: [{type: text, config: {contains: [hello]}}]\n"
FILES = {
    "checker/eval.yaml": CHECKER_EVAL,
    "checker/agent.yaml": AGENT,
    "checker/tasks/write.yaml": CHECKER_TASK,
    "waza/eval.yaml": WAZA_EVAL,
    "waza/tasks/greet.yaml": WAZA_TASK,
    "waza/tasks/fail.yaml": FAILING_TASK,
    "broken/eval.yaml": "skill: broken\nconfig: {trials_per_task: 0}\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with evals of both formats, and one that is not valid."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[ProcessTracker]:
    tracker = ProcessTracker(tmp_path / "processes")
    yield tracker
    tracker.close()


class Client:
    """Client on a stream that counts its ids."""

    def __init__(self, stream: MessageStream) -> None:
        self.stream = stream
        self._id = 0

    def call(self, method: str, **params: object) -> Message:
        """Return the response; notifications before it are in `stream.received`."""
        self._id += 1
        id = self._id
        self.stream.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.stream.until(lambda message: message.get("id") == id and "method" not in message)[-1]

    def result(self, method: str, **params: object) -> Message:
        response = self.call(method, **params)
        assert "result" in response, response
        return cast("Message", response["result"])

    def error(self, method: str, **params: object) -> Message:
        response = self.call(method, **params)
        assert "error" in response, response
        return cast("Message", response["error"])

    def completed(self, run: object) -> Message:
        """Return the parameters of a run's `eval.complete`."""
        return params_of(self.stream.until(lambda message: is_complete(message, run))[-1])


def is_complete(message: Message, run: object) -> bool:
    return message.get("method") == "eval.complete" and params_of(message)["runId"] == run


def params_of(message: Message) -> Message:
    return cast("Message", message.get("params", {}))


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[Client, MessageHost]]:
    with MessageHost([*SERVE, *options], "ndjson", cwd=folder) as host:
        yield Client(host), host


@contextmanager
def listening(folder: Path, *options: str) -> Iterator[tuple[HostProcess, int]]:
    with HostProcess([*SERVE, "--tcp", "127.0.0.1:0", *options], cwd=folder) as process:
        line = cast("IO[bytes]", process.stderr).readline().decode()
        assert line.startswith("listening on 127.0.0.1:")
        yield process, int(line.rpartition(":")[2])


# --- The specification -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eval", ["checker", "waza"])
@pytest.mark.parametrize("transport", ["stdio", "tcp"])
def test_every_clause_of_the_conformance_holds(eval: str, transport: str, folder: Path) -> None:
    profile: dict[str, object] = {
        "workdir": str(folder),
        "session": "conformance",
        "directory": str(folder),
        "eval": str(folder / eval / "eval.yaml"),
        "broken": str(folder / "broken/eval.yaml"),
        "task": "write" if eval == "checker" else "greet",
        "executor": "never",
    }
    command, address = [*SERVE, "--executor", STUCK], None
    with ExitStack() as stack:
        if transport == "tcp":
            port = stack.enter_context(reserved_port())
            command += ["--tcp", f"127.0.0.1:{port}"]
            address = Address.parse(f"tcp:127.0.0.1:{port}", "--connect")
        child = stack.enter_context(ChildUnderTest(command, folder, address))
        found = run_conversation(child, "waza", profile, (), PATIENCE_S)
    assert found == {clause.id: ("met", "") for clause in clauses_of("waza")}


class WazaClient:
    """The client of the specification's example, which reads one line for each request."""

    def __init__(self, path: str) -> None:
        self.proc = subprocess.Popen(
            ["waza", "jsonrpc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, "PATH": path},
        )
        self.request_id = 0

    def send_request(self, method: str, params: Message) -> Message:
        self.request_id += 1
        request = {"jsonrpc": "2.0", "id": self.request_id, "method": method, "params": params}
        stdin = cast("IO[str]", self.proc.stdin)
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        return self.read_notification()

    def read_notification(self) -> Message:
        return cast("Message", json.loads(cast("IO[str]", self.proc.stdout).readline()))

    def close(self) -> None:
        cast("IO[str]", self.proc.stdin).close()
        self.proc.wait()
        cast("IO[str]", self.proc.stdout).close()


def test_the_example_client_of_the_specification_runs_an_eval(folder: Path) -> None:
    program = folder / "bin/waza"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec {' '.join(SERVE)} --executor copilot-sdk='echo hello'\n")
    program.chmod(0o755)
    client = WazaClient(f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    parameters: Message = {"path": str(folder / "waza/eval.yaml"), "executor": "copilot-sdk"}
    response = client.send_request("eval.run", parameters)
    run = cast("Message", response["result"])["runId"]
    while (notification := client.read_notification()).get("method") != "eval.complete":
        assert params_of(notification)["runId"] == run
    client.close()
    assert params_of(notification)["summary"] == {"total": 2, "passed": 2, "failed": 0, "passRate": 1.0}
    assert client.proc.returncode == 0


# --- Evals and tasks -------------------------------------------------------------------------------------------------


def test_evals_and_tasks_of_both_formats_are_described(folder: Path) -> None:
    with serving(folder) as (client, host):
        assert client.result("eval.list", directory=".")["evals"] == [
            {"path": "broken/eval.yaml", "name": "broken", "skill": "broken"},
            {"path": "checker/eval.yaml", "name": "files", "skill": "files", "version": "v1alpha2"},
            {"path": "waza/eval.yaml", "name": "greetings", "skill": "greeter", "version": "1.2"},
        ]
        assert client.result("eval.get", path="waza/eval.yaml") == {
            "path": "waza/eval.yaml",
            "name": "greetings",
            "skill": "greeter",
            "version": "1.2",
            "config": {"executor": "mock", "trials_per_task": 2, "timeout_seconds": 60},
            "metrics": {"task_completion": {"weight": 1.0, "threshold": 0.8}, "pass_threshold": 0.8},
        }
        checker = client.result("eval.get", path="checker/eval.yaml")
        assert checker["config"] == {"executor": "file", "trials_per_task": 1, "parallel": False}
        assert checker["metrics"] == {"pass_threshold": 1.0}
        tasks = cast("list[Message]", client.result("task.list", path="waza/eval.yaml")["tasks"])
        assert tasks[1] == {
            "id": "greet",
            "name": "Greet the user",
            "description": "A greeting",
            "file": "tasks/greet.yaml",
        }
        assert client.result("task.get", path="waza/eval.yaml", taskId="greet") == {
            "id": "greet",
            "name": "Greet the user",
            "description": "A greeting",
            "prompt": "Say hello",
            "graders": [{"type": "text", "name": "greets", "config": {"contains": ["hello"]}}],
        }
        task = client.result("task.get", path="checker/eval.yaml", taskId="write")
        assert task["prompt"] == "Write a file"
        assert task["graders"] == [{"type": "script", "config": {"inline": "grep -q hello out.txt"}}]
        valid = client.result("eval.validate", path="checker/eval.yaml")
        assert valid == {"valid": True, "name": "files", "skill": "files"}
        assert client.result("eval.validate", path="broken/eval.yaml") == {
            "valid": False,
            "errors": [
                "Missing required field: name",
                "Missing required field: tasks",
                "config.trials_per_task: expected an integer of at least 1, found 0 (line 2, column 27)",
            ],
        }
        assert host.end() == 0


def test_the_names_of_both_servers_are_accepted(folder: Path) -> None:
    with serving(folder) as (client, _):
        assert client.result("eval.list", dir=".", directory=".") == client.result("eval.list", directory=".")
        same = client.result("task.get", path="waza/eval.yaml", task_id="greet", taskId=None)
        assert same == client.result("task.get", path="waza/eval.yaml", taskId="greet")
        run = client.result("eval.run", path="waza/eval.yaml", contextDir=".")["runId"]
        client.completed(run)
        assert client.result("run.status", run_id=run)["status"] == "completed"
        error = client.error("task.get", path="waza/eval.yaml", taskId="greet", task_id="other")
        assert "are names of one parameter" in str(error["data"])


def test_errors_have_the_code_the_message_and_data_that_name_the_cause(folder: Path) -> None:
    task = CHECKER_TASK.replace("script: {inline: grep -q hello out.txt}", "llmJudge: {contains: hello}")
    (folder / "checker/tasks/model.yaml").write_text(task.replace("name: write", "name: model"))
    graded = WAZA_TASK.replace("id: greet", "id: graded").replace("type: text", "type: llm")
    (folder / "waza/tasks/graded.yaml").write_text(graded)
    (folder / "waza/invalid.yaml").write_text(WAZA_EVAL.replace("executor: mock", "executor: invalid"))
    eval = "waza/eval.yaml"
    cases: list[tuple[str, Message, int, str, str]] = [
        ("eval.get", {"path": "none.yaml"}, -32000, "Eval not found", "none.yaml"),
        ("eval.get", {"path": "a\0b"}, -32000, "Eval not found", "path"),
        ("eval.list", {"directory": "none"}, -32000, "Eval not found", "no such directory"),
        ("eval.get", {"path": "broken/eval.yaml"}, -32001, "Validation failed", "Missing required field: name"),
        ("eval.get", {"path": "."}, -32001, "Validation failed", "found a folder"),
        ("eval.run", {"path": "checker/eval.yaml"}, -32001, "Validation failed", "llmJudge"),
        ("eval.run", {"path": eval}, -32001, "Validation failed", "type llm is not supported: a model grades"),
        ("eval.run", {"path": "waza/invalid.yaml"}, -32001, "Validation failed", "Invalid executor type: invalid"),
        ("eval.run", {"path": eval, "executor": "copilot-sdk"}, -32001, "Validation failed", "--executor copilot-sdk="),
        ("eval.run", {"path": eval, "executor": 1}, -32602, "Invalid params", "executor: expected a text"),
        ("eval.run", {"path": eval, "verbose": "yes"}, -32602, "Invalid params", "verbose: expected true or false"),
        ("eval.run", {"path": eval, "model": "a\0b"}, -32602, "Invalid params", "model: expected a name"),
        ("eval.run", {"path": eval, "context_dir": "\0"}, -32602, "Invalid params", "context_dir"),
        ("eval.run", {"path": eval, "context_dir": "none"}, -32602, "Invalid params", "context_dir"),
        ("eval.run", {}, -32602, "Invalid params", "missing required parameter: path"),
        ("task.get", {"path": eval, "taskId": "gret"}, -32602, "Invalid params", "did you mean 'greet'?"),
        ("run.status", {"runId": "none"}, -32602, "Invalid params", "no such run"),
        ("run.cancel", {"runId": "none"}, -32602, "Invalid params", "no such run"),
        ("eval.rum", {}, -32601, "Method not found", "did you mean 'eval.run'?"),
    ]
    with serving(folder) as (client, host):
        for method, params, code, message, part in cases:
            error = client.error(method, **params)
            assert (error["code"], error["message"]) == (code, message), params
            assert part in json.dumps(error["data"]), error
        host.write(b'{"jsonrpc":"2.0","id":7\n[]\n{"jsonrpc":"2.0","id":"x","method":"eval.get","params":3}\n')
        for code, id in ((-32700, None), (-32600, None), (-32600, "x")):
            answer = host.next()
            assert (cast("Message", answer["error"])["code"], answer["id"]) == (code, id)
            assert cast("Message", answer["error"])["data"]
        host.write(b'\n  \r\n{"jsonrpc":"2.0","method":"eval.unknown"}\n{"jsonrpc":"2.0","method":"run.cancel"}\n')
        assert client.result("eval.list", directory="checker")["evals"] != []
        assert host.end() == 0
        assert host.err == b""


# --- Runs ------------------------------------------------------------------------------------------------------------


def test_programs_of_extensions_and_agents_are_chosen_by_the_server(folder: Path) -> None:
    path = folder / "checker/eval.yaml"
    path.write_text(
        path.read_text().replace("type: file, path: agent.yaml", "type: builtin.claude-code")
        + "  extensions: {shell: {package: github.com/example/ext-shell@v1}}\n"
    )
    task = folder / "checker/tasks/write.yaml"
    task.write_text(task.read_text().replace("spec:\n", "spec:\n  requires: [{extension: shell}]\n"))
    with serving(folder) as (client, _):
        data = cast("Message", client.error("eval.run", path="checker/eval.yaml")["data"])
        assert "choose another by `executor`: mock, none, or one of" in json.dumps(data)
        data = cast("Message", client.error("eval.run", path="checker/eval.yaml", executor="mock")["data"])
        assert "`--extension shell=COMMAND`" in json.dumps(data)
    writer = "w=echo hello > $EXT_HOST_TASK_FOLDER/out.txt"
    options = ["--extension", f"shell={sys.executable} -m ext_shell", "--executor", writer, "--default-executor", "w"]
    with serving(folder, *options) as (client, _):
        run = client.result("eval.run", path="checker/eval.yaml")["runId"]
        assert cast("Message", client.completed(run)["summary"])["passed"] == 1


TRIAL = ["trial_start", "trial_complete"]


def test_runs_side_by_side_report_in_order_and_nothing_follows_the_end(folder: Path) -> None:
    with serving(folder) as (client, host):
        ids = {path: client.result("eval.run", path=path)["runId"] for path in ("waza/eval.yaml", "checker/eval.yaml")}
        again = client.result("eval.run", path="waza/eval.yaml", verbose=True)["runId"]
        assert host.end() == 0  # the end of the input does not end the runs
        assert host.err == b""
        for run in (*ids.values(), again):
            messages = [message for message in host.received if params_of(message).get("runId") == run]
            names = [message["method"] for message in messages]
            assert names.count("eval.complete") == 1
            assert names[-1] == "eval.complete"
            response = next(m for m in host.received if cast("Message", m.get("result", {})).get("runId") == run)
            assert host.received.index(response) < host.received.index(messages[0])
            assert cast("Message", response["result"])["status"] == "running"
        progress = [
            params_of(m) for m in host.received
            if m.get("method") == "eval.progress" and params_of(m)["runId"] == ids["waza/eval.yaml"]
        ]  # fmt: skip
        one = ["task_start", *TRIAL, *TRIAL, "task_complete"]
        assert [each["event"] for each in progress] == ["run_start", *one, *one, "run_complete"]
        about = {"taskName": "fail", "taskNum": 1, "totalTasks": 2}
        assert progress[1] == {"runId": ids["waza/eval.yaml"], "event": "task_start", **about}
        assert about.items() <= progress[6].items()
        assert progress[6]["status"] == "failed"
        assert progress[8]["trialNum"] == 1
        complete = {
            params_of(m)["runId"]: params_of(m)["summary"] for m in host.received if m.get("method") == "eval.complete"
        }
        assert complete[ids["waza/eval.yaml"]] == {"total": 2, "passed": 1, "failed": 1, "passRate": 0.5}
        assert complete[ids["checker/eval.yaml"]] == {"total": 1, "passed": 1, "failed": 0, "passRate": 1.0}
        logs = [params_of(m) for m in host.received if m.get("method") == "eval.log"]
        failed = "fail: text: Missing expected text: hello"
        assert {"runId": again, "level": "error", "message": failed} in logs
        assert {"runId": again, "level": "info", "message": "Mock response for: Say hello"} in logs
        assert (folder / "checker/tasks/cleaned").exists()


def test_the_status_of_a_run_has_the_results_of_tasks_trials_and_graders(folder: Path) -> None:
    with serving(folder) as (client, _):
        run = client.result("eval.run", path="waza/eval.yaml")["runId"]
        client.completed(run)
        status = client.result("run.status", runId=run)
        assert (status["status"], status["error"]) == ("completed", None)
        result = cast("Message", status["result"])
        failed = cast("list[Message]", result["tasks"])[0]
        assert (result["passed"], failed["id"], failed["status"]) == (1, "fail", "failed")
        trial = cast("list[Message]", failed["trials"])[0]
        grader = cast("list[Message]", trial["graders"])[0]
        assert (grader["name"], grader["error"]) == ("text", "Missing expected text: hello")


@pytest.mark.parametrize("path", ["checker/eval.yaml", "waza/eval.yaml"])
def test_a_cancelled_run_is_cleaned_up_and_leaves_no_process(path: str, folder: Path, tracker: ProcessTracker) -> None:
    stuck = f"never={tracker.hold}; echo working >&9; sleep 600 & wait"
    with serving(folder, "--executor", stuck) as (client, _):
        run = client.result("eval.run", path=path, executor="never")["runId"]
        assert tracker.line() == "working"
        running = {"runId": run, "status": "running", "result": None, "error": None}
        assert client.result("run.status", runId=run) == running
        assert client.result("run.cancel", runId=run) == {"runId": run, "status": "cancelled"}
        assert client.completed(run)["error"] == "Run cancelled"
        assert not tracker.left()
        assert client.result("run.status", runId=run)["status"] == "cancelled"
        again = client.error("run.cancel", runId=run)
        assert (again["code"], cast("Message", again["data"])["status"]) == (-32602, "cancelled")
    assert (folder / "checker/tasks/cleaned").exists() is path.startswith("checker")


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL", "reader"])
def test_the_end_of_the_server_or_of_its_client_ends_the_runs(end: str, folder: Path, tracker: ProcessTracker) -> None:
    stuck = f"never={tracker.hold}; echo working >&9; sleep 600 & wait"
    with serving(folder, "--executor", stuck) as (client, host):
        client.call("eval.run", path="checker/eval.yaml", executor="never")
        assert tracker.line() == "working"
        process = host.process
        if end == "reader":
            cast("IO[bytes]", process.stdin).close()
            cast("IO[bytes]", process.stdout).close()
        else:
            process.send_signal(signal.Signals[end])
        expected = {"SIGTERM": 128 + signal.SIGTERM, "SIGKILL": -signal.SIGKILL, "reader": 0}
        assert process.wait(PATIENCE_S) == expected[end]
        assert not tracker.left()
        assert (folder / "checker/tasks/cleaned").exists() is (end != "SIGKILL")


def test_the_output_may_be_a_file_and_the_last_line_may_lack_its_end(folder: Path) -> None:
    (folder / "in").write_text('{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"waza/eval.yaml"}}')
    with (folder / "in").open() as stdin, (folder / "out").open("w") as stdout:
        done = subprocess.run(SERVE, cwd=folder, stdin=stdin, stdout=stdout, timeout=PATIENCE_S, check=False)
    messages = [json.loads(line) for line in (folder / "out").read_text().splitlines()]
    assert done.returncode == 0
    assert messages[0]["result"]["status"] == "running"
    assert messages[-1]["params"]["summary"]["total"] == 2


# --- TCP -------------------------------------------------------------------------------------------------------------


def test_clients_on_tcp_get_their_own_notifications_and_share_the_runs(folder: Path) -> None:
    with listening(folder) as (process, port):
        links = [connected(f"tcp:127.0.0.1:{port}", "ndjson") for _ in range(2)]
        clients = [Client(stream) for _, stream in links]
        runs = [client.result("eval.run", path="waza/eval.yaml")["runId"] for client in clients]
        for client, run in zip(clients, runs, strict=True):
            client.completed(run)
            told = {params_of(message)["runId"] for message in client.stream.received if "method" in message}
            assert told == {run}
        assert clients[0].result("run.status", runId=runs[1])["status"] == "completed"
        for link, _ in links:
            link.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_a_request_of_a_browser_ends_the_connection(folder: Path) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"checker/eval.yaml"}}\n'
    with listening(folder) as (_, port), socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n" + body)
        with link.makefile("rb") as answer:
            lines = answer.read().splitlines()
    assert [json.loads(line)["error"]["code"] for line in lines] == [-32600]
    assert not (folder / "checker/tasks/cleaned").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tcp", "0.0.0.0:0"], "0.0.0.0 is not an address of loopback"),
        (["--tcp", "9000"], "--tcp: expected HOST:PORT, such as localhost:9000, found '9000'"),
        (["--allow-remote"], "--allow-remote is for --tcp"),
        (["--executor", "copilot-sdk"], "--executor: expected NAME=AGENT, found 'copilot-sdk'"),
        (["--default-executor", "moc"], "--default-executor: Invalid executor type: moc; did you mean 'mock'?"),
    ],
)
def test_invalid_options_are_refused(options: list[str], expected: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*SERVE, *options], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr


def test_an_address_in_use_is_refused(folder: Path) -> None:
    with listening(folder) as (_, port):
        done = subprocess.run(
            [*SERVE, "--tcp", f"127.0.0.1:{port}"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert (done.returncode, done.stderr) == (
        2, f"ext-host: --tcp 127.0.0.1:{port}: cannot listen: Address already in use\n"
    )  # fmt: skip


# --- Any input -------------------------------------------------------------------------------------------------------


def mutated(chance: random.Random, folder: Path) -> bytes:
    """Return a request with some of its bytes replaced, removed, doubled, or its values exchanged."""
    values: list[object] = [None, True, 0, -1, 1.5, "", "x" * 300, "\0", "\ud800", [], {}, ["a"], {"path": "x"}, "mock"]
    method = chance.choice(["eval.list", "eval.get", "eval.validate", "task.list", "task.get", "run.status"])
    params: Message = {"path": "waza/eval.yaml", "directory": "broken", "taskId": "greet", "runId": "none"}
    for name in chance.sample(list(params), chance.randrange(3)):
        params[name] = chance.choice(values)
    message: Message = {"jsonrpc": "2.0", "id": chance.randrange(1000), "method": method, "params": params}
    if chance.random() < 0.4:
        message[chance.choice(list(message))] = chance.choice(values)
    line = bytearray(json.dumps(message, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass"))
    for _ in range(chance.choice([0, 0, 1, 3])):
        at = chance.randrange(len(line))
        line[at : at + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(3)))
    return bytes(line).replace(b"\n", b"") + b"\n"


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_requests_get_an_error_or_a_result(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    with serving(folder) as (client, host):
        for _ in range(20):
            host.write(b"".join(mutated(chance, folder) for _ in range(20)))
            client._id = 2_000 + len(host.received)
            assert client.result("eval.validate", path="waza/eval.yaml")["valid"] is True
        codes = {cast("Message", m["error"])["code"] for m in host.received if "error" in m}
        assert {-32700, -32600, -32601, -32602, -32000} <= codes
        assert -32603 not in codes
        assert host.end() == 0
        assert host.err == b""
