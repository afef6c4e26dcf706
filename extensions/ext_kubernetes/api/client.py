"""Client of one API server: requests with timeouts and bounded retries, watches and websockets."""

from __future__ import annotations

import json
import math
import random
import time
from typing import TYPE_CHECKING

from ext_sdk.net.client_cache import KeptClients

from .connection import (
    JSON,
    MOST_BODY_BYTES,
    ErrorResponse,
    Request,
    Response,
    TransportError,
    WebSocket,
    read_body,
    transport_error,
)
from .context import KubeContext
from .discovery import Discovery
from .errors import ApiError, KubernetesError, Stopped, Unauthorized, Unreachable, api_error
from .kubeconfig import Source, source_of
from .watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import ext_sdk

    from .connection import Connection, RawResponse
    from .discovery import Resource
    from .paths import ApiPath


RETRIES = 4
FIRST_PAUSE = 0.05  # seconds before the first retry; doubles
LONGEST_PAUSE = 1.0  # seconds between two attempts, unless the server asks for more
SAFE_TO_REPEAT = frozenset({"GET", "PUT", "PATCH", "DELETE"})  # a POST that may have arrived is not sent again


def counts(error: KubernetesError) -> bool:
    """Return whether a failure uses up one of the RETRIES.

    One that asks to wait does not, nor a refusal by a server that is coming back: both end, at the latest, with the
    operation's deadline.
    """
    return not isinstance(error, ApiError) or (error.retry_after is None and not error.transient)


def pause_before(error: KubernetesError, method: str, pause: float) -> float | None:
    """Seconds to wait before the request is sent again; None: it must not be."""
    if not error.retryable:
        return None
    if isinstance(error, Unreachable) and error.sent and method not in SAFE_TO_REPEAT:
        return None
    if isinstance(error, ApiError):
        if error.status not in {429, 503} and method not in SAFE_TO_REPEAT:
            return None
        if error.retry_after is not None:
            return max(error.retry_after, pause)
    return pause * random.uniform(0.75, 1.25)  # noqa: S311  (so that many don't come back at the same time)


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

    def refusal(self, refused: ErrorResponse, where: str, user: str) -> ApiError:
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
        error.transient = refused.status in {401, 403} and self.settling
        return error

    def unreachable(self, problem: TransportError, address: str, elapsed: float) -> Unreachable:
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
        error.transient = problem.permitted
        return error


def _redirect(refused: ErrorResponse) -> str:
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


CONNECT_SECONDS = 5.0  # to reach a server that is there
READ_SECONDS = 30.0  # without a byte of the answer
WATCH_SECONDS = 240.0  # after which a server ends a watch; a new one goes on
UNLIMITED_SECONDS = 60.0  # for all attempts of a call without a deadline
LAST_SECONDS = 1.0  # for the one look that is due at the deadline


class Client:
    """Talks to one API server; safe in several threads.

    Args:
        source: where its settings are.

    Attributes:
        discovery: the kinds of the server.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.discovery = Discovery(self)
        self._account = KubeContext(source)
        self._health = Health()

    # --- Who and where -----------------------------------------------------------------------------------------------

    @property
    def server(self) -> str:
        """The address. Raises NoConfiguration."""
        return self.connect().address

    @property
    def namespace(self) -> str:
        """The one of the kubeconfig's context, or of the pod; "" where there is none."""
        return self._account.namespace

    @property
    def settling(self) -> bool:
        """Whether the server has come back only now: what it refuses, it may not have read the reasons for yet."""
        return self._health.settling

    def connect(self, deadline: ext_sdk.Deadline | None = None) -> Connection:
        """Load the credentials, at the first call; see KubeContext.connect. Raises NoConfiguration."""
        return self._account.connect(deadline)

    def close(self) -> None:
        """End the connections."""
        self._account.close()

    # --- Requests ----------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: ApiPath,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: object = None,
        content_type: str = JSON,
        accept: str = JSON,
        deadline: ext_sdk.Deadline,
        retry: bool = True,
    ) -> object:
        """Send a request and give the value of its JSON answer; integers are exact.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            path: see paths.
            query: names and values; a name may come twice.
            body: anything that JSON has.
            content_type: of the body; for a PATCH the kind of patch.
            accept: what the answer may be.
            deadline: no timeout goes beyond it; where it has passed, LAST_SECONDS are left for a last look.
            retry: whether to try again after 429, 5xx and broken connections: RETRIES times, and until the deadline
                if the server asks to wait, or is coming back.

        Raises:
            KubernetesError: see errors.
        """
        request = Request(method, path, query, body, content_type, accept)
        return self.ask(request, deadline=deadline, retry=retry).value

    def raw(
        self,
        path: ApiPath,
        *,
        query: Sequence[tuple[str, str]] = (),
        deadline: ext_sdk.Deadline,
        retry: bool = True,
        limit: int = MOST_BODY_BYTES,
    ) -> bytes:
        """GET what is no JSON, such as a log: its first `limit` bytes at most. Raises KubernetesError."""
        request = Request("GET", path, query, accept="*/*")
        return self.ask(request, deadline=deadline, retry=retry, limit=limit).data

    def ask(
        self, request: Request, *, deadline: ext_sdk.Deadline, retry: bool = True, limit: int = MOST_BODY_BYTES
    ) -> Response:
        """Send a request; `request` and `raw` are this with less to write. Raises KubernetesError."""

        def attempt() -> Response:
            response = self._send(request, deadline)
            where = f"{request.method} {self.server}{request.path}"
            data = self._body(response, limit, deadline)
            return Response(response.status, data[:limit], where, cut=len(data) > limit)

        return self._repeated(request.method, attempt, deadline, retries=RETRIES if retry else 0)

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        name: str = "",
        selector: str = "",
        resource_version: str = "",
        deadline: ext_sdk.Deadline,
    ) -> Watch:
        """Watch objects of a kind: all, one, or those of a label selector; bookmarks come too.

        Args:
            resource: the kind.
            namespace: "" for all of them, and for kinds that have none.
            name: of one object.
            selector: of labels.
            resource_version: to go on from; "": what is there comes first, as ADDED.
            deadline: when it ends.

        Raises:
            KubernetesError: at once; what comes later, iterating raises.
        """
        seconds = min(WATCH_SECONDS, max(1.0, deadline.remaining()))
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(int(seconds)))]
        query += [("fieldSelector", f"metadata.name={name}")] if name else []
        query += [("labelSelector", selector)] if selector else []
        query += [("resourceVersion", resource_version)] if resource_version else []
        request = Request("GET", resource.path(namespace), query)
        response = self._send(request, deadline, seconds + CONNECT_SECONDS)
        return Watch(response, lambda error: self._unreachable(transport_error(error), deadline))

    def websocket(
        self,
        path: ApiPath,
        query: Sequence[tuple[str, str]],
        deadline: ext_sdk.Deadline,
        protocol: str = "v4.channel.k8s.io",
    ) -> WebSocket:
        """Open a websocket of its own, for exec, copy or port-forward.

        Args:
            path: of the subresource.
            query: its query.
            deadline: no read waits longer.
            protocol: subprotocols, with commas between them.

        Raises:
            KubernetesError: see errors.
        """
        where = f"GET {path}"
        try:
            return self.connect(deadline).websocket(path, query, protocol, self._seconds(deadline))
        except ErrorResponse as refused:
            raise self._refusal(refused, where) from refused
        except TransportError as problem:
            raise self._unreachable(problem, deadline) from problem

    # --- One request -------------------------------------------------------------------------------------------------

    def _send(self, request: Request, deadline: ext_sdk.Deadline, read: float = READ_SECONDS) -> RawResponse:
        seconds = self._seconds(deadline)
        timeout = (min(CONNECT_SECONDS, seconds), min(read, seconds))
        try:
            response = self.connect(deadline).send(request, timeout, deadline.stopped)
        except ErrorResponse as refused:
            self._health.note_answer()
            raise self._refusal(refused, f"{request.method} {request.path}") from refused
        except TransportError as problem:
            raise self._unreachable(problem, deadline) from problem
        self._health.note_answer()
        return response

    def _body(self, response: RawResponse, limit: int, deadline: ext_sdk.Deadline) -> bytes:
        import urllib3

        try:
            return read_body(response, limit, self._seconds(deadline), deadline.stopped)
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(
                TransportError(f"it broke off: {transport_error(error)}", sent=True, begun=True), deadline
            ) from error
        except TimeoutError as error:
            raise self._unreachable(TransportError(str(error), sent=True, begun=True), deadline) from error

    def _refusal(self, refused: ErrorResponse, where: str) -> ApiError:
        return self._health.refusal(refused, where, self._account.user)

    def _unreachable(self, problem: TransportError, deadline: ext_sdk.Deadline) -> Unreachable:
        return self._health.unreachable(problem, self.server, deadline.elapsed())

    @staticmethod
    def _seconds(deadline: ext_sdk.Deadline) -> float:
        """How long a request may take. Raises Stopped where the extension ends."""
        if deadline.stopped.is_set():
            raise Stopped("stopped", error="the operation was stopped: the extension was told to end")
        return max(LAST_SECONDS, deadline.remaining())

    def _repeated(
        self, method: str, attempt: Callable[[], Response], deadline: ext_sdk.Deadline, *, retries: int
    ) -> Response:
        left, pause, renewed = retries, FIRST_PAUSE, False
        patience = deadline.limit(UNLIMITED_SECONDS) if math.isinf(deadline.remaining()) else deadline
        while True:
            renewals = self._account.renewals
            try:
                return attempt()
            except KubernetesError as error:
                if isinstance(error, Unauthorized) and not renewed and self._account.renew(renewals):
                    renewed = True
                    continue
                left -= counts(error)
                wait = pause_before(error, method, pause)
                if not retries or left < 0 or wait is None or wait > patience.remaining() or not patience.wait(wait):
                    raise
            pause = min(2 * pause, LONGEST_PAUSE)


class Clients(KeptClients[Source, Client]):
    """Keeps them; one whose files have changed is another one."""

    def make(self, settings: Source) -> Client:
        return Client(settings)


def client_for(context: ext_sdk.Context) -> Client:
    """The client of a call; no server is asked for anything yet.

    Raises:
        NoConfiguration: there is no kubeconfig, or it can't be used.
    """
    client = context.extension_state(Clients).get(source_of(context))
    for name, value in client.connect(context.deadline).secrets():
        context.secrets.add(name, value)
    return client
