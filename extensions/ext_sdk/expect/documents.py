"""Documents in JSON, lines of JSON, YAML, TOML and XML: they become the values that checks and captures read.

All results are JSON values. The texts come from agents and programs: what a few lines can expand to is limited, nothing
is fetched, and no code runs. Kubernetes manifests are read by the same YAML loader. `extraction` finds documents in
texts.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Literal

from .json_equality import NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    import yaml

Format = Literal["json", "jsonLines", "yaml", "toml", "xml"]
FORMAT_NAMES = {"json": "JSON", "jsonLines": "JSON lines", "yaml": "YAML", "toml": "TOML", "xml": "XML"}
MOST_DEPTH = 200  # levels of nesting
MOST_VALUES = 1_000_000  # of a document, after its aliases are expanded
LONGEST = 4 * 1024 * 1024  # characters of YAML, TOML and XML, which take seconds for more


class NotDocument(ValueError):
    """Text without a document of the expected format; str() is the reason."""


class NotYaml(ValueError):
    """A text is not valid YAML; str() is the place and the reason."""


def parse_document(text: str, form: Format = "json") -> object:
    """Return the document that a text consists of, as a JSON value.

    Args:
        form: jsonLines gives an array; YAML with several documents, too.

    Raises:
        NotDocument: the text is not a document of this format.
    """
    try:
        value = _PARSERS[form](text)
        return value if form == "json" else _as_json(value)
    except RecursionError:
        raise NotDocument("it is nested too deeply") from None
    except NotDocument:
        raise
    except ValueError as error:  # NotJson, NotYaml, TOMLDecodeError
        raise NotDocument(str(error)) from None


def _json_lines(text: str) -> object:
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append(parse(line))
            except NotJson as error:
                raise NotDocument(f"line {number}: {error}") from None
    if not values:
        raise NotDocument("expected lines of JSON, found none")
    return values


def _yaml(text: str) -> object:
    _limit(text)
    documents = [value for _, value in yaml_documents(text)]
    if not documents:
        raise NotDocument("expected a document, found an empty text")
    return documents[0] if len(documents) == 1 else documents


def _toml(text: str) -> object:
    import tomllib

    _limit(text)
    return tomllib.loads(text)


def _xml(text: str) -> object:
    from xml.parsers.expat import ExpatError

    import xmltodict

    _limit(text)
    try:
        return xmltodict.parse(text.encode("utf-8", "surrogatepass"), encoding="utf-8", disable_entities=True)
    except ExpatError as error:
        raise NotDocument(str(error)) from None


def _limit(text: str) -> None:
    if len(text) > LONGEST:
        raise NotDocument(f"expected at most {LONGEST:,} characters, found {len(text):,}")


_PARSERS: dict[str, Callable[[str], object]] = {
    "json": parse,
    "jsonLines": _json_lines,
    "yaml": _yaml,
    "toml": _toml,
    "xml": _xml,
}


def _as_json(value: object) -> object:
    """Return a value of YAML, TOML or XML as JSON: dates as text, bytes in base64. Raises NotDocument for nan."""
    if isinstance(value, dict):
        return {str(name): _as_json(member) for name, member in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_as_json(item) for item in value]
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        raise NotDocument(f"{value} has no value in JSON")
    return value


def yaml_documents(
    text: str, where: str = "", fill: Callable[[str], str] | None = None
) -> Iterator[tuple[int, object]]:
    """Yield each document with the number of its first line.

    Args:
        fill: returns the text of a scalar with its placeholders filled in. It cannot add structure: an unquoted scalar
            becomes a number, a boolean or null if its new text is one, and all others are strings.
    """
    for node, value in yaml_nodes(text, where, fill):
        yield node.start_mark.line + 1, value


def yaml_nodes(
    text: str, where: str = "", fill: Callable[[str], str] | None = None
) -> Iterator[tuple[yaml.Node, object]]:
    """Yield the root node of each document, which has the positions of its members, with its value."""
    import yaml

    try:
        # Deep nesting is rejected before objects are constructed, because the library recurses in C.
        depth, aliases = 0, "*" in text
        parser = None if _is_shallow(text) else yaml.CSafeLoader(text)
        while parser and parser.check_event():
            event = parser.get_event()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MOST_DEPTH:
                    line = event.start_mark.line + 1 if event.start_mark else 0
                    raise NotYaml(f"{where}, line {line}: more than {MOST_DEPTH} levels deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
        loader = _loader_class()(text, fill)
        try:
            while loader.check_node():
                node = loader.get_node()
                if node is not None:
                    value = loader.construct_document(node)
                    if aliases:
                        _check_size(value, {}, where)
                    yield node, value
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}, line {mark.line + 1}" if mark else where
        raise NotYaml(f"{place.removeprefix(', ')}: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise NotYaml(f"{where}: {error}") from error


def _is_shallow(text: str) -> bool:
    """Return True if a text certainly has less than MOST_DEPTH levels: few brackets, and little indentation.

    A level of a block takes at least one column, of which a sequence in a mapping may take none.
    """
    return text.count("[") + text.count("{") <= MOST_DEPTH // 2 and not _INDENTED.search(text)


def _fill(root: yaml.Node, loader: yaml.CSafeLoader, fill: Callable[[str], str]) -> None:
    """Fill in the scalars of a document in place, also those that are keys."""
    import yaml

    nodes, seen = [root], {id(root)}
    for node in nodes:  # grows
        if isinstance(node, yaml.ScalarNode):
            before, node.value = node.value, fill(node.value)
            if not node.style and node.tag == _TEXT and node.value != before:
                tag = loader.resolve(yaml.ScalarNode, node.value, (True, False))  # type: ignore[no-untyped-call]
                node.tag = tag if tag in _PLAIN else _TEXT
        elif isinstance(node, yaml.CollectionNode):
            members = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
            inner = [member for member in members if id(member) not in seen]
            seen.update(map(id, inner))
            nodes += inner


def _check_size(value: object, known: dict[int, int], where: str) -> int:
    """Return the number of values after all aliases are expanded. Raises NotYaml: a few lines can mean billions."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = MOST_VALUES + 1  # a value that contains itself is endless
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_check_size(member, known, where) for member in inner)
    if known[id(value)] > MOST_VALUES:
        raise NotYaml(f"{where}: aliases expand to more than {MOST_VALUES:,} values")
    return known[id(value)]


@cache
def _loader_class() -> Callable[[str, Callable[[str], str] | None], yaml.CSafeLoader]:
    """Return a loader for objects: keys and dates are strings, duplicate keys are errors, `yes` is a boolean."""
    import yaml

    class Loader(yaml.CSafeLoader):
        """Loader that keeps keys as strings: `on: …` is a field of that name, not `true`."""

        def __init__(self, text: str, fill: Callable[[str], str] | None) -> None:
            super().__init__(text)
            self._fill_in = fill

        def construct_document(self, node: yaml.Node) -> object:
            if self._fill_in is not None:
                _fill(node, self, self._fill_in)
            value: object = super().construct_document(node)
            return value

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
            scalars = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
            seen: set[str] = set()
            for key in scalars:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"duplicate key {key.value!r}", problem_mark=key.start_mark
                    )
                seen.add(key.value)
            self.flatten_mapping(node)
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    key.tag = _TEXT
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATE]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


_INDENTED = re.compile(rf"^[ ?-]{{{MOST_DEPTH // 5}}}", re.MULTILINE)
_MERGE, _TEXT, _DATE = (f"tag:yaml.org,2002:{name}" for name in ("merge", "str", "timestamp"))
_PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null")}
