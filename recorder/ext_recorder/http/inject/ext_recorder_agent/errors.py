"""Exceptions of connections as data, and back. Only listed types are created: a recording is data, never code."""

from __future__ import annotations

from errno import EPERM, errorcode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    class Failure(TypedDict, total=False):
        """Exception as data: type, errno and message."""

        type: str
        errno: int | None
        message: str


_OS_ERRORS = {
    error.__name__: error
    for error in (
        OSError, ConnectionError, ConnectionRefusedError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError,
        TimeoutError, PermissionError, FileNotFoundError, InterruptedError, BlockingIOError,
    )
}  # fmt: skip
_SSL_ERRORS = ("SSLError", "SSLCertVerificationError", "SSLEOFError", "SSLZeroReturnError", "SSLSyscallError")
NOT_RECORDED = "NotRecorded"  # type of the error for traffic that is not in the recording
MARK = "ext-recorder: "


def described(error: BaseException) -> Failure:
    """Return an exception as data."""
    number = getattr(error, "errno", None)
    text = getattr(error, "strerror", None) or (str(error.args[-1]) if error.args else "")
    name = type(error).__name__
    if name not in _OS_ERRORS and name not in _SSL_ERRORS and name not in {"gaierror", "herror"}:
        name = "OSError"
    return {"type": name, "errno": number if isinstance(number, int) else None, "message": str(text)}


def error_code(failure: Mapping[str, object]) -> str:
    """Return the code of an error, such as ECONNREFUSED; ENOTFOUND, as in Node, for a name without address."""
    number = failure.get("errno")
    if failure.get("type") in {"gaierror", "herror"}:
        return "ENOTFOUND"
    return errorcode.get(number, "") if isinstance(number, int) else ""


def not_permitted(text: str) -> PermissionError:
    """Return the error for traffic that was not recorded: that of a firewall, so that a client does not retry."""
    return PermissionError(EPERM, MARK + text)


def exception(failure: Failure) -> OSError:
    """Return the exception that data describes."""
    name, number, text = failure.get("type", ""), failure.get("errno"), str(failure.get("message", ""))
    if name == NOT_RECORDED:
        return not_permitted(text)
    if name in {"gaierror", "herror"}:
        import socket

        return socket.gaierror(number if number is not None else socket.EAI_NONAME, text)
    if name in _SSL_ERRORS:
        import ssl

        error: OSError = getattr(ssl, name)(number if number is not None else 1, text)
        return error
    kind = _OS_ERRORS.get(name, OSError)
    return kind(text) if number is None else kind(number, text)
