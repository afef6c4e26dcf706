"""Delete an object, and wait until it does not exist any more."""

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
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.api.paths import ApiPath
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.polling import WaitOutcome


def delete_one(
    resource: Resource, namespace: str, name: str, context: ext_sdk.Context, client: Client, *, uid: str = ""
) -> DeletedObject:
    """Delete an object; with a `uid` that one alone. Raises NotFound where there is none, or another one by now."""
    path = resource.path(namespace, name)
    found = uid or text(client.request("GET", path, deadline=context.deadline), "metadata", "uid")
    send_delete(path, {"propagationPolicy": "Foreground", "preconditions": {"uid": found}}, context, client)
    return DeletedObject(resource, namespace, name, found)


def send_delete(path: ApiPath, options: Object, context: ext_sdk.Context, client: Client) -> None:
    """Send a DELETE; all options are in the body, because an API server ignores those of the query if it has one."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions"} | options
    try:
        client.ask(Request("DELETE", path, body=body), deadline=context.deadline)
    except ApiError as error:
        if error.status == 409 and "UID in precondition" in error.text:  # it is gone, and there is another one
            raise NotFound(404, error.text, reason="NotFound", where=error.where) from error
        raise


MOST_TOLD = 10  # objects that are named in a failure


class DeletedObject(NamedTuple):
    """An object that was deleted, with its uid; with an empty one before it is known."""

    resource: Resource
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.resource.kind}/{self.name}"


class DeletionTimedOut(ext_sdk.OperationFailed):
    """Objects were not gone in time.

    Attributes:
        left: which ones.
    """

    def __init__(self, message: str, *, error: str, left: list[DeletedObject]) -> None:
        super().__init__(message, error=error, outputs={"left": "\n".join(map(str, left))})
        self.left = left


def wait_for_deletion(gone: list[DeletedObject], context: ext_sdk.Context, client: Client) -> None:
    """Wait until objects are gone.

    Raises:
        StillThere: some are there at the deadline; what holds them is told.
        KubernetesError: the server refuses to tell.
    """
    if not gone:
        return
    left: dict[DeletedObject, Object] = {one: {} for one in gone}
    with ExitStack() as stack:
        subscriptions = {
            one: stack.enter_context(subscribe(Target(one.resource, one.namespace, one.name), context, client))
            for one in gone
        }

        def check(age: float) -> Verdict:
            began = time.monotonic()
            for one in list(left):
                # what the first of them has seen just now is good enough for the others
                found = subscriptions[one].see(age or time.monotonic() - began, context.deadline)
                same = next((item for item in found if text(item, "metadata", "uid") in {one.uid, ""}), None)
                if same is None:
                    del left[one]
                else:
                    left[one] = same
            told = "; ".join(f"{one}: {_holding(item)}" for one, item in list(left.items())[:MOST_TOLD])
            return Verdict(done=not left, status=told)

        def wake(seconds: float) -> None:
            subscriptions[next(iter(left))].wait(seconds, context.deadline)  # all have to go: any of them will do

        waited = wait_until(check, context.deadline, wake, pace=subscriptions[gone[0]].pace)
    if not waited.done:
        raise _still_there(left, waited)


def _still_there(left: dict[DeletedObject, Object], waited: WaitOutcome) -> DeletionTimedOut:
    names = ", ".join(map(str, list(left)[:MOST_TOLD]))
    names += f" and {len(left) - MOST_TOLD} more" if len(left) > MOST_TOLD else ""
    told = waited.verdict.status if waited.verdict else "nothing was seen"
    return DeletionTimedOut(
        f"{names} not gone after {waited.seconds:.1f}s",
        error=f"expected {names} to be gone, still there after {waited.seconds:.1f}s: {told}"
        + (f"; {waited.problem.error}" if waited.problem else ""),
        left=list(left),
    )


def _holding(found: Object) -> str:
    """What keeps an object that is to be deleted."""
    metadata = members(found, "metadata")
    if not metadata.get("deletionTimestamp"):
        return "it was not marked for deletion"
    told = [f"deletion was asked for at {metadata['deletionTimestamp']}"]
    for where, finalizers in (
        ("finalizers", metadata.get("finalizers")),
        ("spec.finalizers", members(found, "spec").get("finalizers")),
    ):
        if isinstance(finalizers, list) and finalizers:
            told.append(f"{where} {', '.join(map(str, finalizers))}")
    told += [
        text(condition, "message")
        for condition in items(found, "status", "conditions")
        if condition.get("status") == "True" and text(condition, "message")
    ]
    return "; ".join(told)
