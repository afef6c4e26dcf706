"""Wait until several objects are ready."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from .failure_report import wait_failure
from .pod_failures import PodCheck
from .predicates import IsReady, verdict_for_target
from .waiter import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ext_sdk
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.targets import Target

    from .waiter import WaitResult

MOST_WAITS = 32  # objects that are waited for at a time


def wait_until_ready(
    targets: Sequence[Target], context: ext_sdk.Context, client: Client, timeout: ext_sdk.Duration
) -> ext_sdk.Result | None:
    """Wait until objects are ready; return the failure of the first one that is not, None without one.

    Args:
        targets: the objects, each by its name.
        context: of the call.
        client: of the server.
        timeout: of the call, for the message.

    Raises:
        KubernetesError: an object can't be read.
    """

    def ready(target: Target) -> WaitResult:
        predicate = verdict_for_target(target, IsReady(PodCheck(client, context.deadline)), "all")
        return wait_for(target, predicate, context, client)

    with ThreadPoolExecutor(min(MOST_WAITS, len(targets)) or 1, "settle") as pool:
        for target, result in zip(targets, pool.map(ready, targets), strict=True):
            if not result.waited.done:
                message = f"{target} was applied and is not ready"
                return wait_failure(result, "ready", context, client, timeout=timeout, message=message)
    return None
