"""The operations of an extension by name, each loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .operation import Operation


class Registry(Mapping[str, "Operation"]):
    """Operations by name, in the order in which they were registered.

    An extension with many families of operations names them with their modules: the first call then waits for the
    import of its own family alone. Whoever walks through the values loads them all.

    Args:
        extension: its name, for errors.
    """

    def __init__(self, extension: str) -> None:
        self._extension = extension
        self._found: dict[str, Operation | str] = {}  # a text is the module that has the operation

    def add(self, operation: Operation) -> None:
        """Register an operation. Raises ValueError where its name is taken."""
        self._refuse_taken(operation.name)
        self._found[operation.name] = operation

    def add_family(self, module: str, names: Sequence[str]) -> None:
        """Register the operations of a module that is not imported yet.

        Args:
            module: its absolute name; it has the operations in `OPERATIONS`.
            names: of all of them, in their order.

        Raises:
            ValueError: a name is taken.
        """
        for name in names:
            self._refuse_taken(name)
            self._found[name] = module

    def __getitem__(self, name: str) -> Operation:
        """Raises KeyError for an unknown name, TypeError where its module has other operations than were named."""
        found = self._found[name]
        if isinstance(found, str):
            self._load(found)
            found = self._found[name]
            assert not isinstance(found, str)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def _load(self, module: str) -> None:
        operations: Sequence[Operation] = import_module(module).OPERATIONS
        expected = [name for name, found in self._found.items() if found == module]
        if [one.name for one in operations] != expected:
            raise TypeError(f"{module}.OPERATIONS: expected {', '.join(expected)}, found "
                            f"{', '.join(one.name for one in operations)}")  # fmt: skip
        self._found.update({one.name: one for one in operations})

    def _refuse_taken(self, name: str) -> None:
        if name in self._found:
            raise ValueError(f"extension {self._extension!r} has an operation {name!r} already")
