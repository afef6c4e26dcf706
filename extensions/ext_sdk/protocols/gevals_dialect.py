"""The gevals extension protocol as a dialect (spec 0); its constants are in `gevals`."""

from __future__ import annotations

from ext_sdk.core import gevals_spec

from .dialect import Dialect

DIALECT = Dialect(
    "gevals",
    gevals_spec.FRAMING,
    "the gevals extension protocol",
    bound=gevals_spec.BOUND,
    volatile=gevals_spec.VOLATILE,
    failed={"/result/success": False},
    subject={gevals_spec.EXECUTE: "/params/operation"},
    final=gevals_spec.FINAL,
)
