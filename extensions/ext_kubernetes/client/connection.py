"""A connection to one API server. `kubernetes` is imported inside of functions, for that takes its time.

Of the package only this is used, which is the same in its versions 35, 36 and 37: the loaders of configurations, and
`DynamicClient(ApiClient(configuration), discoverer=…).request(…, serialize=False)`, which gives authentication, TLS
and proxies, and the pool below it. No typed models, no discovery of its own, no cache on disk, no retries of its own,
and no reading of answers, which the package does to their end where they are failures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from ext_kubernetes.errors import NoConfiguration
from ext_sdk.version import __version__

from .checking import proxy_credentials
from .failing import Failure, raise_failures
from .folder import PrivateFolder
from .headers import add_headers, added, patch_websockets
from .importing import LOCK, warm_up
from .loading import loaded

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kubernetes.dynamic import DynamicClient

    from ext_kubernetes.impersonation import Headers
    from ext_kubernetes.paths import ApiPath
    from ext_kubernetes.settings import Source
    from ext_sdk import Deadline

    from .failing import Pool

USER_AGENT = f"ext-kubernetes/{__version__} gevals-extensions"
JSON = "application/json"
TOKENS = ("BearerToken", "authorization")  # what a token is called in 37 and 36, and in 35
POOL = 600  # connections that are kept: 500 waits at the same time, and room


class RawResponse(Protocol):
    """What urllib3 answers."""

    status: int
    headers: Mapping[str, str]

    def read1(self, amt: int) -> bytes:
        """What there is of the body; nothing at its end."""

    def close(self) -> None:
        """Give the connection up."""

    def release_conn(self) -> None:
        """Give the connection back."""


class Request(NamedTuple):
    """What is sent.

    Attributes:
        method: GET, POST, PUT, PATCH or DELETE.
        path: see paths.
        query: names and values; a name may come twice.
        body: anything that JSON has, or None.
        content_type: of the body.
        accept: what the answer may be.
    """

    method: str
    path: ApiPath
    query: Sequence[tuple[str, str]] = ()
    body: object = None
    content_type: str = JSON
    accept: str = JSON


class Refused(Exception):
    """The server answered with a failure: status, body and headers as they came."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status
        self.body = body
        self.headers = headers


class Broken(Exception):
    """No complete response: str() is the cause.

    Args:
        reason: the cause.
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
    """What the package's websocket client gives, as far as exec, copy and port-forward need it."""

    sock: object

    def close(self) -> None:
        """End it."""


class Connection:
    """Sends requests; safe in several threads.

    Args:
        source: where the settings are.
        deadline: for a credential plugin.
        headers: of every request and websocket; a name may occur several times.

    Raises:
        NoConfiguration: they can't be used.
    """

    def __init__(self, source: Source, deadline: Deadline, headers: Headers = ()) -> None:
        warm_up()
        from kubernetes.client.api_client import ApiClient
        from kubernetes.dynamic import DynamicClient

        self._files = PrivateFolder()
        try:
            self.configuration = loaded(source, self._files.path, deadline)
        except NoConfiguration:
            self._files.remove()
            raise
        # Ours are bounded, tell what they saw and obey Retry-After; urllib3's would come on top of them.
        self.configuration.retries = False
        self.configuration.connection_pool_maxsize = POOL
        api = ApiClient(self.configuration)
        api.user_agent = USER_AGENT
        pool = cast("Pool", api.rest_client.pool_manager)
        raise_failures(pool)
        if headers:
            add_headers(pool, headers)
        self.headers = headers
        make = cast("Callable[..., DynamicClient]", DynamicClient)
        self._dynamic = make(api, discoverer=lambda client, cache_file: None)
        self.address = self.configuration.host

    def secrets(self) -> Iterator[tuple[str, str]]:
        """What must not be seen, by name."""
        for value in self.configuration.api_key.values():
            yield "kubeconfig.token", value.partition(" ")[2] or value
        if credentials := proxy_credentials(self.configuration.proxy):
            yield "kubeconfig.proxy", credentials[1]

    def send(self, request: Request, timeout: tuple[float, float], stopped: threading.Event) -> RawResponse:
        """Send a request; its answer's body is still to be read.

        Args:
            request: what to send.
            timeout: seconds for connecting, and for each read; also for all that a failure has to say.
            stopped: the extension ends.

        Raises:
            Refused: the server answers with a failure.
            Broken: it does not answer.
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
        except Failure as found:
            failure = found
        except ApiException as error:  # of TLS
            raise Broken(str(error.reason).strip().replace("\n", ": "), sent=False) from error
        except urllib3.exceptions.HTTPError as error:
            raise broken(error) from error
        try:
            body = failure.body(timeout[1], stopped)
        except urllib3.exceptions.HTTPError as error:
            raise broken(error) from error
        except TimeoutError as error:
            raise Broken(str(error), sent=True) from error
        raise Refused(failure.response.status, body, failure.response.headers)

    def websocket(self, path: ApiPath, query: Sequence[tuple[str, str]], protocol: str, timeout: float) -> WebSocket:
        """Open a websocket: for exec, copy and port-forward; each has one of its own.

        Args:
            path: of the subresource.
            query: its query.
            protocol: subprotocols, with commas between them.
            timeout: seconds for connecting, and for each read and write.

        Raises:
            Refused, Broken: see send.
        """
        from urllib.parse import urlencode

        with LOCK:
            import websocket
            from kubernetes.stream.ws_client import create_websocket

        address = self.address.replace("http", "ws", 1) + path + ("?" + urlencode(list(query)) if query else "")
        patch_websockets()
        headers = {"sec-websocket-protocol": protocol}
        known = map(self.configuration.get_api_key_with_prefix, TOKENS)
        if authorization := next(filter(None, known), None):
            headers["authorization"] = authorization
        try:
            with added(self.headers):
                opened = cast("Callable[..., WebSocket]", create_websocket)(self.configuration, address, headers)
        except websocket.WebSocketBadStatusException as error:
            raise Refused(error.status_code, _bytes(error.resp_body), error.resp_headers or {}) from error
        except (websocket.WebSocketException, OSError) as error:
            raise Broken(str(error), sent=False, permitted=not isinstance(error, PermissionError)) from error
        opened.sock.settimeout(timeout)  # type: ignore[attr-defined]  # a socket
        return opened

    def close(self) -> None:
        """End the connections, and remove the files with credentials."""
        cast("Callable[[], None]", self._dynamic.client.close)()
        self._files.remove()


def broken(error: Exception) -> Broken:
    """What an exception of urllib3 means."""
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
        text = "connected, but no answer in time"
    return Broken(text, sent=not isinstance(error, never_sent), permitted=not isinstance(cause, PermissionError))


def _bytes(body: object) -> bytes:
    """What the websocket library has of an answer's body."""
    return body if isinstance(body, bytes) else b""
