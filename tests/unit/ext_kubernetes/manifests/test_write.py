from __future__ import annotations

from ext_kubernetes.api.discovery import Resource
from ext_kubernetes.manifests.write import names_of, write_options
from ext_kubernetes.targets import Target

PODS = Target(Resource("", "v1", "Pod", "pods", namespaced=True), "web", "")


def test_fields_are_validated_unless_that_is_disabled() -> None:
    assert write_options(dry_run=False) == [("fieldValidation", "Strict")]
    assert write_options(dry_run=True, strict=False) == [("fieldValidation", "Ignore"), ("dryRun", "All")]


def test_one_object_is_named_and_several_are_counted() -> None:
    one: dict[str, object] = {"metadata": {"name": "a"}}
    other: dict[str, object] = {"metadata": {"name": "b"}}
    assert names_of(PODS, [one]) == "Pod/a"
    assert names_of(PODS, [one, other]) == "2 pods"
