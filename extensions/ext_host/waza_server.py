"""waza's JSON-RPC server (docs/JSONRPC.md of waza): evals and tasks for editors, over stdio or TCP.

The main thread waits for signals and connections. Each client has a thread, which reads and answers its requests in
order; each run has one, which sends the notifications. A run's first notification follows the response that names it,
and nothing follows its `eval.complete`.
"""

from __future__ import annotations

import errno
import math
import os
import re
import select
import signal
import socket
import sys
import threading
import time
import uuid
from collections import OrderedDict
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ext_sdk.core.stdio import CHUNK_BYTES, Stdio
from ext_sdk.core.text import cut, suggest
from ext_sdk.core.wire.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    MessageError,
    RpcError,
)
from ext_sdk.core.wire.frames import Frame, Overlong
from ext_sdk.core.wire.framing import LineDecoder
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Notification, Request, Response, encode, parse

from .commands import excerpt
from .files import HostError
from .waza_evals import EvalNotFound, Executors, find_evals, names_of, open_eval, problem_text, texts_of
from .waza_evals import Request as RunRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ext_sdk.core.wire.errors import Id
    from ext_sdk.core.wire.jsonrpc import Message

    from .runner import Event
    from .waza_evals import Eval, Fields, Outcome, Run

NOT_FOUND, VALIDATION_FAILED, RUN_FAILED = -32000, -32001, -32002
MESSAGES = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
    NOT_FOUND: "Eval not found",
    VALIDATION_FAILED: "Validation failed",
    RUN_FAILED: "Run failed",
}
LONGEST_LINE = 4 * 1024 * 1024  # bytes of a request
LONGEST_TEXT = 100_000  # characters of one message or reason
MOST_RUNS = 64  # at the same time
KEPT_RUNS = 200  # whose results run.status returns
MOST_CLIENTS = 64  # at the same time
PIPE_BYTES = 4096  # a pipe that polls as writable accepts so many without blocking
SEND_SECONDS = 60.0  # until a client that does not read is given up
HURRY_SECONDS = 2.0  # the same while the server ends
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_HTTP = re.compile(rb"[A-Z]+ \S+ HTTP/\d")


def refusal(code: int, **data: object) -> RpcError:
    """Return the error of a code, with its message."""
    return RpcError(code, MESSAGES[code], data)


def invalid(*errors: str) -> RpcError:
    """Return the error for parameters that are not valid."""
    return refusal(INVALID_PARAMS, errors=list(errors))


# --- Parameters ------------------------------------------------------------------------------------------------------

# The names of the specification, and those of the servers that differ from it.
NAMES = {
    "directory": ("directory", "dir"),
    "taskId": ("taskId", "task_id"),
    "runId": ("runId", "run_id"),
    "context_dir": ("context_dir", "contextDir"),
}


class Params:
    """Parameters of a request, by the names of the specification. Null counts as missing; others are ignored.

    Raises:
        RpcError: they are not an object, or two names of one parameter have different values.
    """

    def __init__(self, value: object) -> None:
        if value is not None and not isinstance(value, dict):
            raise invalid("params: expected an object with named parameters, found an array")
        self._given: dict[str, object] = {}
        for name, member in (value or {}).items():
            known = next((known for known, names in NAMES.items() if name in names), name)
            if member is None:
                continue
            if self._given.setdefault(known, member) != member:
                names = " and ".join(NAMES[known])
                raise invalid(f"{known}: {names} are names of one parameter, and have different values")

    def text(self, name: str) -> str:
        """Return a required text. Raises RpcError."""
        if name not in self._given:
            others = self.unknown([name]) if len(self._given) == 1 else []
            raise invalid("; ".join([f"missing required parameter: {name}", *others]))
        return self.optional_text(name)

    def unknown(self, known: Sequence[str]) -> list[str]:
        """Return a text for each parameter with another name than the known ones."""
        others = [name for name in self._given if name not in known]
        return [f"unknown parameter {cut(name, 80)!r}; {suggest(name, known)}" for name in others]

    def optional_text(self, name: str) -> str:
        """Return a text, or "" if it is missing. Raises RpcError."""
        value = self._given.get(name)
        if value is not None and (not isinstance(value, str) or not value):
            raise invalid(f"{name}: expected a text that is not empty, found {cut(repr(value), 80)}")
        return value or ""

    def flag(self, name: str) -> bool:
        """Return a flag; False if it is missing. Raises RpcError."""
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise invalid(f"{name}: expected true or false, found {cut(repr(value), 80)}")
        return value


# --- Output ----------------------------------------------------------------------------------------------------------


class Wakeup:
    """Pipe that makes a poll loop return.

    Attributes:
        descriptor: readable after `wake`, and after a signal if `writer` is the wakeup descriptor of signals.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.descriptor, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        self._lock = threading.Lock()
        stack.callback(self._close)

    def wake(self) -> None:
        """Make the loop return. Thread-safe."""
        with self._lock, suppress(BlockingIOError):  # the pipe is full: the loop will return anyway
            if self.writer >= 0:
                os.write(self.writer, b"\0")

    def _close(self) -> None:
        with self._lock:
            os.close(self.descriptor)
            os.close(self.writer)
            self.writer = -1


class Channel:
    """Output to one client, for all threads: each message is one line.

    A client that has gone, or reads nothing for `timeout` seconds, gets nothing more.

    Args:
        wakeup: of the loop that notices this.

    Attributes:
        gone: set when nothing can be sent any more.
        timeout: may be changed while a message is sent.
    """

    def __init__(self, descriptor: int, wakeup: Wakeup) -> None:
        self.descriptor = descriptor
        self.timeout = SEND_SECONDS
        self.gone = threading.Event()
        self._wakeup = wakeup
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Send a message, unless the client has gone."""
        data = memoryview(encode(message) + b"\n")
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        with self._lock:
            progress = time.monotonic()
            while data and not self.gone.is_set():
                if poll.poll(500):
                    try:
                        data = data[os.write(self.descriptor, data[:PIPE_BYTES]) :]
                        progress = time.monotonic()
                    except BlockingIOError:
                        continue
                    except OSError:
                        self.close()
                elif time.monotonic() > progress + self.timeout:
                    self.close()

    def close(self) -> None:
        """Send nothing more."""
        self.gone.set()
        self._wakeup.wake()


# --- Runs ------------------------------------------------------------------------------------------------------------


class ServedRun:
    """Run of an eval, and what its client gets to know of it.

    Args:
        make: makes the run; its argument receives the events.
        verbose: also send the steps and the output of the agent.
        ended: called when the last message was sent.

    Attributes:
        status: running, completed, failed or cancelled.
        is_over: its last message was sent.
    """

    def __init__(
        self,
        make: Callable[[Callable[[Event], None]], Run],
        channel: Channel,
        *,
        verbose: bool,
        ended: Callable[[], None],
    ) -> None:
        self.id = str(uuid.uuid4())
        self.status = "running"
        self.run = make(self._on_event)
        self.lock = threading.Lock()  # of the status, and of the order of messages
        self.channel = channel
        self._verbose = verbose
        self._ended = ended
        self._result: Fields | None = None
        self._error: str | None = None
        self.is_over = False
        self._thread = threading.Thread(target=self._work, daemon=True, name=f"run {self.id}")

    def start(self) -> None:
        """Begin the run, after its response was sent."""
        self._thread.start()

    def stop(self) -> bool:
        """Cancel the run if it is running. Return True if it was."""
        with self.lock:
            if self.status != "running":
                return False
            self.status = "cancelled"
        self.run.cancel()
        return True

    def join(self) -> None:
        """Wait for its last message."""
        if self._thread.ident is not None:
            self._thread.join()

    def fields(self) -> Fields:
        """Return the result of run.status."""
        with self.lock:
            return {"runId": self.id, "status": self.status, "result": self._result, "error": self._error}

    def _work(self) -> None:
        try:
            outcomes, problems = self.run.run()
            self._result = result_of(outcomes)
            self._error = "\n".join(problems) or None
        except Exception as error:  # noqa: BLE001  (any fault of a run ends this run, and no other)
            self._error = str(error) if isinstance(error, (HostError, OSError)) else fault(error)
        with self.lock:
            if self.status == "cancelled":
                self._error = "Run cancelled"
            else:
                self.status = "failed" if self._error else "completed"
            what: Fields = {"error": self._error} if self._error else {"summary": summary_of(self._result)}
            self.channel.send(Notification("eval.complete", {"runId": self.id} | what))
            self.is_over = True
        self._ended()

    def _on_event(self, event: Event) -> None:
        with self.lock:
            if not self.is_over:
                for method, fields in messages_of(event, verbose=self._verbose):
                    self.channel.send(Notification(method, {"runId": self.id} | fields))


_PROGRESS = {"run_start", "task_start", "trial_start", "trial_complete", "task_complete", "run_complete"}


def messages_of(event: Event, *, verbose: bool) -> Iterator[tuple[str, Fields]]:
    """Yield the notifications for an event: method and parameters without `runId`."""
    if event.kind in _PROGRESS:
        if event.kind == "task_complete" and event.status != "passed" and event.message:
            yield "eval.log", _log("error", f"{event.task}: {event.message}")
        yield "eval.progress", _progress(event)
        if event.kind == "task_start":
            yield "eval.log", _log("info", f"Running task: {event.task}")
    elif event.kind == "log" and (verbose or event.level != "debug"):
        yield "eval.log", _log(event.level or "info", event.message)
    elif event.kind == "step" and (verbose or event.status != "passed"):
        name = f"{event.step.name}: " if event.step else ""
        level = "info" if event.status == "passed" else "warn"
        yield "eval.log", _log(level, f"{event.task}: {event.phase}: {name}{event.status}: {event.message}")
    elif event.kind == "agent_output" and verbose and event.message.strip():
        yield "eval.log", _log("info", event.message)
    elif event.kind == "phase" and verbose:
        yield "eval.log", _log("debug", f"{event.task}: {event.phase}")


def _progress(event: Event) -> Fields:
    fields: Fields = {"event": event.kind}
    if event.number:
        fields |= {"taskName": event.task, "taskNum": event.number}
    fields["totalTasks"] = event.total
    if event.kind.startswith("trial"):
        fields |= {"trialNum": event.trial, "totalTrials": event.trials}
    if event.status:
        fields |= {"status": event.status, "durationMs": round(event.seconds * 1000)}
    return fields


def _log(level: str, message: str) -> Fields:
    return {"level": level, "message": excerpt(message, LONGEST_TEXT)}


def summary_of(result: Fields | None) -> Fields:
    """Return the members of a result that are the summary."""
    return {name: value for name, value in (result or {}).items() if name != "tasks"}


def result_of(outcomes: Sequence[Outcome]) -> Fields:
    """Return the result of a run. Tasks that ended with an error or were cancelled count as failed."""
    total = len(outcomes)
    passed, skipped = (sum(outcome.status == status for outcome in outcomes) for status in ("passed", "skipped"))
    result: Fields = {
        "total": total,
        "passed": passed,
        "failed": total - passed - skipped,
        "passRate": passed / total if total else 0.0,
    }
    if skipped:
        result["skipped"] = skipped
    return result | {"tasks": [_outcome_fields(outcome, ("id", "trials", "graders")) for outcome in outcomes]}


def _outcome_fields(outcome: Outcome, names: Sequence[str]) -> Fields:
    """Return a task, trial or grader. `names` has the member of its name, and of its parts."""
    fields: Fields = {
        names[0]: int(outcome.name) if names[0] == "trial" else outcome.name,
        "status": outcome.status,
        "durationMs": round(outcome.seconds * 1000),
    }
    if outcome.reason:
        fields["error"] = excerpt(outcome.reason, LONGEST_TEXT)
    if outcome.parts:
        below = ("trial", "graders") if names[0] == "id" else ("name",)
        fields[names[1]] = [_outcome_fields(part, below) for part in outcome.parts]
    return fields


def fault(error: Exception) -> str:
    """Return the text for a defect of this program, with its place."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""
    return f"internal error, please report it with this text: {type(error).__name__}: {error}{place}"


# --- Methods ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """Options of the server.

    Attributes:
        default_executor: of runs whose request names none; "" for that of the eval.
        programs: command lines of extensions by name, in place of the packages of Eval files.
        parallel: tasks of an Eval file with `parallel: true` that run at the same time.
    """

    executors: Executors
    default_executor: str = ""
    programs: Mapping[str, str] = field(default_factory=dict)
    parallel: int = 1


class Service:
    """The methods, and the runs of all clients."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._runs: OrderedDict[str, ServedRun] = OrderedDict()
        self._lock = threading.Lock()
        self._methods: dict[str, Callable[[Params], Fields]] = {
            "eval.list": self._list,
            "eval.get": self._get,
            "eval.validate": self._validate,
            "task.list": self._tasks,
            "task.get": self._task,
            "run.status": lambda params: self._find(params).fields(),
        }

    def perform(self, client: Client, method: str, value: object, respond: Callable[[Fields], None]) -> None:
        """Perform a request, and respond to it. Raises RpcError for the error response."""
        if method == "eval.run":
            self.run(client, Params(value), respond)
        elif method == "run.cancel":
            self.cancel(Params(value), respond)
        elif method in self._methods:
            respond(self._methods[method](Params(value)))
        else:
            known = [*self._methods, "eval.run", "run.cancel"]
            raise refusal(METHOD_NOT_FOUND, method=cut(method, 200), errors=[suggest(method, known)])

    # --- Evals and tasks ---

    def _list(self, params: Params) -> Fields:
        folder = params.text("directory")
        if not _is_folder(folder):
            raise refusal(NOT_FOUND, path=folder, errors=["no such directory"])
        try:
            return {"evals": [{"path": str(path)} | names_of(path) for path in find_evals(Path(folder))]}
        except HostError as error:
            raise invalid(f"directory: {error}") from None

    def _get(self, params: Params) -> Fields:
        path, spec = _opened(params)
        with _validation(path):
            return {
                "path": path,
                "name": spec.name,
                "skill": spec.skill,
                "version": spec.version,
                "config": plain(spec.config()),
                "metrics": plain(spec.metrics()),
            }

    def _validate(self, params: Params) -> Fields:
        path = params.text("path")
        try:
            spec = open_eval(Path(path))
            errors = spec.problems()
            if spec.executor:
                errors += filter(None, [self._options.executors.problem(spec.executor, run=False)])
            if not errors:
                return {"valid": True, "name": spec.name, "skill": spec.skill}
        except EvalNotFound:
            raise refusal(NOT_FOUND, path=path) from None
        except HostError as error:
            errors = texts_of(error, Path(path))
        return {"valid": False, "errors": errors}

    def _tasks(self, params: Params) -> Fields:
        path, spec = _opened(params)
        with _validation(path):
            tasks = spec.tasks()
        return {
            "tasks": [
                {"id": task.id, "name": task.name, "description": task.description, "file": task.file} for task in tasks
            ]
        }

    def _task(self, params: Params) -> Fields:
        wanted = params.text("taskId")
        path, spec = _opened(params)
        with _validation(path):
            tasks = {task.id: task for task in spec.tasks()}
        if wanted not in tasks:
            raise refusal(INVALID_PARAMS, taskId=wanted, errors=[f"no such task; {suggest(wanted, tasks)}"])
        task = tasks[wanted]
        return {
            "id": task.id,
            "name": task.name,
            "description": task.description,
            "prompt": task.prompt,
            "graders": plain(list(task.graders)),
        }

    # --- Runs ---

    def run(self, client: Client, params: Params, respond: Callable[[Fields], None]) -> None:
        """Start a run: eval.run. Raises RpcError."""
        executor, model = params.optional_text("executor"), params.optional_text("model")
        verbose, context = params.flag("verbose"), params.optional_text("context_dir")
        if not model.isprintable():
            raise invalid(f"model: expected a name, found {cut(repr(model), 80)}")
        path, spec = _opened(params)
        if context and not _is_folder(context):
            raise invalid(f"context_dir: expected a folder, found nothing at {context}")
        executors = self._options.executors
        name = executor or self._options.default_executor or spec.executor
        with _validation(path):
            errors = spec.problems()
            errors += filter(None, [executors.problem(name, run=True) if name else ""])
            if errors:
                raise refusal(VALIDATION_FAILED, path=path, errors=errors)
            request = RunRequest(
                executors.agent(name, spec.servers()) if name else None,
                model,
                Path(context).absolute() if context else None,
                self._options.programs,
                self._options.parallel,
            )
            run = ServedRun(
                lambda on_event: spec.run(request, on_event), client.channel, verbose=verbose, ended=client.wake
            )
            if problems := run.run.check():
                texts = [problem_text(problem, Path(path)) for problem in problems]
                raise refusal(VALIDATION_FAILED, path=path, errors=texts)
        with self._lock:
            if sum(each.status == "running" for each in self._runs.values()) >= MOST_RUNS:
                raise refusal(RUN_FAILED, errors=[f"{MOST_RUNS} runs are running already; wait for one, or cancel it"])
            over = [id for id, each in self._runs.items() if each.is_over]
            for id in over[: max(0, len(self._runs) - KEPT_RUNS + 1)]:
                del self._runs[id]
            self._runs[run.id] = run
        client.runs = [*(each for each in client.runs if not each.is_over), run]
        respond({"runId": run.id, "status": run.status})
        for text in params.unknown(("path", "executor", "model", "verbose", "context_dir")):
            client.channel.send(Notification("eval.log", {"runId": run.id} | _log("warn", f"ignored: {text}")))
        run.start()

    def _find(self, params: Params) -> ServedRun:
        id = params.text("runId")
        with self._lock:
            if id not in self._runs:
                raise refusal(INVALID_PARAMS, runId=cut(id, 200), errors=["no such run"])
            return self._runs[id]

    def cancel(self, params: Params, respond: Callable[[Fields], None]) -> None:
        """Cancel a run: run.cancel. Raises RpcError."""
        run = self._find(params)
        with run.lock:  # until the response is sent: `eval.complete` follows it
            if run.status != "running":
                raise refusal(INVALID_PARAMS, runId=run.id, status=run.status, errors=[f"the run is {run.status}"])
            run.status = "cancelled"
            respond({"runId": run.id, "status": run.status})
        run.run.cancel()


def _is_folder(path: str) -> bool:
    """Return True if the path is a folder; False for a text that cannot be a path."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def plain(value: object) -> object:
    """Return a value of YAML as JSON, which does not have .nan and .inf: they become texts."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _opened(params: Params) -> tuple[str, Eval]:
    """Return the path of a request and its eval. Raises RpcError."""
    path = params.text("path")
    with _validation(path):
        spec = open_eval(Path(path))
    return path, spec


@contextmanager
def _validation(path: str) -> Iterator[None]:
    """Turn the errors of an eval into those of the protocol."""
    try:
        yield
    except EvalNotFound:
        raise refusal(NOT_FOUND, path=path) from None
    except HostError as error:
        raise refusal(VALIDATION_FAILED, path=path, errors=texts_of(error, Path(path))) from None


# --- Clients ---------------------------------------------------------------------------------------------------------


class Client:
    """Session with one client: reads its requests until it sends nothing more and its runs are over.

    The runs of a client that reads nothing any more are cancelled. One that has only closed its side, as a shell
    pipeline does, gets the messages of its runs to their end.

    Args:
        source: descriptor to read from.
        target: descriptor to write to.
        connection: the socket; None for standard input and output. On a socket, requests of HTTP are refused, because
            a page in a browser can send them.

    Attributes:
        is_over: the client and its runs have ended.
    """

    def __init__(self, service: Service, source: int, target: int, connection: socket.socket | None = None) -> None:
        self.connection = connection
        self.is_over = False
        self._stack = ExitStack()
        self._wakeup = Wakeup(self._stack)
        self.channel = Channel(target, self._wakeup)
        self.wake = self._wakeup.wake
        self.runs: list[ServedRun] = []
        self._service = service
        self._source = source
        self._decoder = LineDecoder(LONGEST_LINE)
        self._is_overlong = False  # within a line that was refused
        self._is_open = True
        self._is_stopped = False

    def stop(self) -> None:
        """End the session: cancel its runs. Thread-safe."""
        self._is_stopped = True
        self.channel.timeout = HURRY_SECONDS
        self.wake()

    def start(self, ended: Callable[[], None]) -> None:
        """Serve the client in a thread, which waits for the cleanup of its runs; then `ended` is called."""
        threading.Thread(target=self._serve, args=(ended,), daemon=True, name="client").start()

    def _serve(self, ended: Callable[[], None]) -> None:
        with ExitStack() as stack:
            stack.callback(ended)
            stack.callback(setattr, self, "is_over", True)  # noqa: FBT003  (the parameter has no name)
            stack.enter_context(self._stack)
            if self.connection:
                stack.enter_context(self.connection)
            poll = select.poll()
            poll.register(self.channel.descriptor, 0)  # errors are reported without being asked for
            poll.register(self._source, select.POLLIN)
            poll.register(self._wakeup.descriptor, select.POLLIN)
            while self._is_open or not all(run.is_over for run in self.runs):
                if self._is_stopped or self.channel.gone.is_set():
                    break
                for descriptor, _ in poll.poll():
                    if descriptor == self._wakeup.descriptor:
                        os.read(descriptor, 512)
                    elif descriptor != self._source or not self._is_open:
                        self.channel.close()
                    elif not self._read():
                        self._is_open = False
                        poll.unregister(descriptor)
                        poll.register(self.channel.descriptor, 0)
            for run in self.runs:
                run.stop()
            for run in self.runs:
                run.join()

    def _read(self) -> bool:
        """Read and perform the next requests. Return False at the end of the input."""
        try:
            data = os.read(self._source, CHUNK_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if data:
            self._decoder.receive_data(data)
        else:
            self._decoder.receive_eof()
        while (piece := self._decoder.next_event()) and not self.channel.gone.is_set():
            if isinstance(piece, Frame):
                self._receive(piece.payload)
            elif isinstance(piece, Overlong):
                known, self._is_overlong = self._is_overlong, not piece.ends
                if not known:
                    error = f"expected a message of at most {LONGEST_LINE:,} bytes"
                    self._refuse(None, refusal(INVALID_REQUEST, errors=[error]))
            elif not piece.wire.isspace():
                self._receive(piece.wire)  # the last line, without a line feed
        return bool(data)

    def _receive(self, payload: bytes) -> None:
        if self.connection and _HTTP.match(payload):
            self._refuse(None, refusal(INVALID_REQUEST, errors=["expected JSON-RPC, found HTTP; closing"]))
            self.channel.close()
            return
        try:
            message = parse(payload)
        except MessageError as error:
            self._refuse(error.id, refusal(error.code, errors=[str(error)]))
            return
        if isinstance(message, Request):
            id = message.id
            try:
                self._service.perform(
                    self, message.method, message.params, lambda result: self.channel.send(Response(id, result))
                )
            except RpcError as error:
                self._refuse(id, error)
            except Exception as error:  # noqa: BLE001  (a fault in one request must not end the session)
                self._refuse(id, refusal(INTERNAL_ERROR, errors=[fault(error)]))
        elif isinstance(message, Notification) and message.method == "run.cancel":
            with suppress(RpcError):
                self._service.perform(self, message.method, message.params, lambda _: None)

    def _refuse(self, id: Id, error: RpcError) -> None:
        self.channel.send(ErrorResponse(id, error))


# --- Transports ------------------------------------------------------------------------------------------------------


class _Signals:
    """Signals that end the server, as bytes of a pipe."""

    def __init__(self, stack: ExitStack) -> None:
        self.wakeup = Wakeup(stack)
        for number in SIGNALS:
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: None))
        stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(self.wakeup.writer, warn_on_full_buffer=False))
        self.number = 0

    def read(self) -> bool:
        """Read the pipe; return True if a signal was received. A second one ends the process at once."""
        numbers = [number for number in os.read(self.wakeup.descriptor, 512) if number in SIGNALS]
        if numbers and (self.number or len(numbers) > 1):
            os._exit(128 + numbers[0])  # supervisors stop what still runs
        self.number = self.number or sum(numbers)
        return bool(numbers)


def serve_stdio(options: Options) -> int:
    """Serve one client on standard input and output. Return the exit code."""
    stdio = Stdio.claim()
    with ExitStack() as stack:
        signals = _Signals(stack)
        client = Client(Service(options), stdio.input, stdio.output)
        client.start(signals.wakeup.wake)
        while not client.is_over:
            if signals.read():
                client.stop()
    return 128 + signals.number if signals.number else 0


def serve_tcp(options: Options, address: str, *, allow_remote: bool = False) -> int:
    """Serve the clients that connect to an address. Return the exit code.

    Raises:
        HostError: the address is not valid, is not of loopback, or is in use.
    """
    with ExitStack() as stack:
        signals = _Signals(stack)
        service = Service(options)
        clients: list[Client] = []
        poll = select.poll()
        poll.register(signals.wakeup.descriptor, select.POLLIN)
        listeners = {listener.fileno(): listener for listener in listening(stack, address, allow_remote=allow_remote)}
        for descriptor, listener in listeners.items():
            poll.register(descriptor, select.POLLIN)
            host, port = listener.getsockname()[:2]
            sys.stderr.write(f"listening on {f'[{host}]' if ':' in host else host}:{port}\n")
        sys.stderr.flush()
        while not signals.number:
            for descriptor, _ in poll.poll():
                if descriptor == signals.wakeup.descriptor:
                    signals.read()
                elif client := _accept(listeners[descriptor], service, full=len(clients) >= MOST_CLIENTS):
                    clients.append(client)
                    client.start(signals.wakeup.wake)
            clients = [client for client in clients if not client.is_over]
        for client in clients:
            client.stop()
        while not all(client.is_over for client in clients):
            signals.read()
    return 128 + signals.number


def _accept(listener: socket.socket, service: Service, *, full: bool) -> Client | None:
    """Return the client that connects; None if it has gone already, or is refused because there are too many."""
    try:
        connection, _ = listener.accept()
    except OSError:
        return None
    if full:
        error = refusal(INTERNAL_ERROR, errors=[f"{MOST_CLIENTS} clients are connected already"])
        with connection, suppress(OSError):
            connection.sendall(encode(ErrorResponse(None, error)) + b"\n")
        return None
    connection.setblocking(False)  # noqa: FBT003  (the parameter has no name)
    return Client(service, connection.fileno(), connection.fileno(), connection)


def listening(stack: ExitStack, address: str, *, allow_remote: bool) -> list[socket.socket]:
    """Return sockets that listen at HOST:PORT, on all addresses of the host. Raises HostError."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise HostError(f"--tcp: expected HOST:PORT, such as localhost:9000, found {address!r}")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise HostError(f"--tcp {address}: {error.strerror or error}") from None
    names = list(dict.fromkeys((family, str(name[0])) for family, _, _, _, name in found))
    for _, name in names:
        if not allow_remote and not ip_address(name.partition("%")[0]).is_loopback:
            raise HostError(
                f"--tcp {address}: {name} is not an address of loopback: any client runs the commands of evals as this "
                "user, without a password; use localhost, or add --allow-remote"
            )
    listeners: list[socket.socket] = []
    failure: OSError | None = None
    number = int(port)
    for family, name in names:
        listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((name, number))
            listener.listen()
        except OSError as error:
            failure = error
            continue
        number = number or listener.getsockname()[1]
        listeners.append(listener)
    if not listeners or (failure and failure.errno == errno.EADDRINUSE):
        raise HostError(f"--tcp {address}: cannot listen: {failure.strerror if failure else 'no address'}")
    return listeners


# --- Command line ----------------------------------------------------------------------------------------------------


@click.command("serve")
@click.option("--tcp", "address", metavar="HOST:PORT", help="Address to listen on, in place of stdin and stdout.")
@click.option("--allow-remote", is_flag=True, help="Accept an address of --tcp that other machines can reach.")
@click.option(
    "--executor",
    "executors",
    multiple=True,
    metavar="NAME=AGENT",
    help="Agent that runs if a request or an eval has the executor NAME; AGENT as for `ext-host run --agent`.",
)
@click.option(
    "--default-executor",
    metavar="NAME",
    default="",
    help="Executor of requests that name none. Default: the eval's.",
)
@click.option(
    "--extension",
    "extensions",
    multiple=True,
    metavar="NAME=COMMAND",
    help="Program of an extension, in place of its package in Eval files.",
)
@click.option(
    "-p",
    "--parallel",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="Number of tasks of a run that run at the same time, of those with `parallel: true`.",
)
def command(
    address: str | None,
    executors: Sequence[str],
    default_executor: str,
    extensions: Sequence[str],
    parallel: int,
    *,
    allow_remote: bool,
) -> int:
    """Serve evals to an editor: waza's JSON-RPC protocol, one message a line.

    Evals are Eval files of mcpchecker, and waza's own eval.yaml. Executors are mock (repeats the prompt), none (no
    agent) and those that --executor defines. Without one, a run uses the agent of the eval.

    \b
      ext-host serve                                            for an editor that starts it
      ext-host serve --executor copilot-sdk='copilot -p "$1"'   with a program for waza's executor
      ext-host serve --tcp localhost:9000                       for many clients
    """
    values: dict[str, dict[str, str]] = {}
    for option, what, texts in (("--executor", "AGENT", executors), ("--extension", "COMMAND", extensions)):
        values[option] = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if not (name and equals and value):
                raise HostError(f"{option}: expected NAME={what}, found {text!r}")
            values[option][name] = value
    options = Options(Executors(values["--executor"]), default_executor, values["--extension"], parallel)
    if default_executor and (problem := options.executors.problem(default_executor, run=True)):
        raise HostError(f"--default-executor: {problem}")
    if address is None:
        if allow_remote:
            raise HostError("--allow-remote is for --tcp")
        return serve_stdio(options)
    return serve_tcp(options, address, allow_remote=allow_remote)
