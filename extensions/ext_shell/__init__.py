"""ext-shell: run programs and check files, as steps of an eval task.

`extension` lists the operations. `command` prepares a command from `args` and runs it to its end, `background` keeps it
running; `expectations` checks it, and `result` reports it.
"""

from __future__ import annotations


def check_limits(members: dict[str, object]) -> None:
    """Raise ValueError for values that `Limits` refuses; called before the manifest is sent, see `ext_sdk.Config`."""
    from ext_sdk.duration import Duration

    if Duration.parse(str(members.get("cpu", "1s"))).nanoseconds <= 0:
        raise ValueError("cpu: expected a duration over 0")
