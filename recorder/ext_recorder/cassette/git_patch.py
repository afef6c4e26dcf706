"""Patches in git's format: changed files as text, as `git apply` accepts them and `git diff --binary` writes them.

    # patch: 1, folder: /tmp/cwd, t: 1.250000
    diff --git a/notes.txt b/notes.txt
    …

A file NAME.patch has all patches of the cassette NAME.yaml, which refers to them by number. Lines that begin with `#`
are ours; git ignores them. It applies several patches of one file at once unless one of them renames or deletes it.
Only `PatchFile` does I/O.
"""

from __future__ import annotations

import os
import re
import zlib
from base64 import b85decode, b85encode
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.errors import CassetteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FILE, EXECUTABLE, LINK = 0o100644, 0o100755, 0o120000
CONTEXT = 3  # lines before and after a change
BINARY_SEARCH_BYTES = 8_000  # git takes a file for binary if there is a NUL in this part of it
# Lines up to which changes are found exactly, or roughly; beyond, all between the first and the last is replaced.
EXACT_LINES, ROUGH_LINES = 2_000, 20_000
SUFFIX = ".patch"
TITLE = b"# Files that a recorded child changed, as patches for `git apply`. `ext-recorder replay` applies them.\n"
NOT_RECORDED = b"# not recorded: "
EMPTY_FOLDER = b"# empty folder: "
_NO_ID = "0" * 40
_LINES = re.compile(rb"[^\n]*\n|[^\n]+")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SECTION = re.compile(rb"^# patch: (\d{1,9}), folder: ([^\n]+), t: [0-9.]+\n", re.MULTILINE)
_INDEX = re.compile(rb"index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})(?: ([0-7]{6}))?\n")
_NO_END = b"\\ No newline at end of file\n"
_MOST_BINARY_BYTES = 1 << 30
_PLACEHOLDER = re.compile(rb"(\[redacted:[A-Za-z0-9_.-]{1,96}#)[0-9]{1,9}\]")


class Entry(NamedTuple):
    """File or symbolic link.

    Attributes:
        mode: FILE, EXECUTABLE or LINK.
        content: of a link, its target; None if only its id is known.
        id: object id of git; "" if it is not computed yet.
    """

    mode: int
    content: bytes | None
    id: str = ""


class Hunk(NamedTuple):
    """Change of some lines.

    Attributes:
        start: index of the first old line.
        old, new: the lines, with their line feeds.
    """

    start: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    kept: tuple[tuple[int, int], ...]  # lines of context: index in `old` and in `new`


class FilePatch(NamedTuple):
    """Change of one file.

    Attributes:
        old, new: its path; "" if it is created, or deleted.
        old_mode, new_mode: 0 if the patch does not have it.
        old_id, new_id: object ids of git, or their beginning; "" if the patch does not have them.
        hunks: of a text.
        binary: of a binary file: the content, or a delta.
        copies: the old file stays.
    """

    old: str
    new: str
    old_mode: int = 0
    new_mode: int = 0
    old_id: str = ""
    new_id: str = ""
    hunks: tuple[Hunk, ...] = ()
    binary: tuple[str, bytes] | None = None
    copies: bool = False


class Patch(NamedTuple):
    """Patches of one folder, at one point of a session.

    Attributes:
        folder: its path, as the cassette has it; "." for the working directory of the child.
        files: in their order.
        empty: folders in it that are empty afterwards.
    """

    folder: str
    files: tuple[FilePatch, ...]
    empty: tuple[str, ...]


class PatchError(ValueError):
    """A patch cannot be read."""


def object_id(content: bytes) -> str:
    """Return the id that git gives a file with this content."""
    from hashlib import sha1

    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def is_binary(content: bytes) -> bool:
    """Return True if git does not show this content as text."""
    return b"\0" in content[:BINARY_SEARCH_BYTES]


def lines_of(content: bytes) -> list[bytes]:
    """Return the lines of a text, with their line feeds."""
    return _LINES.findall(content)


def without_numbers(line: bytes) -> bytes:
    """Return a text in which the numbers of redacted secrets do not matter."""
    return _PLACEHOLDER.sub(rb"\1]", line) if b"[redacted:" in line else line


# Writing


def encode(path: str, old: Entry | None, new: Entry | None, *, renamed: str = "") -> bytes:
    """Return the patch of one file.

    Args:
        path: of the file.
        old: before; None if it is created. Without content, all of the new content is written.
        new: after; None if it is deleted.
        renamed: its previous path; the content is the same.
    """
    if old and new and (old.mode == LINK) is not (new.mode == LINK):
        return encode(path, old, None) + encode(path, None, new)
    before, after = _name("a/", renamed or path), _name("b/", path)
    lines = [b"diff --git %b %b\n" % (before, after)]
    if old is None and new is not None:
        lines.append(b"new file mode %o\n" % new.mode)
    elif new is None and old is not None:
        lines.append(b"deleted file mode %o\n" % old.mode)
    elif old is not None and new is not None and old.mode != new.mode:
        lines.append(b"old mode %o\nnew mode %o\n" % (old.mode, new.mode))
    if renamed:
        names = (_name("", renamed), _name("", path))
        lines.append(b"similarity index 100%%\nrename from %b\nrename to %b\n" % names)
        return b"".join(lines)
    ids = (_id(old), _id(new))
    if ids[0] == ids[1]:
        return b"".join(lines)
    same_mode = old is not None and new is not None and old.mode == new.mode
    lines.append(b"index %b..%b%b\n" % (*(id.encode() for id in ids), b" %o" % new.mode if same_mode and new else b""))
    contents = [entry.content if entry else b"" for entry in (old, new)]
    if None in contents or any(is_binary(content or b"") for content in contents):
        content = contents[1] or b""
        lines.append(b"GIT binary patch\nliteral %d\n" % len(content))  # without the part that would reverse it
        packed = zlib.compress(content, 9)
        for piece in (packed[at : at + 52] for at in range(0, len(packed), 52)):
            length = len(piece) + (64 if len(piece) <= 26 else 70)  # A to Z, a to z
            lines.append(b"%c%b\n" % (length, b85encode(piece, pad=True)))
        lines.append(b"\n")
    elif contents[0] or contents[1]:
        names = (before if old else b"/dev/null", after if new else b"/dev/null")
        tabs = [b"\t" if b" " in name else b"" for name in names]
        lines.append(b"--- %b%b\n+++ %b%b\n" % (names[0], tabs[0], names[1], tabs[1]))
        lines += _hunks(lines_of(contents[0] or b""), lines_of(contents[1] or b""))
    return b"".join(lines)


def _id(entry: Entry | None) -> str:
    if entry is None:
        return _NO_ID
    return entry.id or object_id(entry.content or b"")


def _name(prefix: str, path: str) -> bytes:
    """Return a path as git writes it: in quotation marks if it has characters that would be ambiguous."""
    data = f"{prefix}{path}".encode("utf-8", "surrogateescape")
    try:
        data.decode()
        escapes = data.translate(None, bytes(range(0x20))) != data or any(char in data for char in b'"\\\x7f')
    except UnicodeDecodeError:
        escapes = True
    if not escapes:
        return data
    pieces = [
        b"\\%c" % byte if byte in b'"\\' else b"\\%03o" % byte if not 32 <= byte < 127 else b"%c" % byte
        for byte in data
    ]
    return b'"%b"' % b"".join(pieces)


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    from difflib import SequenceMatcher

    first, end = 0, 0
    most = min(len(old), len(new))
    while first < most and old[first] == new[first]:
        first += 1
    while end < most - first and old[-1 - end] == new[-1 - end]:
        end += 1
    changed = len(old) + len(new) - 2 * (first + end)
    if changed > ROUGH_LINES:
        middles = [("replace", first, len(old) - end, first, len(new) - end)]
    else:
        parts = (old[first : len(old) - end], new[first : len(new) - end])
        matcher = SequenceMatcher(None, *parts, autojunk=changed > EXACT_LINES)
        middles = [(tag, a + first, b + first, c + first, d + first) for tag, a, b, c, d in matcher.get_opcodes()]
    group: list[tuple[int, int, int, int]] = []
    for tag, *span in middles:
        if tag == "equal":
            continue
        if group and span[0] - group[-1][1] > 2 * CONTEXT:
            yield from _hunk(old, new, group)
            group = []
        group.append((span[0], span[1], span[2], span[3]))
    if group:
        yield from _hunk(old, new, group)


def _hunk(old: list[bytes], new: list[bytes], group: list[tuple[int, int, int, int]]) -> Iterator[bytes]:
    before = min(CONTEXT, group[0][0])
    after = min(CONTEXT, len(old) - group[-1][1])
    at, upto = group[0][0] - before, group[-1][1] + after
    new_at, new_upto = group[0][2] - before, group[-1][3] + after
    starts = (at + (upto > at), new_at + (new_upto > new_at))
    yield b"@@ -%d,%d +%d,%d @@\n" % (starts[0], upto - at, starts[1], new_upto - new_at)
    for start, end, new_start, new_end in group:
        yield from (_line(b" ", line) for line in old[at:start])
        yield from (_line(b"-", line) for line in old[start:end])
        yield from (_line(b"+", line) for line in new[new_start:new_end])
        at = end
    yield from (_line(b" ", line) for line in old[at:upto])


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n" + _NO_END


# Reading


def read(data: bytes) -> Iterator[FilePatch]:
    """Yield the patches of a text. Raises PatchError."""
    lines = lines_of(data)
    at = 0
    while at < len(lines):
        if lines[at].startswith(b"diff --git "):
            patch, at = _Reader(lines, at).patch()
            yield patch
        else:
            at += 1


class _Reader:
    """Reader of the patch of one file.

    Args:
        lines: of the text.
        at: index of the line `diff --git`.
    """

    def __init__(self, lines: Sequence[bytes], at: int) -> None:
        self._lines = lines
        self._at = at

    def patch(self) -> tuple[FilePatch, int]:
        """Return the patch, and the index of the line after it. Raises PatchError."""
        old, new = _names(self._lines[self._at].removeprefix(b"diff --git ").rstrip(b"\n"))
        values: dict[str, object] = {}
        self._at += 1
        while (line := self._next()) is not None:
            if line.startswith(b"--- "):
                self._at += 1
                other = self._next() or b""
                if not other.startswith(b"+++ "):
                    raise PatchError("expected a line +++ after ---")
                self._at += 1
                old, new = _side(line[4:], old), _side(other[4:], new)
                values["hunks"] = tuple(self._hunks())
                break
            if line == b"GIT binary patch\n":
                self._at += 1
                values["binary"] = self._binary()
                break
            key, known = _extended(line)
            if known is None:
                break
            values |= known
            old, new = str(values.pop("from", old)), str(values.pop("to", new))
            if key == "new":
                old = ""
            elif key == "deleted":
                new = ""
            self._at += 1
        return FilePatch(old, new)._replace(**values), self._at  # type: ignore[arg-type]  # by name

    def _next(self) -> bytes | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _hunks(self) -> Iterator[Hunk]:
        while (line := self._next()) is not None and (found := _HUNK.match(line)):
            start, count, _, new_count = (1 if number is None else int(number) for number in found.groups())
            self._at += 1
            old, new, kept = self._changed(count, new_count)
            yield Hunk(start - bool(count), tuple(old), tuple(new), tuple(kept))

    def _changed(self, count: int, new_count: int) -> tuple[list[bytes], list[bytes], list[tuple[int, int]]]:
        old: list[bytes] = []
        new: list[bytes] = []
        kept = []
        last = b""
        while len(old) < count or len(new) < new_count or self._next() == _NO_END:
            line = self._next()
            mark = line[:1] if line else b""
            if line is None or mark not in {b" ", b"-", b"+", b"\\", b"\n"}:
                raise PatchError(f"a hunk has fewer lines than its header says: {len(old)} of {count}")
            self._at += 1
            text = line if mark == b"\n" else line[1:]  # some editors remove the space of an empty line
            if mark == b"\\":
                for side in (old, new) if last == b" " else (old,) if last == b"-" else (new,):
                    side[-1] = side[-1].removesuffix(b"\n")
                continue
            last = b" " if mark == b"\n" else mark
            if last == b" ":
                kept.append((len(old), len(new)))
            if last != b"+":
                old.append(text)
            if last != b"-":
                new.append(text)
        return old, new, kept

    def _binary(self) -> tuple[str, bytes]:
        """Return the kind and the content of the first part; the second one would reverse it."""
        parts = []
        while (line := self._next()) is not None and (kind := line.partition(b" ")[0]) in {b"literal", b"delta"}:
            self._at += 1
            decompressor, content = zlib.decompressobj(), bytearray()
            try:
                while (line := self._next()) not in {None, b"\n"} and len(content) <= _MOST_BINARY_BYTES:
                    letter = (line or b"")[0]
                    size = letter - 64 if letter <= 90 else letter - 70  # A to Z, a to z
                    content += decompressor.decompress(b85decode((line or b"")[1:].rstrip(b"\n"))[:size])
                    self._at += 1
            except (ValueError, zlib.error) as error:
                raise PatchError(f"a binary patch is damaged: {error}") from None
            if not decompressor.eof:
                raise PatchError("a binary patch is cut off or too long")
            self._at += 1
            parts.append((kind.decode(), bytes(content)))
        if not parts:
            raise PatchError("a binary patch has no content")
        return parts[0]


_EXTENDED = {
    b"old mode ": ("old_mode", "mode"),
    b"new mode ": ("new_mode", "mode"),
    b"deleted file mode ": ("old_mode", "deleted"),
    b"new file mode ": ("new_mode", "new"),
    b"rename from ": ("from", "name"),
    b"rename to ": ("to", "name"),
    b"copy from ": ("from", "copy"),
    b"copy to ": ("to", "copy"),
    b"similarity index ": ("", ""),
    b"dissimilarity index ": ("", ""),
}


def _extended(line: bytes) -> tuple[str, dict[str, object] | None]:
    """Return the kind of a header line, and its values; None if it is not one."""
    if found := _INDEX.match(line):
        ids = {"old_id": found[1].decode(), "new_id": found[2].decode()}
        return "index", ids | ({"old_mode": int(found[3], 8), "new_mode": int(found[3], 8)} if found[3] else {})
    for start, (member, kind) in _EXTENDED.items():
        if line.startswith(start):
            value = line.removeprefix(start).rstrip(b"\n")
            if not member:
                return kind, {}
            if kind in {"name", "copy"}:
                return kind, {member: _unquoted(value), **({"copies": True} if kind == "copy" else {})}
            try:
                return kind, {member: int(value, 8)}
            except ValueError:
                raise PatchError(f"expected a mode of a file, found {value!r}") from None
    return "", None


def _side(text: bytes, name: str) -> str:
    """Return the path in a line --- or +++, without its prefix; the one of the first line if they are alike."""
    text = text.rstrip(b"\n").removesuffix(b"\t")
    return "" if text == b"/dev/null" else _unquoted(text).partition("/")[2] or name


def _names(text: bytes) -> tuple[str, str]:
    """Return both paths of the line `diff --git`; if they are not in quotation marks, they are the same path."""
    if text.startswith(b'"'):
        end = re.match(rb'"(?:[^"\\]|\\.)*"', text)
        parts = [text[: end.end()], text[end.end() + 1 :]] if end else [text, text]
    elif text.endswith(b'"'):
        parts = list(text.split(b" ", 1))
    else:
        half = len(text) // 2
        parts = [text[:half], text[half + 1 :]]
    old, new = ((_unquoted(part).partition("/")[2]) for part in (parts[0], parts[-1]))
    return old, new


_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def _unquoted(text: bytes) -> str:
    if len(text) > 1 and text.startswith(b'"') and text.endswith(b'"'):

        def plain(found: re.Match[bytes]) -> bytes:
            escape = found[1]
            return bytes([int(escape, 8) & 0xFF]) if escape.isdigit() else _ESCAPED.get(escape, escape)

        text = re.sub(rb"\\([0-7]{3}|.)", plain, text[1:-1])
    return text.decode("utf-8", "surrogateescape")


# Applying


def patched(
    patch: FilePatch, content: bytes, neutral: Callable[[bytes], bytes], live: Callable[[bytes], bytes]
) -> bytes | str:
    """Return the new content of a file, or as text why the patch does not apply.

    Args:
        content: of the file.
        neutral: replaces secrets and paths of this machine, as a recorder does.
        live: restores the paths.
    """
    if patch.binary is not None:
        kind, data = patch.binary
        if patch.old_id and not object_id(content).startswith(patch.old_id) and patch.old:
            return "its content is another one"
        return data if kind == "literal" else _with_delta(content, data)
    if not patch.hunks:
        return content
    lines = lines_of(content)
    plain = lines_of(neutral(content))
    if len(plain) != len(lines):  # a secret of several lines
        lines = [live(line) for line in plain]
    plain = [without_numbers(line) for line in plain]
    result: list[bytes] = []
    done = 0
    for hunk in patch.hunks:
        at = _place(hunk, plain, done, done + max(0, hunk.start - done))
        if at < 0:
            return _difference(hunk, plain)
        kept = {new: old for old, new in hunk.kept}
        result += lines[done:at]
        result += [lines[at + kept[index]] if index in kept else live(line) for index, line in enumerate(hunk.new)]
        done = at + len(hunk.old)
    return b"".join([*result, *lines[done:]])


def _place(hunk: Hunk, lines: Sequence[bytes], least: int, expected: int) -> int:
    """Return the index nearest to the expected one at which the old lines are; -1 if they are missing."""
    old = [without_numbers(line) for line in hunk.old]
    if not old:
        return expected if not lines else -1
    last = len(lines) - len(old)
    for distance in range(max(last - least, expected - least, 0) + 1):
        for at in (expected - distance, expected + distance):
            if least <= at <= last and list(lines[at : at + len(old)]) == old:
                return at
    return -1


def _difference(hunk: Hunk, lines: Sequence[bytes]) -> str:
    old = [without_numbers(line) for line in hunk.old]
    for index, line in enumerate(old):
        found = lines[hunk.start + index] if hunk.start + index < len(lines) else None
        if found != line:
            shown = "the end of the file" if found is None else repr(found.decode("utf-8", "replace"))
            return f"line {hunk.start + index + 1}: expected {line.decode('utf-8', 'replace')!r}, found {shown}"
    return "its content is another one" if old or lines else "it is empty"


def _with_delta(source: bytes, delta: bytes) -> bytes | str:
    """Return the result of a delta of git: copied parts of the source, and new bytes."""
    numbers = iter(delta)
    result = bytearray()
    try:
        if _size(numbers) != len(source):
            return "its content is another one"
        total = _size(numbers)
        for code in numbers:
            if not code & 0x80:
                result += bytes(next(numbers) for _ in range(code))
                continue
            start, count = (
                sum(next(numbers) << (8 * index) for index in range(most) if code & (1 << (first + index)))
                for first, most in ((0, 4), (4, 3))
            )
            result += source[start : start + (count or 0x10000)]
            if len(result) > total:
                break
    except (StopIteration, RuntimeError):
        return "the delta of the patch is cut off"
    return bytes(result) if len(result) == total else "the delta of the patch is damaged"


def _size(numbers: Iterator[int]) -> int:
    value = shift = 0
    for byte in numbers:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return value


# The file next to a cassette


def file_of(cassette: str) -> str:
    """Return the file with the patches of a cassette: session.patch for session.yaml."""
    return cassette.removesuffix(".yaml") + SUFFIX


def publish(cassette: str) -> None:
    """Give the file of patches its name, together with the cassette; a previous one of the same name is removed."""
    path = file_of(cassette)
    try:
        os.replace(f"{path}.partial", path)  # noqa: PTH105
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            if is_ours(path):
                os.unlink(path)  # noqa: PTH108


def is_ours(path: str) -> bool:
    """Return True if a file has patches of a cassette, and is not one of the user's own."""
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read(len(TITLE)) == TITLE


def remarks_of(cassette: str) -> list[str]:
    """Return what the patches of a cassette do not have, as text."""
    try:
        with open(file_of(cassette), "rb") as file:  # noqa: PTH123
            found = [line for line in file if line.startswith(NOT_RECORDED)]
    except OSError:
        return []
    return [line.removeprefix(NOT_RECORDED).decode("utf-8", "replace").strip() for line in found]


class PatchFile:
    """File of patches that is being recorded.

    Args:
        cassette: the patches belong to.
        redact: replaces secrets.
        clean: replaces secrets and paths of this machine.
    """

    def __init__(self, cassette: str, redact: Callable[[bytes], bytes], clean: Callable[[bytes], bytes]) -> None:
        self._path = f"{file_of(cassette)}.partial"
        self._redact = redact
        self._clean = clean
        self.count = 0
        with suppress(FileNotFoundError):
            os.unlink(self._path)  # noqa: PTH108

    def append(self, time: float, noted: bytes) -> bool:
        """Write the patches of a note of `replay.workspace`. Return False if nothing is to be applied.

        Raises:
            OSError: the disk is full, for example.
        """
        import marshal

        folder, changes, empty, remarks = marshal.loads(noted)  # noqa: S302 - written by our own parent process
        pieces = []
        remarks = [remark.encode("utf-8", "surrogateescape") for remark in remarks]
        for path, renamed, old, new in changes:
            problem, piece = self._encoded(path, renamed, old and Entry(*old), new and Entry(*new))
            pieces.append(piece)
            remarks += [_name("", path) + b": " + problem.encode()] if problem else []
        pieces = [EMPTY_FOLDER + _name("", name) + b"\n" for name in empty if self._is_plain(name)] + pieces
        text = b"".join(pieces)
        notes = b"".join(NOT_RECORDED + self._clean(remark.replace(b"\n", b" ")) + b"\n" for remark in remarks)
        if not text and not notes:
            return False
        self.count += 1
        root = b"." if folder == "." else self._clean(folder.encode("utf-8", "surrogateescape"))
        head = b"# patch: %d, folder: %b, t: %.6f\n" % (self.count, root, time)
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with open(fd, "wb") as file:  # noqa: PTH123
            file.write((TITLE if self.count == 1 else b"") + head + notes + text)
        return True

    def _is_plain(self, path: str) -> bool:
        data = path.encode("utf-8", "surrogateescape")
        return self._redact(data) == data

    def _encoded(self, path: str, renamed: str, old: Entry | None, new: Entry | None) -> tuple[str, bytes]:
        """Return a remark, and the patch of a file as far as it can be recorded."""
        if not self._is_plain(path) or not self._is_plain(renamed):
            return "its name has a secret", b""
        if renamed:
            return "", encode(path, old, new, renamed=renamed)
        binary = any(entry and (entry.content is None or is_binary(entry.content)) for entry in (old, new))
        if binary:
            if new and new.content and self._redact(new.content) != new.content:
                return "a binary file with a secret", b""
            return "", encode(path, old, new)
        cleaned = [entry and Entry(entry.mode, self._clean(entry.content or b"")) for entry in (old, new)]
        if old and new and old.mode == new.mode and cleaned[0] == cleaned[1]:
            return "only a secret, or a path of this machine, differs", b""
        redacted = (
            new and b"[redacted:" in self._redact(new.content or b"") and b"[redacted:" not in (new.content or b"")
        )
        remark = "its secrets; a replay writes placeholders in their place" if redacted and not old else ""
        return remark, encode(path, *cleaned)


def patch_of(cassette: str, number: int) -> Patch:
    """Return the patch with this number.

    Raises:
        CassetteError: the file is missing, or has no such patch, or it cannot be read.
    """
    path = file_of(cassette)
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            data = file.read()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; {cassette} refers to it"
        raise CassetteError(path, 0, problem, "keep both files together, or record the session again") from None
    sections = list(_SECTION.finditer(data))
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        if int(section[1]) == number:
            text = data[section.end() : following.start() if following else len(data)]
            break
    else:
        raise CassetteError(path, 0, f"has no patch {number}, to which {cassette} refers", "record the session again")
    try:
        files = tuple(read(text))
    except PatchError as error:
        line = data.count(b"\n", 0, section.start()) + 1
        raise CassetteError(path, line, f"not a patch of git: {error}") from None
    empty = [line.removeprefix(EMPTY_FOLDER).strip() for line in lines_of(text) if line.startswith(EMPTY_FOLDER)]
    return Patch(section[2].decode("utf-8", "surrogateescape"), files, tuple(map(_unquoted, empty)))
