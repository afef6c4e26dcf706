"""An MCP server with Streamable HTTP, with tools that use all of the transport, and a client for it."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import uuid
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from tests.support.host import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

Message = dict[str, Any]
BOTH = "application/json, text/event-stream"
REVISION = "2025-11-25"


class _Session:
    """Session of a client: what its streams have to send."""

    def __init__(self) -> None:
        self.outbox: queue.Queue[tuple[str, Message] | None] = queue.Queue()  # of the stream of GET, with ids
        self.responses: queue.Queue[Message] = queue.Queue()
        self.expired = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: McpHttpServer

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.headers.append(dict(self.headers))
        self.server.paths.add(self.path)
        messages = body if isinstance(body, list) else [body]
        if messages[0].get("method") == "initialize":
            self.server.sessions[given := uuid.uuid4().hex] = _Session()
            result = {"protocolVersion": REVISION, "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "tests", "version": "1"}
            self._json({"jsonrpc": "2.0", "id": messages[0]["id"], "result": result}, {"Mcp-Session-Id": given})
            return
        if (session := self._session()) is None:
            return
        requests = [message for message in messages if "method" in message and "id" in message]
        for message in messages:
            if "method" not in message:
                session.responses.put(message)
        if not requests:
            self._respond(202)
        elif isinstance(body, list):
            results = [_answer(message, str(message["params"]["arguments"]["a"])) for message in requests]
            self._json(results)
        else:
            self._call(session, requests[0])

    def _call(self, session: _Session, request: Message) -> None:
        name, arguments = request["params"]["name"], request["params"].get("arguments", {})
        if name == "add":
            self._json(_answer(request, str(arguments["a"] + arguments.get("b", 0))))
        elif name == "count":
            self._begin_stream()
            token = request["params"]["_meta"]["progressToken"]
            for number in range(arguments["to"]):
                params = {"progressToken": token, "progress": number}
                self._event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            self._event(_answer(request, "counted"))
            self._end_stream()
        elif name == "ask":
            self._begin_stream()
            params = {"messages": [], "maxTokens": 5}
            self._event({"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": params})
            text = session.responses.get(timeout=PATIENCE_S)["result"]["content"]["text"]
            self._event(_answer(request, f"the client said {text}"))
            self._end_stream()
        elif name == "tell":
            message = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "told"}}
            session.outbox.put(("", message))
            self._json(_answer(request, "told"))
        elif name == "later":
            self._begin_stream()
            self._chunk(b"id: later-0\nretry: 1\ndata: \n\n")
            self._end_stream()
            session.outbox.put(("later-1", _answer(request, "later")))
        elif name == "expire":
            session.expired = True
            self._json(_answer(request, "expired"))
        elif name == "refuse":
            self._respond(401, b"no token", {"WWW-Authenticate": 'Bearer realm="tests"', "Content-Type": "text/plain"})
        elif name == "crash":
            self.close_connection = True
            self.connection.close()

    def do_GET(self) -> None:
        if (session := self._session()) is None:
            return
        if not self.server.streams:
            self._respond(405)
            return
        self._begin_stream()
        while (item := session.outbox.get()) is not None:
            self._event(item[1], item[0])
            if item[0]:
                break
        with suppress(OSError):
            self._end_stream()

    def do_DELETE(self) -> None:
        if (session := self._session()) is not None:
            session.expired = True
            session.outbox.put(None)
            self._respond(200)

    def _session(self) -> _Session | None:
        session = self.server.sessions.get(self.headers.get("Mcp-Session-Id", ""))
        if session is None or session.expired:
            error = {"code": -32001, "message": "Session not found"}
            self._respond(404, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())
            return None
        return session

    def _json(self, value: object, headers: Message | None = None) -> None:
        self._respond(
            200, json.dumps(value, indent=1).encode(), {"Content-Type": "application/json", **(headers or {})}
        )

    def _respond(self, status: int, body: bytes = b"", headers: Message | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, message: Message, id: str = "") -> None:
        named = f"id: {id}\n" if id else ""
        self._chunk(f"event: message\n{named}data: {json.dumps(message)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")


def _answer(request: Message, text: str) -> Message:
    result = {"content": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class McpHttpServer(ThreadingHTTPServer):
    """The server. Use it as a context manager.

    Args:
        port: 0 for any.

    Attributes:
        headers, paths: of the requests.
        streams: GET opens a stream.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.sessions: dict[str, _Session] = {}
        self.headers: list[dict[str, str]] = []
        self.paths: set[str] = set()
        self.streams = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class McpClient:
    """A client of one session.

    Args:
        number: the id of the first request.

    Attributes:
        received: messages that came on the stream of GET.
        session: the id of the session.
    """

    def __init__(self, url: str, *, number: int = 1, **headers: str) -> None:
        self._url = urlsplit(url)
        self._number = number - 1
        self._headers = {"Content-Type": "application/json", "Accept": BOTH, **headers}
        self.received: queue.Queue[Message] = queue.Queue()
        self.status = 0
        params = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
        self.begun = self.request("initialize", params)
        self.session = self._headers.get("Mcp-Session-Id", "")
        self._headers["MCP-Protocol-Version"] = REVISION
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Message | None = None) -> list[Message]:
        """Return the messages in response to a request."""
        self._number += 1
        return self.post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})

    def call(self, tool: str, **arguments: object) -> str:
        """Return the text of the result of a tool, or of its error."""
        messages = self.request("tools/call", {"name": tool, "arguments": arguments})
        if not messages:
            return f"HTTP {self.status}"
        last = messages[-1]
        return str(last["error"]["message"] if "error" in last else last["result"]["content"][0]["text"])

    def post(self, body: object) -> list[Message]:
        """Return the messages in response to a body. Requests of the server get a response."""
        with self.open("POST", json.dumps(body).encode()) as response:
            self.status = response.status
            if given := response.getheader("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = given
            messages = []
            for message in _messages(response):
                messages.append(message)
                if "method" in message and "id" in message:
                    content = {"type": "text", "text": "hello"}
                    result = {"role": "assistant", "model": "none", "content": content}
                    self.post({"jsonrpc": "2.0", "id": message["id"], "result": result})
            return messages

    def listen(self, last: str = "") -> int:
        """Open the stream of GET. Return the status."""
        stream = self.open("GET", None, **({"Last-Event-ID": last} if last else {}))
        response = stream.__enter__()
        if response.status == 200:
            threading.Thread(target=self._hear, args=(stream, response), daemon=True).start()
        else:
            stream.__exit__(None, None, None)
        return response.status

    def _hear(
        self, stream: AbstractContextManager[http.client.HTTPResponse], response: http.client.HTTPResponse
    ) -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):
            for message in _messages(response):
                self.received.put(message)
        stream.__exit__(None, None, None)

    def end(self) -> int:
        """End the session. Return the status."""
        with self.open("DELETE") as response:
            return response.status

    @contextmanager
    def open(self, method: str, body: bytes | None = None, **headers: str) -> Iterator[http.client.HTTPResponse]:
        """Send a request of HTTP on a connection of its own, which is closed at the end of the block."""
        with closing(http.client.HTTPConnection(self._url.hostname or "", self._url.port, timeout=PATIENCE_S)) as link:
            link.request(method, self._url.path, body, {**self._headers, **headers})
            with link.getresponse() as response:
                yield response


def _messages(response: http.client.HTTPResponse) -> Iterator[Message]:
    """Yield the messages of a response as they arrive."""
    if response.getheader("Content-Type") == "text/event-stream":
        for line in response:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])
    elif body := response.read():
        with suppress(ValueError):
            value = json.loads(body)
            yield from value if isinstance(value, list) else [value]
