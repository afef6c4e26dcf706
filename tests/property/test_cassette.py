"""Whatever a session was, its cassette gives it back; whatever a file is, reading it ends well or by our error."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, cast

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ext_recorder.cassette.events import STDERR_FRAMING, Data, Mark, event_line, note
from ext_recorder.cassette.fast_parser import cut, parse_line
from ext_recorder.cassette.header import Header, encode_header, encode_trailer
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.yaml_parser import load_line
from ext_recorder.cassette.yaml_scalars import parse_flow
from ext_recorder.errors import CassetteError
from ext_recorder.messages.json_values import differences
from ext_recorder.messages.path_bindings import RecordBindings, ReplayBindings
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.protocols.fast_id import scan_id
from ext_recorder.replay.actions import ActionBuffer, Exit, Write
from ext_recorder.replay.replay import Options, make_player
from ext_sdk.core.wire.errors import FrameTooLong
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.cassette.events import Event, Stream
    from ext_recorder.cassette.yaml_scalars import Flow
    from ext_sdk.core.wire.frames import Frame, Junk

# One file in a fixed place is written anew for each example: that is what the health check warns of, and what is
# meant.
files = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

TRICKY = "'\"\\{}[],:#&*!|>%@` \t\r\n\u0085\u00a0\u2028\u2029\ufeff\ufffd\x00\x1b\x7fé漢😀-?~"
texts = st.text(st.one_of(st.sampled_from(TRICKY), st.characters(codec="utf-8")), max_size=60)
payloads = st.one_of(texts.map(str.encode), st.binary(max_size=60))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
times = st.integers(0, 10**9).map(lambda micros: micros / 1_000_000)


def unchanged(data: bytes) -> bytes:
    return data


def pieces(framing: str, wire: bytes) -> list[Frame | Junk]:
    decoder = FRAMINGS[framing].decoder()
    decoder.receive_data(wire)
    decoder.receive_eof()
    found = []
    while item := decoder.next_event():
        found.append(item)
    return found


def read(path: Path) -> list[Event]:
    with Reader(path) as reader:
        return list(reader)


def wire_of(event: Data, framing: str) -> bytes:
    return event.payload if event.raw else FRAMINGS[framing].encode(event.payload, event.head)


def write(path: Path, lines: list[bytes], header: Header) -> None:
    path.write_bytes(encode_header(header) + b"".join(lines) + encode_trailer(()))


# --- What was on the wire is what comes out -------------------------------------------------------------------------


@given(st.sampled_from(sorted(FRAMINGS)), st.lists(payloads, max_size=8), st.binary(max_size=40), times)
@files
def test_the_bytes_of_any_stream_come_out_of_the_cassette(
    tmp_path: Path, framing: str, messages: list[bytes], junk: bytes, time: float
) -> None:
    wire = junk
    for message in messages:
        try:
            wire += FRAMINGS[framing].encode(message)
        except (ValueError, FrameTooLong):  # what this framing can't carry is not sent
            continue
    assume(wire)
    lines = [note("out", time, item, FRAMINGS[framing], unchanged) for item in pieces(framing, wire)]
    path = tmp_path / "session.yaml"
    write(path, lines, Header("gevals", framing))

    assert b"".join(wire_of(cast("Data", event), framing) for event in read(path)) == wire


@given(st.binary(min_size=1, max_size=80))
@files
def test_any_stderr_comes_out_of_the_cassette(tmp_path: Path, wire: bytes) -> None:
    lines = [note("err", 0.5, item, STDERR_FRAMING, unchanged) for item in pieces("ndjson", wire)]
    path = tmp_path / "session.yaml"
    write(path, lines, Header("gevals", "uint32"))

    assert b"".join(wire_of(cast("Data", event), "ndjson") for event in read(path)) == wire


events = st.one_of(
    st.builds(
        Data,
        st.sampled_from(["in", "out", "err"]),
        times,
        st.binary(max_size=60),
        raw=st.just(value=True),
        conn=st.integers(1, 3),
    ),
    st.builds(Mark, st.just("eof"), times, st.sampled_from(["in", "out", "err"]), st.integers(1, 3)),
    st.builds(Mark, st.just("exit"), times, st.integers(0, 255) | st.sampled_from(["SIGKILL", "SIGRTMIN+3"])),
    st.builds(Mark, st.just("signal"), times, st.sampled_from(["SIGTERM", "SIGINT"])),
    st.builds(Mark, st.just("open"), times, st.just("in"), st.integers(2, 3)),
)
text_events = st.builds(
    Data,
    st.sampled_from(["in", "out", "err"]),
    times,
    texts.map(str.encode),
    head=st.lists(st.text("ab'c: -;=/", min_size=1, max_size=12), max_size=2).map(tuple),
    conn=st.integers(1, 3),
)


def line_of(event: Event) -> bytes:
    try:
        return event_line(event)
    except ValueError:
        assume(condition=False)
        raise


@given(st.one_of(events, text_events))
def test_an_event_is_the_same_after_a_line_by_hand_and_by_yaml(event: Event) -> None:
    line = line_of(event)

    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    assert load_line("x", line) == event
    assert parse_line(line) in (event, None)  # None: a quotation mark within a header line, left to PyYAML
    if isinstance(event, Mark) or not any("'" in each for each in event.head):
        assert parse_line(line) == event


usual_lines = st.builds(
    lambda kind, time, text: b"- {t: %.6f, %s: '%s'}\n" % (time, kind, text),
    st.sampled_from([b"in", b"out", b"err"]),
    times,
    st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="'")).map(str.encode),
)
changes = st.one_of(st.none(), st.tuples(st.integers(0, 400), st.sampled_from([b"'", b"\n", b" ", b"}", b"\x00", b""])))


@given(st.lists(usual_lines, min_size=1, max_size=8), st.lists(events.map(line_of), max_size=1), changes)
def test_a_block_is_what_its_lines_are_or_is_left_to_them(
    usual: list[bytes], other: list[bytes], change: tuple[int, bytes] | None
) -> None:
    block = b"".join([*usual, *other])
    whole = cut(b"".join(usual))
    assert whole is not None
    assert len(whole) == len(usual)
    if change:
        at, byte = change
        block = block[:at] + byte + block[at + 1 :]

    found = cut(block)

    if found is not None:
        taken = [found.take() for _ in range(len(found))]
        assert taken == [parse_line(line) for line in block.splitlines(keepends=True)]


@given(st.one_of(events, text_events))
def test_any_yaml_library_reads_what_we_write(event: Event) -> None:
    loaded = yaml.load(line_of(event), Loader=yaml.CSafeLoader)

    if isinstance(event, Data) and not event.raw:
        assert loaded[0][event.kind].encode() == event.payload
    assert loaded[0]["t"] == pytest.approx(event.time)
    assert yaml.safe_load(line_of(event)) == loaded


fragments = st.lists(
    st.sampled_from(
        [
            "- {t: 0.1, in: 'a'}", "- {t: 0.1, in: 'a''b'}", "- {t: 0.1, out: {raw: 'aGk='}}", "- {t: 1, exit: 0}",
            "- {t: 0.1, eof: in}", "cassette: 1", "protocol: gevals", "framing: ndjson", "events:", "redacted: []", "'",
            "\n", "\n\n", " ", "  ", "\t", "- ", "t: 0.1", "in: 'x'", "{", "}", "#", "&a ", "*a",
            "!!python/object:os.system ", "---", "...", "\x00", "é", "\u2028", "\r", "|", ">", "? ", "%YAML 1.2",
        ]
    ),
    max_size=30,
)  # fmt: skip


@given(
    st.one_of(st.binary(max_size=300), fragments.map("".join).map(str.encode), fragments.map("\n".join).map(str.encode))
)
@files
def test_any_file_is_read_or_refused_by_an_error_that_names_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "session.yaml"
    path.write_bytes(data)

    try:
        found = read(path)
    except CassetteError as error:
        told = str(error)
    else:
        told = f"{path}: {len(found)} events"
        assert found

    assert told.startswith(str(path))


@given(st.lists(st.one_of(events, text_events), min_size=1, max_size=6), st.randoms(use_true_random=False))
@files
def test_a_cassette_that_a_formatter_has_written_anew_holds_the_same_events(
    tmp_path: Path, recorded: list[Event], random: object
) -> None:
    path = tmp_path / "session.yaml"
    write(path, [line_of(event) for event in recorded], Header("gevals", "ndjson", command=("a", "b c")))
    loaded = yaml.compose(path.read_bytes(), Loader=yaml.CSafeLoader)
    path.write_text(yaml.serialize(loaded, allow_unicode=True, width=40), "utf-8")

    assert read(path) == recorded


@given(st.one_of(texts, st.lists(texts, max_size=4), st.dictionaries(st.text("ab-_ é'#:"), texts, max_size=3)))
@files
def test_the_header_is_the_same_for_us_and_for_yaml(tmp_path: Path, value: Flow) -> None:
    header = Header(
        "gevals",
        "ndjson",
        command=tuple(value) if isinstance(value, list) else (),
        bindings=value if isinstance(value, dict) else {},
        recorder=value if isinstance(value, str) else "",
    )
    encoded = encode_header(header)
    path = tmp_path / "session.yaml"
    path.write_bytes(encoded + b"- {t: 1, exit: 0}\n")

    loaded = yaml.load(encoded, Loader=yaml.CSafeLoader)
    with Reader(path) as reader:
        assert list(reader.header.command) == loaded.get("command", [])
        assert reader.header.bindings == loaded.get("bindings", {})
        # Values of the header that are other things than texts to YAML are texts to us: a version of 1.10, for one.
        if isinstance(loaded.get("recorder"), str):
            assert reader.header.recorder == loaded["recorder"]


words = st.lists(
    st.sampled_from(["a", "b-c", "'d e'", "'it''s'", ", ", ": ", ",", ":", "-", "@", "'", "#", "&", "1", " "]),
    max_size=7,
)


@given(words.map("".join), st.sampled_from(["[{}]", "{{{}}}", "{}"]))
def test_a_value_read_by_hand_is_what_yaml_reads(inside: str, around: str) -> None:
    text = around.format(inside).strip()
    value = parse_flow(text)

    if value is not None:
        assert yaml.load(f"k: {text}", Loader=yaml.CBaseLoader) == {"k": value}


# --- Ids, values, paths ---------------------------------------------------------------------------------------------

ids = st.one_of(st.integers(), st.none(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), texts)


@given(
    ids,
    json_values,
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")]),
    st.permutations(["jsonrpc", "id", "method", "params"]),
    st.sampled_from(["request", "result", "error"]),
)
def test_a_glance_sees_what_a_scan_sees(
    id: object, value: object, separators: tuple[str, str], order: list[str], kind: str
) -> None:
    members: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": "run", "params": value}
    if kind != "request":
        del members["method"], members["params"]
        members[kind] = value
        order = [name for name in order if name in members] + [kind]
    payload = json.dumps({name: members[name] for name in order}, separators=separators, ensure_ascii=False).encode()
    seen = scan_id(payload)
    message = DIALECTS["jsonrpc"].classify(payload)

    if seen is not None:
        assert seen[0] == message.kind
        assert payload[seen[1] : seen[2]] == message.key
        assert (len(payload[: seen[1]].decode()), len(payload[: seen[2]].decode())) == message.span


@given(json_values, json_values)
def test_two_values_differ_somewhere_exactly_if_they_are_not_equal(left: object, right: object) -> None:
    assert list(differences(left, left)) == []
    if json.dumps(left, sort_keys=True) != json.dumps(right, sort_keys=True) and left != right:
        assert list(differences(left, right))


paths = st.lists(st.text("abX-_.é\" \\'%~", min_size=1, max_size=6), min_size=2, max_size=4).map(
    lambda names: "/" + "/".join(names)
)


@given(paths, paths, st.sampled_from(["{}/file", "cd {};", "{}", "see {}, please", "a\n{}\nb", "file://{}/x", "'{}'"]))
def test_a_path_goes_out_of_a_message_and_another_one_comes_back_in(there: str, here: str, around: str) -> None:
    assume(not there.startswith("/tmp/workdir") and not here.startswith("/tmp/workdir"))
    request = {"jsonrpc": "2.0", "id": 1, "method": "execute", "params": {"context": {"workdir": there}}}
    recording = RecordBindings(DIALECTS["gevals"])
    recording.observe(json.dumps(request).encode())
    for ascii_only in (True, False):
        said = json.dumps({"text": around.format(there)}, ensure_ascii=ascii_only).encode()

        neutral = recording.clean(said)
        playing = ReplayBindings(recording.neutral())
        playing.bind("/tmp/workdir", here)

        assert json.loads(neutral)["text"] == around.format("/tmp/workdir")
        assert json.loads(playing.to_live(neutral, json=True))["text"] == around.format(here)


# --- A session replayed ---------------------------------------------------------------------------------------------

steps = st.lists(
    st.one_of(
        st.tuples(st.just("call"), json_values, st.integers(0, 3)),
        st.tuples(st.just("notify"), json_values, st.integers(0, 3)),
        st.tuples(st.just("say"), json_values, st.integers(0, 3)),
        st.tuples(st.just("answer"), json_values, st.integers(0, 3)),
        st.tuples(
            st.just("junk"), st.binary(min_size=1, max_size=20).map(lambda data: data.replace(b"\n", b"")), st.just(0)
        ),
    ),
    max_size=14,
)


def session(plan: list[tuple[str, object, int]], first_id: int) -> list[tuple[Stream, bytes]]:
    """What host and child wrote, with ids from `first_id` on; calls may overlap, and all are answered in the end."""
    said: list[tuple[Stream, bytes]] = []
    open_calls: list[int] = []
    for what, value, number in plan:
        if what == "call":
            open_calls.append(number)
            message = {"jsonrpc": "2.0", "id": number + first_id, "method": "execute", "params": value}
            said.append(("in", json.dumps(message, ensure_ascii=False).encode() + b"\n"))
        elif what == "notify":
            said.append(("in", json.dumps({"jsonrpc": "2.0", "method": "n", "params": value}).encode() + b"\n"))
        elif what == "say":
            said.append(("out", json.dumps({"jsonrpc": "2.0", "method": "log", "params": value}).encode() + b"\n"))
        elif what == "junk":
            said.append(("out", cast("bytes", value) + b"\n"))
        elif open_calls:
            id = open_calls.pop(number % len(open_calls))
            said.append(("out", json.dumps({"result": value, "jsonrpc": "2.0", "id": id + first_id}).encode() + b"\n"))
    last = ({"result": "last", "jsonrpc": "2.0", "id": id + first_id} for id in open_calls)
    return said + [("out", json.dumps(message).encode() + b"\n") for message in last]


@given(steps, st.sampled_from([0, 1, 7, 1000]), st.integers(1, 50), st.integers(0, 255))
@files
def test_a_session_with_other_ids_and_in_any_chunks_is_replayed_as_it_was(
    tmp_path: Path, plan: list[tuple[str, object, int]], first_id: int, chunk: int, status: int
) -> None:
    # Two open calls of one id can be told apart by their order alone, so answers have to keep it.
    ids = [number for what, _, number in plan if what == "call"]
    assume(len(set(ids)) == len(ids))
    path = tmp_path / "session.yaml"
    lines = [
        note(stream, 0.001 * at, item, FRAMINGS["ndjson"], unchanged)
        for at, (stream, wire) in enumerate(session(plan, 1))
        for item in pieces("ndjson", wire)
    ]
    write(
        path,
        [*lines, event_line(Mark("eof", 1, "in")), event_line(Mark("exit", 1, status))],
        Header("gevals", "ndjson"),
    )
    live = session(plan, first_id)
    stage = ActionBuffer()
    with Reader(path) as reader:
        player = make_player(reader, stage, Options(), {})
        player.start()
        host = b"".join(wire for stream, wire in live if stream == "in")
        for at in range(0, len(host), chunk):
            player.receive_data(host[at : at + chunk])
        player.receive_eof()
        assert not player.more  # all of it is far less than would be said in pieces
    actions = stage.take()

    assert [action.status for action in actions if isinstance(action, Exit)] == [status]
    out = b"".join(action.data for action in actions if isinstance(action, Write))
    assert out == b"".join(wire for stream, wire in live if stream == "out")


def test_the_header_ends_where_the_events_begin() -> None:
    assert io.BytesIO(encode_header(Header("gevals", "ndjson"))).readlines()[-1] == b"events:\n"
