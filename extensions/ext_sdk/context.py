"""Context of a call (gevals 0.0.1, "Context Object"): deadline, log, secrets, state and artifacts of an operation."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from .polling import Deadline
from .result import OperationFailed

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from typing_extensions import TypeVar as TypeVarWithDefault  # of Python 3.13; never imported at run time

    from ext_sdk.core.redaction.redactor import Redactor

    from .args import Config
    from .duration import Duration
    from .process import CommandRun
    from .references import Expansion

    C = TypeVar("C", bound=Config)
    ConfigType_co = TypeVarWithDefault("ConfigType_co", bound=Config, default=Config, covariant=True)
else:
    ConfigType_co = TypeVar("ConfigType_co", covariant=True)


class Place(NamedTuple):
    """Workdir and scope that variables and state belong to.

    Attributes:
        workdir: without symbolic links, so that all its paths are equal.
        scope: the argument `scope`; "" if it was not given.
    """

    workdir: str
    scope: str = ""

    @classmethod
    def of(cls, workdir: Path, scope: str = "") -> Place:
        """Return the place of a call."""
        return cls(os.path.realpath(workdir), scope)


T = TypeVar("T")
KEEP_SECONDS = 7 * 24 * 3600.0  # lifetime of artifacts in a private directory


class Agent:
    """Prompt and output of the agent (gevals 0.0.1, "Agent Context Object"); None for a missing part."""

    __slots__ = ("output", "prompt")

    def __init__(self, prompt: str | None, output: str | None) -> None:
        self.prompt = prompt
        self.output = output


class Log:
    """Progress messages for the host (gevals 0.0.1, "Log").

    Data must be JSON; data that does not fit on a line is cut.
    """

    __slots__ = ("_send",)

    def __init__(self, send: Callable[[str, str, Mapping[str, object]], None]) -> None:
        self._send = send

    def debug(self, message: str, **data: object) -> None:
        """Log details for troubleshooting."""
        self._send("debug", message, data)

    def info(self, message: str, **data: object) -> None:
        """Log progress."""
        self._send("info", message, data)

    def warn(self, message: str, **data: object) -> None:
        """Log an anomaly; the operation continues."""
        self._send("warn", message, data)

    def error(self, message: str, **data: object) -> None:
        """Log a failure; the result decides whether it matters."""
        self._send("error", message, data)


class Secrets:
    """Values that are redacted in everything the extension writes."""

    __slots__ = ("_redactor",)

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def add(self, name: str, value: str) -> None:
        """Redact a value from now on, in base64, URL, JSON and hex too; values under 4 characters are ignored."""
        self._redactor.add(name, value)

    def redact(self, text: str) -> str:
        """Return the text without secrets, for files that an operation writes for people."""
        return self._redactor.redact_text(text)


@runtime_checkable
class Closable(Protocol):
    """State that must be closed: processes, servers, files."""

    def close(self) -> None:
        """Close it, within 2 seconds. Called once, from any thread."""


class States:
    """State of operations between calls: one object for each (place, factory). Thread-safe."""

    def __init__(self) -> None:
        self._states: dict[tuple[Hashable, Hashable], object] = {}
        self._closed = False
        self._lock = threading.RLock()  # a factory may request another state

    def get(self, place: Hashable, factory: Callable[[], T]) -> T:
        """Return the object of this place; the first call creates it.

        Raises:
            OperationFailed: the shutdown has begun, so a new object would not be closed.
        """
        with self._lock:
            key = (place, factory)
            if key not in self._states:
                if self._closed:
                    raise OperationFailed("the extension is shutting down")
                self._states[key] = factory()
            return cast("T", self._states[key])

    def close(self) -> list[Closable]:
        """Refuse new objects, and return those that must be closed, each once."""
        with self._lock:
            self._closed = True
            states, self._states = self._states, {}
        return [state for state in states.values() if isinstance(state, Closable)]


def remove_old(name: str, parent: Path, before: float) -> None:
    """Remove this user's private directories of artifacts that were not changed since a time.

    Args:
        before: the time, in seconds since 1970.
    """
    private = re.compile(rf"ext-{re.escape(name)}-[a-z0-9_]{{8}}")  # names that mkdtemp generates
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):
                if private.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid == os.getuid() and status.st_mtime < before:
                        shutil.rmtree(entry.path, ignore_errors=True)


class Artifacts:
    """Private files for texts that are too long for a response. They outlive the process, by a week at least.

    Args:
        directory: directory of the files; "" creates a private one under the temporary directory at the first use, and
            removes those that were not changed for KEEP_SECONDS.
        name: name of the extension, for the directory's name.
    """

    def __init__(self, directory: str, name: str) -> None:
        self._directory = Path(directory).absolute() if directory else None
        self._name = name
        self._count = 0
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def directory_of(self, path: str) -> Path | None:
        """Return the directory if a file in it was created here, else None: other processes may use it, too."""
        file = Path(path)
        return self._directory if file.parent == self._directory and file.name in self._names else None

    def new(self, name: str) -> Path:
        """Create an empty file; `name` is the end of its name, such as `stdout.txt`. Raises OSError."""
        with self._lock:
            if self._directory is None:
                import tempfile

                remove_old(self._name, Path(tempfile.gettempdir()), time.time() - KEEP_SECONDS)
                self._directory = Path(tempfile.mkdtemp(prefix=f"ext-{self._name}-"))
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            while True:
                self._count += 1
                path = self._directory / f"{self._count:03d}-{re.sub(r'[^A-Za-z0-9._-]', '_', name)[-80:]}"
                try:
                    path.touch(mode=0o600, exist_ok=False)
                except FileExistsError:  # created by another process in the same directory
                    continue
                self._names.add(path.name)
                return path


HostMethod = Literal["tool", "fs", "exec", "env", "http", "session", "ui", "events", "log"]
HostErrorCode = Literal["timeout", "denied", "io", "invalid_request", "internal"]


class HostCallFailed(OperationFailed):
    """Call of the host that it refused, or that failed; see Context.host.

    Args:
        message: the method and the reason.
        code: the kind of the failure; "denied" if the host or its user does not permit the call.
        retryable: the host reports that a second attempt may succeed.
        details: further members of the host's error.
    """

    def __init__(
        self,
        message: str,
        code: HostErrorCode = "internal",
        *,
        retryable: bool = False,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.details = dict(details or {})


class HostOutput:
    """Response of the host to a call: one object, or those of its chunks in their order."""

    __slots__ = ("chunks",)

    def __init__(self, chunks: Sequence[Mapping[str, object]]) -> None:
        self.chunks = tuple(chunks)

    @property
    def text(self) -> str:
        """The texts of all chunks, joined: blocks of `content`, as tools return them, else `text`, or `stdout`."""
        return "".join(map(_text_of, self.chunks))

    def get(self, name: str) -> object:
        """Return a member, of the last chunk that has it; None if no chunk does."""
        return next((chunk[name] for chunk in reversed(self.chunks) if name in chunk), None)


def _text_of(chunk: Mapping[str, object]) -> str:
    content = chunk.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if blocks:
        return "".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str))
    return str(next((chunk[name] for name in ("text", "stdout") if isinstance(chunk.get(name), str)), ""))


SendHostCall = Callable[[HostMethod, Mapping[str, object], Deadline], HostOutput]
"""Sends a call to the host, and waits for its response until the deadline; raises HostCallFailed."""


class HostCalls:
    """Functions of the host that an operation may call: its tools, its user interface, and others.

    Hosts of the Pi extension protocol have them (`serve --protocol pi`). Calls are subject to the permissions of the
    host.

    Attributes:
        available: True if the host accepts calls; else every call raises HostCallFailed.
    """

    __slots__ = ("_deadline", "_send", "available")

    def __init__(self, send: SendHostCall | None, deadline: Deadline) -> None:
        self._send = send
        self._deadline = deadline
        self.available = send is not None

    def call(
        self, method: HostMethod, params: Mapping[str, object], *, timeout: Duration | float | None = None
    ) -> HostOutput:
        """Call a method of the host, and wait for its response.

        Args:
            method: "tool" with the params `name` and `input`; "exec" with `cmd` and `args`; "fs", "session", "ui" and
                "events" with `op` and its members; "env" with `name`; "http" with `url` and others.
            params: a JSON object; secrets in it are redacted.
            timeout: maximum duration, in seconds or as a Duration, if that is before the deadline of the operation.

        Raises:
            HostCallFailed: the host accepts no calls, refuses this one, or does not respond before the deadline.
        """
        if self._send is None:
            raise HostCallFailed(
                f"host call {method!r} failed: this host accepts no calls; serve the extension with `serve --protocol "
                "pi`, or check `context.host.available` first",
                "denied",
            )
        return self._send(method, params, self._deadline.limit(timeout))

    def tool(self, name: str, input: Mapping[str, object], *, timeout: Duration | float | None = None) -> HostOutput:
        """Call a tool of the host, such as `read` of Pi with `{"path": "notes.txt"}`; see `call`."""
        return self.call("tool", {"name": name, "input": dict(input)}, timeout=timeout)


OUTPUT_LIMIT = 4 * 1024 * 1024  # bytes of each output of a command that `Context.run` keeps


class Context(Generic[ConfigType_co]):
    """Context of one call. `Context[MyConfig]` has the configuration of an `Extension(config=MyConfig)`.

    Attributes:
        workdir: the task's directory, absolute; relative paths in arguments start here. It need not exist.
        scope: the argument `scope` of the call, which separates tasks that share a workdir; "" if it was not given.
        place: workdir and scope, which `state` and variables belong to.
        phase: "setup", "verify", "cleanup", or "" if the host does not send it (mcpchecker never does).
        env: variables of the task.
        agent: see Agent; None outside verify.
        deadline: deadline of the operation.
        host: functions of the host, for hosts that have them; see HostCalls.
        log: progress messages for the host.
        config: the extension's configuration.
        secrets: values that are redacted.
        verbatim: the argument `verbatim` of the call: no reference is replaced in it.
        given: the arguments as the host sent them, before `${NAME.key}` is replaced: for operations that treat texts of
            the task itself differently.
    """

    __slots__ = (
        "_artifacts",
        "_expansion",
        "_states",
        "agent",
        "config",
        "deadline",
        "env",
        "given",
        "host",
        "log",
        "phase",
        "place",
        "scope",
        "secrets",
        "verbatim",
        "workdir",
    )

    def __init__(
        self,
        *,
        workdir: Path,
        scope: str = "",
        place: Place | None = None,
        phase: str = "",
        env: Mapping[str, str] | None = None,
        agent: Agent | None = None,
        deadline: Deadline | None = None,
        log: Log,
        config: ConfigType_co,
        secrets: Secrets,
        states: States,
        artifacts: Artifacts,
        given: Mapping[str, object] | None = None,
        verbatim: bool = False,
        expansion: Callable[[], Expansion] | None = None,
        call_host: SendHostCall | None = None,
    ) -> None:
        self.workdir = workdir
        self.scope = scope
        self.phase = phase
        self.env = dict(env or {})
        self.agent = agent
        self.deadline = deadline or Deadline()
        self.host = HostCalls(call_host, self.deadline)
        self.log = log
        self.config = config
        self.secrets = secrets
        self.given = given or {}
        self.verbatim = verbatim
        self.place = place or Place.of(workdir, scope)  # which reads the file system
        self._states = states
        self._artifacts = artifacts
        self._expansion = expansion

    def expand(self, value: T, field: str = "", insert: Callable[[str], str] | None = None) -> T:
        """Return a text, or a JSON value, with the references `${NAME.key}` in its texts replaced, except in names.

        For texts that the SDK leaves as they are: files, and arguments marked Verbatim. Nothing is replaced in a call
        with `verbatim: true`.

        Args:
            field: the argument, or the file, for errors.
            insert: returns the text that is inserted for a value, such as one that is quoted. Default: the value.

        Raises:
            InvalidArgs: references without a value, all of them.
        """
        if self.verbatim or self._expansion is None:
            return value
        expansion = self._expansion()
        expanded = expansion.expand(value, field, insert=insert)
        if expansion.problem:
            raise expansion.problem
        return cast("T", expanded)

    def with_chosen(self, given: str) -> str:
        """Return a text of `given` with the values that extensions have chosen themselves, such as a free port.

        What is still a reference afterwards may have been influenced by the agent.
        """
        if self.verbatim or self._expansion is None or "${" not in given:
            return given
        return self._expansion().with_chosen(given)

    def references_in(self, text: str) -> list[str]:
        """Return the references `${NAME.key}` in a text that a step has set: in a program, probably a mistake.

        It returns none in a call with `verbatim: true`.
        """
        if self.verbatim or self._expansion is None or "${" not in text:
            return []
        return self._expansion().kept_in(text)

    def template(self, value: object, field: str = "") -> object:
        """Return a JSON value with an `ext_sdk.references.Template` for each text that is filled in per request.

        For arguments marked Template. Texts have `${request.…}`, and `${now}`, `${uuid}` and the like, which are new in
        each response; all other references have their values already. Other texts remain strings.

        Args:
            field: the argument, for errors.

        Raises:
            InvalidArgs: references without a value, all of them.
        """
        if self.verbatim or self._expansion is None:
            return value
        expansion = self._expansion()
        filled = expansion.template(value, field)
        if expansion.problem:
            raise expansion.problem
        return filled

    def directory_of_artifact(self, path: str) -> Path | None:
        """Return the directory of an artifact of this session; None for the path of another file."""
        return self._artifacts.directory_of(path)

    def artifact(self, name: str) -> Path:
        """Create an empty, private file for a text that is too long for a response. Raises OSError."""
        return self._artifacts.new(name)

    def config_as(self, kind: type[C]) -> C:
        """Return the configuration, an instance of the extension's class. Raises TypeError if it has another class."""
        if not isinstance(self.config, kind):
            raise TypeError(f"expected a configuration of the type {kind.__name__}, found {type(self.config).__name__}")
        return self.config

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
        timeout: Duration | float | None = None,
        exit_codes: Collection[int] | None = (0,),
        output_limit: int = OUTPUT_LIMIT,
        limits: Mapping[int, int] | None = None,
    ) -> CommandRun:
        """Run a command until it exits, or stop it with all its processes at the deadline of the call.

        It gets PATH, HOME, USER, LOGNAME and TMPDIR of this process, the variables of the task, and `env`. Failures
        show the end of its output; secrets in it are redacted.

        Args:
            command: the program and its arguments; no shell is involved.
            cwd: directory, relative to the workdir; paths that lead out of it are refused.
            env: further variables; values of those with secret names are redacted.
            stdin: its input; None: it reads the end of file at once.
            timeout: maximum duration, in seconds or as a Duration, if that is before the deadline.
            exit_codes: exit codes that are not a failure of the operation; None accepts every end.
            output_limit: bytes that are kept of the beginning of each output.
            limits: resource limits, such as `{resource.RLIMIT_AS: 2**30}`.

        Raises:
            OperationFailed: another exit code, the deadline, a directory that is missing or outside of the workdir.
            RequirementNotMet: the program is not in PATH.
        """
        from .core.redaction.secret_names import secret_variables
        from .process import Spawner, base_environment, run_in

        environment = base_environment() | self.env | dict(env or {})
        for name, value in secret_variables(environment).items():
            self.secrets.add(name, value)
        return run_in(
            self.workdir,
            command,
            spawner=self.extension_state(Spawner),
            deadline=self.deadline.limit(timeout),
            redact=self.secrets.redact,
            log=self.log.debug,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            exit_codes=exit_codes,
            output_limit=output_limit,
            limits=limits or {},
        )

    def state(self, factory: Callable[[], T]) -> T:
        """Return the object that operations of this workdir and scope share, created by `factory()` at the first call.

        Its method `close`, if any, is called once when the extension ends.
        """
        return self._states.get(self.place, factory)

    def extension_state(self, factory: Callable[[], T]) -> T:
        """Return the object that all workdirs and scopes of this process share; see `state`."""
        return self._states.get(None, factory)


Settings = TypeVar("Settings")
Client = TypeVar("Client", bound=Closable)


class ClientCache(Generic[Settings, Client]):
    """Cache of clients, which a subclass creates. Thread-safe.

    Attributes:
        most: maximum number of clients; the oldest makes room. 0: unlimited.
    """

    most = 0

    def __init__(self) -> None:
        self._clients: dict[Settings, Client] = {}
        self._lock = threading.Lock()

    def make(self, settings: Settings) -> Client:
        """Return a new client of these settings."""
        raise NotImplementedError

    def get(self, settings: Settings) -> Client:
        """Return the client of these settings; create it at the first call."""
        with self._lock:
            client = self._clients.get(settings)
            if client is None:
                if self.most and len(self._clients) >= self.most:
                    del self._clients[next(iter(self._clients))]  # its connections close when it is no longer used
                client = self._clients[settings] = self.make(settings)
            return client

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()
