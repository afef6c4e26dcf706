"""References in texts, the only template syntax of extensions: `${NAME.key}`, `${NAME.key|DEFAULT}`, `$${`.

An operation that was called with `as: NAME` keeps its outputs for references; `server.variables` has these values.
`${now}`, `${unixTime}`, `${uuid}` and `${random}` are generated at each use; `${uuid.ANY}` and `${random.ANY}` once for
all steps of a workdir and scope. `${request.…}` is for operations that receive requests, such as mock servers, which
fill it in themselves (see ext_sdk.Template). `$${` is a literal `${`.

A value is inserted as it is: references in it are not replaced.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from .core.text import LONGEST_NAME, counted, cut
from .errors import InvalidArgs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    # Arguments whose texts are not replaced, by name; those of a list's items and of a union's types are merged.
    Marks = Mapping[str, "Marks | str"]

NAME = "[A-Za-z0-9_-]"  # characters of a name
REQUEST = "request"
GENERATED = ("now", "random", "unixTime", "uuid")
RESERVED = (*GENERATED, REQUEST)  # names that no step can keep outputs under
ADVICE = "write $${ for a literal ${, or set `verbatim: true`, which leaves this call as it is"
MOST_PROBLEMS = 20  # that an error lists
VERBATIM, TEMPLATE = "verbatim", "template"  # the marks of arguments
ANY_NAME = "*"  # in marks: each member of a map

_SYNTAX = re.compile(r"\$\$\{|\$\{([^{}|]*)(?:\|([^{}]*))?\}")
_VALUE = re.compile(rf"{NAME}+\.\S+")
_LETTERS, _DIGITS = "bcdfghjklmnpqrstvwxz", "2456789"  # without vowels, so that no words result
_RANDOM_LENGTH = 8


class Reference(NamedTuple):
    """Reference in a text.

    Attributes:
        path: `NAME.key`, or the name of a generated value.
        default: text that is used if the value is missing; None: the value is required.
    """

    path: str
    default: str | None = None

    def __str__(self) -> str:
        return f"${{{self.path[:LONGEST_NAME]}}}"

    @property
    def name(self) -> str:
        """The name under which a step keeps its outputs, `request`, or that of a generated value."""
        return self.path.partition(".")[0]

    @property
    def key(self) -> str:
        """All that follows the name; "" if nothing does."""
        return self.path.partition(".")[2]


class NoValue(Exception):
    """Reference without a value; str() is the reason.

    Args:
        suggestion: the nearest known reference, as text, or "".
        unknown: the reference itself may be wrong, so that a list of the known ones helps.
    """

    def __init__(self, reason: str, *, suggestion: str = "", unknown: bool = False) -> None:
        super().__init__(reason)
        self.suggestion = suggestion
        self.unknown = unknown


def references(text: str) -> Iterator[Reference]:
    """Yield the references of a text."""
    for match in _SYNTAX.finditer(text):
        if match[1] is not None:
            yield Reference(match[1], match[2])


def single_reference(text: str) -> Reference | None:
    """Return the reference if the text consists of one, else None."""
    match = _SYNTAX.fullmatch(text)
    return Reference(match[1], match[2]) if match and match[1] is not None else None


def replace(text: str, value_of: Callable[[Reference], str]) -> str:
    """Return a text with its references replaced, and with `${` for each `$${`."""
    return _SYNTAX.sub(lambda match: "${" if match[1] is None else value_of(Reference(match[1], match[2])), text)


def new_value(kind: str) -> str:
    """Return a new value of one of the kinds in GENERATED."""
    if kind == "uuid":
        import uuid

        return str(uuid.uuid4())
    if kind == "random":
        import secrets

        rest = (secrets.choice(_LETTERS + _DIGITS) for _ in range(_RANDOM_LENGTH - 1))
        return secrets.choice(_LETTERS) + "".join(rest)  # begins with a letter, as names in Kubernetes do
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) if kind == "now" else str(int(time.time()))


class Expansion:
    """Replaces the references in arguments, and collects the problems of all of them.

    Args:
        kept: returns the value that a step kept, or that was generated for all steps. Raises NoValue.
        known: returns a text with the references that have a value, for errors.
    """

    def __init__(self, kept: Callable[[Reference], str], known: Callable[[], str]) -> None:
        self._kept = kept
        self._known = known
        self._problems: dict[tuple[str, str], NoValue] = {}  # by argument and reference

    def expand(self, value: object, field: str = "", marks: Marks | str | None = None) -> object:
        """Return a JSON value with the references in its strings replaced; those without a value stay.

        Args:
            field: path of the value, for problems.
            marks: arguments in which nothing is replaced; the references of a template are checked.
        """
        if marks == VERBATIM:
            return value
        if isinstance(value, dict):
            path = f"{field}." if field else ""
            return {name: self.expand(item, path + name, _mark(marks, name)) for name, item in value.items()}
        if isinstance(value, list):
            return [self.expand(item, f"{field}[{at}]", marks) for at, item in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        template = marks == TEMPLATE
        text = replace(value, lambda reference: self._value(reference, field, template=template))
        return value if template else text

    def _value(self, reference: Reference, field: str, *, template: bool) -> str:
        if template and reference.name == REQUEST:
            return ""
        try:
            return value_of(reference, self._kept)
        except NoValue as problem:
            self._problems[field, reference.path] = problem
        return f"${{{reference.path}}}"

    @property
    def problem(self) -> InvalidArgs | None:
        """Return the error that names all references without a value; None if all have one."""
        if not self._problems:
            return None
        unknown = any(problem.unknown and not problem.suggestion for problem in self._problems.values())
        advice = [self._known()] * unknown + [ADVICE] * any(problem.unknown for problem in self._problems.values())
        if len(self._problems) == 1:
            ((field, _), problem), *_ = self._problems.items()
            return InvalidArgs(field, _reason(problem, advice))
        shown = [f"\n  {field}: {_reason(problem, [])}" for (field, _), problem in self._problems.items()]
        more = len(shown) - MOST_PROBLEMS
        rest = f"\n  and {more} more" if more > 0 else ""
        lines = "".join(shown[:MOST_PROBLEMS]) + rest + "".join(f"\n{line}" for line in advice)
        return InvalidArgs("", f"{counted(len(shown), 'reference')} without a value:{lines}")


def _mark(marks: Marks | str | None, name: str) -> Marks | str | None:
    """Return the marks of the member of this name."""
    if marks is None or isinstance(marks, str):
        return marks
    return marks.get(name, marks.get(ANY_NAME))


def _reason(problem: NoValue, advice: Sequence[str]) -> str:
    parts = [problem.suggestion] * bool(problem.suggestion) + list(advice)
    return f"{problem}: {'; '.join(parts)}" if parts else str(problem)


def value_of(reference: Reference, kept: Callable[[Reference], str]) -> str:
    """Return the value of a reference that is not about a request. Raises NoValue.

    Args:
        kept: returns the value that a step kept, or that was generated for all steps. Raises NoValue.
    """
    if reference.path in GENERATED:
        return new_value(reference.path)
    if reference.name == REQUEST:
        raise NoValue(f"{reference} has a value in responses of mock servers only", unknown=True)
    default = reference.default
    if default is not None and (not _VALUE.fullmatch(reference.path) or default.startswith("|")):
        text = cut(f"${{{reference.path}|{default}}}", LONGEST_NAME)  # `${a || b}` of JavaScript, for one
        raise NoValue(f"{text} is not a reference with a default, such as ${{NAME.key|TEXT}}", unknown=True)
    return kept(reference)
