"""Replay of messages that are no plain JSON-RPC, and of names that one side makes up: in memory, message by message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ext_recorder.replay.replay import Options
from ext_sdk.core.wire.framing import FRAMINGS
from tests.peers.conversations import envelope
from tests.support.player_host import END, Host, cassette
from tests.support.recorder_process import ECHO, messages, python, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.yaml"


def session(path: Path, protocol: str, *told: str, framing: str = "ndjson") -> Path:
    """A cassette: `> …` is said by the host, `< …` by the child."""
    sides = {">": "in", "<": "out"}
    lines = [f"- {{t: {at}, {sides[text[0]]}: '{text[2:]}'}}" for at, text in enumerate(told)]
    return cassette(path, "\n".join([*lines, END.replace("9.", "99.")]), protocol=protocol, framing=framing)


def pi(side: str, id: str, type: str, **payload: object) -> str:
    return f"{side} {json.dumps(envelope(id, type, **payload), separators=(',', ':'))}"


def dap(seq: int, command: str, **arguments: object) -> str:
    return json.dumps({"seq": seq, "type": "request", "command": command, "arguments": arguments})


def rpc(id: int, method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def framed(framing: str, *texts: str) -> bytes:
    return b"".join(FRAMINGS[framing].encode(text.encode()) for text in texts)


# --- Misses, in the form of the protocol ------------------------------------------------------------------------


def test_a_tool_call_of_pi_that_was_never_recorded_fails_as_tools_do(path: Path) -> None:
    session(path, "pi", pi(">", "m1", "tool_call", call_id="c1", name="a", input={}))
    with Host(path) as host:
        (line,) = host.say(pi(">", "m9", "tool_call", call_id="c9", name="b", input={})[2:])

    answer = json.loads(line)
    assert (answer["id"], answer["type"], answer["version"]) == ("m9", "tool_result", "1.0")
    assert (answer["payload"]["call_id"], answer["payload"]["is_error"]) == ("c9", True)
    assert '/payload/name: recorded "a", now "b"' in answer["payload"]["output"]["error"]


def test_a_slash_command_of_pi_that_was_never_recorded_fails_by_its_envelope(path: Path) -> None:
    session(path, "pi", pi(">", "m1", "slash_command", name="a"))
    with Host(path) as host:
        (line,) = host.say(pi(">", "m9", "slash_command", name="b")[2:])

    answer = json.loads(line)
    assert (answer["id"], answer["type"], answer["payload"]["is_error"]) == ("m9", "slash_result", True)


def test_a_request_of_dap_that_was_never_recorded_fails_as_its_responses_do(path: Path) -> None:
    session(path, "dap", f"> {dap(1, 'threads')}", framing="content-length")
    with Host(path) as host:
        body = host.write(framed("content-length", dap(7, "pause", threadId=1))).partition(b"\r\n\r\n")[2]

    answer = json.loads(body)
    assert (answer["type"], answer["request_seq"], answer["command"], answer["success"]) == (
        "response",
        7,
        "pause",
        False,
    )
    assert "never recorded" in answer["message"]


# --- Ids and names ------------------------------------------------------------------------


def test_answers_of_dap_name_the_live_request_and_keep_the_childs_own_count(path: Path) -> None:
    answer = '{"seq":40,"type":"response","request_seq":3,"success":true,"command":"threads"}'
    session(path, "dap", f"> {dap(3, 'threads')}", f"< {answer}", framing="content-length")
    with Host(path) as host:
        said = host.write(framed("content-length", dap(77, "threads")))

    assert said == framed("content-length", answer.replace('"request_seq":3', '"request_seq":77'))


def test_a_pong_has_the_live_time_even_where_two_pings_were_recorded_at_one(path: Path) -> None:
    pings = [rpc(id, "ping", timestamp=5) for id in (1, 2)]
    pongs = [f'{{"jsonrpc":"2.0","id":{id},"result":{{"timestamp":5}}}}' for id in (1, 2)]
    session(path, "gassist", *(f"> {ping}" for ping in pings), *(f"< {pong}" for pong in pongs), framing="uint32")
    with Host(path) as host:
        said = host.write(framed("uint32", rpc(8, "ping", timestamp=1.5), rpc(9, "ping", timestamp=2)))

    assert said == framed(
        "uint32",
        '{"jsonrpc":"2.0","id":8,"result":{"timestamp":1.5}}',
        '{"jsonrpc":"2.0","id":9,"result":{"timestamp":2}}',
    )


COMPLETE = '{"jsonrpc":"2.0","method":"complete","params":{"request_id":3,"success":true}}'


def test_what_streams_for_a_call_names_the_live_call(path: Path) -> None:
    stream = '{"jsonrpc":"2.0","method":"stream","params":{"request_id":3,"data":"3"}}'
    asked = rpc(3, "execute", function="f", arguments={})
    session(path, "gassist", f"> {asked}", f"< {stream}", f"< {COMPLETE}", framing="uint32")
    with Host(path) as host:
        said = host.write(framed("uint32", rpc(30, "execute", function="f", arguments={})))

    live = [text.replace('"request_id":3', '"request_id":30') for text in (stream, COMPLETE)]
    assert said == framed("uint32", *live)


def test_an_end_of_input_does_not_come_before_what_an_acknowledged_input_still_owes(path: Path) -> None:
    acknowledged = '{"jsonrpc":"2.0","id":3,"result":{"acknowledged":true}}'
    asked = rpc(3, "input", content="x")
    lines = f"""
        - {{t: 1, in: '{asked}'}}
        - {{t: 2, out: '{acknowledged}'}}
        - {{t: 3, eof: in}}
        - {{t: 4, out: '{COMPLETE}'}}
        - {{t: 5, exit: 0}}
    """
    with Host(cassette(path, lines, protocol="gassist", framing="uint32")) as host:
        said = host.write(framed("uint32", asked))

    assert said == framed("uint32", acknowledged, COMPLETE)


SHUTDOWN = {
    "a request that was answered": ['> {"jsonrpc":"2.0","id":3,"method":"shutdown","params":{}}',
                                    '< {"jsonrpc":"2.0","id":3,"result":{"bye":1}}'],
    "a request without an answer": ['> {"jsonrpc":"2.0","id":3,"method":"shutdown","params":{}}'],
    "a notification": ['> {"jsonrpc":"2.0","method":"shutdown","params":{}}'],
}  # fmt: skip


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize("recorded", SHUTDOWN)
def test_a_shutdown_ends_the_plugin_with_an_id_and_without(path: Path, recorded: str, order: str) -> None:
    answers = {"a request that was answered": '{"bye":1}', "a notification": "{}"}
    session(path, "gassist", *SHUTDOWN[recorded], framing="uint32")
    with Host(path, Options(order=order)) as host:
        assert host.write(framed("uint32", '{"jsonrpc":"2.0","method":"shutdown","params":{}}')) == b""
        assert (host.status, host.err) == (0, "")
    with Host(path, Options(order=order)) as host:
        said = host.write(framed("uint32", rpc(77, "shutdown")))
        answer = f'{{"jsonrpc":"2.0","id":77,"result":{answers.get(recorded)}}}'
        assert said == (framed("uint32", answer) if recorded in answers else b"")
        assert (host.status, host.err) == (0, "")


FIX = "workspace/executeCommand"


def fix(id: int, command: str, session_id: str) -> str:
    return rpc(id, FIX, command=f"kaiak/{command}", arguments=[{"session_id": session_id}])


def kaiak(path: Path) -> Path:
    done = '{"jsonrpc":"2.0","id":%d,"result":{"session_id":"A","request_id":"r"}}'
    progress = '{"jsonrpc":"2.0","method":"kaiak/stream/system","params":{"session_id":"A","request_id":"r"}}'
    told = [f"> {fix(1, 'generate_fix', 'A')}", f"< {progress}", f"< {done % 1}"]
    told += [f"> {fix(2, 'delete_session', 'A')}", f"< {done % 2}"]
    return session(path, "kaiak", *told, framing="content-length")


def test_a_session_that_the_host_has_named_anew_has_that_name_everywhere(path: Path) -> None:
    with Host(kaiak(path)) as host:
        first = host.write(framed("content-length", fix(1, "generate_fix", "B")))
        second = host.write(framed("content-length", fix(2, "delete_session", "B")))

    assert first.count(b'"session_id":"B"') == 2
    assert b'"A"' not in first + second
    assert b'"session_id":"B"' in second
    assert host.err == ""


def test_another_name_than_the_one_it_began_with_is_a_miss(path: Path) -> None:
    with Host(kaiak(path)) as host:
        host.write(framed("content-length", fix(1, "generate_fix", "B")))
        refused = host.write(framed("content-length", fix(2, "delete_session", "C")))

    assert b'"error"' in refused
    assert '/params/arguments/0/session_id: recorded "A", now "C"' in host.err


def test_a_name_that_the_child_made_up_can_only_be_repeated(path: Path) -> None:
    named = '{"jsonrpc":"2.0","id":1,"result":{"runId":"a","status":"running"}}'
    session(path, "waza", f"> {rpc(1, 'eval.run', path='e')}", f"< {named}", f"> {rpc(2, 'run.status', runId='a')}")
    with Host(path) as host:
        host.say(rpc(1, "eval.run", path="e"))
        host.say(rpc(2, "run.status", runId="b"))

    assert '/params/runId: recorded "a", now "b"' in host.err


def test_in_any_order_a_run_tells_of_itself_behind_its_own_answer(path: Path) -> None:
    def answer(id: int, run: str) -> str:
        return f'{{"jsonrpc":"2.0","id":{id},"result":{{"runId":"{run}"}}}}'

    def progress(run: str) -> str:
        return f'{{"jsonrpc":"2.0","method":"eval.progress","params":{{"runId":"{run}"}}}}'

    asked = [rpc(1, "eval.run", path="a"), rpc(2, "eval.run", path="b")]
    told = [answer(1, "A"), answer(2, "B"), progress("A"), progress("B"), progress("A")]
    session(path, "waza", *(f"> {text}" for text in asked), *(f"< {text}" for text in told))
    with Host(path, Options(order="any")) as host:
        second = host.say(asked[1])
        first = host.say(asked[0])

    assert second == [answer(2, "B"), progress("B")]
    assert first == [answer(1, "A"), progress("A"), progress("A")]


ANY = Options(order="any")


def test_in_any_order_a_fix_goes_on_when_it_is_approved_of(path: Path) -> None:
    def told(kind: str, content: str = "{}") -> str:
        params = f'"session_id":"A","request_id":"r","content":{content}'
        return f'{{"jsonrpc":"2.0","method":"kaiak/stream/{kind}","params":{{{params}}}}}'

    asked, done = told("user_interaction", '{"interaction_id":"i"}'), '{"jsonrpc":"2.0","id":1,"result":{}}'
    approval = rpc(3, "kaiak/client/user_message", session_id="A", payload={"request_id": "i", "action": "deny"})
    refused = '{"jsonrpc":"2.0","id":2,"error":{"code":-32016,"message":"in use","data":{"session_id":"A"}}}'
    lines = [f"> {fix(1, 'generate_fix', 'A')}", f"< {asked}", f"> {fix(2, 'generate_fix', 'A')}", f"< {refused}"]
    lines += [f"> {approval}", '< {"jsonrpc":"2.0","id":3,"result":{}}', f"< {told('system')}", f"< {done}"]
    session(path, "kaiak", *lines)
    with Host(path, ANY) as host:
        assert host.say(fix(1, "generate_fix", "A")) == [asked]
        assert host.say(approval) == ['{"jsonrpc":"2.0","id":3,"result":{}}', told("system"), done]


def test_in_any_order_what_is_told_of_a_session_comes_with_the_prompt_that_works_in_it(path: Path) -> None:
    def update(text: str) -> str:
        return f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":"{text}"}}}}'

    def prompt(id: int, text: str) -> str:
        return rpc(id, "session/prompt", sessionId="s", prompt=text)

    created = rpc(1, "session/new", cwd="/tmp/cwd", mcpServers=[])
    named = '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}'
    cancel = '{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}'
    ended = [f'{{"jsonrpc":"2.0","id":{id},"result":{{"stopReason":"{why}"}}}}' for id, why in ((2, "end"), (3, "no"))]
    lines = [f"> {created}", f"< {named}", f"> {prompt(2, 'a')}", f"< {update('a')}", f"< {ended[0]}"]
    lines += [f"> {prompt(3, 'b')}", f"< {update('b')}", f"> {cancel}", f"< {update('stopped')}", f"< {ended[1]}"]
    session(path, "acp", *lines)
    with Host(path, ANY) as host:
        assert host.say(created) == [named]
        assert host.say(prompt(3, "b")) == [update("b")]
        assert host.say(prompt(2, "a")) == [update("a"), ended[0]]
        assert host.say(cancel) == [update("stopped"), ended[1]]


def test_in_any_order_a_run_ends_when_it_is_cancelled(path: Path) -> None:
    told = '{"jsonrpc":"2.0","method":"eval.progress","params":{"runId":"A","event":"%s"}}'
    ran, cancel = rpc(1, "eval.run", path="e"), rpc(2, "run.cancel", runId="A")
    named = '{"jsonrpc":"2.0","id":1,"result":{"runId":"A","status":"running"}}'
    cancelled = '{"jsonrpc":"2.0","id":2,"result":{"runId":"A","status":"cancelled"}}'
    lines = [f"> {ran}", f"< {named}", f"< {told % 'a'}", f"> {cancel}", f"< {cancelled}", f"< {told % 'b'}"]
    session(path, "waza", *lines)
    with Host(path, ANY) as host:
        assert host.say(ran) == [named, told % "a"]
        assert host.say(cancel) == [cancelled, told % "b"]


def test_in_any_order_a_launch_is_answered_when_its_configuration_is_done(path: Path) -> None:
    def response(seq: int, to: int, command: str) -> str:
        head = f'{{"seq":{seq},"type":"response","request_seq":{to},"success":true'
        return f'{head},"command":"{command}"}}'

    done = [response(8, 3, "configurationDone"), response(9, 2, "launch")]
    launch, configured = dap(2, "launch"), dap(3, "configurationDone")
    session(path, "dap", f"> {launch}", f"> {configured}", *(f"< {text}" for text in done))
    with Host(path, ANY) as host:
        assert host.say(launch) == []
        assert host.say(configured) == done


def test_in_any_order_nothing_is_taken_to_come_of_a_ping_but_its_pong(path: Path) -> None:
    log, pong = '{"jsonrpc":"2.0","method":"log","params":{}}', '{"jsonrpc":"2.0","id":4,"result":{"timestamp":1}}'
    ran, ping = rpc(3, "execute", function="f", arguments={}), rpc(4, "ping", timestamp=1)
    session(path, "gassist", f"> {ran}", f"> {ping}", f"< {pong}", f"< {log}", f"< {COMPLETE}")
    with Host(path, ANY) as host:
        assert host.say(ping) == [pong]
        assert host.say(ran) == [log, COMPLETE]


def test_an_answer_in_pieces_is_heard_to_its_last_piece(path: Path) -> None:
    def piece(index: int, *, last: bool) -> str:
        chunk = {"index": index, "is_last": last}
        return pi(">", "r", "host_result", call_id="h", output={"text": str(index)}, is_error=False, chunk=chunk)

    asks = pi("<", "x", "host_call", call_id="h", capability="read", method="tool", params={})
    done = pi("<", "y", "tool_result", call_id="c", output={}, is_error=False)
    begins = pi(">", "m", "tool_call", call_id="c", name="t", input={})
    session(path, "pi", begins, asks, piece(0, last=False), piece(1, last=True), done)
    for order in ("strict", "any"):
        with Host(path, Options(order=order)) as host:
            assert host.say(begins[2:]) == [asks[2:]]
            assert host.say(piece(0, last=False)[2:]) == []
            assert host.say(piece(1, last=True)[2:]) == [done[2:]]
            assert host.err == ""


def test_a_folder_that_is_named_by_a_uri_is_another_one_here(path: Path) -> None:
    asked = rpc(1, "initialize", rootUri="file:///tmp/root", capabilities={})
    told = '{"jsonrpc":"2.0","method":"window/logMessage","params":{"uri":"file:///tmp/root/a.py"}}'
    lines = f"- {{t: 1, in: '{asked}'}}\n- {{t: 2, out: '{told}'}}\n- {{t: 2, exit: 0}}"
    cassette(path, lines, protocol="lsp", framing="content-length", bindings={"root": "/tmp/root"})
    with Host(path) as host:
        said = host.write(framed("content-length", asked.replace("/tmp/root", "/home/me/project")))

    assert said == framed("content-length", told.replace("/tmp/root", "/home/me/project"))


# --- Recording without being told what ------------------------------------------------------------------------


def test_a_redirected_session_is_reported(path: Path) -> None:
    child = python("print('1|1|unix|/tmp/plugin123|netrpc|', flush=True); input()")

    done = run(path, child, stdin=b"\n")

    assert done.out == b"1|1|unix|/tmp/plugin123|netrpc|\n"
    assert done.err == (
        b"ext-recorder: the child redirects its host to unix:/tmp/plugin123: that part of the session is not recorded\n"
    )


@pytest.mark.parametrize(("option", "protocol"), [("--protocol=lsp", "lsp"), ("--framing=content-length", "raw")])
def test_a_session_without_a_message_of_its_protocol_is_reported(option: str, protocol: str, path: Path) -> None:
    message = rpc(1, "initialize", protocolVersion="0.0.1").encode() + b"\n"

    done = run(path, ECHO, option, stdin=message)

    assert done.out == message
    assert done.err.decode() == (
        f"ext-recorder: {path}: no message of {protocol} in framing content-length was recorded, only other bytes; "
        "without --protocol and --framing, both are detected\n"
    )


def test_an_empty_session_is_not_reported(path: Path) -> None:
    assert run(path, ECHO, "--protocol=lsp", stdin=b"").err == b""


def test_what_came_before_the_first_message_is_in_the_cassette_once(path: Path) -> None:
    child = python("print('log', flush=True)\nwhile True:\n  try: print(input(), flush=True)\n  except EOFError: break")

    run(path, child, stdin=rpc(1, "initialize", protocolVersion="0.0.1").encode() + b"\n")

    assert b"protocol: gevals\n" in path.read_bytes()
    assert messages(path, "out")[0] == b"log"
    assert path.read_bytes().count(b"out: 'log'") == 1


# --- MCP: what differs between clients and runs ------------------------------------------------------------------


def mcp(id: object, method: str, version: str = "1", trace: str = "a", **params: object) -> str:
    """A request of revision 2026-07-28."""
    prefix = "io.modelcontextprotocol"
    meta = {
        f"{prefix}/protocolVersion": "2026-07-28",
        f"{prefix}/clientInfo": {"name": "host", "version": version},
        "traceparent": trace,
    }
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}})


@pytest.mark.parametrize("options", [Options(), ANY])
def test_a_session_of_mcp_is_replayed_for_another_client(path: Path, options: Options) -> None:
    answers = [f'{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete"}}}}' for id in (1, 2)]
    call: dict[str, Any] = {"name": "a", "arguments": {"b": 1}}
    discover, called = mcp(1, "server/discover"), mcp(2, "tools/call", **call)
    session(path, "mcp", f"> {discover}", f"< {answers[0]}", f"> {called}", f"< {answers[1]}")
    with Host(path, options) as host:
        assert host.say(mcp(1, "server/discover", "2", "b")) == [answers[0]]
        assert host.say(mcp(2, "tools/call", "2", "c", **call)) == [answers[1]]


@pytest.mark.parametrize("options", [Options(), ANY])
def test_the_handshake_of_mcp_is_replayed_for_another_client(path: Path, options: Options) -> None:
    first = rpc(1, "initialize", protocolVersion="2024-11-05", capabilities={}, clientInfo={"name": "a"})
    other = rpc(1, "initialize", protocolVersion="2025-06-18", capabilities={"roots": {}}, clientInfo={"name": "b"})
    answer = '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05"}}'
    session(path, "mcp", f"> {first}", f"< {answer}")
    with Host(path, options) as host:
        assert host.say(other) == [answer]


@pytest.mark.parametrize("options", [Options(), ANY])
def test_notifications_of_a_subscription_name_the_live_request(path: Path, options: Options) -> None:
    def notified(id: str) -> list[str]:
        meta = f'{{"io.modelcontextprotocol/subscriptionId":"{id}"}}'
        told = '{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":%s}}'
        end = f'{{"jsonrpc":"2.0","id":"{id}","result":{{"_meta":{meta}}}}}'
        return [told % ("subscriptions/acknowledged", meta), told % ("tools/list_changed", meta), end]

    listen: dict[str, Any] = {"notifications": {"toolsListChanged": True}}
    session(
        path, "mcp", f"> {mcp('l-1', 'subscriptions/listen', **listen)}", *(f"< {text}" for text in notified("l-1"))
    )
    with Host(path, options) as host:
        assert host.say(mcp("x-9", "subscriptions/listen", **listen)) == notified("x-9")
