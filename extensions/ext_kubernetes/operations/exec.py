"""Operations `exec` and `copy`: run a command in a container, copy files to and from it."""

from __future__ import annotations

import io
import stat
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.api.streams import execute
from ext_kubernetes.config import ExpectedRefusal, Refusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.objects.fields import text
from ext_kubernetes.pods import Container, Pods, container_of, running_pod
from ext_kubernetes.targets import TargetArgs, missing_namespace_context
from ext_kubernetes.waiting.waiter import (
    Selector,  # noqa: TC001 - msgspec reads it
    Timeout,  # noqa: TC001 - msgspec reads it
)
from ext_sdk.core.text import counted
from ext_sdk.expect import Check, Expectation, Integer, Text, check_integer, check_text, conclude, section
from ext_sdk.files import PathEscapes, Workdir, os_errors

from . import REFUSAL

if TYPE_CHECKING:
    from ext_kubernetes.objects.fields import Outputs


class ExecExpectation(Expectation):
    """Expected result of a command; all given members must hold."""

    exit_code: Annotated[
        Integer | UnsetType, Meta(description='Exit code: 0, [0, 1], "nonzero", {"lt": 3}; default: 0')
    ] = UNSET
    stdout: Annotated[Text | UnsetType, Meta(description="Expected standard output: the exact text, or checks")] = UNSET
    stderr: Annotated[Text | UnsetType, Meta(description="Expected standard error: the exact text, or checks")] = UNSET
    failure: Annotated[
        Refusal | UnsetType, Meta(description="Refusal of the API server that must occur, instead of all other checks")
    ] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if self.failure is not UNSET and (others := self.given(besides=("failure",))):
            raise ValueError(f"`failure` expects a refusal, so it excludes {', '.join(others)}")


class Exec(TargetArgs, one_of=("command", "script")):
    """Arguments of `exec`."""

    selector: Selector = ""
    container: Container = ""
    command: Annotated[list[str], Meta(description="Program and its arguments, run without a shell")] = field(
        default_factory=list
    )
    script: Annotated[str, Meta(description="Script for `sh -c`; replaces `command`")] = ""
    stdin: Annotated[str | UnsetType, Meta(description="Text for standard input; default: no standard input")] = UNSET
    expect: Annotated[ExecExpectation, Meta(description="Expected result; default: exit code 0")] = ExecExpectation(
        exit_code=0
    )
    timeout: Timeout = ext_sdk.Duration.parse("25s")


def exec_(args: Exec, context: ext_sdk.Context) -> ext_sdk.Result:
    """Run a command in a container of a pod, or of a pod (preferably a ready one) of a Deployment, Service etc.

    Fails if the exit code is not 0, unless `expect` says otherwise. `expect` fails for output of more than 4 MiB. At
    the deadline the connection is closed; the command may continue to run.
    """
    client = client_for(context, args)
    if args.selector and not (args.resource or args.kind):
        import msgspec

        args = msgspec.structs.replace(args, resource="pods")
    pods = Pods(args, args.selector, context, client)
    with (
        error_context(f"failed to run a command in {pods.target.where}"),
        missing_namespace_context(pods.target, client, context.deadline),
    ):
        pod = running_pod(pods)
        name, container = text(pod, "metadata", "name"), container_of(pod, args.container)
        command = args.command or ["sh", "-c", args.script]
        query = [("container", container), *(("command", part) for part in command)]
        stdin = args.stdin.encode() if isinstance(args.stdin, str) else None
        executed = execute(client, pods.path_of(pod, "exec"), query, stdin, context.deadline)
    streams = {"stdout": executed.stdout, "stderr": executed.stderr}
    outputs: Outputs = {"pod": name, "container": container}
    outputs |= {stream: output.text for stream, output in streams.items()}
    label = f"container {container} of pod {name}"
    if executed.code is None:
        timed_out = f"it did not exit within {args.timeout}, and may still run"
        raise ext_sdk.OperationFailed(
            f"no exit code from the command in {label}",
            error=f"expected the command in {label} to exit: {executed.problem if executed.in_time else timed_out}",
            outputs=outputs,
        )
    outputs["exitCode"] = executed.code
    expected_code = 0 if isinstance(args.expect.exit_code, UnsetType) else args.expect.exit_code
    checks = check_integer(expected_code, executed.code, where="exitCode")
    for stream, expected in (("stdout", args.expect.stdout), ("stderr", args.expect.stderr)):
        if isinstance(expected, UnsetType):
            continue
        if lost := streams[stream].lost:
            found = f"{streams[stream].size:,} bytes, of which {lost:,} were discarded; write less, or filter it there"
            checks.append(Check.failed("to be checked completely", found, where=stream))
        else:
            checks += check_text(
                expected,
                streams[stream].text,
                where=stream,
                redact=context.secrets.redact,
                workdir=context.workdir,
            )
    result = conclude(checks, done=f"Ran a command in {label}, exit code {executed.code}", outputs=outputs)
    stderr = context.secrets.redact(executed.stderr.text).strip()
    if not result.success and stderr and executed.code:
        result.error += "\n" + section("stderr ends with", stderr)
    return result


MOST_BYTES = 64 * 1024 * 1024  # of all files together, which are held in memory
TOO_LARGE = f"expected at most {MOST_BYTES:,} bytes to copy, found more"


class Copy(TargetArgs):
    """Arguments of `copy`."""

    direction: Annotated[Literal["toContainer", "fromContainer"], Meta(description="Direction of the copy")]
    local: Annotated[str, Meta(min_length=1, description="File or directory in the workdir")]
    remote: Annotated[str, Meta(pattern="^/", description="File or directory in the container, as an absolute path")]
    container: Container = ""
    expect: ExpectedRefusal = UNSET
    timeout: Timeout = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if not PurePosixPath(self.remote).name or ".." in PurePosixPath(self.remote).parts:
            raise ValueError(f"remote: expected the path of a file or directory without `..`, found {self.remote!r}")


def copy(args: Copy, context: ext_sdk.Context) -> ext_sdk.Result:
    """Copy a file or a directory to or from a container, and overwrite existing files.

    The container needs tar. At most 64 MiB are copied. Symbolic links and devices of a container are skipped, and
    listed in the outputs.
    """
    client = client_for(context, args)
    pods = Pods(args, "", context, client)
    remote = PurePosixPath(args.remote)
    workdir = Workdir(context.workdir)
    to_container = args.direction == "toContainer"
    skipped: list[str] = []
    with (
        error_context(f"failed to copy {args.remote} of {pods.target.where}"),
        missing_namespace_context(pods.target, client, context.deadline),
        os_errors("copy", args.local, exists="remove it, or choose another `local`"),
    ):
        stdin, count = pack(workdir, args.local, remote.name) if to_container else (None, 0)
        pod = running_pod(pods)
        command = ["tar", "-xmf" if to_container else "-cf", "-", "-C", str(remote.parent)]
        command += [] if to_container else ["--", remote.name]
        query = [("container", container_of(pod, args.container)), *(("command", part) for part in command)]
        path = pods.path_of(pod, "exec")
        executed = execute(client, path, query, stdin, context.deadline, limit=MOST_BYTES)
        if executed.code != 0:
            reason = f"tar exited with code {executed.code}: {executed.stderr.text.strip()}"
            if not executed.in_time:
                reason = "tar did not exit before the deadline"
            elif executed.code is None:
                reason = executed.problem
            raise ext_sdk.OperationFailed(
                "the files could not be copied", error=f"expected tar to copy files: {reason}"
            )
        if executed.stdout.lost:
            raise ext_sdk.OperationFailed(TOO_LARGE)
        if not to_container:
            count, skipped = unpack(executed.stdout.data, workdir, args.local, remote.name, context.deadline)
    outputs: Outputs = {"files": count, "pod": text(pod, "metadata", "name")}
    if not to_container:
        outputs["skipped"] = "\n".join(skipped)
    return ext_sdk.Result.ok(f"Copied {counted(count, 'file')}", outputs=outputs)


def pack(workdir: Workdir, local: str, name: str) -> tuple[bytes, int]:
    """Return an archive of a file or directory under another name, and the number of files in it."""
    data, count, pending = io.BytesIO(), 0, [(local.rstrip("/"), name)]
    with tarfile.open(fileobj=data, mode="w") as archive:
        while pending:
            path, inside = pending.pop()
            member, status = tarfile.TarInfo(inside), workdir.stat(path, follow=path == local)
            member.mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISDIR(status.st_mode):
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
                pending += [(f"{path}/{entry}", f"{inside}/{entry}") for entry in workdir.names(path)]
                continue
            content = workdir.read(path, limit=MOST_BYTES - data.tell())
            member.size, count = len(content), count + 1
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue(), count


def unpack(data: bytes, workdir: Workdir, local: str, name: str, deadline: ext_sdk.Deadline) -> tuple[int, list[str]]:
    """Write the files of an archive to the workdir; return their number, and the names of skipped members.

    The container controls the archive: no member may lead out of `local`, and it may not expand beyond MOST_BYTES.
    Therefore it is not decompressed, and sparse files count with the size they would have here.
    """
    count, size, skipped = 0, 0, []
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                size += member.size
                if size > MOST_BYTES:
                    raise ext_sdk.OperationFailed(TOO_LARGE)
                if deadline.expired:
                    raise ext_sdk.OperationFailed(
                        "the files could not be copied",
                        error=f"expected the files to be written before the deadline, found time for {count} of them",
                    )
                first, *rest = PurePosixPath(member.name).parts or ("",)
                if first != name or ".." in rest:
                    raise PathEscapes(
                        member.name, str(workdir.root), f"the archive of the container should hold {name}"
                    )
                path = "/".join([local.rstrip("/"), *rest])
                content = archive.extractfile(member) if member.isreg() else None
                if member.isdir():
                    workdir.mkdir(path)
                elif content is None:
                    skipped.append("/".join(rest) or name)
                else:
                    workdir.write(path, content.read(), mode=member.mode & 0o777, parents=True)
                    count += 1
    except tarfile.TarError as error:
        raise ext_sdk.OperationFailed(
            "invalid archive from the container", error=f"expected a tar archive from the container: {error}"
        ) from error
    return count, skipped


OPERATIONS = (
    ext_sdk.Operation(
        "exec",
        exec_,
        {
            "resource": "pod/nginx",
            "command": ["nginx", "-t"],
            "expect": {"stdout": {"contains": "ok"}},
            "timeout": "20s",
        },
        outputs=(
            {
                "exitCode": "exit code of the command",
                "stdout": "standard output of the command",
                "stderr": "standard error of the command",
                "pod": "name of the pod",
                "container": "name of the container",
            }
            | REFUSAL
        ),
        title="Run command in container",
    ),
    ext_sdk.Operation(
        "copy",
        copy,
        {"resource": "pod/nginx", "direction": "toContainer", "local": "index.html", "remote": "/srv/index.html"},
        outputs=(
            {
                "files": "number of copied files",
                "pod": "name of the pod",
                "skipped?": "files that were left out, one per line, if they come from a container",
            }
            | REFUSAL
        ),
        title="Copy files to or from container",
        idempotent=True,
    ),
)
