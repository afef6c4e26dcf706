"""Arguments shared by all operations that send requests."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.settings import (
    HttpVersion,  # noqa: TC001 - msgspec reads it
    SessionName,  # noqa: TC001 - msgspec reads it
)
from ext_http.host_patterns import check_pattern
from ext_http.request.auth import FromEnv, Secret  # noqa: TC001 - msgspec reads it
from ext_sdk.args import Scalar  # noqa: TC001 - msgspec reads it

from .auth import Auth  # noqa: TC001 - msgspec reads it
from .body import Body, Values  # noqa: TC001 - msgspec reads them

DEFAULT_MAX_BODY = 10 * 1024 * 1024  # bytes


class TlsArgs(ext_sdk.Args):
    """TLS verification and client certificate. Certificates and keys are PEM text, or PEM files in the workdir."""

    ca: Annotated[
        str | UnsetType,
        Meta(description="CA certificates (PEM or file) to verify the server with, instead of the system's"),
    ] = UNSET
    certificate: Annotated[str | UnsetType, Meta(description="Client certificate with its chain (PEM or file)")] = UNSET
    key: Annotated[
        Secret | UnsetType, Meta(description="Key of the client certificate (PEM or file), unless in the same file")
    ] = UNSET
    key_password: Annotated[Secret | UnsetType, Meta(description="Password of an encrypted key")] = UNSET
    insecure: Annotated[bool, Meta(description="Skip certificate verification; reported in the result message")] = False
    server_name: Annotated[str | UnsetType, Meta(description="Server name for SNI, instead of the URL's host")] = UNSET

    def __post_init__(self) -> None:
        if self.key is not UNSET and self.certificate is UNSET:
            raise ValueError("key requires certificate")
        if self.insecure and self.ca is not UNSET:
            raise ValueError("expected one of ca and insecure: with insecure no certificate is verified")


class ServerArgs(ext_sdk.Args):
    """Server of a request, and the connection to it."""

    url: Annotated[
        str, Meta(min_length=1, description="http:// or https:// URL; one that begins with / is relative to baseUrl")
    ]
    headers: Annotated[
        dict[str, Scalar | FromEnv | list[Scalar]],
        Meta(description="Headers; a list repeats one. Values are redacted if the name looks secret"),
    ] = field(default_factory=dict)
    secret_headers: Annotated[
        dict[str, Secret], Meta(description="Headers whose values are redacted, whatever their names")
    ] = field(default_factory=dict)
    auth: Annotated[Auth | UnsetType, Meta(description="Authentication")] = UNSET
    session: Annotated[
        SessionName | UnsetType,
        Meta(
            description="Session that keeps cookies for later requests of the workdir. Cookies of one port are not "
            "sent to another"
        ),
    ] = UNSET
    tls: Annotated[TlsArgs, Meta(description="TLS settings")] = TlsArgs()
    redirects: Annotated[
        int,
        Meta(
            ge=0,
            le=20,
            description="Maximum number of redirects to follow. A redirect to another origin requires allowHosts, and "
            "is sent no credentials",
        ),
    ] = 0
    allow_hosts: Annotated[
        list[str],
        ext_sdk.Verbatim,
        Meta(
            description="Hosts that a variable or a redirect may lead to, and cloud metadata addresses that are "
            "allowed: host, host:port, *.host or *"
        ),
    ] = field(default_factory=list)
    proxy: Annotated[
        Secret | UnsetType,
        Meta(
            description="HTTP proxy: http://proxy:3128, or with USER:PASSWORD@ before the host; env: that of *_PROXY; "
            "none"
        ),
    ] = UNSET
    unix_socket: Annotated[
        str | UnsetType, Meta(description="Path of a Unix socket to connect to, instead of the URL's host")
    ] = UNSET
    resolve: Annotated[
        dict[str, str],
        Meta(description="Addresses by name: {web.test: 127.0.0.1}, or {web.test:443: ...} for one port"),
    ] = field(default_factory=dict)
    http_version: Annotated[HttpVersion, Meta(description="auto: HTTP/2 if the server supports it")] = "1.1"
    connect_timeout: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="Maximum time to connect, TLS included")
    ] = UNSET
    timeout: Annotated[
        ext_sdk.Duration, Meta(description="Maximum time in all, body included; hosts limit a call to about 30 s")
    ] = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        for pattern in self.allow_hosts:
            check_pattern(pattern)
        if isinstance(self.connect_timeout, ext_sdk.Duration) and self.connect_timeout.seconds <= 0:
            raise ValueError(f"connectTimeout: expected a duration over 0, found {self.connect_timeout}")


class RequestArgs(ServerArgs):
    """Method, query and body of a request."""

    method: Annotated[
        Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_-]{0,31}$")] | UnsetType,
        Meta(description="HTTP method; POST by default if there is a body, else GET"),
    ] = UNSET
    query: Annotated[
        dict[str, Values], Meta(description="Query parameters, added to those of the URL; a list repeats one")
    ] = field(default_factory=dict)
    body: Annotated[Body | UnsetType, Meta(description="Request body, of one kind")] = UNSET
    path_as_is: Annotated[
        bool, Meta(description="Send path and query of `url` unchanged: /a/../b, /%2e, //, without normalization")
    ] = False
    max_body: Annotated[
        int, Meta(ge=0, description="Maximum bytes of the response body to read, decoded; the rest is dropped")
    ] = DEFAULT_MAX_BODY
