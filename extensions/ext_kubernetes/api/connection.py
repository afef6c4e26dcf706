"""Connection to an API server through the `kubernetes` package: requests, responses within limits, websockets."""

from __future__ import annotations

import http
import json
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from ext_sdk.core.version import __version__

from .credentials import loaded, proxy_credentials
from .errors import NoConfiguration, api_error
from .lazy_import import LOCK, warm_up
from .private_folder import PrivateFolder

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kubernetes.dynamic import DynamicClient

    from ext_sdk import Deadline

    from .errors import ApiError
    from .impersonation import Headers
    from .kubeconfig import Source
    from .paths import ApiPath


MOST_BODY_BYTES = 256 * 1024 * 1024  # of an answer
PIECE = 65_536  # bytes read at once


class Response(NamedTuple):
    """What a server answered: the status of HTTP, the body, what was asked, and whether the body went on."""

    status: int
    data: bytes
    where: str
    cut: bool

    @property
    def value(self) -> object:
        """Return the object of a JSON body; None for status 204. Integers are exact. Raises ApiError if it has none."""
        if self.status == http.HTTPStatus.NO_CONTENT:
            return None
        try:
            value: object = json.loads(self.data)
        except (ValueError, RecursionError) as error:  # RecursionError: a thousand arrays within each other
            raise self._unexpected() from error
        if not isinstance(value, dict):
            raise self._unexpected()
        return value

    def _unexpected(self) -> ApiError:
        found = f"more than {len(self.data):,} bytes" if self.cut else repr(self.data[:60]) if self.data else "nothing"
        text = f"expected a JSON object in answer to {self.where}, found {found}"
        return api_error(self.status, text, where=self.where)


def read_body(response: RawResponse, limit: int, seconds: float, stopped: threading.Event) -> bytes:
    """The body of an answer; one byte more than `limit` at least where it goes on.

    Args:
        response: whose body is still to be read.
        limit: bytes.
        seconds: for all of it: a server that sends a byte now and then is none that answers.
        stopped: the extension ends.

    Raises:
        TimeoutError: it did not end in time.
        urllib3.exceptions.HTTPError: it broke off.
    """
    until = time.monotonic() + seconds
    data = bytearray()
    while piece := response.read1(PIECE):  # what is there: to wait for more would be without end
        data += piece
        if time.monotonic() > until:
            response.close()
            raise TimeoutError(f"the answer did not end in time, after {len(data):,} bytes")
        if len(data) > limit or stopped.is_set():
            response.close()
            break
    response.release_conn()
    return bytes(data)


MOST_ERROR_BYTES = 1024 * 1024  # of an answer that is a failure; what a server says is hundreds


class Pool(Protocol):
    """What the package sends requests by: urllib3's manager of pools."""

    request: Callable[..., RawResponse]


class UnreadErrorResponse(Exception):
    """An answer that is a failure; its body is still to be read."""

    def __init__(self, response: RawResponse) -> None:
        super().__init__(f"HTTP status {response.status}")
        self.response = response

    def body(self, seconds: float, stopped: threading.Event) -> bytes:
        """The first MOST_BYTES of its body, or some more; see read_body."""
        return read_body(self.response, MOST_ERROR_BYTES, seconds, stopped)


def raise_failures(pool: Pool) -> None:
    """Have a pool raise Failure for what is none of the statuses 200 to 299, before anybody reads it."""
    send = pool.request

    def request(*args: object, **options: object) -> RawResponse:
        response = send(*args, **options)
        if 200 <= response.status <= 299:
            return response
        raise UnreadErrorResponse(response)

    pool.request = request


_WEBSOCKET: ContextVar[Headers] = ContextVar("headers of websockets", default=())


def add_headers(pool: Pool, headers: Headers) -> None:
    """Have a pool send headers with every request; a name may occur several times."""
    from urllib3 import HTTPHeaderDict

    send = pool.request

    def request(*args: object, **options: object) -> RawResponse:
        sent = HTTPHeaderDict(cast("Mapping[str, str] | None", options.get("headers")))
        for name, value in headers:
            sent.add(name, value.encode().decode("latin-1"))  # http.client encodes as Latin-1: UTF-8 is sent
        return send(*args, **(options | {"headers": sent}))

    pool.request = request


@contextmanager
def added(headers: Headers) -> Iterator[None]:
    """Send headers with the websockets that this thread opens within the block; see patch_websockets."""
    token = _WEBSOCKET.set(headers)
    try:
        yield
    finally:
        _WEBSOCKET.reset(token)


def patch_websockets() -> None:
    """Have the package open websockets with the headers of `added`; it passes only two of its own on."""
    from kubernetes.stream import ws_client
    from websocket import WebSocket

    if isinstance(vars(ws_client)["WebSocket"], type) and vars(ws_client)["WebSocket"] is not WebSocket:
        return

    class WithHeaders(WebSocket):
        """A websocket whose first request has further headers."""

        def connect(self, url: str, **options: object) -> None:
            """Connect; see the base."""
            lines = cast("list[str]", options.get("header") or [])
            more = [f"{name}: {value}" for name, value in _WEBSOCKET.get()]
            super().connect(url, **(options | {"header": [*lines, *more]}))  # type: ignore[no-untyped-call]

    vars(ws_client)["WebSocket"] = WithHeaders


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


class ErrorResponse(Exception):
    """The server answered with a failure: status, body and headers as they came."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status
        self.body = body
        self.headers = headers


class TransportError(Exception):
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
        except UnreadErrorResponse as found:
            failure = found
        except ApiException as error:  # of TLS
            raise TransportError(str(error.reason).strip().replace("\n", ": "), sent=False) from error
        except urllib3.exceptions.HTTPError as error:
            raise transport_error(error) from error
        try:
            body = failure.body(timeout[1], stopped)
        except urllib3.exceptions.HTTPError as error:
            raise transport_error(error) from error
        except TimeoutError as error:
            raise TransportError(str(error), sent=True) from error
        raise ErrorResponse(failure.response.status, body, failure.response.headers)

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
            raise ErrorResponse(error.status_code, _bytes(error.resp_body), error.resp_headers or {}) from error
        except (websocket.WebSocketException, OSError) as error:
            raise TransportError(str(error), sent=False, permitted=not isinstance(error, PermissionError)) from error
        opened.sock.settimeout(timeout)  # type: ignore[attr-defined]  # a socket
        return opened

    def close(self) -> None:
        """End the connections, and remove the files with credentials."""
        cast("Callable[[], None]", self._dynamic.client.close)()
        self._files.remove()


def transport_error(error: Exception) -> TransportError:
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
    return TransportError(
        text, sent=not isinstance(error, never_sent), permitted=not isinstance(cause, PermissionError)
    )


def _bytes(body: object) -> bytes:
    """What the websocket library has of an answer's body."""
    return body if isinstance(body, bytes) else b""
