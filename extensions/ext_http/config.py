"""What a host may configure for all requests."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta, field

import ext_sdk

from .early_check import check_patterns


class HttpConfig(ext_sdk.Config):
    """Configuration of ext-http."""

    early_check: ClassVar[str] = "ext_http.early_check:check_config"

    base_url: Annotated[str, Meta(description="What a `url` that begins with / is completed by")] = ""
    headers: Annotated[dict[str, str], Meta(description="Headers of every request; a request may set its own")] = field(
        default_factory=dict
    )
    allow_hosts: Annotated[
        list[str],
        Meta(
            description="Hosts that may be asked though a variable or a redirect names them, and metadata addresses "
            "of clouds: host, host:port, *.host, or *"
        ),
    ] = field(default_factory=list)
    ca_file: Annotated[str, Meta(description="Certificates (PEM) to verify servers with, in place of the system's")] = (
        ""
    )
    proxy: Annotated[
        str, Meta(description="HTTP proxy, such as http://proxy:3128; env: as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say")
    ] = ""

    def __post_init__(self) -> None:
        check_patterns(self.allow_hosts)


def config_of(context: ext_sdk.Context) -> HttpConfig:
    """The configuration of a call. Raises TypeError where it is another extension's."""
    if not isinstance(context.config, HttpConfig):
        raise TypeError(f"expected the configuration of ext-http, found {type(context.config).__name__}")
    return context.config
