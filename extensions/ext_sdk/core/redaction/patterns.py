"""Regular expressions that several finders use. Importing this module imports ``re``.

Every pattern of the redactor takes time in proportion to the text: each repetition is bounded, or can begin in one
place only.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .secret_names import LONGEST, looks_secret
from .spans import MARK

if TYPE_CHECKING:
    from collections.abc import Callable


_MARK: Final = MARK.encode()
_PLACEHOLDER: Final = re.escape(MARK) + r"[A-Za-z0-9_.-]{1,96}#[0-9]{1,9}\]"
_AFTER: Final = re.compile(_PLACEHOLDER.encode() + rb"\Z")
_LONGEST: Final = 128  # bytes of a placeholder
PLACEHOLDER: Final = re.compile(_PLACEHOLDER.encode())
PLACEHOLDER_TEXT: Final = re.compile(f"({_PLACEHOLDER})")

# The core of a name that may announce a secret, in lower case; `secret_names.looks_secret` decides about a name.
# Each alternative begins with a literal character, so that `re` finds the few places where one can begin.
_TELLING: Final = rb"pass|pwd|secret|token|credential|key(?<=[\w.-]key)|auth|cookie|-signature"
SPACE: Final = rb"(?:\s|\\++[nrt]){0,32}"  # between the tokens of JSON, in a string too


class Names:
    """Names of members, lines and options with secret values.

    Args:
        core: pattern of a part that each of these names has, in lower case.
        tells: returns True for one of these names.
        number: pattern of the numbers that are secret under such a name.

    Attributes:
        member: matches the rest of a member's key from the core on, its quote, and the text up to the value.
        assignment: matches the rest of another name, a quote, and the text up to the value.
        quoted: like `assignment`; the name may be in double quotes, of JSON that is not found as such: in a URL.
    """

    __slots__ = ("assignment", "member", "number", "quoted", "tells")

    def __init__(self, core: bytes, tells: Callable[[str], bool], number: re.Pattern[bytes]) -> None:
        space = rb"[ \t]{0,16}"
        rest = rb"(?:%b)[a-z0-9_.-]{0,%d}" % (core, LONGEST)
        before = rb"%b([:=])|([ \t]))%b" % (space, space)
        self.member = re.compile(
            rb"(?:%b|\\u00[4-7])(?:[\w. -]|\\++u00[0-9a-f]{2}){0,%d}(\\*+\")%b([:,])%b" % (core, LONGEST, SPACE, SPACE)
        )
        self.assignment = re.compile(rb"%b(?:('?)%b" % (rest, before))
        self.quoted = re.compile(rb"%b(?:(\"(?=%b:%b\")|'?)%b" % (rest, space, space, before))
        self.number = number
        self.tells = tells


# Values that replace a secret: a variable, a blank to be filled, a value that was redacted already.
_HARMLESS: Final = re.compile(
    rb"\$\{[^{}]{1,80}\}|\$[A-Z_][A-Z0-9_]*|\$\([^()]{1,80}\)|\{\{[^{}]{1,80}\}\}|<[^<>]{1,80}>|\*+|x{3,}|\.{3}|"
    rb"\[?redacted\]?|data\+omitted|null|none|nil|true|false|undefined|~|"
    rb"(?:str|string|bytes|int|integer|number|bool|boolean|any)(?:\[\])?(?: *\| *(?:none|null|undefined))?[)\];?=]*",
    re.IGNORECASE,
)

_SHORTEST_REST: Final = 12  # bytes; a shorter text next to a placeholder is not a secret of its own

# Value of an authorization header: the scheme is kept, the rest is redacted.
SCHEME: Final = re.compile(
    rb"(bearer|basic|token|digest|negotiate|ntlm|apikey|aws4-hmac-sha256)[ \t]+(?=\S)", re.IGNORECASE
)

# The same few keys come in every message; `"token": 7` counts or correlates something.
TELLING: Final = Names(_TELLING, lru_cache(maxsize=1024)(looks_secret), re.compile(rb"-?[0-9][0-9.eE+-]{3,}"))


def is_harmless(rule: str, value: bytes) -> bool:
    """Return True if a value under a telling key is not a secret: empty, a blank, a variable, a directory."""
    value = value.strip()
    rest, placeholders = PLACEHOLDER.subn(b"", value)
    if placeholders:
        if len(rest) < _SHORTEST_REST:
            return True
        value = PLACEHOLDER.sub(b"x", value)  # ${TOKEN} is harmless, and so is its redacted form
    if not value or _HARMLESS.fullmatch(value):
        return True
    return rule.lower() == "key.pwd" and value.startswith((b"/", b"~", b"."))  # a working directory


def before_placeholder(text: bytes, start: int, end: int) -> int:
    """Return the end of a span, or the start of the first placeholder in it."""
    mark = text.find(_MARK, start, end)
    return mark if mark >= 0 else end


def beside_placeholder(text: bytes, start: int, end: int) -> bool:
    """Return True if a span is next to a placeholder.

    Such a span is the rest of a longer text that was redacted; it looks like a secret only because it was cut.
    """
    before = text[start - 1 : start] == b"]" and _AFTER.search(text, max(0, start - _LONGEST), start) is not None
    return before or text.startswith(_MARK, end)


def credential_rule(scheme: bytes) -> str:
    """Return the rule for the credentials after the scheme of an authorization header."""
    name = scheme.decode().lower()
    return name if name in {"bearer", "basic"} else "authorization"


def same_but_for_numbers(one: str, other: str) -> bool:
    """Return True if two redacted texts are the same request.

    Placeholders match if they do so consistently: where one text repeats a value, the other must as well. Their numbers
    may differ, because these depend on earlier messages; so may their rules, because a value that is known by its
    variable on one machine is recognised by its key on another.
    """
    if one == other:
        return True
    if MARK not in one or MARK not in other:
        return False

    here, there = PLACEHOLDER_TEXT.split(one), PLACEHOLDER_TEXT.split(other)
    if here[::2] != there[::2]:
        return False
    pairs = set(zip(here[1::2], there[1::2], strict=True))
    return len({each for each, _ in pairs}) == len({each for _, each in pairs}) == len(pairs)
