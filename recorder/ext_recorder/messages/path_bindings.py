r"""Paths of one machine and their placeholders: replaced in recorded messages, restored in replayed ones.

`/tmp/workdir` is found in `/tmp/workdir/a`, in `cd /tmp/workdir;` and after the `\n` of a JSON string, not in
`/tmp/workdir-2` or `/srv/tmp/workdir.old`. One pass replaces all texts, the longest first; inserted text is not
replaced again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count

from ext_recorder.errors import UsageError
from ext_sdk.core.wire.json_codec import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ext_recorder.protocols.dialect import Dialect


# Bytes of names: a path that ends before one of them, or begins after one, is another path.
_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_INSIDE = frozenset(bytes([byte]) for byte in (*_NAME, *range(0x80, 0x100)))
_USUAL_ENDS = frozenset({b'"', b"/"})
_ESCAPES = frozenset(b"nrtbf")  # letters that are a JSON escape when a backslash goes before them
_HEX = frozenset(b"0123456789abcdefABCDEF")


class Substitution:
    """Table of replacements in bytes, at path boundaries and in every form that JSON gives a string.

    Args:
        pairs: old text to new text. Pairs that change nothing are left out.
        json: the new text goes into JSON strings, so it is written with JSON's escapes. Old texts are found
            with and without escapes either way.
    """

    __slots__ = ("_plain", "_slashed", "_table")

    def __init__(self, pairs: Mapping[str, str], *, json: bool) -> None:
        slashed: dict[bytes, bytes] = {}
        table: dict[bytes, bytes] = {}
        for old, new in pairs.items():
            if old and old != new:
                slashed[_slashed(old)] = _slashed(new)
                table.setdefault(_ascii(old), _ascii(new))
                table.setdefault(_escaped(old), _escaped(new))
                table[_raw(old)] = _escaped(new) if json else _raw(new)
        self._plain = tuple(table)
        self._slashed = tuple(each for each in slashed if each not in table)
        self._table = slashed | table

    def __bool__(self) -> bool:
        return bool(self._table)

    def apply(self, data: bytes) -> bytes:
        """Return the bytes with all replacements; the same object if there are none."""
        # `find` takes a third less time than `in`, which first tries an integer.
        present = [old for old in self._plain if data.find(old) >= 0]
        if self._slashed and data.find(b"\\/") >= 0:
            present += [old for old in self._slashed if old in data]
        if not present:
            return data
        if len(present) > 1:
            return self._replaced(data, present)
        # A path between quotation marks, or before a slash, is between boundaries. This check takes a third
        # of the time of a search for boundaries.
        before, *others = pieces = data.split(present[0])
        for after in others:
            if before[-1:] != b'"' or after[:1] not in _USUAL_ENDS:
                return self._replaced_one(data, present[0])
            before = after
        return self._table[present[0]].join(pieces)

    def _replaced_one(self, data: bytes, old: bytes) -> bytes:
        """Replace one text; `_replaced` replaces several."""
        at = _find(data, old, 0)
        if at < 0:
            return data
        new = self._table[old]
        parts: list[bytes] = []
        position = 0
        while at >= 0:
            parts += (data[position:at], new)
            position = at + len(old)
            at = _find(data, old, position)
        parts.append(data[position:])
        return b"".join(parts)

    def _replaced(self, data: bytes, present: list[bytes]) -> bytes:
        """Replace in one pass: the leftmost text first, the longest of several."""
        parts: list[bytes] = []
        position = 0
        found = [(_find(data, old, 0), -len(old), old) for old in present]
        while True:
            found = [each for each in found if each[0] >= 0]
            if not found:
                break
            at, _, old = min(found)
            parts += (data[position:at], self._table[old])
            position = at + len(old)
            found = [
                each if each[0] >= position else (_find(data, each[2], position), each[1], each[2]) for each in found
            ]
        if not parts:
            return data
        parts.append(data[position:])
        return b"".join(parts)


def _find(data: bytes, old: bytes, start: int) -> int:
    """Return the first position of `old` between boundaries, or -1."""
    at = data.find(old, start)
    while at >= 0:
        end = at + len(old)
        before, after = data[at - 1 : at], data[end : end + 1]
        # Before a byte of a name, a path ends only before the full stop of a sentence.
        ends = after not in _INSIDE or (after == b"." and data[end + 1 : end + 2] not in _INSIDE)
        if ends and (before not in _INSIDE or _begins(data, at)):
            return at
        at = data.find(old, at + 1)
    return -1


def _begins(data: bytes, at: int) -> bool:
    r"""Return True if a path may begin after a byte of a name: only if a JSON escape ends there, as in "\\n/tmp"."""
    before = data[at - 1]
    if before in _ESCAPES and data[at - 2 : at - 1] == b"\\":
        return True
    return before in _HEX and data[at - 6 : at - 4] == b"\\u"


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _escaped(text: str) -> bytes:
    return quote(text)[1:-1].encode("utf-8", "surrogateescape")


def _slashed(text: str) -> bytes:
    r"""Escape as PHP and some JavaScript libraries do: `\\/tmp\\/workdir`."""
    return _escaped(text).replace(b"/", b"\\/")


def _ascii(text: str) -> bytes:
    r"""Escape as Python's json does by default: `/tmp/\\u00e4`."""
    escaped = ""
    for char in quote(text)[1:-1]:
        units = "" if char.isascii() else char.encode("utf-16-be", "surrogatepass").hex()
        escaped += "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) or char
    return escaped.encode()


HOME = "home"
HOME_NEUTRAL = "/home/user"
RUN_CWD = "run-cwd"  # working directory of a run, in sessions of its children; requests may name further folders
RUN_FOLDER = "run-folder"  # temporary folder of a run, with the programs by which a host starts its children
OF_RUNS = (RUN_CWD, RUN_FOLDER)
_FILE_URI = "file://"
_AFTER_A_PATH = (b"", b'"', b"/", b"\\")
_TEMPORARY = "/tmp"  # noqa: S108  (a spelling in a file; nothing is opened there)
_NEUTRAL_FOLDER = f"{_TEMPORARY}/"
_RUN_CWD_NEUTRAL = f"{_NEUTRAL_FOLDER}{RUN_CWD}"

_SYSTEM = frozenset(
    ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var")
)


class IfKnown(str):
    """Value of a binding that is set aside if a cassette does not have the binding: `NAME?=PATH`."""

    __slots__ = ()


def parse_bind(options: Iterable[str]) -> dict[str, str]:
    """Return the values of `--bind NAME=PATH` by name. Raises UsageError."""
    given: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        name, if_known = name.removesuffix("?"), name.endswith("?")
        if not equals or not name or not value or not name.replace("-", "").replace("_", "").isalnum():
            raise UsageError(f"--bind {option!r}: expected NAME=PATH, as in --bind data=/srv/data")
        if value.isdigit():
            raise UsageError(f"--bind {option!r}: a number is found in too many places; set it aside by --ignore")
        value = value.rstrip("/") or value
        given[name] = IfKnown(value) if if_known else value
    return given


def is_bindable(value: object) -> bool:
    """Return True for an absolute path that is not a folder of the system."""
    if not isinstance(value, str) or not value.startswith("/"):
        return False
    components = [part for part in value.split("/") if part]
    return len(components) > 1 or (bool(components) and f"/{components[0]}" not in _SYSTEM)


def is_home(value: str) -> bool:
    """Return True for a home folder that is bound: not the folder of everybody's temporary files."""
    return is_bindable(value) and value.rstrip("/") != _TEMPORARY


def path_in(value: object) -> str:
    """Return the path in a value of a request, plain or as a file URI; "" if it has none to be bound."""
    path = value.removeprefix(_FILE_URI).rstrip("/") if isinstance(value, str) else ""
    return path if is_bindable(path) else ""


class RecordBindings:
    """Bindings of a session that is recorded: live paths are found and replaced by placeholders.

    Args:
        dialect: knows where requests carry live values.
        given: --bind.
        home: HOME, or "".
    """

    def __init__(self, dialect: Dialect, given: Mapping[str, str] | None = None, home: str = "") -> None:
        self._dialect = dialect
        self._places = [
            (f'"{method}"'.encode(), method, [_quoted(pointer.rpartition("/")[2]) for pointer in places.values()])
            for method, places in dialect.bound.items()
        ]
        self._known: dict[bytes, set[bytes]] = {}  # name of a member, quoted, to what follows it with a known value
        self._counts: dict[str, int] = {}
        self._neutral: dict[str, str] = {}  # live value to placeholder
        self._folders: dict[str, str] = {}  # those that requests named, and by which binding
        for name, value in (given or {}).items():
            self._learn(name, value)
        if is_home(home):
            self._learn(HOME, home)
        self._substitution = Substitution(self._neutral, json=False)

    def neutral(self) -> dict[str, str]:
        """Return `bindings` of the header: each name with its placeholder."""
        in_requests = [name for places in self._dialect.bound.values() for name in places]
        return {name: _neutral_spelling(name) for name in [*self._counts, *in_requests]}

    def adopt(self, playing: ReplayBindings) -> None:
        """Continue after a replay: the same placeholders for the same values."""
        before = dict(self._neutral)
        for name in playing.names:
            for number, neutral, value in playing.bound(name):
                self._counts[name] = max(self._counts.get(name, 0), number)
                self._neutral[value] = neutral
        if self._neutral != before:
            self._substitution = Substitution(self._neutral, json=False)

    def observe(self, payload: bytes) -> None:
        """Look for live values in a message of the host, in the order of the session, before `clean`."""
        for spelled, method, members in self._places:
            if spelled in payload and not all(self._is_known(payload, member) for member in members):
                self._look(payload, method)

    def clean(self, data: bytes) -> bytes:
        """Return the bytes with placeholders for all known live values."""
        return self._substitution.apply(data)

    def _is_known(self, payload: bytes, member: bytes) -> bool:
        """Return True if the member is absent or known. Parsing the message would take longer than everything else."""
        at = payload.find(member)
        if at < 0:
            return b"\\" not in payload  # an escape may spell any name
        if payload.find(member, at + 1) >= 0:
            return False
        start = at + len(member)
        return payload[start : payload.find(b'"', start + 2) + 1] in self._known.get(member, ())

    def _look(self, payload: bytes, method: str) -> None:
        message = self._dialect.classify(payload)
        if message.method != method:
            return
        for name, pointer in self._dialect.bound[method].items():
            value = message.at(pointer)
            if not isinstance(value, str):
                continue
            self._known.setdefault(_quoted(pointer.rpartition("/")[2]), set()).add(b":" + _quoted(value))
            path = path_in(value)
            if not path or self._neutral.get(path, _RUN_CWD_NEUTRAL) != _RUN_CWD_NEUTRAL:
                continue
            # A path in the folder of another binding of the request needs none of its own.
            if any(other != name and path.startswith(f"{folder}/") for folder, other in self._folders.items()):
                continue
            self._folders[path] = name
            self._learn(name, path)
            self._substitution = Substitution(self._neutral, json=False)

    def _learn(self, name: str, value: str) -> None:
        number = self._counts[name] = self._counts.get(name, 0) + 1
        self._neutral[value] = _neutral_spelling(name) + (f"-{number}" if number > 1 else "")


class RewriteBindings(RecordBindings):
    """Bindings of a cassette that is rewritten with its host and a live child: placeholders of the cassette are kept.

    Args:
        dialect: of the session.
        playing: the bindings of the cassette, with their live values.
        home: HOME, or "".
    """

    def __init__(self, dialect: Dialect, playing: ReplayBindings, home: str) -> None:
        super().__init__(dialect, home=home)
        self._playing = playing
        self.adopt(playing)

    def neutral(self) -> dict[str, str]:
        """Return the bindings of the cassette, and the home folder, which may become known only now."""
        return {**self._playing.spellings, **{name: _neutral_spelling(name) for name in self._counts}}

    def observe(self, payload: bytes) -> None:
        """Do nothing: the paths in a message of the host are those that it was sent with."""
        self.adopt(self._playing)


def _quoted(text: str) -> bytes:
    return f'"{text}"'.encode("utf-8", "surrogateescape")


def _neutral_spelling(name: str) -> str:
    return HOME_NEUTRAL if name == HOME else _NEUTRAL_FOLDER + name


class ReplayBindings:
    """Bindings of a session that is replayed: placeholders become live values, and live values placeholders.

    Args:
        neutral: `bindings` of the header.
        given: --bind.
        home: HOME, or "".

    Attributes:
        here: return a recorded message with live values: `to_live` of JSON.

    Raises:
        UsageError: --bind names a binding that the cassette does not have.
    """

    def __init__(self, neutral: Mapping[str, str], given: Mapping[str, str] | None = None, home: str = "") -> None:
        self._live: dict[str, str] = {}  # placeholder to live value
        self._names = dict(neutral)
        for name, value in (given or {}).items():
            spelling = self._spelling(name)
            if spelling:
                self._live[spelling] = value
            elif not isinstance(value, IfKnown):
                known = ", ".join(self._names) or "none"
                raise UsageError(f"--bind {name}=…: the cassette has no such binding; it has: {known}")
        folders = {HOME: home}
        with suppress(OSError):  # it was deleted
            folders[RUN_CWD] = os.getcwd()  # noqa: PTH109
        for name, folder in folders.items():
            if name in neutral and neutral[name] not in self._live and is_home(folder):
                self._live[neutral[name]] = folder
        self._compile()

    def _spelling(self, name: str) -> str:
        """Return the placeholder of a binding's first value; of `evals-2`, that of its second; "" if there is none."""
        base, hyphen, number = name.rpartition("-")
        if name in self._names:
            return self._names[name]
        return f"{self._names[base]}-{number}" if hyphen and number.isdigit() and base in self._names else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the bindings."""
        return tuple(self._names)

    @property
    def spellings(self) -> dict[str, str]:
        """Yield the placeholder of each binding's first value."""
        return dict(self._names)

    def bound(self, name: str) -> Iterator[tuple[int, str, str]]:
        """Yield the known values of a binding: (name, placeholder, live value)."""
        for spelling, value in self._live.items():
            if self.is_placeholder(name, spelling):
                yield int(spelling.removeprefix(self._names[name])[1:] or 1), spelling, value

    def unbound(self, data: bytes) -> Iterator[str]:
        """Return bindings without live value whose placeholders are in a recorded message: `evals`, `evals-2`."""
        for name, spelling in self._names.items():
            for piece in data.split(spelling.encode())[1:]:
                # "-2" for a second value, "" for the first; neither if the piece does not end a path there.
                digits = len(piece[1:]) - len(piece[1:].lstrip(b"0123456789")) if piece[:1] == b"-" else 0
                end = digits + 1 if digits else 0
                number = piece[:end].decode()
                if piece[end : end + 1] in _AFTER_A_PATH and self._live.get(spelling + number) is None:
                    yield name + number

    def is_placeholder(self, name: str, spelling: str) -> bool:
        """Return True if a text is the placeholder of the binding's first, second, … value."""
        base = self._names.get(name)
        if base is None:
            return False
        rest = spelling.removeprefix(base)
        return spelling.startswith(base) and (not rest or (rest[0] == "-" and rest[1:].isdigit()))

    def placeholders_of(self, name: str) -> Iterator[str]:
        """Yield the placeholders of the binding's first, second, … value, without end."""
        base = self._names.get(name)
        if base is not None:
            yield base
            for number in count(2):
                yield f"{base}-{number}"

    def live(self, spelling: str) -> str | None:
        """Return the live value of a placeholder; None if it is unknown."""
        return self._live.get(spelling)

    def is_live(self, value: str) -> bool:
        """Return True if a placeholder has this live value."""
        return value in self._live.values()

    def bind(self, spelling: str, value: str) -> None:
        """Set the live value of a placeholder."""
        if self._live.get(spelling) != value:
            self._live[spelling] = value
            self._compile()

    def unbind(self, spelling: str) -> None:
        """Remove a live value that was learned from a request which turned out to be another one."""
        del self._live[spelling]
        self._compile()

    def to_placeholders(self, data: bytes) -> bytes:
        """Return a live message with placeholders, as a cassette has it."""
        return self._backward.apply(data)

    def to_placeholders_if(self, spelling: str, value: str, data: bytes) -> bytes:
        """Return the same as if this placeholder had this value."""
        backward = {live: neutral for neutral, live in self._live.items()} | {value: spelling}
        return Substitution(backward, json=False).apply(data)

    def canonical(self, recorded: bytes, *, json: bool = True) -> bytes:
        """Return a recorded message (`json`), or other bytes, with the placeholders that `to_neutral` chooses.

        A path has several when the live values of two bindings are one folder, or one is in the other.
        """
        return self._backward.apply(self.to_live(recorded, json=json))

    def to_live(self, data: bytes, *, json: bool) -> bytes:
        """Return a recorded message (`json`), or other bytes, with live values."""
        return self.here(data) if json else self._forward.apply(data)

    def __bool__(self) -> bool:
        """Return True if there is a text to replace."""
        return bool(self._backward)

    def _compile(self) -> None:
        self._forward = Substitution(self._live, json=False)
        self.here = Substitution(self._live, json=True).apply
        self._backward = Substitution({live: neutral for neutral, live in self._live.items()}, json=False)
