"""Commands of ext-recorder: options, help text and entry function of each, in `COMMANDS` of its module.

The module of a command is imported when the command is used, and its dependencies when it runs, because hosts start
`record` and `replay` for every task. A new command needs an entry in `MODULES`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cli import Command

# The module of each command, in the order of the help.
MODULES = {
    "run": "run",
    "record": "record",
    "replay": "replay",
    "verify": "verify",
    "diff": "inspect",
    "lint": "inspect",
    "show": "inspect",
    "view": "inspect",
    "stats": "inspect",
    "scrub": "edit",
    "trim": "edit",
    "merge": "edit",
    "convert": "edit",
    "recover": "edit",
    "shim": "setup",
    "config": "setup",
    "conformance": "verify",
    "completion": "setup",
}
NAMES = tuple(MODULES)


class Commands:
    """Mapping from names to commands, each imported on first access."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Command:
        if name not in NAMES:
            raise KeyError(name)
        module = __import__(f"{__name__}.{MODULES[name]}", fromlist=["COMMANDS"])
        commands: tuple[Command, ...] = module.COMMANDS
        return next(command for command in commands if command.name == name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def get(self, name: str) -> Command | None:
        """Return the command with this name; None if it does not exist."""
        return self[name] if name in NAMES else None

    def values(self) -> list[Command]:
        """Return all commands, in the order of the help."""
        return [self[name] for name in NAMES]


COMMANDS = Commands()
