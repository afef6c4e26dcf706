"""Expectations, the results of their checks, and the text of failures: one paragraph for each, the difference first.

Values are quoted and short in messages. A failure that does not fit on one line has several, indented below the first.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from ext_sdk.args import Args
from ext_sdk.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_sdk.result import Outputs

    # Redacts a text. Texts are redacted before they are shortened: half a secret is not found.
    Redact = Callable[[str], str]

# Any JSON value. msgspec has no recursive aliases; decoded values are handled as `object`.
Json = Any


class Expectation(Args):
    """Base class of expectations. A field that was not given is UNSET, because `null` may be an expected value.

    `__post_init__` raises ValueError for an expectation that checks nothing or can't hold. The SDK reports it as an
    invalid argument, with its path, before anything runs.
    """

    def given(self, *, besides: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the names, as users write them, of the fields that were given.

        Args:
            besides: names to leave out, because they only configure the check.
        """
        pairs = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        return tuple([name for field, name in pairs if getattr(self, field) is not UNSET and name not in besides])

    def refuse_empty(self, *, besides: tuple[str, ...] = ()) -> None:
        """Raise ValueError if nothing is checked: such an expectation would always pass."""
        if not self.given(besides=besides):
            known = [name for name in self.__struct_encode_fields__ if name not in besides]
            raise ValueError(f"this checks nothing; give at least one of {', '.join(known)}")


MOST_FAILURES_SHOWN = 5  # the error text is read on a terminal
LINE = 120  # characters of a failure on one line, and of a line of a text that is shown
MOST_LINES = 12  # of a text or a difference in one failure
LAST_LINES = 7  # of them, those at the end of a text, where programs report errors
BEFORE_LINES = 2  # equal lines that are shown before the first that differs
WINDOW = 40  # lines that are compared from there on: comparing texts is quadratic
INDENT = "  "
ALIGNED = 80  # characters of name and expected value from which on both values have lines of their own


class Check:
    """Result of one comparison. str() is its text, which may have several lines.

    Attributes:
        ok: True if it holds.
        where: name of the value: `stdout`, `exitCode`, `report.json at $.items[0]`.
        what: the comparison, as text after "expected": `to contain`.
        expected: the expected value, quoted; "" if `what` includes it.
        found: the value found, quoted and shortened.
        lines: a text of several lines instead of expected and found, such as a difference; the first line follows
            `where`.
    """

    __slots__ = ("expected", "found", "lines", "ok", "what", "where")

    def __init__(
        self, ok: bool, what: str, expected: str = "", found: str = "", *, where: str, lines: Sequence[str] = ()
    ) -> None:
        self.ok = ok
        self.what = what
        self.expected = expected
        self.found = found
        self.where = where
        self.lines = tuple(lines)

    @classmethod
    def failed(cls, what: str, found: str, *, where: str) -> Check:
        """Return a comparison that was not possible: not JSON, no value at a path, a pattern that takes too long."""
        return cls(ok=False, what=what, found=found, where=where)

    @classmethod
    def of_texts(cls, ok: bool, what: str, expected: str, found: str, *, where: str, redact: Redact = str) -> Check:
        """Return a comparison of two texts that should be equal, which shows their first difference if it failed."""
        if ok:
            return cls(ok, what, quoted(expected, redact), where=where)
        pair = difference(expected, found, redact)
        return cls(ok, what, *pair, where=where, lines=_differing_lines(expected, found, redact))

    @property
    def brief(self) -> str:
        """The text on one line, for messages that list several."""
        expected = f"{self.what} {self.expected}".rstrip()
        if self.ok:
            return f"{self.where}: found {expected}"
        return f"{self.where}: expected {expected}, got {self.found}"

    def __str__(self) -> str:
        if self.ok:
            return self.brief
        if self.lines:
            first, *others = self.lines
            return "\n".join([f"{self.where}: {first}", *(INDENT + line for line in others)])
        if len(self.brief) <= LINE or "\n" in self.found:
            return self.brief
        first = f"{self.where}: expected {self.what} {self.expected}".rstrip()
        if not self.expected or len(first) <= ALIGNED:
            return f"{first}\n{INDENT}got {self.found}"
        head = f"expected {self.what}"  # expected above got: they are easy to compare
        return f"{self.where}:\n{INDENT}{head} {self.expected}\n{INDENT}{'got'.ljust(len(head))} {self.found}"

    def __repr__(self) -> str:
        return f"Check({self.ok}, {self.brief!r})"


def passed(checks: Sequence[Check]) -> bool:
    """Return True if there is at least one check and all passed."""
    return bool(checks) and all(check.ok for check in checks)


def summary(checks: Sequence[Check]) -> str:
    """Return the number of checks and failures: `3 checks passed`, `1 of 3 checks failed`."""
    failed = len([check for check in checks if not check.ok])
    noun = "check" if len(checks) == 1 else "checks"
    return f"{failed} of {len(checks)} {noun} failed" if failed else f"{len(checks)} {noun} passed"


def failures(checks: Sequence[Check], *, brief: bool = False) -> list[str]:
    """Return the text of each failed check: name, expected and found; long lists are shortened.

    Args:
        brief: each on one line.
    """
    failed = [check.brief if brief else str(check) for check in checks if not check.ok]
    more = len(failed) - MOST_FAILURES_SHOWN
    if more <= 1:  # one more line either way
        return failed
    return [*failed[:MOST_FAILURES_SHOWN], f"and {more} more"]


def failure_text(checks: Sequence[Check], *, brief: bool = False) -> str:
    """Return the failed checks as one text, each in lines of its own.

    Args:
        brief: all on one line, for a message that has further parts.
    """
    return ("; " if brief else "\n").join(failures(checks, brief=brief))


def conclude(checks: Sequence[Check], *, done: str, outputs: Outputs | None = None) -> Result:
    """Return the result of an operation that made these checks.

    Args:
        done: the action of the operation, for the message: `checked report.json`.
        outputs: outputs of the operation, also if checks failed.
    """
    message = f"{done}: {summary(checks)}"
    if passed(checks):
        return Result.ok(message, outputs=outputs)
    return Result.failed(message, error=failure_text(checks), outputs=outputs)


def section(title: str, text: str) -> str:
    """Return a text under a title, such as `stderr ends with`: on the same line if it is short, else in lines below.

    Of a long text the end is shown. It must be redacted.
    """
    lines = text.strip("\r\n").split("\n")
    if len(lines) == 1 and len(lines[0]) + len(title) <= LINE:
        return f"{title}: {_line(lines[0])}"
    return "\n".join([f"{title}:", *(INDENT + line for line in _shown_lines(lines, first=0))])


def text_lines(text: str, head: str, redact: Redact) -> list[str]:
    """Return `lines` of a Check that shows a text of several lines; an empty list for a text of one line.

    Args:
        head: the first line without the text found: `expected to contain "ready"`.
        redact: without a redaction there are no lines: a secret of several lines would not be found in them.
    """
    if redact is str:
        return []
    lines = redact(text).removesuffix("\n").split("\n")
    if len(lines) < 2:
        return []
    split = len(head) > LINE
    got = f"got {len(lines):,} lines:"
    shown = [f"| {line}" for line in _shown_lines(lines, first=MOST_LINES - LAST_LINES)]
    return [head, got, *(INDENT + line for line in shown)] if split else [f"{head}, {got}", *shown]


def _shown_lines(lines: Sequence[str], *, first: int) -> list[str]:
    """Return the first and the last lines, with a note on those between, each short and without control characters."""
    if len(lines) <= MOST_LINES:
        return [_line(line) for line in lines]
    last = MOST_LINES - first
    note = f"… {len(lines) - first - last:,} lines left out"
    return [*map(_line, lines[:first]), note, *map(_line, lines[-last:])]


def _line(line: str) -> str:
    """Return a line without control characters; of a long one the beginning, cut between words."""
    line = line.removesuffix("\r")
    if not line.isprintable() and not line.replace("\t", "").isprintable():
        line = _escaped(line)[1:-1]
    if len(line) <= LINE:
        return line
    return f"{_LAST_WORD.sub('', line[: LINE + 1])[:LINE]} … ({len(line):,} characters)"


def _differing_lines(expected: str, found: str, redact: Redact) -> list[str]:
    """Return `lines` of a Check with the lines that differ; none if one line has it all."""
    sides = [redact(text).split("\n") for text in (expected, found)]
    at = _first_difference(*sides)
    start = max(0, at - BEFORE_LINES)
    old, new = (lines[start : at + WINDOW] for lines in sides)
    long = any(len(line) > LINE for lines in sides for line in lines[at : at + 1])
    if redact is str or long or max(map(len, sides)) < 2 or min(map(len, sides)) <= at < 1:
        return []
    from difflib import SequenceMatcher

    # White space and control characters would not be seen.
    plain = all(line == line.rstrip() and line.isprintable() for line in (*old, *new))
    show = _line if plain else quoted
    shown: list[str] = []
    groups = list(SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(BEFORE_LINES))
    for tag, first, last, first_new, last_new in groups[0] if groups else ():
        sign = "  " if tag == "equal" else "- "
        shown += [sign + show(line) for line in old[first:last]]
        shown += [] if tag == "equal" else [f"+ {show(line)}" for line in new[first_new:last_new]]
    shown = shown[:MOST_LINES] + (["…"] if len(shown) > MOST_LINES or len(groups) > 1 else [])
    head = f"differs from the expected text from line {at + 1} on (- expected, + got):"
    return [head, *shown]


HEAD = 160  # characters at the beginning of a long text that are shown
TAIL = 60  # and at its end, where programs tend to report errors
BEFORE = 20  # characters shown before the first difference of two long lines


def quoted(text: str, redact: Redact = str) -> str:
    """Return a text in double quotes with control characters escaped; the beginning, end and length of a long one.

    It is cut between words, so that an unknown secret is shown completely or not at all.
    """
    text = redact(text)
    if len(text) <= HEAD + TAIL:
        return _escaped(text)
    head = _LAST_WORD.sub("", text[: HEAD + 1])[:HEAD]
    tail = _FIRST_WORD.sub("", text[-TAIL - 1 :])[-TAIL:]
    return f"{_escaped(head)[:-1]} … {_escaped(tail)[1:]} ({len(text):,} characters)"


def shown(value: object, redact: Redact = str) -> str:
    """Return a JSON value on one line, shortened like a text."""
    if isinstance(value, str):
        return quoted(value, redact)
    text = redact(json.dumps(value, ensure_ascii=False, default=repr))
    if len(text) <= HEAD + TAIL:
        return text
    return f"{_LAST_WORD.sub('', text[: HEAD + 1])[:HEAD]} … ({len(text):,} characters)"


def redact_named(place: str, redact: Redact) -> Redact:
    """Return a redaction of values by the name next to them, which may show that a value is a secret.

    Args:
        place: path of the value, or its name: `$.user.password`, `Authorization`.
    """
    name = _LAST_NAME.search(place)
    prefix = f"{name[1]}: " if name else ""
    return lambda text: redact(prefix + text).removeprefix(prefix)


def difference(expected: str, found: str, redact: Redact = str) -> tuple[str, str]:
    """Return the parts to show of two texts that should be equal: both if short, else the first line that differs.

    Returns:
        Expected and found, quoted, with number and column of the line if they are not complete.
    """
    expected, found = redact(expected), redact(found)
    if len(expected) <= HEAD and len(found) <= HEAD and expected.count("\n") + found.count("\n") <= 2:
        return quoted(expected), quoted(found)
    expected_lines, found_lines = expected.split("\n"), found.split("\n")
    at = _first_difference(expected_lines, found_lines)
    pair = [lines[at] if at < len(lines) else None for lines in (expected_lines, found_lines)]
    column = _first_difference(pair[0] or "", pair[1] or "") if None not in pair else 0
    start = 0
    if column > HEAD:
        word = _LAST_WORD.search((pair[1] or "")[: column - BEFORE])
        start = word.start() if word else column - BEFORE
    cut = any(line and len(line) > HEAD for line in pair)
    place = f"line {at + 1}" + (f", column {column + 1}" if cut else "")
    first, second = ("nothing" if line is None else quoted(line[start:]) for line in pair)
    return f"{first} in {place}", f"{second} there"


# Characters of tokens, keys and encoded values.
_LAST_WORD = re.compile(r"[\w+/=.~%:@-]+\Z")
_LAST_NAME = re.compile(r"([\w-]+)(?:['\"]\])?\Z")
_FIRST_WORD = re.compile(r"\A[\w+/=.~%:@-]+")


# JSON does not escape these: controls of terminals, line separators, and marks that reverse the order of the text.
_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def _escaped(text: str) -> str:
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    for at, (one, other) in enumerate(zip_longest(left, right)):
        if one != other:
            return at
    return len(left)
