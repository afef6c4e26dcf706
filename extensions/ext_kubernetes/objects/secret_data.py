"""Values of Secrets: compared as plain strings, shown as a placeholder.

They are marked when objects are read, not registered with the redactor: it ignores short values, and would redact a
word such as `default` in every later message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fields import members, text

if TYPE_CHECKING:
    from .yaml_loader import Object


PLACEHOLDER = "(hidden value of a Secret)"
FIELDS = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # kubectl's copy of the manifest, data included


class Hidden(str):
    """A string of a Secret: equal to the same string, but not to be shown."""

    __slots__ = ()


def marked(item: Object, kind: str = "") -> Object:
    """Return the object with the values of a Secret as Hidden; other objects unchanged.

    Args:
        kind: of the object; items of a list have no kind themselves.
    """
    if (kind or text(item, "kind")) != "Secret":
        return item
    secret = item | {field: _hide(item[field]) for field in FIELDS if field in item}
    annotations = members(item, "metadata", "annotations")
    if LAST_APPLIED in annotations:
        annotations = annotations | {LAST_APPLIED: _hide(annotations[LAST_APPLIED])}
        secret |= {"metadata": members(item, "metadata") | {"annotations": annotations}}
    return secret


def _hide(value: object) -> object:
    if isinstance(value, dict):
        return {key: _hide(member) for key, member in value.items()}
    return Hidden(value) if isinstance(value, str) else value


def masked(value: object) -> object:
    """Return a value for messages: PLACEHOLDER replaces every Hidden text in it."""
    if isinstance(value, Hidden):
        return PLACEHOLDER
    if isinstance(value, dict):
        return {key: masked(member) for key, member in value.items()}
    return [masked(member) for member in value] if isinstance(value, list) else value


def has_hidden(value: object) -> bool:
    """Return True if a value is Hidden, or contains a Hidden text."""
    if isinstance(value, (dict, list)):
        return any(map(has_hidden, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Hidden)
