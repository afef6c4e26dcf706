"""Session of the gevals extension protocol (0.0.1): each request checked and prepared, without threads and descriptors.

`server` reads requests, runs the prepared calls, and writes responses.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from ext_sdk.context import Artifacts, Context, Log, Place, Secrets, States
from ext_sdk.core import gevals_spec
from ext_sdk.core.redaction.secret_names import secret_variables
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.json_codec import DEPTH_LIMIT, is_too_deep
from ext_sdk.deadline import Deadline
from ext_sdk.duration import Duration
from ext_sdk.errors import InvalidArgs, OperationFailed, RequirementNotMet
from ext_sdk.result import Result

from .config_check import check_artifacts
from .params import parse_agent, parse_env, parse_object, parse_phase, parse_timeout, parse_workdir, shown
from .schema import COMMON
from .validation import check_types, has_field, not_text, validate
from .variables import NAME, Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ext_sdk.args import Args, Config
    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.definition import Definition
    from ext_sdk.operation import Operation

LONE_SURROGATE = "surrogates not allowed"  # the reason of a UnicodeEncodeError
# A host that sends `context.timeout` stops waiting when it is over. The deadline of the operation is earlier by this
# share of it, at most one second, and most of that is left for it to end before the server responds in its place.
ANSWER_SHARE = 0.1
ANSWER_SECONDS = 1.0
# Time to clean up if only the operation's own `timeout` limits a call: after it the server responds, because the host
# of an operation that hangs should not wait forever.
OWN_SECONDS = 60.0


class Call:
    """Operation that is ready to run.

    Attributes:
        operation: the operation.
        args: typed and validated; an InvalidArgs if they can't be used: the operation then fails without being called.
        context: context of the call.
        answer_seconds: time from now until a response must be sent, whatever the operation does; None: no limit.
        save_as: the name under which its outputs are kept as variables, or "".
        place: workdir and scope of variables and state.
    """

    __slots__ = ("answer_seconds", "args", "context", "operation", "place", "save_as")

    def __init__(
        self,
        operation: Operation,
        args: Args | InvalidArgs,
        context: Context,
        answer_seconds: float | None,
        save_as: str,
    ) -> None:
        self.operation = operation
        self.args = args
        self.context = context
        self.answer_seconds = answer_seconds
        self.save_as = save_as
        self.place = context.place


class Session:
    """State from the first request to the last: configuration, variables, and the state of operations.

    Args:
        config: value of `--config`; None: the defaults, until `initialize` sends another.
    """

    def __init__(self, extension: Definition, redactor: Redactor, config: object = None) -> None:
        self._extension = extension
        self._secrets = Secrets(redactor)
        self._variables = Variables()
        self._states = States()
        self._initialized = False
        self._refused = ""  # reason for which the last initialize was refused
        self._configure({} if config is None else config)

    def initialize(self, params: object, *, accepted: bool = False) -> None:
        """Handle the first request (gevals 0.0.1, "Initialize").

        Args:
            accepted: the manifest was sent after an early check found them valid; files are not checked again.

        Raises:
            RpcError: INVALID_REQUEST the second time; INVALID_PARAMS for another version or an invalid configuration.
        """
        if self._initialized:
            raise RpcError(gevals_spec.INVALID_REQUEST, "initialize was sent already; send it once, at the start")
        try:
            _refuse_depth(params)
            members = parse_object(params, "params")
            version = members.get("protocolVersion")
            if version != gevals_spec.PROTOCOL_VERSION:
                raise RpcError(
                    gevals_spec.INVALID_PARAMS,
                    f"unsupported protocol version: {shown(version)} (expected {gevals_spec.PROTOCOL_VERSION})",
                )
            if members.get("config") is not None:
                self._configure(members["config"], accepted=accepted)
        except RpcError as error:
            self._refused = error.message
            raise
        self._refused = ""
        self._initialized = True

    def begin_shutdown(self) -> list[Callable[[], None]]:
        """Return the functions that close the state of operations; running operations can create no more."""
        return [state.close for state in self._states.close()]

    def artifact(self, name: str) -> Path:
        """Create an artifact; see Context.artifact."""
        return self._artifacts.new(name)

    def prepare(self, params: object, send_log: Callable[[str, str, Mapping[str, object]], None]) -> Call:
        """Check a request to execute, and return its call (gevals 0.0.1, "Execute").

        Raises:
            RpcError: METHOD_NOT_FOUND for an unknown operation; INVALID_PARAMS for params of another form and for
                arguments
                that the schema of the operation refuses, while other errors in arguments are a failure of the call (see
                `errors`); INVALID_REQUEST after an `initialize` that was refused: without its configuration, secrets
                would be
                shown.
        """
        if self._refused:
            text = f"initialize was refused ({self._refused}); send a corrected one first"
            raise RpcError(gevals_spec.INVALID_REQUEST, text)
        _refuse_depth(params)
        members = parse_object(params, "params")
        operation = self._operation(members.get("operation"))
        sent = parse_object(members.get("context"), "context")
        workdir = parse_workdir(sent.get("workdir"))
        phase = parse_phase(sent.get("phase"))
        timeout = parse_timeout(sent.get("timeout"))
        args, save_as, scope = self._read_args(operation, members.get("args"), workdir)
        env = parse_env(sent.get("env"))
        for name, value in secret_variables(env).items():
            self._secrets.add(name, value)
        deadline, answer_seconds = self._deadline(phase, timeout, getattr(args, "timeout", None))
        context = Context(
            workdir=workdir,
            scope=scope,
            phase=phase,
            env=env,
            agent=parse_agent(sent.get("agent")),
            deadline=deadline,
            log=Log(send_log),
            config=self._config,
            secrets=self._secrets,
            states=self._states,
            artifacts=self._artifacts,
            given=parse_object(members.get("args") or {}, "args"),
        )
        return Call(operation, args, context, answer_seconds, save_as)

    def perform(self, call: Call) -> Result:
        """Run an operation to its end. Thread-safe.

        Raises:
            RpcError: INTERNAL_ERROR for an exception that the operation should not have raised.
        """
        try:
            result = _outcome(call)
        except KeyboardInterrupt:  # from a person who calls the operation by hand
            raise
        except BaseException as error:
            self.give_up(call)
            raise self.fault(call.operation.name, error) from error
        if not result.success:
            self.give_up(call)
        elif call.save_as:
            self._variables.keep(call.place, call.save_as, result.kept)
        for name, value in result.secret_outputs.items():
            self._secrets.add(f"output.{name}", value)
        return result

    def give_up(self, call: Call) -> None:
        """Unset the name under which the outputs of a call were to be kept: it failed, or its end is not waited for."""
        name, call.save_as = call.save_as, ""
        if name:
            self._variables.fail(call.place, name, call.operation.name)

    def fault(self, where: str, error: BaseException) -> RpcError:
        """Return the error response for an unexpected exception, and write its traceback to stderr."""
        import traceback

        details = self._secrets.redact("".join(traceback.format_exception(error)))
        with suppress(OSError):  # stderr was closed
            os.write(2, details.encode("utf-8", "backslashreplace"))
        summary = "".join(traceback.format_exception_only(error)).strip()
        text = f"{where}: unexpected {summary}; this is a fault of the extension, its stderr has the details"
        return RpcError(gevals_spec.INTERNAL_ERROR, text)

    def _configure(self, config: object, *, accepted: bool = False) -> None:
        try:
            self._config: Config = validate(self._extension.config_type, parse_object(config, "config"))
            if self._config.max_operation_time.nanoseconds <= 0:
                raise InvalidArgs("maxOperationTime", "expected a duration of more than 0s")
            if not accepted:  # else the early check passed; a later change of the directory is ignored
                check_artifacts(self._config.artifacts)
        except (InvalidArgs, ValueError) as error:
            raise RpcError(gevals_spec.INVALID_PARAMS, f"config: {error}") from error
        self._artifacts = Artifacts(self._config.artifacts, self._extension.name)

    def _operation(self, name: object) -> Operation:
        if not isinstance(name, str):
            raise RpcError(
                gevals_spec.INVALID_PARAMS, f"operation: expected the name of an operation, found {shown(name)}"
            )
        known = self._extension.operations
        if name not in known:
            raise RpcError(
                gevals_spec.METHOD_NOT_FOUND, f"unknown operation: {name[:LONGEST_NAME]}; {suggest(name, known)}"
            )
        return known[name]

    def _read_args(self, operation: Operation, sent: object, workdir: Path) -> tuple[Args | InvalidArgs, str, str]:
        """Return the arguments, or the reason why they can't be used, and the common ones `as` and `scope`.

        `null` means no arguments.

        Raises:
            RpcError: INVALID_PARAMS for arguments that the schema of the operation refuses.
        """
        if sent is not None and not isinstance(sent, dict):
            raise _invalid(operation, f"args: expected an object, found {shown(sent)}")
        given = dict(sent or {})
        common = {name: given.pop(name, "") for name in COMMON if not has_field(operation.args_type, name)}
        for name, value in common.items():
            if not (isinstance(value, str) and re.fullmatch(f"{NAME}*", value)):
                raise _invalid(operation, f"{name}: expected a name of letters, digits, - and _, found {shown(value)}")
        save_as, scope = str(common.get("as", "")), str(common.get("scope", ""))
        place = Place.of(workdir, scope)
        try:
            check_types(operation.args_type, given, extra=tuple(COMMON))
        except InvalidArgs as error:
            if save_as:
                self._variables.fail(place, save_as, operation.name)
            raise _invalid(operation, str(error)) from error
        return self._typed(operation, given, place), save_as, scope

    def _typed(self, operation: Operation, given: dict[str, object], place: Place) -> Args | InvalidArgs:
        """Return typed arguments with references replaced, or the reason why that is not possible."""
        try:
            args = validate(operation.args_type, self._variables.expand(place, given, operation.verbatim))
        except InvalidArgs as error:
            return error
        own = getattr(args, "timeout", None)
        if isinstance(own, Duration) and own.nanoseconds < 0:
            return InvalidArgs("timeout", f"expected a duration of 0s or more, found {own}")
        return args

    def _deadline(self, phase: str, timeout: float | None, own: object) -> tuple[Deadline, float | None]:
        """Return the deadline of the operation, and the seconds until a response must be sent whatever it does.

        The deadline is the earliest of the operation's own `timeout`, the host's, and, for a host that sends no phase,
        `maxOperationTime`: such a host stops waiting after 30 s without output.
        """
        limits: list[float] = []
        answers: list[float] = []
        if timeout is not None:
            spare = min(ANSWER_SHARE * timeout, ANSWER_SECONDS)
            limits.append(timeout - spare)
            answers.append(timeout - spare / 10)
        if not phase:
            most = self._config.max_operation_time.seconds
            limits.append(most)
            answers.append(most + ANSWER_SECONDS)
        if isinstance(own, Duration):
            limits.append(own.seconds)
            answers.append(own.seconds + OWN_SECONDS)
        answer_seconds = min(answers, default=None)
        return Deadline(min(limits, default=None), latest=answer_seconds), answer_seconds


def _refuse_depth(params: object) -> None:
    if is_too_deep(params):
        text = f"params: the values are nested too deeply, more than {DEPTH_LIMIT} levels"
        raise RpcError(gevals_spec.INVALID_PARAMS, text)


def _invalid(operation: Operation, text: str) -> RpcError:
    return RpcError(gevals_spec.INVALID_PARAMS, f"{operation.name}: {text}")


def _outcome(call: Call) -> Result:
    """Run the operation. Errors in arguments or of the machine become a failed result."""
    try:
        if isinstance(call.args, InvalidArgs):
            if call.operation.on_invalid is not None:
                call.operation.on_invalid(call.args, call.context)
            raise call.args
        result: object = call.operation(call.args, call.context)
    except OperationFailed as failure:
        return Result.of_failure(failure)
    except (InvalidArgs, RequirementNotMet) as refusal:
        return Result.failed(f"{call.operation.name}: {refusal}")
    except UnicodeEncodeError as error:
        if error.reason != LONE_SURROGATE:
            raise
        return Result.failed(f"{call.operation.name}: {not_text(error)}")
    if not isinstance(result, Result):
        raise TypeError(f"expected a Result, found {type(result).__name__}")
    return result
