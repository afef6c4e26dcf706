"""Operations `request` and `graphql`: send one request and check the response."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.errors import ExchangeFailed
from ext_http.request.args import DEFAULT_MAX_BODY, ServerArgs
from ext_http.request.body import Body, GraphqlBody
from ext_http.request.send import PreparedRequest, RequestSpec
from ext_http.response.expectations import Expect  # noqa: TC001 - msgspec reads it
from ext_http.result import (
    DEFAULT,
    RESERVED,
    Capture,
    CheckedRequestArgs,
    CheckedResponse,
    failure_result,
    request_spec,
)
from ext_sdk.capture import check_names
from ext_sdk.expect import Check, Searcher
from ext_sdk.expect.check import (
    Json,
    shown,
)
from ext_sdk.expect.json_equality import NotJson, parse

if TYPE_CHECKING:
    from ext_http.client.response import Response


class Request(CheckedRequestArgs):
    """Arguments of `request`."""


def request(args: Request, context: ext_sdk.Context) -> ext_sdk.Result:
    """Send an HTTP request and check the response.

    A status other than 200 to 299 is a failure unless `expect.status` accepts it; other members of `expect` do not
    change that. Redirects are not followed unless `redirects` is set. To repeat a request until the response is as
    expected, use `wait`.
    """
    prepared = PreparedRequest(args, request_spec(args), context)
    try:
        response = prepared.send(context.deadline)
    except ExchangeFailed as failure:
        return failure_result(args, failure, prepared, attempts=1, seconds=context.deadline.elapsed())
    with Searcher(deadline=context.deadline) as searcher:
        return CheckedResponse(args, response, context, searcher).result(prepared.where)


STATUS_WITH_ERRORS: list[int | str] = ["2xx", "4xx"]  # servers respond to a document with an error by either
ACCEPT = "application/graphql-response+json, application/json;q=0.9"  # GraphQL over HTTP


class Graphql(ServerArgs):
    """Arguments of `graphql`."""

    query: Annotated[str, Meta(min_length=1, description="GraphQL document: a query or a mutation")]
    variables: Annotated[dict[str, Json] | UnsetType, Meta(description="Variables of the document")] = UNSET
    operation_name: Annotated[str | UnsetType, Meta(description="Operation to run, if the document has several")] = (
        UNSET
    )
    errors: Annotated[
        Literal["none", "some", "any"],
        Meta(description="Errors in the response. none: errors are a failure, some: errors are expected"),
    ] = "none"
    max_body: Annotated[
        int, Meta(ge=0, description="Maximum bytes of the response body to read, decoded; the rest is dropped")
    ] = DEFAULT_MAX_BODY
    expect: Annotated[
        Expect,
        Meta(
            description="Expected response. Unless it is given here, `status` is 200 to 299, or 200 to 299 and 400 to "
            "499 if `errors` is some or any"
        ),
    ] = DEFAULT
    capture: Annotated[
        dict[str, Capture], Meta(description="Parts of the response to capture as outputs, by output name")
    ] = field(default_factory=dict)


def graphql(args: Graphql, context: ext_sdk.Context) -> ext_sdk.Result:
    """Send a GraphQL query or mutation and check the response; its `errors` are a failure unless expected.

    Pass values in `variables`, not in the document.
    """
    check_names(args.capture, RESERVED | {"data", "errors"})
    body = Body(graphql=GraphqlBody(query=args.query, variables=args.variables, operation_name=args.operation_name))
    spec = RequestSpec("POST", body=body, max_body=args.max_body, accept=ACCEPT)
    prepared = PreparedRequest(args, spec, context)
    with Searcher(deadline=context.deadline) as searcher:
        response = prepared.send(context.deadline)
        checks, members = _check_response(args.errors, response, context.secrets)
        expect = args.expect
        if args.errors != "none" and (expect is DEFAULT or expect.status is UNSET):
            expect = msgspec.structs.replace(expect, status=STATUS_WITH_ERRORS)
        checked = CheckedResponse(args, response, context, searcher, expect=expect, checks=checks)
        result = checked.result(prepared.where)
    if not checked.captured.withheld:
        result.outputs = members | result.outputs
    return result


def _check_response(errors: str, response: Response, secrets: ext_sdk.Secrets) -> tuple[list[Check], dict[str, str]]:
    """Return checks of the response's form, and its members `data` and `errors` as JSON."""
    try:
        document = parse(response.text)
    except NotJson as error:
        return [Check.failed("to be a GraphQL response", f"text that is not JSON: {error}", where="body")], {}
    # Section 7.1 of the GraphQL specification: without errors there is data, and it is not null.
    if not isinstance(document, dict) or (document.get("data") is None and not document.get("errors")):
        found = shown(document, secrets.redact)
        return [Check.failed("to be a GraphQL response, with data or errors", found, where="body")], {}
    reported = document.get("errors") or []
    checks = []
    if errors == "none":
        described = reported
        if isinstance(reported, list) and all(isinstance(error, dict) and "message" in error for error in reported):
            paths = [error.get("path") for error in reported]
            places = [f" (at {'.'.join(map(str, path))})" if isinstance(path, list) else "" for path in paths]
            described = "; ".join(f"{error['message']}{at}" for error, at in zip(reported, places, strict=True))
        found = shown(described, secrets.redact)
        checks.append(Check(not reported, "to be empty", "", found, where="errors"))
    if errors == "some":
        checks.append(Check(bool(reported), "not to be empty", "", "none", where="errors"))
    members = ("data", "errors")
    return checks, {name: json.dumps(document[name], ensure_ascii=False) for name in members if name in document}


OPERATIONS = (
    ext_sdk.Operation(
        "request",
        request,
        {
            "url": "http://127.0.0.1:8080/items/7",
            "expect": {"status": 200, "body": {"json": [{"path": "$.id", "equals": 7}]}},
        },
    ),
    ext_sdk.Operation(
        "graphql",
        graphql,
        {
            "url": "http://127.0.0.1:8080/graphql",
            "query": "query($id: ID!) { item(id: $id) { name } }",
            "variables": {"id": "7"},
            "expect": {"body": {"json": [{"path": "$.data.item.name", "equals": "lamp"}]}},
        },
    ),
)
