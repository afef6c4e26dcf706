"""Texts to objects: YAML and JSON, several documents, Lists; and the only module that knows the YAML library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

Object = dict[str, object]  # an object of a cluster, as JSON has it
# Whatever JSON has: msgspec takes nothing narrower for it. Mypy does not look into it.
Json = Any

MOST_DEPTH = 100  # levels of a document


class NotYaml(ValueError):
    """A text is no YAML; str() says where and why."""


class NoObject(ValueError):
    """A document is no object of Kubernetes; str() says what is missing."""


def load_yaml(text: str) -> object:
    """The value of one document. Raises NotYaml."""
    documents = [value for _, value in _documents(text)]
    return documents[0] if documents else None


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
    # AllowList is a kind like any other; a List has items and no spec of its own
    if str(value["kind"]).endswith("List") and isinstance(items, list) and "spec" not in value:
        for number, item in enumerate(items):
            yield from flat(item, f"{place}, items[{number}]")
    else:
        yield value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _documents(text: str, where: str = "") -> Iterator[tuple[int, object]]:
    """Each document with the number of its first line."""
    import yaml

    loader = _loader_class()(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node.start_mark.line + 1, loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}" if mark else ""
        raise NotYaml(f"{where}{place}: {error.problem or error.context}".removeprefix(", ")) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise NotYaml(f"{where}: {str(error) or 'nested too deeply'}") from error
    finally:
        loader.dispose()


def _loader_class() -> type[yaml.CSafeLoader]:
    """YAML as Kubernetes reads it: dates are text, `yes` and `no` too are what its library makes of them: booleans."""
    import yaml

    class Loader(yaml.CSafeLoader):
        """Without dates: JSON has none."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def dump_yaml(value: object) -> str:
    """The text of a value, members in their order."""
    import yaml

    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1000)
    return text
