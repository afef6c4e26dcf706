"""The same again and again, and all that can be wrong with a file or a stream: an error or a right result, always."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import OWN_FILES, Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_recorder.replay.actions import ActionBuffer, Exit, Write
from ext_recorder.replay.replay import Options, make_player
from ext_recorder.sockets.connections import ConnectionReader, connections
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.replay.player import Player

CASSETTES = Path(__file__).parents[3] / "cassettes"
ALL = sorted(path for path in CASSETTES.glob("*/*.yaml") if not path.name.endswith(".http.yaml"))
REPLAYS = {"strict": 10, "any": 5}
MUTATIONS = 2_100
PARTS = 3  # tests among which the mutations are shared out, so that several processes may take them
LARGEST_BYTES = 20_000  # of a cassette that is mutated: what can go wrong does so in a small one


def names(path: Path) -> str:
    return str(path.relative_to(CASSETTES))


class Told:
    """What came out of a replay."""

    def __init__(self) -> None:
        self.data = b""
        self.status: int | str | None = None

    def take(self, player: Player, stage: ActionBuffer) -> None:
        while True:
            for action in stage.take():
                if isinstance(action, Write):
                    self.data += action.stream.encode() + action.data
                elif isinstance(action, Exit):
                    self.status = action.status
            if not player.more:
                return
            player.proceed()


def play(reader: Reader, host: bytes, order: str = "strict", *, signal: str = "") -> Told:
    """All that a replay says to a host that says this, then closes its end."""
    stage, told = ActionBuffer(), Told()
    player = make_player(reader, stage, Options(order=order), {})
    player.start()
    told.take(player, stage)
    player.receive_data(host)
    told.take(player, stage)
    player.receive_eof()
    told.take(player, stage)
    if signal and told.status is None:
        player.receive_signal(signal)
        told.take(player, stage)
    return told


def sessions(path: Path) -> list[tuple[int, bytes]]:
    """What each of the cassette's hosts said: (connection, its bytes)."""
    with Reader(path) as reader:
        framing = FRAMINGS[reader.header.framing]
        said: dict[int, bytes] = {}
        for event in reader:
            if isinstance(event, Data) and event.kind == "in" and event.conn != OWN_FILES:
                wire = event.payload if event.raw else framing.encode(event.payload, event.head)
                said[event.conn] = said.get(event.conn, b"") + wire
    return sorted(said.items())


def open_part(path: Path, conn: int) -> Reader:
    """One connection of a cassette over sockets, else all of it."""
    found = connections(str(path))
    closed = {each.number: each.closed for each in found}
    with Reader(path) as reader:
        over_sockets = any(event.kind == "open" for event in reader)
    return ConnectionReader(str(path), conn, closed=closed[conn]) if over_sockets else Reader(path)


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize("path", ALL, ids=names)
def test_every_replay_says_the_same_bytes(path: Path, order: str) -> None:
    for conn, host in sessions(path):
        outcomes = set()
        for _ in range(REPLAYS[order]):
            with open_part(path, conn) as reader:
                told = play(reader, host, order)
            outcomes.add((told.data, told.status))
        assert len(outcomes) == 1


@pytest.mark.parametrize("path", ALL, ids=names)
def test_in_any_order_a_host_that_says_it_all_again_hears_it_all_again(path: Path) -> None:
    """Nothing is missing and nothing comes twice, whatever comes in between, and it ends as it ended."""
    for conn, host in sessions(path):
        stage = ActionBuffer(paced=True)  # which keeps messages apart
        with open_part(path, conn) as reader:
            player = make_player(reader, stage, Options(order="any"), {})
            player.start()
            player.receive_data(host)
            player.receive_eof()
        *told, end = stage.take()
        with Reader(path) as reader:
            spelled = {"out": FRAMINGS[reader.header.framing], "err": FRAMINGS["ndjson"]}
            recorded = [event for event in reader if event.conn == conn]
        expected = [
            (event.kind, event.payload if event.raw else spelled[event.kind].encode(event.payload, event.head))
            for event in recorded
            if isinstance(event, Data) and event.kind != "in"
        ]
        assert sorted((each.stream, each.data) for each in told if isinstance(each, Write)) == sorted(expected)
        assert isinstance(end, Exit)
        exits = [event.value for event in recorded if isinstance(event, Mark) and event.kind == "exit"]
        assert end.status == (exits[0] if exits else 0)  # a connection has none


def mutated(data: bytes, lot: random.Random) -> bytes:
    """The same with a few things wrong: bits, bytes, lines, pieces cut out, put in twice or elsewhere."""
    for _ in range(lot.choice((1, 1, 1, 2, 5))):
        start = lot.randrange(len(data) + 1)
        end = min(len(data), start + lot.choice((1, 1, 2, 8, 64, 1_000)))
        piece = data[start:end]
        kind = lot.randrange(7)
        if kind == 0:
            data = data[:start]
        elif kind == 1:
            data = data[:start] + data[end:]
        elif kind == 2:
            data = data[:end] + piece * lot.choice((1, 3)) + data[end:]
        elif kind == 3:
            data = data[:start] + bytes(byte ^ (1 << lot.randrange(8)) for byte in piece[:4]) + data[start + 4 :]
        elif kind == 4:
            data = data[:start] + lot.randbytes(len(piece)) + data[end:]
        elif kind == 5:
            data = (
                data[:start]
                + lot.choice((b"\n", b"\r\n", b"'", b"\0", b"{", b": ", b"- ", b"\xff", b"!!", b"&a", b"#"))
                + data[end:]
            )
        else:
            lines = data.splitlines(keepends=True)
            lot.shuffle(lines)
            data = b"".join(lines)
    return data


SMALL = [path for path in ALL if path.stat().st_size < LARGEST_BYTES]


def cases(part: int) -> Iterator[tuple[Path, random.Random]]:
    for number in range(part, MUTATIONS, PARTS):
        yield SMALL[number % len(SMALL)], random.Random(number)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_mutated_cassette_is_refused_or_played_to_an_end(tmp_path: Path, part: int) -> None:
    refused = played = 0
    file = tmp_path / "mutated.yaml"
    hosts = {path: sessions(path) for path in SMALL}
    for path, lot in cases(part):
        file.write_bytes(mutated(path.read_bytes(), lot))
        host = hosts[path][0][1] if hosts[path] else b""
        try:
            with Reader(file) as reader:
                told = play(reader, host, lot.choice(("strict", "any")), signal="SIGTERM")
        except RecorderError:
            refused += 1
        else:
            assert told.status is not None
            played += 1
    assert refused > 100
    assert played > 100


@pytest.mark.parametrize("part", range(PARTS))
def test_a_mutated_stream_is_answered_or_refused_and_ends(part: int) -> None:
    differed = same = 0
    hosts = {path: sessions(path) for path in SMALL}
    for path, lot in cases(part):
        if not hosts[path]:
            continue
        conn, host = hosts[path][0]
        with open_part(path, conn) as reader:
            told = play(reader, mutated(host, lot), lot.choice(("strict", "any")), signal="SIGTERM")
        assert told.status is not None
        differed += told.status == 3
        same += told.status != 3
    assert differed > 100
    assert same > 10
