"""`ext-recorder shim`: an executable that records or replays."""

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


def run(values: Values) -> int:
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
        words = ["record", *_options_for(record.COMMAND, values), str(cassette), "--", *shim.located(command, file)]
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


COMMAND = Command(
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
    run,
    arguments=("FILE", "CASSETTE"),
    tail="COMMAND",
    options=(MODE, HTTP, *RECORDING, LISTEN, CONNECT, *PLAYING, MATCH_ENV, ACCEPT_COMMAND, QUIET, FORCE, CONFIG),
    project=False,
)
