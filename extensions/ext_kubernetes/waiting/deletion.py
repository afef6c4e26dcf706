"""Delete an object, and wait until it is gone."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import ext_sdk
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.errors import ApiError, NotFound
from ext_kubernetes.objects.fields import items, members, text
from ext_kubernetes.polling import Verdict, wait_until
from ext_kubernetes.targets import Target

from .informer import subscribe

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import ApiPath, Resource
    from ext_kubernetes.objects.yaml_loader import Object


def delete_one(
    resource: Resource, namespace: str, name: str, context: ext_sdk.Context, client: Client, *, uid: str = ""
) -> DeletedObject:
    """Delete an object, with a `uid` only that one. Raises NotFound if it does not exist, or was replaced."""
    path = resource.path(namespace, name)
    uid = uid or text(client.request("GET", path, deadline=context.deadline), "metadata", "uid")
    send_delete(path, {"propagationPolicy": "Foreground", "preconditions": {"uid": uid}}, context, client)
    return DeletedObject(resource, namespace, name, uid)


def send_delete(path: ApiPath, options: Object, context: ext_sdk.Context, client: Client) -> None:
    """Send a DELETE; all options are in the body, because an API server ignores those of the query if it has one."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions"} | options
    try:
        client.ask(Request("DELETE", path, body=body), deadline=context.deadline)
    except ApiError as error:
        if error.status == 409 and "UID in precondition" in error.text:  # deleted, and another one has its name
            raise NotFound(404, error.text, reason="NotFound", where=error.where) from error
        raise


MOST_NAMED = 10  # objects named in an error


class DeletedObject(NamedTuple):
    """An object that was deleted, or is to be; with an empty uid if it is not known."""

    resource: Resource
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.resource.kind}/{self.name}"


class DeletionTimedOut(ext_sdk.OperationFailed):
    """Objects still existed at the deadline.

    Args:
        timed_out: they were read, and may be gone later.
        last_seen: the reasons why they exist.
    """

    def __init__(self, message: str, *, error: str, left: list[DeletedObject], timed_out: bool, last_seen: str) -> None:
        super().__init__(message, error=error, outputs={"left": "\n".join(map(str, left))})
        self.left = left
        self.timed_out = timed_out
        self.last_seen = last_seen


def wait_for_deletion(deleted: list[DeletedObject], context: ext_sdk.Context, client: Client) -> None:
    """Wait until objects are gone.

    Raises:
        DeletionTimedOut: some exist at the deadline; the error names their finalizers and conditions.
        KubernetesError: the server rejects the requests.
    """
    if not deleted:
        return
    left: dict[DeletedObject, Object] = {item: {} for item in deleted}
    with ExitStack() as stack:
        watchers = {
            item: subscribe(Target(item.resource, item.namespace, item.name), context, client) for item in deleted
        }
        for watcher in watchers.values():
            stack.enter_context(watcher)

        def check(age: float) -> Verdict:
            began = time.monotonic()
            for item in list(left):
                # Data that this poll has read for the first object is recent enough for the others.
                objects = watchers[item].get(age or time.monotonic() - began, context.deadline)
                same = next((found for found in objects if text(found, "metadata", "uid") in {item.uid, ""}), None)
                if same is None:
                    del left[item]
                else:
                    left[item] = same
            blocked = "; ".join(f"{item}: {_blocked_by(found)}" for item, found in list(left.items())[:MOST_NAMED])
            return Verdict(done=not left, status=blocked)

        def wake(seconds: float) -> bool:
            return watchers[next(iter(left))].wait(seconds, context.deadline)  # all have to be deleted: any will do

        outcome = wait_until(check, context.deadline, wake=wake, pace=watchers[deleted[0]].pace)
    if outcome.done:
        return
    names = ", ".join(map(str, list(left)[:MOST_NAMED]))
    names += f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    status = outcome.verdict.status if outcome.verdict else "no response"
    raise DeletionTimedOut(
        f"{names} not gone after {outcome.seconds:.1f}s",
        error=f"expected {names} to be gone, still present after {outcome.seconds:.1f}s: {status}"
        + (f"; {outcome.last_error.error}" if outcome.last_error else ""),
        left=list(left),
        timed_out=outcome.timed_out and not context.deadline.stopped.is_set(),
        last_seen=status,
    )


def _blocked_by(item: Object) -> str:
    """Return the reasons why an object is not deleted yet."""
    metadata = members(item, "metadata")
    if not metadata.get("deletionTimestamp"):
        return "it was not marked for deletion"
    reasons = [f"deletion was requested at {metadata['deletionTimestamp']}"]
    for field, finalizers in (
        ("finalizers", metadata.get("finalizers")),
        ("spec.finalizers", members(item, "spec").get("finalizers")),
    ):
        if isinstance(finalizers, list) and finalizers:
            reasons.append(f"{field} {', '.join(map(str, finalizers))}")
    reasons += [
        text(condition, "message")
        for condition in items(item, "status", "conditions")
        if condition.get("status") == "True" and text(condition, "message")
    ]
    return "; ".join(reasons)
