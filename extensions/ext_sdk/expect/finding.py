"""One value in a text, found by a regular expression or a JSONPath: what operations capture."""

from __future__ import annotations

import json

from .json_values import NotJson, is_type, parse, type_name
from .pattern import Searcher, SearchFailed

LONG = 64 * 1024  # characters from which on parsing takes a millisecond or more


class NotFound(Exception):
    """The value is not there; str() says why."""


def find_by_regex(pattern: str, group: int | str | None, text: str, *, where: str, searcher: Searcher) -> str:
    """What a group of the first match holds.

    Args:
        pattern: in the syntax of Python's `re`.
        group: number or name; None: the first, or the whole match where there are no groups.
        text: what to search.
        where: what the text is: `stdout`.
        searcher: searches.

    Raises:
        NotFound: there is no match, or no such group in it.
    """
    try:
        found = searcher.search(pattern, text)
    except SearchFailed as error:
        raise NotFound(str(error)) from error
    if found is None:
        raise NotFound(f"nothing in {where} that matches {pattern!r}")
    if group is None:
        group = 1 if len(found.groups) > 1 else 0
    groups: dict[int | str, str | None] = dict(enumerate(found.groups))
    groups.update(found.named)
    if group not in groups:
        raise NotFound(f"no group {group!r} in {pattern!r}")
    value = groups[group]
    if value is None:
        raise NotFound(f"no text in group {group!r} of {pattern!r}, which matches without it")
    return value


def find_by_json(path: str, text: str, *, where: str, searcher: Searcher, kind: str = "") -> str:
    """The one value at a path of a JSON text: a string as it is, all else as JSON; integers are exact.

    Args:
        path: JSONPath (RFC 9535).
        text: JSON.
        where: what the text is: `stdout`.
        searcher: searches for patterns in the path.
        kind: the type that the value must have; "" for any.

    Raises:
        NotFound: the text is no JSON, or the path leads to none or several, or to another type.
    """
    from .json_path import PathFailed, select

    try:
        if len(text) > LONG:
            searcher.check_time()
        nodes = select(path, parse(text), searcher)
    except NotJson as error:
        raise NotFound(f"{where} is not JSON: {error}") from error
    except (PathFailed, SearchFailed) as error:
        raise NotFound(str(error)) from error
    if len(nodes) != 1:
        raise NotFound(f"{len(nodes)} values at {path!r} in {where}, where one is expected")
    value = nodes[0].value
    if kind and not is_type(value, kind):
        raise NotFound(f"a value of type {type_name(value)} at {path!r} in {where}, where {kind} is expected")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
