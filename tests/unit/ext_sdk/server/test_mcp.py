"""The Model Context Protocol on the wire of extensions that run as processes."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from ext_http.extension import extension as http
from ext_kubernetes.extension import extension as kubernetes
from ext_sdk.server.mcp import build_tools
from ext_shell.extension import extension as shell
from tests.support.host import PROBE, ExtensionHost, Message, request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_sdk import Extension

SERVE = [*PROBE, "serve", "--protocol", "mcp", "--allow", "*"]
CLIENT: Message = {"capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
ROOTS: Message = CLIENT | {"capabilities": {"roots": {"listChanged": True}}}
PREFIX = "io.modelcontextprotocol/"
META: Message = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}


class McpHost(ExtensionHost):
    """Client of MCP."""

    def begin(self, version: str = "2025-11-25", client: Message = CLIENT) -> Message:
        """Shake hands, and return the result of `initialize`."""
        self.send(request(0, "initialize", {"protocolVersion": version, **client}))
        answer = self.message()
        assert answer["id"] == 0
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]  # type: ignore[return-value]

    def tool(self, name: str, arguments: object = None, **members: object) -> Message:
        """Call a tool, and return the response."""
        params = {"name": name, "arguments": arguments or {}, **members}
        self.send(request(1, "tools/call", params))
        return self.message()

    def refused(self, method: str, params: object = None, id: object = 1) -> Message:
        """Send a request that must be refused, and return its error."""
        self.send(request(id, method, params))
        answer = self.message()
        assert answer["id"] == id, answer
        return answer["error"]  # type: ignore[return-value]


@pytest.fixture
def peer() -> Iterator[McpHost]:
    with McpHost(SERVE) as peer:
        yield peer


def structured(answer: Message) -> Message:
    result = answer["result"]
    assert isinstance(result, dict), answer
    return result["structuredContent"]  # type: ignore[no-any-return]


def test_a_session_goes_from_initialize_to_the_end_of_the_input(peer: McpHost) -> None:
    result = peer.begin()
    assert result["protocolVersion"] == "2025-11-25"
    assert result["capabilities"] == {"tools": {}, "logging": {}}
    assert result["serverInfo"] == {"name": "ext-probe", "version": "1.2.3", "description": "For tests."}
    assert str(result["instructions"]).startswith("For tests. Relative paths start at")
    answer = peer.tool("echo", {"text": "hi"})
    members = {"success": True, "message": "hi", "outputs": {"text": "hi", "length": "2", "empty": "false"}}
    text = json.dumps(members, separators=(",", ":"))
    content = [{"type": "text", "text": text}]
    assert answer["result"] == {"content": content, "isError": False, "structuredContent": members}
    peer.send(request("a", "ping"))
    assert peer.message() == {"jsonrpc": "2.0", "id": "a", "result": {}}
    peer.eof()
    assert peer.rest() == []
    assert peer.exit_code() == 0


def test_tools_have_schemas_and_effects() -> None:
    head, *lines = build_tools(shell).splitlines()
    tools = {tool["name"]: tool for tool in map(json.loads, lines)}
    assert list(json.loads(head)["operations"]) == list(tools) == list(shell.operations)
    run, read = tools["run"], tools["read-file"]
    assert read["annotations"] == {
        "title": "Read file",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert run["annotations"]["destructiveHint"]
    assert run["annotations"]["openWorldHint"]
    # Providers of models refuse alternatives at the root.
    assert all(tool["inputSchema"].keys().isdisjoint({"oneOf", "anyOf", "allOf", "not"}) for tool in tools.values())
    assert run["description"].endswith("Requires one of command and script.")
    assert run["inputSchema"]["additionalProperties"] is False
    assert read["outputSchema"]["properties"]["outputs"]["properties"]["mode"]["type"] == "string"


@pytest.mark.parametrize("extension", [http, kubernetes, shell], ids=lambda extension: extension.name)
def test_schemas_are_valid_and_accept_the_examples(extension: Extension) -> None:
    for line in build_tools(extension).splitlines()[1:]:
        tool = json.loads(line)
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            names = re.findall(r'"properties": \{"([^"]*)"', json.dumps(schema))
            assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in names), "some providers refuse others"
        Draft202012Validator(tool["inputSchema"]).validate(extension.operations[tool["name"]].example)


@pytest.mark.parametrize(
    ("version", "members"),
    [
        ("2024-11-05", {"name", "description", "inputSchema"}),
        ("2025-03-26", {"name", "description", "inputSchema", "annotations"}),
        ("2025-06-18", {"name", "description", "inputSchema", "annotations", "title", "outputSchema"}),
    ],
)
def test_older_revisions_get_what_they_have(peer: McpHost, version: str, members: set[str]) -> None:
    assert peer.begin(version)["protocolVersion"] == version
    peer.send(request(1, "tools/list"))
    line = peer.message()["result"]
    assert isinstance(line, dict)
    assert line["tools"][0].keys() == members
    result = peer.tool("echo", {"text": "hi"})["result"]
    assert isinstance(result, dict)
    assert ("structuredContent" in result) is ("outputSchema" in members)
    if "outputSchema" not in members:
        assert result["content"] == [{"type": "text", "text": "hi\ntext: hi\nlength: 2\nempty: false"}]


def test_one_revision_has_batches(peer: McpHost) -> None:
    batch = json.dumps([request("a", "ping"), {"jsonrpc": "2.0", "method": "x"}, 7, request("b", "ping")]).encode()
    peer.begin("2025-03-26")
    peer.send(batch + b"\n", b"[]\n")
    answers = [peer.message() for _ in range(4)]
    assert [answer["id"] for answer in answers] == ["a", None, "b", None]
    assert [("error" in answer) for answer in answers] == [False, True, False, True]
    with McpHost(SERVE) as other:
        other.begin("2025-06-18")
        other.send(batch + b"\n")
        assert "batches are not accepted" in str(other.message()["error"])


def test_a_request_that_describes_itself_needs_no_handshake(peer: McpHost) -> None:
    peer.send(request(1, "server/discover", {"_meta": META}))
    found = peer.message()["result"]
    assert isinstance(found, dict)
    assert found["supportedVersions"][0] == "2026-07-28"
    peer.send(request(2, "tools/list", {"_meta": META}))
    listed = peer.message()["result"]
    assert isinstance(listed, dict)
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    answer = peer.tool("log", _meta=META)["result"]  # no log without a level
    assert isinstance(answer, dict)
    assert answer["resultType"] == "complete"
    assert answer["_meta"] == {f"{PREFIX}serverInfo": {"name": "ext-probe", "version": "1.2.3"}}
    assert peer.tool("log", _meta=META | {f"{PREFIX}logLevel": "error"})["method"] == "notifications/message"
    assert structured(peer.message())["message"] == "five"
    error = peer.refused("tools/list", {"_meta": META | {f"{PREFIX}protocolVersion": "2027-01-01"}})
    assert (error["code"], error["data"]["requested"]) == (-32022, "2027-01-01")  # type: ignore[index]


def test_a_failure_is_a_result_that_a_model_reads(peer: McpHost) -> None:
    peer.begin()
    for arguments, text in (
        ({"how": "fail"}, "not ready\nexpected Ready, found Pending\nlastStatus: Pending"),
        ({"how": "boom"}, "end-badly: unexpected ValueError: boom; this is a fault of the extension"),
        ({"how": "nonsense"}, "end-badly: how: "),
        ({"hwo": "fail"}, "end-badly: unknown argument 'hwo'"),
    ):
        result = peer.tool("end-badly", arguments)["result"]
        assert isinstance(result, dict)
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith(text)
        assert result["structuredContent"]["success"] is False


@pytest.mark.parametrize(
    ("method", "params", "code", "text"),
    [
        ("tools/cal", {}, -32601, "unknown method: tools/cal; did you mean 'tools/call'?"),
        ("tools/call", {}, -32602, "name: expected the name of a tool, found nothing"),
        ("tools/call", {"name": "eco"}, -32602, "unknown tool: eco; did you mean 'echo'?"),
        ("tools/call", {"name": "echo", "arguments": []}, -32602, "arguments: expected an object, found []"),
        ("tools/call", {"name": "echo", "_meta": {"progressToken": 1.5}}, -32602, "_meta.progressToken: expected"),
        ("tools/call", {"name": "echo", "_meta": 7}, -32602, "_meta: expected an object, found 7"),
        ("tools/list", {"cursor": "x"}, -32602, 'cursor: expected none, found "x"'),
        ("tools/list", [], -32602, "params: expected an object, found an array"),
        ("logging/setLevel", {"level": "loud"}, -32602, "level: expected one of debug, info, notice, warning"),
        ("initialize", {"protocolVersion": "1"}, -32600, "initialize was sent already"),
        ("server/discover", {}, -32602, f"_meta: expected a member '{PREFIX}protocolVersion', found none"),
        (
            "ping",
            {"_meta": {f"{PREFIX}protocolVersion": "2026-07-28"}},
            -32602,
            f"_meta.{PREFIX}clientCapabilities: exp",
        ),
    ],
)
def test_an_invalid_request_is_an_error(peer: McpHost, method: str, params: object, code: int, text: str) -> None:
    peer.begin()
    error = peer.refused(method, params)
    assert error["code"] == code
    assert str(error["message"]).startswith(text)
    assert structured(peer.tool("echo"))["success"] is True


def test_an_initialize_without_a_version_is_refused_and_can_be_sent_again(peer: McpHost) -> None:
    assert peer.refused("initialize", CLIENT)["message"] == "protocolVersion: expected a string, found nothing"
    wrong = CLIENT | {"protocolVersion": "2025-06-18", "capabilities": 1}
    assert peer.refused("initialize", wrong)["message"] == "capabilities: expected an object, found 1"
    assert (
        peer.refused("initialize", {}, id=None)["message"] == "expected an id that is a string or a number, found null"
    )
    assert peer.begin("2025-06-18")["protocolVersion"] == "2025-06-18"


def test_logs_are_sent_by_level_and_as_progress(peer: McpHost) -> None:
    peer.begin()

    def messages(**members: object) -> list[object]:
        received = [peer.tool("log", {"text": "x"}, **members)]
        while "id" not in received[-1]:
            received.append(peer.message())
        return [message["params"] for message in received[:-1]]

    data = {"message": "three", "path": "/x", "number": 1, "nan": "nan"}
    info, warning, error = (
        {"level": level, "logger": "probe", "data": logged}
        for level, logged in (("info", "two"), ("warning", data), ("error", "four"))
    )
    assert messages() == [info, warning, error]
    peer.send(request(2, "logging/setLevel", {"level": "error"}))
    assert peer.message()["result"] == {}
    assert messages() == [error]
    progress = [
        {"progressToken": "t", "progress": count, "message": message}
        for count, message in enumerate(("one", "two", "three", "four"), 1)
    ]
    assert messages(_meta={"progressToken": "t"}) == [*progress[:3], error, progress[3]]


def test_a_cancelled_call_is_stopped_and_gets_no_response(peer: McpHost, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    peer.begin()
    call = {"name": "wait-for-stop", "arguments": {"started": str(tmp_path / "started")}}
    peer.send(request("slow", "tools/call", call))
    assert (tmp_path / "started").read_text() == "started\n"
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    peer.send(cancel | {"params": {"requestId": "slow"}}, cancel | {"params": {"requestId": []}}, cancel)
    assert structured(peer.tool("echo", {"text": "next"}))["message"] == "next"
    peer.eof()
    assert peer.rest() == []


def workdir(answer: Message) -> object:
    return structured(answer)["outputs"]["workdir"]  # type: ignore[index]


def test_the_first_root_is_the_working_directory(peer: McpHost) -> None:
    peer.begin(client=ROOTS)
    asked = peer.message()
    assert asked["method"] == "roots/list"
    peer.send(request(1, "tools/call", {"name": "circumstances"}))  # waits for the roots
    roots = [{"uri": "https://example.com"}, {"uri": "file:///work%20dir/a"}, {"uri": "file:///other"}]
    peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": roots}})
    assert workdir(peer.message()) == "/work dir/a"
    peer.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
    again = peer.message()
    assert again["id"] != asked["id"]
    peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})  # late, and of the first request
    peer.send({"jsonrpc": "2.0", "id": again["id"], "result": {"roots": roots[2:]}})
    assert workdir(peer.tool("circumstances")) == "/other"


def warned(peer: McpHost, reason: str) -> Message:
    """Call a tool, check the warning in its log and on stderr, and return its response."""
    logged = peer.tool("circumstances")
    folder = os.getcwd()  # noqa: PTH109
    text = f"the client {reason}; relative paths start at {folder} (--workdir DIR sets another folder)"
    assert logged["params"] == {"level": "warning", "logger": "probe", "data": text}
    assert f"ext-probe: warning: {text}\n" in peer.stderr
    return peer.message()


def test_a_client_that_refuses_to_list_its_roots_is_warned_once(peer: McpHost) -> None:
    peer.begin(client=ROOTS)
    peer.send({"jsonrpc": "2.0", "id": peer.message()["id"], "error": {"code": -32603, "message": "no"}})
    assert workdir(warned(peer, "refused to list its roots: no")) == os.getcwd()  # noqa: PTH109
    assert "result" in peer.tool("circumstances")


@pytest.mark.parametrize("roots", [[], [{"uri": "https://example.com"}], [{"uri": 1}, 2], None, 7])
def test_without_a_usable_root_it_is_the_current_directory(peer: McpHost, roots: object) -> None:
    peer.begin(client=ROOTS)
    peer.send({"jsonrpc": "2.0", "id": peer.message()["id"], "result": {"roots": roots}})
    answer = peer.tool("circumstances") if roots == [] else warned(peer, "listed no file URI as a root")
    assert workdir(answer) == os.getcwd()  # noqa: PTH109


def test_a_client_that_ends_without_listing_its_roots_gets_its_responses(peer: McpHost) -> None:
    peer.begin(client=ROOTS)
    peer.message()
    peer.send(request(1, "tools/call", {"name": "circumstances"}), request(1, "tools/call", {"name": "echo"}))
    peer.eof()
    error, answer = peer.rest()
    assert "is still in use by a call that waits for the roots" in str(error["error"])
    assert workdir(answer) == os.getcwd()  # noqa: PTH109


def test_a_client_that_does_not_list_its_roots_is_not_waited_for_longer_than_that(tmp_path: Path) -> None:
    program = (
        "import runpy, sys\n"
        "import ext_sdk.server.mcp\n"
        "ext_sdk.server.mcp.ROOTS_SECONDS = 0.0\n"
        "sys.argv.pop(0)\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    (tmp_path / "program.py").write_text(program)
    with McpHost([SERVE[0], str(tmp_path / "program.py"), *SERVE[1:]]) as peer:
        peer.begin(client=ROOTS)
        assert peer.message()["method"] == "roots/list"
        assert workdir(warned(peer, "did not list its roots within 0 s")) == os.getcwd()  # noqa: PTH109


def test_a_modern_client_is_asked_for_its_roots_by_the_result() -> None:
    meta = META | {f"{PREFIX}clientCapabilities": {"roots": {}}}
    with McpHost(SERVE) as peer:
        asked = peer.tool("circumstances", _meta=meta)["result"]
        assert isinstance(asked, dict)
        assert (asked["resultType"], asked["inputRequests"]) == (
            "input_required",
            {"roots": {"method": "roots/list", "params": {}}},
        )
        responses = {"roots": {"roots": [{"uri": "file:///work"}]}}
        assert workdir(peer.tool("circumstances", _meta=meta, inputResponses=responses)) == "/work"


def test_the_option_counts_more_than_roots(tmp_path: Path) -> None:
    with McpHost([*SERVE, "--workdir", str(tmp_path)]) as peer:
        peer.begin(client=ROOTS)
        assert workdir(peer.tool("circumstances")) == str(tmp_path)


def test_secrets_are_redacted_and_long_texts_are_in_files(peer: McpHost) -> None:
    peer.begin()
    peer.send(request(1, "tools/call", {"name": "hide", "arguments": {"text": "hunter22"}}))
    assert "hunter22" not in str([peer.message(), peer.message()])
    outputs = structured(peer.tool("spill", {"to": "output", "text": "x", "times": 25_000}))["outputs"]
    assert isinstance(outputs, dict)
    assert outputs["text"] == "x" * 25_000
    result = peer.tool("spill", {"to": "message", "text": "hunter22 y", "times": 30})["result"]
    assert "hunter22" not in str(result)


def test_the_configuration_is_an_option() -> None:
    with McpHost([*SERVE, "--config", '{"greeting": "salve"}']) as peer:
        peer.begin()
        outputs = structured(peer.tool("circumstances"))["outputs"]
        assert isinstance(outputs, dict)
        assert outputs["greeting"] == "salve"
    for config, text in (
        ('{"greetings": 1}', "config: unknown argument 'greetings'"),
        ("{", "--config: expected an object of JSON"),
    ):
        with McpHost([*SERVE, "--config", config]) as peer:
            assert peer.rest() == []
            assert peer.exit_code() == 2
            assert text in peer.stderr


def test_what_is_not_served_is_reported_and_refused() -> None:
    with McpHost(SERVE[:-2]) as peer:
        peer.eof()
        assert peer.exit_code() == 2
        assert "no operation is left to serve; not served without --allow, because they may destroy" in peer.stderr
    with McpHost([*SERVE[:-2], "--allow", "echo"]) as peer:
        peer.begin()
        assert "start the server with --allow log" in str(peer.refused("tools/call", {"name": "log"})["message"])
        peer.send(request(1, "tools/list"))
        listed = peer.message()["result"]
        assert isinstance(listed, dict)
        assert [tool["name"] for tool in listed["tools"]] == ["echo"]
        assert "(serve one with --allow circumstances, all with --allow '*')" in peer.stderr
