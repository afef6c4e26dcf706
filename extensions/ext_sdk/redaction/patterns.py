"""Regular expressions that several finders use. Importing this module imports ``re``.

Every pattern of the redactor takes time in proportion to the text, whatever the text: what is repeated can begin in
one place only, or is bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ext_sdk.redaction.names import looks_secret
from ext_sdk.redaction.placeholder import MARK

_PLACEHOLDER: Final = re.escape(MARK) + r"[A-Za-z0-9_.-]{1,96}#[0-9]{1,9}\]"

PLACEHOLDER: Final = re.compile(_PLACEHOLDER.encode())
PLACEHOLDER_TEXT: Final = re.compile(f"({_PLACEHOLDER})")

# The core of a name that may announce a secret, in lower case; `names.looks_secret` decides about the whole name.
TELLING: Final = rb"(?:pass|pwd|secret|token|credential|key|auth|cookie)"

# What stands where a secret would, and is none: a variable, a blank to be filled, a value somebody hid already.
_HARMLESS: Final = re.compile(
    rb"\$\{[^{}]{1,80}\}|\$[A-Z_][A-Z0-9_]*|\$\([^()]{1,80}\)|\{\{[^{}]{1,80}\}\}|<[^<>]{1,80}>|\*+|x{3,}|\.{3}|"
    rb"\[?redacted\]?|data\+omitted|null|none|nil|true|false|undefined|~",
    re.IGNORECASE,
)

# An authorization header's value: the scheme may be seen, what follows may not.
SCHEME: Final = re.compile(
    rb"(bearer|basic|token|digest|negotiate|ntlm|apikey|aws4-hmac-sha256)[ \t]+(?=\S)",
    re.IGNORECASE,
)

# The same few keys come in every message.
is_telling: Final = lru_cache(maxsize=1024)(looks_secret)


def is_harmless(rule: str, value: bytes) -> bool:
    """Whether a value under a telling key is no secret: nothing, a blank, a variable, a directory."""
    if not value.strip() or _HARMLESS.fullmatch(value.strip()):
        return True
    return rule.lower() == "key.pwd" and value.startswith(
        (b"/", b"~", b".")
    )  # a working directory


def credential_rule(scheme: bytes) -> str:
    """The rule for what follows the scheme of an authorization header."""
    name = scheme.decode().lower()
    return name if name in {"bearer", "basic"} else "authorization"
