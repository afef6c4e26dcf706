"""Expectations on text: output of programs, content of files, output of agents."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, UnsetType

from ext_sdk.core import regex
from ext_sdk.core.regex import Searcher, SearchFailed

from .check import Check, Expectation, Json, quoted, shown, text_lines
from .documents import FORMAT_NAMES, Format, NotDocument, parse_document
from .extraction import Extract, extracted, read_document
from .json_equality import Lists, TooManyComparisons, differs
from .json_expectation import JsonExpectation, check_json, shown_difference
from .json_schema import Schema, SchemaFile, check_against_schemas
from .json_schema import problem as schema_problem
from .numbers import Integer, check_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .check import Redact

Part = Annotated[str, Meta(min_length=1)]  # every text contains the empty one
Parts = Part | Annotated[list[Part], Meta(min_length=1)]
_HOW = ("ignoreCase", "lists", "format", "extract")
_OF_DOCUMENT = ("json", "jsonEquals", "jsonContains", "jsonSchema", "jsonSchemaFile")
T = TypeVar("T")


class TextExpectation(Expectation):
    """Expectation on a text; all given fields must hold.

    A line ends with LF or CR LF. `equals`, `endsWith` and `lines` ignore one final line ending on both sides: output of
    programs and YAML blocks have it, command lines do not. `exactly` ignores nothing.
    """

    equals: Annotated[str | UnsetType, Meta(description="This text; one final line ending is ignored")] = UNSET
    exactly: Annotated[str | UnsetType, Meta(description="This text, including line endings")] = UNSET
    contains: Annotated[Parts | UnsetType, Meta(description="All of these")] = UNSET
    contains_any: Annotated[Parts | UnsetType, Meta(description="At least one of these")] = UNSET
    not_contains: Annotated[Parts | UnsetType, Meta(description="None of these")] = UNSET
    starts_with: Annotated[Part | UnsetType, Meta(description="Beginning of the text")] = UNSET
    ends_with: Annotated[Part | UnsetType, Meta(description="End of the text; one final line ending is ignored")] = (
        UNSET
    )
    matches: Annotated[
        Parts | UnsetType, Meta(description="Regular expressions (Python's re), all found; (?m) for ^ and $ at lines")
    ] = UNSET
    not_matches: Annotated[Parts | UnsetType, Meta(description="Regular expressions, none found")] = UNSET
    lines: Annotated[list[str] | UnsetType, Meta(description="These lines, in this order")] = UNSET
    contains_lines: Annotated[Parts | UnsetType, Meta(description="Each must be a complete line")] = UNSET
    line_count: Annotated[Integer | UnsetType, Meta(description="Number of lines")] = UNSET
    empty: Annotated[bool | UnsetType, Meta(description="True: no characters; false: at least one")] = UNSET
    json: Annotated[
        Annotated[list[JsonExpectation], Meta(min_length=1)] | UnsetType,
        Meta(description="Checks of values in the text, which must be JSON"),
    ] = UNSET
    json_equals: Annotated[Json | UnsetType, Meta(description="JSON equal to this, in any order of members")] = UNSET
    json_contains: Annotated[
        Json | UnsetType, Meta(description="As jsonEquals, but objects may have further members")
    ] = UNSET
    json_schema: Annotated[
        Schema | UnsetType,
        Meta(
            description="JSON Schema that the document must be valid for; external references are not fetched. "
            "`format` is checked; unknown keywords and formats are refused, except x-…"
        ),
    ] = UNSET
    json_schema_file: Annotated[SchemaFile | UnsetType, Meta(description="JSON Schema in a file of the workdir")] = (
        UNSET
    )
    format: Annotated[
        Format,
        Meta(
            description="Format of the text, for the json… members. jsonLines: an array of the lines; yaml: an array "
            "if there are several documents; xml: attributes are @NAME, text is #text, repeated elements are an array"
        ),
    ] = "json"
    extract: Annotated[
        Extract | UnsetType,
        Meta(
            description="Part of the text for the json… members; all of it by default. fenced: the first fenced code "
            "block of this format; first: the first value of this format with members or items"
        ),
    ] = UNSET
    lists: Annotated[
        Lists,
        Meta(
            description="Arrays in jsonEquals and jsonContains. unordered: the same items in any order; "
            "ordered: these in their order, with others between; subset: these in any order, with others"
        ),
    ] = "exact"
    ignore_case: Annotated[bool, Meta(description="Except in JSON")] = False

    def __post_init__(self) -> None:
        self.refuse_empty(besides=_HOW)
        for name in ("matches", "not_matches"):
            for pattern in _many(getattr(self, name)):
                if problem := regex.problem(pattern):
                    raise ValueError(f"{pattern!r:.100} is {problem}")
        if self.lists != "exact" and self.json_equals is UNSET and self.json_contains is UNSET:
            raise ValueError("`lists` applies to jsonEquals and jsonContains; neither is given")
        if (self.format != "json" or self.extract is not UNSET) and not set(_OF_DOCUMENT) & set(self.given()):
            raise ValueError(f"`format` and `extract` apply to {', '.join(_OF_DOCUMENT)}; none is given")
        if self.json_schema is not UNSET and (wrong := schema_problem(self.json_schema)):
            raise ValueError(f"jsonSchema: {wrong}")


# As users write it: a text that it must equal, or an object.
Text = str | TextExpectation


def check_text(
    expectation: Text,
    text: str,
    *,
    where: str,
    searcher: Searcher | None = None,
    redact: Redact = str,
    workdir: Path | None = None,
) -> list[Check]:
    """Check a text against an expectation.

    Args:
        expectation: the expected text, except for one final line ending, or a TextExpectation.
        where: name of the text in messages: `stdout`.
        searcher: runs the regular expressions. Default: a new one, which is closed at the end.
        redact: redacts the parts of the text that are shown: `context.secrets.redact`.
        workdir: folder of `jsonSchemaFile`: `context.workdir`; without it, that fails.

    Returns:
        One Check for each comparison.

    Raises:
        OperationFailed: a schema or its file is not usable, whatever the text is.
    """
    wanted = TextExpectation(equals=expectation) if isinstance(expectation, str) else expectation
    if searcher is None:
        with Searcher() as own:
            return check_text(wanted, text, where=where, searcher=own, redact=redact, workdir=workdir)
    comparison = _Comparison(wanted, text, where, searcher, redact)
    return [*comparison.checks(), *comparison.document_checks(workdir)]


def without_final_line_ending(text: str) -> str:
    """Return the text without its final line ending, if it has one."""
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def lines_of(text: str) -> list[str]:
    """Return the lines, without their line endings; a final line ending begins no further line."""
    if not text:
        return []
    return [line.removesuffix("\r") for line in without_final_line_ending(text).split("\n")]


class _Comparison:
    """Comparisons of one text with an expectation."""

    def __init__(self, wanted: TextExpectation, text: str, where: str, searcher: Searcher, redact: Redact) -> None:
        self._wanted = wanted
        self._text = text
        self._where = where
        self._searcher = searcher
        self._redact = redact
        self._fold: Callable[[str], str] = str.casefold if wanted.ignore_case else str

    def checks(self) -> list[Check]:
        """Make the comparisons of the text."""
        return [*self._whole(), *self._parts(), *self._patterns(), *self._lines()]

    def _check(self, ok: bool, what: str, expected: str = "") -> Check:
        """Return a check that shows the text if it fails."""
        if ok:
            return Check(ok, what, expected, where=self._where)
        lines = text_lines(self._text, f"expected {what} {expected}".rstrip(), self._redact)
        return Check(ok, what, expected, quoted(self._text, self._redact), where=self._where, lines=lines)

    def _difference(self, ok: bool, what: str, expected: str, found: str) -> Check:
        """Return a check that shows the difference of two texts if it fails."""
        return Check.of_texts(ok, what, expected, found, where=self._where, redact=self._redact)

    def _quoted(self, *parts: str) -> str:
        return ", ".join(quoted(part, self._redact) for part in parts)

    def _whole(self) -> Iterator[Check]:
        wanted, fold = self._wanted, self._fold
        for what, whole, trimmed in (
            ("to equal", wanted.equals, without_final_line_ending),
            ("to be exactly", wanted.exactly, str),
        ):
            if isinstance(whole, str):
                expected, found = trimmed(whole), trimmed(self._text)
                yield self._difference(fold(expected) == fold(found), what, expected, found)
        if isinstance(wanted.empty, bool):
            yield self._check((not self._text) == wanted.empty, "to be empty" if wanted.empty else "not to be empty")

    def _parts(self) -> Iterator[Check]:
        wanted, fold = self._wanted, self._fold
        text = fold(self._text)
        for part in _many(wanted.contains):
            yield self._check(fold(part) in text, "to contain", self._quoted(part))
        for part in _many(wanted.not_contains):
            yield self._unwanted(text.find(fold(part)), text, "not to contain", part)
        if any_of := _many(wanted.contains_any):
            yield self._check(any(fold(part) in text for part in any_of), "to contain one of", self._quoted(*any_of))
        if isinstance(wanted.starts_with, str):
            start = wanted.starts_with
            yield self._check(text.startswith(fold(start)), "to start with", self._quoted(start))
        if isinstance(wanted.ends_with, str):
            end, trimmed = (without_final_line_ending(text) for text in (wanted.ends_with, self._text))
            yield self._check(fold(trimmed).endswith(fold(end)), "to end with", self._quoted(wanted.ends_with))

    def _patterns(self) -> Iterator[Check]:
        for what, patterns in (("to match", self._wanted.matches), ("not to match", self._wanted.not_matches)):
            for pattern in _many(patterns):
                try:
                    match = self._searcher.search(pattern, self._text, ignore_case=self._wanted.ignore_case)
                except SearchFailed as error:
                    failed = f"{what} {self._quoted(pattern)}"
                    yield Check.failed(failed, f"an error: {error}", where=self._where)
                    continue
                if what == "to match":
                    yield self._check(match is not None, what, self._quoted(pattern))
                else:
                    yield self._unwanted(match.start if match else -1, self._text, what, pattern)

    def _unwanted(self, at: int, text: str, what: str, unwanted: str) -> Check:
        """Return a check with the line that holds an unwanted text at position `at`; -1: it was not found."""
        check = self._check(at < 0, what, self._quoted(unwanted))
        # A text with secrets is not split into lines: one may hold only a part of a secret.
        if at >= 0 and "\n" in text and self._redact(text) == text:
            line = text[text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
            check.found = f"{quoted(line)} in line {text.count(chr(10), 0, at) + 1}"
            check.lines = ()
        return check

    def _lines(self) -> Iterator[Check]:
        wanted, lines = self._wanted, lines_of(self._text)
        folded = list(map(self._fold, lines))
        if not isinstance(wanted.lines, UnsetType):
            number = len(wanted.lines)
            what = f"to be {number} line{'' if number == 1 else 's'}:"
            same = list(map(self._fold, wanted.lines)) == folded
            yield self._difference(same, what, "\n".join(wanted.lines), "\n".join(lines))
        for line in _many(wanted.contains_lines):
            yield self._check(self._fold(line) in folded, "to have the line", self._quoted(line))
        if not isinstance(wanted.line_count, UnsetType):
            yield from check_integer(wanted.line_count, len(lines), where=f"number of lines of {self._where}")

    def document_checks(self, workdir: Path | None) -> Iterator[Check]:
        """Make the comparisons of the document in the text."""
        wanted = self._wanted
        if not set(_OF_DOCUMENT) & set(wanted.given()):
            return
        try:
            if wanted.extract is UNSET:
                document = parse_document(self._text, wanted.format)
            else:
                document = read_document(self._text, wanted.format, wanted.extract, self._searcher)
        except (NotDocument, SearchFailed) as error:
            what = f"to {'be' if wanted.extract is UNSET else 'contain'} {FORMAT_NAMES[wanted.format]}"
            yield Check.failed(what, f"{quoted(self._text, self._redact)}: {error}", where=self._where)
            return
        checks = list(self._comparisons(document, workdir))
        failed = next((check for check in checks if not check.ok), None)
        if failed and wanted.extract is not UNSET:  # the part is often another than the author expects
            with suppress(SearchFailed):
                part = extracted(self._text, wanted.format, wanted.extract, self._searcher)
                failed.found += f", in the extracted part {quoted(part, self._redact)}"
        yield from checks

    def _comparisons(self, document: object, workdir: Path | None) -> Iterator[Check]:
        wanted = self._wanted
        if wanted.json_equals is not UNSET:
            yield self._document(wanted.json_equals, document, "to equal", partial=False)
        if wanted.json_contains is not UNSET:
            yield self._document(wanted.json_contains, document, "to contain", partial=True)
        for expectation in () if isinstance(wanted.json, UnsetType) else wanted.json:
            yield from check_json(
                expectation, document, where=self._where, searcher=self._searcher, redact=self._redact
            )
        if wanted.json_schema is not UNSET or wanted.json_schema_file is not UNSET:
            yield from check_against_schemas(
                wanted.json_schema,
                wanted.json_schema_file,
                document,
                where=self._where,
                workdir=workdir,
                searcher=self._searcher,
                redact=self._redact,
            )

    def _document(self, expected: object, document: object, what: str, *, partial: bool) -> Check:
        try:
            found = differs(
                expected, document, partial=partial, lists=self._wanted.lists, check_time=self._searcher.check_time
            )
        except RecursionError:
            return Check.failed("to be compared", "JSON that is nested too deeply", where=self._where)
        except (TooManyComparisons, SearchFailed) as error:
            return Check.failed("to be compared", f"an error: {error}", where=self._where)
        if found is None:
            return Check(ok=True, what=what, expected=shown(expected, self._redact), where=self._where)
        sides = shown_difference(found, self._redact)
        return Check(False, what, *sides, where=f"{self._where} at {found.path}")  # noqa: FBT003  # as Check has it


def _many(given: T | list[T] | UnsetType) -> list[T]:
    if isinstance(given, UnsetType):
        return []
    return given if isinstance(given, list) else [given]
