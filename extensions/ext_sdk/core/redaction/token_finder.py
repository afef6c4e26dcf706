"""Search for secrets by their format, in any place: tokens, credentials in headers and URLs, private keys."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from .escapes import BARRIER
from .patterns import beside_placeholder, is_harmless
from .spans import in_view
from .token_formats import candidates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .escapes import View
    from .spans import Finding

_LITERAL: Final = re.compile(r"[A-Za-z0-9_/-]*(?![?*+{])")
_PARTS: Final = (  # the secret is the first group
    ("bearer", b"bearer", re.compile(rb"(?i:\bbearer) +([A-Za-z0-9._~+/=-]{8,})")),
    ("basic", b"basic ", re.compile(rb"(?i:\bbasic) +([A-Za-z0-9+/_-]{6,}={0,2})")),
    ("url-password", b"://", re.compile(rb"://[^\s/?#:@\0\"'<>]{0,256}:([^\s/?#\0\"'<>]{1,1024})@")),
    ("url-password", b"://", re.compile(rb"://([A-Za-z0-9_-]{20,256})@")),
    (
        "signature",
        b"sig",
        re.compile(rb"(?i:[?&;](?:x-(?:amz|goog|ms|oss)-)?sig(?:nature)?)=([A-Za-z0-9%+/=_~.-]{16,2048})"),
    ),
    # `?key=` of Google's APIs: at least a letter and a digit, so that it is not a word.
    ("url-key", b"key=", re.compile(rb"[?&;]key=(?=[A-Za-z_-]*[0-9])(?=[0-9_-]*[A-Za-z])([A-Za-z0-9_-]{20,256})")),
    # Subprotocols of WebSockets, by which browsers send what others send as headers.
    ("bearer", b"bearer.auth", re.compile(rb"bearer\.authorization\.k8s\.io\.([A-Za-z0-9._-]{8,})")),
    ("api-key", b"api-key.", re.compile(rb"openai-insecure-api-key\.([A-Za-z0-9._-]{8,})")),
    ("telegram", b"telegram.org", re.compile(rb"telegram\.org/(?:file/)?bot([0-9]{5,16}:[A-Za-z0-9_-]{30,})")),
    (
        "discord",
        b"api/webhooks",
        re.compile(rb"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{5,24}/([A-Za-z0-9_-]{32,})"),
    ),
    ("teams", b"webhookb2", re.compile(rb"webhookb2/([A-Za-z0-9@/_-]{20,512})")),
    (
        "slack",
        b"hooks.slack.com",
        re.compile(rb"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{8,})"),
    ),
)
# One line of a private key, where each is a message: hexadecimal digests have no capitals.
_KEY_LINE: Final = re.compile(rb"\s*(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])([A-Za-z0-9+/]{60,76}={0,2})\s*")
_LONGEST_KEY_LINE: Final = 78
_BEGIN: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = b"-----END "


def find_shapes(view: View) -> Iterator[Finding]:
    """Yield tokens of well-known formats, credentials in headers and URLs, and private keys."""
    text = view.text
    for rule, token in candidates(text):
        for match in _compiled(token).finditer(text):
            if not beside_placeholder(text, *match.span()):
                yield in_view(view, *match.span(), rule)
    for rule, needle, pattern in _PARTS:
        if needle in view.lowered:
            for match in pattern.finditer(text):
                if _is_credential(rule, match[1]) and not beside_placeholder(text, match.start(), match.end(1)):
                    yield in_view(view, *match.span(1), rule)
    if b"-----begin " in view.lowered:
        yield from _private_keys(view)
    elif len(view.text.strip()) <= _LONGEST_KEY_LINE and (line := _KEY_LINE.fullmatch(view.text)):
        yield in_view(view, *line.span(1), "private-key")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[bytes]:
    """Return the pattern anchored at the beginning of a word, so that a long word is searched once.

    The condition follows the literal characters of the pattern, because `re` searches these quickly if they are first.
    """
    literal = found[0] if (found := _LITERAL.match(pattern)) else ""
    return re.compile(f"{literal}(?<![A-Za-z0-9]{literal}){pattern[len(literal) :]}".encode())


def _is_credential(rule: str, value: bytes) -> bool:
    if rule == "bearer":  # no "bearer authentication"
        return len(value) >= 20 or any(byte in b"0123456789" for byte in value)
    if rule == "basic":  # user and password in base64
        standard = value.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        try:
            decoded = a2b_base64(standard + b"=" * (-len(standard) % 4))
        except Error:
            return False
        return b":" in decoded and all(byte >= 32 for byte in decoded)
    return not is_harmless(rule, value)


def _private_keys(view: View) -> Iterator[Finding]:
    """Yield the text between the lines that begin and end a key; up to the end of the text if none ends it."""
    at = 0
    while match := _BEGIN.search(view.text, at):
        end = len(view.text)
        for mark in (_END, BARRIER):
            position = view.text.find(mark, match.end(), end)
            end = position if position >= 0 else end
        body = view.text[match.end() : end]
        start = match.end() + len(body) - len(body.lstrip())
        at = max(end, match.end())
        if body.strip():
            yield in_view(view, start, start + len(body.strip()), "private-key")
