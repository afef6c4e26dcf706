"""Extensions and operations as authors write them, and what they are told when they write them wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated

import pytest

import ext_sdk
from ext_sdk import Args, Config, Context, Duration, Extension, Operation, Result, Template, Verbatim
from ext_sdk.server.schema import object_schema, properties_of
from ext_sdk.testing import call
from tests.support.host import PATIENCE_S, ExtensionHost

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Part(Args):
    text: Annotated[str, Template] = ""
    inner: Part | None = None


class Greet(Args):
    name: str
    script: Annotated[str, Verbatim] = ""
    maybe_script: Annotated[str | None, Verbatim] = None
    parts: list[Part] | Part | None = None
    named: dict[str, Annotated[str, Verbatim]] | None = None


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
    assert operation.marks == {
        "script": "verbatim",
        "maybeScript": "verbatim",
        "parts": {"text": "template"},
        "named": {"*": "verbatim"},
    }


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
    return Result.ok("done")


def only_args(args: Greet) -> Result:
    """Do."""
    return Result.ok(args.name)


def parameters(name: str, context: Context[Config], *, pass_env: list[str] = ["B"], from_: int | None = None) -> Result:  # noqa: B006
    """Do it.

    Well.

    Args:
        name: Name of the person,
            in full.
        from_: First number.
    """
    return Result.ok(f"{name} {pass_env} {from_} {context.workdir.name}")


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (nothing, {}, "done"),
        (only_args, {"name": "Ada"}, "Ada"),
        (parameters, {"name": "Ada"}, "Ada ['B'] None work"),
        (parameters, {"name": "Ada", "passEnv": ["A"], "from": 3}, "Ada ['A'] 3 work"),
    ],
)
def test_the_arguments_may_be_the_parameters_of_the_function(
    function: Callable[..., Result], args: dict[str, object], message: str, tmp_path: Path
) -> None:
    extension = Extension("greeter", version="1.0.0")
    assert extension.operation("do")(function) is function
    assert call(extension, "do", args, workdir=tmp_path / "work").message == message


def test_the_docstring_describes_the_parameters() -> None:
    operation = Operation("do", parameters)
    assert operation.description == "Do it.\n\nWell."
    properties = properties_of(object_schema(operation.args_type))
    assert properties["name"] == {"type": "string", "description": "Name of the person, in full"}
    assert properties["from"] == {"type": "integer", "description": "First number"}
    assert list(properties) == ["name", "passEnv", "from"]


def too_many(args: Greet, context: Context, more: int) -> Result:
    """Do."""
    return Result.ok()


def no_annotation(args, context):  # type: ignore[no-untyped-def]
    """Do."""
    return Result.ok()


def any_number(*names: str) -> Result:
    """Do."""
    return Result.ok()


def unknown_parameter(name: str) -> Result:
    """Do.

    Args:
        nmae: Name.
    """
    return Result.ok()


def unknown_type(name: Missing) -> Result:  # type: ignore[name-defined]  # noqa: F821
    """Do."""
    return Result.ok()


async def asynchronous(name: str) -> Result:
    """Do."""
    return Result.ok()


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (too_many, "expected (args: Greet, context: Context) -> Result, found further parameters: more"),
        (no_annotation, "parameter 'args' has no type; write it as in `args: str`"),
        (any_number, "parameter 'names': expected a parameter with a name, found * or /"),
        (unknown_parameter, "the docstring describes nmae, which is not a parameter"),
        (unknown_type, "name 'Missing' is not defined; import or define it at the top of the module"),
        (asynchronous, "write `def`, not `async def`"),
    ],
)
def test_a_function_that_is_no_operation_is_refused_with_the_remedy(function: object, error: str) -> None:
    with pytest.raises(TypeError, match=re.escape(error)):
        Operation("do", function)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["Bad Name.x", "a.b", "1st", ""])
def test_an_operation_has_a_name_that_steps_can_use(name: str) -> None:
    with pytest.raises(ValueError, match="expected a name of letters, digits, - and _"):
        Operation(name, greet)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": "x y"}, "expected a name of letters, digits and -"),
        ({"version": "v1"}, "expected a semantic version such as '1.0.0', found 'v1'"),
        ({"requires": "git"}, "found a string; write ['git']"),
        ({"config": Greet}, "expected a subclass of ext_sdk.Config"),
    ],
)
def test_an_extension_that_hosts_would_refuse_is_refused(arguments: dict[str, object], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(error)):
        Extension(**{"name": "greeter", "version": "1.0.0"} | arguments)  # type: ignore[arg-type]


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


NOTHING = """
@extension.operation()
def nothing() -> ext_sdk.Result:
    'Do nothing.'
    return ext_sdk.Result.ok()

"""


def test_what_the_first_operation_needs_is_loaded_beside_the_session(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import sys, ext_sdk\n"
        "extension = ext_sdk.Extension('warm', version='1.0.0', warm_up=lambda: open(sys.argv[1], 'w').close())\n"
        + NOTHING
        + "raise SystemExit(extension.run([]))\n"
    )
    os.mkfifo(tmp_path / "warmed")
    with ExtensionHost([sys.executable, str(tmp_path / "program.py"), str(tmp_path / "warmed")]) as peer:
        peer.initialize()
        # Opening the FIFO ends when the extension opens it too, which it does beside its session.
        subprocess.run(["cat", str(tmp_path / "warmed")], timeout=PATIENCE_S, check=True)
        assert peer.call("shutdown")["result"] == {}


def test_a_warm_up_that_fails_is_no_fault_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import ext_sdk\nextension = ext_sdk.Extension('warm', version='1.0.0', warm_up=lambda: 1 // 0)\n"
        + NOTHING
        + "raise SystemExit(extension.run())\n"
    )
    with ExtensionHost([sys.executable, str(tmp_path / "program.py")]) as peer:
        assert peer.initialize()["result"]
        assert peer.call("shutdown")["result"] == {}
        assert peer.exit_code() == 0
        assert peer.stderr == ""
