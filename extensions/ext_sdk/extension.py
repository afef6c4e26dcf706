"""Extension of an author: its name, its configuration, and its operations."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

from ext_sdk.server.manifest import build_manifest

from .definition import Definition
from .operation import Function, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypedDict, Unpack

    class Declared(TypedDict, total=False):
        """Declaration of an operation; see Operation."""

        outputs: Mapping[str, str]
        title: str
        read_only: bool
        destructive: bool
        idempotent: bool
        open_world: bool
        needs: str


F = TypeVar("F", bound=Function)


class Extension(Definition):
    """Extension: a definition, with the methods to add operations and to run it."""

    def operation(
        self, name: str = "", *, example: dict[str, object] | None = None, **declared: Unpack[Declared]
    ) -> Callable[[F], F]:
        """Decorate a function to make it an operation.

        Its arguments are the fields of a class, `(args: SomeArgs, context: Context) -> Result`, or its own parameters,
        `(name: str, count: int = 1) -> Result`, with or without a `context`.

        Args:
            name: as users write it. Default: the function's name with `-` for `_`.
            example: arguments for the reference page; a test runs them.
            declared: descriptions of its `outputs`, its `title`, and its effects: `read_only`, `destructive`,
                `idempotent`, `open_world`; and what it `needs`; see Operation.

        Raises:
            ValueError: the name is taken.
            TypeError: see Operation; or the decorator was written without its parentheses.
        """
        if not isinstance(name, str):
            raise TypeError("write @extension.operation(), with parentheses")

        def register(function: F) -> F:
            own_name = name or function.__name__.strip("_").replace("_", "-")
            self.add(Operation(own_name, function, example, **declared))
            return function

        return register

    def add(self, operation: Operation) -> None:
        """Register an operation.

        Raises:
            ValueError: its name is taken.
            TypeError: a field of its arguments, or its example, is wrong.
        """
        self.operations.add(operation)

    def check(self, operation: Operation) -> None:
        """Raise TypeError if a field of its arguments, or its example, is wrong; skipped unless `checked`."""
        if self.checked:
            from .server.validation import check_operation

            check_operation(operation)

    def manifest(self) -> dict[str, object]:
        """Return the result of `initialize` (gevals 0.0.1, "Manifest Fields")."""
        return build_manifest(self)

    def run(self, arguments: Sequence[str] | None = None) -> int:
        """Serve a host, or, on a terminal or with arguments, a person.

        Args:
            arguments: default: those of the command line.

        Returns:
            The exit code.
        """
        from .boot import run

        return run(lambda: self, sys.argv[1:] if arguments is None else arguments)
