"""What a user reads when a server refuses."""

from __future__ import annotations

import pytest

from ext_kubernetes.errors import Unreachable
from ext_kubernetes.statuses import api_error

UNKNOWN_FIELD = 'strict decoding error: unknown field "spec.ports[0].nam"'


def test_refused_credentials_are_the_headline() -> None:
    error = api_error(401, {"message": "Unauthorized", "reason": "Unauthorized"}, user="ada")
    assert error.message == "the credentials of ada are refused"
    assert "they have expired" in str(error.error)


@pytest.mark.parametrize("quoted", ['{"data":{"word":"sesame"}}', 'map[data:map[word:sesame "]" x]]'])
def test_what_was_sent_is_not_repeated(quoted: str) -> None:
    error = api_error(422, {"message": f' "" is invalid: patch: Invalid value: "{quoted}": {UNKNOWN_FIELD}'})
    assert error.message == f'patch: Invalid value: "{{…}}": {UNKNOWN_FIELD}'
    assert "sesame" not in str(error.error)


@pytest.mark.parametrize(
    "text", [f'Service in version "v1" cannot be handled: {UNKNOWN_FIELD}', ".spec.nam: field not declared in schema"]
)
def test_an_unknown_field_comes_with_advice(text: str) -> None:
    assert str(api_error(400, {"message": text}).error).endswith("check how it is spelled and where it stands")


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
    assert "Does the kubeconfig have the certificate-authority-data" in str(error.error)
    assert "Is the cluster running" in str(Unreachable("https://one:6443", "refused", 0.1, answered=False).error)
