"""Which cassettes are meant: by a file, a folder, a pattern, or an address that fsspec knows."""

from __future__ import annotations

import glob
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ext_recorder.cassette.paths import SUFFIX, beside
from ext_recorder.errors import CassetteError, RecorderError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


SUFFIXES = (".yaml", ".yml")  # what a folder is searched for

# A cassette names its format in the first of its lines. Folders hold other YAML as well: faults, manifests.
HEAD_BYTES = 4_096
_KEY = b"cassette"
_MAGIC = frozenset("*?[")


class Cassette:
    """One cassette that was asked for.

    Attributes:
        name: for people: the path as it was given, or the address.
        remote: whether it is on another machine; then it can be read, and not written.
        http: True to fetch the HTTP traffic next to it, too; None to fetch it if there is any.
    """

    __slots__ = ("_address", "_inner", "http", "name")

    def __init__(self, name: str, address: str = "", inner: str = "") -> None:
        self.name = name
        self.http: bool | None = False
        self._address = address
        self._inner = inner

    @property
    def remote(self) -> bool:
        """See the class."""
        return bool(self._address)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """The file to read, a copy where it is remote. Raises CassetteError where there is none to be had."""
        if not self._address:
            yield Path(self.name)
            return

        with fetched(self._address, self._inner, self.name, http=self.http) as path:
            yield path

    def __repr__(self) -> str:
        return f"Cassette({self.name!r})"


def named(words: Iterable[str]) -> list[Cassette]:
    """The cassettes that these words mean, each once, sorted by name.

    - A file is itself, whatever it is called.
    - A folder is all `*.yaml` and `*.yml` in it and below it that begin as a cassette does, or are empty; what is
      hidden (`.name`) is passed over.
    - A pattern (`*`, `?`, `[…]`, `**` for any folders) is the files that it fits, but for those that begin otherwise:
      the HTTP traffic of cassettes stands beside them.
    - An address (`s3://bucket/folder`, `zip://*.yaml::file:///sessions.zip`, …) is the same on another file system.

    Raises:
        UsageError: a word means nothing.
    """
    found: dict[str, Cassette] = {}
    for word in words:
        cassettes = list(_meant(word))
        if not cassettes:
            raise UsageError(
                f"{word}: no cassette there; expected a file, a folder with *.yaml, a pattern, or an address"
            )
        for each in cassettes:
            found.setdefault(each.name if each.remote else os.path.realpath(each.name), each)
    return sorted(found.values(), key=lambda each: each.name)


@contextmanager
def file_of(word: str, *, http: bool | None = False) -> Iterator[tuple[Path, str]]:
    """Yield the file of the one cassette that a word names, and its name for messages. The word may be an address.

    Args:
        word: a path or an address.
        http: see `Cassette`.

    Raises:
        UsageError: at the address there is none, or there are several.
        CassetteError: it can't be fetched, or, from within, not be read.
    """
    if "://" not in word:
        yield Path(word), word
        return
    found = named([word])
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:3])
        raise UsageError(f"{word}: expected one cassette, found {len(found)}: {names}{', …' if found[3:] else ''}")
    found[0].http = http
    with found[0].local() as path:
        try:
            yield path, found[0].name
        except CassetteError as error:
            if error.path != str(path):
                raise
            raise CassetteError(found[0].name, error.line, error.problem, error.advice) from error  # not about the copy


def _meant(word: str) -> Iterator[Cassette]:
    if "://" in word:
        for name, inner in listed(word):
            yield Cassette(name, word, inner)
        return
    path = Path(word)
    if path.is_dir():
        yield from (Cassette(str(each)) for each in _in_folder(path))
    elif path.exists() or not _MAGIC & set(word):
        yield Cassette(word)  # a file that is missing is told by whoever opens it, with what to do
    else:
        for each in glob.iglob(word, recursive=True):  # noqa: PTH207 - Path.glob has no absolute patterns
            if Path(each).is_file() and _is_cassette(Path(each)):
                yield Cassette(each)


def _in_folder(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix in SUFFIXES and not hidden and path.is_file() and _is_cassette(path):
            yield path


def _is_cassette(path: Path) -> bool:
    with path.open("rb") as file:
        return begins_a_cassette(file.read(HEAD_BYTES))


def begins_a_cassette(head: bytes) -> bool:
    """Is this the beginning of a cassette? An empty file is taken for a broken one."""
    if not head.strip():
        return True
    return any(line.lstrip(b"{ \"'").startswith(_KEY) for line in head.splitlines())


class _FileSystem(Protocol):
    """What is used of fsspec's AbstractFileSystem."""

    def isdir(self, path: str) -> bool: ...

    def isfile(self, path: str) -> bool: ...

    def exists(self, path: str) -> bool: ...

    def glob(self, path: str) -> list[str]: ...

    def find(self, path: str) -> list[str]: ...

    def cat_file(self, path: str, start: int, end: int) -> bytes: ...

    def get_file(self, rpath: str, lpath: str) -> None: ...

    def unstrip_protocol(self, name: str) -> str: ...


def listed(address: str) -> Iterator[tuple[str, str]]:
    """The cassettes at an address: (name for people, path on that file system).

    Raises:
        UsageError: fsspec, or its part for this kind of address, is not installed, or nothing can be listed there.
    """
    try:
        files, path = _opened(address)
        for inner in _paths(files, path):
            yield _name(files, address, inner), inner
    except RecorderError:
        raise
    except Exception as failure:  # each file system raises errors of its own
        raise UsageError(f"{_safe(address)}: {_said(failure)}") from failure


@contextmanager
def fetched(address: str, inner: str, name: str, *, http: bool | None = False) -> Iterator[Path]:
    """A copy on this machine, until the end of the `with`.

    Args:
        address: where it is, as it was given.
        inner: where it is on that file system.
        name: what to call it in messages.
        http: fetch the HTTP traffic next to it, too; None: if there is any.

    Raises:
        CassetteError: it is not to be had.
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
            what = f"{inner.rpartition('/')[2]} beside it " if inner.endswith(SUFFIX) else ""
            raise CassetteError(name, 0, f"{what}can't be fetched: {_said(failure)}") from failure
        yield copy


def _opened(address: str) -> tuple[_FileSystem, str]:
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        scheme = address.partition("://")[0]
        raise UsageError(f"{scheme}://…: reading it takes fsspec: pip install 'gevals-extensions[remote]'") from None
    return cast("tuple[_FileSystem, str]", url_to_fs(address))


def _paths(files: _FileSystem, path: str) -> list[str]:
    if any(char in path for char in "*?["):
        paths = [each for each in files.glob(path) if files.isfile(each)]
    elif files.isdir(path):
        paths = [each for each in files.find(path) if each.endswith(SUFFIXES) and "/." not in each[len(path) :]]
    else:
        return [path]
    return [each for each in paths if begins_a_cassette(files.cat_file(each, 0, HEAD_BYTES))]


def _name(files: _FileSystem, address: str, inner: str) -> str:
    """The address of one file, without a password in it."""
    first, chained, rest = address.partition("::")
    if chained:
        return _safe(f"{first.partition('://')[0]}://{inner}::{rest}")
    return _safe(files.unstrip_protocol(inner))


def _safe(address: str) -> str:
    from ext_sdk.core.redaction.redactor import Redactor

    return Redactor(rules=True).redact_text(address)


def _said(failure: Exception) -> str:
    text = " ".join(str(failure).split())
    if isinstance(failure, FileNotFoundError):
        return "no such file"
    return _safe(text) or type(failure).__name__
