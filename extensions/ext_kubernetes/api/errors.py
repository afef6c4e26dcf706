"""What API servers say where they refuse: how it is known again, and how it is told without what they were sent.

Some of them quote the object, or the value, before they say what is wrong with it. It may be a Secret.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ext_sdk import OperationFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


UNKNOWN = 'strict decoding error: unknown field "'
UNDECLARED = "field not declared in schema"
NO_TEXT = ": expected string, got "
REJECTED = "the server rejected our request due to an error in our request"  # all that is said of a JSON Patch
NO_PAGE = "404 page not found"  # of a kind that was served before
CONFLICT = "FieldManagerConflict"
_MISFITS = (UNDECLARED, "failed to create typed patch object")  # of a server-side apply
_NAMELESS = ' "" is invalid: '  # a patch that can't be read
_OBJECT = re.compile(r'"(\{.*\}"|map\[.*\]"(?=:))', re.DOTALL)
_VALUE = re.compile(r"&value\.valueUnstructured\{Value:(.*)\}")  # one that does not fit, as Go writes it
_TYPES = {"map": "an object", "[]": "a list", "true": "a boolean", "false": "a boolean", '"': "a text", "<nil>": "null"}


def is_misfit(text: str) -> bool:
    """Whether an object does not fit its kind, which servers answer with status 500."""
    return any(mark in text for mark in _MISFITS)


def shortened(text: str) -> str:
    """What the server says, without what it was told: for a value its type has to do."""
    return _VALUE.sub(_type, _OBJECT.sub('"{…}"', text)).removeprefix(_NAMELESS).strip()


def manager(message: str) -> str:
    """The manager, in quotes, from `conflict with "kubectl" using apps/v1`."""
    parts = message.split('"')
    return f'"{parts[1]}"' if len(parts) > 2 else "another manager"


def _type(value: re.Match[str]) -> str:
    return next((word for begin, word in _TYPES.items() if value[1].startswith(begin)), "a number")


ANONYMOUS = 'User "system:anonymous"'
MOST_CAUSES = 20  # that are told; an object may have hundreds
ABSENT = "Is the cluster running, and is this the right kubeconfig and context?"
UNTRUSTED = "Does the kubeconfig have the certificate-authority-data of that cluster, and the name that it goes by?"
LONGEST = 4000  # characters of what a server says that are repeated


class KubernetesError(OperationFailed):
    """The base.

    Attributes:
        passing: it was seen while the server came back, and may be otherwise a moment later.
    """

    passing = False

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed a moment later."""
        return self.passing


class NoConfiguration(KubernetesError):
    """There is no kubeconfig, or it can't be used."""


class Stopped(KubernetesError):
    """The time for the operation is over, or the extension was told to end."""


class UnknownKind(KubernetesError):
    """The server has no such kind."""


class InvalidName(KubernetesError):
    """A name, a namespace or the like is not valid in a path of the API server: nothing was sent.

    Args:
        what: kind of name: `resource name`, `namespace`.
        value: the name.
        problems: each as kubectl reports it: `may not be '..'`.
    """

    def __init__(self, what: str, value: str, problems: list[str]) -> None:
        found = f'invalid {what} "{value[:LONGEST]}": [{", ".join(problems)}]'
        super().__init__(found[:200], error=f"{found}; name an object that can exist")


class Unreachable(KubernetesError):
    """No answer from the server.

    Args:
        address: of the server.
        reason: what happened to the connection.
        seconds: since the last answer, or since the first try where there was none.
        answered: whether it has ever answered this client.
        sent: the request may have reached the server: what it asked for may have been done.
        begun: the response had begun.
    """

    passing = True

    def __init__(
        self, address: str, reason: str, seconds: float, *, answered: bool, sent: bool = False, begun: bool = False
    ) -> None:
        if begun:
            super().__init__(
                f"the API server at {address} did not send its response completely",
                error=f"no complete response from the API server at {address}: {reason}. The connection is slow, or "
                "there is much to read: request less (`tail`, `since`, `selector`), or increase `timeout`",
            )
            self.address, self.reason, self.sent = address, reason, sent
            return
        since = f"it last answered {seconds:.1f} s ago" if answered else f"tried for {seconds:.1f} s"
        doubt = "; the request may have been carried out" if sent else ""
        super().__init__(
            f"the API server at {address} can't be reached",
            error=f"no answer from the API server at {address}: {reason}; {since}{doubt}. "
            + (UNTRUSTED if "CERTIFICATE_VERIFY_FAILED" in reason or "X509" in reason else ABSENT),
        )
        self.address, self.reason, self.sent = address, reason, sent


class ApiError(KubernetesError):
    """The server answered with a failure.

    Attributes:
        status: of HTTP.
        reason: of the Status object, such as NotFound; "" where it has none.
        text: what the server says.
        causes: (field, reason, message) for each cause that it names.
        retry_after: seconds that it asks to wait; None where it does not say.
        where: method and path of the request.
    """

    advice = ""

    def __init__(
        self,
        status: int,
        text: str,
        *,
        reason: str = "",
        causes: tuple[tuple[str, str, str], ...] = (),
        retry_after: float | None = None,
        where: str = "",
        user: str = "",
    ) -> None:
        self.status = status
        self.reason = reason
        self.text = shortened(text)[:LONGEST] or reason or f"HTTP status {status}"
        self.causes = causes
        self.retry_after = retry_after
        self.where = where
        self.user = user
        super().__init__(self._headline()[:200], error=self._told())

    @property
    def retryable(self) -> bool:
        """Whether the request may succeed a moment later; an object that does not fit its kind is a 500, too."""
        return self.passing or ((self.status == 429 or self.status >= 500) and not is_misfit(self.text))

    def _headline(self) -> str:
        return " ".join(self.text.split())  # a first line may be no more than `errors:`

    def _told(self) -> str:
        advice = self._advice()
        return f"{self.text} ({self.status} {self.reason or 'from the server'}){'. ' + advice if advice else ''}"

    def _advice(self) -> str:
        if UNDECLARED in self.text or UNKNOWN in self.text:
            return "The kind has no such field: check how it is spelled and where it stands"
        if NO_TEXT in self.text:
            return "Put the value in quotes: without them YAML takes 1 for a number, and yes and true for booleans"
        return self.advice


class Unauthorized(ApiError):
    """401."""

    def _headline(self) -> str:
        return f"the credentials of {self.user or 'the kubeconfig'} are refused"

    def _advice(self) -> str:
        return (
            f"The credentials of {self.user or 'the kubeconfig'} are refused: they have expired, were revoked, or "
            "belong to another cluster. Renew them, or choose another context"
        )


class Forbidden(ApiError):
    """403."""

    def _advice(self) -> str:
        if ANONYMOUS in self.text:
            return (
                f"No credentials were sent: the kubeconfig has none of {self.user or 'this context'} that is supported "
                "(token, tokenFile, client certificate, exec plugin, user and password)"
            )
        if '" cannot ' not in self.text:  # `User "ada" cannot get resource "pods"`
            return "Policy, quota or admission of the cluster refuses it"
        return "Give the user a Role or ClusterRole with that verb and resource, or choose another context"


class NotFound(ApiError):
    """404."""

    def _advice(self) -> str:
        if self.text.startswith("namespaces ") and "/namespaces/" in self.where:
            return "Make the namespace first: create-namespace"
        if self.text == NO_PAGE and self.where in {"GET /api", "GET /apis"}:
            return "The address does not lead to a Kubernetes API: check the path of `server` in the kubeconfig"
        if self.text == NO_PAGE:
            return "The server has no such kind any more: was its definition (CRD) deleted?"
        return ""


class Conflict(ApiError):
    """409: somebody else has the field, or has changed the object."""

    @property
    def managers(self) -> tuple[tuple[str, str], ...]:
        """(manager, field) for each field that somebody else manages."""
        found = ((manager(message), field) for field, reason, message in self.causes if reason == CONFLICT)
        return tuple(found)

    def _advice(self) -> str:
        if not self.managers:
            return "The object has changed since it was read: read it again"
        told = ", ".join(f"{field} is managed by {manager}" for manager, field in self.managers[:MOST_CAUSES])
        return f"{told}. Leave these fields out, or take them over with `force: true`"


class AlreadyExists(ApiError):
    """409: there is one of this name."""

    advice = "Choose another name, `generateName`, or `apply`, which changes what is there"


class Gone(ApiError):
    """410: the version to go on from is too old."""


class Invalid(ApiError):
    """The object is not as its kind wants it."""

    def _told(self) -> str:
        told = [f"{field}: {message}" for field, _, message in self.causes if field and message]
        if len(told) < 2:
            return super()._told()
        more = f"; and {len(told) - MOST_CAUSES} more" if len(told) > MOST_CAUSES else ""
        what, is_invalid, _ = self.text.partition(" is invalid: ")  # all of its causes follow
        return f"{what}{is_invalid[:-2]} ({self.status} {self.reason}): {'; '.join(told[:MOST_CAUSES])}{more}"

    def _advice(self) -> str:
        if self.text == REJECTED:
            return "Of the JSON Patch, an `op` is unknown, a `path` leads to nothing, or a `test` does not hold"
        return super()._advice()


class TooManyRequests(ApiError):
    """429: the server asks to wait."""

    def _advice(self) -> str:
        if self.retry_after is None:
            return "The server has too much to do: try later"
        return f"The server has too much to do, and asks to wait {self.retry_after:g} s"


@contextmanager
def error_context(what: str) -> Iterator[None]:
    """Say in the message of a failure what was being done, such as "could not apply deployment/web"."""
    try:
        yield
    except KubernetesError as error:
        error.message = f"{what}: {error.message}"
        raise


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """Give AlreadyExists the advice of an operation: its arguments are the way out."""
    try:
        yield
    except AlreadyExists as error:
        error.error = error.error.replace(AlreadyExists.advice, advice)
        raise


def explained(error: KubernetesError, what: str = "") -> OperationFailed:
    """The failure that an error is; `what` was being done."""
    return OperationFailed(f"{what}: {error.message}" if what else error.message, error=error.error)


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
