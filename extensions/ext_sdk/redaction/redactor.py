"""The redactor: what everyone else uses. A text without anything secret passes in a microsecond or two."""

from __future__ import annotations

from _thread import allocate_lock

from ext_sdk.redaction.placeholder import Numbers, rule_name
from ext_sdk.redaction.spelling import Secret, secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

# A text in lower case without any of these holds nothing that a rule would find.
_SUSPICIOUS: Final = (*("pass", "secret", "token", "key", "auth", "cred", "cookie", "pwd", "bearer", "basic "),)
# The same for what has one spelling, looked for before a text is in lower case, and where its capital is: that is rare.
_SUSPICIOUS_EXACTLY: Final = (("J", ("eyJ",)), ("A", ("AKIA", "ASIA", "AIza")), ("L", ("LS0tLS1",)))
# Further ones, only looked for where the one character is that they all have. `\u0041` may hide any of them.
_SUSPICIOUS_WITH: Final = (
    ("-", ("glpat-", "xox", "pypi-", "-----begin")),
    ("_", ("k_live_", "k_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "npm_", "hf_")),
    ("@", ("://", ":\\/")),
    (".", ("ya29.", "hooks.slack")),
    ("\\", ("\\u004", "\\u005", "\\u006", "\\u007")),
)
# This one only where a word begins: it is in every `task-1` and `disk-usage`.
_SUSPICIOUS_BEGINNING: Final = "sk-"
_LONGEST_ESCAPE: Final = 6  # characters, of \u000a; `\nsk-` begins a word as well
# A line as long as this, of one word, may be one of a private key that comes line by line.
_BARE_LINE: Final = 60  # characters
# What may stand for a character of a known value that no encoder has to escape.
_ESCAPES: Final = (("\\", ("\\u00", "\\x", "\\/")), ("%", ("%",)))
_MOST_LEARNED: Final = 32  # values; each costs a look at every message


class Redactor:
    """Replaces secrets in whole messages.

    A message is a line, a payload or any other text that is written at once; a valid JSON text stays one. What was
    replaced once is left alone, so redacting twice gives the same. Calls from several threads are safe.

    Args:
        secrets: known values by name; the name becomes the rule in the placeholder.
        rules: also find what looks like a secret: authorization headers, members and lines with telling keys, tokens
            of well-known shapes, passwords in URLs, private keys, the data of Kubernetes secrets. A long value that
            was found by a rule is known from then on, and found wherever it is repeated.
    """

    __slots__ = (
        "_gated_needles",
        "_learned",
        "_lock",
        "_lowered_needles",
        "_needles",
        "_numbers",
        "_rules",
        "_secrets",
    )

    def __init__(self, secrets: Mapping[str, str] | None = None, *, rules: bool = False) -> None:
        self._secrets: tuple[Secret, ...] = ()
        self._learned: tuple[Secret, ...] = ()
        self._rules = rules
        self._numbers = Numbers()
        self._lock = allocate_lock()
        self._note_needles()
        for name, value in sorted((secrets or {}).items()):
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Make a value known. Values under 4 characters, and words that every message has, are ignored."""
        added = secret(rule_name(name), value)
        with self._lock:
            if added and all(each.value != added.value for each in self._secrets):
                self._secrets = (*self._secrets, added)
                self._note_needles()

    @property
    def fired(self) -> tuple[str, ...]:
        """The rules that replaced something so far, sorted: ``env.API_TOKEN``, ``bearer``, ``key.password``."""
        return self._numbers.rules

    def redact(self, data: bytes) -> bytes:
        """The message with placeholders for its secrets; the same object where it has none."""
        if not self._suspicious(data):
            return data
        with self._lock:
            return self._redacted(data)

    def redact_text(self, text: str) -> str:
        """The same for a text."""
        data = text.encode("utf-8", "surrogatepass")
        redacted = self.redact(data)
        return text if redacted is data else redacted.decode("utf-8", "surrogatepass")

    def _suspicious(self, data: bytes) -> bool:
        # Searching a str takes half the time of searching bytes; as Latin-1 they are the same.
        text = data.decode("latin-1")
        for needle in self._needles:
            if needle in text:
                return True
        if not self._lowered_needles:
            return False
        if self._rules and _has_any(_SUSPICIOUS_EXACTLY, text):
            return True
        text = text.lower() if text.isascii() else data.lower().decode("latin-1")
        for needle in self._lowered_needles:
            if needle in text:
                return True
        if _has_any(self._gated_needles, text):
            return True
        return self._rules and (_begins_a_word(_SUSPICIOUS_BEGINNING, text) or _is_bare_line(text))

    def _note_needles(self) -> None:
        known = (*self._secrets, *self._learned)
        needles = {needle.decode("latin-1"): None for each in known for needle in each.needles}
        if any(each.escapable for each in known):
            needles["\\"] = None
        self._needles = tuple(needles)
        hexadecimal = tuple(each.hexadecimal.decode() for each in known)
        self._lowered_needles = (*(_SUSPICIOUS if self._rules else ()), *hexadecimal)
        self._gated_needles = (*(_ESCAPES if known else ()), *(_SUSPICIOUS_WITH if self._rules else ()))

    def _redacted(self, data: bytes) -> bytes:
        from ext_sdk.redaction.search import Search

        search = Search(data, (*self._secrets, *self._learned), rules=self._rules)
        if self._rules:
            self._learn(search.learned)
        return search.redacted(self._numbers)

    def _learn(self, found: tuple[Secret, ...]) -> None:
        if found:
            self._learned = (*self._learned, *found)[-_MOST_LEARNED:]
            self._note_needles()


def _is_bare_line(text: str) -> bool:
    return len(text) >= _BARE_LINE and " " not in text and '"' not in text


def _has_any(gated: tuple[tuple[str, tuple[str, ...]], ...], text: str) -> bool:
    """Whether one of the needles is there; those whose character is not there need no look."""
    for character, needles in gated:
        if character in text:
            for needle in needles:
                if needle in text:
                    return True
    return False


def _begins_a_word(needle: str, text: str) -> bool:
    """Whether the text has the needle where a word may begin; in doubt, it has."""
    at = text.find(needle)
    while at >= 0:
        before = text[max(0, at - _LONGEST_ESCAPE) : at]
        if not before or not (before[-1].isalnum() or before[-1] in "_-") or "\\" in before or "%" in before:
            return True
        at = text.find(needle, at + 1)
    return False
