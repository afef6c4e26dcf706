"""Files of the working directory that a request is made of."""

from __future__ import annotations

from pathlib import Path

import ext_sdk
from ext_sdk.files import Workdir, os_errors

from .mock.mocks import Mocks

LARGEST = 64 * 1024 * 1024  # bytes of a file that is sent; it is held in memory


def read(path: str, context: ext_sdk.Context) -> bytes:
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
    data = read(text, context)
    if b"-----BEGIN" not in data:
        raise ext_sdk.InvalidArgs(field, f"expected PEM, or a file that has it, found none in {text!r:.100}")
    return data.decode("utf-8", "replace")
