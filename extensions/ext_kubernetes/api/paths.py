"""Paths of the API server, built only here, so that no argument can change the object that a path addresses.

The type checker enforces it: requests accept an ApiPath, and only this module creates one.
"""

from __future__ import annotations

from typing import NewType

from .errors import InvalidName

ApiPath = NewType("ApiPath", str)
DISCOVERY = (ApiPath("/api"), ApiPath("/apis"))
FORBIDDEN_NAMES = (".", "..")
FORBIDDEN_CHARACTERS = ("/", "%")


def api_path(
    group: str, version: str, plural: str = "", namespace: str = "", *, name: str = "", subresource: str = ""
) -> ApiPath:
    """Return the path of an object, of the list of a kind, or of an API group.

    Args:
        group: of the API; "" for the core group.
        version: of the group.
        plural: of the kind; "" for the group itself.
        namespace: "" for all, and for kinds without namespaces.
        name: of the object; "" for the list.
        subresource: such as `status` or `scale`; several segments are separated by `/`.

    Raises:
        InvalidName: a part is not valid as a segment of a path.
    """
    from urllib.parse import quote

    parts = [("API group", group), ("API version", version)] if group else [("API version", version)]
    if namespace:
        parts += [("resource", "namespaces"), ("namespace", namespace)]
    parts += [("resource", plural)] if plural else []
    parts += [("resource name", name)] if name else []
    parts += [("subresource", part) for part in subresource.split("/")] if subresource else []
    path = "/apis" if group else "/api"
    for kind, part in parts:
        check_name(kind, part)
        path += f"/{quote(part, safe=':', errors='surrogatepass')}"
    return ApiPath(path)


def core_path(plural: str, namespace: str = "", name: str = "", subresource: str = "") -> ApiPath:
    """Return a path of the core group; see api_path."""
    return api_path("", "v1", plural, namespace, name=name, subresource=subresource)


def check_name(what: str, value: str) -> None:
    """Raise InvalidName if a value is not valid as a segment of a path, by the rules of kubectl."""
    if value and value not in FORBIDDEN_NAMES and "/" not in value and "%" not in value:
        return
    problems = [f"may not be '{value}'"] if value in FORBIDDEN_NAMES else []
    problems += [f"may not contain '{character}'" for character in FORBIDDEN_CHARACTERS if character in value]
    problems += ["may not be empty"] if not value else []
    raise InvalidName(what, value, problems)
