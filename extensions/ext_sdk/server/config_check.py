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

_TYPES = {"boolean": bool, "integer": int, "array": list, "object": dict}


def certainly_valid(value: object, schema: object) -> bool:
    """Return True if a value is certainly valid; False if it is not, or if that is unknown.

    Args:
        schema: from `prepare`; `false`, and any unsupported keyword, accepts nothing.
    """
    if not isinstance(schema, dict):
        return False
    return all(_follows(value, keyword, rule, schema) for keyword, rule in schema.items())


def _follows(  # noqa: C901, PLR0912  (one case for each keyword)
    value: object, keyword: str, rule: object, schema: dict[str, object]
) -> bool:
    """Return True if a value follows a keyword of JSON Schema, or `check`."""
    match keyword, value, rule:
        case "type", str(), "string":
            return _is_text(value)
        case "type", _, str():
            return type(value) is _TYPES.get(rule)
        case "enum", str(), list():
            return value in rule
        case "minimum", int(), int():
            return value >= rule
        case "maximum", int(), int():
            return value <= rule
        case "pattern", _, _:
            import re

            return re.fullmatch(str(rule), str(value)) is not None
        case "items", list(), _:
            return all(certainly_valid(item, rule) for item in value)
        case "properties", dict(), dict():
            return all(certainly_valid(member, rule[name]) for name, member in value.items() if name in rule)
        case "additionalProperties", dict(), _:
            known = schema.get("properties") or {}
            if not isinstance(known, dict):
                return False
            others = {name: member for name, member in value.items() if name not in known}
            return all(_is_text(name) and certainly_valid(member, rule) for name, member in others.items())
        case "required", dict(), list():
            return all(name in value for name in rule)
        case "allOf", _, list():
            return all(certainly_valid(value, part) for part in rule)
        case "anyOf", _, list():
            return any(certainly_valid(value, part) for part in rule)
        case "check", _, str():  # `package.module:function`, of a module that imports nothing heavy
            module, name = rule.split(":")
            __import__(module)
            check: Callable[[object], object] = getattr(sys.modules[module], name)
            try:
                check(value)
            except ValueError:
                return False
            return True
        case _:
            return False


def _is_text(value: str) -> bool:
    """Return True if a text can be encoded; a lone surrogate can't."""
    try:
        value.encode()
    except UnicodeEncodeError:
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
