"""Each interaction tells which call of the host it served, whether the child says so or not."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.inject.ext_recorder_agent.connections import peeks
from tests.support.host import PATIENCE_S
from tests.support.http_child import document, script
from tests.support.http_site import serving
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


# A child of its own kind: one answer after the other, and a request of its own at the end.
PLAIN = """
import json, sys, urllib.request
def get(name): return urllib.request.urlopen({url!r} + "/" + name).read().decode()
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": get(asked["method"])}}), flush=True)
get("after")
"""
# One that tells for whom it works, in threads at once: all calls ask before any of them is answered.
TELLING = """
import contextvars, json, sys, threading, urllib.request
call = contextvars.ContextVar("jsonrpc_call", default=None)
together = threading.Barrier(3)
def get(name): return urllib.request.urlopen({url!r} + "/" + name).read().decode()
def within(results, name): results.append(get(name))
def work(asked):
    call.set(asked["id"])
    results = [get("count/same")]
    inner = threading.Thread(target=within, args=(results, "count/same"))
    inner.start(); inner.join(); together.wait()
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": sorted(results)}}) + "\\n")
threads = [threading.Thread(target=work, args=(json.loads(line),)) for line in sys.stdin]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def converse(words: Sequence[str], requests: Sequence[tuple[object, str]], *, at_once: bool) -> dict[str, object]:
    """What a host that sends these (id, method) is answered, by id; all at once, or one after the other."""
    lines = [json.dumps({"jsonrpc": "2.0", "id": id, "method": method}).encode() + b"\n" for id, method in requests]
    answers: list[bytes] = []
    with subprocess.Popen([*RECORDER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        if at_once:
            child.stdin.write(b"".join(lines))
            child.stdin.close()
            answers = child.stdout.readlines()
        else:
            for line in lines:
                child.stdin.write(line)
                child.stdin.flush()
                answers.append(child.stdout.readline())
            child.stdin.close()
        assert child.wait(PATIENCE_S) == 0
    return {str(told["id"]): told["result"] for told in map(json.loads, answers)}


def test_a_child_that_does_not_tell_is_told_by_what_was_open(cassette: Path) -> None:
    requests = [(7, "first"), ("b", "second")]
    with serving() as server:
        child = script(PLAIN.format(url=server.origin))
        plain = converse(["record", "--http", str(cassette), "--", *child], requests, at_once=False)
    served = {str(each["request"]["uri"])[-6:]: each["call"] for each in document(cassette)["interactions"]}  # type: ignore[index]
    assert served == {"/first": 7, "second": "b", "/after": None}
    again = converse(["replay", "--http", str(cassette), "--", *child], requests, at_once=False)
    assert again == plain


def test_calls_at_the_same_time_get_their_own_answers_whatever_their_ids_are_now(cassette: Path) -> None:
    """Three calls, each with a thread of its own, ask for the same: on replay each gets what its recorded one got."""
    with serving() as server:
        child = script(TELLING.format(url=server.origin))
        first = converse(
            ["record", "--http", str(cassette), "--", *child], [(1, "a"), (2, "b"), (3, "c")], at_once=True
        )
    assert sorted(str(each["call"]) for each in document(cassette)["interactions"]) == list("112233")
    same = converse(["replay", "--http", str(cassette), "--", *child], [(1, "a"), (2, "b"), (3, "c")], at_once=True)
    assert same == first
    other = converse(["replay", "--http", str(cassette), "--", *child], [(71, "a"), (72, "b"), (73, "c")], at_once=True)
    assert sorted(map(str, other.values())) == sorted(map(str, first.values()))


# One that looks at the clocks before and after what it asks, and when the call is over.
TIMED = """
import contextvars, json, sys, time, urllib.request
call = contextvars.ContextVar("jsonrpc_call", default=None)
def look(): return [time.time(), time.monotonic(), time.time()]
for line in sys.stdin:
    asked = json.loads(line)
    token = call.set(asked["id"])
    seen = look()
    urllib.request.urlopen({url!r} + "/count").read()
    seen += look()
    call.reset(token)
    result = [seen, time.time()]
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
"""


def test_the_time_of_day_within_a_call_is_that_of_the_recording(cassette: Path) -> None:
    """So a certificate that was valid for a month is so on replay, whenever that is."""
    with serving() as server:
        child = script(TIMED.format(url=server.origin))
        plain = seen(converse(["record", "--http", str(cassette), "--", *child], [(1, "a")], at_once=False))
    begun = time.time()
    again = seen(converse(["replay", "--http", str(cassette), "--", *child], [(7, "a")], at_once=False))
    assert [again[at] for at in TIMES_OF_DAY] == [plain[at] for at in TIMES_OF_DAY]
    assert plain[0] <= plain[2] <= plain[3] <= plain[5] < begun < again[-1]


def test_a_recording_that_does_not_tell_when_it_was_made_leaves_the_time_of_day_alone(tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"
    with serving() as server:
        child = script(TIMED.format(url=server.origin))
        converse(["record", "--http", str(cassette), "--", *child], [(1, "a")], at_once=False)
    file = tmp_path / "session.http.yaml"
    file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "epoch:" not in line))
    begun = time.time()
    again = seen(converse(["replay", "--http", str(cassette), "--", *child], [(1, "a")], at_once=False))
    assert min(again[at] for at in TIMES_OF_DAY) > begun


def test_what_a_module_reads_while_it_is_imported_is_not_the_call_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may be the first to import it: the times of the call are those of the recording all the same."""
    cassette = tmp_path / "session.yaml"
    (tmp_path / "clocked.py").write_text("import time\nBEGUN = time.monotonic(), time.time()\n")
    importing = f"import os, sys; sys.path.insert(0, {str(tmp_path)!r})\nif 'EARLY' in os.environ: import clocked\n"
    with serving() as server:
        within = TIMED.replace("    seen = look()", "    import clocked\n    seen = look()")
        child = script(importing + within.format(url=server.origin))
        plain = seen(converse(["record", "--http", str(cassette), "--", *child], [(1, "a")], at_once=False))
    monkeypatch.setenv("EARLY", "1")
    again = seen(converse(["replay", "--http", str(cassette), "--", *child], [(1, "a")], at_once=False))
    assert [again[at] for at in TIMES_OF_DAY] == [plain[at] for at in TIMES_OF_DAY]


@pytest.mark.parametrize(
    ("args", "named", "expected"),
    [
        ((1, socket.MSG_PEEK), {}, True),
        ((1,), {"flags": socket.MSG_PEEK | socket.MSG_DONTWAIT}, True),
        ((bytearray(9), 9, socket.MSG_PEEK), {}, True),
        ((1,), {}, False),
        ((2, 0), {}, False),
        ((bytearray(9), socket.MSG_PEEK), {}, False),  # so many bytes
        ((), {"buffer": bytearray(9), "nbytes": 2}, False),
    ],
)
def test_a_call_that_leaves_what_it_read_is_known(
    args: tuple[object, ...], named: dict[str, object], *, expected: bool
) -> None:
    """It is neither recorded nor a step of the clock."""
    assert peeks(socket, args, named) is expected


TIMES_OF_DAY = (0, 2, 3, 5)  # among what TIMED has seen


def seen(answers: dict[str, object]) -> list[float]:
    """What the clocks said in the one call, and after it."""
    (result,) = answers.values()
    assert isinstance(result, list)
    return [*result[0], result[-1]]
