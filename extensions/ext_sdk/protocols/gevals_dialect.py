"""The gevals extension protocol as a dialect (spec 0); its constants are in `gevals`."""

from __future__ import annotations

from . import gevals
from .dialect import Dialect

DIALECT = Dialect(
    "gevals",
    gevals.FRAMING,
    "the gevals extension protocol",
    bound=gevals.BOUND,
    volatile=gevals.VOLATILE,
    failed={"/result/success": False},
    subject={gevals.EXECUTE: "/params/operation"},
    final=gevals.FINAL,
)
