"""`dryRun` of every operation that has it; the same calls run on a real API server in tests/live."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.extension import extension
from tests.support.dry_runs import CONFIG, DRY_RUNS, SECRET, Args

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi


def test_every_operation_with_a_dry_run_is_tried() -> None:
    having = {one.name for one in extension.operations.values() if "dry_run" in one.args_type.__struct_fields__}
    assert having == {name for name, _ in DRY_RUNS}


@pytest.mark.parametrize(("operation", "args"), DRY_RUNS)
def test_a_dry_run_changes_nothing(kube: Extension, api: FakeApi, operation: str, args: Args) -> None:
    for manifest in (CONFIG, SECRET):
        kube.ok("create", manifest)
    before = copy.deepcopy(api.objects)
    assert "Would " in kube.ok(operation, args | {"dryRun": True})["message"]
    assert api.objects == before
