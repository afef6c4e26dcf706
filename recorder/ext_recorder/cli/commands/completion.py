"""`ext-recorder completion`: completion scripts for shells."""

from __future__ import annotations

from ext_recorder.cli import Command
from ext_recorder.cli.options import value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys

    from ext_recorder.cli.click_app import group
    from ext_recorder.cli.completion import script

    sys.stdout.write(script(value_of(values, "SHELL"), group()))
    return 0


COMMAND = Command(
    "completion",
    "Print a completion script for bash, zsh or fish.",
    """
The script completes commands, options and their choices, cassettes, and the program after `--`. It calls ext-recorder
for each completion, so it remains correct when ext-recorder is updated.

    ext-recorder completion bash
    ext-recorder completion zsh
    ext-recorder completion fish

In ~/.bashrc (bash 4.4 or later):

    eval "$(ext-recorder completion bash)"

In ~/.zshrc, after compinit:

    eval "$(ext-recorder completion zsh)"

In ~/.config/fish/config.fish: `ext-recorder completion fish | source`
""",
    run,
    arguments=("SHELL",),
    project=False,
)
