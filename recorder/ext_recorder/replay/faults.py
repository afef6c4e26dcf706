"""Faults of a replayed child (`--fault`): the rules, and an action buffer that applies them to messages.

The form of a rule is KIND[=VALUE][@WHERE,WHERE…]:

delay=2s                        all messages
drop@method=execute,nth=2       the response to the second call of `execute`
error=-32603@chance=0.1         one of ten responses, at random; the same ones for the same --seed
"""

from __future__ import annotations

from random import Random

from ext_recorder.errors import UsageError
from ext_recorder.messages.open_calls import OpenCalls
from ext_recorder.protocols.dialect import NOT_RECORDED
from ext_sdk.core.wire.frames import Frame

from .actions import ActionBuffer, Close

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_LONGEST_S = 86_400.0
_LARGEST_BYTES = 268_435_456
OVERSIZED_BYTES = 65_536  # by default: one more than the real gevals host takes
GARBAGE_BYTES = 40


def _duration(text: str) -> float:
    """Return a duration in seconds."""
    number = text.rstrip("aums")
    unit = _UNITS.get(text[len(number) :], 0.0)
    value = float(number) * unit
    if not unit or not 0 <= value <= _LONGEST_S:
        raise ValueError
    return value


def _number(low: int, high: int, kind: Callable[[str], float] = int) -> Callable[[str], float]:
    """Return a function that parses a number between two limits, and raises ValueError for any other text."""

    def parse(text: str) -> float:
        value = kind(text)
        if not low <= value <= high or not text.isascii() or "_" in text:
            raise ValueError
        return value

    return parse


# By kind of fault: a description of its value, the parser of its value, the default (None: a value is required).
KINDS: dict[str, tuple[str, Callable[[str], float] | None, float | None]] = {
    "delay": ("a time, as 200ms or 2s", _duration, None),
    "drop": ("", None, 0),
    "duplicate": ("", None, 0),
    "cut": ("", None, 0),  # send the first half of the message, without its end
    "garbage": ("a number of bytes", _number(0, _LARGEST_BYTES), GARBAGE_BYTES),  # bytes before the message
    "oversized": ("a number of bytes", _number(0, _LARGEST_BYTES), OVERSIZED_BYTES),  # pad the message with blanks
    "error": ("an error code, as -32603", _number(-(2**31), 2**31 - 1), -32603),  # instead of the response
    "exit": ("an exit code", _number(0, 255), 1),  # before the message
    "kill": ("", None, 0),  # in the middle of the message
}

PLACES: dict[str, tuple[str, Callable[[str], object]]] = {
    "method": ("a method, as execute", str),
    "nth": ("which of those that fit, from 1", _number(1, _LARGEST_BYTES)),
    "every": ("N, for each Nth of those that fit", _number(1, _LARGEST_BYTES)),
    "chance": ("a probability from 0 to 1", _number(0, 1, float)),
}


class FaultRule:
    """Fault rule.

    Attributes:
        kind: a name in KINDS.
        value: of the fault.
        fired: number of messages to which it was applied.

    Raises:
        UsageError: the text is not a rule.
    """

    __slots__ = ("_chance", "_every", "_method", "_nth", "_random", "_seen", "fired", "kind", "text", "value")

    def __init__(self, text: str, seed: str) -> None:
        self.text = text
        what, _, where = text.partition("@")
        self.kind, equals, value = what.strip().partition("=")
        if self.kind not in KINDS:
            raise UsageError(f"--fault {text}: expected one of {', '.join(KINDS)} before the @, found {self.kind!r}")
        expected, parse, default = KINDS[self.kind]
        if equals and parse is None:
            raise UsageError(f"--fault {text}: {self.kind} has no value")
        if not equals and default is None:
            raise UsageError(f"--fault {text}: expected {expected} after {self.kind}=")
        value = value.strip()
        try:
            self.value = parse(value) if equals and parse else default or 0
        except ValueError:
            raise UsageError(f"--fault {text}: expected {expected} after {self.kind}=, found {value!r}") from None
        places: dict[str, object] = {}
        for part in where.split(",") if where else ():
            name, _, value = part.strip().partition("=")
            if name not in PLACES:
                raise UsageError(f"--fault {text}: expected {', '.join(PLACES)} after the @, found {name!r}")
            expected, read = PLACES[name]
            try:
                places[name] = read(value)
            except ValueError:
                raise UsageError(f"--fault {text}: expected {expected} after {name}=, found {value!r}") from None
            if {"nth", "every"} <= places.keys():
                raise UsageError(f"--fault {text}: nth and every exclude each other")
        self._method = places.get("method")
        self._nth = places.get("nth", 0)
        self._every = places.get("every", 1)
        self._chance = places.get("chance", 1.0)
        self._random = Random(f"{seed} {text}")  # noqa: S311 - the same choices in each replay
        self._seen = 0
        self.fired = 0

    def applies_to(self, message: ClassifiedMessage, method: str) -> bool:
        """Return True if the rule applies to a message of the child. Call it once for each message, in their order.

        Args:
            method: its method; of a response, that of the request.
        """
        if self._method not in {None, method} or (self.kind == "error" and message.kind != "response"):
            return False
        self._seen += 1
        chosen = self._seen == self._nth if self._nth else self._seen % self._every == 0  # type: ignore[operator]
        hit = chosen and (self._chance == 1.0 or self._random.random() < self._chance)  # type: ignore[operator]
        self.fired += hit
        return hit


def parse_fault_rules(given: Iterable[str], seed: str) -> list[FaultRule]:
    """Parse the rules of `--fault`, each a rule or the name of a file of rules.

    Args:
        given: rules; `@FILE` is replaced by the lines of that file, without comments, which begin with #.

    Raises:
        UsageError: a rule is not valid, or a file cannot be read.
    """
    rules = []
    for text in given:
        lines = [text]
        if text.startswith("@"):
            try:
                with open(text[1:], encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not imported for this alone
                    lines = file.read().splitlines()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
                raise UsageError(f"--fault {text}: can't be read: {reason}") from None
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                try:
                    rules.append(FaultRule(line.strip(), seed))
                except UsageError as error:
                    raise UsageError(f"{text[1:]}:{number}: {error}" if text.startswith("@") else str(error)) from None
    return rules


_SAID = "a fault, as --fault asked"


class FaultInjector(ActionBuffer):
    """Action buffer that applies fault rules to messages.

    Args:
        rules: each message gets the faults of all rules that apply to it.
        paced, apart: see ActionBuffer.

    Attributes:
        key: returns a number that is equal for requests of the host that match each other; None for no such numbers.
        faulted: these numbers of the requests to which a fault was applied: the host may send them again.
        faulted_ids: the ids of these requests: the host may cancel them.
    """

    __slots__ = (
        "_calls", "_child", "_delays", "_dialect", "_framing", "_host", "_random", "faulted", "faulted_ids", "key",
        "rules",
    )  # fmt: skip

    def __init__(
        self,
        rules: Sequence[FaultRule],
        dialect: Dialect,
        framing: Framing,
        seed: str,
        *,
        paced: bool = False,
        apart: bool = False,
    ) -> None:
        super().__init__(paced=paced, apart=apart)
        self.rules = rules
        self._dialect = dialect
        self._framing = framing
        self._host = framing.decoder()
        self._child = framing.decoder()
        self._calls: OpenCalls[bytes, ClassifiedMessage] = OpenCalls()  # of the host
        self._random = Random(seed)  # noqa: S311 - the same garbage in each replay
        self.key: Callable[[bytes], int] | None = None
        self._delays = False  # a message was delayed, and with it all messages after it
        self.faulted: set[int] = set()
        self.faulted_ids: set[bytes] = set()

    @property
    def plain(self) -> bool:
        return False

    @property
    def unused_rules(self) -> list[str]:
        return [rule.text for rule in self.rules if not rule.fired]

    def exit(self, status: int | str) -> None:
        """Exit. stderr is closed only now, since unused rules are reported there last."""
        while self._actions and isinstance(self._actions[-1], Close):
            self._actions.pop()
        super().exit(status)

    def on_host_data(self, data: bytes) -> None:
        """Store the requests of the host: a response has the method of its request."""
        self._host.receive_data(data)
        while (item := self._host.next_event()) is not None:
            if isinstance(item, Frame):
                message = self._dialect.classify(item.payload)
                if message.kind == "request" and message.key is not None:
                    self._calls.begin(message.key, message)

    def out(self, data: bytes, *, answers: bool = False) -> None:
        self._child.receive_data(data)
        while not self.over and (item := self._child.next_event()) is not None:
            if isinstance(item, Frame):
                self._apply_rules(item, answers=answers)
            else:
                self._send(item.wire, answers=answers)

    def _apply_rules(self, frame: Frame, *, answers: bool) -> None:
        message = self._dialect.classify(frame.payload)
        request = self._calls.end(message.key) if message.kind == "response" and message.key is not None else None
        method = request.method if request else message.method
        wires = [frame.wire]
        delay = 0.0
        faulted = False
        for rule in self.rules:
            if not rule.applies_to(message, method):
                continue
            faulted = True
            if rule.kind == "delay":
                delay += rule.value
            elif rule.kind == "exit":
                self.exit(int(rule.value))
                return
            elif rule.kind == "kill":
                wire = b"".join(wires)
                self._send(wire[: len(wire) // 2])
                self.exit("SIGKILL")
                return
            else:
                wires = self._replaced(rule, wires, frame, request)
        self._delays = self._delays or delay > 0
        if (faulted or self._delays) and message.kind != "notification":
            # A request of the child may block any open call.
            open_calls = [call for calls in self._calls.values() for call in calls]
            for call in [request] if request else open_calls:
                if self.key is not None:
                    self.faulted.add(self.key(call.text.encode("utf-8", "surrogateescape")))
                if call.key is not None:
                    self.faulted_ids.add(call.key)
        self._send(b"".join(wires), delay, answers=answers)

    def _replaced(
        self, rule: FaultRule, wires: list[bytes], frame: Frame, request: ClassifiedMessage | None
    ) -> list[bytes]:
        """Return the bytes that replace these bytes."""
        size = int(rule.value)
        if rule.kind == "drop":
            return []
        if rule.kind == "duplicate":
            return wires * 2
        if rule.kind == "cut":
            return [wire[: len(wire) // 2] for wire in wires[:1]]
        if rule.kind == "garbage":
            # Not a message in any framing: no digit begins a length, no brace an object.
            letters = bytes(self._random.choice(b"abcdefghijklmnopqrstuvwxyz ~%") for _ in range(size - 1))
            return [letters + b"\n" if size else b"", *wires]
        if rule.kind == "oversized":
            padding = size - len(frame.payload)
            return [self._framing.encode(frame.payload + b" " * padding, frame.head)] if padding > 0 else wires
        refusal = self._dialect.refusal(request, _SAID, {"fault": rule.text}) if request else None
        if not refusal:
            return wires
        # The protocol's error response, with the code of the rule if it has codes.
        return [self._framing.encode(refusal.replace(b'"code":%d' % NOT_RECORDED, b'"code":%d' % size, 1))]

    def _send(self, data: bytes, delay: float = 0.0, *, answers: bool = False) -> None:
        if not delay:
            super().out(data, answers=answers)
            return
        self.separate(answers=answers)
        self._flush()
        self.write_out(data, delay)
        self.size += len(data)
