"""Search for known values: as they are, escaped, in base64 at any offset, in hexadecimal."""

from __future__ import annotations

import re
from json import dumps
from typing import TYPE_CHECKING, Final

from .escapes import exact_views, percent_undone, percent_view, undone
from .spans import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .encodings import Secret
    from .escapes import View

_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
# Bytes of JSON outside of strings. A value of only these is not replaced there: `true`, `],[`; for numbers see below.
_STRUCTURE: Final = frozenset(b"{}[]:, \t\r\n0123456789eE.+-truefalsn")
_NUMBER: Final = re.compile(rb"[0-9eE.+-]+")


def find_known(message: bytes, seen: View, secrets: tuple[Secret, ...], *, json: bool) -> Iterator[Finding]:
    """Yield the occurrences of the values."""
    views = [seen]
    if b"%" in seen.text:
        views.append(percent_view(seen))
    # A backslash before the value may be read as the escape of its first character.
    if b"\\" in message and any(
        secret.escapable or any(needle[1:] in message for needle in (*secret.needles, secret.hexadecimal))
        for secret in secrets
    ):
        views += exact_views(message, barriers=json)
    for view in views:
        for secret in secrets:
            for start, end in _places(view, secret):
                if not json or view.inside(start) or not _STRUCTURE.issuperset(view.text[start:end]):
                    yield Finding(*view.origin(start, end), secret.rule, secret.value)
            if json and any(digits in view.text for digits in secret.numeric):
                # A complete number of a JSON text becomes a string, so that the text stays JSON.
                for match in _NUMBER.finditer(view.text):
                    if any(digits in match[0] for digits in secret.numeric) and not view.inside(match.start()):
                        yield Finding(*view.origin(*match.span()), secret.rule, secret.value, quote=b'"')


def _places(view: View, secret: Secret) -> Iterator[tuple[int, int]]:
    if not secret.in_views:
        secret.in_views = tuple(dict.fromkeys(form for needle in secret.plain for form in _in_views(needle)))
    for needle in secret.in_views:
        yield from _everywhere(view.text, needle)
    for core, before, after in secret.base64:
        for start, end in _everywhere(view.text, core):
            # The characters at both ends hold bits of the value and bits of its neighbours.
            first = start - (before and start > 0 and view.text[start - 1] in _BASE64)
            yield (first, end + (after and end < len(view.text) and view.text[end] in _BASE64))
    yield from _everywhere(view.lowered, secret.hexadecimal)


def _in_views(needle: bytes) -> list[bytes]:
    """Return the forms of a value in views; it may have backslashes and percent signs of its own."""
    forms = [needle, undone(needle)]
    if b"\\" in needle:
        # A backslash of the value and that of an escape after it make one run, which is decoded as one.
        text = needle.decode("utf-8", "surrogateescape")
        escaped = (dumps(text), dumps(text, ensure_ascii=False))
        forms += [undone(quoted[1:-1].encode("utf-8", "surrogateescape")) for quoted in escaped]
    return [*forms, *map(percent_undone, forms)]


def _everywhere(text: bytes, needle: bytes) -> Iterator[tuple[int, int]]:
    at = text.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = text.find(needle, at + len(needle))
