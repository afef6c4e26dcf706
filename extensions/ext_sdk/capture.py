"""Captures: parts of a text that become outputs of an operation, and secret ones that only later steps get.

An extension adds its own sources to CaptureArgs, and passes `capture_all` a function that finds one capture in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.args import Args
from ext_sdk.expect.documents import Format, NotDocument
from ext_sdk.expect.extraction import BrokenDocument, Extract, extracted
from ext_sdk.expect.regex import Searcher, SearchFailed, problem

from .capture_filters import Filter, NotFound, Unreadable, filtered, find_by_json, find_by_regex
from .errors import InvalidArgs
from .expect.check import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .context import Secrets

LONGEST_NAME = 100  # characters


class CaptureArgs(Args):
    """Arguments that captures of all extensions share. Subclasses narrow `from_` to their sources."""

    from_: str = field(default="", name="from")
    regex: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType,
        Meta(description="Regular expression (Python's re); its first group, or the entire match if it has none"),
    ] = UNSET
    group: Annotated[int | str | UnsetType, Meta(description="Number or name of another group of `regex`")] = UNSET
    json: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType,
        Meta(description="JSONPath (RFC 9535) to one value; a string is output as it is, another value as JSON"),
    ] = UNSET
    format: Annotated[Format, Meta(description="Format of the text in which `json` selects a value")] = "json"
    extract: Annotated[
        Extract | UnsetType,
        Meta(
            description="Part of the text to search. fenced: the first fenced code block of this format; first: the "
            "first value of this format"
        ),
    ] = UNSET
    filters: Annotated[list[Filter], Meta(description="Changes of the value, in this order")] = field(
        default_factory=list
    )
    default: Annotated[
        str | UnsetType, Meta(description="Value if nothing is found; if omitted, the operation fails")
    ] = UNSET
    secret: Annotated[
        bool, Meta(description="Available to later steps only, as ${NAME.key}, and redacted in everything else")
    ] = False

    def __post_init__(self) -> None:
        if self.group is not UNSET and self.regex is UNSET:
            raise ValueError("`group` requires `regex`")
        if self.format != "json" and self.json is UNSET and self.extract is UNSET:
            raise ValueError("`format` requires `json` or `extract`")
        if self.regex is not UNSET and (wrong := problem(self.regex)):
            raise ValueError(f"regex: {self.regex!r} is {wrong}")
        if self.json is not UNSET:
            from .expect import json_path  # imports the JSONPath library

            if wrong := json_path.problem(self.json):
                raise ValueError(f"json: {wrong}")


C = TypeVar("C", bound=CaptureArgs)


class Captured:
    """Captured values of one operation.

    Attributes:
        values: outputs by name.
        secrets: secret outputs by name, for later steps only.
        failures: a failed check for each capture that found nothing.
        withheld: names of the texts that contain, or may contain, a secret that cannot be redacted in them.
    """

    __slots__ = ("failures", "secrets", "values", "withheld")

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.failures: list[Check] = []
        self.withheld: set[str] = set()


def check_names(captures: Collection[str], reserved: Collection[str]) -> None:
    """Check the names of captures.

    Args:
        reserved: names of other outputs.

    Raises:
        InvalidArgs: a name is reserved, or cannot be the name of an output.
    """
    for name in captures:
        if name in reserved:
            raise InvalidArgs(f"capture.{name}", "another output has this name; choose a different one")
        if not name or "." in name or len(name) > LONGEST_NAME:
            text = f"expected a name of 1 to {LONGEST_NAME} characters without dots (hosts split names at dots)"
            raise InvalidArgs("capture", f"{text}, found {name!r}")


def capture_all(
    captures: Mapping[str, C], find: Callable[[C], str], texts: Mapping[str, str], secrets: Secrets, searcher: Searcher
) -> Captured:
    """Capture values, and register the secret ones for redaction.

    Args:
        find: returns the value of a capture; raises NotFound.
        texts: shown texts by name, which is that of their source. One is withheld if a secret cannot be redacted in it,
            or was to be captured from it and not found: it may be there in another form.
        searcher: for filters.
    """
    captured = Captured()
    for name, capture in captures.items():
        raw = ""
        try:
            raw = find(capture)
            value = filtered(raw, capture.filters, searcher, secret=capture.secret)
        except NotFound as reason:
            if capture.default is UNSET or isinstance(reason, Unreadable) or isinstance(reason.__cause__, SearchFailed):
                captured.failures.append(Check.failed("to be found", str(reason), where=f"capture {name}"))
                if capture.secret:
                    captured.withheld |= {capture.from_} & texts.keys() or texts.keys()
                continue
            value = capture.default
        if capture.secret:
            captured.secrets[name] = value
            secrets.add(f"capture.{name}", value)
            if raw != value:  # the text has the value as it was before the filters
                secrets.add(f"capture.{name}.raw", raw)
            if value and secrets.redact(value) == value:  # too short to be redacted
                captured.withheld |= {source for source, text in texts.items() if value in text}
        else:
            captured.values[name] = value
    return captured


def find_in_text(capture: CaptureArgs, text: str, searcher: Searcher, *, kind: str = "") -> str:
    """Return the part of a text that `json` or `regex` selects, or all of it.

    Raises:
        NotFound: see `find_by_json`; Unreadable if the part to extract is not valid.
    """
    try:
        text = extracted(text, capture.format, capture.extract, searcher)
    except NotDocument as error:
        reason = Unreadable if isinstance(error, BrokenDocument) else NotFound
        raise reason(f"no part of {capture.from_} to search: {error}") from None
    except SearchFailed as error:
        raise NotFound(str(error)) from error
    if capture.json is not UNSET:
        return find_by_json(capture.json, text, where=capture.from_, searcher=searcher, kind=kind, form=capture.format)
    if capture.regex is not UNSET:
        group = None if capture.group is UNSET else capture.group
        return find_by_regex(capture.regex, group, text, where=capture.from_, searcher=searcher)
    return text
