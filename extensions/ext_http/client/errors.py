"""What can go wrong between a request and its answer, told so that a user can act on it.

Exchange problems are ext_sdk.OperationFailed: what is not caught is a result with success: false. Each has a kind, by
which `wait` decides whether it may pass:

    unknown-host    no address for the name
    connection      refused, unreachable, reset, closed before the answer
    timeout         no answer in time
    certificate     the server's certificate is not accepted
    tls             no TLS, or another version of it
    protocol        what came back is no HTTP
    address         the address is not to be asked (see `ssrf_guard`), or the system does not permit it
    redirect        a redirect that is not followed to its end
    stopped         the extension was told to end
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .response import Response


Kind = Literal[
    "unknown-host", "connection", "timeout", "certificate", "tls", "protocol", "address", "redirect", "stopped"
]

ADVICE: Mapping[str, str] = {
    "unknown-host": "is the name spelled as it should be? (`resolve` gives a name an address)",
    "connection": "does it run, and listen there?",
    "certificate": "name its CA with `tls.ca`, or say `tls.insecure: true`",
    "tls": "is the scheme (http, https) the server's?",
    "protocol": "does an HTTP server listen there?",
}


class ExchangeFailed(ext_sdk.OperationFailed):
    """No answer.

    Args:
        kind: see the module.
        reason: what happened, in a few words.
        where: method and URL.
        after: how long it took, such as "1.2 s"; "" where that does not matter.
        advice: in place of that for the kind.
        answer: what was received of it.

    Attributes:
        details: advice, and what was received, without secrets; "" for nothing.
    """

    def __init__(
        self,
        kind: Kind,
        reason: str,
        where: str = "",
        *,
        after: str = "",
        advice: str = "",
        answer: Response | None = None,
    ) -> None:
        advice = advice or ADVICE.get(kind, "")
        told = (f"{where}: {reason}" if where else reason) + (f" ({after})" if after else "")
        super().__init__(told, error=f"{told}; {advice}" if advice else told)
        self.kind = kind
        self.reason = reason
        self.answer = answer
        self.details = advice

    def add_answer(self, shown: str, outputs: Mapping[str, str | int | bool]) -> None:
        """Add what was received of the answer to the text of the failure.

        Args:
            shown: status and beginning of the body, without secrets.
            outputs: the same, for hosts.
        """
        self.error = f"{self.error}; {shown}"
        self.details = "; ".join(filter(None, [self.details, shown]))
        self.outputs |= outputs


class Refused(ExchangeFailed):
    """An address is not to be asked, or a redirect not to be followed: nothing was sent there."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__("address", reason, where)
