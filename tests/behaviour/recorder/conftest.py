from __future__ import annotations

from tests.support.ext_recorder import cassette

__all__ = ["cassette"]
