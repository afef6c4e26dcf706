"""Values of Secrets: compared as they are, and shown as a placeholder.

They are marked where objects are read rather than registered with the redactor: that one leaves short values alone, and
would hide a word such as `default` in every later message.
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
    """A text that belongs to a Secret: equal to the same text, but not to be shown."""

    __slots__ = ()


def marked(item: Object, kind: str = "") -> Object:
    """Return the object with the values of a Secret as Hidden; any other object as it is.

    Args:
        item: the object.
        kind: of the object; items of lists do not name theirs.
    """
    if (kind or text(item, "kind")) != "Secret":
        return item
    found = item | {field: _all_hidden(item[field]) for field in FIELDS if field in item}
    annotations = members(item, "metadata", "annotations")
    if LAST_APPLIED in annotations:
        annotations = annotations | {LAST_APPLIED: _all_hidden(annotations[LAST_APPLIED])}
        found |= {"metadata": members(item, "metadata") | {"annotations": annotations}}
    return found


def _all_hidden(value: object) -> object:
    if isinstance(value, dict):
        return {key: _all_hidden(one) for key, one in value.items()}
    return Hidden(value) if isinstance(value, str) else value


def masked(value: object) -> object:
    """Return a value for messages: PLACEHOLDER replaces every Hidden text in it."""
    if isinstance(value, Hidden):
        return PLACEHOLDER
    if isinstance(value, dict):
        return {key: masked(one) for key, one in value.items()}
    return [masked(one) for one in value] if isinstance(value, list) else value


def has_hidden(value: object) -> bool:
    """Return whether a value is Hidden, or contains a Hidden text."""
    if isinstance(value, (dict, list)):
        return any(map(has_hidden, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Hidden)
