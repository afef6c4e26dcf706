"""Eight threads, six hundred requests: none is lost while recording, none reaches the server on replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.http_child import document, record, replay, script
from tests.support.http_site import serving

if TYPE_CHECKING:
    from pathlib import Path

THREADS, REQUESTS = 8, 600
LIBRARIES = {
    "urllib3": (
        "import urllib3\npool = urllib3.PoolManager(maxsize=8)\n"
        "get = lambda url: pool.request('GET', url).data.decode()"
    ),
    "httpx2": "import httpx2\nclient = httpx2.Client()\nget = lambda url: client.get(url).text",
}
PROGRAM = """
{library}
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor({threads}) as pool_:
    urls = [f"{url}/item/{{number}}" for number in range({requests})]
    print(*pool_.map(get, urls), sep="\\n")
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_request_is_lost_and_none_leaks(library: str, cassette: Path) -> None:
    with serving() as server:
        program = PROGRAM.format(library=LIBRARIES[library], threads=THREADS, requests=REQUESTS, url=server.origin)
        plain = record(cassette, script(program))
        assert (plain.code, plain.err) == (0, b"")
        assert sum(server.counts.values()) == REQUESTS
        again = replay(cassette, script(program))
        assert sum(server.counts.values()) == REQUESTS
    assert len(document(cassette)["interactions"]) == REQUESTS
    assert (again.code, again.err) == (0, b"")
    assert again.out == plain.out
    assert plain.out.count(b"\n") == REQUESTS


def test_polls_of_several_threads_get_each_answer_once(cassette: Path) -> None:
    """The same request from eight threads: as many answers as were recorded, whoever gets which."""
    with serving() as server:
        program = PROGRAM.format(library=LIBRARIES["urllib3"], threads=THREADS, requests=80, url=server.origin)
        program = program.replace("/item/{number}", "/count/same")
        plain = record(cassette, script(program))
        again = replay(cassette, script(program))
    assert sorted(map(int, plain.out.split())) == list(range(1, 81))
    assert sorted(map(int, again.out.split())) == list(range(1, 81))
    assert again.code == 0
