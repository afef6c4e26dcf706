"""`diff`: what differs between two cassettes, message by message."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import CassetteError
from ext_recorder.pointers import places
from ext_recorder.reports.cases import Case
from ext_recorder.speaking import dialect_of
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.redaction.secret_names import secret_variables
from ext_sdk.core.wire.framing import FRAMINGS

from .comparing import Comparison
from .counterparts import Counterparts
from .findings import KEPT, SHOWN_PLACES, Findings
from .pairing import moved, pairs
from .units import Units, messages
from .words import describe, excerpt, json_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ext_sdk.protocols.dialect import Classified

    from .units import Place, Unit

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
        self.findings = Findings(names[0])
        self._counterparts = Counterparts()
        self._redactor = Redactor(secret_variables(os.environ), rules=True)
        with Reader(files[0]) as reader, Reader(files[1]) as second:
            protocols = (reader.header.protocol, second.header.protocol)
            if protocols[0] != protocols[1]:
                raise CassetteError(names[1], 1, f"speaks {protocols[1]}, and {names[0]} speaks {protocols[0]}")
            self._comparison = Comparison(dialect_of(reader.header, names[0]), *rules)
            self._framings = (FRAMINGS[reader.header.framing], FRAMINGS[second.header.framing])
            self._units = (
                Units(reader, self._framings[0], self._comparison),
                Units(second, self._framings[1], self._comparison),
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

    def _texts(self, side: int, units: Iterable[Unit]) -> dict[Place, Classified]:
        """The messages of some units, read again."""
        wanted = {place for unit in units for place in (unit.place, *(place for place, _ in unit.answers))}
        found: dict[Place, Classified] = {}
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

    def _compare(self, one: Unit, other: Unit, first: dict[Place, Classified], second: dict[Place, Classified]) -> None:
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
        first: dict[Place, Classified],
        second: dict[Place, Classified],
        call: Unit | None = None,
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

    def _tell_moved(self, one: Unit, other: Unit, message: Classified | None) -> None:
        subject = describe(message) if message else f"the {one.kind} {one.method}"
        text = f"{self._names[0]}:{one.place[0]}: {subject}: stands elsewhere, {self._names[1]}:{other.place[0]}"
        data: dict[str, object] = {"message": subject, "lines": [one.place[0], other.place[0]]}
        self.findings.add("order", text, one.place[0], data)

    def _tell_single(self, kind: str, unit: Unit, side: int, message: Classified | None) -> None:
        subject = describe(message) if message else f"the {unit.kind} {unit.method}"
        self._tell(kind, subject, unit.place[0], side, message)

    def _tell(self, kind: str, subject: str, line: int, side: int, message: Classified | None) -> None:
        where, there = self._names[side], self._names[1 - side]
        says = excerpt(message) if message else ""
        text = f"{where}:{line}: {subject}: is not in {there}" + (f"\n  {says}" if says else "")
        self.findings.add(kind, text, line if not side else 0, {"message": subject, "line": line, "text": says})


def _says(unit: Unit) -> tuple[int, list[int]]:
    return unit.says, [says for _, says in unit.answers]
