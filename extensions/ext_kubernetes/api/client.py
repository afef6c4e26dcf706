"""Client of one API server: requests with timeouts and bounded retries, watches and websockets."""

from __future__ import annotations

import json
import math
import random
import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import ext_sdk
from ext_kubernetes.api.connection import (
    JSON,
    MOST_BODY_BYTES,
    ErrorResponse,
    KubeContext,
    Request,
    Response,
    TransportError,
    WebSocket,
    read_body,
    transport_error,
)
from ext_kubernetes.api.discovery import Discovery, api_path, core_path
from ext_kubernetes.api.errors import (
    REFUSAL_CHECK,
    ApiError,
    InvalidName,
    KubernetesError,
    NotFound,
    Stopped,
    Unauthorized,
    Unreachable,
    api_error,
)
from ext_kubernetes.api.kubeconfig import Source, find_source, public_url, source_of_step
from ext_kubernetes.config import ClusterArgs, KubernetesConfig
from ext_kubernetes.objects.fields import items, text
from ext_sdk.context import ClientCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ext_kubernetes.api.connection import Connection
    from ext_kubernetes.api.discovery import ApiPath, Resource
    from ext_kubernetes.api.package_patches import RawResponse
    from ext_kubernetes.config import KubeconfigArgs
    from ext_kubernetes.objects.yaml_loader import Object

RETRIES = 4
FIRST_PAUSE = 0.05  # seconds before the first retry; doubles
LONGEST_PAUSE = 1.0  # seconds between two attempts, unless the server asks for more
SAFE_TO_REPEAT = frozenset({"GET", "PUT", "PATCH", "DELETE"})  # a POST that may have arrived is not sent again


def counts(error: KubernetesError) -> bool:
    """Return True if a failure uses up one of the RETRIES.

    A response with Retry-After does not, nor does an error of a server that is starting: both end, at the latest, with
    the deadline of the operation.
    """
    return not isinstance(error, ApiError) or (error.retry_after is None and not error.transient)


def pause_before(error: KubernetesError, method: str, pause: float) -> float | None:
    """Return the seconds to wait before the request is sent again; None if it must not be."""
    if not error.retryable:
        return None
    if isinstance(error, Unreachable) and error.sent and method not in SAFE_TO_REPEAT:
        return None
    if isinstance(error, ApiError):
        if error.status not in {429, 503} and method not in SAFE_TO_REPEAT:
            return None
        if error.retry_after is not None:
            return max(error.retry_after, pause)
    return pause * random.uniform(0.75, 1.25)  # noqa: S311  (so that clients do not return at the same time)


# A server loads roles and definitions 0.2 s after its first response, on a busy machine up to more than 5 s.
SETTLING_SECONDS = 15.0


class Health:
    """Health of one server, by its previous responses."""

    def __init__(self) -> None:
        self._responded_at: float | None = None
        self._failing_since: float | None = None
        self._trouble_at = float("-inf")  # time of the last missing response or status 5xx

    @property
    def settling(self) -> bool:
        """Return True shortly after an outage: the server may reject requests for state that it has not loaded."""
        return time.monotonic() - self._trouble_at < SETTLING_SECONDS

    def note_response(self) -> None:
        """Record that the server responded, with any status."""
        self._responded_at = time.monotonic()
        self._failing_since = None

    def api_error(self, response: ErrorResponse, where: str, user: str) -> ApiError:
        """Return the error for an error response."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            body: object = json.loads(response.body)
        except ValueError:
            body = response.body.decode(errors="replace").strip()
        if 300 <= response.status < 400:
            address = public_url(headers.get("location", "")) or "an empty address"
            body = (
                f"expected a response of an API server, got a redirect to {address}, which is not followed because "
                "requests have a token: check the `server` of the kubeconfig, or log in to the proxy in front of it"
            )
        after = headers.get("retry-after", "")
        seconds = float(after) if after.isdigit() else None
        error = api_error(response.status, body, retry_after=seconds, where=where, user=user)
        if response.status >= 500:
            self._trouble_at = time.monotonic()
        error.transient = response.status in {401, 403} and self.settling
        return error

    def unreachable(self, problem: TransportError, address: str, elapsed: float) -> Unreachable:
        """Return the error for a missing response; `elapsed`: seconds since the call began."""
        now = self._trouble_at = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        answered = self._responded_at
        since = min(elapsed, now - self._failing_since) if answered is None else now - answered
        error = Unreachable(
            address, str(problem), since, answered=answered is not None, sent=problem.sent, begun=problem.begun
        )
        error.transient = problem.permitted
        return error


CONNECT_SECONDS = 5.0  # to connect to a server
READ_SECONDS = 30.0  # without a byte of the response
WATCH_SECONDS = 240.0  # after which a server ends a watch; another one continues
UNLIMITED_SECONDS = 60.0  # for all attempts of a call without a deadline
LAST_SECONDS = 1.0  # for the last poll, which begins at the deadline
PAGE = 500  # objects in one page of a list
MOST_PAGES = 200


class Client:
    """Client of one API server; thread-safe.

    Attributes:
        discovery: kinds of the server.
        connect: returns the connection; the first call loads the credentials. Raises NoConfiguration.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.discovery = Discovery(self)
        self._context = KubeContext(source)
        self.connect = self._context.connect
        self._health = Health()

    @property
    def server(self) -> str:
        """Return the address. Raises NoConfiguration."""
        return self._context.connect().address

    @cached_property
    def namespace(self) -> str:
        """Return the namespace of the kubeconfig's context, or of the pod; "" without one."""
        return self._context.namespace

    @property
    def settling(self) -> bool:
        """Return True shortly after an outage; see Health."""
        return self._health.settling

    def close(self) -> None:
        """Close the connections."""
        self._context.close()

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
        """Send a request, and return the value of its JSON response; see Request and `ask`. Raises KubernetesError."""
        request = Request(method, path, query, body, content_type, accept)
        return self.ask(request, deadline=deadline, retry=retry).value

    def list(
        self, resource: Resource, namespace: str, query: Sequence[tuple[str, str]] = (), *, deadline: ext_sdk.Deadline
    ) -> list[Object]:
        """Read all objects of a kind page by page, each with its kind and apiVersion, which lists omit.

        Args:
            namespace: "" for all, and for cluster-scoped kinds.
            query: selectors.

        Raises:
            KubernetesError: a request failed.
        """
        kind: Object = {"kind": resource.kind, "apiVersion": resource.api_version}
        objects: list[Object] = []
        next_page: tuple[tuple[str, str], ...] = ()
        for _ in range(MOST_PAGES):
            parameters = [("limit", str(PAGE)), *query, *next_page]
            page = self.request("GET", resource.path(namespace), query=parameters, deadline=deadline)
            objects += [kind | item for item in items(page, "items")]
            if not (token := text(page, "metadata", "continue")):
                break
            next_page = (("continue", token),)
        return objects

    def raw(
        self, path: ApiPath, *, query: Sequence[tuple[str, str]] = (), deadline: ext_sdk.Deadline, limit: int
    ) -> bytes:
        """GET data that is not JSON, such as a log: at most its first `limit` bytes. Raises KubernetesError."""
        return self.ask(Request("GET", path, query, accept="*/*"), deadline=deadline, limit=limit).data

    def ask(
        self, request: Request, *, deadline: ext_sdk.Deadline, retry: bool = True, limit: int = MOST_BODY_BYTES
    ) -> Response:
        """Send a request, and return the response.

        Args:
            deadline: limit of all timeouts; after it, LAST_SECONDS are left for a last poll.
            retry: retry after 429, 5xx and broken connections: RETRIES times, or until the deadline if the server asks
                to wait or is starting.
            limit: maximum number of bytes of the response.

        Raises:
            KubernetesError: the request failed.
        """
        left, reloaded = RETRIES if retry else 0, False
        time_limit: ext_sdk.Deadline | None = None
        pause = FIRST_PAUSE
        while True:
            generation = self._context.generation
            try:
                return self._send_once(request, deadline, limit)
            except KubernetesError as error:
                rejected = isinstance(error, Unauthorized) and not reloaded
                if rejected and self._context.reload_credentials(generation):
                    reloaded = True
                    continue
                left -= counts(error)
                wait = pause_before(error, request.method, pause)
                if not retry or left < 0 or wait is None:
                    raise
                if time_limit is None:
                    time_limit = deadline.limit(UNLIMITED_SECONDS) if math.isinf(deadline.remaining()) else deadline
                if wait > time_limit.remaining() or not time_limit.wait(wait):
                    raise
            pause = min(2 * pause, LONGEST_PAUSE)

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
        """Watch all objects of a kind, one of them, or those of a label selector; the events include bookmarks.

        Args:
            namespace: "" for all namespaces, and for cluster-scoped kinds.
            resource_version: version to continue from; "": existing objects come first, as ADDED.

        Raises:
            KubernetesError: the request failed; iterating raises later errors.
        """
        seconds = min(WATCH_SECONDS, max(1.0, deadline.remaining()))
        query = [("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(int(seconds)))]
        query += [("fieldSelector", f"metadata.name={name}")] if name else []
        query += [("labelSelector", selector)] if selector else []
        query += [("resourceVersion", resource_version)] if resource_version else []
        connection = self._context.connect(deadline)
        request = Request("GET", resource.path(namespace), query)
        response = self._send(connection, request, deadline, self._seconds(deadline), seconds + CONNECT_SECONDS)
        return Watch(response, lambda error: self._unreachable(transport_error(error), connection, deadline))

    def websocket(
        self,
        path: ApiPath,
        query: Sequence[tuple[str, str]],
        deadline: ext_sdk.Deadline,
        protocol: str = "v4.channel.k8s.io",
    ) -> WebSocket:
        """Open a websocket for exec, copy or port-forward.

        Args:
            deadline: limit of each read.
            protocol: subprotocols, separated by commas.

        Raises:
            KubernetesError: the request failed.
        """
        connection = self._context.connect(deadline)
        try:
            return connection.websocket(path, query, protocol, self._seconds(deadline))
        except ErrorResponse as response:
            raise self._health.api_error(response, f"GET {path}", self._context.user) from response
        except TransportError as problem:
            raise self._unreachable(problem, connection, deadline) from problem

    def _send_once(self, request: Request, deadline: ext_sdk.Deadline, limit: int) -> Response:
        """Send a request without retries. Raises KubernetesError."""
        import urllib3

        connection = self._context.connect(deadline)
        seconds = self._seconds(deadline)
        response = self._send(connection, request, deadline, seconds)
        try:
            data = read_body(response, limit, seconds, deadline.stopped)
        except (TimeoutError, urllib3.exceptions.HTTPError) as error:
            reason = str(error) if isinstance(error, TimeoutError) else f"it broke off: {transport_error(error)}"
            problem = TransportError(reason, sent=True, begun=True)
            raise self._unreachable(problem, connection, deadline) from error
        where = f"{request.method} {connection.address}{request.path}"
        return Response(response.status, data[:limit], where, cut=len(data) > limit)

    def _send(
        self,
        connection: Connection,
        request: Request,
        deadline: ext_sdk.Deadline,
        seconds: float,
        read: float = READ_SECONDS,
    ) -> RawResponse:
        """Send a request, and return the response whose body is still to be read.

        Args:
            seconds: time limit of the request.
            read: seconds without a byte of the response.
        """
        timeout = (min(CONNECT_SECONDS, seconds), min(read, seconds))
        try:
            response = connection.send(request, timeout, deadline.stopped)
        except ErrorResponse as error:
            self._health.note_response()
            where = f"{request.method} {request.path}"
            raise self._health.api_error(error, where, self._context.user) from error
        except TransportError as problem:
            raise self._unreachable(problem, connection, deadline) from problem
        self._health.note_response()
        return response

    def _unreachable(self, problem: TransportError, connection: Connection, deadline: ext_sdk.Deadline) -> Unreachable:
        return self._health.unreachable(problem, connection.address, deadline.elapsed())

    @staticmethod
    def _seconds(deadline: ext_sdk.Deadline) -> float:
        """Return the time limit of a request. Raises Stopped if the extension ends."""
        if deadline.stopped.is_set():
            raise Stopped("stopped", error="the operation was stopped, because the extension ends")
        return max(LAST_SECONDS, deadline.remaining())


class Clients(ClientCache[Source, Client]):
    """Clients of a process, by source: a changed file has a client of its own, and so has each user to act as."""

    most = 64

    def make(self, settings: Source) -> Client:
        return Client(settings)


SERVICE_ACCOUNT = "system:serviceaccount:"  # NAMESPACE:NAME follow
SERVICE_ACCOUNTS = "system:serviceaccounts"  # the group of all of them; with :NAMESPACE that of a namespace


def check_user(context: ext_sdk.Context, name: str, value: str) -> None:
    """Check the user that an argument names.

    Raises:
        ext_sdk.InvalidArgs: it is empty, so that the operation would act as your own user, or the name of a group.
    """
    if name in context.given and not value:
        raise ext_sdk.InvalidArgs(name, "expected a user, found an empty text; omit it to act as your own user")
    if value.startswith(f"{SERVICE_ACCOUNTS}:"):
        raise ext_sdk.InvalidArgs(
            name, f"expected a user, such as {SERVICE_ACCOUNT}NAMESPACE:NAME, found the group {value!r}"
        )


def source_for(context: ext_sdk.Context, args: KubeconfigArgs) -> Source:
    """Return the source of the settings for a call.

    Raises:
        NoConfiguration: the kubeconfig does not exist.
        ext_sdk.InvalidArgs: the arguments exclude each other, or an empty one would choose your own user.
    """
    config = context.config_as(KubernetesConfig)
    for name, value in (("kubeconfig", args.kubeconfig), ("context", args.context)):
        if name in context.given and not value:
            raise ext_sdk.InvalidArgs(name, "expected a value, found an empty text; omit it for the configured one")
    if args.kubeconfig:
        source = source_of_step(args.kubeconfig, args.context, context.workdir)
    else:
        chosen = args.context or config.context
        source = find_source(config.kubeconfig, config.service_account, chosen, context.env, context.workdir)
        source = source._replace(of_step=bool(args.context))
    if args.context and source.in_cluster:
        raise ext_sdk.InvalidArgs(
            "context", "expected no context, because the service account of the pod is used; or set `kubeconfig`"
        )
    if not isinstance(args, ClusterArgs):
        return source
    if args.as_groups and not args.as_user:
        raise ext_sdk.InvalidArgs("asGroups", "expected `asUser`, too: groups belong to a user")
    check_user(context, "asUser", args.as_user)
    for name, value in (("asUser", args.as_user), *(("asGroups", group) for group in args.as_groups)):
        if not value.isprintable() or value != value.strip() or (name == "asGroups" and not value):
            raise ext_sdk.InvalidArgs(name, f"expected a name without spaces around it, found {value!r}")
    return source._replace(user=args.as_user, groups=tuple(args.as_groups))


def client_for(context: ext_sdk.Context, args: ClusterArgs) -> Client:
    """Return the client of a call, without sending a request.

    Raises:
        NoConfiguration: the kubeconfig is missing or can't be used.
        ext_sdk.InvalidArgs: see source_for.
    """
    source, clients = source_for(context, args), context.extension_state(Clients)
    client = clients.get(source)
    if source.user:  # the kinds of a server are the same for all users, and the user may not be allowed to list them
        client.discovery = clients.get(source._replace(user="", groups=())).discovery
    if args.refusal:
        REFUSAL_CHECK.set(partial(missing_subject, context, args, args.as_user))
    return _connected(client, context)


def observer_for(context: ext_sdk.Context, args: ClusterArgs) -> Client:
    """Return a client of your own user for the server of a call: the configured user, or that of the `context`.

    The user of a `kubeconfig` argument is an agent's, unless that file is of another server.
    """
    clients = context.extension_state(Clients)
    client = clients.get(source_for(context, args)._replace(user="", groups=()))
    if not args.kubeconfig:
        return _connected(client, context)
    config = context.config_as(KubernetesConfig)
    try:
        source = find_source(config.kubeconfig, config.service_account, config.context, context.env, context.workdir)
        configured = _connected(clients.get(source), context)
    except KubernetesError:
        return client
    return configured if configured.server == client.server else client


def missing_subject(context: ext_sdk.Context, args: ClusterArgs, user: str, namespaces: Iterable[str]) -> str:
    """Return an error text if a refusal proves nothing: the refused service account, or a namespace, does not exist.

    It is read as your own user, because the refused one may not read it. The text is "" if it exists or can't be read.

    Args:
        user: the refused user; "" for that of the credentials.
    """
    observer = observer_for(context, args)
    needed = [(f"namespace {namespace}", "namespaces", "", namespace) for namespace in namespaces if namespace]
    if user.startswith(SERVICE_ACCOUNT):
        of, _, name = user.removeprefix(SERVICE_ACCOUNT).partition(":")
        if not (of and name):
            return f"expected {SERVICE_ACCOUNT}NAMESPACE:NAME, found {user!r}"
        needed.append((f"service account {of}/{name}", "serviceaccounts", of, name))
    for what, plural, namespace, name in needed:
        try:
            observer.request("GET", core_path(plural, namespace, name), deadline=context.deadline, retry=False)
        except (NotFound, InvalidName):
            return f"{what} does not exist"
        except KubernetesError:  # a user who may not read it may be right all the same
            continue
    return ""


def _connected(client: Client, context: ext_sdk.Context) -> Client:
    """Load the credentials of a client, which are secret, and return it."""
    connection = client.connect(context.deadline)
    for value in connection.configuration.api_key.values():  # a refresh replaces them
        context.secrets.add("kubeconfig.token", value.partition(" ")[2] or value)
    if connection.proxy_credentials:
        context.secrets.add("kubeconfig.proxy", connection.proxy_credentials[1])
    return client


REVIEWS = "authorization.k8s.io"


def review(kind: str, spec: Object, context: ext_sdk.Context, client: Client) -> object:
    """Create an access review, and return it with its status."""
    body = {"apiVersion": f"{REVIEWS}/v1", "kind": kind, "spec": spec}
    return client.request("POST", api_path(REVIEWS, "v1", f"{kind.lower()}s"), body=body, deadline=context.deadline)


PIECE = 65_536  # bytes read at once
LONGEST_EVENT = 16 * 1024 * 1024  # bytes; etcd keeps objects under 2 MB


class Event(NamedTuple):
    """Event: ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: Object


class Watch:
    """Iterator over the events of one watch, until the server or the deadline ends it.

    Iterating raises ApiError (Gone if the version to continue from is too old) and Unreachable.
    """

    def __init__(self, response: RawResponse, failed: Callable[[Exception], Unreachable]) -> None:
        self._response = response
        self._failed = failed
        self._closed = False

    def __iter__(self) -> Iterator[Event]:
        import urllib3

        pending = b""
        try:
            while piece := self._response.read1(PIECE):
                pending += piece
                *lines, pending = pending.split(b"\n")
                for event in map(json.loads, filter(bytes.strip, lines)):
                    kind, item = event.get("type"), event.get("object")
                    if not isinstance(kind, str) or not isinstance(item, dict):
                        raise ValueError("an event without type and object")  # noqa: TRY004  (the server's text)
                    if kind == "ERROR":
                        code = item.get("code")
                        raise api_error(code if isinstance(code, int) else 500, item, where="watch")
                    yield Event(kind, item)
                if len(pending) > LONGEST_EVENT:
                    raise self._failed(ValueError(f"an event of more than {LONGEST_EVENT} bytes"))
        except urllib3.exceptions.ReadTimeoutError:
            return
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if not self._closed:
                raise self._failed(error) from error
        finally:
            self._response.close()

    def close(self) -> None:
        """End the watch, from any thread; iterating stops."""
        self._closed = True
        shutdown = getattr(self._response, "shutdown", None)
        try:
            if shutdown is not None:
                shutdown()
            else:
                self._response.close()
        except (OSError, ValueError, RuntimeError):  # it has ended already
            pass
