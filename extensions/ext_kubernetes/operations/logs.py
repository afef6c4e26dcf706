"""Operation `logs`: logs of containers, and checks of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import Invalid, NotFound, error_context
from ext_kubernetes.config import Refusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.objects.fields import text
from ext_kubernetes.pods import (
    MEBIBYTE,
    MOST_BYTES,
    Container,
    Pods,
    container_of,
    containers_of,
    ended,
    read_log,
    too_long,
)
from ext_kubernetes.polling import POLLING, Pace, Verdict, wait_until
from ext_kubernetes.targets import TargetArgs, missing_namespace_context
from ext_kubernetes.waiting.waiter import Selector, Timeout  # noqa: TC001 - msgspec reads them
from ext_sdk.core.text import counted
from ext_sdk.expect import Check, Searcher, TextExpectation, check_text, conclude, failure_text, passed

from . import REFUSAL

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


MOST_PODS = 50  # whose logs are read

# Messages of status 400 for a container that has no log because it has not started.
NOT_STARTED = (
    "is waiting to start",
    "is not available",
    "PodInitializing",
    "ContainerCreating",
    "does not have a host",
)


class LogExpectation(TextExpectation):
    """Expectation on a log; all given fields must hold."""

    failure: Annotated[
        Refusal | UnsetType, Meta(description="Refusal of the API server that must occur, instead of all other checks")
    ] = UNSET

    def __post_init__(self) -> None:
        if self.failure is UNSET:
            super().__post_init__()
        elif others := self.given(besides=("failure", "format", "lists", "ignoreCase")):
            raise ValueError(f"`failure` expects a refusal, so it excludes {', '.join(others)}")


class Logs(TargetArgs):
    """Arguments of `logs`."""

    selector: Selector = ""
    container: Container = ""
    all_containers: Annotated[bool, Meta(description="Read the logs of all containers of a pod, one by one")] = False
    tail: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType, Meta(description="Number of lines to read from the end; default: all")
    ] = UNSET
    since: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Maximum age of lines, in whole seconds")] = UNSET
    previous: Annotated[bool, Meta(description="Read the log of the container before its last restart")] = False
    timestamps: Annotated[bool, Meta(description="Prefix each line with its time")] = False
    prefix: Annotated[bool, Meta(description="Prefix each line with [pod/NAME/CONTAINER]")] = False
    follow: Annotated[
        bool,
        Meta(
            description="Read repeatedly until `expect` is met, such as a text that appears; without `expect`, until "
            "the containers have ended"
        ),
    ] = False
    expect: Annotated[str | LogExpectation | UnsetType, Meta(description="Expected log: the exact text, or checks")] = (
        UNSET
    )
    timeout: Timeout = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        if self.container and self.all_containers:
            raise ValueError("expected one of `container` and `allContainers`, found both")
        if isinstance(self.since, ext_sdk.Duration) and self.since.seconds <= 0:
            raise ValueError(f"since: expected a duration over 0, found {self.since}")

    @property
    def query(self) -> list[tuple[str, str]]:
        """Return the query parameters of the log request."""
        query = [("tailLines", str(self.tail))] if self.tail is not UNSET else []
        if isinstance(self.since, ext_sdk.Duration):
            query.append(("sinceSeconds", str(math.ceil(self.since.seconds))))
        return query + [(name, "true") for name in ("previous", "timestamps") if getattr(self, name)]


def logs(args: Logs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Read the logs of a pod, of the pods of a label selector, or of the pods of a Deployment, Job, Service etc.

    Pods that are being deleted are omitted if there are others. With `follow`, the logs are read until they are as
    expected. At most the first 8 MiB of a container's log, or of its `tail`, are read; `expect` fails if there is more.
    """
    if args.selector and not (args.resource or args.kind):
        args = msgspec.structs.replace(args, resource="pods")
    client = client_for(context, args)
    if isinstance(args.expect, LogExpectation) and args.expect.failure is not UNSET:
        args = msgspec.structs.replace(args, expect=UNSET, follow=False)  # `run_operation` checks the refusal
    with Searcher() as searcher:
        reader = _LogReader(args, context, client, searcher)
        target = reader.pods.target
        hint = missing_namespace_context(target, client, context.deadline)
        with error_context(f"failed to read the logs of {target.where}"), hint:
            return reader.follow() if args.follow else reader.read_once()


class _LogReader:
    """One call: the logs that were read last, and the checks of them."""

    def __init__(self, args: Logs, context: ext_sdk.Context, client: Client, searcher: Searcher) -> None:
        self._args = args
        self._context = context
        self._client = client
        self._searcher = searcher
        self.pods = Pods(args, args.selector, context, client)
        self._log = ""
        self._cut: list[str] = []
        self._found: list[Object] = []
        self._checks: list[Check] = []

    def read_once(self) -> ext_sdk.Result:
        """Read the present logs. Raises OperationFailed without pods."""
        self._read()
        if not self._found:
            where = f"labels {self._args.selector}" if self._args.selector else self.pods.target.where
            raise ext_sdk.OperationFailed("no pods found", error=f"expected pods of {where}, found none")
        return self._result()

    def follow(self) -> ext_sdk.Result:
        """Read until the logs are as expected or can't become so, or until the deadline."""
        deadline = self._context.deadline
        outcome = wait_until(self._poll, deadline, pace=self._pace)
        if outcome.done:
            return ext_sdk.conclude_wait(self._result(), self._args.on_timeout, timed_out=False)
        status = outcome.verdict.status if outcome.verdict else "nothing"
        lines = [status]
        lines += [f"gave up early: {outcome.failed_reason}"] if outcome.failed_reason else []
        lines += [f"the last poll failed: {outcome.last_error.error}"] if outcome.last_error else []
        expected = "as expected" if self._args.expect is not UNSET else "at their end"
        failure = ext_sdk.Result.failed(
            f"the logs of {self.pods.target} are not {expected}",
            error="\n".join([*lines, f"after {outcome.seconds:.1f} s{self._describe_cut()}"]),
            outputs=self._outputs(),
        )
        timed_out = outcome.timed_out and not deadline.stopped.is_set()
        return ext_sdk.conclude_wait(failure, self._args.on_timeout, timed_out=timed_out, last_seen=status)

    def _poll(self, age: float) -> Verdict:
        del age
        try:
            self._read()
        except (NotFound, Invalid) as error:
            if isinstance(error, Invalid) and not any(text in error.text for text in NOT_STARTED):
                raise
            self._found, self._log = [], ""
            return Verdict(done=False, status=error.text)
        over = bool(self._found) and all(map(ended, self._found))
        if self._args.expect is UNSET:
            return Verdict(done=over, status=f"{len(self._log.splitlines())} lines, and the containers still run")
        if not self._found:
            return Verdict(done=False, status="no pods found")
        if passed(self._checks):
            return Verdict(done=True, status="")
        reason = "the containers have ended, so the logs are complete" if over else ""
        reason = "the log is too long to be checked" if self._cut else reason
        return Verdict(done=False, status=failure_text(self._checks), failed_reason=reason)

    def _pace(self) -> Pace:
        """Return longer pauses for longer logs."""
        return POLLING._replace(longest=POLLING.longest * (1 + len(self._log) // 100_000))

    def _read(self) -> None:
        self._found = sorted(self.pods.read()[:MOST_PODS], key=lambda pod: text(pod, "metadata", "name"))
        texts = []
        self._cut = []
        for pod in self._found:
            every = self._args.all_containers
            for container in containers_of(pod) if every else [container_of(pod, self._args.container)]:
                log, cut = read_log(pod, container, self._args.query, self._context, self._client)
                place = f"pod/{text(pod, 'metadata', 'name')}/{container}"
                self._cut += [place] if cut else []
                prefix = f"[{place}] " if self._args.prefix else ""
                texts.append("".join(f"{prefix}{line}" for line in log.splitlines(keepends=True)))
                if log and not log.endswith("\n"):
                    texts.append("\n")
        self._log = "".join(texts)
        if self._args.expect is not UNSET:
            redact, searcher = self._context.secrets.redact, self._searcher
            self._checks = (
                [too_long(", ".join(self._cut))]
                if self._cut
                else check_text(
                    self._args.expect,
                    self._log,
                    where="log",
                    searcher=searcher,
                    redact=redact,
                    workdir=self._context.workdir,
                )
            )

    def _result(self) -> ext_sdk.Result:
        lines = counted(len(self._log.splitlines()), "line")
        message = f"Logs of {self.pods.target}: {lines}{self._describe_cut()}"
        if self._args.expect is UNSET:
            return ext_sdk.Result.ok(message, outputs=self._outputs())
        return conclude(self._checks, done=message, outputs=self._outputs())

    def _describe_cut(self) -> str:
        if not self._cut:
            return ""
        limit = f"only the first {MOST_BYTES // MEBIBYTE} MiB of {', '.join(self._cut)} were read"
        return f" ({limit}; set `tail` or `since` to read the last lines)"

    def _outputs(self) -> Outputs:
        return {
            "log": self._log,
            "lines": len(self._log.splitlines()),
            "pods": "\n".join(text(pod, "metadata", "name") for pod in self._found),
            **({"cut": "\n".join(self._cut)} if self._cut else {}),
        }


OPERATIONS = (
    ext_sdk.Operation(
        "logs",
        logs,
        {"resource": "pod/nginx", "follow": True, "expect": {"contains": "ready"}, "timeout": "20s"},
        outputs=(
            {
                "log": "the logs, one after the other",
                "lines": "number of lines",
                "pods": "names of the pods, one per line",
                "cut?": "containers with a log over the limit, one per line",
                "done?": "as in `wait`, with `follow`",
            }
            | REFUSAL
        ),
        title="Read logs",
        read_only=True,
    ),
)
