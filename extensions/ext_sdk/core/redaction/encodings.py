r"""The spellings under which a known value may appear in a text.

Escapes (JSON's at any depth, ``%41``, ``\x41``) are undone in the text before it is searched, see :mod:`view`; what
is left to spell out here is base64, hexadecimal, and the quotes of shells and HTML.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

SHORTEST: Final = 4  # characters of a value; shorter ones would hide half of every text
_SHORTEST_LINE: Final = 16  # characters of one line of a value with several
# Texts that every message is made of. A secret that says one of them is none, and without them there is no protocol.
_NUMERIC: Final = frozenset(b"0123456789eE.+-")
_HARMLESS_WORDS: Final = (
    "true false null none jsonrpc method params result error message success outputs redacted initialize execute "
    "shutdown protocolversion operation operations context workdir"
)
_HARMLESS: Final = frozenset(_HARMLESS_WORDS.split())


_OF_SHELLS: Final = frozenset(b" !\"$&'()*,;<>?[\\]^`{|}")


class Secret:
    """One known value.

    Attributes:
        rule: what placeholders call it.
        value: the value in UTF-8; it decides the number of the placeholder.
        plain: spellings to be searched as they are.
        base64: ``(core, before, after)``: what base64 makes of the value whatever stands around it, and whether the
            character before or after the core also holds bits of the value.
        hexadecimal: in lower case, to be searched in a text in lower case.
        needles: what a text that holds the value, unescaped, has in it (beside the hexadecimal spelling).
        numeric: those of all spellings that can be part of a number.
        escapable: some encoders write this value with backslashes, so that it is not found as it is.
        in_views: the plain spellings as views show them, once somebody has worked them out.
    """

    __slots__ = ("base64", "escapable", "hexadecimal", "in_views", "needles", "numeric", "plain", "rule", "value")

    def __init__(self, rule: str, value: bytes) -> None:
        self.rule = rule
        self.value = value
        self.plain = _plain(value)
        self.base64 = _base64(value)
        self.hexadecimal = value.hex().encode()
        self.needles = (*self.plain, *(core for core, _, _ in self.base64))
        self.numeric = tuple(each for each in (*self.needles, self.hexadecimal) if _NUMERIC.issuperset(each))
        self.escapable = any(byte < 32 or byte > 126 or byte in b'"\\/' for byte in value)
        self.in_views: tuple[bytes, ...] = ()


def secret(rule: str, value: str) -> Secret | None:
    """The secret of this value, or None where it is too short or too common to be one."""
    stripped = value.strip()
    if len(stripped) < SHORTEST or stripped.lower() in _HARMLESS:
        return None
    return Secret(rule, stripped.encode("utf-8", "surrogateescape" if _escaped(stripped) else "surrogatepass"))


def _escaped(text: str) -> bool:
    """Whether undecodable bytes of the environment are in it, as Python carries them."""
    return any("\udc80" <= each <= "\udcff" for each in text)


def _plain(value: bytes) -> tuple[bytes, ...]:
    found = [value]
    if b" " in value:
        found.append(value.replace(b" ", b"+"))  # as forms in URLs have it
    if value.endswith(b"\\") and len(value.rstrip(b"\\")) >= SHORTEST:
        found.append(value.rstrip(b"\\"))  # before a quote nobody can tell whose backslashes these are
    if b"\n" in value:
        # A key of several lines may come one line a message; short ones ("-----BEGIN …") would hide too much.
        lines = (line.strip() for line in value.splitlines())
        found += [line for line in lines if len(line) >= _SHORTEST_LINE and b" " not in line and b'"' not in line]
    return tuple(dict.fromkeys([*found, *_quoted(value)]))


def _quoted(value: bytes) -> list[bytes]:
    """Return the value as shells and HTML write it; itself if it has no special character."""
    html = value.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")
    found = [html, html.replace(b'"', b"&quot;")]
    found += [html.replace(b'"', b"&quot;").replace(b"'", quote) for quote in (b"&#x27;", b"&#39;")]
    found += [value.replace(b"'", quote) for quote in (b"'\\''", b"'\"'\"'")]
    found.append(b"".join(b"\\%c" % byte if byte in _OF_SHELLS else b"%c" % byte for byte in value))  # printf %q
    return found


def _base64(value: bytes) -> tuple[tuple[bytes, bool, bool], ...]:
    from binascii import b2a_base64

    found: dict[bytes, tuple[bytes, bool, bool]] = {}
    for offset in range(3):
        bits = 8 * offset, 8 * (offset + len(value))
        first, last = -(-bits[0] // 6), bits[1] // 6
        core = b2a_base64(bytes(offset) + value, newline=False)[first:last]
        for spelled in (core, core.replace(b"+", b"-").replace(b"/", b"_")):
            found[spelled] = (spelled, bits[0] % 6 != 0, bits[1] % 6 != 0)
    return tuple(found.values())
