"""What a call is given, for tests that look at parts of ext-http without a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_http.config import HttpConfig
from ext_sdk.context import Artifacts, Context, Log, Secrets, States
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.references import Expansion, NoValue

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ext_sdk.references import Reference


def context_in(workdir: Path, secrets: Mapping[str, str] | None = None) -> Context:
    """The circumstances of a call in a workdir, with secrets by name."""
    return Context(
        workdir=workdir,
        log=Log(lambda _level, _message, _data: None),
        config=HttpConfig(),
        secrets=Secrets(Redactor(secrets or {})),
        states=States(),
        artifacts=Artifacts("", "http"),
        expansion=lambda: Expansion(_no_value, str),
    )


def _no_value(reference: Reference) -> str:
    raise NoValue(f"{reference} has no value")
