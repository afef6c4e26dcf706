"""Short text for messages and JSON values: one line, limited in length, valid Unicode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.yaml_scalars import visible
from ext_sdk.core.text import cut
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import MISSING, resolve

if TYPE_CHECKING:
    from ext_recorder.protocols.dialect import ClassifiedMessage

    from .matcher import Difference

VALUE_CHARS = 400  # of a value that differs
AROUND_CHARS = 200  # of what is around it


def describe(message: ClassifiedMessage, answered: str = "") -> str:
    """Describe a message by its kind, method and id.

    Args:
        message: of either side.
        answered: of a response: description of its request.
    """
    id = message.id
    if message.kind == "response":
        return f"the answer to {cut(answered, 80) or 'nothing'}{f' (id {cut(id, 40)})' if id else ''}"
    if message.kind == "other":
        return f"the line {shown(message.text, 80)}"
    return f"the {message.kind} {cut(message.method, 80)}{f' (id {cut(id, 40)})' if id else ''}"


def shown(value: object, chars: int = VALUE_CHARS) -> str:
    """Return a JSON value on one line, truncated."""
    return "nothing" if value is MISSING else cut(dumps(_clean(value)), chars)


def excerpt(message: ClassifiedMessage) -> str:
    """Return the text of a message, truncated."""
    return shortened(message.text)


def shortened(text: str) -> str:
    """Return a text on one line, cut, with its control characters as escapes."""
    return cut(visible(text[: VALUE_CHARS + 1]), VALUE_CHARS)


def json_value(message: ClassifiedMessage) -> object:
    """Return a message as a JSON value; its text if it is not valid JSON."""
    try:
        return loads(message.text)
    except MessageError:
        return message.text


def around(each: Difference, recorded: object, live: object) -> str:
    """Return the object around a differing value: the live one, or the recorded one if that is missing."""
    holder = each.pointer.rpartition("/")[0]
    there = resolve(live, holder)
    text = shown(resolve(recorded, holder) if there is MISSING else there, 1 << 20)
    value = each.live if there is not MISSING and each.live is not MISSING else each.recorded
    at = max(0, text.find(shown(value, 60).rstrip("…")))
    start = max(0, at - AROUND_CHARS // 3) if len(text) > AROUND_CHARS else 0
    part = text[start : start + AROUND_CHARS]
    return f"{'…' if start else ''}{part}{'…' if start + len(part) < len(text) else ''}"


def plain(value: object) -> object:
    """Return a value for a JSON report: null if it is missing, truncated if it is large."""
    if value is MISSING:
        return None
    text = shown(value)
    return text if text.endswith("…") else _clean(value)


def _clean(value: object) -> object:
    """Return a value without lone surrogates and without gaps in lists."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [None if item is MISSING else _clean(item) for item in value]
    if isinstance(value, dict):
        return {key.encode("utf-8", "replace").decode(): _clean(item) for key, item in value.items()}
    return value
