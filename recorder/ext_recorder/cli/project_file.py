"""Search for the project file: ext-recorder.toml, or pyproject.toml with a table `[tool.ext-recorder]`.

The search starts in the folder of the cassette, so that a shim, an MCP client and a test use the same file whatever
their working directory is. `replay` and `record` import this module at every start: without a file, it costs a few
system calls. `settings` reads the content.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from . import Command, Values

NO_FILE = "none"  # the value of --config and of the variable that switches the search off
VARIABLE = "EXT_RECORDER_CONFIG"
OWN, SHARED = "ext-recorder.toml", "pyproject.toml"
CASSETTES = frozenset(
    {"CASSETTE", "A", "B", "FILE", "FOLDER", "PARTIAL"}
)  # the arguments of commands that name cassettes
# Forms of the header; a pyproject.toml that contains none of them is not parsed.
_TABLES = (b"tool.ext-recorder", b'tool."ext-recorder"', b"tool.'ext-recorder'")
_MAGIC = frozenset("*?[")


class ProjectFile:
    """A project file.

    Attributes:
        path: absolute path.
        data: content.
    """

    __slots__ = ("data", "path")

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data

    @property
    def folder(self) -> str:
        """The folder that relative paths in the file are relative to."""
        return os.path.dirname(self.path)  # noqa: PTH120 - pathlib costs 5 ms

    @property
    def shared(self) -> bool:
        """True for a pyproject.toml: the settings are in its table `[tool.ext-recorder]`."""
        return os.path.basename(self.path) == SHARED  # noqa: PTH119


def located(command: Command, values: Values) -> ProjectFile | None:
    """Return the project file of a command line; None if there is none.

    Raises:
        UsageError: `--config` names no file, or cassettes of several projects are named.
    """
    if switched_off(values):
        return None
    if name := _name(values):
        path = os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111
        try:
            with open(path, "rb") as opened:  # noqa: PTH123
                return ProjectFile(path, opened.read())
        except FileNotFoundError:
            source = "--config" if values["config"] else VARIABLE
            raise UsageError(f"{source} {path}: no such file; expected a project file in TOML, or {NO_FILE}") from None
        except OSError as error:
            raise _unreadable(path, error) from None
    words = [word for name in command.arguments if name in CASSETTES for word in values[name]]
    words += values.get("dir", ())  # replaces the cassette of `record`
    files = {file.path: file for folder in folders(words) if (file := search(folder))}
    if len(files) > 1:
        raise UsageError(
            f"the cassettes have different project files, {' and '.join(list(files)[:2])}: "
            "name one by --config FILE, or run the command for each"
        )
    return next(iter(files.values()), None)


def switched_off(values: Values) -> bool:
    """Return True if the command line or the environment disables the project file."""
    return _name(values) == NO_FILE


def folders(words: Iterable[str]) -> list[str]:
    """Return the folders where the search starts, each once: those of the cassettes, or the working directory.

    Args:
        words: files, folders, patterns or addresses of cassettes.
    """
    starts: dict[str, None] = {}
    for word in words:
        if "://" not in word:
            path = os.path.abspath(os.path.expanduser(word))  # noqa: PTH100, PTH111
            while _MAGIC & set(path) and not os.path.exists(path):  # noqa: PTH110 - a pattern: the folder before it
                path = os.path.dirname(path)  # noqa: PTH120
            starts[path if os.path.isdir(path) else os.path.dirname(path)] = None  # noqa: PTH112, PTH120
    return list(starts) or [os.getcwd()]  # noqa: PTH109


def search(start: str) -> ProjectFile | None:
    """Return the nearest project file in a folder or above it; None if there is none.

    A file of another user is reported on standard error, and skipped: /tmp is above many cassettes.
    """
    for folder in searched(start):
        for name in (OWN, SHARED):
            path = f"{folder.rstrip('/')}/{name}"
            try:
                status = os.stat(path)  # noqa: PTH116 - pathlib costs 5 ms
            except OSError:
                continue
            file = _trusted(path) if S_ISREG(status.st_mode) else None
            if file:
                return file
    return None


def searched(start: str) -> Iterator[str]:
    """Yield the folders of a search: upward to the root of the repository, the home directory or the root."""
    home = os.environ.get("HOME", "").rstrip("/")
    folder = start
    while True:
        yield folder
        above = os.path.dirname(folder)  # noqa: PTH120
        if folder in {above, home} or os.path.exists(f"{folder}/.git"):  # noqa: PTH110
            return
        folder = above


def _name(values: Values) -> str:
    return (values["config"] or (os.environ.get(VARIABLE, ""),))[-1]


def _trusted(path: str) -> ProjectFile | None:
    """Return a file with settings; None for one without, and for a file of another user."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            owner, data = os.fstat(file.fileno()).st_uid, file.read()
    except OSError as error:
        raise _unreadable(path, error) from None
    if path.endswith(SHARED) and not any(table in data for table in _TABLES):
        if b"\n[tool.ext_recorder" in b"\n" + data:
            raise UsageError(f"{path}: [tool.ext_recorder]: unknown table; did you mean [tool.ext-recorder]")
        return None
    # Settings may name programs to run and files to write, so the file must belong to the user or root. Root in a
    # container often works in the checkout of a user, which is mounted there.
    user = os.geteuid()
    if owner in {0, user, *(() if user else (os.stat(".").st_uid,))}:  # noqa: PTH116
        return ProjectFile(path, data)
    from ext_recorder.posix.output import host_outlet, write_message

    write_message(host_outlet(2), f"{path} belongs to another user and is not read; --config FILE reads it")
    return None


def _unreadable(path: str, error: OSError) -> UsageError:
    return UsageError(f"{path}: cannot be read: {error.strerror}; --config {NO_FILE} runs without it")
