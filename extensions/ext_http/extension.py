"""The extension: its operations, in the order in which users read about them.

The manifest is prepared, so no operation is imported before the first call, and then only its module. A thread imports
the others and the HTTP library.
"""

from __future__ import annotations

import ext_sdk

from .config import HttpConfig

# The operations, each with its module.
MODULES = {
    "request": "operations.request",
    "wait": "operations.wait",
    "download": "operations.download",
    "graphql": "operations.graphql",
    "session": "operations.session",
    "mock-start": "mock.operations",
    "mock-verify": "mock.operations",
    "mock-stop": "mock.operations",
}


def warm_up() -> None:
    """Import what the first operation needs, then what all others do."""
    from ext_http.client.client import Client  # noqa: F401

    extension.operations.import_modules()


extension = ext_sdk.Extension(
    "http",
    version=ext_sdk.__version__,
    description="Ask HTTP servers, wait for them, check their answers; stand in for one, and check what it was asked",
    config=HttpConfig,
    warm_up=warm_up,
)

extension.operations.add_modules(__package__, MODULES)
