"""Messages of the Pi protocol without a process: `register`, capabilities of host calls, the package for Pi."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from docs.examples.reviewer import extension as reviewer
from ext_sdk.context import HostCalls
from ext_sdk.polling import Deadline
from ext_sdk.server import serving
from ext_sdk.server.mcp import build_tools
from ext_sdk.server.pi import _capability, exported
from ext_sdk.server.serving import Serving, Tools, pi_register
from ext_sdk.testing import Host

if TYPE_CHECKING:
    from pathlib import Path


def tools_of(extension: ext_sdk.Extension) -> Tools:
    tools = Tools(build_tools(extension))
    tools.select(Serving("pi"))
    return tools


def test_register_has_the_tools_the_slash_command_the_events_and_the_capabilities() -> None:
    message = json.loads(pi_register(tools_of(reviewer)))
    register = message.pop("payload")
    assert message == {"id": "register", "version": "1.0", "type": "register"}
    counting, approving = register.pop("tools")
    assert counting["name"] == "reviewer-count-lines"
    assert counting["label"] == "Count lines"
    assert counting["description"].startswith("Count the lines of a file")
    assert counting["parameters"]["required"] == ["path"]
    assert approving["name"] == "reviewer-approve"
    (command,) = register.pop("slash_commands")
    assert command["name"] == "reviewer"
    assert register == {
        "name": "reviewer",
        "version": "1.0.0",
        "api_version": "1.0",
        "capabilities": ["read", "ui"],
        "capability_manifest": {
            "schema": "pi.ext.cap.v1",
            "capabilities": [
                {"capability": "read", "methods": ["tool", "fs"]},
                {"capability": "ui", "methods": ["ui"]},
            ],
        },
        "event_hooks": ["session_shutdown", "tool_call_cancel"],
    }


@pytest.mark.parametrize(("allow", "deny"), [("", ""), ("*", ""), ("remove", "r*")])
def test_register_copies_the_prepared_tools_without_parsing_them(
    allow: str, deny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schemas are most of the prepared bytes. Texts with several bytes for a character move what follows."""
    extension = ext_sdk.Extension("garden", version="1.0.0")
    for name in ("rake", "remove", "plant"):
        extension.operation(name=name, title=f"{name} “ä😀”", destructive=name != "rake")(_grow)
    tools = Tools(build_tools(extension))
    tools.select(Serving("pi", allow=[allow], deny=[deny]))
    monkeypatch.setattr(serving, "scan", None)
    registered = json.loads(pi_register(tools))["payload"]["tools"]
    assert registered == [
        {
            "name": f"garden-{tool['name']}",
            "label": tool["title"],
            "description": tool["description"],
            "parameters": tool["inputSchema"],
        }
        for tool in map(json.loads, tools.lines.values())
    ]


def _grow(name: str, beds: list[str] = []) -> ext_sdk.Result:  # noqa: B006
    """Grow “Blumenkohl”, 花椰菜."""
    return ext_sdk.Result.ok(name)


@pytest.mark.parametrize(
    ("method", "params", "capability"),
    [
        ("tool", {"name": "grep"}, "read"),
        ("tool", {"name": "Edit "}, "write"),
        ("tool", {"name": "bash"}, "exec"),
        ("tool", {"name": "other"}, "tool"),
        ("fs", {"op": "stat"}, "read"),
        ("fs", {"op": "mkdir"}, "write"),
        ("exec", {}, "exec"),
        ("log", {}, "log"),
    ],
)
def test_the_capability_of_a_call_is_the_one_that_the_host_derives(
    method: str, params: dict[str, object], capability: str
) -> None:
    assert _capability(method, params) == capability


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("toll", {}, "host call 'toll' failed: unknown method; expected one of tool, fs, exec, "),
        ("tool", {}, "host call 'tool' failed: name: expected the name of a tool, found nothing"),
        ("fs", {"op": "chmod"}, "host call 'fs' failed: op: expected one of read, list, .*, found \"chmod\""),
    ],
)
def test_a_call_that_every_host_refuses_is_not_sent(method: str, params: dict[str, object], said: str) -> None:
    with pytest.raises(ext_sdk.HostCallFailed, match=said) as failed:
        _capability(method, params)
    assert failed.value.code == "invalid_request"


def test_a_host_without_calls_is_named_with_the_remedy(tmp_path: Path) -> None:
    calls = HostCalls(None, Deadline())
    assert not calls.available
    with pytest.raises(ext_sdk.HostCallFailed, match="this host accepts no calls; serve the extension with"):
        calls.tool("read", {"path": "x"})
    with Host(reviewer, workdir=tmp_path) as host:
        result = host.call("count-lines", {"path": "x"})
        assert not result.success
        assert result.error.startswith("host call 'tool' failed: this host accepts no calls; serve")
        assert host.call("approve", {"question": "?"}).message == "not reviewed: the host has no user"


def test_operations_with_host_calls_are_tested_with_a_function_that_answers(tmp_path: Path) -> None:
    asked = []

    def answer(method: str, params: object) -> dict[str, object]:
        asked.append((method, params))
        return {"content": [{"type": "text", "text": "a\nb\n"}], "value": True}

    with Host(reviewer, workdir=tmp_path, answer=answer) as host:
        assert host.call("count-lines", {"path": "x"}).outputs == {"lines": "2"}
        assert host.call("approve", {"question": "?"}).message == "approved: ?"
    assert asked[0] == ("tool", {"name": "read", "input": {"path": "x"}})


def test_unknown_capabilities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"host_capabilities: expected some of read, write, .*, found 'reed'"):
        ext_sdk.Extension("e", version="1.0.0", host_capabilities=["reed"])


def test_the_package_for_pi_has_the_bridge_and_the_command(tmp_path: Path) -> None:
    texts = exported(reviewer, tools_of(reviewer), ["/bin/reviewer", "serve"], tmp_path)
    assert "export default async function" in texts["index.ts"]
    package = json.loads(texts["package.json"])
    assert package["command"] == ["/bin/reviewer", "serve"]
    assert package["pi"] == {"extensions": ["./index.ts"]}
    assert (package["name"], package["version"], package["private"]) == ("pi-ext-reviewer", "1.0.0", True)
