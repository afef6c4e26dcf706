"""Agents that use Kaiak's API, over a Unix socket or on standard input and output.

The prompt is the message of one incident, and the working directory is the workspace. Both dialects are supported: the
three commands of the specification, and the methods of later versions of Kaiak, which do not have `configure`.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from ext_sdk.core.process.child import ProcessError
from ext_sdk.core.process.output import READ_BYTES, Output, Pump
from ext_sdk.core.process.spawner import Command, find_executable
from ext_sdk.core.text import cut
from ext_sdk.core.wire.connection import Answer, Connection, Malformed
from ext_sdk.core.wire.errors import METHOD_NOT_FOUND, RpcError
from ext_sdk.core.wire.frames import Junk, Overlong
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.jsonrpc import Request
from ext_sdk.polling import Deadline

from .commands import GRACE, KILL_WAIT, SPAWNER, AgentResult, Commands, excerpt
from .files import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ext_sdk.core.process.child import Child
    from ext_sdk.core.wire.jsonrpc import Notification

    Params = dict[str, object]

COMMAND = "workspace/executeCommand"
NOT_INITIALIZED = -32002  # of servers that require the handshake of LSP
CONNECT_SECONDS = 10.0
CALL_SECONDS = 60.0  # for responses other than that of generate_fix
END_SECONDS = 2.0  # for the deletion of the session, after the work or a stop
EXIT_SECONDS = 0.5  # for the exit of a server after the end of its input
TICK = 0.05  # seconds between two checks of the deadline
MESSAGE_BYTES = 32 * 1024 * 1024
TEXT_BYTES = 1024 * 1024
MOST_STEPS = 10_000
MOST_REMARKS = 3
NAME_LENGTH = 80  # characters of the command in the name of an agent
TITLE_LENGTH = 200
ERROR_LENGTH = 1000
STDERR_LENGTH = 2000


class KaiakAgent:
    """Agent server with Kaiak's API.

    Args:
        address: path of its Unix socket; "" for a server that `command` starts.
        command: program and arguments of a server on standard input and output.
        permissions: response to its questions: `allow` or `deny`.
        name: for reports; default: the address or the command.
    """

    def __init__(
        self, *, address: str = "", command: Sequence[str] = (), permissions: str = "allow", name: str = ""
    ) -> None:
        self.address = address
        self.command = list(command)
        self.permissions = permissions
        self.name = name or excerpt(address or shlex.join(command), NAME_LENGTH)

    def check(self) -> str:
        if self.address:  # a setup step may start the server
            return ""
        try:
            find_executable(self.command[0], os.environ.get("PATH", os.defpath))
        except ProcessError as error:
            return f"the agent {self.name!r}: {error}"
        return ""

    def run(
        self,
        prompt: str,
        workdir: Path,
        environ: Mapping[str, str],
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> AgentResult:
        server = _Server.connect(self.address) if self.address else _Server.start(self.command, environ)
        return _Run(self, server, str(workdir), on_output, deadline).result(prompt)


class _Failed(Exception):
    """Failure of the agent; str() has the reason."""


class _Refused(_Failed):
    """Error response."""

    def __init__(self, what: str, error: RpcError) -> None:
        data = "" if error.data is None else f" ({excerpt(dumps(error.data), ERROR_LENGTH)})"
        message = excerpt(error.message, ERROR_LENGTH)
        super().__init__(f"it responded to {what} with error {error.code}: {message}{data}")
        self.code = error.code


class _Stopped(Exception):
    """The run was stopped before a response."""


class _Server:
    """Connection to a server; for one that is a child, with its process.

    Args:
        reader, writer: descriptors of the connection, which may be one.
        child: None for a server that runs elsewhere.
        errors: descriptor of the child's standard error.
    """

    def __init__(self, reader: int, writer: int, child: Child | None = None, errors: int = -1) -> None:
        self._reader = reader
        self._writer = writer
        self._child = child
        self._errors = errors
        self._stderr = Output(0)  # keeps the end
        self._pending = bytearray()
        for descriptor in (reader, writer):
            os.set_blocking(descriptor, False)

    @classmethod
    def connect(cls, address: str) -> _Server:
        """Connect to the server of a Unix socket. Raises HostError."""
        channel = socket.socket(socket.AF_UNIX)
        try:
            channel.settimeout(CONNECT_SECONDS)
            channel.connect(address)
        except OSError as error:
            channel.close()
            reason = error.strerror or str(error)
            remedy = "start the server first, for example: ext-host agent --protocol kaiak"
            raise HostError(f"cannot connect to the Unix socket {address}: {reason}; {remedy}") from None
        descriptor = channel.detach()
        return cls(descriptor, descriptor)

    @classmethod
    def start(cls, argv: Sequence[str], environ: Mapping[str, str]) -> _Server:
        """Start a server in the working directory of the host. Raises HostError."""
        with ExitStack() as ours, ExitStack() as theirs:
            try:
                (stdin, writer), (reader, stdout), (errors, stderr) = (os.pipe() for _ in range(3))
                directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                for descriptor in (stdin, stdout, stderr, directory):
                    theirs.callback(os.close, descriptor)
                for descriptor in (writer, reader, errors):
                    ours.callback(os.close, descriptor)
                command = Command(argv, env=environ, directory=directory, grace=GRACE, keep=True)
                child = SPAWNER.spawn(command, stdin=stdin, stdout=stdout, stderr=stderr)
            except (ProcessError, ValueError) as error:
                raise HostError(str(error)) from None
            except OSError as error:
                raise HostError(f"cannot start {argv[0]!r}: {error.strerror}") from None
            ours.pop_all()
        return cls(reader, writer, child, errors)

    def write(self, data: bytes) -> None:
        """Write bytes; `read` writes those for which the connection has no room."""
        self._pending += data
        self._flush()

    def read(self, seconds: float) -> bytes | None:
        """Move bytes; wait for the first up to some seconds. Return what was read, None at the end."""
        events = {self._reader: select.POLLIN}
        if self._pending:
            events[self._writer] = events.get(self._writer, 0) | select.POLLOUT
        if self._errors >= 0:
            events[self._errors] = select.POLLIN
        poll = select.poll()
        for descriptor, event in events.items():
            poll.register(descriptor, event)
        ready = dict(poll.poll(seconds * 1000))
        if self._errors in ready:
            self._read_errors()
        if ready.get(self._writer, 0) & ~select.POLLIN:
            self._flush()
        if not ready.get(self._reader, 0) & ~select.POLLOUT:
            return b""
        try:
            return os.read(self._reader, READ_BYTES) or None
        except BlockingIOError:
            return b""
        except OSError:  # the connection was reset
            return None

    def _flush(self) -> None:
        try:
            del self._pending[: os.write(self._writer, self._pending)]
        except BlockingIOError:
            pass
        except OSError:  # the server has closed its input: the end of its output follows
            self._pending.clear()

    def _read_errors(self) -> None:
        if data := os.read(self._errors, READ_BYTES):
            self._stderr.write(data)
        else:
            os.close(self._errors)
            self._errors = -1

    def ending(self) -> str:
        """Return how the server has ended, for the text of a failure."""
        if self._child is None:
            return "it closed the connection"
        if self._child.wait_for_exit(EXIT_SECONDS):
            return f"it ended ({self._child.status})"
        return "it closed its standard output"

    def stderr(self) -> str:
        """Return the end of the child's standard error, for the text of a failure."""
        while self._errors >= 0 and select.select([self._errors], [], [], 0)[0]:
            self._read_errors()
        return excerpt(self._stderr.text.strip(), STDERR_LENGTH, end=True)

    def end(self, background: Commands) -> None:
        """Close the connection, and stop the child; what it has left running is passed on."""
        child = self._child
        os.close(self._writer)
        if child is None:
            return
        outputs = {self._reader: _ignore}
        if self._errors >= 0:
            outputs[self._errors] = _ignore
        pump = Pump(child, outputs)
        for number, seconds in ((signal.SIGTERM, EXIT_SECONDS), (signal.SIGKILL, GRACE), (None, KILL_WAIT)):
            until = time.monotonic() + seconds
            while child.status is None and not child.gone and time.monotonic() < until:
                pump.step(TICK)
            if number and child.status is None:
                child.send_signal(number)
        if child.gone:
            pump.close()
            child.close()
        else:
            background.leave(child, pump)


def _ignore(data: bytes) -> None:
    pass


class _Run:
    """One session with the server."""

    def __init__(
        self,
        agent: KaiakAgent,
        server: _Server,
        workdir: str,
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> None:
        self._permissions = agent.permissions
        self._server = server
        self._workdir = workdir
        self._on_output = on_output
        self._deadline = deadline
        self._connection = Connection(FRAMINGS["content-length"], limit=MESSAGE_BYTES)
        self._is_head = False  # methods of later versions of Kaiak
        self._session = ""
        self._output = Output(TEXT_BYTES)
        self._in_message = False  # the last part was not the end of a message
        self._steps: list[dict[str, object]] = []
        self._remarks: list[str] = []

    def result(self, prompt: str) -> AgentResult:
        """Run the session."""
        background = Commands()
        error = ""
        details: dict[str, object] = {}
        try:
            details = self._work(prompt)
        except _Failed as failure:
            error = self._report(f"the agent failed: {failure}")
        except _Stopped as stop:
            error = "the agent was cancelled"
            if not self._deadline.stopped.is_set():
                seconds = self._deadline.elapsed()
                error = self._report(f"the agent was stopped after {seconds:.1f} s, without a response to {stop}")
        finally:
            self._deadline = Deadline(END_SECONDS)
            argument: Params = {"session_id": self._session, "force": bool(error), "cleanup_files": True}
            with suppress(_Failed, _Stopped):
                if self._is_head and self._session:
                    self._call("kaiak/delete_session", {"session_id": self._session}, END_SECONDS)
                elif self._session:
                    self._command("delete_session", argument, END_SECONDS)
            self._server.end(background)
            if error:
                background.close()
        return AgentResult(self._output.text, error, {**details, "steps": self._steps}, background.close)

    def _report(self, text: str) -> str:
        """Return the text of a failure, with what the server wrote outside of the protocol."""
        stderr = self._server.stderr()
        return "\n".join([text, *self._remarks, *([f"its standard error ends with:\n{stderr}"] if stderr else [])])

    def _work(self, prompt: str) -> Params:
        """Set the workspace, which also finds out the dialect, and send the prompt. Return details of the result.

        Raises:
            _Failed: the server has failed.
            _Stopped: the deadline has expired.
        """
        argument: Params = {"configuration": {"workspace": {"working_dir": self._workdir}}, "reset_existing": False}
        folder = Path(self._workdir).as_uri()
        try:
            try:
                self._command("configure", argument)
            except _Refused as refused:
                if refused.code != NOT_INITIALIZED:
                    raise
                self._call("initialize", {"processId": None, "rootUri": folder, "capabilities": {}}, CALL_SECONDS)
                self._server.write(self._connection.notification("initialized", {}))
                self._command("configure", argument)
        except _Refused as refused:
            if refused.code != METHOD_NOT_FOUND:
                raise
            self._is_head = True
        incident: Params = {"id": "task", "message": prompt, "severity": "warning"}
        if self._is_head:
            incident |= {"uri": folder, "description": ""}
            params: Params = {"incidents": [incident], "agent_config": {"workspace": self._workdir}}
            result = self._call("kaiak/generate_fix", params, None)
        else:
            incident["rule_id"] = "task"
            self._session = str(uuid4())
            options = {"auto_apply_safe_fixes": False, "include_explanations": False}
            argument = {"session_id": self._session, "incidents": [incident], "options": options}
            result = self._command("generate_fix", argument, None)
        result = result if isinstance(result, dict) else {}
        self._session = str(result.get("session_id") or self._session)
        status = str(result.get("status") or "completed")
        if status in {"failed", "error", "cancelled"}:
            reason = next((f": {step['text']}" for step in reversed(self._steps) if step["type"] == "error"), "")
            raise _Failed(f"it responded to generate_fix with status {status!r}{reason}")
        return {"status": status}

    # --- Calls -------------------------------------------------------------------------------------------------------

    def _command(self, name: str, argument: Params, seconds: float | None = CALL_SECONDS) -> object:
        params: Params = {"command": f"kaiak/{name}", "arguments": [argument]}
        return self._call(COMMAND, params, seconds, name)

    def _call(self, method: str, params: Params, seconds: float | None, name: str = "") -> object:
        """Return the result of a request; handle what the server sends before its response.

        Raises:
            _Refused: the response is an error.
            _Failed: there is no response.
            _Stopped: the deadline has expired.
        """
        name = name or method
        id, data = self._connection.request(method, params)
        self._server.write(data)
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            event = self._connection.next_event()
            if isinstance(event, Answer) and event.request.id == id:
                if event.error:
                    raise _Refused(name, event.error)
                return event.result
            if event is not None:
                self._handle(event)
                continue
            received = self._server.read(TICK)
            if received is None:
                raise _Failed(f"{self._server.ending()} before it responded to {name}")
            self._connection.receive_data(received)
            if self._deadline.expired:
                raise _Stopped(name)
            if until is not None and time.monotonic() > until:
                raise _Failed(f"it did not respond to {name} within {seconds:g} s; is it a server with Kaiak's API?")

    def _handle(self, event: Request | Notification | Answer | Malformed | Junk) -> None:
        if isinstance(event, Request):
            error = RpcError(METHOD_NOT_FOUND, f"ext-host has no method {cut(event.method, TITLE_LENGTH)!r}")
            self._server.write(self._connection.error(event.id, error))
        elif isinstance(event, Answer):
            if event.error:
                message = excerpt(event.error.message, TITLE_LENGTH)
                self._remark(f"it refused a response to one of its questions: {message}")
        elif isinstance(event, Malformed):
            self._remark(f"it sent an invalid message: {event.error}")
        elif isinstance(event, Overlong):
            raise _Failed(f"it sent a message over {MESSAGE_BYTES:,} bytes")
        elif isinstance(event, Junk):  # later versions of Kaiak write their log there
            pass
        elif event.method == "kaiak/generate_fix/data":
            self._streamed(event.params, "kind", "payload")
        elif event.method.startswith("kaiak/stream/"):
            self._streamed(event.params, "", "content", event.method.rpartition("/")[2])

    def _remark(self, line: str) -> None:
        if len(self._remarks) < MOST_REMARKS:
            self._remarks.append(line)

    # --- Notifications -----------------------------------------------------------------------------------------------

    def _streamed(self, params: object, kind_key: str, content_key: str, kind: str = "") -> None:
        """Handle a stream notification of either dialect."""
        members = params if isinstance(params, dict) else {}
        content = members.get(content_key)
        content = content if isinstance(content, dict) else {}
        kind = kind or str(members.get(kind_key))
        session = members.get("session_id")
        if isinstance(session, str) and not self._session:
            self._session = session
        if session != self._session:
            return  # of another client of this server
        if kind in {"ai_response", "ai_message"}:
            text = _text(content, "text")
            if self._output.size and not self._in_message:
                text = f"\n{text}"
            self._in_message = content.get("partial") is True  # else the next text is another message
            self._output.write(text.encode("utf-8", "replace"))
            self._on_output(text)
        elif kind == "user_interaction":
            self._respond(content)
        elif kind in _SHOWN:
            self._step(kind, next((text for name in _SHOWN[kind] if (text := _text(content, name))), ""))

    def _step(self, kind: str, text: str) -> None:
        if len(self._steps) >= MOST_STEPS:  # the last ones count
            del self._steps[:1]
        self._steps.append({"type": kind, "text": excerpt(text, ERROR_LENGTH)})
        self._on_output(f"\n[{kind}: {excerpt(text, TITLE_LENGTH)}]\n")

    def _respond(self, content: Params) -> None:
        """Respond to a question by the policy of the run."""
        id = _text(content, "interaction_id") or _text(content, "id")
        kind = _text(content, "interaction_type")
        allowed = self._permissions == "allow"
        payload: Params = {"request_id": id, "action": "allow_once" if allowed else "deny"}
        if kind == "elicitation":  # a form that only a user can fill in
            payload = {"request_id": id, "user_data": {}}
        params = {
            "session_id": self._session,
            "kind": "elicitation_response" if kind == "elicitation" else "tool_confirmation",
            "timestamp": datetime.now(UTC).isoformat(),
            "payload": payload,
        }
        self._server.write(self._connection.request("kaiak/client/user_message", params)[1])
        question = _text(content, "prompt") or _text(content, "message") or _text(content, "tool_name")
        self._step("user_interaction", f"{'allowed' if allowed else 'denied'}: {question}")


# Other notifications: the members of their content that people see, the first that is given.
_SHOWN = {
    "tool_call": ("tool_name",),
    "file_modification": ("file_path",),
    "error": ("message", "error"),
    "system": ("message",),
}


def _text(content: Mapping[str, object], name: str) -> str:
    value = content.get(name)
    return value if isinstance(value, str) else ""
