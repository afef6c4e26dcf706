"""Copy of a workspace for one run of an agent, and the changes in it, as diffs that can be applied to the workspace.

Nothing is written to the workspace before `WorkspaceCopy.apply`. The copy is not a sandbox: a command that uses an
absolute path, or a symbolic link that leads out of the copy, reaches the file that the path names.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ext_sdk.core.atomic import atomic_write
from ext_sdk.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MOST_FILES = 100_000  # in a copy
MOST_BYTES = 2 * 1024**3  # in a copy
TEXT_BYTES = 4 * 1024**2  # of a file that is shown as text
DIFF_CHARACTERS = 1024**2  # of a diff; the rest is not shown
COMPARED_LINES = 5_000  # of a file, after equal lines at its begin and end; above, they are one hunk
SMALL_CHANGE = 100  # changed lines of a proposal with a low risk
CONTEXT = 3  # lines of a hunk before and after a change
RACY_S = 1.0  # a file that is younger than this may change without a new timestamp

Signature = tuple[int, ...]


class TooLarge(Exception):
    """The workspace, or the number of changes in it, is over a limit."""


class ChangeRefused(Exception):
    """A change that cannot be applied to the workspace."""


class Patterns:
    """Files of a workspace that are copied, and whose changes count.

    `*` and `?` match within a name, `**` any number of folders, as in `**/*.java` and `target/**`.

    Args:
        include: changes of other files do not count; none: of all files.
        exclude: these are not copied.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._include = [_compiled(pattern) for pattern in include]
        self._exclude = [_compiled(pattern) for pattern in exclude]
        self._pruned = [_compiled(pattern) for pattern in exclude if pattern.endswith("**")]

    def included(self, path: str) -> bool:
        """Return True if a change of this file counts."""
        return not self._include or any(pattern.fullmatch(path) for pattern in self._include)

    def excluded(self, path: str, *, folder: bool) -> bool:
        """Return True if a file, or all files of a folder, are not copied."""
        if folder:
            return any(pattern.fullmatch(f"{path}/") for pattern in self._pruned)
        return any(pattern.fullmatch(path) for pattern in self._exclude)


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meanings.get(part) or re.escape(part) for part in parts), re.DOTALL)


@dataclass(frozen=True)
class Change:
    """Change of a file, as a proposal.

    Attributes:
        path: relative to the workspace.
        operation: create, modify or delete.
        diff: in the format of `git diff`; one line for files that are not text.
        risk: low, medium or high.
        text: the new content is text, so that a user can edit it.
        before: digest of the file in the workspace; "" if it does not exist.
    """

    path: str
    operation: str
    diff: str
    risk: str
    text: bool
    before: str


@dataclass(frozen=True)
class Changes:
    """All changes of one run.

    Attributes:
        proposals: those that can be applied; deletions first, because a folder may replace a file.
        refused: path and reason of those that cannot.
        outside: paths that the patterns do not include, or that they exclude; a folder ends with `/`.
        direct: paths that changed in the workspace itself, and not in the copy.
    """

    proposals: list[Change]
    refused: list[tuple[str, str]]
    outside: list[str]
    direct: list[str]


class WorkspaceCopy:
    """Copy of a workspace.

    Args:
        source: the workspace.
        target: folder of the copy, which does not exist yet.
        proceed: called for each file; raises what is to end the copying.

    Attributes:
        skipped: path and reason of the files that could not be read.

    Raises:
        TooLarge: it is over a limit.
        OSError: the workspace cannot be read, or the copy not be written.
    """

    def __init__(self, source: Path, target: Path, patterns: Patterns, proceed: Callable[[], object]) -> None:
        self.source = source
        self.target = target
        self.skipped: list[tuple[str, str]] = []
        self._patterns = patterns
        self._proceed = proceed
        self._began = time.time() - RACY_S
        self._files: dict[str, tuple[Signature, Signature]] = {}  # in the workspace, in the copy
        size = 0
        roots = {str(source), str(source.resolve())}
        target.mkdir(mode=0o700, parents=True)
        for path, entry in self._walk(source):
            copied = target / path
            try:
                before = entry.stat(follow_symlinks=False)
                size += before.st_size if stat.S_ISREG(before.st_mode) else 0
                if size > MOST_BYTES:
                    raise TooLarge(f"{source} has more than {MOST_BYTES // 1024**3} GiB")
                if entry.is_symlink():
                    link = str((source / path).readlink())
                    root = next((root for root in roots if f"{link}/".startswith(f"{root}/")), "")
                    copied.symlink_to(f"{target}{link[len(root) :]}" if root else link)  # within the copy
                elif entry.is_dir(follow_symlinks=False):
                    copied.mkdir(mode=stat.S_IMODE(before.st_mode) | 0o700)
                    continue
                else:
                    shutil.copy2(entry.path, copied, follow_symlinks=False)
            except PermissionError as error:
                self.skipped.append((path, error.strerror or "cannot be read"))
                continue
            except FileNotFoundError:  # deleted since it was listed
                continue
            self._files[path] = (_signature(before), _signature(copied.lstat()))

    def changes(self) -> Changes:
        """Return the changes that were made in the copy since it was created. Raises TooLarge, OSError."""
        proposals: list[Change] = []
        refused: list[tuple[str, str]] = []
        outside: list[str] = []
        direct: list[str] = []
        found = {
            path: _signature(entry.stat(follow_symlinks=False))
            for path, entry in self._walk(self.target, outside)
            if not entry.is_dir(follow_symlinks=False)
        }
        for path in sorted(found.keys() | self._files.keys(), key=lambda path: (path in found, path)):
            before, copied = self._files.get(path, ((), ()))
            racy = bool(copied) and stat.S_ISREG(copied[0]) and copied[-1] / 1e9 >= self._began
            if found.get(path) == copied and not racy:
                if _signature_at(self.source / path) != before:
                    direct.append(path)
                continue
            try:
                change = self._change(path, before, exists=path in found)
            except ChangeRefused as error:
                refused.append((path, str(error)))
                continue
            if change and not self._patterns.included(path):
                outside.append(path)
            elif change:
                proposals.append(change)
        return Changes(proposals, refused, outside, direct)

    def apply(self, change: Change, content: str | None = None) -> None:
        """Write a change to the workspace.

        Args:
            content: text of the file in place of the proposed one.

        Raises:
            ChangeRefused: the file has changed since it was copied, is in a folder that leads out of the workspace, or
                cannot be written.
        """
        target, copied = self.source / change.path, self.target / change.path
        try:
            root = self.source.resolve()
            parent = target.parent.resolve()
            if parent != (root / change.path).parent:
                raise ChangeRefused(f"the folder {target.parent} is or has a symbolic link; not written")
            if _digest(target) != change.before:
                raise ChangeRefused("the file has changed in the workspace since it was copied; not written")
            if change.operation == "delete":
                target.unlink()
                with suppress(OSError):  # the user has other files in the folder
                    while parent != root and not (self.target / parent.relative_to(root)).is_dir():
                        parent.rmdir()
                        parent = parent.parent
                return
            parent.mkdir(parents=True, exist_ok=True)
            if copied.is_symlink():
                if change.before:
                    target.unlink()
                target.symlink_to(copied.readlink())
                return
            with atomic_write(str(target), mode=stat.S_IMODE(copied.stat().st_mode)) as file:
                if content is not None:
                    file.write(content.encode("utf-8", "surrogatepass"))
                else:
                    with copied.open("rb") as new:
                        shutil.copyfileobj(new, file)
        except OSError as error:
            raise ChangeRefused(f"{error.strerror or error}: {error.filename or target}; not written") from None

    def _walk(self, root: Path, excluded: list[str] | None = None) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield folders, regular files and symbolic links below a folder that the patterns do not exclude.

        Args:
            excluded: receives the paths that they exclude; a folder ends with `/`.
        """
        folders = [""]
        count = 0
        while folders:
            folder = folders.pop()
            try:
                entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
            except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
                if not folder:
                    raise
                self.skipped.append((folder, error.strerror or "cannot be read"))
                continue
            for entry in entries:
                self._proceed()
                path = f"{folder}/{entry.name}" if folder else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                known = is_folder or entry.is_symlink() or entry.is_file(follow_symlinks=False)
                if not known or self._patterns.excluded(path, folder=is_folder):
                    if known and excluded is not None:
                        excluded.append(f"{path}/" if is_folder else path)
                    continue
                count += 1
                if count > MOST_FILES:
                    raise TooLarge(f"{root} has more than {counted(MOST_FILES, 'file')}")
                if is_folder:
                    folders.append(path)
                yield path, entry

    def _change(self, path: str, before: Signature, *, exists: bool) -> Change | None:
        """Return the change of a file; None if its content is the same."""
        target, copied = self.source / path, self.target / path
        try:
            path.encode()
        except UnicodeEncodeError:
            raise ChangeRefused("its name is not UTF-8, so that it cannot be sent") from None
        if exists and copied.is_symlink() and str(copied.readlink()).startswith(f"{self.target}/"):
            raise ChangeRefused("a symbolic link into the copy; use a relative one")
        with suppress(OSError):
            if before == _signature(target.lstat()) and exists and _digest(target) == _digest(copied):
                return None
        if _signature_at(target) != before:
            remedy = "if the command has changed it there, let it use relative paths"
            raise ChangeRefused(f"the file has changed in the workspace since it was copied; {remedy}")
        operation = "delete" if not exists else "modify" if before else "create"
        try:
            old, new = _content(target), _content(copied)
            digest = _digest(target)
        except OSError as error:
            raise ChangeRefused(f"{error.strerror}: it cannot be read") from None
        modes = tuple(_mode(one) for one in (target, copied))
        diff, changed = _diff(path, old, new, modes)
        usual = isinstance(old, str) and isinstance(new, str) and "120000" not in modes
        risk = "high"
        if usual and modes[1] in {modes[0], "100644"}:
            risk = "low" if before and changed <= SMALL_CHANGE else "medium"
        if len(diff) > DIFF_CHARACTERS:
            rest = len(diff) - DIFF_CHARACTERS
            diff, risk = (
                f"{diff[:DIFF_CHARACTERS]}\n[... {counted(rest, 'character')} of the diff not shown ...]\n",
                "high",
            )
        is_text = isinstance(new, str) and operation != "delete" and not copied.is_symlink()
        return Change(path, operation, diff, risk, is_text, digest)


def _signature(status: os.stat_result) -> Signature:
    return (status.st_mode, status.st_size, status.st_ino, status.st_ctime_ns, status.st_mtime_ns)


def _signature_at(path: Path) -> Signature:
    """Return the signature of a file; () if it does not exist."""
    return _signature(path.lstat()) if _mode(path) else ()


def _mode(path: Path) -> str:
    """Return the mode as Git writes it; "" if there is no such file, or a folder."""
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            return ""
        return "120000" if stat.S_ISLNK(mode) else "100755" if mode & 0o100 else "100644"
    return ""


def _digest(path: Path) -> str:
    """Return a digest of the mode and content of a file; "" if it does not exist. Raises OSError."""
    if not (mode := _mode(path)):
        return ""
    if mode == "120000":
        return f"{mode} {path.readlink()}"
    with path.open("rb") as file:
        return f"{mode} {hashlib.file_digest(file, 'sha256').hexdigest()}"


def _content(path: Path) -> str | int:
    """Return the text of a file, the target of a symbolic link, or the size of a file that is not text."""
    if not (mode := _mode(path)):
        return ""
    if mode == "120000":
        return str(path.readlink())
    size = path.stat().st_size
    if size <= TEXT_BYTES:
        data = path.read_bytes()
        with suppress(UnicodeDecodeError):
            if b"\0" not in data:
                return data.decode()
    return size


def _diff(path: str, old: str | int, new: str | int, modes: tuple[str, ...]) -> tuple[str, int]:
    """Return a diff as Git writes it, and the number of changed lines.

    Args:
        modes: old and new; "" if the file does not exist.
    """
    escaped = re.sub(r'["\\]', lambda found: f"\\{found[0]}", path)
    escaped = re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):03o}", escaped)
    quote = '"' if escaped != path else ""
    before, after = (f"{quote}{side}/{escaped}{quote}" for side in "ab")
    lines = [f"diff --git {before} {after}\n"]
    if not modes[0]:
        lines.append(f"new file mode {modes[1]}\n")
    elif not modes[1]:
        lines.append(f"deleted file mode {modes[0]}\n")
    elif modes[0] != modes[1]:
        lines += [f"old mode {modes[0]}\n", f"new mode {modes[1]}\n"]
    if isinstance(old, int) or isinstance(new, int):
        sizes = [one if isinstance(one, int) else len(one.encode("utf-8", "surrogateescape")) for one in (old, new)]
        lines.append(f"Binary files {before} and {after} differ ({sizes[0]} and {sizes[1]} bytes)\n")
        return "".join(lines), 0
    hunks, changed = _hunks(_lines(old), _lines(new))
    if hunks:
        lines += [f"--- {before if modes[0] else '/dev/null'}\n", f"+++ {after if modes[1] else '/dev/null'}\n"]
    return "".join(lines + hunks), changed


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([f"{last}\n\\ No newline at end of file\n"] if last else [])


def _hunks(a: list[str], b: list[str]) -> tuple[list[str], int]:
    """Return the lines of a diff below its head, and the number of changed lines.

    The time is bounded: between equal lines at begin and end, what has too many lines is one change.
    """
    shorter = min(len(a), len(b))
    begin = next((at for at in range(shorter) if a[at] != b[at]), shorter)
    end = next((at for at in range(shorter - begin) if a[-1 - at] != b[-1 - at]), shorter - begin)
    if max(len(a), len(b)) - begin - end <= COMPARED_LINES:
        skipped, rest = max(0, begin - CONTEXT), max(0, end - CONTEXT)
        matcher = difflib.SequenceMatcher(None, a[skipped : len(a) - rest], b[skipped : len(b) - rest])
        groups = list(matcher.get_grouped_opcodes(CONTEXT))
    else:
        before, after, skipped = min(begin, CONTEXT), min(end, CONTEXT), 0
        i, j = len(a) - end, len(b) - end
        first = ("equal", begin - before, begin, begin - before, begin)
        groups = [[first, ("replace", begin, i, begin, j), ("equal", i, i + after, j, j + after)]]
    lines = []
    changed = 0
    for group in groups if a != b else ():
        spans = []
        for start, stop in ((group[0][1], group[-1][2]), (group[0][3], group[-1][4])):
            count = stop - start
            spans.append(f"{start + skipped + (count > 0)}" + (f",{count}" if count != 1 else ""))
        lines.append(f"@@ -{spans[0]} +{spans[1]} @@\n")
        for tag, i1, i2, j1, j2 in group:
            old, new = a[i1 + skipped : i2 + skipped], b[j1 + skipped : j2 + skipped]
            if tag == "equal":
                lines += [f" {line}" for line in old]
            else:
                lines += [f"-{line}" for line in old] + [f"+{line}" for line in new]
                changed += len(old) + len(new)
    return lines, changed
