"""Session of the gevals extension protocol (0.0.1): each request checked and prepared, without threads and descriptors.

`server` reads requests, runs the prepared calls, and writes responses. Requests are parsed strictly: each error has the
path of its member.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import msgspec

from ext_sdk.context import Agent, Artifacts, Context, Log, Place, Secrets, States
from ext_sdk.core import gevals_spec
from ext_sdk.core.redaction.secret_names import secret_variables
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.duration import Duration
from ext_sdk.polling import SYSTEM_CLOCK, Clock, Deadline
from ext_sdk.references import NAME, REQUEST, RESERVED
from ext_sdk.result import InvalidArgs, OperationFailed, RequirementNotMet, Result

from .config_check import check_artifacts
from .schema import COMMON
from .validation import check_types, decode, not_text, validate, validate_config
from .variables import Variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_sdk.args import Args, Config
    from ext_sdk.context import SendHostCall
    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.core.wire.errors import Id
    from ext_sdk.definition import Definition
    from ext_sdk.operation import Operation
    from ext_sdk.references import Expansion

    from .shared_values import SharedValues

LONE_SURROGATE = "surrogates not allowed"  # the reason of a UnicodeEncodeError
# A host that sends `context.timeout` stops waiting when it is over. The deadline of the operation is earlier by this
# share of it, at most one second, and most of that is left for it to end before the server responds in its place.
ANSWER_SHARE = 0.1
ANSWER_SECONDS = 1.0
# Time to clean up if only the operation's own `timeout` limits a call: after it the server responds, because the host
# of an operation that hangs should not wait forever.
OWN_SECONDS = 60.0
NEVER = float("inf")


class Call:
    """Operation that is ready to run.

    Attributes:
        args: typed and validated; an InvalidArgs if they can't be used: the operation then fails without being called.
        answer_seconds: seconds from now until a response must be sent, even if it has not ended; None: unlimited.
        save_as: the name under which its outputs are kept as variables, or "".
        id: id of the request.
        answer_deadline: latest time of the response, on the monotonic clock; set when the call begins.
        claimed: a thread is about to respond.
    """

    __slots__ = ("answer_deadline", "answer_seconds", "args", "claimed", "context", "id", "operation", "save_as")

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
        self.id: Id = None
        self.answer_deadline = NEVER
        self.claimed = False

    def run(self) -> Result:
        """Call the operation, and return its result. Raises InvalidArgs if its arguments can't be used."""
        operation, args = self.operation, self.args
        if isinstance(args, InvalidArgs):
            if operation.on_invalid is not None:
                operation.on_invalid(args, self.context)
            raise args
        result: object = args.run_operation(lambda: operation.function(args, self.context))
        if not isinstance(result, Result):
            raise TypeError(f"expected a Result, found {type(result).__name__}")
        return result


class Session:
    """State from the first request to the last: configuration, variables, and the state of operations.

    Args:
        config: value of `--config`; None: the defaults, until `initialize` sends another.
        clock: clock of the deadlines.
        shared: values of other extensions; None: references only find those of this session.
    """

    def __init__(
        self,
        extension: Definition,
        redactor: Redactor,
        config: object = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        shared: SharedValues | None = None,
    ) -> None:
        self._clock = clock
        self._extension = extension
        self._secrets = Secrets(redactor)
        self._variables = Variables(shared)
        self._states = States()
        self._operations: dict[str, Operation] = {}  # those that were called
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
            if not isinstance(params, dict):
                raise _unexpected("params", "an object", params)
            version = params.get("protocolVersion")
            if version != gevals_spec.PROTOCOL_VERSION:
                raise RpcError(
                    gevals_spec.INVALID_PARAMS,
                    f"unsupported protocol version: {shown(version)} (expected {gevals_spec.PROTOCOL_VERSION})",
                )
            if params.get("config") is not None:
                self._configure(params["config"], accepted=accepted)
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

    def prepare(
        self,
        params: object,
        send_log: Callable[[str, str, Mapping[str, object]], None],
        *,
        references: bool = True,
        call_host: SendHostCall | None = None,
    ) -> Call:
        """Check a request to execute, and return its call (gevals 0.0.1, "Execute").

        Args:
            send_log: sends level, message and data of a log message.
            references: False if it is known that no text in the request has a reference `${NAME.key}`.
            call_host: calls functions of the host; None if it has none.

        Raises:
            RpcError: METHOD_NOT_FOUND for an unknown operation; INVALID_PARAMS for params of another form and for
                arguments that the schema of the operation refuses, while other errors in arguments are a failure of the
                call (see `errors`); INVALID_REQUEST after an `initialize` that was refused: without its configuration,
                secrets would be shown.
        """
        if self._refused:
            text = f"initialize was refused ({self._refused}); send a corrected one first"
            raise RpcError(gevals_spec.INVALID_REQUEST, text)
        if not isinstance(params, dict):
            raise _unexpected("params", "an object", params)
        name = params.get("operation")
        operation = self._operations.get(name) if isinstance(name, str) else None
        if operation is None:
            operation = self._find_operation(name)
        sent = params.get("context")
        if not isinstance(sent, dict):
            raise _unexpected("context", "an object", sent)
        workdir, phase, timeout = _read_task(sent)
        given, save_as, scope, verbatim = _read_common(operation, params.get("args"))
        place = Place.of(workdir, scope)
        args = self._read_args(operation, given, place, save_as, references=references and not verbatim)
        env, agent = _read_environment(sent)
        if env:
            for variable, value in secret_variables(env).items():
                self._secrets.add(variable, value)
        deadline, answer_seconds = self._deadline(phase, timeout, getattr(args, "timeout", None))
        context = Context(
            workdir=workdir,
            scope=scope,
            place=place,
            phase=phase,
            env=env,
            agent=agent,
            deadline=deadline,
            log=Log(send_log),
            config=self._config,
            secrets=self._secrets,
            states=self._states,
            artifacts=self._artifacts,
            given=params.get("args"),
            verbatim=verbatim,
            expansion=partial(self._variables.expansion, place),
            call_host=call_host,
        )
        return Call(operation, args, context, answer_seconds, save_as)

    def perform(self, call: Call) -> Result:
        """Run an operation to its end. Errors in arguments or of the machine become a failed result. Thread-safe.

        Raises:
            RpcError: INTERNAL_ERROR for an exception that the operation should not have raised.
        """
        operation = call.operation
        try:
            result = call.run()
        except OperationFailed as failure:
            result = Result.of_failure(failure)
        except (InvalidArgs, RequirementNotMet) as refusal:
            text = f"{operation.name}: {refusal}"
            summary, lines, _ = text.partition("\n")
            result = Result.failed(summary.rstrip(":") if lines else text, error=text)
        except KeyboardInterrupt:  # from a person who calls the operation by hand
            raise
        except BaseException as error:
            if not (isinstance(error, UnicodeEncodeError) and error.reason == LONE_SURROGATE):
                self.give_up(call)
                raise self.fault(operation.name, error) from error
            result = Result.failed(f"{operation.name}: {not_text(error)}")
        for name, value in result.secret_outputs.items():
            self._secrets.add(f"output.{name}", value)
        if not result.success:
            self.give_up(call)
        elif call.save_as:
            try:
                self._variables.keep(
                    call.context.place, call.save_as, result.kept, result.secret_outputs, result.chosen
                )
            except OSError as error:
                call.context.log.warn(f"other extensions can't get the outputs of {call.save_as}: {error}")
        return result

    def give_up(self, call: Call) -> None:
        """Unset the name under which the outputs of a call were to be kept: it failed, or its end is not waited for."""
        name, call.save_as = call.save_as, ""
        if name:
            self._variables.fail(call.context.place, name, call.operation.name)

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
        if not isinstance(config, dict):
            raise _unexpected("config", "an object", config)
        try:
            self._config: Config = validate_config(self._extension.config_type, config)
            if not accepted:  # else the early check passed; a later change of the directory is ignored
                check_artifacts(self._config.artifacts)
        except (InvalidArgs, ValueError) as error:
            raise RpcError(gevals_spec.INVALID_PARAMS, f"config: {error}") from error
        self._artifacts = Artifacts(self._config.artifacts, self._extension.name)

    def _find_operation(self, name: object) -> Operation:
        if not isinstance(name, str):
            raise _unexpected("operation", "the name of an operation", name)
        known = self._extension.operations
        if name not in known:
            raise RpcError(
                gevals_spec.METHOD_NOT_FOUND, f"unknown operation: {name[:LONGEST_NAME]}; {suggest(name, known)}"
            )
        self._operations[name] = operation = known[name]
        return operation

    def _read_args(
        self, operation: Operation, given: dict[str, object], place: Place, save_as: str, *, references: bool
    ) -> Args | InvalidArgs:
        """Return typed arguments with references replaced, or the reason why they can't be used.

        Raises:
            RpcError: INVALID_PARAMS for arguments that the schema of the operation refuses.
        """
        if save_as in RESERVED:
            what = "values of requests" if save_as == REQUEST else "generated values"
            return InvalidArgs("as", f"${{{save_as}}} is for {what}; keep the outputs under another name")
        args: Args | InvalidArgs | None
        try:
            args = None if references else msgspec.convert(given, operation.args_type, dec_hook=decode)
        except (msgspec.ValidationError, UnicodeEncodeError):
            args = None  # the cause is found below
        if args is None:
            expansion = self._variables.expansion(place)
            expanded = expansion.expand(given, marks=operation.marks) if references else given
            try:
                _check_given(operation, given, expansion)
                if expansion.problem:
                    return expansion.problem
                args = validate(operation.args_type, expanded)
            except InvalidArgs as error:
                return error
            except RpcError:
                if save_as:
                    self._variables.fail(place, save_as, operation.name)
                raise
        return timeout_problem(args) or args

    def _deadline(self, phase: str, timeout: float | None, own: object) -> tuple[Deadline, float | None]:
        """Return the deadline of the operation, and the seconds until a response must be sent in any case.

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
        deadline = Deadline(min(limits, default=None), latest=answer_seconds, clock=self._clock)
        return deadline, answer_seconds


def timeout_problem(args: Args) -> InvalidArgs | None:
    """Return the error of arguments whose `timeout` is negative, which no schema refuses; None if it is not."""
    timeout = getattr(args, "timeout", None)
    if isinstance(timeout, Duration) and timeout.nanoseconds < 0:
        return InvalidArgs("timeout", f"expected a duration of 0s or more, found {timeout}")
    return None


def _read_common(operation: Operation, sent: object) -> tuple[dict[str, object], str, str, bool]:
    """Return the operation's own arguments, and the common ones `as`, `scope` and `verbatim`.

    `null` means no arguments.

    Raises:
        RpcError: INVALID_PARAMS for common arguments that their schema refuses.
    """
    if sent is not None and not isinstance(sent, dict):
        raise _invalid(operation, f"args: expected an object, found {shown(sent)}")
    given: dict[str, object] = sent or {}
    common: dict[str, object] = {"as": "", "scope": "", "verbatim": False}
    for name in common.keys() & given.keys() - set(operation.args_type.__struct_encode_fields__):
        value, given = given[name], {other: given[other] for other in given if other != name}
        if name == "verbatim" and not isinstance(value, bool):
            raise _invalid(operation, f"verbatim: expected true or false, found {shown(value)}")
        if name != "verbatim" and not (isinstance(value, str) and re.fullmatch(f"{NAME}*", value)):
            raise _invalid(operation, f"{name}: expected a name of letters, digits, - and _, found {shown(value)}")
        common[name] = value
    return given, str(common["as"]), str(common["scope"]), common["verbatim"] is True


def _check_given(operation: Operation, given: dict[str, object], expansion: Expansion) -> None:
    """Check arguments as the JSON Schema of the operation does. Values of computed ones are checked in their place.

    Args:
        expansion: has replaced the references of the arguments.

    Raises:
        InvalidArgs: the value of a computed argument has another type, which the schema can't refuse, or no value.
        RpcError: INVALID_PARAMS for arguments that the schema refuses.
    """
    checked: object = given
    if expansion.computed:
        if expansion.problem:
            raise expansion.problem
        checked = expansion.expand(given, marks=operation.marks, computed_only=True)
    try:
        check_types(operation.args_type, checked, extra=tuple(COMMON))
    except InvalidArgs as error:
        if error.field in expansion.computed:
            text, filled = map(shown, expansion.computed[error.field])
            raise InvalidArgs(error.field, f"{error.message}; the value of {text} is {filled}") from error
        raise _invalid(operation, str(error)) from error


def _invalid(operation: Operation, text: str) -> RpcError:
    return RpcError(gevals_spec.INVALID_PARAMS, f"{operation.name}: {text}")


def _unexpected(path: str, expected: str, value: object) -> RpcError:
    return RpcError(gevals_spec.INVALID_PARAMS, f"{path}: expected {expected}, found {shown(value)}")


def shown(value: object) -> str:
    """Return a received value as short JSON, for errors."""
    text = dumps(value)
    return "nothing" if value is None else text if len(text) <= 60 else f"{text[:60]}…"


def _is_for_system(value: object) -> TypeGuard[str]:
    """Return True for a text that can be a path or a variable of this system: no NUL, no lone surrogate."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _read_task(sent: Mapping[str, object]) -> tuple[Path, str, float | None]:
    """Return workdir, phase and timeout (seconds) of the context object. Raises RpcError, INVALID_PARAMS.

    The workdir need not exist. mcpchecker sends an empty phase, like a missing one.
    """
    workdir, phase, timeout = sent.get("workdir"), sent.get("phase"), sent.get("timeout")
    if not workdir or not _is_for_system(workdir):
        raise _unexpected("context.workdir", "a directory", workdir)
    path = Path(os.path.abspath(workdir))  # noqa: PTH100  (without reading the disk)
    if phase not in (None, "", *gevals_spec.PHASES):
        raise _unexpected("context.phase", f"one of {', '.join(gevals_spec.PHASES)}", phase)
    if timeout is None or timeout == "":
        return path, str(phase or ""), None
    try:
        seconds = Duration.parse(timeout).seconds if isinstance(timeout, str) else 0.0
    except ValueError as error:
        raise RpcError(gevals_spec.INVALID_PARAMS, f"context.timeout: {error}") from error
    if seconds <= 0:
        raise _unexpected("context.timeout", 'a duration such as "30s"', timeout)
    return path, str(phase or ""), seconds


def _read_environment(sent: Mapping[str, object]) -> tuple[dict[str, str], Agent | None]:
    """Return the variables of the task, and the agent if there is one. Raises RpcError, INVALID_PARAMS."""
    env, agent = sent.get("env"), sent.get("agent")
    variables: dict[str, str] = {}
    if env is not None:
        if not isinstance(env, dict):
            raise _unexpected("context.env", "an object", env)
        for name, text in env.items():
            if not name or "=" in name or not _is_for_system(name):
                raise _unexpected("context.env", "names of variables", name)
            if not _is_for_system(text):
                raise _unexpected(f"context.env.{name}", "a string", text)
            variables[name] = text
    if agent is None:
        return variables, None
    if not isinstance(agent, dict):
        raise _unexpected("context.agent", "an object", agent)
    for name in ("prompt", "output"):
        if name in agent and not isinstance(agent[name], str):
            raise _unexpected(f"context.agent.{name}", "a string", agent[name])
    return variables, Agent(agent.get("prompt"), agent.get("output"))
