"""The reference page of an extension, from its operations and their classes of arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from ext_sdk.args import rules_text
from ext_sdk.server.schema import object_schema

from .outputs import OUTPUTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_sdk import Extension, Operation

Told = dict[str, str]  # the members of an object, as JSON, and where the page lists them

HEAD = """\
<!-- Generated from the code by `make docs`; changes belong there. -->

# {program}

{description}. Names of nested arguments are written with dots, `NAME` stands for a name of the user's, `[]` for the
items of a list. An argument without a default is optional unless it says *required*. Durations are Go's: `30s`,
`1m30s`, `100ms`.

Every operation also takes `as: NAME`, which keeps its outputs: later steps of the same workdir write `${{NAME.key}}`
for them. A later step gets the complete value, also of an output that is shown shortened or redacted; see
[Results](../writing-extensions.md#results) for the limits. A call that fails unsets its NAME, and a later reference to
it is refused.

Names, processes, mocks, sessions and namespaces belong to the workdir, and mcpchecker's workdir is the folder of the
task file: tasks in one folder share them. So use one folder for each task that runs in parallel, or give every step of
a task the same `scope: NAME`, which every operation takes. Each scope of a workdir has its own.

`{program} call OPERATION --describe` shows the arguments in a terminal, and `{program} call OPERATION '{{…}}'` runs an
operation by hand. The examples are steps of one task, one after the other.
"""

HEADING = "Other names"
ANCHOR = HEADING.lower().replace(" ", "-")
OTHER_NAMES = "A task that was written for mcpchecker's own Kubernetes extension runs unchanged"


def page(program: str, extension: Extension) -> str:
    """The whole page, in Markdown."""
    parts = [HEAD.format(program=program, description=extension.description)]
    if extension.requires:
        commands = ", ".join(f"`{command}`" for command in extension.requires)
        parts.append(f"Needs in PATH: {commands}.\n")
    parts.append(contents(extension))
    told: Told = {}
    parts.extend(operation_section(program, one, told) for one in extension.operations.values() if not one.same_as)
    parts.extend(other_names_section(program, extension))
    parts.append(configuration(program, extension))
    return "\n".join(parts)


def names(extension: Extension, page: str) -> str:
    """Return the names of all operations, linked to their sections of a page, and those for mcpchecker's extension."""
    operations = extension.operations.values()
    listed = ", ".join(link(operation.name, page) for operation in operations if not operation.same_as)
    others = ", ".join(f"`{operation.name}`" for operation in operations if operation.same_as)
    more = f"\n\n{OTHER_NAMES}, because [these names]({page}#{ANCHOR}) are accepted too: {others}."
    return f"{listed}.{more if others else ''}\n"


def contents(extension: Extension) -> str:
    """Return a table of the operations, linked to their sections."""
    rows = [
        f"| {link(operation.name)} | {first_sentence(operation.description)} |"
        for operation in extension.operations.values()
        if not operation.same_as
    ]
    return "\n".join(["| operation | purpose |", "|---|---|", *rows, ""])


def other_names_section(program: str, extension: Extension) -> Iterator[str]:
    """The operations that are known by another name, too; nothing where there are none."""
    others = [one for one in extension.operations.values() if one.same_as]
    if not others:
        return
    rows = []
    for one in others:
        told = first_sentence(one.description)
        same = told == first_sentence(extension.operations[one.same_as].description)
        rows.append(f"| `{one.name}` | {link(one.same_as)} | {'' if same else told} |")
    yield f"## {HEADING}\n\n{OTHER_NAMES}, because these names are accepted too.\n"
    yield "\n".join(["| name | operation | where it differs |", "|---|---|---|", *rows, ""])
    yield "\n".join(["```yaml", *(step(program, one) for one in others), "```", ""])


def link(operation: str, page: str = "") -> str:
    """A link to the section of an operation."""
    return f"[`{operation}`]({page}#{operation.lower()})"


def operation_section(program: str, operation: Operation, told: Told) -> str:
    """One operation: description, arguments, outputs, an example."""
    rows = list(argument_rows(object_schema(operation.args_type), told, operation.name))
    parts = [f"## {operation.name}", "", operation.description, ""]
    if rules := rules_text(operation.args_type):
        parts += [f"Requires {rules}.", ""]
    if rows:
        parts += ["| argument | type | default | |", "|---|---|---|---|", *rows, ""]
    if outputs := OUTPUTS[program][operation.name]:
        parts += ["| output | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in outputs.items()), ""]
    if operation.example is not None:
        parts += ["```yaml", step(program, operation), "```", ""]
    return "\n".join(parts)


def step(program: str, operation: Operation) -> str:
    """The example of an operation as a step of an eval task."""
    key = f"{program.removeprefix('ext-')}.{operation.name}"
    text: str = yaml.safe_dump([{key: operation.example}], sort_keys=False, allow_unicode=True, width=100)
    return text.rstrip()


def configuration(program: str, extension: Extension) -> str:
    """What the host may configure."""
    rows = argument_rows(object_schema(extension.config_type), {}, "")
    text = (
        "A host hands these over as `config` of `initialize`, which in an eval file is `config` of the extension; "
        f"for a call by hand it is `{program} --config '{{…}}'`."
    )
    return "\n".join(
        ["## Configuration", "", text, "", "| setting | type | default | |", "|---|---|---|---|", *rows, ""]
    )


def argument_rows(schema: Mapping[str, object], told: Told, operation: str, prefix: str = "") -> Iterator[str]:
    """Rows of the table of arguments, nested ones after the one that holds them.

    Args:
        schema: of an object.
        told: objects whose members a table on this page has; what this one adds is noted in it.
        operation: whose arguments these are.
        prefix: the path to the object, with its dot.
    """
    required = schema.get("required", [])
    for name, value in members(schema.get("properties")).items():
        shape = members(value)
        needed = isinstance(required, list) and name in required
        default = "*required*" if needed else shown_default(shape)
        description = escaped(str(shape.get("description", "")))
        nested = list(nested_objects(shape))
        known = {told[key] for _, inner in nested if (key := json.dumps(inner["properties"])) in told}
        reference = "".join(f" Members as of {place}." for place in sorted(known))
        yield f"| `{prefix}{name}` | {kind(shape)} | {default} | {sentence(description, reference)} |"
        for suffix, inner in nested:
            path, key = f"{prefix}{name}{suffix}", json.dumps(inner["properties"])
            if key not in told:  # "one, or a list of such" has its members once
                told[key] = f"`{path}` in [{operation}](#{operation.lower()})"
                yield from argument_rows(inner, told, operation, f"{path}.")


def sentence(description: str, more: str) -> str:
    """A description with something after it."""
    return f"{description.rstrip('.')}.{more}" if description and more else description + more.lstrip()


def nested_objects(shape: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The objects with named members in an argument, and how the path to them goes on."""
    if "properties" in shape:
        yield "", shape
    for key, suffix in (("items", "[]"), ("additionalProperties", ".NAME")):
        if key in shape:
            for rest, nested in nested_objects(members(shape[key])):
                yield suffix + rest, nested
    for branch in branches(shape):
        yield from nested_objects(branch)


def kind(shape: Mapping[str, object]) -> str:
    """The type of an argument in words."""
    if "enum" in shape and isinstance(values := shape["enum"], list):
        return ", ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in values)
    if shapes := branches(shape):
        return " or ".join(dict.fromkeys(kind(branch) for branch in shapes))
    if shape.get("type") == "array":
        return f"list of {kind(members(shape.get('items')))}"
    if shape.get("type") == "object" and isinstance(shape.get("additionalProperties"), dict):
        return f"map of {kind(members(shape['additionalProperties']))}"
    if shape.get("title") == "duration":
        return "duration"
    return str(shape.get("type", "any"))


def shown_default(shape: Mapping[str, object]) -> str:
    """The default as a user would write it; nothing where it is empty."""
    default = shape.get("default")
    return "" if default in (None, "", [], {}) else f"`{json.dumps(default, ensure_ascii=False)}`"


def branches(shape: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The alternatives of a schema, without null."""
    found = [] if "properties" in shape else shape.get("anyOf", [])
    assert isinstance(found, list)
    return [members(branch) for branch in found if members(branch).get("type") != "null"]


def members(value: object) -> Mapping[str, object]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def escaped(text: str) -> str:
    """Text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def first_sentence(text: str) -> str:
    """The first sentence, for a table."""
    return escaped(" ".join(text.split()).partition(". ")[0].rstrip("."))
