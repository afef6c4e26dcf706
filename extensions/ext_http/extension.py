"""The extension: its operations, in the order in which users read about them."""

from __future__ import annotations

import ext_sdk

from . import request
from .config import HttpConfig


def warm_up() -> None:
    """Import what the first request needs."""
    from . import client  # noqa: F401


extension = ext_sdk.Extension(
    "http",
    version=ext_sdk.__version__,
    description="Ask HTTP servers, wait for them, and check what they answer",
    config=HttpConfig,
    warm_up=warm_up,
)

for operation in request.OPERATIONS:
    extension.add(operation)
