"""Operation `diagnostics`: write the state of a namespace to a file: objects, pods, events and logs."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import Forbidden, error_context
from ext_kubernetes.config import ClusterArgs
from ext_kubernetes.manifests.bulk import catching, run_parallel
from ext_kubernetes.objects.fields import FIELDS, PLACEHOLDER, conditions_of, items, members, named, number, text
from ext_kubernetes.objects.readiness import describe_container, readiness_of
from ext_kubernetes.pods import read_log
from ext_kubernetes.targets import TimeLimit, namespace_of
from ext_kubernetes.waiting.failure_report import describe_age, event_time, involved
from ext_sdk.core.text import counted
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.objects.yaml_loader import Object


class Diagnostics(ClusterArgs):
    """Arguments of `diagnostics`."""

    namespace: Annotated[
        str, Meta(description="Namespace; default: the one created by create-namespace, or the configured one")
    ] = ""
    file: Annotated[
        str, Meta(description="File in the workdir to write or replace; default: a new file in the artifacts folder")
    ] = ""
    tail: Annotated[
        int, Meta(ge=0, le=1000, description="Number of last lines of each container's log; 0: no logs")
    ] = 20
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")


MOST_PODS = 50  # whose logs are read
MOST_OBJECTS = 1000
MOST_EVENTS = 1000
MOST_PROBLEMS = 20  # in the outputs
LONGEST_LINE = 1000  # characters
LONGEST_LOG = 16_384  # characters of one container
LONGEST_FILE = 2 * 1024 * 1024  # characters
SHORTEST_SECRET = 6  # characters; shorter ones occur in other words
SHORTEST_LINE = 16  # characters of a line in a Secret with several
REPEATED_KINDS = frozenset({"events.events.k8s.io"})  # the same objects as those of another group
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # a terminal would obey them


def diagnostics(args: Diagnostics, context: ext_sdk.Context) -> ext_sdk.Result:
    """Write the state of a namespace to a file, to find out later why a task failed.

    The file has the problems, the conditions of all objects, the containers of pods, the events in their order, and the
    last lines of logs, also of containers before their last restart. Values of Secrets are replaced.
    """
    client = client_for(context, args)
    namespace = namespace_of(context, client, args.namespace)
    state = NamespaceState.read(namespace, context, client)
    problems = list(state.problems())

    sections = {
        "Problems": problems or ["none found"],
        "Not read": state.unread,
        "Objects": [line for item in state.objects[:MOST_OBJECTS] for line in describe_object(item)],
        "Pods": [line for pod in state.pods for line in describe_pod(pod)],
        "Events, the oldest first": list(map(event_line, state.events[-MOST_EVENTS:])),
        "Logs": list(log_lines(state.pods[:MOST_PODS], args.tail, context, client)) if args.tail else [],
    }
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    lines = [f"Diagnostics of namespace {namespace} at {now}"]
    for title, found in sections.items():
        lines += ["", f"== {title} ==", *found] if found else []
    # Lines are shortened last: half a secret would not be replaced.
    content = "\n".join(map(cut_line, clean("\n".join(lines), state, context).split("\n")))
    if len(content) > LONGEST_FILE:
        content = f"{content[:LONGEST_FILE]}\n… the rest is left out"
    path = context.artifact(f"diagnostics-{namespace}.txt") if not args.file else None
    if path:
        path.write_text(content + "\n", encoding="utf-8", errors="replace")
    else:
        workdir = Workdir(context.workdir)
        with os_errors("write the diagnostics", args.file):
            workdir.write(args.file, f"{content}\n".encode(errors="replace"), parents=True)
            path = workdir.path(args.file)
    pods, events = counted(len(state.pods), "pod"), counted(len(state.events), "event")
    shown = [cut_line(clean(line, state, context)) for line in problems[:MOST_PROBLEMS]]
    summary = f"{counted(len(problems), 'problem')}: {shown[0]}" if shown else "no problems found"
    return ext_sdk.Result.ok(
        f"Wrote the state of {counted(len(state.objects), 'object')}, {pods} and {events} in namespace {namespace} to "
        f"{args.file or 'a file'}; {summary}",
        outputs={
            "file": str(path),
            "problems": "\n".join(shown),
            "objects": len(state.objects),
            "pods": len(state.pods),
            "events": len(state.events),
        },
    )


class NamespaceState(NamedTuple):
    """Objects of a namespace.

    Attributes:
        objects: all but pods and events, by kind and name, after the namespace itself.
        events: the oldest first.
        unread: kinds that could not be read, with the reason.
        secrets: values of Secrets, the longest first.
    """

    objects: list[Object]
    pods: list[Object]
    events: list[Object]
    unread: list[str]
    secrets: list[str]

    @classmethod
    def read(cls, namespace: str, context: ext_sdk.Context, client: Client) -> NamespaceState:
        """Read all kinds. Raises KubernetesError if the namespace does not exist, or no kind can be read."""
        found: list[Object] = []
        path = core_path("namespaces", name=namespace)
        try:
            with error_context(f"failed to read namespace {namespace}"):
                found.append(members(client.request("GET", path, deadline=context.deadline)))
        except Forbidden:  # a user may be allowed to read only what is in it
            pass
        listable = client.discovery.listable(context.deadline)
        kinds = [kind for kind in listable if kind.namespaced and kind.name not in REPEATED_KINDS]

        def read(kind: Resource) -> list[Object]:
            check_time(context)
            return client.list(kind, namespace, deadline=context.deadline)

        unread: list[tuple[Resource, ext_sdk.OperationFailed]] = []
        for kind, listed in zip(kinds, run_parallel(catching(read), kinds), strict=True):
            if isinstance(listed, ext_sdk.OperationFailed):
                unread.append((kind, listed))
            else:
                found += listed
        if unread and len(unread) == len(kinds):
            raise unread[0][1]
        pods, events = ([item for item in found if text(item, "kind") == kind] for kind in ("Pod", "Event"))
        objects = [item for item in found if text(item, "kind") not in {"Pod", "Event", "PodMetrics"}]
        objects.sort(key=lambda item: (text(item, "kind") != "Namespace", named(item)))
        public = {text(item, "metadata", "name") for item in found}  # names occur everywhere, and hide nothing
        return cls(
            objects,
            sorted(pods, key=named),
            sorted(events, key=lambda event: event_time(event).rstrip("Z")),  # with and without fractions of seconds
            [f"{kind.name}: {failure.error}" for kind, failure in unread],
            sorted(set(secret_values(objects)) - public, key=len, reverse=True),
        )

    def problems(self) -> Iterator[str]:
        """Yield objects that are not ready, containers that were restarted, and warnings, each warning once."""
        for item in (*self.objects, *self.pods):
            readiness = readiness_of(item)
            restarted = [status for status in container_statuses(item) if number(status, "restartCount")]
            if readiness.state != "ready":
                yield f"{named(item)}: {readiness.text}"
            elif restarted:
                yield f"{named(item)}: {'; '.join(map(describe_container, restarted))}"
        warnings = (event for event in self.events if text(event, "type") == "Warning")
        yield from {(text(event, "reason"), involved(event)): event_line(event) for event in warnings}.values()


def clean(content: str, state: NamespaceState, context: ext_sdk.Context) -> str:
    """Return a text without secrets, such as values of Secrets, and without control characters."""
    for value in state.secrets:
        content = content.replace(value, PLACEHOLDER)
    return CONTROL.sub("\ufffd", context.secrets.redact(content))


def check_time(context: ext_sdk.Context) -> None:
    """Raise OperationFailed if the time is over."""
    if context.deadline.expired:
        raise ext_sdk.OperationFailed("not read before the deadline", error="not read before the deadline")


def secret_values(objects: list[Object]) -> Iterator[str]:
    """Yield the values of Secrets, encoded and decoded, and the lines of long ones."""
    for item in objects:
        for value in members(item, FIELDS[0]).values() if text(item, "kind") == "Secret" else ():
            encoded = str(value)
            try:
                decoded = base64.b64decode(encoded, validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                decoded = ""
            lines = [line for line in decoded.splitlines() if len(line) >= SHORTEST_LINE]
            yield from (part for part in (encoded, decoded.strip(), *lines) if len(part) >= SHORTEST_SECRET)


def container_statuses(pod: Object) -> list[Object]:
    """Return the statuses of all containers of a pod; none for another object."""
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [status for kind in kinds for status in items(pod, "status", kind)]


def describe_object(item: Object) -> list[str]:
    """Return the age, readiness and conditions of an object, in lines."""
    metadata = members(item, "metadata")
    readiness = readiness_of(item).text
    head = f"{named(item)}: {describe_age(text(metadata, 'creationTimestamp'))} old; {readiness}"
    if deleted := text(metadata, "deletionTimestamp"):
        finalizers = metadata.get("finalizers")
        names = ", ".join(map(str, finalizers)) if isinstance(finalizers, list) else "none"
        head += f" since {deleted}, finalizers: {names}"
    return [head, *(f"  {condition}" for condition in conditions_of(item) if str(condition) != readiness)]


def describe_pod(pod: Object) -> list[str]:
    """Return the state of a pod and of its containers, in lines."""
    head, *conditions = describe_object(pod)
    node = text(pod, "spec", "nodeName") or "none"
    place = f"  phase {text(pod, 'status', 'phase')}, node {node}"
    containers = map(describe_container, container_statuses(pod))
    return [head, place, *conditions, *(f"  {line}" for line in containers if line not in head)]


def event_line(event: Object) -> str:
    """Return an event with the time at which it last occurred, and its object, on one line."""
    count = number(event, "series", "count") or number(event, "count")
    times = f" ({count} times)" if count > 1 else ""
    what = f"{text(event, 'type')} {text(event, 'reason')}{times}"
    return f"{event_time(event)} {involved(event)}: {what}: {' '.join(text(event, 'message').split())}"


def log_lines(pods: list[Object], tail: int, context: ext_sdk.Context, client: Client) -> Iterator[str]:
    """Yield the last lines of the logs of all containers that have started, also of their previous runs."""
    started = [(pod, status) for pod in pods for status in container_statuses(pod)]
    wanted = [(*pair, True) for pair in started if members(pair[1], "lastState", "terminated")]
    wanted += [(*pair, False) for pair in started if {"running", "terminated"} & members(pair[1], "state").keys()]
    wanted.sort(key=lambda one: (named(one[0]), text(one[1], "name"), not one[2]))

    def read(one: tuple[Object, Object, bool]) -> str:
        pod, status, previous = one
        check_time(context)
        query = [("tailLines", str(tail)), *([("previous", "true")] if previous else [])]
        log = read_log(pod, text(status, "name"), query, context, client).text.removesuffix("\n")
        if len(log) <= LONGEST_LOG:
            return log
        # Of a line that does not fit, nothing is shown: half a secret would not be replaced.
        return log[-LONGEST_LOG:].partition("\n")[2] or f"(a line of over {LONGEST_LOG:,} characters)"

    for (pod, status, previous), log in zip(wanted, run_parallel(catching(read), wanted), strict=True):
        run = "before its last restart" if previous else "now"
        yield f"Pod/{text(pod, 'metadata', 'name')}, container {text(status, 'name')} {run}:"
        if isinstance(log, ext_sdk.OperationFailed):
            yield f"  not read: {log.error}"
            continue
        yield from (f"  | {line}" for line in log.split("\n")) if log else ["  (empty)"]


def cut_line(line: str) -> str:
    """Return a line, or the beginning of a long one."""
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} … ({len(line):,} characters)"


OPERATIONS = (
    ext_sdk.Operation(
        "diagnostics",
        diagnostics,
        {"file": "diagnostics.txt"},
        outputs={
            "file": "path of the file",
            "problems": "objects that are not ready, restarted containers and warnings, one per line, up to 20",
            "objects": "number of objects, without pods and events",
            "pods": "number of pods",
            "events": "number of events",
        },
        title="Write diagnostics",
    ),
)
