r"""Encodings in which a known value may occur in a text.

Escapes (JSON's at any depth, ``%41``, ``\x41``) are decoded in the text before it is searched, see :mod:`escapes`; the
others are generated here: base64, hexadecimal, and the quotes of shells and HTML.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

SHORTEST: Final = 4  # characters of a value; shorter ones would redact half of every text
_SHORTEST_LINE: Final = 16  # characters of one line of a value with several
# Words of the protocol, which are in every message: a value that is one of them is not redacted.
_NUMERIC: Final = frozenset(b"0123456789eE.+-")
_HARMLESS_WORDS: Final = (
    "true false null none jsonrpc method params result error message success outputs redacted initialize execute "
    "shutdown protocolversion operation operations context workdir"
)
_HARMLESS: Final = frozenset(_HARMLESS_WORDS.split())


_OF_SHELLS: Final = frozenset(b" !\"$&'()*,;<>?[\\]^`{|}")


class Secret:
    """Known value with its encodings.

    Attributes:
        rule: name for its placeholders.
        value: the value in UTF-8; its number in placeholders depends on it.
        plain: encodings to be searched as they are.
        base64: ``(core, before, after)``: base64 of the value, without the characters that depend on its neighbours,
            and
            True for `before` or `after` if the next character there also holds bits of the value.
        hexadecimal: in lower case, to be searched in a text in lower case.
        needles: one of them is in every text that holds the value, unescaped and not hexadecimal.
        numeric: the encodings that can be part of a number.
        escapable: some encoders write this value with backslashes, so that it is not found as it is.
        in_views: the plain encodings as views contain them, once computed.
    """

    __slots__ = ("base64", "escapable", "hexadecimal", "in_views", "needles", "numeric", "plain", "rule", "value")

    def __init__(self, rule: str, value: bytes) -> None:
        self.rule = rule
        self.value = value
        self.plain = _plain(value)
        from binascii import b2a_base64

        cores: dict[bytes, tuple[bytes, bool, bool]] = {}
        for offset in range(3):
            bits = 8 * offset, 8 * (offset + len(value))
            first, last = -(-bits[0] // 6), bits[1] // 6
            core = b2a_base64(bytes(offset) + value, newline=False)[first:last]
            for alphabet in (core, core.replace(b"+", b"-").replace(b"/", b"_")):
                cores[alphabet] = (alphabet, bits[0] % 6 != 0, bits[1] % 6 != 0)
        self.base64 = tuple(cores.values())
        self.hexadecimal = value.hex().encode()
        self.needles = (*self.plain, *(core for core, _, _ in self.base64))
        self.numeric = tuple(needle for needle in (*self.needles, self.hexadecimal) if _NUMERIC.issuperset(needle))
        self.escapable = any(byte < 32 or byte > 126 or byte in b'"\\/' for byte in value)
        self.in_views: tuple[bytes, ...] = ()


def secret_of(rule: str, value: str) -> Secret | None:
    """Return the secret of this value, or None if it is too short or too common to be one."""
    stripped = value.strip()
    if len(stripped) < SHORTEST or stripped.lower() in _HARMLESS:
        return None
    # Python decodes undecodable bytes of the environment to lone surrogates.
    undecodable = any("\udc80" <= character <= "\udcff" for character in stripped)
    return Secret(rule, stripped.encode("utf-8", "surrogateescape" if undecodable else "surrogatepass"))


def _plain(value: bytes) -> tuple[bytes, ...]:
    """Return the value as it is, and as URLs, shells and HTML write it."""
    encodings = [value]
    if b" " in value:
        encodings.append(value.replace(b" ", b"+"))  # in forms of URLs
    if value.endswith(b"\\") and len(value.rstrip(b"\\")) >= SHORTEST:
        encodings.append(value.rstrip(b"\\"))  # before a quote, backslashes may belong to either
    if b"\n" in value:
        # A key of several lines may arrive one line a message; short lines ("-----BEGIN …") would redact too much.
        lines = (line.strip() for line in value.splitlines())
        encodings += [line for line in lines if len(line) >= _SHORTEST_LINE and b" " not in line and b'"' not in line]
    html = value.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")
    encodings += [html, html.replace(b'"', b"&quot;")]
    encodings += [html.replace(b'"', b"&quot;").replace(b"'", quote) for quote in (b"&#x27;", b"&#39;")]
    encodings += [value.replace(b"'", quote) for quote in (b"'\\''", b"'\"'\"'")]
    encodings.append(b"".join(b"\\%c" % byte if byte in _OF_SHELLS else b"%c" % byte for byte in value))  # printf %q
    return tuple(dict.fromkeys(encodings))
