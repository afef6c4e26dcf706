"""What an operation is given beside its arguments (spec 0, "Context Object"), and how it talks back."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from .deadline import Deadline
from .errors import OperationFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from ext_sdk.core.redaction.redactor import Redactor

    from .args import Config


class Place(NamedTuple):
    """Whose variables and state count: those of a workdir, and within it of a scope.

    Attributes:
        workdir: without symbolic links, so that it is the same by any of its names.
        scope: the argument `scope`; "" if it was not given.
    """

    workdir: str
    scope: str = ""

    @classmethod
    def of(cls, workdir: Path, scope: str = "") -> Place:
        """Return the place of a call."""
        return cls(os.path.realpath(workdir), scope)


T = TypeVar("T")
KEEP_SECONDS = 7 * 24 * 3600.0  # of artifacts in a private directory


class Agent:
    """Prompt and output of the agent (spec 0, "Agent Context Object"); None for a part that the host did not send."""

    __slots__ = ("output", "prompt")

    def __init__(self, prompt: str | None, output: str | None) -> None:
        self.prompt = prompt
        self.output = output


class Log:
    """Progress for the host (spec 0, "Log"). Data must be JSON; what does not fit a line is cut."""

    __slots__ = ("_send",)

    def __init__(self, send: Callable[[str, str, Mapping[str, object]], None]) -> None:
        self._send = send

    def debug(self, message: str, **data: object) -> None:
        """For somebody who looks for a fault."""
        self._send("debug", message, data)

    def info(self, message: str, **data: object) -> None:
        """What is being done."""
        self._send("info", message, data)

    def warn(self, message: str, **data: object) -> None:
        """Something is odd; the operation goes on."""
        self._send("warn", message, data)

    def error(self, message: str, **data: object) -> None:
        """Something failed; the result tells whether that matters."""
        self._send("error", message, data)


class Secrets:
    """Values that are taken out of everything the extension writes."""

    __slots__ = ("_redactor",)

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def add(self, name: str, value: str) -> None:
        """Hide a value from now on, in base64, URL, JSON and hex too; one under 4 characters is left alone."""
        self._redactor.add(name, value)

    def redact(self, text: str) -> str:
        """Return the text without secrets, for files that an operation writes for people."""
        return self._redactor.redact_text(text)


@runtime_checkable
class Closable(Protocol):
    """State that has something to end: processes, servers, files."""

    def close(self) -> None:
        """End it, within 2 seconds. Called once, from any thread."""


class States:
    """State of operations between calls: one object for each (place, factory). Thread-safe."""

    def __init__(self) -> None:
        self._states: dict[tuple[Hashable, Hashable], object] = {}
        self._closed = False
        self._lock = threading.RLock()  # a factory may ask for another state

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
        """Make no more, and return what has to be closed; each is returned once."""
        with self._lock:
            self._closed = True
            states, self._states = self._states, {}
        return [state for state in states.values() if isinstance(state, Closable)]


def remove_old(name: str, parent: Path, before: float) -> None:
    """Remove the private directories of artifacts of this user that nothing was added to since then.

    Args:
        name: of the extension.
        parent: the directory that holds them.
        before: the time, in seconds since 1970.
    """
    private = re.compile(rf"ext-{re.escape(name)}-[a-z0-9_]{{8}}")  # as mkdtemp makes them
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):
                if private.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid == os.getuid() and status.st_mtime < before:
                        shutil.rmtree(entry.path, ignore_errors=True)


class Artifacts:
    """Private files for texts that are too long for an answer. They outlive the process, by a week at least.

    Args:
        directory: where; "" makes a new private directory under the temporary one at the first use, and removes those
            that nothing was added to for KEEP_SECONDS.
        name: of the extension, for the directory's name.
    """

    def __init__(self, directory: str, name: str) -> None:
        self._directory = Path(directory).absolute() if directory else None
        self._name = name
        self._count = 0
        self._lock = threading.Lock()

    def new(self, name: str) -> Path:
        """Return a new, empty file; `name` is the ending of its name, such as `stdout.txt`. Raises OSError."""
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
                except FileExistsError:  # of another process, in a directory that was given
                    continue
                return path


class Context:
    """The circumstances of one call.

    Attributes:
        workdir: the task's directory, absolute; relative paths in arguments start here. It need not exist.
        scope: the argument `scope` of the call, which keeps tasks apart that share a workdir; "" if it was not given.
        phase: "setup", "verify", "cleanup", or "" where the host does not say (one known host never does).
        env: variables of the task.
        agent: see Agent; None outside verify.
        deadline: when the operation must have answered.
        log: progress for the host.
        config: the extension's configuration.
        secrets: what must not be seen.
        given: the arguments as the host sent them, with `${NAME.key}` not yet replaced: it matters to some whether a
            text stands in the task itself.
    """

    __slots__ = (
        "_artifacts",
        "_states",
        "agent",
        "config",
        "deadline",
        "env",
        "given",
        "log",
        "phase",
        "scope",
        "secrets",
        "workdir",
    )

    def __init__(
        self,
        *,
        workdir: Path,
        scope: str = "",
        phase: str = "",
        env: Mapping[str, str] | None = None,
        agent: Agent | None = None,
        deadline: Deadline | None = None,
        log: Log,
        config: Config,
        secrets: Secrets,
        states: States,
        artifacts: Artifacts,
        given: Mapping[str, object] | None = None,
    ) -> None:
        self.workdir = workdir
        self.scope = scope
        self.phase = phase
        self.env = dict(env or {})
        self.agent = agent
        self.deadline = deadline or Deadline()
        self.log = log
        self.config = config
        self.secrets = secrets
        self.given = given or {}
        self._states = states
        self._artifacts = artifacts

    def artifact(self, name: str) -> Path:
        """Return a new, empty, private file for a text that is too long for an answer. Raises OSError."""
        return self._artifacts.new(name)

    @property
    def place(self) -> Place:
        """Workdir and scope, as `state` and variables tell calls apart."""
        return Place.of(self.workdir, self.scope)

    def state(self, factory: Callable[[], T]) -> T:
        """Return the object that operations of this workdir and scope share, made by `factory()` at the first call.

        If it has a method `close`, that is called once when the extension ends.
        """
        return self._states.get(self.place, factory)

    def extension_state(self, factory: Callable[[], T]) -> T:
        """Return the same for all workdirs and scopes of this process."""
        return self._states.get(None, factory)
