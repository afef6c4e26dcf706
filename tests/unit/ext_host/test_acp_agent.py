"""Agents over ACP: the session, permissions, files, commands and MCP servers of agents, and agents that fail."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ext_host.acp_agent import AcpAgent
from ext_host.files import HostError, McpServer
from ext_sdk.polling import Deadline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_host.commands import AgentResult

pytest.importorskip("acp")

ROOT = Path(__file__).parents[3]
ALLOW = {"optionId": "yes", "name": "Allow", "kind": "allow_once"}
ALWAYS = {"optionId": "always", "name": "Always allow", "kind": "allow_always"}
DENY = {"optionId": "no", "name": "Reject", "kind": "reject_once"}
SERVER = McpServer("files", {"command": "sh", "alwaysAllow": ["read_note"]})


class Runs:
    """Runs of the scripted agent in a working directory."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        self.shown: list[str] = []
        self.stopped = threading.Event()
        self.results: list[AgentResult] = []

    def run(
        self, *steps: object, settings: object = None, environ: dict[str, str] | None = None, **options: Any
    ) -> AgentResult:
        """Run the agent with a script."""
        agent = AcpAgent([sys.executable, "-m", "tests.peers.acp"], **options)
        own = {"PYTHONPATH": str(ROOT), "AGENT": json.dumps(settings or {})}
        return self.run_agent(agent, json.dumps(steps), own | (environ or {}))

    def run_agent(self, agent: AcpAgent, prompt: str, environ: dict[str, str] | None = None) -> AgentResult:
        """Run an agent; its output `stop` cancels the run."""

        def on_output(text: str) -> None:
            self.shown.append(text)
            if text == "stop":
                self.stopped.set()

        deadline = Deadline(60, self.stopped)
        result = agent.run(prompt, self.workdir, os.environ | (environ or {}), on_output, deadline)
        self.results.append(result)
        return result

    def ask(self, method: str, /, **params: object) -> Any:
        """Return the response that the agent gets to a request."""
        return json.loads(self.run(["ask", method, params]).output)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    """Yield runs in a new working directory."""
    runs = Runs(tmp_path)
    yield runs
    for result in runs.results:
        result.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]


def test_the_output_is_the_last_message_and_the_details_have_all_steps(runs: Runs) -> None:
    usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    steps = (["say", "first "], ["say", "message"], ["think", "hm"], ["tool", "1", "Edit notes"], ["say", "last"])
    result = runs.run(*steps, ["think", "."], settings={"result": {"stopReason": "max_tokens", "usage": usage}})
    assert (result.output, result.error) == ("last", "")
    assert (result.details["stopReason"], result.details["usage"]) == ("max_tokens", usage)
    assert result.details["steps"] == [
        {"type": "message", "text": "first message"},
        {"type": "thinking", "text": "hm"},
        {"type": "tool_call", "title": "Edit notes", "kind": "edit", "status": "completed"},
        {"type": "message", "text": "last"},
        {"type": "thinking", "text": "."},
    ]
    assert "".join(runs.shown) == "first message\n[Edit notes]\nlast"


def test_memory_is_bounded_for_an_agent_that_says_much(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ext_host.acp_agent.STEPS_LENGTH", 25)
    steps = [step for number in range(5) for step in (["say", f"{number}" * 10], ["tool", str(number), "t"])]
    result = runs.run(*steps, ["say", "last"])
    texts = [step["text"] for step in result.details["steps"] if step["type"] == "message"]  # type: ignore[attr-defined]
    assert texts == ["3" * 10, "4" * 10, "last"]
    assert result.output == "last"


def test_an_agent_made_with_the_sdk_gets_its_file_and_permission(runs: Runs) -> None:
    (runs.workdir / "notes.txt").write_text("one\ntwo\nthree\n")
    result = runs.run_agent(AcpAgent([sys.executable, str(ROOT / "cassettes" / "agent.py")]), "notes.txt")
    assert result.error == ""
    assert result.output.endswith("notes.txt has 3 lines.")


@pytest.mark.parametrize(
    ("policy", "title", "options", "chosen"),
    [
        ("allow", "rm -rf", [DENY, ALWAYS, ALLOW], "yes"),
        ("allow", "rm -rf", [DENY, ALWAYS], "always"),
        ("deny", "rm -rf", [ALLOW, DENY], "no"),
        ("deny", "rm -rf", [ALLOW], None),
        ("mcp", "files: read_note", [ALLOW, DENY], "yes"),
        ("mcp", "read_note", [ALLOW, DENY], "yes"),
        ("mcp", "files: write_note", [ALLOW, DENY], "no"),
    ],
)
def test_permissions_follow_the_policy(
    runs: Runs, policy: str, title: str, options: list[object], chosen: str | None
) -> None:
    params = {"toolCall": {"toolCallId": "1", "title": title}, "options": options}
    result = runs.run(["ask", "session/request_permission", params], permissions=policy, servers=[SERVER])
    outcome = {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}
    assert json.loads(result.output) == {"outcome": outcome}


def test_files_are_read_and_written_in_the_working_directory_only(runs: Runs) -> None:
    (runs.workdir / "notes.txt").write_text("one\ntwo\nthree\nfour\n")
    path = str(runs.workdir / "notes.txt")
    assert runs.ask("fs/read_text_file", path=path) == {"content": "one\ntwo\nthree\nfour\n"}
    assert runs.ask("fs/read_text_file", path=path, line=2, limit=2) == {"content": "two\nthree"}
    new = runs.workdir / "new" / "file.txt"
    runs.ask("fs/write_text_file", path=str(new), content="text ä\n")
    assert new.read_text() == "text ä\n"
    outside = runs.workdir.parent / "outside.txt"
    outside.write_text("secret")
    (runs.workdir / "link").symlink_to(outside)
    for escape in (str(outside), str(runs.workdir / "link"), f"{runs.workdir}/../outside.txt"):
        assert "is not a path inside the working directory" in runs.ask("fs/read_text_file", path=escape)["message"]
        assert "cannot write" in runs.ask("fs/write_text_file", path=escape, content="x")["message"]
    assert outside.read_text() == "secret"
    assert "No such file" in runs.ask("fs/read_text_file", path=str(runs.workdir / "none"))["message"]


def test_commands_run_with_the_variables_of_the_agent_and_their_end_is_reported(runs: Runs) -> None:
    env = [{"name": "OWN", "value": "own"}]
    script = "printf '%s %s %s' $OWN $AGENT_ENV $PWD; echo ' ä' >&2; exit 3"
    result = runs.run(
        ["ask", "terminal/create", {"command": "sh", "args": ["-c", script], "env": env, "outputByteLimit": 8}],
        ["ask", "terminal/wait_for_exit", {"terminalId": ""}],
        ["ask", "terminal/output", {"terminalId": ""}],
        ["ask", "terminal/release", {"terminalId": ""}],
        ["ask", "terminal/output", {"terminalId": ""}],
        environ={"AGENT_ENV": "inherited"},
    )
    messages = [json.loads(step["text"]) for step in result.details["steps"] if step["type"] == "message"]  # type: ignore[attr-defined]
    created, ended, shown, _, gone = messages
    assert created == {"terminalId": "terminal-1"}
    assert ended == {"exitCode": 3}
    assert shown["truncated"] is True
    assert f"own inherited {runs.workdir} ä\n".endswith(shown["output"])
    assert shown["exitStatus"] == {"exitCode": 3}
    assert "no terminal has the id" in gone["message"]


def test_a_command_can_be_killed_and_an_unknown_one_is_refused(runs: Runs) -> None:
    result = runs.run(
        ["ask", "terminal/create", {"command": "sleep", "args": ["600"]}],
        ["ask", "terminal/kill", {"terminalId": ""}],
        ["ask", "terminal/wait_for_exit", {"terminalId": ""}],
    )
    assert json.loads(result.output) == {"signal": "SIGTERM"}
    assert "command not found: 'no-such-program'" in runs.ask("terminal/create", command="no-such-program")["message"]


def test_mcp_servers_are_passed_with_their_variables(runs: Runs) -> None:
    servers = [
        McpServer("local", {"command": "sh", "args": ["-c", "${WORD:-none}"], "env": {"KEY": "${GIVEN}"}}),
        McpServer("remote", {"url": "http://127.0.0.1:1/${GIVEN}", "headers": {"Authorization": "Bearer ${GIVEN}"}}),
    ]
    capable = {"capabilities": {"mcpCapabilities": {"http": True}}}
    result = runs.run(["show_opened"], settings=capable, environ={"GIVEN": "given"}, servers=servers)
    local, remote = json.loads(result.output)["mcpServers"]
    assert local.pop("command").startswith("/")
    assert local == {"name": "local", "args": ["-c", "none"], "env": [{"name": "KEY", "value": "given"}]}
    headers = [{"name": "Authorization", "value": "Bearer given"}]
    assert remote == {"type": "http", "name": "remote", "url": "http://127.0.0.1:1/given", "headers": headers}
    refused = runs.run(["show_opened"], servers=servers)
    assert "cannot use MCP servers over http, as 'remote' is" in refused.error


def test_a_cancelled_agent_is_asked_to_stop_and_its_last_message_is_kept(runs: Runs) -> None:
    result = runs.run(["say", "stop"], ["think", "."], ["wait_for_cancel"])
    assert result.error == "the agent was cancelled"
    assert result.output == "cancelled as requested"


def test_an_agent_that_ignores_everything_is_killed_with_its_processes(runs: Runs) -> None:
    result = runs.run(["leave", str(runs.workdir)], ["say", "stop"], ["ignore"])
    assert result.error == "the agent was cancelled"
    assert not is_running(int((runs.workdir / "pid").read_text()))


def test_what_an_agent_leaves_running_is_there_until_the_end_of_the_task(runs: Runs) -> None:
    result = runs.run(["leave", str(runs.workdir)], ["say", "left"])
    pid = int((runs.workdir / "pid").read_text())
    assert result.error == ""
    assert is_running(pid)
    result.close()
    assert not is_running(pid)


def test_a_limit_of_time_is_named(runs: Runs) -> None:
    agent = AcpAgent(["sleep", "600"])
    result = agent.run("", runs.workdir, os.environ, print, Deadline(0.1))
    assert result.error.startswith("the agent was stopped after 0.")


@pytest.mark.parametrize(
    ("steps", "settings", "expected"),
    [
        ([["raw", "hello"], ["die", 7, "no model"]], {}, "it ended (exit code 7) before it responded to session"),
        ([["raw", "hello"], ["die", 7, "no model"]], {}, "not a message of JSON-RPC: 'hello'"),
        ([["raw", "[]"], ["die", 7, "no model"]], {}, "its standard error ends with:\nno model"),
        ([["raw", '{"method": 5}'], ["die", 7, ""]], {}, "not a message of JSON-RPC: '{\"method\": 5}'"),
        ([], {"result": {"stopReason": "bored"}}, "responded to session/prompt with an invalid result: stopReason"),
        ([], {"version": 9}, "it uses version 9 of ACP; expected version 1"),
        ([], {"auth": [{"id": "login", "name": "Log in"}]}, "it requires authentication (it offers 'Log in')"),
    ],
)  # fmt: skip
def test_the_failure_of_an_agent_has_its_reason(
    runs: Runs, steps: list[object], settings: object, expected: str
) -> None:
    assert expected in runs.run(*steps, settings=settings).error


def test_an_invalid_update_does_not_end_the_session(runs: Runs, capfd: pytest.CaptureFixture[str]) -> None:
    update = {"sessionId": "session-1", "update": {"sessionUpdate": "unknown"}}
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": update})
    assert runs.run(["raw", line], ["say", "done"]).output == "done"
    assert capfd.readouterr().err == ""


def mutated(chance: random.Random, folder: Path) -> str:
    """Return a message of an agent, with other values and other bytes."""
    values: list[object] = [None, 0, -1, 1.5, 10**30, True, "", "x" * 300, "\ud800", "../..", "\0", [], {}, ["a"]]
    update: dict[str, Any] = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    path = str(folder / "notes.txt")
    requests: list[tuple[str, dict[str, Any]]] = [
        ("session/update", {"update": update}),
        ("session/request_permission", {"toolCall": {"toolCallId": "1", "title": "t"}, "options": [ALLOW]}),
        ("fs/read_text_file", {"path": path, "line": 1, "limit": 2}),
        ("fs/write_text_file", {"path": path, "content": "x"}),
        ("terminal/create", {"command": "true", "args": ["a"], "outputByteLimit": 5}),
        ("terminal/output", {"terminalId": "terminal-1"}),
        ("terminal/release", {"terminalId": "terminal-1"}),
    ]
    method, more = chance.choice(requests)
    params: dict[str, Any] = {"sessionId": "session-1"} | more
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if method != "session/update":
        message["id"] = chance.randrange(1_000, 10**9)
    for place in (message, params, update):
        if chance.random() < 0.4:
            place[chance.choice(list(place))] = chance.choice(values)
    line = bytearray(json.dumps(message).encode())
    for _ in range(chance.choice([0, 0, 1, 3])):
        line[chance.randrange(len(line))] = chance.randrange(32, 127)
    return line.decode()


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_messages_end_in_the_right_result(runs: Runs, seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(seed)
    lines = [["raw", mutated(chance, runs.workdir)] for _ in range(150)]
    result = runs.run(*lines, ["tool", "last", "last"], ["say", "final"])
    assert (result.output, result.error) == ("final", "")
    assert capfd.readouterr().err == ""


def test_authentication_by_variables_needs_no_user(runs: Runs) -> None:
    method = {"type": "env_var", "id": "key", "name": "Use KEY", "vars": [{"name": "KEY"}]}
    assert "requires authentication" in runs.run(["say", "in"], settings={"auth": [method]}).error
    assert runs.run(["say", "in"], settings={"auth": [method]}, environ={"KEY": "k"}).output == "in"


def test_a_missing_package_is_reported_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AcpAgent(["cat"]).check() == ""
    monkeypatch.setattr("ext_host.acp_agent.find_spec", lambda _: None)
    assert "pip install 'gevals-extensions[acp]'" in AcpAgent(["cat"]).check()


def test_a_program_that_is_no_agent_is_reported(runs: Runs) -> None:
    assert "it responded to initialize with error -32601" in runs.run_agent(AcpAgent(["cat"]), "").error
    missing = AcpAgent(["no-such-agent"])
    assert "command not found: 'no-such-agent'" in missing.check()
    with pytest.raises(HostError, match="command not found"):
        runs.run_agent(missing, "")
