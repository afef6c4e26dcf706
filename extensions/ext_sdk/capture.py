"""Captures: parts of a text that become outputs of an operation, and secret ones that only later steps get.

A search by path or pattern finds a value, and filters turn it into a part or its decoded form.

An extension adds its own sources to CaptureArgs, and passes `capture_all` a function that finds one capture in them.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.args import Args
from ext_sdk.core.regex import Searcher, SearchFailed, problem
from ext_sdk.core.text import counted, cut
from ext_sdk.expect.documents import FORMAT_NAMES, Format, NotDocument, parse_document
from ext_sdk.expect.extraction import BrokenDocument, Extract, extracted
from ext_sdk.expect.json_equality import is_type, type_name

from .expect.check import Check
from .result import InvalidArgs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from .context import Secrets

Encoding = Literal["base64", "base64url", "url", "hex", "html", "jwt"]
Text = Annotated[str, Meta(min_length=1)]
SHOWN = 60  # characters of a value in an error
LONG = 64 * 1024  # characters from which on parsing takes a millisecond or more


class NotFound(Exception):
    """A captured value does not exist; str() gives the reason."""


class Unreadable(NotFound):
    """A value was found, but it can't be read. A default does not replace it."""


class FilterFailed(ValueError):
    """A filter does not apply to a value; str() is the reason.

    Args:
        unreadable: the value is not in the format that the filter requires; False: it lacks the part to select.
    """

    def __init__(self, reason: str, *, unreadable: bool = False) -> None:
        super().__init__(reason)
        self.unreadable = unreadable


class Filter(Args, one_of=("split", "decode", "date", "json", "regex", "trim")):
    """One filter; the filters of a capture apply in their order."""

    split: Annotated[Text | UnsetType, Meta(description="Separator; the result is the part at `index`, trimmed")] = (
        UNSET
    )
    index: Annotated[int, Meta(description="Number of the part: 0 is the first, -1 the last")] = 0
    decode: Annotated[
        Encoding | UnsetType,
        Meta(
            description="Encoding of the value. url: percent-encoding, + is a space; jwt: the result is the claims as "
            "JSON, the signature is not verified"
        ),
    ] = UNSET
    date: Annotated[
        Text | UnsetType,
        Meta(
            description="Format of the value, a date: rfc3339, http, unix, unixMs, or that of strptime, such as "
            "%d.%m.%Y; UTC without an offset"
        ),
    ] = UNSET
    to: Annotated[Text, Meta(description="Format of the result of `date`; by default rfc3339, in UTC")] = "rfc3339"
    json: Annotated[Text | UnsetType, Meta(description="JSONPath to one value of the value, which is JSON")] = UNSET
    regex: Annotated[
        Text | UnsetType,
        Meta(description="Regular expression; the result is its first group, or the match if it has none"),
    ] = UNSET
    trim: Annotated[bool, Meta(description="Remove white space around the value")] = False

    def __post_init__(self) -> None:
        if self.index and self.split is UNSET:
            raise ValueError("`index` requires `split`")
        if self.to != "rfc3339" and self.date is UNSET:
            raise ValueError("`to` requires `date`")
        if not isinstance(self.regex, UnsetType) and (wrong := problem(self.regex)):
            raise ValueError(f"regex: {self.regex!r} is {wrong}")
        if not isinstance(self.json, UnsetType):
            from ext_sdk.expect import json_path  # imports the JSONPath library

            if wrong := json_path.problem(self.json):
                raise ValueError(f"json: {wrong}")

    def apply(self, value: str, searcher: Searcher) -> str:
        """Return the filtered value.

        Args:
            searcher: for `regex` and `json`.

        Raises:
            FilterFailed: the value is not as the filter requires.
        """
        if not isinstance(self.split, UnsetType):
            parts = value.split(self.split)
            if not -len(parts) <= self.index < len(parts):
                raise FilterFailed(f"split {self.split!r}: found {counted(len(parts), 'part')}, no part {self.index}")
            return parts[self.index].strip()
        if not isinstance(self.decode, UnsetType):
            try:
                return _DECODERS[self.decode](value.strip())
            except ValueError as error:  # binascii.Error and UnicodeDecodeError are ValueErrors
                raise FilterFailed(f"decode {self.decode}: {error}", unreadable=True) from None
        if not isinstance(self.date, UnsetType):
            return _date(value.strip(), self.date, self.to)
        if self.trim:
            return value.strip()
        return self._search(value, searcher)

    def _search(self, value: str, searcher: Searcher) -> str:
        try:
            if not isinstance(self.json, UnsetType):
                return find_by_json(self.json, value, where="the value", searcher=searcher)
            return find_by_regex(str(self.regex), None, value, where="the value", searcher=searcher)
        except NotFound as error:
            raise FilterFailed(
                str(error), unreadable=isinstance(error.__cause__, (NotDocument, SearchFailed))
            ) from None


def _base64(value: str) -> str:
    import base64

    return base64.b64decode("".join(value.split()), validate=True).decode()


def _base64url(value: str) -> str:
    import base64
    import re

    plain = value.rstrip("=")
    if wrong := re.search(r"[^\w-]", plain, re.ASCII):
        raise ValueError(f"{wrong[0]!r} is not a character of base64url")
    return base64.urlsafe_b64decode(plain + "=" * (-len(plain) % 4)).decode()


def _url(value: str) -> str:
    from urllib.parse import unquote_plus

    return unquote_plus(value, errors="strict")


def _html(value: str) -> str:
    import html

    return html.unescape(value)


def _jwt(value: str) -> str:
    parts = value.split(".")
    if len(parts) != 3:
        raise ValueError(f"expected three parts between dots, found {len(parts)}")
    return _base64url(parts[1])


_DECODERS: dict[str, Callable[[str], str]] = {
    "base64": _base64,
    "base64url": _base64url,
    "url": _url,
    "hex": lambda value: bytes.fromhex(value).decode(),
    "html": _html,
    "jwt": _jwt,
}


def _date(value: str, form: str, to: str) -> str:
    from datetime import UTC, datetime
    from email.utils import format_datetime, parsedate_to_datetime

    try:
        if form in {"unix", "unixMs"}:
            date = datetime.fromtimestamp(float(value) / (1000 if form == "unixMs" else 1), UTC)
        elif form == "http":
            date = parsedate_to_datetime(value)
        else:
            date = datetime.fromisoformat(value) if form == "rfc3339" else datetime.strptime(value, form)  # noqa: DTZ007 - UTC is added below
        date = (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        reason = f"date {form}: {cut(value, SHOWN)!r} is not a date of this format: {error}"
        raise FilterFailed(reason, unreadable=True) from None
    if to == "rfc3339":
        return date.isoformat().replace("+00:00", "Z")
    if to in {"unix", "unixMs"}:
        return str(int(date.timestamp() * (1000 if to == "unixMs" else 1)))
    return format_datetime(date, usegmt=True) if to == "http" else date.strftime(to)


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


def filtered(value: str, filters: Sequence[Filter], searcher: Searcher, *, secret: bool = False) -> str:
    """Return a value after all filters, in their order.

    Args:
        secret: errors must not show the value.

    Raises:
        NotFound: a filter does not apply to the value; Unreadable if that is not in the format of the filter.
    """
    for number, part in enumerate(filters):
        try:
            value = part.apply(value, searcher)
        except FilterFailed as error:
            reason = "the value is secret, so the reason is not shown" if secret else str(error)
            kind = Unreadable if error.unreadable else NotFound
            raise kind(f"a value that filters[{number}] does not apply to: {reason}") from None
    return value


def find_by_json(path: str, text: str, *, where: str, searcher: Searcher, kind: str = "", form: Format = "json") -> str:
    """Return the one value at a path of a JSON text: a string as it is, another value as JSON; integers are exact.

    Args:
        path: JSONPath (RFC 9535).
        where: name of the text for messages, such as `stdout`.
        kind: JSON type that the value must have; "" for any.
        form: format of the text.

    Raises:
        NotFound: the text is not JSON, or the path selects no value, several values or a value of another type.
    """
    from .expect.json_path import PathFailed, select  # imports the JSONPath library

    try:
        if len(text) > LONG:
            searcher.check_time()
        nodes = select(path, parse_document(text, form), searcher)
    except NotDocument as error:
        raise NotFound(f"{where} is not {FORMAT_NAMES[form]}: {error}") from error
    except (PathFailed, SearchFailed) as error:
        raise NotFound(str(error)) from error
    if len(nodes) != 1:
        raise NotFound(f"{len(nodes)} values at {path!r} in {where}, where one is expected")
    value = nodes[0].value
    if kind and not is_type(value, kind):
        raise NotFound(f"a value of type {type_name(value)} at {path!r} in {where}, where {kind} is expected")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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
