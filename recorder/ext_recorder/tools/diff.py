"""`diff`: align the messages of two cassettes and report the differences.

Equal messages are paired first, in their order; then, of the rest, those with the same method and subject. The messages
that remain are only in one of the cassettes. Order differences are reported as the smallest set of pairs that would
have to move.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

from ext_recorder.batch.reports import Case
from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.errors import CassetteError
from ext_recorder.messages.differences import KEPT, SHOWN_PLACES, Differences, describe, excerpt, json_value
from ext_recorder.messages.json_values import places
from ext_recorder.messages.matcher import MessageComparison
from ext_recorder.messages.name_map import NameMap
from ext_recorder.messages.redaction import Redaction
from ext_sdk.core.wire.framing import FRAMINGS

from .message_list import MessageList, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ext_recorder.protocols.dialect import ClassifiedMessage

    from .message_list import Message, Place

    Pair = tuple[Message, Message]


def pairs(one: Sequence[Message], other: Sequence[Message]) -> tuple[list[Pair], list[Message], list[Message]]:
    """Pair the messages of two cassettes.

    Returns:
        The pairs, in the order of the first cassette; the messages that only the first one has, and the second one.
    """
    equal, left, right = _paired(one, other, lambda message: (*message.alignment_key, message.content))
    alike, left, right = _paired(left, right, lambda message: message.alignment_key)
    return sorted([*equal, *alike], key=lambda pair: pair[0].index), left, right


def _paired(
    one: Iterable[Message], other: Iterable[Message], key: Callable[[Message], Hashable]
) -> tuple[list[Pair], list[Message], list[Message]]:
    unpaired: dict[Hashable, deque[Message]] = {}
    for message in one:
        unpaired.setdefault(key(message), deque()).append(message)
    paired, right = [], []
    for message in other:
        candidates = unpaired.get(key(message))
        if candidates:
            paired.append((candidates.popleft(), message))
        else:
            right.append(message)
    left = sorted((message for rest in unpaired.values() for message in rest), key=lambda message: message.index)
    return paired, left, right


def moved(paired: Sequence[Pair]) -> list[Pair]:
    """Return the smallest set of pairs without which both cassettes have the same order.

    The other pairs are the longest increasing subsequence of the positions in the second cassette.
    """
    tails: list[int] = []  # the smallest last position of an increasing subsequence, by its length
    ends: list[int] = []  # the pair at that position
    before: list[int] = []  # for each pair, the previous one in its subsequence
    for number, (_, message) in enumerate(paired):
        length = bisect_left(tails, message.index)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [message.index]
        ends[length : length + 1] = [number]
    kept = set()
    last = ends[-1] if ends else -1
    while last >= 0:
        kept.add(last)
        last = before[last]
    return [pair for number, pair in enumerate(paired) if number not in kept]


MOST_COMPARED = 1_000  # pairs; further ones that may differ are counted as different


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
        one, other: the files.
        names: their names in messages; () for their paths.
        ignore, mask, name: values of the options of these names, see `messages.rules`.
        in_order: report differences of the order.

    Raises:
        CassetteError: a file cannot be read, or the protocols differ.
        UsageError: a rule is not valid.
    """
    compared = _Diff((one, other), names or (str(one), str(other)), (ignore, mask, name))
    compared.run(in_order=in_order)
    findings = compared.findings
    return Case(" ".join(names or map(str, (one, other))), problems=findings.problems(), more=findings.more)


class _Diff:
    """Comparison of two cassettes."""

    def __init__(self, files: tuple[Path, Path], names: Sequence[str], rules: tuple[Sequence[str], ...]) -> None:
        self._files = files
        self._names = names
        self.findings = Differences(names[0])
        self._names_map = NameMap()
        self._redactor = Redaction().redactor()
        with Reader(files[0]) as reader, Reader(files[1]) as second:
            protocols = (reader.header.protocol, second.header.protocol)
            if protocols[0] != protocols[1]:
                raise CassetteError(
                    names[1], 1, f"its protocol is {protocols[1]}, and that of {names[0]} is {protocols[0]}"
                )
            self._comparison = MessageComparison(dialect_of(reader.header, names[0]), *rules)
            self._framings = (FRAMINGS[reader.header.framing], FRAMINGS[second.header.framing])
            self._messages = (
                MessageList(reader, self._framings[0], self._comparison),
                MessageList(second, self._framings[1], self._comparison),
            )

    def run(self, *, in_order: bool) -> None:
        one, other = self._messages
        paired, left, right = pairs(one.listed, other.listed)
        suspects = [pair for pair in paired if _contents(pair[0]) != _contents(pair[1])]
        reordered = moved(paired) if in_order else []
        self.findings.more += max(0, len(suspects) - MOST_COMPARED)
        compared = suspects[:MOST_COMPARED]
        texts = [
            self._texts(0, [*(pair[0] for pair in (*compared, *reordered[:KEPT])), *left[:KEPT]]),
            self._texts(1, [*(pair[1] for pair in (*compared, *reordered[:KEPT])), *right[:KEPT]]),
        ]
        for first, second in compared:
            self._compare_messages(first.place, second.place, texts)
            for (place, _), (other_place, _) in zip(first.responses, second.responses, strict=False):
                self._compare_messages(place, other_place, texts, first)
            count = min(len(first.responses), len(second.responses))
            for side, kind, responses in ((0, "missing", first.responses), (1, "unexpected", second.responses)):
                for place, _ in responses[count:]:
                    response = texts[side][place]
                    self._add_single(kind, describe(response, first.method), place[0], side, response)
        for first, second in reordered:
            subject = _subject(first, texts[0].get(first.place))
            where, there = f"{self._names[0]}:{first.place[0]}", f"{self._names[1]}:{second.place[0]}"
            data: dict[str, object] = {"message": subject, "lines": [first.place[0], second.place[0]]}
            self.findings.add("order", f"{where}: {subject}: has another position, {there}", first.place[0], data)
        for side, kind, single in ((0, "missing", left), (1, "unexpected", right)):
            for message in single:
                text = texts[side].get(message.place)
                self._add_single(kind, _subject(message, text), message.place[0], side, text)
        if one.exit != other.exit:
            self.findings.exit(one.exit, other.exit)

    def _texts(self, side: int, listed: Iterable[Message]) -> dict[Place, ClassifiedMessage]:
        """Return messages and their responses by location, read again and redacted."""
        wanted = {place for entry in listed for place in (entry.place, *(place for place, _ in entry.responses))}
        texts: dict[Place, ClassifiedMessage] = {}
        if not wanted:
            return texts
        lines = {line for line, _ in wanted}
        with Reader(self._files[side]) as reader:
            for event in reader:
                if reader.line in lines:
                    for index, message in messages(event, self._framings[side], self._comparison):
                        if (reader.line, index) in wanted:
                            clean = self._redactor.redact(message.text.encode("utf-8", "surrogateescape"))
                            texts[reader.line, index] = self._comparison.dialect.classify(clean)
        return texts

    def _compare_messages(
        self,
        place: Place,
        other_place: Place,
        texts: Sequence[Mapping[Place, ClassifiedMessage]],
        call: Message | None = None,
    ) -> None:
        one, other = texts[0][place], texts[1][other_place]
        answered, about = (call.method, call.about) if call else ("", "")
        differences = self._comparison.differences(
            one, other, self._names_map, answered=answered, about=about, most=SHOWN_PLACES
        )
        self._names_map.learn(one, other, self._comparison.names(one))
        handed = list(places(one.members, self._comparison.handed(one, answered, about)))
        self._names_map.learn(one, other, handed)
        self._names_map.hand_out(one, other, other, handed)
        if differences:
            subject = f"{describe(one, answered)}, {self._names[1]}:{other_place[0]}"
            self.findings.differs(place[0], subject, differences, json_value(one), json_value(other))

    def _add_single(self, kind: str, subject: str, line: int, side: int, message: ClassifiedMessage | None) -> None:
        """Report a message that only one of the cassettes has."""
        where, there = self._names[side], self._names[1 - side]
        shown = excerpt(message) if message else ""
        text = f"{where}:{line}: {subject}: is not in {there}" + (f"\n  {shown}" if shown else "")
        self.findings.add(kind, text, line if not side else 0, {"message": subject, "line": line, "text": shown})


def _contents(message: Message) -> tuple[int, list[int]]:
    return message.content, [content for _, content in message.responses]


def _subject(entry: Message, message: ClassifiedMessage | None) -> str:
    return describe(message) if message else f"the {entry.kind} {entry.method}"
