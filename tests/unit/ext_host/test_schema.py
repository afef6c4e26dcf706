"""The schema of task and eval files: which files it accepts, and from which extensions its operations come."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import pytest
import yaml
from jsonschema import Draft7Validator

from ext_host.__main__ import main
from ext_host.files import HostError
from ext_host.schema import Extension, definition_of, extension_of, extensions_of, file_schema, installed
from tests.support.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PUBLISHED = ROOT / "docs" / "reference" / "task.schema.json"
TASK = "kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata: {name: t}\nspec:\n  prompt: {inline: a}\n"


@pytest.fixture(scope="module")
def validator() -> Draft7Validator:
    schema = json.loads(PUBLISHED.read_text())
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def test_the_installed_extensions_are_found_without_an_import_and_give_the_published_schema() -> None:
    code = (
        "import sys; from ext_host.schema import file_schema, installed, text_of\n"
        "sys.stdout.write(text_of(file_schema(installed())))\n"
        "assert not {'ext_shell', 'ext_http', 'ext_kubernetes', 'msgspec'} & sys.modules.keys()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    # An environment may have further extensions.
    found, published = json.loads(ran.stdout), json.loads(PUBLISHED.read_text())
    assert published["$defs"].keys() <= found["$defs"].keys()
    assert published["$defs"]["shell.run"] == found["$defs"]["shell.run"]


def test_the_examples_are_valid(validator: Draft7Validator) -> None:
    paths = [path for path in (ROOT / "docs" / "examples").rglob("*.yaml") if "kind:" in path.read_text()[:300]]
    files = [(path, yaml.safe_load(path.read_text())) for path in paths if "\n---\n" not in path.read_text()]
    ours = [(path, each) for path, each in files if each.get("kind") in {"Task", "Eval", "Agent"}]
    assert len(ours) > 30
    assert [(path.name, error.message) for path, each in ours for error in validator.iter_errors(each)] == []


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (TASK + "  verify: [{shell.run: {command: [ls]}, id: first}]", True),
        (TASK + "  setup:\n  verify: [kubernetes.list-contexts: ]", True),
        (TASK + "  verify: [k8s.anything: {a: 1}, server.tool: {args: {}}]", True),
        (TASK + "  verify: [shell.rum: {}]", False),
        (TASK + "  verify: [shell.run: {command: [ls]}, run: {}]", False),
        (TASK + "  verify: [shell.run: {command: [ls], script: ls}]", False),
        (TASK + "  verify: [{shell.run: {command: [ls]}, script: {inline: a}, id: a}]", False),
        (TASK + "  verify: [http: {url: a, expect: {status: '200'}}]", False),
        (TASK.replace("inline: a", "inline: a, file: b"), False),
        ("kind: Task\nmetadata: {name: t}\nsteps: {prompt: {inline: a}, setup: , verify: {contains: b}}", True),
        ("kind: Task\nmetadata: {name: t}\nspec: {prompt: {inline: a}}", False),
        ("kind: Eval\nconfig: {taskSets: [{glob: '*', assertions: {minToolCalls: 1}}]}", True),
        ("kind: Eval\nconfig: {taskSets: [{glob: '*', assertions: {minToolCals: 1}}]}", False),
        ("kind: Agent\nmetadata: {name: a}\ncommands: {runPrompt: a}", True),
        ("kind: Pod", False),
    ],
)
def test_files_are_checked(text: str, valid: bool, validator: Draft7Validator) -> None:
    assert validator.is_valid(yaml.safe_load(text)) == valid


def test_other_names_and_manifests_are_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"enum": [1]}}}
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"name": "db", "operations": {"query": {"params": params, "description": "Query."}}}))
    assert main(["schema", "--extension", f"db={path}", "--extension", "k8s=ext-kubernetes"]) == 0
    schema = json.loads(capsys.readouterr().out)
    task = yaml.safe_load(TASK + "  verify: [db.query: {a: 1}]")
    assert Draft7Validator(schema).is_valid(task)
    task["spec"]["verify"] = [{"db.query": {"a": 2}}]
    assert not Draft7Validator(schema).is_valid(task)
    assert schema["$defs"]["k8s.get"]["properties"] == schema["$defs"]["kubernetes.get"]["properties"]


def test_wrong_options_name_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"found 'ext-shel'; did you mean 'ext-shell'\?"):
        extensions_of(["a=ext-shel"])
    with pytest.raises(HostError, match="expected NAME=PROGRAM or NAME=MANIFEST, found 'ext-shell'"):
        extensions_of(["ext-shell"])
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(HostError, match=r"a\.json: expected the manifest of an extension"):
        Extension.read(tmp_path / "a.json")


def test_a_program_is_found_by_its_name_and_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "shell").symlink_to("/usr/bin/ext-shell")
    assert extension_of("./ext-shell") is installed()["shell"]
    assert extension_of(f"file://{tmp_path}/shell") is installed()["shell"]
    assert extension_of("./gevals-extensions") is None
    for package in ("./gevals-extensions", "https://github.com/OWNER/gevals-extensions@v1.0.0"):
        assert extension_of(package, "http") is installed()["http"]
    assert extensions_of(["shell=./gevals-extensions"])["shell"] is installed()["shell"]
    assert extensions_of(["s='/a b/gevals-extensions' http"])["s"] is installed()["http"]
    assert extension_of("https://github.com/mcpchecker/kubernetes-extension@v0.0.1") is None


def test_a_schema_without_extensions_accepts_all_operations() -> None:
    schema = file_schema({})
    assert Draft7Validator(schema).is_valid(yaml.safe_load(TASK + "  verify: [shell.rum: {}]"))


def test_outputs_come_from_the_declarations_of_operations() -> None:
    shell = installed()["shell"]
    assert {"stdout", "exitCode?", "NAME?"} <= (shell.outputs("run") or {}).keys()
    assert shell.facts["run"]["verbatim"] == ["script"]


VALUES: tuple[object, ...] = (
    5,
    1.5,
    True,
    None,
    "x",
    "",
    "5s",
    "${a.b}",
    [],
    ["x"],
    {},
    {"contains": "x"},
    {"other": 1},
)


def variants(value: object) -> Iterator[object]:
    """Yield values that differ from a value in one place."""
    yield from VALUES
    if isinstance(value, dict):
        for name in value:
            yield {other: item for other, item in value.items() if other != name}
            yield from ({**value, name: item} for item in variants(value[name]))
    elif isinstance(value, list) and value:
        yield from ([item, *value[1:]] for item in variants(value[0]))


@pytest.mark.parametrize("name", ["shell", "http", "kubernetes"])
def test_the_schema_for_editors_accepts_what_the_manifest_accepts(name: str) -> None:
    """Alternatives have another form, in which editors give better messages."""
    definition = definition_of(f"ext_{name}")
    assert definition
    installed_one = installed()[name]
    definitions = file_schema({name: installed_one})["$defs"]
    compared = 0
    for operation in definition.operations.values():
        params = installed_one.operations[operation.name]
        manifest = Draft7Validator(params)
        editor = Draft7Validator({"$ref": f"#/$defs/{name}.{operation.name}", "$defs": definitions})
        names = cast("dict[str, object]", params.get("properties", {}))
        for value in [*variants(operation.example), *({**(operation.example or {}), key: "x"} for key in names)]:
            if value is not None:  # a file may write no arguments as null
                compared += 1
                assert manifest.is_valid(value) == editor.is_valid(value), (operation.name, value)
    assert compared > 300
