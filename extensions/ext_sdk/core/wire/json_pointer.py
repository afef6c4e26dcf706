"""JSON pointers (RFC 6901): the value that one refers to, and the position of that value in a text."""

from __future__ import annotations

from .errors import MessageError
from .json_codec import elements, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MISSING = object()  # result of `resolve` if the pointer refers to nothing


def parts(pointer: str) -> list[str]:
    """Return the tokens of a pointer. Raises ValueError if it is not a JSON pointer."""
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is not a JSON pointer: it must begin with a slash, as in /params/args/file")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def resolve(value: object, pointer: str) -> object:
    """Return the value that a pointer refers to, or MISSING."""
    for token in parts(pointer):
        value = child(value, token)
    return value


def child(value: object, token: str) -> object:
    """Return a member or an item, or MISSING."""
    if isinstance(value, dict):
        return value.get(token, MISSING)
    if isinstance(value, list) and token.isascii() and token.isdigit() and int(token) < len(value):
        return value[int(token)]
    return MISSING


def locate(text: str, pointers: Iterable[str]) -> Iterator[tuple[int, int, object]]:
    """Yield (start, end, value) of the values that pointers refer to in a JSON text; skip pointers to nothing."""
    for pointer in pointers:
        start, end, value = 0, len(text), MISSING
        for token in parts(pointer):
            try:
                position = _below(text, start, end, token)
            except MessageError:
                position = None
            if position is None:
                value = MISSING
                break
            start, end, value = position
        if value is not MISSING:
            yield start, end, value


def _below(text: str, start: int, end: int, token: str) -> tuple[int, int, object] | None:
    if text[start : start + 1] != "[":
        member = scan(text[start:end]).members.get(token)
        return (start + member.start, start + member.end, member.value) if member else None
    index = int(token) if token.isascii() and token.isdigit() else -1
    for position in elements(text, start) if index >= 0 else ():
        if not index:
            return position
        index -= 1
    return None
