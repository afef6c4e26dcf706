"""Workspaces of children: files that a child changes are noted before its next message, and changed again on replay.

The workspace of an ACP agent is the `cwd` of its sessions, that of any other child its working directory. The folders
of `--bind` are workspaces, too. A patch is applied completely or not at all, only to the files that were recorded, and
never outside of the workspace.

`.git` is not a part of it: hooks and configuration in it would run programs. Neither is `__pycache__`.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from time import monotonic, time_ns
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.cassette.git_patch import (
    EXECUTABLE,
    FILE,
    LINK,
    Entry,
    FilePatch,
    file_of,
    object_id,
    patch_of,
    patched,
    without_numbers,
)
from ext_recorder.errors import RECORD_AGAIN, RecorderError
from ext_recorder.messages.path_bindings import HOME
from ext_recorder.protocols.fast_id import scan_id
from ext_sdk.core.wire.json_pointer import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ext_recorder.messages.path_bindings import ReplayBindings

    State = tuple[int, bytes | None, str]  # a `git_patch.Entry`
    Change = tuple[str, str, State | None, State | None]  # path, previous path if it is renamed, before, after
    Noted = tuple[str, list[Change], list[str], list[str]]  # folder, changes, folders that are empty, remarks

CHILD = "."  # the working directory of the child, as a folder of patches
SKIPPED = frozenset((".git", "__pycache__"))
MOST_FILES = 20_000
MOST_BYTES = 4 * 1024 * 1024  # of a changed file; secrets are searched in all of it
# Comparisons that take longer are made less often: after ten times as long, and before each response.
SLOW_S, RARELY = 0.05, 10
# Of the files whose content is kept so that changes can be shown as lines; of others, only the id is kept.
TEXT_BYTES, ALL_TEXT_BYTES = 1024 * 1024, 64 * 1024 * 1024
# Age of a file that cannot have been changed since it was read without a new time: clocks of file systems are coarse.
SETTLED_NS = 50_000_000
# Requests that name the workspace, of ACP agents and of gevals extensions, and the pointer to it.
_NAMING = {b'"session/new"': "/params/cwd", b'"session/load"': "/params/cwd", b'"execute"': "/params/context/workdir"}
_HEADS = (".git/HEAD", ".git/logs/HEAD", ".git/packed-refs")
# A patch that does not apply is most often that of an extension, after an agent that did nothing.
CAUSE = (
    "the files are not the recorded ones, probably because an agent did not make a change that it made when recorded"
)
REMEDY = f"begin with the recorded files, run the child with --real, or record it again with {RECORD_AGAIN}"


class WorkspaceError(RecorderError):
    """A patch cannot be applied to the workspace of this replay."""


class _Seen(NamedTuple):
    """File of a snapshot.

    Attributes:
        key: its times, size and inode; they are others if it has changed.
        settled: the times are so old that a further change would be visible in them.
        entry: content and id; the content is None if it is too long.
    """

    key: tuple[int, ...]
    settled: bool
    entry: Entry


class Snapshot:
    """Files of a folder, and what has changed since the last time.

    Args:
        folder: its path.
        without: beginnings of paths that are not a part of it, such as those of the recording.
    """

    def __init__(self, folder: str, without: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self._root = os.path.realpath(folder)
        self._without = tuple(path for path in without if path.startswith(f"{self._root}/"))
        self._files: dict[str, _Seen] = {}
        self._empty: frozenset[str] = frozenset()
        self._kept = 0
        self._remarks: list[str] = []
        self._commits = self._heads()
        self._failed = False
        self._files, self._empty = self._scan()

    def changes(self) -> Noted | None:
        """Return what has changed since the last call, for `git_patch.PatchFile`; None if nothing has."""
        before, empty = self._files, self._empty
        self._files, self._empty = self._scan()
        changed = [
            path
            for path in sorted({*before, *self._files})
            if (old := before.get(path)) is not (new := self._files.get(path))
            and (old is None or new is None or old.entry[::2] != new.entry[::2])
        ]
        if (commits := self._heads()) != self._commits:
            self._commits = commits
            self._remarks.append("commits, and all else in .git")
        changes = list(self._noted(before, changed))
        added = sorted(self._empty - empty)
        remarks, self._remarks = self._remarks, []
        if not changes and not added and not remarks:
            return None
        return self.folder, changes, added, remarks

    def _noted(self, before: dict[str, _Seen], changed: list[str]) -> Iterator[Change]:
        """Yield the changes; a file that appears with the content of one that disappears is renamed."""
        gone: dict[str, list[str]] = {}
        for path in changed:
            if path not in self._files and before[path].entry.mode != LINK:
                gone.setdefault(before[path].entry.id, []).append(path)
        renamed = {}
        for path in changed:
            new = self._files.get(path)
            if path not in before and new and new.entry.mode != LINK and (same := gone.get(new.entry.id)):
                renamed[path] = same.pop(0)
        for path in changed:
            new = self._files.get(path)
            if path in renamed and new:
                yield path, renamed[path], _state(before[renamed[path]]), _state(new)
            elif path not in renamed.values():
                after = _state(new)
                if new and new.entry.content is None:  # it was not kept
                    content = _read(f"{self.folder}/{path}", MOST_BYTES)
                    if content is None:
                        self._remarks.append(f"{path}: over {MOST_BYTES} bytes, or not readable")
                        continue
                    after = (new.entry.mode, content, object_id(content))
                yield path, "", _state(before.get(path)), after

    def _scan(self) -> tuple[dict[str, _Seen], frozenset[str]]:
        files: dict[str, _Seen] = {}
        empty = set()
        now = time_ns()
        folders = [""]
        while folders and not self._failed:
            folder = folders.pop()
            try:
                with os.scandir(f"{self.folder}/{folder}") as found:
                    entries = [entry for entry in found if entry.name not in SKIPPED]
            except OSError as error:
                if folder:
                    self._remarks.append(f"{folder}: {error.strerror}")
                continue
            if not entries and folder:
                empty.add(folder[:-1])
            for entry in entries:
                path = folder + entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if self._without and f"{self._root}/{path}{'/' * is_folder}".startswith(self._without):
                    continue
                if is_folder:
                    folders.append(f"{path}/")
                elif (seen := self._seen(path, entry, now)) is not None:
                    files[path] = seen
            if len(files) > MOST_FILES:
                self._failed = True
                self._remarks.append(f"further changes: the folder has more than {MOST_FILES} files")
        return (self._files, self._empty) if self._failed else (files, frozenset(empty))

    def _seen(self, path: str, entry: os.DirEntry[str], now: int) -> _Seen | None:
        """Return a file as it is now; the same object as before if it has not changed."""
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return None
        before = self._files.get(path)
        key = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        if before and before.key == key and before.settled:
            return before
        content: bytes | None
        if stat.S_ISLNK(status.st_mode):
            mode, content = LINK, os.fsencode(os.readlink(entry.path))  # noqa: PTH115
        elif stat.S_ISREG(status.st_mode):
            mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE
            content = _read(entry.path, MOST_BYTES) if status.st_size <= MOST_BYTES else None
        else:
            return None
        # A file that is too long to be kept has another id after each change.
        id = object_id(content) if content is not None else "".join(f"{number:x}" for number in key[1:])
        if before and before.entry.id == id and before.entry.mode == mode:
            return _Seen(key, now - status.st_ctime_ns > SETTLED_NS, before.entry)
        if before and before.entry.content is not None:
            self._kept -= len(before.entry.content)
        if content is not None and (len(content) > TEXT_BYTES or self._kept + len(content) > ALL_TEXT_BYTES):
            content = None
        self._kept += len(content or b"")
        return _Seen(key, now - status.st_ctime_ns > SETTLED_NS, Entry(mode, content, id))

    def _heads(self) -> list[bytes | None]:
        """Return what changes with each commit, branch and reset."""
        return [_read(f"{self.folder}/{name}", MOST_BYTES) for name in _HEADS]


def _state(seen: _Seen | None) -> State | None:
    return (seen.entry.mode, seen.entry.content, seen.entry.id) if seen else None


def _read(path: str, most: int) -> bytes | None:
    """Return the content of a file; None if it is longer, or cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            content = b""
            while len(content) <= most and (piece := file.read(most + 1)):
                content += piece
    except OSError:
        return None
    return content if len(content) <= most else None


class WorkspaceTracker:
    """Changes of the workspaces of a child that is recorded, in the proxy.

    Args:
        sessions: the child's requests name its workspaces: it is an ACP agent or an extension.
        folders: further workspaces, which `--bind` names.
        without: beginnings of paths that are not a part of a workspace.

    Attributes:
        keep: takes what has changed; it is called before the message that follows is forwarded.
    """

    def __init__(self, *, sessions: bool, without: tuple[str, ...], folders: Iterable[str] = ()) -> None:
        self.keep: Callable[[bytes], None] | None = None
        self._without = without
        self._snapshots: dict[str, Snapshot] = {}
        for folder in folders:
            self._add(folder)
        if not sessions:
            self._snapshots[CHILD] = self._snapshot(CHILD)
        self._rest = {"in": b"", "out": b""}
        self._open: set[bytes] = set()
        self._noted = self._took = 0.0  # time of the last comparison, and its duration, in seconds

    def observe(self, stream: str, data: bytes) -> None:
        """Note changes before bytes of the session are forwarded: before requests and responses, and the end of output.

        Changes that the host makes between its calls are not noted.
        """
        if stream != "in" and not data:
            self.note()
        rest = self._rest.get(stream)
        if rest is None or not data:
            return
        lines, feed, self._rest[stream] = (rest + data).rpartition(b"\n")
        if not feed:
            return
        for line in lines.split(b"\n"):
            if b'"id"' in line:
                self._on_message(stream, line)

    def _on_message(self, stream: str, line: bytes) -> None:
        if seen := scan_id(line):
            kind, id = str(seen[0]), line[seen[1] : seen[2]]
        elif "id" in (message := _parsed(line)):
            kind = "request" if "method" in message else "response"
            id = repr(message["id"]).replace("'", '"').encode()
        else:
            return
        if stream == "in" and kind == "request":
            if not self._open:
                for snapshot in self._snapshots.values():
                    snapshot.changes()
            self._open.add(id)
            for method, pointer in _NAMING.items():
                if method in line and isinstance(folder := resolve(_parsed(line), pointer), str):
                    self._snapshots.pop(CHILD, None)  # the session has a workspace of its own
                    self._add(folder)
            return
        is_response = stream == "out" and kind == "response"
        if is_response or self._took < SLOW_S or monotonic() - self._noted > RARELY * self._took:
            self.note()
        if is_response:
            self._open.discard(id)

    def _add(self, folder: str) -> None:
        """Take a snapshot of a folder, unless it is in one that is noted already."""
        folder = folder.rstrip("/")
        if not os.path.isabs(folder) or not os.path.isdir(folder):  # noqa: PTH112, PTH117
            return
        if not any(f"{folder}/".startswith(f"{known}/") for known in self._snapshots):
            self._snapshots[folder] = self._snapshot(folder)

    def _snapshot(self, folder: str) -> Snapshot:
        """Return a snapshot without the workspaces that have their own."""
        own = (f"{os.path.realpath(known)}/" for known in self._snapshots if known != CHILD)
        return Snapshot(folder, (*self._without, *own))

    def note(self) -> None:
        """Note what has changed since the last time."""
        import marshal

        begun = monotonic()
        for snapshot in self._snapshots.values():
            if (changes := snapshot.changes()) is not None and self.keep:
                self.keep(marshal.dumps(changes))
        self._noted = monotonic()
        self._took = self._noted - begun


def tracker_of(files: str, cassette: str, folders: Iterable[str] = ()) -> WorkspaceTracker:
    """Return the tracker of a child that is recorded.

    Args:
        files: "cwd" or "sessions", see `record.config.RecordingConfig`.
        cassette: it is not a part of a workspace, nor is the folder of a run that it belongs to.
        folders: further workspaces, which `--bind` names.
    """
    path = os.path.realpath(cassette)
    without = [f"{path.removesuffix('.yaml')}."]
    folder = os.path.dirname(os.path.dirname(path))  # noqa: PTH120
    if folder.endswith(".partial"):
        without.append(f"{folder}/")
    return WorkspaceTracker(sessions=files == "sessions", without=tuple(without), folders=folders)


def _parsed(line: bytes) -> dict[str, object]:
    from ext_sdk.core.wire.errors import MessageError
    from ext_sdk.core.wire.json_codec import loads

    try:
        message = loads(line.decode())
    except (UnicodeDecodeError, MessageError):
        return {}
    return message if isinstance(message, dict) else {}


# Replay


class Workspaces:
    """Patches of a cassette, applied to the workspaces of a replay.

    Args:
        cassette: its path.
        bindings: of the replay; they have the workspace of each session.
        redact: replaces secrets.
    """

    def __init__(self, cassette: str, bindings: ReplayBindings, redact: Callable[[bytes], bytes]) -> None:
        self._cassette = cassette
        self._bindings = bindings
        self._redact = redact

    def apply(self, number: int) -> None:
        """Apply one patch: to all of its files, or to none.

        Raises:
            WorkspaceError: the workspace is not the recorded one, or the patch leads out of it.
            CassetteError: the patch cannot be read.
        """
        patch = patch_of(self._cassette, number)
        folder = patch.folder
        if folder != CHILD:  # it must be one that the host has named: no other folder is changed
            named = [name for name in self._bindings.names if name != HOME]
            is_named = any(self._bindings.is_placeholder(name, folder) for name in named)
            live = self._bindings.live(folder) if is_named else None
            if live is None:
                problem = f"their folder {folder} is not known; use --bind NAME=PATH"
                raise WorkspaceError(f"changed files cannot be replayed: {problem}")
            folder = live
        try:
            root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise WorkspaceError(f"{self._of(number)}: {folder}: {error.strerror}") from None
        try:
            target = _Target(root, self._neutral, lambda data: self._bindings.to_live(data, json=False))
            for file in patch.files:
                target.add(file)
            for name in patch.empty:
                _parts(name)
            target.write(patch.empty)
        except _Refused as refused:
            raise WorkspaceError(f"{CAUSE}: {self._of(number)}: {refused}; {REMEDY}") from None
        except OSError as error:
            raise WorkspaceError(f"{self._of(number)}: {error.filename or folder}: {error.strerror}") from None
        finally:
            os.close(root)

    def _of(self, number: int) -> str:
        return f"changed files cannot be replayed: patch {number} in {os.path.basename(file_of(self._cassette))}"  # noqa: PTH119

    def _neutral(self, data: bytes) -> bytes:
        return self._bindings.to_placeholders(self._redact(data))


class _Refused(Exception):
    """A file of a patch does not apply."""


class _Target:
    """Folder to which a patch is applied.

    Args:
        root: descriptor of the folder.
        neutral: replaces secrets and paths of this machine.
        live: restores the paths.
    """

    def __init__(self, root: int, neutral: Callable[[bytes], bytes], live: Callable[[bytes], bytes]) -> None:
        self._root = root
        self._neutral = neutral
        self._live = live
        self._changed: dict[str, Entry | None] = {}

    def add(self, patch: FilePatch) -> None:
        """Add the change of one file. Raises _Refused if it does not apply."""
        for path in filter(None, (patch.old, patch.new)):
            _parts(path)
        if not patch.old and not patch.new:
            raise _Refused("a file has no name")
        found = self._entry(patch.old or patch.new)
        if self._is_done(patch, found):
            return
        if found is None and patch.old:
            raise _Refused(f"{patch.old}: it does not exist")
        if found is None:
            found = Entry(patch.new_mode or FILE, b"")
        elif not patch.old:
            expected = b"".join(line for hunk in patch.hunks for line in hunk.new)
            if patch.binary or without_numbers(self._neutral(found.content or b"")) != without_numbers(expected):
                raise _Refused(f"{patch.new}: it exists already, with other content")
            found = Entry(found.mode, b"")
        elif (found.mode == LINK) is not ((patch.old_mode or found.mode) == LINK):
            raise _Refused(f"{patch.old}: expected {_kind(patch.old_mode)}, found {_kind(found.mode)}")
        content = patched(patch, found.content or b"", self._neutral, self._live)
        if isinstance(content, str):
            raise _Refused(f"{patch.old or patch.new}: {content}")
        self._change(patch, Entry(patch.new_mode or found.mode, content))

    def _change(self, patch: FilePatch, entry: Entry) -> None:
        if patch.old != patch.new and patch.new and patch.old and self._entry(patch.new) is not None:
            raise _Refused(f"{patch.new}: it exists already")
        if patch.old and not patch.copies:
            self._changed[patch.old] = None
        if patch.new:
            self._changed[patch.new] = entry

    def _is_done(self, patch: FilePatch, found: Entry | None) -> bool:
        """Return True if the file is already as it is after the patch: the host may have changed it."""
        if not patch.new:
            return found is None
        renames = patch.old and patch.old != patch.new
        if renames:
            target = self._entry(patch.new)
            return target is not None and found is None and self._has(target, patch.new_id)
        mode = patch.new_mode or (found.mode if found else 0)
        return found is not None and found.mode == mode and bool(patch.new_id) and self._has(found, patch.new_id)

    def _has(self, entry: Entry, id: str) -> bool:
        content = entry.content or b""
        return not id or object_id(content).startswith(id) or object_id(self._neutral(content)).startswith(id)

    def _entry(self, path: str) -> Entry | None:
        """Return a file as the patch has changed it so far; None if it does not exist. Raises _Refused."""
        if path in self._changed:
            return self._changed[path]
        *folders, name = _parts(path)
        with self._opened(folders) as folder:
            if folder is None:
                return None
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
            if stat.S_ISLNK(status.st_mode):
                return Entry(LINK, os.fsencode(os.readlink(name, dir_fd=folder)))
            if stat.S_ISDIR(status.st_mode):
                return None  # the files in it are deleted by the same patch, or it cannot be replaced
            if not stat.S_ISREG(status.st_mode):
                raise _Refused(f"{path}: expected a file, found something else")
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
            with open(fd, "rb") as file:  # noqa: PTH123
                mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE
                return Entry(mode, file.read())

    @contextmanager
    def _opened(self, folders: list[str], *, create: bool = False) -> Iterator[int | None]:
        """Open a folder without following symbolic links; None if it does not exist. Raises _Refused."""
        fd = os.dup(self._root)
        try:
            for index, name in enumerate(folders):
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=fd)
                try:
                    below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                except FileNotFoundError:
                    below = -1
                except OSError:
                    path = "/".join(folders[: index + 1])
                    if not create and self._changed.get(path, b"") is None:  # a file that the patch deletes
                        below = -1
                    else:
                        raise _Refused(f"{path}: expected a folder, found a symbolic link or a file") from None
                os.close(fd)
                fd = below
                if fd < 0:
                    break
            yield fd if fd >= 0 else None
        finally:
            if fd >= 0:
                os.close(fd)

    def write(self, empty: tuple[str, ...]) -> None:
        """Write all changes. Raises OSError, or _Refused if another process changes the folder."""
        for path, entry in self._changed.items():
            if entry is None:
                *folders, name = _parts(path)
                with self._opened(folders) as folder:
                    if folder is not None:
                        with suppress(FileNotFoundError):
                            os.unlink(name, dir_fd=folder)
                self._remove_empty(folders)
        for path, entry in self._changed.items():
            if entry is not None:
                *folders, name = _parts(path)
                with self._opened(folders, create=True) as folder:
                    assert folder is not None
                    _write(folder, name, entry)
        for path in empty:
            with self._opened(_parts(path), create=True):
                pass

    def _remove_empty(self, folders: list[str]) -> None:
        """Remove the folders that are empty, as git does."""
        while folders:
            *above, name = folders
            with self._opened(above) as parent:
                if parent is None:
                    return
                try:
                    os.rmdir(name, dir_fd=parent)
                except OSError:
                    return
            folders = above


def _write(folder: int, name: str, entry: Entry) -> None:
    """Replace a file at once: no process sees a part of it."""
    temporary = f".{name[:100]}.ext-recorder-{os.getpid()}"
    content = entry.content or b""
    if entry.mode == LINK:
        os.symlink(os.fsdecode(content), temporary, dir_fd=folder)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o777 if entry.mode == EXECUTABLE else 0o666, dir_fd=folder)
        with open(fd, "wb") as file:  # noqa: PTH123
            file.write(content)
            with suppress(FileNotFoundError):  # permissions stay as they are
                before = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                executable = (before & 0o444) >> 2 if entry.mode == EXECUTABLE else 0
                if stat.S_ISREG(before):
                    os.fchmod(fd, (before & 0o666) | executable)
    try:
        with suppress(OSError):
            os.rmdir(name, dir_fd=folder)  # an empty folder that a file replaces
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise


def _parts(path: str) -> list[str]:
    """Return the names in a path. Raises _Refused for a path that leads out of the workspace, or to .git."""
    parts = path.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise _Refused(f"{path!r}: expected a path in the workspace")
    if any(part.lower() == ".git" for part in parts):
        raise _Refused(f"{path!r}: files of git itself are not changed")
    return parts


def _kind(mode: int) -> str:
    return "a symbolic link" if mode == LINK else "a file"
