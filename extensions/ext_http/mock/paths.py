"""Paths of routes: exact ones, and templates such as `/cities/{city}/forecast`.

Paths are compared part by part and decoded, so that `/a%62` is `/ab`, and a part may have a `/` in it as `%2F`.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SCHEME = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


class Target(NamedTuple):
    """What a request is about: the parts of its path, decoded, and the parameters of its query."""

    path: str
    parts: tuple[str, ...]
    query: tuple[tuple[str, str], ...]


def parse_target(text: str) -> Target:
    """Read the target of a request line (RFC 9112, 3.2): `/path?query`, `http://host/path`, `*`.

    `+` is a space in a query, as forms have it. Nothing is raised: what is not to be decoded stays as it is.
    """
    path, _, query = _SCHEME.sub("", text, count=1).partition("?")
    pairs = [one.partition("=") for one in query.split("&") if one]
    decoded = tuple((_form(name), _form(value)) for name, _, value in pairs)
    return Target(unquote(path) or "/", _parts(path or "/"), decoded)


def _form(text: str) -> str:
    return unquote(text.replace("+", " "))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(map(unquote, path.split("/")))


class PathTemplate:
    """A path, with `{name}` in place of whole parts.

    Args:
        text: as the user wrote it.

    Raises:
        ValueError: it does not begin with `/`, or a name is none, or is there twice.
    """

    def __init__(self, text: str) -> None:
        if not text.startswith("/"):
            raise ValueError(f"path: expected one that begins with /, found {text!r:.100}")
        if "?" in text:
            raise ValueError(f"path: expected a path without query, found {text!r:.100}; `query` is for that")
        self.text = text
        raw = text.split("/")
        self.names = tuple(_name(part) for part in raw)
        self._parts = _parts(text)
        named = [name for name in self.names if name]
        if len(set(named)) < len(named):
            raise ValueError(f"path: expected each name once, found {text!r:.100}")

    def match(self, target: Target) -> dict[str, str] | None:
        """The parameters of a path that fits, or None. A parameter is at least one character."""
        if len(target.parts) != len(self._parts):
            return None
        found: dict[str, str] = {}
        for name, expected, part in zip(self.names, self._parts, target.parts, strict=True):
            if name and part:
                found[name] = part
            elif name or expected != part:
                return None
        return found


def _name(part: str) -> str:
    """The name of a part that is `{name}`, "" for one that is not."""
    if not (part.startswith("{") and part.endswith("}")):
        if "{" in part or "}" in part:
            raise ValueError(f"path: a parameter is a whole part, as in /cities/{{city}}, found {part!r:.100}")
        return ""
    if not NAME.fullmatch(part[1:-1]):
        raise ValueError(f"path: expected a name of letters, digits, - and _ in braces, found {part!r:.100}")
    return part[1:-1]
