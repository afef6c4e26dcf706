"""From what a server answers to the error that it is: the Status objects of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CLASSES: Mapping[tuple[int, str], type[ApiError]] = {
    (409, "AlreadyExists"): AlreadyExists,
    (404, "NotFound"): NotFound,
}
_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def api_error(
    status: int, body: object, *, retry_after: float | None = None, where: str = "", user: str = ""
) -> ApiError:
    """The error that an answer of the server stands for.

    Args:
        status: of HTTP.
        body: the Status object, or the text where the answer was none.
        retry_after: seconds, as the answer's header has it.
        where: method and path.
        user: as the kubeconfig names them.
    """
    told = body if isinstance(body, dict) else {}
    reason = told.get("reason")
    text = told.get("message") if told else body
    kind = _CLASSES.get((status, str(reason))) or _BY_STATUS.get(status, ApiError)
    return kind(
        status,
        text if isinstance(text, str) else "",
        reason=reason if isinstance(reason, str) else "",
        causes=tuple(_causes(told)),
        retry_after=retry_after,
        where=where,
        user=user,
    )


def _causes(status: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict):
            yield str(cause.get("field", "")), str(cause.get("reason", "")), str(cause.get("message", ""))
