"""Requests to one API server: each has timeouts within the deadline, and bounded retries.

What has none of its own is the look-up of a name, which is the system's: a resolver that does not answer takes as long
as resolv.conf says, by default 5 s twice for each name server. Servers at an address are not looked up.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ext_kubernetes.discovery import Discovery
from ext_kubernetes.errors import KubernetesError, Stopped, Unauthorized

from .account import Account
from .answer import MOST_BYTES, Answer, read_body
from .connection import JSON, Broken, Refused, Request, WebSocket, broken
from .health import Health
from .retries import FIRST_PAUSE, LONGEST_PAUSE, RETRIES, counts, pause_before
from .watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import ext_sdk
    from ext_kubernetes.discovery import Resource
    from ext_kubernetes.errors import ApiError, Unreachable
    from ext_kubernetes.paths import ApiPath
    from ext_kubernetes.settings import Source

    from .connection import Connection, RawResponse

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
        self._account = Account(source)
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
        """Load the credentials, at the first call; see Account.connect. Raises NoConfiguration."""
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
        limit: int = MOST_BYTES,
    ) -> bytes:
        """GET what is no JSON, such as a log: its first `limit` bytes at most. Raises KubernetesError."""
        request = Request("GET", path, query, accept="*/*")
        return self.ask(request, deadline=deadline, retry=retry, limit=limit).data

    def ask(
        self, request: Request, *, deadline: ext_sdk.Deadline, retry: bool = True, limit: int = MOST_BYTES
    ) -> Answer:
        """Send a request; `request` and `raw` are this with less to write. Raises KubernetesError."""

        def attempt() -> Answer:
            response = self._send(request, deadline)
            where = f"{request.method} {self.server}{request.path}"
            data = self._body(response, limit, deadline)
            return Answer(response.status, data[:limit], where, cut=len(data) > limit)

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
        return Watch(response, lambda error: self._unreachable(broken(error), deadline))

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
        except Refused as refused:
            raise self._refusal(refused, where) from refused
        except Broken as problem:
            raise self._unreachable(problem, deadline) from problem

    # --- One request -------------------------------------------------------------------------------------------------

    def _send(self, request: Request, deadline: ext_sdk.Deadline, read: float = READ_SECONDS) -> RawResponse:
        seconds = self._seconds(deadline)
        timeout = (min(CONNECT_SECONDS, seconds), min(read, seconds))
        try:
            response = self.connect(deadline).send(request, timeout, deadline.stopped)
        except Refused as refused:
            self._health.note_answer()
            raise self._refusal(refused, f"{request.method} {request.path}") from refused
        except Broken as problem:
            raise self._unreachable(problem, deadline) from problem
        self._health.note_answer()
        return response

    def _body(self, response: RawResponse, limit: int, deadline: ext_sdk.Deadline) -> bytes:
        import urllib3

        try:
            return read_body(response, limit, self._seconds(deadline), deadline.stopped)
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(
                Broken(f"it broke off: {broken(error)}", sent=True, begun=True), deadline
            ) from error
        except TimeoutError as error:
            raise self._unreachable(Broken(str(error), sent=True, begun=True), deadline) from error

    def _refusal(self, refused: Refused, where: str) -> ApiError:
        return self._health.refusal(refused, where, self._account.user)

    def _unreachable(self, problem: Broken, deadline: ext_sdk.Deadline) -> Unreachable:
        return self._health.unreachable(problem, self.server, deadline.elapsed())

    @staticmethod
    def _seconds(deadline: ext_sdk.Deadline) -> float:
        """How long a request may take. Raises Stopped where the extension ends."""
        if deadline.stopped.is_set():
            raise Stopped("stopped", error="the operation was stopped: the extension was told to end")
        return max(LAST_SECONDS, deadline.remaining())

    def _repeated(
        self, method: str, attempt: Callable[[], Answer], deadline: ext_sdk.Deadline, *, retries: int
    ) -> Answer:
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
