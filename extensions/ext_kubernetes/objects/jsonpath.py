"""Reading a JSONPath as kubectl has it: text with expressions in braces, and their steps."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from .secret_data import Hidden, has_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class PathFailed(ValueError):
    """A path is wrong; str() says how."""


class Step(NamedTuple):
    """One step of a path: a kind of step, and what it needs."""

    kind: str
    value: object = None


class Part(NamedTuple):
    """A piece of a template: `text`, `path`, `range` or `end`."""

    kind: str
    text: str = ""
    steps: tuple[Step, ...] = ()


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
_NO_OPERAND = re.compile(r"&&|\|\||=~|[=!<>~&|()]")  # in what should be a path within a filter
_ESCAPES = {"n": "\n", "t": "\t"}


def template(path: str) -> list[Part]:
    """The pieces of a path. Raises PathFailed."""
    if "{" not in path:
        return [Part("path", path, _steps(path if path.startswith((".", "[", "@")) else f".{path}", path))]
    parts: list[Part] = []
    end = 0
    for match in _BRACES.finditer(path):
        parts += [Part("text", path[end : match.start()])] if match.start() > end else []
        parts.append(_part(match[1].strip(), path))
        end = match.end()
    parts += [Part("text", path[end:])] if end < len(path) else []
    if any("{" in part.text or "}" in part.text for part in parts if part.kind == "text"):
        raise PathFailed(f"{path!r}: a brace is not closed, or not opened")
    if sum(part.kind == "range" for part in parts) != sum(part.kind == "end" for part in parts):
        raise PathFailed(f"{path!r}: expected an {{end}} for each {{range …}}")
    return parts


def _part(inner: str, path: str) -> Part:
    if quoted := _QUOTED.fullmatch(inner):
        return Part("text", _unescaped(quoted[2]))
    if _LITERAL.fullmatch(inner):
        return Part("text", inner)
    if inner == "end":
        return Part("end")
    kind, _, rest = inner.partition(" ")
    if kind == "range":
        return Part("range", inner, _steps(rest.strip(), path))
    return Part("path", inner, _steps(inner, path))


def _steps(text: str, path: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    position = 1 if text.startswith(("@", "$")) else 0
    if not position and text and text[0] not in ".[":
        text = f".{text}"
    while position < len(text):
        match = _STEPS.match(text, position)
        if not match:
            raise PathFailed(f"{path!r} is no JSONPath as kubectl has it, at {text[position:][:20]!r}")
        steps += _step(match, path)
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str], path: str) -> list[Step]:
    if match["recursive"]:
        name = match["rname"]
        return [Step("recursive")] + ([_named(name)] if name else [])
    if match["bracket"] is not None:
        return [_bracket(match["bracket"].strip(), path)]
    if match["name"]:
        return [_named(match["name"])]
    return []  # a dot alone is the value itself


def _named(name: str) -> Step:
    return Step("all") if name == "*" else Step("key", _unescaped(name, {}))


def _unescaped(text: str, escapes: Mapping[str, str] = _ESCAPES) -> str:
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), text, flags=re.DOTALL)


def _bracket(inner: str, path: str) -> Step:
    if inner == "*":
        return Step("all")
    if match := _FILTER.fullmatch(inner):
        if match["operator"] and not match["right"]:
            raise PathFailed(f"{path!r}: expected a value behind {match['operator']} in a filter")
        left = _operand(match["left"], path)
        return Step(
            "filter", (left, match["operator"] or "", _operand(match["right"], path) if match["right"] else None)
        )
    if match := _SLICE.fullmatch(inner):
        return Step("slice", slice(*(int(part) if part else None for part in match.groups())))
    members = [_index(one.strip(), path) for one in re.findall(r"'[^']*'|\"[^\"]*\"|[^,]+", inner)]
    if not members:
        raise PathFailed(f"{path!r}: nothing is between the brackets")
    return Step("union", tuple(members))


def _index(one: str, path: str) -> int | str:
    if quoted := _QUOTED.fullmatch(one):
        return _unescaped(quoted[2], {})
    try:
        return int(one)
    except ValueError:
        raise PathFailed(f"{path!r}: expected a number, a quoted name or * in brackets, found {one!r}") from None


def _operand(text: str, path: str) -> tuple[str, object]:
    if quoted := _QUOTED.fullmatch(text):
        return "value", _unescaped(quoted[2])
    if wrong := _NO_OPERAND.search(re.sub(_QUOTED, "''", text)):
        raise PathFailed(
            f"{path!r}: {wrong[0]!r} is not an operator of a filter in the dialect of kubectl, which has a comparison "
            "by ==, !=, <, <=, > or >=; use RFC 9535: $.items[?@.a == 'x' && match(@.b, 'y.*')]"
        )
    if text.startswith(("@", "$")):
        return ("here" if text[0] == "@" else "root"), _steps(text, path)
    try:
        return "value", json.loads(text)
    except ValueError:
        raise PathFailed(f"{path!r}: expected @…, a number or a quoted text in a filter, found {text!r}") from None


DEEPEST = 300  # levels that `..` goes down


def select(steps: tuple[Step, ...], value: object, root: object) -> Iterator[object]:
    """The values that steps lead to, from a value that is within a document."""
    if not steps:
        yield value
        return
    for found in _STEPPERS[steps[0].kind](steps[0].value, value, root):
        yield from select(steps[1:], found, root)


def _key(name: object, value: object, root: object) -> Iterator[object]:
    del root
    if isinstance(value, dict) and name in value:
        yield value[name]


def _all(nothing: object, value: object, root: object) -> Iterator[object]:
    del nothing, root
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _recursive(nothing: object, value: object, root: object, depth: int = 0) -> Iterator[object]:
    yield value
    if depth < DEEPEST:
        for inner in _all(nothing, value, root):
            if isinstance(inner, (dict, list)):
                yield from _recursive(nothing, inner, root, depth + 1)


def _slice(bounds: object, value: object, root: object) -> Iterator[object]:
    del root
    if isinstance(value, list) and isinstance(bounds, slice):
        yield from value[bounds]


def _union(names: object, value: object, root: object) -> Iterator[object]:
    for name in names if isinstance(names, tuple) else ():
        if isinstance(name, int) and isinstance(value, list) and -len(value) <= name < len(value):
            yield value[name]
        elif isinstance(name, str):
            yield from _key(name, value, root)


def _filter(condition: object, value: object, root: object) -> Iterator[object]:
    assert isinstance(condition, tuple)
    left, operator, right = condition
    for one in _all(None, value, root):
        found = _operands(left, one, root)
        if not operator:
            if found:
                yield one
            continue
        wanted = _operands(right, one, root)
        if wanted and any(_compare(each, operator, wanted[0]) for each in found):
            yield one


def _operands(operand: tuple[str, object], here: object, root: object) -> list[object]:
    kind, value = operand
    if kind == "value":
        return [value]
    assert isinstance(value, tuple)
    return list(select(value, here if kind == "here" else root, root))


def _compare(left: object, operator: str, right: object) -> bool:
    """Compare two values; a text also matches the equal number or boolean, as the argument `value` of waits does."""
    if isinstance(left, str) != isinstance(right, str):
        left, right = _scalar(left), _scalar(right)
    same = left == right and isinstance(left, bool) == isinstance(right, bool)
    if operator in {"==", "!="}:
        return same == (operator == "==")
    for kind in (str, (int, float)):
        if isinstance(left, kind) and isinstance(right, kind):
            return _ORDER[operator](left, right)
    return False


def _scalar(value: object) -> object:
    """Return a text that is a number or a boolean as such; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


_ORDER: Mapping[str, Callable[..., bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}

_STEPPERS: Mapping[str, Callable[[object, object, object], Iterator[object]]] = {
    "key": _key,
    "all": _all,
    "recursive": _recursive,
    "slice": _slice,
    "union": _union,
    "filter": _filter,
}


def rendered(parts: list[Part], value: object, root: object) -> Iterator[str]:
    """Yield the text that a template makes, piece by piece; Hidden where it holds a value of a Secret."""
    position = 0
    while position < len(parts):
        part = parts[position]
        if part.kind == "text":
            yield part.text
        elif part.kind == "path":
            found = list(select(part.steps, value, root))
            made = " ".join(map(text_of_one, found))
            yield Hidden(made) if has_hidden(found) else made
        elif part.kind == "range":
            end = _end_of(parts, position)
            for one in select(part.steps, value, root):
                yield from rendered(parts[position + 1 : end], one, root)
            position = end
        position += 1


def _end_of(parts: list[Part], start: int) -> int:
    depth = 0
    for position in range(start, len(parts)):
        depth += {"range": 1, "end": -1}.get(parts[position].kind, 0)
        if not depth:
            return position
    raise PathFailed("expected an {end} after {range …}")


def text_of_one(value: object) -> str:
    """A value as text: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def problem(path: str) -> str:
    """What is wrong with a path, or ""."""
    try:
        if path.startswith("$"):
            from ext_sdk.expect import json_path

            return json_path.problem(path)
        template(path)
    except PathFailed as error:
        return str(error)
    return ""


def values(path: str, document: object) -> list[object]:
    """The values that a path selects; of a template the text that it makes, where it is more than one expression.

    Raises:
        PathFailed: the path is wrong.
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
    pieces: list[object] = list(rendered(parts, document, document))
    made = "".join(map(str, pieces))
    return [Hidden(made) if has_hidden(pieces) else made]


def text_of(found: list[object]) -> str:
    """Values as an output: a text as it is, all else as JSON, several one a line."""
    return "\n".join(text_of_one(value) for value in found)
