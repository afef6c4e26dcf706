"""Operation `run-job`: run a Job to its end, and output its log and exit code."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.container_log import read_log, too_long
from ext_kubernetes.api.errors import KubernetesError, NotFound, advising, error_context
from ext_kubernetes.api.paths import core_path
from ext_kubernetes.manifests.write_options import MANAGER, Namespace
from ext_kubernetes.objects.fields import at, items, members, number, text
from ext_kubernetes.objects.readiness import readiness_of
from ext_kubernetes.objects.yaml_loader import (
    Json,
    NoObject,
    NotYaml,
    flat,
    objects_of,
)
from ext_kubernetes.polling import Verdict
from ext_kubernetes.targets import Target, container_of, namespace_of
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.pod_failures import unrecoverable_pod
from ext_kubernetes.waiting.waiter import Timeout, wait_for
from ext_sdk.expect import Check, Expectation, Integer, Text, check_integer, check_text, failure_text, passed, summary

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.waiting.waiter import WaitResult


LOOK_SECONDS = 1.0  # between two looks at the pods of a job that goes on
NAME_LABEL = "job-name"  # which the controller gives to pods


class JobExpectation(Expectation):
    """What a job must have done; all that is given must hold."""

    exit_code: Annotated[Integer | UnsetType, Meta(description='Of its last pod: 0, "nonzero", {"in": [0, 3]}')] = UNSET
    log: Annotated[Text | UnsetType, Meta(description="A text that its log must equal, or more")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


class RunJob(ext_sdk.Args, one_of=("image", "manifest")):
    """What to run: an image, or a manifest."""

    image: Annotated[str, Meta(description="Of the container: busybox:1.36")] = ""
    command: Annotated[list[str], Meta(description="In place of the image's entrypoint")] = field(default_factory=list)
    arguments: Annotated[list[str], Meta(description="Of the entrypoint, in place of the image's")] = field(
        default_factory=list
    )
    env: Annotated[dict[str, str], Meta(description="Variables of the container")] = field(default_factory=dict)
    service_account: Annotated[str, Meta(description="That its pod runs as")] = ""
    manifest: Annotated[
        str | dict[str, Json] | UnsetType,
        ext_sdk.Verbatim,
        Meta(description="A Job, in place of all of these, as YAML or as an object; ${NAME.key} is not replaced"),
    ] = UNSET
    name: Annotated[str, Meta(description="Of the Job; the server finds one that begins with `job-` if left out")] = ""
    namespace: Namespace = ""
    backoff_limit: Annotated[int, Meta(ge=0, description="How often it is tried again; not for a manifest")] = 0
    expect: Annotated[
        JobExpectation | UnsetType, Meta(description="What it must have done; exit code 0 if left out")
    ] = UNSET
    cleanup: Annotated[bool, Meta(description="Delete the Job and its pods at the end, however it ends")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")

    def __post_init__(self) -> None:
        if self.manifest is not UNSET and (self.command or self.arguments or self.env or self.service_account):
            raise ValueError("`command`, `arguments`, `env` and `serviceAccount` go with `image`, not with `manifest`")


def run_job(args: RunJob, context: ext_sdk.Context) -> ext_sdk.Result:
    """Run a Job to its end, successful or not, and put out its log and exit code.

    Fails early where its pod can't start: an image that can't be pulled, no node to run on.
    """
    client = client_for(context)
    job = job_of(args)
    namespace = namespace_of(context, client, args.namespace or text(job, "metadata", "namespace"))
    resource = client.discovery.resource("jobs", "batch/v1", deadline=context.deadline)
    job["metadata"] = members(job, "metadata") | {"namespace": namespace}
    query = [("fieldManager", MANAGER), ("fieldValidation", "Strict")]
    with error_context("failed to create the job"), advising("Choose another name, or leave it out"):
        path = resource.path(namespace)
        made = client.request("POST", path, query=query, body=job, deadline=context.deadline)
    target = Target(resource, namespace, text(made, "metadata", "name"))
    try:
        with error_context(f"failed to wait for {target}"):
            return _Run(args, target, context, client).result()
    finally:
        if args.cleanup:
            _delete(target, context, client)


class _Run:
    """A job that has been made."""

    def __init__(self, args: RunJob, target: Target, context: ext_sdk.Context, client: Client) -> None:
        self._args = args
        self._target = target
        self._context = context
        self._client = client
        self._next_look = time.monotonic() + LOOK_SECONDS
        self._cut = ""

    def result(self) -> ext_sdk.Result:
        """Wait for the end, and tell it."""
        seen = wait_for(self._target, self._judge, self._context, self._client)
        job = seen.objects[0] if seen.objects else {}
        ended = bool(job) and readiness_of(job).state != "progressing"
        pods = self._pods()
        pod = pods[-1] if pods else {}
        outputs: dict[str, str | int | bool] = {
            "name": self._target.name,
            "namespace": self._target.namespace,
            "pod": text(pod, "metadata", "name"),
            "seconds": f"{seen.waited.seconds:.3f}",
        }
        log, why = self._log(pod)
        outputs["log"] = log
        if not ended:
            return self._in_vain(seen, outputs)
        code = exit_code_of(pod)
        if code is not None:
            outputs["exitCode"] = code
        outputs["succeeded"] = seen.waited.done
        told = readiness_of(job).text
        checks = self._checks(code, log, why, done=seen.waited.done, told=told)
        message = f"Job/{self._target.name}: {told}{self._cut}"
        if passed(checks):
            return ext_sdk.Result.ok(message, outputs=outputs)
        if self._args.expect is UNSET:
            return self._in_vain(seen, outputs)
        return ext_sdk.Result.failed(f"{message}: {summary(checks)}", error=failure_text(checks), outputs=outputs)

    def _judge(self, objects: list[Object]) -> Verdict:
        if not objects:
            return Verdict(done=False, status="NotFound")
        readiness = readiness_of(objects[0])
        hopeless = readiness.text if readiness.state == "failed" else ""
        if readiness.state == "progressing" and time.monotonic() >= self._next_look:
            hopeless = unrecoverable_pod([pod for pod in self._pods() if text(pod, "status", "phase") == "Pending"])
            self._next_look = time.monotonic() + LOOK_SECONDS
        return Verdict(readiness.state == "ready", readiness.text, hopeless, readiness.again)

    def _pods(self) -> list[Object]:
        """Those of the job, the newest last; none where they may not be seen."""
        path = core_path("pods", self._target.namespace)
        query = [("labelSelector", f"{NAME_LABEL}={self._target.name}")]
        try:
            found = items(self._client.request("GET", path, query=query, deadline=self._context.deadline), "items")
        except KubernetesError as error:
            self._context.log.warn(f"the pods of {self._target} can't be listed: {error.message}")
            return []
        return sorted(found, key=lambda pod: text(pod, "metadata", "creationTimestamp"))

    def _log(self, pod: Object) -> tuple[str, str]:
        """The log, or why there is none."""
        if not pod:
            return "", "the job has no pod"
        try:
            log, cut = read_log(pod, container_of(pod), [], self._context, self._client)
            self._cut = f"; of its log only the first {len(log.encode()):,} bytes were read" if cut else ""
            return log, ""
        except KubernetesError as error:
            return "", error.error

    def _checks(self, code: int | None, log: str, why: str, *, done: bool, told: str) -> list[Check]:
        expect = self._args.expect
        if isinstance(expect, UnsetType):
            return [Check(done, "to be complete", found=told, where="the job")]
        checks: list[Check] = []
        if not isinstance(expect.exit_code, UnsetType):
            checks += (
                [Check.failed("an exit code", f"none ({told})", where="exitCode")]
                if code is None
                else check_integer(expect.exit_code, code, where="exitCode")
            )
        if not isinstance(expect.log, UnsetType):
            redact = self._context.secrets.redact
            if why:
                checks.append(Check.failed("to be read", f"an error: {why}", where="log"))
            elif self._cut:
                checks.append(too_long("the pod"))
            else:
                checks += check_text(expect.log, log, where="log", redact=redact)
        return checks

    def _in_vain(self, seen: WaitResult, outputs: dict[str, str | int | bool]) -> ext_sdk.Result:
        return wait_failure(
            seen,
            "it is complete",
            self._context,
            self._client,
            timeout=self._args.timeout,
            outputs=outputs,
            message=f"Job/{self._target.name} did not succeed",
        )


def exit_code_of(pod: Object) -> int | None:
    """The exit code of a pod's default container; None where it has none."""
    statuses = items(pod, "status", "containerStatuses")
    wanted = container_of(pod) if statuses else ""
    for status in statuses:
        if text(status, "name") == wanted and isinstance(at(status, "state", "terminated", "exitCode"), int):
            return number(status, "state", "terminated", "exitCode")
    return None


def _delete(target: Target, context: ext_sdk.Context, client: Client) -> None:
    """Delete a job and its pods; where that fails, the log says so: the result is that of the job."""
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    try:
        client.request("DELETE", target.path, body=body, deadline=context.deadline)
    except NotFound:
        return
    except KubernetesError as error:
        context.log.warn(f"{target.where} could not be deleted: {error.error}")


def job_of(args: RunJob) -> Object:
    """The manifest of the job. Raises OperationFailed where one is given that is not of a job."""
    name = {"name": args.name} if args.name else {}
    if args.manifest is UNSET:
        container: Object = {"name": "main", "image": args.image}
        env: list[object] = [{"name": key, "value": value} for key, value in args.env.items()]
        parts = (("command", args.command), ("args", args.arguments), ("env", env))
        container |= {key: value for key, value in parts if value}
        pod: Object = {"restartPolicy": "Never", "containers": [container]}
        pod |= {"serviceAccountName": args.service_account} if args.service_account else {}
        spec = {"backoffLimit": args.backoff_limit, "template": {"spec": pod}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": name or {"generateName": "job-"}, "spec": spec}
    try:
        given = args.manifest
        found = (
            [one for one, _ in objects_of(given, "manifest")] if isinstance(given, str) else [*flat(given, "manifest")]
        )
    except (NotYaml, NoObject) as error:
        raise ext_sdk.OperationFailed("the manifest can't be used", error=str(error)) from error
    kinds = [f"{text(one, 'apiVersion')} {text(one, 'kind')}" for one in found]
    if kinds != ["batch/v1 Job"]:
        raise ext_sdk.InvalidArgs("manifest", f"expected one Job of batch/v1, found {', '.join(kinds) or 'nothing'}")
    metadata = members(found[0], "metadata") | name
    given_name = {} if {"name", "generateName"} & metadata.keys() else {"generateName": "job-"}
    return found[0] | {"metadata": metadata | given_name}


OPERATIONS = (
    ext_sdk.Operation(
        "run-job",
        run_job,
        {"image": "busybox:1.36", "command": ["sh", "-c", "echo it ran"], "expect": {"exitCode": 0}, "timeout": "25s"},
    ),
)
