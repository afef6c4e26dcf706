"""Variables: outputs of earlier operations, for references `${NAME.key}` in later arguments (see ext_sdk.references).

Hosts fill no templates into the arguments of extensions, so the SDK does: an operation called with `as: NAME` keeps its
outputs under that name, for all later operations of the same workdir and scope.

Other extensions of this user find the values, except secret ones, while this one runs (see `shared_values`). The
latest call with a name counts, in any of them.

Values are kept complete or not at all: a reference to one that was too long, or that was dropped to make room, is
refused with the reason. A value cut in the middle would let the next step succeed with wrong data. For the same reason
an operation that fails unsets its name: a reference never gets the value of an earlier task.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ext_sdk.core.text import LONGEST_NAME, MOST_SUGGESTIONS, closest
from ext_sdk.references import GENERATED, NAME, Expansion, NoValue, Reference, new_value
from ext_sdk.result import NotKept

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ext_sdk.context import Place

    from .shared_values import SharedValues


LONGEST_VALUE = 16 * 1024 * 1024  # characters of one value; a body of the default maxBody has at most 10 Mi
MOST_KEPT = 64 * 1024 * 1024  # characters of all long values of a session together
MOST_MISSING = 2  # characters that the misspelled name of a generated value may lack, or have in addition
LONG = 64 * 1024  # characters; shorter values are never dropped
_SAME_FOR_ALL = re.compile(rf"(?P<kind>uuid|random)\.{NAME}+")


class Variables:
    """Named outputs of every place (workdir and scope). Thread-safe.

    Args:
        shared: values of other extensions; None: values are neither shared nor sought there.
    """

    def __init__(self, shared: SharedValues | None = None) -> None:
        self._shared = shared
        self._times: dict[tuple[Place, str], int] = {}  # of the last call, by place and name; as in `shared_values`
        self._values: dict[Place, dict[str, str | NotKept]] = {}
        self._long: dict[tuple[Place, str], int] = {}  # length of each long value, by place and reference, oldest first
        self._failed: dict[tuple[Place, str], str] = {}  # the operation that failed, by place and name
        self._chosen: dict[tuple[Place, str], frozenset[str]] = {}  # keys of chosen outputs, by place and name
        self._generated: dict[tuple[Place, str], str] = {}  # by place and reference: `uuid.ANY`
        self._lock = threading.Lock()

    def keep(
        self,
        place: Place,
        name: str,
        outputs: Mapping[str, str | NotKept],
        secret: Collection[str] = (),
        chosen: Collection[str] = (),
    ) -> None:
        """Keep outputs under a name; they replace all earlier outputs of that name.

        Args:
            secret: keys of secret outputs, which are not shared.
            chosen: keys of outputs that the extension has chosen itself.

        Raises:
            OSError: they are kept, but could not be shared.
        """
        with self._lock:
            self._unset(place, name)
            self._chosen[place, name] = frozenset(chosen)
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
        if self._shared:
            self._shared.keep(place, name, outputs, secret, chosen)

    def fail(self, place: Place, name: str, operation: str) -> None:
        """Unset a name, because the operation that was to set it failed."""
        with self._lock:
            self._unset(place, name)
            self._failed[place, name] = operation
        if self._shared:
            with suppress(OSError):
                self._shared.fail(place, name, operation)

    def _unset(self, place: Place, name: str) -> None:
        self._times[place, name] = time.monotonic_ns()
        self._failed.pop((place, name), None)
        self._chosen.pop((place, name), None)
        known = self._values.setdefault(place, {})
        for reference in [key for key in known if key.startswith(f"{name}.")]:
            del known[reference]
            self._long.pop((place, reference), None)

    def expansion(self, place: Place) -> Expansion:
        """Return an object that replaces references by the values of a place."""
        return Expansion(partial(self._value, place), partial(self._known, place), partial(self._is_chosen, place))

    def _is_chosen(self, place: Place, reference: Reference) -> bool:
        """Return True for a reference to an output that an extension has chosen itself."""
        with self._lock:
            chosen = self._chosen.get((place, reference.name), frozenset())
            at = self._times.get((place, reference.name), 0)
        other = self._shared.find(place, reference.name, later_than=at) if self._shared else None
        return reference.key in (other.chosen if other else chosen)

    def _value(self, place: Place, reference: Reference) -> str | None:
        """Return the value of a reference; None if its default is to be used. Raises NoValue."""
        path = reference.path
        if match := _SAME_FOR_ALL.fullmatch(path):
            return self._same_for_all(place, path, match["kind"])
        with self._lock:
            kept = self._values.get(place, {}).get(path)
            failed = self._failed.get((place, reference.name), "")
            at = self._times.get((place, reference.name), 0)
        other = self._shared.find(place, reference.name, later_than=at) if self._shared else None
        if other:
            reason = other.reasons.get(reference.key)
            kept = other.values.get(reference.key) if reason is None else NotKept(reason)
            failed = f"{other.failed} of {other.extension}" if other.failed else ""
        if isinstance(kept, str):
            return kept
        if isinstance(kept, NotKept):
            raise NoValue(f"the value of {reference} was not kept: {kept.reason}", literal=False)
        if reference.default is not None:
            return None
        if failed:
            raise NoValue(f"{reference} was not set: {failed} failed", literal=False)
        text = f"{reference} is not known in this workdir{f', scope {place.scope!r}' if place.scope else ''}"
        with self._lock:
            scopes = {
                other.scope
                for other, values in self._values.items()
                if other.workdir == place.workdir and any(key.partition(".")[0] == reference.name for key in values)
            }
        if self._shared:
            scopes |= self._shared.scopes(place, reference.name)
        if scopes := scopes - {place.scope}:
            others = [f"scope {scope!r}" if scope else "a step without `scope`" for scope in sorted(scopes)]
            text += f" ({', '.join(others)} of this workdir has the name)"
        if other:
            text += f" (the last step with `as: {reference.name}` was one of {other.extension}, without that output)"
        near = _nearest(reference, self._known_references(place))
        raise NoValue(text, suggestion=f"did you mean {near!r}?" if near else "", unknown=True)

    def _known(self, place: Place) -> str:
        """Return the known references as text."""
        known = self._known_references(place)
        if not known:
            return "no operation has been called with `as: NAME` here"
        return f"known are {', '.join(known[:MOST_SUGGESTIONS])}{', …' if len(known) > MOST_SUGGESTIONS else ''}"

    def _known_references(self, place: Place) -> list[str]:
        """Return the references that have a value; of a name, those of the latest call with it, in any extension."""
        with self._lock:
            own = list(self._values.get(place, ()))
            times = {name: at for (where, name), at in self._times.items() if where == place}
        shared = self._shared.known(place) if self._shared else {}
        later = {name: kept for name, kept in shared.items() if kept.at > times.get(name, 0)}
        known = {path for path in own if path.partition(".")[0] not in later}
        known.update(f"{name}.{key}" for name, kept in later.items() for key in kept.values if key)
        return [f"${{{path}}}" for path in sorted(known)]

    def _same_for_all(self, place: Place, path: str, kind: str) -> str:
        """Return a value that is generated once for all steps of a place."""
        with self._lock:
            value = self._generated.get((place, path))
        if value is not None:
            return value
        found = self._shared.find(place, path) if self._shared else None
        with self._lock:
            value = self._generated.setdefault((place, path), found.values[""] if found else new_value(kind))
        if self._shared and not found:
            with suppress(OSError):
                self._shared.keep(place, path, {"": value})
        return value


def _nearest(reference: Reference, known: Collection[str]) -> str:
    """Return the reference that is most similar, or "" if none is; generated values have references, too."""
    name, _, key = reference.path.partition(".")
    outputs = [other for other in known if other.endswith(f".{name}}}")] if not key else []
    generated = closest(name, GENERATED) or closest(name[:LONGEST_NAME].lower(), GENERATED)
    if outputs:
        return outputs[0]
    near = bool(generated) and abs(len(generated) - len(name)) <= MOST_MISSING
    if near and (not key or _SAME_FOR_ALL.fullmatch(f"{generated}.{key}")):
        return f"${{{generated}{'.' * bool(key)}{key}}}"
    return closest(f"${{{reference.path}}}", known)


_CAPTURE = "`capture` the part that is needed"
