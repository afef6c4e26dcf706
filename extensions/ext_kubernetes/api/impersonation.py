"""Impersonation: `as`, `as-groups`, `as-uid` and `as-user-extra` of a kubeconfig's user, as headers of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import NoConfiguration

if TYPE_CHECKING:
    from collections.abc import Mapping


USER, GROUPS, UID, EXTRA = "as", "as-groups", "as-uid", "as-user-extra"
HEADER = "Impersonate-"
LEGAL_CHARACTERS = "!#$&'*+-.^_`|~"  # beside letters and digits, of a header's name; `%` escapes all others
Headers = tuple[tuple[str, str], ...]


def impersonation(entry: Mapping[str, object], user: str) -> Headers:
    """Return the headers that make a server treat requests as another user's; a name may occur several times.

    Args:
        entry: of the user in the kubeconfig.
        user: its name, for errors.

    Raises:
        NoConfiguration: the members are not what kubectl accepts; nothing may be sent as the real user then.
    """
    name, uid = (_text(entry.get(key), key, user) for key in (USER, UID))
    groups = _texts(entry.get(GROUPS), GROUPS, user)
    extra = entry.get(EXTRA) or {}
    if not isinstance(extra, dict):
        raise _broken(EXTRA, user, "expected lists of texts by name")
    if (uid or groups or extra) and not name:
        raise _broken(USER, user, f"expected a user name, because {GROUPS}, {UID} or {EXTRA} is set")
    headers = [(f"{HEADER}User", name)] if name else []
    headers += [(f"{HEADER}Uid", uid)] if uid else []
    headers += [(f"{HEADER}Group", group) for group in groups]
    for key, values in extra.items():
        escaped = _escaped(_text(key, EXTRA, user))
        headers += [(f"{HEADER}Extra-{escaped}", value) for value in _texts(values, f"{EXTRA}.{key}", user)]
    return tuple(headers)


def _escaped(key: str) -> str:
    from urllib.parse import quote

    return quote(key, safe=LEGAL_CHARACTERS)


def _texts(value: object, field: str, user: str) -> list[str]:
    if not isinstance(value, list | None):
        raise _broken(field, user, "expected a list of texts")
    return [_text(item, field, user) for item in value or ()]


def _text(value: object, field: str, user: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not value.isprintable():
        raise _broken(field, user, "expected a text of one line")
    return value


def _broken(field: str, user: str, problem: str) -> NoConfiguration:
    return NoConfiguration(
        "the kubeconfig can't be used",
        error=f"the user {user!r} of the kubeconfig can't be impersonated: {field}: {problem}; no request was sent",
    )
