"""The G-Assist plugin protocol, version 2.0, on the wire, and the folder from which its engine starts a plugin.

Where NVIDIA's engine emulator and SDKs differ from the specification, the comments name the difference.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

from ext_sdk.core import gevals_spec
from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.core.wire.errors import MessageError, RpcError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.jsonrpc import Notification, encode
from ext_sdk.result import InvalidArgs

from .line_limit import dumps_without_secrets, printable, readable
from .server import Adapter
from .serving import GASSIST_VERSION, gassist_functions, gassist_result
from .session import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ext_sdk.args import Args, Schema
    from ext_sdk.core.wire.errors import Id
    from ext_sdk.core.wire.frames import Junk
    from ext_sdk.core.wire.jsonrpc import Request
    from ext_sdk.definition import Definition
    from ext_sdk.result import Result

    from .server import InitialIO, Server
    from .serving import Serving, Tools
    from .session import Call

FRAMING = "uint32"
PLUGIN_ERROR, TIMEOUT = -1, -2
# Codes of gevals, which are not in the table "Error Codes".
CODES = {
    gevals_spec.OPERATION_FAILED: PLUGIN_ERROR,
    gevals_spec.REQUIREMENT_NOT_MET: PLUGIN_ERROR,
    gevals_spec.TIMEOUT: TIMEOUT,
}
CONFIRMED = ("yes", "y")  # replies that confirm a call
CANCELLED = ("", "exit", "quit", "done", "cancel")  # replies that end a session; the emulator sends `exit`
LINGER_SECONDS = 1.0  # after the response to `shutdown`: the emulator drops what a process that has exited has written


class Pending(NamedTuple):
    """Call that waits for a reply of the user.

    Attributes:
        function: name of its function.
        params: those of Server.execute; `args` is an object.
        argument: the argument whose value is the reply; "" if the user has to confirm the call.
        type: type of its value.
        request: end of the question for its value.
    """

    function: str
    params: dict[str, object]
    argument: str = ""
    type: str = ""
    request: str = ""


class GAssistAdapter(Adapter):
    """Adapter of G-Assist 2.0: `initialize`, `ping`, `execute`, `input`, `shutdown`.

    The result of a call is a notification `complete`, as of all SDKs: the emulator shows no text of a response. Log
    entries become notifications `stream`, which users see; those of level debug become `log`. `keep_session` keeps a
    session open for one reply: the value of an argument that is required and missing, or the confirmation of an
    operation that may destroy something and that `--allow` does not name.
    """

    framing = FRAMING

    def __init__(self, server: Server, serving: Serving, tools: Tools) -> None:
        super().__init__(server)
        self._tools = tools
        self._functions = gassist_functions(tools.name, tools.effects)
        self._workdir = os.path.abspath(serving.workdir or ".")  # noqa: PTH100
        self._pending: Pending | None = None
        self._dropped = ""  # function whose question the last `execute` has dropped
        self._answered = False  # `initialize` was, before the server started
        self._compare: Callable[[], str] | None = None
        self._shut_down = False
        self._methods: dict[str, Callable[[Id, Mapping[str, object]], None]] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "execute": self._execute,
            "input": self._input,
            "shutdown": self._shutdown,
        }

    def opening(self, initial: InitialIO) -> bytes:
        self._answered, self._compare = initial.manifest_sent, initial.compare
        return b""

    def receive(self, payload: bytes) -> None:
        if not self._shut_down:
            super().receive(payload)

    def expired(self) -> None:
        self.server.finish()

    def request(self, request: Request, payload: bytes) -> None:
        if request.method not in self._methods:
            text = f"unknown method: {request.method[:LONGEST_NAME]}; {suggest(request.method, self._methods)}"
            raise RpcError(gevals_spec.METHOD_NOT_FOUND, text)
        self._methods[request.method](request.id, request.params if isinstance(request.params, dict) else {})

    def notification(self, notification: Notification) -> None:
        # In the specification `shutdown` is a notification; the emulator sends a request.
        if notification.method == "shutdown":
            self.server.finish()

    def junk(self, junk: Junk) -> None:
        """Report bytes that are not a frame. After an impossible length no frame can be found: the session ends."""
        self.server.write(self.error(None, RpcError(gevals_spec.PARSE_ERROR, junk.reason)))
        if junk.wire != bytes(4):
            self.server.finish()

    def _initialize(self, id: Id, params: Mapping[str, object]) -> None:
        version = params.get("protocol_version")
        if version not in (None, GASSIST_VERSION):
            text = f"initialize: unsupported protocol_version {shown(version)}; expected {dumps(GASSIST_VERSION)}"
            raise RpcError(gevals_spec.INVALID_PARAMS, text)
        if not self._answered:
            self._respond(id, loads(gassist_result(self._tools)))
        self._answered = False
        self.server.warm_up(self._compare)
        self._compare = None

    def _ping(self, id: Id, params: Mapping[str, object]) -> None:
        timestamp = params.get("timestamp")
        if isinstance(timestamp, bool) or not isinstance(timestamp, (int, float, type(None))):
            text = f"ping: timestamp: expected a number, found {shown(timestamp)}"
            raise RpcError(gevals_spec.INVALID_PARAMS, text)
        self._respond(id, {"timestamp": timestamp})

    def _execute(self, id: Id, params: Mapping[str, object]) -> None:
        if not isinstance(id, (int, str)):  # else `complete` could not name the request
            text = f"execute: expected an id that is a whole number or a string, found {shown(id)}"
            raise RpcError(gevals_spec.INVALID_REQUEST, text)
        self._dropped, self._pending = self._pending.function if self._pending else "", None
        if self._dropped:  # not as its `error`: the emulator would end the new call
            text = f"warning: {self._dropped} was not run: another call began before the reply\n"
            self.server.write(_notification("stream", {"request_id": id, "data": text}))
        try:
            function, arguments = params.get("function"), params.get("arguments")
            if not isinstance(function, str):
                text = f"execute: function: expected the name of a function, found {shown(function)}"
                raise RpcError(gevals_spec.INVALID_PARAMS, text)
            operation = self._functions.get(function, function)
            if operation in (*self._tools.denied, *self._tools.unusable):
                raise RpcError(gevals_spec.METHOD_NOT_FOUND, self._tools.refusal(operation))
            if operation not in self._tools.lines:
                served = [name for name, of in self._functions.items() if of in self._tools.lines]
                live = gassist_functions(self._tools.name, self.server.extension.operations)
                text = self._tools.unknown(function, {*live, *live.values()}, served, "function")
                raise RpcError(gevals_spec.METHOD_NOT_FOUND, text)
            self._tools.check(self.server.extension.operations[operation])
            context = {"workdir": self._workdir}
            args = {} if arguments is None else arguments
            self._begin(id, Pending(function, {"operation": operation, "args": args, "context": context}))
        except RpcError as error:
            self.server.write(self._failed(id, error))

    def _begin(self, id: Id, call: Pending, *, confirmed: bool = False) -> None:
        """Begin a call, or ask the user for an argument or a confirmation.

        Raises:
            RpcError: the arguments are refused, and not because one is missing.
        """
        operation = str(call.params["operation"])
        try:
            if confirmed or operation not in self._tools.withheld:
                self.server.execute(id, call.params)
                return
            prepared = self.server.session.prepare(call.params, lambda *_: None)
        except RpcError as error:
            args_type = self.server.extension.operations[operation].args_type
            missing = missing_argument(args_type, call.params["args"], error.message)
            if missing is None or error.code != gevals_spec.INVALID_PARAMS:
                raise
            name, schema = missing
            described = f" ({str(schema['description']).partition('. ')[0]})" if "description" in schema else ""
            request = f". Reply with the value of {name}{described}, or cancel."
            self._pending = Pending(call.function, call.params, name, str(schema["type"]), request)
            question = error.message + request
        else:
            if isinstance(prepared.args, InvalidArgs):  # it fails without being called
                self.server.execute(id, call.params)
                return
            self._pending = call
            effect = f"{call.function} {dumps_without_secrets(call.params['args'])} can change or delete data."
            question = f"{effect} Reply yes to run it; any other reply cancels it."
        self.server.write(self._complete(id, success=True, data=question, keep_session=True))

    def _input(self, id: Id, params: Mapping[str, object]) -> None:
        content, pending = params.get("content"), self._pending
        if not isinstance(content, str):
            text = f"input: content: expected a string, found {shown(content)}"
            raise RpcError(gevals_spec.INVALID_PARAMS, text)
        if pending is None or not isinstance(id, (int, str)):
            reason = "no call waits for a reply, because no result had keep_session: true"
            if self._dropped:
                reason = f"{self._dropped} was not run, because another call began before the reply; execute it again"
            text = f"input: expected no input: {reason}"
            raise RpcError(gevals_spec.INVALID_REQUEST, text)
        self._pending, self._dropped = None, ""
        self._respond(id, {"acknowledged": True})
        reply = content.strip().rstrip(".!").lower()
        if reply in CANCELLED if pending.argument else reply not in CONFIRMED:
            text = f"{pending.function} was not run: " + ("cancelled" if pending.argument else "the reply was not yes")
            self.server.write(self._complete(id, success=False, data=text))
            return
        call = pending
        if pending.argument:
            value: object = content
            if pending.type != "string":
                with suppress(MessageError):  # else the operation refuses the text
                    value = loads(content)
            args = {**cast("dict[str, object]", pending.params["args"]), pending.argument: value}
            call = Pending(pending.function, pending.params | {"args": args})
        try:
            self._begin(id, call, confirmed=not pending.argument)
        except RpcError as error:
            named = pending.argument and re.search(rf": {re.escape(pending.argument)}\b", error.message)
            if not named or error.code != gevals_spec.INVALID_PARAMS:
                self.server.write(self._failed(id, error))
                return
            self._pending = pending
            self.server.write(self._complete(id, success=True, data=error.message + pending.request, keep_session=True))

    def _shutdown(self, id: Id, _: Mapping[str, object]) -> None:
        server = self.server
        server.close()
        for call in server.calls.unclaimed():
            text = f"{call.operation.name}: the extension was shut down before the operation ended"
            server.cancel(call.id, self._failed(call.id, RpcError(gevals_spec.OPERATION_FAILED, text)))
        self._respond(id, {})
        self._shut_down = True
        self.deadline = time.monotonic() + LINGER_SECONDS  # or until the host closes its end

    def result(self, call: Call, result: Result) -> bytes:
        data = printable(readable(self.server.limiter.members(result)))
        return self._complete(call.id, success=result.success, data=data)

    def error(self, id: Id, error: RpcError) -> bytes:
        if self.server.calls.find(id) is not None:
            return self._failed(id, error)
        return _frame(self.server.limiter.error(id, error)[:-1])

    def log(self, id: Id, level: str, message: str, data: Mapping[str, object]) -> bytes:
        if self.server.calls.find(id) is None:  # `stream` is only for a running call
            return b""
        params = self.server.limiter.log_params(level, message, data)
        details = params.get("data")
        text = str(params["message"])
        for name, value in details.items() if isinstance(details, dict) else ():
            if name != "stream":  # of the lines that a command writes
                text += f" {name}={value if isinstance(value, str) else dumps(value)}"
        if level == "debug":
            return _notification("log", {"level": level, "message": text})
        prefix = "" if level == "info" else {"warn": "warning: "}.get(level, f"{level}: ")
        return _notification("stream", {"request_id": id, "data": f"{prefix}{text}\n"})

    def _respond(self, id: Id, result: object) -> None:
        self.server.write(_frame(self.server.limiter.plain(id, result)[:-1]))

    def _complete(self, id: Id, *, success: bool, data: str, keep_session: bool = False) -> bytes:
        # The emulator raises an exception for data that is not a string.
        text = self.server.limiter.text(data)
        params = {"request_id": id, "success": success, "data": text, "keep_session": keep_session}
        return _notification("complete", params)

    def _failed(self, id: Id, error: RpcError) -> bytes:
        """Return `error` for a call: the emulator shows its text, and not that of an error response."""
        code, text = CODES.get(error.code, error.code), self.server.limiter.text(error.message)
        return _notification("error", {"request_id": id, "code": code, "message": text})


def _notification(method: str, params: Mapping[str, object]) -> bytes:
    return _frame(encode(Notification(method, params)))


def _frame(payload: bytes) -> bytes:
    return FRAMINGS[FRAMING].encode(payload)


# The folder of a plugin

LAUNCHER = """\
#!/bin/sh
# Start of this plugin, written by `{program} export`.
case $0 in */*) cd -- "${{0%/*}}" || exit 1 ;; esac
log=$PWD/plugin.log
(: >>"$log") 2>/dev/null || log=/dev/null
exec 2>>"$log"  # the emulator reads stderr as messages
mkdir -p workdir && cd workdir || exit 1
exec {command}
"""

README = """\
# {name}: a plugin for G-Assist

{description}

Written by `{program} export`. Run the same command again after an update. Files that were changed since are not
overwritten.

| file | purpose |
|---|---|
| `manifest.json` | the functions of the plugin |
| `launch` | starts the plugin: `{shown}` |
| `plugin.log` | errors of the program, written when it runs |
| `workdir` | the working directory of the operations, created at the first start |

The plugin runs on Linux and macOS, with the plugin emulator of NVIDIA (in `plugins/` of github.com/NVIDIA/G-Assist).
PLUGINS is the folder that contains this one:

    python -m plugin_emulator -d PLUGINS list functions
    python -m plugin_emulator -d PLUGINS exec {function}

If a required argument is missing, the plugin asks for it. `cancel` ends a question.

{functions}
"""

_FOLDER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")  # the emulator loads no other folder
_RESERVED = ("con", "prn", "aux", "nul", "com1", "com2", "lpt1", "lpt2")


def exported(extension: Definition, tools: Tools, command: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the files of a plugin by name; see `cli.EXPORTS`.

    Raises:
        ValueError: the engine would not load a plugin from a folder of this name.
    """
    if not _FOLDER.fullmatch(folder.name) or folder.name.lower() in _RESERVED:
        raise ValueError(
            f"{folder.name!r} cannot be the name of a plugin's folder; expected a letter, then letters, digits, - and _"
        )
    program = f"ext-{extension.name}"
    functions = plugin_functions(extension, tools)
    manifest = {
        "manifestVersion": 1,
        "name": extension.name,
        "version": extension.version,
        "description": f"{extension.description.rstrip('.')}. Functions of {program}."
        if extension.description
        else f"Functions of {program}.",
        "executable": "./launch",
        "persistent": True,
        "protocol_version": GASSIST_VERSION,
        "tags": [extension.name],
        "functions": functions,
    }
    import json

    names = gassist_functions(tools.name, tools.effects)
    rows = [
        f"- `{name}`: {tools.head['summaries'][names[name]]}"
        + (" Runs after a confirmation: reply `yes`." if names[name] in tools.withheld else "")
        for name in map(str, (each["name"] for each in functions))
    ]
    values = {
        "name": extension.name,
        "program": program,
        "description": str(manifest["description"]),
        "command": shlex.join(command),
        "shown": shlex.join("--config=…" if word.startswith("--config=") else word for word in command),
        "function": functions[0]["name"],
        "functions": "\n".join(rows),
    }
    return {
        "manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
        "launch": LAUNCHER.format(**values),
        "README.md": README.format(**values),
    }


def plugin_functions(extension: Definition, tools: Tools) -> list[dict[str, object]]:
    """Return the functions of a manifest.

    The emulator reads their arguments in `parameters`. The manifests of NVIDIA's plugins have `properties` and
    `required` of the function itself.
    """
    from ext_sdk.args import rules_text

    from .schema import object_schema

    operations = extension.operations
    functions: list[dict[str, object]] = []
    for name, operation in gassist_functions(tools.name, tools.effects).items():
        if operation not in tools.lines:
            continue
        args_type = operations[operation].args_type
        schema = argument_schema(object_schema(args_type))
        rules = rules_text(args_type)
        arguments = {"properties": schema.get("properties", {}), "required": schema.get("required", [])}
        functions.append(
            {
                "name": name,
                "description": operations[operation].description + (f"\n\nExpects {rules}." if rules else ""),
                "tags": [extension.name, *re.split("[-_]", operation)],
                "parameters": {"type": "object", **arguments},
                **arguments,
            }
        )
    return functions


def missing_argument(args_type: type[Args], args: object, refusal: str) -> tuple[str, Schema] | None:
    """Return the first argument that is required and missing, and its schema; None if none is.

    Of several arguments of which one is required, the first that is a text is missing, because users reply in texts.

    Args:
        refusal: the message of the error for these arguments, which may be about something else.
    """
    import msgspec

    from .schema import object_schema

    if not isinstance(args, dict):
        return None
    fields = {field.name: field for field in msgspec.structs.fields(args_type)}
    names = {name: field.encode_name for name, field in fields.items()}
    schemas = cast("dict[str, Schema]", argument_schema(object_schema(args_type))["properties"])
    required = [names[field.name] for field in fields.values() if field.required]
    missing = [name for name in required if name not in args and f": {name}: " in refusal]
    for rule in args_type.__alternatives__:
        options = [names[field] for field in rule.fields]
        if rule.text(names) in refusal and not any(args.get(option) for option in options):
            missing += sorted(options, key=lambda option: schemas[option]["type"] != "string")[:1]
    return (missing[0], schemas[missing[0]]) if missing else None


DEPTH = 2  # of members that a manifest describes: arguments, and their members


def argument_schema(schema: Schema, depth: int = 0) -> Schema:
    """Return a schema as engines read it: each value has one type, and few have members; operations accept more."""
    from .schema import branches_of

    branches = branches_of(schema)
    at = next((at for at, branch in enumerate(branches) if branch.get("type") == "string"), 0)
    # A number may also be a text with a reference `${NAME.key}`, which an assistant does not have.
    types = branches[at].get("type", "string" if "enum" in branches[at] else "object")
    argument: Schema = {"type": types[0] if isinstance(types, list) else types}
    argument |= {key: schema[key] for key in ("description", "default", "enum") if key in schema}
    properties, items = branches[at].get("properties"), branches[at].get("items")
    if isinstance(properties, dict) and depth < DEPTH:
        argument["properties"] = {name: argument_schema(member, depth + 1) for name, member in properties.items()}
        argument["required"] = branches[at].get("required", [])
    if isinstance(items, dict) and items:
        argument["items"] = argument_schema(items, depth + 1)
    return argument
