"""`serve --protocol gassist`: an engine and its plugin, through whole sessions and all that can go wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.conformance.peer import ChildUnderTest
from ext_recorder.conformance.protocol_clauses import clauses_of, run_conversation
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.server.line_limit import dumps_without_secrets
from tests.support.host import PATIENCE_S, PROBE, MessageHost, request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.host import Message

SHELL = [sys.executable, "-m", "ext_shell"]
HELLO = request(1, "initialize", {"protocol_version": "2.0", "engine_version": "1.0.0"})


class Engine(MessageHost):
    """Engine of one plugin, which serves all operations without confirmation unless other options are given."""

    def __init__(
        self, *options: str, program: Sequence[str] = PROBE, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> None:
        options = options or ("--allow=*",)
        super().__init__([*program, "serve", "--protocol", "gassist", *options], "uint32", env, cwd)
        self.id = 100

    def call(self, method: str, **params: object) -> Message:
        """Send a request and return its response."""
        self.id += 1
        self.send(request(self.id, method, params))
        return self.until(lambda message: message.get("id") == self.id)[-1]

    def execute(self, function: str, /, **arguments: object) -> list[Message]:
        """Execute a function, and return the params of the notifications up to the last."""
        return self._notifications("execute", {"function": function, "arguments": arguments})

    def input(self, content: str) -> list[Message]:
        """Send input, and return the response or the acknowledgement, then the params of the notifications."""
        return self._notifications("input", {"content": content, "timestamp": 1})

    def until_pong(self, number: int) -> list[Message]:
        """Send a ping, and return the messages before its response."""
        self.send(request(f"ping {number}", "ping", {"timestamp": number}))
        *messages, pong = self.until(lambda message: message.get("id") == f"ping {number}")
        assert pong["result"] == {"timestamp": number}
        return messages

    def _notifications(self, method: str, params: Message) -> list[Message]:
        self.id += 1
        self.send(request(self.id, method, params))
        messages = self.until(lambda each: each.get("method") in {"complete", "error"} or "error" in each)
        return [shortened(message, self.id) for message in messages]


def shortened(message: Message, id: int) -> Message:
    """The params of a notification of this call, with its method; a response without its version."""
    assert message.pop("jsonrpc") == "2.0"
    if "method" not in message:
        return message
    params = message["params"]
    assert isinstance(params, dict)
    if message["method"] != "log":
        assert params.pop("request_id") == id
    return {"method": message["method"], **params}


def completed(data: str, *, success: bool = True, keep_session: bool = False) -> Message:
    return {"method": "complete", "success": success, "data": data, "keep_session": keep_session}


# --- The session ---


@pytest.mark.parametrize("program", [PROBE, SHELL], ids=["built", "prepared"])
def test_initialize_returns_the_members_of_the_specification_and_of_the_sdks(program: list[str]) -> None:
    name = "probe" if program is PROBE else "shell"
    operation = "echo" if program is PROBE else "make-temp"
    with Engine("--deny=*", f"--allow={operation}", program=program) as engine:
        for _ in range(2):  # the first is answered before the extension is imported
            engine.send(HELLO)
            result = engine.next()["result"]
            assert isinstance(result, dict)
            assert (result["name"], result["protocol_version"]) == (name, "2.0")
            assert result["capabilities"] == ["streaming", "passthrough"]
            (command,) = result["commands"]
            assert command["name"] == f"{name}_{operation}".replace("-", "_")
            assert command["description"].endswith(".")
        assert (engine.end(), engine.err) == (0, b"")


@pytest.mark.parametrize("program", [PROBE, SHELL], ids=["built", "prepared"])
def test_another_version_is_refused(program: list[str]) -> None:
    with Engine(program=program) as engine:
        error = engine.call("initialize", protocol_version="1.0")["error"]
        text = 'initialize: unsupported protocol_version "1.0"; expected "2.0"'
        assert error == {"code": -32602, "message": text}
        assert "result" in engine.call("initialize", protocol_version="2.0")


def test_a_result_is_text_and_logs_are_streamed_before_it() -> None:
    with Engine() as engine:
        assert engine.execute("probe_echo", text="hi") == [completed("hi\ntext: hi\nlength: 2\nempty: false")]
        assert engine.execute("probe_spill", to="output", text="a\nb\n")[-1] == completed("text:\na\nb\nshort: short")
        assert engine.execute("log", text="t") == [  # by the name of the operation
            {"method": "log", "level": "debug", "message": "one text=t"},
            {"method": "stream", "data": "two\n"},
            {"method": "stream", "data": "warning: three path=/x number=1 nan=nan\n"},
            {"method": "stream", "data": "error: four\n"},
            completed("five"),
        ]


def test_a_failure_is_complete_and_a_call_without_a_result_an_error() -> None:
    with Engine() as engine:
        assert engine.execute("probe_spill", to="error", text="details") == [
            completed("it failed\ndetails", success=False)
        ]
        text = "unknown function: probe_eco; did you mean 'probe_echo'?"
        assert engine.execute("probe_eco") == [{"method": "error", "code": -32601, "message": text}]
        (error,) = engine.execute("probe_echo", text=1)
        assert (error["method"], error["code"]) == ("error", -32602)
        assert str(error["message"]).startswith("echo: text: expected a string, found ")


def test_a_ping_is_answered_while_an_operation_runs(tmp_path: Path) -> None:
    for name in ("started", "go"):
        os.mkfifo(tmp_path / name)
    arguments = {"started": str(tmp_path / "started"), "goOn": str(tmp_path / "go")}
    with Engine() as engine:
        engine.send(request("call", "execute", {"function": "probe_meet", "arguments": arguments}))
        (tmp_path / "started").read_text()  # it runs now
        for timestamp in (1_700_000_000, 1.5, None):
            assert engine.call("ping", timestamp=timestamp)["result"] == {"timestamp": timestamp}
        (tmp_path / "go").write_text("well met\n")
        assert engine.next()["params"] == {
            "request_id": "call", "success": True, "data": "well met", "keep_session": False,
        }  # fmt: skip


def test_the_working_directory_is_that_of_the_process_or_of_the_option(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for options, folder in (((), tmp_path), ((f"--workdir={tmp_path}/other",), tmp_path / "other")):
        with Engine("--allow=*", *options, cwd=tmp_path) as engine:
            assert f"workdir: {folder}\n" in str(engine.execute("probe_circumstances")[0]["data"])


# --- Confirmation ---


def test_an_operation_that_may_destroy_something_runs_after_the_user_has_confirmed_it() -> None:
    with Engine("--allow=log") as engine:
        question = completed(
            'probe_echo {"text":"hi"} can change or delete data. Reply yes to run it; any other reply cancels it.',
            keep_session=True,
        )
        for reply in ("yes", " Yes.\n", "y"):
            assert engine.execute("probe_echo", text="hi") == [question]
            acknowledged, result = engine.input(reply)
            assert acknowledged == {"id": engine.id, "result": {"acknowledged": True}}
            assert result == completed("hi\ntext: hi\nlength: 2\nempty: false")
        assert engine.execute("probe_echo", text="hi") == [question]
        assert engine.input("exit")[1:] == [completed("probe_echo was not run: the reply was not yes", success=False)]
        assert engine.execute("probe_log")[-1] == completed("five")


def test_input_that_no_call_waits_for_is_refused() -> None:
    refused = "input: expected no input: no call waits for a reply, because no result had keep_session: true"
    with Engine("--allow=log") as engine:
        assert engine.input("yes")[0]["error"] == {"code": -32600, "message": refused}
        engine.execute("probe_echo")
        dropped = engine.execute("probe_log")[0]  # another call takes the place of the one that waits
        text = "warning: probe_echo was not run: another call began before the reply\n"
        assert dropped == {"method": "stream", "data": text}
        refused = (
            "input: expected no input: probe_echo was not run, because another call began before the reply; "
            "execute it again"
        )
        assert engine.input("yes")[0]["error"] == {"code": -32600, "message": refused}
        engine.execute("probe_echo")
        assert engine.call("input", content=1)["error"] == {
            "code": -32602, "message": "input: content: expected a string, found 1",
        }  # fmt: skip
        assert engine.input("yes")[1] == completed("text: \nlength: 0\nempty: true")


def test_an_argument_that_is_required_and_missing_is_asked_for() -> None:
    with Engine("--allow=log,spill", "--config={}") as engine:
        missing = "spill: to: this argument is required and was not given. Reply with the value of to, or cancel."
        assert engine.execute("probe_spill", text="a") == [completed(missing, keep_session=True)]
        assert engine.input("output")[1:] == [completed("text: a\nshort: short")]
        engine.execute("probe_spill")
        (_, again) = engine.input("outpt")  # the value is checked as any other
        assert (again["success"], again["keep_session"]) == (True, True)
        assert str(again["data"]).startswith("spill: to: expected ")
        assert str(again["data"]).endswith("found 'outpt'. Reply with the value of to, or cancel.")
        assert engine.input("output")[1:] == [completed("text: x\nshort: short")]
        for reply in ("cancel", "Exit.", " "):
            engine.execute("probe_spill")
            assert engine.input(reply)[1:] == [completed("probe_spill was not run: cancelled", success=False)]


def test_of_several_arguments_a_text_is_asked_for_and_a_confirmation_follows(tmp_path: Path) -> None:
    with Engine("--deny=stop", program=SHELL, cwd=tmp_path) as engine:
        (question,) = engine.execute("shell_run")
        assert str(question["data"]).startswith(
            "run: expected one of command and script, found none. Reply with the value of script (Text for `shell`)"
        )
        (_, question) = engine.input("echo hi")
        assert str(question["data"]).startswith('shell_run {"script":"echo hi"} can change or delete data.')
        line, result = engine.input("yes")[1:]
        assert line == {"method": "stream", "data": "hi\n"}
        assert "\nexitCode: 0\nstdout: hi\n" in str(result["data"])
        assert engine.execute("shell_run", shell="csh")[0]["method"] == "error"  # which is wrong in any case
        (question,) = engine.execute("shell_assert_file")
        assert engine.input("none.txt")[1]["success"] is False
        (question,) = engine.execute("shell_write_file", path="a.txt")
        assert "Reply with the value of content" in str(question["data"])
        assert '"content":"\\n text"' in str(engine.input("\n text")[1]["data"])
        assert engine.input("yes")[1]["success"] is True
        assert (tmp_path / "a.txt").read_text() == "\n text"


def test_nothing_is_asked_about_arguments_that_are_refused_in_any_case() -> None:
    with Engine("--allow=log") as engine:
        assert engine.execute("probe_echo", txt="hi")[0]["method"] == "error"
        assert engine.execute("probe_echo", text="${other.value}")[0]["success"] is False


def test_an_operation_that_is_denied_is_refused() -> None:
    with Engine("--deny=echo") as engine:
        message = "echo is not served, because --deny excludes it; start the server without that option"
        assert engine.execute("probe_echo") == [{"method": "error", "code": -32601, "message": message}]


def test_secrets_are_in_no_message() -> None:
    with Engine("--allow=spill", env={"API_TOKEN": "hunter2-hunter2"}) as engine:
        messages = []
        for to in ("message", "error", "output", "log", "exception"):
            messages += engine.execute("probe_spill", to=to, text="hunter2-hunter2")
        messages += engine.execute("probe_echo", text="hunter2-hunter2")  # the question
        assert "hunter2" not in json.dumps(messages)
        assert json.dumps(messages).count("[redacted") >= 5
        engine.end()
        assert b"hunter2" not in engine.err


def test_a_question_has_no_arguments_that_look_secret(tmp_path: Path) -> None:
    env = {"DB_PASSWORD": "hunter2", "MODE": "fast"}
    manifest = "kind: Secret\nstringData:\n  a: hunter2\n"
    members = {"auth": {"bearer": "hunter2"}, "secretHeaders": {"X-Own": "hunter2"}, "list": [{"apiKey": "hunter2"}]}
    with Engine("--deny=stop", program=SHELL, cwd=tmp_path) as engine:
        (question,) = engine.execute("shell_run", command=["date"], env=env, stdin=manifest)
        assert "hunter2" not in str(question)
        assert '"MODE":"fast"' in str(question["data"])
        assert question["keep_session"] is True
    assert "hunter2" not in dumps_without_secrets(members)


def test_a_long_result_is_cut() -> None:
    with Engine() as engine:
        (result,) = engine.execute("probe_spill", to="output", text="x", times=3_000_000)
        data = str(result["data"])
        assert len(data) < 70_000
        path = Path(data.partition("textFile: ")[2].splitlines()[0])
        assert path.stat().st_size == 3_000_000


# --- Time, and the end ---


def test_an_operation_ends_before_the_engine_gives_up(tmp_path: Path) -> None:
    with Engine("--allow=*", '--config={"maxOperationTime": "300ms"}') as engine:
        assert engine.execute("probe_wait_for_deadline") == [completed("time is over\nlastStatus: ", success=False)]
        os.mkfifo(tmp_path / "started")
        engine.send(request(7, "execute", {"function": "probe_hang", "arguments": {"started": f"{tmp_path}/started"}}))
        (tmp_path / "started").read_text()
        assert engine.next()["params"] == {
            "request_id": 7, "code": -2,
            "message": "hang: the operation did not end within its 1.3 s; it was stopped",
        }  # fmt: skip


@pytest.mark.parametrize("kind", ["request", "notification", "eof"])
def test_the_plugin_exits_and_a_running_call_still_gets_its_end(kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    os.mkfifo(tmp_path / "go")
    name, arguments = "wait_for_stop", {"started": f"{tmp_path}/started"}
    if kind == "eof":  # nothing stops it
        name, arguments = "meet", arguments | {"goOn": f"{tmp_path}/go"}
    with Engine() as engine:
        engine.send(request(7, "execute", {"function": f"probe_{name}", "arguments": arguments}))
        (tmp_path / "started").read_text()
        if kind == "request":
            engine.send(request(8, "shutdown", {}))
        elif kind == "notification":
            engine.send({"jsonrpc": "2.0", "method": "shutdown"})
        else:
            assert engine.process.stdin is not None
            engine.process.stdin.close()
            (tmp_path / "go").write_text("end\n")
        complete = engine.next()
        assert complete["method"] == "complete"
        assert complete["params"]["success"] is (kind == "eof")  # type: ignore[index]
        assert engine.rest() == ([{"jsonrpc": "2.0", "id": 8, "result": {}}] if kind == "request" else [])
        assert engine.process.wait(PATIENCE_S) == 0


# --- What is wrong ---


@pytest.mark.parametrize(
    ("message", "code", "said"),
    [
        (request(2, "exekute"), -32601, "unknown method: exekute; did you mean 'execute'?"),
        (request(2, "ping", {"timestamp": "now"}), -32602, 'ping: timestamp: expected a number, found "now"'),
        (
            request(None, "execute", {"function": "log"}),
            -32600,
            "execute: expected an id that is a whole number or a s",
        ),
        (
            request(1.5, "execute", {"function": "log"}),
            -32600,
            "execute: expected an id that is a whole number or a st",
        ),
        ({"jsonrpc": "1.0", "id": 2, "method": "ping"}, -32600, 'expected "jsonrpc": "2.0", found "1.0"'),
    ],
)
def test_an_invalid_request_has_an_error_response(message: Message, code: int, said: str) -> None:
    with Engine() as engine:
        engine.send(message)
        response = engine.next()
        assert response["id"] == message["id"]
        assert response["error"]["code"] == code  # type: ignore[index]
        assert response["error"]["message"].startswith(said)  # type: ignore[index]


def test_execute_without_a_function_is_an_error_of_the_call() -> None:
    with Engine() as engine:
        refused: list[object] = [{}, {"function": 1}, []]
        for params in refused:
            engine.send(request(2, "execute", params))
            assert engine.next()["params"]["code"] == -32602  # type: ignore[index]


def test_bytes_that_are_no_frame_end_the_session_at_once() -> None:
    with Engine() as engine:
        engine.write(bytes(4))
        zero = {"code": -32700, "message": "a frame of length zero"}
        assert engine.next() == {"jsonrpc": "2.0", "id": None, "error": zero}
        assert "result" in engine.call("ping")
        engine.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')  # a line
        (error,) = engine.rest()
        assert "a frame length of 2065853043 bytes, over the limit" in error["error"]["message"]  # type: ignore[index]
        assert engine.process.wait(PATIENCE_S) == 0


def test_stderr_that_is_the_pipe_of_stdout_gets_no_bytes_between_frames(tmp_path: Path) -> None:
    command = [*PROBE, "serve", "--protocol", "gassist", "--allow=*"]
    message = json.dumps(request(1, "execute", {"function": "spill", "arguments": {"to": "exception"}})).encode()
    done = subprocess.run(
        command, input=len(message).to_bytes(4, "big") + message, cwd=tmp_path, timeout=PATIENCE_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
    )  # fmt: skip
    assert int.from_bytes(done.stdout[:4], "big") == len(done.stdout) - 4
    assert json.loads(done.stdout[4:])["params"]["code"] == -32603
    assert "Traceback" in (tmp_path / "probe.py.log").read_text()


def test_changed_messages_are_answered_or_ignored_and_the_plugin_lives() -> None:
    chosen = random.Random(15)
    valid = [
        HELLO,
        request(2, "ping", {"timestamp": 1}),
        request(3, "execute", {"function": "probe_log", "arguments": {"text": "t"}, "context": [], "system_info": ""}),
        request(4, "execute", {"function": "probe_echo", "arguments": {}}),
        request(5, "input", {"content": "yes", "timestamp": 1}),
    ]
    values: list[object] = [None, True, 0, 1.5, 10**30, "", "x" * 300, [], {}, "yes", "echo", "2.0", "${x.y}"]
    with Engine("--allow=log") as engine:
        for number in range(400):
            message = json.loads(json.dumps(chosen.choice(valid)))
            part = chosen.choice([message, message["params"]])
            part[chosen.choice(list(part))] = chosen.choice(values)
            payload = bytearray(json.dumps(message).encode())
            if number % 2:
                payload[chosen.randrange(len(payload))] = chosen.randrange(256)
            engine.write(len(payload).to_bytes(4, "big") + payload)
            answers = engine.until_pong(number)
            faults = [each for each in answers if '"code": -32603' in json.dumps(each)]
            assert not faults, (payload, faults)
        assert (engine.end(), engine.err) == (0, b"")


# --- The clauses, and the folder of a plugin ---


def test_it_meets_every_clause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts = DIALECTS["gassist"].timeouts
    monkeypatch.setattr(DIALECTS["gassist"], "timeouts", dict.fromkeys(timeouts, PATIENCE_S))
    profile = {
        "function": "probe_log", "arguments": {}, "failing": "probe_end_badly", "input": "yes",
        "asking": "probe_echo", "asking-arguments": {"text": "hi"},
    }  # fmt: skip
    command = [*PROBE, "serve", "--protocol", "gassist", "--allow=log,spill"]
    with ChildUnderTest(command, tmp_path) as child:
        found = run_conversation(child, "gassist", profile | {"workdir": str(tmp_path)}, (), PATIENCE_S)
    assert found == {clause.id: ("met", "") for clause in clauses_of("gassist")}


def test_an_exported_plugin_runs_as_the_emulator_starts_it(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "shell"
    subprocess.run([*SHELL, "export", "--protocol", "gassist", folder], timeout=PATIENCE_S, check=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    with MessageHost([manifest["executable"]], "uint32", cwd=folder) as engine:
        engine.send(HELLO)
        (commands,) = (result["commands"] for result in [engine.next()["result"]] if isinstance(result, dict))
        assert [command["name"] for command in commands] == [function["name"] for function in manifest["functions"]]
        engine.send(request(2, "execute", {"function": "shell_make_temp", "arguments": {"prefix": "a-"}}))
        made = engine.next()["params"]
        assert isinstance(made, dict)
        assert str(made["data"]).startswith(f"Created directory {folder}/workdir/a-")
        assert (engine.end(), engine.err) == (0, b"")
