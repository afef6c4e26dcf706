"""What a message says, against the schema of its event."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator

from ext_recorder.batch.reports import Case
from ext_recorder.cassette.age import check as check_age
from ext_recorder.cassette.events import Data, Mark, pieces
from ext_recorder.cassette.reader import Reader
from ext_recorder.messages.differences import Problem
from ext_recorder.messages.json_values import join
from ext_recorder.protocols.detection import redirected_address
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.protocols.rules import ERROR, RULES
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.json_pointer import MISSING

from .events import EventClassifier, StateMachines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from jsonschema import ValidationError

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.header import Header
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.protocols.rules import Rules, Schema

    from .events import ClassifiedEvent


_SHOWN_CHARS = 60  # of a value in a message for people
_SHOWN_ERRORS = 5  # of one message


class Schemas:
    """Schemas, made ready when they are first asked for."""

    def __init__(self) -> None:
        self._ready: dict[int, Draft202012Validator] = {}

    def problems(self, schema: Mapping[str, object], value: object, where: str) -> Iterator[tuple[str, str]]:
        """What is wrong with a value: (JSON pointer within the message, what was expected and found).

        Args:
            schema: a JSON Schema; kept by its identity.
            value: a JSON value.
            where: the pointer to it.
        """
        validator = self._ready.get(id(schema))
        if validator is None:
            validator = self._ready[id(schema)] = Draft202012Validator(dict(schema))
        told: set[tuple[str, str]] = set()  # a member that is missing is an error of its own for each of them
        for error in validator.iter_errors(value):
            if len(told) == _SHOWN_ERRORS:
                return
            deepest = _deepest(error)
            pointer = where
            for token in deepest.absolute_path:
                pointer = join(pointer, token)
            problem = (pointer, _told(deepest))
            if problem not in told:
                told.add(problem)
                yield problem


def _deepest(error: ValidationError) -> ValidationError:
    """Of the alternatives that a value might have fitted, the one that it came nearest to."""
    while error.validator in {"anyOf", "oneOf"} and error.context:
        error = min(error.context, key=lambda each: (each.relative_schema_path[0], -len(each.absolute_path)))
    return error


def _told(error: ValidationError) -> str:
    wanted, found = error.validator_value, _cut(dumps(error.instance))
    if error.validator == "required" and isinstance(wanted, list) and isinstance(error.instance, dict):
        missing = [name for name in wanted if name not in error.instance]
        return f"expected the member{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}, found {found}"
    if error.validator == "type":
        return f"expected {_article(str(wanted))}, found {found}"
    if error.validator in {"enum", "const"}:
        options = wanted if isinstance(wanted, list) else [wanted]
        return f"expected {' or '.join(dumps(option) for option in options)}, found {found}"
    if error.validator == "not":
        return f"expected nothing like {_cut(dumps(wanted))}, found {found}"
    return _cut(error.message)


def _article(type: str) -> str:
    return f"{'an' if type[0] in 'aeiou' else 'a'} {type}"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


KEPT = 100  # findings of one cassette; more are counted only
_BYTES_SHOWN = 40


def lint(path: Path, name: str, max_age: str = "") -> Case:
    """Check a cassette against its specification.

    Args:
        path: the file.
        name: what it is called in the findings.
        max_age: age at which it is refused, see `age`; "" for none.

    Raises:
        CassetteError: it cannot be read, or is too old.
    """
    began = monotonic()
    with Reader(path) as reader:
        check_age(name, reader.header, max_age)
        rules = RULES.get(reader.header.protocol)
        if rules is None:
            count = sum(1 for _ in reader)
            note = f"{reader.header.protocol}: nothing is demanded of what is said; all {count} events could be read"
            return Linted(name, seconds=monotonic() - began, notes=[note])
        linter = Linter(reader.header, rules, name)
        for event in reader:
            linter.take(event, reader.line)
        linter.end()
    return Linted(name, seconds=monotonic() - began, problems=linter.problems, more=linter.more)


class Linted(Case):
    """What became of one cassette."""

    __slots__ = ()
    noun = "finding"
    verdict = "wrong"


class Linter:
    """Takes the events of one cassette.

    Attributes:
        problems: what was found, up to KEPT; `more` are only counted.
    """

    def __init__(self, header: Header, rules: Rules, name: str) -> None:
        self.problems: list[Problem] = []
        self.more = 0
        self._dialect = DIALECTS[header.protocol]
        self._framing = FRAMINGS[header.framing]
        self._rules = rules
        self._name = name
        self._line = 0
        self._naming = EventClassifier(self._dialect, rules)
        self._schemas = Schemas()
        self._states: dict[int, StateMachines] = {}
        self._omits = False  # a message is not in the cassette
        self._whole = False  # the child ended by itself

    def take(self, event: Event, line: int) -> None:
        """Look at one event."""
        self._line = line
        if isinstance(event, Mark):
            self._whole = event.kind == "exit" and isinstance(event.value, int) and not self._omits
            self._omits = self._omits or event.kind == "omitted"
        elif event.kind in {"in", "out"} and event.conn:
            for item in pieces(event.payload, self._framing) if event.raw else [event]:
                if isinstance(item, (Data, Frame)):
                    self._message(event, self._dialect.classify(item.payload))
                elif event.kind == "out" and self._rules.junk and not item.wire.isspace():
                    self._find(self._rules.junk, f"expected a message, found {item.wire[:_BYTES_SHOWN]!r}")

    def end(self) -> None:
        """The session is over: what was never answered?"""
        if not self._whole:
            return
        for calls in self._naming.open.values():
            for call in calls:
                if call.names[0] not in self._rules.silent and not call.excused:
                    self._line = call.line
                    about = " ".join(filter(None, (call.message.method, self._dialect.about(call.message))))
                    self._find("answer-each", f"{about} #{call.message.id} is never answered")

    def _message(self, event: Data, message: ClassifiedMessage) -> None:
        rules = self._rules
        if message.kind == "other":
            if message.envelope is not None:
                self._check(rules.envelope_clause, rules.envelope, message.members, "")
                self._find("message", "neither a request nor a notification nor an answer")
            elif event.kind == "out" and rules.junk and not redirected_address(event.payload):
                self._find(rules.junk, f"expected a message, found {event.payload[:_BYTES_SHOWN]!r}")
            return
        self._check(rules.envelope_clause, rules.envelope, message.members, "")
        during = {call.names[0] for call in self._naming.calls(event.conn, "in")}
        named = self._naming.name(event, message, self._line)
        if not named.names:
            self._unasked(event, message)
            return
        self._content(event, named)
        for rule in rules.during:
            if any(name in rule.events for name in named.names) and not during.intersection(rule.calls):
                self._find(rule.clause, f"`{named.names[0]}` while no {' or '.join(rule.calls)} is open")
        states = self._states.setdefault(event.conn, StateMachines(rules))
        for clause, text in states.feed(named):
            self._find(clause, text)
        self._answer(event, named)

    def _unasked(self, event: Data, message: ClassifiedMessage) -> None:
        """An answer to nothing; of an error without an id, it could not be read what it is about."""
        if message.at("/error") is MISSING or message.id not in {"", "null"}:
            self._find("answer-known", f"an answer to #{message.id or 'nothing'}, of which no request is open")

    def _content(self, event: Data, named: ClassifiedEvent) -> None:
        rules, message = self._rules, named.message
        found = next((rules.messages[name] for name in reversed(named.names) if name in rules.messages), None)
        is_error = message.at("/error") is not MISSING
        if found is not None and not is_error:
            clause, schema = found
            member = message.form.content[0]
            self._check(clause, schema, message.members.get(member, {}), f"/{member}")
        elif rules.closed and not is_error and named.names[0][2:4] not in {"= ", "! "}:
            self._find(rules.closed, f"`{named.names[-1]}` is no message of this protocol in this direction")
        if is_error:
            self._check("error-object", ERROR, message.at("/error"), "/error")
            if found is not None and named.names[0][2:4] == "! ":
                self._check(*found, message.at("/error"), "/error")
            if "result" in message.members:
                self._find("either", "an answer with a result and an error")
        if event.kind == "out" and message.method in rules.notifications and "id" in message.members:
            self._find(rules.notifications[message.method], f"`{named.names[0]}` has an id: {message.members['id']!r}")

    def _answer(self, event: Data, named: ClassifiedEvent) -> None:
        """What an answer owes to its request: to be in time, and to repeat what it has to."""
        call = named.call
        if call is None or named.message.kind != "response":
            return
        method, message = call.names[0], named.message
        took = event.time - call.time
        limit = self._dialect.timeouts.get(method)
        if limit is not None and method in self._rules.limits and not call.answered and took > limit:
            self._find(self._rules.limits[method], f"the answer to {method} took {took:.3f} s")
        call.answered = True
        for there, here in self._dialect.echoes.get(method, {}).items():
            asked, said = call.message.at(there), message.at(here)
            if method in self._rules.echoes and said is not MISSING and asked != said:
                self._find(self._rules.echoes[method], f"{here}: expected {asked!r} as in the request, found {said!r}")

    def _check(self, clause: str, schema: Schema, value: object, where: str) -> None:
        for pointer, text in self._schemas.problems(schema, value, where):
            self._find(clause, f"{pointer or 'the message'}: {text}", pointer)

    def _find(self, id: str, text: str, pointer: str = "") -> None:
        if len(self.problems) == KEPT:
            self.more += 1
            return
        clause = self._rules.clauses[id]
        told = f"{self._name}:{self._line}: {text}\n  {self._rules.specification}, {clause.section}: {clause.text}"
        data = {"line": self._line, "text": text, "section": clause.section, "clause": clause.text}
        self.problems.append(Problem(id, told, data | ({"pointer": pointer} if pointer else {})))
