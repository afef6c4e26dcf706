"""Load and dump YAML as the API server understands it: YAML 1.1 types that Go reads, limits, no code."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    import yaml


Object = dict[str, object]  # an object of a cluster, as JSON has it

# Whatever JSON has: msgspec takes nothing narrower for it. Mypy does not look into it.
Json = Any

UNREPLACED = (  # what to add to a failure of a manifest with a reference in it
    "; `${NAME.key}` is not replaced in a manifest: give `create` the object by its members (apiVersion, kind, "
    "metadata and so on), where it is"
)

MOST_DEPTH = 200  # levels of a document
MOST_VALUES = 1_000_000  # of a document with aliases


class NotYaml(ValueError):
    """A text is no YAML; str() says where and why."""


class NoObject(ValueError):
    """A document is no object of Kubernetes; str() says what is missing."""


def load_yaml(text: str) -> object:
    """The value of one document. Raises NotYaml."""
    documents = [value for _, value in _documents(text)]
    return documents[0] if documents else None


def load_plain_yaml(stream: str | IO[str]) -> object:
    """Return the value of one document as `yaml.safe_load` does, by the parser that is written in C."""
    import yaml

    loader = yaml.CSafeLoader(stream)
    try:
        value: object = loader.get_single_data()
    finally:
        loader.dispose()
    return value


def objects_of(text: str, where: str) -> list[tuple[Object, str]]:
    """The objects of a text, each with where it was: `web.yaml, line 12`.

    Empty documents are passed over, and the items of a List stand for it.

    Args:
        text: YAML, or JSON, which is YAML too.
        where: name of the file, for errors.

    Raises:
        NotYaml: the text is none.
        NoObject: a document has no apiVersion or kind.
    """
    found: list[tuple[Object, str]] = []
    for line, value in _documents(text, where):
        place = f"{where}, line {line}"
        if value is not None:
            found += [(one, place) for one in flat(value, place)]
    return found


def flat(value: object, place: str) -> Iterator[Object]:
    """The object, or the items of a List."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise NoObject(f"{place}: expected an object with apiVersion and kind, found {_short(value)}")
    missing = [key for key in ("apiVersion", "kind") if not (isinstance(value.get(key), str) and value[key])]
    if missing:
        raise NoObject(f"{place}: expected an object with apiVersion and kind, found none of {' and '.join(missing)}")
    items = value.get("items")
    if str(value["kind"]).endswith("List") and isinstance(items, list) and not _is_itself(value):
        for number, item in enumerate(items):
            yield from flat(item, f"{place}, items[{number}]")
    else:
        yield value


def _is_itself(value: Object) -> bool:
    """Whether an object has a name, or a spec: AllowList is a kind like any other, and a List has neither."""
    metadata = value.get("metadata")
    named = isinstance(metadata, dict) and bool(metadata.get("name") or metadata.get("generateName"))
    return named or "spec" in value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _documents(text: str, where: str = "") -> Iterator[tuple[int, object]]:
    """Each document with the number of its first line."""
    import yaml

    try:
        aliases = _bounded(text, where)
        loader = _loader_class()(text)
        try:
            while loader.check_node():
                node = loader.get_node()
                if node is not None:
                    value = loader.construct_document(node)
                    if aliases:
                        _size(value, {}, where)
                    yield node.start_mark.line + 1, value
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}, line {mark.line + 1}" if mark else where
        raise NotYaml(f"{place.removeprefix(', ')}: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise NotYaml(f"{where}: {error}") from error


def _bounded(text: str, where: str) -> bool:
    """Look at the nesting first, for the library recurses in C; returns whether there are aliases."""
    import yaml

    depth, aliases = 0, False
    loader = yaml.CSafeLoader(text)
    while loader.check_event():
        event = loader.get_event()
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 0
                raise NotYaml(f"{where}, line {line}: more than {MOST_DEPTH} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        aliases = aliases or isinstance(event, yaml.AliasEvent)
    return aliases


def _size(value: object, known: dict[int, int], where: str) -> int:
    """How many values there are with every alias written out: few lines can stand for billions."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = MOST_VALUES + 1  # what contains itself has no end
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(one, known, where) for one in inner)
    if known[id(value)] > MOST_VALUES:
        raise NotYaml(f"{where}: aliases stand for more than {MOST_VALUES:,} values")
    return known[id(value)]


def _loader_class() -> type[yaml.CSafeLoader]:
    """YAML as objects need it: keys and dates are text, a key that comes twice is an error, `yes` is a boolean."""
    import yaml

    class Loader(yaml.CSafeLoader):
        """With keys as they are spelled: `on: …` is a field of that name, and not `true`."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
            spelled = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
            seen: set[str] = set()
            for key in spelled:
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {key.value!r} comes twice", problem_mark=key.start_mark
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
    """The text of a value, members in their order."""
    import yaml

    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1000)
    return text
