r"""Replacing some texts by others in bytes, at path boundaries and in every spelling that JSON gives them.

`/tmp/workdir` is found in `/tmp/workdir/a`, in `cd /tmp/workdir;` and after the `\n` of a JSON string, not in
`/tmp/workdir-2` or `/srv/tmp/workdir.old`. All texts are looked for in one pass, the longest first, and what
was put in is not looked at again.
"""

from __future__ import annotations

from ext_sdk.wire.json_text import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Bytes that go on with a name: a path that ends before, or begins after one of them is another path.
_ASCII_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_NAME = frozenset(_ASCII_NAME) | frozenset(range(0x80, 0x100))
_DOT = ord(".")
_ESCAPES = frozenset(b"nrtbf")  # letters that are a JSON escape when a backslash goes before them
_HEX = frozenset(b"0123456789abcdefABCDEF")


class Substitution:
    """A table of replacements, applied as a whole.

    Args:
        pairs: old text to new text. Pairs that change nothing are left out.
        json: the new text goes into JSON strings, so it is written with JSON's escapes. Old texts are found
            with and without escapes either way.
    """

    __slots__ = ("_olds", "_table")

    def __init__(self, pairs: Mapping[str, str], *, json: bool) -> None:
        table: dict[bytes, bytes] = {}
        for old, new in pairs.items():
            if old and old != new:
                table.setdefault(_slashed(old), _slashed(new))
                table.setdefault(_ascii(old), _ascii(new))
                table.setdefault(_escaped(old), _escaped(new))
                table.setdefault(_raw(old), _escaped(new) if json else _raw(new))
        self._table = table
        self._olds = tuple(sorted(table, key=len, reverse=True))

    def __bool__(self) -> bool:
        return bool(self._olds)

    def apply(self, data: bytes) -> bytes:
        """The bytes with everything replaced; the same object where there is nothing to replace."""
        for old in self._olds:
            if old in data:
                return self._replaced(data)
        return data

    def _replaced(self, data: bytes) -> bytes:
        found = {old: at for old in self._olds if (at := _find(data, old, 0)) >= 0}
        parts = []
        position = 0
        while found:
            at, _, old = min((at, -len(old), old) for old, at in found.items())
            parts += [data[position:at], self._table[old]]
            position = at + len(old)
            found = {
                old: later
                for old, at in found.items()
                if (later := at if at >= position else _find(data, old, position)) >= 0
            }
        parts.append(data[position:])
        return b"".join(parts)


def _find(data: bytes, old: bytes, start: int) -> int:
    """The first place where `old` stands at boundaries, or -1."""
    at = data.find(old, start)
    while at >= 0 and not (_begins(data, at) and _ends(data, at + len(old))):
        at = data.find(old, at + 1)
    return at


def _begins(data: bytes, at: int) -> bool:
    if at == 0:
        return True
    before = data[at - 1]
    if before not in _NAME and before != _DOT:
        return True
    # The last letter of an escape is no part of a name: "\n/tmp/workdir", "\u001b/tmp/workdir".
    if before in _ESCAPES and data[at - 2 : at - 1] == b"\\":
        return True
    return before in _HEX and data[at - 6 : at - 4] == b"\\u"


def _ends(data: bytes, end: int) -> bool:
    after = data[end : end + 2]
    if not after or (after[0] not in _NAME and after[0] != _DOT):
        return True
    # A full stop ends a sentence, unless the name goes on behind it.
    return after[0] == _DOT and (len(after) == 1 or (after[1] not in _NAME and after[1] != _DOT))


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _escaped(text: str) -> bytes:
    return quote(text)[1:-1].encode("utf-8", "surrogateescape")


def _slashed(text: str) -> bytes:
    r"""As PHP and some JavaScript libraries write it: `\/tmp\/workdir`."""
    return _escaped(text).replace(b"/", b"\\/")


def _ascii(text: str) -> bytes:
    r"""As Python's json writes it by default: `/tmp/\u00e4`."""
    return "".join(char if char.isascii() else _escape(char) for char in quote(text)[1:-1]).encode()


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
