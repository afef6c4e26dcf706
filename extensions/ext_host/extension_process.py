"""Client of gevals 0.0.1 extensions: one process for each extension of an eval, shared by its tasks.

As in mcpchecker, an extension starts when the first task needs it, calls of one extension are made one after the
other, and a broken connection stays broken for the rest of the eval.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ext_sdk.core.process.child import ProcessError
from ext_sdk.core.process.output import Output, Pump
from ext_sdk.core.process.spawner import Command
from ext_sdk.core.text import suggest
from ext_sdk.wire import FRAMINGS, Answer, Connection, Junk, Malformed, Notification, Request, RpcError

from .commands import SPAWNER, excerpt
from .files import HostError, Template, TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jsonschema import Draft202012Validator

    from ext_sdk.polling import Deadline

    from .files import EvalFile, ExtensionSpec, Requirement

    Log = Callable[[str, str], object]  # level and message

PROTOCOL_VERSION = "0.0.1"
START_SECONDS = 60.0  # for the response to initialize
SHUTDOWN_SECONDS = 5.0  # for the response to shutdown, and then for the exit
LONGEST_LINE = 64 * 1024 * 1024  # bytes of a message; mcpchecker reads 65,535
VALUES_HOST = "EXT_VALUES_HOST"  # variable of ext_sdk that names the host, if it is not the parent process
TICK = 0.05  # seconds between two checks for a cancellation
PATHS = ("./", "../", "/", "~/", "file://")  # beginnings of packages that are paths


class ExtensionError(HostError):
    """An extension that cannot be started or does not respond; the step, and its phase, end."""


class Extension:
    """Running extension.

    Args:
        name: in the eval.
        argv: its program.
        env: complete environment.

    Attributes:
        manifest: result of initialize.
        operations: `operations` of the manifest.
    """

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.name = name
        self.manifest: dict[str, object] = {}
        self.operations: dict[str, dict[str, object]] = {}
        self._calls = threading.Lock()  # one at a time
        self._lock = threading.Lock()  # of what follows, which the I/O thread changes
        self._connection = Connection(FRAMINGS["ndjson"], limit=LONGEST_LINE)
        self._outgoing = bytearray()
        self._answers: dict[object, Answer] = {}
        self._answered = threading.Condition(self._lock)
        self._broken = ""  # why no more calls are possible
        self._closing = False
        self._log: Log = lambda _level, _message: None
        self._stderr = Output(0)
        self._validators: dict[str, Draft202012Validator] = {}
        with ExitStack() as theirs, ExitStack() as ours:
            pipes = [os.pipe() for _ in range(3)]
            (stdin, feed), (stdout, out), (stderr, err) = pipes
            for descriptor in (stdin, out, err):
                theirs.callback(os.close, descriptor)
            for descriptor in (feed, stdout, stderr):
                ours.callback(os.close, descriptor)
            directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            theirs.callback(os.close, directory)
            try:
                command = Command(argv, env=env, directory=directory, keep=True)
                self._child = SPAWNER.spawn(command, stdin=stdin, stdout=out, stderr=err)
            except (ProcessError, ValueError) as error:
                raise ExtensionError(f"extension {self.name}: {error}") from None
            self._wake_reader, self._wake = os.pipe()
            ours.callback(os.close, self._wake_reader)
            ours.callback(os.close, self._wake)
            os.set_blocking(feed, False)
            os.set_blocking(self._wake, False)
            self._feed = feed
            sinks = {stdout: self._receive, stderr: self._stderr.write, self._wake_reader: lambda _: None}
            self._pump = Pump(self._child, sinks)
            ours.pop_all()
        self._thread = threading.Thread(target=self._transfer, daemon=True, name=f"extension {self.name}")
        self._thread.start()

    # --- The I/O thread ----------------------------------------------------------------------------------------------

    def _transfer(self) -> None:
        """Move bytes until the extension has ended."""
        try:
            while not self._child.gone and self._child.status is None:
                self._pump.step(TICK if self._write() else 60.0)
            self._pump.run(lambda: self._child.status is not None and not self._pump.step(TICK), TICK)
        finally:
            self._break(f"it has ended ({self._child.status or 'unknown exit status'}){self._last_words()}")
            self._pump.close()
            for descriptor in (self._feed, self._wake):
                with suppress(OSError):
                    os.close(descriptor)
            self._feed = self._wake = -1

    def _write(self) -> bool:
        """Write what fits into the pipe. Return True if there is more."""
        with self._lock:
            if self._closing and not self._outgoing and self._feed >= 0:
                os.close(self._feed)
                self._feed = -1
            if not self._outgoing or self._feed < 0:
                return False
            try:
                written = os.write(self._feed, self._outgoing)
            except BlockingIOError:
                return True
            except OSError:  # it has closed its input; its exit is reported by the pump
                self._outgoing.clear()
                return False
            del self._outgoing[:written]
            return bool(self._outgoing)

    def _receive(self, data: bytes) -> None:
        self._connection.receive_data(data)
        while (event := self._connection.next_event()) is not None:
            if isinstance(event, Answer):
                with self._lock:
                    if not self._broken:
                        self._answers[event.request.id] = event
                        self._answered.notify_all()
            elif isinstance(event, Notification) and event.method == "log":
                params = event.params if isinstance(event.params, dict) else {}
                self._log(str(params.get("level", "info")), str(params.get("message", "")))
            elif isinstance(event, Request):
                refusal = RpcError(-32601, f"the host has no method {event.method!r}")
                self._send(self._connection.error(event.id, refusal))
            elif isinstance(event, (Malformed, Junk)):
                written = event.payload if isinstance(event, Malformed) else event.wire
                self._break(
                    f"it wrote a line that is not a message of JSON-RPC: {excerpt(repr(written)[2:-1], 80)}; "
                    "standard output is for the protocol only"
                )

    def _break(self, reason: str) -> None:
        with self._lock:
            self._broken = self._broken or reason
            self._answered.notify_all()

    def _last_words(self) -> str:
        text = self._stderr.text.strip()
        return f"; standard error ends with:\n{excerpt(text, 1000, end=True)}" if text else ""

    def _send(self, data: bytes) -> None:
        with self._lock:
            self._outgoing += data
            if self._wake >= 0:
                with suppress(OSError):
                    os.write(self._wake, b"x")

    def refusal(self, operation: str, args: object) -> str:
        """Return the reason why the manifest does not allow arguments of an operation; "" if it does."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError, best_match

        try:
            with self._lock:
                if operation not in self._validators:
                    schema = cast("dict[str, object] | bool", self.operations[operation].get("params", True))
                    Draft202012Validator.check_schema(schema)
                    self._validators[operation] = Draft202012Validator(schema)
            error = best_match(self._validators[operation].iter_errors(args))
        except SchemaError as wrong:
            return f"the manifest has no valid schema of its arguments: {wrong.json_path}: {wrong.message}"
        if error is None:
            return ""
        text, known = error.message, error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
        if error.validator == "additionalProperties" and "patternProperties" not in error.schema:
            unknown = next(name for name in error.instance if name not in known)
            text = f"unknown member {unknown!r}; {suggest(unknown, known, none='expected no member')}"
        return text if error.json_path == "$" else f"{error.json_path.removeprefix('$.')}: {text}"

    # --- Calls -------------------------------------------------------------------------------------------------------

    def initialize(self, config: Mapping[str, object] | None, deadline: Deadline) -> None:
        """Send the configuration, and read the manifest. Raises ExtensionError."""
        params = {"protocolVersion": PROTOCOL_VERSION, **({} if config is None else {"config": config})}
        try:
            found = self.call("initialize", params, deadline.limit(START_SECONDS))
        except RpcError as error:
            raise ExtensionError(f"extension {self.name}: initialize failed: {error} ({error.code})") from None
        operations = found.get("operations") if isinstance(found, dict) else None
        if not isinstance(operations, dict) or not all(isinstance(each, dict) for each in operations.values()):
            raise ExtensionError(f"extension {self.name}: expected a manifest with `operations`, found {found!r:.80}")
        self.manifest, self.operations = cast("dict[str, object]", found), operations

    def call(self, method: str, params: object, deadline: Deadline, log: Log = lambda _level, _text: None) -> object:
        """Send a request and return its result.

        Args:
            log: receives the level and the message of each `log` notification during the call.

        Raises:
            RpcError: the extension responded with an error.
            ExtensionError: it did not respond before the deadline, or has ended.
        """
        with self._calls:
            self._log = log
            id, data = self._connection.request(method, params)
            began = time.monotonic()
            self._send(data)
            with self._lock:
                while id not in self._answers and not self._broken and not deadline.expired:
                    self._answered.wait(TICK)
                answer = self._answers.pop(id, None)
                self._answers.clear()  # late ones
            if answer is None and self._broken:
                raise ExtensionError(f"extension {self.name}: no response to {method}: {self._broken}")
            if answer is None:
                cause = "cancelled" if deadline.stopped.is_set() else f"waited for {time.monotonic() - began:.1f} s"
                raise ExtensionError(f"extension {self.name}: no response to {method}: {cause}")
        if answer.error is not None:
            raise answer.error
        return answer.result

    def close(self) -> str:
        """Shut the extension down. Return what went wrong, such as an exit code that is not 0; "" if nothing."""
        from ext_sdk.polling import Deadline

        problem = ""
        if not self._broken:
            try:
                self.call("shutdown", {}, Deadline(SHUTDOWN_SECONDS))
            except (ExtensionError, RpcError) as error:
                problem = f"extension {self.name}: shutdown failed: {error}".replace(f": extension {self.name}", "", 1)
        with self._lock:
            self._closing = True
        self._send(b"")
        self._thread.join(SHUTDOWN_SECONDS)
        if self._thread.is_alive():
            problem = (
                problem or f"extension {self.name}: it did not exit within {SHUTDOWN_SECONDS:g} s, and was stopped"
            )
        self._child.stop(grace=1.0)
        self._thread.join(SHUTDOWN_SECONDS)
        status = self._child.status
        self._child.close()
        if not problem and status is not None and status.code != 0:
            problem = f"extension {self.name}: {status}{self._last_words()}"
        return problem


class Extensions:
    """Extensions of an eval, by name; each is started by its first user.

    Args:
        spec: the eval.
        programs: command lines that replace those of the eval, by name.
        environ: environment of this host.
    """

    def __init__(self, spec: EvalFile, programs: Mapping[str, str], environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._programs = programs
        self._environ = environ
        self._lock = threading.Lock()
        self._starting: dict[str, threading.Lock] = {}
        self._running: dict[str, Extension] = {}

    def missing(self, requirement: Requirement) -> str:
        """Return that the eval does not have an extension or MCP server; "" if it does. Raises FileError."""
        name = requirement.name
        known = list(self._spec.extensions)
        if requirement.kind == "mcpServer":
            known = [server.name for server in self._spec.mcp_servers()]
        elif self._spec.extension(name):
            return ""
        return "" if name in known else f"the eval has no {requirement.kind} {name!r}; {suggest(name, known)}"

    def argv(self, extension: ExtensionSpec) -> list[str]:
        """Return the command line of an extension. Raises HostError if it has no program."""
        name, package = extension.name, extension.package
        if name in self._programs:
            words = shlex.split(self._programs[name])
            found = shutil.which(words[0]) if words else None
            if found is None:
                raise HostError(f"extension {name}: cannot find its program {self._programs[name]!r}")
            return [found, *words[1:]]
        if not package:
            here = Path(sys.executable).parent
            found = shutil.which(f"ext-{name}", path=f"{here}{os.pathsep}{self._environ.get('PATH', os.defpath)}")
            if found is None:
                raise HostError(
                    f"extension {name}: cannot find the program ext-{name} in PATH; install it, name it with "
                    f"`--extension {name}=COMMAND`, or run the task by an eval"
                )
            return [found]
        if not package.startswith(PATHS):
            kind = "a release on GitHub, which ext-host does not download" if "github.com/" in package else "not a path"
            raise HostError(
                f"extension {name}: package {package!r} is {kind}: install the program, and name it with "
                f"`--extension {name}=COMMAND`, or write a path that begins with ./"
            )
        path = self._spec.folder / Path(package.removeprefix("file://")).expanduser()
        path = Path(os.path.normpath(path))  # as text, like Go: a missing folder before `..` does not matter
        if not os.access(path, os.X_OK) or path.is_dir():
            reason = "it is not executable" if path.is_file() else "no such file"
            remedy = f"install it there, or name its program with `--extension {name}=COMMAND`"
            raise HostError(f"extension {name}: cannot run its package {path}: {reason}; {remedy}")
        return [str(path)]

    def values(self, extension: ExtensionSpec) -> tuple[dict[str, str], Mapping[str, object] | None]:
        """Return `env` and `config` of an extension without templates. Raises HostError for an unset variable."""
        try:
            env = {key: _filled(value, self._environ) for key, value in extension.env.items()}
            config = _filled(extension.config, self._environ)
        except TemplateError as error:
            raise HostError(
                f"extension {extension.name}: {error}; set it, or write a value without a template"
            ) from None
        return cast("dict[str, str]", env), cast("Mapping[str, object] | None", config)

    def get(self, name: str, deadline: Deadline) -> Extension:
        """Return the running extension of a name. Raises HostError if it cannot be started."""
        with self._lock:
            lock = self._starting.setdefault(name, threading.Lock())
        with lock:
            if name not in self._running:
                extension = self._spec.extension(name)
                if extension is None:
                    known = ", ".join(self._spec.extensions) or "none"
                    raise HostError(f"extension {name!r} is not in the eval; it has {known}")
                env, config = self.values(extension)
                # Extensions with the same value share the outputs that they keep; their parents differ.
                shared = {VALUES_HOST: f"ext-host-{os.getpid()}-{id(self)}"}
                environ = {**self._environ, **shared, **env}
                running = Extension(name, self.argv(extension), environ)
                try:
                    running.initialize(config, deadline)
                except HostError:
                    running.close()
                    raise
                self._running[name] = running
            return self._running[name]

    def close(self) -> list[str]:
        """Shut all extensions down, side by side. Return what went wrong."""
        problems: list[str] = []

        def close(extension: Extension) -> None:
            if problem := extension.close():
                problems.append(problem)

        threads = [threading.Thread(target=close, args=(each,)) for each in self._running.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._running.clear()
        return sorted(problems)


def _filled(value: object, environ: Mapping[str, str]) -> object:
    """Return a value of `env` or `config` with environment variables for `${NAME}` and `{env.NAME}`."""
    if isinstance(value, dict):
        return {name: _filled(member, environ) for name, member in value.items()}
    if isinstance(value, list):
        return [_filled(item, environ) for item in value]
    return Template(value).fill(environ) if isinstance(value, str) else value
