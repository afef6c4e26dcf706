"""Configuration that a host sets for all requests."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, field

import ext_sdk

from .host_patterns import check_pattern


class HttpConfig(ext_sdk.Config):
    """Configuration of ext-http."""

    early_check: ClassVar[str] = "ext_http.host_patterns:check_config"

    base_url: Annotated[str, Meta(description="Base of a `url` that begins with /")] = ""
    headers: Annotated[
        dict[str, str], Meta(description="Headers of every request, unless the request sets its own")
    ] = field(default_factory=dict)
    allow_hosts: Annotated[
        list[str],
        Meta(
            description="Hosts that a variable or a redirect may lead to, and cloud metadata addresses that are "
            "allowed: host, host:port, *.host or *"
        ),
    ] = field(default_factory=list)
    ca_file: Annotated[
        str, Meta(description="File with CA certificates (PEM) to verify servers with, instead of the system's")
    ] = ""
    proxy: Annotated[
        str,
        Meta(description="HTTP proxy, such as http://proxy:3128; env: that of HTTP_PROXY, HTTPS_PROXY, NO_PROXY"),
    ] = ""

    def __post_init__(self) -> None:
        for pattern in self.allow_hosts:
            check_pattern(pattern)
