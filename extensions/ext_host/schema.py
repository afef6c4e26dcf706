"""`ext-host schema`: JSON Schema of Task, Eval and Agent files, with the operations of all installed extensions.

Editors complete and check steps with it. The operations come from the manifests in the packages of extensions, which
are found by their console scripts: no extension is started. `ext-host lint` also imports those that tasks use, because
their classes check more than a schema can.
"""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from ext_sdk.core import own_name
from ext_sdk.core.gevals_spec import MANIFEST_FILE, OPERATIONS_FILE
from ext_sdk.core.text import suggest
from ext_sdk.duration import DURATION_PATTERN

from .files import API_VERSIONS, HostError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ext_sdk.definition import Definition

    Schema = dict[str, object]

# --- Extensions ------------------------------------------------------------------------------------------------------


class Extension(NamedTuple):
    """Manifest of an extension.

    Attributes:
        name: as in its manifest.
        program: console script that starts it; "" for a manifest that was given as a file.
        operations: JSON Schema of the arguments of each operation, with its description.
        facts: what an operation declares in addition: `outputs`, and `verbatim`, the arguments without references.
        has_references: arguments may have references `${NAME.key}`, as in all extensions made with ext_sdk.
        package: Python package of the program; "" for a manifest that was given as a file.
    """

    name: str
    program: str
    operations: Mapping[str, Schema]
    facts: Mapping[str, Mapping[str, object]]
    has_references: bool
    package: str = ""

    @classmethod
    def read(cls, path: Path, program: str = "", package: str = "") -> Extension:
        """Read a manifest. Raises HostError."""
        try:
            facts_path = path.with_name(OPERATIONS_FILE)
            facts = json.loads(facts_path.read_bytes()) if facts_path.is_file() else {}
            return cls.of_manifest(json.loads(path.read_bytes()))._replace(
                program=program, package=package, facts=facts, has_references=bool(program or facts)
            )
        except OSError as error:
            raise HostError(f"{path}: cannot read this manifest: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise HostError(f"{path}: expected the manifest of an extension: the result of `initialize`") from None

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> Extension:
        """Return the extension of a manifest. Raises KeyError, TypeError or AttributeError for another object."""
        operations = {
            name: {**each["params"], "description": each.get("description", "")}
            for name, each in manifest["operations"].items()
        }
        return cls(str(manifest["name"]), "", operations, {}, has_references=False)

    def outputs(self, operation: str) -> Mapping[str, str] | None:
        """Return descriptions of the outputs by name; a `?` at the end marks an optional one. None: not declared."""
        found = self.facts.get(operation, {}).get("outputs")
        return found if isinstance(found, dict) else None


@cache
def definition_of(package: str) -> Definition | None:
    """Return the classes of an extension: `extension` in the module `extension` of its package, as of `ext-sdk new`.

    Returns None if the package does not have it, or cannot be imported.
    """
    from ext_sdk.definition import Definition

    with suppress(Exception):
        found = getattr(import_module(f"{package}.extension"), "extension", None)
        return found if isinstance(found, Definition) else None
    return None


@cache
def installed() -> Mapping[str, Extension]:
    """Return the extensions whose console scripts are installed, by the name of their manifest."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    found: dict[str, Extension] = {}
    for script in entry_points(group="console_scripts"):
        package = script.value.partition(":")[0].partition(".")[0]
        try:
            folders = getattr(find_spec(package), "submodule_search_locations", None) or ()
        except (ImportError, ValueError):
            continue
        for path in (Path(folder, MANIFEST_FILE) for folder in folders):
            if path.is_file():
                try:
                    extension = Extension.read(path, script.name, package)
                except HostError:  # another kind of manifest
                    continue
                found.setdefault(extension.name, extension)
    return found


def extension_of(package: str, choice: str = "") -> Extension | None:
    """Return the installed extension that a path or name of a program refers to; None for another program.

    Args:
        choice: value of GEVALS_EXTENSION, which chooses the extension of the program `gevals-extensions`.
    """
    path = Path(package.removeprefix("file://").partition("@")[0]).expanduser()
    names = {path.name} | ({path.resolve().name} if path.is_symlink() else set())
    programs = {own_name([name], choice)[0] for name in names}
    return next((each for each in installed().values() if each.program in programs), None)


def extensions_of(options: Sequence[str]) -> dict[str, Extension]:
    """Return the installed extensions, and those of options NAME=PROGRAM or NAME=MANIFEST. Raises HostError."""
    found = dict(installed())
    for option in options:
        name, equals, source = option.partition("=")
        if not (name and equals and source):
            raise HostError(f"--extension: expected NAME=PROGRAM or NAME=MANIFEST, found {option!r}")
        known = [extension.program for extension in installed().values()]
        program = source
        with suppress(ValueError):  # a quotation mark without its end
            program = own_name(shlex.split(source), name)[0]
        extension = extension_of(program)
        if extension is None and not Path(source).is_file():
            raise HostError(
                f"--extension: expected the program of an installed extension or the file of a manifest, "
                f"found {source!r}; {suggest(source, known)}"
            )
        found[name] = extension or Extension.read(Path(source))
    return found


# --- The format ------------------------------------------------------------------------------------------------------


def _object(
    members: Mapping[str, object], required: Sequence[str] = (), *, others: object = False, text: str = ""
) -> Schema:
    """Return the schema of an object; `others` is the schema of members with other names."""
    schema: Schema = {"type": "object", "properties": dict(members), "additionalProperties": others}
    return schema | ({"required": list(required)} if required else {}) | ({"description": text} if text else {})


def _string(text: str = "", **rules: object) -> Schema:
    return {"type": "string", **({"description": text} if text else {}), **rules}


def _list(items: object, text: str = "") -> Schema:
    return {"type": "array", "items": items, **({"description": text} if text else {})}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _flag(text: str) -> Schema:
    return {"type": "boolean", "description": text}


_PLAIN: Schema = {"type": ["string", "number", "boolean"]}  # mcpchecker reads scalars as strings
_TEXTS: Schema = {"type": "object", "additionalProperties": _PLAIN}
_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_ANY: Schema = {"type": "object"}
_DURATION: Schema = _string(
    "Duration over 0, such as 90s, 5m or 1h30m",
    pattern="^(?=.*[1-9])" + "[+]?" + DURATION_PATTERN.removeprefix("^[-+]?"),
    title="duration",
)
_INLINE = {"inline": _string("Text"), "file": _string("Path of a file, relative to this one")}
_ONE_TEXT: Schema = {"oneOf": [{"required": ["inline"]}, {"required": ["file"]}]}
_META: Schema = {
    "kind": {"enum": ["Task", "Eval", "Agent"], "description": "Kind of this file"},
    "apiVersion": {"enum": list(API_VERSIONS), "description": "Version of the format; default: mcpchecker/v1alpha1"},
}
_STEPS = {
    "setup": "Steps before the agent runs",
    "verify": "Steps that check what the agent did; the task passes if all succeed",
    "cleanup": "Steps after verify, also if the task failed",
}
_METADATA: Schema = _object(
    {
        "name": _string("Name of the task, unique in its eval") | {"minLength": 1},
        "difficulty": _string("Difficulty, for reports", examples=["easy", "medium", "hard"]),
        "labels": _TEXTS | {"description": "Labels, by which task sets select tasks"},
        "parallel": _flag("The task may run at the same time as other parallel tasks"),
        "runs": {"type": "integer", "minimum": 1, "description": "Number of runs"},
    },
    ["name"],
    others={},  # descriptions, annotations and others, which hosts ignore
)
_OR_EMPTY = ["object", "null"], ["array", "null"]  # `setup:` without steps
_NAMED = {"server": _string("Name of the MCP server")}


def _assertions(*names: str) -> Schema:
    return _list(_object(_NAMED | {name: _string() for name in names}))


_TOOLS, _RESOURCES, _PROMPTS, _SKILLS = (
    _assertions("tool", "toolPattern"),
    _assertions("uri", "uriPattern"),
    _assertions("prompt", "promptPattern"),
    _list(_object({"skill": _string(), "skillPattern": _string()})),
)
_NUMBER: Schema = {"type": "integer"}
# Assertions of a task set, which mcpchecker evaluates with the calls of the agent.
ASSERTIONS: Schema = {
    "toolsUsed": _TOOLS,
    "requireAny": _TOOLS,
    "toolsNotUsed": _TOOLS,
    "minToolCalls": _NUMBER,
    "maxToolCalls": _NUMBER,
    "resourcesRead": _RESOURCES,
    "resourcesNotRead": _RESOURCES,
    "promptsUsed": _PROMPTS,
    "promptsNotUsed": _PROMPTS,
    "callOrder": _list(_object({"type": {"enum": ["tool", "resource", "prompt"]}, **_NAMED, "name": _string()})),
    "noDuplicateCalls": {"type": "boolean"},
    "skillsLoaded": _SKILLS,
    "skillsNotLoaded": _SKILLS,
}
_BODY: Schema = _object(
    {
        "match": _string("Regular expression that the body must contain"),
        "fields": _list(
            _object(
                {
                    "path": _string("Path of a member, such as items[0].name"),
                    "equals": {"description": "Expected value"},
                    "type": {"enum": ["string", "number", "array", "object", "bool", "null"]},
                    "match": _string("Regular expression for a string"),
                    "exists": {"type": "boolean"},
                },
                ["path"],
            )
        ),
    }
)
# Steps that hosts perform themselves.
OWN_STEPS: dict[str, Schema] = {
    "script": _object(
        {
            **_INLINE,
            "env": _STRINGS | {"description": "Variables, with templates such as {steps.shell.run.stdout}"},
            "timeout": _DURATION | {"default": "5m"},
            "continueOnError": _flag("The next steps run even if the script fails"),
        },
        text="Run a script; it fails if its exit code is not 0",
    )
    | _ONE_TEXT,
    "http": _object(
        {
            "url": _string("URL"),
            "method": _string("Method", default="GET"),
            "headers": _STRINGS,
            "body": _object({"raw": _string(), "json": _ANY})
            | {"oneOf": [{"required": ["raw"]}, {"required": ["json"]}]},
            "expect": _object(
                {"status": {"type": "integer"}, "body": _BODY},
                text="Expected response; without it, any response is accepted",
            ),
            "timeout": _DURATION | {"default": "5m"},
        },
        ["url"],
        text="Send an HTTP request, and check the response",
    ),
    "llmJudge": _object(
        {
            "contains": _string("Information that the answer of the agent must contain"),
            "exact": _string("Answer with the same meaning"),
        },
        text="Have a model evaluate the answer of the agent; in verify only",
    )
    | {"oneOf": [{"required": ["contains"]}, {"required": ["exact"]}]},
}
_LIMITS: Schema = _object(
    {
        "timeout": _DURATION | {"description": "Limit of setup, agent and verify together, such as 15m"},
        "cleanupTimeout": _DURATION | {"description": "Limit of cleanup, such as 5m"},
    }
)
_AGENT: Schema = _object(
    {
        "type": _string("file, or builtin.NAME", examples=["file", "builtin.claude-code", "builtin.llm-agent"]),
        "path": _string("Path of the agent file, for type: file"),
        "model": _string("PROVIDER:MODEL, for builtin.llm-agent"),
    },
    ["type"],
)
_PROMPT = _object(_INLINE, text="Prompt of the agent") | _ONE_TEXT
# By name, the schemas of each kind of file; `step` is added with the operations.
FORMAT: dict[str, Schema] = {
    "limits": _LIMITS,
    "Task": _object(
        {
            **_META,
            "metadata": _METADATA,
            "spec": _object(
                {
                    "requires": _list(
                        _object(
                            {
                                "extension": _string("Name of an extension of the eval"),
                                "mcpServer": _string("Name of an MCP server of the eval"),
                                "as": _string("First part of the names of its steps; default: its name"),
                            }
                        ),
                        "Extensions and MCP servers that steps use",
                    ),
                    "limits": _ref("limits"),
                    **{phase: _list(_ref("step"), text) | {"type": _OR_EMPTY[1]} for phase, text in _STEPS.items()},
                    "prompt": _PROMPT,
                },
                ["prompt"],
            ),
        },
        ["kind", "metadata", "spec"],
    ),
    "LegacyTask": _object(
        {
            **_META,
            "metadata": _METADATA,
            "steps": _object(
                {
                    "setup": _object(_INLINE) | {"type": _OR_EMPTY[0]},
                    "verify": _object(_INLINE | {name: _string() for name in ("contains", "exact")}),
                    "cleanup": _object(_INLINE) | {"type": _OR_EMPTY[0]},
                    "prompt": _PROMPT,
                },
                ["prompt"],
            ),
        },
        ["kind", "metadata", "steps"],
    ),
    "Eval": _object(
        {
            **_META,
            "metadata": _object({"name": _string("Name of the eval, for reports", minLength=1)}, others={}),
            "config": _object(
                {
                    "agent": _AGENT,
                    "extensions": {
                        "type": "object",
                        "description": "Extensions, by the names that tasks require",
                        "additionalProperties": _object(
                            {
                                "package": _string("Path of the program: ./NAME, /PATH or ~/PATH; or a GitHub package"),
                                "config": _ANY | {"description": "Configuration, sent by `initialize`"},
                                "env": _TEXTS | {"description": "Variables of its environment"},
                            },
                            ["package"],
                        ),
                    },
                    "sources": {
                        "type": "object",
                        "additionalProperties": _object(
                            {"repo": _string(), "ref": _string(), "serverMapping": _TEXTS}, ["repo", "ref"]
                        ),
                    },
                    "mcpConfigFile": _string("Path of the file that lists MCP servers"),
                    "llmJudge": _object(
                        {
                            "env": _object({f"{name}Key": _string() for name in ("baseUrl", "apiKey", "modelName")}),
                            "ref": _AGENT,
                        },
                        text="Model that evaluates llmJudge steps",
                    ),
                    "skills": _object(
                        {"sources": _list(_object({"type": {"enum": ["path"]}, "path": _string()}, ["type", "path"]))}
                    ),
                    "defaultTaskLimits": _ref("limits"),
                    "taskSets": _list(
                        _object(
                            {
                                "glob": _string("Pattern of task files, relative to this file"),
                                "path": _string("Path of a task file"),
                                "source": _string("Name of a repository in `sources`"),
                                "labelSelector": _TEXTS | {"description": "Labels that the tasks must have"},
                                "assertions": _object(ASSERTIONS, text="Expectations on the agent's calls"),
                            }
                        ),
                        "Tasks to run",
                    ),
                }
            ),
        },
        ["kind", "config"],
    ),
    "Agent": _object(
        {
            **_META,
            "metadata": _object({"name": _string("Name, for reports", minLength=1), "version": _string()}, others={}),
            "builtin": _object({name: _string() for name in ("type", "model", "baseUrl", "apiKey")}, ["type"]),
            "acp": _object({"cmd": _string("Program"), "args": _list(_PLAIN, "Arguments of the program")}, ["cmd"]),
            "commands": _object(
                {
                    "useVirtualHome": {"type": "boolean"},
                    "argTemplateMcpServer": _string(),
                    "argTemplateAllowedTools": _string(),
                    "allowedToolsJoinSeparator": _string(),
                    "runPrompt": _string("Shell command, in which {{ .Prompt }} is replaced by the prompt"),
                    "getVersion": _string("Shell command that prints the version"),
                }
            ),
            "skills": _object({"mountPath": _string(), "toolName": _string()}, ["mountPath", "toolName"]),
        },
        ["kind"],
    ),
}


def file_schema(extensions: Mapping[str, Extension]) -> Schema:
    """Return the schema of Task, Eval and Agent files.

    Args:
        extensions: by the first part of the names of their steps.
    """
    own = FORMAT | OWN_STEPS
    definitions = {name: cast("Schema", _moved(schema, "", {"$defs": own})) for name, schema in own.items()}
    for prefix, extension in sorted(extensions.items()):
        for name, params in extension.operations.items():
            step = f"{prefix}.{name}"
            definitions[step] = cast("Schema", _moved(params, step, params))
    known = "|".join(map(re.escape, sorted(extensions)))
    definitions["step"] = {
        "type": "object",
        "minProperties": 1,
        "if": {"required": ["id"]},
        "then": {"minProperties": 2, "maxProperties": 2},
        "else": {"maxProperties": 1},
        "properties": {"id": _string("Name of the step in results")}
        | {name: _ref(name) for name in definitions if name in OWN_STEPS or "." in name},
        # Steps of other extensions, of MCP servers, and of extensions that have another name in `requires`.
        "patternProperties": {rf"^(?!(?:{known})\.)[^.]+\..+$" if known else r"^[^.]+\..+$": {}},
        "additionalProperties": False,
    }
    of_version = {"apiVersion": {"const": API_VERSIONS[1]}}
    branches = [
        _when({"kind": {"const": "Task"}, **of_version}, "Task"),
        _when({"kind": {"const": "Eval"}}, "Eval"),
        _when({"kind": {"const": "Agent"}}, "Agent"),
    ]
    legacy: Schema = {
        "if": {
            "required": ["kind"],
            "properties": {"kind": {"const": "Task"}},
            "not": {"required": ["apiVersion"], "properties": of_version},
        },
        "then": _ref("LegacyTask"),
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Task, Eval and Agent files of mcpchecker",
        "type": "object",
        "properties": _META,
        "required": ["kind"],
        "allOf": [*branches, legacy],
        "$defs": definitions,
    }


def _when(properties: Mapping[str, object], name: str) -> Schema:
    return {"if": {"required": list(properties), "properties": dict(properties)}, "then": _ref(name)}


_TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def _moved(part: object, step: str, params: Schema, *, top: bool = True) -> object:
    """Return the schema of an operation's arguments for a place in another document, with short messages in editors.

    Args:
        step: name of the operation; "" for a schema that stays at its place.
        params: the complete schema, which `$ref` refers to.
    """
    if isinstance(part, list):
        return [_moved(item, step, params, top=False) for item in part]
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("$ref"), str):
        return {"$ref": str(part["$ref"]).replace("#/", f"#/$defs/{step}/" if step else "#/", 1)}
    moved = {name: _moved(value, step, params, top=False) for name, value in part.items() if name != "$anchor"}
    if top and step and part.get("type") == "object":
        # `kubernetes.list-contexts:` without arguments
        moved["type"] = ["object"] if {"required", "oneOf", "anyOf"} & part.keys() else ["object", "null"]
    return _explained(moved, part, params)


def _explained(moved: dict[str, Any], part: Schema, params: Schema) -> Schema:
    """Return a schema without alternatives that editors report by one of them, maybe not the one that is meant.

    `anyOf` with a type for each alternative becomes `if` and `then` by type; rules on required members get messages.
    """
    alternatives = [each for each in cast("list[object]", part.get("anyOf") or []) if isinstance(each, dict)]
    kinds = [_kinds(each, params) for each in alternatives]
    known = sorted(set().union(*kinds))
    if alternatives and all(kinds) and not {"integer", "number"} <= set(known):
        branches = cast("list[Schema]", moved.pop("anyOf"))
        moved["type"], moved["allOf"] = known, []
        for kind in known:
            own = [branch for branch, names in zip(branches, kinds, strict=True) if kind in names]
            moved["allOf"].append({"if": {"type": kind}, "then": own[0] if len(own) == 1 else {"anyOf": own}})
    for keyword in {"oneOf", "anyOf"} & moved.keys():
        branches = cast("list[Schema]", moved[keyword] if isinstance(moved[keyword], list) else [])
        names = [name for branch in branches for name in cast("list[str]", branch.get("required") or [])]
        if not names or len(names) != len(branches):
            continue
        text = f"expected {'one' if keyword == 'oneOf' else 'at least one'} of {', '.join(names[:-1])} and {names[-1]}"
        del moved[keyword]
        moved["anyOf"] = [branch | {"errorMessage": f"{text}, found none"} for branch in branches]
        if keyword == "oneOf":
            moved["allOf"] = [*moved.get("allOf", []), *_exclusions(branches, text)]
    pattern = str(moved.get("pattern"))
    if moved.get("title") == "duration" or pattern.startswith(DURATION_PATTERN):
        moved["patternErrorMessage"] = "expected a duration, such as 30s, 1m30s or 500ms"
    elif pattern == r"\$\{":
        moved["patternErrorMessage"] = "expected a number, or a reference, such as ${NAME.key}"
    return moved


def _exclusions(branches: Sequence[Schema], text: str) -> Iterator[Schema]:
    """Yield schemas that refuse a second of several members; one with its default does not count as given."""
    message = f"{text}, found both"
    for index, branch in enumerate(branches[:-1], 1):
        others: dict[str, object] = {}
        for other in branches[index:]:
            name = cast("list[str]", other["required"])[0]
            rule = cast("Mapping[str, dict[str, Any]]", other.get("properties", {})).get(name, {})
            defaults = [rule["not"]["const"]] if "not" in rule else [False] if "const" in rule else []
            others[name] = {"enum": defaults, "errorMessage": message} if defaults else False
        yield {"if": branch, "then": {"properties": others, "errorMessage": message}}


def _kinds(schema: Schema, params: Schema) -> set[str]:
    """Return the types that a schema allows; empty if they are not known."""
    while isinstance(schema.get("$ref"), str):
        found: object = params
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = cast("Mapping[str, object]", found)[part]
        schema = cast("Schema", found)
    kinds = schema.get("type")
    if kinds is None and isinstance(values := schema.get("enum"), list):
        return {_TYPE_NAMES[type(value)] for value in values}
    return {kinds} if isinstance(kinds, str) else set(cast("list[str]", kinds or []))


def text_of(schema: Schema) -> str:
    """Return a schema as JSON with one definition on each line, so that changes can be read."""
    definitions = cast("Schema", schema["$defs"])
    head = json.dumps(schema | {"$defs": None}, ensure_ascii=False, indent=2)
    lines = [f"    {json.dumps(name)}: {json.dumps(each, ensure_ascii=False)}" for name, each in definitions.items()]
    return head.replace('"$defs": null', '"$defs": {\n' + ",\n".join(lines) + "\n  }", 1) + "\n"


@click.command("schema")
@click.option(
    "--extension",
    "extensions",
    multiple=True,
    metavar="NAME=PROGRAM|MANIFEST",
    help="Further extension, or another name of an installed one: k8s=ext-kubernetes. Default: all installed ones.",
)
@click.option("-o", "--output", metavar="FILE", help="File to write. Default: standard output.")
def command(extensions: Sequence[str], output: str | None) -> None:
    """Write a JSON Schema of Task, Eval and Agent files, with the operations of installed extensions.

    Editors with the YAML language server complete and check a file that begins with the line
    `# yaml-language-server: $schema=task.schema.json`.
    """
    text = text_of(file_schema(extensions_of(extensions)))
    if output:
        Path(output).write_text(text, "utf-8")
    else:
        click.echo(text, nl=False)
