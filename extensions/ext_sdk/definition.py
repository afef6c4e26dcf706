"""Definition of an extension as the server reads it: name, configuration, and operations by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from .args import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .operation import Operation

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:[-+.a-z].*)?\Z")


HOST_CAPABILITIES = ("read", "write", "exec", "tool", "env", "http", "session", "ui", "events", "log")


class Registry(Mapping[str, "Operation"]):
    """Operations by name, in the order of their registration.

    An extension with many operations registers their modules: the first call then imports only the module of its
    operation. `import_modules` imports the others, in a thread. Iterating over the values imports all of them.

    Args:
        extension: name of the extension, for errors.
        check: raises TypeError for an operation whose arguments are wrong.
    """

    def __init__(self, extension: str, check: Callable[[Operation], None] = lambda _: None) -> None:
        self._extension = extension
        self._check = check
        self._entries: dict[str, Operation | str] = {}  # a text is the module of the operation
        self._modules: dict[str, list[str]] = {}  # the operations of each module that was registered

    def add(self, operation: Operation) -> None:
        """Register an operation. Raises ValueError if its name is taken, TypeError if its arguments are wrong."""
        self._refuse_taken(operation.name)
        self._check(operation)
        self._entries[operation.name] = operation

    def add_modules(self, package: str, modules: Mapping[str, str]) -> None:
        """Register operations whose modules are not imported yet.

        Args:
            package: absolute name of the package that has the modules.
            modules: by the name of an operation, the module within the package that has it in `OPERATIONS`.

        Raises:
            ValueError: a name is taken.
        """
        for name, module in modules.items():
            self._refuse_taken(name)
            self._entries[name] = path = f"{package}.{module}"
            self._modules.setdefault(path, []).append(name)

    def import_modules(self) -> None:
        """Import all registered modules, in their order. Safe while another thread requests operations."""
        for module in self._modules:
            import_module(module)

    def __getitem__(self, name: str) -> Operation:
        """Return an operation.

        Raises:
            KeyError: the name is unknown.
            TypeError: its module has other operations, or one of them has wrong arguments.
        """
        entry = self._entries[name]
        if not isinstance(entry, str):
            return entry
        operations: Sequence[Operation] = import_module(entry).OPERATIONS
        expected, actual = self._modules[entry], [operation.name for operation in operations]
        if sorted(actual) != sorted(expected):
            raise TypeError(f"{entry}.OPERATIONS: expected {', '.join(expected)}, found {', '.join(actual)}")
        for operation in operations:
            self._check(operation)
        by_name = {operation.name: operation for operation in operations}
        self._entries.update(by_name)
        return by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _refuse_taken(self, name: str) -> None:
        if name in self._entries:
            raise ValueError(f"extension {self._extension!r} has an operation {name!r} already")


class Definition:
    """Definition of an extension: everything that its server and its manifest need.

    Attributes:
        checked: operations are checked when they are added, or when their module is imported. False in a process that
            serves a host with a prepared manifest, which was made from them.

    Args:
        description: one sentence.
        requires: commands that must be in PATH (gevals 0.0.1, "Requirement Object"); known hosts show them, none
            checks them.
        config: a subclass of Config with the extension's own settings.
        warm_up: called once after the manifest was sent, in a thread, to load what the first operation needs.
        host_capabilities: what calls of the host in operations need, such as `read`, for `register` of Pi: some of
            HOST_CAPABILITIES. See Context.host.
    """

    checked: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        *,
        version: str,
        description: str = "",
        requires: Sequence[str] = (),
        config: type[Config] = Config,
        warm_up: Callable[[], None] | None = None,
        host_capabilities: Sequence[str] = (),
    ) -> None:
        if unknown := [capability for capability in host_capabilities if capability not in HOST_CAPABILITIES]:
            known = ", ".join(HOST_CAPABILITIES)
            raise ValueError(f"extension {name!r}: host_capabilities: expected some of {known}, found {unknown[0]!r}")
        if isinstance(requires, str):
            raise TypeError(f"requires: expected a list of commands, found a string; write [{requires!r}]")
        if not _NAME.fullmatch(name):
            raise ValueError(f"extension {name!r}: expected a name of letters, digits and - that begins with a letter")
        if not _VERSION.match(version):
            raise ValueError(f"extension {name!r}: expected a semantic version such as '1.0.0', found {version!r}")
        if not issubclass(config, Config):
            raise TypeError(f"extension {name!r}: config: expected a subclass of ext_sdk.Config, found {config!r}")
        self.name = name
        self.version = version
        self.description = description
        self.requires = tuple(requires)
        self.host_capabilities = tuple(host_capabilities)
        self.config_type = config
        self.operations = Registry(name, self.check)
        self._warm_up = warm_up

    def check(self, operation: Operation) -> None:
        """Raise TypeError if a field of its arguments, or its example, is wrong. Extension has the checks."""

    def warm_up(self, then: Callable[[], None] | None = None) -> None:
        """Load what the first operation needs, in a thread. Errors are left to that operation, which fails by them.

        Args:
            then: called afterwards in that thread.
        """
        steps = [step for step in (self._warm_up, then) if step is not None]
        if not steps:
            return

        def load_quietly() -> None:
            for step in steps:
                with suppress(Exception):
                    step()

        import threading

        with suppress(RuntimeError):  # the system gives no more threads: it is loaded when it is needed
            threading.Thread(target=load_quietly, daemon=True, name="warm-up").start()
