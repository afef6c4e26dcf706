"""Secret values and files used in requests: given in the task, or by reference to a variable or a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

import ext_sdk
from ext_http.mock.registry import Mocks
from ext_sdk.args import Scalar, scalar_text
from ext_sdk.files import Workdir, os_errors


class FromEnv(ext_sdk.Args):
    """Reference to a value that the task file does not contain."""

    env: Annotated[str, Meta(min_length=1, description="Name of a variable of the task or of the extension's process")]


# As users write it: the value itself, or a reference to it.
Secret = str | FromEnv


def resolve_value(value: Scalar | FromEnv, field: str, context: ext_sdk.Context) -> str:
    """Return a value as text; one from the extension's own environment is redacted from here on.

    Raises:
        InvalidArgs: the variable is missing.
    """
    if isinstance(value, FromEnv):
        return context.env[value.env] if value.env in context.env else resolve_secret(value, field, context)
    return scalar_text(value)


def resolve_secret(secret: Secret, field: str, context: ext_sdk.Context) -> str:
    """Return a secret value, redacted from here on.

    Args:
        field: path of the argument, for the error and the placeholder.

    Raises:
        InvalidArgs: the variable is missing.
    """
    value = secret if isinstance(secret, str) else context.env.get(secret.env, os.environ.get(secret.env))
    if value is None:
        raise ext_sdk.InvalidArgs(field, f"expected the name of a variable, found no variable {secret.env!r:.100}")  # type: ignore[union-attr]
    context.secrets.add(field, value)
    return value


MAX_FILE_BYTES = 64 * 1024 * 1024  # of a file that is sent; it is held in memory


def read_file(path: str, context: ext_sdk.Context) -> bytes:
    """Return the content of a file. Raises OperationFailed if it is outside the workdir, missing, or over 64 MiB."""
    with os_errors("read", path):
        return Workdir(context.workdir).read(path, limit=MAX_FILE_BYTES)


def read_pem(text: str, field: str, context: ext_sdk.Context) -> str:
    """Return PEM that is given as text, as a file of the workdir, or as the `caFile` of a mock."""
    if "-----BEGIN" in text:
        return text
    if text in context.state(Mocks).ca_files():
        with os_errors("read", text):
            return Path(text).read_text(encoding="ascii")
    data = read_file(text, context)
    if b"-----BEGIN" not in data:
        raise ext_sdk.InvalidArgs(field, f"expected PEM, or a file that contains PEM, found none in {text!r:.100}")
    return data.decode("utf-8", "replace")
