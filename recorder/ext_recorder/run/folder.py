"""Folder of one recording: `recording.yaml`, the header, `traffic.http.yaml`, and cassettes in `children/`.

A recording is made in FOLDER.partial, whose header is written last; then the folder is renamed. So FOLDER is complete,
or missing, and a previous recording exists until the new one is complete. The process that records locks the partial
folder; the kernel releases the lock with the process, however that ends. `recover` completes an interrupted recording.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.paths import partial_of
from ext_recorder.cassette.recording import (
    CASSETTES,
    HEADER,
    TRAFFIC,
    Child,
    encode_header,
    is_recording,
    read_header,
)
from ext_recorder.errors import CassetteError, CassetteInUse, RecorderError, UsageError
from ext_recorder.messages.provenance import shown
from ext_sdk.core.atomic import atomic_write

from .learn import block_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ext_recorder.cassette.recording import RunHeader

PARTIAL, PREVIOUS = ".partial", ".previous"
STARTED = HEADER + PARTIAL  # the header as it is known before the end
UNKNOWN = "unknown"  # exit of a command whose end was not recorded
# Lines of the traffic file of programs that connected without a request, such as those that trust no certificate.
_CONTENT = re.compile(rb"(?:hosts|servers|unrecorded):(?! (?:\{\}|\[\])$)")
REMOVE = "record the command again, and remove this folder"


class RecordingFolder:
    """Folder of one recording.

    Args:
        path: as the user gives it.

    Attributes:
        left_behind: new name of the folder of an interrupted recording, which `begin` has found; None for none.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path.rstrip("/") or "/")
        self.partial = _with_suffix(self.path, PARTIAL)
        self.left_behind: Path | None = None
        self._lock = -1

    @property
    def exists(self) -> bool:
        """Return True if there is a complete recording. Complete the last step of a recorder that was killed in it.

        Raises:
            UsageError: the folder has other files, or is a file.
            OSError: the last step can't be completed.
        """
        previous = _with_suffix(self.path, PREVIOUS)
        if is_recording(self.partial):
            with suppress(CassetteInUse), held(self.partial):  # in use: its recorder is just renaming it
                self.publish()
        elif not self.path.exists() and is_recording(previous):
            previous.rename(self.path)
        if is_recording(self.path):
            return True
        if self.path.is_dir() and not any(self.path.iterdir()):
            return False
        if self.path.exists():
            raise UsageError(f"{self.path}: expected the folder of a recording, with {HEADER}, or a new folder")
        return False

    def begin(self, header: RunHeader) -> Path:
        """Create the folder in which the recording is made, and return it.

        Args:
            header: as far as it is known.

        Raises:
            CassetteInUse: another process records it.
            OSError: it can't be created.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        while self._lock < 0:
            with suppress(FileExistsError):
                self.partial.mkdir()
            lock = _locked(self.partial)
            if not any(self.partial.iterdir()):
                self._lock = lock
                break
            try:
                _expect_ended(self.partial)
                if _has_content(self.partial):
                    names = (_with_suffix(self.partial, f".{number}") for number in count(1))
                    self.left_behind = next(name for name in names if not name.exists())
                    self.partial.rename(self.left_behind)
                else:
                    shutil.rmtree(self.partial)
            finally:
                os.close(lock)
        self._write(STARTED, header)
        return self.partial

    def leave(self, header: RunHeader) -> None:
        """Write what is known of an interrupted recording. It keeps its partial name."""
        self._write(STARTED, header)

    def finish(self, header: RunHeader) -> None:
        """Write the header, and give the folder its name. A previous recording exists until this one is complete.

        The rules of a previous recording of the command are kept.
        """
        self._write(HEADER, header)
        self.publish()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def publish(self) -> None:
        """Rename the complete partial folder."""
        (self.partial / STARTED).unlink(missing_ok=True)
        previous = _with_suffix(self.path, PREVIOUS)
        if self.path.exists():
            shutil.rmtree(previous, ignore_errors=True)
            self.path.rename(previous)
        self.partial.rename(self.path)
        shutil.rmtree(previous, ignore_errors=True)

    def has_content(self) -> bool:
        """Return True if something was recorded in the partial folder."""
        return _has_content(self.partial)

    def discard_empty(self) -> bool:
        """Remove the partial folder if nothing was recorded. Return True if it was removed."""
        if self.has_content():
            return False
        shutil.rmtree(self.partial)
        return True

    def header(self) -> RunHeader:
        """Return the header. Raises CassetteError."""
        return read_header(self.path)

    def _write(self, name: str, header: RunHeader) -> None:
        previous = self.path / HEADER
        kept = block_of(previous.read_text(encoding="utf-8", errors="replace")) if previous.is_file() else ""
        with atomic_write(str(self.partial / name)) as file:
            file.write((encode_header(header) + kept).encode())


def traffic_of(folder: Path) -> Path:
    """Return the file of HTTP traffic in a folder."""
    return folder / TRAFFIC


# --- Locks ------------------------------------------------------------------------------------------------------------


def _locked(folder: Path) -> int:
    """Lock a folder that is being recorded, and return the descriptor. Raises CassetteInUse, OSError."""
    while True:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            flock(lock, LOCK_EX | LOCK_NB)
            # Its recorder may have renamed it between the open and the lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), folder.stat()):
                    return lock
            folder.mkdir(exist_ok=True)
        except BlockingIOError:
            os.close(lock)
            raise CassetteInUse(folder.with_name(folder.name.removesuffix(PARTIAL)), _occupied(folder)) from None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _occupied(folder: Path) -> str:
    """Return what is being recorded in a partial folder, and the remedy."""
    command: Sequence[str] = ()
    with suppress(RecorderError, OSError):  # its recorder may have just begun, or ended
        command = read_header(folder, STARTED).command
    run = f"another run is recording in {folder}" + (f": {shown(command)}" if command else "")
    return f"{run}; wait until it has ended, or give each run a folder of its own"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder that exists. Raises CassetteInUse, OSError."""
    lock = _locked(folder)
    try:
        yield
    finally:
        os.close(lock)


def _expect_ended(folder: Path) -> None:
    """Raise CassetteInUse if a process still writes one of the files, after the recorder was killed."""
    from ext_recorder.cassette.writer import hold

    for path in (partial_of(folder / TRAFFIC), *(folder / CASSETTES).glob(f"*{PARTIAL}")):
        with suppress(FileNotFoundError), hold(path):
            pass


def _has_content(folder: Path) -> bool:
    """Return True if something was recorded."""
    if is_recording(folder) or any((folder / CASSETTES).glob("*")):
        return True
    for path in (folder / TRAFFIC, partial_of(folder / TRAFFIC)):
        with suppress(FileNotFoundError), path.open("rb") as file:
            if any(line.startswith(b"- request:") or _CONTENT.match(line) for line in file):
                return True
    return False


def _with_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


# --- Recovery ---------------------------------------------------------------------------------------------------------


def recover(partial: Path, path: Path, *, replace: bool = False) -> list[str]:
    """Make a recording of the folder of a killed or interrupted recorder.

    Args:
        partial: FOLDER.partial, or FOLDER.partial.N if a later recorder has renamed it.
        path: FOLDER.
        replace: replace an existing recording.

    Returns:
        Lines about what was kept, and what is missing.

    Raises:
        UsageError: FOLDER exists, or `partial` is not such a folder.
        CassetteInUse: it is still being recorded.
        CassetteError: there is nothing to recover.
        OSError: a file can't be written.
    """
    target = RecordingFolder(str(path))
    target.partial = partial
    if path == partial and is_recording(path):
        raise UsageError(f"{path}: a complete recording, nothing to recover")
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already: choose another name by -o, or replace it by --force")
    if path.exists() and not is_recording(path) and any(path.iterdir()):
        raise UsageError(f"{path}: expected the folder of a recording, with {HEADER}; --force replaces nothing else")
    with held(partial):
        if is_recording(partial):
            target.publish()
            return [f"{path}: complete; its recorder was killed before it could rename it"]
        if not (partial / STARTED).is_file():
            raise UsageError(f"{partial}: expected the folder of an interrupted recording, with {STARTED}")
        _expect_ended(partial)
        header = read_header(partial, STARTED)
        if not _has_content(partial):
            raise CassetteError(partial, 0, "nothing was recorded yet: there is nothing to recover", REMOVE)
        if header.exit == UNKNOWN:
            times = [file.stat().st_mtime for file in partial.rglob("*") if file.is_file()]
            header = header._replace(seconds=round(max(times) - (partial / STARTED).stat().st_mtime, 3))
        missing = ["the exit code"] if header.exit == UNKNOWN else []
        kept, endpoints = _recover_traffic(partial, missing)
        children = _recover_children(partial, header.children, missing)
        missing.append("what the command did after that")
        target.finish(
            header._replace(children=tuple(children), endpoints=endpoints, recovered=f"missing: {'; '.join(missing)}")
        )
    sessions = sum(len(child.cassettes) for child in children)
    counts = [f"{kept} HTTP interaction{'' if kept == 1 else 's'}"]
    counts += [f"{sessions} session{'' if sessions == 1 else 's'} of children"] if sessions else []
    return [f"{path}: {' and '.join(counts)} kept", *(f"missing: {text}" for text in missing)]


def _recover_traffic(folder: Path, missing: list[str]) -> tuple[int, dict[str, dict[str, int]]]:
    """Complete the file of HTTP traffic. Return the number of its interactions, and the counts of each server."""
    from ext_recorder.http.interaction import CONNECT
    from ext_recorder.http.reader import open_document, recover_traffic
    from ext_recorder.http.traffic_counts import Traffic, endpoint_of, traffic_of

    path = folder / TRAFFIC
    if not path.exists():
        if not partial_of(path).exists():
            raise CassetteError(folder, 0, f"expected {TRAFFIC} or {TRAFFIC}{PARTIAL}", REMOVE)
        found = recover_traffic(partial_of(path), path, of_run=True)
        if found.dropped:
            missing.append(f"the end of an interaction, {found.dropped} bytes")
        if found.unanswered:
            missing.append(f"the responses to {found.unanswered} request{'' if found.unanswered == 1 else 's'}")
        if found.unknown:
            missing.append(f"of the HTTP traffic: {found.unknown}")
    document = open_document(path)
    count, endpoints = 0, dict[str, Traffic]()
    interactions = document.interactions if document.file is None else (each for _, each in document.file)
    for count, interaction in enumerate(interactions, 1):  # noqa: B007
        if interaction.method != CONNECT:
            endpoint = endpoint_of(interaction)
            endpoints[endpoint] = endpoints.get(endpoint, Traffic()) + traffic_of(interaction)
    if document.file is not None:
        document.file.close()
    return count, {endpoint: counts.entry() for endpoint, counts in endpoints.items()}


def _recover_children(folder: Path, known: Sequence[Child], missing: list[str]) -> list[Child]:
    """Complete the cassettes of children, and return the children with their sessions."""
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.cassette.recovery import recover as recover_cassette

    for partial in sorted((folder / CASSETTES).glob(f"*.yaml{PARTIAL}*")):
        name = partial.name.partition(PARTIAL)[0]
        try:
            recover_cassette(partial)
            missing.append(f"messages of {CASSETTES}/{name} after its last complete one")
        except CassetteInUse:
            raise
        except RecorderError as error:
            missing.append(f"{CASSETTES}/{name}: {getattr(error, 'problem', error)}")
            partial.unlink()
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    names = [child.name for child in known]
    started = {cassette: start for child in known for cassette, start in child.sessions()}
    for path in sorted((folder / CASSETTES).glob("*.yaml"), key=_number):
        with Reader(path) as reader:
            command = reader.header.command
        name, (base, _) = path.name.removesuffix(".yaml"), _number(path)
        if name not in names and (base in names or (folder / CASSETTES / f"{base}.yaml").exists()):
            name = base  # a later session of the same child
        found.setdefault((name, command), []).append(f"{CASSETTES}/{path.name}")
    children = []
    for (name, command), cassettes in found.items():
        starts = [start for cassette in cassettes if (start := started.get(cassette)) is not None]
        children.append(Child(name, command, cassettes, starts if len(starts) == len(cassettes) else ()))
    recovered = {child.name for child in children}
    return children + [child for child in known if child.name not in recovered]


def _number(path: Path) -> tuple[str, int]:
    """Return the name of a child's cassette without its number, and the number; web.yaml is number 1."""
    match = re.fullmatch(r"(.+?)(?:-(\d+))?\.yaml", path.name)
    assert match is not None
    return match[1], int(match[2] or 1)
