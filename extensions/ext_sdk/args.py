"""Classes of arguments: one class gives the JSON Schema, the validation, the defaults and the reference page.

`class Copy(Args, one_of=("path", "glob"))` adds a rule on combinations, for the JSON Schema and the validation alike,
so that a host refuses a wrong call before a task begins. An argument counts as given if its value is not its default,
even if that was written out.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, cast, dataclass_transform

import msgspec
from msgspec import UNSET, Meta

from .duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .result import Result


class Alternatives(NamedTuple):
    """Rule on some arguments of a class.

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
        """Return the rule as text; `names`: names for users, by those in Python."""
        *others, last = [names[field] for field in self.fields]
        return f"{'one' if self.keyword == 'oneOf' else 'at least one'} of {', '.join(others)} and {last}"

    def schema(self, args_type: type[msgspec.Struct], names: Mapping[str, str]) -> list[Schema]:
        """Return the schemas of which one, or any, must match.

        Args:
            names: names for users, by those in Python.
        """
        defaults = _defaults(args_type)
        schemas: list[Schema] = []
        for field in self.fields:
            schema: Schema = {"required": [names[field]]}
            default = defaults[field]
            if default is not UNSET:
                value: Schema = {"const": True} if default is False else {"not": {"const": default}}
                schema["properties"] = {names[field]: value}
            schemas.append(schema)
        return schemas


def rules_text(args_type: type[Args]) -> str:
    """Return the rules of a class of arguments as text; "" if it has none."""
    names = dict(zip(args_type.__struct_fields__, args_type.__struct_encode_fields__, strict=True))
    return "; ".join(rule.text(names) for rule in args_type.__alternatives__)


def _defaults(args_type: type[msgspec.Struct]) -> dict[str, object]:
    """Return the default of each field by its name in Python; NODEFAULT for a required one."""
    defaults = args_type.__struct_defaults__
    fields = args_type.__struct_fields__[len(args_type.__struct_fields__) - len(defaults) :]
    values: dict[str, object] = dict.fromkeys(args_type.__struct_fields__, msgspec.NODEFAULT)
    for field, default in zip(fields, defaults, strict=True):
        factory = getattr(default, "factory", None)
        values[field] = factory() if callable(factory) else default
    return values


# True while arguments are checked by their types alone, as the JSON Schema of the manifest does.
BY_TYPES_ALONE: ContextVar[bool] = ContextVar("by_types_alone", default=False)


def _post_init(check: Callable[[Args], None] | None) -> Callable[[Args], None]:
    """Return a `__post_init__` that checks what the schema says, and the rest unless types alone are checked."""

    def post_init(self: Args) -> None:
        for rule in self.__alternatives__:
            rule.check(self)
        if check is not None and not BY_TYPES_ALONE.get():
            check(self)

    return functools.wraps(check)(post_init) if check else post_init


class _ArgsType(msgspec.StructMeta):
    """Metaclass that makes every class of arguments frozen, keyword-only and strict, with camelCase names for users."""

    def __new__(  # noqa: PYI034 - Self is not for metaclasses (PEP 673)
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        *,
        tag: str | None = None,
        tag_field: str | None = None,
        forbid_unknown_fields: bool = True,
        one_of: tuple[str, ...] = (),
        any_of: tuple[str, ...] = (),
        **_: bool,
    ) -> _ArgsType:
        """Make a class of arguments.

        `one_of` and `any_of` are `Args`'. For `tag`, `tag_field` and `forbid_unknown_fields` see msgspec.Struct; the
        rest is fixed.
        """
        inherited = [rule for base in bases for rule in getattr(base, "__alternatives__", ())]
        own = [Alternatives("oneOf", one_of)] * bool(one_of) + [Alternatives("anyOf", any_of)] * bool(any_of)
        check = namespace.get("__post_init__")
        if check is None and own:
            check = next((found for base in bases if (found := getattr(base, "__post_init__", None))), None)
        if check is not None or own:
            namespace["__post_init__"] = _post_init(cast("Callable[[Args], None] | None", check))
        if len({rule.keyword for rule in (*inherited, *own)}) < len(inherited) + len(own):
            raise TypeError(f"{name}: expected one rule of each kind, found another one in a base class")
        namespace["__alternatives__"] = (*inherited, *own)
        made = super().__new__(
            mcls,
            name,
            bases,
            namespace,
            tag=tag,
            tag_field=tag_field,
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=forbid_unknown_fields,
            rename="camel",
        )
        for rule in own:
            if unknown := set(rule.fields) - set(made.__struct_fields__):
                raise TypeError(f"{name}: {rule.keyword} names {', '.join(sorted(unknown))}, which is not a field")
        return made


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Args(msgspec.Struct, metaclass=_ArgsType, frozen=True):
    """Base class of arguments.

    Fields are documented by `Annotated[str, Meta(description="…")]`; a field with a default is optional. Python's
    `pass_env` is `passEnv` for users. An undeclared name is refused.

    `class Find(Args, one_of=("path", "glob"))` requires exactly one of these fields, `any_of` at least one; both are in
    the JSON Schema, so that hosts refuse a wrong call before a task begins. These fields have defaults, and one whose
    value is its default does not count as given.

    `__post_init__` may raise ValueError for rules that no JSON Schema can express; the operation then fails without
    being called.
    """

    __alternatives__: ClassVar[tuple[Alternatives, ...]] = ()

    def run_operation(self, run: Callable[[], Result]) -> Result:
        """Run the operation that was called with these arguments, and return its result.

        A class that several operations share may override it, to evaluate results and raised failures.
        """
        return run()

    # Names in Python of fields that manifests and `--describe` list after all others, such as those of a common base.
    fields_last: ClassVar[tuple[str, ...]] = ()


class Config(Args):
    """`config` of `initialize` that every extension accepts; extensions add their own fields.

    A class with a `__post_init__`, also one that is used within a configuration, has an `early_check`:
    `package.module:function`, of a module that imports nothing heavy. The function receives the members as the host
    sent them, with valid types, and raises ValueError at least whenever `__post_init__` does. Without it, a
    configuration that has the class is validated before the manifest is sent, which makes the start slower.
    """

    early_check: ClassVar[str] = "ext_sdk.server.config_check:check_config"

    max_operation_time: Annotated[
        Duration,
        Meta(
            description="Maximum duration of an operation if the host sends no phase. Such a host stops waiting for a "
            "response after 30 s."
        ),
    ] = Duration.parse("28s")
    artifacts: Annotated[
        str,
        Meta(
            description="Absolute path of a directory for texts that don't fit in a response; created if missing. "
            "Default: a private one under the temporary directory."
        ),
    ] = ""


# Value of a variable, a header or a form field, as users write it; `scalar_text` returns it as text.
Scalar = str | int | float | bool


def scalar_text(value: Scalar) -> str:
    """Return a value as JSON writes it, a string without quotation marks: true, 1, 1.5, text."""
    import json  # not needed before the manifest is sent

    return value if isinstance(value, str) else json.dumps(value)


# Marks a text in which `${NAME.key}` is not replaced, or an argument with such texts: Annotated[str, Verbatim]. Members
# of an argument can be marked alone.
Verbatim = Meta(extra={"references": "verbatim"})
# Marks a text, or an argument with such texts, that the operation fills in itself, once for each request that it
# receives: see Context.template. References other than `${request.…}` are checked when the operation is called.
Template = Meta(extra={"references": "template"})
# Marks a number, or a string with a pattern, that may be a reference: Annotated[int, Meta(ge=0), Computed].
Computed = Meta(extra={"references": "computed"})
Schema = dict[str, object]
