"""Operations `request`, `download` and `graphql`: send one request and check the response; `session`: its settings."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.errors import ExchangeFailed
from ext_http.client.response import excerpt, status_line
from ext_http.client.settings import SessionName, Sessions
from ext_http.client.url import check as check_url
from ext_http.request.args import DEFAULT_MAX_BODY, ServerArgs
from ext_http.request.auth import Secret, resolve_secret
from ext_http.request.body import Body, GraphqlBody, Values, pairs
from ext_http.request.send import Headers, PreparedRequest, RequestSpec
from ext_http.response.expectations import Expect, check
from ext_http.result import (
    DEFAULT,
    RESERVED,
    Capture,
    CheckedRequestArgs,
    CheckedResponse,
    failure_result,
    notes_of,
    request_spec,
    rounded,
)
from ext_sdk.args import Scalar, scalar_text
from ext_sdk.capture import check_names
from ext_sdk.expect import Check, Searcher, failure_text, summary
from ext_sdk.expect.check import (
    Json,
    shown,
)
from ext_sdk.expect.json_equality import NotJson, parse
from ext_sdk.files import Workdir, os_errors

from . import OUTCOME, RESPONSE

if TYPE_CHECKING:
    from typing import BinaryIO

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


DEFAULT_MAX_SIZE = 100 * 1024 * 1024  # bytes


class Download(ServerArgs):
    """Arguments of `download`."""

    path: Annotated[str, Meta(min_length=1, description="File in the workdir; missing directories are created")]
    query: Annotated[
        dict[str, Values], Meta(description="Query parameters, added to those of the URL; a list repeats one")
    ] = field(default_factory=dict)
    overwrite: Annotated[bool, Meta(description="Replace an existing file")] = True
    max_size: Annotated[
        int, Meta(ge=0, description="Maximum size in bytes, decoded; a larger body is a failure without a file")
    ] = DEFAULT_MAX_SIZE
    sha256: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$"), ext_sdk.Computed] | UnsetType,
        Meta(description="Expected SHA-256, in hex"),
    ] = UNSET
    expect: Annotated[
        Expect,
        Meta(description="Expected response, without body; `status` is 200 to 299 unless it is given here"),
    ] = DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expect.body is not UNSET:
            raise ValueError("expect.body: the body is written to a file; check its `sha256`, or use `request`")


def download(args: Download, context: ext_sdk.Context) -> ext_sdk.Result:
    """Download a file into the workdir.

    The file appears only when it is complete. It is not created if the response is not as expected, exceeds `maxSize`,
    ends early, or has another SHA-256.
    """
    prepared = PreparedRequest(args, RequestSpec(query=tuple(pairs(args.query)), max_body=args.max_size), context)
    workdir = Workdir(context.workdir)
    with (
        os_errors("write", args.path),
        workdir.writing(args.path, parents=True, overwrite=args.overwrite) as file,
        Searcher(deadline=context.deadline) as searcher,
    ):
        written = _HashedFile(file)
        response = prepared.send(context.deadline, written.write)
        checks = check(args.expect, response, context, searcher)
        if response.truncated:
            checks.append(Check.failed(f"to have at most {args.max_size:,} bytes (maxSize)", "more", where="body"))
        digest = written.digest.hexdigest()
        if response.status // 100 != 2:
            checks.append(Check.failed("to be a file", f"the body of status {response.status}", where="body"))
        elif args.sha256 is not UNSET:
            expected = args.sha256.lower()
            checks.append(Check(digest == expected, "to equal", expected, digest, where="sha256"))
        outputs: dict[str, str | int | bool] = {
            "status": response.status,
            "duration": rounded(response.elapsed),
            "url": response.url,
            "attempts": 1,
        }
        if not all(check.ok for check in checks):
            parts = [failure_text(checks), f"response: {status_line(response)}"]
            if body := excerpt(response, context.secrets):
                parts.append(f"body: {body}")
            raise ext_sdk.OperationFailed(  # within the block, so that the file is not created
                f"{prepared.where}: status {response.status}, {summary(checks)}, no file was created",
                error="\n".join([*parts, f"request: {prepared.where}; no file was created"]),
                outputs=outputs,
            )
    path = workdir.root / workdir.relative(args.path)
    outputs |= {"path": str(path), "size": written.size, "sha256": digest}
    message = f"{prepared.where}: {written.size:,} bytes to {args.path!r} after {rounded(response.elapsed)}"
    return ext_sdk.Result.ok(f"{message}, {summary(checks)}{notes_of(args, response)}", outputs=outputs)


class _HashedFile:
    """Writer that counts and hashes the bytes written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self.digest = hashlib.sha256()

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        self.digest.update(piece)
        self.size += len(piece)


class SessionArgs(ext_sdk.Args):
    """Arguments of `session`; settings that are not given stay unchanged."""

    name: Annotated[SessionName, Meta(description="Name of the session")]
    base_url: Annotated[str | UnsetType, Meta(description="Base of a `url` that begins with /")] = UNSET
    headers: Annotated[
        dict[str, Scalar], Meta(description="Headers of every request, unless the request sets its own")
    ] = field(default_factory=dict)
    secret_headers: Annotated[dict[str, Secret], Meta(description="Headers whose values are redacted")] = field(
        default_factory=dict
    )
    forget: Annotated[bool, Meta(description="Reset the session first: drop its cookies and settings")] = False


def session(args: SessionArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set the base URL and headers that requests with this `session` share, or reset the session.

    A session also keeps the cookies that its servers set, separately for each port: unlike in RFC 6265, a cookie of one
    service on loopback is not sent to the others. To send it anyway, capture it and set the header. A session belongs
    to the workdir and ends with the extension.
    """
    sessions = context.state(Sessions)
    if args.forget:
        sessions.forget(args.name)
    stored = sessions.get(args.name)
    if args.base_url is not UNSET:
        check_url(args.base_url, "baseUrl")
        given = context.given.get("baseUrl")
        stored.base_url = args.base_url
        stored.base_given = context.with_chosen(given) if isinstance(given, str) else args.base_url
    headers = {name: scalar_text(value) for name, value in args.headers.items()}
    for name, secret in args.secret_headers.items():
        headers[name] = resolve_secret(secret, f"secretHeaders.{name}", context)
    for name, value in headers.items():
        Headers().set(name, value, "headers")  # raises InvalidArgs
    stored.headers |= headers
    stored.secret_headers |= {name.lower() for name in args.secret_headers}
    settings = [f"baseUrl {stored.base_url}"] if stored.base_url else []
    settings += [f"headers {', '.join(stored.headers)}"] if stored.headers else []
    message = f"session {args.name!r}: {'; '.join(settings) or 'nothing set'}"
    return ext_sdk.Result.ok(message, outputs={"name": args.name})


OPERATIONS = (
    ext_sdk.Operation(
        "request",
        request,
        {
            "url": "http://127.0.0.1:8080/items/7",
            "expect": {"status": 200, "body": {"json": [{"path": "$.id", "equals": 7}]}},
        },
        outputs=OUTCOME,
        title="HTTP request",
    ),
    ext_sdk.Operation(
        "download",
        download,
        {"url": "http://127.0.0.1:8080/report.csv", "path": "reports/today.csv"},
        outputs={
            "path": "absolute path of the file",
            "size": "size of the file in bytes",
            "sha256": "SHA-256 of the file in hex",
            "status": "status of the response, such as `200`",
            "duration": "duration, such as `1.2s`",
            "url": "last requested URL; after a redirect it differs from the given one",
            "attempts": "number of requests",
        },
        title="Download file",
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
        outputs=(
            RESPONSE
            | {
                "data": "member `data` of the response, as JSON",
                "errors?": "member `errors` of the response as JSON, if there are any",
            }
        ),
        title="GraphQL request",
    ),
    ext_sdk.Operation(
        "session",
        session,
        {"name": "shop", "baseUrl": "http://127.0.0.1:8080", "headers": {"X-Team": "blue"}},
        outputs={"name": "name of the session"},
        title="HTTP session",
        destructive=False,
        idempotent=True,
        open_world=False,
    ),
)
