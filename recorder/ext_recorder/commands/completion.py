"""`ext-recorder completion`: what a shell reads to complete command lines."""

from __future__ import annotations

from ext_recorder.options import Command

from .shared import one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    import sys

    from ext_recorder.cli import group
    from ext_recorder.completion import script

    sys.stdout.write(script(one(values, "SHELL"), group()))
    return 0


COMMAND = Command(
    "completion",
    "Write what bash, zsh or fish reads to complete command lines of ext-recorder.",
    """
Completed are commands, options and their choices, cassettes, and the program behind `--`. A shell that has read it asks
ext-recorder itself, so it stays right when ext-recorder is updated.

    ext-recorder completion bash
    ext-recorder completion zsh
    ext-recorder completion fish

In ~/.bashrc (bash 4.4 or later):

    eval "$(ext-recorder completion bash)"

In ~/.zshrc, below compinit:

    eval "$(ext-recorder completion zsh)"

In ~/.config/fish/config.fish: `ext-recorder completion fish | source`
""",
    run,
    arguments=("SHELL",),
    project=False,
)
