"""Operations: a function with typed arguments, its description and an example."""

from __future__ import annotations

import sys
from collections.abc import Callable
from textwrap import dedent
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from .args import Args
from .result import Result

if TYPE_CHECKING:
    from .context import Context
    from .errors import InvalidArgs


Function = Callable[..., Result]

CO_VARARGS, CO_VARKEYWORDS = 4, 8  # as `inspect` has them


class Operation:
    """Operation of an extension.

    Args:
        name: name in the manifest: lower case, words joined by `-`.
        function: `function(args, context) -> Result`; its docstring is the description, its first annotation the class
            of `args`.
        example: arguments for the reference page; a test runs them.
        same_as: the operation that this is an alias of; pages and `--help` list it separately.
        on_invalid: `on_invalid(refusal, context)`, called before the operation fails because its arguments can't be
            used; for operations whose failure has consequences.

    Raises:
        TypeError: the function has another signature, or no docstring.
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
        first, _, rest = (function.__doc__ or "").expandtabs().partition("\n")
        self.description = f"{first.lstrip()}\n{dedent(rest)}".strip("\n").rstrip()  # without indentation
        self.args_type = _args_type(function)
        self.example = example
        self.same_as = same_as
        self.on_invalid = on_invalid
        self._verbatim: frozenset[str] | None = None
        if not self.description and sys.flags.optimize < 2:  # -OO removes docstrings
            raise TypeError(f"operation {name!r} needs a docstring: users read it in the manifest")

    @property
    def verbatim(self) -> frozenset[str]:
        """Names of the arguments in which `${NAME.key}` is not replaced; computed at the first call."""
        if self._verbatim is None:
            fields = msgspec.structs.fields(self.args_type)
            self._verbatim = frozenset(field.encode_name for field in fields if _is_verbatim(field.type))
        return self._verbatim


def _is_verbatim(kind: object) -> bool:
    """Return True for `Annotated[…, Verbatim]`, and for a union with such a type."""
    if get_origin(kind) is Annotated:
        inner, *metadata = get_args(kind)
        marks = (meta.extra or {} for meta in metadata if isinstance(meta, Meta))
        return any(mark.get("verbatim") for mark in marks) or _is_verbatim(inner)
    return get_origin(kind) in {Union, UnionType} and any(map(_is_verbatim, get_args(kind)))


def _args_type(function: Function) -> type[Args]:
    """Return the class of a function's first argument; the annotation of the second may be for type checkers only."""
    code = getattr(function, "__code__", None)
    variable = code is None or code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    annotation: object
    if code and code.co_argcount == 2 and not variable and not hasattr(function, "__wrapped__"):
        annotation = function.__annotations__.get(code.co_varnames[0])
    else:
        import inspect  # for functions that are decorated or wrong, since it takes 5 ms

        parameters = list(inspect.signature(function).parameters.values())
        annotation = parameters[0].annotation if len(parameters) == 2 else None
    annotations = {} if annotation is None else {"args": annotation}
    hints = get_type_hints(type("Annotations", (), {"__annotations__": annotations}), function.__globals__)
    args_type = hints.get("args")
    if not (isinstance(args_type, type) and issubclass(args_type, Args)):
        raise TypeError(
            f"{function.__name__} is not an operation: expected (args: SomeArgs, context: Context) -> Result"
        )
    return args_type
