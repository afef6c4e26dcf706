"""Parts of the output of a command that become outputs of the operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

import ext_sdk
from ext_sdk.expect import Check, Searcher
from ext_sdk.expect.finding import NotFound, find_by_json, find_by_regex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .args import Capture


RESERVED = frozenset(
    [
        "exitCode",
        "signal",
        "stdout",
        "stderr",
        "stdoutFile",
        "stderrFile",
        "duration",
        "attempts",
        "name",
        "pid",
        "port",
        "logFile",
        "running",
    ]
)

LONGEST_NAME = 100


class Captured:
    """What was captured.

    Attributes:
        values: by name, for the answer.
        secrets: by name, for later steps only.
        failures: a failed check for each capture that found nothing.
        withheld: streams that hold, or may hold, a secret that can't be hidden in them.
    """

    __slots__ = ("failures", "secrets", "values", "withheld")

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.failures: list[Check] = []
        self.withheld: set[str] = set()


def check_names(captures: Mapping[str, Capture]) -> None:
    """Raise InvalidArgs for names that can't be outputs, or are those of other outputs."""
    for name in captures:
        if name in RESERVED:
            raise ext_sdk.InvalidArgs(f"capture.{name}", "this is the name of another output; choose another one")
        if not name or "." in name or len(name) > LONGEST_NAME:
            text = f"expected a name of 1 to {LONGEST_NAME} characters without dots (hosts split names at dots)"
            raise ext_sdk.InvalidArgs("capture", f"{text}, found {name!r}")


def capture_all(
    captures: Mapping[str, Capture], streams: Mapping[str, str], secrets: ext_sdk.Secrets, searcher: Searcher
) -> Captured:
    """Capture what was asked for. Secret values are known as such, and hidden, from here on.

    Args:
        captures: what to look for, by name.
        streams: the text of stdout and stderr.
        secrets: where to make secret values known.
        searcher: for regular expressions.
    """
    captured = Captured()
    for name, wanted in captures.items():
        text = streams[wanted.from_]
        try:
            value = _find(wanted, text, searcher)
        except NotFound as reason:
            captured.failures.append(Check.failed("to be found", str(reason), where=f"capture {name}"))
            if wanted.secret:
                captured.withheld.add(wanted.from_)  # it may be there all the same, where nobody can find it
            continue
        if wanted.secret:
            captured.secrets[name] = value
            secrets.add(f"capture.{name}", value)
            if value and secrets.redact(value) == value:
                captured.withheld |= {stream for stream, text in streams.items() if value in text}
        else:
            captured.values[name] = value
    return captured


def _find(wanted: Capture, text: str, searcher: Searcher) -> str:
    try:
        value = _FINDERS[_kind(wanted)](wanted, text, searcher)
    except NotFound:
        if wanted.default is UNSET:
            raise
        return wanted.default
    return value.strip() if wanted.trim else value


def _kind(wanted: Capture) -> str:
    return next((kind for kind in ("regex", "json", "line") if getattr(wanted, kind) is not UNSET), "whole")


def _whole(wanted: Capture, text: str, searcher: Searcher) -> str:
    return text


def _by_regex(wanted: Capture, text: str, searcher: Searcher) -> str:
    group = None if wanted.group is UNSET else wanted.group
    return find_by_regex(str(wanted.regex), group, text, where=wanted.from_, searcher=searcher)


def _by_json(wanted: Capture, text: str, searcher: Searcher) -> str:
    return find_by_json(str(wanted.json), text, where=wanted.from_, searcher=searcher)


def _by_line(wanted: Capture, text: str, searcher: Searcher) -> str:
    lines = text.removesuffix("\n").split("\n") if text else []
    number = wanted.line if isinstance(wanted.line, int) else 1
    at = number - 1 if number > 0 else number
    if not -len(lines) <= at < len(lines):
        raise NotFound(f"no line {number} in {wanted.from_}, which has {len(lines)}")
    return lines[at].removesuffix("\r")


_FINDERS = {"whole": _whole, "regex": _by_regex, "json": _by_json, "line": _by_line}
