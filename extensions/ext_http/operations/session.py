"""Operation `session`: set the base URL and headers that the requests of a session share."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.session import SessionName, Sessions
from ext_http.client.url import check
from ext_http.request.secrets import Secret, resolve_secret
from ext_http.request.send import Headers
from ext_sdk.args import Scalar, scalar_text


class SessionArgs(ext_sdk.Args):
    """Arguments of `session`; settings that are not given stay unchanged."""

    name: Annotated[SessionName, Meta(description="Name of the session")]
    base_url: Annotated[str | UnsetType, Meta(description="Base of a `url` that begins with /")] = UNSET
    headers: Annotated[
        dict[str, Scalar], Meta(description="Headers of every request, unless the request sets its own")
    ] = field(default_factory=dict)
    secret_headers: Annotated[dict[str, Secret], Meta(description="Headers whose values are redacted")] = field(
        default_factory=dict
    )
    forget: Annotated[bool, Meta(description="Reset the session first: drop its cookies and settings")] = False


def session(args: SessionArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set the base URL and headers that requests with this `session` share, or reset the session.

    A session also keeps the cookies that its servers set, separately for each port: unlike in RFC 6265, a cookie of one
    service on loopback is not sent to the others. To send it anyway, capture it and set the header. A session belongs
    to the workdir and ends with the extension.
    """
    sessions = context.state(Sessions)
    if args.forget:
        sessions.forget(args.name)
    stored = sessions.get(args.name)
    if args.base_url is not UNSET:
        check(args.base_url, "baseUrl")
        given = context.given.get("baseUrl")
        stored.base_url = args.base_url
        stored.base_given = context.with_chosen(given) if isinstance(given, str) else args.base_url
    headers = {name: scalar_text(value) for name, value in args.headers.items()}
    for name, secret in args.secret_headers.items():
        headers[name] = resolve_secret(secret, f"secretHeaders.{name}", context)
    for name, value in headers.items():
        Headers().set(name, value, "headers")  # raises InvalidArgs
    stored.headers |= headers
    stored.secret_headers |= {name.lower() for name in args.secret_headers}
    settings = [f"baseUrl {stored.base_url}"] if stored.base_url else []
    settings += [f"headers {', '.join(stored.headers)}"] if stored.headers else []
    message = f"session {args.name!r}: {'; '.join(settings) or 'nothing set'}"
    return ext_sdk.Result.ok(message, outputs={"name": args.name})


OPERATIONS = (
    ext_sdk.Operation(
        "session", session, {"name": "shop", "baseUrl": "http://127.0.0.1:8080", "headers": {"X-Team": "blue"}}
    ),
)
