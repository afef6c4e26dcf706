"""Configuration of ext-shell: what a host sets for all commands."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

import ext_sdk
from ext_sdk.args import Scalar  # noqa: TC001 - msgspec reads it

from .rlimits import Limits, Size

DEFAULT_KEPT = 16 * 1024 * 1024  # bytes; small enough to hold several in memory

Shell = Literal["bash", "sh", "dash", "zsh", "ksh", "fish", "pwsh", "python3"]


class ShellConfig(ext_sdk.Config):
    """Configuration of ext-shell."""

    pass_env: Annotated[
        list[str],
        Meta(
            description="Variables of the extension's own environment that every command gets; * and ? are wildcards. "
            "Commands get no others, because the environment of a host contains its API keys."
        ),
    ] = field(default_factory=list)
    env: Annotated[
        dict[str, Scalar], Meta(description="Variables that every command gets, as texts, numbers or booleans")
    ] = field(default_factory=dict)
    secrets: Annotated[
        list[str],
        Meta(
            description="Names of further variables with secret values, which are redacted in all responses, logs and "
            "files. Variables with names such as API_TOKEN or DB_PASSWORD always are"
        ),
    ] = field(default_factory=list)
    shell: Annotated[Shell, Meta(description="Shell for scripts of operations that name none")] = "bash"
    limits: Annotated[Limits, Meta(description="Resource limits of every command; an operation may set its own")] = (
        field(default_factory=Limits)
    )
    output_limit: Annotated[
        Size,
        Meta(
            description="Kept size of each output of a command, as bytes or 16MiB. Of longer output the last 64 KiB "
            "are kept in addition, and ${NAME.stdout} is refused"
        ),
    ] = DEFAULT_KEPT
