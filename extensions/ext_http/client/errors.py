"""Failures of an exchange, with causes and remedies that a user can act on.

They are ext_sdk.OperationFailed, so one that is not caught becomes a failed result. Each has a kind, by which `wait`
decides whether to retry:

    unknown-host    no address for the name
    connection      refused, unreachable, reset, or closed before the end of the response
    timeout         no complete response before the deadline
    certificate     the server's certificate is not accepted
    tls             the server does not support TLS, or a different version
    protocol        the response is not valid HTTP
    address         the guard refuses the address (see `ssrf_guard`), or the system does not permit it
    redirect        a redirect that is not followed
    stopped         the extension is shutting down
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Literal

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .response import Response


Kind = Literal[
    "unknown-host", "connection", "timeout", "certificate", "tls", "protocol", "address", "redirect", "stopped"
]
# As an expectation names them; several kinds of failures are one of these, and some are none.
Failure = Literal["refused", "reset", "tls", "dns", "timeout"]
REFUSALS = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)
_FAILURES: Mapping[Kind, Failure] = {"unknown-host": "dns", "timeout": "timeout", "certificate": "tls", "tls": "tls"}


def failure_of(kind: Kind, error: BaseException) -> Failure | None:
    """Return the failure as an expectation names it; None if the server did not cause it.

    Args:
        error: of the library; it has the text of that raised by the sockets.
    """
    if kind != "connection":
        return _FAILURES.get(kind)
    if any(os.strerror(number) in str(error) for number in REFUSALS):
        return "refused"
    return "tls" if TLS_HANDSHAKE in str(error) else "reset"


TLS_HANDSHAKE = "during the TLS handshake"
REMEDIES: Mapping[Kind, str] = {
    "unknown-host": "check the name, or set its address with `resolve`",
    "connection": "check that the server runs and listens there",
    "certificate": "trust its CA with `tls.ca`, or set `tls.insecure: true`",
    "tls": "check that the scheme (http, https) is the server's",
    "protocol": "check that an HTTP server listens there",
}


class ExchangeFailed(ext_sdk.OperationFailed):
    """No response, or only a part of it.

    Args:
        kind: see the module.
        reason: short text, without method and URL.
        where: method and URL.
        after: elapsed time, such as "1.2 s"; "" to leave it out.
        remedy: instead of that for the kind.
        response: the part that was received.
        failure: see `failure_of`.

    Attributes:
        details: remedy and received part, redacted; "" for none.
    """

    def __init__(
        self,
        kind: Kind,
        reason: str,
        where: str = "",
        *,
        after: str = "",
        remedy: str = "",
        response: Response | None = None,
        failure: Failure | None = None,
    ) -> None:
        remedy = remedy or REMEDIES.get(kind, "")
        message = (f"{where}: {reason}" if where else reason) + (f" ({after})" if after else "")
        super().__init__(message, error=f"{message}; {remedy}" if remedy else message)
        self.kind = kind
        self.reason = reason
        self.response = response
        self.failure = failure
        self.details = remedy

    def add_response(self, description: str, outputs: Mapping[str, str | int | bool]) -> None:
        """Add the received part of the response to the error.

        Args:
            description: status and beginning of the body, redacted.
            outputs: the same, as outputs.
        """
        self.error = f"{self.error}; {description}"
        self.details = "; ".join(filter(None, [self.details, description]))
        self.outputs |= outputs


class Refused(ExchangeFailed):
    """The guard refused a host or an address; nothing was sent to it."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__("address", reason, where)
