"""`expand: true`: references in manifests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
# ${it.name} in a comment
metadata: {name: ${it.name}, labels: {"${it.name}": x, n: "${it.number}"}}
data:
  number: ${it.number}
  joined: v${it.number}
  quoted: "${it.number}"
  literal: '$${it.number} ${missing.key|default}'
  block: |
    ${it.text}
  value: ${it.value}
"""


def keep(kube: Extension, **data: str) -> None:
    """Keep outputs for later steps as `it`."""
    literals = {key: value.replace("${", "$${") for key, value in data.items()}
    kube.ok("create-configmap", {"name": "source", "literals": literals, "replace": True})
    outputs = {key: f"{{.data.{key}}}" for key in data}
    kube.ok("get", {"resource": "cm/source", "outputs": outputs, "as": "it"})


def sent(api: FakeApi) -> dict[str, Any]:
    """Return the last object that was sent."""
    body: dict[str, Any] = api.requests("PATCH")[-1].body
    return body


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", True),
        ("1.5", 1.5),
        ("null", None),
        ("", None),
        ("~x", "~x"),
        ("a: b", "a: b"),
        ("{a: b}", "{a: b}"),
        ("[1]", "[1]"),
        ("x\nmore: 1", "x\nmore: 1"),
        ("<<", "<<"),
        ("=", "="),
        ("*all", "*all"),
        ("!!python/name:os.system", "!!python/name:os.system"),
        ("2024-01-01", "2024-01-01"),
        ("${it.name}", "${it.name}"),
        ("# no comment", "# no comment"),
    ],
)
def test_a_value_is_a_scalar_whatever_it_contains(kube: Extension, api: FakeApi, value: str, expected: object) -> None:
    keep(kube, name="made", number="3", text="one\n  two: 3", value=value)
    (kube.workdir / "it.yaml").write_text(MANIFEST)
    kube.ok("apply", {"file": "it.yaml", "expand": True})
    found = sent(api)
    assert found["metadata"]["labels"] == {"made": "x", "n": "3"}
    assert found["data"] == {
        "number": 3,
        "joined": "v3",
        "quoted": "3",
        "literal": "${it.number} default",
        "block": "one\n  two: 3\n",
        "value": expected,
    }


def test_objects_have_strings(kube: Extension, api: FakeApi) -> None:
    keep(kube, name="made", number="3")
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "${it.name}"},
        "data": {"n": "${it.number}"},
    }
    kube.ok("apply", {"manifest": manifest, "expand": True})
    assert (sent(api)["metadata"]["name"], sent(api)["data"]) == ("made", {"n": "3"})
    told = kube.failed("apply", {"manifest": [manifest, manifest | {"data": {"n": "${it.none}"}}], "expand": True})
    assert "manifest[1].data.n: " in told


def test_all_operations_with_manifests_expand_them(kube: Extension, api: FakeApi) -> None:
    keep(kube, name="made", number="3", text="", value="")
    api.job_exit = 0
    for operation in ("create", "replace", "delete"):
        kube.ok(operation, {"manifest": MANIFEST, "expand": True})
    spec = "{template: {spec: {containers: [{name: main}]}}}"
    job = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: ${{it.name}}}}\nspec: {spec}"
    assert kube.ok("run-job", {"manifest": job, "expand": True})["name"] == "made"


def test_all_references_without_a_value_are_reported_with_the_file(kube: Extension) -> None:
    (kube.workdir / "it.yaml").write_text("a: ${first.key}\nb: ${second.key}\n")
    told = kube.failed("apply", {"file": "it.yaml", "expand": True})
    assert "it.yaml" in told
    assert "${first.key}" in told
    assert "${second.key}" in told


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"url": "http://localhost/x.yaml"}, "expand: expected `file` or `manifest`, found url"),
        ({"manifest": "a: b", "verbatim": True}, "expand: expected `expand` or `verbatim`, found both"),
    ],
)
def test_arguments_that_exclude_it_are_refused(kube: Extension, args: dict[str, object], problem: str) -> None:
    assert problem in kube.failed("apply", args | {"expand": True})


def test_the_hints_are_about_what_is_wrong(kube: Extension, api: FakeApi) -> None:
    keep(kube, number="3")
    twice = {"manifest": "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: '${it.number}', a: b}}"}
    assert "only with `expand: true`" in kube.failed("apply", twice)
    assert "duplicate key 'a'" in (told := kube.failed("apply", twice | {"expand": True}))
    assert "`expand: true`" not in told
    refusal = "expected numeric (int or float), got string"
    api.faults.append(Fault("PATCH", "/configmaps", status=400, reason="Invalid", message=refusal))
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "${it.number}"}}
    told = kube.failed("apply", {"manifest": manifest, "expand": True})
    assert "an unquoted `${NAME.key}` becomes a number" in told


def test_without_it_a_manifest_is_left_as_it_is(kube: Extension, api: FakeApi) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "${it.name}"}}
    kube.ok("apply", {"manifest": json.dumps(manifest)})
    assert sent(api)["data"] == {"a": "${it.name}"}
