"""Load and dump YAML as the API server reads it: the types of YAML 1.1 that Go has, within limits, without code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ext_sdk.core.text import cut
from ext_sdk.expect import documents
from ext_sdk.expect.documents import yaml_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Object = dict[str, object]  # a Kubernetes object as JSON

# Any JSON value. msgspec accepts no narrower type for it.
Json = Any

UNREPLACED = (  # hint for the failure of a manifest with a reference in it
    "; `${NAME.key}` is replaced in a manifest only with `expand: true`"
)

QUOTED = (  # hint for a string at the place of a number
    "; a quoted value is a string, and so is `${NAME.key}` in a manifest that is an object; in YAML text an unquoted "
    "`${NAME.key}` becomes a number"
)


NotYaml = documents.NotYaml


class NotAnObject(ValueError):
    """A document is not a Kubernetes object; str() is the place and the reason."""


def load_yaml(text: str) -> object:
    """Return the value of the first document. Raises NotYaml."""
    documents = [value for _, value in yaml_documents(text)]
    return documents[0] if documents else None


def objects_of(text: str, where: str, fill: Callable[[str], str] | None = None) -> list[tuple[Object, str]]:
    """Return the objects of a text, each with its place: `web.yaml, line 12`.

    Empty documents are skipped, and a List is replaced by its items.

    Args:
        text: YAML, or JSON, which is YAML too.
        where: name of the file, for errors.
        fill: fills in the placeholders of a scalar; see yaml_documents.

    Raises:
        NotYaml: the text is not valid YAML.
        NotAnObject: a document has no apiVersion or kind.
    """
    objects: list[tuple[Object, str]] = []
    for line, value in yaml_documents(text, where, fill):
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


def dump_yaml(value: object) -> str:
    """Return a value as YAML, with members in their order."""
    import yaml

    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=1000)
    return text
