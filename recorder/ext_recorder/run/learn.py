"""Rules of a recording: what need not match on replay. `run --learn` proposes them, and a person reviews them.

They are in the header, after `rules:`, each with a comment:

    rules:
    # a temporary path: recorded /tmp/task-x1, now /tmp/task-k8 (POST /v1/messages /body/system, interaction 1)
    - path: '@tmp'

`ignore` and `mask` have the values of these options. `path` is a mask for paths: responses contain the path that the
command has sent, so that an agent works in its own folder.

A rule is proposed only if everything in which a request differs from the closest recorded one looks volatile: dates,
UUIDs, counters, paths, ports and random texts. It never applies before it is in the header.
"""

from __future__ import annotations

import re
from glob import escape
from typing import TYPE_CHECKING, NamedTuple

import yaml

from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.http.request_matching import PathPairs, RequestRules
from ext_recorder.messages.comparison_rules import PRESETS, FilePattern, IgnoredPlaces, Mask
from ext_sdk.core.atomic import atomic_write
from ext_sdk.core.text import counted, cut
from ext_sdk.core.wire.json_pointer import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ext_recorder.http.request_matching import Difference, Subject

KEY = "rules"
TITLE = f"{KEY}:  # of `run --learn`, to be reviewed\n"
OPTIONS = ("ignore", "mask", "path")
SHOWN = 60  # characters of a value in a comment
CONTEXT, LEAST_CONTEXT = 24, 2  # characters before a masked part
GAP = 4  # characters between two parts that are masked as one

RUN = re.compile(r"[0-9A-Za-z]+")
WORD = re.compile(r"[^\s\"'`<>()\[\]{},;:=|]+")
PATH = re.compile("/(?!/)")
HEX = re.compile(r"[0-9a-f]{6,}|[0-9A-F]{6,}")
PORT = re.compile(r"(?<=:)\d+(?=$|\s)")
MASKED = "…"  # as Mask writes it
LEAST_RANDOM = 4  # characters
# Last word of the name of a number that differs from run to run.
COUNTERS = frozenset(
    {"id", "pid", "seq", "sequence", "counter", "nonce", "seed", "port", "timestamp", "ts", "time", "duration"}
)
NAMES = {"uuid": "a UUID", "ulid": "a ULID", "epoch": "a Unix time", "tmp": "a temporary path"}


class Rule(NamedTuple):
    """One rule.

    Attributes:
        option: ignore, mask or path.
        value: pointer or pattern.
    """

    option: str
    value: str

    def __str__(self) -> str:
        quoted = self.value.replace("'", "''")
        return f"{self.option}: '{quoted}'"


def rules_of(values: object, path: Path) -> tuple[Rule, ...]:
    """Return the rules in a header.

    Args:
        values: of the key `rules`.
        path: of the header.

    Raises:
        CassetteError: they are not valid.
    """
    rules = []
    for entry in values if isinstance(values, list) else [values] if values else []:
        pairs = list(entry.items()) if isinstance(entry, dict) else []
        if len(pairs) != 1 or pairs[0][0] not in OPTIONS or not isinstance(pairs[0][1], str):
            expected = "expected a list of `ignore: POINTER`, `mask: PATTERN` and `path: PATTERN`"
            raise CassetteError(path, 0, f"{KEY}: {expected}; found {cut(str(entry), SHOWN)}")
        rules.append(Rule(*pairs[0]))
    try:
        request_rules(rules)
    except UsageError as error:
        raise CassetteError(path, 0, f"{KEY}: {error}") from None
    return tuple(Rule(option, FilePattern(value, f"{path}: {KEY}: {option}")) for option, value in rules)


def request_rules(
    rules: Iterable[Rule],
    ignore: Iterable[str] = (),
    mask: Iterable[str] = (),
    match_on: Iterable[str] = (),
    *,
    exact: bool = False,
) -> RequestRules:
    """Return the rules for equal requests: those of a recording, and values of options. Raises UsageError."""
    rules = tuple(rules)
    IgnoredPlaces("ignore", of_option(rules, "ignore"))  # checks them
    ignore, mask = (*ignore, *of_option(rules, "ignore")), (*mask, *of_option(rules, "mask"))
    return RequestRules(ignore, mask, match_on, path=of_option(rules, "path"), exact=exact)


def of_option(rules: Iterable[Rule], option: str) -> tuple[str, ...]:
    """Return the values of the rules of one option."""
    return tuple(rule.value for rule in rules if rule.option == option)


def block_of(text: str) -> str:
    """Return the lines of a header that contain its rules, with comments; "" if it has none."""
    lines = text.splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if re.match(rf"{KEY}\s*:", line)), len(lines))
    end = next((at for at in range(start + 1, len(lines)) if re.match(r"[^\s#-]", lines[at])), len(lines))
    return "".join(lines[start:end])


def with_rules(text: str, added: Sequence[tuple[Rule, str]]) -> str:
    """Return a header with further rules; everything else, and comments, are unchanged.

    Args:
        added: rules with the reason for the comment.
    """
    block, text = block_of(text), text if text.endswith("\n") else f"{text}\n"
    lines = "".join(f"# {reason}\n- {rule}\n" for rule, reason in added)
    if not block:
        return f"{text}{TITLE}{lines}"
    block = block if block.endswith("\n") else f"{block}\n"
    indent = re.search(r"^( +)-", block, re.MULTILINE)
    if indent:
        lines = "".join(indent[1] + line for line in lines.splitlines(keepends=True))
    is_empty = yaml.safe_load(block) in ({KEY: None}, {KEY: []})
    before, _, after = text.partition(block)
    return f"{before}{TITLE if is_empty else block}{lines}{after}"


class Proposal(NamedTuple):
    """A rule for one difference.

    Attributes:
        kind: class of the values: a date, a path.
        recorded, live: the values.
    """

    rule: Rule
    kind: str
    recorded: object
    live: object


class Learner:
    """Receiver of requests without a match, which proposes rules for them.

    Args:
        header: of the recording.
        known: its rules.

    Attributes:
        paths: gets patterns of paths, so that the command continues in its own folder.
    """

    def __init__(self, header: Path, known: Iterable[Rule]) -> None:
        self.paths = PathPairs()
        self._header = header
        self._known = frozenset(known)
        self._learned: dict[Rule, str] = {}
        self._replayed = 0

    def learn(self, number: int, recorded: Subject, live: Subject, differences: Sequence[Difference]) -> bool:
        """Propose rules for the differences; return True if everything looks volatile."""
        found: dict[Rule, str] = {}
        for difference in differences:
            proposals = list(_proposals(difference, live.method, live.path if live.path == recorded.path else ""))
            if not proposals:
                return False
            where = f"{live.method} {live.path} {difference.pointer}, interaction {number}"
            for rule, kind, *values in proposals:
                one, other = (cut(" ".join(str(value).split()), SHOWN) for value in values)
                found.setdefault(rule, f"{kind}: recorded {one}, now {other} ({where})")
        for rule, reason in found.items():
            if rule not in self._known and rule not in self._learned:
                self._learned[rule] = reason
                if rule.option == "path":
                    self.paths.add(rule.value)
        self._replayed += 1
        return bool(differences)

    def save(self) -> list[str]:
        """Add the rules to the header; return lines for the summary. Raises OSError."""
        if not self._replayed:
            return []
        count = counted(self._replayed, "request")
        lines = [f"{count} differed only in what looks volatile, and got the response of the closest recorded one"]
        if self._learned:
            text = with_rules(self._header.read_text(encoding="utf-8"), list(self._learned.items()))
            with atomic_write(str(self._header)) as file:
                file.write(text.encode())
            for rule, reason in self._learned.items():
                lines += [f"  {reason}", f"    {rule}"]
            lines.append(f"{counted(len(self._learned), 'rule')} written to {self._header}: review, then run again")
        return lines


# --- Proposals --------------------------------------------------------------------------------------------------------


def _proposals(difference: Difference, method: str, path: str) -> Iterator[Proposal]:
    """Yield the rules for a difference; none if it does not look volatile."""
    recorded, live = difference.recorded, difference.live
    pointer = "/".join("*" if token.isdigit() else token for token in difference.pointer.split("/"))
    ignored = Rule("ignore", f"{method} {escape(path)} {pointer}" if path else f"{method} {pointer}")
    if difference.pointer == "/host":
        addresses = difference.text.removeprefix("address: recorded ").split(", now ")
        if len({PORT.sub("", address) for address in addresses}) == 1:
            rule = ignored._replace(value=ignored.value.removesuffix("host") + "port")
            yield Proposal(rule, "a port", *addresses)
        return
    if isinstance(recorded, str) and isinstance(live, str):
        proposals = _masks(recorded, live)
        whole = len(proposals) == 1 and proposals[0].covers(recorded) and proposals[0].covers(live)
        if whole and difference.pointer != "/path":
            yield Proposal(ignored, proposals[0].kind, recorded, live)
        else:
            for pattern, kind, *values in proposals:
                yield Proposal(Rule("path" if kind.endswith("path") else "mask", pattern), kind, *values)
    elif isinstance(recorded, int | float) and isinstance(live, int | float) and type(recorded) is type(live):
        mask, (*_, name) = Mask(["@epoch"]), parts(difference.pointer)
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
        if mask.value(recorded) == mask.value(live):
            yield Proposal(ignored, "a Unix time", recorded, live)
        elif words and words[-1].lower() in COUNTERS:
            yield Proposal(ignored, "a counter", recorded, live)


class _Masked(NamedTuple):
    """A mask, the class of what it matches, and the first two values."""

    pattern: str
    kind: str
    recorded: str
    live: str

    def covers(self, text: str) -> bool:
        """Return True if it matches a complete text."""
        return Mask([self.pattern]).text(text) == MASKED


class _Part(NamedTuple):
    """Part of a text that differs: its place, a pattern for it, its class, and the words that contain it."""

    start: int
    end: int
    pattern: str
    kind: str
    recorded: str
    live: str


def _masks(recorded: str, live: str) -> list[_Masked]:
    """Return masks under which two texts are equal; [] if something does not look volatile."""
    found = []
    one, other = recorded, live
    for name, preset in PRESETS.items():
        left, right = re.findall(preset.pattern, one), re.findall(preset.pattern, other)
        if left != right and len(left) == len(right):
            mask = Mask([f"@{name}"])
            one, other = mask.text(one), mask.text(other)
            values = next((pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]), ("", ""))
            found.append(_Masked(f"@{name}", NAMES.get(name, f"a {name}"), *values))
    if WORD.split(one) != WORD.split(other):
        return []
    at = 0
    for part in _parts(one, other):
        before = one[at : part.start]
        context = before[-CONTEXT:].rpartition("\n")[2].rpartition(MASKED)[2]
        if len(before) > CONTEXT == len(context):
            context = RUN.sub("", context, count=1) if RUN.match(context) else context  # no half of a word
        start = r"\A" if not at and context == before else ""
        if not start and len(context) < LEAST_CONTEXT:
            return []  # it would match anywhere
        found.append(_Masked(f"(?<={start}{_literal(context)}){part.pattern}", *part[3:]))
        at = part.end
    all_masks = Mask.of(masked.pattern for masked in found)
    return found if all_masks and all_masks.text(recorded) == all_masks.text(live) else []


def _parts(one: str, other: str) -> list[_Part]:
    """Return the parts in which two texts with the same number of words differ, if they look volatile."""
    parts: list[_Part] = []
    for left, right in zip(WORD.finditer(one), WORD.finditer(other), strict=True):
        if left[0] == right[0]:
            continue
        part = _random_part(left[0], right[0])
        if part is None and PATH.match(left[0]) and PATH.match(right[0]):
            part = _Part(0, len(left[0]), f"/{WORD.pattern.removesuffix('+')}*", "a path", left[0], right[0])
        if part is None:
            return []
        start = left.start() + part.start
        part = part._replace(start=start, end=left.start() + part.end)
        if parts and start - parts[-1].end < GAP:
            before = parts.pop()
            literal = _literal(one[before.end : start])
            part = part._replace(start=before.start, pattern=before.pattern + literal + part.pattern)
        parts.append(part)
    return parts


def _literal(text: str) -> str:
    """Return a pattern for a text, which is legible."""
    return re.escape(text).replace("\\ ", " ").replace("\\-", "-")


def _random_part(one: str, other: str) -> _Part | None:
    """Return the counters and random texts in which two words differ; None if they differ in anything else."""
    if RUN.split(one) != RUN.split(other):
        return None
    part = None
    for left, right in zip(RUN.finditer(one), RUN.finditer(other), strict=True):
        if left[0] == right[0]:
            continue
        both = left[0] + right[0]
        pattern = ""
        if both.isdigit():
            pattern, kind = r"\d+", "a counter"
        elif len(left[0]) != len(right[0]) or len(left[0]) < LEAST_RANDOM:
            return None
        elif HEX.fullmatch(left[0]) and HEX.fullmatch(right[0]):
            pattern, kind = f"[0-9a-fA-F]{{{len(left[0])}}}", "random hex"
        elif re.search(r"\d|[a-z][A-Z]", both):
            pattern, kind = f"[0-9A-Za-z]{{{len(left[0])}}}", "random text"
        else:
            return None  # words
        if part is not None:
            pattern = part.pattern + _literal(one[part.end : left.start()]) + pattern
        part = _Part(part.start if part else left.start(), left.end(), pattern, kind, one, other)
    return part
