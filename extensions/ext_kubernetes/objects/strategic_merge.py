"""Three-way patches as `kubectl apply` computes them, by the merge keys and patch strategies of the server's schemas.

Fields that the last applied manifest has and the new one has not are removed; other fields of the object remain. For
kinds without strategic merge (custom resources), the result is a JSON merge patch, which replaces lists entirely.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ext_sdk.expect.json_equality import equal, parse

from .fields import LAST_APPLIED, at, items, members, text
from .matching import is_quantity_field, same_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .yaml_loader import Object

    Versions = tuple[Sequence[object], Sequence[object], Sequence[object]]  # last applied, to apply, stored


STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
KINDS = "x-kubernetes-group-version-kind"
REFERENCE = "#/components/schemas/"
MERGE, REPLACE, RETAIN_KEYS = "merge", "replace", "retainKeys"
ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}  # as Go writes JSON


class Field(NamedTuple):
    """Merge rule of a field.

    Attributes:
        schema: name of the schema of its value, or of the items of its list; "" for scalars.
        merge_key: member that identifies the items of a list; "" for lists of scalars.
        strategies: MERGE, REPLACE or RETAIN_KEYS; without one, objects are merged and lists replaced.
    """

    schema: str = ""
    merge_key: str = ""
    strategies: tuple[str, ...] = ()


PLAIN = Field()


class MergeRules(NamedTuple):
    """Merge rules of the kinds of an API version.

    Attributes:
        kinds: the schema by the name of a kind; "" for a kind without strategic merge.
        schemas: the fields of each schema by name; fields without a rule are left out.
    """

    kinds: Mapping[str, str]
    schemas: Mapping[str, Mapping[str, Field]]


class NoMergeKey(ValueError):
    """An item of a list has no merge key; str() is the path and the reason."""


def merge_rules(document: object, group: str, version: str) -> MergeRules:
    """Return the merge rules in an OpenAPI v3 document of an API version."""
    schemas = members(document, "components", "schemas")
    roots = {
        text(kind, "kind"): name
        for name, schema in schemas.items()
        for kind in items(schema, KINDS)
        if (text(kind, "group"), text(kind, "version")) == (group, version)
    }
    kinds: dict[str, str] = {}
    for path in members(document, "paths").values():
        kind = members(path, "patch", KINDS)
        if (text(kind, "group"), text(kind, "version")) == (group, version):
            strategic = STRATEGIC_MERGE_PATCH in members(path, "patch", "requestBody", "content")
            kinds[text(kind, "kind")] = roots.get(text(kind, "kind"), "") if strategic else ""
    fields = {name: _fields(schema) for name, schema in schemas.items()}
    return MergeRules(kinds, {name: rules for name, rules in fields.items() if rules})


def _fields(schema: object) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for name, value in members(schema, "properties").items():
        strategies = text(value, "x-kubernetes-patch-strategy")
        inner = members(value, "items") or members(value)
        referring = next(iter(items(inner, "allOf")), inner)
        field = Field(
            text(referring, "$ref").removeprefix(REFERENCE),
            text(value, "x-kubernetes-patch-merge-key"),
            tuple(strategies.split(",")) if strategies else (),
        )
        if field != PLAIN:
            fields[name] = field
    return fields


def with_last_applied(item: Object) -> Object:
    """Return the object with kubectl's annotation of the last applied manifest, which contains the object itself.

    The text of the annotation has the same bytes as kubectl's: sorted, with characters of HTML escaped as in Go.
    """
    metadata = members(item, "metadata")
    annotations = {key: value for key, value in members(metadata, "annotations").items() if key != LAST_APPLIED}
    plain = item | {"metadata": metadata | {"annotations": annotations}}
    applied = json.dumps(_integers(plain), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    applied = applied.translate(ESCAPED) + "\n"
    return item | {"metadata": metadata | {"annotations": annotations | {LAST_APPLIED: applied}}}


def _integers(value: object) -> object:
    """Return a value with 1.0 as 1: Go has no other form of it."""
    if isinstance(value, dict):
        return {key: _integers(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_integers(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def last_applied(item: Object) -> Object:
    """Return the last applied manifest of an object; an empty one if it has none. Raises NotJson if it is not JSON."""
    applied = text(item, "metadata", "annotations", LAST_APPLIED)
    return members(parse(applied)) if applied else {}


def without_nulls(value: object) -> object:
    """Return a value without members that are null: a new object can't have them."""
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def three_way_patch(original: Object, modified: Object, current: Object, rules: MergeRules, kind: str) -> Object:
    """Return the patch that applies a manifest to an object; empty if it would change nothing.

    Args:
        original: the last applied manifest; empty if unknown.
        modified: the manifest to apply.
        current: the object as stored.
        kind: of the object; a JSON merge patch results if the rules have no schema for it.

    Raises:
        NoMergeKey: an item of a list has no merge key.
    """
    schema = rules.kinds.get(kind, "")
    return _ThreeWay(rules.schemas, strategic=bool(schema)).objects(original, modified, current, schema, "")


class _ThreeWay:
    """Comparison of three versions of an object: last applied, to apply, and stored."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Field]], *, strategic: bool) -> None:
        self._schemas = schemas
        self._strategic = strategic

    def objects(
        self, original: Object, modified: Object, current: Object, schema: str, path: str, *, retain: bool = False
    ) -> Object:
        """Return the patch of an object, or of one within it.

        Args:
            schema: name of its schema; "" if unknown.
            retain: fields that the manifest does not have are removed, such as the previous type of a volume.
        """
        patch: Object = {}
        fields = self._schemas.get(schema, {})
        for key, value in modified.items():
            found, before = current.get(key), original.get(key)
            field = fields.get(key, PLAIN)
            if value is None:
                if found is not None and (self._strategic or before is not None or key not in original):
                    patch[key] = None
            elif isinstance(value, dict) and isinstance(found, dict) and REPLACE not in field.strategies:
                nested = self.objects(
                    members(before),
                    value,
                    found,
                    field.schema,
                    f"{path}.{key}",
                    retain=RETAIN_KEYS in field.strategies,
                )
                patch |= {key: nested} if nested else {}
            elif isinstance(value, list) and isinstance(found, list) and MERGE in field.strategies:
                versions = before if isinstance(before, list) else [], value, found
                if field.merge_key:
                    patch |= self._list_of_objects(key, versions, field, f"{path}.{key}")
                else:
                    patch |= _list_of_scalars(key, versions)
            elif not (equal(value, found) or (is_quantity_field(f"{path}.{key}") and same_quantity(found, value))):
                patch[key] = without_nulls(value)
        patch |= {key: None for key in original if key not in modified and current.get(key) is not None}
        if retain and (patch or any(value is not None and key not in modified for key, value in current.items())):
            patch["$retainKeys"] = sorted(key for key, value in modified.items() if value is not None)
        return patch

    def _list_of_objects(self, key: str, versions: Versions, field: Field, path: str) -> Object:
        """Return the patch of a list whose items have a merge key; items with the same key are compared in order."""
        original, modified, current = (_by_key(version, field.merge_key) for version in versions)
        changed: list[object] = []
        order: list[object] = []
        numbers: Counter[str] = Counter()
        for index, item in enumerate(versions[1]):
            value = at(item, field.merge_key)
            if value is None:
                raise NoMergeKey(f"{path[1:]}[{index}]: expected an object with the member {field.merge_key!r}")
            name = str(value)
            number, numbers[name] = numbers[name], numbers[name] + 1
            order.append({field.merge_key: value})
            if number >= len(current.get(name, ())):
                changed.append(without_nulls(item))
                continue
            before = [*original.get(name, ()), *({} for _ in range(number + 1))][number]
            place, retain = f"{path}[{field.merge_key}={name}]", RETAIN_KEYS in field.strategies
            nested = self.objects(before, members(item), current[name][number], field.schema, place, retain=retain)
            changed += [nested | {field.merge_key: value}] if nested else []
        removed = [name for name in original if name not in modified and name in current]
        changed += [{field.merge_key: current[name][0][field.merge_key], "$patch": "delete"} for name in removed]
        reordered = [name for name in modified if name in current] != [name for name in current if name in modified]
        return _list_patch(key, changed, order, reordered)


def _list_of_scalars(key: str, versions: Versions) -> Object:
    """Return the patch of a list of scalars that is merged, such as finalizers."""
    original, modified, current = versions
    removed = [value for value in original if value not in modified and value in current]
    reordered = [value for value in modified if value in current] != [value for value in current if value in modified]
    patch = _list_patch(
        key, [value for value in modified if value not in current], modified, reordered or bool(removed)
    )
    return patch | ({f"$deleteFromPrimitiveList/{key}": removed} if removed else {})


def _list_patch(key: str, changed: Sequence[object], order: Sequence[object], reordered: bool) -> Object:
    """Return the members of a patch for a list, with the order of its items if something changes."""
    patch: Object = {key: list(changed)} if changed else {}
    return patch | ({f"$setElementOrder/{key}": list(order)} if order and (changed or reordered) else {})


def _by_key(listed: Sequence[object], merge_key: str) -> dict[str, list[Object]]:
    """Return the objects in a list by the text of their merge key."""
    found: dict[str, list[Object]] = {}
    for item in listed:
        if isinstance(item, dict) and item.get(merge_key) is not None:
            found.setdefault(str(item[merge_key]), []).append(item)
    return found
