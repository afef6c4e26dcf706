"""Record modes: what happens when there is a cassette, and when there is none. The words are those of VCR's family."""

from __future__ import annotations

import os

from .errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Act = Literal["record", "replay", "go-on", "refuse"]


class Mode:
    """One mode.

    Attributes:
        there: what is done when the cassette is there.
        missing: what is done when it is not.
        help: both in a line.
    """

    __slots__ = ("help", "missing", "there")

    def __init__(self, *, there: Act, missing: Act, help: str) -> None:
        self.there = there
        self.missing = missing
        self.help = help


MODES = {
    "once": Mode(there="replay", missing="record", help="replay the cassette if it exists, otherwise record it"),
    "none": Mode(there="replay", missing="refuse", help="replay only"),
    "new_episodes": Mode(
        there="go-on", missing="record", help="replay, and record requests without a recorded response"
    ),
    "all": Mode(
        there="record", missing="record", help="record again; the old cassette stays until the new one is complete"
    ),
}


def known(mode: str) -> Mode:
    """The mode of this name. Raises UsageError where there is none."""
    if mode in MODES:
        return MODES[mode]
    names = ", ".join(MODES)
    raise UsageError(f"--mode {mode}: expected one of {names}")


def act(mode: str, cassette: str) -> Literal["record", "replay", "go-on"]:
    """What to do.

    Args:
        mode: its name.
        cassette: the file.

    Raises:
        UsageError: there is no such mode; or the cassette is missing, and may not be recorded.
    """
    chosen = known(mode)
    result = chosen.there if os.path.exists(cassette) else chosen.missing  # noqa: PTH110 - pathlib costs 5 ms
    if result == "refuse":
        raise UsageError(f"{cassette}: no such cassette, and --mode {mode} does not record; use --mode once")
    return result
