"""What a child gets on replay is what it got, byte for byte, whichever client library it uses."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.http_child import document, record, replay, script
from tests.support.http_site import serving

if TYPE_CHECKING:
    from pathlib import Path

PATHS = ["binary", "gzip", "chunked", "headers", "redirect", "count/1", "count/1", "count/1"]
GETTING = {
    "urllib3": """
import urllib3
pool = urllib3.PoolManager(ca_certs={ca!r})
def get(url):
    answer = pool.request("GET", url, preload_content=False, redirect=False)
    return answer.status, answer.reason, answer.version, list(answer.headers.items()), answer.read(decode_content=False)
def post(url, body):
    return pool.request("POST", url, body=body, headers={{"Content-Type": "application/json"}}).data
""",
    "requests": """
import requests
session = requests.Session()
session.verify = {ca!r}
session.trust_env = False
def get(url):
    answer = session.get(url, allow_redirects=False)
    return answer.status_code, answer.reason, list(answer.raw.headers.items()), answer.content
def post(url, body):
    return session.post(url, data=body, headers={{"Content-Type": "application/json"}}).content
""",
    "httpx2": """
import httpx2, ssl
client = httpx2.Client(verify=ssl.create_default_context(cafile={ca!r}))
def get(url):
    with client.stream("GET", url) as answer:
        body = b"".join(answer.iter_raw())
        return answer.status_code, answer.reason_phrase, answer.http_version, answer.headers.raw, body
def post(url, body):
    return client.post(url, content=body, headers={{"Content-Type": "application/json"}}).content
""",
    "urllib": """
import ssl, urllib.request, urllib.error
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args): return None
context = ssl.create_default_context(cafile={ca!r})
opener = urllib.request.build_opener(Stay, urllib.request.HTTPSHandler(context=context))
def get(url):
    try: answer = opener.open(url)
    except urllib.error.HTTPError as error: answer = error
    return answer.status, answer.reason, answer.getheaders() if hasattr(answer, "getheaders") else [], answer.read()
def post(url, body):
    request = urllib.request.Request(url, body, {{"Content-Type": "application/json"}})
    return opener.open(request).read()
""",
    "httpx2 in asyncio": """
import asyncio, httpx2, ssl
loop = asyncio.new_event_loop()
client = httpx2.AsyncClient(http2=True, verify=ssl.create_default_context(cafile={ca!r}))
async def reading(url):
    async with client.stream("GET", url) as answer:
        body = b"".join([piece async for piece in answer.aiter_raw()])
        return answer.status_code, answer.reason_phrase, answer.http_version, answer.headers.raw, body
def get(url):
    return loop.run_until_complete(reading(url))
def post(url, body):
    sending = client.post(url, content=body, headers={{"Content-Type": "application/json"}})
    return loop.run_until_complete(sending).content
""",
    "aiohttp": """
import aiohttp, asyncio, atexit, ssl
loop = asyncio.new_event_loop()
async def connect():
    trust = ssl.create_default_context(cafile={ca!r})
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust), auto_decompress=False)
session = loop.run_until_complete(connect())
atexit.register(lambda: loop.run_until_complete(session.close()))
async def asking(method, url, **named):
    async with session.request(method, url, allow_redirects=False, **named) as answer:
        return answer.status, answer.reason, answer.raw_headers, await answer.read()
def get(url):
    return loop.run_until_complete(asking("GET", url))
def post(url, body):
    return loop.run_until_complete(asking("POST", url, data=body, headers={{"Content-Type": "application/json"}}))
""",
}
ALL = """
for path in {paths!r}:
    print(get({url!r} + "/" + path))
print(post({url!r} + "/made", b'{{"b": [1, 2.50], "a": "x"}}'))
"""


@pytest.mark.parametrize("library", GETTING)
def test_a_client_gets_the_recorded_bytes(library: str, cassette: Path, tmp_path: Path) -> None:
    with serving() as plain_text, serving(tmp_path) as tls:
        requests = "".join(ALL.format(paths=PATHS, url=server.origin) for server in (plain_text, tls))
        child = script(GETTING[library].format(ca=str(tmp_path / "ca.pem")) + requests)
        plain = record(cassette, child)
        assert (plain.code, plain.err) == (0, b"")
        assert plain.out.count(b"\n") == 2 * (len(PATHS) + 1)
        before = [dict(server.counts) for server in (plain_text, tls)]
        again = replay(cassette, child)
        assert [server.counts for server in (plain_text, tls)] == before
    assert (again.code, again.err) == (0, b"")
    # A cookie is a secret; its name and attributes are left, so that a client keeps one in its place.
    assert again.out == plain.out.replace(b"k=v;", b"k=[redacted:key.Set-Cookie#1];")


def test_a_body_of_any_bytes_goes_both_ways(cassette: Path) -> None:
    with serving() as server:
        body = "bytes(range(256)) * 3000"
        child = script(
            GETTING["urllib3"].format(ca=None) + f"print(hash(post({server.origin!r} + '/a', {body}) == {body}))"
        )
        plain = record(cassette, child)
    assert plain.out == b"1\n"
    again = replay(cassette, child)
    assert (again.out, again.code) == (b"1\n", 0)


def test_chunks_come_as_they_came(cassette: Path) -> None:
    with serving() as server:
        child = script(
            f"import http.client\nconnection = http.client.HTTPConnection({server.origin[7:]!r})\n"
            "connection.request('GET', '/chunked')\nanswer = connection.getresponse()\n"
            "while piece := answer.read1(): print(len(piece))"
        )
        plain = record(cassette, child)
    assert plain.out == b"3\n5\n500\n"
    assert replay(cassette, child).out == plain.out


def test_a_stream_without_an_end_is_recorded_as_far_as_it_was_read(cassette: Path) -> None:
    """Neither recording nor replay waits for more of it than the child wants."""
    with serving() as server:
        child = script(
            f"import httpx2\nwith httpx2.Client().stream('GET', {server.origin!r} + '/events') as answer:\n"
            "    lines = answer.iter_lines()\n"
            "    print([next(lines) for _ in range(3)])"
        )
        plain = record(cassette, child)
    assert plain.out == b"['data: 0', '', 'data: 1']\n"
    assert document(cassette)["interactions"][0]["cut"] is True
    again = replay(cassette, child)
    assert (again.out, again.code) == (plain.out, 0)


def test_a_child_that_wants_more_than_was_recorded_is_told_so(cassette: Path) -> None:
    program = (
        "import sys, urllib3\nanswer = urllib3.PoolManager().request('GET', '{url}/big', preload_content=False)\n"
        "read = 0\n"
        "try:\n"
        "    while read < {cap}: read += len(answer.read(65536))\n"
        "except Exception as error: print('the first' in str(error))"
    )
    with serving() as server:
        assert record(cassette, script(program.format(url=server.origin, cap=100_000))).code == 0
        more = replay(cassette, script(program.format(url=server.origin, cap=50_000_000)))
    assert more.out == b"True\n"


def test_the_file_is_one_that_vcrpy_plays(cassette: Path) -> None:
    """By its own means: in a process of its own, with its patches."""
    with serving() as server:
        child = script(GETTING["requests"].format(ca=None) + f"print(get({server.origin!r} + '/binary')[-1])")
        plain = record(cassette, child)
    program = (
        "import sys, vcr, requests\n"
        "with vcr.use_cassette(sys.argv[1], record_mode='none'):\n"
        "    print(requests.get(sys.argv[2]).content)"
    )
    path = str(cassette).replace(".yaml", ".http.yaml")
    done = subprocess.run(
        [sys.executable, "-c", program, path, f"{server.origin}/binary"], capture_output=True, check=True
    )
    assert done.stdout == plain.out


def test_a_file_of_vcrpys_own_is_played(cassette: Path) -> None:
    program = (
        "import sys, vcr, requests\nwith vcr.use_cassette(sys.argv[1]):\n    print(requests.get(sys.argv[2]).text)"
    )
    path = str(cassette).replace(".yaml", ".http.yaml")
    with serving() as server:
        subprocess.run([sys.executable, "-c", program, path, f"{server.origin}/count"], capture_output=True, check=True)
        url = server.origin
    again = replay(cassette, script(f"import requests; print(requests.get({url!r} + '/count').text)"))
    assert (again.out, again.err, again.code) == (b"1\n", b"", 0)
