"""Server loop: one host on stdin and stdout, calls in a pool of threads, one response for each request.

An adapter knows the protocol of the host: it parses what is received, and encodes what is written. That of the gevals
extension protocol is here; `serving.PROTOCOLS` lists the others.
"""

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
from ext_sdk.server.line_limit import ID_LIMIT_BYTES, LineLimiter, id_fits
from ext_sdk.server.manifest import build_manifest
from ext_sdk.server.session import NEVER, Session
from ext_sdk.server.shared_values import SharedValues

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_sdk.context import SendHostCall
    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.core.wire.errors import Id
    from ext_sdk.core.wire.frames import Junk
    from ext_sdk.core.wire.jsonrpc import ErrorResponse, Message, Response
    from ext_sdk.definition import Definition
    from ext_sdk.result import Result
    from ext_sdk.server.session import Call

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

    def __len__(self) -> int:
        return len(self._running)

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

    def find(self, id: Id) -> Call | None:
        """Return the call with this id that no thread has claimed. Types matter: 1, 1.0 and "1" are three ids."""
        if not self._running:
            return None
        return next((call for call in self.unclaimed() if type(call.id) is type(id) and call.id == id), None)

    def unclaimed(self) -> list[Call]:
        """Return the calls that no thread has claimed."""
        with self._changed:
            return [call for call in self._running if not call.claimed]

    def late(self) -> list[Call]:
        """Return the unclaimed calls whose time is over."""
        now = time.monotonic()
        return [call for call in self.unclaimed() if call.answer_deadline <= now] if self._running else []

    def milliseconds_left(self, other: float = NEVER) -> int | None:
        """Return the time until the next call is late, or another deadline passes, for poll(); None if none will be."""
        if not self._running and other == NEVER:
            return None
        deadline = min([other, *(call.answer_deadline for call in self.unclaimed())])
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


SHORT_SECONDS = 0.002  # duration of a call after which the next one may begin a turn
CHECK_MILLISECONDS = 2  # between two checks of a turn by the main thread
LINGER_MILLISECONDS = 20  # that a turn waits for the next call


class Turn:
    """Worker thread that reads the input in place of the main thread, and performs what it reads, call by call.

    A client that sends its next call after each result would otherwise wait for two thread switches per call. A turn
    begins with a call that comes alone, after a short one. It ends with any other message, with a pause, or when the
    main thread finds the same call twice: it then reads the input again.

    Attributes:
        call: the call that is performed; None while the worker waits for the next one.
    """

    __slots__ = ("call",)

    def __init__(self, call: Call) -> None:
        self.call: Call | None = call


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


class Adapter:
    """Protocol of a host: decodes messages to calls of the server, and encodes results; this one is JSON-RPC 2.0.

    It does no I/O and starts no threads. Methods that encode are called by the threads of operations, the others by the
    loop. Exceptions of `request` become error responses.

    Args:
        server: what the adapter calls: `execute`, `cancel`, `write`, `warm_up`, `close`, `finish`.
    """

    framing = gevals_spec.FRAMING
    deadline = NEVER  # on the monotonic clock; then the loop calls `expired`

    def __init__(self, server: Server) -> None:
        self.server = server

    def opening(self, initial: InitialIO) -> bytes:
        """Return the bytes to write before anything is read.

        Args:
            initial: what was done before the server started; its bytes are handled after this.
        """
        return b""

    def receive(self, payload: bytes) -> None:
        """Handle the payload of a frame. Every message that requires a response gets one."""
        try:
            message = parse(payload)
        except MessageError as error:
            self.handle(error, payload)
        else:
            self.handle(message, payload)

    def handle(self, message: Message | list[Message | MessageError] | MessageError, payload: bytes) -> None:
        """Handle a message, or the error of an invalid one."""
        if isinstance(message, Request):
            self.answer(message, payload)
        elif isinstance(message, Notification):
            self.notification(message)
        elif isinstance(message, MessageError):
            self.server.write(self.error(message.id, RpcError(message.code, str(message))))
        elif not isinstance(message, list):
            self.response(message)

    def answer(self, request: Request, payload: bytes) -> None:
        """Handle a request; an exception becomes its error response."""
        id: Id = request.id
        try:
            if not id_fits(id):
                text = f"the id is longer than {ID_LIMIT_BYTES} bytes, and its response would not fit on a line"
                raise RpcError(gevals_spec.INVALID_REQUEST, text)
            if call := self.server.calls.find(id):
                text, id = f"id {id!r} is still in use by a call of {call.operation.name!r}", None
                raise RpcError(gevals_spec.INVALID_REQUEST, text)
            self.request(request, payload)
        except RpcError as error:
            self.server.write(self.error(id, error))
        except Exception as error:  # noqa: BLE001  (a fault in one request must not end the others)
            self.server.write(self.error(id, self.server.session.fault(request.method, error)))

    def request(self, request: Request, payload: bytes) -> None:
        """Handle a request: write its response, or begin its call. Raises RpcError for the error response.

        Args:
            payload: the message as received.
        """
        raise NotImplementedError

    def notification(self, notification: Notification) -> None:
        """Handle a notification; unknown ones are ignored."""

    def response(self, response: Response | ErrorResponse) -> None:
        """Handle the response to a request that the adapter has written."""

    def junk(self, junk: Junk) -> None:
        """Handle bytes that are not a frame."""

    def expired(self) -> None:
        """Handle that `deadline` has passed; set a later one, or NEVER."""

    def end_of_input(self) -> None:
        """Handle that the host will send nothing more; called after its last message."""

    def result(self, call: Call, result: Result) -> bytes:
        """Return the messages for a call that has ended, as frames."""
        raise NotImplementedError

    def error(self, id: Id, error: RpcError) -> bytes:
        """Return the messages for a request or call that is refused or has no result, as frames."""
        return self.server.limiter.error(id, error)

    def log(self, id: Id, level: str, message: str, data: Mapping[str, object]) -> bytes:
        """Return the messages for a log entry of a call, as frames; b"" to drop it."""
        raise NotImplementedError

    def host_calls(self, id: Id) -> SendHostCall | None:
        """Return the function that sends calls of an operation to the host; None if the protocol has none."""
        return None


class Server:
    """Session with one host.

    Args:
        adapter: class of the protocol of the host.
        config: value of `--config`.

    Attributes:
        session: checks and performs the calls.
        limiter: cuts and redacts what is written.
        calls: calls without a response.

    Raises:
        RpcError: INVALID_PARAMS for an invalid configuration.
    """

    def __init__(
        self,
        extension: Definition,
        stdio: Stdio,
        redactor: Redactor,
        adapter: Callable[[Server], Adapter],
        config: object = None,
    ) -> None:
        self.extension = extension
        self._stdio = stdio
        self._shared = SharedValues(extension.name, redactor.redact_text, stdio.input)
        self.session = Session(extension, redactor, config, shared=self._shared)
        self.limiter = LineLimiter(redactor, self._spill_to_file)
        self.calls = Calls()
        self._adapter = adapter(self)
        self._decoder = FRAMINGS[self._adapter.framing].decoder()
        self._workers = Workers()
        self._write_lock = threading.Lock()
        self._input_lock = threading.Lock()  # of the thread that handles messages, and of `_turn`
        self._turn: Turn | None = None  # None: the main thread reads
        self._alone = False  # the message being handled has come alone
        self._short = False  # the last call was
        self._reading = True
        self._ending = False
        self._peer_gone = False
        self._closed = False
        self._warnings: list[str] = []  # for the log of the next call
        self._wakeup = Wakeup()

    def run(self, initial: InitialIO) -> int:
        """Serve until the host shuts down or closes its end, or a signal arrives; after this the process must exit.

        Returns:
            The exit code: 0, or 1 if the host closed its end without waiting for responses.
        """
        self._wakeup.install_signal_handlers(_arm_alarm)
        if opening := self._adapter.opening(initial):
            self.write(opening)
        self._decoder.receive_data(initial.received)
        try:
            self._serve(eof=initial.eof)
        finally:
            self.close()
            _arm_alarm()  # a thread that an operation left behind may keep the interpreter running
        return int(self._peer_gone)

    # The loop

    def _serve(self, *, eof: bool) -> None:
        watch, listen = select.poll(), select.poll()  # with and without a turn
        for poll in (watch, listen):
            poll.register(self._stdio.output, 0)  # POLLERR is always reported, here when the host reads no more
            poll.register(self._wakeup.descriptor, select.POLLIN)
        if not eof:
            listen.register(self._stdio.input, select.POLLIN)
        with self._input_lock:
            if eof:
                self._end_of_input()
            else:
                self._handle_received()
        call: Call | None = None  # of the turn, at the last check
        while not self._ending and (self._reading or self.calls):
            milliseconds = self.calls.milliseconds_left(self._adapter.deadline)
            if self._turn:
                ready = dict(watch.poll(min(milliseconds or CHECK_MILLISECONDS, CHECK_MILLISECONDS)))
            else:
                ready = dict(listen.poll(milliseconds))
            if self._stdio.output in ready:
                self._peer_gone = True
                break
            if self._wakeup.descriptor in ready and self._wakeup.drain():
                self._ending = True
            with self._input_lock:
                if self._turn and self._turn.call and self._turn.call is call:
                    self._turn = None
                call = self._turn.call if self._turn else None
                if self._stdio.input in ready and not self._read():
                    listen.unregister(self._stdio.input)
                    self._end_of_input()
                self._enforce_deadlines()
        with self._input_lock:  # a turn does not read after this
            self._turn = None

    def _read(self) -> bool:
        """Read and handle what has come. Return False at the end of the input."""
        data = self._stdio.read()
        payload = self._decoder.lone(data)
        if payload is not None:
            self._alone = True
            self._adapter.receive(payload)
            self._alone = False
        elif data:
            self._decoder.receive_data(data)
            self._handle_received()
        return bool(data)

    def _enforce_deadlines(self) -> None:
        if self._adapter.deadline <= time.monotonic():
            self._adapter.expired()
        for call in self.calls.late():  # respond, and stop the operation
            call.context.deadline.stopped.set()
            text = f"the operation did not end within its {call.answer_seconds:g} s; it was stopped"
            error = RpcError(gevals_spec.TIMEOUT, f"{call.operation.name}: {text}")
            self._respond(call, self._adapter.error(call.id, error), given_up=True)

    def _end_of_input(self) -> None:
        """Stop reading. Running calls still get their responses (gevals 0.0.1, "One-Shot Mode").

        A last line without a line feed counts: `printf` writes none. A host that exited is noticed by its other end.
        """
        self._reading = False
        if self._adapter.framing == gevals_spec.FRAMING:
            self._decoder.receive_data(b"\n")
        self._decoder.receive_eof()
        self._handle_received()
        self._adapter.end_of_input()

    def _handle_received(self) -> None:
        while not self._ending and (frame := self._decoder.next_event()) is not None:
            if isinstance(frame, Frame):
                self._adapter.receive(frame.payload)
            else:
                self._adapter.junk(frame)

    # What adapters call

    def warm_up(self, compare: Callable[[], str] | None = None) -> None:
        """Load what the first operation needs, in a thread.

        Args:
            compare: see InitialIO; a warning is logged with the next call.
        """

        def warn() -> None:
            time.sleep(COMPARE_AFTER_SECONDS)
            if compare and (warning := compare()):
                self._warnings.append(warning)

        self.extension.warm_up(warn if compare else None)

    def warn(self, text: str) -> None:
        """Write a warning to stderr, and log it with the next call."""
        if text not in self._warnings:
            self._warnings.append(text)
        line = f"ext-{self.extension.name}: warning: {self.limiter.text(text)}\n"
        with suppress(OSError):  # stderr was closed
            os.write(2, line.encode("utf-8", "backslashreplace"))

    def execute(self, id: Id, params: object, *, references: bool = True) -> None:
        """Begin a call; the adapter encodes its result.

        Args:
            id: of the request.
            params: members `operation`, `args` and `context`, as in gevals 0.0.1, "Execute".
            references: see Session.prepare.

        Raises:
            RpcError: the call is refused; see Session.prepare.
        """
        outside = CALL.set(id)  # the deadline of the call is on the same clock as its operation
        try:
            call = self.session.prepare(
                params,
                partial(self._send_log, id),
                references=references,
                call_host=self._adapter.host_calls(id),
            )
        finally:
            CALL.reset(outside)
        self.calls.begin(id, call)
        alone, self._alone = self._alone and len(self.calls) == 1, False
        if alone and self._turn:  # this is its thread, which performs the call
            self._turn.call = call
            return
        perform = partial(self._perform, call)
        if alone and self._short and self._adapter.host_calls(id) is None:
            self._turn = Turn(call)
            perform = partial(self._take_turn, self._turn, call)
        try:
            self._workers.run(perform)
        except RuntimeError as error:  # the system gives no more threads
            self._turn = None
            self._respond(call, self._adapter.error(id, self.session.fault(call.operation.name, error)))

    def cancel(self, id: Id, frames: bytes = b"") -> bool:
        """Stop a call, and return True if there was one without a response.

        Args:
            frames: written in place of its response.
        """
        call = self.calls.find(id)
        if call is None:
            return False
        call.context.deadline.stopped.set()
        self._respond(call, frames, given_up=True)
        return True

    def finish(self) -> None:
        """End the loop; see `close`."""
        self._ending = True

    # Operations, in their threads

    def _perform(self, call: Call) -> None:
        CALL.set(call.id)
        if self._warnings:
            with suppress(IndexError):  # logs are part of a call (gevals 0.0.1, "Lifecycle")
                self._send_log(call.id, "warn", self._warnings.pop(), {})
        try:
            frames = self._adapter.result(call, self.session.perform(call))
        except RpcError as error:
            frames = self._adapter.error(call.id, error)
        except BaseException as error:  # noqa: BLE001  (without a response the host would wait)
            frames = self._adapter.error(call.id, self.session.fault(call.operation.name, error))
        self._respond(call, frames)
        self._short = call.context.deadline.elapsed() < SHORT_SECONDS
        if not self._reading:
            self._wakeup.wake()

    def _take_turn(self, turn: Turn, call: Call) -> None:
        """Perform a call, and those that follow it one by one."""
        poll = select.poll()
        poll.register(self._stdio.input, select.POLLIN)
        following: Call | None = call
        try:
            while following:
                self._perform(following)
                turn.call = following = None
                if turn is self._turn and poll.poll(LINGER_MILLISECONDS):
                    with self._input_lock:
                        if turn is self._turn and self._read():
                            following = turn.call
        finally:
            with self._input_lock:
                if turn is self._turn:
                    self._turn = None
                    self._wakeup.wake()

    def _respond(self, call: Call, frames: bytes, *, given_up: bool = False) -> None:
        """Write the response to a call, unless it has one. `given_up`: do not wait for the operation to end."""
        if self.calls.try_claim(call):
            if given_up:
                self.session.give_up(call)
            self.write(frames)
            self.calls.end(call)

    # Output

    def _send_log(self, id: Id, level: str, message: str, data: Mapping[str, object]) -> None:
        self.write(self._adapter.log(id, level, message, data))

    def write(self, frames: bytes) -> None:
        """Write complete frames. Thread-safe."""
        try:
            with self._write_lock:
                self._stdio.write(frames)
        except PeerGone:
            self._peer_gone = self._ending = True
            self._wakeup.wake()

    def _spill_to_file(self, name: str, text: str) -> str:
        path = self.session.artifact(name)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return str(path)

    # The end

    def close(self) -> None:
        """Stop operations and close their state, in parallel, within CLEANUP_SECONDS; once.

        Calls that have not ended after this get an error.
        """
        if self._closed:
            return
        self._closed = True
        _arm_alarm()
        self.calls.stop()
        closers = [
            threading.Thread(target=self._close_state, args=(close,), daemon=True)
            for close in self.session.begin_shutdown()
        ]
        for closer in closers:
            closer.start()
        until = time.monotonic() + CLEANUP_SECONDS
        for closer in closers:
            closer.join(max(0.0, until - time.monotonic()))
        self.calls.wait_for_none(max(0.0, until - time.monotonic()))
        self._shared.close()

    def _close_state(self, close: Callable[[], None]) -> None:
        try:
            close()
        except Exception as error:  # noqa: BLE001  (the others are closed all the same)
            self.session.fault("close", error)


def _arm_alarm(*_: object) -> None:
    """Arm SIGALRM, so that a process that hangs in its shutdown is killed, such as one whose host stopped reading."""
    signal.alarm(int(CLEANUP_SECONDS) + 2)


class GevalsAdapter(Adapter):
    """Adapter of gevals 0.0.1: `initialize`, `execute`, `shutdown`, and notifications `log`."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._manifest_sent = False
        self._compare: Callable[[], str] | None = None

    def opening(self, initial: InitialIO) -> bytes:
        self._manifest_sent, self._compare = initial.manifest_sent, initial.compare
        return b""

    def request(self, request: Request, payload: bytes) -> None:
        if request.method == gevals_spec.EXECUTE:
            # The line shows a reference `${NAME.key}`, unless one of its characters is escaped.
            references = b"${" in payload or b"\\u" in payload
            self.server.execute(request.id, request.params, references=references)
        elif request.method == gevals_spec.INITIALIZE:
            self._initialize(request)
        elif request.method == gevals_spec.SHUTDOWN:
            self._shutdown(request)
        else:
            text = f"unknown method: {request.method[:LONGEST_NAME]}"
            raise RpcError(gevals_spec.METHOD_NOT_FOUND, f"{text}; {suggest(request.method, gevals_spec.METHODS)}")

    def _initialize(self, request: Request) -> None:
        server = self.server
        if self._manifest_sent:
            self._manifest_sent = False
            with suppress(RpcError):  # of changes since the early check, such as a file that was removed
                server.session.initialize(request.params, accepted=True)
            server.warm_up(self._compare)
        else:
            server.session.initialize(request.params)
            server.write(server.limiter.plain(request.id, build_manifest(server.extension)))
            server.warm_up()

    def _shutdown(self, request: Request) -> None:
        """Clean up, then respond: hosts take the response for the end (gevals 0.0.1, "Shutdown")."""
        server = self.server
        server.close()
        for call in server.calls.unclaimed():
            text = f"{call.operation.name}: the extension was shut down before the operation ended"
            server.cancel(call.id, self.error(call.id, RpcError(gevals_spec.OPERATION_FAILED, text)))
        server.write(server.limiter.plain(request.id, {}))
        server.finish()

    def notification(self, notification: Notification) -> None:
        if notification.method == gevals_spec.SHUTDOWN:
            self.server.finish()

    def result(self, call: Call, result: Result) -> bytes:
        return self.server.limiter.result(call.id, result)

    def log(self, id: Id, level: str, message: str, data: Mapping[str, object]) -> bytes:
        return self.server.limiter.log(level, message, data)
