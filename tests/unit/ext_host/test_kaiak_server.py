"""Parts of the server of Kaiak's agent API; tests/behaviour/host has its conversations."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from ext_host.files import HostError
from ext_host.kaiak_messages import GenerateFix, Incident, Settings
from ext_host.kaiak_server import Interaction, _bind, _head_settings, _notification, _response
from ext_sdk.core.wire.errors import RpcError

if TYPE_CHECKING:
    from pathlib import Path


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
    found = _notification(line)
    assert (found[0] if found else None) == kind


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"action": "allow_once"}, ("approve", None)),
        ({"action": "deny", "content": "x"}, ("deny", None)),
        ({"action": "edit", "content": "x"}, ("edit", "x")),
    ],
)
def test_a_response_has_an_action_of_either_dialect(payload: dict[str, object], expected: object) -> None:
    assert _response(Interaction("s", editable=True), payload) == expected


def test_an_unknown_response_is_refused_with_what_is_possible() -> None:
    expected = "payload.action: expected one of allow_once, always_allow, approve, deny, found 'edit'"
    with pytest.raises(RpcError, match=expected):
        _response(Interaction("s", editable=False), {"action": "edit", "content": "x"})


def test_a_response_is_given_once() -> None:
    interaction = Interaction("s", editable=True)
    assert interaction.respond("deny")
    assert not interaction.respond("approve")
    assert interaction.response == ("deny", None)


@pytest.mark.parametrize("workspace", ["/w", {"working_dir": "/w"}])
def test_the_later_dialect_has_its_configuration_in_the_request(workspace: object) -> None:
    base = {"tool_permissions": {"write_file": "ask_before", "delete_file": "never_allow"}, "model": {"model": "m"}}
    config = {"workspace": workspace, "override_base_config": base, "session": {"max_turns": 3}}
    settings = _head_settings(GenerateFix([Incident("1")], agent_config=config), Settings())
    assert settings.workspace.working_dir == "/w"
    assert settings.permissions.tool_permissions == {"write_file": "approve", "delete_file": "deny"}
    assert (settings.model, settings.session.max_turns) == ({"model": "m"}, 3)


def test_a_path_that_is_no_socket_is_kept_and_a_long_one_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for path, reason in ((tmp_path / "file", "Address already in use"), (tmp_path / ("x" * 120), "use a shorter path")):
        with socket.socket(socket.AF_UNIX) as listener, pytest.raises(HostError, match=reason):
            _bind(listener, path)
    assert (tmp_path / "file").read_text() == "kept"
