"""Who may do what: what is told beside the server's verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

DENIED = {"verb": "get", "as": "nobody", "expect": {"allowed": False}}


def test_a_kind_that_is_misspelt_is_told_though_it_is_denied_as_expected(kube: Extension, api: FakeApi) -> None:
    api.denied |= {("get", "pods"), ("get", "podz")}
    assert "the server has no kind" not in kube.ok("auth-can-i", DENIED | {"resource": "pods"})["message"]
    told = kube.ok("auth-can-i", DENIED | {"resource": "podz"})["message"]
    assert "denied; the server has no kind 'podz'; did you mean" in told


def test_the_user_of_the_step_is_named(kube: Extension, api: FakeApi) -> None:
    api.denied.add(("get", "pods"))
    args = {"verb": "get", "resource": "pods", "asUser": "jane", "expect": {"allowed": True}}
    assert "not met: jane can get pods cluster-wide: denied" in kube.failed("auth-can-i", args)
    assert "rules apply to jane" in kube.ok("auth-can-i", {"list": True, "asUser": "jane"})["message"]


def test_a_kind_with_its_group_is_asked_about_as_it_is(kube: Extension, api: FakeApi) -> None:
    api.denied.add(("get", "podz"))
    group = {"resource": "podz", "apiGroup": "example.com"}
    assert "the server has no kind" not in kube.ok("auth-can-i", DENIED | group)["message"]
