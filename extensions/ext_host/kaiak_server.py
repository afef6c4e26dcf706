"""`ext-host agent`: a server of Kaiak's agent API, over stdio or a Unix socket, whose agent is a command.

Each generate_fix runs the command in a copy of the workspace, in a thread of its own; `kaiak_changes` finds what it has
changed. Only approved changes are written to the workspace.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast
from uuid import uuid4

import click
import msgspec

from ext_sdk.core import __version__
from ext_sdk.core.process.child import CommandNotFound
from ext_sdk.core.process.spawner import find_executable
from ext_sdk.core.stdio import CHUNK_BYTES, Stdio
from ext_sdk.core.text import counted, cut, suggest
from ext_sdk.core.wire.connection import Connection, Malformed
from ext_sdk.core.wire.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallError,
    MessageError,
    RpcError,
)
from ext_sdk.core.wire.frames import Junk, Overlong
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Notification, Request, encode
from ext_sdk.duration import Duration
from ext_sdk.polling import Deadline

from .agents import PROMPT
from .commands import Commands, excerpt
from .files import HostError
from .kaiak_changes import TEXT_BYTES, ChangeRefused, Changes, Patterns, TooLarge, WorkspaceCopy
from .kaiak_messages import (
    ACTIONS,
    HEAD_CODES,
    HEAD_DATA,
    STREAM,
    USER_MESSAGE,
    Code,
    Command,
    Configure,
    DeleteSession,
    GenerateFix,
    Settings,
    UserMessage,
    head_payload,
    head_settings,
    internal_error,
    merged,
    notification_of,
    now,
    parsed,
    prompt_of,
    replaced,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_sdk.core.wire.errors import Id

    from .kaiak_changes import Change

    Members = dict[str, object]

MESSAGE_BYTES = 64 * 1024**2  # of a request
MOST_CONNECTIONS = 100
MOST_SESSIONS = 1_000  # that are kept, in use or not
MOST_CHANGES = 500  # of one generate_fix
REMEMBERED = 1_000  # ids of deleted sessions, completed requests and interactions
TICK_MS = 500  # between two checks of the connection while requests run
STALL_S = 30.0  # without progress of a client that does not read
END_S = 5.0  # for the end of the requests that are cancelled
PROMPT_VARIABLE_BYTES = 100_000  # of a prompt that is passed as a variable, which Linux limits to 128 KiB
LINE_CHARACTERS = 4_096  # of output without a line feed that are streamed
FOLDER_PREFIX = "ext-host-kaiak-"
STEPS = 4  # of the progress of a request


V = TypeVar("V")


# --- State -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentOptions:
    """Options of the server; see `command`."""

    command: Sequence[str]
    dialect: str = "kaiak"
    socket: Path | None = None
    max_time: float = 300.0
    approval_timeout: float = 300.0
    default_response: str = "deny"
    max_running: int = 10


class Session:
    """Session of the specification.

    Args:
        folder: lasts as long as the session; the command may keep what it needs in its next request.

    Attributes:
        fix: the request that uses it.
        messages: number of notifications.
        allowed: the user has approved all further changes.
    """

    def __init__(self, id: str, folder: Path) -> None:
        self.id = id
        self.folder = folder
        self.fix: Fix | None = None
        self.turns = 0
        self.messages = 0
        self.allowed = False


EXECUTE = "workspace/executeCommand"
LATER = object()  # in the place of a result: the response is sent elsewhere


class Interaction:
    """Question to the user.

    Attributes:
        response: action and content; None until there is one.
    """

    def __init__(self, session: str, *, editable: bool) -> None:
        self.id = f"interaction-{uuid4()}"
        self.session = session
        self.options = ["approve", "deny", *(["edit"] if editable else [])]
        self.response: tuple[str, str | None] | None = None
        self.done = threading.Event()
        self._lock = threading.Lock()

    def accept(self, payload: Members) -> str:
        """Set the response of a client, and return its action. Raises RpcError if it is not valid or not the first."""
        action, content = ACTIONS.get(str(payload.get("action"))), payload.get("content")
        details = ""
        if action is None or (action == "edit" and action not in self.options):
            known = [name for name, meaning in ACTIONS.items() if meaning != "edit" or "edit" in self.options]
            found = cut(str(payload.get("action")), 80)
            details = f"payload.action: expected one of {', '.join(known)}, found {found!r}"
        elif action == "edit" and (not isinstance(content, str) or len(content) > TEXT_BYTES):
            details = f"payload.content: expected the text of the file, of at most {TEXT_BYTES // 1024**2} MiB"
        if action is None or details:
            raise RpcError(Code.INVALID_RESPONSE, f"Response validation failed: {details}", {"details": details})
        with self._lock:
            if self.response is not None:
                text = "Interaction already responded, by a client or by its timeout"
                raise RpcError(Code.RESPONDED, text, {"request_id": self.id, "response": self.response[0]})
            self.response = (action, content if action == "edit" and isinstance(content, str) else None)
        return action

    def use_default(self, action: str) -> bool:
        """Set the response unless there is one, and continue the request. Return False if there is one."""
        with self._lock:
            is_first = self.response is None
            self.response = self.response or (action, None)
        self.done.set()
        return is_first


class Call(NamedTuple):
    """Request of generate_fix: its id, its argument as parsed and as sent, and the configuration."""

    id: Id
    request: GenerateFix
    argument: Members
    settings: Settings


class Ended(Exception):
    """The request ends before its last stage. str() is the status of its result."""


class Fix:
    """One generate_fix.

    Attributes:
        since: start of the request.
        done: set when the session is free again.

    Raises:
        RpcError: there is no workspace, or it cannot be used.
        OSError: a folder for the copy cannot be created.
    """

    def __init__(self, server: Server, client: Client, session: Session, call: Call) -> None:
        self.id = call.id
        self.request_id = f"req-{uuid4()}"
        self.session = session
        self.since = now()
        self.done = threading.Event()
        self._server = server
        self._client = client
        self._request = call.request
        self._argument = call.argument
        self._settings = call.settings
        self._stopped = threading.Event()
        self._reason = ""
        self._interaction: Interaction | None = None
        self._messages = 0
        self._output = ""
        folder = call.settings.workspace.working_dir
        if not folder:
            details = "not configured; send kaiak/configure with the folder of the project"
            data = {"field": "workspace.working_dir", "details": details}
            raise RpcError(Code.CONFIGURATION, "Configuration error: no workspace directory", data)
        if not os.path.isdir(folder) or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):  # noqa: PTH112 - with a NUL
            details = f"{folder!r} is not a directory that can be read and written"
            raise RpcError(Code.WORKSPACE, f"Workspace access denied: {details}", {"path": folder, "details": details})
        self._workspace = Path(folder).absolute()
        self._folder = server.new_folder("run")
        self._copied = self._folder / (self._workspace.name or "workspace")
        self._deadline = Deadline(call.request.options.max_processing_time or server.options.max_time, self._stopped)
        self._copy: WorkspaceCopy | None = None
        self._changes = Changes([], [], [], [])

    def cancel(self, reason: str) -> None:
        """End it: stop the command, and propose no further change."""
        self._reason = self._reason or reason
        self._stopped.set()
        self.use_default()

    def use_default(self) -> None:
        """Give the default response to the question that waits for the user."""
        if self._interaction is not None:
            self._interaction.use_default(self._server.options.default_response)

    def run(self) -> None:
        """Perform its stages, and send the response."""
        stages = (
            (0, "initializing", "Copying the workspace", self._copy_workspace),
            (20, "processing_incidents", f"Running {Path(self._server.options.command[0]).name}", self._run_command),
            (80, "collecting_changes", "Comparing the copy with the workspace", self._compare),
            (80, "applying_fixes", "Proposing the changes", self._propose),
        )
        result: Members = {}
        failure: RpcError | None = None
        try:
            for step, (percentage, phase, description, stage) in enumerate(stages, 1):
                self._progress(percentage, phase, description, step)
                stage()
            self._progress(100, "completing", "All changes are processed", STEPS)
            result = self._result("completed")
        except Ended as status:
            result = self._result(str(status))
        except RpcError as error:
            failure = RpcError(error.code, error.message, {**self._about(), **cast("Members", error.data or {})})
        except TooLarge as error:
            remedy = "name generated folders in workspace.exclude_patterns"
            failure = RpcError(Code.EXHAUSTED, f"Resource exhausted: {error}; {remedy}", self._about())
        except OSError as error:
            text = f"Workspace access denied: {error.strerror or error}: {error.filename or self._workspace}"
            failure = RpcError(Code.WORKSPACE, text, self._about())
        except Exception as error:  # noqa: BLE001 - any defect gets a response
            failure = internal_error(error)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._server.release(self)
        self._client.finish(self, result, failure)

    def _proceed(self) -> None:
        """Raise Ended or RpcError if the request is to end."""
        if self._stopped.is_set():
            if self._reason == "deleted":
                raise RpcError(Code.TERMINATED, "Session already terminated: it was deleted")
            if self._server.head:
                raise RpcError(Code.TIMEOUT, f"AI agent error: {self._reason}")
            raise Ended("cancelled")
        if self._deadline.expired:
            seconds = self._deadline.seconds
            text = f"Tool execution timeout: no end within {seconds:g} s; nothing was changed"
            raise RpcError(Code.TIMEOUT, text, {"max_processing_time": seconds})

    def _copy_workspace(self) -> None:
        settings = self._settings.workspace
        patterns = Patterns(settings.include_patterns, settings.exclude_patterns)
        self._copy = WorkspaceCopy(self._workspace, self._copied, patterns, self._proceed)
        for path, reason in self._copy.skipped[:20]:
            self._system(f"{path} was not copied: {reason}", "warning")

    def _compare(self) -> None:
        assert self._copy
        self._changes = self._copy.changes()
        self._deadline = Deadline(None, self._stopped)  # the user may take longer
        if len(self._changes.proposals) > MOST_CHANGES:
            found = counted(len(self._changes.proposals), "file")
            raise TooLarge(f"the command has changed {found}, over the limit of {MOST_CHANGES}")

    def _run_command(self) -> None:
        prompt = self._to_copy(prompt_of(self._argument))
        about: Members = self._about() | {"configuration": msgspec.to_builtins(self._settings)}
        request = replaced({**self._argument, **about}, self._to_copy)
        files = {name: self._folder / name for name in ("prompt.txt", "request.json")}
        data = prompt.encode("utf-8", "surrogatepass")
        files["prompt.txt"].write_bytes(data)
        files["request.json"].write_text(json.dumps(request, indent=1))
        environ = {
            PROMPT: prompt if len(data) <= PROMPT_VARIABLE_BYTES else "\0",
            "EXT_HOST_PROMPT_FILE": str(files["prompt.txt"]),
            "EXT_HOST_REQUEST_FILE": str(files["request.json"]),
            "EXT_HOST_SESSION": self.session.id,
            "EXT_HOST_SESSION_FOLDER": str(self.session.folder),
            "EXT_HOST_MAX_TURNS": str(self._settings.session.max_turns),
        }
        # A NUL, and half a character that JSON allows, cannot be in a variable.
        environ = {
            name: text
            for name, text in environ.items()
            if "\0" not in text and text == text.encode("utf-8", "ignore").decode()
        }
        commands = Commands()
        try:
            end = commands.run(
                self._server.options.command,
                env={**os.environ, **environ},
                folder=self._copied,
                deadline=self._deadline,
                stdin=data,
                on_output=self._on_output,
            )
        except HostError as error:
            raise RpcError(Code.AGENT, f"Agent initialization failed: {error}") from None
        finally:
            commands.close()
        self._write_output(final=True)
        self._proceed()
        if failure := end.failure:
            name = Path(self._server.options.command[0]).name
            message = f"{name} failed: {failure}; its changes are discarded"
            tail = excerpt(self._to_workspace(end.output.text).strip(), 1000, end=True)
            if self._server.head:
                raise RpcError(Code.TIMEOUT, f"AI agent error: {message}", {"output": tail})
            content = {"error_code": "TOOL_EXECUTION_FAILED", "message": message, "details": tail, "recoverable": True}
            self.stream("error", content | {"suggested_action": "see the output of the command"})
            raise Ended("failed")

    def _to_copy(self, text: str) -> str:
        """Replace the path of the workspace by that of the copy, so that the command does not change the workspace."""
        for path in {self._workspace, self._workspace.resolve()} - {Path("/")}:
            for own, copied in ((str(path), str(self._copied)), (path.as_uri(), self._copied.as_uri())):
                # Not within another name, as in /project-2; a full stop may end a sentence.
                text = re.sub(rf"{re.escape(own)}(?![\w-]|\.\w)", copied.replace("\\", r"\\"), text)
        return text

    def _to_workspace(self, text: str) -> str:
        text = text.replace(self._copied.as_uri(), self._workspace.as_uri())
        return text.replace(str(self._copied), str(self._workspace))

    def _on_output(self, text: str) -> None:
        self._output += text
        self._write_output(final=False)

    def _write_output(self, *, final: bool) -> None:
        """Stream complete lines; a line of JSON with a stream notification is sent as that."""
        *lines, rest = self._output.split("\n")
        if final or len(rest) > LINE_CHARACTERS:
            lines, rest = ([*lines, rest] if rest else lines), ""
        else:
            lines = [f"{line}\n" for line in lines]
        self._output = rest
        text = ""
        for line in lines:
            notification = notification_of(line) if line.startswith('{"kaiak/stream/') else None
            if notification:
                self._say(text)
                self.stream(notification[0], cast("Members", replaced(notification[1], self._to_workspace)))
                text = ""
            else:
                text += line
        self._say(text)
        if final and not self._server.head:
            self.stream("ai_response", {"text": "", "partial": False})  # the end of the text

    def _say(self, text: str) -> None:
        if text:
            self.stream("ai_response", {"text": self._to_workspace(text), "partial": True})

    def _propose(self) -> None:
        """Propose the changes one after the other, and apply those that are approved."""
        changes = self._changes
        for path, reason in changes.refused:
            self._failed_file(path, reason)
        discarded = "discarded by include_patterns or exclude_patterns: {}"
        direct = "changed in the workspace, not in the copy: {}; if the command did this, let it use relative paths"
        for text, paths in ((discarded, changes.outside), (direct, changes.direct)):
            if paths:
                self._system(text.format(cut(", ".join(paths[:10]), 500)), "warning")
        failed: list[Members] = [{"file_path": path, "details": reason} for path, reason in changes.refused]
        counts = {"applied": 0, "denied": 0, "failed": len(failed)}
        total = len(changes.proposals)
        for number, change in enumerate(changes.proposals):
            description = f"Change {number + 1} of {total}: {change.path}"
            self._progress(80 + 20 * number // total, "applying_fixes", description, STEPS)
            verdict, details = self._propose_one(change)
            counts[verdict] += 1
            if verdict == "failed":
                failed.append({"file_path": change.path, "details": details})
        listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        summary = f"{counted(sum(counts.values()), 'change')}: {listed}"
        self._system(summary if listed else "the command has changed no file")
        if failed:
            text = f"File modification failed: {cut(str(failed[0]['file_path']), 200)}: {failed[0]['details']}"
            raise RpcError(Code.FILE_FAILED, text, {"files": failed})

    def _propose_one(self, change: Change) -> tuple[str, str]:
        """Return applied, denied or failed, and why."""
        tool = "delete_file" if change.operation == "delete" else "write_file"
        permissions = self._settings.permissions.tool_permissions
        permission = permissions.get(tool) or permissions.get("write_file", "approve")
        if permission == "deny":
            details = "permissions.tool_permissions denies it"
            content = {"error_code": "PERMISSION_DENIED", "message": f"{tool} is denied: {change.path} is not changed"}
            content |= {"details": details, "suggested_action": f"configure {tool} as approve or allow"}
            self.stream("error", content | {"recoverable": True})
            return "denied", details
        safe = self._request.options.auto_apply_safe_fixes and change.risk == "low"
        asks = permission == "approve" and not safe and not self.session.allowed
        proposal = f"proposal-{uuid4()}"
        about = {"proposal_id": proposal, "file_path": change.path, "operation": change.operation, "diff": change.diff}
        self.stream("file_modification", about | {"risk_level": change.risk, "requires_approval": asks}, proposal)
        interaction = Interaction(self.session.id, editable=change.text)
        if self._server.head:
            interaction.id = proposal  # the later server uses the id of the tool call
        if asks:
            self._ask(interaction, change, proposal)
        action, text = interaction.response or ("approve", None)
        self.session.allowed = self.session.allowed or action == "always_allow"
        self._proceed()
        began = time.monotonic()
        details = "the user has denied it" if action == "deny" else ""
        try:
            if action != "deny" and self._copy:
                self._copy.apply(change, text)
        except ChangeRefused as error:
            details = str(error)
        result: Members = {"success": not details, "output": None, "error": details or None}
        result["execution_time"] = round(1000 * (time.monotonic() - began))
        call: Members = {"tool_name": tool, "operation": change.operation, "parameters": {"file_path": change.path}}
        self.stream("tool_call", call | {"status": "failed" if details else "completed", "result": result}, proposal)
        if details and action != "deny":
            self._failed_file(change.path, details)
            return "failed", details
        return ("denied", details) if details else ("applied", "")

    def _ask(self, interaction: Interaction, change: Change, proposal: str) -> None:
        """Wait for the response of the user; the default one replaces it when the time is over."""
        options = self._server.options
        self._server.remember(interaction)
        self._interaction = interaction
        verb = {"create": "Create", "modify": "Apply this fix to", "delete": "Delete"}[change.operation]
        content: Members = {"interaction_id": interaction.id, "interaction_type": "file_approval"}
        content |= {"prompt": f"{verb} {change.path}?", "options": interaction.options}
        content |= {"default_response": options.default_response, "timeout": options.approval_timeout}
        self.stream("user_interaction", content | {"proposal_id": proposal, "file_path": change.path}, proposal)
        if self._stopped.is_set() or self._client.cannot_respond:
            self.use_default()
        if not interaction.done.wait(options.approval_timeout) and interaction.use_default(options.default_response):
            text = f"no response to {interaction.id} within {options.approval_timeout:g} s: {options.default_response}"
            self._system(text, "warning")
        self._interaction = None

    def _failed_file(self, path: str, reason: str) -> None:
        content = {
            "error_code": "FILE_MODIFICATION_FAILED",
            "message": f"{cut(path, 500)}: {reason}",
            "recoverable": True,
        }
        self.stream("error", content | {"details": reason, "suggested_action": "send generate_fix again"})

    def _progress(self, percentage: int, phase: str, description: str, step: int) -> None:
        steps: Members = {"current_step": f"Step {step} of {STEPS}", "total_steps": STEPS}
        self.stream("progress", {"percentage": percentage, "phase": phase, "description": description} | steps)

    def _system(self, message: str, level: str = "info") -> None:
        self.stream("system", {"message": message, "level": level, "component": "ext-host"})

    def _about(self) -> Members:
        return {"session_id": self.session.id, "request_id": self.request_id}

    def _result(self, status: str) -> Members:
        if self._server.head:
            return self._about() | {"created_at": self.since}
        count = len(self._request.incidents)
        return self._about() | {"status": status, "incident_count": count, "completed_at": now()}

    def stream(self, kind: str, content: Members, about: str = "") -> None:
        """Send a notification."""
        self._messages += 1
        self.session.messages += 1
        params = self._about()
        if self._server.head:
            kind, payload = head_payload(kind, content, about)
            self._client.notify(HEAD_DATA, params | {"kind": kind, "payload": payload})
        else:
            params |= {"message_id": f"msg-{self._messages}", "timestamp": now(), "content": content}
            self._client.notify(STREAM + kind, params)


# --- Connections -----------------------------------------------------------------------------------------------------


class Client:
    """One connection. Its thread reads; the threads of its requests write too.

    Args:
        input: descriptor to read from.
        output: descriptor to write to; the same one for a socket.

    Attributes:
        settings: configuration; at first, the last one of any client.
        cannot_respond: standard input has ended, so that no response to a question can come.
        exit_code: after `exit` of LSP.
    """

    def __init__(self, server: Server, input: int, output: int) -> None:
        self.settings = server.settings
        self.cannot_respond = False
        self.exit_code = 0
        self._server = server
        self._input = input
        self._output = output
        self._connection = Connection(FRAMINGS["content-length"], limit=MESSAGE_BYTES)
        self._lock = threading.Lock()
        self._fixes: dict[tuple[type, Id], Fix] = {}
        self._gone = False  # it does not read, or has closed
        self._ended = False  # by `exit`
        self._shut_down = False
        self._in_junk = False
        self._handlers: dict[type, Callable[[Any], None]] = {
            Request: self._answer,
            Notification: self._notified,
            Malformed: self._refuse_message,
            Junk: self._refuse_junk,
            Overlong: self._refuse_junk,
        }
        commands: dict[str, Callable[[Id, object], object]] = {
            "kaiak/configure": self._configure,
            "kaiak/generate_fix": self._generate_fix,
            "kaiak/delete_session": lambda _, argument: server.delete_session(argument),
        }
        self._commands = {name: handler for name, handler in commands.items() if name in server.commands}
        self._methods: dict[str, Callable[[Id, object], object]] = {
            "initialize": self._initialize,
            "shutdown": self._shutdown,
            USER_MESSAGE: self._user_message,
            **({} if server.head else {EXECUTE: self._execute}),
            **({name: partial(self._unwrap, name) for name in self._commands} if server.head else {}),
        }

    def run(self) -> None:
        """Read until the client, or the server, ends the connection; then cancel its requests."""
        poll = select.poll()
        poll.register(self._input, select.POLLIN)
        poll.register(self._server.stopping, select.POLLIN)
        while self._is_open():
            ready = [descriptor for descriptor, _ in poll.poll(TICK_MS if self._fixes else None)]
            if self._server.stopping in ready:
                break
            if not ready:  # the thread of a request may have found that the client does not read
                continue
            try:
                data = os.read(self._input, CHUNK_BYTES)
            except OSError:
                data = b""
            if not data:
                self._wait_for_fixes()
                break
            self._connection.receive_data(data)
            while self._is_open() and (event := self._connection.next_event()):
                self._in_junk = self._in_junk and isinstance(event, Junk)
                if handler := self._handlers.get(type(event)):
                    handler(event)
        self._gone = True
        for fix in list(self._fixes.values()):
            fix.cancel("the client has gone")
        until = time.monotonic() + END_S
        for fix in list(self._fixes.values()):
            fix.done.wait(max(0.0, until - time.monotonic()))

    def _is_open(self) -> bool:
        return not self._ended and not self._gone

    def _wait_for_fixes(self) -> None:
        """Complete the requests of a client that has sent its last byte but may still read, as in a shell pipe."""
        self.cannot_respond = self._input != self._output
        if self.cannot_respond:
            for fix in list(self._fixes.values()):
                fix.use_default()
        poll = select.poll()
        poll.register(self._output, 0)  # reports only that the client has closed its end
        poll.register(self._server.stopping, select.POLLIN)
        while self._fixes and not poll.poll(100):
            pass

    def _refuse_junk(self, junk: Junk) -> None:
        """Report bytes outside of frames, once until the next frame."""
        if self._in_junk or not junk.wire.strip():
            return
        self._in_junk = True
        if isinstance(junk, Overlong):
            self._refuse(INVALID_REQUEST, f"Invalid request: a message over {MESSAGE_BYTES // 1024**2} MiB")
        else:
            self._refuse(PARSE_ERROR, f"Parse error: expected Content-Length: N, found {junk.reason}")

    def _refuse_message(self, malformed: Malformed) -> None:
        if isinstance(malformed.error, MessageError):
            self._refuse(malformed.error.code, str(malformed.error), malformed.error.id)

    def _refuse(self, code: int, text: str, id: Id = None) -> None:
        self._write(FRAMINGS["content-length"].encode(encode(ErrorResponse(id, RpcError(code, text)))))

    def _notified(self, event: Notification) -> None:
        params = event.params if isinstance(event.params, dict) else {}
        id = params.get("id")
        if event.method == "exit":
            self._ended, self.exit_code = True, 0 if self._shut_down else 1
        elif event.method == "$/cancelRequest" and isinstance(id, (str, int)):
            if fix := self._fixes.get((type(id), id)):
                fix.cancel("cancelled")
        elif event.method == USER_MESSAGE:  # Kaiak's command line sends it so
            with suppress(RpcError):
                self._server.user_message(params)[1]()

    def _answer(self, request: Request) -> None:
        handler = self._methods.get(request.method)
        try:
            if self._shut_down:
                raise RpcError(INVALID_REQUEST, "Invalid request: the client has sent shutdown")
            if not handler:
                other = "kaiak" if self._server.head else "kaiak-head"
                is_other = request.method in {EXECUTE, "kaiak/generate_fix", "kaiak/delete_session"}
                hint = f"; the server uses the other dialect, start it with --dialect {other}" if is_other else ""
                raise RpcError(METHOD_NOT_FOUND, f"Method not found{hint}", {"method": request.method})
            result = handler(request.id, {} if request.params is None else request.params)
        except RpcError as error:
            self._respond(request.id, {}, error)
        except Exception as error:  # noqa: BLE001 - any defect gets a response
            self._respond(request.id, {}, internal_error(error))
        else:
            if result is not LATER:
                self._respond(request.id, result, None)

    def _initialize(self, _id: Id, _params: object) -> object:
        capabilities = {"executeCommandProvider": {"commands": [] if self._server.head else list(self._commands)}}
        return {"capabilities": capabilities, "serverInfo": {"name": "ext-host", "version": __version__}}

    def _shutdown(self, _id: Id, _params: object) -> None:
        self._shut_down = True

    def _execute(self, id: Id, params: object) -> object:
        """Perform a command of the specification."""
        command = parsed(params, Command)
        if handler := self._commands.get(command.command):
            return handler(id, command.arguments[0])
        name = command.command
        text = f"Invalid params: unknown command {cut(name, 80)!r}; {suggest(name, self._commands)}"
        details = f"expected one of {', '.join(self._commands)}"
        raise RpcError(INVALID_PARAMS, text, {"field": "command", "details": details})

    def _unwrap(self, name: str, id: Id, params: object) -> object:
        """Perform a command of the later dialect; Kaiak's command line sends the argument as `inner`."""
        return self._commands[name](id, params.get("inner", params) if isinstance(params, dict) else params)

    def _generate_fix(self, id: Id, argument: object) -> object:
        fix = self._server.begin_fix(self, id, argument)
        self._fixes[type(id), id] = fix
        threading.Thread(target=fix.run, daemon=True, name=fix.request_id).start()
        return LATER

    def _user_message(self, id: Id, params: object) -> object:
        """Respond as the later server, which reports refusals in the result; then continue the request."""
        try:
            text, proceed = self._server.user_message(params)
        except RpcError as error:
            if not self._server.head:
                raise
            return {"success": False, "message": error.message}
        self._respond(id, {"success": True, "message": text, "notification_id": str(uuid4())}, None)
        proceed()
        return LATER

    def _configure(self, _id: Id, params: object) -> object:
        argument = parsed(params, Configure)
        base = Settings() if argument.reset_existing else self.settings
        wanted = merged(msgspec.to_builtins(base), argument.configuration)
        settings = parsed(wanted, Settings, Code.CONFIGURATION, "Configuration error")
        folder = settings.workspace.working_dir
        if folder is not None and not os.path.isdir(folder):  # noqa: PTH112 - a text with a NUL is not a folder
            details = f"Directory {folder!r} does not exist"
            data = {"field": "workspace.working_dir", "details": details}
            raise RpcError(Code.CONFIGURATION, "Configuration error: Invalid workspace directory", data)
        self.settings = self._server.settings = settings
        applied = msgspec.to_builtins(settings)
        warnings = [
            f"{path} has no effect: the members are {', '.join(known)}"
            for path, value, known in (
                ("", argument.configuration, applied),
                *(
                    (f"{name}.", argument.configuration.get(name), applied[name])
                    for name in ("workspace", "session", "permissions")
                ),
            )
            for path in ([f"{path}{name}" for name in value if name not in known] if isinstance(value, dict) else [])
        ]
        warnings += [
            f"permissions.tool_permissions.{name} has no effect: the command runs as it is; write_file and delete_file "
            "decide about its changes"
            for name in settings.permissions.tool_permissions
            if name not in {"write_file", "delete_file"}
        ]
        if settings.session.retry_config:
            warnings.append("session.retry_config has no effect: the command runs once for each generate_fix")
        return {"status": "success", "message": "Agent configured successfully", "configuration_applied": applied,
                "warnings": warnings, "timestamp": now()}  # fmt: skip

    def finish(self, fix: Fix, result: object, failure: RpcError | None) -> None:
        """Send the response to a generate_fix."""
        self._respond(fix.id, result, failure)
        if self._fixes.get((type(fix.id), fix.id)) is fix:  # the client may use the id again
            del self._fixes[type(fix.id), fix.id]
        fix.done.set()

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._write(self._connection.notification(method, params))

    def _respond(self, id: Id, result: object, error: RpcError | None) -> None:
        if error and self._server.head:
            error = RpcError(HEAD_CODES.get(error.code, error.code), error.message, error.data)
        with suppress(CallError):
            self._write(self._connection.error(id, error) if error else self._connection.response(id, result))

    def _write(self, data: bytes) -> None:
        """Write all bytes, unless the client has gone. A client that does not read for some time has gone."""
        poll = select.poll()
        poll.register(self._output, select.POLLOUT)
        with self._lock:
            give_up = time.monotonic() + STALL_S
            while data and not self._gone:
                if poll.poll(100):
                    with suppress(OSError):
                        data = data[os.write(self._output, data[: select.PIPE_BUF]) :]  # what fits does not block
                        give_up = time.monotonic() + STALL_S
                        continue
                    self._gone = True
                elif time.monotonic() > give_up or self._server.is_stopping:
                    self._gone = True
        if self._gone:
            for fix in list(self._fixes.values()):
                fix.cancel("the client has gone")


class Server:
    """Sessions, and what all clients share.

    Attributes:
        head: the dialect is that of the later server.
        commands: names of the commands.
        settings: the last configuration.
        stopping: descriptor that is readable when the server is to stop.
    """

    def __init__(self, options: AgentOptions, folder: Path) -> None:
        self.options = options
        self.head = options.dialect == "kaiak-head"
        configure = () if self.head else ("kaiak/configure",)
        self.commands = (*configure, "kaiak/generate_fix", "kaiak/delete_session")
        self.settings = Settings()
        self.is_stopping = False
        self.stopping, self._stop = os.pipe()
        self._folder = folder
        self._folders = 0
        self._lock = threading.RLock()
        self._sessions: dict[str, Session] = {}
        self._deleted: OrderedDict[str, None] = OrderedDict()
        self._completed: OrderedDict[str, str] = OrderedDict()  # request to session
        self._interactions: OrderedDict[str, Interaction] = OrderedDict()

    def stop(self) -> None:
        """End all connections and requests."""
        if not self.is_stopping:
            self.is_stopping = True
            os.close(self._stop)

    def new_folder(self, kind: str) -> Path:
        """Create a folder that lasts until the server stops, at most. Raises OSError."""
        with self._lock:
            self._folders += 1
            folder = self._folder / f"{kind}-{self._folders}"
        folder.mkdir(mode=0o700)
        return folder

    def begin_fix(self, client: Client, id: Id, argument: object) -> Fix:
        """Return a new request, which uses its session. Raises RpcError."""
        request = parsed(argument, GenerateFix)
        settings = head_settings(request, self.settings) if self.head else client.settings
        name = request.session_id or str(uuid4())
        with self._lock:
            session = self._sessions.get(name)
            if session and session.fix:
                raise self._in_use(session)
            if self.head and request.session_id and not session:
                raise RpcError(Code.SESSION_NOT_FOUND, "Session not found", {"session_id": name})
            exhausted = ""
            if sum(each.fix is not None for each in self._sessions.values()) >= self.options.max_running:
                exhausted = f"{counted(self.options.max_running, 'session')} in use, the limit; try again later"
            elif session and session.turns >= settings.session.max_turns:
                exhausted = f"the session has used its {counted(session.turns, 'turn')} (session.max_turns); delete it"
            elif not session and len(self._sessions) >= MOST_SESSIONS:
                exhausted = f"{counted(MOST_SESSIONS, 'session')} exist; delete some with kaiak/delete_session"
            if exhausted:
                raise RpcError(Code.EXHAUSTED, f"Resource exhausted: {exhausted}", {"session_id": name})
            try:
                session = session or Session(name, self._folder / f"session-{uuid4()}")
                fix = Fix(self, client, session, Call(id, request, cast("Members", argument), settings))
                session.folder.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                text = f"Session creation failed: {error.strerror}: {error.filename}"
                raise RpcError(Code.SESSION_CREATION, text, {"session_id": name}) from None
            session.fix = fix
            session.turns += 1
            self._sessions[name] = session
            self._deleted.pop(name, None)
            return fix

    def _in_use(self, session: Session) -> RpcError:
        data = {"session_id": session.id, "in_use_since": session.fix.since if session.fix else now()}
        return RpcError(Code.IN_USE, "Session is currently in use by another client", data)

    def release(self, fix: Fix) -> None:
        """Free the session of a request that has ended."""
        with self._lock:
            fix.session.fix = None
            _remember(self._completed, fix.request_id, fix.session.id)

    def remember(self, interaction: Interaction) -> None:
        """Accept responses to an interaction."""
        with self._lock:
            _remember(self._interactions, interaction.id, interaction)

    def delete_session(self, value: object) -> object:
        """Delete a session and its files. Raises RpcError."""
        argument = parsed(value, DeleteSession)
        id, options = argument.session_id, argument.cleanup_options or {}
        with self._lock:
            session = self._sessions.get(id)
            fix = session.fix if session else None
        if not session:
            if not self.head:
                raise self._unknown_session(id)
            return self._deleted_result(id, removed=False, messages=0, files=0, errors=["Session not found"])
        if fix:
            if not (argument.force or options.get("force")):
                raise self._in_use(session)
            fix.cancel("deleted")
            fix.done.wait(END_S)
        with self._lock:
            if session.fix:
                raise self._in_use(session)
            self._sessions.pop(id, None)
            _remember(self._deleted, id, None)
        files = 0
        errors: list[str] = []
        if argument.cleanup_files and options.get("cleanup_temp_files") is not False:
            files = sum(len(names) for _, _, names in os.walk(session.folder))
            shutil.rmtree(session.folder, onerror=lambda *failure: errors.append(str(failure[2][1])))
        return self._deleted_result(id, removed=True, messages=session.messages, files=files, errors=errors)

    def _deleted_result(self, id: str, *, removed: bool, messages: int, files: int, errors: list[str]) -> object:
        result: Members = {"session_id": id, "status": "deleted", "deleted_at": now()}
        if self.head:
            cleaned = {"session_removed": removed, "temp_files_cleaned": removed, "logs_preserved": True}
            return result | {"cleanup_results": cleaned | {"warnings": errors, "files_removed": files}}
        summary = {"session_removed": removed, "messages_cleaned": messages, "temp_files_removed": files}
        return result | {"cleanup_summary": summary | {"errors": errors}}

    def _unknown_session(self, id: str) -> RpcError:
        if id in self._deleted:
            return RpcError(Code.TERMINATED, "Session already terminated", {"session_id": id})
        return RpcError(Code.SESSION_NOT_FOUND, "Session not found", {"session_id": id})

    def user_message(self, value: object) -> tuple[str, Callable[[], object]]:
        """Accept a response to an interaction, or a cancellation. Raises RpcError.

        Returns:
            Text for the client, and a function that continues or cancels the request.
        """
        message = parsed(value, UserMessage)
        payload = message.payload or {}
        kind = message.kind or message.message_type or ""
        about = payload.get("request_id") or payload.get("interaction_id")
        with self._lock:
            session = self._sessions.get(message.session_id)
            if not session:
                raise self._unknown_session(message.session_id)
            kinds = {
                "control_signal": self._signalled,
                "user_input": self._refuse_input,
                "elicitation_response": self._refuse_input,
            }
            return kinds.get(kind, self._responded)(session, payload, about)

    def _responded(self, session: Session, payload: Members, about: object) -> tuple[str, Callable[[], object]]:
        interaction = self._interactions.get(about) if isinstance(about, str) else None
        if not interaction or interaction.session != session.id:
            raise RpcError(Code.INTERACTION_NOT_FOUND, "Interaction not found", {"request_id": about})
        return f"Response submitted: {interaction.accept(payload)}", interaction.done.set

    def _refuse_input(self, session: Session, _payload: Members, _about: object) -> NoReturn:
        if not session.fix:
            raise _not_ready(session)
        details = "the command reads no input while it runs; send tool_confirmation or control_signal"
        raise RpcError(Code.INVALID_RESPONSE, f"Response validation failed: {details}", {"details": details})

    def _signalled(self, session: Session, payload: Members, request_id: object) -> tuple[str, Callable[[], object]]:
        signal = payload.get("signal") or payload.get("action") or "cancel"
        if signal != "cancel":
            text = f"Response validation failed: unknown signal {cut(str(signal), 80)!r}; the only one is cancel"
            raise RpcError(Code.INVALID_RESPONSE, text, {"signal": signal})
        if request_id is not None and (not session.fix or session.fix.request_id != request_id):
            if self._completed.get(str(request_id)) == session.id:
                raise RpcError(Code.REQUEST_COMPLETED, "Request already completed", {"request_id": request_id})
            raise RpcError(Code.REQUEST_NOT_FOUND, "Request not found", {"request_id": request_id})
        if not session.fix:
            raise _not_ready(session)
        return "Request cancelled", partial(session.fix.cancel, "cancelled")


def _not_ready(session: Session) -> RpcError:
    return RpcError(Code.NOT_READY, "Session not ready: it processes no request", {"session_id": session.id})


def _remember(known: OrderedDict[str, V], id: str, value: V) -> None:
    known[id] = value
    while len(known) > REMEMBERED:
        known.popitem(last=False)


# --- Command line ----------------------------------------------------------------------------------------------------


def serve(options: AgentOptions) -> int:
    """Serve until the input ends, or a signal. Return the exit code. Raises HostError."""
    for lock in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*/lock"):
        with suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails unless its server was killed
            shutil.rmtree(lock.parent, ignore_errors=True)
    received: list[int] = []
    with (
        tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True) as folder,
        Path(folder, "new-lock").open("wb") as own,
    ):
        fcntl.flock(own, fcntl.LOCK_EX)
        Path(folder, "new-lock").rename(Path(folder, "lock"))
        server = Server(options, Path(folder))

        def on_signal(number: int, _frame: object) -> None:
            received.append(number)
            server.stop()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, on_signal)
        code = 0
        if options.socket:
            _serve_socket(server, options.socket)
        else:
            stdio = Stdio.claim()
            client = Client(server, stdio.input, stdio.output)
            client.run()
            code = client.exit_code
        server.stop()
    return 128 + received[0] if received else code


def _serve_socket(server: Server, path: Path) -> None:
    """Accept connections of this user until the server is to stop. Raises HostError."""
    if path.is_socket():  # of a server that has exited
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(path))
            raise HostError(f"--socket {path}: another server listens there; stop it or use another path")
        path.unlink()
    threads: list[threading.Thread] = []
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
            listener.listen()
        except OSError as error:
            hint = "; use a shorter path" if "too long" in str(error) else ""
            raise HostError(f"--socket {path}: {error.strerror or error}{hint}") from None
        finally:
            os.umask(before)
        sys.stderr.write(f"listening on unix:{path}\n")
        sys.stderr.flush()
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(server.stopping, select.POLLIN)
        while all(descriptor == listener.fileno() for descriptor, _ in poll.poll()):
            try:
                connection, _ = listener.accept()
            except OSError:  # the client has gone, or there are no more descriptors
                time.sleep(0.1)
                continue
            threads = [thread for thread in threads if thread.is_alive()]
            if len(threads) >= MOST_CONNECTIONS:
                connection.close()
                continue
            threads.append(threading.Thread(target=_serve_connection, args=(server, connection), daemon=True))
            threads[-1].start()
    with suppress(OSError):
        path.unlink()
    until = time.monotonic() + 2 * END_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))


def _serve_connection(server: Server, connection: socket.socket) -> None:
    with connection:
        Client(server, connection.fileno(), connection.fileno()).run()


def _seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    try:
        seconds = Duration.parse(text).seconds
        return int(seconds) if seconds == int(seconds) else seconds
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("agent", context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option("--protocol", type=click.Choice(["kaiak"]), required=True, help="Protocol of the server.")
@click.option(
    "--dialect",
    type=click.Choice(["kaiak", "kaiak-head"]),
    default="kaiak",
    show_default=True,
    help="kaiak: the agent API, as specified. kaiak-head: that of the later server, which Kaiak's CLI uses.",
)
@click.option("--socket", "path", type=click.Path(), metavar="PATH", help="Unix socket to listen on. Default: stdio.")
@click.option(
    "--max-time", metavar="DURATION", callback=_seconds, default="5m", show_default=True,
    help="Limit of a run of COMMAND, unless the request has max_processing_time.",
)  # fmt: skip
@click.option(
    "--approval-timeout",
    metavar="DURATION",
    callback=_seconds,
    default="5m",
    show_default=True,
    help="Maximum wait for an approval.",
)
@click.option(
    "--default-response", type=click.Choice(["approve", "deny"]), default="deny", show_default=True,
    help="Response that replaces an approval that does not come.",
)  # fmt: skip
@click.option(
    "--max-running", type=click.IntRange(1, 100), default=10, show_default=True,
    help="Maximum number of sessions that are in use at the same time.",
)  # fmt: skip
def command(words: Sequence[str], path: str | None, **given: Any) -> int:
    """Serve an agent: each request runs COMMAND, and proposes the files that it changes.

    COMMAND runs in a copy of the workspace, with the prompt as its input, in EXT_HOST_PROMPT and in the file
    EXT_HOST_PROMPT_FILE; EXT_HOST_REQUEST_FILE has the complete request. Its output is streamed. A change is written to
    the workspace when the client approves it.

    \b
      ext-host agent --protocol kaiak -- claude -p                       on standard input and output
      ext-host agent --protocol kaiak --socket /tmp/kaiak.sock -- ./fix  on a Unix socket

    Exit codes: 0 at the end of the input, 2 for a wrong command line, 128 + N if signal N has ended it.
    """
    name, *rest = words
    if "/" in name:
        name = os.path.abspath(name)  # noqa: PTH100 - COMMAND runs in another folder; a link stays one
    try:
        find_executable(name, os.environ.get("PATH", os.defpath))
    except CommandNotFound as error:
        raise HostError(f"COMMAND: {error}") from None
    if not os.access(shutil.which(name) or name, os.X_OK):
        raise HostError(f"COMMAND: {name!r} is not an executable file; check the path, or use chmod +x")
    members = ("dialect", "default_response", "max_running", "max_time", "approval_timeout")
    options = AgentOptions(
        (name, *rest), socket=Path(path) if path else None, **{name: given[name] for name in members}
    )
    return serve(options)
