"""Reading a JSONPath as kubectl has it: text with expressions in braces, and their steps."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


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
