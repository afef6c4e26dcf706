"""Lint: what a specification demands is found where it is not met, by the line and the clause."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.protocols.rules import WITH_RULES, rules_of
from ext_recorder.tools.lint import lint
from tests.peers import conversations
from tests.support.player_host import cassette

if TYPE_CHECKING:
    from pathlib import Path

EXIT = "- {t: 99, exit: 0}"


def found(path: Path, protocol: str, *messages: str, framing: str = "ndjson", end: str = EXIT) -> list[str]:
    """The findings on a session: `> …` is said by the host, `< …` by the child, a second apart."""
    sides = {">": "in", "<": "out"}
    events = [f"- {{t: {at}, {sides[text[0]]}: '{text[2:]}'}}" for at, text in enumerate(messages, 1)]
    case = lint(cassette(path / "x.yaml", "\n".join([*events, end]), protocol=protocol, framing=framing), "x.yaml")
    return [f"{each.kind}: {each.text.partition(': ')[2].splitlines()[0]}" for each in case.problems]


def rpc(side: str, id: int | None, method: str = "", **members: object) -> str:
    """A JSON-RPC message as `found` takes it."""
    known: dict[str, object] = {} if id is None else {"id": id}
    named: dict[str, object] = {"method": method} if method else {}
    return f"{side} {json.dumps({'jsonrpc': '2.0'} | known | named | members)}"


MANIFEST = {"name": "x", "version": "1", "protocolVersion": "0.0.1", "operations": {}}
HELLO = (rpc(">", 1, "initialize", params={"protocolVersion": "0.0.1"}), rpc("<", 1, result=MANIFEST))
CONTEXT = {"workdir": "/tmp/workdir", "phase": "setup"}
RUN = rpc(">", 2, "execute", params={"operation": "run", "args": {}, "context": CONTEXT})
DONE = rpc("<", 2, result={"success": True})
LOG = rpc("<", None, "log", params={"level": "info", "message": "m"})

GEVALS = [
    ([*HELLO, RUN, LOG, DONE], []),
    ([RUN, DONE], []),
    ([HELLO[0], rpc("<", 1, result={"name": "x"})], ["manifest: /result: expected the members 'version', "]),
    ([*HELLO, RUN, rpc("<", 2, result={"success": 1})], ["result: /result/success: expected a boolean, found 1"]),
    ([*HELLO, RUN, DONE, LOG], ["log-during: `< log` while no execute is open"]),
    ([*HELLO, *HELLO], ["lifecycle: `> initialize` in the state 'ready'"]),
    ([*HELLO, RUN], ["answer-each: execute run #2 has no response"]),
    ([*HELLO, RUN, DONE, DONE], ["answer-known: a response to #2, for which no request is open"]),
    ([*HELLO, rpc("<", 9, "execute", params={})], ["messages: `< execute` is not a message", "answer-each: "]),
    ([*HELLO, "< Loading..."], ["stdout: expected a message, found b'Loading...'"]),
    ([*HELLO, RUN, rpc("<", 2, error={"code": "x"})], ["error-object: /error: ", "error-object: /error/code: "]),
    ([*HELLO, "> {\"id\":2,\"method\":\"shutdown\"}", rpc("<", 2, result={})], ["version-2: the message: expected"]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "findings"), GEVALS, ids=range(len(GEVALS)))
def test_the_clauses_of_the_gevals_protocol(messages: list[str], findings: list[str], tmp_path: Path) -> None:
    said = found(tmp_path, "gevals", *messages)

    assert len(said) == len(findings), said
    assert all(one.startswith(other) for one, other in zip(said, findings, strict=True)), said


def test_a_session_that_was_cut_off_owes_no_answer(tmp_path: Path) -> None:
    assert found(tmp_path, "gevals", *HELLO, RUN, end="- {t: 99, exit: SIGKILL}") == []


PLUGIN = (
    rpc(">", 1, "initialize", params={"protocol_version": "2.0"}),
    rpc("<", 1, result={"name": "x", "version": "1"}),
)


def call(id: int) -> str:
    return rpc(">", id, "execute", params={"function": "f", "arguments": {}})


def told(method: str, id: int, **params: object) -> str:
    return rpc("<", None, method, params={"request_id": id} | params)


COMPLETE = {"success": True, "data": "x", "keep_session": False}
ASKED = rpc(">", 4, "input", params={"content": "more"})
ACKNOWLEDGED = rpc("<", 4, result={"acknowledged": True})
KEPT = (call(3), told("complete", 3, **COMPLETE | {"keep_session": True}))

GASSIST = [
    ([*PLUGIN, call(3), told("stream", 3, data="x"), told("complete", 3, **COMPLETE)], []),
    ([*PLUGIN, *KEPT, ASKED, ACKNOWLEDGED, told("complete", 4, **COMPLETE)], []),
    ([*PLUGIN, *KEPT, ASKED, told("stream", 4, data="x"), ACKNOWLEDGED, told("complete", 4, **COMPLETE)],
     ["input: `< stream` in the state 'to be acknowledged'"]),
    ([*PLUGIN, ASKED, ACKNOWLEDGED, told("complete", 4, **COMPLETE)],
     ["session: `> input` in the state 'no session'"]),
    ([*PLUGIN, call(3), told("complete", 3, **COMPLETE | {"data": {}})],
     ["complete: /params/data: expected a string, found {}"]),
    ([*PLUGIN, told("stream", 3, data="x")], ["running: `< stream` while no execute or input is open", "input: "]),
    ([*PLUGIN, rpc(">", 3, "ping", params={"timestamp": 1}), rpc("<", 3, result={"timestamp": 2})],
     ["ping: /result/timestamp: expected 1 as in the request, found 2"]),
    ([*PLUGIN, rpc(">", 3, "ping", params={"timestamp": 1}), LOG, rpc("<", 3, result={"timestamp": 1})],
     ["timeouts: the response to ping took 2.000 s"]),
    ([*PLUGIN, rpc(">", None, "shutdown", params={}), call(3), told("complete", 3, **COMPLETE)],
     ["once: `> execute` in the state 'over'"]),
    ([told("stream", 3, data="x"), *PLUGIN],
     ["running: `< stream` while no execute", "once: `< stream` in the state 'spawned'", "input: "]),
    ([*PLUGIN, call(3), rpc("<", 7, "stream", params={"request_id": 3, "data": "x"}), told("complete", 3, **COMPLETE)],
     ["no-id: `< stream` has an id: 7", "input: ", "answer-each: "]),
    ([*PLUGIN, call(3), rpc("<", 3, result={"success": True}, error={"code": 1, "message": "m"})],
     ["either: a response with a result and an error"]),
    ([*PLUGIN, rpc("<", None, params={})], ["message: neither a request nor a notification nor a response"]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "findings"), GASSIST, ids=range(len(GASSIST)))
def test_the_clauses_of_the_plugin_protocol(messages: list[str], findings: list[str], tmp_path: Path) -> None:
    said = found(tmp_path, "gassist", *messages, framing="uint32")

    assert len(said) == len(findings), said
    assert all(one.startswith(other) for one, other in zip(said, findings, strict=True)), said


NAMED = (rpc(">", 1, "eval.run", params={"path": "e"}), rpc("<", 1, result={"runId": "a", "status": "running"}))


def progress(run: str) -> str:
    return rpc("<", None, "eval.progress", params={"runId": run, "event": "run_start"})


COMPLETED = rpc("<", None, "eval.complete", params={"runId": "a", "error": "x"})

WAZA = [
    ([*NAMED, progress("a"), COMPLETED], []),
    ([*NAMED, COMPLETED, progress("a")], ["named: `< eval.progress` in the state 'complete'"]),
    ([*NAMED, progress("b")], ["named: `< eval.progress` in the state 'not named yet'"]),
    ([NAMED[0], progress("a"), NAMED[1]], ["named: `< eval.progress` in the state 'not named yet'"]),
    ([rpc(">", 1, "eval.run", params={"dir": "e"}), NAMED[1]], ["run: /params: expected the member 'path'"]),
]


@pytest.mark.parametrize(("messages", "findings"), WAZA, ids=range(len(WAZA)))
def test_the_clauses_of_the_evaluation_server(messages: list[str], findings: list[str], tmp_path: Path) -> None:
    said = found(tmp_path, "waza", *messages)

    assert len(said) == len(findings), said
    assert all(one.startswith(other) for one, other in zip(said, findings, strict=True)), said


def fix(id: int) -> str:
    return f"> {json.dumps(conversations.command(id, 'generate_fix', session_id='s', incidents=[]))}"


FIXED = rpc("<", 1, result={"request_id": "r", "session_id": "s", "status": "completed"})


def streamed(kind: str, content: dict[str, object]) -> str:
    about = {"session_id": "s", "request_id": "r", "message_id": "m", "timestamp": "t"}
    return rpc("<", None, f"kaiak/stream/{kind}", params=about | {"content": content})


SYSTEM = streamed("system", {"message": "m"})

KAIAK = [
    ([fix(1), SYSTEM, FIXED], []),
    ([fix(1), FIXED, SYSTEM], ["during: `< kaiak/stream/system` while no", "during: `< kaiak/stream/system` in the"]),
    ([fix(1), streamed("progress", {"phase": 1}), FIXED],
     ["stream: /params/content: ", "stream: /params/content/phase: "]),
    ([rpc(">", 1, "workspace/executeCommand", params={"command": "other", "arguments": []}), rpc("<", 1, result=1)],
     ["methods: `> workspace/executeCommand:other` is not a message"]),
    ([fix(1), "< INFO kaiak: starting", FIXED], ["framing: expected a message, found b'INFO kaiak: starting'"]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "findings"), KAIAK, ids=range(len(KAIAK)))
def test_the_clauses_of_the_agent_api(messages: list[str], findings: list[str], tmp_path: Path) -> None:
    said = found(tmp_path, "kaiak", *messages, framing="content-length")

    assert len(said) == len(findings), said
    assert all(one.startswith(other) for one, other in zip(said, findings, strict=True)), said


RAN = (rpc(">", 1, "eval.run", params={"path": "e"}), rpc("<", 1, result={"run_id": "run-1"}))
STATUS = rpc(">", 2, "run.status", params={"run_id": "run-1"})

WAZA_GO = [
    ([*RAN, STATUS, rpc("<", 2, result={"id": "run-1", "status": "completed"})], []),
    ([rpc(">", 1, "eval.list", params={"dir": "e"}), rpc("<", 1, result={"evals": None})], []),
    ([rpc(">", 1, "eval.list", params={"directory": "e"}), rpc("<", 1, result={"evals": None})],
     ["list: /params: expected the member 'dir'"]),
    ([rpc(">", 1, "eval.run", params={"path": "e"}), rpc("<", 1, result={"runId": "a", "status": "running"})],
     ["run: /result: expected the member 'run_id'"]),
    ([*RAN, STATUS, rpc("<", 2, result={"id": "run-2", "status": "completed"})],
     ["named: `< = run.status` in the state 'not named yet'"]),
    ([*RAN, STATUS, rpc("<", 2, result={"id": "run-1", "status": "complete"})], ["status: /result/status: "]),
    ([*RAN, STATUS, rpc("<", 2, error={"code": -32602, "message": "Invalid params", "data": {"runId": "a"}})],
     ["error: /error/data: expected a string"]),
    ([*RAN, rpc("<", None, "eval.progress", params={"runId": "run-1"})],
     ["methods: `< eval.progress` is not a message"]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "findings"), WAZA_GO, ids=range(len(WAZA_GO)))
def test_what_the_evaluation_server_in_go_demands(messages: list[str], findings: list[str], tmp_path: Path) -> None:
    said = found(tmp_path, "waza-go", *messages)

    assert len(said) == len(findings), said
    assert all(one.startswith(other) for one, other in zip(said, findings, strict=True)), said


INCIDENT = {"id": "1", "uri": "file:///a", "message": "m", "description": "d"}
BEGUN = rpc(
    ">", 1, "kaiak/generate_fix", params={"incidents": [INCIDENT], "agent_config": {"workspace": {"working_dir": "/w"}}}
)
ENDED = rpc("<", 1, result={"request_id": "r", "session_id": "s", "created_at": "2026-01-01T00:00:00Z"})
CONFIRMS = {"session_id": "s", "kind": "tool_confirmation", "timestamp": "2026-01-01T00:00:00Z"}
CONFIRMED = rpc(
    ">", 2, "kaiak/client/user_message", params=CONFIRMS | {"payload": {"request_id": "i", "action": "deny"}}
)
TAKEN = rpc("<", 2, result={"success": True, "message": "m"})
CLEANED = {
    "session_removed": True,
    "temp_files_cleaned": True,
    "logs_preserved": True,
    "warnings": [],
    "files_removed": 5,
}
DELETED = (
    rpc(">", 3, "kaiak/delete_session", params={"session_id": "s"}),
    rpc("<", 3, result={"session_id": "s", "status": "deleted", "cleanup_results": CLEANED,
                        "deleted_at": "2026-01-01T00:00:00Z"}),
)  # fmt: skip


def data(kind: str, **payload: object) -> str:
    about = {"request_id": "r", "session_id": "s", "kind": kind, "payload": payload}
    return rpc("<", None, "kaiak/generate_fix/data", params=about)


ASKED_FOR = data("user_interaction", interaction_type="tool_confirmation", id="i", tool_name="t", arguments={})
THOUGHT = data("thinking", thinking="x")

KAIAK_HEAD = [
    ([BEGUN, THOUGHT, ASKED_FOR, CONFIRMED, TAKEN, ENDED, *DELETED, DELETED[0], DELETED[1]], []),
    ([BEGUN, CONFIRMED, TAKEN, ENDED], ["interaction: `> kaiak/client/user_message:tool_confirmation` in the"]),
    ([BEGUN, ASKED_FOR, CONFIRMED, TAKEN, CONFIRMED, TAKEN, ENDED],
     ["interaction: `> kaiak/client/user_message:tool_confirmation` in the state 'answered'"]),
    ([BEGUN, data("progress", percentage=1), ENDED], ["data: /params/kind: "]),
    ([BEGUN, data("thinking", text="x"), ENDED], ["data: /params/payload: expected the member 'thinking'"]),
    ([BEGUN, ENDED, THOUGHT], ["during: `< kaiak/generate_fix/data` while no kaiak/generate_fix is open", "during: "]),
    ([BEGUN.replace('"uri"', '"rule_id"'), ENDED], ["fix: /params/incidents/0: expected the member 'uri'"]),
    ([BEGUN, ENDED, *DELETED, BEGUN.replace('"id": 1', '"id": 4'), ENDED.replace('"id": 1', '"id": 4')],
     ["session: `< = kaiak/generate_fix` in the state 'gone'", "during: "]),
    ([rpc(">", 1, "workspace/executeCommand", params={"command": "kaiak/configure"}), rpc("<", 1, result={})],
     ["methods: `> workspace/executeCommand` is not a message"]),
    ([BEGUN, "< {no}", ENDED], []),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "findings"), KAIAK_HEAD, ids=range(len(KAIAK_HEAD)))
def test_what_the_later_server_of_the_agent_demands(messages: list[str], findings: list[str], tmp_path: Path) -> None:
    said = found(tmp_path, "kaiak-head", *messages, framing="content-length")

    assert len(said) == len(findings), said
    assert all(one.startswith(other) for one, other in zip(said, findings, strict=True)), said


def pi(side: str, type: str, **payload: object) -> str:
    return f"{side} {json.dumps(conversations.envelope('1', type, **payload))}"


REGISTERED = pi("<", "register", name="x", version="1", api_version="1.0")
ASKS = pi("<", "host_call", call_id="c", capability="exec", method="exec", params={})
ANSWERS = pi(">", "host_result", call_id="c", output={}, is_error=False)

PI = [
    ([REGISTERED, ASKS, ANSWERS], []),
    ([ASKS, ANSWERS], ["order: `< host_call` in the state 'spawned'"]),
    ([REGISTERED, REGISTERED], ["order: `< register` in the state 'registered'"]),
    ([REGISTERED, ANSWERS], ['answer-known: a response to #"c", for which no request is open']),
    ([REGISTERED, ASKS.replace('"exec", "method"', '"read", "method"'), ANSWERS],
     ['host-call: /payload/capability: expected "exec", found "read"']),
    ([REGISTERED, ASKS, ANSWERS.replace("false", "true")], ["host-result: /payload: expected the member 'error'"]),
    ([REGISTERED, pi("<", "log", schema="pi.ext.log.v1", ts="now")], ["log: /payload: ", 'log: /payload/ts: ']),
    ([REGISTERED, pi("<", "tool_call", call_id="c", name="n", input={})],
     ["types: `< tool_call` is not a message", "answer-each: "]),
    ([REGISTERED, "< Loading..."], ["message: expected a message, found b'Loading...'"]),
    ([REGISTERED.replace('"1.0", "type"', '"1.1", "type"')], ['envelope: /version: expected "1.0", found "1.1"']),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "findings"), PI, ids=range(len(PI)))
def test_the_clauses_of_the_extension_protocol_of_pi(messages: list[str], findings: list[str], tmp_path: Path) -> None:
    said = found(tmp_path, "pi", *messages)

    assert len(said) == len(findings), said
    assert all(one.startswith(other) for one, other in zip(said, findings, strict=True)), said


REVISION = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
DISCOVER = rpc(">", 1, "server/discover", params={"_meta": REVISION})
DISCOVERED = rpc("<", 1, result={"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"})
REFUSED = rpc("<", 1, error={"code": -32601, "message": "Method not found"})
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
SERVER = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "b", "version": "1"}}
INITIALIZE = (
    rpc(">", 2, "initialize", params=CLIENT),
    rpc("<", 2, result=SERVER),
    rpc(">", None, "notifications/initialized"),
)
OLD_CALL = rpc(">", 3, "tools/call", params={"name": "a", "arguments": {}})
CALL = rpc(">", 3, "tools/call", params={"name": "a", "arguments": {}, "_meta": REVISION})
CALLED = rpc("<", 3, result={"content": []})

MCP = [
    ([*INITIALIZE, OLD_CALL, CALLED], []),
    ([OLD_CALL, CALLED], ["phases: `> tools/call` in the state 'new'"]),
    ([DISCOVER, DISCOVERED, CALL, CALLED], []),
    ([CALL, CALLED], []),
    ([DISCOVER, REFUSED, *INITIALIZE, OLD_CALL, CALLED], []),
    ([DISCOVER, CALL, DISCOVERED, CALLED], ["phases: `> tools/call:2026-07-28` in the state 'discovering'"]),
    ([DISCOVER, DISCOVERED, OLD_CALL, CALLED], ["phases: `> tools/call` in the state 'discovered'"]),
    ([rpc(">", 1, "server/discover"), DISCOVERED], ["discover: /params: expected the member '_meta'"]),
    ([DISCOVER, rpc("<", 1, result={})], ["discover: /result: expected the members 'supportedVersions', "]),
    ([CALL, rpc("<", 3, result={"resultType": "input_required", "inputRequests": {}})], []),
    ([CALL, rpc(">", None, "notifications/cancelled", params={"requestId": 3})], []),
    (
        [CALL, rpc(">", None, "notifications/cancelled", params={"requestId": "3"})],
        ["answer-each: tools/call a #3 has no response"],
    ),
    ([CALL, rpc("<", 3, result={"task": {"taskId": "t", "status": "working"}})], []),
    ([CALL, rpc("<", 3, result={"resultType": "complete"})], ["tools: /result: expected the member 'content'"]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "findings"), MCP)
def test_the_clauses_of_mcp_with_and_without_a_handshake(
    messages: list[str], findings: list[str], tmp_path: Path
) -> None:
    problems = found(tmp_path, "mcp", *messages)

    assert len(problems) == len(findings), problems
    assert all(problem.startswith(finding) for problem, finding in zip(problems, findings, strict=True)), problems


def test_a_protocol_without_rules_is_only_read(tmp_path: Path) -> None:
    path = cassette(tmp_path / "x.yaml", "- {t: 1, out: 'hello'}\n- {t: 2, exit: 0}", protocol="raw")
    case = lint(path, "x.yaml")

    assert case.ok
    assert case.notes == ("raw: this protocol has no rules; all 2 events could be read",)


@pytest.mark.parametrize("name", WITH_RULES)
def test_rules_cite_clauses_that_there_are_and_schemas_are_valid(name: str) -> None:
    rules = rules_of(name)
    assert rules is not None

    cited = {rules.envelope_clause, *(clause for clause, _ in rules.messages.values()), rules.closed, rules.junk} - {""}
    cited.update(machine.clause for machine in rules.machines)
    cited.update(rule.clause for rule in rules.during)
    cited.update(*(table.values() for table in (rules.notifications, rules.limits, rules.echoes)))
    assert cited <= rules.clauses.keys()
    for schema in (rules.envelope, *(schema for _, schema in rules.messages.values())):
        Draft202012Validator.check_schema(dict(schema))
    for machine in rules.machines:
        states = {state for row in machine.moves.values() for state in row.values()} | {machine.start}
        assert states == set(machine.moves)
    assert rules.limits.keys() <= DIALECTS[name].timeouts.keys()


def test_the_exit_code_and_the_lines_tell(tmp_path: Path) -> None:
    path = cassette(tmp_path / "x.yaml", f"- {{t: 1, in: '{RUN[2:]}'}}\n{EXIT}")
    command = [sys.executable, "-m", "ext_recorder", "lint"]

    said = subprocess.run([*command, path], capture_output=True, text=True, check=False)
    as_json = subprocess.run([*command, "--json", path], capture_output=True, text=True, check=False)

    assert (said.returncode, said.stderr) == (1, "")
    assert said.stdout.splitlines() == [
        f"wrong   {path}: 1 finding",
        f"        {path}:7: execute run #2 has no response",
        "          gevals extension protocol 0.0.1, JSON-RPC 2.0, 5: Every request is answered, once.",
    ]
    assert as_json.returncode == 1
    assert (
        json.loads(as_json.stdout)["problems"][0] | {"kind": "answer-each", "line": 7}
        == (json.loads(as_json.stdout)["problems"][0])
    )
