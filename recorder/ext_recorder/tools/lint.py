"""`lint`: check a recorded session against the rules of its protocol (see `protocols.rules`).

Messages are classified as events of the rules, which are schemas, state machines and limits.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from jsonschema import Draft202012Validator

from ext_recorder.batch.reports import Case
from ext_recorder.cassette.age import check as check_age
from ext_recorder.cassette.events import Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recording import CASSETTES, HEADER, TRAFFIC, opened
from ext_recorder.errors import CassetteError
from ext_recorder.messages.differences import Problem
from ext_recorder.messages.json_values import join
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.protocols.detection import redirected_address
from ext_recorder.protocols.dialect import DIALECTS, id_key, pointers_of
from ext_recorder.protocols.rules import ERROR, rules_of
from ext_sdk.core.text import cut
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.json_pointer import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from jsonschema import ValidationError

    from ext_recorder.cassette.events import Data, Event
    from ext_recorder.cassette.header import Header
    from ext_recorder.cassette.recording import Recorded
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_recorder.protocols.rules import Rules, Schema, StateMachine

_SHOWN_CHARS = 60  # of a value in a finding
_SHOWN_ERRORS = 5  # of one message


class Schemas:
    """Validators of JSON Schemas, compiled at first use."""

    def __init__(self) -> None:
        self._ready: dict[int, Draft202012Validator] = {}

    def problems(self, schema: Mapping[str, object], value: object, where: str) -> Iterator[tuple[str, str]]:
        """Yield JSON pointer within the message and text of each problem of a value.

        Args:
            schema: a JSON Schema; its validator is kept by the identity of the object.
            value: a JSON value.
            where: pointer to the value in the message.
        """
        validator = self._ready.get(id(schema))
        if validator is None:
            validator = self._ready[id(schema)] = Draft202012Validator(dict(schema))
        reported: set[tuple[str, str]] = set()  # `required` gives the same error for each missing member
        for outer in validator.iter_errors(value):
            if len(reported) == _SHOWN_ERRORS:
                return
            error = outer
            while error.validator in {"anyOf", "oneOf"} and error.context:  # the alternative that is closest
                error = min(error.context, key=lambda cause: (cause.relative_schema_path[0], -len(cause.absolute_path)))
            pointer = where
            for token in error.absolute_path:
                pointer = join(pointer, token)
            problem = (pointer, _problem(error))
            if problem not in reported:
                reported.add(problem)
                yield problem


def _problem(error: ValidationError) -> str:
    expected, actual = error.validator_value, cut(dumps(error.instance), _SHOWN_CHARS)
    if error.validator == "required" and isinstance(expected, list) and isinstance(error.instance, dict):
        missing = [name for name in expected if name not in error.instance]
        return f"expected the member{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}, found {actual}"
    if error.validator == "type":
        article = "an" if str(expected)[0] in "aeiou" else "a"
        return f"expected {article} {expected}, found {actual}"
    if error.validator in {"enum", "const"}:
        options = expected if isinstance(expected, list) else [expected]
        return f"expected {' or '.join(dumps(option) for option in options)}, found {actual}"
    if error.validator == "not":
        return f"expected nothing like {cut(dumps(expected), _SHOWN_CHARS)}, found {actual}"
    return cut(error.message, _SHOWN_CHARS)


_ARROWS = {"in": ">", "out": "<"}


class Call:
    """A request.

    Attributes:
        side: its sender: "in", the host, or "out", the child.
        names: names of its event without the arrow, the most general first.
        message: the request.
        time: seconds since the start of the session.
        line: its line in the cassette.
        answered: a response, or a part of one, has been received.
        excused: it was cancelled, and needs no response.
        untimely: numbers of the state machines that did not expect it.
    """

    __slots__ = ("answered", "excused", "line", "message", "names", "side", "time", "untimely")

    def __init__(self, side: str, names: tuple[str, ...], message: ClassifiedMessage, time: float, line: int) -> None:
        self.side = side
        self.names = names
        self.message = message
        self.time = time
        self.line = line
        self.answered = False
        self.excused = False
        self.untimely: set[int] = set()


class ClassifiedEvent(NamedTuple):
    """A message with its event.

    Attributes:
        names: names of the event, the most general first; () for a response without a request.
        message: the message.
        call: the call that it begins or answers; None if it does neither.
        ends: it is the last response to that call.
    """

    names: tuple[str, ...]
    message: ClassifiedMessage
    call: Call | None = None
    ends: bool = False


class EventClassifier:
    """Classifier of messages, in their order.

    Attributes:
        open: calls without their last response.
    """

    def __init__(self, dialect: Dialect, rules: Rules) -> None:
        self._dialect = dialect
        self._rules = rules
        self.open: CallTracker[Call] = CallTracker(dialect)

    def classify(self, event: Data, message: ClassifiedMessage, line: int) -> ClassifiedEvent:
        """Return the event of a message. A request opens a call, its last response closes it."""
        arrow, dialect = _ARROWS[event.kind], self._dialect
        call = self.open.response(event, message)
        is_notification = message.method and dialect.tag == "method"  # of a response: it ends a call
        if message.kind == "response" and not is_notification:
            if call is None:
                return ClassifiedEvent((), message)
            # A protocol without JSON-RPC has its own form of errors; in JSON-RPC a failure may be a result.
            failed = dialect.tag != "method" and dialect.has_failed(message)
            sign = "!" if message.at("/error") is not MISSING or failed else "="
            split = [text for name in call.names for text in self._names(f"{arrow} {sign} {name}", message)]
            return ClassifiedEvent(tuple(split), message, call, ends=dialect.is_last(message))
        names = self._names(f"{arrow} {message.method}", message)
        if message.kind == "response":
            return ClassifiedEvent(names, message, call, ends=dialect.is_last(message))
        if message.method in self._rules.excuses:
            for pointer in pointers_of(dialect.references, message.method):
                value = message.at(pointer)
                for call in self.open.get((event.kind, event.conn, id_key(value, "")), ()):
                    call.excused = True
        if message.kind != "request" or message.key is None:
            return ClassifiedEvent(names, message)
        call = Call(event.kind, tuple(name[2:] for name in names), message, event.time, line)
        self.open.request(event, message, call)
        return ClassifiedEvent(names, message, call)

    def calls(self, conn: int, side: str) -> list[Call]:
        """Return the open calls of one side of a connection."""
        return [call for key, calls in self.open.items() if key[:2] == (side, conn) for call in calls]

    def _names(self, name: str, message: ClassifiedMessage) -> tuple[str, ...]:
        pointer = self._rules.split.get(name)
        value = message.at(pointer) if pointer else MISSING
        if value is MISSING:
            return (name,)
        return name, f"{name}:{value if isinstance(value, str) else str(value).lower()}"


_ID = "#"  # in the key of a state machine: the id of the call


class StateMachines:
    """State machines of one connection."""

    def __init__(self, rules: Rules) -> None:
        self._machines = rules.machines
        self._states: dict[tuple[int, bytes], str] = {}

    def feed(self, classified: ClassifiedEvent) -> Iterator[tuple[str, str]]:
        """Move each machine by an event. Yield clause and problem for each machine that did not expect it."""
        message, call = classified.message, classified.call
        for number, machine in enumerate(self._machines):
            event = next((name for name in reversed(classified.names) if name in machine.events), "")
            key = _key(machine, message) if event else None
            if key is None or (message.kind == "response" and call and number in call.untimely):
                continue
            state = self._states.get((number, key), machine.start)
            following = machine.moves[state].get(event)
            if following is None:
                if call:
                    call.untimely.add(number)
                expected = ", ".join(f"`{name}`" for name in machine.moves[state]) or "nothing more"
                yield machine.clause, f"`{event}` in the state {state!r}, in which this is expected: {expected}"
            else:
                self._states[number, key] = following


def _key(machine: StateMachine, message: ClassifiedMessage) -> bytes | None:
    """Return the key of the machine's instance that an event belongs to; None if it belongs to none."""
    if not machine.key:
        return b""
    for pointer in machine.key:
        if pointer == _ID:
            if message.key is not None:
                return message.key
        elif isinstance(value := message.at(pointer), (str, int)):
            return id_key(value, "")
    return None


KEPT = 100  # findings of one cassette; further ones are only counted
_BYTES_SHOWN = 40


def lint(path: Path, name: str, max_age: str = "") -> Case:
    """Check a cassette against the specification of its protocol.

    Args:
        name: its name in the findings.
        max_age: age from which it is refused, see `cassette.age`; "" for no limit.

    Raises:
        CassetteError: the file cannot be read, or is too old.
    """
    if path.is_dir():
        return _lint_recording(opened(path), name, max_age)
    began = monotonic()
    with Reader(path) as reader:
        check_age(name, reader.header, max_age)
        rules = rules_of(reader.header.protocol)
        if rules is None:
            count = sum(1 for _ in reader)
            note = f"{reader.header.protocol}: this protocol has no rules; all {count} events could be read"
            return Linted(name, seconds=monotonic() - began, notes=[note])
        linter = Linter(reader.header, rules, name)
        for event in reader:
            linter.take(event, reader.line)
        linter.end()
    return Linted(name, seconds=monotonic() - began, problems=linter.problems, more=linter.more)


_UNLISTED = "a cassette that the header does not list, so that nothing replays it; remove it, or record again"
_MISSING = "the header lists this cassette, and the file is missing; restore it, or record again"


def _lint_recording(recorded: Recorded, name: str, max_age: str) -> Case:
    """Check the files of a recording, and that they are those that its header lists."""
    from ext_recorder.http.reader import interactions

    began = monotonic()
    problems, notes, more = list(_cross_references(recorded, name)), [], 0
    for part in recorded.parts:
        if part.path.is_file() and _is_within(part.path, recorded.path):
            case = lint(part.path, f"{name}/{part.label}", max_age)
            problems += case.problems
            notes += [f"{part.label}: {note}" for note in case.notes]
            more += case.more
    try:
        for number, item in enumerate(interactions(recorded.traffic) if recorded.traffic else (), 1):
            if not item.error and not _FIRST_STATUS <= item.status <= _LAST_STATUS:
                text = f"{name}/{TRAFFIC}: interaction {number}: expected a status from 100 to 599, found {item.status}"
                problems.append(_problem_of("status", text))
    except CassetteError as error:
        problems.append(_problem_of("traffic", f"{name}/{TRAFFIC}: {error.problem}"))
    more += max(0, len(problems) - KEPT)
    return Linted(name, seconds=monotonic() - began, problems=problems[:KEPT], more=more, notes=notes)


def _cross_references(recorded: Recorded, name: str) -> Iterator[Problem]:
    folder, header = recorded.path, recorded.header
    listed = {part.label for part in recorded.parts}
    for part in recorded.parts:
        if not _is_within(part.path, folder):
            yield _problem_of("outside", f"{name}/{HEADER}: child {part.name}: {part.label}: not within the folder")
        elif not part.path.is_file():
            yield _problem_of("missing", f"{name}/{HEADER}: child {part.name}: {part.label}: {_MISSING}")
    for path in sorted((folder / CASSETTES).glob("*")):
        label = f"{CASSETTES}/{path.name}"
        if label not in listed and path.suffix in {".yaml", ".partial"}:
            yield _problem_of("unlisted", f"{name}/{label}: {_UNLISTED}")
    if recorded.traffic is None:
        yield _problem_of("missing", f"{name}/{TRAFFIC}: the file with the HTTP traffic is missing; record again")
    for child in header.children if header else ():
        if child.started and len(child.started) != len(child.cassettes):
            counts = f"expected {len(child.cassettes)} values in `started`, found {len(child.started)}"
            yield _problem_of("started", f"{name}/{HEADER}: child {child.name}: {counts}")


def _is_within(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


_FIRST_STATUS, _LAST_STATUS = 100, 599


def _problem_of(kind: str, text: str) -> Problem:
    return Problem(kind, text, {"text": text})


class Linted(Case):
    """Result for one cassette."""

    noun = "finding"
    verdict = "wrong"


class Linter:
    """Checks of the events of one cassette.

    Attributes:
        problems: the first findings, up to KEPT.
        more: number of further findings.
    """

    def __init__(self, header: Header, rules: Rules, name: str) -> None:
        self.problems: list[Problem] = []
        self.more = 0
        self._dialect = DIALECTS[header.protocol]
        self._framing = FRAMINGS[header.framing]
        self._rules = rules
        self._name = name
        self._line = 0
        self._classifier = EventClassifier(self._dialect, rules)
        self._schemas = Schemas()
        self._states: dict[int, StateMachines] = {}
        self._has_omissions = False  # a message is not in the cassette
        self._is_complete = False  # the child has exited

    def take(self, event: Event, line: int) -> None:
        """Check an event."""
        self._line = line
        if isinstance(event, Mark):
            self._is_complete = event.kind == "exit" and isinstance(event.value, int) and not self._has_omissions
            self._has_omissions = self._has_omissions or event.kind == "omitted"
        elif event.kind in {"in", "out"} and event.conn:
            for item in event.items(self._framing):
                if isinstance(item, Frame):
                    self._message(event, self._dialect.classify(item.payload))
                elif event.kind == "out" and self._rules.junk and not item.wire.isspace():
                    self.add_finding(self._rules.junk, f"expected a message, found {item.wire[:_BYTES_SHOWN]!r}")

    def end(self) -> None:
        """Check at the end of the session that every request has a response."""
        if not self._is_complete:
            return
        for calls in self._classifier.open.values():
            for call in calls:
                if call.names[0] not in self._rules.silent and not call.excused:
                    self._line = call.line
                    about = " ".join(filter(None, (call.message.method, self._dialect.about(call.message))))
                    self.add_finding("answer-each", f"{about} #{call.message.id} has no response")

    def _message(self, event: Data, message: ClassifiedMessage) -> None:
        rules = self._rules
        if message.kind == "other":
            if message.envelope is not None:
                self._check(rules.envelope_clause, rules.envelope, message.members, "")
                self.add_finding("message", "neither a request nor a notification nor a response")
            elif event.kind == "out" and rules.junk and not redirected_address(event.payload):
                self.add_finding(rules.junk, f"expected a message, found {event.payload[:_BYTES_SHOWN]!r}")
            return
        self._check(rules.envelope_clause, rules.envelope, message.members, "")
        during = {call.names[0] for call in self._classifier.calls(event.conn, "in")}
        classified = self._classifier.classify(event, message, self._line)
        if not classified.names:
            # An error without an id may answer a request whose id could not be read.
            if message.at("/error") is MISSING or message.id not in {"", "null"}:
                self.add_finding(
                    "answer-known", f"a response to #{message.id or 'nothing'}, for which no request is open"
                )
            return
        self.check_content(event, classified)
        for rule in rules.during:
            if any(name in rule.events for name in classified.names) and not during.intersection(rule.calls):
                self.add_finding(rule.clause, f"`{classified.names[0]}` while no {' or '.join(rule.calls)} is open")
        states = self._states.setdefault(event.conn, StateMachines(rules))
        for clause, text in states.feed(classified):
            self.add_finding(clause, text)
        if classified.call and message.kind == "response":
            self._check_response(event, message, classified.call)

    def check_content(self, event: Data, classified: ClassifiedEvent) -> None:
        """Check a message by itself: its place in the protocol, and its schema."""
        rules, message, names = self._rules, classified.message, classified.names
        rule = next((rules.messages[name] for name in reversed(names) if name in rules.messages), None)
        is_error = message.at("/error") is not MISSING
        if rule is not None and not is_error:
            clause, schema = rule
            member = message.form.content[0]
            self._check(clause, schema, message.members.get(member, {}), f"/{member}")
        elif rules.closed and not is_error and names[0][2:4] not in {"= ", "! "}:
            self.add_finding(rules.closed, f"`{names[-1]}` is not a message of this protocol in this direction")
        if is_error:
            self._check("error-object", ERROR, message.at("/error"), "/error")
            if rule is not None and names[0][2:4] == "! ":
                self._check(*rule, message.at("/error"), "/error")
            if "result" in message.members:
                self.add_finding("either", "a response with a result and an error")
        if event.kind == "out" and message.method in rules.notifications and "id" in message.members:
            self.add_finding(rules.notifications[message.method], f"`{names[0]}` has an id: {message.members['id']!r}")

    def _check_response(self, event: Data, message: ClassifiedMessage, call: Call) -> None:
        """Check that a response is not late, and repeats the values of the request that it must."""
        method = call.names[0]
        took = event.time - call.time
        limit = self._dialect.timeouts.get(method)
        if limit is not None and method in self._rules.limits and not call.answered and took > limit:
            self.add_finding(self._rules.limits[method], f"the response to {method} took {took:.3f} s")
        call.answered = True
        for there, here in self._dialect.echoes.get(method, {}).items():
            expected, actual = call.message.at(there), message.at(here)
            if method in self._rules.echoes and actual is not MISSING and expected != actual:
                text = f"{here}: expected {expected!r} as in the request, found {actual!r}"
                self.add_finding(self._rules.echoes[method], text)

    def _check(self, clause: str, schema: Schema, value: object, where: str) -> None:
        for pointer, text in self._schemas.problems(schema, value, where):
            self.add_finding(clause, f"{pointer or 'the message'}: {text}", pointer)

    def add_finding(self, id: str, text: str, pointer: str = "") -> None:
        if len(self.problems) == KEPT:
            self.more += 1
            return
        clause = self._rules.clauses[id]
        report = f"{self._name}:{self._line}: {text}\n  {self._rules.specification}, {clause.section}: {clause.text}"
        data = {"line": self._line, "text": text, "section": clause.section, "clause": clause.text}
        self.problems.append(Problem(id, report, data | ({"pointer": pointer} if pointer else {})))
