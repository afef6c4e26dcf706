"""Extensions and operations as authors write them, and what they are told when they write them wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated

import pytest

import ext_sdk
from ext_sdk import Args, Config, Context, Duration, Extension, Operation, Result, Verbatim
from tests.support.host import PATIENCE_S, ExtensionHost

if TYPE_CHECKING:
    from pathlib import Path


class Greet(Args):
    name: str
    script: Annotated[str, Verbatim] = ""
    maybe_script: Annotated[str | None, Verbatim] = None


def greet(args: Greet, context: Context) -> Result:
    """Say hello.

    To somebody.
    """
    return Result.ok(f"Hello, {args.name}")


def test_a_function_becomes_an_operation_of_its_name() -> None:
    extension = Extension("greeter", version="1.0.0")
    assert extension.operation()(greet) is greet
    operation = extension.operations["greet"]
    assert (operation.name, operation.args_type) == ("greet", Greet)
    assert operation.description == "Say hello.\n\nTo somebody."
    assert operation.verbatim == {"script", "maybeScript"}


@pytest.mark.parametrize(
    ("function", "name"),
    [("assert_file", "assert-file"), ("wait_", "wait"), ("_start", "start"), ("authCanI", "authCanI")],
)
def test_underscores_become_hyphens(function: str, name: str) -> None:
    def operation(args: Greet, context: Context) -> Result:
        """Say."""
        return Result.ok()

    operation.__name__ = function
    extension = Extension("greeter", version="1.0.0")
    extension.operation()(operation)
    assert list(extension.operations) == [name]


def test_a_name_and_an_example_may_be_given() -> None:
    extension = Extension("greeter", version="1.0.0")
    extension.operation("say-hello", example={"name": "Ada"})(greet)
    assert extension.operations["say-hello"].example == {"name": "Ada"}


def test_a_name_is_given_once() -> None:
    extension = Extension("greeter", version="1.0.0")
    extension.operation()(greet)
    with pytest.raises(ValueError, match="'greeter' has an operation 'greet' already"):
        extension.operation()(greet)


def test_a_decorator_without_parentheses_is_told() -> None:
    extension = Extension("greeter", version="1.0.0")
    with pytest.raises(TypeError, match="with parentheses"):
        extension.operation(greet)  # type: ignore[arg-type]
    assert extension.operations == {}


def nothing() -> Result:
    """Do."""
    return Result.ok()


def only_args(args: Greet) -> Result:
    """Do."""
    return Result.ok()


def too_many(args: Greet, context: Context, more: int) -> Result:
    """Do."""
    return Result.ok()


def not_args(args: dict[str, str], context: Context) -> Result:
    """Do."""
    return Result.ok()


def no_annotation(args, context):  # type: ignore[no-untyped-def]
    """Do."""
    return Result.ok()


@pytest.mark.parametrize("function", [nothing, only_args, too_many, not_args, no_annotation])
def test_a_function_of_another_shape_is_no_operation(function: object) -> None:
    with pytest.raises(
        TypeError, match=r"is not an operation: expected \(args: SomeArgs, context: Context\) -> Result"
    ):
        Operation("do", function)  # type: ignore[arg-type]


def test_an_operation_needs_a_description() -> None:
    def mute(args: Greet, context: Context) -> Result:
        return Result.ok()

    with pytest.raises(TypeError, match="operation 'mute' needs a docstring"):
        Operation("mute", mute)


def test_the_annotation_of_the_context_may_be_for_type_checkers_alone() -> None:
    def lazy(args: Greet, context: NotImported) -> Result:  # type: ignore[name-defined]  # noqa: F821
        """Do."""
        return Result.ok()

    assert Operation("lazy", lazy).args_type is Greet


def test_arguments_are_immutable() -> None:
    args = Greet(name="Ada")
    with pytest.raises(AttributeError):
        args.name = "Bob"  # type: ignore[misc]


def test_the_configuration_has_defaults() -> None:
    assert Config() == Config(max_operation_time=Duration.parse("28s"), artifacts="")


def test_the_example_in_the_package_docstring_runs(tmp_path: Path) -> None:
    lines = (ext_sdk.__doc__ or "").splitlines()
    code = "\n".join(line.removeprefix("    ") for line in lines if line.startswith("    ") or not line)
    program = tmp_path / "greeter.py"
    program.write_text(code)
    with ExtensionHost([sys.executable, str(program)]) as peer:
        manifest = peer.initialize()["result"]
        assert isinstance(manifest, dict)
        assert list(manifest["operations"]) == ["greet"]
        assert peer.result("greet", {"name": "Ada"}) == {
            "success": True,
            "message": "Hello, Ada!",
            "outputs": {"name": "Ada"},
        }
        assert peer.call("shutdown")["result"] == {}
        assert peer.exit_code() == 0


def test_what_the_first_operation_needs_is_loaded_beside_the_session(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, sys, ext_sdk\n"
        "extension = ext_sdk.Extension('warm', version='1.0.0', warm_up=lambda: open(sys.argv[1], 'w').close())\n"
        "raise SystemExit(extension.run([]))\n"
    )
    os.mkfifo(tmp_path / "warmed")
    with ExtensionHost([sys.executable, str(tmp_path / "program.py"), str(tmp_path / "warmed")]) as peer:
        peer.initialize()
        # Opening the FIFO ends when the extension opens it too, which it does beside its session.
        subprocess.run(["cat", str(tmp_path / "warmed")], timeout=PATIENCE_S, check=True)
        assert peer.call("shutdown")["result"] == {}


def test_a_warm_up_that_fails_is_no_fault_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import ext_sdk\nraise SystemExit(ext_sdk.Extension('warm', version='1.0.0', warm_up=lambda: 1 // 0).run())\n"
    )
    with ExtensionHost([sys.executable, str(tmp_path / "program.py")]) as peer:
        assert peer.initialize()["result"]
        assert peer.call("shutdown")["result"] == {}
        assert peer.exit_code() == 0
        assert peer.stderr == ""
