"""The registry of operations, and what a start imports."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.config import ClusterArgs, KubeconfigArgs
from ext_kubernetes.extension import MODULES, extension

if TYPE_CHECKING:
    from ext_sdk import Operation


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


@pytest.mark.parametrize("operation", extension.operations.values(), ids=lambda operation: operation.name)
def test_every_operation_says_who_acts_and_every_wait_may_go_on(operation: Operation) -> None:
    fields = operation.args_type.__struct_fields__
    base = KubeconfigArgs if operation.function.__module__.endswith(".contexts") else ClusterArgs
    assert issubclass(operation.args_type, base)
    if {"wait", "follow", "fail_fast"} & set(fields):
        assert "on_timeout" in fields
    if "on_timeout" in fields:
        assert {"done", "done?"} & (operation.outputs or {}).keys()


def test_operations_import_nothing_that_the_library_imports_in_another_thread() -> None:
    code = (
        "import sys; from ext_kubernetes.extension import extension\n"
        "assert list(extension.operations.values())\n"
        "library = ('http.client', 'kubernetes', 'urllib.request', 'urllib3', 'websocket', 'yaml')\n"
        "found = [name for name in library if name in sys.modules]\n"
        "assert found == [], found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
