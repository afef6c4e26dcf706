"""`--deterministic`: what a program makes of the time and of random values is the same on replay."""

from __future__ import annotations

import itertools
import subprocess
from typing import TYPE_CHECKING, Any, cast

import pytest

from ext_recorder.http.controller import KINDS
from ext_recorder.http.inject.ext_recorder_agent import determinism
from tests.support.host import PATIENCE_S
from tests.support.http_child import document, record, replay, script
from tests.support.http_site import serving
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

IMPORTS = """
import asyncio, datetime, json, logging, os, random, secrets, sys, threading, time, urllib.request, uuid
from datetime import datetime as aliased
"""
TIMES = """
class Own(datetime.datetime): clock = time.time
print(datetime.datetime.now(), aliased.now(datetime.timezone.utc), aliased.today(), datetime.date.today(), Own.now())
print(time.time(), Own.clock(), time.time_ns(), time.ctime(), time.asctime(), time.strftime("%F %T"), time.localtime())
print(time.clock_gettime(time.CLOCK_REALTIME), time.gmtime(), time.gmtime(0).tm_year, time.ctime(0)[-4:])
logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(message)s")
logging.warning("logged")
"""
UUIDS = "for _ in range(3): print(uuid.uuid4(), uuid.uuid4().version, uuid.uuid1().version, uuid.getnode())\n"
RANDOMS = "print(random.random(), random.sample(range(99), 3), random.Random().random(), list({'a', 'b', 'c', 'd'}))\n"
SECRETS = "print(os.urandom(8), secrets.token_hex(), random.SystemRandom().random())\n"
PROGRAMS = {"time": TIMES, "uuid": UUIDS, "random": RANDOMS, "secrets": SECRETS}


def deterministic(*kinds: str) -> list[str]:
    return [f"--deterministic={kind}" for kind in kinds]


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_a_kind_are_the_same_again(kind: str, cassette: Path) -> None:
    child = script(IMPORTS + PROGRAMS[kind] * 2)
    plain = record(cassette, child, None, *deterministic(kind))
    assert (plain.err, plain.code) == (b"", 0)
    again = replay(cassette, child)
    assert (again.out, again.err, again.code) == (plain.out, b"", 0)
    assert kind == "time" or len(set(plain.out.splitlines())) == len(plain.out.splitlines())


def test_two_recordings_differ(cassette: Path) -> None:
    child = script(IMPORTS + UUIDS + RANDOMS + SECRETS)
    options = deterministic("uuid", "random", "secrets")
    one = record(cassette, child, None, *options)
    other = record(cassette.with_name("other.yaml"), child, None, *options)
    assert not set(one.out.splitlines()) & set(other.out.splitlines())


def test_without_the_option_nothing_is_kept_or_replaced(cassette: Path) -> None:
    child = script(IMPORTS + TIMES + UUIDS + SECRETS + "print(type(time.time).__name__)")
    plain = record(cassette, child)
    assert "readings" not in document(cassette)
    assert "deterministic" not in document(cassette)
    assert not set(replay(cassette, child).out.splitlines()[:2]) & set(plain.out.splitlines())


REQUESTS = """
def post(name):
    body = json.dumps({"name": name, "id": str(uuid.uuid4()), "at": aliased.now().isoformat()}).encode()
    request = urllib.request.Request(sys.argv[1], body, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request).read()
"""
OVERLAPPING = {
    "one after the other": "for number in range(5): print(post(number))",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool: print(*pool.map(post, range(12)), sep="\\n")
threads = [threading.Thread(target=post, args=(f"thread {number}",)) for number in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "tasks": """
import httpx2
async def main():
    async with httpx2.AsyncClient() as client:
        async def post(number):
            await client.get(sys.argv[1] + str(number))
            at = aliased.now().isoformat()
            return (await client.post(sys.argv[1], json={"n": number, "id": str(uuid.uuid4()), "at": at})).text
        print(*await asyncio.gather(*map(post, range(12))), sep="\\n")
asyncio.run(main())
""",
    "processes": """
import multiprocessing, subprocess
print(post("parent"), flush=True)
process = multiprocessing.get_context("fork").Process(target=post, args=("forked",))
process.start(); process.join()
if len(sys.argv) < 3:
    subprocess.run([sys.executable, *sys.orig_argv[1:], "again"])
""",
}


@pytest.mark.parametrize("way", OVERLAPPING)
def test_requests_with_new_ids_and_times_are_replayed_without_a_rule(way: str, cassette: Path) -> None:
    with serving() as server:
        child = [*script(IMPORTS + REQUESTS + OVERLAPPING[way]), f"{server.origin}/made"]
        plain = record(cassette, child, None, *deterministic("time", "uuid"))
    assert (plain.err, plain.code) == (b"", 0)
    again = replay(cassette, child)
    assert (again.out, again.err, again.code) == (plain.out, b"", 0)
    posts = [
        cast("str", request["body"])
        for each in document(cassette)["interactions"]
        if isinstance(request := each["request"], dict) and request["method"] == "POST"
    ]
    assert len(posts) == len(set(posts)) >= 4


def test_a_clock_that_is_read_more_often_goes_on_from_the_recorded_one(cassette: Path) -> None:
    """A certificate or a token that was valid then is so again; the monotonic clock is live."""
    program = IMPORTS + (
        "moments = [time.time() for _ in range(int(os.environ['COUNT']))]\n"
        "print(moments == sorted(moments), moments[-1] - moments[0] < 60, moments[0], time.monotonic())"
    )
    plain = record(cassette, script(program), {"COUNT": "2"}, *deterministic("time"))
    again = replay(cassette, script(program), {"COUNT": "100"})
    assert plain.out.split()[:3] == again.out.split()[:3] == [b"True", b"True", plain.out.split()[2]]
    assert plain.out.split()[3] != again.out.split()[3]
    epoch = cast("int", document(cassette)["epoch"])
    assert 0 <= float(plain.out.split()[2]) - epoch / 1e9 < PATIENCE_S


def test_a_generator_that_the_program_seeds_is_its_own(cassette: Path) -> None:
    child = script("import random; random.seed(7); print(random.random(), random.Random(7).random())")
    plain = subprocess.run(child, capture_output=True, check=True)
    assert record(cassette, child, None, *deterministic("random", "secrets")).out == plain.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["record", "--deterministic", "time", "c.yaml", "--", "true"], b"--deterministic requires --http"),
        (
            ["record", "--http", "--deterministic", "clock", "c.yaml", "--", "true"],
            b"expected one of time, uuid, random, secrets",
        ),
    ],
)
def test_a_wrong_use_is_explained(words: list[str], told: bytes, tmp_path: Path) -> None:
    done = subprocess.run([*RECORDER, *words], capture_output=True, timeout=PATIENCE_S, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_reading_is_none_before_what_the_thread_has_read(tmp_path: Path) -> None:
    """A loop that was recorded with more turns: what is left of them is not the time of what comes later."""

    class Times:
        folder = str(tmp_path)

        def channel(self) -> Times:
            return self

        def ask(self, told: object) -> object:
            return {"readings": {"t loop": [10, 20, 30, 90], "t after": [40]}}

    class Place:
        def __init__(self, functions: list[str]) -> None:
            self.functions = iter(functions)

        def thread(self) -> str:
            return "t"

        def function(self) -> str:
            return next(self.functions)

    place = Place(["loop", "after", "loop", "loop"])
    wall = determinism.Wall(cast("Any", place), cast("Any", Times()), 1)
    moments = [wall.now() for _ in range(4)]
    assert moments[:3] == [10, 40, 90]
    assert all(one <= other for one, other in itertools.pairwise(moments))
