"""Importing the client library: once, beside everything else, and of it what sends requests."""

from __future__ import annotations

import gc
import sys
import threading
from importlib import import_module

from ext_sdk.deferred import attach, defer, undo

from .deferred import MODULES, USED_LATER

LOCK = threading.Lock()  # the package's modules import each other: two threads must not import them


def warm_up() -> None:
    """Import what the first request needs, unless that was done."""
    with LOCK:
        if "kubernetes.dynamic.client" in sys.modules:
            return
        collected = gc.isenabled()
        gc.disable()  # it would look through all that is imported again and again, and find nothing
        try:
            defer(MODULES, USED_LATER)
            _import()
            attach()
        except (ImportError, AttributeError):  # another version, whose parts don't go by themselves
            undo("kubernetes")
            _import()
        finally:
            if collected:
                gc.enable()


def _import() -> None:
    import_module("kubernetes.config.kube_config")
    import_module("kubernetes.client.api_client")
    import_module("kubernetes.dynamic.client")
