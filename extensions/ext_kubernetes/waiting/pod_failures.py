"""Pods that make a workload fail permanently: crash loops, images that can't be pulled, unschedulable pods."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import KubernetesError
from ext_kubernetes.objects.fields import condition_of, items, members, text
from ext_kubernetes.objects.readiness import blocked_reason, failed, progressing, readiness_of, seconds_until_stable

if TYPE_CHECKING:
    import ext_sdk
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.readiness import Readiness
    from ext_kubernetes.objects.yaml_loader import Object


FIRST_SECONDS = 1.0  # into a wait, before pods are listed for the first time
EVERY_SECONDS = 1.0
MOST_PODS = "50"
TEMPLATE = "pod-template-hash"
KINDS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})


class PodCheck:
    """Checks during a wait, about once a second, if the newest pods of a workload can become ready."""

    def __init__(self, client: Client, deadline: ext_sdk.Deadline) -> None:
        self._client = client
        self._deadline = deadline
        self._next = time.monotonic() + FIRST_SECONDS
        self._reasons: dict[str, str] = {}
        self._pending: dict[str, str] = {}

    def failed_reason(self, item: Object) -> str:
        """Return the reason why a workload can't become ready; "" if it can, and for all other kinds."""
        uid = text(item, "metadata", "uid")
        if text(item, "kind") not in KINDS:
            return ""
        if time.monotonic() >= self._next:
            pods = self._pods(item)
            self._reasons[uid], self._pending[uid] = unrecoverable_pod(pods), unschedulable_pod(pods)
            self._next = time.monotonic() + EVERY_SECONDS
        return self._reasons.get(uid, "")

    def pending_reason(self, item: Object) -> str:
        """Return the reason why no node takes a pod of a workload, as of the last `failed_reason`; "" if one does."""
        return self._pending.get(text(item, "metadata", "uid"), "")

    def crashing(self, item: Object) -> Readiness | None:
        """Return the true readiness of a workload whose status is ready while a pod is between two crashes, or None.

        The status is not enough: a pod without a probe is available as soon as its containers run.
        """
        for pod in newest_template(self._pods(item)) if text(item, "kind") in KINDS else ():
            name = text(pod, "metadata", "name")
            if blocked := blocked_reason(pod):
                return failed(f"pod {name}: {blocked}")
            seconds, reason = seconds_until_stable(pod, datetime.now(UTC))
            if reason:
                return progressing(f"pod {name}: {reason}", seconds)
        return None

    def _pods(self, item: Object) -> list[Object]:
        """Return pods of a workload; none if they can't be read, as for a user without that permission."""
        labels = members(item, "spec", "selector", "matchLabels")
        if not labels:
            return []
        query = [("labelSelector", ",".join(f"{key}={value}" for key, value in labels.items())), ("limit", MOST_PODS)]
        path = core_path("pods", text(item, "metadata", "namespace"))
        try:
            return items(self._client.request("GET", path, query=query, deadline=self._deadline, retry=False), "items")
        except KubernetesError:
            return []


def unrecoverable_pod(pods: list[Object]) -> str:
    """Return the reason why one of the newest pods can't become ready; "" if all can. Older pods are being replaced."""
    for pod in newest_template(pods):
        readiness = readiness_of(pod | {"kind": "Pod", "apiVersion": "v1"})
        if readiness.state == "failed":
            return f"pod {text(pod, 'metadata', 'name')}: {readiness.text}"
    return ""


def unschedulable_pod(pods: list[Object]) -> str:
    """Return the reason why the scheduler found no node for one of the newest pods; "" if it found one for each."""
    for pod in newest_template(pods):
        scheduled = condition_of(pod, "PodScheduled")
        if scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable":
            return f"pod {text(pod, 'metadata', 'name')}: {scheduled}"
    return ""


def newest_template(pods: list[Object]) -> list[Object]:
    """Return the pods of the newest template that are not being deleted, the newest first."""
    remaining = [pod for pod in pods if not text(pod, "metadata", "deletionTimestamp")]
    remaining.sort(key=lambda pod: text(pod, "metadata", "creationTimestamp"), reverse=True)
    newest = text(remaining[0], "metadata", "labels", TEMPLATE) if remaining else ""
    return [pod for pod in remaining if text(pod, "metadata", "labels", TEMPLATE) == newest]
