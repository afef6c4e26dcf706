"""Finding secrets by what they look like, wherever they stand: tokens, credentials in headers and URLs, keys."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from typing import TYPE_CHECKING, Final

from ext_sdk.redaction.finding import in_view
from ext_sdk.redaction.patterns import beside_placeholder, is_harmless
from ext_sdk.redaction.view import BARRIER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.redaction.finding import Finding
    from ext_sdk.redaction.view import View

# rule, a text in lower case without which the pattern can't match, the pattern. Every pattern begins where a word
# begins, so that a long word is looked at once.
_TOKENS: Final = tuple(
    (rule, needle, re.compile(rb"(?<![A-Za-z0-9_-])" + pattern))
    for rule, needle, pattern in (
        ("sk", b"sk-", rb"sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{12,}"),
        ("stripe", b"k_live_", rb"[sr]k_live_[A-Za-z0-9]{8,}"),
        ("stripe", b"k_test_", rb"[sr]k_test_[A-Za-z0-9]{8,}"),
        ("github", b"gh", rb"gh[pousr]_[A-Za-z0-9]{20,}"),
        ("github", b"github_pat_", rb"github_pat_[A-Za-z0-9_]{20,}"),
        ("gitlab", b"glpat-", rb"glpat-[A-Za-z0-9_-]{16,}"),
        ("aws", b"akia", rb"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("aws", b"asia", rb"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("slack", b"xox", rb"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("google", b"aiza", rb"AIza[A-Za-z0-9_-]{30,}"),
        ("google", b"ya29.", rb"ya29\.[A-Za-z0-9_-]{20,}"),
        ("npm", b"npm_", rb"npm_[A-Za-z0-9]{30,}"),
        ("pypi", b"pypi-", rb"pypi-[A-Za-z0-9_-]{16,}"),
        ("huggingface", b"hf_", rb"hf_[A-Za-z0-9]{20,}"),
        ("jwt", b"eyj", rb"eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+){1,3}"),
        ("private-key", b"ls0tls1crudjti", rb"LS0tLS1CRUdJTi[A-Za-z0-9+/]{40,}+=*"),
    )
)
_PARTS: Final = (  # the secret is the first group
    ("bearer", b"bearer", re.compile(rb"(?i:\bbearer) +([A-Za-z0-9._~+/=-]{8,})")),
    ("basic", b"basic ", re.compile(rb"(?i:\bbasic) +([A-Za-z0-9+/_-]{6,}={0,2})")),
    ("url-password", b"://", re.compile(rb"://[^\s/?#:@\0\"'<>]{0,256}:([^\s/?#\0\"'<>]{1,1024})@")),
    ("url-password", b"://", re.compile(rb"://([A-Za-z0-9_-]{20,256})@")),
    ("slack", b"hooks.slack.com", re.compile(rb"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{8,})")),
)
# One line of a private key, where each is a message: hexadecimal digests have no capitals.
_KEY_LINE: Final = re.compile(rb"\s*(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])([A-Za-z0-9+/]{60,76}={0,2})\s*")
_BEGIN: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = b"-----END "


def find_shapes(view: View) -> Iterator[Finding]:
    """Tokens of well-known shapes, credentials after ``Bearer`` and ``Basic``, passwords in URLs, private keys."""
    yield from _tokens(view)
    yield from _credentials(view)
    if b"-----begin " in view.lowered:
        yield from _private_keys(view)
    elif line := _KEY_LINE.fullmatch(view.text):
        yield in_view(view, *line.span(1), "private-key")


def _tokens(view: View) -> Iterator[Finding]:
    text, lowered = view.text, view.lowered
    for rule, needle, pattern in _TOKENS:
        if needle in lowered:
            for match in pattern.finditer(text):
                if not beside_placeholder(text, *match.span()):
                    yield in_view(view, *match.span(), rule)


def _credentials(view: View) -> Iterator[Finding]:
    text, lowered = view.text, view.lowered
    for rule, needle, pattern in _PARTS:
        if needle in lowered:
            for match in pattern.finditer(text):
                if _is_credential(rule, match[1]) and not beside_placeholder(text, match.start(), match.end(1)):
                    yield in_view(view, *match.span(1), rule)


def _is_credential(rule: str, value: bytes) -> bool:
    if rule == "bearer":  # no "bearer authentication"
        return len(value) >= 20 or any(byte in b"0123456789" for byte in value)
    if rule == "basic":
        return _is_user_and_password(value)
    return not is_harmless(rule, value)


def _is_user_and_password(value: bytes) -> bool:
    standard = value.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    try:
        decoded = a2b_base64(standard + b"=" * (-len(standard) % 4))
    except Error:
        return False
    return b":" in decoded and all(byte >= 32 for byte in decoded)


def _private_keys(view: View) -> Iterator[Finding]:
    """What stands between the lines that begin and end a key; as far as the text goes where none ends it."""
    at = 0
    while match := _BEGIN.search(view.text, at):
        end = len(view.text)
        for mark in (_END, BARRIER):
            found = view.text.find(mark, match.end(), end)
            end = found if found >= 0 else end
        body = view.text[match.end() : end]
        start = match.end() + len(body) - len(body.lstrip())
        at = max(end, match.end())
        if body.strip():
            yield in_view(view, start, start + len(body.strip()), "private-key")
