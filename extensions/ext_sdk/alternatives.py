"""Rules on which arguments go together, for the JSON Schema and the validation alike.

A class of arguments declares them: `class Copy(Args, one_of=("path", "glob"))`. So a host refuses a wrong call before a
task begins. An argument is given if its value is not its default, be it written out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .operation import Args
    from .schema import Schema


class Alternatives(NamedTuple):
    """A rule on some arguments of a class.

    Attributes:
        keyword: of JSON Schema: "oneOf" for exactly one of them, "anyOf" for at least one.
        fields: their names in Python.
    """

    keyword: Literal["oneOf", "anyOf"]
    fields: tuple[str, ...]

    def check(self, args: msgspec.Struct) -> None:
        """Raise ValueError if the arguments do not follow the rule."""
        defaults = _defaults(type(args))
        names = dict(zip(args.__struct_fields__, args.__struct_encode_fields__, strict=True))
        given = [names[field] for field in self.fields if getattr(args, field) != defaults[field]]
        if len(given) == 1 or (given and self.keyword == "anyOf"):
            return
        both = "both" if len(given) == len(self.fields) == 2 else " and ".join(given)
        raise ValueError(f"expected {self.text(names)}, found {both or 'none'}")

    def text(self, names: Mapping[str, str]) -> str:
        """Return the rule as text; `names`: as users write them, by those in Python."""
        *others, last = [names[field] for field in self.fields]
        return f"{'one' if self.keyword == 'oneOf' else 'at least one'} of {', '.join(others)} and {last}"

    def schema(self, args_type: type[msgspec.Struct], names: Mapping[str, str]) -> list[Schema]:
        """Return the schemas of which one, or any, must match.

        Args:
            args_type: the class.
            names: as users write them, by those in Python.
        """
        defaults = _defaults(args_type)
        return [_given(names[field], defaults[field]) for field in self.fields]


def rules_text(args_type: type[Args]) -> str:
    """Return what a class of arguments expects of which are given; "" if nothing."""
    names = dict(zip(args_type.__struct_fields__, args_type.__struct_encode_fields__, strict=True))
    return "; ".join(rule.text(names) for rule in args_type.__alternatives__)


def _given(name: str, default: object) -> Schema:
    required: Schema = {"required": [name]}
    if default is UNSET:
        return required
    value: Schema = {"const": True} if default is False else {"not": {"const": default}}
    return required | {"properties": {name: value}}


def _defaults(args_type: type[msgspec.Struct]) -> dict[str, object]:
    """Return the default of each field by its name in Python; an object without a value for a required one."""
    defaults = args_type.__struct_defaults__
    fields = args_type.__struct_fields__[len(args_type.__struct_fields__) - len(defaults) :]
    made = {field: _made(default) for field, default in zip(fields, defaults, strict=True)}
    return {field: made.get(field, msgspec.NODEFAULT) for field in args_type.__struct_fields__}


def _made(default: object) -> object:
    """Return a default value; those of `default_factory` are made."""
    factory = getattr(default, "factory", None)
    return factory() if callable(factory) else default
