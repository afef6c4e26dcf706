"""Checks of the classes that an author writes: mistakes become errors at import that name class, field and remedy.

Hosts would refuse these later, or show nothing: a `pattern` that is not RE2, a default of another type, an example that
does not match, a type without JSON.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, inspect

from ext_sdk.errors import InvalidArgs

from .schema import COMMON, object_schema
from .validation import check_types, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.args import Args
    from ext_sdk.operation import Operation

# Parts of Python's regular expressions that RE2 does not have.
_NOT_RE2 = (
    (r"\(\?(?:<?[=!])", "lookahead and lookbehind"),
    (r"\(\?P=|\\[1-9]", "backreferences"),
    (r"\(\?>|[*+?}]\+", "atomic groups and possessive quantifiers"),
    (r"\(\?\(", "conditions"),
    (r"\(\?#", "comments"),
    (r"\\[ZuUN]", r"\Z, \u, \U and \N; write \z, or the character itself"),
)
_ESCAPED = re.compile(r"\\[^1-9ZuUN]|\[\^?\]?(?:\\.|[^\]\\])*\]")  # escapes and character classes, which both have


def check_operation(operation: Operation) -> None:
    """Raise TypeError if the arguments or the example of an operation are wrong."""
    check_class(operation.args_type)
    example = {name: value for name, value in (operation.example or {}).items() if name not in COMMON}
    try:
        if operation.example is not None:
            check_types(operation.args_type, example)
    except InvalidArgs as error:
        raise TypeError(f"operation {operation.name!r}: example: {error}") from error


def check_class(args_type: type[Args]) -> None:
    """Raise TypeError if a class of arguments or configuration has a field that hosts or users cannot use."""
    hints = get_type_hints(args_type, include_extras=True)
    for field in args_type.__struct_fields__:
        try:
            inspect.type_info(hints[field])
        except TypeError as error:
            text = str(error).splitlines()[0]
            if text.startswith("Can only set"):
                text += "; give Meta to the type that it limits, as in Annotated[int, Meta(ge=1)] | None"
            raise TypeError(f"{args_type.__name__}.{field}: {text}") from error
    for path, pattern in _patterns(object_schema(args_type), args_type.__name__):
        if problem := pattern_problem(pattern):
            raise TypeError(f"{path}: hosts check {pattern!r} by RE2, which has no {problem}")
    for info in msgspec.structs.fields(args_type):
        default = info.default if info.default_factory is NODEFAULT else info.default_factory()
        if default is NODEFAULT or default is UNSET:
            continue
        try:
            msgspec.convert(msgspec.to_builtins(default, enc_hook=str), hints[info.name], dec_hook=decode)
        except msgspec.ValidationError as error:
            if ", got `" in str(error):  # a limit, such as min_length, need not hold: "" means that none was given
                text = f"default {default!r}: {error}"
                raise TypeError(f"{args_type.__name__}.{info.name}: {text}; change the type or the default") from error


def pattern_problem(pattern: str) -> str:
    """Return the part of a regular expression that RE2 does not have; "" if there is none."""
    plain = _ESCAPED.sub("", pattern)
    return next((name for part, name in _NOT_RE2 if re.search(part, plain)), "")


def _patterns(schema: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield each pattern of a schema with the path of its field."""
    if isinstance(schema, list):
        for item in schema:
            yield from _patterns(item, path)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("pattern"), str):
        yield path, schema["pattern"]
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            for name, member in value.items():
                yield from _patterns(member, f"{path}.{name}")
        elif key in {"anyOf", "items", "additionalProperties"}:
            yield from _patterns(value, path)
