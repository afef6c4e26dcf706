r"""Values out of objects by JSONPath, in both dialects that people know.

`$.status.phase` is RFC 9535, and `{.status.phase}`, or `.status.phase` for short, is what kubectl understands: text
with expressions in braces, `range … end`, filters of one comparison, slices, unions, and keys whose dots are escaped
(`.a\.b`, `['a\.b']`). What kubectl refuses or never finds in a bracket is found here: `["a"]`, `['a.b']`.
"""

from __future__ import annotations

from .kubectl_path import PathFailed, template
from .kubectl_select import rendered, select, text_of_one
from .secret_data import Hidden, has_hidden

__all__ = ["PathFailed", "problem", "text_of", "values"]


def problem(path: str) -> str:
    """What is wrong with a path, or ""."""
    try:
        if path.startswith("$"):
            from ext_sdk.expect import json_path

            return json_path.problem(path)
        template(path)
    except PathFailed as error:
        return str(error)
    return ""


def values(path: str, document: object) -> list[object]:
    """The values that a path selects; of a template the text that it makes, where it is more than one expression.

    Raises:
        PathFailed: the path is wrong.
    """
    if path.startswith("$"):
        from ext_sdk.expect import Searcher, SearchFailed, json_path

        try:
            with Searcher() as searcher:
                return [node.value for node in json_path.select(path, document, searcher)]
        except (json_path.PathFailed, SearchFailed) as error:
            raise PathFailed(str(error)) from error
    parts = template(path)
    if len(parts) == 1 and parts[0].kind == "path":
        return list(select(parts[0].steps, document, document))
    pieces: list[object] = list(rendered(parts, document, document))
    made = "".join(map(str, pieces))
    return [Hidden(made) if has_hidden(pieces) else made]


def text_of(found: list[object]) -> str:
    """Values as an output: a text as it is, all else as JSON, several one a line."""
    return "\n".join(text_of_one(value) for value in found)
