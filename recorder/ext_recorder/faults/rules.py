"""Rules: which fault befalls which of the child's messages.

KIND[=VALUE][@WHERE,WHERE…]

delay=2s                        all messages
drop@method=execute,nth=2       the answer to the second call of `execute`
error=-32603@chance=0.1         every tenth answer, by lot; the same ones for the same --seed
"""

from __future__ import annotations

from random import Random

from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ext_sdk.protocols.dialect import Classified

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


class Kind:
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
    "delay": Kind("the message comes so much later", "a time, as 200ms or 2s", _seconds, None),
    "drop": Kind("the message does not come"),
    "duplicate": Kind("the message comes twice"),
    "cut": Kind("the first half of the message comes, and no end of it"),
    "garbage": Kind("bytes that are no message come before it", "a number of bytes", _size, GARBAGE_BYTES),
    "oversized": Kind("the message is padded with blanks", "a number of bytes", _size, OVERSIZED_BYTES),
    "error": Kind("an error comes instead of the answer", "an error code, as -32603", _code, -32603),
    "exit": Kind("the child ends before the message", "an exit code", _exit_code, 1),
    "kill": Kind("the child is killed in the middle of the message"),
}
PLACES: dict[str, tuple[str, Callable[[str], object]]] = {
    "method": ("a method, as execute", str),
    "nth": ("which of those that fit, from 1", _count),
    "every": ("N, for each Nth of those that fit", _count),
    "chance": ("a probability from 0 to 1", _probability),
}


class Rule:
    """One rule.

    Args:
        text: as it was given.
        seed: of its lot.

    Attributes:
        text: as it was given.
        kind: a name in KINDS.
        value: of the fault.
        fired: how many messages it has befallen.

    Raises:
        UsageError: it can't be understood.
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

    def befalls(self, message: Classified, method: str) -> bool:
        """Does this message of the child meet it? To be asked once for each message, in their order.

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


def read_rules(given: Iterable[str], seed: str) -> list[Rule]:
    """The rules of `--fault`, each a rule or the name of a file of rules.

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
                    rules.append(Rule(line.strip(), seed))
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
