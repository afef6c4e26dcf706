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
    import of its own family alone; `import_families` is for a thread beside it. Whoever walks through the values loads
    them all.

    Args:
        extension: its name, for errors.
    """

    def __init__(self, extension: str) -> None:
        self._extension = extension
        self._found: dict[str, Operation | str] = {}  # a text is the module that has the operation
        self._families: dict[str, Sequence[str]] = {}  # the names of a module's operations

    def add(self, operation: Operation) -> None:
        """Register an operation. Raises ValueError where its name is taken."""
        self._refuse_taken(operation.name)
        self._found[operation.name] = operation

    def add_families(self, package: str, families: Mapping[str, Sequence[str]]) -> None:
        """Register the operations of modules that are not imported yet.

        Args:
            package: the absolute name of the package that has the modules.
            families: by the name of each module in it, the names of the operations that it has in `OPERATIONS`, in
                their order.

        Raises:
            ValueError: a name is taken.
        """
        for module, names in families.items():
            family = f"{package}.{module}"
            self._families[family] = names
            for name in names:
                self._refuse_taken(name)
                self._found[name] = family

    def import_families(self) -> None:
        """Import all modules that were named, in their order. Safe beside the thread that asks for operations."""
        for family in self._families:
            import_module(family)

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
        expected = self._families[module]
        if [one.name for one in operations] != list(expected):
            raise TypeError(f"{module}.OPERATIONS: expected {', '.join(expected)}, found "
                            f"{', '.join(one.name for one in operations)}")  # fmt: skip
        self._found.update({one.name: one for one in operations})

    def _refuse_taken(self, name: str) -> None:
        if name in self._found:
            raise ValueError(f"extension {self._extension!r} has an operation {name!r} already")
