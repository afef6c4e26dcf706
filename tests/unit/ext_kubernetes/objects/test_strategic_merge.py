"""Three-way patches; tests/live compares their results with those of kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ext_kubernetes.objects.fields import LAST_APPLIED
from ext_kubernetes.objects.strategic_merge import (
    KINDS,
    STRATEGIC_MERGE_PATCH,
    NoMergeKey,
    last_applied,
    merge_rules,
    three_way_patch,
    with_last_applied,
    without_nulls,
)
from ext_sdk.expect.json_equality import NotJson

if TYPE_CHECKING:
    from ext_kubernetes.objects.yaml_loader import Object

KIND = {"group": "apps", "version": "v1", "kind": "Web"}
OTHER = {"group": "apps", "version": "v1", "kind": "Other"}


def referring(name: str, **extensions: str) -> Object:
    more = {f"x-kubernetes-patch-{key.replace('_', '-')}": value for key, value in extensions.items()}
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], **more}


def listed(name: str, **extensions: str) -> Object:
    return {"type": "array", **referring(name, **extensions), "items": referring(name), "allOf": []}


DOCUMENT = {
    "paths": {
        "/web": {"patch": {KINDS: KIND, "requestBody": {"content": {STRATEGIC_MERGE_PATCH: {}}}}},
        "/other": {"patch": {KINDS: OTHER, "requestBody": {"content": {"application/merge-patch+json": {}}}}},
        "/scale": {"get": {}},
    },
    "components": {
        "schemas": {
            "Web": {
                KINDS: [KIND],
                "properties": {
                    "list": listed("Part", strategy="merge,retainKeys", merge_key="name"),
                    "names": {"type": "array", "x-kubernetes-patch-strategy": "merge"},
                    "choice": referring("Choice", strategy="retainKeys"),
                    "atomic": referring("Choice", strategy="replace"),
                },
            },
            "Part": {"properties": {"inner": listed("Inner", strategy="merge", merge_key="key")}},
            "Other": {KINDS: [OTHER], "properties": {}},
        }
    },
}
RULES = merge_rules(DOCUMENT, "apps", "v1")


def patch(original: Any, modified: Any, current: Any, kind: str = "Web") -> Object:
    return three_way_patch(original, modified, current, RULES, kind)


@pytest.mark.parametrize("kind", ["Web", "Other"])
def test_what_the_last_manifest_had_is_removed_and_the_rest_stays(kind: str) -> None:
    current = {"a": {"x": 1, "y": 2, "theirs": 3}, "b": [1, 2], "theirs": 4}
    original = {"a": {"x": 1, "y": 2}, "b": [1, 2], "never": 1}
    assert patch(original, {"a": {"x": 5}}, current, kind) == {"a": {"x": 5, "y": None}, "b": None}
    assert patch(original, original | {"never": None}, current, kind) == {}
    assert patch({}, {"b": [1], "c": {"d": None}}, current, kind) == {"b": [1], "c": {}}


def test_an_explicit_null_removes_what_others_set_but_not_again_in_a_json_merge_patch() -> None:
    for kind in ("Web", "Other"):
        assert patch({}, {"a": None}, {"a": 1}, kind) == {"a": None}
        assert patch({"a": 1}, {"a": None}, {"a": 1}, kind) == {"a": None}
    assert patch({"a": None}, {"a": None}, {"a": 1}) == {"a": None}
    assert patch({"a": None}, {"a": None}, {"a": 1}, "Other") == {}


def test_items_are_merged_by_their_key() -> None:
    current = {"list": [{"name": "a", "x": 1}, {"name": "b", "inner": [{"key": 1, "z": 1}]}, {"name": "theirs"}]}
    original = {"list": [{"name": "a", "x": 1}, {"name": "b", "inner": [{"key": 1}]}, {"name": "never"}]}
    modified = {"list": [{"name": "c"}, {"name": "b", "inner": [{"key": 1, "z": 2}, {"key": 2}]}]}
    assert patch(original, modified, current) == {
        "list": [
            {"name": "c"},
            {
                "name": "b",
                "inner": [{"key": 1, "z": 2}, {"key": 2}],
                "$setElementOrder/inner": [{"key": 1}, {"key": 2}],
                "$retainKeys": ["inner", "name"],
            },
            {"name": "a", "$patch": "delete"},
        ],
        "$setElementOrder/list": [{"name": "c"}, {"name": "b"}],
    }
    assert patch(original, modified, current, "Other") == modified


def test_another_order_of_items_is_a_change() -> None:
    a, b, c = ({"name": name} for name in "abc")
    assert patch({}, {"list": [b, a]}, {"list": [a, c, b]}) == {"$setElementOrder/list": [b, a]}
    assert patch({}, {"list": [a, b]}, {"list": [a, c, b]}) == {}


def test_items_of_the_same_key_are_compared_in_their_order() -> None:
    current = {"list": [{"name": "a", "x": 1}, {"name": "a", "x": 2}]}
    assert patch(current, current, current) == {}


def test_scalars_are_merged() -> None:
    assert patch({"names": ["a", "b"]}, {"names": ["b", "c"]}, {"names": ["a", "b", "theirs"]}) == {
        "names": ["c"],
        "$setElementOrder/names": ["b", "c"],
        "$deleteFromPrimitiveList/names": ["a"],
    }


def test_fields_that_exclude_each_other_are_replaced() -> None:
    current = {"choice": {"one": {"x": 1}, "kind": "a"}, "atomic": {"one": 1, "two": 2}}
    modified = {"choice": {"two": {}, "kind": "a"}, "atomic": {"two": 2}}
    assert patch({}, modified, current) == {
        "choice": {"two": {}, "$retainKeys": ["kind", "two"]},
        "atomic": {"two": 2},
    }


def test_an_item_without_its_key_is_named_with_its_path() -> None:
    with pytest.raises(NoMergeKey, match=r"list\[name=b\]\.inner\[1\]: expected an object with the member 'key'"):
        patch({}, {"list": [{"name": "b", "inner": [{"key": 1}, {}]}]}, {"list": [{"name": "b", "inner": [{}]}]})


def test_equal_quantities_are_no_change() -> None:
    assert patch({}, {"limits": {"memory": "1024Mi"}}, {"limits": {"memory": "1Gi"}}) == {}


def test_the_annotation_has_the_bytes_of_kubectl() -> None:
    item = {"metadata": {"name": "ü", "annotations": {LAST_APPLIED: "old"}}, "b": 1.0, "a": "<&>", "n": None}
    applied = with_last_applied(item)
    text = '{"a":"\\u003c\\u0026\\u003e","b":1,"metadata":{"annotations":{},"name":"ü"},"n":null}\n'
    assert applied["metadata"] == {"name": "ü", "annotations": {LAST_APPLIED: text}}
    assert last_applied(applied)["a"] == "<&>"
    assert last_applied({}) == {}
    with pytest.raises(NotJson):
        last_applied({"metadata": {"annotations": {LAST_APPLIED: "{"}}})


def test_nulls_are_left_out_at_any_depth() -> None:
    assert without_nulls({"a": None, "b": [{"c": None}], "d": {"e": None}}) == {"b": [{}], "d": {}}
