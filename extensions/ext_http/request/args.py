"""Arguments that requests of all operations share."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.settings import HttpVersion  # noqa: TC001 - msgspec reads it
from ext_http.early_check import check_patterns

from .auth import Auth  # noqa: TC001 - msgspec reads it
from .body import Body, Values  # noqa: TC001 - msgspec reads them
from .secrets import FromEnv, Secret  # noqa: TC001 - msgspec reads it
from .session_store import SessionName  # noqa: TC001 - msgspec reads it

DEFAULT_MAX_BODY = 10 * 1024 * 1024  # bytes


class TlsArgs(ext_sdk.Args):
    """How server and client prove who they are. Certificates and keys are PEM, or files of the workdir that have it."""

    ca: Annotated[
        str | UnsetType, Meta(description="Authorities to verify the server with, in place of the system's")
    ] = UNSET
    certificate: Annotated[str | UnsetType, Meta(description="Of this client, with its chain")] = UNSET
    key: Annotated[Secret | UnsetType, Meta(description="Of that certificate, where it is not in the same file")] = (
        UNSET
    )
    key_password: Secret | UnsetType = UNSET
    insecure: Annotated[bool, Meta(description="Believe any server; the message tells it")] = False
    server_name: Annotated[str | UnsetType, Meta(description="To ask for by SNI, in place of the URL's host")] = UNSET

    def __post_init__(self) -> None:
        if self.key is not UNSET and self.certificate is UNSET:
            raise ValueError("key is for certificate")
        if self.insecure and self.ca is not UNSET:
            raise ValueError("expected one of ca and insecure: with insecure no certificate is verified")


class ServerArgs(ext_sdk.Args):
    """Which server, and how to reach it."""

    url: Annotated[
        str, Meta(min_length=1, description="http:// or https://; one that begins with / is relative to baseUrl")
    ]
    headers: Annotated[
        dict[str, str | FromEnv | list[str]],
        Meta(description="Headers; a list repeats one. Values are hidden where a name sounds secret"),
    ] = field(default_factory=dict)
    secret_headers: Annotated[
        dict[str, Secret], Meta(description="Headers whose values are hidden, whatever their names")
    ] = field(default_factory=dict)
    auth: Auth | UnsetType = UNSET
    session: Annotated[
        SessionName | UnsetType,
        Meta(
            description="Keep cookies under this name, for later requests of the workdir; those of one port are not "
            "sent to another"
        ),
    ] = UNSET
    tls: TlsArgs = TlsArgs()
    redirects: Annotated[
        int,
        Meta(
            ge=0,
            le=20,
            description="How many to follow, none by default. One to another origin must lead to one of allowHosts, "
            "and gets no credentials",
        ),
    ] = 0
    allow_hosts: Annotated[
        list[str],
        ext_sdk.Verbatim,
        Meta(
            description="Hosts that may be asked though a variable or a redirect names them, and metadata addresses "
            "of clouds: host, host:port, *.host, or *"
        ),
    ] = field(default_factory=list)
    proxy: Annotated[
        Secret | UnsetType,
        Meta(
            description="Such as http://proxy:3128, or with USER:PASSWORD@ before the host; env: as *_PROXY say; none"
        ),
    ] = UNSET
    unix_socket: Annotated[
        str | UnsetType, Meta(description="Path of a socket to connect to, whatever the URL's host")
    ] = UNSET
    resolve: Annotated[
        dict[str, str],
        Meta(description="Addresses for names: {web.test: 127.0.0.1}, or {web.test:443: ...} for a port"),
    ] = field(default_factory=dict)
    http_version: Annotated[HttpVersion, Meta(description="auto: 2 where the server has it")] = "1.1"
    connect_timeout: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="For the connection, TLS included; `timeout` is for all")
    ] = UNSET
    timeout: Annotated[ext_sdk.Duration, Meta(description="For all, to the last byte; hosts give a call some 30 s")] = (
        ext_sdk.Duration.parse("25s")
    )

    def __post_init__(self) -> None:
        check_patterns(self.allow_hosts)
        if isinstance(self.connect_timeout, ext_sdk.Duration) and self.connect_timeout.seconds <= 0:
            raise ValueError(f"connectTimeout: expected a duration over 0, found {self.connect_timeout}")


class RequestArgs(ServerArgs):
    """What to ask."""

    method: Annotated[
        Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_-]{0,31}$")] | UnsetType,
        Meta(description="GET, or POST where there is a body"),
    ] = UNSET
    query: Annotated[
        dict[str, Values], Meta(description="Parameters, added to those of the URL; a list repeats one")
    ] = field(default_factory=dict)
    body: Body | UnsetType = UNSET
    max_body: Annotated[
        int, Meta(ge=0, description="Bytes of the answer's body, decoded, that are read; the rest is left")
    ] = DEFAULT_MAX_BODY
