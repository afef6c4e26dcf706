"""Captures: parts of a response that become outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.capture import CaptureArgs, Captured, NotFound, capture_all, find_in_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ext_sdk
    from ext_http.client.response import Response
    from ext_sdk.expect import Searcher


JsonType = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
# Names of the other outputs of operations with captures.
RESERVED = frozenset({"status", "body", "bodyFile", "duration", "url", "attempts"})


class Capture(CaptureArgs):
    """Part of a response to capture as an output. Strings stay unchanged ("007" is not 7), integers are exact."""

    from_: Annotated[Literal["body", "header", "status", "url"], Meta(description="Part of the response to search")] = (
        field(default="body", name="from")
    )
    header: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType,
        Meta(description="Name of the header; the first value counts if it is repeated"),
    ] = UNSET
    type: Annotated[JsonType | UnsetType, Meta(description="Required type of the value at `json`")] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.header is UNSET) == (self.from_ == "header"):
            raise ValueError("header and `from: header` require each other")
        if self.json is not UNSET and (self.from_ != "body" or self.regex is not UNSET):
            raise ValueError("json applies to the body and excludes regex")
        if self.type is not UNSET and self.json is UNSET:
            raise ValueError("type requires json")


def capture_response(
    captures: Mapping[str, Capture], response: Response, secrets: ext_sdk.Secrets, searcher: Searcher
) -> Captured:
    """Return the captured values. Secret values are redacted from here on."""
    if not captures:
        return Captured()

    def find(capture: Capture) -> str:
        text = {"status": str(response.status), "url": response.url}.get(capture.from_, "")
        if capture.from_ == "header":
            values = response.values(str(capture.header))
            if not values:
                raise NotFound(f"no header {capture.header}")
            text = values[0]
        elif capture.from_ == "body":
            if response.truncated:
                raise NotFound("only a part of the body: it is larger than maxBody")
            text = response.text
        return find_in_text(capture, text, searcher, kind="" if capture.type is UNSET else capture.type)

    return capture_all(captures, find, {"body": response.text}, secrets)
