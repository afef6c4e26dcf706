"""The reference page of the recorder, from its command line."""

from __future__ import annotations

import click

from ext_recorder.cli import group

WIDTH = 100
HEAD = """\
<!-- Generated from the code by `make docs`; changes belong there. -->

# ext-recorder

What `ext-recorder --help` and `ext-recorder COMMAND --help` say. Each command at work, with what it puts out, is in
[Cassettes](../cassettes.md) (record, replay, recover), [Working with cassettes](../recorder.md),
[Testing](../testing.md) (shim, faults, sockets), [Protocols](../protocols.md) (lint), [Conformance](../conformance.md).
"""


def page() -> str:
    """The whole page, in Markdown."""
    program = group()
    context = click.Context(program, info_name="ext-recorder", terminal_width=WIDTH)
    parts = [HEAD, block(program.get_help(context))]
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, terminal_width=WIDTH)
        parts += [f"\n## {name}\n", block(command.get_help(inner))]
    return "\n".join(parts)


def block(text: str) -> str:
    """Help text as it stands."""
    return f"```text\n{text.rstrip()}\n```\n"
