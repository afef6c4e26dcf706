"""From JSON to typed arguments, with errors that a user can act on."""

from __future__ import annotations

import difflib
import re
from typing import TypeVar

import msgspec

from .duration import Duration
from .errors import InvalidArgs
from .operation import Args
from .schema import object_schema, properties_of

A = TypeVar("A", bound=Args)


def validate(args_type: type[A], value: object, *, extra: tuple[str, ...] = ()) -> A:
    """Make typed arguments of JSON.

    Args:
        args_type: the class.
        value: what the host sent.
        extra: further names that a user might have meant, for the hint about an unknown one.

    Raises:
        InvalidArgs: the first thing that does not fit, with its path and, for an unknown name, the nearest
        known one.
    """
    try:
        return msgspec.convert(value, args_type, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _explained(str(error), args_type, extra) from error


def _decode(kind: type, value: object) -> object:
    if kind is Duration:
        if not isinstance(value, str):
            raise ValueError(f'expected a duration such as "30s" or "1m30s", found {value!r:.40}')
        return Duration.parse(value)
    raise NotImplementedError(f"{kind.__name__} can't be made of JSON")


_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*?)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)


def _explained(text: str, args_type: type[Args], extra: tuple[str, ...]) -> InvalidArgs:
    match = _WHERE.match(text)
    what, path = (match["what"], (match["path"] or "").lstrip(".")) if match else (text, "")
    if unknown := _UNKNOWN.fullmatch(what):
        return InvalidArgs(path, _unknown_name(unknown["name"], _names_at(args_type, path), extra if not path else ()))
    if missing := _MISSING.fullmatch(what):
        field = f"{path}.{missing['name']}".lstrip(".")
        return InvalidArgs(field, "this argument is required and was not given")
    return InvalidArgs(path, what[:1].lower() + what[1:].replace("`", ""))


def _unknown_name(name: str, known: tuple[str, ...], extra: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, [*known, *extra], 1)
    hint = f"did you mean {near[0]!r}?" if near else "known are " + ", ".join(known) if known else "none is known"
    return f"unknown argument {name!r}; {hint}"


def _names_at(args_type: type[Args], path: str) -> tuple[str, ...]:
    """The names that an object at this path may have, as far as the schema tells."""
    schema: object = object_schema(args_type)
    for step in filter(None, re.split(r"[.\[\]]+", path)):
        schema = _step(schema, step)
    return tuple(properties_of(schema))


def _step(schema: object, step: str) -> object:
    properties = properties_of(schema)
    if step in properties:
        return properties[step]
    return schema.get("items", schema.get("additionalProperties", {})) if isinstance(schema, dict) else {}
