"""Errors of an API server, classified by status and reason, with advice for the user.

Some servers quote the object or the value in their message. It may be a Secret, so such quotations are removed.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ext_sdk import OperationFailed, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


UNKNOWN = 'strict decoding error: unknown field "'
UNDECLARED = "field not declared in schema"
NO_TEXT = ": expected string, got "
REJECTED = "the server rejected our request due to an error in our request"  # the complete message for a JSON Patch
NO_PAGE = "404 page not found"  # for a kind that is no longer served
CONFLICT = "FieldManagerConflict"
_MISFITS = (UNDECLARED, "failed to create typed patch object")  # of a server-side apply
_NAMELESS = ' "" is invalid: '  # prefix for a patch that can't be parsed
_OBJECT = re.compile(r'"(\{.*\}"|map\[.*\]"(?=:))', re.DOTALL)
_VALUE = re.compile(r"&value\.valueUnstructured\{Value:(.*)\}")  # an invalid value in Go syntax
_TYPES = {"map": "an object", "[]": "a list", "true": "a boolean", "false": "a boolean", '"': "a text", "<nil>": "null"}


def is_misfit(text: str) -> bool:
    """Return True if an object does not match the schema of its kind; servers respond with status 500 to it."""
    return any(mark in text for mark in _MISFITS)


def shortened(text: str) -> str:
    """Return a message without the quoted object; a quoted value is replaced by its type."""

    def type_of(value: re.Match[str]) -> str:
        return next((name for begin, name in _TYPES.items() if value[1].startswith(begin)), "a number")

    return _VALUE.sub(type_of, _OBJECT.sub('"{…}"', text)).removeprefix(_NAMELESS).strip()


ANONYMOUS_USER = "system:anonymous"
ANONYMOUS = f'User "{ANONYMOUS_USER}"'
MOST_CAUSES = 20  # reported; an object may have hundreds
ABSENT = "Check that the cluster is running, and that kubeconfig and context are right"
UNTRUSTED = "Check certificate-authority-data and the server name in the kubeconfig"
LONGEST = 4000  # characters of a server's message


class KubernetesError(OperationFailed):
    """Base of all errors of this package.

    Attributes:
        transient: the error occurred while the server was starting, and may disappear.
    """

    transient = False

    @property
    def retryable(self) -> bool:
        """Return True if the same request may succeed later."""
        return self.transient


class NoConfiguration(KubernetesError):
    """The kubeconfig is missing or can't be used."""


class Stopped(KubernetesError):
    """The operation was stopped, because the extension ends."""


class UnknownKind(KubernetesError):
    """The server does not have a kind."""


class InvalidName(KubernetesError):
    """A name or namespace is not valid in a path of the API server; nothing was sent.

    Args:
        what: kind of name: `resource name`, `namespace`.
        problems: each as kubectl reports it: `may not be '..'`.
    """

    def __init__(self, what: str, value: str, problems: list[str]) -> None:
        found = f'invalid {what} "{value[:LONGEST]}": [{", ".join(problems)}]'
        super().__init__(found[:200], error=f"{found}; use a valid name")


class Unreachable(KubernetesError):
    """The server did not respond, or not completely.

    Args:
        seconds: since the last response, or since the first attempt if there was none.
        answered: the server has responded to this client before.
        sent: the server may have received, and carried out, the request.
        begun: the response had begun.
    """

    transient = True

    def __init__(
        self, address: str, reason: str, seconds: float, *, answered: bool, sent: bool = False, begun: bool = False
    ) -> None:
        self.address, self.reason, self.sent = address, reason, sent
        if begun:
            message = f"the API server at {address} did not send its response completely"
            error = (
                f"incomplete response from the API server at {address}: {reason}. The connection is slow, or the "
                "response is large: request less (`tail`, `since`, `selector`), or increase `timeout`"
            )
        else:
            since = f"it last responded {seconds:.1f} s ago" if answered else f"tried for {seconds:.1f} s"
            doubt = "; the request may have been carried out" if sent else ""
            advice = UNTRUSTED if "CERTIFICATE_VERIFY_FAILED" in reason or "X509" in reason else ABSENT
            message = f"the API server at {address} can't be reached"
            error = f"API server {address} did not respond: {reason}; {since}{doubt}. {advice}"
        super().__init__(message, error=error)


class ApiError(KubernetesError):
    """The server responded with an error.

    Attributes:
        reason: of the Status object, such as NotFound; "" if it has none.
        causes: (field, reason, message) of each cause in the Status object.
        retry_after: seconds of the Retry-After header; None without one.
        where: method and path of the request.
        user: of the kubeconfig, for messages.
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
        super().__init__(self.headline()[:200], error=self._explanation())

    @property
    def retryable(self) -> bool:
        """Return True if the request may succeed later; not for an object that is rejected with status 500."""
        return self.transient or ((self.status == 429 or self.status >= 500) and not is_misfit(self.text))

    def headline(self) -> str:
        return " ".join(self.text.split())  # a first line may be no more than `errors:`

    def _explanation(self) -> str:
        advice = self._advice()
        return f"{self.text} ({self.status} {self.reason or 'from the server'}){'. ' + advice if advice else ''}"

    def _advice(self) -> str:
        if UNDECLARED in self.text or UNKNOWN in self.text:
            return "Unknown field for this kind: check its spelling and position"
        if NO_TEXT in self.text:
            return "Quote the value: unquoted YAML reads 1 as a number, and yes and true as booleans"
        return self.advice


class Unauthorized(ApiError):
    """Status 401."""

    def headline(self) -> str:
        return f"the credentials of {self.user or 'the kubeconfig'} were rejected"

    def _advice(self) -> str:
        return (
            f"The credentials of {self.user or 'the kubeconfig'} were rejected: they have expired, were revoked, or "
            "belong to another cluster. Renew them, or choose another context"
        )


class Forbidden(ApiError):
    """Status 403."""

    def _advice(self) -> str:
        if ANONYMOUS in self.text:
            return (
                "No credentials were sent: the kubeconfig has no supported ones for "
                f"{self.user or 'this context'} (token, tokenFile, client certificate, exec plugin, user and password)"
            )
        if '" cannot ' not in self.text:  # `User "ada" cannot get resource "pods"`
            return "A policy, quota or admission controller of the cluster rejected the request"
        return "Give the user a Role or ClusterRole with that verb and resource, or choose another context"


class NotFound(ApiError):
    """Status 404."""

    def _advice(self) -> str:
        if self.text.startswith("namespaces ") and "/namespaces/" in self.where:
            return "Create the namespace first, with create-namespace"
        if self.text == NO_PAGE and self.where in {"GET /api", "GET /apis"}:
            return "The address is not that of a Kubernetes API: check the path of `server` in the kubeconfig"
        if self.text == NO_PAGE:
            return "The server no longer has this kind: check that its CustomResourceDefinition exists"
        return ""


class Conflict(ApiError):
    """Status 409: another manager owns a field, or the object has changed."""

    def _advice(self) -> str:
        owned = []
        for field, reason, message in self.causes[:MOST_CAUSES]:
            if reason == CONFLICT:  # message: `conflict with "kubectl" using apps/v1`
                parts = message.split('"')
                owner = f'"{parts[1]}"' if len(parts) > 2 else "another manager"
                owned.append(f"{field} is managed by {owner}")
        if not owned:
            return "The object has changed since it was read: read it again"
        return f"{', '.join(owned)}. Omit these fields, or set `force: true` to take ownership"


class AlreadyExists(ApiError):
    """Status 409: an object of this name exists."""

    advice = "Choose another name, `generateName`, or `apply`, which updates the existing object"


class Gone(ApiError):
    """Status 410: the resourceVersion to continue from is too old."""


class Invalid(ApiError):
    """Status 400 or 422: the object is invalid."""

    def _explanation(self) -> str:
        problems = [f"{field}: {message}" for field, _, message in self.causes if field and message]
        if len(problems) < 2:
            return super()._explanation()
        more = f"; and {len(problems) - MOST_CAUSES} more" if len(problems) > MOST_CAUSES else ""
        what, is_invalid, _ = self.text.partition(" is invalid: ")  # all of its causes follow
        return f"{what}{is_invalid[:-2]} ({self.status} {self.reason}): {'; '.join(problems[:MOST_CAUSES])}{more}"

    def _advice(self) -> str:
        if self.text == REJECTED:
            return "Invalid JSON Patch: an `op` is unknown, a `path` does not exist, or a `test` failed"
        return super()._advice()


class TooManyRequests(ApiError):
    """Status 429: the server is overloaded."""

    def _advice(self) -> str:
        if self.retry_after is None:
            return "The server is overloaded: try later"
        return f"The server is overloaded, and asks to wait {self.retry_after:g} s"


@contextmanager
def error_context(context: str) -> Iterator[None]:
    """Prefix the message of a KubernetesError with its context, such as "failed to delete pod/web"."""
    try:
        yield
    except KubernetesError as error:
        error.message = f"{context}: {error.message}"
        raise


@contextmanager
def advising(advice: str) -> Iterator[None]:
    """Replace the advice of AlreadyExists by that of an operation, which names its arguments."""
    try:
        yield
    except AlreadyExists as error:
        error.error = error.error.replace(AlreadyExists.advice, advice)
        raise


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
    """Return the error for a response.

    Args:
        body: the Status object, or the text of another response.
        retry_after: seconds of the Retry-After header.
    """
    status_object = body if isinstance(body, dict) else {}
    reason = status_object.get("reason")
    text = status_object.get("message") if status_object else body
    details = status_object.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    error_type = _CLASSES.get((status, str(reason))) or _BY_STATUS.get(status, ApiError)
    return error_type(
        status,
        text if isinstance(text, str) else "",
        reason=reason if isinstance(reason, str) else "",
        causes=tuple(
            (str(cause.get("field", "")), str(cause.get("reason", "")), str(cause.get("message", "")))
            for cause in (causes if isinstance(causes, list) else ())
            if isinstance(cause, dict)
        ),
        retry_after=retry_after,
        where=where,
        user=user,
    )


class SomeFailed(OperationFailed):
    """Failure of an operation on several objects.

    Attributes:
        failures: of the objects that failed.
        succeeded: number of the objects that did not.
    """

    failures: Sequence[OperationFailed] = ()
    succeeded = 0


_REFUSALS: Mapping[str, tuple[type[ApiError], ...]] = {
    "forbidden": (Forbidden,),
    "invalid": (Invalid,),
    "conflict": (Conflict, AlreadyExists),
}
CANNOT_IMPERSONATE = '" cannot impersonate resource "'
TERMINATING = "NamespaceTerminating"


# Returns an error text if the user of the current call, or one of these namespaces, does not exist; client_for sets it.
REFUSAL_CHECK: ContextVar[Callable[[set[str]], str]] = ContextVar("REFUSAL_CHECK", default=lambda _: "")
_NAMESPACE = re.compile(r"/namespaces/([^/?]+)/")  # in a path; that of a namespace itself does not end with a slash


def expect_refusal(expected: str, run: Callable[[], Result], user: str) -> Result:
    """Run an operation, and return a success if the API server refused it, for each of its objects.

    A refusal because of the test itself does not count: the configured user may not act as another one, or has no
    credentials, the namespace is being deleted, or the namespace or service account does not exist.

    Args:
        expected: one of the refusals that `expect.failure` accepts.
        run: runs the operation.
        user: user to act as; "" for the configured one.

    Raises:
        OperationFailed: it was not refused, or in another way.
    """
    from ext_sdk.expect import Check

    outputs: Mapping[str, str | int | bool]
    REFUSAL_CHECK.set(lambda _: "")  # a previous call may have run in this thread
    try:
        result = run()
    except OperationFailed as failure:
        outputs = failure.outputs or {}
        failures, succeeded = [failure], 0
        if isinstance(failure, SomeFailed):
            failures, succeeded = list(failure.failures), failure.succeeded
        refusals = [(refusal_of(each, user), each) for each in failures]
        others = [f"{name or 'another failure'}: {other.error}" for name, other in refusals if name != expected]
        others += ["success of other objects"] if succeeded else []
        if not others and expected == "forbidden":
            paths = [each.where for each in failures if isinstance(each, ApiError)]
            missing = REFUSAL_CHECK.get()({match[1] for path in paths if (match := _NAMESPACE.search(path))})
            others += [f"a refusal that proves nothing: {missing}"] if missing else []
        if not others:
            refusal = failures[0]  # the text of the API server without our advice
            text = refusal.text if isinstance(refusal, ApiError) and refusal.text else str(refusal)
            return Result.ok(f"Refused as expected: {text}", outputs={**outputs, "failure": expected})
        found = others[0]
    else:
        outputs = result.outputs
        found = f"success: {result.message}" if result.success else f"another failure: {result.error}"
    check = Check.failed(f"to be {expected}", found, where="failure")
    raise OperationFailed(f"the API server did not refuse it as {expected}", error=str(check), outputs=outputs)


def refusal_of(failure: OperationFailed, user: str) -> str:
    """Return the refusal that a failure is, as `expect.failure` names it; "" for another one; see expect_refusal."""
    refusal = next((name for name, kinds in _REFUSALS.items() if isinstance(failure, kinds)), "")
    if isinstance(failure, ApiError) and (
        CANNOT_IMPERSONATE in failure.text
        or (ANONYMOUS in failure.text and user != ANONYMOUS_USER)
        or any(reason == TERMINATING for _, reason, _ in failure.causes)
    ):
        return ""
    return refusal
