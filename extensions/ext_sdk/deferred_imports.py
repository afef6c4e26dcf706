"""Modules of libraries that are in place before their code runs, for a start that needs little of a library.

Modules within such a package are imported as usual. A program that asks for anything else runs the code after all, so
that nothing is missing, only later.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.machinery import ModuleSpec

# The modules whose code waits, a package before what is in it, each with names that it would have, and the modules
# that really have them.
MODULES: dict[str, Mapping[str, str]] = {}
# Names that are wanted by `from MODULE import NAME`, which asks for them at once, and are used rarely or never: called,
# named in an annotation, or asked for instances.
USED_LATER: set[tuple[str, str]] = set()
_COMPLETING = threading.RLock()


class Deferred(ModuleType):
    """A module whose code has not run yet."""

    def __getattr__(self, name: str) -> object:
        """Return what is not there yet: a module within a package, or what the code defines."""
        module = self.__name__
        if home := MODULES[module].get(name):
            return getattr(import_module(home), name)
        if (module, name) in USED_LATER:
            return UsedLater(name, (), {"module": module})
        if (module, name) == ("kubernetes", "__version__"):
            from importlib.metadata import version

            return version(module)
        if name == "__all__":  # of `from MODULE import *`, which then takes what is there
            complete(module)
            return object.__getattribute__(self, name)
        if name.startswith("__"):  # what the import system and others look for in any module
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if "__path__" in vars(self) and find_spec(f"{module}.{name}") is not None:
            return import_module(f"{module}.{name}")
        complete(module)
        return getattr(self, name)


class UsedLater(type):
    """A class in place of a class or function of a module whose code has not run yet.

    Attributes:
        module: its name.
    """

    module: str

    def __call__(cls, *args: object, **options: object) -> object:
        """Run the deferred module, then call its class or function of this name."""
        complete(cls.module)
        return getattr(sys.modules[cls.module], cls.__name__)(*args, **options)

    def __instancecheck__(cls, value: object) -> bool:
        """Return False as long as the code has not run: a class that does not exist has no instances."""
        module = sys.modules[cls.module]
        return not isinstance(module, Deferred) and isinstance(value, getattr(module, cls.__name__))

    def __getitem__(cls, parameters: object) -> UsedLater:
        """Return the class for an annotation with parameters."""
        return cls


def defer(modules: Mapping[str, Mapping[str, str]], used_later: Iterable[tuple[str, str]] = ()) -> None:
    """Put modules in place, except those that are imported already.

    Args:
        modules: see MODULES.
        used_later: see USED_LATER.
    """
    MODULES.update(modules)
    USED_LATER.update(used_later)
    for name in modules:
        if name in sys.modules:
            continue
        spec = _found(name)
        if spec is None:
            continue
        module = module_from_spec(spec)
        module.__class__ = Deferred
        sys.modules[name] = module
    attach()


def attach() -> None:
    """Make each module that waits an attribute of its package, if that is there."""
    for name in MODULES:
        package, _, last = name.rpartition(".")
        if package in sys.modules and isinstance(sys.modules.get(name), Deferred):
            vars(sys.modules[package]).setdefault(last, sys.modules[name])


def _found(name: str) -> ModuleSpec | None:
    """Return the spec of a module; unlike `find_spec`, without running the code of its package."""
    package, _, _ = name.rpartition(".")
    if not package or package in sys.modules:
        return find_spec(name)
    around = find_spec(package)
    return around and PathFinder.find_spec(name, around.submodule_search_locations)


def complete(name: str) -> None:
    """Run the code of a module, unless that was done."""
    with _COMPLETING:
        module = sys.modules[name]
        waiting, spec = isinstance(module, Deferred), module.__spec__
        if waiting and spec is not None and spec.loader is not None:
            module.__class__ = ModuleType
            spec.loader.exec_module(module)


def undo(package: str) -> None:
    """Forget what was imported of a package, and what waits, so that it is imported as its authors meant it."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package or isinstance(module, Deferred):
            del sys.modules[name]
