"""Reference page of the recorder, generated from its command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ext_recorder.cli.click_app import group
from ext_recorder.cli.commands import COMMANDS
from ext_recorder.http.known_apis import known_apis
from ext_recorder.messages.json_values import join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_recorder.cli import Option

WIDTH = 100
APIS_HEAD = """\
<!-- Generated from known_apis.yaml by `make docs`; changes belong there. -->

# Known differences of HTTP APIs

Parts of requests that differ between two runs of the same program. `ext-recorder run` and `replay --http` do not
compare them, whatever the server: an API is recognized by the path and the members of a request. Recordings contain
these parts. With `--exact` they are compared. `--match-on` compares a single one: `--match-on method --match-on params
--match-on /body/metadata/user_id`. See [Matching HTTP requests](../cassettes.md#matching-http-requests).
"""
HEAD = """\
<!-- Generated from the code by `make docs`; changes belong there. -->

# ext-recorder

The output of `ext-recorder --help` and `ext-recorder COMMAND --help`. Examples of all commands, with their output, are
in [Recording evals](../recording-evals.md) (run), [Cassettes](../cassettes.md) (record, replay, recover), [Working
with cassettes](../recorder.md), [Testing](../testing.md) (shim, faults, sockets), [Protocols](../protocols.md) (lint)
and [Conformance](../conformance.md). The [glossary](../glossary.md) defines the terms.
"""
KEYS = """\

## Project file

Keys of `ext-recorder.toml`, and of `[tool.ext-recorder]` in `pyproject.toml`, with the commands that they apply to. A
key has the meaning of the option with the same name. See [Project file](../recorder.md#project-file).

| key | value | commands |
|---|---|---|"""


def page() -> str:
    """Return the complete page, in Markdown."""
    program = group()
    context = click.Context(program, info_name="ext-recorder", terminal_width=WIDTH)
    parts = [HEAD, block(program.get_help(context))]
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, terminal_width=WIDTH)
        parts += [f"\n## {name}\n", block(command.get_help(inner))]
    return "\n".join([*parts, KEYS, *_rows()])


def apis_page() -> str:
    """Return the page of the known APIs, in Markdown."""
    parts = [APIS_HEAD]
    for api in known_apis().apis:
        parts.append(f"## {api.name}\n\n{api.about[0].upper()}{api.about[1:]}.")
        if api.repeats:
            parts[-1] += " The number of these requests may differ, too: a further one gets the last recorded response."
        rows = []
        for item in api.volatile:
            pointers = ", ".join(f"`{join_pointer(tokens)}`" for tokens in item.at)
            what = f"in {pointers}: `{item.text.pattern}`" if item.text else pointers
            rows.append(f"| {what.replace('|', chr(92) + '|')} | {item.why} |")
        if rows:
            parts.append("\n".join(["| need not match | reason |", "|---|---|", *rows]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def join_pointer(tokens: Iterable[str]) -> str:
    """Return a JSON pointer."""
    pointer = ""
    for token in tokens:
        pointer = join(pointer, token)
    return pointer


def _rows() -> list[str]:
    """Return the rows of the table of keys, in alphabetical order."""
    commands = [command for command in COMMANDS.values() if command.project]
    found: dict[str, tuple[str, list[str]]] = {
        "cassettes": ("list of files, folders and patterns", [each.name for each in commands if each.optional]),
        "command": ("list: the program, its arguments", [each.name for each in commands if each.tail]),
    }
    for command in commands:
        for option in command.options:
            if option.key:
                found.setdefault(option.name, (_form(option), []))[1].append(command.name)
    rows = [f"| `{name}` | {form} | {', '.join(names)} |" for name, (form, names) in sorted(found.items())]
    return [*rows, ""]


def _form(option: Option) -> str:
    """Return how the value of an option is written in TOML."""
    if not option.metavar:
        return "`true` or `false`"
    if option.metavar.startswith("NAME="):
        return "table: name = path"
    if option.choices:
        return "one of " + ", ".join(f"`{choice}`" for choice in option.choices)
    name = option.metavar.replace("|", " or ")
    return (f"list of {name}" if option.many else name) + (", or of tables" if option.table else "")


def block(text: str) -> str:
    """Return a code block with a help text."""
    return f"```text\n{text.rstrip()}\n```\n"
