"""What API servers say where they refuse: how it is known again, and how it is told without what they were sent.

Some of them quote the object, or the value, before they say what is wrong with it. It may be a Secret.
"""

from __future__ import annotations

import re

UNKNOWN = 'strict decoding error: unknown field "'
UNDECLARED = "field not declared in schema"
NO_TEXT = ": expected string, got "
REJECTED = "the server rejected our request due to an error in our request"  # all that is said of a JSON Patch
NO_PAGE = "404 page not found"  # of a kind that was served before
CONFLICT = "FieldManagerConflict"
_MISFITS = (UNDECLARED, "failed to create typed patch object")  # of a server-side apply
_NAMELESS = ' "" is invalid: '  # a patch that can't be read
_OBJECT = re.compile(r'"(\{.*\}"|map\[.*\]"(?=:))', re.DOTALL)
_VALUE = re.compile(r"&value\.valueUnstructured\{Value:(.*)\}")  # one that does not fit, as Go writes it
_TYPES = {"map": "an object", "[]": "a list", "true": "a boolean", "false": "a boolean", '"': "a text", "<nil>": "null"}


def is_misfit(text: str) -> bool:
    """Whether an object does not fit its kind, which servers answer with status 500."""
    return any(mark in text for mark in _MISFITS)


def shortened(text: str) -> str:
    """What the server says, without what it was told: for a value its type has to do."""
    return _VALUE.sub(_type, _OBJECT.sub('"{…}"', text)).removeprefix(_NAMELESS).strip()


def manager(message: str) -> str:
    """The manager, in quotes, from `conflict with "kubectl" using apps/v1`."""
    parts = message.split('"')
    return f'"{parts[1]}"' if len(parts) > 2 else "another manager"


def _type(value: re.Match[str]) -> str:
    return next((word for begin, word in _TYPES.items() if value[1].startswith(begin)), "a number")
