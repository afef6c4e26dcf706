"""After `apply`: until all that was applied is ready."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from .awaiting import await_target
from .condition import judged
from .naming import Target
from .objects import text
from .pods import PodCheck
from .story import in_vain
from .wait import Ready

if TYPE_CHECKING:
    from collections.abc import Sequence

    import ext_sdk

    from .awaiting import Seen
    from .client import Client
    from .sending import Outcome

AT_ONCE = 32  # objects that are waited for at a time


def unsettled(
    outcomes: Sequence[Outcome], context: ext_sdk.Context, client: Client, timeout: ext_sdk.Duration
) -> ext_sdk.Result | None:
    """Wait until objects are ready; the failure that the first one is which does not become so, None without one.

    Raises:
        KubernetesError: one can't be looked at.
    """
    found = [Target(one.item.resource, one.item.namespace, text(one.object, "metadata", "name")) for one in outcomes]

    def settle(target: Target) -> Seen:
        return await_target(target, judged(target, Ready(PodCheck(client, context.deadline)), "all"), context, client)

    with ThreadPoolExecutor(min(AT_ONCE, len(found)) or 1, "settle") as pool:
        for target, seen in zip(found, pool.map(settle, found), strict=True):
            if not seen.waited.done:
                message = f"{target} was applied and is not ready"
                return in_vain(seen, "ready", context, client, timeout=timeout, message=message)
    return None
