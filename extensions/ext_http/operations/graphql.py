"""`graphql`: a query or a mutation, whose errors are failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.request.args import DEFAULT_MAX_BODY, ServerArgs
from ext_http.request.body import Body, GraphqlBody
from ext_http.request.send import PreparedRequest, RequestSpec
from ext_http.response.capture import Capture, check_names
from ext_http.response.expectations import Expect  # noqa: TC001 - msgspec reads it
from ext_sdk.expect import Check, Searcher
from ext_sdk.expect.check import Json  # noqa: TC001 - msgspec reads it
from ext_sdk.expect.format import shown
from ext_sdk.expect.json_equality import NotJson, parse

from .result import DEFAULT, CheckedResponse

if TYPE_CHECKING:
    from ext_http.client.response import Response


STATUS_WITH_ERRORS: list[int | str] = ["2xx", "4xx"]  # servers answer a document with an error by either
ACCEPT = "application/graphql-response+json, application/json;q=0.9"  # as GraphQL over HTTP has it


class Graphql(ServerArgs):
    """What to ask for."""

    query: Annotated[str, Meta(min_length=1, description="The document: a query, or a mutation")]
    variables: Annotated[dict[str, Json] | UnsetType, Meta(description="Values of its variables")] = UNSET
    operation_name: Annotated[str | UnsetType, Meta(description="Which operation, of several in the document")] = UNSET
    errors: Annotated[
        Literal["none", "some", "any"],
        Meta(description="Whether the answer may have `errors`; none: they are a failure, some: they are expected"),
    ] = "none"
    max_body: Annotated[int, Meta(ge=0, description="Bytes of the answer's body, decoded, that are read")] = (
        DEFAULT_MAX_BODY
    )
    expect: Annotated[
        Expect,
        Meta(
            description="What else must hold; its `status` is 200 to 299 unless it is given here, or 200 to 299 and "
            "400 to 499 if `errors` is some or any"
        ),
    ] = DEFAULT
    capture: Annotated[dict[str, Capture], Meta(description="Parts of the answer that become outputs, by name")] = (
        field(default_factory=dict)
    )


def graphql(args: Graphql, context: ext_sdk.Context) -> ext_sdk.Result:
    """Send a GraphQL query or mutation and check the answer; its `errors` are a failure unless expected.

    Values go in by `variables`, never into the document.
    """
    check_names(args.capture, "data", "errors")
    body = Body(graphql=GraphqlBody(query=args.query, variables=args.variables, operation_name=args.operation_name))
    ask = RequestSpec("POST", body=body, max_body=args.max_body, accept=ACCEPT)
    prepared = PreparedRequest(args, ask, context)
    with Searcher(deadline=context.deadline) as searcher:
        answer = prepared.send(context.deadline)
        checks, parts = _of_response(args.errors, answer, context.secrets)
        expect = args.expect
        if args.errors != "none" and (expect is DEFAULT or expect.status is UNSET):
            expect = msgspec.structs.replace(expect, status=STATUS_WITH_ERRORS)
        judged = CheckedResponse(args, answer, context, searcher, expect=expect, checks=checks)
        result = judged.result(prepared.where)
    if not judged.captured.withheld:
        result.outputs = parts | result.outputs
    return result


def _of_response(errors: str, answer: Response, secrets: ext_sdk.Secrets) -> tuple[list[Check], dict[str, str]]:
    """Checks of the response's form, and its members as JSON texts."""
    try:
        response = parse(answer.text)
    except NotJson as error:
        return [Check.failed("to be a GraphQL response", f"no JSON: {error}", where="body")], {}
    # Section 7.1 of the GraphQL specification: without errors there is data, and it is not null.
    if not isinstance(response, dict) or (response.get("data") is None and not response.get("errors")):
        found = shown(response, secrets.redact)
        return [Check.failed("to be a GraphQL response, with data or errors", found, where="body")], {}
    told = response.get("errors") or []
    checks = []
    if errors == "none":
        checks.append(Check(not told, "to be none", "", shown(_messages(told), secrets.redact), where="errors"))
    if errors == "some":
        checks.append(Check(bool(told), "to be some", "", "none", where="errors"))
    return checks, {
        name: json.dumps(response[name], ensure_ascii=False) for name in ("data", "errors") if name in response
    }


def _messages(errors: object) -> object:
    """What the errors say, and at which path; as it is where they are not as the specification has them."""
    if not isinstance(errors, list) or not all(isinstance(each, dict) and "message" in each for each in errors):
        return errors
    return "; ".join(
        str(each["message"])
        + (f" (at {'.'.join(map(str, each['path']))})" if isinstance(each.get("path"), list) else "")
        for each in errors
    )


OPERATIONS = (
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
