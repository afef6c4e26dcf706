"""Operations: a function with typed arguments, its description and an example."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from textwrap import dedent
from types import new_class
from typing import TYPE_CHECKING, Annotated, Any, cast, get_type_hints

import msgspec
from msgspec import Meta, inspect

from .args import Args
from .references import ANY_NAME, COMPUTED, COMPUTED_NUMBER
from .result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .context import Context
    from .references import Marks
    from .result import InvalidArgs


Function = Callable[..., Result]

CO_VARARGS, CO_VARKEYWORDS = 4, 8  # as `inspect` has them
CO_NOT_PLAIN = 0x20 | 0x80 | 0x200  # generator, coroutine, asynchronous generator
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_CONTEXT = re.compile(r"(?:[\w.]+\.)?Context(?:\[.*\])?")
_ENTRY = re.compile(r"^(\w+)(?: \([^)]*\))?: (.*\n(?:[ ]+.*\n|\n)*)", re.MULTILINE)  # name: text, and indented lines


class Operation:
    """Operation of an extension.

    Args:
        name: name in the manifest: lower case, words joined by `-`.
        function: `function(args: SomeArgs, context: Context) -> Result`, or a function whose parameters are the
            arguments: `function(name: str, count: int = 1) -> Result`; see `read_signature`. Its docstring is the
            description.
        example: arguments for the reference page; a test runs them.
        same_as: the operation that this is an alias of; pages and `--help` list it separately.
        outputs: descriptions of the outputs by name, for pages, clients of MCP and `ext-host lint`. A name that ends
            with `?` is not always present; `NAME` is an output that the caller names. None: not declared.
        title: name for people; default: the name with spaces.
        read_only: it changes nothing outside of the extension.
        destructive: it may change or delete what exists; `serve` then offers it only if `--allow` names it. Default:
            True unless it is read-only. False: it only adds.
        idempotent: a second call with the same arguments changes nothing more.
        open_world: it may communicate with anything, such as other machines. False: it only uses what it is given, such
            as files of the workdir, or its own state.
        needs: what a call needs besides its arguments: `agent`, the answer of an agent, which only hosts of evals send;
            or the name of the operation that creates what it uses. `serve` leaves it out if that is not available.
        on_invalid: `on_invalid(refusal, context)`, called before the operation fails because its arguments can't be
            used; for operations whose failure has consequences.

    Raises:
        TypeError: the function can't be an operation, or has no docstring.
        ValueError: the name has other characters than letters, digits, - and _; or it is read-only and destructive.
    """

    __slots__ = (
        "_marks",
        "args_type",
        "description",
        "destructive",
        "example",
        "function",
        "idempotent",
        "name",
        "needs",
        "on_invalid",
        "open_world",
        "outputs",
        "read_only",
        "same_as",
        "title",
    )

    def __init__(
        self,
        name: str,
        function: Function,
        example: dict[str, object] | None = None,
        *,
        same_as: str = "",
        outputs: Mapping[str, str] | None = None,
        on_invalid: Callable[[InvalidArgs, Context], None] | None = None,
        title: str = "",
        read_only: bool = False,
        destructive: bool | None = None,
        idempotent: bool = False,
        open_world: bool = True,
        needs: str = "",
    ) -> None:
        self.name = name
        if not NAME.fullmatch(name):
            raise ValueError(
                f"operation {name!r}: expected a name of letters, digits, - and _ that begins with a letter"
            )
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & CO_NOT_PLAIN:
            raise TypeError(f"operation {name!r}: write `def`, not `async def`, and no `yield`; calls run in threads")
        self.args_type, self.function, self.description = read_signature(name, function)
        self.example = example
        self.same_as = same_as
        self.outputs = outputs
        self.on_invalid = on_invalid
        if read_only and destructive:
            raise ValueError(f"operation {name!r}: read_only and destructive contradict each other; give one of them")
        self.title = title or name.replace("-", " ").replace("_", " ").capitalize()
        self.read_only = read_only
        self.destructive = not read_only if destructive is None else destructive
        self.idempotent = idempotent or read_only
        self.open_world = open_world
        self.needs = needs
        self._marks: Marks | None = None
        if not self.description and sys.flags.optimize < 2:  # -OO removes docstrings
            raise TypeError(f"operation {name!r} needs a docstring: users read it in the manifest")

    @property
    def effects(self) -> str:
        """The effects of a call as text, for people."""
        what = "may change or delete what exists" if self.destructive else "only adds"
        words = ["read-only"] if self.read_only else [what, *(["idempotent"] if self.idempotent else [])]
        return ", ".join([*words, *(["local"] if not self.open_world else [])])

    @property
    def marks(self) -> Marks:
        """The arguments in which references `${NAME.key}` are not replaced; computed at the first call."""
        if self._marks is None:
            found = _marks(inspect.type_info(self.args_type), ())
            self._marks = found if isinstance(found, dict) else {}
        return self._marks


def _marks(kind: inspect.Type, within: tuple[type, ...]) -> Marks | str:
    """Return the marks of a type, Verbatim or Template, by the names of its members; empty if it has none."""
    if isinstance(kind, inspect.Metadata):
        mark = str((kind.extra or {}).get("references", ""))
        if mark == COMPUTED and not isinstance(kind.type, inspect.StrType):
            return COMPUTED_NUMBER
        return mark or _marks(kind.type, within)
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType)):
        return _marks(kind.item_type, within)
    if isinstance(kind, inspect.DictType):
        inner = _marks(kind.value_type, within)
        return {ANY_NAME: inner} if inner else {}
    if isinstance(kind, inspect.StructType) and kind.cls not in within:
        fields = {field.encode_name: _marks(field.type, (*within, kind.cls)) for field in kind.fields}
        return {name: marks for name, marks in fields.items() if marks}
    if not isinstance(kind, inspect.UnionType):
        return {}
    merged: dict[str, Marks | str] = {}
    for marks in (_marks(member, within) for member in kind.types):
        if isinstance(marks, str):
            return marks
        merged |= marks
    return merged


def read_signature(name: str, function: Function) -> tuple[type[Args], Function, str]:
    """Return the class of an operation's arguments, `function(args, context)`, and its description.

    A function `(args: SomeArgs, context: Context)` is returned unchanged. The parameters of any other one, except the
    context, become the fields of a class of arguments, documented by the section `Args:` of its docstring.

    Raises:
        TypeError: the function can't be an operation; the text names it, the parameter, and the remedy.
    """
    first, _, rest = (function.__doc__ or "").expandtabs().partition("\n")
    description = f"{first.lstrip()}\n{dedent(rest)}".strip("\n").rstrip()  # without indentation
    code = getattr(function, "__code__", None)
    variable = code is None or code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS)
    if code and code.co_argcount == 2 and not variable and not hasattr(function, "__wrapped__"):
        annotation = function.__annotations__.get(code.co_varnames[0])
        args_type = _evaluated(name, function, {"args": annotation})["args"] if annotation is not None else None
        if isinstance(args_type, type) and issubclass(args_type, Args) and code.co_varnames[0] == "args":
            return args_type, function, description
    from inspect import signature  # for functions in another form, since it takes 5 ms

    parameters = dict(signature(function).parameters)
    context = next((key for key, parameter in parameters.items() if _is_context(key, parameter.annotation)), "")
    parameters.pop(context, None)
    for key, parameter in parameters.items():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"{name}: parameter {key!r}: expected a parameter with a name, found * or /")
        if parameter.annotation is parameter.empty:
            raise TypeError(f"{name}: parameter {key!r} has no type; write it as in `{key}: str`")
    hints = _evaluated(name, function, {key: parameter.annotation for key, parameter in parameters.items()})
    if "args" in hints and isinstance(hints["args"], type) and issubclass(hints["args"], Args):
        if len(hints) > 1:
            raise TypeError(
                f"{name} is not an operation: expected (args: {hints['args'].__name__}, context: Context) -> Result, "
                f"found further parameters: {', '.join(key for key in hints if key != 'args')}"
            )
        return hints["args"], _passing(function, context, whole=True), description
    description, texts = _documented(description)
    if unknown := texts.keys() - hints.keys() - {context}:
        raise TypeError(f"{name}: the docstring describes {', '.join(sorted(unknown))}, which is not a parameter")
    defaults = {key: item.default for key, item in parameters.items() if item.default is not item.empty}
    return _args_class(function, hints, defaults, texts), _passing(function, context, whole=False), description


def _args_class(
    function: Function, hints: dict[str, object], defaults: dict[str, object], texts: dict[str, str]
) -> type[Args]:
    """Return a class whose fields are the parameters of a function."""
    annotations: dict[str, object] = {}
    namespace: dict[str, object] = {"__module__": function.__module__, "__annotations__": annotations}
    for key, hint in hints.items():
        annotations[key] = Annotated[hint, Meta(description=texts[key])] if key in texts else hint
        options: dict[str, Any] = {}
        if isinstance(defaults.get(key), (list, dict)):  # each call gets a copy
            from copy import deepcopy

            options["default_factory"] = partial(deepcopy, defaults[key])
        elif key in defaults:
            options["default"] = defaults[key]
        if key.endswith("_"):  # `from_` is `from` for users
            options["name"] = key.rstrip("_")
        if options:
            namespace[key] = msgspec.field(**options)
    title = "".join(word.capitalize() for word in function.__name__.split("_"))
    return cast("type[Args]", new_class(f"{title}Arguments", (Args,), {}, lambda body: body.update(namespace)))


def _is_context(key: str, annotation: object) -> bool:
    """Return True for the parameter that gets the context; its annotation may be for type checkers only."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__qualname__", "")
    return key == "context" or _CONTEXT.fullmatch(text or str(annotation)) is not None


def _evaluated(name: str, function: Function, annotations: dict[str, object]) -> dict[str, object]:
    """Return types of parameters. Raises TypeError for a name that exists for type checkers only."""
    try:
        holder = type("Annotations", (), {"__annotations__": annotations})
        return dict(get_type_hints(holder, function.__globals__, include_extras=True))
    except NameError as error:
        raise TypeError(
            f"{name}: the types of its parameters are needed at run time: {error}; import or define it at the top of "
            "the module, not under TYPE_CHECKING"
        ) from error


def _passing(function: Function, context: str, *, whole: bool) -> Function:
    """Return `function(args, context)` that calls a function in another form.

    Args:
        context: the parameter that gets the context; "" for none.
        whole: the function has the parameter `args`; else it has one for each field.
    """

    def run(args: Args, given: Context) -> Result:
        fields = {"args": args} if whole else {key: getattr(args, key) for key in args.__struct_fields__}
        return function(**fields, **({context: given} if context else {}))

    return run


def _documented(description: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without its section `Args:`, and the texts of that section by parameter."""
    before, found, section = description.partition("\n\nArgs:\n")
    if not found:
        return description, {}
    lines, rest = section.split("\n"), ""
    for at, line in enumerate(lines):
        if line and not line.startswith(" "):  # the next section
            lines, rest = lines[:at], "\n".join(lines[at:])
            break
    entries = _ENTRY.findall(dedent("\n".join(lines)) + "\n")
    texts = {key: " ".join(text.split()).rstrip(".") for key, text in entries}
    return f"{before}\n\n{rest}".rstrip(), texts
