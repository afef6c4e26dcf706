"""Agents that use the Agent Client Protocol (ACP) on standard input and output.

The host is the client: it sends the prompt, and responds to the agent's requests for permissions, files and commands.
The package agent-client-protocol takes a second to import, so the first run imports it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import signal
import threading
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from ext_sdk.core import __version__
from ext_sdk.core.process.child import ProcessError
from ext_sdk.core.process.output import READ_BYTES, Output, Pump
from ext_sdk.core.process.spawner import Command, find_executable
from ext_sdk.core.text import cut
from ext_sdk.core.wire.errors import INVALID_PARAMS, MessageError
from ext_sdk.core.wire.frames import Frame, Overlong
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.files import Workdir
from ext_sdk.result import OperationFailed

from .commands import GRACE, KILL_WAIT, SPAWNER, AgentResult, Commands, excerpt
from .files import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from pathlib import Path

    from acp import schema

    from ext_sdk.core.process.output import Sink
    from ext_sdk.polling import Deadline

    from .files import AgentFile, McpServer

PROTOCOL_VERSION = 1
START_SECONDS = 120.0  # for a response before the prompt: many agents download packages or start MCP servers first
CANCEL_SECONDS = 2.0  # for the response to a prompt after session/cancel
EXIT_SECONDS = 0.5  # for the exit of the agent after the end of its input; then it gets SIGTERM
TICK = 0.05  # seconds between two checks of the deadline
MESSAGE_BYTES = 32 * 1024 * 1024  # longest message of an agent
FILE_BYTES = 16 * 1024 * 1024  # longest file that an agent can read
TEXT_BYTES = 1024 * 1024  # kept of one message of the agent, and of the output of a terminal
MOST_STEPS = 10_000
STEPS_LENGTH = 8 * 1024 * 1024  # characters of their texts
MOST_TERMINALS = 64
MOST_REMARKS = 3
NAME_LENGTH = 80  # characters of the command in the name of an agent
TITLE_LENGTH = 200  # characters of a text of the agent in a message
ERROR_LENGTH = 1000  # characters of its errors
STDERR_LENGTH = 2000  # characters of its standard error in a failure
INSTALL = "install it: pip install 'gevals-extensions[acp]'"
PERMISSIONS = ("allow", "deny", "mcp")
_TYPES = {"method": (str, NoneType), "id": (str, int, float, NoneType), "error": (dict, NoneType)}
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes within a character of UTF-8
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class AcpAgent:
    """Agent that uses ACP.

    Args:
        command: program and arguments that start it.
        servers: MCP servers that it gets.
        permissions: response to its requests for permission: `allow`, `deny`, or `mcp`: as mcpchecker, only tools that
            the configuration of the servers allows.
        file: agent file that has the command, and maybe a name for reports; default: the command.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        servers: Sequence[McpServer] = (),
        permissions: str = "allow",
        file: AgentFile | None = None,
    ) -> None:
        self.command = list(command)
        self.servers = list(servers)
        self.permissions = permissions
        self.file = file
        self.name = (file.name if file else "") or excerpt(shlex.join(command), NAME_LENGTH)

    def check(self) -> str:
        if not find_spec("acp"):
            return f"ACP agents require the package agent-client-protocol; {INSTALL}"
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
        run = _Run(self, workdir, environ, on_output, deadline)
        root = logging.getLogger()
        root.addHandler(run.remarks)  # the package reports violations of the protocol there
        try:
            return asyncio.run(run.result(prompt))
        finally:
            root.removeHandler(run.remarks)


class _Failed(Exception):
    """Failure of the agent; str() has the reason."""


class _Stopped(Exception):
    """The run was stopped before the response to a request."""

    def __init__(self, method: str, request: asyncio.Task[object]) -> None:
        super().__init__(method)
        self.request = request


class _Remarks(logging.Handler):
    """First violations of the protocol by the agent of this thread, for the text of a failure."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def add(self, line: str) -> None:
        """Store a remark, unless there are enough."""
        if len(self.lines) < MOST_REMARKS:
            self.lines.append(line)

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            error = record.exc_info[1] if record.exc_info else None
            reason = "" if error is None else " ".join(str(error).split())
            self.add(excerpt(f"{record.getMessage()}: {reason}" if reason else record.getMessage(), TITLE_LENGTH))


class _Transport:
    """Messages of one agent as JSON on lines: what the package reads and writes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, remarks: _Remarks) -> None:
        self._reader = reader
        self._writer = writer
        self._remarks = remarks
        self._decoder = FRAMINGS["ndjson"].decoder(MESSAGE_BYTES)

    async def send(self, message: dict[str, Any]) -> None:
        if self._writer.transport.is_closing():
            return  # the agent has ended, or reads no more; a request to it fails by the end of its output
        self._writer.write(dumps(message).encode("utf-8", "backslashreplace") + b"\n")
        with suppress(ConnectionError):
            await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        while True:
            event = self._decoder.next_event()
            if event is None:
                with suppress(ConnectionError):
                    await self._writer.drain()  # an agent that does not read its responses gets no more of them
                data = await self._reader.read(READ_BYTES)
                if not data:
                    return None
                self._decoder.receive_data(data)
            elif isinstance(event, Overlong):
                self._remarks.add(f"it wrote a message over {MESSAGE_BYTES:,} bytes")
                return None
            elif isinstance(event, Frame):
                text = event.payload.decode("utf-8", "replace")
                with suppress(MessageError):
                    message = loads(text)
                    # The package relies on these types.
                    if isinstance(message, dict) and all(
                        isinstance(message.get(name), kinds) for name, kinds in _TYPES.items()
                    ):
                        return message
                self._remarks.add(f"it wrote a line that is not a message of JSON-RPC: {excerpt(text, TITLE_LENGTH)!r}")

    async def close(self) -> None:
        self._writer.close()


class _Process:
    """Command watched by the event loop.

    Args:
        streams: descriptors of standard input, output and error, which the caller closes.

    Raises:
        HostError: it does not start.
    """

    def __init__(
        self, argv: Sequence[str], environ: Mapping[str, str], folder: str, streams: tuple[int, int, int]
    ) -> None:
        self.exited = asyncio.Event()
        self.gone = asyncio.Event()  # no process of it is left
        self._outputs: dict[int, Sink] = {}
        directory = -1
        try:
            directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            command = Command(argv, env=environ, directory=directory, grace=GRACE, keep=True)
            stdin, stdout, stderr = streams
            self.child = SPAWNER.spawn(command, stdin=stdin, stdout=stdout, stderr=stderr)
        except (ProcessError, ValueError) as error:
            raise HostError(str(error)) from None
        except OSError as error:
            raise HostError(f"cannot start {argv[0]!r}: {error.strerror}: {folder}") from None
        finally:
            if directory >= 0:
                os.close(directory)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.child.fileno(), self._report)

    def _report(self) -> None:
        self.child.update()
        if self.child.gone or self.child.status is not None:
            self.exited.set()
        if self.child.gone:
            self.gone.set()
            self._loop.remove_reader(self.child.fileno())

    def collect(self, descriptor: int, sink: Sink) -> None:
        """Pass the data of a descriptor to a sink until its end; the descriptor is closed here."""
        os.set_blocking(descriptor, False)
        self._outputs[descriptor] = sink
        self._loop.add_reader(descriptor, self._read, descriptor)

    def _read(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            if data := os.read(descriptor, READ_BYTES):
                self._outputs[descriptor](data)
            else:
                self._loop.remove_reader(descriptor)
                del self._outputs[descriptor]
                os.close(descriptor)

    def release(self, background: Commands) -> None:
        """Pass what the command has left running on to others; the event loop watches it no more."""
        for descriptor in self._outputs:
            self._loop.remove_reader(descriptor)
        self._loop.remove_reader(self.child.fileno())
        pump = Pump(self.child, self._outputs)
        if self.child.gone:
            pump.close()
            self.child.close()
        else:
            background.leave(self.child, pump)


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event up to some seconds. Return True if it has happened."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


class _Terminal:
    """Command that the agent runs through the host, and the end of its output, of up to `limit` bytes."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], folder: str, limit: int) -> None:
        reader, writer = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.process = _Process(argv, environ, folder, (null, writer, writer))
        except HostError:
            os.close(reader)
            raise
        finally:
            os.close(null)
            os.close(writer)
        self.is_cut = False
        self._limit = limit
        self._output = bytearray()
        self.process.collect(reader, self._write)

    def _write(self, data: bytes) -> None:
        self._output += data
        if len(self._output) > self._limit:
            self.is_cut = True
            del self._output[: len(self._output) - self._limit]

    def text(self) -> str:
        """Return the output as text, from a complete character on."""
        data = self._output.lstrip(_CONTINUATION) if self.is_cut else self._output
        return data.decode("utf-8", "replace")

    def status(self) -> dict[str, Any]:
        """Return the exit code or the signal; empty while the command runs."""
        status = self.process.child.status
        if status is None:
            return {"signal": "SIGKILL"} if self.process.child.gone else {}
        return {"exit_code": status.code} if status.code is not None else {"signal": status.signal_name}


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Convert a failure of the host to the error response to the agent."""
    import acp

    try:
        yield
    except (OperationFailed, HostError) as error:
        raise acp.RequestError(INVALID_PARAMS, f"{what}: {getattr(error, 'error', '') or error}") from error
    except UnicodeDecodeError as error:
        raise acp.RequestError(INVALID_PARAMS, f"{what}: the file is not text in UTF-8") from error
    except OSError as error:
        raise acp.RequestError(INVALID_PARAMS, f"{what}: {error.strerror or error}") from error


class _Run:
    """One session with the agent. The methods named as requests of the protocol are called by the package."""

    def __init__(
        self,
        agent: AcpAgent,
        workdir: Path,
        environ: Mapping[str, str],
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> None:
        self.remarks = _Remarks()
        self._agent = agent
        self._workdir = workdir
        self._environ = environ
        self._on_output = on_output
        self._deadline = deadline
        self._files = Workdir(workdir)
        self._stderr = Output(0)
        self._terminals: dict[str, _Terminal] = {}
        self._opened = 0  # terminals
        self._background = Commands()
        self._details: dict[str, object] = {}
        self._steps: list[dict[str, str]] = []
        self._calls: dict[str, dict[str, str]] = {}
        self._kept = 0  # characters of their texts
        self._text = Output(TEXT_BYTES)  # of the last step, if that is a message or a thought

    async def result(self, prompt: str) -> AgentResult:
        """Run the session. Raises HostError if the agent cannot be started."""
        import acp

        with ExitStack() as ours, ExitStack() as theirs:
            (stdin, requests), (responses, stdout), (errors, stderr) = (os.pipe() for _ in range(3))
            for descriptor in (stdin, stdout, stderr):
                theirs.callback(os.close, descriptor)
            for descriptor in (requests, responses, errors):
                ours.callback(os.close, descriptor)
            # In the working directory of the host, as in mcpchecker: the arguments may be relative paths.
            self._process = _Process(self._agent.command, self._environ, ".", (stdin, stdout, stderr))
            ours.pop_all()
        self._process.collect(errors, self._stderr.write)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        incoming = asyncio.StreamReaderProtocol(reader)
        rest = os.dup(responses)  # for what the agent leaves running
        source, _ = await loop.connect_read_pipe(lambda: incoming, os.fdopen(responses, "rb", 0))
        outgoing = asyncio.StreamReaderProtocol(asyncio.StreamReader())  # for its flow control
        target, _ = await loop.connect_write_pipe(lambda: outgoing, os.fdopen(requests, "wb", 0))
        transport = _Transport(reader, asyncio.StreamWriter(target, outgoing, None, loop), self.remarks)
        connection = acp.connect_to_agent(cast("acp.Client", self), transport)
        error = ""
        try:
            await self._converse(connection, prompt)
        except _Failed as failure:
            error = f"the agent failed: {failure}"
        except _Stopped as stop:
            error = "the agent was cancelled"
            if not self._deadline.stopped.is_set():
                what = f"stopped after {self._deadline.elapsed():.1f} s, without a response to {stop}"
                error = f"the agent was {self._failure(what)}"
        finally:
            await transport.close()
            for number, seconds in ((signal.SIGTERM, EXIT_SECONDS), (signal.SIGKILL, GRACE)):
                if not await _happens(self._process.exited, seconds):
                    self._process.child.send_signal(number)
            await _happens(self._process.exited, KILL_WAIT)
            await _happens(self._process.gone, 2 * TICK)  # unless it leaves processes running
            await connection.close()
            source.close()
            self._process.collect(rest, lambda _: None)
            for process in (self._process, *(terminal.process for terminal in self._terminals.values())):
                process.release(self._background)
            if error:
                self._background.close()
        self._end_text()
        output = next((step["text"] for step in reversed(self._steps) if step["type"] == "message"), "")
        return AgentResult(output, error, {**self._details, "steps": self._steps}, self._background.close)

    async def _converse(self, connection: Any, prompt: str) -> None:
        """Agree on the protocol, open a session and send the prompt."""
        import acp
        from acp import schema

        files = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        begun = await self._response(
            "initialize",
            connection.initialize(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=schema.ClientCapabilities(fs=files, terminal=True),
                client_info=schema.Implementation(name="ext-host", version=__version__),
            ),
            START_SECONDS,
        )
        if begun.protocol_version != PROTOCOL_VERSION:
            expected = f"expected version {PROTOCOL_VERSION}"
            raise _Failed(f"it uses version {begun.protocol_version} of ACP; {expected}")
        servers = self._mcp_servers(begun)
        try:
            opened = await self._open(connection, servers)
        except acp.RequestError:
            await self._authenticate(connection, begun.auth_methods or ())
            opened = await self._open(connection, servers)
        session = opened.session_id
        try:
            asking = connection.prompt(session_id=session, prompt=[acp.text_block(prompt)])
            done = await self._response("session/prompt", asking)
        except _Stopped as stop:
            with suppress(ConnectionError, TimeoutError):
                await asyncio.wait_for(connection.cancel(session_id=session), CANCEL_SECONDS)
                await asyncio.wait({stop.request}, timeout=CANCEL_SECONDS)
            stop.request.cancel()
            raise
        self._details["stopReason"] = done.stop_reason
        if done.usage:
            self._details["usage"] = done.usage.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def _open(self, connection: Any, servers: list[object]) -> Any:
        request = connection.new_session(cwd=str(self._workdir), mcp_servers=servers)
        return await self._response("session/new", request, START_SECONDS)

    async def _authenticate(self, connection: Any, methods: Sequence[Any]) -> None:
        """Use an authentication method whose variables are set. Raises _Failed if there is none."""
        for method in methods:
            names = [variable.name for variable in getattr(method, "vars", None) or () if not variable.optional]
            if names and all(self._environ.get(name) for name in names):
                await self._response("authenticate", connection.authenticate(method_id=method.id), START_SECONDS)
                return
        offered = ", ".join(repr(method.name) for method in methods)
        by = f" (it offers {offered})" if offered else ""
        raise _Failed(
            f"it requires authentication{by}; log in with its own command, or set the variables that it names"
        )

    def _mcp_servers(self, begun: schema.InitializeResponse) -> list[object]:
        """Return the MCP servers for session/new. Raises _Failed for one that the agent does not support."""
        from acp import schema

        able = begun.agent_capabilities and begun.agent_capabilities.mcp_capabilities
        found: list[object] = []
        for server in self._agent.servers:
            spec = cast("dict[str, Any]", self._expanded(server.spec))
            if not spec.get("url"):
                try:
                    command = find_executable(str(spec.get("command", "")), self._environ.get("PATH", os.defpath))
                except ProcessError as error:
                    raise _Failed(f"MCP server {server.name!r}: {error}") from error
                env = [schema.EnvVariable(name=name, value=str(value)) for name, value in spec.get("env", {}).items()]
                args = [str(arg) for arg in spec.get("args", ())]
                found.append(schema.McpServerStdio(name=server.name, command=command, args=args, env=env))
                continue
            kind = "sse" if spec.get("type") == "sse" else "http"
            if not (able and getattr(able, kind)):
                remedy = "use a server that a command starts, or another agent"
                raise _Failed(f"it cannot use MCP servers over {kind}, as {server.name!r} is; {remedy}")
            headers = [
                schema.HttpHeader(name=name, value=str(value)) for name, value in spec.get("headers", {}).items()
            ]
            of_kind = schema.SseMcpServer if kind == "sse" else schema.HttpMcpServer
            found.append(of_kind(type=kind, name=server.name, url=spec["url"], headers=headers))  # type: ignore[arg-type]
        return found

    def _expanded(self, value: object) -> object:
        """Return a value with the variables that its texts name: `${NAME}` and `${NAME:-default}`."""
        if isinstance(value, dict):
            return {key: self._expanded(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._expanded(item) for item in value]
        if not isinstance(value, str):
            return value
        return _VARIABLE.sub(lambda found: self._environ.get(found[1]) or found[2] or "", value)

    async def _response(self, method: str, request: Coroutine[Any, Any, Any], seconds: float | None = None) -> Any:
        """Return the response to a request.

        Raises:
            _Failed: there is none, or it is an error.
            _Stopped: the run was stopped.
        """
        import acp
        from pydantic import ValidationError

        task = asyncio.ensure_future(request)
        clock = asyncio.get_running_loop().time
        until = None if seconds is None else clock() + seconds
        while not (await asyncio.wait({task}, timeout=TICK))[0]:
            if self._deadline.expired:
                raise _Stopped(method, task)
            if until is not None and clock() > until:
                task.cancel()
                remedy = "is it an ACP agent? Many programs require an argument for this, such as `acp`"
                raise self._failure(f"it did not respond to {method} within {seconds:g} s; {remedy}")
        try:
            return task.result()
        except acp.RequestError as error:
            if error.code == acp.RequestError.auth_required().code and method == "session/new":
                raise
            data = "" if error.data is None else f" ({excerpt(dumps(error.data), ERROR_LENGTH)})"
            text = f"error {error.code}: {excerpt(str(error), ERROR_LENGTH)}{data}"
            raise self._failure(f"it responded to {method} with {text}") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._failure(f"it responded to {method} with an invalid result: {where}: {first['msg']}") from None
        except OSError:  # the connection is closed
            exited = await _happens(self._process.exited, EXIT_SECONDS)
            how = f"ended ({self._process.child.status})" if exited else "closed its standard output"
            raise self._failure(f"it {how} before it responded to {method}") from None

    def _failure(self, what: str) -> _Failed:
        """Return a failure, with what the agent wrote outside of the protocol."""
        stderr = excerpt(self._stderr.text.strip(), STDERR_LENGTH, end=True)
        more = [f"its standard error ends with:\n{stderr}"] if stderr else []
        return _Failed("\n".join([what, *self.remarks.lines, *more]))

    # --- Output ------------------------------------------------------------------------------------------------------

    def on_connect(self, conn: object) -> None:
        """Do nothing: the connection is known."""

    async def session_update(self, session_id: str, update: Any, **_: object) -> None:
        """Store a part of the agent's output."""
        kind = update.session_update
        if kind in {"agent_message_chunk", "agent_thought_chunk"}:
            text = getattr(update.content, "text", None)
            if not isinstance(text, str):
                return
            name = "message" if kind == "agent_message_chunk" else "thinking"
            if not self._steps or self._steps[-1]["type"] != name:
                self._add({"type": name, "text": ""})
            self._text.write(text.encode("utf-8", "replace"))
            if name == "message":
                self._on_output(text)
        elif kind in {"tool_call", "tool_call_update"}:
            call = self._calls.get(update.tool_call_id)
            if call is None:
                call = self._calls[update.tool_call_id] = {"type": "tool_call", "title": ""}
                self._add(call)
                if len(self._calls) > MOST_STEPS:
                    del self._calls[next(iter(self._calls))]
            given = {"title": update.title, "kind": update.kind, "status": update.status}
            call.update({key: excerpt(value, TITLE_LENGTH) for key, value in given.items() if value})
            if kind == "tool_call":
                self._on_output(f"\n[{call['title']}]\n")

    def _add(self, step: dict[str, str]) -> None:
        self._end_text()
        self._steps.append(step)
        # The last steps count.
        while len(self._steps) > MOST_STEPS or self._kept > STEPS_LENGTH:
            self._kept -= len(self._steps.pop(0).get("text", ""))

    def _end_text(self) -> None:
        if self._text.size:
            self._steps[-1]["text"] = self._text.text
            self._kept += len(self._steps[-1]["text"])
            self._text = Output(TEXT_BYTES)

    # --- Requests ----------------------------------------------------------------------------------------------------

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: object
    ) -> schema.RequestPermissionResponse:
        """Choose an option by the policy of the run."""
        from acp import schema

        known = self._calls.get(tool_call.tool_call_id)
        title = tool_call.title or (known["title"] if known else "")
        policy = self._agent.permissions
        allowed = policy == "allow" or (policy == "mcp" and any(each.allows(title) for each in self._agent.servers))
        kinds = ("allow_once", "allow_always") if allowed else ("reject_once", "reject_always")
        chosen = next((option for kind in kinds for option in options if option.kind == kind), None)
        if chosen is None or self._deadline.expired:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        if not allowed:
            self._on_output(f"\n[denied: {excerpt(title, TITLE_LENGTH)}]\n")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: object
    ) -> schema.ReadTextFileResponse:
        """Return a text file of the working directory, or some of its lines."""
        from acp import schema

        with _refusing(f"cannot read {path!r}"):
            text = self._files.read(path, limit=FILE_BYTES).decode()
        if line is not None or limit is not None:
            start = max(0, (line or 1) - 1)
            text = "\n".join(text.split("\n")[start : None if limit is None else start + limit])
        return schema.ReadTextFileResponse(content=text)

    async def write_text_file(self, session_id: str, path: str, content: str, **_: object) -> None:
        """Write a text file of the working directory."""
        with _refusing(f"cannot write {path!r}"):
            self._files.write(path, content.encode("utf-8", "surrogatepass"), parents=True)

    async def create_terminal(
        self,
        *,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[schema.EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **_: object,
    ) -> schema.CreateTerminalResponse:
        """Start a command with the variables of the agent."""
        from acp import schema

        with _refusing(f"cannot run {excerpt(command, TITLE_LENGTH)!r}"):
            if len(self._terminals) >= MOST_TERMINALS:
                raise HostError(f"{MOST_TERMINALS} terminals are open; release some")
            environ = dict(self._environ) | {variable.name: variable.value for variable in env or ()}
            limit = TEXT_BYTES if output_byte_limit is None else min(output_byte_limit, TEXT_BYTES)
            folder = cwd or str(self._workdir)
            terminal = _Terminal([command, *(args or ())], environ, folder, limit)
        self._opened += 1
        name = f"terminal-{self._opened}"
        self._terminals[name] = terminal
        return schema.CreateTerminalResponse(terminal_id=name)

    async def terminal_output(self, session_id: str, terminal_id: str, **_: object) -> schema.TerminalOutputResponse:
        """Return the end of the output of a command, and its exit status."""
        from acp import schema

        terminal = self._terminal(terminal_id)
        status = terminal.status()
        return schema.TerminalOutputResponse(
            output=terminal.text(),
            truncated=terminal.is_cut,
            exit_status=schema.TerminalExitStatus(**status) if status else None,
        )

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: object
    ) -> schema.WaitForTerminalExitResponse:
        """Return the exit status of a command when it has ended."""
        from acp import schema

        terminal = self._terminal(terminal_id)
        await terminal.process.exited.wait()
        return schema.WaitForTerminalExitResponse(**terminal.status())

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: object) -> None:
        """Stop a command; its output can still be read."""
        self._terminal(terminal_id).process.child.stop(grace=GRACE)

    async def release_terminal(self, session_id: str, terminal_id: str, **_: object) -> None:
        """Stop a command and forget it."""
        process = self._terminal(terminal_id).process
        process.child.stop(grace=GRACE)
        await _happens(process.gone, GRACE + KILL_WAIT)
        if self._terminals.pop(terminal_id, None):  # else it was released by another request
            process.release(self._background)

    def _terminal(self, terminal_id: str) -> _Terminal:
        import acp

        if terminal_id not in self._terminals:
            raise acp.RequestError(INVALID_PARAMS, f"no terminal has the id {cut(terminal_id, TITLE_LENGTH)!r}")
        return self._terminals[terminal_id]
