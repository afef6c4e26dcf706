"""The registry of operations, and what a start imports."""

from __future__ import annotations

import subprocess
import sys

from ext_kubernetes.extension import MODULES, extension


def test_every_module_has_the_operations_that_the_registry_says() -> None:
    assert [operation.name for operation in extension.operations.values()] == list(MODULES)


def test_another_name_is_that_of_an_operation_with_the_same_arguments_or_fewer() -> None:
    others = [operation for operation in extension.operations.values() if operation.same_as]
    assert [operation.name for operation in others] == [name for name in MODULES if name != name.lower()]
    for operation in others:
        same = extension.operations[operation.same_as]
        assert not same.same_as
        assert set(operation.args_type.__struct_fields__) <= set(same.args_type.__struct_fields__)


def test_a_call_imports_the_module_of_its_operation_and_no_other() -> None:
    modules = ", ".join(sorted({f"'ext_kubernetes.operations.{name}'" for name in MODULES.values()}))
    code = (
        "import sys; from ext_kubernetes.extension import extension\n"
        f"found = lambda: [name for name in ({modules},) if name in sys.modules]\n"
        "assert found() == [], found()\n"
        "extension.operations['get']\n"
        "assert found() == ['ext_kubernetes.operations.get'], found()\n"
        "assert 'kubernetes' not in sys.modules and 'urllib3' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
