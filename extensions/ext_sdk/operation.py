"""Operations and their arguments: one class gives schema, validation, defaults and the reference page."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar
from textwrap import dedent
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import Meta

from .alternatives import Alternatives
from .duration import Duration
from .result import Result

if TYPE_CHECKING:
    from .context import Context
    from .errors import InvalidArgs


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
    """Makes every class of arguments frozen, keyword-only and strict, with camelCase names for users."""

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
                raise TypeError(f"{name}: {rule.keyword} names {', '.join(sorted(unknown))}, which is no field")
        return made


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Args(msgspec.Struct, metaclass=_ArgsType, frozen=True):
    """The base of a class of arguments.

    Fields are documented by `Annotated[str, Meta(description="…")]`; a field with a default is optional. Python's
    `pass_env` is `passEnv` for users. A name that is not declared is refused.

    `class Find(Args, one_of=("path", "glob"))` requires exactly one of these fields, `any_of` at least one; both are in
    the JSON Schema, so that hosts refuse a wrong call before a task begins. These fields have defaults, and one whose
    value is its default is not given.

    `__post_init__` may raise ValueError for what no JSON Schema can say; the operation then fails without being called.
    """

    __alternatives__: ClassVar[tuple[Alternatives, ...]] = ()


class Config(Args):
    """The `config` of `initialize` that every extension accepts; extensions add their own fields.

    A class with a `__post_init__`, also one that is used within a configuration, has an `early_check`:
    `package.module:function`, of a module that imports nothing heavy. The function is given the members as the host
    sent them, whose types are right, and raises ValueError at least where `__post_init__` does. Without it, a
    configuration that has the class is validated before the manifest is sent, which makes the start slower.
    """

    early_check: ClassVar[str] = "ext_sdk.config_check:check_config"

    max_operation_time: Annotated[
        Duration,
        Meta(
            description="How long an operation may take where the host says no phase. Such a host gives up a "
            "call after 30 s without a word, so an answer has to come before."
        ),
    ] = Duration.parse("28s")
    artifacts: Annotated[
        str,
        Meta(
            description="Directory for texts that don't fit an answer, an absolute path; it is created if missing. "
            "Default: a private one under the temporary directory."
        ),
    ] = ""


# Marks an argument in which `${NAME.key}` is never replaced: Annotated[str, Verbatim]. It covers all that is within the
# argument; a field of a class that is itself an argument can't be marked alone.
Verbatim = Meta(extra={"verbatim": True})

Function = Callable[..., Result]
CO_VARARGS, CO_VARKEYWORDS = 4, 8  # as `inspect` has them


class Operation:
    """One operation of an extension.

    Args:
        name: as the manifest has it: lower case, words joined by `-`.
        function: `function(args, context) -> Result`; its docstring is the description, its first annotation
            the class of `args`.
        example: arguments for the reference page; a test runs them.
        same_as: the operation that this is another name of; pages and `--help` list it apart.
        on_invalid: `on_invalid(refusal, context)`, called before the operation fails because its arguments can't be
            used; for operations whose failure has consequences.

    Raises:
        TypeError: the function's signature is another one, or it has no docstring.
    """

    __slots__ = ("_verbatim", "args_type", "description", "example", "function", "name", "on_invalid", "same_as")

    def __init__(
        self,
        name: str,
        function: Function,
        example: dict[str, object] | None = None,
        *,
        same_as: str = "",
        on_invalid: Callable[[InvalidArgs, Context], None] | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.description = _description(function)
        self.args_type = _args_type(function)
        self.example = example
        self.same_as = same_as
        self.on_invalid = on_invalid
        self._verbatim: frozenset[str] | None = None
        if not self.description and sys.flags.optimize < 2:  # -OO takes docstrings away
            raise TypeError(f"operation {name!r} needs a docstring: it is what users read in the manifest")

    def __call__(self, args: Args, context: Context) -> Result:
        return self.function(args, context)

    @property
    def verbatim(self) -> frozenset[str]:
        """Names of the arguments in which `${NAME.key}` is not replaced; found out at the first call."""
        if self._verbatim is None:
            self._verbatim = _verbatim_fields(self.args_type)
        return self._verbatim


def _description(function: Function) -> str:
    """Return the docstring without its indentation."""
    first, _, rest = (function.__doc__ or "").expandtabs().partition("\n")
    return f"{first.lstrip()}\n{dedent(rest)}".strip("\n").rstrip()


def _verbatim_fields(args_type: type[Args]) -> frozenset[str]:
    """The names, as users write them, of the fields in which `${NAME.key}` is not replaced."""
    fields = msgspec.structs.fields(args_type)
    return frozenset(field.encode_name for field in fields if _is_verbatim(field.type))


def _is_verbatim(kind: object) -> bool:
    """Return True for `Annotated[…, Verbatim]`, and for a union with such a type."""
    if get_origin(kind) is Annotated:
        inner, *metadata = get_args(kind)
        marks = (one.extra or {} for one in metadata if isinstance(one, Meta))
        return any(mark.get("verbatim") for mark in marks) or _is_verbatim(inner)
    return get_origin(kind) in {Union, UnionType} and any(map(_is_verbatim, get_args(kind)))


def _first_annotation(function: Function) -> object:
    """Return the annotation of the first of two parameters; None for another signature."""
    code = getattr(function, "__code__", None)
    if code and code.co_argcount == 2 and not hasattr(function, "__wrapped__"):
        names = code.co_varnames
        if not code.co_kwonlyargcount and not code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
            return function.__annotations__.get(names[0])
    import inspect  # for functions that are decorated or wrong, since it takes 5 ms

    parameters = list(inspect.signature(function).parameters.values())
    return parameters[0].annotation if len(parameters) == 2 else None


def _args_type(function: Function) -> type[Args]:
    """The class of a function's first argument; the annotation of the second may be for type checkers only."""
    annotation = _first_annotation(function)
    annotations = {} if annotation is None else {"args": annotation}
    hints = get_type_hints(type("Annotations", (), {"__annotations__": annotations}), function.__globals__)
    args_type = hints.get("args")
    if not (isinstance(args_type, type) and issubclass(args_type, Args)):
        raise TypeError(f"{function.__name__} is no operation: expected (args: SomeArgs, context: Context) -> Result")
    return args_type
