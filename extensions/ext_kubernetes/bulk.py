"""Requests for many objects, several at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AT_ONCE = 8  # requests at a time
MOST_TOLD = 10  # failures that are reported one by one

Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once(send: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call `send` for each item, several at a time, and return the results in the order of the items."""
    if len(items) < 2:
        return [send(item) for item in items]
    with ThreadPoolExecutor(min(AT_ONCE, len(items)), "send") as pool:
        return list(pool.map(send, items))


def failure_or(send: Callable[[Item], Result]) -> Callable[[Item], Result | ext_sdk.OperationFailed]:
    """Return `send`, with OperationFailed as a result, so that one failure does not keep others from being sent."""

    def attempt(item: Item) -> Result | ext_sdk.OperationFailed:
        try:
            return send(item)
        except ext_sdk.OperationFailed as failure:
            return failure

    return attempt


def failure_of(
    failed: Sequence[tuple[str, ext_sdk.OperationFailed]], of: int, what: str, outputs: ext_sdk.result.Outputs
) -> ext_sdk.OperationFailed:
    """Return the failure of an operation of which one or several objects failed.

    Args:
        failed: name of each such object, and why; at least one.
        of: number of all objects.
        what: the verb: `delete`.
        outputs: of the operation.
    """
    if of == 1:
        return ext_sdk.OperationFailed(failed[0][1].message, error=failed[0][1].error, outputs=outputs)
    lines = [f"{name}: {failure.error}" for name, failure in failed[:MOST_TOLD]]
    lines += [f"… and {len(failed) - MOST_TOLD} more"] if len(failed) > MOST_TOLD else []
    message = f"failed to {what} {len(failed)} of {of} objects"
    return ext_sdk.OperationFailed(message, error="\n".join(lines), outputs=outputs)
