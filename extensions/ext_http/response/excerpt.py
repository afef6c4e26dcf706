"""Excerpts of bodies for messages and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ext_sdk
from ext_sdk.excerpt import Sizes, write_excerpt

if TYPE_CHECKING:
    from ext_http.client.response import Response


# Of the body in a result's line, next to the other outputs.
SIZES = Sizes(complete=32 * 1024, head=16 * 1024, tail=4 * 1024)
EXCERPT = 500  # characters of a body in an error


def show(response: Response, context: ext_sdk.Context) -> tuple[str, str]:
    """Return a body as an output, and the path of a redacted file with all bytes read; "" if the text is complete."""
    body, binary = response.body, _is_binary(response.body)
    if not binary and len(body) <= SIZES.complete and not response.truncated:
        return response.text, ""
    text, path = write_excerpt(body, "body", context, SIZES, file_name="body", all_kept=not response.truncated)
    size = f"{len(body):,} bytes{', and more that were not read (maxBody)' if response.truncated else ''}"
    if binary:
        return f"[binary: {size}]", path
    return f"{text}\n[... {size} ...]" if response.truncated else text, path


def whole(response: Response) -> str | ext_sdk.NotKept:
    """Return the complete body for later steps, or the reason why it is not kept."""
    size = f"{len(response.body):,} bytes"
    if response.truncated:
        return ext_sdk.NotKept(f"only the first {size} of the body were read; raise `maxBody`, or use `download`")
    if _is_binary(response.body):
        return ext_sdk.NotKept(f"the body is binary, {size}; use `download`")
    if isinstance(response.decoded, str):
        return response.decoded
    return ext_sdk.NotKept(f"the body is {response.decoded}; use `download`")


def status_line(response: Response) -> str:
    """Return status, reason and type: `503 Service Unavailable (text/html)`."""
    kind = next(iter(response.values("content-type")), "")
    return f"{response.status} {response.reason}".rstrip() + (f" ({kind:.80})" if kind else "")


def excerpt(response: Response, secrets: ext_sdk.Secrets) -> str:
    """Return the beginning of a body on one line, redacted, for an error; "" for an empty body."""
    if _is_binary(response.body):
        return f"[binary: {len(response.body):,} bytes]"
    text = " ".join(secrets.redact(response.body[: SIZES.head].decode("utf-8", "replace")).split())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]} …"


def _is_binary(body: bytes) -> bool:
    return b"\0" in body[: SIZES.complete]
