"""Who may do what: what is told beside the server's verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

NOBODY = {"verb": "get", "as": "nobody"}
DENIED = NOBODY | {"expect": {"allowed": False}}


def test_a_kind_that_is_misspelt_is_told_unless_it_is_checked(kube: Extension, api: FakeApi) -> None:
    api.denied |= {("get", "pods"), ("get", "podz")}
    assert "the server has no kind" not in kube.ok("auth-can-i", DENIED | {"resource": "pods"})["message"]
    told = kube.ok("auth-can-i", NOBODY | {"resource": "podz"})["message"]
    assert "denied; the server has no kind 'podz'; did you mean" in told


def test_the_user_of_the_step_is_named(kube: Extension, api: FakeApi) -> None:
    api.denied.add(("get", "pods"))
    args = {"verb": "get", "resource": "pods", "asUser": "jane", "expect": {"allowed": True}}
    assert "not met: jane can get pods cluster-wide: denied" in kube.failed("auth-can-i", args)
    assert "rules apply to jane" in kube.ok("auth-can-i", {"list": True, "asUser": "jane"})["message"]


def test_a_kind_with_its_group_is_asked_about_as_it_is(kube: Extension, api: FakeApi) -> None:
    kube.ok("auth-can-i", NOBODY | {"resource": "podz", "apiGroup": "example.com"})
    attributes = api.asked[-1].body["spec"]["resourceAttributes"]
    assert (attributes["resource"], attributes["group"]) == ("podz", "example.com")
    kube.ok("auth-can-i", NOBODY | {"resource": "deploy", "apiGroup": "apps", "expect": {"allowed": True}})
    assert api.asked[-1].body["spec"]["resourceAttributes"]["resource"] == "deployments"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"resource": "secret/it"}, "secrets has no subresource 'it'; it has none. For one object, set `resourceName"),
        ({"resource": "pods", "subresource": "logs"}, "pods has no subresource 'logs'; it has exec, log, status"),
        ({"resource": "secretes"}, "the server has no kind 'secretes'; did you mean Secret of v1?"),
        ({"resource": "secretes", "apiGroup": ""}, "the server has no kind 'secretes' in v1; did you mean Secret"),
        ({"resource": "deploy", "apiGroup": "app"}, "the server has no kind 'deploy.app'"),
        ({"resource": "secrets", "verb": "Delete"}, "found 'Delete'; did you mean delete?"),
        ({"resource": "*", "verb": "remove"}, "found 'remove'; known are get, list"),
        ({"resource": "secrets", "as": ""}, "as: expected a user, found an empty text"),
        ({"resource": "secrets", "as": "system:serviceaccounts:a:b"}, "found the group 'system:serviceaccounts:a:b'"),
    ],
)
def test_what_does_not_exist_is_not_denied(kube: Extension, args: dict[str, object], told: str) -> None:
    for allowed in (False, True):
        assert told in kube.failed("auth-can-i", DENIED | args | {"expect": {"allowed": allowed}})


@pytest.mark.parametrize(
    "args",
    [
        {"resource": "pods/log"},
        {"resource": "nodes/metrics"},
        {"resource": "deploy/finalizers", "verb": "update"},
        {"resource": "users", "verb": "impersonate"},
        {"resource": "roles", "verb": "escalate"},
        {"resource": "*", "verb": "*"},
        {"resource": "/metrics", "verb": "head"},
    ],
)
def test_names_of_rules_are_checked_although_they_are_no_kinds(kube: Extension, args: dict[str, object]) -> None:
    kube.ok("auth-can-i", DENIED | args | {"expect": {"allowed": True}})


def test_the_user_that_acts_is_named(kube: Extension, api: FakeApi) -> None:
    api.denied.add(("get", "pods"))
    acting = {"verb": "get", "resource": "pods", "asUser": "ada"}
    assert "met: ada can get pods cluster-wide: denied" in kube.failed(
        "auth-can-i", acting | {"expect": {"allowed": True}}
    )
    assert "apply to ada in" in kube.ok("auth-can-i", {"list": True, "asUser": "ada"})["message"]
