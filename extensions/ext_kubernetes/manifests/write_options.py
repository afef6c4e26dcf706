"""Arguments and query parameters that all writing operations share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

MANAGER = "ext-kubernetes"

Namespace = Annotated[
    str,
    Meta(
        description="For objects that name none; by default the one that create-namespace made, or the configured one"
    ),
]

DryRun = Annotated[bool, Meta(description="Let the server check everything and change nothing")]
Validation = Annotated[bool, Meta(description="Take fields that the kind does not have for errors")]
Subresource = Annotated[str, Meta(description="Such as status or scale")]


def write_options(*, dry_run: bool, strict: bool = True) -> list[tuple[str, str]]:
    """The query of a request that changes something."""
    return [("fieldValidation", "Strict" if strict else "Ignore"), *([("dryRun", "All")] if dry_run else [])]
