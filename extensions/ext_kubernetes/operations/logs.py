"""`logs`: what containers say, and whether it is what was expected."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.container_log import MEBIBYTE, MOST_BYTES, read_log, too_long
from ext_kubernetes.api.errors import Invalid, NotFound, error_context
from ext_kubernetes.objects.fields import text
from ext_kubernetes.polling import POLLING, Pace, Verdict, wait_until
from ext_kubernetes.targets import Pods, TargetArgs, container_of, containers_of, ended, missing_namespace_context
from ext_kubernetes.waiting.waiter import Selector, Timeout  # noqa: TC001 - msgspec reads them
from ext_sdk.expect import Check, Searcher, Text, check_text, failure_text, passed, summary

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object


MOST_PODS = 50  # whose logs are read

# What a server says, with status 400, of a container that has not said anything because it has not run.
NOT_YET = ("is waiting to start", "is not available", "PodInitializing", "ContainerCreating", "does not have a host")


class Logs(TargetArgs):
    """Whose logs, how much of them, and what to expect of them."""

    selector: Selector = ""
    container: Annotated[str, Meta(description="Of the pod; its default or first one where left out")] = ""
    all_containers: Annotated[bool, Meta(description="Those of all containers of a pod, one after the other")] = False
    tail: Annotated[Annotated[int, Meta(ge=0)] | UnsetType, Meta(description="Only so many lines, the last ones")] = (
        UNSET
    )
    since: Annotated[ext_sdk.Duration | UnsetType, Meta(description="Only what is not older, in whole seconds")] = UNSET
    previous: Annotated[bool, Meta(description="Of the container before its last restart")] = False
    timestamps: Annotated[bool, Meta(description="The time in front of each line")] = False
    prefix: Annotated[bool, Meta(description="[pod/NAME/CONTAINER] in front of each line")] = False
    follow: Annotated[
        bool,
        Meta(
            description="Read again until what `expect` says is so, such as a text that appears; without `expect`, "
            "until the containers have ended"
        ),
    ] = False
    expect: Annotated[Text | UnsetType, Meta(description="What the log must be: a text that it equals, or more")] = (
        UNSET
    )
    timeout: Timeout = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.container and self.all_containers:
            raise ValueError("expected one of `container` and `allContainers`, found both")
        if isinstance(self.since, ext_sdk.Duration) and self.since.seconds <= 0:
            raise ValueError(f"since: expected a duration over 0, found {self.since}")

    @property
    def query(self) -> list[tuple[str, str]]:
        """What a server is asked for."""
        query = [("tailLines", str(self.tail))] if self.tail is not UNSET else []
        if isinstance(self.since, ext_sdk.Duration):
            query.append(("sinceSeconds", str(math.ceil(self.since.seconds))))
        return query + [(name, "true") for name in ("previous", "timestamps") if getattr(self, name)]


def logs(args: Logs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Read the logs of a pod, of those with some labels, or of those of a Deployment, Job, Service and the like.

    Pods that are being deleted are left out as long as others exist. With `follow`, reads again until they are as
    expected. Of a container's log, or its `tail`, the first 8 MiB are read; `expect` fails if there are more.
    """
    if args.selector and not (args.resource or args.kind):
        args = _of_pods(args)
    client = client_for(context)
    with Searcher() as searcher:
        reading = _Reading(args, context, client, searcher)
        target = reading.pods.target
        told = missing_namespace_context(target, client, context.deadline)
        with error_context(f"failed to read the logs of {target.where}"), told:
            return reading.followed() if args.follow else reading.once()


def _of_pods(args: Logs) -> Logs:
    import msgspec

    return msgspec.structs.replace(args, resource="pods")


class _Reading:
    """One call: what was read last, and what it comes to."""

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

    def once(self) -> ext_sdk.Result:
        """Read what there is."""
        self._read()
        if not self._found:
            where = f"labels {self._args.selector}" if self._args.selector else self.pods.target.where
            raise ext_sdk.OperationFailed("no pods found", error=f"expected pods of {where}, found none")
        return self._concluded()

    def followed(self) -> ext_sdk.Result:
        """Read until it is as expected, or can't become so, or until the deadline."""
        deadline = self._context.deadline
        waited = wait_until(self._look, deadline, deadline.wait, pace=self._pace)
        if waited.done:
            return self._concluded()
        status = waited.verdict.status if waited.verdict else "nothing"
        why = f"{waited.hopeless}; " if waited.hopeless else ""
        problem = f"; the last look failed: {waited.problem.error}" if waited.problem else ""
        wanted = "as expected" if self._args.expect is not UNSET else "at their end"
        return ext_sdk.Result.failed(
            f"the logs of {self.pods.target} are not {wanted}",
            error=f"after {waited.seconds:.1f} s: {why}{status}{self._cut_told()}{problem}",
            outputs=self._outputs(),
        )

    def _look(self, age: float) -> Verdict:
        del age
        try:
            self._read()
        except (NotFound, Invalid) as error:
            if isinstance(error, Invalid) and not any(word in error.text for word in NOT_YET):
                raise
            self._found, self._log = [], ""
            return Verdict(done=False, status=error.text)
        over = bool(self._found) and all(map(ended, self._found))
        if self._args.expect is UNSET:
            return Verdict(done=over, status=f"{len(self._log.splitlines())} lines, and they go on")
        if not self._found:
            return Verdict(done=False, status="no pods found")
        good = passed(self._checks)
        hopeless = (
            "the log is too long to be checked"
            if self._cut
            else "the containers have ended, so there will be no more"
            if over
            else ""
        )
        return Verdict(good, failure_text(self._checks), "" if good else hopeless)

    def _pace(self) -> Pace:
        """Long logs are read less often."""
        return POLLING._replace(longest=POLLING.longest * (1 + len(self._log) // 100_000))

    def _read(self) -> None:
        self._found = sorted(self.pods.see()[:MOST_PODS], key=lambda pod: text(pod, "metadata", "name"))
        self._log = "".join(self._texts())
        if self._args.expect is not UNSET:
            redact, searcher = self._context.secrets.redact, self._searcher
            self._checks = (
                [too_long(", ".join(self._cut))]
                if self._cut
                else check_text(self._args.expect, self._log, where="log", searcher=searcher, redact=redact)
            )

    def _texts(self) -> list[str]:
        texts = []
        self._cut = []
        for pod in self._found:
            every = self._args.all_containers
            for container in containers_of(pod) if every else [container_of(pod, self._args.container)]:
                read, cut = read_log(pod, container, self._args.query, self._context, self._client)
                place = f"pod/{text(pod, 'metadata', 'name')}/{container}"
                self._cut += [place] if cut else []
                name = f"[{place}] " if self._args.prefix else ""
                texts.append("".join(f"{name}{line}" for line in read.splitlines(keepends=True)))
                if read and not read.endswith("\n"):
                    texts.append("\n")
        return texts

    def _concluded(self) -> ext_sdk.Result:
        lines = len(self._log.splitlines())
        message = f"Logs of {self.pods.target}: {lines} line{'' if lines == 1 else 's'}{self._cut_told()}"
        if self._args.expect is UNSET:
            return ext_sdk.Result.ok(message, outputs=self._outputs())
        message = f"{message}: {summary(self._checks)}"
        if passed(self._checks):
            return ext_sdk.Result.ok(message, outputs=self._outputs())
        return ext_sdk.Result.failed(message, error=failure_text(self._checks), outputs=self._outputs())

    def _cut_told(self) -> str:
        if not self._cut:
            return ""
        advice = "`tail` or `since` give the last ones"
        return f" (of {', '.join(self._cut)} only the first {MOST_BYTES // MEBIBYTE} MiB were read; {advice})"

    def _outputs(self) -> dict[str, str | int | bool]:
        return {
            "log": self._log,
            "lines": len(self._log.splitlines()),
            "pods": "\n".join(text(pod, "metadata", "name") for pod in self._found),
            **({"cut": "\n".join(self._cut)} if self._cut else {}),
        }


OPERATIONS = (
    ext_sdk.Operation(
        "logs", logs, {"resource": "pod/nginx", "follow": True, "expect": {"contains": "ready"}, "timeout": "20s"}
    ),
)
