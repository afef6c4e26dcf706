"""Options of `serve`, and the choice of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.wire.json_codec import dumps, loads
from ext_sdk.core.wire.jsonrpc import Request
from ext_sdk.server.serving import (
    Serving,
    ServingError,
    Tools,
    encoded_id,
    first_frame,
    first_result,
    gassist_first_result,
    matches,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

EFFECTS = {
    "get": "read-only",
    "get-all": "read-only",
    "add": "additive",
    "drop": "destructive",
    "drop-all": "destructive",
}
HEAD = {
    "name": "lamps",
    "version": "1.0.0",
    "description": "Lamps",
    "operations": EFFECTS,
    "summaries": dict.fromkeys(EFFECTS, "A sentence."),
    "aliases": {"fetch": "get"},
    "initialize": '"capabilities":{}}',
    "discover": '{"supportedVersions":[]}',
}


def tools(*, allow: str = "", deny: str = "") -> Tools:
    lines = [HEAD, *({"name": name} for name in EFFECTS)]
    chosen = Tools("".join(dumps(line) + "\n" for line in lines).encode())
    chosen.select(Serving("mcp", allow=[allow], deny=[deny]))
    return chosen


def test_each_tool_is_on_a_line_of_its_own() -> None:
    assert {name: loads(line.decode()) for name, line in tools(allow="*").lines.items()} == {
        name: {"name": name} for name in EFFECTS
    }


@pytest.mark.parametrize(
    ("allow", "deny", "served"),
    [
        ("", "", "get get-all add"),
        ("drop", "", "get get-all add drop"),
        ("drop*", "", "get get-all add drop drop-all"),
        ("*", "", "get get-all add drop drop-all"),
        ("*", "drop-all,add", "get get-all drop"),
        ("drop, get ,", " *", "get drop"),  # a name counts more than a pattern
        ("*", "*-all", "get add drop"),
        ("drop", "drop", "get get-all add"),
        ("get", "", "get get-all add"),
    ],
)
def test_what_is_served(allow: str, deny: str, served: str) -> None:
    assert list(tools(allow=allow, deny=deny).lines) == served.split()


@pytest.mark.parametrize(
    ("allow", "deny", "error"),
    [
        ("dropp", "", "--allow dropp: matches no operation of lamps; did you mean 'drop'?"),
        ("", "x*", "--deny x*: matches no operation of lamps; known are get, get-all, add, drop, drop-all"),
        ("fetch", "", "--allow fetch: matches no operation of lamps; it is another name of get"),
        ("", "*", "no operation is left to serve; not served because of --deny: get, get-all, add, drop, drop-all"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(allow: str, deny: str, error: str) -> None:
    with pytest.raises(ServingError) as raised:
        tools(allow=allow, deny=deny)
    assert str(raised.value) == error


def test_what_is_left_out_has_its_reason_and_the_remedy() -> None:
    chosen = tools(deny="add")
    assert chosen.notice() == (
        "not served without --allow, because they may destroy something: drop, drop-all (serve one with --allow drop, "
        "all with --allow '*'); not served because of --deny: add"
    )
    assert tools(allow="*").notice() == ""
    assert chosen.refusal("drop").endswith("because it may destroy something; start the server with --allow drop")
    assert chosen.refusal("add").endswith("because --deny excludes it; start the server without that option")
    assert chosen.refusal("fetch") == "unknown tool: fetch; use get"
    assert chosen.refusal("gte") == "unknown tool: gte; did you mean 'get'?"


def test_what_would_always_fail_is_left_out() -> None:
    head = HEAD | {"needs": {"get": "drop", "get-all": "agent"}}
    content = "".join(dumps(line) + "\n" for line in [head, *({"name": name} for name in EFFECTS)]).encode()

    def served(protocol: str = "mcp", *, allow: Sequence[str] = (), deny: Sequence[str] = ()) -> Tools:
        chosen = Tools(content)
        chosen.select(Serving(protocol, allow=allow, deny=deny))
        return chosen

    chosen = served()
    assert list(chosen.lines) == ["add"]
    assert chosen.notice().endswith(
        "not served because they would fail: get (it requires drop, which is not served), get-all (only hosts of evals "
        "send the answer of an agent)"
    )
    assert chosen.refusal("get") == "get is not served, because it requires drop, which is not served"
    assert chosen.refusal("get-all").endswith("because only hosts of evals send the answer of an agent")
    assert list(served(allow=["drop"]).lines) == ["get", "add", "drop"]
    assert "get-all" not in served(allow=["get-all"]).lines
    assert "would fail" not in served(deny=["get*"]).notice()  # the user has left them out
    assert "get" in served("gassist").lines  # drop runs after a confirmation
    with pytest.raises(ServingError, match=r"no operation is left to serve; .*get-all"):
        served(deny=["add", "get"])


@pytest.mark.parametrize(
    ("name", "pattern", "matched"),
    [
        ("get", "get", True),
        ("get", "ge", False),
        ("get", "*", True),
        ("get", "g*t", True),
        ("get", "get*get", False),
        ("getget", "get*get", True),
        ("a-b-c", "a*b*c", True),
        ("a-c-b", "a*b*c", False),
        ("ab", "a*b*b", False),
        ("get", "", False),
    ],
)
def test_a_star_stands_for_any_characters(name: str, pattern: str, *, matched: bool) -> None:
    assert matches(name, pattern) is matched


def test_options_are_read_without_the_complete_parser() -> None:
    words = "--protocol mcp --allow=a,b --allow c --deny d* --workdir / --config {}"
    serving = Serving.read(words.split())
    assert serving is not None
    assert (serving.protocol, serving.allow, serving.deny) == ("mcp", ["a", "b", "c"], ["d*"])
    assert (serving.workdir, serving.config) == ("/", "{}")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--help",
        "--protocol",
        "--protocol http",
        "--allow a",
        "--protocol mcp --allow --deny",
        "--protocol mcp --protocol mcp",
        "--protocol mcp --workdir / --workdir /",
        "--protocol mcp --workdir /dev/null",
        "--protocol mcp --allow ,",
        "--protocol mcp further",
    ],
)
def test_anything_else_is_left_to_the_complete_parser(words: str) -> None:
    assert Serving.read(words.split()) is None


def test_the_first_result_is_prepared() -> None:
    def result(method: str, params: object) -> str | None:
        return first_result(Request(1, method, params), tools())

    known, unknown = {"protocolVersion": "2024-11-05"}, {"protocolVersion": "1999-01-01"}
    assert result("initialize", known) == '{"protocolVersion":"2024-11-05","capabilities":{}}'
    assert result("initialize", unknown) == '{"protocolVersion":"2025-11-25","capabilities":{}}'
    assert result("initialize", known | {"capabilities": []}) is None
    assert result("initialize", {}) is None
    assert result("initialize", []) is None
    assert result("tools/list", known) is None
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": {}}
    assert result("server/discover", {"_meta": meta}) == '{"supportedVersions":[]}'
    assert result("server/discover", {"_meta": meta | {f"{prefix}protocolVersion": "2025-11-25"}}) is None
    assert result("server/discover", {"_meta": {f"{prefix}protocolVersion": "2026-07-28"}}) is None
    assert result("server/discover", {}) is None


def test_usual_ids_are_encoded_without_an_encoder() -> None:
    assert encoded_id(7) == b"7"
    assert encoded_id('a"\ud800') == b'"a\\"\\ud800"'
    assert [encoded_id(id) for id in (None, 1.5, 2**63, "x" * 101)] == [None] * 4


# --- G-Assist ---


@pytest.mark.parametrize(
    ("received", "payload"),
    [
        (b"", None),
        (b"\0\0\0", None),
        (b"\0\0\0\2{", None),
        (b"\0\0\0\2{}", b"{}"),
        (b"\0\0\0\2{}\0\0", b"{}"),
        (b"\0\0\0\0", b""),
        (b'{"jsonrpc"', b""),  # a line of another protocol, whose first bytes are no length
    ],
)
def test_the_first_frame_is_found(received: bytes, payload: bytes | None) -> None:
    assert first_frame(received, after_length=True) == payload


def test_over_gassist_operations_are_not_withheld_and_the_commands_are_those_that_are_served() -> None:
    chosen = Tools("".join(dumps(line) + "\n" for line in [HEAD, *({"name": name} for name in EFFECTS)]).encode())
    chosen.select(Serving("gassist", deny=["get*"]))
    assert list(chosen.lines) == ["add", "drop", "drop-all"]
    assert chosen.withheld == ["drop", "drop-all"]
    result = gassist_first_result(Request(1, "initialize", {"protocol_version": "2.0"}), chosen)
    assert loads(str(result)) == {
        "name": "lamps",
        "version": "1.0.0",
        "capabilities": ["streaming", "passthrough"],
        "description": "Lamps",
        "protocol_version": "2.0",
        "commands": [
            {"name": name, "description": "A sentence."} for name in ("lamps_add", "lamps_drop", "lamps_drop_all")
        ],
    }


@pytest.mark.parametrize(
    ("method", "params", "answered"),
    [
        ("initialize", None, True),
        ("initialize", {}, True),
        ("initialize", {"protocol_version": "1.0"}, False),
        ("initialize", [], False),
        ("ping", {}, False),
    ],
)
def test_only_a_valid_initialize_is_answered_at_once(method: str, params: object, answered: bool) -> None:
    assert (gassist_first_result(Request(1, method, params), tools()) is not None) is answered
