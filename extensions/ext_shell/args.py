"""Arguments that commands share."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk

from .config import Shell  # noqa: TC001 - msgspec reads it
from .rlimits import Limits

Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
Codes = int | Annotated[list[int], Meta(min_length=1)]
Part = Annotated[str, Meta(min_length=1)]
DEFAULT_GRACE = ext_sdk.Duration.parse("500ms")


class CommandArgs(ext_sdk.Args, one_of=("command", "script")):
    """What to run, and where, and with what."""

    command: Annotated[
        Annotated[list[str], Meta(min_length=1)] | UnsetType,
        Meta(
            description="Program and arguments, passed as they are: no shell reads them",
        ),
    ] = UNSET
    script: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType,
        ext_sdk.Verbatim,
        Meta(
            description="Text for `shell`; ${NAME.key} is not replaced in it: hand values over by `env` or `stdin`",
        ),
    ] = UNSET
    shell: Annotated[
        Shell | UnsetType,
        Meta(description="Runs `script`; bash, the default, with -euo pipefail, sh and dash with -eu"),
    ] = UNSET
    cwd: Annotated[str, Meta(description="Directory to run in, inside of the workdir")] = "."
    env: Annotated[
        dict[str, str],
        Meta(
            description="Variables. Beside these and the task's, a command gets PATH, HOME, USER, LOGNAME, TMPDIR, "
            "LANG=C.UTF-8, TZ=UTC and TERM=dumb only"
        ),
    ] = field(default_factory=dict)
    pass_env: Annotated[
        list[str],
        Meta(description="Variables of the extension's environment to pass on; * and ? are wildcards"),
    ] = field(default_factory=list)
    stdin: Annotated[str | UnsetType, Meta(description="Text for standard input, which is empty otherwise")] = UNSET
    stdin_file: Annotated[str | UnsetType, Meta(description="File in the workdir as standard input")] = UNSET
    limits: Annotated[Limits, Meta(description="Resource limits for each process of the command")] = field(
        default_factory=Limits
    )
    umask: Annotated[
        Annotated[str, Meta(pattern="^[0-7]{3,4}$", examples=["027"])] | UnsetType,
        Meta(description="File mode mask, such as 027"),
    ] = UNSET
    kill_after: Annotated[
        ext_sdk.Duration,
        Meta(
            description="Time between SIGTERM and SIGKILL, added to `timeout`; shorter if the host's own limit for a "
            "call leaves less"
        ),
    ] = DEFAULT_GRACE

    def __post_init__(self) -> None:
        if self.shell is not UNSET and self.script is UNSET:
            raise ValueError("shell is for script; a command is run without one")
        if self.stdin is not UNSET and self.stdin_file is not UNSET:
            raise ValueError("expected one of stdin and stdinFile, found both")
        if self.kill_after.seconds < 0:
            raise ValueError(f"killAfter: expected a duration of 0s or more, found {self.kill_after}")


def codes_of(codes: int | list[int]) -> list[int]:
    """One number, or several, as several."""
    return codes if isinstance(codes, list) else [codes]


class OutputArgs(CommandArgs):
    """What is done with the output of a command."""

    log: Annotated[
        bool,
        Meta(description="Send lines of the output as log while it runs: the first hundred, then one a second"),
    ] = True
