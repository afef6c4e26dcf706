"""Arguments that operations on commands share."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.args import Scalar  # noqa: TC001 - msgspec reads it
from ext_sdk.core.regex import problem

from .config import Shell  # noqa: TC001 - msgspec reads it
from .rlimits import Limits

Name = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
Codes = int | Annotated[list[int], Meta(min_length=1)]
Part = Annotated[str, Meta(min_length=1)]
Port = Annotated[int, Meta(ge=1, le=65535), ext_sdk.Computed]
DEFAULT_GRACE = ext_sdk.Duration.parse("500ms")


def codes_of(codes: int | list[int]) -> list[int]:
    """Return one number, or several, as a list."""
    return codes if isinstance(codes, list) else [codes]


class CommandArgs(ext_sdk.Args, one_of=("command", "script")):
    """Command or script, and where and with what input, environment and limits to run it."""

    command: Annotated[
        Annotated[list[str], Meta(min_length=1)] | UnsetType,
        Meta(description="Program and arguments, passed unchanged, without a shell"),
    ] = UNSET
    script: Annotated[
        Annotated[str, Meta(min_length=1)] | UnsetType,
        ext_sdk.Verbatim,
        Meta(description="Text for `shell`. ${NAME.key} is not replaced in it: pass values in `env` or `stdin`"),
    ] = UNSET
    shell: Annotated[
        Shell | UnsetType,
        Meta(description="Shell for `script`; bash, the default, runs with -euo pipefail, sh and dash with -eu"),
    ] = UNSET
    cwd: Annotated[str, Meta(description="Directory to run in, within the working directory")] = "."
    env: Annotated[
        dict[str, Scalar],
        Meta(
            description="Variables, as texts, numbers or booleans. In addition to these and the task's, a command gets "
            "only PATH, HOME, USER, LOGNAME, TMPDIR, LANG=C.UTF-8, TZ=UTC and TERM=dumb"
        ),
    ] = field(default_factory=dict)
    pass_env: Annotated[
        list[str],
        Meta(description="Variables of the extension's environment to pass on; * and ? are wildcards"),
    ] = field(default_factory=list)
    stdin: Annotated[str | UnsetType, Meta(description="Text for standard input, which is empty by default")] = UNSET
    stdin_file: Annotated[str | UnsetType, Meta(description="File in the working directory for standard input")] = UNSET
    limits: Annotated[Limits, Meta(description="Resource limits of each process of the command")] = field(
        default_factory=Limits
    )
    umask: Annotated[
        Annotated[str, Meta(pattern="^[0-7]{3,4}$", examples=["027"])] | UnsetType,
        Meta(description="File mode mask in octal, such as 027"),
    ] = UNSET
    kill_after: Annotated[
        ext_sdk.Duration,
        Meta(
            description="Time between SIGTERM and SIGKILL, in addition to `timeout`; less if the host's time limit for "
            "a call leaves less"
        ),
    ] = DEFAULT_GRACE

    def __post_init__(self) -> None:
        if self.shell is not UNSET and self.script is UNSET:
            raise ValueError("`shell` requires `script`; a command runs without a shell")
        if self.stdin is not UNSET and self.stdin_file is not UNSET:
            raise ValueError("expected one of stdin and stdinFile, found both")
        if self.kill_after.seconds < 0:
            raise ValueError(f"killAfter: expected a duration of 0s or more, found {self.kill_after}")


class OutputArgs(CommandArgs):
    """The same, and how output is logged."""

    log: Annotated[
        bool,
        Meta(
            description="Send lines of the output as log notifications while the command runs: the first hundred, then "
            "one per second; none if a capture is secret"
        ),
    ] = True


class Ready(ext_sdk.Args):
    """Conditions of readiness; all given ones must hold. The operation fails if the process exits before."""

    port: Annotated[
        bool | Port | UnsetType,
        Meta(description="Local TCP port that accepts connections; true: the `port` of the process"),
    ] = UNSET
    log_line: Annotated[
        Part | UnsetType,
        Meta(description="Regular expression (Python's re) that matches in a line of the output"),
    ] = UNSET
    file: Annotated[Part | UnsetType, Meta(description="File or directory that exists in the working directory")] = (
        UNSET
    )
    http: Annotated[
        Part | UnsetType,
        Meta(description="Local URL, or path at the `port` of the process, that responds to GET"),
    ] = UNSET
    http_status: Annotated[
        Codes | UnsetType, Meta(description="Status, or list of statuses, of that response; default 200 to 399")
    ] = UNSET
    exit: Annotated[
        Codes | UnsetType,
        Meta(
            description="Exit code, or list of exit codes, that the command exits with. Processes that it leaves "
            "running, such as a daemon, run until `stop`; the other conditions are about them"
        ),
    ] = UNSET

    def __post_init__(self) -> None:
        fields = ("port", "log_line", "file", "http", "exit")
        given = [name for name in fields if getattr(self, name) is not UNSET]
        if not given or (given == ["port"] and self.port is False):
            raise ValueError("no condition is given; expected at least one of port, logLine, file, http and exit")
        if self.log_line is not UNSET and (wrong := problem(self.log_line)):
            raise ValueError(f"logLine: {self.log_line!r} is {wrong}")
        if self.http_status is not UNSET and self.http is UNSET:
            raise ValueError("`httpStatus` requires `http`")
