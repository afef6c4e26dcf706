"""Commands of ext-recorder: one module each, with options, help text and entry function.

The module of a command is imported when the command is used, and its dependencies when it runs, because hosts start
`record` and `replay` for every task. A new command needs a module here, and its name in `NAMES`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cli import Command

# In the order of the help. Each name is a module of this folder.
NAMES = (
    "run",
    "record",
    "replay",
    "verify",
    "diff",
    "lint",
    "show",
    "view",
    "stats",
    "scrub",
    "trim",
    "merge",
    "convert",
    "recover",
    "shim",
    "config",
    "conformance",
    "completion",
)


class Commands:
    """Mapping from names to commands, each imported on first access."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Command:
        if name not in NAMES:
            raise KeyError(name)
        module = __import__(f"{__name__}.{name}", fromlist=["COMMAND"])
        command: Command = module.COMMAND
        return command

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
