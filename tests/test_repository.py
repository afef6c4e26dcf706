"""Rules about the files of this repository that no other tool checks."""

from __future__ import annotations

import ast

import pytest

from ext_kubernetes.extension import MODULES
from tests.support.paths import ROOT

UNIT = ROOT / "tests" / "unit"
PACKAGES = (
    ROOT / "extensions" / "ext_http",
    ROOT / "extensions" / "ext_kubernetes",
    ROOT / "extensions" / "ext_sdk",
    ROOT / "extensions" / "ext_shell",
    ROOT / "recorder" / "ext_recorder",
)
SOURCES = {path.relative_to(root.parent): path for root in PACKAGES for path in root.rglob("[!_]*.py")}
# Modules whose tests are elsewhere. A new module has its test file from the start: this list only gets shorter.
WITHOUT_TEST_FILE = set((UNIT / "without_test_file.txt").read_text().split())
BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.comprehension, ast.IfExp, ast.BoolOp)


def has_logic(source: str) -> bool:
    """Return True if a function of the module branches or loops."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    return any(isinstance(node, BRANCHES) for function in functions for node in ast.walk(function))


def test_every_module_with_logic_has_a_test_file_of_its_name() -> None:
    without = {
        str(name)
        for name, path in SOURCES.items()
        if has_logic(path.read_text()) and not (UNIT / name).with_name(f"test_{name.name}").exists()
    }
    assert without - WITHOUT_TEST_FILE == set(), "add tests/unit/<package>/<folder>/test_<module>.py"
    assert WITHOUT_TEST_FILE - without == set(), "remove these from tests/unit/without_test_file.txt"


def test_every_unit_test_file_is_named_after_a_module() -> None:
    """A second file of a module has a topic after its name: `test_run.py`, `test_run_retry.py`."""
    modules = [str(name.with_name(f"test_{name.stem}")) for name in SOURCES]
    files = {path.relative_to(UNIT) for package in PACKAGES for path in (UNIT / package.name).rglob("test_*.py")}
    names = {str(path.with_suffix("")) for path in files}
    assert {name for name in names if not any(f"{name}_".startswith(f"{module}_") for module in modules)} == set()


@pytest.mark.parametrize("operation", MODULES)
def test_every_operation_on_kubernetes_has_a_live_test(operation: str) -> None:
    live = "".join(path.read_text() for path in (ROOT / "tests" / "live").glob("test_kubernetes_*.py"))
    assert f'("{operation}"' in live
