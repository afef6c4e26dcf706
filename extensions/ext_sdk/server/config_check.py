"""Early check of a configuration that imports nothing heavy, so that the manifest does not wait for msgspec.

It accepts only configurations that the validation of the session certainly accepts; `prepare` derives its schema from
the class of the configuration. For all others the complete validation decides, and reports the error.
"""

from __future__ import annotations

import os
import sys

from ext_sdk.duration import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TYPES = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}


def certainly_valid(value: object, schema: object) -> bool:
    """Return True if a value is certainly valid; False if it is not, or if that is unknown.

    Args:
        schema: from `prepare`; `false`, and any unsupported keyword, accepts nothing.
    """
    if not isinstance(schema, dict):
        return False
    return all(keyword in _KEYWORDS and _KEYWORDS[keyword](value, rule, schema) for keyword, rule in schema.items())


def _is_of_type(value: object, name: object, _: dict[str, object]) -> bool:
    """Return True if a value has exactly this type, and, if it is text, can be encoded."""
    if type(value) is not _TYPES.get(str(name)):
        return False
    return not isinstance(value, str) or _is_text(value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _is_listed(value: object, listed: object, _: dict[str, object]) -> bool:
    return isinstance(value, str) and isinstance(listed, list) and value in listed


def _at_least(value: object, least: object, _: dict[str, object]) -> bool:
    return isinstance(value, int) and isinstance(least, int) and value >= least


def _at_most(value: object, most: object, _: dict[str, object]) -> bool:
    return isinstance(value, int) and isinstance(most, int) and value <= most


def _matches(value: object, pattern: object, _: dict[str, object]) -> bool:
    import re

    return re.fullmatch(str(pattern), str(value)) is not None


def _has_valid_items(value: object, schema: object, _: dict[str, object]) -> bool:
    return isinstance(value, list) and all(certainly_valid(item, schema) for item in value)


def _has_valid_properties(value: object, properties: object, _: dict[str, object]) -> bool:
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return False
    return all(certainly_valid(member, properties[name]) for name, member in value.items() if name in properties)


def _has_valid_others(value: object, schema: object, around: dict[str, object]) -> bool:
    known = around.get("properties")
    if not isinstance(value, dict) or not isinstance(known, dict | None):
        return False
    others = [(name, member) for name, member in value.items() if name not in (known or {})]
    return all(_is_text(name) and certainly_valid(member, schema) for name, member in others)


def _has_required(value: object, names: object, _: dict[str, object]) -> bool:
    return isinstance(value, dict) and isinstance(names, list) and all(name in value for name in names)


def _is_any_of(value: object, schemas: object, _: dict[str, object]) -> bool:
    return isinstance(schemas, list) and any(certainly_valid(value, schema) for schema in schemas)


def _is_all_of(value: object, schemas: object, _: dict[str, object]) -> bool:
    return isinstance(schemas, list) and all(certainly_valid(value, schema) for schema in schemas)


def _passes(value: object, target: object, _: dict[str, object]) -> bool:
    """Return True if `package.module:function`, of a module that imports nothing heavy, raises no ValueError."""
    module, name = str(target).split(":")
    __import__(module)
    check: Callable[[object], object] = getattr(sys.modules[module], name)
    try:
        check(value)
    except ValueError:
        return False
    return True


def check_duration(text: str) -> None:
    """Raise ValueError for text that is not a duration."""
    Duration.parse(text)


def check_config(members: dict[str, object]) -> None:
    """Raise ValueError for values that the session refuses in the configuration of any extension."""
    if Duration.parse(str(members.get("maxOperationTime", "1s"))).nanoseconds <= 0:
        raise ValueError("maxOperationTime: expected a duration of more than 0s")
    check_artifacts(str(members.get("artifacts", "")))


def check_artifacts(directory: str) -> None:
    """Raise ValueError for a directory in which no file can be created; "" is the default one."""
    if not directory:
        return
    if not os.path.isabs(directory) or "\0" in directory:  # noqa: PTH117  (no pathlib on the start-up path)
        raise ValueError(f"artifacts: expected an absolute path, found {directory[:80]!r}")
    existing = directory
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)  # noqa: PTH120
    if not os.path.isdir(existing):  # noqa: PTH112
        raise ValueError(f"artifacts: expected a directory, found another file: {existing!r:.200}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"artifacts: expected a directory that can be written, found {existing!r:.200}")


# Keywords of JSON Schema, and `check`.
_KEYWORDS: dict[str, Callable[[object, object, dict[str, object]], bool]] = {
    "type": _is_of_type,
    "enum": _is_listed,
    "minimum": _at_least,
    "maximum": _at_most,
    "pattern": _matches,
    "items": _has_valid_items,
    "properties": _has_valid_properties,
    "additionalProperties": _has_valid_others,
    "required": _has_required,
    "allOf": _is_all_of,
    "anyOf": _is_any_of,
    "check": _passes,
}
