"""Report of a wait that failed: status, conditions, containers, events and log lines of the objects."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import ext_sdk
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import KubernetesError
from ext_kubernetes.objects.fields import age_of, conditions_of, items, members, named, number, text
from ext_kubernetes.objects.readiness import crashed_containers, describe_containers, readiness_of
from ext_kubernetes.targets import namespace_missing
from ext_sdk.expect.check import section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import ApiPath
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target

    from .waiter import WaitResult

    class WaitLimits(Protocol):
        """Arguments of an operation that waits."""

        @property
        def timeout(self) -> ext_sdk.Duration: ...

        @property
        def on_timeout(self) -> ext_sdk.OnTimeout: ...


MOST_OBJECTS = 3  # in the error
MOST_FILE_OBJECTS = 20  # in the file
MOST_EVENTS = 6  # of an object in the error; ten times as many in the file
MOST_PODS = 3
MOST_LOGS = 3  # of containers that crash, in a report
LOG_LINES = 5
LOG_BYTES = 64 * 1024  # of the last lines of a log
LONGEST_LINE = 400  # characters
LAST_SECONDS = 1.0  # for events and pods, after the deadline: the host soon gives up
MOST_WAITS = 32  # concurrent waits for the objects of one operation
OWNERS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"})


def wait_failure(
    result: WaitResult,
    expected: str,
    context: ext_sdk.Context,
    client: Client,
    args: WaitLimits,
    *,
    outputs: Outputs | None = None,
    message: str = "",
    error: str = "",
    describe: bool = True,
) -> ext_sdk.Result:
    """Return the result of an operation whose wait did not succeed, with the output `done: false`.

    Args:
        expected: the state that was waited for, such as `condition Ready=True`.
        message: replaces the default message.
        error: replaces the default first line of the error.
        describe: describe the objects that exist.
    """
    outcome, target = result.outcome, result.target
    status = outcome.verdict.status if outcome.verdict else "nothing"
    lines = [
        error
        or f"expected {target.where}: {expected}; last found {status}{duration_text(result, context, args.timeout)}"
    ]
    if outcome.failed_reason:
        reason = "" if outcome.failed_reason in lines[0] else f": {outcome.failed_reason}"
        lines.append(f"gave up early, because this cannot change without intervention{reason}")
    if outcome.last_error is not None:
        lines.append(f"the last poll failed: {outcome.last_error.error}")
    report = list(lines)
    reporter = _ObjectReporter(context, client, silent=outcome.last_error is not None)
    objects = sorted(result.objects if describe else (), key=lambda item: readiness_of(item).state == "ready")
    for index, item in enumerate(objects[:MOST_FILE_OBJECTS]):  # those that are not ready first
        short, complete = reporter.describe(item)
        lines += short if index < MOST_OBJECTS else []
        report += complete
    if not result.objects and outcome.last_error is None and outcome.verdict:
        events = reporter.events({"namespace": target.namespace, "name": target.name, "kind": target.resource.kind})
        missing = namespace_missing(target, client, ext_sdk.Deadline(LAST_SECONDS, context.deadline.stopped))
        lines += [missing or f"{target.where} not found", *events[:MOST_EVENTS]]
    all_outputs = {"status": status, "attempts": outcome.polls, "seconds": f"{outcome.seconds:.1f}", **(outputs or {})}
    if result.objects and describe:
        # `storyFile` is the previous name of `reportFile`: tasks may still use it.
        all_outputs["reportFile"] = all_outputs["storyFile"] = _write_report(report, result, context)
    summary = message or f"{target}: {expected} not met"
    failure = ext_sdk.Result.failed(summary, error="\n".join(lines), outputs=all_outputs)
    timed_out = outcome.timed_out and not context.deadline.stopped.is_set()
    return ext_sdk.conclude_wait(failure, args.on_timeout, timed_out=timed_out, last_seen=status)


def wait_until_ready(
    targets: Sequence[Target],
    context: ext_sdk.Context,
    client: Client,
    args: WaitLimits,
    *,
    outputs: Outputs,
    message: str,
) -> ext_sdk.Result | None:
    """Wait until all objects are ready; return the result of the operation for the first one that is not, or None.

    Args:
        outputs: of the operation, in addition to those of the wait.
        message: of a failure; `{target}` is replaced by the object, and `{are}` by the verb.
    """
    from concurrent.futures import ThreadPoolExecutor

    from .waiter import IsReady, PodCheck, verdict_for_target, wait_for

    def wait(target: Target) -> WaitResult:
        predicate = verdict_for_target(target, IsReady(PodCheck(client, context.deadline)), "all")
        return wait_for(target, predicate, context, client)

    with ThreadPoolExecutor(min(MOST_WAITS, len(targets)) or 1, "ready") as pool:
        results = list(pool.map(wait, targets))
    pending = [result for result in results if not result.outcome.done]
    if not pending:
        return None
    result = min(pending, key=lambda result: result.outcome.timed_out)  # permanent failures first
    return wait_failure(
        result,
        "ready",
        context,
        client,
        args,
        outputs=outputs,
        message=message.format(target=result.target, are=result.target.are),
    )


def duration_text(result: WaitResult, context: ext_sdk.Context, timeout: ext_sdk.Duration) -> str:
    """Return the duration of a wait as text, with the reason if it is shorter than the timeout."""
    outcome = result.outcome
    duration = f", after {outcome.seconds:.1f} s and {outcome.polls} poll{'s' if outcome.polls > 1 else ''}"
    if outcome.failed_reason:
        return duration
    if context.deadline.stopped.is_set():
        return f"{duration}: the extension was stopped"
    if context.deadline.elapsed() < timeout.seconds - 0.5:  # the start of the extension takes part of the time
        limit = f"the host's call timeout is shorter than `timeout` ({timeout})"
        return f"{duration}: {limit}; set `onTimeout: ok` to continue in the next step"
    return duration


def _write_report(lines: Iterable[str], result: WaitResult, context: ext_sdk.Context) -> str:
    """Write the complete report and the objects to a file. Return its path."""
    texts = [*lines, ""]
    for item in result.objects:
        metadata = {key: value for key, value in members(item, "metadata").items() if key != "managedFields"}
        shown = item | {"metadata": metadata}
        if text(item, "kind") == "Secret":
            annotations = members(metadata, "annotations")
            shown["metadata"] = metadata | {"annotations": dict.fromkeys(annotations, "…")}
            shown |= {key: dict.fromkeys(members(item, key), "…") for key in ("data", "stringData") if key in item}
        texts.append(json.dumps(shown, indent=2, ensure_ascii=False))
    path = context.artifact(f"{str(result.target).replace('/', '-')}.txt")
    path.write_text(context.secrets.redact("\n".join(texts) + "\n"), encoding="utf-8", errors="replace")
    return str(path)


class _ObjectReporter:
    """Describes objects for the report; data that can't be read is omitted, because the report must not fail.

    Args:
        silent: send no requests, because the server does not respond.
    """

    def __init__(self, context: ext_sdk.Context, client: Client, *, silent: bool) -> None:
        self._client = client
        self._redact = context.secrets.redact
        self._silent = silent
        self._logs_left = MOST_LOGS
        # The deadline has passed, and the host waits for the result: take little time, and none if the extension stops.
        self._deadline = ext_sdk.Deadline(LAST_SECONDS, context.deadline.stopped)

    def _logs(self, pod: Object) -> list[str]:
        """Return the last log lines of the containers of a pod that crash, as indented lines."""
        lines: list[str] = []
        for name, previous in crashed_containers(pod):
            if self._silent or self._deadline.expired or not self._logs_left:
                break
            self._logs_left -= 1
            query = [("container", name), ("tailLines", str(LOG_LINES)), ("limitBytes", str(LOG_BYTES))]
            query += [("previous", "true")] if previous else []
            path = core_path("pods", text(pod, "metadata", "namespace"), text(pod, "metadata", "name"), "log")
            request = Request("GET", path, query, accept="*/*")
            try:
                data = self._client.ask(request, deadline=self._deadline, retry=False, limit=LOG_BYTES).data
            except KubernetesError as error:
                self._logs_left = 0 if error.retryable else self._logs_left  # the server does not reach the node
                continue
            if log := self._redact(data.decode("utf-8", "replace")).strip():
                when = "before it was restarted" if previous else "before it ended"
                ends = section(f"log of container {name} {when}", "\n".join(log.split("\n")[-LOG_LINES:]))
                lines += [f"    {line}" for line in ends.split("\n")]
        return lines

    def describe(self, item: Object) -> tuple[list[str], list[str]]:
        """Return the short and the complete description of an object, in lines."""
        metadata = members(item, "metadata")
        head = f"{named(item)}: {describe_age(text(metadata, 'creationTimestamp'))} old"
        if text(metadata, "deletionTimestamp"):
            finalizers = metadata.get("finalizers")
            held_by = ", ".join(map(str, finalizers)) if isinstance(finalizers, list) else "none"
            head += f", being deleted for {describe_age(text(metadata, 'deletionTimestamp'))}, finalizers: {held_by}"
        if phase := text(item, "status", "phase"):
            head += f", phase {phase}"
        conditions = [
            (
                condition.is_trouble,
                f"  {condition}{f', for {describe_age(condition.since)}' if condition.since else ''}",
            )
            for condition in conditions_of(item)
        ]
        events = self.events(metadata | {"kind": text(item, "kind")})
        containers = []
        if text(item, "kind") == "Pod" and (states := describe_containers(item)):
            containers = [f"  {states}", *self._logs(item)]
        pods: list[list[str]] = []
        if (labels := members(item, "spec", "selector", "matchLabels")) and text(item, "kind") in OWNERS:
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            path = core_path("pods", text(metadata, "namespace"))
            for pod in self._list(path, ("labelSelector", selector)):
                pod_troubles = "; ".join(str(condition) for condition in conditions_of(pod) if condition.is_trouble)
                if state := describe_containers(pod) or pod_troubles:
                    name, phase = text(pod, "metadata", "name"), text(pod, "status", "phase")
                    pods.append([f"  pod {name}: phase {phase}; {state}", *self._logs(pod)])
        troubles = [line for is_trouble, line in conditions if is_trouble]
        few, many = (list(chain.from_iterable(pods[:most])) for most in (MOST_PODS, None))
        short = [head, *troubles, *containers, *events[:MOST_EVENTS], *few]
        complete = [head, *(line for _, line in conditions), *containers, *events, *many]
        return [line[:LONGEST_LINE] for line in short], complete

    def events(self, of: Mapping[str, object]) -> list[str]:
        """Return the events of an object as lines, newest first; `of` has its name, namespace, kind and uid."""
        if not text(of, "name"):
            return []
        fields = {"involvedObject.name": text(of, "name"), "involvedObject.kind": text(of, "kind")}
        if uid := text(of, "uid"):
            fields["involvedObject.uid"] = uid
        selector = ",".join(f"{key}={value}" for key, value in fields.items())
        path = core_path("events", text(of, "namespace") or "default")
        events = sorted(self._list(path, ("fieldSelector", selector)), key=event_time, reverse=True)
        return [f"  event: {describe_event(event)}" for event in events[: MOST_EVENTS * 10]]

    def _list(self, path: ApiPath, query: tuple[str, str]) -> list[Object]:
        if self._silent or self._deadline.expired:
            return []
        try:
            listed = self._client.request("GET", path, query=[query], deadline=self._deadline, retry=False)
        except KubernetesError as error:
            self._silent = error.retryable
            return []
        return items(listed, "items")


def event_time(event: Object) -> str:
    """Return the time at which an event last occurred."""
    series = text(event, "series", "lastObservedTime")
    return series or text(event, "lastTimestamp") or text(event, "eventTime") or text(event, "firstTimestamp")


def describe_event(event: Object, *, named: bool = False) -> str:
    """Return an event as a line: `5 s ago Warning BackOff (3 times): …`; if named, `5 s ago Pod/web: Warning …`."""
    count = number(event, "series", "count") or number(event, "count")
    times = f" ({count} times)" if count > 1 else ""
    reason, message = text(event, "reason"), text(event, "message").strip()
    about = f"{involved(event)}: " if named else ""
    return f"{describe_age(event_time(event))} ago {about}{text(event, 'type')} {reason}{times}: {message}"


def involved(event: Object) -> str:
    """Return the kind and name of the object that an event is about."""
    return "/".join(text(event, "involvedObject", key) for key in ("kind", "name"))


def describe_age(timestamp: str) -> str:
    """Return the time since a timestamp: `3 s`, `5 min`, `2 h`."""
    seconds = age_of(timestamp)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
