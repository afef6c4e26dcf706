"""Server loop: one host on stdin and stdout, calls in threads, one response for each request."""

from __future__ import annotations

import select
import signal
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ext_sdk.core import gevals_spec
from ext_sdk.core.stdio import PeerGone, Stdio
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.connection import Connection, Malformed
from ext_sdk.core.wire.errors import Id, MessageError, RpcError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Notification, Request

from .line_limit import ID_LIMIT_BYTES, LineLimiter, id_fits
from .manifest import build_manifest
from .session import Session
from .threads import Wakeup, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.definition import Definition

    from .session import Call


# The id of the request that a thread serves. A recorder of HTTP traffic reads the variable of this name.
CALL: ContextVar[Id | None] = ContextVar("jsonrpc_call", default=None)
LONGEST_WAIT_MILLISECONDS = 3_600_000  # poll() accepts at most 24 days; a timeout may be 292 years
_NEVER = float("inf")


class Running:
    """Call without a response yet.

    Attributes:
        id: id of the request.
        call: the call.
        answer_deadline: latest time of the response, on the monotonic clock.
    """

    __slots__ = ("answer_deadline", "call", "claimed", "id")

    def __init__(self, id: Id, call: Call) -> None:
        self.id = id
        self.call = call
        self.claimed = False
        self.answer_deadline = _NEVER if call.answer_seconds is None else time.monotonic() + call.answer_seconds


class Calls:
    """Running calls. Thread-safe.

    An operation's thread and the loop that enforces deadlines may both try to respond: the first to claim the call
    does.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: list[Running] = []

    def __bool__(self) -> bool:
        return bool(self._running)

    def begin(self, id: Id, call: Call) -> Running:
        """Add a call, and return it."""
        running = Running(id, call)
        with self._changed:
            self._running.append(running)
        return running

    def try_claim(self, running: Running) -> bool:
        """Claim the call; return True for the first caller only."""
        with self._changed:
            first, running.claimed = not running.claimed, True
        return first

    def end(self, running: Running) -> None:
        """Remove a call whose response was written."""
        with self._changed:
            self._running.remove(running)
            self._changed.notify_all()

    def unclaimed(self) -> list[Running]:
        """Return the calls that no thread has claimed."""
        with self._changed:
            return [running for running in self._running if not running.claimed]

    def late(self) -> list[Running]:
        """Return the unclaimed calls whose time is over."""
        now = time.monotonic()
        return [running for running in self.unclaimed() if running.answer_deadline <= now]

    def milliseconds_left(self) -> int | None:
        """Return the time until the next call is late, for poll(); None if none will be."""
        deadline = min((running.answer_deadline for running in self.unclaimed()), default=_NEVER)
        if deadline == _NEVER:
            return None
        return int(min(max(0.0, deadline - time.monotonic()) * 1000 + 1, LONGEST_WAIT_MILLISECONDS))

    def stop(self) -> None:
        """Set the stop signal of all operations."""
        for running in self.unclaimed():
            running.call.context.deadline.stopped.set()

    def wait_for_none(self, seconds: float) -> None:
        """Wait until every response is written, at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, seconds)


CLEANUP_SECONDS = 3.0  # mcpchecker kills the process 5 s after its request to shut down


class InitialIO:
    """I/O already performed before the server started.

    Attributes:
        received: bytes that were read and not yet parsed.
        manifest_sent: the first request in them is an `initialize` whose response was sent.
        eof: the host will send nothing more.
    """

    __slots__ = ("eof", "manifest_sent", "received")

    def __init__(self, received: bytes = b"", *, manifest_sent: bool = False, eof: bool = False) -> None:
        self.received = received
        self.manifest_sent = manifest_sent
        self.eof = eof


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
        self._session = Session(extension, redactor, config)
        self._limiter = LineLimiter(redactor, self._spill_to_file)
        self._connection = Connection(FRAMINGS[gevals_spec.FRAMING])
        self._workers = Workers()
        self._write_lock = threading.Lock()
        self._calls = Calls()
        self._reading = True
        self._ending = False
        self._peer_gone = False
        self._closed = False
        self._manifest_sent = False
        self._wakeup = Wakeup()

    def run(self, opening: InitialIO) -> int:
        """Serve until the host shuts down or closes its end, or a signal arrives; after this the process must exit.

        Returns:
            The exit code: 0, or 1 if the host closed its end without waiting for responses.
        """
        self._wakeup.install_signal_handlers(_arm_alarm)
        self._manifest_sent = opening.manifest_sent
        self._connection.receive_data(opening.received)
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
                if data:
                    self._connection.receive_data(data)
                else:
                    self._end_of_input()
                    poll.unregister(self._stdio.input)
                self._handle_received()
            self._enforce_deadlines()

    def _end_of_input(self) -> None:
        """Stop reading. Running calls still get their responses (gevals 0.0.1, "One-Shot Mode").

        A last line without a line feed counts: `printf` writes none. A host that exited is noticed by its other end.
        """
        self._reading = False
        self._connection.receive_data(b"\n")
        self._connection.receive_eof()

    def _enforce_deadlines(self) -> None:
        """Respond to calls whose operations are late, and stop these."""
        for running in self._calls.late():
            running.call.context.deadline.stopped.set()
            name, seconds = running.call.operation.name, running.call.answer_seconds
            text = f"{name}: the operation did not end within its {seconds:g} s; it was stopped"
            self._respond(running, self._limiter.error(running.id, RpcError(gevals_spec.TIMEOUT, text)), given_up=True)

    # Requests

    def _handle_received(self) -> None:
        while not self._ending:
            event = self._connection.next_event()
            if event is None:
                return
            if isinstance(event, Request):
                self._handle_request(event)
            elif isinstance(event, Notification) and event.method == gevals_spec.SHUTDOWN:
                self._ending = True
            elif isinstance(event, Malformed) and isinstance(event.error, MessageError):
                self._respond_error(event.error.id, RpcError(event.error.code, str(event.error)))

    def _handle_request(self, request: Request) -> None:
        handlers: dict[str, Callable[[Request], None]] = {
            gevals_spec.INITIALIZE: self._initialize,
            gevals_spec.EXECUTE: self._execute,
            gevals_spec.SHUTDOWN: self._shutdown,
        }
        try:
            if not id_fits(request.id):
                text = f"the id is longer than {ID_LIMIT_BYTES} bytes, and its response would not fit on a line"
                raise RpcError(gevals_spec.INVALID_REQUEST, text)
            if request.method not in handlers:
                text = f"unknown method: {request.method[:LONGEST_NAME]}; {suggest(request.method, handlers)}"
                raise RpcError(gevals_spec.METHOD_NOT_FOUND, text)
            handlers[request.method](request)
        except RpcError as error:
            self._respond_error(request.id, error)
        except Exception as error:  # noqa: BLE001  (a fault in one request must not end the others)
            self._respond_error(request.id, self._session.fault(request.method, error))

    def _initialize(self, request: Request) -> None:
        if self._manifest_sent:
            self._manifest_sent = False
            self._connection.settle(request.id)
            with suppress(RpcError):  # of changes since the early check, such as a file that was removed
                self._session.initialize(request.params, accepted=True)
        else:
            self._session.initialize(request.params)
            self._respond_plain(request.id, build_manifest(self._extension))
        self._extension.warm_up()

    def _execute(self, request: Request) -> None:
        call = self._session.prepare(request.params, self._send_log)
        running = self._calls.begin(request.id, call)
        try:
            self._workers.run(lambda: self._perform(running))
        except RuntimeError as error:  # the system gives no more threads
            self._respond(running, self._limiter.error(request.id, self._session.fault(call.operation.name, error)))

    def _shutdown(self, request: Request) -> None:
        """Clean up, then respond: hosts take the response for the end (gevals 0.0.1, "Shutdown")."""
        self._close()
        for running in self._calls.unclaimed():
            text = f"{running.call.operation.name}: the extension was shut down before the operation ended"
            self._respond(running, self._limiter.error(running.id, RpcError(gevals_spec.OPERATION_FAILED, text)))
        self._respond_plain(request.id, {})
        self._ending = True

    # Operations, in their threads

    def _perform(self, running: Running) -> None:
        CALL.set(running.id)
        try:
            line = self._limiter.result(running.id, self._session.perform(running.call))
        except RpcError as error:
            line = self._limiter.error(running.id, error)
        except BaseException as error:  # noqa: BLE001  (without a response the host would wait)
            line = self._limiter.error(running.id, self._session.fault(running.call.operation.name, error))
        self._respond(running, line)
        if not self._reading:
            self._wakeup.wake()

    def _respond(self, running: Running, line: bytes, *, given_up: bool = False) -> None:
        """Write the response to a call, unless it has one. `given_up`: do not wait for the operation to end."""
        if self._calls.try_claim(running):
            if given_up:
                self._session.give_up(running.call)
            self._write_response(running.id, line)
            self._calls.end(running)

    # Output

    def _send_log(self, level: str, message: str, data: Mapping[str, object]) -> None:
        self._write(self._limiter.log(level, message, data))

    def _respond_plain(self, id: Id, result: object) -> None:
        self._write_response(id, self._limiter.plain(id, result))

    def _respond_error(self, id: Id, error: RpcError) -> None:
        self._write_response(id, self._limiter.error(id, error))

    def _write_response(self, id: Id, line: bytes) -> None:
        self._connection.settle(id)  # first: a host may reuse the id as soon as it has read the response
        self._write(line)

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

    def _close_state(self, close: Callable[[], None]) -> None:
        try:
            close()
        except Exception as error:  # noqa: BLE001  (the others are closed all the same)
            self._session.fault("close", error)


def _arm_alarm(*_: object) -> None:
    """Arm SIGALRM, so that a process that hangs in its shutdown is killed, such as one whose host stopped reading."""
    signal.alarm(int(CLEANUP_SECONDS) + 2)
