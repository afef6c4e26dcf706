"""Requests to one API server: each has timeouts within the deadline, and bounded retries."""

from __future__ import annotations

import json
import random
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from ext_kubernetes import settings
from ext_kubernetes.discovery import Discovery
from ext_kubernetes.errors import ApiError, KubernetesError, Stopped, Unauthorized, Unreachable, api_error

from .connection import JSON, Broken, Connection, Refused, Request, WebSocket, broken
from .watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import ext_sdk
    from ext_kubernetes.discovery import Resource
    from ext_kubernetes.settings import Source

    from .connection import RawResponse

CONNECT_SECONDS = 5.0  # to reach a server that is there
READ_SECONDS = 30.0  # without a byte of the answer
WATCH_SECONDS = 240.0  # after which a server ends a watch; a new one goes on
SETTLING_SECONDS = 5.0  # a server that has started learns roles and definitions some 0.2 s after its first answer
LAST_SECONDS = 1.0  # for the one look that is due at the deadline
RETRIES = 4
FIRST_PAUSE = 0.05  # seconds before the first retry; doubles
LONGEST_PAUSE = 5.0  # seconds that a server's Retry-After is obeyed at once
MOST_BYTES = 256 * 1024 * 1024  # of an answer
PIECE = 65_536  # bytes read at once
SAFE_TO_REPEAT = frozenset({"GET", "PUT", "PATCH", "DELETE"})  # a POST that may have arrived is not sent again


class Answer(NamedTuple):
    """What a server answered: the status of HTTP, the body, what was asked, and whether the body went on."""

    status: int
    data: bytes
    where: str
    cut: bool

    @property
    def value(self) -> object:
        """The value of a JSON body; None where it is empty. Integers are exact. Raises ApiError where it is no JSON."""
        try:
            return json.loads(self.data) if self.data else None
        except ValueError as error:
            found = f"more than {len(self.data):,} bytes" if self.cut else repr(self.data[:60])
            text = f"expected JSON in answer to {self.where}, found {found}"
            raise api_error(self.status, text, where=self.where) from error


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
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._retired: list[Connection] = []  # of older credentials; requests may still be under way on them
        self._entry: settings.Entry | None = None
        self._answered: float | None = None
        self._failing_since: float | None = None
        self._troubled = float("-inf")  # when it last gave no answer, or one of trouble

    # --- Who and where -----------------------------------------------------------------------------------------------

    @property
    def server(self) -> str:
        """The address. Raises NoConfiguration."""
        return self.connect().address

    @property
    def namespace(self) -> str:
        """The one of the kubeconfig's context, or of the pod; "" where there is none."""
        if self.source.in_cluster:
            file = settings.ACCOUNT / "namespace"
            return file.read_text().strip() if file.is_file() else ""
        found = self._context().get("namespace")
        return found if isinstance(found, str) else ""

    @property
    def user(self) -> str:
        """The user as the kubeconfig names them; "" where it does not."""
        found = "" if self.source.in_cluster else self._context().get("user")
        return found if isinstance(found, str) else ""

    def _context(self) -> settings.Entry:
        if self._entry is None:
            self._entry = settings.read(self.source).context(self.source.context)
        return self._entry

    def connect(self) -> Connection:
        """Load the credentials, at the first call. Raises NoConfiguration."""
        with self._lock:
            if self._connection is None:
                if not self.source.in_cluster:
                    self._context()
                self._connection = Connection(self.source)
            return self._connection

    def close(self) -> None:
        """End the connections."""
        with self._lock:
            connections, self._retired = self._retired, []
            if self._connection is not None:
                connections.append(self._connection)
            self._connection = None
        for connection in connections:
            connection.close()

    # --- Requests ----------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
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
            path: begins with `/`.
            query: names and values; a name may come twice.
            body: anything that JSON has.
            content_type: of the body; for a PATCH the kind of patch.
            accept: what the answer may be.
            deadline: no timeout goes beyond it; where it has passed, LAST_SECONDS are left for a last look.
            retry: whether to try again after 429, 5xx and broken connections, RETRIES times.

        Raises:
            KubernetesError: see errors.
        """
        request = Request(method, path, query, body, content_type, accept)
        return self.ask(request, deadline=deadline, retry=retry).value

    def raw(
        self,
        path: str,
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
        return Watch(response, lambda error: self._unreachable(broken(error)))

    def websocket(
        self,
        path: str,
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
            return self.connect().websocket(path, query, protocol, self._seconds(deadline))
        except Refused as refused:
            raise self._refusal(refused, where) from refused
        except Broken as problem:
            raise self._unreachable(problem) from problem

    # --- One request -------------------------------------------------------------------------------------------------

    def _send(self, request: Request, deadline: ext_sdk.Deadline, read: float = READ_SECONDS) -> RawResponse:
        seconds = self._seconds(deadline)
        timeout = (min(CONNECT_SECONDS, seconds), min(read, seconds))
        try:
            response = self.connect().send(request, timeout)
        except Refused as refused:
            self._note_answer()
            raise self._refusal(refused, f"{request.method} {request.path}") from refused
        except Broken as problem:
            raise self._unreachable(problem) from problem
        self._note_answer()
        return response

    def _body(self, response: RawResponse, limit: int, deadline: ext_sdk.Deadline) -> bytes:
        import urllib3

        data = bytearray()
        try:
            for piece in response.stream(PIECE):
                data += piece
                if len(data) > limit or deadline.stopped.is_set():
                    response.close()
                    break
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(broken(error)) from error
        response.release_conn()
        return bytes(data)

    @staticmethod
    def _seconds(deadline: ext_sdk.Deadline) -> float:
        """How long a request may take. Raises Stopped where the extension ends."""
        if deadline.stopped.is_set():
            raise Stopped("stopped", error="the operation was stopped: the extension was told to end")
        return max(LAST_SECONDS, deadline.remaining())

    def _repeated(
        self, method: str, attempt: Callable[[], Answer], deadline: ext_sdk.Deadline, *, retries: int
    ) -> Answer:
        pause, renewed = FIRST_PAUSE, False
        for left in range(retries, -1, -1):
            try:
                return attempt()
            except Unauthorized:
                if renewed or not self._renew():
                    raise
                renewed = True
                continue
            except KubernetesError as error:
                wait = _pause(error, method, pause)
                if not left or wait is None or wait > deadline.remaining() or not deadline.wait(wait):
                    raise
            pause *= 2
        return attempt()

    def _renew(self) -> bool:
        """Load the credentials anew: a plugin or a file may have others by now. Returns whether that can be."""
        user = {} if self.source.in_cluster else settings.read(self.source).users.get(self.user, {})
        if not self.source.in_cluster and not {"exec", "tokenFile", "auth-provider"} & user.keys():
            return False
        with self._lock:
            if self._connection is not None:
                self._retired.append(self._connection)
            self._connection = None
        return True

    # --- What went wrong ---------------------------------------------------------------------------------------------

    @property
    def settling(self) -> bool:
        """Whether the server has come back only now: what it refuses, it may not have read the reasons for yet."""
        return time.monotonic() - self._troubled < SETTLING_SECONDS

    def _note_answer(self) -> None:
        self._answered = time.monotonic()
        self._failing_since = None

    def _refusal(self, refused: Refused, where: str) -> ApiError:
        try:
            body: object = json.loads(refused.body)
        except ValueError:
            body = refused.body.decode(errors="replace").strip()
        header = next((value for name, value in refused.headers.items() if name.lower() == "retry-after"), "")
        after = float(header) if header.isdigit() else None
        error = api_error(refused.status, body, retry_after=after, where=where, user=self.user)
        if refused.status >= 500:
            self._troubled = time.monotonic()
        error.passing = refused.status in {401, 403} and self.settling
        return error

    def _unreachable(self, problem: Broken) -> Unreachable:
        now = self._troubled = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        answered = self._answered
        since = now - (self._failing_since if answered is None else answered)
        return Unreachable(self.server, str(problem), since, answered=answered is not None, sent=problem.sent)


def _pause(error: KubernetesError, method: str, pause: float) -> float | None:
    """Seconds to wait before the request is sent again; None: it must not be."""
    if not error.retryable:
        return None
    if isinstance(error, Unreachable) and error.sent and method not in SAFE_TO_REPEAT:
        return None
    if isinstance(error, ApiError):
        if error.status not in {429, 503} and method not in SAFE_TO_REPEAT:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= LONGEST_PAUSE else None
    return pause * random.uniform(0.75, 1.25)  # noqa: S311  (so that many don't come back at the same time)
