"""Report of a wait that failed: status, conditions, containers, events and log lines of the objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import ext_sdk
from ext_kubernetes.api.errors import KubernetesError
from ext_kubernetes.api.paths import core_path
from ext_kubernetes.objects.conditions import conditions_of
from ext_kubernetes.objects.fields import age_of, items, members, named, number, text
from ext_kubernetes.objects.readiness import describe_containers
from ext_kubernetes.targets import namespace_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.paths import ApiPath
    from ext_kubernetes.objects.yaml_loader import Object

    from .waiter import WaitResult


MOST_OBJECTS = 3  # that are told in the error
MOST_EVENTS = 6  # of an object in the error; ten times as many in the file
MOST_PODS = 3
LONGEST_LINE = 400  # characters
LAST_SECONDS = 1.0  # for asking about pods and events, when the time is up and the host soon gives up
OWNERS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"})


def wait_failure(
    seen: WaitResult,
    wanted: str,
    context: ext_sdk.Context,
    client: Client,
    *,
    timeout: ext_sdk.Duration | None = None,
    outputs: Mapping[str, str | int | bool] | None = None,
    message: str = "",
    error: str = "",
    tell: bool = True,
) -> ext_sdk.Result:
    """The result of a wait that did not come to what was wanted.

    Args:
        seen: how it ended.
        wanted: such as `condition Ready=True`.
        context: of the call.
        client: asks for events and pods.
        timeout: as the user gave it.
        outputs: further ones.
        message: in place of the usual one.
        error: the first line, in place of the usual one.
        tell: about the objects that there are.
    """
    waited, target = seen.waited, seen.target
    status = waited.verdict.status if waited.verdict else "nothing"
    lines = [error or f"expected {target.where}: {wanted}; last found {status}{_how_long(seen, context, timeout)}"]
    if waited.hopeless:
        lines.append(f"given up early, for it will not become so by itself: {waited.hopeless}")
    if waited.problem is not None:
        lines.append(f"the last look failed: {waited.problem.error}")
    whole = list(lines)
    teller = _ObjectReporter(context, client, silent=waited.problem is not None)
    for index, item in enumerate(seen.objects[:20] if tell else ()):
        told, more = teller.tell(item)
        lines += told if index < MOST_OBJECTS else []
        whole += more
    if not seen.objects and waited.problem is None and waited.verdict:
        told = teller.events({"namespace": target.namespace, "name": target.name, "kind": target.resource.kind})
        missing = namespace_missing(target, client, ext_sdk.Deadline(LAST_SECONDS, context.deadline.stopped))
        lines += [missing or f"there {target.are} no {target.where}", *told[:MOST_EVENTS]]
        whole += told
    found = {"status": status, "attempts": waited.looks, "seconds": f"{waited.seconds:.1f}", **(outputs or {})}
    if seen.objects and tell:
        found["storyFile"] = _kept(whole, seen, context)
    summary = message or f"{target}: {wanted} not met"
    return ext_sdk.Result.failed(summary, error="\n".join(lines), outputs=found)


def _how_long(seen: WaitResult, context: ext_sdk.Context, timeout: ext_sdk.Duration | None) -> str:
    waited = seen.waited
    told = f", after {waited.seconds:.1f} s and {waited.looks} look{'s' if waited.looks > 1 else ''}"
    if waited.hopeless or timeout is None:
        return told
    if context.deadline.stopped.is_set():
        return f"{told}: the extension was told to end"
    if context.deadline.elapsed() < timeout.seconds - 0.5:  # the start of the extension takes part of the time
        return f"{told}: the host's time for a call ends before the timeout of {timeout}; wait in several steps"
    return told


def _kept(lines: Iterable[str], seen: WaitResult, context: ext_sdk.Context) -> str:
    """The whole story in a file. Returns its path."""
    texts = [*lines, "", *(json.dumps(_shown(item), indent=2, ensure_ascii=False) for item in seen.objects)]
    path = context.artifact(f"{str(seen.target).replace('/', '-')}.txt")
    path.write_text(context.secrets.redact("\n".join(texts) + "\n"), encoding="utf-8", errors="replace")
    return str(path)


def _shown(item: Object) -> Object:
    """An object for people: without the managers of its fields, and without what a Secret holds."""
    metadata = {key: value for key, value in members(item, "metadata").items() if key != "managedFields"}
    shown = item | {"metadata": metadata}
    if text(item, "kind") == "Secret":
        annotations = members(metadata, "annotations")
        shown["metadata"] = metadata | {"annotations": dict.fromkeys(annotations, "…")}
        shown |= {field: dict.fromkeys(members(item, field), "…") for field in ("data", "stringData") if field in item}
    return shown


class _ObjectReporter:
    """Tells about objects; what can't be asked for is left out: a story must not fail.

    Args:
        context: of the call.
        client: asks.
        silent: don't ask: the server does not answer.
    """

    def __init__(self, context: ext_sdk.Context, client: Client, *, silent: bool) -> None:
        self._client = client
        self._silent = silent
        # the time is up, and the host waits for the answer: a moment for this all the same, unless the extension ends
        self._deadline = ext_sdk.Deadline(LAST_SECONDS, context.deadline.stopped)

    def tell(self, item: Object) -> tuple[list[str], list[str]]:
        """The short and the whole story of an object."""
        metadata = members(item, "metadata")
        head = f"{named(item)}: {age_told(text(metadata, 'creationTimestamp'))} old"
        if text(metadata, "deletionTimestamp"):
            finalizers = metadata.get("finalizers")
            held = ", ".join(map(str, finalizers)) if isinstance(finalizers, list) else "nobody"
            head += f", being deleted for {age_told(text(metadata, 'deletionTimestamp'))}, held by finalizers: {held}"
        if phase := text(item, "status", "phase"):
            head += f", phase {phase}"
        lines = [head, *(f"  {one}{_since(one.since)}" for one in conditions_of(item) if one.is_trouble)]
        if text(item, "kind") == "Pod" and (containers := describe_containers(item)):
            lines.append(f"  {containers}")
        whole = [head, *(f"  {one}{_since(one.since)}" for one in conditions_of(item)), *lines[1:]]
        events = self.events(members(item, "metadata") | {"kind": text(item, "kind")})
        pods = self._pods(item)
        short = [*lines, *events[:MOST_EVENTS], *pods[:MOST_PODS]]
        return [line[:LONGEST_LINE] for line in short], [*whole, *events, *pods]

    def events(self, of: Mapping[str, object]) -> list[str]:
        """The events of an object, the latest first."""
        if not text(of, "name"):
            return []
        fields = {"involvedObject.name": text(of, "name"), "involvedObject.kind": text(of, "kind")}
        if uid := text(of, "uid"):
            fields["involvedObject.uid"] = uid
        selector = ",".join(f"{key}={value}" for key, value in fields.items())
        path = core_path("events", text(of, "namespace") or "default")
        return [f"  event: {event_told(one)}" for one in latest(self._list(path, ("fieldSelector", selector)))]

    def _pods(self, item: Object) -> list[str]:
        labels = members(item, "spec", "selector", "matchLabels")
        if text(item, "kind") not in OWNERS or not labels:
            return []
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        path = core_path("pods", text(item, "metadata", "namespace"))
        lines = []
        for pod in self._list(path, ("labelSelector", selector)):
            name, phase = text(pod, "metadata", "name"), text(pod, "status", "phase")
            if told := describe_containers(pod) or "; ".join(str(one) for one in conditions_of(pod) if one.is_trouble):
                lines.append(f"  pod {name}: phase {phase}; {told}")
        return lines

    def _list(self, path: ApiPath, query: tuple[str, str]) -> list[Object]:
        if self._silent or self._deadline.expired:
            return []
        try:
            return items(
                self._client.request("GET", path, query=[query], deadline=self._deadline, retry=False), "items"
            )
        except KubernetesError as error:
            self._silent = error.retryable
            return []


def latest(events: list[Object]) -> list[Object]:
    """Events, the latest first."""
    return sorted(events, key=event_time, reverse=True)[: MOST_EVENTS * 10]


def event_time(event: Object) -> str:
    """When it last happened."""
    series = text(event, "series", "lastObservedTime")
    return series or text(event, "lastTimestamp") or text(event, "eventTime") or text(event, "firstTimestamp")


def event_told(event: Object) -> str:
    """An event in one line."""
    count = number(event, "series", "count") or number(event, "count")
    times = f" ({count} times)" if count > 1 else ""
    reason, message = text(event, "reason"), text(event, "message").strip()
    return f"{age_told(event_time(event))} ago {text(event, 'type')} {reason}{times}: {message}"


def age_told(moment: str) -> str:
    """How long ago something was: `3 s`, `5 min`, `2 h`."""
    seconds = age_of(moment)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _since(moment: str) -> str:
    return f", for {age_told(moment)}" if moment else ""
