"""Load and dump YAML as the API server reads it: the types of YAML 1.1 that Go has, within limits, without code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ext_sdk.core.text import cut

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import yaml


Object = dict[str, object]  # a Kubernetes object as JSON

# Any JSON value. msgspec accepts no narrower type for it.
Json = Any

UNREPLACED = (  # hint for the failure of a manifest with a reference in it
    "; `${NAME.key}` is not replaced in a manifest: use `create` with the members of the object (apiVersion, kind, "
    "metadata, …) as arguments, in which it is replaced"
)

MOST_DEPTH = 200  # levels of nesting
MOST_VALUES = 1_000_000  # of a document, after its aliases are expanded


class NotYaml(ValueError):
    """A text is not valid YAML; str() is the place and the reason."""


class NotAnObject(ValueError):
    """A document is not a Kubernetes object; str() is the place and the reason."""


def load_yaml(text: str) -> object:
    """Return the value of the first document. Raises NotYaml."""
    documents = [value for _, value in _documents(text)]
    return documents[0] if documents else None


def objects_of(text: str, where: str) -> list[tuple[Object, str]]:
    """Return the objects of a text, each with its place: `web.yaml, line 12`.

    Empty documents are skipped, and a List is replaced by its items.

    Args:
        text: YAML, or JSON, which is YAML too.
        where: name of the file, for errors.

    Raises:
        NotYaml: the text is not valid YAML.
        NotAnObject: a document has no apiVersion or kind.
    """
    objects: list[tuple[Object, str]] = []
    for line, value in _documents(text, where):
        place = f"{where}, line {line}"
        if value is not None:
            objects += [(item, place) for item in flatten(value, place)]
    return objects


def flatten(value: object, place: str) -> Iterator[Object]:
    """Yield the object, or the items of a List. Raises NotAnObject."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise NotAnObject(f"{place}: expected an object with apiVersion and kind, found {cut(repr(value), 60)}")
    missing = [key for key in ("apiVersion", "kind") if not (isinstance(value.get(key), str) and value[key])]
    if missing:
        raise NotAnObject(f"{place}: expected an object with apiVersion and kind; missing {' and '.join(missing)}")
    items, metadata = value.get("items"), value.get("metadata")
    named = isinstance(metadata, dict) and bool(metadata.get("name") or metadata.get("generateName"))
    # A List has neither a name nor a spec; AllowList may be a kind like any other.
    if str(value["kind"]).endswith("List") and isinstance(items, list) and not (named or "spec" in value):
        for number, item in enumerate(items):
            yield from flatten(item, f"{place}, items[{number}]")
    else:
        yield value


def _documents(text: str, where: str = "") -> Iterator[tuple[int, object]]:
    """Yield each document with the number of its first line."""
    import yaml

    try:
        # Deep nesting is rejected before objects are constructed, because the library recurses in C.
        depth, aliases = 0, False
        parser = yaml.CSafeLoader(text)
        while parser.check_event():
            event = parser.get_event()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MOST_DEPTH:
                    line = event.start_mark.line + 1 if event.start_mark else 0
                    raise NotYaml(f"{where}, line {line}: more than {MOST_DEPTH} levels deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            aliases = aliases or isinstance(event, yaml.AliasEvent)
        loader = _loader_class()(text)
        try:
            while loader.check_node():
                node = loader.get_node()
                if node is not None:
                    value = loader.construct_document(node)
                    if aliases:
                        _check_size(value, {}, where)
                    yield node.start_mark.line + 1, value
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}, line {mark.line + 1}" if mark else where
        raise NotYaml(f"{place.removeprefix(', ')}: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise NotYaml(f"{where}: {error}") from error


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


def _loader_class() -> type[yaml.CSafeLoader]:
    """Return a loader for objects: keys and dates are strings, duplicate keys are errors, `yes` is a boolean."""
    import yaml

    class Loader(yaml.CSafeLoader):
        """Loader that keeps keys as strings: `on: …` is a field of that name, not `true`."""

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


_MERGE, _TEXT, _DATE = (f"tag:yaml.org,2002:{name}" for name in ("merge", "str", "timestamp"))


def dump_yaml(value: object) -> str:
    """Return a value as YAML, with members in their order."""
    import yaml

    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1000)
    return text
