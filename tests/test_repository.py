"""Rules about the files of this repository that no other tool checks."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from ext_kubernetes.extension import MODULES
from tests.support.figures import PACKAGES, import_cycle, modules
from tests.support.paths import ROOT

UNIT = ROOT / "tests" / "unit"
ALL = modules()
SOURCES = [Path(module.name) for module in ALL.values() if not module.path.name.startswith("_")]
# Modules whose tests are elsewhere. A new module has its test file from the start: this list only gets shorter.
WITHOUT_TEST_FILE = set((UNIT / "without_test_file.txt").read_text().split())
BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.comprehension, ast.IfExp, ast.BoolOp)


def test_every_module_with_logic_has_a_test_file_of_its_name() -> None:
    without = {
        module.name
        for module in ALL.values()
        if not module.path.name.startswith("_")
        and any(isinstance(node, BRANCHES) for function in module.functions for node in ast.walk(function))
        and not (UNIT / module.name).with_name(f"test_{module.path.name}").exists()
    }
    assert without - WITHOUT_TEST_FILE == set(), "add tests/unit/<package>/<folder>/test_<module>.py"
    assert WITHOUT_TEST_FILE - without == set(), "remove these from tests/unit/without_test_file.txt"


def test_every_unit_test_file_is_named_after_a_module() -> None:
    """A second file of a module has a topic after its name: `test_run.py`, `test_run_retry.py`."""
    modules = [str(name.with_name(f"test_{name.stem}")) for name in SOURCES]
    files = {path.relative_to(UNIT) for package in PACKAGES for path in (UNIT / package.name).rglob("test_*.py")}
    names = {str(path.with_suffix("")) for path in files}
    assert {name for name in names if not any(f"{name}_".startswith(f"{module}_") for module in modules)} == set()


# --- Figures: the source is to stay in modules of one concept, and a call is to pass through few functions ----------

MOST_MODULES = 420
MOST_SMALL_MODULES = 62  # under SMALL_LINES: the rest of a concept is elsewhere
SMALL_LINES = 50
MOST_FILES_IN_FOLDER = 22
MOST_CALLED_ONCE = 0.1  # of all functions: private ones that are called in one place of their module


def test_there_are_no_more_modules_than_concepts() -> None:
    small = [f"{module.name}: {module.line_count} lines" for module in ALL.values() if module.line_count < SMALL_LINES]
    assert len(ALL) <= MOST_MODULES
    assert len(small) <= MOST_SMALL_MODULES, "\n".join(small)


def test_a_folder_can_be_read_at_a_glance() -> None:
    folders = Counter(module.path.parent for module in ALL.values())
    assert {str(folder) for folder, count in folders.items() if count > MOST_FILES_IN_FOLDER} == set()


def test_few_private_functions_are_called_once() -> None:
    """Where the caller stays short, such a function is part of it."""
    called_once = [name for module in ALL.values() for name in module.called_once()]
    total = sum(len(module.functions) for module in ALL.values())
    assert len(called_once) / total <= MOST_CALLED_ONCE, "\n".join(called_once)


def test_no_modules_import_each_other() -> None:
    """Neither within functions nor for types only."""
    assert import_cycle(ALL) == []


@pytest.mark.parametrize("operation", MODULES)
def test_every_operation_on_kubernetes_has_a_live_test(operation: str) -> None:
    live = "".join(path.read_text() for path in (ROOT / "tests" / "live").glob("test_kubernetes_*.py"))
    assert f'("{operation}"' in live
