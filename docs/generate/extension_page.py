"""Reference page of an extension, generated from its operations and the classes of their arguments.

Causes of failures and further examples are not in the code: they are in `shell_texts`, `http_texts` and
`kubernetes_texts`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from ext_sdk.args import rules_text

from . import http_texts, kubernetes_texts, shell_texts
from .argument_types import BUILT_IN, ArgumentTypes, description_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import msgspec

    from ext_sdk import Extension, Operation

TEXTS = {"ext-http": http_texts, "ext-kubernetes": kubernetes_texts, "ext-shell": shell_texts}
HEAD = """\
<!-- Generated from the code by `make docs`; changes belong there. -->

# {program}

{description}.

- **Arguments** without a default are optional unless they are marked *required*. Types with a link have a section in
  [Types](#types). A `map` has names of your choice.
- **Variables**: every operation also accepts `as: NAME`, which keeps its outputs. Later steps of the same workdir write
  `${{NAME.key}}` for them and get the complete values, even of outputs that are shown shortened or redacted (see
  [Results](../writing-extensions.md#results) for the limits). A call that fails unsets its NAME.
- **References**: `${{NAME.key|DEFAULT}}` has a default; `${{uuid}}`, `${{random}}`, `${{now}}` and `${{unixTime}}` are
  generated; `$${{` is a literal `${{`; `verbatim: true` leaves a call as it is ([details](../evals.md#references)).
- **Scope**: names, processes, mocks, sessions and namespaces belong to the workdir, which for mcpchecker is the folder
  of the task file. Use one folder per task that runs in parallel, or the same `scope: NAME` in each step of a task.
- **Outputs** whose description has an *if* are only present under that condition.
- **Failures**: a failed operation returns `success: false`, with the reason in `message` and `error`. In addition to
  the causes listed for an operation, it fails if its deadline passes, or if a reference `${{NAME.key}}` has no value.
  Arguments that do not match the manifest give the JSON-RPC error -32602
  ([all codes](../writing-extensions.md#errors-and-failures)).
- **Effects** are for [other protocols](../serving.md#effects): `{program} serve --protocol mcp` offers operations that
  cannot destroy anything, and others if `--allow` names them.
- **By hand**: `{program} call OPERATION --describe` prints the arguments, `{program} call OPERATION '{{…}}'` runs an
  operation.

The examples of this page are steps of one task, in this order. The [glossary](../glossary.md) defines the terms.
"""
OTHER_NAMES = "A task that was written for mcpchecker's own Kubernetes extension runs unchanged"
HEADING = "Other names"
COMMON_HEADING = "Arguments of every operation"
ANCHOR = HEADING.lower().replace(" ", "-")


def page(program: str, extension: Extension) -> str:
    """Return the complete page, in Markdown."""
    operations = [operation for operation in extension.operations.values() if not operation.same_as]
    types = ArgumentTypes([*(operation.args_type for operation in operations), extension.config_type])
    parts = [HEAD.format(program=program, description=extension.description)]
    if extension.requires:
        commands = ", ".join(f"`{command}`" for command in extension.requires)
        parts.append(f"Commands required in PATH: {commands}.\n")
    parts.append(contents(extension))
    if common := common_args(program):
        parts.append(f"## {COMMON_HEADING}\n\n{TEXTS[program].COMMON_TEXT}")
        parts.append("\n".join(table(common, types, "argument")))
    parts.extend(operation_section(program, operation, types) for operation in operations)
    parts.extend(other_names_section(program, extension))
    parts.append(configuration(program, extension, types))
    parts.append(types_section(types))
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
    """Yield the section of the operations that have another name; nothing if no operation has one."""
    others = [operation for operation in extension.operations.values() if operation.same_as]
    if not others:
        return
    rows = []
    for operation in others:
        purpose = first_sentence(operation.description)
        same = purpose == first_sentence(extension.operations[operation.same_as].description)
        rows.append(f"| `{operation.name}` | {link(operation.same_as)} | {'' if same else purpose} |")
    yield f"## {HEADING}\n\n{OTHER_NAMES}, because these names are accepted too.\n"
    yield "\n".join(["| name | operation | difference |", "|---|---|---|", *rows, ""])
    yield block([{key(program, operation): operation.example} for operation in others])


def link(operation: str, page: str = "") -> str:
    """Return a link to the section of an operation."""
    return f"[`{operation}`]({page}#{operation.lower()})"


def operation_section(program: str, operation: Operation, types: ArgumentTypes) -> str:
    """Return the section of an operation: description, arguments, outputs, failures, examples."""
    texts = TEXTS[program]
    parts = [f"## {operation.name}", "", operation.description, "", f"Effects: {operation.effects}.", ""]
    if rules := rules_text(operation.args_type):
        parts += [f"Requires {rules}.", ""]
    parts += table(operation.args_type, types, "argument", omit=common_args(program))
    if outputs := operation.outputs:
        rows = (f"| `{name.rstrip('?')}` | {text} |" for name, text in outputs.items())
        parts += ["| output | description |", "|---|---|", *rows, ""]
    if failures := texts.FAILURES[operation.name]:
        parts += ["Fails if", "", *(f"- {cause};" for cause in failures[:-1]), f"- {failures[-1]}.", ""]
    if operation.example is not None:
        parts.append(block([{key(program, operation): operation.example}]))
    for title, steps in texts.EXAMPLES.get(operation.name, {}).items():
        parts += [f"{title}:", "", block([{f"{program.removeprefix('ext-')}.{name}": args} for name, args in steps])]
    return "\n".join(parts)


def key(program: str, operation: Operation) -> str:
    """Return the name of an operation as a step of an eval task."""
    return f"{program.removeprefix('ext-')}.{operation.name}"


class Dumper(yaml.SafeDumper):
    """Writer of steps as people write them: objects of plain values on one line, texts of several lines as blocks."""


def _text(dumper: Dumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text.rstrip("\n") else None)


Dumper.add_representer(str, _text)


def block(steps: Sequence[Mapping[str, object]]) -> str:
    """Return a code block with steps of an eval task."""
    text: str = yaml.dump(
        list(steps), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None
    )
    return f"```yaml\n{text.rstrip()}\n```\n"


def configuration(program: str, extension: Extension, types: ArgumentTypes) -> str:
    """Return the section of the configuration."""
    text = (
        "A host sends these settings as `config` of `initialize`, which in an eval file is `config` of the extension. "
        f"For a call by hand, use `{program} --config '{{…}}'`."
    )
    return "\n".join(["## Configuration", "", text, "", *table(extension.config_type, types, "setting")])


def types_section(types: ArgumentTypes) -> str:
    """Return the section of the types that arguments refer to."""
    sections = {name: type_section(args_type, types) for name, args_type in types.classes.items()}
    sections |= {name: f"{BUILT_IN[name]}\n" for name in types.built_in}
    parts = [f"### {name}\n\n{sections[name]}" for name in sorted(sections)]
    return "\n".join(["## Types", "", *parts])


def type_section(args_type: type[msgspec.Struct], types: ArgumentTypes) -> str:
    """Return the section of a class, without its heading."""
    forms = types.short_forms(args_type)
    short = [f"Short forms: {', '.join(forms)}.", ""] if forms else []
    return "\n".join([description_of(args_type), "", *short, *table(args_type, types, "member")])


def common_args(program: str) -> type[msgspec.Struct] | None:
    """Return the class with the arguments of every operation, which the page lists once; None if it has none."""
    common: type[msgspec.Struct] | None = getattr(TEXTS[program], "COMMON", None)
    return common


def table(
    args_type: type[msgspec.Struct], types: ArgumentTypes, title: str, *, omit: type[msgspec.Struct] | None = None
) -> list[str]:
    """Return the lines of a table of arguments; [] without arguments.

    Args:
        omit: class whose arguments are listed elsewhere.
    """
    omitted = omit.__struct_encode_fields__ if omit else ()
    rows = [
        f"| `{member.name}` | {member.type} | {'*required*' if member.required else escaped(member.default)} "
        f"| {escaped(member.description)} |"
        for member in types.members(args_type)
        if member.name not in omitted
    ]
    return [f"| {title} | type | default | description |", "|---|---|---|---|", *rows, ""] if rows else []


def escaped(text: str) -> str:
    """Return a text as a cell of a table; outside of code, `**` and `__` are not emphasis."""
    cell = text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
    return re.sub(r"(`[^`]*`)|([*_])(?=\2)|(?<=([*_]))\3", lambda match: match[1] or f"\\{match[0]}", cell)


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, as a cell of a table."""
    return escaped(" ".join(text.split()).partition(". ")[0].rstrip("."))
