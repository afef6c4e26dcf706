"""The extension: its operations, in the order in which users read about them.

The manifest is prepared, so nothing of an operation is needed before the first call, and then its family alone. All
others, and the HTTP library, are imported beside the session.
"""

from __future__ import annotations

import ext_sdk

from .config import HttpConfig

# The operations, each with its module.
MODULES = {
    "request": "request",
    "wait": "wait",
    "download": "download",
    "graphql": "graphql",
    "session": "session",
    "mock-start": "mock.operations",
    "mock-verify": "mock.operations",
    "mock-stop": "mock.operations",
}


def warm_up() -> None:
    """Import what the first operation needs, then what all others do."""
    from .client import Client  # noqa: F401

    extension.operations.import_modules()


extension = ext_sdk.Extension(
    "http",
    version=ext_sdk.__version__,
    description="Ask HTTP servers, wait for them, check their answers; stand in for one, and check what it was asked",
    config=HttpConfig,
    warm_up=warm_up,
)

extension.operations.add_modules(__package__, MODULES)
