"""Agents that are commands, agent files or none, and the values of --agent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_host.agents import CommandAgent, FileAgent, NoAgent, agent_of, agent_of_eval
from ext_host.files import AgentFile, AgentRef, Document, HostError, McpServer
from ext_host.files import agent_of as agent_file
from ext_sdk.polling import Deadline

if TYPE_CHECKING:
    from ext_host.agents import Agent
    from ext_host.commands import AgentResult

PROMPT = 'Say "$HOME" & `exit`.'


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")


def run(agent: Agent, folder: Path, prompt: str = PROMPT) -> AgentResult:
    assert agent.check() == ""
    result = agent.run(prompt, folder, dict(os.environ), lambda _: None, Deadline(60))
    result.close()
    return result


def file(command: str, **more: str) -> AgentFile:
    commands = {"runPrompt": command, **more}
    return agent_file(Document.parse(Path("a.yaml"), json.dumps({"kind": "Agent", "commands": commands})))


def test_a_command_gets_the_prompt_in_three_ways(tmp_path: Path) -> None:
    result = run(CommandAgent('echo "$1"; echo "$EXT_HOST_PROMPT"; cat; pwd'), tmp_path)
    assert (result.output, result.error) == (f"{PROMPT}\n{PROMPT}\n{PROMPT}{tmp_path}\n", "")
    result = run(CommandAgent("echo half; exit 3"), tmp_path)
    assert (result.output, result.error) == ("half\n", "the agent failed: exit code 3")
    assert "write this in place of {{ .Prompt }}" in CommandAgent("x '{{ .Prompt }}'").check()


def test_no_agent_does_nothing(tmp_path: Path) -> None:
    assert run(NoAgent(), tmp_path).output == ""


def test_the_templates_of_an_agent_file_are_filled_in(tmp_path: Path) -> None:
    command = "echo '{{.Prompt}}'; echo a {{- .AllowedToolArgs -}} b; echo {{ .McpServerFileArgs }}"
    assert run(FileAgent(file(command)), tmp_path, "Do it.").output == "Do it.\nab\n\n"


def test_mcp_servers_are_files_with_one_server_each(tmp_path: Path) -> None:
    servers = [McpServer("one", {"command": "x"}), McpServer("two", {"url": "http://u"})]
    agent = FileAgent(file("cat {{ .McpServerFileArgs }}", argTemplateMcpServer="{{ .File }}"), servers)
    assert run(agent, tmp_path).output == (
        '{"mcpServers": {"one": {"command": "x"}}}{"mcpServers": {"two": {"url": "http://u"}}}'
    )
    agent = FileAgent(file("echo {{ .McpServerFileArgs }}", argTemplateMcpServer="--url={{ .URL }}"), servers)
    assert run(agent, tmp_path).output == "--url= --url=http://u\n"


@pytest.mark.parametrize(
    ("command", "servers", "problem"),
    [
        ("x {{ if .Prompt }}", False, "expected {{ .Prompt }} or another name in braces, found '{{ if .Prompt }}'"),
        ("x {{ .AllowedToolArgs }}", True, "{{ .AllowedToolArgs }} is not supported"),
        ("x {{ .AllowedToolArgs }}", False, ""),
    ],
)
def test_what_an_agent_file_needs_is_checked(command: str, servers: bool, problem: str) -> None:
    found = FileAgent(file(command), [McpServer("a", {})] if servers else []).check()
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_shell_that_is_missing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/no/such/shell")
    assert CommandAgent("x").check() == "cannot run the shell '/no/such/shell': no such program; set SHELL"


def test_the_value_of_the_option_names_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("kind: Agent\nmetadata: {name: mine}\ncommands: {runPrompt: x}")
    assert [agent_of(text).name for text in ("none", "echo hello", f"file:{path}")] == ["none", "echo hello", "mine"]
    assert agent_of_eval(AgentRef("file", path), ()).name == "mine"
    path.write_text("kind: Agent\nbuiltin: {type: llm-agent}")
    for text, problem in (
        (" ", "expected a command, file:PATH or none, found an empty text"),
        (f"file:{path}", "builtin llm-agent) is run by mcpchecker only"),
        ("file:none.yaml", "none.yaml: cannot read this file"),
    ):
        with pytest.raises(HostError) as error:
            agent_of(text)
        assert problem in str(error.value)
    with pytest.raises(HostError, match=r"the agent builtin\.x is run by mcpchecker only"):
        agent_of_eval(AgentRef("builtin.x", path), ())
