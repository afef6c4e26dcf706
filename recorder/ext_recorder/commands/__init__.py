"""The commands of ext-recorder: one module each, with what it takes and what it calls.

A module is imported when its command is asked for, and what a command needs when it runs: hosts start `record` and
`replay` for every task.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.options import Command

# In the order of the help; each is a module beside this one.
NAMES = (
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
    """All commands by name, imported at the first look."""

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
        """The command of that name; None where there is none."""
        return self[name] if name in NAMES else None

    def values(self) -> list[Command]:
        """All of them, in the order of the help."""
        return [self[name] for name in NAMES]


COMMANDS = Commands()
