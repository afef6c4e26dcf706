"""The manifest: what an extension can do, in one line that every host can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .protocols import gevals
from .schema import params_schema
from .sharing import shared
from .wire import dumps

if TYPE_CHECKING:
    from .extension import Extension
    from .schema import Schema

LIMIT_BYTES = 60 * 1024  # as for every line, see `fitting`


class Detail(NamedTuple):
    """How much is said of arguments.

    Attributes:
        depth: how deep descriptions go: 1 for arguments alone, 2 for their members too.
        short: first sentences instead of whole descriptions.
        unions: repeated alternatives are told once.
    """

    depth: int
    short: bool = True
    unions: bool = False


ALL = 1000  # deeper than schemas are
# References are worth their trouble where they make room for descriptions, or for all.
DETAILS = (
    Detail(ALL, short=False),
    Detail(ALL),
    Detail(2, unions=True),
    Detail(1, unions=True),
    Detail(0),
    Detail(0, unions=True),
)


def build_manifest(extension: Extension) -> dict[str, object]:
    """Return the manifest of an extension (spec 0, "Initialize"), with descriptions as long as the line allows.

    Descriptions are shortened in one operation after the other: first in other names of operations, then where it
    saves most.

    Raises:
        ValueError: it does not fit a line even without descriptions of arguments.
    """
    operations = _operations(extension, DETAILS[0])
    manifest = _head(extension) | {"operations": operations}
    size = _size(manifest)
    for detail in DETAILS[1:]:
        shorter = _operations(extension, detail)
        savings = {name: _size(operations[name]) - _size(shorter[name]) for name in operations}
        for name in sorted(savings, key=lambda name: (not extension.operations[name].same_as, -savings[name])):
            if size <= LIMIT_BYTES:
                return manifest
            operations[name] = shorter[name]
            size -= savings[name]
    if size <= LIMIT_BYTES:
        return manifest
    raise ValueError(
        f"the manifest of {extension.name!r} does not fit a line of {LIMIT_BYTES} bytes: too many operations"
    )


def _size(value: object) -> int:
    return len(dumps(value).encode())


def _operations(extension: Extension, detail: Detail) -> dict[str, object]:
    return {
        name: {
            "description": operation.description,
            "params": shared(_described(params_schema(operation.args_type), detail, 0), unions=detail.unions),
        }
        for name, operation in extension.operations.items()
    }


def _head(extension: Extension) -> dict[str, object]:
    manifest: dict[str, object] = {
        "name": extension.name,
        "version": extension.version,
        "protocolVersion": gevals.PROTOCOL_VERSION,
    }
    if extension.description:
        manifest["description"] = extension.description
    if extension.requires:
        manifest["requires"] = [{"command": command} for command in extension.requires]
    return manifest


def _described(schema: Schema, detail: Detail, depth: int) -> Schema:
    """A schema with its descriptions shortened. A property may itself be named `description`.

    Args:
        schema: of the arguments, or of something within them.
        detail: what is left.
        depth: 1 for an argument, 2 for a member of one.
    """
    shorter: Schema = {}
    for key, value in schema.items():
        if key == "description" and isinstance(value, str):
            if depth <= detail.depth:
                shorter[key] = value.partition(". ")[0] if detail.short else value
        elif key == "properties" and isinstance(value, dict):
            shorter[key] = {name: _described(item, detail, depth + 1) for name, item in value.items()}
        elif key == "anyOf" and isinstance(value, list):
            shorter[key] = [_described(item, detail, depth) for item in value]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            shorter[key] = _described(value, detail, depth)
        else:
            shorter[key] = value
    return shorter
