"""Lines without any further meaning."""

from __future__ import annotations

from .dialect import Dialect

DIALECT = Dialect("raw", "ndjson", "lines without any further meaning", calls=False)
