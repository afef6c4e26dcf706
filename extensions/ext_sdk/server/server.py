"""Server loop: one host on stdin and stdout, calls in threads, each response once."""

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


# The id of the request that a thread works for. A recorder of HTTP traffic looks for a variable of this name.
CALL: ContextVar[Id | None] = ContextVar("jsonrpc_call", default=None)
LONGEST_WAIT_MILLISECONDS = 3_600_000  # poll() takes no more than 24 days; a timeout may be 292 years
_NEVER = float("inf")


class Running:
    """A call whose answer is not out yet.

    Attributes:
        id: of the request.
        call: what is performed.
        latest: when an answer must be out, on the monotonic clock.
    """

    __slots__ = ("call", "claimed", "id", "latest")

    def __init__(self, id: Id, call: Call) -> None:
        self.id = id
        self.call = call
        self.claimed = False
        self.latest = _NEVER if call.latest is None else time.monotonic() + call.latest


class Calls:
    """The running calls. Safe to use from several threads.

    An operation's thread and the loop that enforces deadlines may both want to answer a call: who claims it first
    does.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: list[Running] = []

    def __bool__(self) -> bool:
        return bool(self._running)

    def begin(self, id: Id, call: Call) -> Running:
        """Return a call that runs from now on."""
        running = Running(id, call)
        with self._changed:
            self._running.append(running)
        return running

    def claim(self, running: Running) -> bool:
        """Return True if the caller is the one to answer."""
        with self._changed:
            first, running.claimed = not running.claimed, True
        return first

    def end(self, running: Running) -> None:
        """The answer is out."""
        with self._changed:
            self._running.remove(running)
            self._changed.notify_all()

    def unclaimed(self) -> list[Running]:
        """Calls that nobody answers yet."""
        with self._changed:
            return [one for one in self._running if not one.claimed]

    def late(self) -> list[Running]:
        """Return those of them whose time is over."""
        now = time.monotonic()
        return [one for one in self.unclaimed() if one.latest <= now]

    def milliseconds_left(self) -> int | None:
        """Until the next one is late, for poll(); None if none will be."""
        latest = min((one.latest for one in self.unclaimed()), default=_NEVER)
        if latest == _NEVER:
            return None
        return int(min(max(0.0, latest - time.monotonic()) * 1000 + 1, LONGEST_WAIT_MILLISECONDS))

    def stop(self) -> None:
        """Tell all operations to stop."""
        for one in self.unclaimed():
            one.call.context.deadline.stopped.set()

    def wait_for_none(self, seconds: float) -> None:
        """Wait until every answer is out, but not longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, seconds)


CLEANUP_SECONDS = 3.0  # the known host kills 5 s after its request to shut down, without asking again


class InitialIO:
    """What was done with the wire before the server was there.

    Attributes:
        received: bytes that were read and not yet looked at.
        manifest_sent: the first request among them is an `initialize` whose answer is out already.
        eof: the host will send no more.
    """

    __slots__ = ("eof", "manifest_sent", "received")

    def __init__(self, received: bytes = b"", *, manifest_sent: bool = False, eof: bool = False) -> None:
        self.received = received
        self.manifest_sent = manifest_sent
        self.eof = eof


class Server:
    """One session with one host.

    Args:
        extension: what is served.
        stdio: the wire.
        redactor: what must not be seen.
        config: as given by `--config`.

    Raises:
        RpcError: INVALID_PARAMS for a configuration that does not fit.
    """

    def __init__(self, extension: Definition, stdio: Stdio, redactor: Redactor, config: object = None) -> None:
        self._extension = extension
        self._stdio = stdio
        self._session = Session(extension, redactor, config)
        self._fitter = LineLimiter(redactor, self._keep_whole)
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
        """Serve until the host shuts down, closes its end, or a signal comes; after this the process has to end.

        Returns:
            The exit code: 0, or 1 where the host went away without waiting for its answers.
        """
        self._wakeup.take_signals(_end_soon)
        self._manifest_sent = opening.manifest_sent
        self._connection.receive_data(opening.received)
        if opening.eof:
            self._end_of_input()
        try:
            self._serve()
        finally:
            self._close()
            _end_soon()  # a thread that an operation left behind may keep the interpreter from ending
        return int(self._peer_gone)

    # The loop

    def _serve(self) -> None:
        poll = select.poll()
        if self._reading:
            poll.register(self._stdio.input, select.POLLIN)
        poll.register(self._stdio.output, 0)  # POLLERR comes unasked when nobody reads any more
        poll.register(self._wakeup.descriptor, select.POLLIN)
        self._handle_received()
        while not self._ending and (self._reading or self._calls):
            ready = dict(poll.poll(self._calls.milliseconds_left()))
            if self._stdio.output in ready:
                self._peer_gone = True
                return
            if self._wakeup.descriptor in ready and self._wakeup.signalled():
                self._ending = True
            if self._stdio.input in ready:
                self._receive()
                if not self._reading:
                    poll.unregister(self._stdio.input)
            self._enforce_deadlines()

    def _receive(self) -> None:
        data = self._stdio.read()
        if data:
            self._connection.receive_data(data)
        else:
            self._end_of_input()
        self._handle_received()

    def _end_of_input(self) -> None:
        """Calls at work still get their answers: that is how one-shot use ends (spec 0, "One-Shot Mode").

        A last line without its end counts: `printf` writes none. A host that died is noticed by its other
        end.
        """
        self._reading = False
        self._connection.receive_data(b"\n")
        self._connection.receive_eof()

    def _enforce_deadlines(self) -> None:
        """Answer for operations that did not answer themselves, and tell them to stop."""
        for one in self._calls.late():
            one.call.context.deadline.stopped.set()
            name, seconds = one.call.operation.name, one.call.latest
            text = f"{name}: the operation did not end in its {seconds:g} s and was told to stop"
            self._answer(one, self._fitter.error(one.id, RpcError(gevals_spec.TIMEOUT, text)), given_up=True)

    # What the host says

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
                self._answer_error(event.error.id, RpcError(event.error.code, str(event.error)))

    def _handle_request(self, request: Request) -> None:
        handlers: dict[str, Callable[[Request], None]] = {
            gevals_spec.INITIALIZE: self._initialize,
            gevals_spec.EXECUTE: self._execute,
            gevals_spec.SHUTDOWN: self._shutdown,
        }
        try:
            if not id_fits(request.id):
                text = f"the id is longer than {ID_LIMIT_BYTES} bytes, and its answer would not fit a line"
                raise RpcError(gevals_spec.INVALID_REQUEST, text)
            if request.method not in handlers:
                text = f"unknown method: {request.method[:LONGEST_NAME]}; {suggest(request.method, handlers)}"
                raise RpcError(gevals_spec.METHOD_NOT_FOUND, text)
            handlers[request.method](request)
        except RpcError as error:
            self._answer_error(request.id, error)
        except Exception as error:  # noqa: BLE001  (a fault in one request is no end of the others)
            self._answer_error(request.id, self._session.fault(request.method, error))

    def _initialize(self, request: Request) -> None:
        if self._manifest_sent:
            self._manifest_sent = False
            self._connection.settle(request.id)
            with suppress(RpcError):  # of what has changed since the early check, such as a file that was removed
                self._session.initialize(request.params, accepted=True)
        else:
            self._session.initialize(request.params)
            self._answer_plain(request.id, build_manifest(self._extension))
        self._extension.warm_up()

    def _execute(self, request: Request) -> None:
        call = self._session.prepare(request.params, self._send_log)
        running = self._calls.begin(request.id, call)
        try:
            self._workers.run(lambda: self._perform(running))
        except RuntimeError as error:  # the system gives no more threads
            self._answer(running, self._fitter.error(request.id, self._session.fault(call.operation.name, error)))

    def _shutdown(self, request: Request) -> None:
        """Clean up, then say so: what the host reads as the end is the end (spec 0, "Shutdown")."""
        self._close()
        for one in self._calls.unclaimed():
            text = f"{one.call.operation.name}: the extension was shut down before the operation ended"
            self._answer(one, self._fitter.error(one.id, RpcError(gevals_spec.OPERATION_FAILED, text)))
        self._answer_plain(request.id, {})
        self._ending = True

    # Operations, in their threads

    def _perform(self, running: Running) -> None:
        CALL.set(running.id)
        try:
            line = self._fitter.result(running.id, self._session.perform(running.call))
        except RpcError as error:
            line = self._fitter.error(running.id, error)
        except BaseException as error:  # noqa: BLE001  (a thread that ends here leaves the host without an answer)
            line = self._fitter.error(running.id, self._session.fault(running.call.operation.name, error))
        self._answer(running, line)
        if not self._reading:
            self._wakeup.wake()

    def _answer(self, running: Running, line: bytes, *, given_up: bool = False) -> None:
        """Write a call's answer, unless it has one. `given_up`: the operation has not ended, and is not waited for."""
        if self._calls.claim(running):
            if given_up:
                self._session.give_up(running.call)
            self._write_answer(running.id, line)
            self._calls.end(running)

    # What the host is told

    def _send_log(self, level: str, message: str, data: Mapping[str, object]) -> None:
        self._write(self._fitter.log(level, message, data))

    def _answer_plain(self, id: Id, result: object) -> None:
        self._write_answer(id, self._fitter.plain(id, result))

    def _answer_error(self, id: Id, error: RpcError) -> None:
        self._write_answer(id, self._fitter.error(id, error))

    def _write_answer(self, id: Id, line: bytes) -> None:
        self._connection.settle(id)  # first: a host may use the id again the moment it has read the answer
        self._write(line)

    def _write(self, line: bytes) -> None:
        try:
            with self._write_lock:
                self._stdio.write(line)
        except PeerGone:
            self._peer_gone = self._ending = True
            self._wakeup.wake()

    def _keep_whole(self, name: str, text: str) -> str:
        path = self._session.artifact(name)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return str(path)

    # The end

    def _close(self) -> None:
        """Stop operations and close what they left, all side by side, within CLEANUP_SECONDS; once."""
        if self._closed:
            return
        self._closed = True
        _end_soon()
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


def _end_soon(*_: object) -> None:
    """Have the system end this process should it hang, on a host that neither reads nor goes, for one."""
    signal.alarm(int(CLEANUP_SECONDS) + 2)
