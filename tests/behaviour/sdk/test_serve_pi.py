"""`serve --protocol pi`: a host of the Pi extension protocol and its extension; and the real Pi, over the bridge."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import jsonschema
import pytest

from ext_recorder.conformance.peer import ChildUnderTest
from ext_recorder.conformance.protocol_clauses import clauses_of, run_conversation
from ext_recorder.protocols.rules import rules_of
from tests.support.host import PATIENCE_S, PROBE, MessageHost
from tests.support.http_stub import Stub
from tests.support.model_api import stream
from tests.support.paths import ROOT
from tests.support.process_tracker import ProcessTracker
from tests.support.program_packages import coding_agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.host import Message
    from tests.support.http_stub import Asked, Handler

REVIEWER = [sys.executable, str(ROOT / "docs/examples/reviewer.py")]
SHELL = [sys.executable, "-m", "ext_shell"]


class PiHost(MessageHost):
    """Host of one extension, which serves all operations unless other options are given. Checks every message."""

    def __init__(
        self, *options: str, program: Sequence[str] = PROBE, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> None:
        super().__init__([*program, "serve", "--protocol", "pi", *(options or ("--allow=*",))], "ndjson", env, cwd)
        self.schemas = rules_of("pi")
        self.registered = payload(self.next())

    def next(self) -> Message:
        message = super().next()
        rules = self.schemas
        assert rules is not None
        jsonschema.validate(message, rules.envelope)
        kind = str(message["type"])
        of = {"tool_result": "= tool_call", "slash_result": "= slash_command"}.get(kind, kind)
        jsonschema.validate(message["payload"], rules.messages[f"< {of}"][1])
        check_rust(kind, message)
        return message

    def post(self, kind: str, id: str = "m", /, **fields: object) -> None:
        self.send({"id": id, "version": "1.0", "type": kind, "payload": fields})

    def tool(self, name: str, /, **input: object) -> tuple[str, bool]:
        """Call a tool, and return the text of its result, and True for a failure."""
        self.post("tool_call", call_id="c", name=name, input=input)
        return outcome(self.until(lambda message: message["type"] == "tool_result")[-1])

    def slash(self, *args: str, name: str = "probe", **more: object) -> tuple[str, bool]:
        self.post("slash_command", "slash", name=name, args=args, **more)
        result = self.until(lambda message: message["type"] == "slash_result")[-1]
        assert result["id"] == "slash"
        return outcome(result)

    def until_answered(self, number: int) -> list[Message]:
        """Send a slash command, and return the messages before its result."""
        self.post("slash_command", f"alive {number}", name="probe")
        return self.until(lambda message: message["id"] == f"alive {number}")[:-1]


def check_rust(kind: str, message: Message) -> None:
    """Check what the Rust implementation requires and the schema does not: no blank texts, no nulls."""
    fields = payload(message)
    correlation = cast("dict[str, object]", fields.get("correlation", {}))
    names = ("name", "version", "api_version", "call_id", "code", "message", "capability", "method", "event", "ts")
    texts = [message["id"], *(fields[name] for name in names if name in fields), *correlation.values()]
    assert all(isinstance(text, str) and text.strip() for text in texts), message
    assert None not in fields.values(), message
    assert kind != "host_call" or isinstance(fields.get("timeout_ms", 0), int)


def payload(message: Message) -> dict[str, object]:
    fields = message["payload"]
    assert isinstance(fields, dict)
    return fields


def outcome(message: Message) -> tuple[str, bool]:
    fields = payload(message)
    output = cast("dict[str, list[dict[str, str]]]", fields["output"])
    (block,) = output["content"]
    assert block["type"] == "text"
    return block["text"], fields["is_error"] is True


@pytest.mark.parametrize("program", [PROBE, SHELL], ids=["built", "prepared"])
def test_it_registers_before_anything_is_sent(program: list[str]) -> None:
    with PiHost(program=program) as host:
        name = "probe" if program is PROBE else "shell"
        tools = cast("list[dict[str, str]]", host.registered["tools"])
        assert host.registered["name"] == name
        assert all(tool["name"].startswith(f"{name}-") and tool["label"] and tool["description"] for tool in tools)
        assert host.end() == 0
        notice = b"ext-shell: not served because they would fail: assert-agent (only hosts of evals send the answer of "
        assert host.err == (b"" if program is PROBE else notice + b"an agent)\n")


def test_results_have_text_and_details_and_logs_name_their_call() -> None:
    with PiHost() as host:
        context = {"scenario_id": "s", "run_id": "r", "cwd": "/tmp", "hasUI": True}
        host.post("tool_call", "m1", call_id="c1", name="probe-log", input={"text": "t"}, context=context)
        *logs, result = host.until(lambda message: message["type"] == "tool_result")
        assert (result["id"], payload(result)["call_id"]) == ("m1", "c1")
        assert outcome(result) == ("five", False)
        assert [(payload(log)["level"], payload(log)["message"]) for log in logs] == [
            ("debug", "one"), ("info", "two"), ("warn", "three"), ("error", "four"),
        ]  # fmt: skip
        assert all(
            payload(log)["correlation"]
            == {"extension_id": "probe", "scenario_id": "s", "run_id": "r", "tool_call_id": "c1"}
            for log in logs
        )
        assert payload(logs[2])["data"] == {"path": "/x", "number": 1, "nan": "nan"}
        assert host.tool("probe-echo", text="hi") == ("hi\ntext: hi\nlength: 2\nempty: false", False)
        output = cast("dict[str, dict[str, object]]", payload(host.received[-1])["output"])
        assert output["details"] == {
            "success": True, "message": "hi", "outputs": {"text": "hi", "length": "2", "empty": "false"},
        }  # fmt: skip
        assert host.tool("probe-spill", to="log", text="")[1] is False  # a blank message is refused by Rust


def test_failures_and_refusals_are_results_of_their_calls() -> None:
    with PiHost("--allow=echo,spill", "--deny=log") as host:
        assert host.tool("probe-spill", to="error", text="details") == ("it failed\ndetails", True)
        assert host.tool("probe-eco") == ("unknown tool: probe-eco; did you mean 'probe-echo'?", True)
        assert "--deny excludes it" in host.tool("probe-log")[0]
        assert "start the server with --allow hang" in host.tool("probe-hang")[0]
        assert host.tool("probe-echo", text=1)[0].startswith("echo: text: expected a string, found ")
        assert host.tool("probe-spill", to="exception")[0].startswith("spill: unexpected ValueError: x; ")
        host.post("tool_call", call_id="c", name="probe-echo", input="hi")  # which Rust accepts
        assert outcome(host.next()) == ('echo: args: expected an object, found "hi"', True)
        host.post("tool_call", call_id="c", name="probe-echo", input=None, context=None)
        assert outcome(host.next())[1] is False
        host.post("tool_call", call_id="c", name="probe-echo")
        assert outcome(host.next()) == ("payload.input: expected an object, found nothing", True)
        host.post("tool_call", call_id="c", name="probe-echo", input={}, context={"cwd": 5})
        assert outcome(host.next()) == ("payload.context.cwd: expected a directory, found 5", True)


def test_a_slash_command_lists_describes_and_runs_operations() -> None:
    with PiHost() as host:
        listed, failed = host.slash()
        assert not failed
        assert listed.startswith("/probe OPERATION {ARGUMENTS AS JSON} runs an operation")
        assert "  echo  " in listed
        assert host.slash("help", "echo")[0].startswith("echo: Give the text back.")
        assert 'example:\n  /probe echo {"text":"hi"}' in host.slash("help echo")[0]
        told = ("hi\ntext: hi\nlength: 2\nempty: false", False)
        assert host.slash("echo", '{"text": "hi"}') == told
        assert host.slash('probe-echo {"text":', '"hi"}') == told
        assert host.slash("echo", input={"text": "hi"}) == told
        assert host.slash("echo", "hi")[0].startswith(
            'echo: expected an object of JSON, such as echo {"name": "value"}'
        )
        assert host.slash("eco") == ("unknown tool: eco; did you mean 'echo'?", True)
        assert host.slash(name="prob") == ("unknown slash command: prob; the only one is probe", True)
        host.post("slash_command", "x", name="probe", args="echo")
        assert outcome(host.next()) == ('payload.args: expected a list of strings, found "echo"', True)


def test_the_working_directory_is_that_of_the_option_of_the_call_or_of_the_process(tmp_path: Path) -> None:
    (tmp_path / "fixed").mkdir()
    for options, cwd, folder in (
        ((), None, tmp_path),
        ((), "/other", Path("/other")),
        ((), "below", tmp_path / "below"),
        ((f"--workdir={tmp_path}/fixed",), "/other", tmp_path / "fixed"),
    ):
        with PiHost("--allow=*", *options, cwd=tmp_path) as host:
            context = {} if cwd is None else {"cwd": cwd}
            host.post("tool_call", call_id="c", name="probe-circumstances", input={}, context=context)
            assert f"workdir: {folder}\n" in outcome(host.next())[0]


# --- Calls of the host ---


def answer(host: PiHost, call: Message, *outputs: dict[str, object], **more: object) -> None:
    for index, output in enumerate(outputs):
        chunk = {"index": index, "is_last": index == len(outputs) - 1}
        fields = {"output": output, "is_error": False} | ({"chunk": chunk} if len(outputs) > 1 else {}) | more
        host.post("host_result", f"host_result:{index}", call_id=payload(call)["call_id"], **fields)


def counting(host: PiHost, call_id: str = "c") -> Message:
    """Begin a call of count-lines, and return its call of the host."""
    host.post("tool_call", call_id=call_id, name="reviewer-count-lines", input={"path": "notes.txt"})
    return host.until(lambda message: message["type"] == "host_call")[-1]


def test_calls_in_both_directions_overlap_and_outputs_come_in_chunks() -> None:
    with PiHost(program=REVIEWER) as host:
        first, other = counting(host, "one"), counting(host, "other")
        called = payload(first)
        assert (called["capability"], called["method"]) == ("read", "tool")
        assert called["params"] == {"name": "read", "input": {"path": "notes.txt"}}
        assert called["context"] == {"tool_call_id": "one"}
        assert 0 < cast("int", called["timeout_ms"]) <= 30_000
        answer(host, other, {"text": "a\n"}, {"text": "b\nc\n"})
        result = host.next()
        assert (payload(result)["call_id"], outcome(result)) == ("other", ("read notes.txt\nlines: 3", False))
        answer(host, first, {"content": [{"type": "text", "text": "a\n"}, {"type": "image"}], "isError": False})
        assert outcome(host.next()) == ("read notes.txt\nlines: 1", False)
        answer(host, first, {"text": "late"})  # is ignored
        host.post("tool_call", call_id="c", name="reviewer-approve", input={"question": "Sure?"})
        called = payload(host.next())
        assert (called["capability"], called["method"]) == ("ui", "ui")
        host.post("host_result", call_id=called["call_id"], output={"value": False}, is_error=False, error=None)
        assert outcome(host.next()) == ("refused: Sure?", True)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"is_error": True, "error": {"code": "denied", "message": "not allowed"}}, "not allowed"),
        ({"is_error": True}, "the host sent an invalid host_result: payload.error: expected an object with a code"),
        ({"is_error": False, "output": []}, "payload.output: expected an object, found []"),
        ({"output": {}}, "payload.is_error: expected true or false, found nothing"),
        ({"is_error": False, "output": {}, "chunk": {"index": 1, "is_last": True}}, "chunk.index: expected 0, found 1"),
        ({"is_error": False, "output": {}, "chunk": {"index": 0}}, "payload.chunk: expected an object with index and"),
    ],
)
def test_a_host_call_that_fails_fails_the_operation(fields: dict[str, object], said: str) -> None:
    with PiHost(program=REVIEWER) as host:
        host.post("host_result", call_id=payload(counting(host))["call_id"], **fields)
        result = host.until(lambda message: message["type"] == "tool_result")[-1]
        text, failed = outcome(result)
        assert failed
        assert text.startswith("host call 'tool' failed: ")
        assert said in text


def test_a_host_call_ends_with_an_error_message_or_the_time_or_the_input() -> None:
    with PiHost('--config={"maxOperationTime": "1s"}', program=REVIEWER) as host:
        call = counting(host)
        host.post("error", str(call["id"]), code="denied", message="no such capability")
        assert outcome(host.next()) == ("host call 'tool' failed: no such capability", True)
        counting(host)
        assert outcome(host.next())[0].startswith("host call 'tool' failed: no response within ")
        counting(host)
        assert host.end() == 0
        assert outcome(host.received[-1])[0].endswith("the host has closed its end, so that no response can follow")


def test_secrets_are_in_no_message() -> None:
    with PiHost(env={"API_TOKEN": "hunter2-hunter2"}) as host:
        for to in ("message", "error", "output", "log", "exception"):
            host.tool("probe-spill", to=to, text="hunter2-hunter2")
        host.tool("hunter2-hunter2")
    with PiHost(env={"API_TOKEN": "hunter2-hunter2"}, program=REVIEWER) as reviewing:
        reviewing.post("tool_call", call_id="c", name="reviewer-approve", input={"question": "hunter2-hunter2"})
        reviewing.next()
    for each in (host, reviewing):
        assert "hunter2" not in json.dumps(each.received)
        assert "[redacted" in json.dumps(each.received)


# --- Events, and the end ---


def test_a_call_is_cancelled_by_an_event_and_has_its_result(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    with PiHost() as host:
        host.post("tool_call", call_id="c", name="probe-wait_for_stop", input={})
        assert "unknown tool" in outcome(host.next())[0]
        host.post("tool_call", call_id="c", name="probe-hang", input={"started": f"{tmp_path}/started"})
        (tmp_path / "started").read_text()
        host.post("tool_call", call_id="c", name="probe-echo", input={})
        assert payload(host.next()) == {
            "code": "invalid_request", "message": "call_id 'c' is still in use by a call of 'hang'",
            "details": {"call_id": "c"},
        }  # fmt: skip
        for data in (None, {}, {"call_id": "other"}, {"call_id": "c"}):
            host.post("event_hook", event="tool_call_cancel", data=data)
        assert outcome(host.next()) == ("hang: the host has cancelled the call", True)
        host.post("event_hook", event="turn_end")  # others are ignored
        assert host.tool("probe-echo")[1] is False


@pytest.mark.parametrize("end", ["event", "eof"])
def test_a_running_call_has_its_result_at_the_end(end: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    os.mkfifo(tmp_path / "go")
    input = {"started": f"{tmp_path}/started"}
    name = "wait-for-stop" if end == "event" else "meet"
    with PiHost() as host:
        host.post(
            "tool_call",
            call_id="c",
            name=f"probe-{name}",
            input=input | ({"goOn": f"{tmp_path}/go"} if end == "eof" else {}),
        )
        (tmp_path / "started").read_text()
        if end == "event":
            host.post("event_hook", event="session_shutdown")
            assert outcome(host.next()) == ("stopped\nremaining: 0.0", True)
        else:
            assert host.process.stdin is not None
            host.process.stdin.close()
            (tmp_path / "go").write_text("end\n")
            assert outcome(host.next()) == ("end", False)
        assert host.rest() == []
        assert host.process.wait(PATIENCE_S) == 0


# --- What is wrong ---


def envelope(kind: str, fields: object = None, id: object = "m") -> str:
    return json.dumps({"id": id, "version": "1.0", "type": kind, "payload": {} if fields is None else fields})


WRONG_TYPE = "type: expected a message of a host, found "
NO_ID = "id: expected a text that is not blank, found "


@pytest.mark.parametrize(
    ("line", "id", "said"),
    [
        ("{", "error-1", "not JSON: "),
        ("[]", "error-1", "expected a JSON object, found []"),
        ('{"id":"m"}', "m", 'version: expected "1.0", found nothing'),
        ('{"id":"m","id":"m"}', "error-1", "the name 'id' is given twice"),
        (envelope(" "), "m", "type: expected a text that is not blank"),
        (envelope("tool_cal"), "m", f"{WRONG_TYPE}'tool_cal'; did you mean 'tool_call'?"),
        (envelope("register"), "m", f"{WRONG_TYPE}'register', which an extension sends"),
        (envelope("log", []), "m", "payload: expected an object, found []"),
        (envelope("log", id=7), "error-1", f"{NO_ID}7"),
        (envelope("log", id=" "), "error-1", f'{NO_ID}" "'),
        (envelope("log", id="\ud800"), "error-1", "id: expected a text in UTF-8, found a lone surrogate"),
        (envelope("tool_call"), "m", "payload.call_id: expected a text that is not blank, found nothing"),
        (envelope("host_result", {"call_id": "host-9"}), "m", "payload.call_id: expected that of a host_call, found "),
    ],
)
def test_what_is_no_valid_message_has_an_error(line: str, id: str, said: str) -> None:
    with PiHost() as host:
        host.write(line.encode() + b"\n")
        message = host.next()
        assert (message["id"], message["type"], payload(message)["code"]) == (id, "error", "invalid_request")
        assert str(payload(message)["message"]).startswith(said)
        assert host.tool("probe-echo")[1] is False


def test_changed_messages_are_answered_or_ignored_and_the_extension_lives() -> None:
    chosen = random.Random(15)
    valid = [
        envelope(kind, fields)
        for kind, fields in (
            ("tool_call", {"call_id": "c", "name": "probe-log", "input": {"text": "t"}, "context": {"cwd": "/"}}),
            ("slash_command", {"name": "probe", "args": ["echo", "{}"], "input": {}}),
            ("event_hook", {"event": "tool_call_cancel", "data": {"call_id": "c"}}),
            ("host_result", {"call_id": "host-1", "output": {}, "is_error": False, "chunk": {"index": 0}}),
            ("error", {"code": "denied", "message": "no", "details": {"call_id": "host-1"}}),
            ("log", {"message": "m"}),
        )
    ]
    values: list[object] = [None, True, 0, 1.5, 10**30, "", "x" * 3000, [], {}, "help", "echo", "1.0", "${x.y}", "\0"]
    with PiHost("--deny=*", "--allow=log,echo") as host:
        for number in range(400):
            message = json.loads(chosen.choice(valid))
            part = chosen.choice([message, message["payload"]])
            part[chosen.choice(list(part))] = chosen.choice(values)
            line = bytearray(json.dumps(message).encode())
            if number % 2:
                line[chosen.randrange(len(line))] = chosen.choice([*b'{}[]",:\\ x\xff'])
            host.write(bytes(line) + b"\n")
            faults = [each for each in host.until_answered(number) if "fault of the extension" in json.dumps(each)]
            assert not faults, (line, faults)
        assert (host.end(), host.err.count(b"\n")) == (0, 1)  # what is not served


SHELL_PROFILE = {
    "tool": "shell-run",
    "input": {"command": ["echo", "hi"]},
    "command": "shell",
    "event": "session_shutdown",
}


@pytest.mark.parametrize(
    ("program", "options", "profile", "not_sent"),
    [
        (REVIEWER, (), json.loads((ROOT / "tests/conformance/profiles/reviewer.json").read_text()), set()),
        (SHELL, ("--allow", "run"), SHELL_PROFILE, {"pi:host-call"}),  # its operations do not call their host
    ],
    ids=["reviewer", "ext-shell"],
)
def test_it_meets_every_clause(
    program: list[str], options: tuple[str, ...], profile: dict[str, object], not_sent: set[str], tmp_path: Path
) -> None:
    with ChildUnderTest([*program, "serve", "--protocol", "pi", *options], tmp_path) as child:
        found = run_conversation(child, "pi", profile | {"workdir": str(tmp_path)}, (), PATIENCE_S)
    skipped = ("skipped", "the child has sent no message that it applies to; add entries to the profile")
    assert found == {each.id: skipped if each.id in not_sent else ("met", "") for each in clauses_of("pi")}


# --- The real Pi ---

CALLS = (
    ("shell-run", {"command": ["sh", "-c", "echo from the shell; pwd"]}),
    ("reviewer-count-lines", {"path": "notes.txt"}),
    ("reviewer-count-lines", {"path": "missing.txt"}),
    ("reviewer-approve", {"question": "Is it good?"}),
)


def scripted_model(handler: Handler, asked: Asked) -> None:
    """Stream the next call of a tool; after the last one, a text."""
    messages = json.loads(asked.body)["messages"]
    count = sum(message["role"] == "tool" for message in messages)
    delta: dict[str, object] = {"role": "assistant", "content": "done"}
    if count < len(CALLS):
        name, arguments = CALLS[count]
        function = {"name": name, "arguments": json.dumps(arguments)}
        delta = {"tool_calls": [{"index": 0, "id": f"call_{count}", "type": "function", "function": function}]}
    base = {"id": "x", "created": 1, "object": "chat.completion.chunk", "model": "m"}
    reason = "tool_calls" if count < len(CALLS) else "stop"
    choices = ({"index": 0, "delta": delta, "finish_reason": None}, {"index": 0, "delta": {}, "finish_reason": reason})
    stream(handler, [*(("", {**base, "choices": [choice]}) for choice in choices), ("", "[DONE]")])


def test_the_real_pi_calls_tools_and_slash_commands_over_the_bridge(tmp_path: Path) -> None:
    program = coding_agent()
    settings, work = tmp_path / "home/.pi/agent", tmp_path / "work"
    for folder in (settings, work):
        folder.mkdir(parents=True)
    (work / "notes.txt").write_text("one\ntwo \N{LINE SEPARATOR}\n")
    for name, extension in (("shell", [*SHELL]), ("reviewer", REVIEWER)):
        options = ["--allow=*"] if name == "shell" else []
        export = [*extension, "export", "--protocol", "pi", *options, str(tmp_path / name)]
        subprocess.run(export, check=True, capture_output=True, timeout=PATIENCE_S)
    environ = {
        "HOME": str(tmp_path / "home"), "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1",
    }  # fmt: skip
    words = ["--mode", "rpc", "--provider", "scripted", "--model", "m", "--no-session"]
    command = ["node", str(program), *words, "-e", str(tmp_path / "shell"), "-e", str(tmp_path / "reviewer")]
    with Stub() as model, closing(ProcessTracker(tmp_path / "alive")) as tracker:
        model.routes["/v1/chat/completions"] = scripted_model
        provider = {
            "baseUrl": f"{model.origin}/v1",
            "api": "openai-completions",
            "apiKey": "k",
            "models": [{"id": "m"}],
        }
        (settings / "models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        with MessageHost(command, "ndjson", environ, work) as pi:
            pi.send({"id": "1", "type": "prompt", "message": '/shell run {"command": ["echo", "hi"]}'})
            shown = pi.until(lambda message: message["type"] == "response")
            assert "stdout: hi" in json.dumps(shown)
            pi.send({"id": "2", "type": "prompt", "message": "/reviewer nothing"})
            (failed, _) = pi.until(lambda message: message["type"] == "response")
            assert failed["type"] == "extension_error"
            assert str(failed["error"]).startswith("unknown tool: nothing; known are count-lines, approve")
            pi.send({"id": "3", "type": "prompt", "message": "Use the tools."})
            ask = pi.until(lambda message: message["type"] == "extension_ui_request")[-1]
            assert (ask["method"], ask["message"]) == ("confirm", "Is it good?")
            pi.send({"type": "extension_ui_response", "id": ask["id"], "confirmed": True})
            pi.until(lambda message: message["type"] == "agent_end")
            ends = [message for message in pi.received if message["type"] == "tool_execution_end"]
            found = [
                (end["isError"], cast("dict[str, list[dict[str, str]]]", end["result"])["content"]) for end in ends
            ]
            texts = [(failed, content[0]["text"]) for failed, content in found]
            assert texts[0][0] is False
            assert f"from the shell\n{work}\n" in texts[0][1]
            assert texts[1] == (False, "read notes.txt\nlines: 2")
            assert texts[2][0] is True
            assert texts[2][1].startswith("host call 'tool' failed: ENOENT")
            assert texts[3] == (False, "approved: Is it good?")
            background = {"name": "b", "command": ["sh", "-c", f"{tracker.hold}; echo up >&9; sleep 600"]}
            pi.send({"id": "4", "type": "prompt", "message": f"/shell start {json.dumps(background)}"})
            assert tracker.line() == "up"
            pi.process.kill()
            assert not tracker.left()
