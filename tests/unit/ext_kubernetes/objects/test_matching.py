"""Partial matching, as a table: what is expected, what is there, and what is told where it differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ext_kubernetes.objects.fields import marked
from ext_kubernetes.objects.matching import Lists, WrongPattern, check_pattern, differences
from ext_sdk.expect import Searcher

if TYPE_CHECKING:
    from collections.abc import Iterator

FOUND: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}},
    "spec": {
        "replicas": 3,
        "paused": False,
        "containers": [
            {"name": "main", "image": "nginx:1.27", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}},
            {"name": "side", "image": "busybox:1.36"},
        ],
        "args": ["a", "b", "b"],
        "big": 9007199254740993,
    },
    "node": {"memory": "24684084Ki"},
}

SAME: list[dict[str, Any]] = [
    {},
    {"metadata": {"labels": {"app": "web"}}},
    {"spec": {"replicas": 3.0}},
    {"spec": {"missing": None}},
    {"spec": {"containers": [{"name": "side"}, {"image": "nginx:1.27"}]}},
    {"spec": {"args": ["b", "a", "b"]}},
    {"spec": {"replicas": {"$gte": 3, "$lt": 4}}},
    {"spec": {"replicas": {"$in": [1, 3]}}},
    {"spec": {"replicas": {"$ne": 2}}},
    {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": {"$lte": "0.5"}}}}]}},
    {"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": {"$gt": "1000M"}}}}]}},
    {"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": {"$gt": "1023Ki"}}}}]}},
    {"node": {"memory": {"$gt": "1Mi", "$lt": "24Gi", "$gte": "24684084Ki", "$lte": 25276502016}}},
    {"spec": {"containers": {"$length": 2}}},
    {"spec": {"containers": {"$length": {"$gt": 1}}}},
    {"spec": {"containers": {"$every": {"image": {"$matches": ":[0-9.]+$"}}}}},
    {"spec": {"containers": {"$contains": {"name": "side"}}}},
    {"spec": {"containers": {"$not": {"$contains": {"name": "third"}}}}},
    {"spec": {"paused": {"$exists": True}, "missing": {"$exists": False}}},
    {"spec": {"paused": {"$type": "boolean"}}},
    {"metadata": {"labels": {"$equals": {"app": "web", "tier": "front"}}}},
    {"metadata": {"name": {"$contains": "eb", "$notIn": ["db"]}}},
    {"spec": {"big": 9007199254740993}},
]

OTHER: list[tuple[dict[str, Any], str]] = [
    ({"spec": {"replicas": 4}}, "spec.replicas: expected 4, found 3"),
    ({"spec": {"replicas": "3"}}, 'spec.replicas: expected "3", found 3'),
    ({"spec": {"paused": 0}}, "spec.paused: expected 0, found false"),
    ({"spec": {"missing": 1}}, "spec.missing: expected 1, found nothing"),
    ({"spec": {"replicas": {"gte": 2}}}, 'spec.replicas: expected {"gte": 2} (operators begin with $: $gte), found 3'),
    ({"spec": {"paused": None}}, "spec.paused: expected nothing, found false"),
    ({"spec": {"big": 9007199254740992}}, "spec.big: expected 9007199254740992, found 9007199254740993"),
    (
        {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}},
        'spec.containers[name=main].image: expected "nginx:2", found "nginx:1.27"',
    ),
    ({"spec": {"containers": [{"name": "third"}]}}, "spec.containers[name=third]"),
    ({"spec": {"args": ["a", "a"]}}, "spec.args[1]"),
    ({"spec": {"replicas": {"$gt": 3}}}, "spec.replicas: expected more than 3, found 3"),
    ({"spec": {"paused": {"$gt": 0}}}, "spec.paused: expected more than 0, found false"),
    ({"spec": {"missing": {"$gt": 0}}}, "spec.missing: expected more than 0, found nothing"),
    ({"spec": {"missing": {"$in": [None]}}}, "spec.missing: expected one of [null], found nothing"),
    ({"spec": {"containers": {"$length": 3}}}, "length of spec.containers: expected 3, found 2"),
    ({"spec": {"containers": {"$every": {"name": "main"}}}}, "spec.containers[1].name"),
    ({"spec": {"replicas": {"$not": 3}}}, "spec.replicas: expected not 3, found 3"),
    ({"metadata": {"labels": {"$equals": {"app": "web"}}}}, "metadata.labels.tier: expected nothing, found "),
    ({"metadata": {"labels": {"$equals": {"app": "db"}}}}, 'metadata.labels.app: expected "db", found "web"'),
    (
        {"metadata": {"labels": {"$equals": {"app": "web", "x": 1}}}},
        "metadata.labels.x: expected 1, found nothing",
    ),
    ({"metadata": {"missing": {"$equals": {}}}}, "metadata.missing: expected {}, found nothing"),
    ({"$equals": {}}, "metadata: expected nothing, found "),
    ({"metadata": {"name": {"$matches": "^b"}}}, 'metadata.name: expected text that matches "^b", found "web"'),
]


@pytest.fixture
def searcher() -> Iterator[Searcher]:
    with Searcher() as one:
        yield one


@pytest.mark.parametrize("expected", SAME, ids=str)
def test_what_is_so_has_no_differences(expected: dict[str, Any], searcher: Searcher) -> None:
    check_pattern(expected)
    assert differences(expected, FOUND, searcher=searcher) == []


@pytest.mark.parametrize(("expected", "told"), OTHER, ids=lambda one: one if isinstance(one, str) else "")
def test_what_is_not_so_is_told_with_its_place(expected: dict[str, Any], told: str, searcher: Searcher) -> None:
    (difference,) = differences(expected, FOUND, searcher=searcher)
    assert str(difference).startswith(told)


@pytest.mark.parametrize(("lists", "expected", "count"), [
    ("order", ["a", "b"], 0),
    ("order", ["b", "a"], 2),
    ("exact", ["a", "b", "b"], 0),
    ("exact", ["a", "b"], 1),
    ("key", ["b", "b", "b"], 1),
])  # fmt: skip
def test_lists_are_compared_in_three_ways(lists: Lists, expected: list[str], count: int, searcher: Searcher) -> None:
    assert len(differences(expected, FOUND["spec"]["args"], lists=lists, searcher=searcher)) == count


@pytest.mark.parametrize(("expected", "told"), [
    ({"a": {"$gtt": 1}}, "expected.a: unknown operator $gtt"),
    ({"a": {"$gt": 1, "b": 2}}, "expected.a: expected operators or members, found both ($gt)"),
    ({"a": [{"$in": []}]}, "expected.a[0].$in: expected a list that is not empty"),
    ({"a": {"$gt": "many"}}, "expected.a.$gt: expected a number, or a quantity"),
    ({"a": {"$exists": "yes"}}, "expected.a.$exists: expected true or false"),
    ({"a": {"$matches": "("}}, "expected.a.$matches: "),
    ({"a": {"$every": {"$nothing": 1}}}, "expected.a.$every: unknown operator $nothing"),
])  # fmt: skip
def test_an_operator_that_can_not_be_is_refused(expected: dict[str, Any], told: str) -> None:
    with pytest.raises(WrongPattern) as caught:
        check_pattern(expected)
    assert str(caught.value).startswith(told)


def test_of_an_item_without_a_key_the_nearest_is_told(searcher: Searcher) -> None:
    paths: list[Any] = [{"path": "/a", "pathType": "Exact"}, {"path": "/b", "pathType": "Prefix", "more": "x" * 500}]
    found: dict[str, Any] = {"rules": [{"http": {"paths": paths}}]}
    expected: dict[str, Any] = {"rules": [{"http": {"paths": [{"path": "/b", "pathType": "Exact"}]}}]}
    (difference,) = differences(expected, found, searcher=searcher)
    assert str(difference) == 'rules[0].http.paths[path=/b].pathType: expected "Exact", found "Prefix"'
    found["rules"].insert(0, {"http": {"paths": []}})
    expected["rules"][0]["host"] = "h"
    two = list(map(str, differences(expected, found, searcher=searcher)))
    assert two == [
        'rules[1].http.paths[path=/b].pathType: expected "Exact", found "Prefix" (the nearest of 2 items)',
        'rules[1].host: expected "h", found nothing (the nearest of 2 items)',
    ]


def test_a_scalar_that_is_missing_in_a_list_is_shown_with_the_list(searcher: Searcher) -> None:
    (difference,) = differences(["c"], ["a", "b"], searcher=searcher, path="args")
    assert str(difference) == 'args[0]: expected "c", found no such item in ["a", "b"]'


def test_values_of_secrets_are_not_compared_line_by_line(searcher: Searcher) -> None:
    found = marked({"kind": "Secret", "data": {"key": "one\ntwo\nthree"}})
    (difference,) = differences({"data": {"key": "one\ntwo\nfour"}}, found, searcher=searcher, redact=lambda text: text)
    assert difference.lines == ()
    assert "three" not in difference.paragraph


def test_containing_an_empty_object_is_refused_with_what_is_meant() -> None:
    with pytest.raises(WrongPattern, match=r"use \{\$equals: \{\}\} for an empty one"):
        check_pattern({"spec": {"ingress": {"$contains": {}}}})
    check_pattern({"spec": {"ingress": {"$contains": {"$equals": {}}}}})


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ({"resources": {"limits": {"memory": "1024Mi"}}}, {"resources": {"limits": {"memory": "1Gi"}}}, True),
        ({"limits": {"cpu": 0.5}}, {"limits": {"cpu": "500m"}}, True),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1500m"}}, False),
        ({"hard": {"requests.cpu": "2000m"}}, {"hard": {"requests.cpu": "2"}}, True),
        ({"emptyDir": {"sizeLimit": "1024Ki"}}, {"emptyDir": {"sizeLimit": "1Mi"}}, True),
        ({"labels": {"size": "1024Mi"}}, {"labels": {"size": "1Gi"}}, False),
        ({"size": {"$quantity": "1024Mi"}}, {"size": "1Gi"}, True),
        ({"size": {"$quantity": "1Gi"}}, {"size": "2Gi"}, False),
        ({"size": {"$quantity": "1Gi"}}, {"size": "large"}, False),
        ({"limits": {"memory": {"$equals": "1024Mi"}}}, {"limits": {"memory": "1Gi"}}, False),
    ],
)
def test_quantities_are_equal_by_their_amount_where_the_api_has_quantities(
    expected: object, found: object, same: bool
) -> None:
    with Searcher() as searcher:
        assert (differences(expected, found, searcher=searcher) == []) == same
