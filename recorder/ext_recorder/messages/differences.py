"""What differs between two sessions, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .format import around, plain, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .matcher import Difference


class Problem:
    """One thing that is not as it should be.

    Attributes:
        kind: a word for programs.
        text: for people; several lines are fine.
        data: the same for programs, as JSON values.
    """

    __slots__ = ("data", "kind", "text")

    def __init__(self, kind: str, text: str, data: Mapping[str, object] | None = None) -> None:
        self.kind = kind
        self.text = text
        self.data = dict(data or {})


KEPT = 100  # findings of one cassette; more are counted only
SHOWN_PLACES = 20  # differences within one message
_LAST = 1 << 60  # what is about no line stands at the end


class Differences:
    """What was found.

    Args:
        name: the cassette's, for places in it.

    Attributes:
        more: how many are not kept.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: list[tuple[int, Problem]] = []
        self.more = 0

    def __bool__(self) -> bool:
        return bool(self._kept)

    def problems(self) -> list[Problem]:
        """All that are kept, in the order of the cassette."""
        return [problem for _, problem in sorted(self._kept, key=lambda each: each[0] or _LAST)]

    def differs(self, line: int, subject: str, found: list[Difference], recorded: object, live: object) -> None:
        """Two messages that belong together are not the same.

        Args:
            line: where the first one stands.
            subject: what it is, in a few words.
            found: where they differ.
            recorded: all of the first one, as a JSON value.
            live: all of the other one.
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
        """The child ended in two ways.

        Args:
            expected: the first: an exit code, or the name of a signal.
            found: the other.
            said: of the other, for people, where it has no such value.
        """
        text = f"{self._name}: the exit\n  expected  {expected}\n  found     {said or found}"
        self.add("exit", text, 0, {"expected": expected, "found": found})

    def add(self, kind: str, text: str, line: int = 0, data: dict[str, object] | None = None) -> None:
        """Something else.

        Args:
            kind: a word for programs.
            text: for people.
            line: where in the cassette; 0: it is about none.
            data: the same for programs.
        """
        if len(self._kept) >= KEPT:
            self.more += 1
            return
        at: dict[str, object] = {"line": line} if line else {}
        self._kept.append((line, Problem(kind, text, {**at, **(data or {"text": text})})))

    def at(self, line: int) -> str:
        """A place in the cassette."""
        return f"{self._name}:{line}" if line else self._name
