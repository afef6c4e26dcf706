"""Result of an operation (gevals 0.0.1, "Result Fields"), and the errors that become one ("Failure Response").

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

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .polling import OnTimeout


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


Outputs = Mapping[str, str | int | bool]


class NotKept:
    """Value of an output that later steps can't get; a reference to it is refused with the reason.

    Args:
        reason: the reason, and the remedy: `binary: 512 bytes; use the operation download`.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"NotKept({self.reason!r})"


class Result:
    """Success or failure, a message for people, and outputs for later steps.

    Args:
        success: False if the operation failed.
        message: a summary in one line.
        error: of a failure: expected, found, place, remedy. Hosts show nothing else.
        outputs: values for later steps; numbers and booleans become JSON texts. Names have no dots, because a host
            splits `step.operation.name` at them.
        secret_outputs: values that only later steps of the same workdir get, as `${NAME.key}`, never the host.
        whole: the complete values of outputs that are shortened or redacted in `outputs`. Later steps get these as
            `${NAME.key}`; the host never does. NotKept refuses a reference to a value that is not available.
        chosen: names of outputs that the extension has chosen itself, such as a free port. Requests may use them as
            hosts and ports; other outputs may have been influenced by the agent.

    Raises:
        ValueError: the name of an output has a dot, or is empty.
        TypeError: an output is not a string, integer or boolean.
    """

    __slots__ = ("chosen", "error", "message", "outputs", "secret_outputs", "success", "whole")

    def __init__(
        self,
        *,
        success: bool,
        message: str = "",
        error: str = "",
        outputs: Outputs | None = None,
        secret_outputs: Outputs | None = None,
        whole: Mapping[str, str | NotKept] | None = None,
        chosen: Collection[str] = (),
    ) -> None:
        self.success = success
        self.chosen = frozenset(chosen)
        self.message = message
        self.error = error
        for name in (*(outputs or ()), *(secret_outputs or ()), *(whole or ())):
            if not name or "." in name:
                raise ValueError(f"an output needs a name without dots, not {name!r}")
        self.outputs = _as_texts(outputs) if outputs else {}
        self.secret_outputs = _as_texts(secret_outputs) if secret_outputs else {}
        self.whole: dict[str, str | NotKept] = {}
        if whole:
            texts = {name: value for name, value in whole.items() if not isinstance(value, NotKept)}
            self.whole = {**whole, **_as_texts(texts)}

    @classmethod
    def ok(
        cls,
        message: str = "",
        *,
        outputs: Outputs | None = None,
        secret_outputs: Outputs | None = None,
        whole: Mapping[str, str | NotKept] | None = None,
        chosen: Collection[str] = (),
    ) -> Result:
        """Return a successful result."""
        return cls(
            success=True,
            message=message,
            outputs=outputs,
            secret_outputs=secret_outputs,
            whole=whole,
            chosen=chosen,
        )

    @classmethod
    def failed(cls, message: str, *, error: str = "", outputs: Outputs | None = None) -> Result:
        """Return a failed result; `error` defaults to the message."""
        return cls(success=False, message=message, error=error or message, outputs=outputs)

    @classmethod
    def of_failure(cls, failure: OperationFailed) -> Result:
        """Return the result of an OperationFailed."""
        return cls.failed(failure.message, error=failure.error, outputs=failure.outputs)

    @property
    def kept(self) -> dict[str, str | NotKept]:
        """The values that later steps get, by name."""
        return self.outputs | self.whole | self.secret_outputs

    def __repr__(self) -> str:
        return f"Result({self.success}, {self.message!r}, error={self.error!r}, outputs={self.outputs!r})"


def conclude_wait(
    result: Result, on_timeout: OnTimeout, *, timed_out: bool, last_seen: str = "", done: bool | None = None
) -> Result:
    """Return the result of an operation that waited, with the output `done`.

    With `on_timeout` "ok", a failure for lack of time becomes a success with `done: false`, so that the next step of
    the task can continue the wait. All other failures remain failures.

    Args:
        result: result of the operation, as if `on_timeout` were "fail".
        on_timeout: argument `onTimeout` of the operation, of the type `OnTimeout`.
        timed_out: the time was over. False for a permanent failure, if nothing could be read at all, and if the
            extension was stopped.
        last_seen: last state, for the message.
        done: the wait has ended; default: `result.success`. An operation that checks a result after its wait sets it.
    """
    done = result.success if done is None else done
    if timed_out and not done and not result.success and on_timeout == "ok":
        last = f"; last seen: {last_seen}" if last_seen else ""
        message, success, error = f"Not done yet: {result.message}{last}", True, ""
    else:
        message, success, error = result.message, result.success, result.error
    return Result(
        success=success,
        message=message,
        error=error,
        outputs=result.outputs | {"done": done},
        secret_outputs=result.secret_outputs,
        whole=result.whole,
        chosen=result.chosen,
    )


def _as_texts(outputs: Outputs) -> dict[str, str]:
    """Return outputs as texts: numbers and booleans as JSON. Raises TypeError for another type."""
    texts = {}
    for name, value in outputs.items():
        if not isinstance(value, (str, int)):
            raise TypeError(f"output {name!r} must be a string, an integer or a boolean, not {type(value).__name__}")
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts
