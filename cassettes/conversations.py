"""Conversations with real peers of MCP, LSP, DAP and ACP, each of which asserts the responses; see tests.peers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.peers.conversations import answers, call, inside, tells

if TYPE_CHECKING:
    from pathlib import Path

    from tests.peers.conversations import Names
    from tests.support.host import Message, MessageStream


def notification(method: str, **params: object) -> Message:
    """Return a JSON-RPC notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def asked(host: MessageStream, names: Names, method: str, **params: object) -> Message:
    """Send a request, and wait for its response."""
    id = names.id()
    host.send(call(id, method, **params))
    return host.until(answers(id))[-1]


def mcp(host: MessageStream, names: Names, _: Path) -> None:
    """List the tools, use them, and use one that does not exist."""
    client = {"name": "host", "version": "1.0"}
    asked(host, names, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    host.send(notification("notifications/initialized"))
    tools = inside(asked(host, names, "tools/list"), "result")["tools"]
    assert isinstance(tools, list)
    assert {tool["name"] for tool in tools} == {"get_current_time", "convert_time"}
    times = {"source_timezone": "Europe/Berlin", "target_timezone": "Asia/Tokyo", "time": "12:00"}
    for name, arguments in (("convert_time", times), ("get_current_time", {"timezone": "UTC"})):
        meta = {"progressToken": names.name("token")}
        answer = asked(host, names, "tools/call", name=name, arguments=arguments, _meta=meta)
        assert inside(answer, "result")["isError"] is False
    answer = asked(host, names, "tools/call", name="get_current_time", arguments={"timezone": "Nowhere/Else"})
    assert inside(answer, "result")["isError"] is True
    assert "error" in asked(host, names, "no/such/method")


def served(host: MessageStream, names: Names, _: Path) -> None:
    """Use an operation of ext-shell as a tool; some calls fail, one is cancelled."""
    client = {"name": "host", "version": "1.0"}
    asked(host, names, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    host.send(notification("notifications/initialized"))
    tools = inside(asked(host, names, "tools/list"), "result")["tools"]
    assert isinstance(tools, list)
    assert [tool["name"] for tool in tools] == ["run"]
    for failed, arguments in (
        (False, {"command": ["echo", "-n", "Ada"], "as": "name"}),
        (False, {"command": ["echo", "Hello, ${name.stdout}"], "expect": {"stdout": "Hello, Ada"}}),
        (True, {"command": ["false"]}),
        (True, {"commands": ["false"]}),
    ):
        answer = asked(host, names, "tools/call", name="run", arguments=arguments)
        assert inside(answer, "result")["isError"] is failed
    meta = {"progressToken": names.name("token")}
    script = {"script": "echo one; echo two"}
    answer = asked(host, names, "tools/call", name="run", arguments=script, _meta=meta)
    assert inside(answer, "result")["isError"] is False
    assert "--deny" in str(asked(host, names, "tools/call", name="remove", arguments={"path": "greet.py"})["error"])
    id = names.id()
    host.send(call(id, "tools/call", name="run", arguments={"script": "echo started; sleep 600"}))
    host.until(lambda message: message.get("method") == "notifications/message")
    host.send(notification("notifications/cancelled", requestId=id))
    asked(host, names, "ping")


GREET = "import os\n\n\ndef greet(name):\n    return 'Hello, ' + name\n\n\nprint(greet('you'))\n"


def lsp(host: MessageStream, names: Names, folder: Path) -> None:
    """Open a document, query it, shut down, exit."""
    uri = f"file://{folder}/greet.py"
    root = f"file://{folder}"
    asked(host, names, "initialize", processId=None, rootUri=root, rootPath=str(folder), capabilities={})
    host.send(notification("initialized"))
    document = {"uri": uri, "languageId": "python", "version": 1, "text": GREET}
    host.send(notification("textDocument/didOpen", textDocument=document))
    here = {"textDocument": {"uri": uri}, "position": {"line": 7, "character": 8}}
    defined = asked(host, names, "textDocument/definition", **here)["result"]
    assert isinstance(defined, list)
    assert defined[0]["uri"] == uri
    asked(host, names, "textDocument/hover", **here)
    symbols = asked(host, names, "textDocument/documentSymbol", textDocument={"uri": uri})["result"]
    assert "greet" in str(symbols)
    id = names.id()
    host.send({"jsonrpc": "2.0", "id": id, "method": "shutdown"})
    host.until(answers(id))
    host.send({"jsonrpc": "2.0", "method": "exit"})


class Debugging:
    """Requests of DAP, numbered in `seq`."""

    def __init__(self, host: MessageStream, names: Names) -> None:
        self.host = host
        self.names = names

    def send(self, command: str, **arguments: object) -> int:
        """Send a request. Return its number."""
        id = self.names.id()
        self.host.send({"seq": id, "type": "request", "command": command, "arguments": arguments})
        return id

    def answer(self, id: int) -> Message:
        """Wait for the response to a request."""
        return self.host.until(lambda message: message.get("request_seq") == id)[-1]

    def ask(self, command: str, **arguments: object) -> Message:
        """Send a request, and wait for its response."""
        answer = self.answer(self.send(command, **arguments))
        assert answer["success"] is True, answer
        return answer

    def event(self, name: str) -> Message:
        """Wait for an event."""
        return self.host.until(lambda message: message.get("event") == name)[-1]


def dap(host: MessageStream, names: Names, folder: Path) -> None:
    """Launch a program, stop at a breakpoint, read a variable, run to the end."""
    session, program = Debugging(host, names), str(folder / "greet.py")
    session.ask("initialize", adapterID="python", clientID="host", linesStartAt1=True, pathFormat="path")
    launch = session.send("launch", program=program, cwd=str(folder), console="internalConsole", subProcess=False)
    session.event("initialized")
    session.ask("setBreakpoints", source={"path": program}, breakpoints=[{"line": 5}])
    done = session.send("configurationDone")
    assert {session.answer(done)["success"], session.answer(launch)["success"]} == {True}
    thread = inside(session.event("stopped"), "body")["threadId"]
    frames = inside(session.ask("stackTrace", threadId=thread), "body")["stackFrames"]
    assert isinstance(frames, list)
    assert frames[0]["source"]["path"] == program
    scopes = inside(session.ask("scopes", frameId=frames[0]["id"]), "body")["scopes"]
    assert isinstance(scopes, list)
    found = inside(session.ask("variables", variablesReference=scopes[0]["variablesReference"]), "body")["variables"]
    assert "'you'" in str(found)
    session.send("continue", threadId=thread)
    session.event("terminated")
    session.ask("disconnect", terminateDebuggee=True)


def acp(host: MessageStream, names: Names, folder: Path) -> None:
    """Send a prompt during which the agent sends requests; its ids start like those of the client."""
    first = names.base
    asked(host, names, "initialize", protocolVersion=1, clientCapabilities={"fs": {"readTextFile": True}})
    session = inside(asked(host, names, "session/new", cwd=str(folder), mcpServers=[]), "result")["sessionId"]
    prompt = names.id()
    text = [{"type": "text", "text": "greet.py"}]
    host.send(call(prompt, "session/prompt", sessionId=session, prompt=text))
    permission = host.until(lambda message: message.get("method") == "session/request_permission")[-1]
    outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}}
    host.send({"jsonrpc": "2.0", "id": permission["id"], "result": outcome})
    read = host.until(lambda message: message.get("method") == "fs/read_text_file")[-1]
    assert inside(read)["path"] == str(folder / "greet.py")
    host.send({"jsonrpc": "2.0", "id": read["id"], "result": {"content": GREET}})
    told = host.until(answers(prompt))
    assert inside(told[-1], "result")["stopReason"] == "end_turn"
    assert f"{folder}/greet.py has 8 lines." in str(told)
    assert any(tells("session/update")(message) for message in told), first
