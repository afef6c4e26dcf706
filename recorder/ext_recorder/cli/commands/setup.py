"""Commands that set up a project: shim, config, completion."""

from __future__ import annotations

from ext_recorder.cli import CONFIG, GIVEN, Command
from ext_recorder.cli.commands import record, replay
from ext_recorder.cli.options import (
    ACCEPT_COMMAND,
    CONNECT,
    FORCE,
    HTTP,
    HTTP_COMMAND,
    LISTEN,
    MATCH_ENV,
    MODE,
    PLAYING,
    QUIET,
    RECORDING,
    behind,
    value_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


# --- shim -------------------------------------------------------------------------------------------------------------


def _shim(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.cli.project_file import NO_FILE
    from ext_recorder.errors import UsageError
    from ext_recorder.record.config import known
    from ext_recorder.tools import shim

    mode, command, cassette = value_of(values, "mode"), values["COMMAND"], Path(value_of(values, "CASSETTE")).absolute()
    file = Path(value_of(values, "FILE"))
    if (config := value_of(values, "config")) and config != NO_FILE:
        values = values | {"config": (str(Path(config).absolute()),)}
    if values["http"]:
        behind(values, "shim --http FILE CASSETTE", HTTP_COMMAND)
    if known(mode).missing == "refuse" and values["http"]:
        located = shim.located(command, file)
        words = ["replay", *_options_for(replay.COMMAND, values), str(cassette), "--", *located]
    elif known(mode).missing == "refuse" or not command:
        if mode == "all":
            raise UsageError("--mode all records: expected the command after `--`")
        words = ["replay", *_options_for(replay.COMMAND, values | {"connect": ()}), str(cassette), "--", *command]
    else:
        words = [
            "record",
            *_options_for(record.COMMAND, values),
            str(cassette),
            "--",
            *shim.located(command, file),
        ]
    shim.write(file, shim.script(words), force=bool(values["force"]))
    does = known("none" if words[0] == "replay" else mode).help
    sys.stdout.write(f"{file}, with {cassette}: {does}\n")
    if words[0] == "replay" and "{" not in str(cassette) and not cassette.exists():
        sys.stderr.write(f"ext-recorder: {file} can only replay {cassette}, which does not exist yet\n")
    return 0


def _options_for(other: Command, values: Values) -> list[str]:
    """Return the options of another command that this one was given; the project file is read when the shim runs."""
    options = [option for option in other.options if option.name in values[GIVEN] and option.name in values]
    return [
        f"--{option.name}={value}" if option.metavar else f"--{option.name}"
        for option in options
        for value in values[option.name]
    ]


SHIM_COMMAND = Command(
    "shim",
    "Write an executable that records or replays, for hosts that start a program by its path.",
    """
The host starts FILE instead of COMMAND. Without COMMAND, the executable can only replay.

    ext-recorder shim ./ext-shell-recorded session.yaml -- ext-shell
    ext-recorder shim ./ext-shell-replayed session.yaml

Arguments that the host passes are appended to COMMAND, and compared on replay. If the name of the cassette contains
{args}, there is one cassette for each set of arguments, for example for a credential helper:

    ext-recorder shim ./docker-credential-recorded credentials/{args}.yaml -- docker-credential-pass
    ext-recorder shim --mode none ./docker-credential-recorded credentials/{args}.yaml -- docker-credential-pass

FILE can also replace a socket server that a host starts: the host connects to --listen, and COMMAND listens at
--connect.

    ext-recorder shim --protocol waza --listen tcp:4711 --connect tcp:4712 ./waza waza.yaml -- waza serve --tcp 4712

In eval.yaml of mcpchecker:

    config:
      extensions:
        shell:
          package: /full/path/to/ext-shell-recorded

In a host written in Go or JavaScript:

    exec.Command("/full/path/to/ext-shell-recorded")
    spawn("/full/path/to/ext-shell-recorded")

FILE contains full paths, so it works in any working directory and with any PATH.
""",
    _shim,
    arguments=("FILE", "CASSETTE"),
    tail="COMMAND",
    options=(MODE, HTTP, *RECORDING, LISTEN, CONNECT, *PLAYING, MATCH_ENV, ACCEPT_COMMAND, QUIET, FORCE, CONFIG),
    project=False,
)


# --- config -----------------------------------------------------------------------------------------------------------


def _config(values: Values) -> int:
    """Run the command. Return its exit code: 1 without a project file."""
    import sys

    from ext_recorder.cli.project_file import folders, located, searched, switched_off
    from ext_recorder.cli.settings import Settings, toml

    file = located(CONFIG_COMMAND, values) if values["config"] else None  # the file that was found, or is named
    if file is None:
        names = ", ".join(folder for start in folders(values["CASSETTE"]) for folder in searched(start))
        sys.stdout.write(f"# no project file{': switched off' if switched_off(values) else f' in {names}'}\n")
        return 1
    settings = Settings(file)
    settings.check()
    table = " [tool.ext-recorder]" if file.shared else ""
    sys.stdout.write(f"# {file.path}{table}\n{toml(settings.everywhere)}")
    for name, inner in settings.by_command.items():
        sys.stdout.write(f"\n[{name}]\n{toml(inner)}")
    return 0


CONFIG_COMMAND = Command(
    "config",
    "Check and print the project file that applies to cassettes.",
    """
A project file contains options that a project always uses. It is pyproject.toml, with a table [tool.ext-recorder], or
ext-recorder.toml, without that header. A key is the name of an option, and applies to each command that has it; a table
with the name of a command applies to that command only. There are two more keys: cassettes, a list of files and folders
for commands that accept many cassettes, and command, the program and its arguments for commands that run one.

    ext-recorder config
    ext-recorder config cassettes/
    ext-recorder config --config other.toml

The file is searched for in the folder of the cassette and above it, up to the root of the repository (.git) or the home
directory. A file that belongs to another user is not read. --config FILE, or the variable EXT_RECORDER_CONFIG, names
another file; the name none disables the project file. Values on the command line take precedence: they are added to
lists, and replace other values.
""",
    _config,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
)


# --- completion -------------------------------------------------------------------------------------------------------


def _completion(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys

    from ext_recorder.cli.click_app import group
    from ext_recorder.cli.completion import script

    sys.stdout.write(script(value_of(values, "SHELL"), group()))
    return 0


COMPLETION_COMMAND = Command(
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
    _completion,
    arguments=("SHELL",),
    project=False,
)


COMMANDS = (SHIM_COMMAND, CONFIG_COMMAND, COMPLETION_COMMAND)
