"""Differences between two sessions, as text for users and as data for programs.

Texts are one line each, limited in length, and valid Unicode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.yaml_scalars import visible
from ext_sdk.core.text import cut
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.json_pointer import MISSING, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_recorder.protocols.dialect import ClassifiedMessage

    from .matcher import Difference

KEPT = 100  # findings of one cassette; more are counted only
SHOWN_PLACES = 20  # differences within one message
_LAST = 1 << 60  # differences without a line come last
VALUE_CHARS = 400  # of a value that differs
AROUND_CHARS = 200  # of what is around it


class Problem:
    """One difference or violation.

    Attributes:
        kind: identifier for programs.
        text: for users; one or more lines.
        data: the same for programs, as JSON values.
    """

    __slots__ = ("data", "kind", "text")

    def __init__(self, kind: str, text: str, data: Mapping[str, object] | None = None) -> None:
        self.kind = kind
        self.text = text
        self.data = dict(data or {})


class Differences:
    """Differences of one cassette.

    Attributes:
        more: number of differences that are only counted.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: list[tuple[int, Problem]] = []
        self.more = 0

    def __bool__(self) -> bool:
        return bool(self._kept)

    def problems(self) -> list[Problem]:
        """Return the differences that are kept, in the order of the cassette."""
        return [problem for _, problem in sorted(self._kept, key=lambda item: item[0] or _LAST)]

    def differs(self, line: int, subject: str, differences: list[Difference], recorded: object, live: object) -> None:
        """Add the differences of two messages that belong together.

        Args:
            line: of the first message.
            subject: short description of the message.
            recorded: the first message as a JSON value.
            live: the second message as a JSON value.
        """
        for difference in differences:
            where = difference.pointer or "the whole message"
            rows = [
                f"{self._name}:{line}: {subject}: {where}",
                f"  expected  {shown(difference.recorded)}",
                f"  found     {shown(difference.live)}",
            ]
            if difference.pointer.count("/") > 1:
                rows.append(f"  around    {around(difference, recorded, live)}")
            data = {
                "line": line,
                "message": subject,
                "pointer": difference.pointer,
                "expected": plain(difference.recorded),
                "found": plain(difference.live),
            }
            self.add("differs", "\n".join(rows), line, data)

    def exit(self, expected: int | str | None, found: int | str | None, note: str = "") -> None:
        """Add a difference of the exit status.

        Args:
            expected: exit code, or name of the signal.
            found: the same of the other session.
            note: text instead of `found`, if it has no such value.
        """
        text = f"{self._name}: the exit\n  expected  {expected}\n  found     {note or found}"
        self.add("exit", text, 0, {"expected": expected, "found": found})

    def add(self, kind: str, text: str, line: int = 0, data: dict[str, object] | None = None) -> None:
        """Add another difference.

        Args:
            line: of the cassette; 0 if the difference has none.
        """
        if len(self._kept) >= KEPT:
            self.more += 1
            return
        at: dict[str, object] = {"line": line} if line else {}
        self._kept.append((line, Problem(kind, text, {**at, **(data or {"text": text})})))

    def at(self, line: int) -> str:
        """Return a line of the cassette as `NAME:LINE`."""
        return f"{self._name}:{line}" if line else self._name


def describe(message: ClassifiedMessage, answered: str = "") -> str:
    """Describe a message by its kind, method and id.

    Args:
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


def around(difference: Difference, recorded: object, live: object) -> str:
    """Return the object around a differing value: the live one, or the recorded one if that is missing."""
    holder = difference.pointer.rpartition("/")[0]
    there = resolve(live, holder)
    text = shown(resolve(recorded, holder) if there is MISSING else there, 1 << 20)
    value = difference.live if there is not MISSING and difference.live is not MISSING else difference.recorded
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
