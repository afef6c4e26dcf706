"""`mock-start`: a stub HTTP server for the agent under test to call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.files import os_errors

from .answers import Answer
from .limits import Limits
from .mocks import Addresses, Mock, MockName, Mocks
from .routes import Route  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    import ssl
    from pathlib import Path


class MockStart(ext_sdk.Args):
    """What to listen for, and what to answer."""

    name: MockName = "mock"
    routes: Annotated[
        list[Route], Meta(min_length=1, description="The first that fits takes a request; put the special ones first")
    ]
    otherwise: Annotated[
        Answer | UnsetType,
        Meta(description="For what no route takes; a plain 404 if left out. mock-verify and the journal say why"),
    ] = UNSET
    hints: Annotated[
        bool, Meta(description="Say in 404, 500 and the like what is wrong. The client sees what is expected")
    ] = False
    host: Annotated[Literal["127.0.0.1", "::1"], Meta(description="Loopback, by IPv4 or IPv6")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="0: one that is free")] = 0
    tls: Annotated[
        bool, Meta(description="https, with a certificate for localhost; caFile is the authority to trust")
    ] = False
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        labels = [route.label for route in self.routes]
        if twice := sorted({one for one in labels if labels.count(one) > 1}):
            raise ValueError(f"routes: {twice[0]!r:.100} is there twice; give each a `name` of its own")
        if isinstance(self.otherwise, Answer) and (wrong := self.otherwise.problem(frozenset())):
            raise ValueError(f"otherwise: {wrong}")

    def answers(self) -> list[Answer]:
        """All that may be answered."""
        several = [
            one for route in self.routes for one in (route.answer if isinstance(route.answer, list) else [route.answer])
        ]
        return several if isinstance(self.otherwise, UnsetType) else [*several, self.otherwise]


def mock_start(args: MockStart, context: ext_sdk.Context) -> ext_sdk.Result:
    """Start a stub HTTP server on loopback, with canned or templated answers, delays and faults, and a journal.

    It runs until mock-stop or the end of the extension (with `call`: of that call), and mock-verify checks what it was
    asked. In texts, JSON and headers of answers, $(path.NAME), $(query.NAME), $(header.NAME), $(json/POINTER), $(body),
    $(method), $(url) and $(count) become parts of the request; $(query.NAME|TEXT) is TEXT if that part is missing, $$(
    a literal $(.
    """
    mock = started(args, context)
    context.state(Mocks).add(mock)
    routes = f"{len(args.routes)} route{'' if len(args.routes) == 1 else 's'}"
    outputs = mock.outputs() | {"journalFile": str(mock.journal.path)}
    return ext_sdk.Result.ok(f"mock {args.name!r} listens at {mock.url}, {routes}", outputs=outputs)


def started(args: MockStart, context: ext_sdk.Context) -> Mock:
    """A mock that listens.

    Raises:
        OperationFailed: a file can't be read, or the port is not to be had.
    """
    from .journal import Journal
    from .response import Bodies
    from .routing import Router
    from .server import Server

    bodies = Bodies(args.answers(), context.workdir)
    with os_errors("write", "the journal of the mock"):
        journal = Journal(context.artifact(f"mock-{args.name}.ndjson"), context.secrets, args.limits.calls)
        tls, ca_file = _tls(context, args.name) if args.tls else (None, None)
    otherwise = None if isinstance(args.otherwise, UnsetType) else args.otherwise
    router = Router(
        args.name,
        routes=args.routes,
        otherwise=otherwise,
        hints=args.hints,
        bodies=bodies,
        workdir=context.workdir,
        journal=journal,
    )
    host = f"[{args.host}]" if ":" in args.host else args.host
    try:
        server = Server(
            args.host, args.port, answer=router.answer, journal=journal, limits=args.limits, tls=tls, hints=args.hints
        )
    except OSError as error:
        raise _not_free(args, error, context.extension_state(Addresses).holder(f"{host}:{args.port}")) from error
    url = f"{'https' if args.tls else 'http'}://{host}:{server.port}"
    mock = Mock(
        args.name,
        place=context.place,
        url=url,
        routes=args.routes,
        router=router,
        journal=journal,
        server=server,
        ca_file=ca_file,
    )
    context.extension_state(Addresses).add(mock)
    return mock


def _not_free(args: MockStart, error: OSError, holder: Mock | None) -> ext_sdk.OperationFailed:
    found = f"found {args.port}: {error.strerror or error}"
    remedy = "0 takes one that is free"
    if holder is not None:
        found += f", {holder.described} listens on it"
        remedy = f"stop that mock with mock-stop, or use another port; {remedy}"
    return ext_sdk.OperationFailed(
        f"can't listen at port {args.port}",
        error=f"port: expected one that is free on {args.host}, {found}; {remedy}",
    )


def _tls(context: ext_sdk.Context, name: str) -> tuple[ssl.SSLContext, Path]:
    from .certificates import server_context

    path = context.artifact(f"mock-{name}-ca.pem")
    return server_context(path), path
