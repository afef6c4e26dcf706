"""Import of the client library, once and only as far as requests need it.

`import kubernetes.dynamic` first runs the `__init__` of `kubernetes`, which imports informers, leader election, OpenID
clients, pydantic and, in versions 35 and 36, the 800 typed models: 250 to 400 ms, of which a request needs a quarter.
"""

from __future__ import annotations

import gc
import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING

from ext_sdk.deferred_imports import attach, defer, undo

if TYPE_CHECKING:
    from collections.abc import Mapping


# See ext_sdk.deferred_imports, also for the second.
MODULES: Mapping[str, Mapping[str, str]] = {
    "dateutil": {},
    "dateutil.parser": {},
    "kubernetes": {},
    "kubernetes.client": {
        "ApiClient": "kubernetes.client.api_client",
        "Configuration": "kubernetes.client.configuration",
    },
    "kubernetes.client.api_response": {},
    "kubernetes.client.models": {},
    "kubernetes.dynamic": {"DynamicClient": "kubernetes.dynamic.client"},
    "kubernetes.dynamic.discovery": {},
    "kubernetes.utils": {},
    "kubernetes.utils.retry": {},
    "kubernetes.watch": {},
    "multiprocessing": {"cpu_count": "os"},
    "multiprocessing.pool": {},
    "oauthlib.oauth2": {},
    "pprint": {},
    "pydantic": {},
    "requests_oauthlib": {},
    "urllib3.http2": {},
    "yaml": {
        "AliasEvent": "yaml.events",
        "CSafeLoader": "yaml.cyaml",
        "CollectionEndEvent": "yaml.events",
        "CollectionStartEvent": "yaml.events",
        "MappingNode": "yaml.nodes",
        "MarkedYAMLError": "yaml.error",
        "ScalarNode": "yaml.nodes",
        "YAMLError": "yaml.error",
    },
    "yaml.composer": {},
    "yaml.emitter": {},
    "yaml.parser": {},
    "yaml.reader": {},
    "yaml.scanner": {},
}

USED_LATER = frozenset(
    {
        ("dateutil.parser", "parse"),
        ("kubernetes.client.api_response", "ApiResponse"),
        ("kubernetes.client.api_response", "T"),
        ("kubernetes.dynamic.discovery", "EagerDiscoverer"),
        ("kubernetes.dynamic.discovery", "LazyDiscoverer"),
        ("kubernetes.utils.retry", "is_retry_after_response"),
        ("kubernetes.utils.retry", "on_retry_after_error"),
        ("kubernetes.utils.retry", "retry_after_backoff"),
        ("multiprocessing.pool", "ThreadPool"),
        ("pprint", "pformat"),
        ("pydantic", "SecretStr"),
        ("requests_oauthlib", "OAuth2Session"),
        ("yaml.composer", "ComposerError"),
        ("yaml.emitter", "EmitterError"),
        ("yaml.parser", "ParserError"),
        ("yaml.reader", "ReaderError"),
        ("yaml.scanner", "ScannerError"),
    }
)

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
