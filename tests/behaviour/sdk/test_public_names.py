"""What authors import: every name is there, once, and the same for people and type checkers."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from ext_sdk import wire

if TYPE_CHECKING:
    from types import ModuleType

PACKAGES = {package.__name__: package for package in (ext_sdk, wire)}  # that load their names at first use


def imports_for_type_checkers(package: ModuleType) -> dict[str, str]:
    """Name to module, as `if TYPE_CHECKING:` has them."""
    tree = ast.parse(Path(inspect.getfile(package)).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: f"{package.__name__}.{node.module}" if node.level else str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_the_names_are_the_same_in_all_three_lists(package: ModuleType) -> None:
    assert sorted(package.__all__) == sorted(package._HOMES) == sorted(imports_for_type_checkers(package))
    assert len(set(package.__all__)) == len(package.__all__)
    assert imports_for_type_checkers(package) == package._HOMES


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package in PACKAGES.values() for name in package.__all__]
)
def test_a_name_is_what_its_module_has(package: ModuleType, name: str) -> None:
    assert getattr(package, name) is getattr(import_module(package._HOMES[name]), name)
    assert name in dir(package)


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_another_name_is_not_there(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Reslut'"):
        package.Reslut  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import ext_sdk; print(sorted(set(sys.modules) - before))"
    environment = {"PYTHONPATH": str(Path(ext_sdk.__path__[0]).parent)}
    ran = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    assert ran.stdout == "['__future__', 'ext_sdk']\n"


def test_everything_an_author_imports_says_what_it_is() -> None:
    undocumented = [name for name in ext_sdk.__all__ if not (getattr(ext_sdk, name).__doc__ or "").strip()]
    assert undocumented == []
