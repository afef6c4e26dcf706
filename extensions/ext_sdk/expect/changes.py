"""Changes between two states of named items, such as files or objects of a cluster, and their checks.

The operations `snapshot` and `assert-changes` of all extensions have these arguments, failures and outputs. An
extension only adds how it reads its items, and which text describes the difference of two states of one.
"""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, TypeVar

from msgspec import Meta, field

from ext_sdk.args import Args
from ext_sdk.core.text import counted, suggest
from ext_sdk.result import OperationFailed

from .check import Check, conclude

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ext_sdk.result import Outputs, Result

T = TypeVar("T")
DEFAULT_NAME = "default"
MOST_SNAPSHOTS = 32  # of one workdir and scope
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})

Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]{1,64}$")]
Pattern = Annotated[str, Meta(min_length=1)]


Since = Annotated[Name, Meta(description="Name of the snapshot to compare with")]
Only = Annotated[
    list[Pattern],
    Meta(
        description="Patterns of names that may have been added, changed or removed, in addition to those of "
        "`required`; by default nothing else may"
    ),
]
Required = Annotated[
    list[Pattern], Meta(description="Patterns of names; each must match something added, changed or removed")
]


class ChangesArgs(Args):
    """Arguments of `assert-changes`. An operation with arguments of its own has fields of the same types."""

    since: Since = DEFAULT_NAME
    only: Only = field(default_factory=list)
    required: Required = field(default_factory=list)


class Snapshots(Generic[T]):
    """Snapshots of one workdir and scope, by name; for `context.state`."""

    def __init__(self) -> None:
        self._snapshots: dict[str, T] = {}

    def keep(self, name: str, snapshot: T) -> None:
        """Keep a snapshot, in place of a previous one of this name. Raises OperationFailed for too many."""
        if name not in self._snapshots and len(self._snapshots) >= MOST_SNAPSHOTS:
            raise OperationFailed(
                f"no more than {MOST_SNAPSHOTS} snapshots are kept",
                error=f"name: expected one of the {MOST_SNAPSHOTS} snapshots of this workdir and scope, to replace it, "
                f"found {name!r}; {suggest(name, self._snapshots)}",
            )
        self._snapshots[name] = snapshot

    def get(self, name: str) -> T:
        """Return a snapshot. Raises OperationFailed for an unknown name."""
        if name not in self._snapshots:
            known = suggest(name, self._snapshots, none="none was taken")
            raise OperationFailed(
                f"snapshot {name!r} was not taken",
                error=f"since: expected the name of a snapshot of this workdir and scope, found {name!r}; take it with "
                f"`snapshot`, in a previous step that has the same `scope`; {known}",
            )
        return self._snapshots[name]


class Changes(NamedTuple):
    """Names of what is different.

    Attributes:
        added: names that are new.
        changed: what is different, as text, by name.
        removed: names that are missing.
    """

    added: tuple[str, ...]
    changed: Mapping[str, str]
    removed: tuple[str, ...]

    def all(self) -> dict[str, str]:
        """Return what happened, as text, by name; sorted by name."""
        found = dict.fromkeys(self.added, "an addition") | dict.fromkeys(self.removed, "a removal")
        for name, text in self.changed.items():
            found[name] = f"a change:\n{text}" if "\n" in text else f"a change: {text}"
        return dict(sorted(found.items()))

    def outputs(self) -> Outputs:
        """Return the outputs of `assert-changes`: names, one per line, and their number."""
        return {
            "added": "\n".join(map(shown_name, self.added)),
            "changed": "\n".join(map(shown_name, self.changed)),
            "removed": "\n".join(map(shown_name, self.removed)),
            "count": len(self.added) + len(self.changed) + len(self.removed),
        }


def compare(before: Mapping[str, T], after: Mapping[str, T], describe: Callable[[T, T], str]) -> Changes:
    """Return the changes from one state to another, given the items by name.

    Args:
        describe: returns the difference of two states of one item as text, each part on a line; "" if it has not
            changed.
    """
    changed = {}
    for name in sorted(before.keys() & after.keys()):
        if text := describe(before[name], after[name]):
            changed[name] = text
    return Changes(tuple(sorted(after.keys() - before.keys())), changed, tuple(sorted(before.keys() - after.keys())))


def conclude_changes(args: ChangesArgs, changes: Changes, *, names: Collection[str], done: str, advice: str) -> Result:
    """Return the result of `assert-changes`. A failure lists the patterns that match nothing, such as misspelled ones.

    Args:
        names: the names of all items, of both states.
        done: the action of the operation, for the message.
        advice: what names are like: `patterns are relative to repo`.
    """
    result = conclude(check_changes(args, changes), done=done, outputs=changes.outputs())
    if not result.success:
        patterns = list(dict.fromkeys([*args.only, *args.required]))[:MOST_SHOWN]
        unused = [pattern for pattern in patterns if not any(matches(pattern, name) for name in names)]
        for pattern in unused:
            what = "has a [ without ], and" if _OPEN.search(pattern) else ""
            result.error += f"\n{' '.join(filter(None, ['pattern', repr(pattern), what]))} matches nothing"
        result.error += f"\n{advice}" if unused else ""
    return result


def check_changes(args: ChangesArgs, changes: Changes) -> list[Check]:
    """Check that nothing else was changed than the patterns allow, and that each required pattern matches a change."""
    all_changes = changes.all()
    allowed = [*args.only, *args.required]
    unexpected = {
        name: text for name, text in all_changes.items() if not any(matches(pattern, name) for pattern in allowed)
    }
    checks = []
    nothing = f"no change since snapshot {args.since!r}"
    for name, text in unexpected.items():
        folder = next((pattern for pattern in allowed if name.startswith(f"{pattern.rstrip('/')}/")), "")
        advice = f"; `{folder.rstrip('/')}/**` accepts everything in it" if folder else ""
        head, *details = f"{text}{advice}".split("\n")
        lines = (f"expected {nothing}, got {head}", *details) if details else ()
        found = f"{head} {'; '.join(details)}".rstrip()
        checks.append(Check(ok=False, what=nothing, found=found, where=shown_name(name), lines=lines))
    if not unexpected:
        checks.append(Check(ok=True, what=nothing, where="everything else" if allowed else "everything"))
    for pattern in args.required:
        ok = any(matches(pattern, name) for name in all_changes)
        some = ", ".join(shown_name(name) for name in list(all_changes)[:MOST_SHOWN])
        more = f" and {counted(len(all_changes) - MOST_SHOWN, 'other')}" if len(all_changes) > MOST_SHOWN else ""
        found = f"only changes of {some}{more}" if all_changes else "none at all"
        checks.append(Check(ok, f"a change since snapshot {args.since!r}", found=found, where=repr(pattern)))
    return checks


_OPEN = re.compile(r"\[(!?[^/][^]/]*)?(/|\Z)")  # fnmatch takes it for a literal [
MOST_SHOWN = 10  # names in the text of a failure


def matches(pattern: str, name: str) -> bool:
    """Return True if a name with slashes matches a pattern.

    Args:
        pattern: `*`, `?` and `[a-z]` match within a component, dots at its beginning included; `**` as a component
            matches any number of components, zero included. A slash at the end means the folder and all in it.
    """
    parts = pattern.rstrip("/").split("/") + ["**"] * pattern.endswith("/")
    states = set(_skipping(parts, 0))
    for component in name.rstrip("/").split("/"):
        states = {
            after
            for state in states
            if state < len(parts)
            for after in (
                _skipping(parts, state)
                if parts[state] == "**"
                else _skipping(parts, state + 1)
                if fnmatch.fnmatchcase(component, parts[state])
                else ()
            )
        }
    return len(parts) in states


def _skipping(parts: list[str], state: int) -> Iterator[int]:
    """Yield the state, and those that follow it when `**` matches nothing."""
    yield state
    while state < len(parts) and parts[state] == "**":
        state += 1
        yield state


def shown_name(name: str) -> str:
    """Return a name on one line of valid Unicode."""
    if name.isprintable():
        return name
    return name.translate(_ESCAPES).encode("utf-8", "backslashreplace").decode()
