"""Faults of a replayed child (`--fault`): the rules, and an action buffer that applies them to messages.

KIND[=VALUE][@WHERE,WHERE…]

delay=2s                        all messages
drop@method=execute,nth=2       the response to the second call of `execute`
error=-32603@chance=0.1         one of ten responses, at random; the same ones for the same --seed
"""

from __future__ import annotations

from random import Random

from ext_recorder.errors import UsageError
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


def _seconds(text: str) -> float:
    number = text.rstrip("aums")
    unit = _UNITS.get(text[len(number) :], 0.0)
    value = float(number) * unit
    if not unit or not 0 <= value <= _LONGEST_S:
        raise ValueError
    return value


def _size(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= value <= _LARGEST_BYTES:
        raise ValueError
    return value


def _code(text: str) -> int:
    value = int(text)
    if not -(2**31) <= value < 2**31:
        raise ValueError
    return value


def _exit_code(text: str) -> int:
    value = _size(text)
    if value > 255:
        raise ValueError
    return value


def _probability(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError
    return value


def _count(text: str) -> int:
    value = _size(text)
    if not value:
        raise ValueError
    return value


class FaultKind:
    """A kind of fault.

    Attributes:
        help: what it does, in a line.
        expected: what its value is, for messages; "" for none.
        read: its value out of a text; raises ValueError.
        default: its value when none is given; None where one has to be.
    """

    __slots__ = ("default", "expected", "help", "read")

    def __init__(
        self, help: str, expected: str = "", read: Callable[[str], float] | None = None, default: float | None = 0
    ) -> None:
        self.help = help
        self.expected = expected
        self.read = read
        self.default = default


KINDS = {
    "delay": FaultKind("the message comes so much later", "a time, as 200ms or 2s", _seconds, None),
    "drop": FaultKind("the message does not come"),
    "duplicate": FaultKind("the message comes twice"),
    "cut": FaultKind("the first half of the message comes, and no end of it"),
    "garbage": FaultKind("bytes that are no message come before it", "a number of bytes", _size, GARBAGE_BYTES),
    "oversized": FaultKind("the message is padded with blanks", "a number of bytes", _size, OVERSIZED_BYTES),
    "error": FaultKind("an error comes instead of the answer", "an error code, as -32603", _code, -32603),
    "exit": FaultKind("the child ends before the message", "an exit code", _exit_code, 1),
    "kill": FaultKind("the child is killed in the middle of the message"),
}

PLACES: dict[str, tuple[str, Callable[[str], object]]] = {
    "method": ("a method, as execute", str),
    "nth": ("which of those that fit, from 1", _count),
    "every": ("N, for each Nth of those that fit", _count),
    "chance": ("a probability from 0 to 1", _probability),
}


class FaultRule:
    """One rule.

    Args:
        text: as it was given.
        seed: of its random choice.

    Attributes:
        text: as it was given.
        kind: a name in KINDS.
        value: of the fault.
        fired: number of messages that it was applied to.

    Raises:
        UsageError: the rule is not of this form.
    """

    __slots__ = ("_chance", "_every", "_lot", "_method", "_nth", "_seen", "fired", "kind", "text", "value")

    def __init__(self, text: str, seed: str) -> None:
        self.text = text
        what, _, where = text.partition("@")
        self.kind, equals, value = what.strip().partition("=")
        if self.kind not in KINDS:
            raise UsageError(f"--fault {text}: expected one of {', '.join(KINDS)} before the @, found {self.kind!r}")
        self.value = _value(text, self.kind, value.strip(), given=bool(equals))
        places = _places(text, where)
        self._method = places.get("method")
        self._nth = places.get("nth", 0)
        self._every = places.get("every", 1)
        self._chance = places.get("chance", 1.0)
        self._lot = Random(f"{seed} {text}")  # noqa: S311 - a lot that comes out the same each time
        self._seen = 0
        self.fired = 0

    def applies_to(self, message: ClassifiedMessage, method: str) -> bool:
        """Return True if the rule applies to a message of the child. Call it once for each message, in their order.

        Args:
            message: what it is.
            method: its method; of an answer, that of the request.
        """
        if self._method not in {None, method} or (self.kind == "error" and message.kind != "response"):
            return False
        self._seen += 1
        chosen = self._seen == self._nth if self._nth else self._seen % self._every == 0  # type: ignore[operator]
        hit = chosen and (self._chance == 1.0 or self._lot.random() < self._chance)  # type: ignore[operator]
        self.fired += hit
        return hit


def _value(text: str, kind: str, value: str, *, given: bool) -> float:
    one = KINDS[kind]
    if not given:
        if one.default is None:
            raise UsageError(f"--fault {text}: expected {one.expected} after {kind}=")
        return one.default
    if one.read is None:
        raise UsageError(f"--fault {text}: {kind} has no value")
    try:
        return one.read(value)
    except ValueError:
        raise UsageError(f"--fault {text}: expected {one.expected} after {kind}=, found {value!r}") from None


def _places(text: str, where: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for part in where.split(",") if where else ():
        name, _, value = part.strip().partition("=")
        if name not in PLACES:
            raise UsageError(f"--fault {text}: expected {', '.join(PLACES)} after the @, found {name!r}")
        expected, read = PLACES[name]
        try:
            found[name] = read(value)
        except ValueError:
            raise UsageError(f"--fault {text}: expected {expected} after {name}=, found {value!r}") from None
        if name in {"nth", "every"} and {"nth", "every"} <= found.keys():
            raise UsageError(f"--fault {text}: nth and every exclude each other")
    return found


def parse_fault_rules(given: Iterable[str], seed: str) -> list[FaultRule]:
    """Parse the rules of `--fault`, each a rule or the name of a file of rules.

    Args:
        given: rules; "FILE" behind an @ stands for the lines of that file, of which those with a # in front are for
            people.
        seed: makes lots come out the same.

    Raises:
        UsageError: a rule can't be understood, a file can't be read.
    """
    rules = []
    for text in given:
        for number, line in enumerate(_lines(text[1:]) if text.startswith("@") else [text], 1):
            if line.strip() and not line.lstrip().startswith("#"):
                try:
                    rules.append(FaultRule(line.strip(), seed))
                except UsageError as error:
                    raise UsageError(f"{text[1:]}:{number}: {error}" if text.startswith("@") else str(error)) from None
    return rules


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not imported for this alone
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise UsageError(f"--fault @{path}: can't be read: {reason}") from None


_SAID = "a fault, as --fault asked"


class FaultInjector(ActionBuffer):
    """Action buffer that applies fault rules to messages.

    Args:
        rules: each message gets the faults of all rules that apply to it.
        dialect: what a message is.
        framing: what goes around it.
        seed: of the garbage.
        paced, apart: see ActionBuffer.

    Attributes:
        key: returns a number that is equal for requests of the host that match each other; None: none is wanted.
        faulted: these numbers of the requests that a fault applied to: the host may send them again.
        faulted_ids: their ids: the host may cancel them.
    """

    __slots__ = (
        "_calls", "_child", "_delays", "_dialect", "_framing", "_host", "_lot", "faulted", "faulted_ids", "key",
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
        self._calls: dict[bytes, ClassifiedMessage] = {}  # the host's open calls
        self._lot = Random(seed)  # noqa: S311 - garbage that is the same each time
        self.key: Callable[[bytes], int] | None = None
        self._delays = False  # a message was delayed, and with it those behind it
        self.faulted: set[int] = set()
        self.faulted_ids: set[bytes] = set()

    @property
    def plain(self) -> bool:
        return False

    @property
    def unused_rules(self) -> list[str]:
        return [rule.text for rule in self.rules if not rule.fired]

    def exit(self, status: int | str) -> None:
        """Exit. Close stderr only now: unused rules are reported there last."""
        while self._actions and isinstance(self._actions[-1], Close):
            self._actions.pop()
        super().exit(status)

    def on_host_data(self, data: bytes) -> None:
        """Classify a message of the host; a response gets the method of its request."""
        self._host.receive_data(data)
        while (item := self._host.next_event()) is not None:
            if isinstance(item, Frame):
                message = self._dialect.classify(item.payload)
                if message.kind == "request" and message.key is not None:
                    self._calls[message.key] = message

    def out(self, data: bytes, *, answers: bool = False) -> None:
        self._child.receive_data(data)
        while not self.over and (item := self._child.next_event()) is not None:
            if isinstance(item, Frame):
                self._spoil(item, answers=answers)
            else:
                self._say(item.wire, answers=answers)

    def _spoil(self, frame: Frame, *, answers: bool) -> None:
        message = self._dialect.classify(frame.payload)
        request = self._calls.pop(message.key, None) if message.kind == "response" and message.key is not None else None
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
            elif rule.kind in {"exit", "kill"}:
                self._end(rule, wires)
                return
            else:
                wires = self._spoiled(rule, wires, frame, request)
        self._delays = self._delays or delay > 0
        if (faulted or self._delays) and message.kind != "notification":
            self._note([request] if request else list(self._calls.values()))
        self._say(b"".join(wires), delay, answers=answers)

    def _note(self, requests: list[ClassifiedMessage]) -> None:
        """Note the requests of the host that a fault applied to: their responses, or what they wait for."""
        for request in requests:
            if self.key is not None:
                self.faulted.add(self.key(request.text.encode("utf-8", "surrogateescape")))
            if request.key is not None:
                self.faulted_ids.add(request.key)

    def _spoiled(
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
            return [self._garbage(size), *wires]
        if rule.kind == "oversized":
            padding = size - len(frame.payload)
            return [self._framing.encode(frame.payload + b" " * padding, frame.head)] if padding > 0 else wires
        refusal = self._dialect.refusal(request, _SAID, {"fault": rule.text}) if request else None
        return [self._framing.encode(_with_code(refusal, size))] if refusal else wires

    def _garbage(self, size: int) -> bytes:
        """Return bytes that are not a message in any framing: no digit begins a length, no brace an object."""
        letters = bytes(self._lot.choice(b"abcdefghijklmnopqrstuvwxyz ~%") for _ in range(max(0, size - 1)))
        return letters + b"\n" if size else b""

    def _end(self, rule: FaultRule, wires: list[bytes]) -> None:
        if rule.kind == "exit":
            self.exit(int(rule.value))
            return
        whole = b"".join(wires)
        self._say(whole[: len(whole) // 2])
        self.exit("SIGKILL")

    def _say(self, data: bytes, delay: float = 0.0, *, answers: bool = False) -> None:
        if not delay:
            super().out(data, answers=answers)
            return
        self._turn(answers=answers)
        self._flush()
        self._write(data, delay)
        self.size += len(data)


def _with_code(refusal: bytes, code: int) -> bytes:
    """Return the protocol's error response, with another code if it has one."""
    from ext_recorder.protocols.dialect import NOT_RECORDED

    return refusal.replace(b'"code":%d' % NOT_RECORDED, b'"code":%d' % code, 1)
