"""Errors that an operation may raise. Each becomes a result with success: false (gevals 0.0.1, "Failure Response").

ExtensionError
├── OperationFailed      the outcome is a failure
├── InvalidArgs          an argument that the JSON Schema of the operation could not refuse; the text names it
└── RequirementNotMet    a command is missing; the text names it

Errors of JSON-RPC are for requests that the protocol itself refuses. A host stops a task at such an error and skips its
cleanup, while it reports a failed result and continues. The codes are:

-32700, -32600   not JSON; not a request
-32601           unknown method, unknown operation
-32602           `params` of another form, and arguments that the JSON Schema in the manifest refuses
-32603           a fault of the extension: any other exception of an operation
-32000, -32001   no result: the extension was shut down; the operation did not end in its time

Only `Session` decides between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class ExtensionError(Exception):
    """Base class of the errors that operations raise on purpose; any other exception becomes -32603."""


class OperationFailed(ExtensionError):
    """Failed outcome of an operation.

    Args:
        message: a summary in one line.
        error: expected, found, place and remedy. Default: the message.
        outputs: outputs that are available nevertheless.
    """

    def __init__(self, message: str, *, error: str = "", outputs: Mapping[str, str | int | bool] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.error = error or message
        self.outputs = dict(outputs or {})


class InvalidArgs(ExtensionError):
    """Argument that can't be used: the operation fails.

    Args:
        field: the argument's path, as the user writes it: `expect.exitCode`; "" for all of them.
        message: the expected and the found value.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message


class RequirementNotMet(ExtensionError):
    """Command that the operation needs and that is not in PATH.

    Args:
        advice: a way to install it.
    """

    def __init__(self, command: str, advice: str = "") -> None:
        text = f"required command not found in PATH: {command}"
        super().__init__(f"{text}; {advice}" if advice else text)
        self.command = command
