"""Secret values and files that a request is made of: given in the task, or named there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

import ext_sdk
from ext_http.mock.registry import Mocks
from ext_sdk.files import Workdir, os_errors


class FromEnv(ext_sdk.Args):
    """A value that stands in no task file."""

    env: Annotated[str, Meta(min_length=1, description="Name of a variable, of the task or of the extension")]


# As users write it: the value itself, or where it is.
Secret = str | FromEnv


def resolve_value(value: str | FromEnv, field: str, context: ext_sdk.Context) -> str:
    """A value that may be seen, if the task itself has it; one of the extension's own environment is hidden.

    Raises:
        InvalidArgs: there is no such variable.
    """
    if isinstance(value, FromEnv):
        return context.env[value.env] if value.env in context.env else resolve_secret(value, field, context)
    return value


def resolve_secret(secret: Secret, field: str, context: ext_sdk.Context) -> str:
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


LARGEST = 64 * 1024 * 1024  # bytes of a file that is sent; it is held in memory


def read_file(path: str, context: ext_sdk.Context) -> bytes:
    """The bytes of a file.

    Raises:
        OperationFailed: it is not in the working directory, not there, or larger than 64 MiB.
    """
    with os_errors("read", path):
        return Workdir(context.workdir).read(path, limit=LARGEST)


def pem(text: str, field: str, context: ext_sdk.Context) -> str:
    """PEM as users give it: the text itself, or a file that has it: one of the workdir, or the authority of a mock."""
    if "-----BEGIN" in text:
        return text
    if text in context.state(Mocks).ca_files():
        with os_errors("read", text):
            return Path(text).read_text(encoding="ascii")
    data = read_file(text, context)
    if b"-----BEGIN" not in data:
        raise ext_sdk.InvalidArgs(field, f"expected PEM, or a file that has it, found none in {text!r:.100}")
    return data.decode("utf-8", "replace")
