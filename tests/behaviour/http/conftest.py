from __future__ import annotations

from tests.support.ext_http import _shared, fresh, http, mocks, stub

__all__ = ["_shared", "fresh", "http", "mocks", "stub"]
