"""JSON pointers (RFC 6901): the value at a place, and where in a text that value is spelled."""

from __future__ import annotations

from .errors import MessageError
from .json_codec import scan_value, skip_whitespace
from .json_object import scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MISSING = object()  # what `resolve` gives where nothing is


def parts(pointer: str) -> list[str]:
    """The tokens of a pointer. Raises ValueError where it is none."""
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer: it begins with a slash, as in /params/args/file")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def resolve(value: object, pointer: str) -> object:
    """What stands at a pointer, or MISSING."""
    for token in parts(pointer):
        value = child(value, token)
    return value


def child(value: object, token: str) -> object:
    """A member or an item, or MISSING."""
    if isinstance(value, dict):
        return value.get(token, MISSING)
    if isinstance(value, list) and token.isascii() and token.isdigit() and int(token) < len(value):
        return value[int(token)]
    return MISSING


def locate(text: str, pointers: Iterable[str]) -> Iterator[tuple[int, int, object]]:
    """Where in a JSON text the values at these pointers stand: (start, end, value). Places without one are left out."""
    for pointer in pointers:
        start, end, value = 0, len(text), MISSING
        for token in parts(pointer):
            try:
                found = _below(text, start, end, token)
            except MessageError:
                found = None
            if found is None:
                value = MISSING
                break
            start, end, value = found
        if value is not MISSING:
            yield start, end, value


def _below(text: str, start: int, end: int, token: str) -> tuple[int, int, object] | None:
    if text[start : start + 1] == "[":
        return _item(text, start, int(token)) if token.isascii() and token.isdigit() else None
    member = scan(text[start:end]).members.get(token)
    return (start + member.start, start + member.end, member.value) if member else None


def _item(text: str, start: int, index: int) -> tuple[int, int, object] | None:
    at = skip_whitespace(text, start + 1)
    while text[at] != "]":
        value, end = scan_value(text, at)
        if not index:
            return at, end, value
        index -= 1
        at = skip_whitespace(text, end)
        if text[at] == ",":
            at = skip_whitespace(text, at + 1)
    return None
