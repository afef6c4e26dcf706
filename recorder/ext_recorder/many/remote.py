"""Cassettes on other file systems: by fsspec, which is there where `gevals-extensions[remote]` was installed.

A cassette is fetched whole before it is read: a session is read from its beginning to its end, some of them twice.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ext_recorder.errors import CassetteError, RecorderError, UsageError
from ext_recorder.http.naming import SUFFIX, beside
from ext_sdk.core.redaction.redactor import Redactor

from .names import HEAD_BYTES, SUFFIXES, begins_a_cassette

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    return Redactor(rules=True).redact_text(address)


def _said(failure: Exception) -> str:
    text = " ".join(str(failure).split())
    if isinstance(failure, FileNotFoundError):
        return "no such file"
    return _safe(text) or type(failure).__name__
