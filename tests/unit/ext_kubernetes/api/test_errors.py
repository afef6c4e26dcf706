"""What a user reads when a server refuses."""

from __future__ import annotations

import pytest

from ext_kubernetes.api.errors import Unreachable, api_error

UNKNOWN_FIELD = 'strict decoding error: unknown field "spec.ports[0].nam"'


def test_refused_credentials_are_the_headline() -> None:
    error = api_error(401, {"message": "Unauthorized", "reason": "Unauthorized"}, user="ada")
    assert error.message == "the credentials of ada were rejected"
    assert "they have expired" in str(error.error)


@pytest.mark.parametrize("quoted", ['{"data":{"word":"sesame"}}', 'map[data:map[word:sesame "]" x]]'])
def test_what_was_sent_is_not_repeated(quoted: str) -> None:
    error = api_error(422, {"message": f' "" is invalid: patch: Invalid value: "{quoted}": {UNKNOWN_FIELD}'})
    assert error.message == f'patch: Invalid value: "{{…}}": {UNKNOWN_FIELD}'
    assert "sesame" not in str(error.error)


def test_a_line_that_a_server_ends_does_not_break_ours() -> None:
    error = api_error(400, {"message": 'previous terminated container "c" not found\n', "reason": "BadRequest"})
    assert error.error == 'previous terminated container "c" not found (400 BadRequest)'


@pytest.mark.parametrize(
    "text", [f'Service in version "v1" cannot be handled: {UNKNOWN_FIELD}', ".spec.nam: field not declared in schema"]
)
def test_an_unknown_field_comes_with_advice(text: str) -> None:
    assert str(api_error(400, {"message": text}).error).endswith("check its spelling and position")


def test_several_causes_are_told_once() -> None:
    causes = [
        {"field": "metadata.name", "message": "Invalid value: no"},
        {"field": "data", "message": "Required value"},
    ]
    text = 'ConfigMap "X" is invalid: [metadata.name: Invalid value: no, data: Required value]'
    error = api_error(422, {"message": text, "reason": "Invalid", "details": {"causes": causes}})
    assert (
        error.error == 'ConfigMap "X" is invalid (422 Invalid): metadata.name: Invalid value: no; data: Required value'
    )


def test_a_certificate_that_is_not_trusted_is_no_absent_server() -> None:
    reason = "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"
    error = Unreachable("https://one:6443", reason, 0.1, answered=False)
    assert "Check certificate-authority-data" in str(error.error)
    assert "Check that the cluster is running" in str(
        Unreachable("https://one:6443", "refused", 0.1, answered=False).error
    )


UNTYPED = "failed to create typed patch object (default/one; /v1, Kind=Secret): "


@pytest.mark.parametrize(
    ("value", "told"),
    [("4711", "a number"), ("1.5", "a number"), ("true", "a boolean"), ("map[string]interface {}{}", "an object")],
)
def test_a_value_of_the_wrong_type_is_not_repeated_and_comes_with_advice(value: str, told: str) -> None:
    text = f"{UNTYPED}errors:\n  .data.a: expected string, got &value.valueUnstructured{{Value:{value}}}\n  .data.b: no"
    error = api_error(500, {"message": text})
    assert f".data.a: expected string, got {told}\n  .data.b: no" in str(error.error)
    assert value not in str(error.error).partition("Quote the value")[0]
    assert "Quote the value" in str(error.error)


@pytest.mark.parametrize("text", [".a: expected string, got 1", ".spec.nam: field not declared in schema"])
def test_what_does_not_fit_its_kind_is_not_sent_again_though_it_is_a_500(text: str) -> None:
    assert not api_error(500, {"message": UNTYPED + text}).retryable
    assert api_error(500, {"message": "etcd is busy"}).retryable


def test_a_role_is_advised_where_one_is_missing_and_not_where_the_cluster_refuses_by_itself() -> None:
    missing = 'pods is forbidden: User "ada" cannot list resource "pods" in API group ""'
    assert "Give the user a Role" in str(api_error(403, {"message": missing}).error)
    refused = 'priorityclasses "a" is forbidden: this is a system priority class and cannot be deleted'
    assert "A policy, quota or admission controller" in str(api_error(403, {"message": refused}).error)


def test_a_busy_server_is_told_with_the_time_that_it_asks_for() -> None:
    assert "asks to wait 600 s" in str(api_error(429, {"message": "slow down"}, retry_after=600.0).error)
    assert str(api_error(429, {"message": "slow down"}).error).endswith("try later")


def test_what_a_server_leaves_out_of_a_refused_json_patch_is_told() -> None:
    text = "the server rejected our request due to an error in our request"
    assert "a `test` failed" in str(api_error(422, {"message": text, "reason": "Invalid"}).error)
