"""Variables: outputs of earlier operations as `${NAME.key}` in later arguments.

Hosts fill no templates into the arguments of extensions, so the SDK does: an operation called with `as: NAME` keeps its
outputs under that name, for all later operations of the same workdir and scope. `$${` is a literal `${`. Only strings
are expanded, once: references in a value are not, and neither are fields marked Verbatim (scripts, above all).

Values are kept complete or not at all: a reference to one that was too long, or that was dropped to make room, is
refused with the reason. A value cut in the middle would let the next step succeed with wrong data. For the same reason
an operation that fails unsets its name: a reference never gets the value of an earlier task.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from ext_sdk.core.text import LONGEST_NAME, suggest
from ext_sdk.errors import InvalidArgs
from ext_sdk.result import NotKept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.context import Place


NAME = "[A-Za-z0-9_-]"  # characters of a name
LONGEST_VALUE = 16 * 1024 * 1024  # characters of one value; a body of the default maxBody has at most 10 Mi
MOST_KEPT = 64 * 1024 * 1024  # characters of all long values of a session together
LONG = 64 * 1024  # characters; shorter values are never dropped
_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")


class Variables:
    """Named outputs of every place (workdir and scope). Thread-safe."""

    def __init__(self) -> None:
        self._values: dict[Place, dict[str, str | NotKept]] = {}
        self._long: dict[tuple[Place, str], int] = {}  # length of each long value, by place and reference, oldest first
        self._failed: dict[tuple[Place, str], str] = {}  # the operation that failed, by place and name
        self._lock = threading.Lock()

    def keep(self, place: Place, name: str, outputs: Mapping[str, str | NotKept]) -> None:
        """Keep outputs under a name; they replace all earlier outputs of that name."""
        with self._lock:
            self._unset(place, name)
            for key, value in outputs.items():
                reference = f"{name}.{key}"
                size = 0 if isinstance(value, NotKept) else len(value)
                if size > LONGEST_VALUE:
                    why = f"it has {size:,} characters, and at most {LONGEST_VALUE:,} are kept; {_CAPTURE}"
                    self._values[place][reference] = NotKept(why)
                    continue
                self._values[place][reference] = value
                if size > LONG:
                    self._long[place, reference] = size
            while sum(self._long.values()) > MOST_KEPT:  # drop the oldest ones
                oldest, dropped = next(iter(self._long)), self._long.pop(next(iter(self._long)))
                self._values[oldest[0]][oldest[1]] = NotKept(
                    f"its {dropped:,} characters were dropped for later values: {MOST_KEPT:,} characters of long "
                    f"values are kept; refer to it earlier, or {_CAPTURE}"
                )

    def fail(self, place: Place, name: str, operation: str) -> None:
        """Unset a name, because the operation that was to set it failed."""
        with self._lock:
            self._unset(place, name)
            self._failed[place, name] = operation

    def _unset(self, place: Place, name: str) -> None:
        self._failed.pop((place, name), None)
        known = self._values.setdefault(place, {})
        for reference in [key for key in known if key.startswith(f"{name}.")]:
            del known[reference]
            self._long.pop((place, reference), None)

    def expand(
        self, place: Place, args: Mapping[str, object], verbatim: frozenset[str] = frozenset()
    ) -> dict[str, object]:
        """Return arguments with their references replaced.

        Args:
            args: as the host sent them.
            verbatim: names of arguments that are not expanded.

        Raises:
            InvalidArgs: unknown reference; the message has the nearest known one.
        """
        return {name: value if name in verbatim else self._expand(value, name, place) for name, value in args.items()}

    def _expand(self, value: object, field: str, place: Place) -> object:
        if isinstance(value, dict):
            return {name: self._expand(item, f"{field}.{name}", place) for name, item in value.items()}
        if isinstance(value, list):
            return [self._expand(item, f"{field}[{at}]", place) for at, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        with self._lock:
            known = dict(self._values.get(place, {}))

        def replaced(match: re.Match[str]) -> str:
            reference = match[1]
            if reference is None:
                return "${"
            if reference not in known:
                raise InvalidArgs(field, self._unknown(reference, known, place))
            kept = known[reference]
            if isinstance(kept, NotKept):
                raise InvalidArgs(field, f"the value of ${{{reference[:LONGEST_NAME]}}} was not kept: {kept.reason}")
            return kept

        return _REFERENCE.sub(replaced, value)

    def _unknown(self, reference: str, known: Mapping[str, object], place: Place) -> str:
        """Return the reason why a reference has no value, and the remedy."""
        text = f"${{{reference[:LONGEST_NAME]}}}"
        name = reference.partition(".")[0]
        with self._lock:
            failed = self._failed.get((place, name))
        if failed:
            return f"{text} was not set: {failed} failed"
        text += f" is not known in this workdir{f', scope {place.scope!r}' if place.scope else ''}"
        with self._lock:
            scopes = {
                other.scope
                for other, values in self._values.items()
                if other.workdir == place.workdir and any(key.partition(".")[0] == name for key in values)
            }
        if scopes := scopes - {place.scope}:
            others = [f"scope {scope!r}" if scope else "a step without `scope`" for scope in sorted(scopes)]
            text += f" ({', '.join(others)} of this workdir has the name)"
        if known:
            names = suggest(f"${{{reference}}}", [f"${{{name}}}" for name in sorted(known)])
        else:
            names = (
                "no operation of this extension has been called with `as: NAME` here, and other extensions keep theirs"
            )
        return f"{text}: {names}; write $${{ for a literal ${{"


_CAPTURE = "`capture` the part that is needed"
