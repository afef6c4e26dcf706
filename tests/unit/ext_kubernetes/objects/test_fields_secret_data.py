"""No operation shows the values of a Secret: neither in results, nor in logs, nor in the files it leaves."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ext_kubernetes.objects.fields import PLACEHOLDER, has_hidden, marked
from ext_kubernetes.objects.kubectl_jsonpath import values
from tests.support.host import parameters, request

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

PLAIN = "tomte-gr0t"
ENCODED = base64.b64encode(PLAIN.encode()).decode()
SHORT = "eDc="  # of `x7`: shorter than what the redactor hides
LAST_APPLIED = json.dumps({"data": {"password": ENCODED}})
SECRET = {
    "metadata": {
        "name": "s",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": LAST_APPLIED},
    },
    "data": {"password": ENCODED, "pin": SHORT},
    "stringData": {"extra": PLAIN},
}
ANNOTATION = r"{.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration}"


def run(kube: Extension, operation: str, args: object) -> tuple[dict[str, Any], str]:
    """The result of an operation, and all that it made visible: result, logs, and the file with the whole story."""
    kube.peer.send(request(operation, "execute", parameters(operation, args, **kube.context())))
    told = [kube.peer.message()]
    while told[-1].get("method") == "log":
        told.append(kube.peer.message())
    result = told[-1].get("result")
    assert isinstance(result, dict), told[-1]
    story = result.get("outputs", {}).get("storyFile")
    return result, json.dumps(told) + (Path(story).read_text() if story else "")


def expects(**expected: object) -> dict[str, object]:
    return {"resource": "secret/s", "expected": expected, "timeout": "0s"}


FAILING: list[tuple[str, dict[str, Any]]] = [
    ("assert", expects(data={"password": "other", "pin": "other"})),
    ("assert", expects(data={"password": {"$matches": "^z"}, "pin": {"$gt": 3}})),
    ("assert", expects(data={"$equals": {"a": "b"}})),
    ("assert", expects(**{"$contains": "nothing-like-it"})),
    ("assert", expects(**{"$not": {"kind": "Secret"}})),
    ("assert", expects(metadata={"annotations": {"$every": {"a": "b"}}})),
    ("assert", expects(metadata={"annotations": {"$equals": {}}})),
    ("assert", {"resource": "secrets", "expected": {"data": {"pin": "other"}}, "count": 1, "timeout": "0s"}),
    ("wait", {"resource": "secret/s", "jsonPath": "{.data.password}", "value": "other", "timeout": "0s"}),
    ("wait", {"resource": "secret/s", "jsonPath": "$.data.pin", "value": "other", "timeout": "0s"}),
    ("wait", {"resource": "secret/s", "jsonPath": "$.data", "value": "other", "timeout": "0s"}),
    ("wait", {"resource": "secret/s", "jsonPath": "pin={.data.pin}", "value": "other", "timeout": "0s"}),
    ("wait", {"resource": "secret/s", "jsonPath": ANNOTATION, "value": "other", "timeout": "0s"}),
    ("wait", {"resource": "secret/s", "condition": "Ready", "timeout": "0s"}),
    (
        "stable",
        {"resource": "secret/s", "jsonPath": "{.data.password}", "value": "x", "for": "50ms", "timeout": "100ms"},
    ),
    ("condition", {"resource": "secret/s", "conditionType": "Ready", "timeout": "0s"}),
]
SHOWING = [FAILING[0], FAILING[1], *FAILING[8:13]]  # that have to say what they found
PASSING: list[tuple[str, dict[str, Any]]] = [
    ("assert", expects(data={"password": {"$matches": "="}, "pin": {"$exists": True}})),
    ("wait", {"resource": "secret/s", "jsonPath": "{.data.password}", "timeout": "0s"}),
    ("wait", {"resource": "secret/s", "jsonPath": "{.data.pin}{.data.password}", "timeout": "0s"}),
    ("stable", {"resource": "secret/s", "jsonPath": "$.data.*", "for": "20ms", "timeout": "5s"}),
    ("get", {"resource": "secret/s", "outputs": {"a": "{.data}", "b": "$.data.pin", "c": "x {.data.password}"}}),
    ("get", {"resource": "secret/s", "outputs": {"a": {"path": "{.data.password}", "decode": "base64"}}}),
    ("get", {"resource": "secrets", "outputs": {"a": "{.items[*].data.password}", "b": "$.items"}}),
    ("get", {"resource": "secrets", "outputs": {"a": "{range .items[*]}{.data.pin}{end}"}}),
]


def test_no_value_is_shown(own_kube: Extension, api: FakeApi) -> None:
    api.put("secrets", SECRET)
    for case, success in [(case, False) for case in FAILING] + [(case, True) for case in PASSING]:
        result, told = run(own_kube, *case)
        assert result["success"] is success, (case, result)
        for value in (PLAIN, ENCODED, SHORT):
            assert value not in told, (case, told)
        assert PLACEHOLDER in told or case not in SHOWING, (case, told)


def test_a_value_is_there_for_later_steps(own_kube: Extension, api: FakeApi) -> None:
    api.put("secrets", SECRET)
    outputs = {"password": {"path": "{.data.password}", "decode": "base64"}, "pin": "$.data.pin", "name": "{.kind}"}
    found = own_kube.ok("get", {"resource": "secret/s", "outputs": outputs, "as": "login"})
    assert found["name"] == "Secret"
    assert not {"password", "pin"} & found.keys()
    later = {"name": "copy", "literals": {"password": "${login.password}", "pin": "${login.pin}"}}
    own_kube.ok("create-configmap", later)
    copied = api.get("configmaps", "copy")
    assert copied is not None
    assert copied["data"] == {"password": PLAIN, "pin": SHORT}
    own_kube.ok("wait", {"resource": "secret/s", "jsonPath": "{.data.password}", "timeout": "0s", "as": "seen"})
    own_kube.ok("assert", expects(data={"password": "${seen.value}"}))


@pytest.mark.parametrize("path", ["{.data.key}", "$.data.key", "{.data}", "a{.data.key}", "$..key", "{.data['key']}"])
def test_only_values_of_secrets_are_hidden(path: str) -> None:
    item = {"metadata": {"name": "x"}, "data": {"key": "value"}}
    assert has_hidden(values(path, marked(item | {"kind": "Secret"})))
    assert not has_hidden(values(path, marked(item | {"kind": "ConfigMap"})))
    assert not has_hidden(values("{.metadata.name}", marked(item | {"kind": "Secret"})))
