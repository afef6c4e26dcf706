"""Importing the parts of `kubernetes` that send a request, without all that the package imports beside them.

`import kubernetes.dynamic` first runs the `__init__` of `kubernetes`, and that imports informers, leader election,
OpenID clients and, in versions 35 and 36, the 800 typed models: some 250 to 400 ms, of which a request needs half. So
these packages are put in place before their `__init__` runs. Modules within them are imported as ever; whoever asks a
package for anything else makes it run its `__init__` after all, so that nothing is missing for anybody, only later.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The packages whose `__init__` waits, each with names that it would have, and the modules that really have them.
PACKAGES: Mapping[str, Mapping[str, str]] = {
    "kubernetes": {},
    "kubernetes.client": {
        "ApiClient": "kubernetes.client.api_client",
        "Configuration": "kubernetes.client.configuration",
    },
    "kubernetes.client.models": {},
    "kubernetes.utils": {},
    "kubernetes.watch": {},
    "oauthlib.oauth2": {},
    "requests_oauthlib": {},
}
# Callables that are wanted by `from PACKAGE import NAME`, which asks for them at once, and are called rarely or never.
CALLED_LATER = frozenset({("requests_oauthlib", "OAuth2Session")})
_COMPLETING = threading.RLock()


class Deferred(ModuleType):
    """A package whose `__init__` has not run yet."""

    def __getattr__(self, name: str) -> object:
        """What is not there yet: a module within it, or what its `__init__` makes."""
        package = self.__name__
        if home := PACKAGES[package].get(name):
            return getattr(import_module(home), name)
        if (package, name) in CALLED_LATER:
            return _later(package, name)
        if (package, name) == ("kubernetes", "__version__"):  # which a module wants that is imported for another class
            from importlib.metadata import version

            return version(package)
        if not name.startswith("__") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        if name.startswith("__"):  # what the import system and others look for in any module
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        complete(package)
        return getattr(self, name)


def defer() -> None:
    """Put the packages in place, but those that somebody has imported already."""
    for name in PACKAGES:
        if name in sys.modules:
            continue
        spec = find_spec(name)
        if spec is None:
            continue
        module = module_from_spec(spec)
        module.__class__ = Deferred
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


def complete(package: str) -> None:
    """Run the `__init__` of a package, where that was not done."""
    with _COMPLETING:
        module = sys.modules[package]
        waiting, spec = isinstance(module, Deferred), module.__spec__
        if waiting and spec is not None and spec.loader is not None:
            module.__class__ = ModuleType
            spec.loader.exec_module(module)


def undo() -> None:
    """Forget what was imported of `kubernetes`, so that it is imported as its authors thought it would be."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "kubernetes" or isinstance(module, Deferred):
            del sys.modules[name]


def _later(package: str, name: str) -> Callable[..., object]:
    def call(*args: object, **options: object) -> object:
        complete(package)
        made: object = getattr(sys.modules[package], name)(*args, **options)
        return made

    return call
