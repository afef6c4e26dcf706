"""`diff`: align the messages of two cassettes and report the differences.

Equal messages are paired first, in their order; then, of the rest, those with the same method and subject. The messages
that remain are only in one of the cassettes. Order differences are reported as the smallest set of pairs that would
have to move.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import islice, takewhile, zip_longest
from shlex import join
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from ext_recorder.batch.reports import Case
from ext_recorder.cassette.events import OWN_FILES, Data, Mark
from ext_recorder.cassette.reader import Reader, dialect_of
from ext_recorder.cassette.recording import TRAFFIC, opened
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.http.reader import interactions
from ext_recorder.http.request_matching import Digest, RequestRules, Subject
from ext_recorder.http.traffic_counts import is_model_call
from ext_recorder.messages.comparison_rules import OWN_PORTS, Mask
from ext_recorder.messages.differences import (
    KEPT,
    SHOWN_PLACES,
    Differences,
    Problem,
    describe,
    excerpt,
    json_value,
    plain,
    shown,
)
from ext_recorder.messages.json_values import content_hash, differences, places, without
from ext_recorder.messages.matcher import MessageComparison
from ext_recorder.messages.name_map import NameMap
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.messages.redaction import Redaction
from ext_sdk.core.text import cut
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import loads
from ext_sdk.core.wire.json_pointer import MISSING, resolve

from .endpoints import chat_of, content_of, json_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.recording import Part, Recorded
    from ext_recorder.http.interaction import Interaction
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_sdk.core.wire.framing import Framing

    Place: TypeAlias = tuple[int, int]  # line, and index of the message in it
    Pair: TypeAlias = tuple["Message", "Message"]


class Message:
    """A message; of a request also the responses.

    Attributes:
        index: position in the list.
        stream: its sender.
        kind: request, notification, response (without a request) or other.
        method: see `ClassifiedMessage`.
        about: the subject of a request: an operation, a tool.
        place: its location.
        content: hash of its content.
        responses: locations of the responses, with the hashes of their contents.
    """

    __slots__ = ("about", "content", "index", "kind", "method", "place", "responses", "stream")

    def __init__(
        self, index: int, stream: str, message: ClassifiedMessage, place: Place, *, content: int, about: str
    ) -> None:
        self.index = index
        self.stream = stream
        self.kind = message.kind
        self.method = message.method
        self.about = about
        self.place = place
        self.content = content
        self.responses: list[tuple[Place, int]] = []

    @property
    def alignment_key(self) -> tuple[str, str, str, str]:
        """Key that two messages have in common if they may be paired."""
        return self.stream, self.kind, self.method, self.about


class MessageList:
    """All messages of a cassette.

    Attributes:
        listed: the messages, in their order.
        exit: the exit code or signal; None if none is recorded.
    """

    __slots__ = ("exit", "listed")

    def __init__(self, reader: Reader, framing: Framing, comparison: MessageComparison) -> None:
        self.listed: list[Message] = []
        self.exit: int | str | None = None
        calls: CallTracker[Message] = CallTracker(comparison.dialect)
        for event in reader:
            if isinstance(event, Mark):
                self.exit = event.value if event.kind == "exit" else self.exit
                continue
            for index, message in messages(event, framing, comparison):
                place = (reader.line, index)
                if request := calls.response(event, message):
                    content = content_hash(comparison.value(message, request.method, request.about))
                    request.responses.append((place, content))
                    continue
                # A subject that is a generated name differs in every session.
                generated = comparison.names(message) + comparison.handed(message)
                has_subject = comparison.dialect.subject.get(message.method, "") not in generated
                about = comparison.dialect.about(message) if has_subject else ""
                content = content_hash(comparison.value(message))
                listed = Message(len(self.listed), event.kind, message, place, content=content, about=about)
                self.listed.append(listed)
                calls.request(event, message, listed)


def messages(event: Event, framing: Framing, comparison: MessageComparison) -> Iterator[tuple[int, ClassifiedMessage]]:
    """Yield the messages of an event with their indexes in it."""
    if not isinstance(event, Data) or event.kind == "err" or event.conn == OWN_FILES:
        return
    for index, item in enumerate(event.items(framing)):
        yield index, comparison.dialect.classify(item.payload if isinstance(item, Frame) else item.wire)


class Listed(Protocol):
    """Message or HTTP interaction that can be aligned: its position, a key, and a hash of its content."""

    index: int
    content: int

    @property
    def alignment_key(self) -> Hashable: ...


L = TypeVar("L", bound=Listed)


def pairs(one: Sequence[L], other: Sequence[L]) -> tuple[list[tuple[L, L]], list[L], list[L]]:
    """Pair the messages of two cassettes.

    Returns:
        The pairs, in the order of the first cassette; the messages that only the first one has, and the second one.
    """
    equal, left, right = _paired(one, other, lambda message: (message.alignment_key, message.content))
    alike, left, right = _paired(left, right, lambda message: message.alignment_key)
    return sorted([*equal, *alike], key=lambda pair: pair[0].index), left, right


def _paired(
    one: Iterable[L], other: Iterable[L], key: Callable[[L], Hashable]
) -> tuple[list[tuple[L, L]], list[L], list[L]]:
    unpaired: dict[Hashable, deque[L]] = {}
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
    """Compare two cassettes, or two recordings.

    Args:
        one, other: the files or folders.
        names: their names in messages; () for their paths.
        ignore, mask, name: values of the options of these names, see `messages.rules`.
        in_order: report differences of the order.

    Raises:
        CassetteError: a file cannot be read, or the protocols differ.
        UsageError: a rule is not valid, or only one of them is a recording.
    """
    names = names or (str(one), str(other))
    for path, title in zip((one, other), names, strict=True):
        if not path.exists():
            raise CassetteError(title, 0, "no such file or folder")
    recorded = (opened(one), opened(other))
    if (recorded[0].header is None) != (recorded[1].header is None):
        raise UsageError(f"{names[0]} and {names[1]}: expected two cassettes, or two recordings")
    if recorded[0].header is not None:
        return _RecordingDiff(recorded, names, (ignore, mask, name)).case(in_order=in_order)
    compared = _Diff((one, other), names, (ignore, mask, name))
    compared.run(in_order=in_order)
    findings = compared.findings
    return Case(" ".join(names), problems=findings.problems(), more=findings.more)


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


# Members of responses of a cluster that differ in every run.
_VOLATILE = re.compile(r"uid|resourceVersion|managedFields|ownerReferences|\w*(?:Time|Timestamp)")
_STATUS = "/response/status"
_REPLY = "reply"  # of a model: its parts, in place of the body


class _Sent:
    """HTTP interaction in a list: what aligns it, and hashes of its request and response."""

    __slots__ = ("alignment_key", "answer", "content", "index", "number", "time", "title")

    def __init__(self, index: int, number: int, time: float, title: str, alignment_key: Hashable) -> None:
        self.index = index
        self.number = number
        self.time = time
        self.title = title
        self.alignment_key = alignment_key
        self.content = self.answer = 0


class _RecordingDiff:
    """Comparison of two recordings: lane by lane; the differences are reported in the order of time."""

    def __init__(self, recorded: Sequence[Recorded], names: Sequence[str], rules: tuple[Sequence[str], ...]) -> None:
        self._recorded = recorded
        self._names = names
        self._rules = (rules[0], (*rules[1], OWN_PORTS), *rules[2:])
        self._found: list[tuple[float, Problem]] = []
        self._summary: list[str] = []
        self._more = 0
        self._matching = RequestRules(rules[0], rules[1])
        # An --ignore of a response has the form of those of a request.
        self._ignored = [rule for rule in rules[0] if rule.startswith("/response/")]
        self._mask = Mask.of(rules[1])
        self._redactor = Redaction().redactor()

    def case(self, *, in_order: bool) -> Case:
        """Return the result."""
        for one, other in self._sessions():
            self._session(one, other, in_order=in_order)
        self._traffic()
        headers = [recorded.header for recorded in self._recorded]
        if headers[0] and headers[1] and headers[0].exit != headers[1].exit:
            text = f"the exit of the command\n  expected  {headers[0].exit}\n  found     {headers[1].exit}"
            problem = Problem("exit", text, {"expected": headers[0].exit, "found": headers[1].exit})
            self._found.append((headers[0].seconds, problem))
        self._found.sort(key=lambda item: item[0])
        problems = []
        for number, (time, problem) in enumerate(self._found):
            text = f"{'at' if number else 'they part at'} {time:.3f} s  {problem.text}"
            problems.append(Problem(problem.kind, text, {"t": round(time, 6), **problem.data}))
        if headers[0] and headers[1] and headers[0].command != headers[1].command:
            self._summary.insert(0, f"the commands differ: {join(headers[0].command)}; {join(headers[1].command)}")
        if not self._summary:
            self._summary.append("neither has messages or HTTP traffic: only the exit codes were compared")
        more = self._more + max(0, len(problems) - KEPT)
        return Case(" ".join(self._names), problems=problems[:KEPT], more=more, notes=self._summary)

    # --- Children -----------------------------------------------------------------------------------------------------

    def _sessions(self) -> Iterator[tuple[Part | None, Part | None]]:
        """Yield the sessions that belong together: of one child those with equal messages, then the rest in order."""
        names = dict.fromkeys(part.name for recorded in self._recorded for part in recorded.parts)
        for name in names:
            left, right = ([part for part in each.parts if part.name == name] for each in self._recorded)
            if len(left) > 1 or len(right) > 1:
                marks = {part: self._fingerprint(part) for part in (*left, *right)}
                for part in list(left):
                    same = next((other for other in right if marks[other] == marks[part]), None)
                    if same is not None:
                        left.remove(part)
                        right.remove(same)
                        yield part, same
            yield from zip_longest(left, right)

    def _fingerprint(self, part: Part) -> int:
        with Reader(part.path) as reader:
            comparison = MessageComparison(dialect_of(reader.header, part.label), *self._rules)
            listed = MessageList(reader, FRAMINGS[reader.header.framing], comparison).listed
        return hash(tuple((message.alignment_key, *_contents(message)[1], message.content) for message in listed))

    def _session(self, one: Part | None, other: Part | None, *, in_order: bool) -> None:
        if one is None or other is None:
            part, side = (one, 0) if one else (other, 1)
            assert part is not None
            kind, there = ("unexpected", "missing")[1 - side], self._names[1 - side]
            text = f"{self._names[side]}/{part.label}: child {part.name}: this session is not in {there}"
            self._found.append((part.started, Problem(kind, text, {"child": part.name, "cassette": part.label})))
            self._summary.append(f"{part.name}: {part.label} is only in {self._names[side]}")
            return
        names = [f"{name}/{part.label}" for name, part in zip(self._names, (one, other), strict=True)]
        compared = _Diff((one.path, other.path), names, self._rules)
        compared.run(in_order=in_order)
        problems, more = compared.findings.problems(), compared.findings.more
        times = (_times(one), _times(other))
        for problem in problems:
            line = problem.data.get("line")
            side = problem.kind == "unexpected"
            time = times[side].get(line) if isinstance(line, int) else None
            if side and time is not None:
                time += one.started - other.started  # on the clock of the first recording
            time = max(times[0].values(), default=one.started) if time is None else time
            self._found.append((time, problem))
        self._more += more
        self._summarize(f"{one.name} ({one.label})", len(problems) + more)

    def _summarize(self, lane: str, count: int) -> None:
        shown = "no difference" if not count else "1 difference" if count == 1 else f"{count} differences"
        self._summary.append(f"{lane}: {shown}")

    # --- HTTP traffic -------------------------------------------------------------------------------------------------

    def _traffic(self) -> None:
        lanes = [self._servers(recorded) for recorded in self._recorded]
        wanted: tuple[set[int], set[int]] = (set(), set())
        suspects: list[tuple[str, _Sent, _Sent]] = []
        singles: list[tuple[int, _Sent]] = []
        counts: dict[str, int] = {}
        for server in dict.fromkeys([*lanes[0], *lanes[1]]):
            left, right = _without_common(lanes[0].get(server, []), lanes[1].get(server, []))
            _, left, right = _paired(left, right, _whole)  # those that only have another position
            paired, left, right = pairs(left, right)
            differing = [(server, *pair) for pair in paired]
            counts[server] = len(left) + len(right)
            suspects += differing[:MOST_COMPARED]
            self._more += max(0, len(differing) - MOST_COMPARED)
            singles += [(0, sent) for sent in left] + [(1, sent) for sent in right]
        for _, first, second in suspects:
            wanted[0].add(first.number)
            wanted[1].add(second.number)
        values = [self._values(recorded, numbers) for recorded, numbers in zip(self._recorded, wanted, strict=True)]
        for server, first, second in suspects:
            counts[server] += self._compare(first, second, values[0][first.number], values[1][second.number])
        equal = [_paired(listed, lanes[1].get(server, []), _whole)[0] for server, listed in lanes[0].items()]
        clocks = sorted((second.time, first.time) for paired in equal for first, second in paired)
        for side, sent in singles:
            before = bisect_left(clocks, (sent.time, 0.0)) if side and clocks else 0
            anchor = clocks[max(0, before - 1)] if side and clocks else (0.0, 0.0)
            time = max(0.0, sent.time - anchor[0] + anchor[1])  # on the clock of the first recording
            where, there = f"{self._names[side]}/{TRAFFIC}", self._names[1 - side]
            text = f"{where}: interaction {sent.number}: {sent.title}: is not in {there}"
            kind = "unexpected" if side else "missing"
            data = {"interaction": sent.number, "request": sent.title}
            self._found.append((time, Problem(kind, text, data)))
        for server, count in counts.items():
            self._summarize(server, count)

    def _servers(self, recorded: Recorded) -> dict[str, list[_Sent]]:
        """Return the interactions with each server."""
        servers: dict[str, list[_Sent]] = {}
        for number, item in enumerate(interactions(recorded.traffic) if recorded.traffic else (), 1):
            subject = Subject(item, self._matching)
            listed = servers.setdefault(subject.address, [])
            title = cut(self._redactor.redact_text(str(subject)), 160)
            sent = _Sent(len(listed), number, item.time, title, (subject.method, subject.path))
            sent.content = hash(subject.key())
            sent.answer = content_hash(self._response(item))
            listed.append(sent)
        return servers

    def _values(self, recorded: Recorded, numbers: set[int]) -> dict[int, object]:
        """Return these interactions as JSON values."""
        found = {}
        for number, item in enumerate(interactions(recorded.traffic) if recorded.traffic and numbers else (), 1):
            if number in numbers:
                subject = Subject(item, self._matching)
                content = subject.content
                body = content.decode("utf-8", "replace") if type(content) is bytes else content
                body = f"{body.size} bytes, {body.hex()}" if isinstance(body, Digest) else body
                request = {"query": [list(pair) for pair in subject.query], "body": body}
                found[number] = self._clean({"request": request, "response": self._response(item)})
        return found

    def _response(self, item: Interaction) -> object:
        """Return the compared parts of a response: status, error, and the body; of a model, its reply instead."""
        answer: dict[str, object] = {"status": item.status, "error": (item.error or {}).get("type")}
        chat = chat_of(item) if is_model_call(item) else None
        if chat is not None and chat.reply:
            answer[_REPLY] = chat.reply
        else:
            value = json_of(item.headers, item.body)
            data = content_of(item.headers, item.body)
            text = f"{item.body.size if item.body else 0} bytes" if data is None else data.decode("utf-8", "replace")
            answer["body"] = _objects(value, text)
        response = {"response": answer}
        compared = without(response, self._ignored) if self._ignored else response
        compared = self._mask.value(compared) if self._mask else compared
        return compared.get("response") if isinstance(compared, dict) else None

    def _clean(self, value: object) -> object:
        """Return a value without secrets, and without gaps of ignored members."""
        if isinstance(value, str):
            return self._redactor.redact_text(value)
        if isinstance(value, dict):
            return {name: self._clean(item) for name, item in value.items() if item is not MISSING}
        return [self._clean(item) for item in value if item is not MISSING] if isinstance(value, list) else value

    def _compare(self, first: _Sent, second: _Sent, one: object, other: object) -> int:
        """Add the differences of two interactions. Return their number."""
        pointers = list(islice(differences(one, other), SHOWN_PLACES))
        if _STATUS in pointers:  # another response altogether
            pointers = [each for each in pointers if each == _STATUS or not each.startswith("/response/")]
        for pointer in pointers:
            where = f"{self._names[0]}/{TRAFFIC}: interaction {first.number}: {first.title}"
            expected, found = (resolve(value, pointer) for value in (one, other))
            there = f", {self._names[1]}: interaction {second.number}"
            text = f"{where}{there}: {pointer}\n  expected  {shown(expected)}\n  found     {shown(found)}"
            data = {"interaction": first.number, "request": first.title, "pointer": pointer}
            data |= {"expected": plain(expected), "found": plain(found)}
            time = first.time if pointer.startswith("/request") else first.time + 1e-6
            self._found.append((time, Problem("differs", text, data)))
        return len(pointers)


MOST_ALIGNED = 2_000  # interactions with one server between the common beginning and end of both recordings


def _without_common(one: list[_Sent], other: list[_Sent]) -> tuple[list[_Sent], list[_Sent]]:
    """Return the interactions that are not in the longest common sequence of both lists.

    Requests that poll are often equal to later ones: in order of position, a change is found where it happened.
    """
    keys = [[_whole(sent) for sent in listed] for listed in (one, other)]
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(keys[0], keys[1], strict=False)))
    ends = (reversed(listed[start:]) for listed in keys)
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*ends, strict=False)))
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    if len(left) > MOST_ALIGNED or len(right) > MOST_ALIGNED:
        return left, right
    keys = [[_whole(sent) for sent in listed] for listed in (left, right)]
    same: tuple[set[int], set[int]] = (set(), set())
    for block in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks():
        same[0].update(range(block.a, block.a + block.size))
        same[1].update(range(block.b, block.b + block.size))
    rest = [
        [sent for place, sent in enumerate(listed) if place not in known]
        for listed, known in zip((left, right), same, strict=True)
    ]
    return rest[0], rest[1]


def _whole(sent: _Sent) -> Hashable:
    return sent.alignment_key, sent.content, sent.answer


def _times(part: Part) -> dict[int, float]:
    """Return the time of each line of a cassette."""
    times = {}
    with Reader(part.path) as reader:
        for event in reader:
            times[reader.line] = part.started + event.time
    return times


def _objects(value: object, text: str) -> object:
    """Return the body of an object without members that differ in each run; for a watch, the list of its events."""
    if value is None and text.startswith('{"type":'):
        with suppress(MessageError):
            value = [loads(line) for line in text.splitlines()]
    first = value[0] if isinstance(value, list) and value else value
    watched = first.get("object") if isinstance(first, dict) else None
    named = watched if isinstance(watched, dict) else first
    is_object = isinstance(named, dict) and {"kind", "apiVersion"} <= named.keys()
    return _stable(value) if is_object else text if value is None else value


def _stable(value: object) -> object:
    if isinstance(value, dict):
        return {name: _stable(item) for name, item in value.items() if not _VOLATILE.fullmatch(name)}
    return [_stable(item) for item in value] if isinstance(value, list) else value
