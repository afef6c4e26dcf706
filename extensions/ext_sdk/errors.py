"""What an operation may raise, and what each becomes on the wire.

ExtensionError
├── OperationFailed      a result with success: false (spec 0, "Failure Response")
├── InvalidArgs          error -32602, naming the argument
└── RequirementNotMet    error -32002, naming the command
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class ExtensionError(Exception):
    """The base of the errors that operations raise on purpose; anything else is answered as -32603."""


class OperationFailed(ExtensionError):
    """The operation did what it could and the outcome is a failure.

    Args:
        message: a summary in one line.
        error: what was expected, what was found, where, and what to do; the message where left out.
        outputs: what is known all the same.
    """

    def __init__(self, message: str, *, error: str = "", outputs: Mapping[str, str | int | bool] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.error = error or message
        self.outputs = dict(outputs or {})


class InvalidArgs(ExtensionError):
    """An argument can't be used.

    Args:
        field: the argument's path, as the user writes it: `expect.exitCode`; "" for all of them.
        message: what was expected and what was found.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class RequirementNotMet(ExtensionError):
    """A command that the operation needs is not in PATH.

    Args:
        command: its name.
        advice: how to get it.
    """

    def __init__(self, command: str, advice: str = "") -> None:
        text = f"required command not found in PATH: {command}"
        super().__init__(f"{text}; {advice}" if advice else text)
        self.command = command
