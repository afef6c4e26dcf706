"""`mock-stop`: the end of a mock, and how often it was asked."""

from __future__ import annotations

import json
from typing import Annotated

from msgspec import Meta

import ext_sdk

from .mocks import MockName, Mocks, not_found


class MockStop(ext_sdk.Args):
    """What to stop."""

    name: MockName = "mock"
    ignore_missing: Annotated[bool, Meta(description="A success if there is no such mock")] = False


def mock_stop(args: MockStop, context: ext_sdk.Context) -> ext_sdk.Result:
    """Stop a mock; outputs say how often it was asked. All that stand are stopped when the extension ends."""
    mocks = context.state(Mocks)
    mock = mocks.remove(args.name)
    if mock is None:
        if args.ignore_missing:
            return ext_sdk.Result.ok(f"there is no mock {args.name!r} to stop")
        raise not_found(args.name, mocks.names())
    mock.close()
    routes = {route.label: mock.router.counts[route.label] for route in mock.routes}
    outputs = mock.counts() | {"routes": json.dumps(routes, ensure_ascii=False)}
    count = mock.journal.count
    message = f"stopped mock {args.name!r}, which was asked {count} time{'' if count == 1 else 's'}"
    return ext_sdk.Result.ok(message, outputs=outputs)
