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
    for view in _views(message, seen, secrets, json=json):
        for secret in secrets:
            for start, end in _places(view, secret):
                if not json or view.inside(start) or not _STRUCTURE.issuperset(view.text[start:end]):
                    yield Finding(*view.origin(start, end), secret.rule, secret.value)
            if json:
                yield from _in_numbers(view, secret)


def _views(message: bytes, seen: View, secrets: tuple[Secret, ...], *, json: bool) -> Iterator[View]:
    yield seen
    if b"%" in seen.text:
        yield percent_view(seen)
    if b"\\" in message and any(_may_follow_backslash(message, secret) for secret in secrets):
        yield from exact_views(message, barriers=json)


def _may_follow_backslash(message: bytes, secret: Secret) -> bool:
    """Return True if a backslash before the value may be read as the escape of its first character."""
    return secret.escapable or any(needle[1:] in message for needle in (*secret.needles, secret.hexadecimal))


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


def _in_numbers(view: View, secret: Secret) -> Iterator[Finding]:
    """Yield the numbers of a JSON text that hold the value: a complete number becomes a string, which is JSON again."""
    if not any(digits in view.text for digits in secret.numeric):
        return
    for match in _NUMBER.finditer(view.text):
        if any(digits in match[0] for digits in secret.numeric) and not view.inside(match.start()):
            yield Finding(*view.origin(*match.span()), secret.rule, secret.value, quote=b'"')


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
