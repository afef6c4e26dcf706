"""Connections that are refused, reset, silent or not trusted are recorded, and fail the same way on replay."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.http_child import document, record, replay, script
from tests.support.http_site import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ports import NewPort

LIBRARIES = {
    "urllib3": "import urllib3\nget = lambda url: urllib3.PoolManager(retries=False, timeout=1.5).request('GET', url)",
    "requests": "import requests\nget = lambda url: requests.get(url, timeout=1.5)",
    "httpx2": "import httpx2\nclient = httpx2.Client(timeout=1.5)\nget = lambda url: client.get(url)",
    "httpx2 in asyncio": "import asyncio, httpx2\n"
    "get = lambda url: asyncio.run(httpx2.AsyncClient(timeout=1.5).get(url))",
    "aiohttp": "import aiohttp, asyncio\n"
    "async def asking(url):\n"
    "    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(1.5)) as session:\n"
    "        async with session.get(url) as answer: return await answer.read()\n"
    "get = lambda url: asyncio.run(asking(url))",
    "urllib": "import urllib.request\nget = lambda url: urllib.request.urlopen(url, timeout=1.5).read()",
}
TRYING = """
import re
{library}
for url in {urls!r}:
    try: print(get(url))
    except Exception as error:
        while error:
            print(type(error).__module__, type(error).__name__, getattr(error, "errno", None))
            print(re.sub("[0-9a-f]{{8,}}", "", str(error)).split("at 0x")[0].split(" (_ssl.c")[0])
            error = error.__cause__ or error.__context__
    print("---")
"""
PATHS = ["reset", "short", "silence"]
FAILED = re.compile(b"rror|ncompleteRead|imeout|Disconnected")


@pytest.mark.parametrize("library", LIBRARIES)
def test_requests_that_fail_fail_again(library: str, cassette: Path, tmp_path: Path, new_port: NewPort) -> None:
    """One session has all failures: of the answer, of the connection, of the name and of trust."""
    authority = str(tmp_path / "ca.pem")
    trust = {"SSL_CERT_FILE": authority, "REQUESTS_CA_BUNDLE": authority}
    (tmp_path / "another").mkdir()
    with serving() as plain_text, serving(tmp_path) as trusted, serving(tmp_path / "another") as untrusted:
        answers = [f"{server.origin}/{path}" for server in (plain_text, trusted) for path in PATHS]
        refused = f"http://127.0.0.1:{new_port()}/"
        urls = [*answers, refused, "http://nowhere.invalid/", f"{untrusted.origin}/count"]
        child = script(TRYING.format(library=LIBRARIES[library], urls=urls))
        recorded = record(cassette, child, trust)
        before = [dict(server.counts) for server in (plain_text, trusted, untrusted)]
        again = replay(cassette, child, trust)
        assert [server.counts for server in (plain_text, trusted, untrusted)] == before
    failures = recorded.out.split(b"---\n")[:-1]
    assert len(failures) == len(urls)
    assert all(FAILED.search(failure) for failure in failures)
    assert b"refused" in failures[-3].lower()
    assert b"CERTIFICATE_VERIFY_FAILED" in failures[-1]
    assert (again.out, again.err, again.code) == (recorded.out, b"", 0)
    interactions = document(cassette)["interactions"]
    assert all(any(url in str(interaction) for interaction in interactions) for url in answers)
    assert all(interaction["error"] for interaction in interactions)  # aiohttp sends a request that was reset again


def test_a_server_that_comes_up_later_comes_up_again(cassette: Path, new_port: NewPort) -> None:
    """A wait until something answers: refused, refused, answered; the server starts after two refusals."""
    program = (
        "import socket, subprocess, sys, time, urllib3\n"
        "pool, url, server, tried = urllib3.PoolManager(retries=False), 'http://127.0.0.1:{port}/', None, []\n"
        "while True:\n"
        "    try: print(*tried, pool.request('GET', url).status); break\n"
        "    except urllib3.exceptions.HTTPError: tried.append('refused')\n"
        "    if len(tried) == 2 and 'serve' in sys.argv:\n"
        "        command = [sys.executable, '-S', '-m', 'http.server', '--bind', '127.0.0.1', '{port}']\n"
        "        server = subprocess.Popen(command, stdout=-3, stderr=-3, env={{}})\n"
        "    if len(tried) > 2:\n"
        "        tried.pop(); time.sleep(0.05)\n"
        "if server: server.kill(); server.wait()"
    )
    child = script(program.format(port=new_port()))
    plain = record(cassette, [*child, "serve"])
    assert plain.out == b"refused refused 200\n"
    again = replay(cassette, child)
    assert (again.out, again.code) == (plain.out, 0)
