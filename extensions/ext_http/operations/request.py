"""Operation `request`: send one request and check the response."""

from __future__ import annotations

import ext_sdk
from ext_http.request.send import PreparedRequest
from ext_sdk.expect import Searcher

from .result import CheckedRequestArgs, CheckedResponse, request_spec


class Request(CheckedRequestArgs):
    """Arguments of `request`."""


def request(args: Request, context: ext_sdk.Context) -> ext_sdk.Result:
    """Send an HTTP request and check the response.

    A status other than 200 to 299 is a failure unless `expect.status` accepts it; other members of `expect` do not
    change that. Redirects are not followed unless `redirects` is set. To repeat a request until the response is as
    expected, use `wait`.
    """
    prepared = PreparedRequest(args, request_spec(args), context)
    with Searcher(deadline=context.deadline) as searcher:
        return CheckedResponse(args, prepared.send(context.deadline), context, searcher).result(prepared.where)


OPERATIONS = (
    ext_sdk.Operation(
        "request",
        request,
        {
            "url": "http://127.0.0.1:8080/items/7",
            "expect": {"status": 200, "body": {"json": [{"path": "$.id", "equals": 7}]}},
        },
    ),
)
