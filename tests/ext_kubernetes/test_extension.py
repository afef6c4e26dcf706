"""The registry of operations, and what a start imports."""

from __future__ import annotations

import subprocess
import sys

from ext_kubernetes.extension import FAMILIES, extension


def test_every_family_has_the_operations_that_the_registry_says() -> None:
    names = [name for names in FAMILIES.values() for name in names]
    assert [operation.name for operation in extension.operations.values()] == names


def test_another_name_is_that_of_an_operation_with_the_same_arguments_or_fewer() -> None:
    others = [operation for operation in extension.operations.values() if operation.same_as]
    assert [operation.name for operation in others] == list(FAMILIES["dropin"])
    for operation in others:
        same = extension.operations[operation.same_as]
        assert not same.same_as
        assert set(operation.args_type.__struct_fields__) <= set(same.args_type.__struct_fields__)


def test_a_call_imports_its_own_family_and_no_other() -> None:
    families = ", ".join(f"'ext_kubernetes.{name}'" for name in FAMILIES)
    code = (
        "import sys; from ext_kubernetes.extension import extension\n"
        f"found = lambda: [name for name in ({families},) if name in sys.modules]\n"
        "assert found() == [], found()\n"
        "extension.operations['get']\n"
        "assert found() == ['ext_kubernetes.get'], found()\n"
        "assert 'kubernetes' not in sys.modules and 'urllib3' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
