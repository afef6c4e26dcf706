"""Check of `limits` that runs before the manifest is sent, without msgspec; see `ext_sdk.Config`."""

from __future__ import annotations

from ext_sdk.duration import Duration


def check_limits(members: dict[str, object]) -> None:
    """Raise ValueError for values that `Limits` refuses."""
    if Duration.parse(str(members.get("cpu", "1s"))).nanoseconds <= 0:
        raise ValueError("cpu: expected a duration over 0")
