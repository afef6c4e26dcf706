"""Selection of cassettes by a file, a folder, a pattern, or an address of a remote file system (fsspec)."""

from __future__ import annotations

import glob
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ext_recorder.cassette.paths import SUFFIX, beside
from ext_recorder.cassette.recording import HEADER, is_recording
from ext_recorder.errors import CassetteError, RecorderError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SUFFIXES = (".yaml", ".yml")  # of the files that are read in a folder

# The first lines of a cassette name its format. A folder may contain other YAML files as well: faults, manifests.
HEAD_BYTES = 4_096
_KEY = b"cassette"
_LIST = b"cassettes:"  # of a child in the header of a recording
_MAGIC = frozenset("*?[")


class Cassette:
    """A selected cassette.

    Attributes:
        name: name in messages: the path as it was given, or the address.
        http: True to fetch its file of HTTP interactions as well; None to fetch that file if it exists.
    """

    __slots__ = ("_address", "_inner", "http", "name")

    def __init__(self, name: str, address: str = "", inner: str = "") -> None:
        self.name = name
        self.http: bool | None = False
        self._address = address
        self._inner = inner

    @property
    def remote(self) -> bool:
        """Return True if the file is remote. It can be read, and not written."""
        return bool(self._address)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Yield the file, or a temporary copy of a remote file. Raises CassetteError if it cannot be fetched."""
        if not self._address:
            yield Path(self.name)
            return

        with fetched(self._address, self._inner, self.name, http=self.http) as path:
            yield path

    def __repr__(self) -> str:
        return f"Cassette({self.name!r})"


def named(words: Iterable[str], *, recordings: bool = False) -> list[Cassette]:
    """Return the cassettes that these words name, without duplicates, sorted by name.

    - A file is one cassette, with any name.
    - A folder contains the cassettes `*.yaml` and `*.yml` in it and its subfolders. Hidden files and folders, and
      files that do not begin as a cassette, are skipped; an empty file is included.
    - A pattern (`*`, `?`, `[…]`, `**` for any folders) is the cassettes among the files that match it.
    - With `recordings`, the folder of a recorded run is one of them, wherever it is found; else its cassettes are.
    - An address (`s3://bucket/folder`, `zip://*.yaml::file:///sessions.zip`, …) is the same on a remote file system.

    Raises:
        UsageError: a word names no cassette.
    """
    cassettes: dict[str, Cassette] = {}
    for word in words:
        selected = list(_selected(word, recordings=recordings))
        if not selected:
            raise UsageError(f"{word}: no cassette; expected a file, a folder with *.yaml, a pattern, or an address")
        for cassette in selected:
            key = cassette.name if cassette.remote else os.path.realpath(cassette.name)
            cassettes.setdefault(key, cassette)
    return sorted(cassettes.values(), key=lambda cassette: cassette.name)


@contextmanager
def file_of(word: str, *, http: bool | None = False) -> Iterator[tuple[Path, str]]:
    """Yield the file of the one cassette that a word names, and its name for messages. The word may be an address.

    Args:
        word: a path or an address.
        http: see `Cassette`.

    Raises:
        UsageError: the address names no cassette, or several.
        CassetteError: the file cannot be fetched, or, within the `with` block, not be read.
    """
    if "://" not in word:
        yield Path(word), word
        return
    cassettes = named([word])
    if len(cassettes) > 1:
        names = ", ".join(cassette.name for cassette in cassettes[:3]) + (", …" if cassettes[3:] else "")
        raise UsageError(f"{word}: expected one cassette, found {len(cassettes)}: {names}")
    cassette = cassettes[0]
    cassette.http = http
    with cassette.local() as path:
        try:
            yield path, cassette.name
        except CassetteError as error:
            if error.path != str(path):
                raise
            raise CassetteError(cassette.name, error.line, error.problem, error.advice) from error  # names the address


def _selected(word: str, *, recordings: bool) -> Iterator[Cassette]:
    if "://" in word:
        for name, inner in listed(word):
            yield Cassette(name, word, inner)
        return
    path = Path(word)
    if path.is_dir():
        yield from map(Cassette, map(str, _in_folder(path, recordings=recordings)))
    elif path.exists() or not _MAGIC & set(word):
        yield Cassette(word)  # opening a missing file raises an error with advice
    else:
        for name in glob.iglob(word, recursive=True):  # noqa: PTH207 - Path.glob has no absolute patterns
            if (recordings and is_recording(Path(name))) or (Path(name).is_file() and _is_cassette(Path(name))):
                yield Cassette(name)


def _in_folder(path: Path, *, recordings: bool) -> Iterator[Path]:
    """Yield the cassettes in a folder and its subfolders; with `recordings`, a recording instead of its cassettes."""
    folders = {file.parent for file in path.rglob(HEADER)} if recordings else set()
    for file in (*folders, *path.rglob("*")):
        if any(part.startswith(".") for part in file.relative_to(path).parts) or not folders.isdisjoint(file.parents):
            continue
        if file in folders or (file.suffix in SUFFIXES and file.is_file() and _is_cassette(file)):
            yield file


def _is_cassette(path: Path) -> bool:
    with path.open("rb") as file:
        return begins_a_cassette(file.read(HEAD_BYTES))


def begins_a_cassette(head: bytes) -> bool:
    """Return True for the first bytes of a cassette, and for an empty file, which is a damaged cassette."""
    if not head.strip():
        return True
    starts = (line.lstrip(b"{ \"'") for line in head.splitlines())
    return any(line.startswith(_KEY) and not line.startswith(_LIST) for line in starts)


class _FileSystem(Protocol):
    """The methods of fsspec's AbstractFileSystem that are used here."""

    def isdir(self, path: str) -> bool: ...

    def isfile(self, path: str) -> bool: ...

    def exists(self, path: str) -> bool: ...

    def glob(self, path: str) -> list[str]: ...

    def find(self, path: str) -> list[str]: ...

    def cat_file(self, path: str, start: int, end: int) -> bytes: ...

    def get_file(self, rpath: str, lpath: str) -> None: ...

    def unstrip_protocol(self, name: str) -> str: ...


def listed(address: str) -> Iterator[tuple[str, str]]:
    """Yield name in messages and path of each cassette on a remote file system.

    Raises:
        UsageError: fsspec, or its package for this scheme, is not installed, or the address cannot be listed.
    """
    first, chained, rest = address.partition("::")
    try:
        files, path = _opened(address)
        for inner in _paths(files, path):
            scheme = first.partition("://")[0]
            yield _safe(f"{scheme}://{inner}::{rest}" if chained else files.unstrip_protocol(inner)), inner
    except RecorderError:
        raise
    except Exception as failure:  # each file system raises errors of its own
        raise UsageError(f"{_safe(address)}: {_message(failure)}") from failure


def _paths(files: _FileSystem, path: str) -> list[str]:
    if any(char in path for char in _MAGIC):
        paths = [name for name in files.glob(path) if files.isfile(name)]
    elif files.isdir(path):
        paths = [name for name in files.find(path) if name.endswith(SUFFIXES) and "/." not in name[len(path) :]]
    else:
        return [path]
    return [name for name in paths if begins_a_cassette(files.cat_file(name, 0, HEAD_BYTES))]


@contextmanager
def fetched(address: str, inner: str, name: str, *, http: bool | None = False) -> Iterator[Path]:
    """Yield a temporary copy of a remote cassette.

    Args:
        inner: path on that file system.
        name: its name in messages.
        http: see `Cassette`.

    Raises:
        CassetteError: the file cannot be fetched.
    """
    with tempfile.TemporaryDirectory(prefix="ext-recorder-") as folder:
        copy = Path(folder) / (inner.rstrip("/").rpartition("/")[2] or "cassette.yaml")
        try:
            files, _ = _opened(address)
            files.get_file(inner, str(copy))
            if http or (http is None and files.exists(beside(inner))):
                inner = beside(inner)
                files.get_file(inner, beside(str(copy)))
        except RecorderError:
            raise
        except Exception as failure:  # see above
            subject = f"{inner.rpartition('/')[2]} next to it " if inner.endswith(SUFFIX) else ""
            raise CassetteError(name, 0, f"{subject}cannot be fetched: {_message(failure)}") from failure
        yield copy


def _opened(address: str) -> tuple[_FileSystem, str]:
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        scheme = address.partition("://")[0]
        raise UsageError(f"{scheme}://… requires fsspec: pip install fsspec") from None
    return cast("tuple[_FileSystem, str]", url_to_fs(address))


def _safe(address: str) -> str:
    from ext_sdk.core.redaction.redactor import Redactor

    return Redactor(rules=True).redact_text(address)


def _message(failure: Exception) -> str:
    text = " ".join(str(failure).split())
    if isinstance(failure, FileNotFoundError):
        return "no such file"
    return _safe(text) or type(failure).__name__
