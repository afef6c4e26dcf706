"""The reference page of the recorder, from its command line."""

from __future__ import annotations

import click

from ext_recorder.__main__ import main

WIDTH = 100
HEAD = """\
<!-- Generated from the code by `make docs`; changes belong there. -->

# ext-recorder

What `ext-recorder --help` and `ext-recorder COMMAND --help` say.
"""


def page() -> str:
    """The whole page, in Markdown."""
    context = click.Context(main, info_name="ext-recorder", max_content_width=WIDTH, terminal_width=WIDTH)
    parts = [HEAD, block(main.get_help(context))]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, terminal_width=WIDTH)
        parts += [f"\n## {name}\n", block(command.get_help(inner))]
    return "\n".join(parts)


def block(text: str) -> str:
    """Help text as it stands."""
    return f"```text\n{text.rstrip()}\n```\n"
