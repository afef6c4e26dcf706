"""What authors import: every name is there, once, and the same for people and type checkers."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import ext_sdk


def imports_for_type_checkers() -> dict[str, str]:
    """Name to module, as `if TYPE_CHECKING:` has them."""
    tree = ast.parse(Path(inspect.getfile(ext_sdk)).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: f"ext_sdk.{node.module}" if node.level else str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_names_are_the_same_in_all_three_lists() -> None:
    assert sorted(ext_sdk.__all__) == sorted(ext_sdk._HOMES) == sorted(imports_for_type_checkers())
    assert len(set(ext_sdk.__all__)) == len(ext_sdk.__all__)
    assert imports_for_type_checkers() == ext_sdk._HOMES


@pytest.mark.parametrize("name", ext_sdk.__all__)
def test_a_name_is_what_its_module_has(name: str) -> None:
    assert getattr(ext_sdk, name) is getattr(import_module(ext_sdk._HOMES[name]), name)
    assert name in dir(ext_sdk)


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'ext_sdk' has no attribute 'Reslut'"):
        ext_sdk.Reslut  # noqa: B018


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
