"""The folder of a G-Assist plugin: names and arguments of its functions, its launcher."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import pytest

import ext_sdk
from ext_sdk.server.gassist import argument_schema, exported, missing_argument
from ext_sdk.server.mcp import build_tools
from ext_sdk.server.schema import object_schema
from ext_sdk.server.serving import Serving, Tools, gassist_functions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_sdk.args import Schema


class Guest(ext_sdk.Args):
    name: str
    seats: Annotated[list[int], ext_sdk.Meta(description="Chairs")] = msgspec.field(default_factory=list)
    partner: dict[str, str] | None = None


class Invite(ext_sdk.Args, one_of=("guest", "everyone")):
    guest: Annotated[Guest | str, ext_sdk.Meta(description="The guest")] = ""
    everyone: bool = False
    tables: Annotated[int, ext_sdk.Computed] = 1
    host: Guest | None = None


def invite(args: Invite, context: ext_sdk.Context) -> ext_sdk.Result:
    """Invite guests."""
    return ext_sdk.Result.ok()


def party(name: str = "party-1") -> ext_sdk.Extension:
    extension = ext_sdk.Extension(name, version="1.0.0", description="Parties")
    extension.add(ext_sdk.Operation("send-invitation", invite))
    extension.add(ext_sdk.Operation("invite", invite, same_as="send-invitation"))
    extension.add(ext_sdk.Operation("count", invite, read_only=True))
    return extension


@pytest.mark.parametrize(
    ("args", "name", "kind"),
    [
        ({}, "guest", "string"),  # or everyone, which is no text
        ({"guest": "", "everyone": False}, "guest", "string"),
        ({"guest": "Ada"}, "", ""),
        ({"everyone": True}, "", ""),
        ([], "", ""),
    ],
)
def test_a_missing_argument_is_one_that_a_user_can_reply_with(args: object, name: str, kind: str) -> None:
    missing = missing_argument(Invite, args, "invite: expected one of guest and everyone, found none")
    assert missing == ((name, {"type": kind, "description": "The guest", "default": ""}) if name else None)


def test_a_required_argument_is_missing_whatever_its_type() -> None:
    class Seat(ext_sdk.Args):
        number: int
        at: str = ""

    refusal = "seat: number: this argument is required and was not given"
    assert missing_argument(Seat, {"at": "window"}, refusal) == ("number", {"type": "integer"})
    assert missing_argument(Seat, {"number": None}, refusal) is None
    assert missing_argument(Seat, {"at": 1}, "seat: at: expected a string, found 1") is None  # asked for after that


def plugin(command: Sequence[str], folder: Path, *, deny: Sequence[str] = ()) -> dict[str, str]:
    extension = party()
    tools = Tools(build_tools(extension))
    tools.select(Serving("gassist", deny=deny))
    return exported(extension, tools, command, folder)


@pytest.mark.parametrize(
    ("extension", "operations", "names"),
    [
        ("shell", ["run", "write-file"], ["shell_run", "shell_write_file"]),
        ("my-shell", ["a-b", "a_b"], ["my_shell_a_b", "my_shell_a_b_"]),
        ("Rise", ["run"], ["ext_Rise_run"]),  # the engine refuses names that begin with rise_
    ],
)
def test_a_function_has_a_name_that_no_other_plugin_has(
    extension: str, operations: list[str], names: list[str]
) -> None:
    assert gassist_functions(extension, operations) == dict(zip(names, operations, strict=True))


def test_each_argument_has_one_type_and_is_described_down_to_its_members() -> None:
    text: Schema = {"type": "string"}
    guest = {
        "name": text,
        "seats": {"type": "array", "description": "Chairs", "items": {"type": "integer"}},
        "partner": {"type": "object"},
    }
    assert argument_schema(object_schema(Invite)) == {
        "type": "object",
        "properties": {
            "guest": {"type": "string", "description": "The guest", "default": ""},
            "everyone": {"type": "boolean", "default": False},
            "tables": {"type": "integer", "default": 1},
            "host": {"type": "object", "properties": guest, "required": ["name"]},
        },
        "required": [],
    }


def test_the_manifest_has_the_functions_in_the_form_of_the_emulator_and_in_that_of_the_plugins_of_nvidia() -> None:
    manifest = json.loads(plugin(["party"], Path("/plugins/party"))["manifest.json"])
    functions = manifest.pop("functions")
    assert manifest == {
        "manifestVersion": 1,
        "name": "party-1",
        "version": "1.0.0",
        "description": "Parties. Functions of ext-party-1.",
        "executable": "./launch",
        "persistent": True,
        "protocol_version": "2.0",
        "tags": ["party-1"],
    }
    function, other = functions  # an alias is not a function
    assert other["name"] == "party_1_count"
    assert function["name"] == "party_1_send_invitation"
    assert function["description"] == "Invite guests.\n\nExpects one of guest and everyone."
    assert function["tags"] == ["party-1", "send", "invitation"]
    assert function["properties"].keys() == {"guest", "everyone", "tables", "host"}
    assert function["parameters"] == {
        "type": "object",
        "properties": function["properties"],
        "required": function["required"],
    }


@pytest.mark.parametrize("name", ["my plugin", "1", "nul", "COM1", "a.b", "übung"])
def test_a_folder_that_the_engine_would_not_load_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be the name of a plugin's folder; expected a letter, then letters"):
        plugin(["party"], Path("/plugins") / name)


@pytest.mark.parametrize("readable", [True, False])
def test_the_launcher_starts_the_command_in_the_workdir_and_keeps_stderr_off_the_messages(
    readable: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "with space's" / "party"
    folder.mkdir(parents=True)
    if not readable:
        (folder / "plugin.log").mkdir()  # nothing can be written there
    launcher = folder / "launch"
    launcher.write_text(plugin(["sh", "-c", 'pwd; echo "it\'s $1"; echo wrong >&2', "-", "a b"], folder)["launch"])
    launcher.chmod(0o755)
    for command, cwd in ((str(launcher), tmp_path), ("./launch", folder)):
        ran = subprocess.run(
            [command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
        )
        assert ran.stdout == f"{folder}/workdir\nit's a b\n"
    if readable:
        assert (folder / "plugin.log").read_text() == "wrong\nwrong\n"


def test_operations_that_are_denied_are_not_functions() -> None:
    files = plugin(["party"], Path("/plugins/party"), deny=["count"])
    assert [function["name"] for function in json.loads(files["manifest.json"])["functions"]] == [
        "party_1_send_invitation"
    ]
    assert "party_1_count" not in files["README.md"]


def test_the_readme_names_the_functions_and_those_that_are_confirmed() -> None:
    text = plugin(["/opt/bin/ext-party-1", "serve", "--protocol", "gassist"], Path("/plugins/party"))["README.md"]
    assert text.startswith("# party-1: a plugin for G-Assist\n\nParties. Functions of ext-party-1.\n")
    assert "starts the plugin: `/opt/bin/ext-party-1 serve --protocol gassist`" in text
    assert "\n- `party_1_send_invitation`: Invite guests. Runs after a confirmation: reply `yes`.\n" in text
    assert "\n- `party_1_count`: Invite guests.\n" in text
