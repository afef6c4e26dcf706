"""`session`: what the requests of a named session have in common."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.ssrf_guard import split
from ext_http.request.headers import Headers
from ext_http.request.secrets import Secret, resolve_secret
from ext_http.request.session_store import SessionName, Sessions


class SessionArgs(ext_sdk.Args):
    """What is set, of the session of this name; what is not given stays as it is."""

    name: SessionName
    base_url: Annotated[str | UnsetType, Meta(description="What a `url` that begins with / is completed by")] = UNSET
    headers: Annotated[dict[str, str], Meta(description="Of every request; a request may set its own")] = field(
        default_factory=dict
    )
    secret_headers: Annotated[dict[str, Secret], Meta(description="The same, with values that are hidden")] = field(
        default_factory=dict
    )
    forget: Annotated[bool, Meta(description="Begin anew: without cookies and all that was set before")] = False


def session(args: SessionArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set what the requests with this `session` have in common, or begin it anew.

    A session also keeps the cookies that its servers set, apart for each port: unlike in RFC 6265, a cookie of one
    service on loopback is not sent to the others. To send it all the same, capture it and set the header. It belongs
    to the workdir and ends with the extension.
    """
    sessions = context.state(Sessions)
    if args.forget:
        sessions.forget(args.name)
    one = sessions.get(args.name)
    if args.base_url is not UNSET:
        split(args.base_url, "baseUrl")
        given = context.given.get("baseUrl")
        one.base_url, one.base_given = args.base_url, given if isinstance(given, str) else args.base_url
    headers = dict(args.headers)
    headers |= {
        name: resolve_secret(each, f"secretHeaders.{name}", context) for name, each in args.secret_headers.items()
    }
    for name, value in headers.items():
        Headers().set(name, value, "headers")
    one.headers |= headers
    one.secret_headers |= {name.lower() for name in args.secret_headers}
    told = [f"baseUrl {one.base_url}"] if one.base_url else []
    told += [f"headers {', '.join(one.headers)}"] if one.headers else []
    return ext_sdk.Result.ok(f"session {args.name!r}: {'; '.join(told) or 'nothing set'}", outputs={"name": args.name})


OPERATIONS = (
    ext_sdk.Operation(
        "session", session, {"name": "shop", "baseUrl": "http://127.0.0.1:8080", "headers": {"X-Team": "blue"}}
    ),
)
