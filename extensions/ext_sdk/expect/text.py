"""Expectations on text: output of programs, content of files, answers of agents."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, UnsetType

from . import pattern
from .base import Expectation, Json
from .check import Check
from .excerpt import difference, quoted, shown
from .integer import Integer, check_integer
from .json_checks import JsonExpectation, check_json
from .json_values import MISSING, NotJson, differs, parse, type_name
from .pattern import Searcher, SearchFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Part = Annotated[str, Meta(min_length=1)]  # an empty text is contained in everything
Parts = Part | Annotated[list[Part], Meta(min_length=1)]
_HOW = ("ignoreCase",)
T = TypeVar("T")


class TextExpectation(Expectation, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a text must be; all that is given must hold.

    A line ends with LF or CR LF. `equals`, `endsWith` and `lines` ignore one line ending at the end, on both
    sides: programs and YAML blocks have it, command lines don't. `exactly` ignores nothing.
    """

    equals: Annotated[str | UnsetType, Meta(description="This text, but for one final line ending")] = UNSET
    exactly: Annotated[str | UnsetType, Meta(description="This text, to the last character")] = UNSET
    contains: Annotated[Parts | UnsetType, Meta(description="All of these")] = UNSET
    contains_any: Annotated[Parts | UnsetType, Meta(description="At least one of these")] = UNSET
    not_contains: Annotated[Parts | UnsetType, Meta(description="None of these")] = UNSET
    starts_with: Part | UnsetType = UNSET
    ends_with: Annotated[Part | UnsetType, Meta(description="But for one final line ending")] = UNSET
    matches: Annotated[
        Parts | UnsetType, Meta(description="Regular expressions (Python's re), all found; (?m) for ^ and $ at lines")
    ] = UNSET
    not_matches: Annotated[Parts | UnsetType, Meta(description="None found")] = UNSET
    lines: Annotated[list[str] | UnsetType, Meta(description="These lines, in this order")] = UNSET
    contains_lines: Annotated[Parts | UnsetType, Meta(description="Each is a whole line")] = UNSET
    line_count: Integer | UnsetType = UNSET
    empty: Annotated[bool | UnsetType, Meta(description="Whether there is no character at all")] = UNSET
    json: Annotated[
        Annotated[list[JsonExpectation], Meta(min_length=1)] | UnsetType,
        Meta(description="The text is JSON, with these places"),
    ] = UNSET
    json_equals: Annotated[Json | UnsetType, Meta(description="The text is this JSON; order of members is free")] = (
        UNSET
    )
    json_contains: Annotated[Json | UnsetType, Meta(description="The same, but objects may have further members")] = (
        UNSET
    )
    ignore_case: Annotated[bool, Meta(description="For all but JSON")] = False

    def __post_init__(self) -> None:
        self.refuse_empty(besides=_HOW)
        for name in ("matches", "not_matches"):
            for each in _many(getattr(self, name)):
                if wrong := pattern.problem(each):
                    raise ValueError(f"{each!r:.100} is {wrong}")


# As users write it: a text that it must equal, or an object.
Text = str | TextExpectation


def check_text(expectation: Text, text: str, *, where: str, searcher: Searcher | None = None) -> list[Check]:
    """Hold a text against an expectation.

    Args:
        expectation: a text it must equal but for one line ending at the end, or a TextExpectation.
        text: the text found.
        where: what it is, for the message: `stdout`.
        searcher: runs the regular expressions; one is made and ended where left out.

    Returns:
        One Check for each comparison.
    """
    wanted = TextExpectation(equals=expectation) if isinstance(expectation, str) else expectation
    if searcher is None:
        with Searcher() as own:
            return check_text(wanted, text, where=where, searcher=own)
    return [
        *_compare_whole(wanted, text, where),
        *_compare_parts(wanted, text, where),
        *_compare_patterns(wanted, text, where, searcher),
        *_compare_lines(wanted, text, where),
        *_compare_json(wanted, text, where, searcher),
    ]


def without_final_line_ending(text: str) -> str:
    """The text without the line ending at its end, where it has one."""
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def lines_of(text: str) -> list[str]:
    """The lines, without their endings; an empty text has none, and a line ending at the end begins no further one."""
    if not text:
        return []
    return [line.removesuffix("\r") for line in without_final_line_ending(text).split("\n")]


def _compare_whole(wanted: TextExpectation, text: str, where: str) -> list[Check]:
    fold = _fold(wanted)
    checks = []
    pairs = (
        ("to equal", wanted.equals, without_final_line_ending),
        ("to be exactly", wanted.exactly, str),
    )
    for what, whole, trimmed in pairs:
        if isinstance(whole, str):
            expected, found = difference(trimmed(whole), trimmed(text))
            checks.append(Check(fold(trimmed(whole)) == fold(trimmed(text)), what, expected, found, where=where))
    if isinstance(wanted.empty, bool):
        what = "to be empty" if wanted.empty else "not to be empty"
        checks.append(Check((not text) == wanted.empty, what, "", quoted(text), where=where))
    return checks


def _compare_parts(wanted: TextExpectation, text: str, where: str) -> list[Check]:
    fold, shown_text = _fold(wanted), quoted(text)
    folded = fold(text)

    def check(ok: bool, what: str, expected: str) -> Check:
        return Check(ok, what, expected, shown_text, where=where)

    checks = [check(fold(part) in folded, "to contain", quoted(part)) for part in _many(wanted.contains)]
    checks += [check(fold(part) not in folded, "not to contain", quoted(part)) for part in _many(wanted.not_contains)]
    if any_of := _many(wanted.contains_any):
        found = any(fold(part) in folded for part in any_of)
        checks.append(check(found, "to contain one of", ", ".join(map(quoted, any_of))))
    if isinstance(wanted.starts_with, str):
        start = fold(wanted.starts_with)
        checks.append(check(folded.startswith(start), "to start with", quoted(wanted.starts_with)))
    if isinstance(wanted.ends_with, str):
        end, trimmed = (fold(without_final_line_ending(each)) for each in (wanted.ends_with, text))
        checks.append(check(trimmed.endswith(end), "to end with", quoted(wanted.ends_with)))
    return checks


def _compare_patterns(wanted: TextExpectation, text: str, where: str, searcher: Searcher) -> list[Check]:
    checks = []
    for what, patterns, expected in (("to match", wanted.matches, True), ("not to match", wanted.not_matches, False)):
        for each in _many(patterns):
            try:
                found = searcher.search(each, text, ignore_case=wanted.ignore_case)
            except SearchFailed as error:
                checks.append(Check.failed(f"{what} {quoted(each)}", f"an error: {error}", where=where))
                continue
            seen = quoted(text) if expected or not found else f"{quoted(found.groups[0] or '')} in {quoted(text)}"
            checks.append(Check((found is not None) == expected, what, quoted(each), seen, where=where))
    return checks


def _compare_lines(wanted: TextExpectation, text: str, where: str) -> list[Check]:
    fold = _fold(wanted)
    lines = lines_of(text)
    checks = []
    if not isinstance(wanted.lines, UnsetType):
        expected, found = difference("\n".join(wanted.lines), "\n".join(lines))
        same = list(map(fold, wanted.lines)) == list(map(fold, lines))
        checks.append(Check(same, f"to be {_count(len(wanted.lines), 'line')}:", expected, found, where=where))
    folded = set(map(fold, lines))
    checks += [
        Check(fold(line) in folded, "to have the line", quoted(line), quoted(text), where=where)
        for line in _many(wanted.contains_lines)
    ]
    if not isinstance(wanted.line_count, UnsetType):
        checks += check_integer(wanted.line_count, len(lines), where=f"number of lines of {where}")
    return checks


def _compare_json(wanted: TextExpectation, text: str, where: str, searcher: Searcher) -> list[Check]:
    if not {"json", "jsonEquals", "jsonContains"} & set(wanted.given()):
        return []
    try:
        document = parse(text)
    except NotJson as error:
        return [Check.failed("to be JSON", f"{quoted(text)}: {error}", where=where)]
    checks = []
    for whole, what, partial in (
        (wanted.json_equals, "to equal", False),
        (wanted.json_contains, "to contain", True),
    ):
        if whole is not UNSET:
            checks.append(_compare_document(whole, document, what, partial, where))
    for each in () if isinstance(wanted.json, UnsetType) else wanted.json:
        checks += check_json(each, document, where=where, searcher=searcher)
    return checks


def _compare_document(expected: object, document: object, what: str, partial: bool, where: str) -> Check:
    try:
        difference = differs(expected, document, partial=partial)
    except RecursionError:
        return Check.failed("to be compared", "JSON that is nested too deeply", where=where)
    if difference is None:
        return Check(ok=True, what=what, expected=shown(expected), where=where)
    sides = (side if side is MISSING else f"{shown(side)} ({type_name(side)})" for side in difference[1:])
    expected_there, found_there = map(str, sides)
    return Check(ok=False, what=what, expected=expected_there, found=found_there, where=f"{where} at {difference.path}")


def _fold(wanted: TextExpectation) -> Callable[[str], str]:
    return str.casefold if wanted.ignore_case else str


def _many(given: T | list[T] | UnsetType) -> list[T]:
    if isinstance(given, UnsetType):
        return []
    return given if isinstance(given, list) else [given]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
