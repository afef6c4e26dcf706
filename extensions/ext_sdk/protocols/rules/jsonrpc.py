"""JSON-RPC 2.0 by itself."""

from __future__ import annotations

from .rule import Rules
from .schema import VERSION_2

RULES = Rules("JSON-RPC 2.0", {}, envelope=VERSION_2, envelope_clause="version-2", messages={})
