"""Finding known values: as they are, escaped, in base64 at any offset, in hexadecimal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ext_sdk.redaction.finding import Finding
from ext_sdk.redaction.view import percent_undone, percent_view, undone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ext_sdk.redaction.spelling import Secret
    from ext_sdk.redaction.view import View

_BASE64: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
)
_NUMBER: Final = re.compile(rb"[0-9eE.+-]+")


def find_known(
    seen: View, secrets: Iterable[Secret], *, json: bool
) -> Iterator[Finding]:
    """Every place where one of the values appears."""
    views = [seen, percent_view(seen)] if b"%" in seen.text else [seen]
    for view in views:
        for secret in secrets:
            for start, end in _places(view, secret):
                if not json or view.inside(start):
                    yield Finding(*view.origin(start, end), secret.rule, secret.value)
            if json:
                yield from _in_numbers(view, secret)


def _places(view: View, secret: Secret) -> Iterator[tuple[int, int]]:
    for needle in secret.plain:
        for spelled in _spellings(needle):
            yield from _everywhere(view.text, spelled)
    for core, before, after in secret.base64:
        for start, end in _everywhere(view.text, core):
            # The characters at the ends hold some bits of the value and some of its neighbours.
            first = start - (before and start > 0 and view.text[start - 1] in _BASE64)
            yield (
                first,
                end + (after and end < len(view.text) and view.text[end] in _BASE64),
            )
    yield from _everywhere(view.lowered, secret.hexadecimal)


def _in_numbers(view: View, secret: Secret) -> Iterator[Finding]:
    """The numbers of a JSON text that hold the value: a whole number becomes a string, so that it stays JSON."""
    needles = [
        each
        for each in (*secret.needles, secret.hexadecimal)
        if _NUMBER.fullmatch(each)
    ]
    if not any(each in view.text for each in needles):
        return
    for match in _NUMBER.finditer(view.text):
        if any(each in match[0] for each in needles) and not view.inside(match.start()):
            yield Finding(
                *view.origin(*match.span()), secret.rule, secret.value, quote=b'"'
            )


def _spellings(needle: bytes) -> tuple[bytes, ...]:
    """A value that itself has backslashes or percent signs, as the views show it."""
    found = undone(needle) if b"\\" in needle else needle
    return tuple(dict.fromkeys((needle, found, percent_undone(found))))


def _everywhere(text: bytes, needle: bytes) -> Iterator[tuple[int, int]]:
    at = text.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = text.find(needle, at + len(needle))
