"""Values that extensions of one user share: outputs kept with `as: NAME`, for references in calls of other extensions.

Each running extension writes its values to a private directory of its own, and reads those of the others that the same
host started when a reference needs them. Secret values are never written.

    <tmp>/ext-values-<uid>/                      mode 0700
        of-<host>-<random>/                      of one extension; locked while it runs, later removed by any other
            <hash of workdir, scope and name>    the values of one name

The host is the parent process, unless standard input has an owner (F_SETOWN of fcntl(2)): `ext-recorder` sets it to the
host, because it is itself the parent of the extension that it records. The variable EXT_VALUES_HOST precedes both.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ext_sdk.result import NotKept

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ext_sdk.context import Place

LONGEST_VALUE = 1024 * 1024  # characters of one value
MOST_SHARED = 64 * 1024 * 1024  # bytes of all values of one extension
HOST_VARIABLE = "EXT_VALUES_HOST"
LISTED_BYTES = 256 * 1024  # longer files are not read for suggestions
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED = "new-"  # begins the name of a directory that is not locked yet
_UNFINISHED_SECONDS = 3600.0


class Kept(msgspec.Struct, omit_defaults=True):
    """Values of one name.

    Attributes:
        extension: name of the extension that keeps them.
        at: the time, in nanoseconds of CLOCK_MONOTONIC, which all processes share.
        failed: the operation that failed and so unset the name, or "".
        values: values by key.
        reasons: reasons for which other values are not available, by key.
        chosen: keys of the values that the extension has chosen itself.
        workdir: of the place.
        scope: of the place.
    """

    extension: str
    name: str
    at: int
    failed: str = ""
    values: dict[str, str] = {}
    reasons: dict[str, str] = {}
    chosen: list[str] = []
    workdir: str = ""
    scope: str = ""


class SharedValues:
    """Values of this extension for others, and those of others. Thread-safe.

    Nothing is created before the first value is kept or sought.

    Args:
        extension: name of this extension.
        redact: returns a text without secrets; a value that it changes is not shared.
        input: descriptor of standard input, from which the extension reads the messages of the host.
    """

    def __init__(self, extension: str, redact: Callable[[str], str], input: int = 0) -> None:
        self._extension = f"ext-{extension}"
        self._redact = redact
        owner = 0
        with suppress(OSError):  # closed
            owner = fcntl.fcntl(input, fcntl.F_GETOWN)
        host = os.environ.get(HOST_VARIABLE) or str(owner if owner > 0 else os.getppid())
        self._host = f"of-{re.sub('[^A-Za-z0-9]', '_', host)[:100]}"
        self._own = ""  # name of this extension's directory
        self._descriptor = -1  # of that directory; the lock belongs to it
        self._sizes: dict[str, int] = {}  # of its files
        self._closed = False
        self._lock = threading.Lock()

    def keep(
        self,
        place: Place,
        name: str,
        outputs: Mapping[str, str | NotKept],
        secret: Collection[str] = (),
        chosen: Collection[str] = (),
    ) -> None:
        """Share the outputs of an operation; they replace all earlier ones of that name.

        Args:
            secret: keys of secret outputs.
            chosen: keys of outputs that the extension has chosen itself.

        Raises:
            OSError: they could not be written; earlier values of the name are removed.
        """
        kept = Kept(self._extension, name, time.monotonic_ns(), chosen=sorted(chosen))
        for key, value in outputs.items():
            if isinstance(value, NotKept):
                kept.reasons[key] = value.reason
            elif key in secret or self._redact(value) != value:
                only = f"and secret values are available in {self._extension} only"
                part = f"it contains a secret value, {only}; `capture` the part that is needed"
                kept.reasons[key] = f"it is secret, {only}" if key in secret else part
            elif len(value) > LONGEST_VALUE:
                kept.reasons[key] = (
                    f"it has {len(value):,} characters, and other extensions get values of at most {LONGEST_VALUE:,}; "
                    "`capture` the part that is needed"
                )
            else:
                kept.values[key] = value
        self._write(place, kept)

    def fail(self, place: Place, name: str, operation: str) -> None:
        """Unset a name, because the operation that was to set it failed. Raises OSError."""
        self._write(place, Kept(self._extension, name, time.monotonic_ns(), failed=operation))

    def find(self, place: Place, name: str, *, later_than: int = 0) -> Kept | None:
        """Return the latest values of a name that another running extension keeps; None if there are none.

        Args:
            later_than: the time of this extension's own call with the name; earlier values are ignored.
        """
        file = _file(place, name)
        found = [kept for kept in self._read(lambda _: [file], MOST_SHARED) if kept.at > later_than]
        return max(found, key=lambda kept: kept.at, default=None)

    def known(self, place: Place) -> dict[str, Kept]:
        """Return the latest values of each name that other running extensions keep, by name, except long ones."""
        begin = _file(place, "").partition(".")[0]
        found = self._read(lambda files: [file for file in files if file.startswith(begin)], LISTED_BYTES)
        return {kept.name: kept for kept in sorted(found, key=lambda kept: kept.at)}

    def scopes(self, place: Place, name: str) -> set[str]:
        """Return the scopes of a workdir in which another extension keeps values under a name."""
        end = _file(place, name).partition(".")[2]
        found = self._read(lambda files: [file for file in files if file.endswith(end)], LISTED_BYTES)
        return {kept.scope for kept in found if kept.workdir == place.workdir and not kept.failed}

    def close(self) -> None:
        """Remove the values of this extension."""
        with self._lock:
            self._closed = True
            own, self._own = self._own, ""
            if own:
                with suppress(OSError), _base() as base:
                    _remove(base, own, self._descriptor)
                os.close(self._descriptor)

    def _write(self, place: Place, kept: Kept) -> None:
        """Write the values of one name to the directory of this extension, which the first call creates."""
        from ext_sdk.core.atomic import atomic_write  # not needed by sessions without `as`

        file = _file(place, kept.name)
        with self._lock:
            if self._closed:
                return
            if not self._own:
                self._create()
            kept.workdir, kept.scope = place
            content = msgspec.json.encode(kept)
            used = sum(self._sizes.values()) - self._sizes.get(file, 0)
            if used + len(content) > MOST_SHARED:
                reason = f"the values that {self._extension} keeps for other extensions exceed {MOST_SHARED:,} bytes"
                kept.reasons |= dict.fromkeys(kept.values, reason)
                kept.values = {}
                content = msgspec.json.encode(kept)
            try:
                with atomic_write(file, self._descriptor, 0o600) as target:
                    target.write(content)
            except OSError:
                with suppress(OSError):  # an earlier value would be wrong
                    os.unlink(file, dir_fd=self._descriptor)
                raise
            self._sizes[file] = len(content)

    def _create(self) -> None:
        """Create the directory of this extension, and lock it before its name is one that others read."""
        import secrets  # not needed by sessions without `as`

        self._read(lambda _: [], 0)  # removes those of extensions that have ended
        with _base() as base:
            token = secrets.token_hex(8)
            os.mkdir(_UNFINISHED + token, 0o700, dir_fd=base)
            self._descriptor = os.open(_UNFINISHED + token, _DIRECTORY, dir_fd=base)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            self._own = f"{self._host}-{token}"
            os.rename(_UNFINISHED + token, self._own, src_dir_fd=base, dst_dir_fd=base)

    def _read(self, choose: Callable[[list[str]], list[str]], limit: int) -> list[Kept]:
        """Return the values in files of the other running extensions of this host.

        Directories of extensions that have ended are removed.

        Args:
            choose: returns the files to read; gets the names of all.
            limit: bytes; longer files are ignored.
        """
        found: list[Kept] = []
        with suppress(OSError), _base() as base:
            for name in os.listdir(base):  # noqa: PTH208  (a descriptor)
                with suppress(OSError, msgspec.MsgspecError, ValueError):
                    if name == self._own:
                        continue
                    if name.startswith(_UNFINISHED):
                        changed = os.stat(name, dir_fd=base, follow_symlinks=False).st_mtime
                        if time.time() - changed < _UNFINISHED_SECONDS:
                            continue
                    descriptor = os.open(name, _DIRECTORY, dir_fd=base)
                    try:
                        if not _is_locked(descriptor):
                            _remove(base, name, descriptor)
                        elif name.startswith(f"{self._host}-"):
                            files = choose(os.listdir(descriptor))  # noqa: PTH208
                            found += [kept for file in files if (kept := _decoded(descriptor, file, limit))]
                    finally:
                        os.close(descriptor)
        return found


def _file(place: Place, name: str) -> str:
    """Return the file of the values of a name; those of one place begin alike."""
    import hashlib  # not needed by most sessions

    texts = ("\0".join(place), name)
    return ".".join(hashlib.sha256(os.fsencode(text)).hexdigest()[:32] for text in texts)


@contextmanager
def _base() -> Iterator[int]:
    """Open the directory of all extensions of this user; create it if it is missing.

    Raises:
        PermissionError: it belongs to another user, or others can access it.
        OSError: it can't be opened or created.
    """
    import tempfile

    path = Path(tempfile.gettempdir(), f"ext-values-{os.getuid()}")
    with suppress(FileExistsError):
        path.mkdir(0o700)
    descriptor = os.open(path, _DIRECTORY)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise PermissionError(f"{path}: expected a directory that only its owner, this user, can access")
        yield descriptor
    finally:
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    """Return True if the extension of a directory is running."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _decoded(directory: int, file: str, limit: int) -> Kept | None:
    """Return the values in a file; None if it is missing, or longer than `limit` bytes."""
    try:
        descriptor = os.open(file, _FILE, dir_fd=directory)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as content:
        if os.fstat(descriptor).st_size > limit:
            return None
        return msgspec.json.decode(content.read(limit), type=Kept)


def _remove(base: int, name: str, descriptor: int) -> None:
    """Remove the directory of an extension, and the files in it. Raises OSError."""
    for file in os.listdir(descriptor):
        with suppress(FileNotFoundError):
            os.unlink(file, dir_fd=descriptor)
    os.rmdir(name, dir_fd=base)
