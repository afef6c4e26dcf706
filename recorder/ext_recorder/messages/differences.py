"""Differences between two sessions, as text for users and as data for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .format import around, plain, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .matcher import Difference


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


KEPT = 100  # findings of one cassette; more are counted only
SHOWN_PLACES = 20  # differences within one message
_LAST = 1 << 60  # differences without a line come last


class Differences:
    """Differences of one cassette.

    Args:
        name: of the cassette, for its lines.

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
        return [problem for _, problem in sorted(self._kept, key=lambda each: each[0] or _LAST)]

    def differs(self, line: int, subject: str, found: list[Difference], recorded: object, live: object) -> None:
        """Add the differences of two messages that belong together.

        Args:
            line: of the first message.
            subject: short description of the message.
            found: the differences.
            recorded: the first message as a JSON value.
            live: the second message as a JSON value.
        """
        for each in found:
            where = each.pointer or "the whole message"
            rows = [
                f"{self._name}:{line}: {subject}: {where}",
                f"  expected  {shown(each.recorded)}",
                f"  found     {shown(each.live)}",
            ]
            if each.pointer.count("/") > 1:
                rows.append(f"  around    {around(each, recorded, live)}")
            data = {
                "line": line,
                "message": subject,
                "pointer": each.pointer,
                "expected": plain(each.recorded),
                "found": plain(each.live),
            }
            self.add("differs", "\n".join(rows), line, data)

    def exit(self, expected: int | str | None, found: int | str | None, said: str = "") -> None:
        """Add a difference of the exit status.

        Args:
            expected: exit code, or name of the signal.
            found: the same of the other session.
            said: text instead of `found`, if it has no such value.
        """
        text = f"{self._name}: the exit\n  expected  {expected}\n  found     {said or found}"
        self.add("exit", text, 0, {"expected": expected, "found": found})

    def add(self, kind: str, text: str, line: int = 0, data: dict[str, object] | None = None) -> None:
        """Add another difference.

        Args:
            kind: identifier for programs.
            text: for people.
            line: of the cassette; 0 if the difference has none.
            data: the same for programs.
        """
        if len(self._kept) >= KEPT:
            self.more += 1
            return
        at: dict[str, object] = {"line": line} if line else {}
        self._kept.append((line, Problem(kind, text, {**at, **(data or {"text": text})})))

    def at(self, line: int) -> str:
        """Return a line of the cassette as `NAME:LINE`."""
        return f"{self._name}:{line}" if line else self._name
