"""`copy`: files between the workdir and a container, by the container's tar."""

from __future__ import annotations

import io
import stat
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

import ext_sdk
from ext_sdk.files import PathEscapes, Workdir, os_errors

from .awaiting import Timeout  # noqa: TC001 - msgspec reads it
from .client import client_for
from .client.channels import execute
from .containers import Pods, container_of
from .errors import doing
from .exec_ import running
from .naming import TargetArgs, telling_namespace
from .objects import text

if TYPE_CHECKING:
    from .client.channels import Executed

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
        doing(f"failed to copy {args.remote} of {pods.target.where}"),
        telling_namespace(pods.target, client, context.deadline),
        os_errors("copy", args.local, exists=EXISTS),
    ):
        stdin, count = _packed(workdir, args.local, remote.name) if up else (None, 0)
        pod = running(pods)
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
        "copy",
        copy,
        {"resource": "pod/nginx", "direction": "toContainer", "local": "index.html", "remote": "/srv/index.html"},
    ),
)
