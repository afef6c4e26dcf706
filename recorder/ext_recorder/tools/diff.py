"""Which units of two cassettes belong together.

Those that say the same, the first with the first and so on; of the rest those of one method that are about one thing,
in their order. What then is left stands in one of the two only. The order differs where a pair would have to move for
all to be in one order; told are the fewest that would.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

from ext_recorder.batch.reports import Case
from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.errors import CassetteError
from ext_recorder.messages.differences import KEPT, SHOWN_PLACES, Differences
from ext_recorder.messages.format import describe, excerpt, json_value
from ext_recorder.messages.json_values import places
from ext_recorder.messages.matcher import MessageComparison
from ext_recorder.messages.name_map import NameMap
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.redaction.secret_names import secret_variables
from ext_sdk.core.wire.framing import FRAMINGS

from .message_list import MessageList, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from pathlib import Path

    from ext_recorder.protocols.dialect import ClassifiedMessage

    from .message_list import Message, Place

    Pair = tuple[Message, Message]


def pairs(one: Sequence[Message], other: Sequence[Message]) -> tuple[list[Pair], list[Message], list[Message]]:
    """Pair the units of two cassettes.

    Returns:
        The pairs, in the order of the first cassette; what stands in the first only, and in the second only.
    """
    equal, left, right = _paired(one, other, lambda unit: (*unit.sort, unit.says))
    alike, left, right = _paired(left, right, lambda unit: unit.sort)
    return sorted([*equal, *alike], key=lambda pair: pair[0].index), left, right


def _paired(
    one: Iterable[Message], other: Iterable[Message], key: Callable[[Message], Hashable]
) -> tuple[list[Pair], list[Message], list[Message]]:
    waiting: dict[Hashable, deque[Message]] = {}
    for unit in one:
        waiting.setdefault(key(unit), deque()).append(unit)
    found, right = [], []
    for unit in other:
        same = waiting.get(key(unit))
        if same:
            found.append((same.popleft(), unit))
        else:
            right.append(unit)
    left = sorted((unit for rest in waiting.values() for unit in rest), key=lambda unit: unit.index)
    return found, left, right


def moved(found: Sequence[Pair]) -> list[Pair]:
    """The fewest pairs without which the second cassette has the order of the first."""
    tails: list[int] = []  # the smallest last place of a rising run, by its length
    ends: list[int] = []  # which pair that is
    before: list[int] = []  # for each pair, the one before it in its run
    for at, (_, unit) in enumerate(found):
        length = bisect_left(tails, unit.index)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [unit.index]
        ends[length : length + 1] = [at]
    kept = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return [pair for at, pair in enumerate(found) if at not in kept]


LOOKED_AT = 1_000  # pairs that may differ; the rest are counted as different


def diff(
    one: Path,
    other: Path,
    *,
    names: Sequence[str] = (),
    ignore: Sequence[str] = (),
    mask: Sequence[str] = (),
    name: Sequence[str] = (),
    in_order: bool = True,
) -> Case:
    """Compare two cassettes.

    Args:
        one: the first.
        other: the second.
        names: what they are called in messages; () for their paths.
        ignore: places that may differ, see `rules.Places`.
        mask: parts of texts that may differ, see `rules.Mask`.
        name: where values are handed out, see `rules.Places`.
        in_order: whether the order of messages counts.

    Raises:
        CassetteError: one of them can't be read, or they are of two protocols.
        UsageError: a rule is not of its form.
    """
    compared = _Diff((one, other), names or (str(one), str(other)), (ignore, mask, name))
    compared.run(in_order=in_order)
    findings = compared.findings
    return Case(" ".join(names or map(str, (one, other))), problems=findings.problems(), more=findings.more)


class _Diff:
    """Two cassettes side by side."""

    def __init__(self, files: tuple[Path, Path], names: Sequence[str], rules: tuple[Sequence[str], ...]) -> None:
        self._files = files
        self._names = names
        self.findings = Differences(names[0])
        self._counterparts = NameMap()
        self._redactor = Redactor(secret_variables(os.environ), rules=True)
        with Reader(files[0]) as reader, Reader(files[1]) as second:
            protocols = (reader.header.protocol, second.header.protocol)
            if protocols[0] != protocols[1]:
                raise CassetteError(names[1], 1, f"speaks {protocols[1]}, and {names[0]} speaks {protocols[0]}")
            self._comparison = MessageComparison(dialect_of(reader.header, names[0]), *rules)
            self._framings = (FRAMINGS[reader.header.framing], FRAMINGS[second.header.framing])
            self._units = (
                MessageList(reader, self._framings[0], self._comparison),
                MessageList(second, self._framings[1], self._comparison),
            )

    def run(self, *, in_order: bool) -> None:
        one, other = self._units
        found, left, right = pairs(one.listed, other.listed)
        suspects = [pair for pair in found if _says(pair[0]) != _says(pair[1])]
        shuffled = moved(found) if in_order else []
        self.findings.more += max(0, len(suspects) - LOOKED_AT)
        looked_at = suspects[:LOOKED_AT]
        texts = [
            self._texts(0, [*(pair[0] for pair in (*looked_at, *shuffled[:KEPT])), *left[:KEPT]]),
            self._texts(1, [*(pair[1] for pair in (*looked_at, *shuffled[:KEPT])), *right[:KEPT]]),
        ]
        for first, second in looked_at:
            self._compare(first, second, texts[0], texts[1])
        for first, second in shuffled:
            self._tell_moved(first, second, texts[0].get(first.place))
        for unit in left:
            self._tell_single("missing", unit, 0, texts[0].get(unit.place))
        for unit in right:
            self._tell_single("unexpected", unit, 1, texts[1].get(unit.place))
        if one.exit != other.exit:
            self.findings.exit(one.exit, other.exit)

    def _texts(self, side: int, units: Iterable[Message]) -> dict[Place, ClassifiedMessage]:
        """The messages of some units, read again."""
        wanted = {place for unit in units for place in (unit.place, *(place for place, _ in unit.answers))}
        found: dict[Place, ClassifiedMessage] = {}
        if not wanted:
            return found
        lines = {line for line, _ in wanted}
        with Reader(self._files[side]) as reader:
            for event in reader:
                if reader.line in lines:
                    for at, message in messages(event, self._framings[side], self._comparison):
                        if (reader.line, at) in wanted:
                            clean = self._redactor.redact(message.text.encode("utf-8", "surrogateescape"))
                            found[reader.line, at] = self._comparison.dialect.classify(clean)
        return found

    def _compare(
        self,
        one: Message,
        other: Message,
        first: dict[Place, ClassifiedMessage],
        second: dict[Place, ClassifiedMessage],
    ) -> None:
        self._compare_messages(one.place, other.place, first, second)
        for (place, _), (its, _) in zip(one.answers, other.answers, strict=False):
            self._compare_messages(place, its, first, second, one)
        for answers, side, texts in (
            (one.answers[len(other.answers) :], 0, first),
            (other.answers[len(one.answers) :], 1, second),
        ):
            for place, _ in answers:
                subject = describe(texts[place], one.method)
                self._tell(("missing", "unexpected")[side], subject, place[0], side, texts[place])

    def _compare_messages(
        self,
        place: Place,
        its: Place,
        first: dict[Place, ClassifiedMessage],
        second: dict[Place, ClassifiedMessage],
        call: Message | None = None,
    ) -> None:
        one, other = first[place], second[its]
        answered, about = (call.method, call.about) if call else ("", "")
        found = self._comparison.differences(
            one, other, self._counterparts, answered=answered, about=about, most=SHOWN_PLACES
        )
        self._counterparts.learn(one, other, self._comparison.names(one))
        handed = list(places(one.members, self._comparison.handed(one, answered, about)))
        self._counterparts.learn(one, other, handed)
        self._counterparts.hand_out(one, other, other, handed)
        if found:
            subject = f"{describe(one, answered)}, {self._names[1]}:{its[0]}"
            self.findings.differs(place[0], subject, found, json_value(one), json_value(other))

    def _tell_moved(self, one: Message, other: Message, message: ClassifiedMessage | None) -> None:
        subject = describe(message) if message else f"the {one.kind} {one.method}"
        text = f"{self._names[0]}:{one.place[0]}: {subject}: stands elsewhere, {self._names[1]}:{other.place[0]}"
        data: dict[str, object] = {"message": subject, "lines": [one.place[0], other.place[0]]}
        self.findings.add("order", text, one.place[0], data)

    def _tell_single(self, kind: str, unit: Message, side: int, message: ClassifiedMessage | None) -> None:
        subject = describe(message) if message else f"the {unit.kind} {unit.method}"
        self._tell(kind, subject, unit.place[0], side, message)

    def _tell(self, kind: str, subject: str, line: int, side: int, message: ClassifiedMessage | None) -> None:
        where, there = self._names[side], self._names[1 - side]
        says = excerpt(message) if message else ""
        text = f"{where}:{line}: {subject}: is not in {there}" + (f"\n  {says}" if says else "")
        self.findings.add(kind, text, line if not side else 0, {"message": subject, "line": line, "text": says})


def _says(unit: Message) -> tuple[int, list[int]]:
    return unit.says, [says for _, says in unit.answers]
