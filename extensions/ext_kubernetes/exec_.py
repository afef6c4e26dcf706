"""`exec`: a command in a container, and whether it did what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.expect import Check, Expectation, Integer, Text, check_integer, check_text, failure_text, passed, summary

from .awaiting import Selector, Timeout  # noqa: TC001 - msgspec reads them
from .client import client_for
from .client.channels import execute
from .containers import Pods, container_of
from .errors import doing
from .naming import TargetArgs, telling_namespace
from .objects import text

if TYPE_CHECKING:
    from .client.channels import Executed
    from .manifests import Object


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
        doing(f"failed to run a command in {pods.target.where}"),
        telling_namespace(pods.target, client, context.deadline),
    ):
        pod = running(pods)
        name, container = text(pod, "metadata", "name"), container_of(pod, args.container)
        command = args.command or ["sh", "-c", args.script]
        query = [("container", container), *(("command", part) for part in command)]
        stdin = args.stdin.encode() if isinstance(args.stdin, str) else None
        done = execute(client, pods.path_of(pod, "exec"), query, stdin, context.deadline)
    return _concluded(args, done, {"pod": name, "container": container}, context)


def running(pods: Pods) -> Object:
    """Return the named pod, or the preferred one of several. Raises OperationFailed if none is running."""
    found = pods.see()
    if found and text(found[0], "status", "phase") == "Running":
        return found[0]
    told = ", ".join(f"{text(pod, 'metadata', 'name')} is {text(pod, 'status', 'phase') or 'new'}" for pod in found[:5])
    raise ext_sdk.OperationFailed(
        f"no running pod of {pods.target.where}",
        error=f"expected a running pod of {pods.target.where}, found {told or 'none'}",
    )


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
)
