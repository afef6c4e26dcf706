"""Captures: parts of a text that become outputs of an operation, and secret ones that only later steps get.

An extension adds its own sources to CaptureArgs, and passes `capture_all` a function that finds one capture in them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, TypeVar

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.args import Args
from ext_sdk.expect.json_equality import NotJson, is_type, parse, type_name
from ext_sdk.expect.regex import SearchFailed, problem

from .errors import InvalidArgs
from .expect.check import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ext_sdk.expect.regex import Searcher

    from .context import Secrets

LONGEST_NAME = 100  # characters
LONG = 64 * 1024  # characters from which on parsing takes a millisecond or more


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
    default: Annotated[
        str | UnsetType, Meta(description="Value if nothing is found; if omitted, the operation fails")
    ] = UNSET
    secret: Annotated[
        bool, Meta(description="Available to later steps only, as ${NAME.key}, and redacted in everything else")
    ] = False

    def __post_init__(self) -> None:
        if self.group is not UNSET and self.regex is UNSET:
            raise ValueError("`group` requires `regex`")
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


class NotFound(Exception):
    """A captured value does not exist; str() gives the reason."""


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
    captures: Mapping[str, C], find: Callable[[C], str], texts: Mapping[str, str], secrets: Secrets
) -> Captured:
    """Capture values, and register the secret ones for redaction.

    Args:
        find: returns the value of a capture; raises NotFound.
        texts: shown texts by name, which is that of their source. One is withheld if a secret cannot be redacted in it,
            or was to be captured from it and not found: it may be there in another form.
    """
    captured = Captured()
    for name, capture in captures.items():
        try:
            value = find(capture)
        except NotFound as reason:
            if capture.default is UNSET:
                captured.failures.append(Check.failed("to be found", str(reason), where=f"capture {name}"))
                if capture.secret:
                    captured.withheld |= {capture.from_} & texts.keys() or texts.keys()
                continue
            value = capture.default
        if capture.secret:
            captured.secrets[name] = value
            secrets.add(f"capture.{name}", value)
            if value and secrets.redact(value) == value:  # too short to be redacted
                captured.withheld |= {source for source, text in texts.items() if value in text}
        else:
            captured.values[name] = value
    return captured


def find_in_text(capture: CaptureArgs, text: str, searcher: Searcher, *, kind: str = "") -> str:
    """Return the part of a text that `json` or `regex` selects, or all of it. Raises NotFound; see `find_by_json`."""
    if capture.json is not UNSET:
        return find_by_json(capture.json, text, where=capture.from_, searcher=searcher, kind=kind)
    if capture.regex is not UNSET:
        group = None if capture.group is UNSET else capture.group
        return find_by_regex(capture.regex, group, text, where=capture.from_, searcher=searcher)
    return text


def find_by_regex(pattern: str, group: int | str | None, text: str, *, where: str, searcher: Searcher) -> str:
    """Return the text of a group of the first match.

    Args:
        pattern: in the syntax of Python's `re`.
        group: number or name; None: the first group, or the entire match without groups.
        where: name of the text for messages, such as `stdout`.

    Raises:
        NotFound: the pattern does not match, or the group does not exist or is not part of the match.
    """
    try:
        match = searcher.search(pattern, text)
    except SearchFailed as error:
        raise NotFound(str(error)) from error
    if match is None:
        raise NotFound(f"nothing in {where} that matches {pattern!r}")
    if group is None:
        group = 1 if len(match.groups) > 1 else 0
    groups: dict[int | str, str | None] = dict(enumerate(match.groups))
    groups.update(match.named)
    if group not in groups:
        raise NotFound(f"no group {group!r} in {pattern!r}")
    value = groups[group]
    if value is None:
        raise NotFound(f"no text in group {group!r} of {pattern!r}, which matches without it")
    return value


def find_by_json(path: str, text: str, *, where: str, searcher: Searcher, kind: str = "") -> str:
    """Return the one value at a path of a JSON text: a string as it is, another value as JSON; integers are exact.

    Args:
        path: JSONPath (RFC 9535).
        where: name of the text for messages, such as `stdout`.
        kind: JSON type that the value must have; "" for any.

    Raises:
        NotFound: the text is not JSON, or the path selects no value, several values or a value of another type.
    """
    from .expect.json_path import PathFailed, select  # imports the JSONPath library

    try:
        if len(text) > LONG:
            searcher.check_time()
        nodes = select(path, parse(text), searcher)
    except NotJson as error:
        raise NotFound(f"{where} is not JSON: {error}") from error
    except (PathFailed, SearchFailed) as error:
        raise NotFound(str(error)) from error
    if len(nodes) != 1:
        raise NotFound(f"{len(nodes)} values at {path!r} in {where}, where one is expected")
    value = nodes[0].value
    if kind and not is_type(value, kind):
        raise NotFound(f"a value of type {type_name(value)} at {path!r} in {where}, where {kind} is expected")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
