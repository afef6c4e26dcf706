"""Operation `run-job`: run a Job to its end, and output its log and exit code."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import KubernetesError, NotFound, advising, error_context
from ext_kubernetes.config import ClusterArgs, Refusal
from ext_kubernetes.manifests.sources import Expand, objects_in
from ext_kubernetes.manifests.write import MANAGER, Namespace
from ext_kubernetes.objects.fields import at, items, members, text
from ext_kubernetes.objects.readiness import readiness_of
from ext_kubernetes.objects.yaml_loader import Json, NotAnObject, NotYaml
from ext_kubernetes.pods import Log, container_of, read_log, too_long
from ext_kubernetes.polling import Unfinished, Verdict
from ext_kubernetes.targets import Target, missing_namespace_context, namespace_of, resource_of
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.waiter import Timeout, unrecoverable_pod, wait_for
from ext_sdk.expect import Check, Expectation, Integer, Text, check_integer, check_text, failure_text, passed, summary

from . import DONE, FAILED_WAIT, REFUSAL, REPORT

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


POD_POLL_SECONDS = 1.0  # between two polls of the pods of a running job
NAME_LABEL = "job-name"  # set on pods by the job controller


class JobExpectation(Expectation):
    """Expected result of a job; all given members must hold."""

    exit_code: Annotated[
        Integer | UnsetType, Meta(description='Exit code of the last pod: 0, "nonzero", {"in": [0, 3]}')
    ] = UNSET
    log: Annotated[Text | UnsetType, Meta(description="Expected log: the exact text, or checks")] = UNSET
    failure: Annotated[
        Refusal | UnsetType, Meta(description="Refusal of the API server that must occur, instead of all other checks")
    ] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if self.failure is not UNSET and (others := self.given(besides=("failure",))):
            raise ValueError(f"`failure` expects a refusal, so it excludes {', '.join(others)}")


class RunJob(ClusterArgs, one_of=("image", "manifest", "from_")):
    """Arguments of `run-job`."""

    image: Annotated[str, Meta(description="Image of the container: busybox:1.36")] = ""
    command: Annotated[list[str], Meta(description="Command that overrides the entrypoint of the image")] = field(
        default_factory=list
    )
    arguments: Annotated[
        list[str], Meta(description="Arguments of the entrypoint, which override those of the image")
    ] = field(default_factory=list)
    env: Annotated[dict[str, str], Meta(description="Environment variables of the container")] = field(
        default_factory=dict
    )
    service_account: Annotated[str, Meta(description="Service account of the pod")] = ""
    manifest: Annotated[
        str | dict[str, Json] | UnsetType,
        ext_sdk.Verbatim,
        Meta(description="A Job as YAML or as an object; replaces `image`"),
    ] = UNSET
    expand: Expand = False
    from_: Annotated[
        str, Meta(description="CronJob whose template the Job has, such as cronjob/report; replaces `image`")
    ] = field(default="", name="from")
    name: Annotated[str, Meta(description="Name of the Job; default: generated, with the prefix `job-`")] = ""
    namespace: Namespace = ""
    backoff_limit: Annotated[int, Meta(ge=0, description="Number of retries; ignored with a manifest")] = 0
    expect: Annotated[JobExpectation | UnsetType, Meta(description="Expected result; default: the job completes")] = (
        UNSET
    )
    cleanup: Annotated[bool, Meta(description="Delete the Job and its pods at the end, also after a failure")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        if not self.image and (self.command or self.arguments or self.env or self.service_account):
            found = "from" if self.from_ else "manifest"
            raise ValueError(f"`command`, `arguments`, `env` and `serviceAccount` require `image`, found `{found}`")


def run_job(args: RunJob, context: ext_sdk.Context) -> ext_sdk.Result:
    """Run a Job to completion or failure, and output its log and exit code.

    Fails early if its pod can't start: the image can't be pulled, or no node can run it. After a step with
    `onTimeout: ok`, the next one with the same Job continues to wait for it, or reads its result again if it has ended.
    It does not start the Job again, unless the Job was deleted, such as by `cleanup`.
    """
    client = client_for(context, args)
    job = _job_of_cronjob(args, context, client) if args.from_ else job_of(args, context)
    namespace = namespace_of(context, client, args.namespace or text(job, "metadata", "namespace"))
    resource = client.discovery.resource("jobs", "batch/v1", deadline=context.deadline)
    job["metadata"] = members(job, "metadata") | {"namespace": namespace}
    name, unfinished = text(job, "metadata", "name"), context.state(Unfinished)
    key = (client.server, "run-job", namespace, name or json.dumps(job, sort_keys=True))
    previous = unfinished.take(key, _PreviousRun)
    name, uid = (previous.name, previous.uid) if previous and previous.job == job else (name, "")
    if not uid or uid != _uid_of(Target(resource, namespace, name), context, client):
        query = [("fieldManager", MANAGER), ("fieldValidation", "Strict")]
        advice = "Choose another name, or omit it"
        if previous and previous.job != job:
            source = f"{args.from_} has changed" if args.from_ else "its arguments differ"
            advice = f"A previous step started it from another template: {source}. Choose another name, or delete it"
        with error_context("failed to create the job"), advising(advice):
            path = resource.path(namespace)
            created = client.request("POST", path, query=query, body=job, deadline=context.deadline)
        name, uid = text(created, "metadata", "name"), text(created, "metadata", "uid")
    target = Target(resource, namespace, name)
    pending = False
    try:
        with error_context(f"failed to wait for {target}"):
            result = _JobRun(args, target, context, client).result()
        pending = result.success and result.outputs["done"] == "false"
        unfinished.keep(args.on_timeout, key, _PreviousRun(job, name, uid))
        return result
    finally:
        if args.cleanup and not pending:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
            try:
                client.request("DELETE", target.path, body=body, deadline=context.deadline)
            except NotFound:
                pass
            except KubernetesError as error:  # the result is that of the job
                context.log.warn(f"{target.where} could not be deleted: {error.error}")


class _PreviousRun(NamedTuple):
    """Job of a step with `onTimeout: ok`."""

    job: Object
    name: str
    uid: str


def _uid_of(target: Target, context: ext_sdk.Context, client: Client) -> str:
    """Return the unique id of the job; "" if it does not exist."""
    try:
        return text(client.request("GET", target.path, deadline=context.deadline), "metadata", "uid")
    except NotFound:
        return ""


def _job_of_cronjob(args: RunJob, context: ext_sdk.Context, client: Client) -> Object:
    """Return the manifest of a job that a CronJob would create, as `kubectl create job --from` does."""
    kind, _, cronjob = args.from_.partition("/")
    resource = resource_of(kind, None, context, client) if cronjob else None
    if resource is None or resource.kind != "CronJob":
        raise ext_sdk.InvalidArgs("from", f"expected cronjob/NAME, found {args.from_!r}")
    target = Target(resource, namespace_of(context, client, args.namespace), cronjob)
    with error_context(f"failed to read {target}"), missing_namespace_context(target, client, context.deadline):
        found = members(client.request("GET", target.path, deadline=context.deadline))
    template = members(found, "spec", "jobTemplate")
    owner = {"apiVersion": resource.api_version, "kind": "CronJob", "name": cronjob, "controller": True}
    annotations = members(template, "metadata", "annotations") | {"cronjob.kubernetes.io/instantiate": "manual"}
    metadata = {
        "labels": members(template, "metadata", "labels"),
        "annotations": annotations,
        "ownerReferences": [owner | {"uid": text(found, "metadata", "uid")}],
        "namespace": target.namespace,
        **({"name": args.name} if args.name else {"generateName": f"{cronjob[:50]}-"}),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template.get("spec")}


class _JobRun:
    """Run of a created job."""

    def __init__(self, args: RunJob, target: Target, context: ext_sdk.Context, client: Client) -> None:
        self._args = args
        self._target = target
        self._context = context
        self._client = client
        self._next_poll = time.monotonic() + POD_POLL_SECONDS

    def result(self) -> ext_sdk.Result:
        """Wait for the end of the job, and return the result of the operation."""
        result = wait_for(self._target, self._judge, self._context, self._client)
        readiness = readiness_of(result.objects[0]) if result.objects else None
        pods = self._pods()
        pod = pods[-1] if pods else {}
        outputs: Outputs = {
            "name": self._target.name,
            "namespace": self._target.namespace,
            "pod": text(pod, "metadata", "name"),
            "seconds": f"{result.outcome.seconds:.3f}",
        }
        log: Log | str = "the job has no pod"
        if pod:
            try:
                log = read_log(pod, container_of(pod), [], self._context, self._client)
            except KubernetesError as unreadable:  # a check of the log reports it
                log = unreadable.error
        outputs["log"] = log.text if isinstance(log, Log) else ""
        if readiness is not None and readiness.state != "progressing":
            code = exit_code_of(pod)
            if code is not None:
                outputs["exitCode"] = code
            outputs["succeeded"] = result.outcome.done
            outputs["done"] = True
            message = f"Job/{self._target.name}: {readiness.text}"
            if isinstance(log, Log) and log.cut:
                message += f"; only the first {len(log.text.encode()):,} bytes of its log were read"
            checks = self._check(code, log, readiness.text)
            if passed(checks) if checks else result.outcome.done:
                return ext_sdk.Result.ok(message, outputs=outputs)
            if checks:
                error = failure_text(checks)
                return ext_sdk.Result.failed(f"{message}: {summary(checks)}", error=error, outputs=outputs)
        return wait_failure(
            result,
            "it is complete",
            self._context,
            self._client,
            self._args,
            outputs=outputs,
            message=f"Job/{self._target.name} did not succeed",
        )

    def _judge(self, objects: list[Object]) -> Verdict:
        if not objects:
            return Verdict(done=False, status="NotFound")
        readiness = readiness_of(objects[0])
        reason = readiness.text if readiness.state == "failed" else ""
        if readiness.state == "progressing" and time.monotonic() >= self._next_poll:
            reason = unrecoverable_pod([pod for pod in self._pods() if text(pod, "status", "phase") == "Pending"])
            self._next_poll = time.monotonic() + POD_POLL_SECONDS
        return Verdict(readiness.state == "ready", readiness.text, reason, readiness.recheck_after)

    def _pods(self) -> list[Object]:
        """Return the pods of the job, the newest last; none if they can't be listed."""
        path = core_path("pods", self._target.namespace)
        query = [("labelSelector", f"{NAME_LABEL}={self._target.name}")]
        try:
            pods = items(self._client.request("GET", path, query=query, deadline=self._context.deadline), "items")
        except KubernetesError as error:
            self._context.log.warn(f"the pods of {self._target} can't be listed: {error.message}")
            return []
        return sorted(pods, key=lambda pod: text(pod, "metadata", "creationTimestamp"))

    def _check(self, code: int | None, log: Log | str, status: str) -> list[Check]:
        """Return the checks of `expect`; none if it is omitted."""
        expect = self._args.expect
        checks: list[Check] = []
        if isinstance(expect, UnsetType):
            return checks
        if not isinstance(expect.exit_code, UnsetType):
            checks += (
                [Check.failed("an exit code", f"none ({status})", where="exitCode")]
                if code is None
                else check_integer(expect.exit_code, code, where="exitCode")
            )
        if not isinstance(expect.log, UnsetType):
            if isinstance(log, str):
                checks.append(Check.failed("to be read", f"an error: {log}", where="log"))
            elif log.cut:
                checks.append(too_long("the pod"))
            else:
                checks += check_text(
                    expect.log,
                    log.text,
                    where="log",
                    redact=self._context.secrets.redact,
                    workdir=self._context.workdir,
                )
        return checks


def exit_code_of(pod: Object) -> int | None:
    """Return the exit code of a pod's default container; None if it has not terminated."""
    statuses = items(pod, "status", "containerStatuses")
    container = container_of(pod) if statuses else ""
    for status in statuses:
        code = at(status, "state", "terminated", "exitCode")
        if text(status, "name") == container and isinstance(code, int):
            return code
    return None


def job_of(args: RunJob, context: ext_sdk.Context) -> Object:
    """Return the manifest of the job. Raises OperationFailed or InvalidArgs if the given manifest is not a Job."""
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
        jobs = [item for item, _ in objects_in(args.manifest, "manifest", context, expand=args.expand)]
    except (NotYaml, NotAnObject) as error:
        raise ext_sdk.OperationFailed("the manifest can't be used", error=str(error)) from error
    kinds = [f"{text(job, 'apiVersion')} {text(job, 'kind')}" for job in jobs]
    if kinds != ["batch/v1 Job"]:
        raise ext_sdk.InvalidArgs("manifest", f"expected one batch/v1 Job, found {', '.join(kinds) or 'nothing'}")
    metadata = members(jobs[0], "metadata") | name
    generated = {} if {"name", "generateName"} & metadata.keys() else {"generateName": "job-"}
    return jobs[0] | {"metadata": metadata | generated}


OPERATIONS = (
    ext_sdk.Operation(
        "run-job",
        run_job,
        {"image": "busybox:1.36", "command": ["sh", "-c", "echo it ran"], "expect": {"exitCode": 0}, "timeout": "25s"},
        outputs=(
            {
                "name": "name of the Job",
                "namespace": "namespace of the Job",
                "pod": "name of its last pod",
                "log": "log of its last pod; empty if it cannot be read",
                "exitCode?": "exit code of its last pod, if it has ended",
                "succeeded?": "`true` if it was completed, if it has ended",
                "seconds": "duration in seconds",
            }
            | DONE
            | FAILED_WAIT
            | REPORT
            | REFUSAL
        ),
        title="Run Job",
    ),
)
