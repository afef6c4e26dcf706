"""Types of arguments as a reference page shows them: `integer`, `list of strings`, or a class with a section."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import inspect

from ext_sdk import Args, Duration
from ext_sdk.args import rules_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


BUILT_IN = {
    "Duration": "A duration as in Go: numbers with units, such as `300ms`, `30s` or `1h30m`. The units are `ns`, `us`, "
    "`ms`, `s`, `m` and `h`. A reference such as `${NAME.key}` is accepted, too.",
    "Scalar": "A string, a number, `true` or `false`.",
}
PLURALS = {"string": "strings", "integer": "integers", "number": "numbers", "boolean": "booleans", "object": "objects"}
SCALAR = (inspect.StrType, inspect.IntType, inspect.FloatType, inspect.BoolType)
LIMITS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))


class Member(NamedTuple):
    """One argument, or one member of an argument."""

    name: str
    type: str
    default: str
    required: bool
    description: str


class ArgumentTypes:
    """Classes that arguments of an extension refer to.

    Attributes:
        classes: all classes whose members a page has to list, by name.
        built_in: names of built-in types that occur.
    """

    def __init__(self, roots: Iterable[type[msgspec.Struct]]) -> None:
        self.classes: dict[str, type[msgspec.Struct]] = {}
        self.built_in: set[str] = set()
        # The alternatives in whose place a value of a class may be given, once for each union with that class.
        self._unions: dict[type, set[tuple[str, ...]]] = {}
        self._roots = list(roots)
        for root in self._roots:
            self._collect_members(root)

    def members(self, args_type: type[msgspec.Struct]) -> Iterator[Member]:
        """Yield the members of a class, in the order of their definition."""
        for field in _struct(args_type).fields:
            default = "" if field.default in (msgspec.NODEFAULT, None) else _shown(field.default)
            yield Member(field.encode_name, self.text(field.type), default, field.required, _description(field.type))

    def text(self, kind: inspect.Type) -> str:
        """Return the name of a type, in Markdown, with links to its classes."""
        if isinstance(kind, inspect.Metadata):
            return self.text(kind.type)
        if isinstance(kind, inspect.UnionType):
            return self._union(kind)
        if isinstance(kind, inspect.StructType):
            return _link(kind.cls.__name__)
        if isinstance(kind, (inspect.ListType, inspect.VarTupleType)):
            return f"list of {_inner(self.text(kind.item_type))}"
        if isinstance(kind, inspect.DictType):
            return f"map of {_inner(self.text(kind.value_type))}"
        if isinstance(kind, inspect.LiteralType):
            return _or(
                [
                    f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"
                    for value in kind.values
                ]
            )
        return self._plain(kind)

    def short_forms(self, args_type: type[msgspec.Struct]) -> tuple[str, ...]:
        """Return the types of values that may be given in place of an object of a class, wherever the class occurs."""
        unions = self._unions.get(args_type, set())
        return next(iter(unions)) if len(unions) == 1 else ()

    def _plain(self, kind: inspect.Type) -> str:
        if isinstance(kind, inspect.CustomType) and kind.cls is Duration:
            self.built_in.add("Duration")
            return _link("Duration")
        names = {
            inspect.StrType: "string",
            inspect.IntType: "integer",
            inspect.FloatType: "number",
            inspect.BoolType: "boolean",
            inspect.AnyType: "any value",
        }
        name = names[type(kind)]
        limits = {word: limit for key, word in LIMITS if (limit := getattr(kind, key, None)) is not None}
        if limits.keys() == {"at least", "at most"}:
            return f"{name} from {limits['at least']} to {limits['at most']}"
        return f"{name} ({', '.join(f'{word} {limit}' for word, limit in limits.items())})" if limits else name

    def _union(self, kind: inspect.UnionType) -> str:
        kinds = list(_alternatives(kind))
        if all(isinstance(inner, SCALAR) for inner in kinds) and len(kinds) == len(SCALAR):
            self.built_in.add("Scalar")
            return _link("Scalar")
        scalars = [inner for inner in kinds if isinstance(inner, SCALAR)]
        if len(scalars) == len(SCALAR):
            self.built_in.add("Scalar")
            kinds = [inner for inner in kinds if inner not in scalars]
        texts = [_link("Scalar")] if len(scalars) == len(SCALAR) else []
        for inner in kinds:
            if isinstance(inner, inspect.StructType) and self.short_forms(inner.cls):
                return _link(inner.cls.__name__)
            texts.append(self.text(inner))
        if "number" in texts:  # which includes integers
            texts = [text for text in texts if text != "integer"]
        return _or(list(dict.fromkeys(texts)))

    def _collect_members(self, args_type: type[msgspec.Struct]) -> None:
        for field in _struct(args_type).fields:
            self._collect(field.type)

    def _collect(self, kind: inspect.Type) -> None:
        if isinstance(kind, inspect.Metadata):
            self._collect(kind.type)
        elif isinstance(kind, inspect.UnionType):
            kinds = list(_alternatives(kind))
            for inner in kinds:
                others = tuple(self.text(other) for other in kinds if other is not inner)
                self._collect_class(inner, others)
                self._collect(inner) if not isinstance(inner, inspect.StructType) else None
        elif isinstance(kind, (inspect.ListType, inspect.VarTupleType)):
            self._collect(kind.item_type)
        elif isinstance(kind, inspect.DictType):
            self._collect(kind.value_type)
        else:
            self._collect_class(kind, ())

    def _collect_class(self, kind: inspect.Type, others: tuple[str, ...]) -> None:
        if not isinstance(kind, inspect.StructType):
            return
        self._unions.setdefault(kind.cls, set()).add(others)
        name = kind.cls.__name__
        if self.classes.setdefault(name, kind.cls) is not kind.cls:
            raise ValueError(f"two classes of arguments are named {name}; rename one")
        if len(self._unions[kind.cls]) == 1:
            self._collect_members(kind.cls)


def description_of(args_type: type[msgspec.Struct]) -> str:
    """Return the description of a class and the rules for its members."""
    text = (args_type.__doc__ or "").partition("\n\nAttributes:")[0].partition("\n\nArgs:")[0]
    rules = f"\n\nRequires {rules}." if issubclass(args_type, Args) and (rules := rules_text(args_type)) else ""
    return "\n".join(line.strip() for line in text.strip().splitlines()) + rules


def _struct(args_type: type[msgspec.Struct]) -> inspect.StructType:
    kind = inspect.type_info(args_type)
    assert isinstance(kind, inspect.StructType)
    return kind


def _alternatives(kind: inspect.UnionType) -> Iterator[inspect.Type]:
    """Yield the types of a union; None among them only means that the argument may be omitted."""
    for inner in kind.types:
        plain = inner.type if isinstance(inner, inspect.Metadata) else inner
        if isinstance(plain, inspect.UnionType):
            yield from _alternatives(plain)
        elif not isinstance(plain, inspect.NoneType):
            yield plain


def _description(kind: inspect.Type) -> str:
    return str((kind.extra_json_schema or {}).get("description", "")) if isinstance(kind, inspect.Metadata) else ""


def _shown(default: object) -> str:
    """Return a default as a user writes it; "" if it is empty, or an object whose members are all empty."""
    value = msgspec.to_builtins(default, enc_hook=str)
    if isinstance(value, dict):
        value = {key: inner for key, inner in value.items() if inner not in (None, "", [], {}, False)}
    if value in (None, "", [], {}):
        return ""
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _inner(text: str) -> str:
    """Return a type as the type of items: several alternatives are put in brackets."""
    return f"({text})" if " or " in text else PLURALS.get(text, text)


def _or(texts: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
