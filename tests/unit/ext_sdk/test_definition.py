"""Operations that are loaded when they are first asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from ext_sdk import Args, Context, Extension, Operation, Result
from ext_sdk.definition import Definition, Registry

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import ext_sdk

def greet(args: ext_sdk.Args, context: ext_sdk.Context) -> ext_sdk.Result:
    '''Say hello.'''
    return ext_sdk.Result.ok()

OPERATIONS = (ext_sdk.Operation("greet", greet), ext_sdk.Operation("wave", greet))
"""


MODULES = {"greet": "greeting", "wave": "greeting"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package whose module `greeting` has the operations `greet` and `wave`."""
    name = f"package_{tmp_path.name.replace('-', '_')}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "greeting.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def ready(args: Args, context: Context) -> Result:
    """Be ready."""
    return Result.ok()


def test_a_module_is_imported_when_one_of_its_operations_is_asked_for(package: str) -> None:
    registry = Registry("greeter")
    registry.add_modules(package, MODULES)
    registry.add(Operation("ready", ready))
    assert list(registry) == ["greet", "wave", "ready"]
    assert len(registry) == 3
    assert "wave" in registry
    assert registry["ready"].name == "ready"
    assert f"{package}.greeting" not in sys.modules
    assert registry["wave"].name == "wave"
    assert registry["greet"].description == "Say hello."


def test_an_unknown_name_loads_nothing(package: str) -> None:
    registry = Registry("greeter")
    registry.add_modules(package, MODULES)
    with pytest.raises(KeyError):
        registry["bow"]
    assert f"{package}.greeting" not in sys.modules


def test_mistakes_in_a_module_are_found_when_it_is_imported(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = MODULE.replace('("wave", greet)', '("wave", greet, {"nam": 1})')
    (tmp_path / package / "greeting.py").write_text(module)
    extension = Extension("greeter", version="1.0.0")
    extension.operations.add_modules(package, MODULES)
    with pytest.raises(TypeError, match="operation 'wave': example: unknown argument 'nam'"):
        extension.manifest()
    monkeypatch.setattr(Definition, "checked", False)  # the manifest was prepared
    assert extension.operations["greet"].name == "greet"


def test_modules_are_imported_ahead_of_the_first_call(package: str) -> None:
    registry = Registry("greeter")
    registry.add_modules(package, MODULES)
    registry.import_modules()
    assert sys.modules[f"{package}.greeting"].OPERATIONS[1] is registry["wave"]


def test_a_name_is_given_once(package: str) -> None:
    registry = Registry("greeter")
    registry.add_modules(package, MODULES)
    with pytest.raises(ValueError, match="'greeter' has an operation 'greet' already"):
        registry.add_modules(package, {"greet": "another"})


@pytest.mark.parametrize("names", [("greet",), ("greet", "bow"), ("greet", "wave", "bow")])
def test_a_module_has_the_operations_that_it_is_said_to_have(package: str, names: tuple[str, ...]) -> None:
    registry = Registry("greeter")
    registry.add_modules(package, dict.fromkeys(names, "greeting"))
    with pytest.raises(TypeError, match=f"greeting.OPERATIONS: expected {', '.join(names)}, found greet, wave"):
        registry["greet"]
