"""What a mock puts up with."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

import ext_sdk

HEAD_BYTES = 64 * 1024  # of a request line and its headers
HANDSHAKE_SECONDS = 10.0  # for TLS
IDLE_SECONDS = 60.0  # that a connection may wait for its next request
SEND_SECONDS = 30.0  # that a client may take to read a part of an answer
LINGER_SECONDS = 1.0  # in which a client that still sends may read that this is refused
LINGER_BYTES = 1024 * 1024  # that are read and thrown away meanwhile


class Limits(ext_sdk.Args):
    """What a mock puts up with."""

    body: Annotated[int, Meta(ge=0, le=64 * 1024 * 1024, description="Bytes of a request's body; 413 for more")] = (
        1024 * 1024
    )
    connections: Annotated[int, Meta(ge=1, le=1000, description="At once; 503 for more")] = 200
    calls: Annotated[
        int,
        Meta(ge=1, le=1_000_000, description="Calls kept for mock-verify, with 64 MiB of bodies; it fails after more"),
    ] = 10_000
    request_time: Annotated[
        ext_sdk.Duration, Meta(description="For a request, from its first byte to its last; then 408")
    ] = ext_sdk.Duration.parse("10s")

    def __post_init__(self) -> None:
        if self.request_time.seconds <= 0:
            raise ValueError(f"requestTime: expected a duration over 0, found {self.request_time}")
