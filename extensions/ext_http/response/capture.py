"""Parts of an answer that become outputs of the operation, with their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import NotFound, find_by_json, find_by_regex
from ext_sdk.expect import Check, Searcher
from ext_sdk.expect.regex import problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_http.client.response import Response


Part = Annotated[str, Meta(min_length=1)]
JsonType = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
RESERVED = frozenset({"status", "body", "bodyFile", "duration", "url", "attempts"})
LONGEST_NAME = 100


class Capture(ext_sdk.Args):
    """A part of the answer that becomes an output. Texts stay as they are ("007" is not 7), integers are exact."""

    from_: Annotated[Literal["body", "header", "status", "url"], Meta(description="Where to look")] = field(
        default="body", name="from"
    )
    header: Annotated[Part | UnsetType, Meta(description="Name of the header; with several of it the first one")] = (
        UNSET
    )
    json: Annotated[
        Part | UnsetType, Meta(description="JSONPath (RFC 9535) to one value of the body; what is no string as JSON")
    ] = UNSET
    type: Annotated[JsonType | UnsetType, Meta(description="That the value at `json` must have")] = UNSET
    regex: Annotated[
        Part | UnsetType,
        Meta(description="Regular expression (Python's re); its first group, or the whole match if it has none"),
    ] = UNSET
    group: Annotated[int | str | UnsetType, Meta(description="Number or name of another group of `regex`")] = UNSET
    default: Annotated[str | UnsetType, Meta(description="Where nothing is found, else a failure")] = UNSET
    secret: Annotated[
        bool, Meta(description="Only for later steps, as ${NAME.key}, and hidden in all that is written")
    ] = False

    def __post_init__(self) -> None:
        if (self.header is UNSET) == (self.from_ == "header"):
            raise ValueError("header and `from: header` go together")
        if self.json is not UNSET and (self.from_ != "body" or self.regex is not UNSET):
            raise ValueError("json is for the body, and stands without regex")
        if self.group is not UNSET and self.regex is UNSET:
            raise ValueError("group is for regex")
        if self.type is not UNSET and self.json is UNSET:
            raise ValueError("type is for json")
        if self.regex is not UNSET and (wrong := problem(self.regex)):
            raise ValueError(f"regex: {self.regex!r} is {wrong}")
        if self.json is not UNSET:
            from ext_sdk.expect import json_path

            if wrong := json_path.problem(self.json):
                raise ValueError(f"json: {wrong}")


class Captured:
    """What was captured.

    Attributes:
        values: by name, for the answer.
        secrets: by name, for later steps only.
        failures: a failed check for each capture that found nothing.
        withheld: whether the body holds, or may hold, a secret that can't be hidden in it.
    """

    __slots__ = ("failures", "secrets", "values", "withheld")

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.failures: list[Check] = []
        self.withheld = False


def check_names(captures: Mapping[str, Capture], *reserved: str) -> None:
    """Raise InvalidArgs for names that can't be outputs, or are those of other outputs."""
    for name in captures:
        if name in RESERVED or name in reserved:
            raise ext_sdk.InvalidArgs(f"capture.{name}", "this is the name of another output; choose another one")
        if not name or "." in name or len(name) > LONGEST_NAME:
            text = f"expected a name of 1 to {LONGEST_NAME} characters without dots (hosts split names at dots)"
            raise ext_sdk.InvalidArgs("capture", f"{text}, found {name!r}")


def capture_all(
    captures: Mapping[str, Capture], answer: Response, secrets: ext_sdk.Secrets, searcher: Searcher
) -> Captured:
    """Capture what was asked for. Secret values are known as such, and hidden, from here on.

    Args:
        captures: what to look for, by name.
        answer: where.
        secrets: where to make secret values known.
        searcher: for regular expressions.
    """
    captured = Captured()
    for name, wanted in captures.items():
        try:
            value = _found(wanted, answer, searcher)
        except NotFound as reason:
            captured.failures.append(Check.failed("to be found", str(reason), where=f"capture {name}"))
            captured.withheld |= wanted.secret  # it may be there all the same, where nobody can find it
            continue
        if wanted.secret:
            captured.secrets[name] = value
            secrets.add(f"capture.{name}", value)
            captured.withheld |= bool(value) and secrets.redact(value) == value and value in answer.text
        else:
            captured.values[name] = value
    return captured


def _found(wanted: Capture, answer: Response, searcher: Searcher) -> str:
    try:
        text = _text(wanted, answer)
        if wanted.json is not UNSET:
            kind = "" if wanted.type is UNSET else wanted.type
            return find_by_json(wanted.json, text, where="body", searcher=searcher, kind=kind)
        if wanted.regex is not UNSET:
            group = None if wanted.group is UNSET else wanted.group
            return find_by_regex(wanted.regex, group, text, where=wanted.from_, searcher=searcher)
    except NotFound:
        if wanted.default is UNSET:
            raise
        return wanted.default
    return text


def _text(wanted: Capture, answer: Response) -> str:
    if wanted.from_ == "header":
        values = answer.values(str(wanted.header))
        if not values:
            raise NotFound(f"no header {wanted.header}")
        return values[0]
    if wanted.from_ == "body" and answer.truncated:
        raise NotFound("only a part of the body: it is larger than maxBody")
    return {"body": lambda: answer.text, "status": lambda: str(answer.status), "url": lambda: answer.url}[
        wanted.from_
    ]()
