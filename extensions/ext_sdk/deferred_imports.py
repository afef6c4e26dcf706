"""Deferred imports: modules of libraries that exist before their code runs, for a start that needs little of a library.

Submodules are imported as usual. Any other attribute runs the code after all, so that nothing is missing, only later.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from importlib._bootstrap import _DeadlockError, _ModuleLockManager  # type: ignore[attr-defined]
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.machinery import ModuleSpec

# Deferred modules, packages before their submodules, each with names that it would have and the modules that define
# these.
MODULES: dict[str, Mapping[str, str]] = {}
# Names that `from MODULE import NAME` reads at once, but that are used rarely or never: in calls, annotations, or
# isinstance().
USED_LATER: set[tuple[str, str]] = set()


class Deferred(ModuleType):
    """Module whose code has not run yet."""

    def __getattr__(self, name: str) -> object:
        """Return an attribute that is missing so far: a submodule, or a name that the code defines."""
        module = self.__name__
        if home := MODULES[module].get(name):
            return getattr(import_module(home), name)
        if (module, name) in USED_LATER:
            return UsedLater(name, (), {"module": module})
        if (module, name) == ("kubernetes", "__version__"):
            from importlib.metadata import version

            return version(module)
        if name == "__all__":  # read by `from MODULE import *`, which then imports the names that exist
            complete(module)
            return object.__getattribute__(self, name)
        if name.startswith("__"):  # read by the import system and others in any module
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if "__path__" in vars(self) and find_spec(f"{module}.{name}") is not None:
            return import_module(f"{module}.{name}")
        complete(module)
        return getattr(self, name)


class Running(ModuleType):
    """Module whose code runs in one thread; others wait for the names that it does not have yet."""

    def __getattr__(self, name: str) -> object:
        """Wait for the end of the code, except in the thread that runs it. Raises AttributeError."""
        if not name.startswith("__"):
            with suppress(_DeadlockError), _ModuleLockManager(self.__name__):
                pass
        return ModuleType.__getattribute__(self, name)


class UsedLater(type):
    """Class that replaces a class or function of a module whose code has not run yet."""

    module: str

    def __call__(cls, *args: object, **options: object) -> object:
        """Run the deferred module, then call its class or function of this name."""
        complete(cls.module)
        return getattr(sys.modules[cls.module], cls.__name__)(*args, **options)

    def __instancecheck__(cls, value: object) -> bool:
        """Return False until the code has run: a class that does not exist has no instances."""
        module = sys.modules[cls.module]
        return not isinstance(module, Deferred | Running) and isinstance(value, getattr(module, cls.__name__))

    def __getitem__(cls, parameters: object) -> UsedLater:
        """Return the class for an annotation with parameters."""
        return cls


def defer(modules: Mapping[str, Mapping[str, str]], used_later: Iterable[tuple[str, str]] = ()) -> None:
    """Create deferred modules, except those that are imported already.

    Args:
        modules: see MODULES.
        used_later: see USED_LATER.
    """
    MODULES.update(modules)
    USED_LATER.update(used_later)
    for name in modules:
        if name in sys.modules:
            continue
        package, _, _ = name.rpartition(".")
        spec: ModuleSpec | None
        if not package or package in sys.modules:
            spec = find_spec(name)
        else:  # `find_spec` would run the code of the package
            parent = find_spec(package)
            spec = parent and PathFinder.find_spec(name, parent.submodule_search_locations)
        if spec is None:
            continue
        module = module_from_spec(spec)
        module.__class__ = Deferred
        sys.modules[name] = module
    attach()


def attach() -> None:
    """Make each deferred module an attribute of its package, if that is imported."""
    for name in MODULES:
        package, _, last = name.rpartition(".")
        if package in sys.modules and isinstance(sys.modules.get(name), Deferred):
            vars(sys.modules[package]).setdefault(last, sys.modules[name])


def complete(name: str) -> None:
    """Run the code of a module, unless it has run; wait for a thread that runs it.

    The lock is that of the import of this module: it is free of deadlocks with imports in other threads.
    """
    with _ModuleLockManager(name):
        module = sys.modules[name]
        waiting, spec = type(module) is Deferred, module.__spec__
        if waiting and spec is not None and spec.loader is not None:
            module.__class__ = Running
            spec._initializing = True  # type: ignore[attr-defined]  # noqa: SLF001  (`import` in other threads waits)
            try:
                spec.loader.exec_module(module)
            finally:
                spec._initializing = False  # type: ignore[attr-defined]  # noqa: SLF001
                module.__class__ = ModuleType


def undo(package: str) -> None:
    """Forget the imported modules of a package and all deferred ones, so that they are imported as usual."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package or isinstance(module, Deferred):
            del sys.modules[name]
