"""`record --mode new_episodes`: replayed as far as the cassette goes, recorded from there."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER, after_headline

if TYPE_CHECKING:
    from pathlib import Path

# A child with a state: it counts its calls, tells each start in a file, and asks its host for a name at "ask".
CHILD = """
import json, os, sys
count = 0
with open(sys.argv[1], "a") as starts:
    starts.write("started\\n")
def say(**members):
    print(json.dumps({"jsonrpc": "2.0", **members}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    count += 1
    if message["method"] == "ask":
        say(id=f"q{os.getpid()}", method="name")
        name = json.loads(sys.stdin.readline())["result"]
        say(id=message["id"], result=f"{name} {count}")
    elif "id" in message:
        say(method="note", params=count)
        say(id=message["id"], result=[message["method"], message.get("params"), count])
print("the end", file=sys.stderr)
"""


class Place:
    """A cassette, a child, and how often that was started."""

    def __init__(self, folder: Path) -> None:
        self.cassette = folder / "session.yaml"
        self._starts = folder / "starts"
        self.command = [sys.executable, "-c", CHILD, str(self._starts)]

    @property
    def starts(self) -> int:
        return self._starts.read_text().count("started") if self._starts.exists() else 0

    def session(
        self, *messages: dict[str, object], mode: str = "new_episodes", options: tuple[str, ...] = ()
    ) -> tuple[list[dict[str, object]], str]:
        """What the host hears, line by line, and stderr."""
        sent = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
        command = [*RECORDER, "record", f"--mode={mode}", "--protocol=jsonrpc", *options, str(self.cassette), "--"]
        done = subprocess.run(
            [*command, *self.command], input=sent, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def recorded(self) -> list[str]:
        """The messages of the host in the cassette."""
        with Reader(self.cassette) as reader:
            return [event.payload.decode() for event in reader if isinstance(event, Data) and event.kind == "in"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def call(id: int, method: str, params: object = None) -> dict[str, object]:
    return {"id": id, "method": method, **({} if params is None else {"params": params})}


def results(heard: list[dict[str, object]]) -> list[object]:
    return [message["result"] for message in heard if "result" in message]


def test_without_a_cassette_all_is_recorded(place: Place) -> None:
    place.session(call(1, "a"))
    assert (place.starts, len(place.recorded())) == (1, 1)


def test_a_session_that_the_cassette_has_starts_nothing_and_changes_nothing(place: Place) -> None:
    first, _ = place.session(call(1, "a"), call(2, "b"))
    before = place.cassette.read_bytes()
    again, said = place.session(call(1, "a"), call(2, "b"))
    assert (again, place.starts, place.cassette.read_bytes()) == (first, 1, before)
    assert after_headline(said.encode()) == b"the end\n"


def test_from_the_first_miss_the_child_goes_on_in_the_state_that_it_would_have(place: Place) -> None:
    place.session(call(1, "a"), call(2, "b"))
    heard, said = place.session(call(7, "a"), call(8, "b"), call(9, "c", 5), call(10, "d"))
    assert results(heard) == [["a", None, 1], ["b", None, 2], ["c", 5, 3], ["d", None, 4]]
    assert [message["params"] for message in heard if message.get("method") == "note"] == [1, 2, 3, 4]
    assert "request c (id 9): never recorded" in said
    assert place.starts == 2


def test_the_new_cassette_plays_the_whole_session(place: Place) -> None:
    place.session(call(1, "a"))
    session = (call(1, "a"), call(2, "b"), call(3, "c"))
    live, _ = place.session(*session)
    replayed, _ = place.session(*session, mode="none")
    assert replayed == live
    assert place.starts == 2


def test_in_strict_order_what_the_session_left_out_is_gone_and_in_any_order_it_stays(place: Place) -> None:
    place.session(call(1, "a"), call(2, "b"), call(3, "c"))
    whole = place.cassette.read_bytes()
    _, err = place.session(call(1, "a"), call(2, "x"))
    lines = [number for number, line in enumerate(whole.splitlines(), 1) if b"in: " in line]
    assert (
        "2 recorded messages of the host were not sent in this session, and will not be in the new cassette "
        "(--order any keeps such messages):\n"
        f"ext-recorder:   {place.cassette}:{lines[1]}: request b (id 2)\n"
        f"ext-recorder:   {place.cassette}:{lines[2]}: request c (id 3)\n"
    ) in err
    assert [json.loads(text)["method"] for text in place.recorded()] == ["a", "x"]
    place.cassette.write_bytes(whole)
    heard, err = place.session(call(1, "c"), call(2, "x"), options=("--order=any",))
    assert "new cassette" not in err
    assert results(heard) == [["c", None, 3], ["x", None, 2]]
    assert [json.loads(text)["method"] for text in place.recorded()] == ["a", "b", "c", "x"]


def test_the_child_s_own_requests_are_answered_while_it_is_brought_up_to_state(place: Place) -> None:
    recording = subprocess.Popen(
        [*RECORDER, "record", "--protocol=jsonrpc", str(place.cassette), "--", *place.command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with recording:
        heard = _asked(recording, call(1, "ask"))
    assert heard == "Ada 1"
    command = [*RECORDER, "record", "--mode=new_episodes", str(place.cassette), "--", *place.command]
    going_on = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with going_on:
        assert _asked(going_on, call(5, "ask")) == "Ada 1"
        assert going_on.stdin is not None
        assert going_on.stdout is not None
        going_on.stdin.write(json.dumps({"jsonrpc": "2.0", **call(6, "more")}) + "\n")
        going_on.stdin.flush()
        assert json.loads(going_on.stdout.readline())["method"] == "note"
        assert json.loads(going_on.stdout.readline())["result"] == ["more", None, 2]


def _asked(process: subprocess.Popen[str], request: dict[str, object]) -> object:
    """Make a call upon which the child asks for a name; its result."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
    process.stdin.flush()
    question = json.loads(process.stdout.readline())
    assert question["method"] == "name"
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": "Ada"}) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())["result"]


def test_a_child_that_can_t_be_started_leaves_the_cassette_as_it_is(place: Place) -> None:
    place.session(call(1, "a"))
    before = place.cassette.read_bytes()
    command = [
        *RECORDER,
        "record",
        "--mode=new_episodes",
        "--accept-command",
        str(place.cassette),
        "--",
        "/no/such/program",
    ]
    sent = json.dumps({"jsonrpc": "2.0", **call(1, "other")}) + "\n"
    done = subprocess.run(command, input=sent, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 127
    assert "does not exist" in done.stderr
    assert place.cassette.read_bytes() == before


@pytest.mark.parametrize("option", [["--http"], ["--listen=tcp:1", "--connect=tcp:2"]])
def test_what_it_is_not_for_is_said(place: Place, option: list[str]) -> None:
    place.session(call(1, "a"))
    (place.cassette.parent / "session.http.yaml").write_text("there")
    command = [*RECORDER, "record", "--mode=new_episodes", *option, str(place.cassette), "--", *place.command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, "new_episodes is for a child on stdio" in done.stderr) == (2, True)
