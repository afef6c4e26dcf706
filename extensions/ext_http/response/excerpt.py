"""Excerpts of bodies for messages and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import ext_sdk
from ext_http.client.charsets import NotText, decoded
from ext_sdk.core.redaction.streams import redacted_pieces

if TYPE_CHECKING:
    from ext_http.client.response import Response


WHOLE_BYTES = 32 * 1024  # a body up to this is shown whole; the rest of an answer's line fits beside it
HEAD_BYTES = 16 * 1024  # of the beginning of a longer one
TAIL_BYTES = 4 * 1024  # of its end
EXCERPT = 500  # characters of a body in the text of a failure


class Shown(NamedTuple):
    """A body as the result has it.

    Attributes:
        text: without secrets.
        path: of the file with every byte that was read, without secrets; "" where the text says it all.
    """

    text: str
    path: str = ""


def show(answer: Response, context: ext_sdk.Context) -> Shown:
    """Make a text of the body and, where that can't say it all, a file."""
    binary = _is_binary(answer.body)
    if len(answer.body) <= WHOLE_BYTES and not binary and not answer.truncated:
        return Shown(answer.text)
    path = _kept(answer.body, context)
    size = f"{len(answer.body):,} bytes{', and more that were not read (maxBody)' if answer.truncated else ''}"
    if binary:
        return Shown(f"[binary: {size}]", path)
    if len(answer.body) <= WHOLE_BYTES:
        return Shown(f"{answer.text}\n[... {size} ...]", path)
    ends = [_decoded(part, context) for part in (answer.body[:HEAD_BYTES], answer.body[-TAIL_BYTES:])]
    left_out = len(answer.body) - HEAD_BYTES - TAIL_BYTES
    return Shown(f"\n[... {left_out:,} of {size} left out, see bodyFile ...]\n".join(ends), path)


def whole(answer: Response) -> str | ext_sdk.NotKept:
    """Return the complete body as later steps get it."""
    if answer.truncated:
        return ext_sdk.NotKept(
            f"only the first {len(answer.body):,} bytes of the body were read; raise `maxBody`, or use `download`"
        )
    if _is_binary(answer.body):
        return ext_sdk.NotKept(f"the body is binary, {len(answer.body):,} bytes; use `download`")
    try:
        return decoded(answer.body, answer.values("content-type"))
    except NotText as error:
        return ext_sdk.NotKept(f"the body is {error}; use `download`")


def status_line(answer: Response) -> str:
    """Status, reason and type: `503 Service Unavailable (text/html)`."""
    kind = next(iter(answer.values("content-type")), "")
    return f"{answer.status} {answer.reason}".rstrip() + (f" ({kind:.80})" if kind else "")


def excerpt(answer: Response, secrets: ext_sdk.Secrets) -> str:
    """The beginning of a body on one line, without secrets, for the text of a failure; "" for an empty one."""
    if _is_binary(answer.body):
        return f"[binary: {len(answer.body):,} bytes]"
    text = " ".join(secrets.redact(answer.body[:HEAD_BYTES].decode("utf-8", "replace")).split())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]} …"


def _decoded(part: bytes, context: ext_sdk.Context) -> str:
    return context.secrets.redact(part.decode("utf-8", "replace").strip("\ufffd"))


def _is_binary(body: bytes) -> bool:
    return b"\0" in body[:WHOLE_BYTES]


def _kept(body: bytes, context: ext_sdk.Context) -> str:
    try:
        path = context.artifact("body")
        with path.open("wb") as file:
            for piece in redacted_pieces(body, context.secrets):
                file.write(piece)
    except OSError as error:
        context.log.warn(f"the whole body could not be written to a file: {error}")
        return ""
    return str(path)
