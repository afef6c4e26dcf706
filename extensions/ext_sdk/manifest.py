"""The manifest: what an extension can do, in one line that every host can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .protocols import gevals
from .schema import params_schema
from .sharing import shared
from .wire import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from .extension import Extension
    from .schema import Schema

LIMIT_BYTES = 60 * 1024  # as for every line, see `fitting`


def build_manifest(extension: Extension) -> dict[str, object]:
    """The manifest of an extension (spec 0, "Initialize"), with descriptions as long as the line allows.

    Raises:
        ValueError: it does not fit a line even without descriptions of arguments.
    """
    for describe in (_whole, _first_sentence, _nothing):
        manifest = _manifest(extension, describe)
        if len(dumps(manifest).encode()) <= LIMIT_BYTES:
            return manifest
    raise ValueError(
        f"the manifest of {extension.name!r} does not fit a line of {LIMIT_BYTES} bytes: too many operations"
    )


def _manifest(extension: Extension, describe: Callable[[str], str]) -> dict[str, object]:
    manifest: dict[str, object] = {
        "name": extension.name,
        "version": extension.version,
        "protocolVersion": gevals.PROTOCOL_VERSION,
    }
    if extension.description:
        manifest["description"] = extension.description
    if extension.requires:
        manifest["requires"] = [{"command": command} for command in extension.requires]
    manifest["operations"] = {
        name: {
            "description": operation.description,
            "params": shared(_described(params_schema(operation.args_type), describe)),
        }
        for name, operation in extension.operations.items()
    }
    return manifest


def _described(schema: Schema, describe: Callable[[str], str]) -> Schema:
    """A schema with its descriptions shortened. A property may itself be named `description`."""
    shorter: Schema = {}
    for key, value in schema.items():
        if key == "description" and isinstance(value, str):
            if text := describe(value):
                shorter[key] = text
        elif key == "properties" and isinstance(value, dict):
            shorter[key] = {name: _described(item, describe) for name, item in value.items()}
        elif key == "anyOf" and isinstance(value, list):
            shorter[key] = [_described(item, describe) for item in value]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            shorter[key] = _described(value, describe)
        else:
            shorter[key] = value
    return shorter


def _whole(text: str) -> str:
    return text


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0]


def _nothing(_: str) -> str:
    return ""
