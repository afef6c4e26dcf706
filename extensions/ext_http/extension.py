"""Extension object: operations in the order of the reference page.

The manifest is prepared, so an operation's module is imported at its first call. A background thread imports the others
and the HTTP library.
"""

from __future__ import annotations

import ext_sdk

from .config import HttpConfig

# Operations, and their modules in `operations`.
MODULES = {
    "request": "request",
    "wait": "wait",
    "download": "request",
    "graphql": "request",
    "websocket": "websocket",
    "session": "request",
    "mock-start": "mock",
    "mock-verify": "mock",
    "mock-update": "mock",
    "mock-stop": "mock",
}


def warm_up() -> None:
    """Import the HTTP library, which most first calls need, then the modules of all operations."""
    from ext_http.client.url import IMPORT_LOCK

    with IMPORT_LOCK:
        from ext_http.client.client import Client  # noqa: F401
    extension.operations.import_modules()


extension = ext_sdk.Extension(
    "http",
    version=ext_sdk.__version__,
    description="Send HTTP requests, wait for servers, check responses; mock servers and check what they received",
    config=HttpConfig,
    warm_up=warm_up,
)

extension.operations.add_modules(f"{__package__}.operations", MODULES)
