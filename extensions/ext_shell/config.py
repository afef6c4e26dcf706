"""What a host may configure for all commands."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

import ext_sdk

from .rlimits import Limits, Size

DEFAULT_KEPT = 16 * 1024 * 1024  # bytes; small enough to hold several in memory

Shell = Literal["bash", "sh", "dash", "zsh", "ksh", "fish", "pwsh", "python3"]


class ShellConfig(ext_sdk.Config):
    """Configuration of ext-shell."""

    pass_env: Annotated[
        list[str],
        Meta(
            description="Variables of the extension's own environment that every command gets; * and ? are wildcards. "
            "All others are kept from commands, because a host's environment holds its API keys."
        ),
    ] = field(default_factory=list)
    env: Annotated[dict[str, str], Meta(description="Variables that every command gets")] = field(default_factory=dict)
    secrets: Annotated[
        list[str],
        Meta(
            description="Names of variables whose values must not be seen, beside those whose names say so (API_TOKEN, "
            "DB_PASSWORD): they are replaced in every answer, log and file"
        ),
    ] = field(default_factory=list)
    shell: Annotated[Shell, Meta(description="Runs scripts where the operation names no shell")] = "bash"
    limits: Annotated[Limits, Meta(description="For every command; an operation may set its own")] = field(
        default_factory=Limits
    )
    output_limit: Annotated[
        Size,
        Meta(
            description="How much of each output of a command is kept, as bytes or 16MiB. What comes after it is read "
            "and counted, and only its last 64 KiB are kept; ${NAME.stdout} is refused then"
        ),
    ] = DEFAULT_KEPT


def config_of(context: ext_sdk.Context) -> ShellConfig:
    """The configuration of a call. Raises TypeError where it is another extension's."""
    if not isinstance(context.config, ShellConfig):
        raise TypeError(f"expected the configuration of ext-shell, found {type(context.config).__name__}")
    return context.config
