"""Server loop: one host on stdin and stdout, calls in a pool of threads, one response for each request."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ext_sdk.core import gevals_spec
from ext_sdk.core.stdio import PeerGone, Stdio
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import Id, MessageError, RpcError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Notification, Request, parse

from .line_limit import ID_LIMIT_BYTES, LineLimiter, id_fits
from .manifest import build_manifest
from .session import NEVER, Session
from .shared_values import SharedValues

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.definition import Definition

    from .session import Call


# The id of the request that a thread prepares or performs. A recorder of HTTP traffic reads the variable of this name.
CALL: ContextVar[Id | None] = ContextVar("jsonrpc_call", default=None)
LONGEST_WAIT_MILLISECONDS = 3_600_000  # poll() accepts at most 24 days; a timeout may be 292 years


class Calls:
    """Calls without a response yet. Thread-safe.

    An operation's thread and the loop that enforces deadlines may both try to respond: the first to claim the call
    does.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: list[Call] = []

    def __bool__(self) -> bool:
        return bool(self._running)

    def begin(self, id: Id, call: Call) -> Call:
        """Add the call of a request, and return it."""
        call.id = id
        if call.answer_seconds is not None:
            call.answer_deadline = time.monotonic() + call.answer_seconds
        with self._changed:
            self._running.append(call)
        return call

    def try_claim(self, call: Call) -> bool:
        """Claim the call; return True for the first caller only."""
        with self._changed:
            first, call.claimed = not call.claimed, True
        return first

    def end(self, call: Call) -> None:
        """Remove a call whose response was written."""
        with self._changed:
            self._running.remove(call)
            self._changed.notify_all()

    def is_open(self, id: Id) -> bool:
        """Return True if a call that no thread has claimed has this id. Types matter: 1, 1.0 and "1" are three ids."""
        return bool(self._running) and any(type(call.id) is type(id) and call.id == id for call in self.unclaimed())

    def unclaimed(self) -> list[Call]:
        """Return the calls that no thread has claimed."""
        with self._changed:
            return [call for call in self._running if not call.claimed]

    def late(self) -> list[Call]:
        """Return the unclaimed calls whose time is over."""
        now = time.monotonic()
        return [call for call in self.unclaimed() if call.answer_deadline <= now] if self._running else []

    def milliseconds_left(self) -> int | None:
        """Return the time until the next call is late, for poll(); None if none will be."""
        if not self._running:
            return None
        deadline = min([call.answer_deadline for call in self.unclaimed()], default=NEVER)
        if deadline == NEVER:
            return None
        return int(min(max(0.0, deadline - time.monotonic()) * 1000 + 1, LONGEST_WAIT_MILLISECONDS))

    def stop(self) -> None:
        """Set the stop signal of all operations."""
        for call in self.unclaimed():
            call.context.deadline.stopped.set()

    def wait_for_none(self, seconds: float) -> None:
        """Wait until every response is written, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, seconds)


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeup:
    """Pipe that wakes the poll loop; it stays open until the process exits.

    Attributes:
        descriptor: readable when the loop has something to do.
    """

    def __init__(self) -> None:
        self.descriptor, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def install_signal_handlers(self, handler: Callable[..., object]) -> None:
        """Write the number of each signal to the pipe; signals interrupt nothing.

        Args:
            handler: called too, in the main thread.
        """
        for number in SIGNALS:
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def wake(self) -> None:
        """Wake the loop. Thread-safe."""
        with suppress(BlockingIOError):  # the pipe is full: the loop will wake anyway
            os.write(self._write, b"\0")

    def drain(self) -> bool:
        """Empty the pipe, and return True if a signal arrived."""
        return any(number in SIGNALS for number in os.read(self.descriptor, 512))


IDLE_SECONDS = 30.0  # until an idle thread ends, so that many calls at once leave no threads behind


class Workers:
    """Thread pool that grows with the number of running tasks.

    Threads are daemons: one that hangs in a system call does not keep the extension running. `concurrent.futures` would
    wait for it.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def run(self, task: Callable[[], None]) -> None:
        """Run a task soon, in a thread. The task must not raise."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._tasks.put(task)
                return
        threading.Thread(target=self._work, args=(task,), daemon=True, name="operation").start()

    def _work(self, task: Callable[[], None]) -> None:
        while True:
            task()
            with self._lock:
                self._idle += 1
            try:
                task = self._tasks.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._idle:
                        self._idle -= 1
                        return
                task = self._tasks.get()  # `run` has counted on this thread meanwhile


COMPARE_AFTER_SECONDS = 1.0  # of the manifest with the classes: the first calls need the processor
CLEANUP_SECONDS = 3.0  # mcpchecker kills the process 5 s after its request to shut down


class InitialIO:
    """I/O already performed before the server started.

    Attributes:
        received: bytes that were read and not yet parsed.
        manifest_sent: the first request in them is an `initialize` whose response was sent.
        eof: the host will send nothing more.
        compare: returns a warning if the manifest that was sent is stale, "" if it is not; None to trust it.
    """

    __slots__ = ("compare", "eof", "manifest_sent", "received")

    def __init__(
        self,
        received: bytes = b"",
        *,
        manifest_sent: bool = False,
        eof: bool = False,
        compare: Callable[[], str] | None = None,
    ) -> None:
        self.received = received
        self.manifest_sent = manifest_sent
        self.eof = eof
        self.compare = compare


class Server:
    """Session with one host.

    Args:
        config: value of `--config`.

    Raises:
        RpcError: INVALID_PARAMS for an invalid configuration.
    """

    def __init__(self, extension: Definition, stdio: Stdio, redactor: Redactor, config: object = None) -> None:
        self._extension = extension
        self._stdio = stdio
        self._shared = SharedValues(extension.name, redactor.redact_text)
        self._session = Session(extension, redactor, config, shared=self._shared)
        self._limiter = LineLimiter(redactor, self._spill_to_file)
        self._decoder = FRAMINGS[gevals_spec.FRAMING].decoder()
        self._workers = Workers()
        self._write_lock = threading.Lock()
        self._calls = Calls()
        self._reading = True
        self._ending = False
        self._peer_gone = False
        self._closed = False
        self._manifest_sent = False
        self._compare: Callable[[], str] | None = None
        self._warnings: list[str] = []  # for the log of the next call
        self._wakeup = Wakeup()

    def run(self, opening: InitialIO) -> int:
        """Serve until the host shuts down or closes its end, or a signal arrives; after this the process must exit.

        Returns:
            The exit code: 0, or 1 if the host closed its end without waiting for responses.
        """
        self._wakeup.install_signal_handlers(_arm_alarm)
        self._manifest_sent, self._compare = opening.manifest_sent, opening.compare
        self._decoder.receive_data(opening.received)
        if opening.eof:
            self._end_of_input()
        try:
            self._serve()
        finally:
            self._close()
            _arm_alarm()  # a thread that an operation left behind may keep the interpreter running
        return int(self._peer_gone)

    # The loop

    def _serve(self) -> None:
        poll = select.poll()
        if self._reading:
            poll.register(self._stdio.input, select.POLLIN)
        poll.register(self._stdio.output, 0)  # POLLERR is always reported, here when the host reads no more
        poll.register(self._wakeup.descriptor, select.POLLIN)
        self._handle_received()
        while not self._ending and (self._reading or self._calls):
            ready = dict(poll.poll(self._calls.milliseconds_left()))
            if self._stdio.output in ready:
                self._peer_gone = True
                return
            if self._wakeup.descriptor in ready and self._wakeup.drain():
                self._ending = True
            if self._stdio.input in ready:
                data = self._stdio.read()
                line = self._decoder.lone(data)
                if line is not None:
                    self._handle(line)
                elif data:
                    self._decoder.receive_data(data)
                    self._handle_received()
                else:
                    self._end_of_input()
                    poll.unregister(self._stdio.input)
                    self._handle_received()
            for call in self._calls.late():  # respond, and stop the operation
                call.context.deadline.stopped.set()
                text = f"the operation did not end within its {call.answer_seconds:g} s; it was stopped"
                error = RpcError(gevals_spec.TIMEOUT, f"{call.operation.name}: {text}")
                self._respond(call, self._limiter.error(call.id, error), given_up=True)

    def _end_of_input(self) -> None:
        """Stop reading. Running calls still get their responses (gevals 0.0.1, "One-Shot Mode").

        A last line without a line feed counts: `printf` writes none. A host that exited is noticed by its other end.
        """
        self._reading = False
        self._decoder.receive_data(b"\n")
        self._decoder.receive_eof()

    # Requests

    def _handle_received(self) -> None:
        while not self._ending and (frame := self._decoder.next_event()) is not None:
            if isinstance(frame, Frame):
                self._handle(frame.payload)

    def _handle(self, line: bytes) -> None:
        """Handle a line. A response is ignored: the server sends no requests."""
        try:
            message = parse(line)
        except MessageError as error:
            self._write(self._limiter.error(error.id, RpcError(error.code, str(error))))
            return
        if isinstance(message, Request):
            # The line shows a reference `${NAME.key}`, unless one of its characters is escaped.
            self._handle_request(message, references=b"${" in line or b"\\u" in line)
        elif isinstance(message, Notification) and message.method == gevals_spec.SHUTDOWN:
            self._ending = True

    def _handle_request(self, request: Request, *, references: bool) -> None:
        id: Id = request.id
        try:
            if not id_fits(id):
                text = f"the id is longer than {ID_LIMIT_BYTES} bytes, and its response would not fit on a line"
                raise RpcError(gevals_spec.INVALID_REQUEST, text)
            if self._calls.is_open(id):
                text, id = f"id {id!r} is still in use by a call of {gevals_spec.EXECUTE!r}", None
                raise RpcError(gevals_spec.INVALID_REQUEST, text)
            if request.method == gevals_spec.EXECUTE:
                self._execute(request, references=references)
            elif request.method == gevals_spec.INITIALIZE:
                self._initialize(request)
            elif request.method == gevals_spec.SHUTDOWN:
                self._shutdown(request)
            else:
                text = f"unknown method: {request.method[:LONGEST_NAME]}"
                raise RpcError(gevals_spec.METHOD_NOT_FOUND, f"{text}; {suggest(request.method, gevals_spec.METHODS)}")
        except RpcError as error:
            self._write(self._limiter.error(id, error))
        except Exception as error:  # noqa: BLE001  (a fault in one request must not end the others)
            self._write(self._limiter.error(id, self._session.fault(request.method, error)))

    def _initialize(self, request: Request) -> None:
        if self._manifest_sent:
            self._manifest_sent = False
            with suppress(RpcError):  # of changes since the early check, such as a file that was removed
                self._session.initialize(request.params, accepted=True)
            self._extension.warm_up(partial(self._warn_of, self._compare) if self._compare else None)
        else:
            self._session.initialize(request.params)
            self._write(self._limiter.plain(request.id, build_manifest(self._extension)))
            self._extension.warm_up()

    def _warn_of(self, compare: Callable[[], str]) -> None:
        time.sleep(COMPARE_AFTER_SECONDS)
        if warning := compare():
            self._warnings.append(warning)

    def _execute(self, request: Request, *, references: bool) -> None:
        outside = CALL.set(request.id)  # the deadline of the call is on the same clock as its operation
        try:
            call = self._session.prepare(request.params, self._send_log, references=references)
        finally:
            CALL.reset(outside)
        self._calls.begin(request.id, call)
        try:
            self._workers.run(partial(self._perform, call))
        except RuntimeError as error:  # the system gives no more threads
            self._respond(call, self._limiter.error(request.id, self._session.fault(call.operation.name, error)))

    def _shutdown(self, request: Request) -> None:
        """Clean up, then respond: hosts take the response for the end (gevals 0.0.1, "Shutdown")."""
        self._close()
        for call in self._calls.unclaimed():
            text = f"{call.operation.name}: the extension was shut down before the operation ended"
            self._respond(call, self._limiter.error(call.id, RpcError(gevals_spec.OPERATION_FAILED, text)))
        self._write(self._limiter.plain(request.id, {}))
        self._ending = True

    # Operations, in their threads

    def _perform(self, call: Call) -> None:
        CALL.set(call.id)
        with suppress(IndexError):  # logs are part of a call (gevals 0.0.1, "Lifecycle")
            self._send_log("warn", self._warnings.pop(), {})
        try:
            line = self._limiter.result(call.id, self._session.perform(call))
        except RpcError as error:
            line = self._limiter.error(call.id, error)
        except BaseException as error:  # noqa: BLE001  (without a response the host would wait)
            line = self._limiter.error(call.id, self._session.fault(call.operation.name, error))
        self._respond(call, line)
        if not self._reading:
            self._wakeup.wake()

    def _respond(self, call: Call, line: bytes, *, given_up: bool = False) -> None:
        """Write the response to a call, unless it has one. `given_up`: do not wait for the operation to end."""
        if self._calls.try_claim(call):
            if given_up:
                self._session.give_up(call)
            self._write(line)
            self._calls.end(call)

    # Output

    def _send_log(self, level: str, message: str, data: Mapping[str, object]) -> None:
        self._write(self._limiter.log(level, message, data))

    def _write(self, line: bytes) -> None:
        try:
            with self._write_lock:
                self._stdio.write(line)
        except PeerGone:
            self._peer_gone = self._ending = True
            self._wakeup.wake()

    def _spill_to_file(self, name: str, text: str) -> str:
        path = self._session.artifact(name)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return str(path)

    # The end

    def _close(self) -> None:
        """Stop operations and close their state, in parallel, within CLEANUP_SECONDS; once."""
        if self._closed:
            return
        self._closed = True
        _arm_alarm()
        self._calls.stop()
        closers = [
            threading.Thread(target=self._close_state, args=(close,), daemon=True)
            for close in self._session.begin_shutdown()
        ]
        for closer in closers:
            closer.start()
        until = time.monotonic() + CLEANUP_SECONDS
        for closer in closers:
            closer.join(max(0.0, until - time.monotonic()))
        self._calls.wait_for_none(max(0.0, until - time.monotonic()))
        self._shared.close()

    def _close_state(self, close: Callable[[], None]) -> None:
        try:
            close()
        except Exception as error:  # noqa: BLE001  (the others are closed all the same)
            self._session.fault("close", error)


def _arm_alarm(*_: object) -> None:
    """Arm SIGALRM, so that a process that hangs in its shutdown is killed, such as one whose host stopped reading."""
    signal.alarm(int(CLEANUP_SECONDS) + 2)
