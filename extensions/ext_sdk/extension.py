"""An extension: its name, its configuration, and the registry of its operations."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from .manifest import build_manifest
from .operation import Config, Function, Operation
from .registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Extension:
    """What a program offers to hosts.

    Args:
        name: the extension's identifier.
        version: a semantic version.
        description: one sentence.
        requires: commands that must be in PATH (spec 0, "Requirement Object"); known hosts show them, none
            checks them.
        config: a subclass of Config with the extension's own settings.
        warm_up: called once after the manifest is out, in a thread, to load what the first operation needs.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        description: str = "",
        requires: Sequence[str] = (),
        config: type[Config] = Config,
        warm_up: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.description = description
        self.requires = tuple(requires)
        self.config_type = config
        self.operations = Registry(name)
        self._warm_up = warm_up

    def operation(self, name: str = "", *, example: dict[str, object] | None = None) -> Callable[[Function], Function]:
        """Decorate a function `(args: SomeArgs, context: Context) -> Result` to make it an operation.

        Args:
            name: as users write it; the function's name with `-` for `_` where left out.
            example: arguments for the reference page; a test runs them.

        Raises:
            ValueError: the name is taken.
            TypeError: see Operation; or the decorator was written without its parentheses.
        """
        if not isinstance(name, str):
            raise TypeError("write @extension.operation(), with parentheses")

        def register(function: Function) -> Function:
            self.add(Operation(name or function.__name__.strip("_").replace("_", "-"), function, example))
            return function

        return register

    def add(self, operation: Operation) -> None:
        """Register an operation. Raises ValueError where its name is taken."""
        self.operations.add(operation)

    def manifest(self) -> dict[str, object]:
        """The answer to `initialize` (spec 0, "Manifest Fields")."""
        return build_manifest(self)

    def warm_up(self) -> None:
        """Load what the first operation needs, beside everything else; what fails, that operation will tell."""
        load = self._warm_up
        if load is None:
            return

        def load_quietly() -> None:
            with suppress(Exception):
                load()

        import threading

        with suppress(RuntimeError):  # the system gives no more threads: it is loaded when it is needed
            threading.Thread(target=load_quietly, daemon=True, name="warm-up").start()

    def run(self, arguments: Sequence[str] | None = None) -> int:
        """Be the program: serve a host, or, on a terminal and with arguments, serve a person.

        Args:
            arguments: those of the command line where left out.

        Returns:
            The exit code.
        """
        from .boot import run

        return run(lambda: self, sys.argv[1:] if arguments is None else arguments)
