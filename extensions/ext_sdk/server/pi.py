"""The Pi extension protocol, version 1.0, on the wire: envelopes with a type, one on each line, and calls both ways.

The specification names no transport; the RPC mode of Pi has one message on a line. What is written is valid by the
schema and for the Rust implementation of Pi, which refuses blank texts; what the latter accepts is accepted.
"""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from itertools import count
from typing import TYPE_CHECKING, NoReturn, get_args

from ext_sdk.context import HostCallFailed, HostErrorCode, HostMethod, HostOutput
from ext_sdk.core import gevals_spec
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import MessageError, RpcError
from ext_sdk.core.wire.json_codec import DuplicateKey, dumps, scan_value, skip_whitespace
from ext_sdk.polling import interruptible

from .line_limit import ID_LIMIT_BYTES, id_fits, printable, readable
from .server import Adapter
from .serving import PI_CANCEL, PI_SHUTDOWN, PI_VERSION, pi_register, pi_tool_names
from .session import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ext_sdk.context import SendHostCall
    from ext_sdk.core.wire.errors import Id
    from ext_sdk.definition import Definition
    from ext_sdk.polling import Deadline
    from ext_sdk.result import Result

    from .server import InitialIO, Server
    from .serving import Serving, Tools
    from .session import Call

Fields = dict[str, object]

OWN_TYPES = ("register", "tool_result", "slash_result", "host_call")  # which a host does not send
# Capabilities that a call of the host needs, as the host derives them: by the tool, by the operation on files.
TOOL_CAPABILITIES = {
    **dict.fromkeys(("read", "grep", "find", "ls"), "read"),
    **dict.fromkeys(("write", "edit"), "write"),
    "bash": "exec",
}
FILE_CAPABILITIES = {
    **dict.fromkeys(("read", "list", "readdir", "stat"), "read"),
    **dict.fromkeys(("write", "mkdir", "delete", "remove", "rm"), "write"),
}
# Members of the context of a call that its log messages repeat.
CORRELATION = ("scenario_id", "session_id", "run_id", "trace_id", "span_id")
CODES: dict[int, HostErrorCode] = {
    gevals_spec.PARSE_ERROR: "invalid_request",
    gevals_spec.INVALID_REQUEST: "invalid_request",
    gevals_spec.METHOD_NOT_FOUND: "invalid_request",
    gevals_spec.INVALID_PARAMS: "invalid_request",
    gevals_spec.TIMEOUT: "timeout",
}
CHUNKS_LIMIT_BYTES = 16 * 1024 * 1024  # of all chunks of a response of the host


class _OpenCall:
    """Call of the host.

    Attributes:
        id: of its envelope.
        call_id: of a tool call; "" for a slash command.
        correlation: what its log messages and host calls name.
    """

    __slots__ = ("call_id", "correlation", "id")

    def __init__(self, id: str, call_id: str, context: Mapping[str, object]) -> None:
        self.id = id
        self.call_id = call_id
        kind = {"tool_call_id": call_id} if call_id else {"slash_command_id": id}
        named = {
            name: text for name in CORRELATION if isinstance(text := context.get(name), str) and not _is_blank(text)
        }
        self.correlation = kind | named


class _HostCall:
    """Call of an operation to the host that has no complete response yet."""

    __slots__ = ("bytes", "chunks", "done", "failure", "method", "of")

    def __init__(self, method: str, of: Id) -> None:
        self.method = method
        self.of = of
        self.done = threading.Event()
        self.chunks: list[Fields] = []
        self.bytes = 0
        self.failure: HostCallFailed | None = None

    def fail(self, text: str, code: HostErrorCode = "internal", **more: object) -> None:
        """End the wait with an error."""
        details, retryable = more.get("details"), more.get("retryable") is True
        failure = HostCallFailed(f"host call {self.method!r} failed: {text}", code, retryable=retryable)
        failure.details = dict(details) if isinstance(details, dict) else {}
        self.failure = failure
        self.done.set()


class PiAdapter(Adapter):
    """Adapter of Pi 1.0: `register`, tools, slash commands, events, calls of the host, logs, errors."""

    def __init__(self, server: Server, serving: Serving, tools: Tools) -> None:
        super().__init__(server)
        self._tools = tools
        self._names = pi_tool_names(tools)
        self._fixed = bool(serving.workdir)
        self._workdir = os.path.abspath(serving.workdir or ".")  # noqa: PTH100
        self._open: dict[Id, _OpenCall] = {}
        self._numbers = count(1)  # of the own messages that respond to none
        self._lock = threading.Lock()
        self._host_calls: dict[str, _HostCall] = {}
        self._sent = 0  # calls of the host
        self._ended = False  # no more responses of the host are read

    def opening(self, initial: InitialIO) -> bytes:
        self.server.warm_up(initial.compare)
        return b"" if initial.manifest_sent else pi_register(self._tools)

    # Messages of the host

    def receive(self, payload: bytes) -> None:
        id, kind, details = "", "message", {}
        try:
            message = _parsed(payload)
            if isinstance(message.get("id"), str):
                id = str(message["id"])
            id = _text(message, "id", "")
            if message.get("version") != PI_VERSION:
                _refuse(f"version: expected {dumps(PI_VERSION)}, found {shown(message.get('version'))}")
            kind = _text(message, "type", "")
            fields = message.get("payload")
            if not isinstance(fields, dict):
                _refuse(f"payload: expected an object, found {shown(fields)}")
            if isinstance(fields.get("call_id"), str):
                details = {"call_id": fields["call_id"]}
            self._handle(kind, id, fields, payload)
        except RpcError as error:
            self.server.write(self._error(id, error, details))
        except Exception as error:  # noqa: BLE001  (a fault in one message must not end the others)
            self.server.write(self._error(id, self.server.session.fault(kind, error), details))

    def _handle(self, kind: str, id: str, fields: Fields, payload: bytes) -> None:
        # The payload shows a reference `${NAME.key}`, unless one of its characters is escaped.
        references = b"${" in payload or b"\\u" in payload
        if kind == "tool_call":
            self._tool_call(id, fields, references=references)
        elif kind == "slash_command":
            self._slash_command(id, fields, references=references)
        elif kind == "event_hook":
            self._event(fields)
        elif kind == "host_result":
            self._host_result(fields, len(payload))
        elif kind == "error":
            self._host_error(id, fields)
        elif kind in OWN_TYPES:
            _refuse(f"type: expected a message of a host, found {kind!r}, which an extension sends")
        elif kind != "log":
            known = ("tool_call", "slash_command", "event_hook", "host_result", "log", "error")
            _refuse(f"type: expected a message of a host, found {kind[:LONGEST_NAME]!r}; {suggest(kind, known)}")

    def _tool_call(self, id: str, fields: Fields, *, references: bool) -> None:
        call_id = _text(fields, "call_id")
        self._begin(call_id, _OpenCall(id, call_id, _context(fields)))
        try:
            name = _text(fields, "name")
            operation = self._names.get(name, "")
            if not operation:
                _refuse(self._refusal(name), gevals_spec.METHOD_NOT_FOUND)
            if "input" not in fields:
                _refuse("payload.input: expected an object, found nothing")
            self._tools.check(self.server.extension.operations[operation])
            call = {"operation": operation, "args": fields["input"], "context": self._place(fields)}
            self.server.execute(call_id, call, references=references)
        except RpcError as error:
            self.server.write(self.error(call_id, error))

    def _slash_command(self, id: str, fields: Fields, *, references: bool) -> None:
        """Run `/EXTENSION OPERATION {ARGUMENTS}`, or list or describe the operations."""
        key = f"slash_command {id}"
        self._begin(key, _OpenCall(id, "", _context(fields)))
        try:
            name, words = _text(fields, "name"), fields.get("args")
            words = [] if words is None else words
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                _refuse(f"payload.args: expected a list of strings, found {shown(words)}")
            if name != self._tools.name:
                text = f"unknown slash command: {name[:LONGEST_NAME]}; the only one is {self._tools.name}"
                _refuse(text, gevals_spec.METHOD_NOT_FOUND)
            words = " ".join(words).split(None, 1)
            given = fields.get("input")
            if not words or (words == ["help"] and given is None):
                self.server.write(self._ended_call(key, self._list(), {}, is_error=False))
                return
            operation = self._operation(words[-1].strip() if words[0] == "help" else words[0])
            if words[0] == "help":
                self.server.write(self._ended_call(key, self._description(operation), {}, is_error=False))
                return
            args = _arguments(operation, words[1]) if len(words) > 1 else given
            self._tools.check(self.server.extension.operations[operation])
            call = {"operation": operation, "args": args, "context": self._place(fields)}
            self.server.execute(key, call, references=references)
        except RpcError as error:
            self.server.write(self.error(key, error))

    def _event(self, fields: Fields) -> None:
        """Handle the events of `register`; others are ignored."""
        event, data = _text(fields, "event"), fields.get("data")
        if event == PI_SHUTDOWN:
            self._shutdown()
        elif event == PI_CANCEL:
            id = data.get("call_id") if isinstance(data, dict) else None
            if not isinstance(id, str) or (call := self.server.calls.find(id)) is None:
                return
            self._fail_host_calls("the call was cancelled", of=id)
            text = f"{call.operation.name}: the host has cancelled the call"
            self.server.cancel(id, self.error(id, RpcError(gevals_spec.OPERATION_FAILED, text)))

    def _shutdown(self) -> None:
        server = self.server
        self.end_of_input()
        server.close()
        for call in server.calls.unclaimed():
            text = f"{call.operation.name}: the extension was shut down before the operation ended"
            server.cancel(call.id, self.error(call.id, RpcError(gevals_spec.OPERATION_FAILED, text)))
        server.finish()

    def _begin(self, key: str, call: _OpenCall) -> None:
        """Remember a call. Raises RpcError if its result would not name it, and no other."""
        for id in (key, call.id):
            if not id_fits(id):
                _refuse(f"an id is longer than {ID_LIMIT_BYTES} bytes", gevals_spec.INVALID_REQUEST)
        if (other := self.server.calls.find(key)) is not None:
            what = f"call_id {call.call_id!r}" if call.call_id else f"id {call.id!r}"
            _refuse(f"{what} is still in use by a call of {other.operation.name!r}", gevals_spec.INVALID_REQUEST)
        self._open = {id: each for id, each in self._open.items() if self.server.calls.find(id) is not None}
        self._open[key] = call

    def _place(self, fields: Fields) -> Fields:
        """Return the context of a call. Without `--workdir`, its working directory is `cwd` of the host's context."""
        cwd = _context(fields).get("cwd")
        if self._fixed or cwd is None:
            return {"workdir": self._workdir}
        if not isinstance(cwd, str) or _is_blank(cwd) or "\0" in cwd:
            _refuse(f"payload.context.cwd: expected a directory, found {shown(cwd)}")
        return {"workdir": os.path.join(self._workdir, cwd)}  # noqa: PTH118

    def _operation(self, name: str) -> str:
        """Return the operation of a name, or of the name of a tool. Raises RpcError if it is not served."""
        operation = self._names.get(name, name)
        if operation not in self._tools.lines:
            _refuse(self._refusal(name), gevals_spec.METHOD_NOT_FOUND)
        return operation

    def _refusal(self, name: str) -> str:
        """Return why a tool or operation is not served, and the remedy."""
        operation = name.removeprefix(f"{self._tools.name}-")
        if operation in self._tools.effects or operation in self._tools.aliases:
            return self._tools.refusal(operation)
        known = self._names if name.startswith(self._tools.name) else self._tools.lines
        live = self.server.extension.operations
        return self._tools.unknown(name, {*live, *(f"{self._tools.name}-{each}" for each in live)}, known)

    def _list(self) -> str:
        """Return the operations as text."""
        name, summaries = self._tools.name, self._tools.head["summaries"]
        width = max(map(len, self._tools.lines))
        lines = [f"  {operation:<{width}}  {summaries[operation]}" for operation in self._tools.lines]
        usage = f"/{name} OPERATION {{ARGUMENTS AS JSON}} runs an operation, /{name} help OPERATION describes it."
        return "\n".join([usage, "", *lines])

    def _description(self, name: str) -> str:
        """Return the description of an operation with its arguments, and an example of a slash command."""
        from .cli import operation_text

        operation = self.server.extension.operations[name]
        text, _, _ = operation_text(operation, "").partition("\n\nexample:\n")
        if operation.example is None:
            return text
        return f"{text}\n\nexample:\n  /{self._tools.name} {name} {dumps(operation.example)}"

    # Results and logs

    def result(self, call: Call, result: Result) -> bytes:
        members = self.server.limiter.members(result)
        return self._ended_call(call.id, printable(readable(members)), members, is_error=not result.success)

    def error(self, id: Id, error: RpcError) -> bytes:
        text, code = self.server.limiter.text(error.message), CODES.get(error.code, "internal")
        return self._ended_call(id, text, {"success": False, "error": text, "code": code}, is_error=True)

    def _ended_call(self, key: Id, text: str, details: Fields, *, is_error: bool) -> bytes:
        """Return the result of a call: `content` and `details` are the members of tool results in both Pis."""
        call = self._open.get(key)
        if call is None:
            return b""
        output = {"content": [{"type": "text", "text": text}], "details": details}
        if call.call_id:
            return _line(call.id, "tool_result", {"call_id": call.call_id, "output": output, "is_error": is_error})
        return _line(call.id, "slash_result", {"output": output, "is_error": is_error})

    def _error(self, id: str, error: RpcError, details: Fields) -> bytes:
        """Return an error that is the result of no call."""
        limiter = self.server.limiter
        fields: Fields = {"code": CODES.get(error.code, "internal"), "message": limiter.text(error.message)}
        known = {name: value for name, value in details.items() if _is_usable(value)}
        if known:
            fields["details"] = known
        return _line(id if _is_usable(id) else f"error-{next(self._numbers)}", "error", fields)

    def log(self, id: Id, level: str, message: str, data: Mapping[str, object]) -> bytes:
        call = self._open.get(id)
        if call is None or self.server.calls.find(id) is None:  # it has its result already
            return b""
        params = self.server.limiter.log_params(level, message, data)
        text = str(params["message"])
        fields: Fields = {
            "schema": "pi.ext.log.v1",
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level,
            "event": "tool_call.progress" if call.call_id else "slash_command.progress",
            "message": "(no text)" if _is_blank(text) else text,
            "correlation": {"extension_id": self._tools.name, "scenario_id": "none", **call.correlation},
            "source": {"component": "extension", "pid": os.getpid()},
        }
        if "data" in params:
            fields["data"] = params["data"]
        return _line(f"log-{next(self._numbers)}", "log", fields)

    # Calls of operations to the host

    def host_calls(self, id: Id) -> SendHostCall | None:
        return partial(self._call_host, id)

    def end_of_input(self) -> None:
        self._ended = True
        self._fail_host_calls("the host has closed its end, so that no response can follow")

    def _call_host(self, of: Id, method: HostMethod, params: Mapping[str, object], deadline: Deadline) -> HostOutput:
        """Send a call, and wait for its response; in the thread of an operation."""
        pending = _HostCall(method, of)
        capability, redacted = _capability(method, params), self.server.limiter.value(dict(params))
        with self._lock:
            self._sent += 1
            call_id = f"host-{self._sent}"
            self._host_calls[call_id] = pending
        call, seconds = self._open.get(of), deadline.remaining()
        fields: Fields = {"call_id": call_id, "capability": capability, "method": method, "params": redacted}
        if seconds != float("inf"):
            fields["timeout_ms"] = int(seconds * 1000)
        if call is not None:
            fields["context"] = call.correlation
        try:
            if self._ended:
                self.end_of_input()
            elif seconds > 0:
                self.server.write(_line(f"host_call:{call_id}", "host_call", fields))
                interruptible(pending.done.wait, deadline)(seconds)
        finally:
            with self._lock:
                del self._host_calls[call_id]
        if not pending.done.is_set():
            pending.fail(f"no response within {seconds:.1f} s", "timeout")
        if pending.failure is not None:
            raise pending.failure
        return HostOutput(pending.chunks)

    def _fail_host_calls(self, text: str, *, of: Id = None) -> None:
        """End the waits of an operation, or of all."""
        with self._lock:
            pending = [call for call in self._host_calls.values() if of is None or call.of == of]
        for call in pending:
            call.fail(text)

    def _pending(self, call_id: str) -> _HostCall | None:
        """Return an open call; None if it is no longer waited for. Raises RpcError if it was never sent."""
        with self._lock:
            if call_id in self._host_calls:
                return self._host_calls[call_id]
            number = call_id.removeprefix("host-")
            known = call_id.startswith("host-") and number.isdecimal() and 0 < int(number[:18]) <= self._sent
        if not known:
            _refuse(f"payload.call_id: expected that of a host_call, found {shown(call_id)}")
        return None

    def _host_result(self, fields: Fields, size: int) -> None:
        pending = self._pending(_text(fields, "call_id"))
        if pending is None or pending.done.is_set():
            return
        pending.bytes += size
        is_error, error = fields.get("is_error"), fields.get("error")
        try:
            if not isinstance(is_error, bool):
                _refuse(f"payload.is_error: expected true or false, found {shown(is_error)}")
            if not is_error:
                self._add_chunk(pending, fields)
            elif isinstance(error, dict) and (code := _host_code(error.get("code"))):
                text = self.server.limiter.text(_text(error, "message", "payload.error."))
                pending.fail(text, code, details=error.get("details"), retryable=error.get("retryable"))
            else:
                codes = ", ".join(get_args(HostErrorCode))
                _refuse(f"payload.error: expected an object with a code ({codes}) and a message, found {shown(error)}")
        except RpcError as refusal:
            pending.fail(f"the host sent an invalid host_result: {refusal.message}")
            raise

    def _add_chunk(self, pending: _HostCall, fields: Fields) -> None:
        output, chunk = fields.get("output"), fields.get("chunk")
        if fields.get("error") is not None:
            _refuse("payload.error: expected none, because is_error is false")
        if not isinstance(output, dict):
            _refuse(f"payload.output: expected an object, found {shown(output)}")
        if chunk is None:
            chunk = {"index": 0, "is_last": True}
        if not isinstance(chunk, dict) or not isinstance(chunk.get("is_last"), bool):
            _refuse(f"payload.chunk: expected an object with index and is_last, found {shown(chunk)}")
        index, expected = chunk.get("index"), len(pending.chunks)
        if isinstance(index, bool) or index != expected:
            _refuse(f"payload.chunk.index: expected {expected}, found {shown(index)}")
        if pending.bytes > CHUNKS_LIMIT_BYTES:
            _refuse(f"payload.output: expected at most {CHUNKS_LIMIT_BYTES:,} bytes in all chunks of a call")
        pending.chunks.append(output)
        if chunk["is_last"]:
            pending.done.set()

    def _host_error(self, id: str, fields: Fields) -> None:
        """End the wait of the host call that the host refuses with an error; other errors are ignored."""
        details = fields.get("details")
        call_id = details.get("call_id") if isinstance(details, dict) else None
        for name in (call_id, id.removeprefix("host_call:")):
            pending = self._host_calls.get(name) if isinstance(name, str) else None
            if pending is not None:
                text = self.server.limiter.text(str(fields.get("message") or "the host sent an error"))
                pending.fail(text, _host_code(fields.get("code")) or "internal", details=details)


def _parsed(payload: bytes) -> Fields:
    """Return the object on a line. Raises RpcError."""
    try:
        text = payload.decode("utf-8")
        start = skip_whitespace(text, 0)
        value, end = scan_value(text, start, unique=True)
    except UnicodeDecodeError as error:
        raise RpcError(gevals_spec.PARSE_ERROR, f"not UTF-8: {error.reason} at byte {error.start}") from None
    except DuplicateKey as error:
        raise RpcError(gevals_spec.INVALID_REQUEST, f"the name {str(error)!r} is given twice") from None
    except MessageError as error:
        raise RpcError(error.code, str(error)) from None
    end = skip_whitespace(text, end)
    if end != len(text):
        _refuse(f"not JSON: more text after the value, at character {end}", gevals_spec.PARSE_ERROR)
    if not isinstance(value, dict):
        _refuse(f"expected a JSON object, found {shown(value)}", gevals_spec.INVALID_REQUEST)
    return value


def _refuse(text: str, code: int = gevals_spec.INVALID_PARAMS) -> NoReturn:
    raise RpcError(code, text)


def _is_blank(text: str) -> bool:
    return not text.strip()


def _is_usable(id: object) -> bool:
    """Return True for a text that a message can repeat as an id."""
    return isinstance(id, str) and not _is_blank(id) and id_fits(id) and id.isprintable()


def _text(fields: Fields, name: str, path: str = "payload.") -> str:
    """Return a member that is a text. Raises RpcError for other values, blank texts, and lone surrogates."""
    value = fields.get(name)
    if not isinstance(value, str) or _is_blank(value):
        _refuse(f"{path}{name}: expected a text that is not blank, found {shown(value)}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        _refuse(f"{path}{name}: expected a text in UTF-8, found a lone surrogate")
    return value


def _context(fields: Fields) -> Fields:
    """Return the context of a call, which may be any value; {} if it is not an object."""
    context = fields.get("context")
    return context if isinstance(context, dict) else {}


def _arguments(operation: str, text: str) -> object:
    """Return the arguments behind the name of an operation. Raises RpcError."""
    try:
        return _parsed(text.encode("utf-8", "replace"))
    except RpcError as error:
        expected = f'expected an object of JSON, such as {operation} {{"name": "value"}}'
        raise RpcError(gevals_spec.INVALID_PARAMS, f"{operation}: {expected}: {error.message}") from None


def _host_code(value: object) -> HostErrorCode | None:
    return next((code for code in get_args(HostErrorCode) if code == value), None)


def _capability(method: str, params: Mapping[str, object]) -> str:
    """Return the capability that a call needs. Raises HostCallFailed for a call that every host refuses."""
    member, known, other = "", {}, method
    if method == "tool":
        member, known, other = "name", TOOL_CAPABILITIES, "tool"
    elif method == "fs":
        member, known, other = "op", FILE_CAPABILITIES, ""
    elif method not in get_args(HostMethod):
        text = f"expected one of {', '.join(get_args(HostMethod))}"
        raise HostCallFailed(f"host call {method!r} failed: unknown method; {text}", "invalid_request")
    value = params.get(member) if member else method
    capability = known.get(value.strip().lower(), other) if isinstance(value, str) and value.strip() else ""
    if not capability:
        expected = f"one of {', '.join(known)}" if method == "fs" else "the name of a tool"
        text = f"{member}: expected {expected}, found {shown(value)}"
        raise HostCallFailed(f"host call {method!r} failed: {text}", "invalid_request")
    return capability


def _line(id: str, kind: str, payload: Fields) -> bytes:
    message = {"id": id, "version": PI_VERSION, "type": kind, "payload": payload}
    return dumps(message).encode("utf-8", "replace") + b"\n"  # lone surrogates become question marks


# The folder of a package for Pi


def exported(extension: Definition, tools: Tools, command: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the files of a package for the Pi coding agent by name; see `cli.EXPORTS`."""
    import json

    package = {
        "name": f"pi-ext-{extension.name.lower()}",
        "version": extension.version,
        "description": extension.description,
        "private": True,
        "keywords": ["pi-package"],
        "pi": {"extensions": ["./index.ts"]},
        "command": list(command),
    }
    bridge = files(__package__).joinpath("pi_bridge.ts").read_text(encoding="utf-8")
    return {"index.ts": bridge, "package.json": json.dumps(package, indent=2, ensure_ascii=False) + "\n"}
