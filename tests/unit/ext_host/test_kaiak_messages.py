"""Messages of Kaiak's agent API."""

from __future__ import annotations

import pytest

from ext_host.kaiak_messages import (
    Code,
    Configure,
    GenerateFix,
    Incident,
    Settings,
    head_payload,
    head_settings,
    merged,
    notification_of,
    parsed,
    prompt_of,
    replaced,
)
from ext_sdk.core.wire.errors import RpcError


@pytest.mark.parametrize(
    ("value", "field", "details"),
    [
        ({}, "", "Object missing required field `incidents`"),
        ({"incidents": []}, "incidents", "Expected `array` of length >= 1"),
        ({"incidents": [{"id": 1}]}, "incidents[0].id", "Expected `str`, got `int`"),
        ({"incidents": [{"id": "1"}], "session_id": ""}, "session_id", "Expected `str` of length >= 1"),
        (
            {"incidents": [{"id": "1"}], "options": {"max_processing_time": 0}},
            "options.max_processing_time",
            "Expected `float` > 0.0",
        ),
        ([], "", "Expected `object`, got `array`"),
        ({"incidents": [{"id": "1", "\ud800": 1}]}, "", "a text has half of a surrogate pair"),
    ],
)
def test_an_error_names_the_member_that_is_wrong(value: object, field: str, details: str) -> None:
    with pytest.raises(RpcError) as raised:
        parsed(value, GenerateFix)
    assert raised.value.code == -32602
    assert raised.value.data == {"field": field, "details": details}


def test_an_error_of_a_configuration_has_its_code() -> None:
    with pytest.raises(RpcError, match=r"^Configuration error: session.max_turns: Expected `int` >= 1$") as raised:
        parsed({"session": {"max_turns": 0}}, Settings, Code.CONFIGURATION, "Configuration error")
    assert raised.value.code == -32014
    assert parsed({"configuration": {"x": 1}}, Configure).configuration == {"x": 1}


def test_objects_are_merged_and_other_values_replaced() -> None:
    before = {"a": {"b": 1, "c": [1]}, "d": 1}
    assert merged(before, {"a": {"c": [2]}, "d": {}}) == {"a": {"b": 1, "c": [2]}, "d": {}}
    assert before == {"a": {"b": 1, "c": [1]}, "d": 1}


def test_texts_are_replaced_everywhere_but_in_names() -> None:
    assert replaced({"/ws": ["/ws/a", 1, {"x": "/ws"}]}, lambda text: text.replace("/ws", "/copy")) == {
        "/ws": ["/copy/a", 1, {"x": "/copy"}]
    }


def test_a_prompt_has_what_the_request_has() -> None:
    incident = {
        "id": "1", "rule_id": "deprecated", "message": "Use of old()", "description": "It is gone.",
        "severity": "warning", "effort": "trivial", "uri": "src/A.java", "line_number": 7,
    }  # fmt: skip
    context = {
        "source_technology": "Java 8", "migration_hints": ["use new()"], "preferences": {"code_style": "google"},
        "constraints": [], "empty": None,
    }  # fmt: skip
    options = {"include_explanations": True}
    prompt = prompt_of({"incidents": [incident, {"id": "2"}], "migration_context": context, "options": options})
    assert prompt.splitlines()[2:] == [
        "1. deprecated (warning, trivial): Use of old()",
        "   It is gone.",
        "   File: src/A.java, line 7",
        "2. 2: no message",
        "",
        "Source technology: Java 8",
        "",
        "Migration hints:",
        "- use new()",
        "",
        "Preferences:",
        "- code_style: google",
        "",
        "Explain each change.",
    ]


def test_each_notification_has_a_form_in_the_later_dialect() -> None:
    tool: dict[str, object] = {
        "tool_name": "write_file",
        "parameters": {"file_path": "a"},
        "result": {"success": False},
    }
    change: dict[str, object] = {"file_path": "a", "operation": "modify", "diff": "@@"}
    contents: dict[str, dict[str, object]] = {
        "progress": {"percentage": 1, "phase": "p", "description": "d"},
        "ai_response": {"text": "t"},
        "error": {"error_code": "E", "message": "m"},
        "system": {"message": "m", "level": "info"},
        "file_modification": change,
        "user_interaction": change | {"prompt": "Apply?"},
        "tool_call": tool,
    }
    found = {kind: head_payload(kind, content, "proposal-1") for kind, content in contents.items()}
    assert {kind: name for kind, (name, _) in found.items()} == {
        "progress": "system", "ai_response": "ai_message", "error": "error", "system": "system",
        "file_modification": "tool_call", "user_interaction": "user_interaction", "tool_call": "tool_response",
    }  # fmt: skip
    assert found["tool_call"][1] == {"id": "proposal-1", "is_error": True, "content_count": 1}
    assert found["user_interaction"][1]["id"] == found["file_modification"][1]["id"] == "proposal-1"
    own = head_payload("tool_call", {"tool_name": "grep"}, "")
    assert (own[0], own[1]["tool_name"]) == ("tool_call", "grep")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"kaiak/stream/system": {"message": "m"}}', "system"),
        ('{"kaiak/stream/error": {"error_code": "E", "message": "m", "recoverable": true}}', "error"),
        ('{"kaiak/stream/system": {"message": 1}}', None),
        ('{"kaiak/stream/user_interaction": {}}', None),  # only the server asks
        ('{"kaiak/stream/system": {"message": "m"}, "other": 1}', None),
        ('{"kaiak/stream/system"', None),
        ("{}", None),
        ("7", None),
    ],
)
def test_a_line_of_a_command_is_a_notification_only_if_it_is_valid(line: str, kind: str | None) -> None:
    found = notification_of(line)
    assert (found[0] if found else None) == kind


@pytest.mark.parametrize("workspace", ["/w", {"working_dir": "/w"}])
def test_the_later_dialect_has_its_configuration_in_the_request(workspace: object) -> None:
    base = {"tool_permissions": {"write_file": "ask_before", "delete_file": "never_allow"}, "model": {"model": "m"}}
    config = {"workspace": workspace, "override_base_config": base, "session": {"max_turns": 3}}
    settings = head_settings(GenerateFix([Incident("1")], agent_config=config), Settings())
    assert settings.workspace.working_dir == "/w"
    assert settings.permissions.tool_permissions == {"write_file": "approve", "delete_file": "deny"}
    assert (settings.model, settings.session.max_turns) == ({"model": "m"}, 3)
