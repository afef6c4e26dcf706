"""How a server is: when it answered last, since when it does not, and what that makes of its failures."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from ext_kubernetes.errors import ApiError, Unreachable
from ext_kubernetes.statuses import api_error

if TYPE_CHECKING:
    from .connection import Broken, Refused

# A server that has started learns roles and definitions 0.2 s after its first answer, on a busy machine 5 s and more.
SETTLING_SECONDS = 15.0


class Health:
    """What is known of one server."""

    def __init__(self) -> None:
        self._answered: float | None = None
        self._failing_since: float | None = None
        self._troubled = float("-inf")  # when it last gave no answer, or one of trouble

    @property
    def settling(self) -> bool:
        """Whether the server has come back only now: what it refuses, it may not have read the reasons for yet."""
        return time.monotonic() - self._troubled < SETTLING_SECONDS

    def note_answer(self) -> None:
        """It has answered, whatever that was."""
        self._answered = time.monotonic()
        self._failing_since = None

    def refusal(self, refused: Refused, where: str, user: str) -> ApiError:
        """The error that an answer of failure is.

        Args:
            refused: the answer.
            where: method and path of the request.
            user: as the kubeconfig names them.
        """
        try:
            body: object = json.loads(refused.body)
        except ValueError:
            body = refused.body.decode(errors="replace").strip()
        if 300 <= refused.status < 400:
            body = _redirect(refused)
        header = next((value for name, value in refused.headers.items() if name.lower() == "retry-after"), "")
        after = float(header) if header.isdigit() else None
        error = api_error(refused.status, body, retry_after=after, where=where, user=user)
        if refused.status >= 500:
            self._troubled = time.monotonic()
        error.passing = refused.status in {401, 403} and self.settling
        return error

    def unreachable(self, problem: Broken, address: str, elapsed: float) -> Unreachable:
        """Return the error of a missing response.

        Args:
            problem: the cause.
            address: of the server.
            elapsed: seconds since the call began.
        """
        now = self._troubled = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        answered = self._answered
        since = min(elapsed, now - self._failing_since) if answered is None else now - answered
        error = Unreachable(
            address, str(problem), since, answered=answered is not None, sent=problem.sent, begun=problem.begun
        )
        error.passing = problem.permitted
        return error


def _redirect(refused: Refused) -> str:
    """Return what to say of a redirect: a token must not be sent elsewhere, and the query may hold one."""
    from urllib.parse import urlsplit

    where = next((value for name, value in refused.headers.items() if name.lower() == "location"), "")
    try:
        parts = urlsplit(where)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        shown = "an address that is not valid"
    return (
        f"expected a response of an API server, got a redirect to {shown or 'nowhere'}, which is not followed: check "
        "the `server` of the kubeconfig, or log in to the proxy in front of it"
    )
