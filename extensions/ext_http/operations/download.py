"""Operation `download`: write a response body to a file of the workdir."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.client.response import excerpt, status_line
from ext_http.request.args import ServerArgs
from ext_http.request.body import Values, pairs
from ext_http.request.send import PreparedRequest, RequestSpec
from ext_http.response.expectations import Expect, check
from ext_http.result import DEFAULT, notes_of, rounded
from ext_sdk.expect import Check, Searcher, failure_text, summary
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from typing import BinaryIO


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


OPERATIONS = (
    ext_sdk.Operation("download", download, {"url": "http://127.0.0.1:8080/report.csv", "path": "reports/today.csv"}),
)
