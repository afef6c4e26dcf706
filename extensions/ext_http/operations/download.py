"""`download`: the body of an answer, into a file of the working directory."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_http.request.args import ServerArgs
from ext_http.request.body import Values, pairs
from ext_http.request.send import PreparedRequest, RequestSpec
from ext_http.response.excerpt import excerpt, status_line
from ext_http.response.expectations import Expect, check
from ext_sdk.expect import Check, Searcher, failure_text, summary
from ext_sdk.files import Workdir, os_errors

from .result import DEFAULT, notes_of, rounded

if TYPE_CHECKING:
    from typing import BinaryIO

    from ext_http.client.response import Response


DEFAULT_MAX_SIZE = 100 * 1024 * 1024  # bytes


class Download(ServerArgs):
    """What to fetch, and where to."""

    path: Annotated[str, Meta(min_length=1, description="File in the workdir; its directories are made")]
    query: Annotated[dict[str, Values], Meta(description="Parameters, added to those of the URL")] = field(
        default_factory=dict
    )
    overwrite: Annotated[bool, Meta(description="Whether a file that is there may be replaced")] = True
    max_size: Annotated[int, Meta(ge=0, description="Bytes, decoded; more is a failure, and no file is made")] = (
        DEFAULT_MAX_SIZE
    )
    sha256: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | UnsetType, Meta(description="That it must have, in hex")
    ] = UNSET
    expect: Annotated[
        Expect,
        Meta(description="Status, headers, duration, certificate; a status of 200 to 299 unless `status` is given"),
    ] = DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expect.body is not UNSET:
            raise ValueError("expect.body: a body that is downloaded is in a file; give its `sha256`, or use `request`")


def download(args: Download, context: ext_sdk.Context) -> ext_sdk.Result:
    """Fetch a file into the workdir.

    It appears whole, or not at all: not when the answer is not as expected, is larger than `maxSize`, breaks off, or
    has another SHA-256.
    """
    prepared = PreparedRequest(args, RequestSpec(query=tuple(pairs(args.query)), max_body=args.max_size), context)
    workdir = Workdir(context.workdir)
    with (
        os_errors("write", args.path),
        workdir.writing(args.path, parents=True, overwrite=args.overwrite) as file,
        Searcher(deadline=context.deadline) as searcher,
    ):
        kept = _Kept(file)
        answer = prepared.send(context.deadline, kept.take)
        checks = [*check(args.expect, answer, context, searcher), *_of_file(args, kept, answer)]
        outputs: dict[str, str | int | bool] = {
            "status": answer.status,
            "duration": rounded(answer.elapsed),
            "url": answer.url,
            "attempts": 1,
        }
        if not all(one.ok for one in checks):
            raise _failed(prepared, answer, checks, context, outputs)  # and the file is not made
    path = workdir.root / workdir.relative(args.path)
    outputs |= {"path": str(path), "size": kept.size, "sha256": kept.digest.hexdigest()}
    message = (
        f"{prepared.where}: {kept.size:,} bytes to {args.path!r} after {rounded(answer.elapsed)}, {summary(checks)}"
    )
    return ext_sdk.Result.ok(message + notes_of(args, answer), outputs=outputs)


class _Kept:
    """What of the body went to the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        self.digest = hashlib.sha256()

    def take(self, piece: bytes) -> None:
        """The next piece."""
        self._file.write(piece)
        self.digest.update(piece)
        self.size += len(piece)


def _of_file(args: Download, kept: _Kept, answer: Response) -> list[Check]:
    checks = []
    if answer.truncated:
        checks.append(Check.failed(f"to have at most {args.max_size:,} bytes (maxSize)", "more", where="body"))
    if answer.status // 100 != 2:
        checks.append(Check.failed("to be a file", f"the body of status {answer.status}", where="body"))
    elif args.sha256 is not UNSET:
        found, wanted = kept.digest.hexdigest(), args.sha256.lower()
        checks.append(Check(found == wanted, "to equal", wanted, found, where="sha256"))
    return checks


def _failed(
    prepared: PreparedRequest,
    answer: Response,
    checks: list[Check],
    context: ext_sdk.Context,
    outputs: dict[str, str | int | bool],
) -> ext_sdk.OperationFailed:
    parts = [failure_text(checks), f"answer: {status_line(answer)}"]
    if shown := excerpt(answer, context.secrets):
        parts.append(f"body: {shown}")
    return ext_sdk.OperationFailed(
        f"{prepared.where}: status {answer.status}, {summary(checks)}, no file was made",
        error=f"{prepared.where}: {'; '.join(parts)}; no file was made",
        outputs=outputs,
    )


OPERATIONS = (
    ext_sdk.Operation("download", download, {"url": "http://127.0.0.1:8080/report.csv", "path": "reports/today.csv"}),
)
