"""References in texts, the only template syntax of extensions: `${NAME.key}`, `${NAME.key|DEFAULT}`, `$${`.

An operation that was called with `as: NAME` keeps its outputs for references; `server.variables` has these values.
`${now}`, `${unixTime}`, `${uuid}` and `${random}` are generated at each use; `${uuid.ANY}` and `${random.ANY}` once for
all steps of a workdir and scope. `${request.…}` is for operations that receive requests, such as mock servers, which
fill it in themselves (see Template). `$${` is a literal `${`.

A value is inserted as it is: references in it are not replaced. References in a DEFAULT are.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .core.text import LONGEST_NAME, counted, cut
from .result import InvalidArgs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # Arguments whose texts are not replaced, by name; those of a list's items and of a union's types are merged.
    Marks = Mapping[str, "Marks | str"]

NAME = "[A-Za-z0-9_-]"  # characters of a name
REQUEST = "request"
GENERATED = ("now", "random", "unixTime", "uuid")
RESERVED = (*GENERATED, REQUEST)  # names that no step can keep outputs under
ADVICE = "write $${ for a literal ${, or set `verbatim: true`, which leaves this call as it is"
MOST_PROBLEMS = 20  # that an error lists
# The marks of arguments; a computed one is a number or a string with a pattern.
VERBATIM, TEMPLATE, COMPUTED, COMPUTED_NUMBER = "verbatim", "template", "computed", "computed number"
ANY_NAME = "*"  # in marks: each member of a map

# Escape, reference, and the begin of a reference whose default does not end, or after which the text has no brace. A
# default may have two levels of braces.
_SYNTAX = re.compile(
    r"(?P<escape>\$\$\{)"
    r"|\$\{(?P<path>[^{}|]*)(?:\|(?P<default>(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*))?\}"
    rf"|(?P<open>\$\{{{NAME}+\.[^\s{{}}|]+(?:\||(?=[^{{}}]*\Z)))"
)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,308})(?P<fraction>\.[0-9]{1,308})?")
_VALUE = re.compile(rf"{NAME}+\.\S+")
_LETTERS, _DIGITS = "bcdfghjklmnpqrstvwxz", "2456789"  # without vowels, so that no words result
_RANDOM_LENGTH = 8


class Reference(NamedTuple):
    """Reference in a text.

    Attributes:
        path: `NAME.key`, or the name of a generated value.
        default: text that is used if the value is missing; None: the value is required.
        source: the reference as written.
    """

    path: str
    default: Template | None
    source: str

    def __str__(self) -> str:
        return f"${{{cut(self.path, LONGEST_NAME)}}}"

    @property
    def name(self) -> str:
        """The name under which a step keeps its outputs, `request`, or that of a generated value."""
        return self.path.partition(".")[0]

    @property
    def key(self) -> str:
        """The part after the name; "" if the reference is a name alone."""
        return self.path.partition(".")[2]

    @property
    def is_late(self) -> bool:
        """The reference gets its value when a request is received, not when the operation is called."""
        return self.name == REQUEST or self.path in GENERATED


class Template(NamedTuple):
    """Text with references, such as the body of a mock's response.

    Attributes:
        parts: literal texts and references, in their order.
    """

    parts: tuple[str | Reference, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Return the template of a text. Each `$${` of it is a literal `${`."""
        parts: list[str | Reference] = []
        end = 0
        for match in _SYNTAX.finditer(text):
            parts.append(text[end : match.start()])
            end = match.end()
            if match["escape"]:
                parts.append("${")
            else:
                default = match["default"] if match["open"] is None else ""
                inner = None if default is None else cls.parse(default) if "${" in default else cls((default,))
                parts.append(Reference(match["path"] or "", inner, match[0]))
        return cls((*parts, text[end:]))

    @property
    def references(self) -> list[Reference]:
        """The references of the text, and those of their defaults."""
        found: list[Reference] = []
        for part in self.parts:
            if isinstance(part, Reference):
                found += [part, *(part.default.references if part.default else [])]
        return found

    @property
    def single(self) -> Reference | None:
        """The reference, if the text consists of one, else None."""
        reference, *others = [part for part in self.parts if part] or [""]
        return reference if isinstance(reference, Reference) and not others else None

    def fill(self, value_of: Callable[[Reference], str]) -> str:
        """Return the text with a value for each reference."""
        return "".join([part if isinstance(part, str) else value_of(part) for part in self.parts])

    def partly(self, value_of: Callable[[Reference], str | Template]) -> Template:
        """Return a template with values for all references, and in their defaults, except the late ones.

        Args:
            value_of: returns the value of a reference, or its default with late references.
        """
        parts: list[str | Reference] = []
        for part in self.parts:
            if isinstance(part, str):
                parts.append(part)
            elif part.is_late:
                parts.append(part._replace(default=part.default.partly(value_of) if part.default else None))
            else:
                value = value_of(part)
                parts += [value] if isinstance(value, str) else value.parts
        return Template(tuple(parts))


class NoValue(Exception):
    """Error for a reference whose value is missing; str() is the reason.

    Args:
        suggestion: the nearest known reference, as text, or "".
        unknown: the reference does not exist, so that a list of the known ones helps unless there is a suggestion.
        literal: the text may not be meant as a reference.
    """

    def __init__(self, reason: str, *, suggestion: str = "", unknown: bool = False, literal: bool = True) -> None:
        super().__init__(reason)
        self.suggestion = suggestion
        self.unknown = unknown and not suggestion
        self.literal = literal


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
        kept: returns the value that a step kept, or that was generated for all steps; None if the step has no such
            value and a default may be used. Raises NoValue.
        known: returns a text with the references that have a value, for errors.
        is_chosen: returns True for a reference to a value that an extension has chosen itself.
    """

    def __init__(
        self,
        kept: Callable[[Reference], str | None],
        known: Callable[[], str],
        is_chosen: Callable[[Reference], bool] = lambda _: False,
    ) -> None:
        self._kept = kept
        self._known = known
        self._is_chosen = is_chosen
        self._problems: dict[tuple[str, str], NoValue] = {}  # by argument and reference
        # Arguments with a reference in place of a number or a string with a pattern: by path, the text and its value.
        self.computed: dict[str, tuple[str, str]] = {}

    def expand(
        self,
        value: object,
        field: str = "",
        marks: Marks | str | None = None,
        insert: Callable[[str], str] | None = None,
        *,
        computed_only: bool = False,
    ) -> object:
        """Return a JSON value with the references in its strings replaced; those without a value stay.

        Args:
            field: path of the value, for problems.
            marks: arguments in which nothing is replaced; the references of a template are checked.
            insert: returns the text that is inserted for a value; default: the value.
            computed_only: replace references in computed arguments only, for the check of types.
        """

        def replaced(text: str, path: str, mark: str) -> object:
            template = Template.parse(text)
            if mark in {COMPUTED, COMPUTED_NUMBER}:
                filled = template.fill(partial(self._value, path))
                self.computed[path] = text, filled
                # White space around a number, such as that of `wc -l`, is ignored.
                number = _NUMBER.fullmatch(filled.strip()) if mark == COMPUTED_NUMBER else None
                return filled if not number else float(number[0]) if number["fraction"] else int(number[0])
            if computed_only:
                return text
            if mark == TEMPLATE:
                template.partly(partial(self._value_in_template, path))
                return text
            if insert is None:
                return template.fill(partial(self._value, path))
            return template.fill(lambda reference: insert(self._value(path, reference)))

        return _mapped(value, field, marks, replaced)

    def with_chosen(self, text: str) -> str:
        """Return a text with only those references replaced whose values an extension has chosen itself."""
        return Template.parse(text).fill(
            lambda reference: self._value("", reference) if self._is_chosen(reference) else reference.source
        )

    def kept_in(self, text: str) -> list[str]:
        """Return the references in a text, such as a program, to outputs that a step kept or failed to keep."""
        found = []
        for reference in Template.parse(text).references:
            if not _VALUE.fullmatch(reference.path) or reference.name == REQUEST:
                continue
            try:
                value = self._kept(reference)
            except NoValue as problem:
                value = None if problem.literal else ""
            if value is not None:
                found.append(str(reference))
        return list(dict.fromkeys(found))

    def template(self, value: object, field: str = "") -> object:
        """Return a JSON value with a Template for each string that has late references; the others are replaced."""

        def parsed(text: str, path: str, _: str) -> object:
            template = Template.parse(text).partly(partial(self._value_in_template, path))
            return template if template.references else template.fill(str)

        return _mapped(value, field, None, parsed)

    def _value(self, field: str, reference: Reference) -> str:
        value = self._value_or_default(field, reference)
        return value if isinstance(value, str) else value.fill(partial(self._value, field))

    def _value_in_template(self, field: str, reference: Reference) -> str | Template:
        value = self._value_or_default(field, reference)
        return value if isinstance(value, str) else value.partly(partial(self._value_in_template, field))

    def _value_or_default(self, field: str, reference: Reference) -> str | Template:
        """Return the value of a reference, or its default; the reference itself if it has neither."""
        try:
            return self._found(reference)
        except NoValue as problem:
            self._problems[field, reference.source] = problem
        return reference.source

    def _found(self, reference: Reference) -> str | Template:
        """Return the value of a reference that is not about a request, or its default. Raises NoValue."""
        path, default = reference.path, reference.default
        if path in GENERATED and default is None:
            return new_value(path)
        text = cut(reference.source, LONGEST_NAME)
        if not path and default is not None:
            if not reference.source.endswith("|"):
                raise NoValue(f"{text}…: the reference has no end: expected }}")
            raise NoValue(f"{text}…: the default has no end: expected }}, and in it at most two levels of {{}}")
        if default is not None and (not _VALUE.fullmatch(path) or reference.source.startswith(f"${{{path}||")):
            # `${a || b}` of JavaScript, for one
            raise NoValue(f"{text} is not a reference with a default, such as ${{NAME.key|TEXT}}")
        if reference.name == REQUEST:
            raise NoValue(f"{reference} has a value in responses of mock servers only")
        value = self._kept(reference)
        return (default or "") if value is None else value

    @property
    def problem(self) -> InvalidArgs | None:
        """The error that names all references without a value; None if all have one."""
        if not self._problems:
            return None
        problems = self._problems.values()
        advice = [self._known()] * any(problem.unknown for problem in problems)
        advice += [ADVICE] * any(problem.literal for problem in problems)
        if len(self._problems) == 1:
            ((field, _), problem), *_ = self._problems.items()
            return InvalidArgs(field, _reason(problem, advice))
        shown = [f"\n  {field}: {_reason(problem, [])}" for (field, _), problem in self._problems.items()]
        more = len(shown) - MOST_PROBLEMS
        rest = f"\n  and {more} more" if more > 0 else ""
        lines = "".join(shown[:MOST_PROBLEMS]) + rest + "".join(f"\n{line}" for line in advice)
        return InvalidArgs("", f"{counted(len(shown), 'reference')} without a value:{lines}")


def _mapped(
    value: object, field: str, marks: Marks | str | None, replaced: Callable[[str, str, str], object]
) -> object:
    """Return a JSON value with its strings that have a `${` replaced, except those that are marked as verbatim.

    Args:
        replaced: returns the new value of a string; gets the string, its path and its mark.
    """
    if marks == VERBATIM:
        return value
    if isinstance(value, dict):
        path = f"{field}." if field else ""
        inner = marks if marks and not isinstance(marks, str) else {}
        whole = marks if isinstance(marks, str) else None
        return {
            name: _mapped(item, path + name, whole or inner.get(name, inner.get(ANY_NAME)), replaced)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_mapped(item, f"{field}[{at}]", marks, replaced) for at, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    return replaced(value, field, marks if isinstance(marks, str) else "")


def _reason(problem: NoValue, advice: Sequence[str]) -> str:
    parts = [problem.suggestion] * bool(problem.suggestion) + list(advice)
    return f"{problem}: {'; '.join(parts)}" if parts else str(problem)
