"""`ext-recorder config`: the project file of cassettes."""

from __future__ import annotations

from ext_recorder.cli import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code: 1 without a project file."""
    import sys

    from ext_recorder.cli.project_file import folders, located, searched, switched_off
    from ext_recorder.cli.settings import Settings, toml

    file = located(COMMAND, values) if values["config"] else None  # the file that was found, or is named
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


COMMAND = Command(
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
    run,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
)
