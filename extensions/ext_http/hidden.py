"""Values that must not be seen: given in the task, or named there and taken from the environment."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta

import ext_sdk


class FromEnv(ext_sdk.Args):
    """A value that stands in no task file."""

    env: Annotated[str, Meta(min_length=1, description="Name of a variable, of the task or of the extension")]


# As users write it: the value itself, or where it is.
Secret = str | FromEnv


def plain(value: str | FromEnv, field: str, context: ext_sdk.Context) -> str:
    """A value that may be seen, if the task itself has it; one of the extension's own environment is hidden.

    Raises:
        InvalidArgs: there is no such variable.
    """
    if isinstance(value, FromEnv):
        return context.env[value.env] if value.env in context.env else revealed(value, field, context)
    return value


def revealed(secret: Secret, field: str, context: ext_sdk.Context) -> str:
    """The value, from now on hidden in all that is written.

    Args:
        secret: see Secret.
        field: path of the argument, for the error and for the placeholder.
        context: of the call.

    Raises:
        InvalidArgs: there is no such variable.
    """
    value = secret if isinstance(secret, str) else context.env.get(secret.env, os.environ.get(secret.env))
    if value is None:
        raise ext_sdk.InvalidArgs(field, f"expected a variable of this name, found none: {secret.env!r:.100}")  # type: ignore[union-attr]
    context.secrets.add(field, value)
    return value
