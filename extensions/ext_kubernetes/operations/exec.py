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
from ext_kubernetes.api.exec import execute
from ext_kubernetes.objects.fields import text
from ext_kubernetes.targets import Pods, TargetArgs, container_of, missing_namespace_context, running_pod
from ext_kubernetes.waiting.waiter import (
    Selector,  # noqa: TC001 - msgspec reads them
    Timeout,  # noqa: TC001 - msgspec reads it
)
from ext_sdk.expect import Check, Expectation, Integer, Text, check_integer, check_text, failure_text, passed, summary
from ext_sdk.files import PathEscapes, Workdir, os_errors

if TYPE_CHECKING:
    from ext_kubernetes.api.exec import Executed


class ExecExpectation(Expectation):
    """What a command must have done; all that is given must hold."""

    exit_code: Annotated[
        Integer | UnsetType, Meta(description='0, [0, 1], "nonzero", {"lt": 3}; 0 where it is left out')
    ] = UNSET
    stdout: Annotated[Text | UnsetType, Meta(description="A text that it must equal, or more")] = UNSET
    stderr: Annotated[Text | UnsetType, Meta(description="A text that it must equal, or more")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


class Exec(TargetArgs, one_of=("command", "script")):
    """What to run, and where."""

    selector: Selector = ""
    container: Annotated[str, Meta(description="Of the pod; its default or first one where left out")] = ""
    command: Annotated[list[str], Meta(description="The program and its arguments; no shell is in between")] = field(
        default_factory=list
    )
    script: Annotated[str, Meta(description="In place of a command: a script for `sh -c`")] = ""
    stdin: Annotated[str | UnsetType, Meta(description="What it reads")] = UNSET
    expect: Annotated[ExecExpectation, Meta(description="What it must have done; exit code 0 if left out")] = (
        ExecExpectation(exit_code=0)
    )
    timeout: Timeout = ext_sdk.Duration.parse("25s")


def exec_(args: Exec, context: ext_sdk.Context) -> ext_sdk.Result:
    """Run a command in a container of a pod, or of a pod (a ready one, if any) of a Deployment, Service and the like.

    Expects exit code 0 unless `expect` says otherwise, which fails for output of more than 4 MiB. At the deadline the
    connection ends; the command may live on.
    """
    client = client_for(context)
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
        done = execute(client, pods.path_of(pod, "exec"), query, stdin, context.deadline)
    return _concluded(args, done, {"pod": name, "container": container}, context)


def _concluded(
    args: Exec, done: Executed, where: dict[str, str | int | bool], context: ext_sdk.Context
) -> ext_sdk.Result:
    streams = {"stdout": done.stdout, "stderr": done.stderr}
    outputs: dict[str, str | int | bool] = where | {name: stream.text for name, stream in streams.items()}
    label = f"container {where['container']} of pod {where['pod']}"
    if done.code is None:
        why = done.problem if done.in_time else f"it did not end in time ({args.timeout}), and may still run"
        raise ext_sdk.OperationFailed(
            f"no exit code from the command in {label}",
            error=f"expected the command in {label} to end with an exit code: {why}",
            outputs=outputs,
        )
    outputs["exitCode"] = done.code
    wanted = 0 if isinstance(args.expect.exit_code, UnsetType) else args.expect.exit_code
    checks = check_integer(wanted, done.code, where="exitCode")
    for name, expected in (("stdout", args.expect.stdout), ("stderr", args.expect.stderr)):
        if isinstance(expected, UnsetType):
            continue
        if lost := streams[name].lost:
            found = f"{streams[name].size:,} bytes, of which {lost:,} were not kept: write less, or filter it there"
            checks.append(Check.failed("to be checked completely", found, where=name))
        else:
            checks += check_text(expected, streams[name].text, where=name, redact=context.secrets.redact)
    message = f"Ran a command in {label}, exit code {done.code}: {summary(checks)}"
    if passed(checks):
        return ext_sdk.Result.ok(message, outputs=outputs)
    said = context.secrets.redact(done.stderr.text).strip()
    error = failure_text(checks) + (f"; stderr: {said[-500:]}" if said and done.code else "")
    return ext_sdk.Result.failed(message, error=error, outputs=outputs)


EXISTS = "remove it, or choose another `local`"
MOST_BYTES = 64 * 1024 * 1024  # of all files together, which are held in memory


class Copy(TargetArgs):
    """What to copy, and which way."""

    direction: Annotated[Literal["toContainer", "fromContainer"], Meta(description="Which way")]
    local: Annotated[str, Meta(min_length=1, description="File or directory in the workdir")]
    remote: Annotated[str, Meta(pattern="^/", description="The same in the container, as an absolute path")]
    container: Annotated[str, Meta(description="Of the pod; its default or first one where left out")] = ""
    timeout: Timeout = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if not PurePosixPath(self.remote).name or ".." in PurePosixPath(self.remote).parts:
            raise ValueError(f"remote: expected the path of a file or directory without `..`, found {self.remote!r}")


def copy(args: Copy, context: ext_sdk.Context) -> ext_sdk.Result:
    """Copy a file or a directory into a container or out of it; what is there of the same name is replaced.

    The container needs tar. At most 64 MiB; symbolic links and devices of a container are left out, and told.
    """
    client = client_for(context)
    pods = Pods(args, "", context, client)
    remote = PurePosixPath(args.remote)
    workdir = Workdir(context.workdir)
    up = args.direction == "toContainer"
    with (
        error_context(f"failed to copy {args.remote} of {pods.target.where}"),
        missing_namespace_context(pods.target, client, context.deadline),
        os_errors("copy", args.local, exists=EXISTS),
    ):
        stdin, count = _packed(workdir, args.local, remote.name) if up else (None, 0)
        pod = running_pod(pods)
        command = ["tar", "-xmf" if up else "-cf", "-", "-C", str(remote.parent)]
        command += [] if up else ["--", remote.name]
        query = [("container", container_of(pod, args.container)), *(("command", part) for part in command)]
        path = pods.path_of(pod, "exec")
        done = execute(client, path, query, stdin, context.deadline, limit=MOST_BYTES)
        _check(done)
        skipped: list[str] = []
        if not up:
            count, skipped = _unpacked(done.stdout.data, workdir, args.local, remote.name, context.deadline)
    outputs: dict[str, str | int | bool] = {"files": count, "pod": text(pod, "metadata", "name")}
    if not up:
        outputs["skipped"] = "\n".join(skipped)
    return ext_sdk.Result.ok(f"Copied {count} file{'' if count == 1 else 's'}", outputs=outputs)


def _check(done: Executed) -> None:
    """Raise OperationFailed where tar did not do what it should."""
    if done.code != 0:
        why = done.problem if done.code is None else f"tar ended with exit code {done.code}: {done.stderr.text.strip()}"
        why = why if done.in_time else "the time was over before tar ended"
        raise ext_sdk.OperationFailed("the files could not be copied", error=f"expected tar to copy the files: {why}")
    if done.stdout.lost:
        raise ext_sdk.OperationFailed(f"expected at most {MOST_BYTES:,} bytes to copy, found more")


def _packed(workdir: Workdir, local: str, name: str) -> tuple[bytes, int]:
    """The archive of a file or directory, under another name, and how many files are in it."""
    data, count, todo = io.BytesIO(), 0, [(local.rstrip("/"), name)]
    with tarfile.open(fileobj=data, mode="w") as archive:
        while todo:
            path, inside = todo.pop()
            member, found = tarfile.TarInfo(inside), workdir.stat(path, follow=path == local)
            member.mode = stat.S_IMODE(found.st_mode)
            if stat.S_ISDIR(found.st_mode):
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
                todo += [(f"{path}/{entry}", f"{inside}/{entry}") for entry in workdir.names(path)]
                continue
            content = workdir.read(path, limit=MOST_BYTES - data.tell())
            member.size, count = len(content), count + 1
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue(), count


def _unpacked(
    data: bytes, workdir: Workdir, local: str, name: str, deadline: ext_sdk.Deadline
) -> tuple[int, list[str]]:
    """Write the files of an archive to the workdir; return their number, and the names of what was left out.

    The container controls the archive: nothing of it may lead elsewhere, and it may not expand beyond MOST_BYTES. So
    it is not decompressed, and sparse files count with the size they would have here.
    """
    count, size, skipped = 0, 0, []
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                size += member.size
                if size > MOST_BYTES:
                    raise ext_sdk.OperationFailed(f"expected at most {MOST_BYTES:,} bytes to copy, found more")
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
            "the container sent no archive", error=f"expected a tar archive: {error}"
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
    ),
    ext_sdk.Operation(
        "copy",
        copy,
        {"resource": "pod/nginx", "direction": "toContainer", "local": "index.html", "remote": "/srv/index.html"},
    ),
)
