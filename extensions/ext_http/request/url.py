"""Target of an operation: the argument `url` with its base URL and query parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import ext_sdk
from ext_http.client.url import host_is_literal, normalized, parse
from ext_http.config import config_of
from ext_sdk.core.redaction.secret_names import looks_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_http.client.url import Target

    from .session_store import Session


def target_of(url: str, query: Sequence[tuple[str, str]], session: Session | None, context: ext_sdk.Context) -> Target:
    """Return the target of an operation. Its secrets are redacted from here on.

    Args:
        url: argument of the operation; if it begins with /, the base URL of the session or configuration is added.
        query: parameters to add to those of the URL.
        session: that may have a base URL.

    Raises:
        InvalidArgs: the URL is not valid, or the base URL is missing.
    """
    given = context.given.get("url", url)
    if url.startswith("/"):
        base, base_given = (session.base_url, session.base_given) if session else ("", "")
        if not base:
            base = base_given = config_of(context).base_url
        if not base:
            problem = f"expected a URL with http:// or https://, found {url!r:.100} without a baseUrl"
            raise ext_sdk.InvalidArgs("url", f"{problem}; set one in the configuration or with `session`")
        url, given = base.rstrip("/") + url, f"{base_given.rstrip('/')}{given}"
    target = parse(url)._replace(literal=isinstance(given, str) and host_is_literal(given, url))
    if target.user:
        context.secrets.add("url.password", target.user[1])
    parts = urlsplit(target.url)
    for name, value in [*parse_qsl(parts.query, keep_blank_values=True), *query]:
        if looks_secret(name):
            context.secrets.add(f"query.{name}", value)
    if not query:
        return target
    complete = urlunsplit(parts._replace(query="&".join(filter(None, [parts.query, urlencode(query)]))))
    normalized(complete, "query")  # raises InvalidArgs for a URL that is too long
    return target._replace(url=complete)
