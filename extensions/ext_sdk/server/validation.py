"""Conversion of arguments to their class, and checks of the classes that an author writes.

Error messages name the argument and the remedy. Mistakes of an author become errors at import that name class, field
and remedy. Hosts would refuse these later, or show nothing: a `pattern` that is not RE2, a default of another type, an
example that does not match, a type without JSON.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, get_type_hints

import msgspec
from msgspec import NODEFAULT, UNSET, inspect

from ext_sdk.args import BY_TYPES_ALONE, Args, Config, Schema
from ext_sdk.core.text import LONGEST_NAME, cut, suggest
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.duration import DURATION_PATTERN, Duration
from ext_sdk.result import InvalidArgs

from .schema import COMMON, branches_of, object_schema, properties_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ext_sdk.operation import Operation

MOST_KEYS = 1000  # keys of a map that are tried: each costs a conversion
_PATH_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?:(?P<index>\d+)|\.\.\.)\]")
_PLAIN = re.compile(r"[A-Za-z_][\w-]*")


def with_keys(path: str, value: object, fails: Callable[[object], bool], *, of_key: bool = False) -> tuple[str, str]:
    """Return a path of msgspec with the keys of maps, and the key that the error is about.

    Args:
        path: such as `.env[...]`; "" for the value itself.
        fails: returns True if a value is refused with the same error. It is called with parts of the value.
        of_key: the error is about a key of the map at the path, and not about a value.

    Returns:
        The path, in which `[...]` stays if the key is not found; and the key of that map, or "".
    """
    steps = _PATH_STEP.finditer(path)
    trail: list[str | int] = []
    written = ""
    for step in steps:
        key: str | int | None = int(step["index"]) if step["index"] else step["name"]
        if key is None:
            key = _failing_key(value, trail, fails)
            if key is None:
                return path if not written else written + path[step.start() :], ""
            shown = cut(str(key), LONGEST_NAME)
            written += f".{shown}" if _PLAIN.fullmatch(shown) else f"[{dumps(shown)}]"
        else:
            written += step[0]
        trail.append(key)
    return written, (_failing_key(value, trail, fails) or "") if of_key else ""


def _failing_key(value: object, trail: list[str | int], fails: Callable[[object], bool]) -> str | None:
    """Return the first key of the map at the end of the trail that is refused by itself."""
    members = _at(value, trail)
    if not isinstance(members, dict):
        return None
    keys = islice(members, MOST_KEYS)
    return next((key for key in keys if fails(_replaced(value, trail, {key: members[key]}))), None)


def _at(value: object, trail: Iterable[str | int]) -> object:
    """Return the part of a value at a trail of names and indexes; None if there is none."""
    for step in trail:
        if isinstance(value, dict):
            value = value.get(step)
        else:
            inside = isinstance(value, list) and isinstance(step, int) and step < len(value)
            value = value[step] if inside else None  # type: ignore[index]  # a list and an index
    return value


def _replaced(value: object, trail: list[str | int], part: Mapping[str, object]) -> object:
    """Return a copy of the value with another part at the end of the trail."""
    if not trail:
        return part
    key, *rest = trail
    if isinstance(value, dict):
        return value | {key: _replaced(value.get(key), rest, part)}
    items = list(value) if isinstance(value, list) else []
    return [_replaced(item, rest, part) if at == key else item for at, item in enumerate(items)]


A = TypeVar("A", bound=Args)


def validate(args_type: type[A], value: object, *, extra: tuple[str, ...] = ()) -> A:
    """Convert JSON to typed arguments.

    Args:
        value: as the host sent it.
        extra: further known names, to suggest for an unknown one.

    Raises:
        InvalidArgs: the first error, with its path and, for an unknown name, the nearest known one.
    """
    return _converted(args_type, value, extra, decode)


def check_types(args_type: type[Args], value: object, *, extra: tuple[str, ...] = ()) -> None:
    """Raise InvalidArgs for arguments that the JSON Schema of the class refuses; other errors are ignored.

    Args:
        value: as the host sent it: a duration may still be a reference `${NAME.key}`.
        extra: see `validate`.
    """
    token = BY_TYPES_ALONE.set(True)
    try:
        _converted(args_type, value, extra, _decode_type)
    finally:
        BY_TYPES_ALONE.reset(token)


def _converted(
    args_type: type[A], value: object, extra: tuple[str, ...], decode: Callable[[type, object], object]
) -> A:
    try:
        return msgspec.convert(value, args_type, dec_hook=decode)
    except msgspec.ValidationError as error:
        text = str(error)

        def fails(part: object) -> bool:
            try:
                msgspec.convert(part, args_type, dec_hook=decode)
            except msgspec.ValidationError as other:
                return str(other) == text
            return False

        explained = _explained(
            text, args_type, extra, lambda *place: with_keys(place[0], value, fails, of_key=place[1])
        )
        if (outside := _OUTSIDE.fullmatch(text)) and "[...]" not in text:
            steps = _PATH_STEP.finditer(outside["path"])
            found = _at(value, [step["name"] or int(step["index"]) for step in steps])
            explained = InvalidArgs(explained.field, f"{explained.message}, found {dumps(found)[:LONGEST_NAME]}")
        if text.startswith("Expected `array`, got `str`"):
            rules = [rule.fields for rule in args_type.__alternatives__ if explained.field in rule.fields]
            others = [name for fields in rules for name in fields if name != explained.field]
            advice = f", or use {' or '.join(others)}" if others else ""
            explained = InvalidArgs(explained.field, f'{explained.message}; write a list, as in ["a", "b"]{advice}')
        raise explained from error
    except UnicodeEncodeError as error:
        raise not_text(error) from error


C = TypeVar("C", bound=Config)


def validate_config(config_type: type[C], value: object) -> C:
    """Convert JSON to a configuration. Raises InvalidArgs; files that it names are not read."""
    config = validate(config_type, value)
    if config.max_operation_time.nanoseconds <= 0:
        raise InvalidArgs("maxOperationTime", "expected a duration of more than 0s")
    return config


def not_text(error: UnicodeEncodeError) -> InvalidArgs:
    """Return the error of a text that can't be encoded."""
    found = ascii(error.object[error.start : error.end])
    return InvalidArgs("", f"expected text, found half of a character: {found}, a lone surrogate")


def decode(kind: type, value: object) -> object:
    """Convert a JSON value to a class of the SDK, for msgspec. Raises ValueError."""
    return Duration.parse(_duration_text(kind, value))


def _decode_type(kind: type, value: object) -> object:
    """Check the text of a duration as its schema does, without its range."""
    text = _duration_text(kind, value)
    if "${" in text or re.fullmatch(DURATION_PATTERN, text):
        return Duration()
    return Duration.parse(text)


def _duration_text(kind: type, value: object) -> str:
    if kind is not Duration:
        raise NotImplementedError(f"{kind.__name__} can't be converted from JSON")
    if not isinstance(value, str):
        raise ValueError(  # noqa: TRY004  (msgspec gives it the path of the argument)
            f'expected a duration such as "30s" or "1m30s", found {value!r:.40}'
        )
    return value


# Messages of msgspec: "Expected `int`, got `str` - at `$.expect.lines[0]`". The values of a dict are at `[...]`.
_WHERE = re.compile(r"(?P<what>.*?)(?: - at (?P<of_key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")
_NOT_IN_ENUM = re.compile(r"Invalid (?:enum )?value (?P<found>.*)", re.DOTALL)
_OUTSIDE = re.compile(r"Expected `(?:int|float)` [<>].* - at `\$(?P<path>[^`]*)`")
_NO_TEXT = re.compile(r"Expected `(?:[^`]*\| )?str(?: \|[^`]*)?`, got `(?:int|float|bool)`")
_QUOTED = re.compile(r"`([^`]*)`")
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?:\d+|\.\.\.)\]")


def _explained(
    text: str, args_type: type[Args], extra: tuple[str, ...], place: Callable[[str, bool], tuple[str, str]]
) -> InvalidArgs:
    match = _WHERE.fullmatch(text)
    what, path = (match["what"], match["path"] or "") if match else (text, "")
    named, key = place(path, bool(match and match["of_key"]))
    field = named.removeprefix(".")
    if unknown := _UNKNOWN.fullmatch(what):
        known = [*properties_of(_schema_at(args_type, path)), *(() if path else extra)]
        name = unknown["name"]
        problem = f"unknown argument {name[:LONGEST_NAME]!r}"
        return InvalidArgs(field, f"{problem}; {suggest(name, known)}" if known else problem)
    if missing := _MISSING.fullmatch(what):
        return InvalidArgs(
            f"{named}.{missing['name']}".removeprefix("."), "this argument is required and was not given"
        )
    if wrong := _NOT_IN_ENUM.fullmatch(what):
        branches = branches_of(_schema_at(args_type, path))
        values = [value for branch in branches for value in _listed(branch)]
        types = [branch.get("type") for branch in branches if not _listed(branch)]
        # The type of a number that may also be a reference, which is a string, is a list.
        names = [str(kind[0] if isinstance(kind, list) else kind) for kind in types]
        kinds = [_KINDS[name] for name in names if name in _KINDS]
        accepted = _choice([*kinds, f"{'one of ' * (len(values) > 1)}{', '.join(map(dumps, values))}"])
        return InvalidArgs(field, f"expected {accepted}; found {wrong['found'][:LONGEST_NAME]}")
    problem = what  # of our classes: unchanged; of msgspec: with names of JSON types
    if what.startswith("Expected `"):
        problem = _QUOTED.sub(lambda match: _choice(_KINDS.get(kind, kind) for kind in match[1].split(" | ")), what)
        problem = problem.replace("Expected", "expected", 1).replace(", got ", ", found ")
    if key:
        return InvalidArgs(field, f"the name {dumps(key[:LONGEST_NAME])}: {problem}")
    texts = [branch for branch in branches_of(_schema_at(args_type, path)) if branch.get("type") == "string"]
    lists = [branch.get("examples") for branch in texts]
    example = next((dumps(examples[0]) for examples in lists if isinstance(examples, list) and examples), "")
    if _NO_TEXT.fullmatch(what):  # YAML read a text as a number, or as true or false
        problem += f"; quote it, as in {example}" if example else "; quote it"
    elif example and "matching regex" in what:
        problem += f", such as {example}"
    return InvalidArgs(field, problem)


_KINDS = {
    # as msgspec has them, then as JSON Schema has them
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
}


def _choice(words: Iterable[str]) -> str:
    """Return `a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _schema_at(args_type: type[Args], path: str) -> Schema:
    """Return the schema of the value at this path; a recursive one is expanded once."""
    schema = object_schema(args_type)
    for step in _STEP.finditer(path):
        name = step["name"]  # of a property; None: of the items of an array, or the values of an object
        inner = []
        for branch in branches_of(schema):
            members = properties_of(branch) if name else branch
            schemas = [members.get(word) for word in ((name,) if name else ("items", "additionalProperties"))]
            inner += [member for member in schemas if isinstance(member, dict)]
        schema = {"anyOf": inner}
    return schema


def _listed(branch: Schema) -> list[object]:
    values = branch.get("enum")
    return values if isinstance(values, list) else []


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
