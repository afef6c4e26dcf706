"""Users' rules: places by method, masks and their presets, and names that the child hands out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.errors import PatternTooSlow, UsageError
from ext_recorder.messages import comparison_rules
from ext_recorder.messages.comparison_rules import OWN_PORTS, PRESETS, FilePattern, IgnoredPlaces, Mask, split
from ext_recorder.replay.replay import Options
from tests.support.host import PATIENCE_S
from tests.support.player_host import END, Host, cassette
from tests.support.project_files import call as recorder
from tests.support.recorder_process import RECORDER, run
from tests.unit.ext_recorder.tools.test_diff import differences, told

SLOW = "(a+)+$"


def request(id: object, method: str, params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, separators=(",", ":"))


def response(id: object, result: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, separators=(",", ":"))


def said(*events: tuple[str, str]) -> str:
    return "".join(f"- {{t: 0.{at:03}, {kind}: '{text}'}}\n" for at, (kind, text) in enumerate(events))


# --- Places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("/a/b", ("", "/a/b")),
        ("/a b /c", ("", "/a b /c")),  # a pointer may have spaces
        ("", ("", "")),
        ("tools/call /params/x", ("tools/call", "/params/x")),
        ("tools/call get_time /params/x", ("tools/call get_time", "/params/x")),
        ("$/progress /params/token", ("$/progress", "/params/token")),
        ("initialize", ("", "initialize")),
    ],
)
def test_an_entry_is_a_pointer_or_a_method_and_a_pointer(entry: str, found: tuple[str, str]) -> None:
    assert split(entry) == found


def test_places_are_those_of_all_messages_of_the_method_and_of_its_subject() -> None:
    places = IgnoredPlaces("ignore", ["/a", "m /b", "m s /c", "n /d"])
    assert places.of("m") == ("/a", "/b")
    assert places.of("m", "s") == ("/a", "/b", "/c")
    assert places.of("other", "s") == ("/a",)
    assert (places.by_method, IgnoredPlaces("ignore", ["/a"]).by_method) == (True, False)


@pytest.mark.parametrize("entry", ["tools/call", "m params", "params /", "m  "])
def test_what_is_not_an_entry_is_refused_with_the_form(entry: str) -> None:
    if split(entry)[1].startswith("/"):
        return
    with pytest.raises(UsageError, match=r"^--name .*'tools/call /params/name'"):
        IgnoredPlaces("name", [entry])


# --- Presets ----------------------------------------------------------------------------------------------------------

EXAMPLES = {
    "uuid": (["2F1e4bd1-2d6e-4c8a-9f2b-0123456789ab"], ["2f1e4bd1-2d6e-4c8a-9f2b-0123456789abc", "2f1e4bd1"]),
    "ulid": (
        ["01ARZ3NDEKTSV4RRFFQ69G5FAV"],
        ["91ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAVX", "01ARZ3NDEK"],
    ),
    "time": (
        [
            "2026-11-22T23:34:35Z",
            "2026-11-22 23:34:35.123456+01:00",
            "2026-11-22T23:34",
            "2026-11-22T23:34:35,5+0100",
            "Sun, 22 Nov 2026 23:34:35 GMT",
        ],
        ["2026-11-22", "2026-13-22T23:34:35Z", "23:34:35", "12026-11-22T23:34:35Z"],
    ),
    "date": (
        [
            "2026-11-22",
            "Sunday, November 22, 2026",
            "Sun Nov 22 2026",
            "Sun, 22 Nov 2026",
            "22 November 2026",
            "May 5, 2026",
            "11/22/2026",
        ],
        ["2026-13-22", "12026-11-22", "22 Novembers 2026", "a/11/22/2026", "November 2026", "Mayor 22, 2026"],
    ),
    "epoch": (
        ["1763854475", "1763854475123", "1763854475.123", "1763854475123456789"],
        ["763854475", "176385447512", "v1763854475", "5000000000"],
    ),
    "duration": (
        [
            "1.5s",
            "12ms",
            "2m30s",
            "3µs",
            "12 ms",
            "0.3 seconds",
            "1 minute",
            "PT1M30.5S",
            "P1DT2H",
            "0:00:01.5",
            "5 min",
        ],
        ["1.5", "v1.5s", "12msx", "P", "PT", "5 miles", "10:99:00", "3 s-bahn2x"[:1]],
    ),
    "port": ([], ["8080", "example.com:8080", "localhost:123456"]),
    "traceparent": (
        ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
        ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", "00-4bf92f"],
    ),
    "tmp": (
        ["/tmp/x1", "/var/tmp/pytest-of-me", "/private/var/folders/ab/cd_1/T/tmp.x", "/private/tmp/x"],
        ["/tmp", "/home/tmp/x", "tmp/x"],
    ),
}


def test_every_preset_has_examples() -> None:
    assert set(EXAMPLES) == set(PRESETS)


def test_every_preset_has_a_row_in_the_documentation() -> None:
    page = (Path(__file__).parents[4] / "docs" / "recorder.md").read_text("utf-8")
    for name, preset in PRESETS.items():
        assert f"| `@{name}` | {preset.form} |" in page


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_masks_its_values_wherever_they_are_and_nothing_else(name: str) -> None:
    mask = Mask([f"@{name}"])
    values, others = EXAMPLES[name]
    for value in values:
        for text in ("{}", "it is {}.", '"{}"', "({}), {}", "a={}\n"):
            assert mask.text(text.replace("{}", value)) == text.replace("{}", "…"), value
    for other in others:
        assert mask.text(f"it is {other}.") == f"it is {other}."


def test_a_preset_keeps_what_is_around_its_value() -> None:
    assert Mask(["@port"]).text("http://127.0.0.1:49152/x port 80, [::1]:1") == "http://127.0.0.1:…/x port …, [::1]:…"
    assert Mask(["@tmp"]).text("wrote /tmp/tmpab12/out.txt, /tmp/b: done") == "wrote …/out.txt, …: done"
    assert Mask(["@uuid"]).text("urn:uuid:2f1e4bd1-2d6e-4c8a-9f2b-0123456789ab/x") == "urn:uuid:…/x"


def test_only_the_epoch_applies_to_numbers() -> None:
    value = {"at": 1763854475, "ms": 1763854475123, "s": 1763854475.5, "n": 12, "ok": True, "list": [1763854475]}
    assert Mask(["@epoch"]).value(value) == {"at": "…", "ms": "…", "s": "…", "n": 12, "ok": True, "list": ["…"]}
    assert Mask(["[0-9]+"]).value(value) == value


FIRST, LAST = datetime.fromisoformat("1970-01-01"), datetime.fromisoformat("2099-12-31")


@given(st.uuids())
def test_any_uuid_is_masked(value: object) -> None:
    assert Mask(["@uuid"]).text(f"id {value}") == "id …"


@given(
    st.datetimes(FIRST, LAST),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))) | st.none(),
    st.sampled_from(["seconds", "milliseconds", "microseconds", "minutes"]),
)
def test_any_iso_time_is_masked(value: datetime, zone: timezone | None, spec: str) -> None:
    text = value.replace(tzinfo=zone).isoformat(timespec=spec)
    assert Mask(["@time"]).text(f"at {text}") == "at …"
    assert Mask(["@time"]).text(format_datetime(value.replace(tzinfo=UTC), usegmt=True)) == "…"


@given(st.datetimes(FIRST.replace(year=2002), LAST), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_any_unix_time_of_this_century_is_masked(value: datetime, unit: int) -> None:
    seconds = value.replace(tzinfo=UTC).timestamp()
    mask = Mask(["@epoch"])
    assert mask.value([int(seconds) * unit, str(int(seconds) * unit), seconds]) == ["…"] * 3


@given(st.floats(0, 1e6).map(lambda value: round(value, 3)), st.sampled_from(["ns", "us", "µs", "ms", "s", "m", "h"]))
def test_any_duration_is_masked(value: float, unit: str) -> None:
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    assert Mask(["@duration"]).text(f"took {text}{unit}") == "took …"


@given(st.text(), st.sampled_from(list(PRESETS)))
def test_masking_twice_is_masking_once(text: str, name: str) -> None:
    mask = Mask([f"@{name}"])
    assert mask.text(mask.text(text)) == mask.text(text)


def test_masks_apply_one_after_the_other_with_flags_and_groups_of_their_own() -> None:
    assert Mask(["(?i)took", r"(a)\1", "@uuid"]).text("TOOK aa") == "… …"


@pytest.mark.parametrize("entry", ["x*", r"(b)|(c)", r"\b"])
def test_a_mask_is_a_substitution(entry: str) -> None:
    assert Mask([entry]).text("abcx") == re.sub(entry, "…", "abcx")


def test_a_pattern_that_takes_too_long_is_named_with_its_place() -> None:
    texts = {"a": "a" * 40, "b": ["a" * 40 + "!"]}
    ruled = FilePattern(SLOW, "recording.yaml: rules: mask")
    for entry, shown in ((SLOW, f"--mask {SLOW}"), (ruled, f"recording.yaml: rules: mask: '{SLOW}'")):
        with pytest.raises(PatternTooSlow) as caught:
            Mask(["@uuid", entry, "b"]).value(texts)
        assert str(caught.value) == (
            f"{shown}: took more than 1 s of processor time on a text of 41 characters; write a pattern in which no "
            "repetition is repeated, as in (a+)+"
        )


def test_slow_messages_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_rules, "_PROMPT_S", -1.0)  # every message is slow
    monkeypatch.setattr(comparison_rules, "_PROMPT_CHARACTER_S", 0.0)
    mask = Mask(["a+"])
    assert mask.text("ab") == "…b"
    monkeypatch.setattr(comparison_rules, "SLOW_S", -1.0)
    with pytest.raises(
        PatternTooSlow, match=r"^--mask a\+: slow searches took more than -1 s of processor time togeth"
    ):
        Mask(["a+"]).text("ab")
    assert Mask(["@uuid", OWN_PORTS]).text("ab") == "ab"  # presets are not limited


def test_a_long_text_is_masked() -> None:
    assert Mask(["b+", "@uuid"]).value(["a" * 200_000 + "bb"]) == ["a" * 200_000 + "…"]


@pytest.mark.parametrize("entry", ["@uid", "@", "(", "@uuid|x", "(" * 5000 + ")" * 5000, "a{99999999999}"])
def test_what_is_no_pattern_is_refused(entry: str) -> None:
    with pytest.raises(UsageError, match=r"^--mask "):
        Mask([entry])


# --- Replay -----------------------------------------------------------------------------------------------------------

SEEDS = said(
    ("in", request(1, "tools/call", {"name": "dice", "arguments": {"seed": 1}})),
    ("out", response(1, "a")),
    ("in", request(2, "tools/list", {"arguments": {"seed": 1}})),
    ("out", response(2, "b")),
)


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize("entry", ["tools/call /params/arguments/seed", "tools/call dice /params/arguments/seed"])
def test_a_place_is_ignored_in_one_method_only(order: str, entry: str, tmp_path: Path) -> None:
    file = cassette(tmp_path / "c.yaml", SEEDS + END, protocol="mcp")
    options = Options(order=order, ignore=(entry,))
    with Host(file, options) as host:
        assert host.call(1, "tools/call", name="dice", arguments={"seed": 2})["result"] == "a"
        assert "error" in host.call(2, "tools/list", arguments={"seed": 2})
        assert host.call(3, "tools/list", arguments={"seed": 1})["result"] == "b"


def test_a_place_of_another_subject_counts(tmp_path: Path) -> None:
    file = cassette(tmp_path / "c.yaml", SEEDS + END, protocol="mcp")
    with Host(file, Options(ignore=("tools/call other /params/arguments/seed",))) as host:
        assert "error" in host.call(1, "tools/call", name="dice", arguments={"seed": 2})


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize(
    ("entry", "played"), [("sampling/createMessage /result/model", 1), ("roots/list /result/model", 0)]
)
def test_a_response_of_the_host_is_of_the_method_that_it_answers(
    order: str, entry: str, played: int, tmp_path: Path
) -> None:
    events = said(
        ("in", request(1, "tools/call", {"name": "x"})),
        ("out", request(9, "sampling/createMessage", {})),
        ("in", response(9, {"model": "a"})),
        ("out", response(1, "done")),
    )
    file = cassette(tmp_path / "c.yaml", events + END, protocol="mcp")
    with Host(file, Options(order=order, ignore=(entry,))) as host:
        host.say(request(1, "tools/call", {"name": "x"}))
        lines = host.say(response(9, {"model": "b"}))
        assert [json.loads(line).get("result") for line in lines if '"result"' in line] == ["done"] * played


UUIDS = ("2f1e4bd1-2d6e-4c8a-9f2b-0123456789ab", "00000000-0000-4000-8000-000000000000")


@pytest.mark.parametrize("order", ["strict", "any"])
def test_masked_parts_of_requests_need_not_match(order: str, tmp_path: Path) -> None:
    events = said(("in", request(1, "m", {"run": f"run {UUIDS[0]}"})), ("out", response(1, "a")))
    file = cassette(tmp_path / "c.yaml", events + END, protocol="jsonrpc")
    with Host(file, Options(order=order)) as host:
        error = str(host.call(1, "m", run=f"run {UUIDS[1]}")["error"])
        assert "set aside what may differ (--mask @uuid)" in error
        assert "(--ignore /params/run)" in str(host.call(2, "m", run="run x")["error"])
    with Host(file, Options(order=order, mask=("@uuid",))) as host:
        assert "error" in host.call(1, "m", run=f"walk {UUIDS[1]}")
        assert host.call(2, "m", run=f"run {UUIDS[1]}")["result"] == "a"


@pytest.mark.parametrize("order", ["strict", "any"])
def test_masked_parts_of_raw_lines_need_not_match(order: str, tmp_path: Path) -> None:
    events = said(("in", "at 12:30"), ("out", "ok"))
    file = cassette(tmp_path / "c.yaml", events + END, protocol="raw")
    with Host(file, Options(order=order, mask=(r"\d+:\d+",))) as host:
        assert host.say("at 13:05") == ["ok"]


# --- Verify and diff --------------------------------------------------------------------------------------------------

# Hands out a token, a cursor of a few letters and a number, which differ in each process, and wants them back.
LOGIN = r"""
import json, os, sys, uuid
token, cursor, page = uuid.uuid4().hex, "c" + str(os.getpid()), os.getpid()
for line in sys.stdin:
    call = json.loads(line)
    params, method = call.get("params") or {}, call["method"]
    if method == "login":
        result = {"token": token, "cursor": cursor, "page": page, "kept": "same", "text": "now " + token}
    elif method == "list":
        right = (params["via"], params["cursor"], params["page"]) == ("Session " + token, cursor, page)
        result = {"right": right, "echo": "for " + token, "cursor": cursor}
    else:
        result = None
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"""


def record_login(file: Path, key: str = "token") -> list[str]:
    """Record a session as a host that sends back what it was given; return the command."""
    program = LOGIN.replace('"token"', f'"{key}"')
    command = [sys.executable, "-c", program]
    words = [*RECORDER, "record", "--protocol=jsonrpc", str(file), "--", *command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        print(request(1, "login", {}), file=host.stdin, flush=True)
        given = json.loads(host.stdout.readline())["result"]
        params = {"via": f"Session {given[key]}", "cursor": given["cursor"], "page": given["page"], "limit": "c1"}
        print(request(2, "list", params), file=host.stdin, flush=True)
        assert json.loads(host.stdout.readline())["result"]["right"]
        host.stdin.close()
        assert host.wait(PATIENCE_S) == 0
    return command


NAMES = ["--name", "login /result/cursor", "--name=/result/page", "--name=list /params/page"]


@pytest.mark.parametrize("key", ["handle", "token"])
def test_verify_sends_back_what_the_live_child_hands_out(key: str, tmp_path: Path) -> None:
    file = tmp_path / "login.yaml"
    command = record_login(file, key)
    assert ("[redacted:" in file.read_text()) is (key == "token")
    done = recorder("verify", str(file), "--", *command)
    assert (done.returncode, "/result/right" in done.stdout) == (1, True)
    done = recorder("verify", "--name", f"/result/{key}", *NAMES, str(file), "--", *command)
    assert (done.returncode, done.stdout) == (0, f"ok      {file}\n")


def test_names_are_set_in_a_project_file(tmp_path: Path) -> None:
    file = tmp_path / "login.yaml"
    command = record_login(file, "handle")
    names = ["/result/handle", "login /result/cursor", "/result/page", "list /params/page"]
    (tmp_path / "ext-recorder.toml").write_text(f"name = {json.dumps(names)}")
    assert recorder("verify", str(file), "--", *command).returncode == 0


def test_diff_takes_names_for_each_other(tmp_path: Path) -> None:
    def session(token: str, cursor: str) -> str:
        return told(
            ("in", request(1, "login", {})),
            ("out", response(1, {"handle": token, "cursors": [cursor]})),
            ("in", request(2, "list", {"via": f"Session {token}", "cursor": cursor})),
            ("out", response(2, f"for {token}")),
        )

    one, other = session("handle-number-one", "c1"), session("handle-number-two", "c2")
    assert len(differences(tmp_path, one, other)) == 5
    assert differences(tmp_path, one, other, name=["/result/handle", "login /result/cursors/*"]) == []
    third = other.replace("for handle-number-two", "for handle-number-one")
    assert differences(tmp_path, one, third, name=["/result/handle", "/result/cursors/*"]) == []
    mixed = other.replace("Session handle-number-two", "Session handle-number-three")
    assert differences(tmp_path, one, mixed, name=["/result/handle", "/result/cursors/*"]) == ["differs /params/via"]


def test_cursors_and_tasks_of_mcp_are_names(tmp_path: Path) -> None:
    def session(cursor: str, task: str) -> str:
        return told(
            ("in", request(1, "tools/list", {})),
            ("out", response(1, {"tools": [], "nextCursor": cursor})),
            ("in", request(2, "tools/list", {"cursor": cursor})),
            ("out", response(2, {"tools": []})),
            ("in", request(3, "tools/call", {"name": "x"})),
            ("out", response(3, {"task": {"taskId": task}})),
            ("in", request(4, "tasks/get", {"taskId": task})),
            ("out", response(4, {"taskId": task, "status": "working"})),
        )

    assert differences(tmp_path, session("a", "t1"), session("b", "t2"), protocol="mcp") == []
    assert differences(tmp_path, session("a", "t1"), session("b", "t2"), protocol="jsonrpc") != []


def test_tool_calls_of_acp_are_names(tmp_path: Path) -> None:
    def update(call: str, status: str) -> tuple[str, str]:
        params = {"sessionId": "s", "update": {"sessionUpdate": "tool_call", "toolCallId": call, "status": status}}
        return "out", json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def session(first: str, second: str) -> str:
        return told(
            ("in", request(1, "session/prompt", {"sessionId": "s"})),
            update(first, "pending"),
            update(second, "pending"),
            update(first, "completed"),
            ("out", request(7, "session/request_permission", {"sessionId": "s", "toolCall": {"toolCallId": second}})),
            ("in", response(7, {"outcome": {"outcome": "cancelled"}})),
            ("out", response(1, {"stopReason": "end_turn"})),
        )

    assert differences(tmp_path, session("call-1", "call-2"), session("x", "y"), protocol="acp") == []
    mixed = session("x", "y").replace(
        '"toolCallId": "x", "status": "completed"', '"toolCallId": "y", "status": "completed"'
    )
    assert differences(tmp_path, session("call-1", "call-2"), mixed, protocol="acp") != []


def test_verify_accepts_an_acp_agent_with_random_tool_calls(tmp_path: Path) -> None:
    program = (
        "import json, sys, uuid\n"
        "for line in sys.stdin:\n"
        "    call, tool = json.loads(line), uuid.uuid4().hex\n"
        "    for status in 'pending', 'completed':\n"
        "        params = {'sessionId': 's', 'update': {'toolCallId': tool, 'status': status}}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'method': 'session/update', 'params': params}))\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': {}}), flush=True)\n"
    )
    file = tmp_path / "acp.yaml"
    command = [sys.executable, "-c", program]
    stdin = f"{request(1, 'session/prompt', {'sessionId': 's'})}\n".encode()
    assert run(file, command, "--protocol=acp", stdin=stdin).code == 0
    done = recorder("verify", str(file), "--", *command)
    assert (done.returncode, done.stdout) == (0, f"ok      {file}\n")


# --- Handshakes -------------------------------------------------------------------------------------------------------

CLIENTS = [
    (
        "lsp",
        {"processId": 1, "clientInfo": {"name": "a", "version": "1"}, "capabilities": {}, "trace": "off"},
        {"processId": None, "capabilities": {"workspace": {"applyEdit": True}}, "locale": "de", "trace": "off"},
        "trace",
    ),
    (
        "acp",
        {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}},
        {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "b", "version": "2"}},
        "protocolVersion",
    ),
    (
        "mcp",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}, "x": 1},
        {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "b"}, "x": 1},
        "x",
    ),
]


@pytest.mark.parametrize(("protocol", "recorded", "live", "counts"), CLIENTS)
def test_the_handshake_of_another_client_matches(
    protocol: str, recorded: dict[str, object], live: dict[str, object], counts: str, tmp_path: Path
) -> None:
    events = said(("in", request(1, "initialize", recorded)), ("out", response(1, {})))
    file = cassette(tmp_path / "c.yaml", events + END, protocol=protocol)
    with Host(file) as host:
        assert "error" in host.call(1, "initialize", **{**live, counts: "other"})
        assert host.call(2, "initialize", **live)["result"] == {}


def test_the_handshake_of_another_debugger_matches(tmp_path: Path) -> None:
    def initialize(seq: int, **arguments: object) -> str:
        return json.dumps({"seq": seq, "type": "request", "command": "initialize", "arguments": arguments})

    answer = json.dumps({"seq": 1, "type": "response", "request_seq": 1, "success": True, "command": "initialize"})
    first = initialize(1, clientID="vscode", clientName="Code", adapterID="a", supportsVariableType=True)
    file = cassette(tmp_path / "c.yaml", said(("in", first), ("out", answer)) + END, protocol="dap")
    with Host(file) as host:
        (line,) = host.say(initialize(5, clientID="vim", locale="de", adapterID="a", linesStartAt1=False))
        assert not json.loads(line)["success"]
        (line,) = host.say(initialize(6, clientID="vim", locale="de", adapterID="a", supportsMemoryEvent=True))
        assert json.loads(line)["success"]
