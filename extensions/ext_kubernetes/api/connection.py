"""Connection to an API server through the `kubernetes` package: requests, responses within limits, websockets.

The context of a kubeconfig has a connection, and loads its credentials again when they change.
"""

from __future__ import annotations

import base64
import http
import json
import threading
import time
import weakref
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from ext_kubernetes.objects.fields import text
from ext_sdk import Deadline
from ext_sdk.core import __version__

from .credentials import PrivateFolder, load_credentials, proxy_credentials
from .errors import NoConfiguration, api_error
from .kubeconfig import GROUPS, USER, impersonation_headers, mtimes_of, public_url, read
from .package_patches import LOCK, UnreadErrorResponse, warm_up, websocket_headers, wrap_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kubernetes.dynamic import DynamicClient

    from .discovery import ApiPath
    from .errors import ApiError
    from .kubeconfig import Entry, Kubeconfig, Source
    from .package_patches import Headers, Pool, RawResponse


MOST_BODY_BYTES = 256 * 1024 * 1024  # of a response
MOST_ERROR_BYTES = 1024 * 1024  # of an error response; messages of servers have hundreds
PIECE = 65_536  # bytes read at once


class Response(NamedTuple):
    """Complete response.

    Attributes:
        where: method and URL of the request, for messages.
        cut: the body is longer than `data`.
    """

    status: int
    data: bytes
    where: str
    cut: bool

    @property
    def value(self) -> object:
        """Return the object of a JSON body, with exact integers; None for status 204. Raises ApiError without one."""
        if self.status == http.HTTPStatus.NO_CONTENT:
            return None
        try:
            value: object = json.loads(self.data)
        except (ValueError, RecursionError) as error:  # RecursionError: a thousand nested arrays
            raise self._unexpected() from error
        if not isinstance(value, dict):
            raise self._unexpected()
        return value

    def _unexpected(self) -> ApiError:
        found = f"more than {len(self.data):,} bytes" if self.cut else repr(self.data[:60]) if self.data else "nothing"
        text = f"expected a JSON object in the response to {self.where}, found {found}"
        return api_error(self.status, text, where=self.where)


def read_body(response: RawResponse, limit: int, seconds: float, stopped: threading.Event) -> bytes:
    """Return the body of a response; at least one byte more than `limit` if it is longer than that.

    Args:
        seconds: for the entire body: a server that sends a byte now and then counts as hanging.

    Raises:
        TimeoutError: the body did not end within `seconds`.
        urllib3.exceptions.HTTPError: the connection broke.
    """
    until = time.monotonic() + seconds
    data = bytearray()
    while piece := response.read1(PIECE):  # the available bytes: waiting for more might be endless
        data += piece
        if time.monotonic() > until:
            response.close()
            raise TimeoutError(f"the response did not end in time, after {len(data):,} bytes")
        if len(data) > limit or stopped.is_set():
            response.close()
            break
    response.release_conn()
    return bytes(data)


USER_AGENT = f"ext-kubernetes/{__version__} gevals-extensions"
JSON = "application/json"
TOKENS = ("BearerToken", "authorization")  # names of a token in versions 37 and 36, and in 35
POOL = 600  # connections kept: for 500 concurrent waits, and some more


class Request(NamedTuple):
    """A request.

    Attributes:
        query: names and values; a name may occur several times.
        content_type: of the body; for a PATCH, it selects the type of patch.
    """

    method: str
    path: ApiPath
    query: Sequence[tuple[str, str]] = ()
    body: object = None
    content_type: str = JSON
    accept: str = JSON


class ErrorResponse(Exception):
    """The server responded with an error status."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status
        self.body = body
        self.headers = headers


class TransportError(Exception):
    """No complete response: str() is the cause.

    Args:
        sent: the server may have received the request.
        begun: the response had begun.
        permitted: the system permits the connection; if not, another try is refused, too.
    """

    def __init__(self, reason: str, *, sent: bool, begun: bool = False, permitted: bool = True) -> None:
        super().__init__(reason)
        self.permitted = permitted
        self.sent = sent
        self.begun = begun


class WebSocket(Protocol):
    """Websocket of the package, as far as exec, copy and port-forward use it."""

    sock: object

    def close(self) -> None:
        """Close the connection."""


class Connection:
    """Sends requests to one server with one set of credentials; thread-safe.

    Args:
        kubeconfig: content of the files of the source; None for a service account.
        deadline: for a credential plugin.
        headers: of every request and websocket; a name may occur several times.

    Raises:
        NoConfiguration: the configuration or the credentials can't be used.
    """

    def __init__(
        self, source: Source, kubeconfig: Kubeconfig | None, deadline: Deadline, headers: Headers = ()
    ) -> None:
        warm_up()
        from kubernetes.client.api_client import ApiClient
        from kubernetes.dynamic import DynamicClient

        files = PrivateFolder()
        self._remove_files = weakref.finalize(self, files.remove)
        try:
            self.configuration = load_credentials(source, kubeconfig, files.path, deadline)
        except NoConfiguration:
            self._remove_files()
            raise
        # Client retries: bounded by the deadline, and after the time that the server asks for.
        self.configuration.retries = False
        self.configuration.connection_pool_maxsize = POOL
        api = ApiClient(self.configuration)
        api.user_agent = USER_AGENT
        wrap_pool(cast("Pool", api.rest_client.pool_manager), headers)
        self.headers = headers
        make = cast("Callable[..., DynamicClient]", DynamicClient)
        self._dynamic = make(api, discoverer=lambda client, cache_file: None)
        self.address = self.configuration.host
        self.proxy_credentials = proxy_credentials(self.configuration.proxy)

    def send(self, request: Request, timeout: tuple[float, float], stopped: threading.Event) -> RawResponse:
        """Send a request; the body of the response is still to be read.

        Args:
            timeout: seconds for connecting, and for each read; also for the entire body of an error response.
            stopped: set when the extension ends.

        Raises:
            ErrorResponse: the server responds with an error.
            TransportError: the server does not respond.
        """
        import urllib3
        from kubernetes.client.exceptions import ApiException

        send = cast("Callable[..., RawResponse]", self._dynamic.request)
        try:
            return send(
                request.method.lower(),
                request.path,
                body=request.body,
                query_params=list(request.query),
                header_params={"Accept": request.accept},
                content_type=request.content_type,
                serialize=False,
                _request_timeout=timeout,
            )
        except UnreadErrorResponse as error:
            response = error.response
        except ApiException as error:  # of TLS
            raise TransportError(str(error.reason).strip().replace("\n", ": "), sent=False) from error
        except urllib3.exceptions.HTTPError as error:
            raise transport_error(error) from error
        try:
            body = read_body(response, MOST_ERROR_BYTES, timeout[1], stopped)
        except urllib3.exceptions.HTTPError as error:
            raise transport_error(error) from error
        except TimeoutError as error:
            raise TransportError(str(error), sent=True) from error
        raise ErrorResponse(response.status, body, response.headers)

    def websocket(self, path: ApiPath, query: Sequence[tuple[str, str]], protocol: str, timeout: float) -> WebSocket:
        """Open a websocket for exec, copy or port-forward.

        Args:
            protocol: subprotocols, separated by commas.
            timeout: seconds for connecting, and for each read and write.

        Raises:
            ErrorResponse, TransportError: see send.
        """
        from urllib.parse import urlencode

        with LOCK:
            import websocket
            from kubernetes.stream.ws_client import create_websocket

        address = self.address.replace("http", "ws", 1) + path + ("?" + urlencode(list(query)) if query else "")
        headers = {"sec-websocket-protocol": protocol}
        tokens = map(self.configuration.get_api_key_with_prefix, TOKENS)
        if authorization := next(filter(None, tokens), None):
            headers["authorization"] = authorization
        try:
            with websocket_headers(self.headers):
                opened = cast("Callable[..., WebSocket]", create_websocket)(self.configuration, address, headers)
        except websocket.WebSocketBadStatusException as error:
            body = error.resp_body if isinstance(error.resp_body, bytes) else b""
            raise ErrorResponse(error.status_code, body, error.resp_headers or {}) from error
        except (websocket.WebSocketException, OSError) as error:
            raise TransportError(str(error), sent=False, permitted=not isinstance(error, PermissionError)) from error
        opened.sock.settimeout(timeout)  # type: ignore[attr-defined]  # a socket
        return opened

    def cluster_entry(self) -> Entry:
        """Return the cluster of this connection for another kubeconfig, with its certificate authority."""
        configuration = self.configuration
        entry: Entry = {"server": configuration.host}
        if configuration.ssl_ca_cert:
            authority = Path(configuration.ssl_ca_cert).read_bytes()
            entry["certificate-authority-data"] = base64.b64encode(authority).decode()
        if not configuration.verify_ssl:
            entry["insecure-skip-tls-verify"] = True
        if name := getattr(configuration, "tls_server_name", None):
            entry["tls-server-name"] = name
        if configuration.proxy:
            entry["proxy-url"] = public_url(configuration.proxy)
        return entry

    def close(self) -> None:
        """Close the connections, and remove the files with credentials."""
        cast("Callable[[], None]", self._dynamic.client.close)()
        self._remove_files()


def transport_error(error: Exception) -> TransportError:
    """Return the error for an exception of urllib3."""
    from urllib3 import exceptions

    never_sent = (
        exceptions.NewConnectionError,
        exceptions.ConnectTimeoutError,
        exceptions.ProxyError,
        exceptions.SSLError,
    )
    text = str(error)
    cause = error.__cause__ or error.__context__
    if isinstance(error, exceptions.ProtocolError) and error.args:
        text = str(error.args[-1])
    if isinstance(error, exceptions.NewConnectionError):  # a ConnectTimeoutError, too
        text = text.split(": ", 1)[-1]
    elif isinstance(error, exceptions.ProxyError):
        text = f"{error.args[0]}: {str(error.original_error).split(': ', 1)[-1]}"
    elif isinstance(error, exceptions.ConnectTimeoutError):
        text = "no connection in time"
    elif isinstance(error, exceptions.ReadTimeoutError):
        text = "connected, but no response in time"
    return TransportError(
        text, sent=not isinstance(error, never_sent), permitted=not isinstance(cause, PermissionError)
    )


RENEWABLE = frozenset({"exec", "tokenFile", "auth-provider"})  # members of a user whose token may change


class KubeContext:
    """Context of a kubeconfig, or the service account of a pod; thread-safe.

    Attributes:
        generation: number of times that the credentials were loaded again.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._retired: list[Connection] = []  # with previous credentials; they may still have pending requests
        self._kubeconfig: Kubeconfig | None = None
        self._mtimes = source.mtimes
        self.generation = 0

    @cached_property  # a file that changes has another source, and so another context
    def namespace(self) -> str:
        """Return the namespace of the kubeconfig's context, or of the pod; "" without one."""
        if self.source.in_cluster:
            file = self.source.account / "namespace"
            return file.read_text().strip() if file.is_file() else ""
        return text(self._read().usable(self.source.context), "namespace")

    @property
    def user(self) -> str:
        """Return the name of the user in the kubeconfig; "" without one."""
        return "" if self.source.in_cluster else text(self._read().usable(self.source.context), "user")

    def _read(self) -> Kubeconfig:
        if self._kubeconfig is None:
            self._kubeconfig = read(self.source)
        return self._kubeconfig

    def connect(self, deadline: Deadline | None = None) -> Connection:
        """Return the connection; the first call loads the credentials.

        Raises:
            NoConfiguration: the credentials are missing, or could not be loaded before the deadline.
        """
        if (connection := self._connection) is not None:
            return connection
        deadline = deadline or Deadline()
        # The lock is held until the credentials are loaded; a plugin may take some time.
        seconds = min(deadline.remaining(), threading.TIMEOUT_MAX)
        if not (self._lock.acquire(blocking=False) or self._lock.acquire(timeout=seconds)):
            raise NoConfiguration(
                "no credentials", error=f"the credentials of {self.source} are still being loaded by another call"
            )
        try:
            if self._connection is None:
                warm_up()  # first: then reading the kubeconfig imports only a part of the YAML library
                source, user = self.source, self.user
                kubeconfig = None if source.in_cluster else self._read()
                entry = kubeconfig.users.get(user, {}) if kubeconfig else {}
                if source.user:  # of the step; it replaces that of the kubeconfig
                    entry, user = {USER: source.user, GROUPS: list(source.groups)}, source.user
                headers = impersonation_headers(entry, user)
                self._connection = Connection(source, kubeconfig, deadline, headers)
            return self._connection
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            connections, self._retired = self._retired, []
            if self._connection is not None:
                connections.append(self._connection)
            self._connection = None
        for connection in connections:
            connection.close()

    def reload_credentials(self, seen: int) -> bool:
        """Discard the credentials if a plugin or a file may have others; the next `connect` loads them.

        Args:
            seen: generation of the credentials that were rejected.

        Returns:
            True if there may be other credentials, also if another thread has reloaded them.
        """
        if self.generation != seen:
            return True
        user = {} if self.source.in_cluster else read(self.source).users.get(self.user, {})
        mtimes = mtimes_of(self.source.files)
        rewritten, self._mtimes = mtimes != self._mtimes, mtimes
        if not (self.source.in_cluster or RENEWABLE & user.keys() or rewritten):
            return False
        with self._lock:
            self.generation += 1
            self._kubeconfig = None
            if self._connection is not None:
                self._retired.append(self._connection)
            self._connection = None
        return True
