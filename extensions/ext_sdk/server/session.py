"""Spec 0 as one extension speaks it: what each request means, without threads and descriptors.

`Session` checks and prepares; `server` reads, runs what was prepared, and writes.
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

# A host that gives a call `context.timeout` stops waiting at its end: the operation gets this share less, at
# most one second, and has most of that to come to its end before it is answered for.
LONE_SURROGATE = "surrogates not allowed"  # the reason of a UnicodeEncodeError
ANSWER_SHARE = 0.1
ANSWER_SECONDS = 1.0
# Where nobody but the operation's own `timeout` bounds a call, the operation has so long beyond it to clean up before
# it is answered for: one that hangs is a fault, and its host should not wait for ever.
OWN_SECONDS = 60.0


class Call:
    """An operation that is ready to run.

    Attributes:
        operation: which.
        args: typed and validated; or why they can't be used, and the operation fails without being called.
        context: its circumstances.
        latest: seconds from now at which an answer must be out, whatever the operation does; None: no limit.
        keep_as: the name under which its outputs are kept as variables, or "".
        place: whose variables and state count.
    """

    __slots__ = ("args", "context", "keep_as", "latest", "operation", "place")

    def __init__(
        self, operation: Operation, args: Args | InvalidArgs, context: Context, latest: float | None, keep_as: str
    ) -> None:
        self.operation = operation
        self.args = args
        self.context = context
        self.latest = latest
        self.keep_as = keep_as
        self.place = context.place


class Session:
    """What lasts from the first request to the last: configuration, variables, the state of operations.

    Args:
        extension: whose operations these are.
        redactor: what must not be seen.
        config: as given by `--config`; None: the defaults, until `initialize` says otherwise.
    """

    def __init__(self, extension: Definition, redactor: Redactor, config: object = None) -> None:
        self._extension = extension
        self._secrets = Secrets(redactor)
        self._variables = Variables()
        self._states = States()
        self._initialized = False
        self._refused = ""  # why the last initialize was refused
        self._configure({} if config is None else config)

    def initialize(self, params: object, *, accepted: bool = False) -> None:
        """The first request (spec 0, "Initialize").

        Args:
            params: as the host sent them.
            accepted: the manifest is out already, since an early check found them valid; files are not checked again.

        Raises:
            RpcError: INVALID_REQUEST the second time, INVALID_PARAMS for another version or a configuration
            that does not fit.
        """
        if self._initialized:
            raise RpcError(gevals_spec.INVALID_REQUEST, "initialize was sent before; it opens a session and comes once")
        try:
            self._initialize(params, accepted=accepted)
        except RpcError as error:
            self._refused = error.message
            raise
        self._refused = ""
        self._initialized = True

    def _initialize(self, params: object, *, accepted: bool) -> None:
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

    def begin_shutdown(self) -> list[Callable[[], None]]:
        """What has to be closed now; operations that still run make nothing more of that kind."""
        return [state.close for state in self._states.close()]

    def artifact(self, name: str) -> Path:
        """See Context.artifact."""
        return self._artifacts.new(name)

    def prepare(self, params: object, send_log: Callable[[str, str, Mapping[str, object]], None]) -> Call:
        """Check a request to execute and make a call of it (spec 0, "Execute").

        Raises:
            RpcError: METHOD_NOT_FOUND for an unknown operation, INVALID_PARAMS for params of another form and for
            arguments that the schema of the operation refuses. What else is wrong with arguments is a failure of the
            call (see `errors`). INVALID_REQUEST after an `initialize` that was refused: without its configuration,
            secrets would be shown, for one.
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
        args, keep_as, scope = self._read_args(operation, members.get("args"), workdir)
        env = parse_env(sent.get("env"))
        for name, value in secret_variables(env).items():
            self._secrets.add(name, value)
        deadline, latest = self._deadline(phase, timeout, getattr(args, "timeout", None))
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
        return Call(operation, args, context, latest, keep_as)

    def perform(self, call: Call) -> Result:
        """Run an operation to its end; from any thread.

        Raises:
            RpcError: INTERNAL_ERROR for an exception that the operation should not have raised.
        """
        try:
            result = _outcome(call)
        except KeyboardInterrupt:  # of the person who tries the operation by hand
            raise
        except BaseException as error:
            self.give_up(call)
            raise self.fault(call.operation.name, error) from error
        if not result.success:
            self.give_up(call)
        elif call.keep_as:
            self._variables.keep(call.place, call.keep_as, result.kept)
        for name, value in result.secret_outputs.items():
            self._secrets.add(f"output.{name}", value)
        return result

    def give_up(self, call: Call) -> None:
        """Unset the name under which the outputs of a call were to be kept, for it has none, or is not waited for."""
        name, call.keep_as = call.keep_as, ""
        if name:
            self._variables.fail(call.place, name, call.operation.name)

    def fault(self, where: str, error: BaseException) -> RpcError:
        """Return the answer where something went wrong that nobody foresaw; where that was goes to stderr."""
        import traceback

        details = self._secrets.redact("".join(traceback.format_exception(error)))
        with suppress(OSError):  # nobody reads stderr any more
            os.write(2, details.encode("utf-8", "backslashreplace"))
        told = "".join(traceback.format_exception_only(error)).strip()
        text = f"{where}: unexpected {told}; this is a fault of the extension, its stderr has the details"
        return RpcError(gevals_spec.INTERNAL_ERROR, text)

    def _configure(self, config: object, *, accepted: bool = False) -> None:
        try:
            self._config: Config = validate(self._extension.config_type, parse_object(config, "config"))
            if self._config.max_operation_time.nanoseconds <= 0:
                raise InvalidArgs("maxOperationTime", "expected a duration of more than 0s")
            if not accepted:  # else the check was before the manifest, and the directory may have changed since
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
        """Return the arguments, or why they can't be used, with the common ones `as` and `scope`. null: no arguments.

        Raises:
            RpcError: INVALID_PARAMS for what the schema of the operation refuses.
        """
        if sent is not None and not isinstance(sent, dict):
            raise _invalid(operation, f"args: expected an object, found {shown(sent)}")
        given = dict(sent or {})
        common = {name: given.pop(name, "") for name in COMMON if not has_field(operation.args_type, name)}
        for name, value in common.items():
            if not (isinstance(value, str) and re.fullmatch(f"{NAME}*", value)):
                raise _invalid(operation, f"{name}: expected a name of letters, digits, - and _, found {shown(value)}")
        keep_as, scope = str(common.get("as", "")), str(common.get("scope", ""))
        place = Place.of(workdir, scope)
        try:
            check_types(operation.args_type, given, extra=tuple(COMMON))
        except InvalidArgs as error:
            if keep_as:
                self._variables.fail(place, keep_as, operation.name)
            raise _invalid(operation, str(error)) from error
        return self._typed(operation, given, place), keep_as, scope

    def _typed(self, operation: Operation, given: dict[str, object], place: Place) -> Args | InvalidArgs:
        """Return typed arguments with references replaced, or why that is not possible."""
        try:
            args = validate(operation.args_type, self._variables.expand(place, given, operation.verbatim))
        except InvalidArgs as error:
            return error
        own = getattr(args, "timeout", None)
        if isinstance(own, Duration) and own.nanoseconds < 0:
            return InvalidArgs("timeout", f"expected a duration of 0s or more, found {own}")
        return args

    def _deadline(self, phase: str, timeout: float | None, own: object) -> tuple[Deadline, float | None]:
        """When the operation should have answered, and when an answer must be out whatever it does.

        The least of the operation's own `timeout`, the host's, and, for a host that says no phase,
        `maxOperationTime`: that host gives up after 30 s without a word.
        """
        limits: list[float] = []
        latest: list[float] = []
        if timeout is not None:
            spare = min(ANSWER_SHARE * timeout, ANSWER_SECONDS)
            limits.append(timeout - spare)
            latest.append(timeout - spare / 10)
        if not phase:
            most = self._config.max_operation_time.seconds
            limits.append(most)
            latest.append(most + ANSWER_SECONDS)
        if isinstance(own, Duration):
            limits.append(own.seconds)
            latest.append(own.seconds + OWN_SECONDS)
        last = min(latest, default=None)
        return Deadline(min(limits, default=None), latest=last), last


def _refuse_depth(params: object) -> None:
    if is_too_deep(params):
        text = f"params: the values are nested too deeply, more than {DEPTH_LIMIT} levels"
        raise RpcError(gevals_spec.INVALID_PARAMS, text)


def _invalid(operation: Operation, text: str) -> RpcError:
    return RpcError(gevals_spec.INVALID_PARAMS, f"{operation.name}: {text}")


def _outcome(call: Call) -> Result:
    """Run the operation. What it found wrong with arguments or the machine is a failed result, not an error."""
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
