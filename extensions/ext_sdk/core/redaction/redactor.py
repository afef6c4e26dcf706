"""Redactor of messages. A text without secrets passes in a microsecond or two."""

from __future__ import annotations

from _thread import allocate_lock

from .encodings import Secret, secret_of
from .spans import Numbers, rule_name
from .token_formats import A_RUN, AS_RUNS, SHORTER, may_have_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from .scanner import Search
    from .spans import CustomRules

# A text in lower case without any of these, and without the prefix of a token, is not searched by rules.
_SUSPICIOUS: Final = (*("pass", "secret", "token", "key", "auth", "cred", "cookie", "pwd", "bearer", "basic "),)
# Further ones, searched only if the text has the character that they share. `\u0041` may encode any of them.
_SUSPICIOUS_WITH: Final = (
    ("-", ("-----begin", "-signature")),
    ("=", ("sig=", "signature=")),
    ("@", ("://", ":\\/")),
    (".", ("hook", "telegram.")),  # hooks.slack.com, /api/webhooks/
    ("%", ("%3a%2f%2f", "sig%3d", "signature%3d", "basic%20")),
    ("\\", ("\\u004", "\\u005", "\\u006", "\\u007")),
)
_SHORTER: Final = tuple((gate, (prefix,)) for gate, prefix in SHORTER)
# Programs that accept a password with an option of one letter, see `command_options`.
_PROGRAMS: Final = ('"-p', "mysql", "mariadb", "redis-cli", "curl", "mongo", "login", "mosquitto", "smbclient", "ldap")
# A line as long as this, of one word, may be one of a private key that comes line by line.
_BARE_LINE: Final = 60  # characters
# Escapes that may replace a character of a known value, although encoders need not escape it.
_ESCAPES: Final = (("\\", ("\\u00", "\\x", "\\/")), ("%", ("%",)))
_MOST_LEARNED: Final = 32  # values; each is searched in every message


class Redactor:
    """Replaces secrets in complete messages.

    A message is a line, a payload or any other text that is written at once; a valid JSON text stays valid.
    Placeholders are kept, so redacting twice gives the same. Thread-safe.

    Args:
        secrets: known values by name; the name becomes the rule in the placeholder.
        rules: also find texts that look like a secret: authorization headers, members and lines with telling keys,
            tokens of well-known formats, passwords in URLs, private keys, the data of Kubernetes secrets. A long value
            that a rule found is known from then on, and found wherever it is repeated.
        own: further rules, and exceptions.
    """

    __slots__ = (
        "_learned",
        "_lock",
        "_lowered_needles",
        "_needles",
        "_numbers",
        "_own",
        "_rules",
        "_secrets",
    )

    def __init__(
        self, secrets: Mapping[str, str] | None = None, *, rules: bool = False, own: CustomRules | None = None
    ) -> None:
        self._secrets: tuple[Secret, ...] = ()
        self._learned: tuple[Secret, ...] = ()
        self._rules = rules
        self._own = own
        self._numbers = Numbers()
        self._lock = allocate_lock()
        self._note_needles()
        for name, value in sorted((secrets or {}).items()):
            self.add(name, value)

    def add(self, name: str, value: str) -> None:
        """Add a known value. Values under 4 characters, and words that every message has, are ignored."""
        added = secret_of(rule_name(name), value)
        with self._lock:
            if added and all(secret_of.value != added.value for secret_of in self._secrets):
                self._secrets = (*self._secrets, added)
                self._note_needles()

    @property
    def fired(self) -> tuple[str, ...]:
        """The rules that replaced something so far, sorted: ``env.API_TOKEN``, ``bearer``, ``key.password``."""
        return self._numbers.rules

    def redact(self, data: bytes) -> bytes:
        """Return the message with placeholders for its secrets; the same object if it has none."""
        rules = self._searches(data)
        if rules is None:
            return data
        with self._lock:
            return self._search(data, rules=rules).redacted(self._numbers)

    def redact_known(self, data: bytes) -> bytes:
        """Return data with placeholders for known values, such as those of variables; no rules are applied."""
        if not self._needles:
            return data
        with self._lock:
            return self._search(data, rules=False).redacted(self._numbers)

    def replacements(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Return the replacements that `redact` makes, in order: start, end, new bytes."""
        rules = self._searches(data)
        if rules is None:
            return []
        with self._lock:
            return list(self._search(data, rules=rules).replacements(self._numbers))

    def redact_text(self, text: str) -> str:
        """Return a text with placeholders for its secrets; the same object if it has none."""
        data = text.encode("utf-8", "surrogatepass")
        redacted = self.redact(data)
        return text if redacted is data else redacted.decode("utf-8", "surrogatepass")

    def _searches(self, data: bytes) -> bool | None:
        """Return True if the built-in rules may find something in a message; None if nothing in it can be secret."""
        if not self._rules and not self._needles and not self._own:
            return None
        # Searching a str takes half the time of searching bytes; as Latin-1 they are the same.
        text = data.decode("latin-1")
        lowered = text.lower() if text.isascii() else data.lower().decode("latin-1")
        rules = self._rules and _may_be_secret(data, text, lowered)
        if rules:
            return True
        if self._needles:
            for needle in self._needles:
                if needle in text:
                    return False
            for needle in self._lowered_needles:
                if needle in lowered:
                    return False
            if _has_any(_ESCAPES, lowered):
                return False
        return rules if self._own is not None and self._own.may_find(lowered) else None

    def _note_needles(self) -> None:
        known = (*self._secrets, *self._learned)
        needles = {needle.decode("latin-1"): None for secret_of in known for needle in secret_of.needles}
        if any(secret_of.escapable for secret_of in known):
            needles["\\"] = None
        self._needles = tuple(needles)
        self._lowered_needles = tuple(secret_of.hexadecimal.decode() for secret_of in known)

    def _search(self, data: bytes, *, rules: bool) -> Search:
        from .scanner import Search

        search = Search(data, (*self._secrets, *self._learned), self._own, rules=rules, any_bytes=self._rules)
        if search.learned:
            self._learned = (*self._learned, *search.learned)[-_MOST_LEARNED:]
            self._note_needles()
        return search


def _may_be_secret(data: bytes, text: str, lowered: str) -> bool:
    """Return True if a rule may find something. False is certain. All messages pass here: calls are inlined."""
    for needle in _SUSPICIOUS:
        if needle in lowered:
            return True
    for gate, needles in _SUSPICIOUS_WITH:
        if gate in lowered:
            for needle in needles:
                if needle in lowered:
                    return True
    if data.translate(AS_RUNS).find(A_RUN) >= 0 and may_have_token(data):
        return True
    if len(lowered) >= _BARE_LINE and '"' not in lowered and " " not in lowered:
        return True
    # A command line with a password after an option of one letter.
    if (" -" in lowered or '"-' in lowered) and any(program in lowered for program in _PROGRAMS):
        return True
    return _has_any(_SHORTER, text)


def _has_any(gated: tuple[tuple[str, tuple[str, ...]], ...], text: str) -> bool:
    """Return True if a text has one of the needles; those whose character is missing are not searched."""
    for character, needles in gated:
        if character in text:
            for needle in needles:
                if needle in text:
                    return True
    return False
