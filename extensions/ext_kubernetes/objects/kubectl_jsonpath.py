"""JSONPath in the dialect of kubectl, a text with expressions in braces; or, from `$`, that of RFC 9535."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .fields import Hidden, has_hidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


class PathFailed(ValueError):
    """A path is invalid; str() is the reason."""


class Step(NamedTuple):
    """A step of a path: its kind, and the operand of that kind."""

    kind: str
    value: object = None


class Part(NamedTuple):
    """A part of a template, of the kind `text`, `path` or `range`; `body` is what a range repeats."""

    kind: str
    text: str = ""
    steps: tuple[Step, ...] = ()
    body: tuple[Part, ...] = ()


_BRACES = re.compile(r"\{((?:[^{}\"']|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')*)\}")

_STEPS = re.compile(
    r"""(?P<recursive>\.\.)(?P<rname>\*|(?:[^.,\[\]$@\\\s]|\\.)+)?
      | \.?\[(?P<bracket>(?:[^\[\]"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\])*)\]
      | \.(?P<name>\*|(?:[^.,\[\]$@\\\s]|\\.)+)
      | (?P<dot>\.)""",
    re.VERBOSE,
)

_SLICE = re.compile(r"(-?\d+)?:(-?\d+)?(?::(-?\d+))?")
_FILTER = re.compile(r"\?\((?P<left>.*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>.*?))?\s*\)", re.DOTALL)
_QUOTED = re.compile(r"""(['"])((?:(?!\1)[^\\]|\\.)*)\1""", re.DOTALL)
_LITERAL = re.compile(r"true|false|[-+]?\d+(?:\.\d+)?")
_NO_OPERAND = re.compile(r"&&|\|\||=~|[=!<>~&|()]")  # in a place where a filter should have a path
_ESCAPES = {"n": "\n", "t": "\t"}


def template(path: str) -> list[Part]:
    """Return the parts of a path. Raises PathFailed."""
    if "{" not in path:
        return [Part("path", path, _steps(path if path.startswith((".", "[", "@")) else f".{path}", path))]
    if re.search("[{}]", _BRACES.sub("", path)):
        raise PathFailed(f"{path!r}: unbalanced braces")
    bodies: list[list[Part]] = [[]]  # of the template, and of the open ranges
    end = 0
    for match in _BRACES.finditer(path):
        inner, parts = match[1].strip(), bodies[-1]
        parts += [Part("text", path[end : match.start()])] if match.start() > end else []
        end = match.end()
        kind, _, rest = inner.partition(" ")
        if quoted := _QUOTED.fullmatch(inner):
            parts.append(Part("text", _unescape(quoted[2])))
        elif _LITERAL.fullmatch(inner):
            parts.append(Part("text", inner))
        elif kind == "range":
            parts.append(Part("range", inner, _steps(rest.strip(), path)))
            bodies.append([])
        elif inner != "end":
            parts.append(Part("path", inner, _steps(inner, path)))
        elif len(bodies) > 1:
            body = tuple(bodies.pop())
            bodies[-1][-1] = bodies[-1][-1]._replace(body=body)
        else:
            bodies.append([])  # an end without a range
            break
    if len(bodies) > 1:
        raise PathFailed(f"{path!r}: expected an {{end}} for each {{range …}}")
    return bodies[0] + ([Part("text", path[end:])] if end < len(path) else [])


def _steps(text: str, path: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    position = 1 if text.startswith(("@", "$")) else 0
    if not position and text and text[0] not in ".[":
        text = f".{text}"
    while position < len(text):
        match = _STEPS.match(text, position)
        if not match:
            raise PathFailed(f"{path!r} is not a JSONPath in the dialect of kubectl, at {text[position:][:20]!r}")
        if match["recursive"]:
            steps.append(Step("recursive"))
        if match["bracket"] is not None:
            steps.append(_bracket(match["bracket"].strip(), path))
        elif name := match["rname"] or match["name"]:  # without both, a dot alone is the value itself
            steps.append(Step("all") if name == "*" else Step("key", _unescape(name, {})))
        position = match.end()
    return tuple(steps)


def _unescape(text: str, escapes: Mapping[str, str] = _ESCAPES) -> str:
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text, flags=re.DOTALL)


def _bracket(inner: str, path: str) -> Step:
    if inner == "*":
        return Step("all")
    if match := _FILTER.fullmatch(inner):
        if match["operator"] and not match["right"]:
            raise PathFailed(f"{path!r}: expected a value after {match['operator']} in a filter")
        left = _operand(match["left"], path)
        right = _operand(match["right"], path) if match["right"] else None
        return Step("filter", (left, match["operator"] or "", right))
    if match := _SLICE.fullmatch(inner):
        return Step("slice", slice(*(int(part) if part else None for part in match.groups())))
    members: list[int | str] = []
    for member in map(str.strip, re.findall(r"'[^']*'|\"[^\"]*\"|[^,]+", inner)):
        quoted = _QUOTED.fullmatch(member)
        try:
            members.append(_unescape(quoted[2], {}) if quoted else int(member))
        except ValueError:
            problem = f"expected a number, a quoted name or * in brackets, found {member!r}"
            raise PathFailed(f"{path!r}: {problem}") from None
    if not members:
        raise PathFailed(f"{path!r}: empty brackets")
    return Step("union", tuple(members))


def _operand(text: str, path: str) -> tuple[str, object]:
    if quoted := _QUOTED.fullmatch(text):
        return "value", _unescape(quoted[2])
    if wrong := _NO_OPERAND.search(re.sub(_QUOTED, "''", text)):
        raise PathFailed(
            f"{path!r}: {wrong[0]!r} is not an operator of filters in the dialect of kubectl, which has ==, !=, <, "
            "<=, > and >=; use RFC 9535: $.items[?@.a == 'x' && match(@.b, 'y.*')]"
        )
    if text.startswith(("@", "$")):
        return ("current" if text[0] == "@" else "root"), _steps(text, path)
    try:
        return "value", json.loads(text)
    except ValueError:
        raise PathFailed(f"{path!r}: expected @…, a number or a quoted string in a filter, found {text!r}") from None


DEEPEST = 300  # levels that `..` descends


Stepper = Callable[[object, object, object], "Iterator[object]"]  # operand of the step, value, root
AnyStepper = TypeVar("AnyStepper", bound=Stepper)
_STEPPERS: dict[str, Stepper] = {}


def _step(kind: str) -> Callable[[AnyStepper], AnyStepper]:
    def register(stepper: AnyStepper) -> AnyStepper:
        _STEPPERS[kind] = stepper
        return stepper

    return register


def select(steps: tuple[Step, ...], value: object, root: object) -> Iterator[object]:
    """Yield the values that steps select, starting at a value of a document with the given root."""
    if not steps:
        yield value
        return
    for selected in _STEPPERS[steps[0].kind](steps[0].value, value, root):
        yield from select(steps[1:], selected, root)


@_step("key")
def _key(name: object, value: object, root: object) -> Iterator[object]:
    del root
    if isinstance(value, dict) and name in value:
        yield value[name]


@_step("all")
def _all(nothing: object, value: object, root: object) -> Iterator[object]:
    del nothing, root
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


@_step("recursive")
def _recursive(nothing: object, value: object, root: object, depth: int = 0) -> Iterator[object]:
    yield value
    if depth < DEEPEST:
        for inner in _all(nothing, value, root):
            if isinstance(inner, (dict, list)):
                yield from _recursive(nothing, inner, root, depth + 1)


@_step("slice")
def _slice(bounds: object, value: object, root: object) -> Iterator[object]:
    del root
    if isinstance(value, list) and isinstance(bounds, slice):
        yield from value[bounds]


@_step("union")
def _union(names: object, value: object, root: object) -> Iterator[object]:
    for name in names if isinstance(names, tuple) else ():
        if isinstance(name, int) and isinstance(value, list) and -len(value) <= name < len(value):
            yield value[name]
        elif isinstance(name, str):
            yield from _key(name, value, root)


@_step("filter")
def _filter(condition: object, value: object, root: object) -> Iterator[object]:
    assert isinstance(condition, tuple)
    left, symbol, right = condition
    for candidate in _all(None, value, root):
        operands = _operand_values(left, candidate, root)
        if symbol:
            bounds = _operand_values(right, candidate, root)
            operands = [operand for operand in operands if bounds and _compare(operand, symbol, bounds[0])]
        if operands:
            yield candidate


def _operand_values(operand: tuple[str, object], current: object, root: object) -> list[object]:
    kind, value = operand
    if kind == "value":
        return [value]
    assert isinstance(value, tuple)
    return list(select(value, current if kind == "current" else root, root))


_ORDER: dict[str, Callable[..., bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _compare(left: object, symbol: str, right: object) -> bool:
    """Compare two values; a string also matches the equal number or boolean, as the argument `value` of waits does."""
    if isinstance(left, str) != isinstance(right, str):
        left, right = _scalar(left), _scalar(right)
    same = left == right and isinstance(left, bool) == isinstance(right, bool)
    if symbol in {"==", "!="}:
        return same == (symbol == "==")
    for kind in (str, (int, float)):
        if isinstance(left, kind) and isinstance(right, kind):
            return _ORDER[symbol](left, right)
    return False


def _scalar(value: object) -> object:
    """Parse a string that is a number or a boolean; return any other value unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def render(parts: Sequence[Part], value: object, root: object) -> Iterator[str]:
    """Yield the text of a template, piece by piece; as Hidden if it contains a value of a Secret."""
    for part in parts:
        if part.kind == "text":
            yield part.text
        elif part.kind == "path":
            selected = list(select(part.steps, value, root))
            rendered = " ".join(map(_text, selected))
            yield Hidden(rendered) if has_hidden(selected) else rendered
        else:
            for item in select(part.steps, value, root):
                yield from render(part.body, item, root)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def problem(path: str) -> str:
    """Return the reason why a path is invalid; "" if it is valid."""
    try:
        if path.startswith("$"):
            from ext_sdk.expect import json_path

            return json_path.problem(path)
        template(path)
    except PathFailed as error:
        return str(error)
    return ""


def values(path: str, document: object) -> list[object]:
    """Return the values that a path selects; for a template with more than one expression, the rendered text.

    Raises:
        PathFailed: the path is invalid.
    """
    if path.startswith("$"):
        from ext_sdk.expect import Searcher, SearchFailed, json_path

        try:
            with Searcher() as searcher:
                return [node.value for node in json_path.select(path, document, searcher)]
        except (json_path.PathFailed, SearchFailed) as error:
            raise PathFailed(str(error)) from error
    parts = template(path)
    if len(parts) == 1 and parts[0].kind == "path":
        return list(select(parts[0].steps, document, document))
    pieces: list[object] = list(render(parts, document, document))
    rendered = "".join(map(str, pieces))
    return [Hidden(rendered) if has_hidden(pieces) else rendered]


def text_of(selected: list[object]) -> str:
    """Return values as an output, one a line: strings unchanged, all other values as JSON."""
    return "\n".join(map(_text, selected))
