"""Errors that an operation may raise. Each becomes a result with success: false (spec 0, "Failure Response").

ExtensionError
├── OperationFailed      the outcome is a failure
├── InvalidArgs          an argument that the JSON Schema of the operation could not refuse; the text names it
└── RequirementNotMet    a command is missing; the text names it

Errors of JSON-RPC are for what the protocol itself refuses. A host stops a task at such an error and skips its cleanup,
while it reports a failed result and continues. The codes are:

-32700, -32600   not JSON; not a request
-32601           unknown method, unknown operation
-32602           `params` of another form, and arguments that the JSON Schema in the manifest refuses
-32603           a fault of the extension: any other exception of an operation
-32000, -32001   no result: the extension was shut down; the operation did not end in its time

`Session` decides between the two, and nothing else does.
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
    """An argument can't be used: the operation fails.

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
