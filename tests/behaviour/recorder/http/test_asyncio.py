"""TLS within memory (asyncio, anyio, TLS in TLS) is recorded, and replayed without a handshake."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.support.http_child import document, record, replay, script
from tests.support.http_site import serving
from tests.support.parent_proxy import ParentProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.http_stub import Stub

ASKING = """
import asyncio, ssl
PLACE, URL = ("127.0.0.1", {port}), {url!r}
TRUST = ssl.create_default_context(cafile={ca!r})
async def ask(reader, writer):
    writer.write(b"GET /count HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\\r\\n")
    await writer.drain()
    print((await reader.read()).split(b"\\r\\n")[::3])
    writer.close()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Stub]:
    with serving(tmp_path) as server:
        yield server


def child(program: str, server: Stub, folder: Path) -> list[str]:
    """A child that has `ask`, `PLACE`, `URL` and `TRUST`."""
    values = {"port": server.port, "url": server.origin, "ca": str(folder / "ca.pem")}
    return script(ASKING.format(**values) + program)


def recorded_and_replayed(cassette: Path, command: list[str]) -> bytes:
    """Record a child, and run it again on its recording. Returns what it has written both times."""
    plain = record(cassette, command)
    assert (plain.err, plain.code) == (b"", 0)
    again = replay(cassette, command)
    assert (again.out, again.err, again.code) == (plain.out, b"", 0)
    return plain.out


PROGRAMS = {
    "open_connection": """
async def main():
    for host in ("127.0.0.1", None):
        await ask(*await asyncio.open_connection(*PLACE, ssl=TRUST, server_hostname=host))
""",
    "start_tls": """
async def main():
    reader, writer = await asyncio.open_connection(*PLACE)
    await writer.start_tls(TRUST, server_hostname="127.0.0.1")
    await ask(reader, writer)
""",
    "a name as bytes": """
async def main():
    await ask(*await asyncio.open_connection(*PLACE, ssl=TRUST, server_hostname=b"127.0.0.1"))
""",
    "what is known of the certificate": """
async def main():
    reader, writer = await asyncio.open_connection(*PLACE, ssl=TRUST)
    await ask(reader, writer)
    tls = writer.get_extra_info("ssl_object")
    print(isinstance(tls, ssl.SSLObject), tls.version(), tls.selected_alpn_protocol(), tls.compression())
    print(tls.getpeercert()["subjectAltName"], len(tls.getpeercert(binary_form=True)), tls.cipher()[1])
    print(writer.get_extra_info("peercert")["subjectAltName"], writer.get_extra_info("peername")[0])
""",
    "anyio": """
import anyio
from anyio.streams.tls import TLSAttribute
async def main():
    tls = {"tls": True, "ssl_context": TRUST, "tls_hostname": "127.0.0.1", "tls_standard_compatible": False}
    stream = await anyio.connect_tcp(*PLACE, **tls)
    print(stream.extra(TLSAttribute.tls_version))
    for path in ("/count/1", "/count/2"):
        await stream.send(f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{PLACE[1]}\\r\\n\\r\\n".encode())
        received = b""
        while not received.endswith(b"\\r\\n\\r\\n1"): received += await stream.receive()
        print(received.split(b"\\r\\n")[0])
    await stream.aclose()
""",
}


def test_tls_within_memory_is_recorded_and_replayed(server: Stub, cassette: Path, tmp_path: Path) -> None:
    program = "".join(f"{main}asyncio.run(main())\nprint('done: {name}')\n" for name, main in PROGRAMS.items())
    out = recorded_and_replayed(cassette, child(program, server, tmp_path))
    for name in PROGRAMS:
        printed, _, out = out.partition(f"done: {name}\n".encode())
        assert b"HTTP/1.1 200 OK" in printed
    assert all(str(each["uri"]).startswith("https://") for each in _requests(cassette))


def _requests(cassette: Path) -> list[dict[str, object]]:
    return [each["request"] for each in document(cassette)["interactions"] if isinstance(each["request"], dict)]


def test_requests_on_many_connections_at_once(server: Stub, cassette: Path, tmp_path: Path) -> None:
    program = """
import aiohttp
async def main():
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=TRUST, limit=10)) as session:
        async def get(number):
            async with session.get(f"{URL}/many/{number}") as answer: return await answer.text()
        print(await asyncio.gather(*map(get, range(60))))
asyncio.run(main())
"""
    out = recorded_and_replayed(cassette, child(program, server, tmp_path))
    assert out.count(b"/many/") == 60


def test_a_stream_of_events_comes_piece_by_piece_and_is_cancelled(server: Stub, cassette: Path, tmp_path: Path) -> None:
    program = """
import httpx2
async def main():
    async with httpx2.AsyncClient(verify=TRUST) as client:
        async def follow():
            async with client.stream("GET", URL + "/events") as answer:
                async for line in answer.aiter_lines():
                    print(line)
                    if line == "data: 2": task.cancel()
        task = asyncio.create_task(follow())
        try: await task
        except asyncio.CancelledError: print("cancelled")
        print((await client.get(URL + "/count")).text)
asyncio.run(main())
"""
    out = recorded_and_replayed(cassette, child(program, server, tmp_path))
    assert out == b"data: 0\n\ndata: 1\n\ndata: 2\n\ncancelled\n1\n"


LIBRARIES = {
    "httpx2": "import httpx2\nasync def get(url): return await httpx2.AsyncClient(timeout=20).get(url)",
    "aiohttp": "import aiohttp\n"
    "async def get(url):\n"
    "    async with aiohttp.ClientSession() as session:\n"
    "        async with session.get(url) as answer: return await answer.read()",
}
FAILING = """
async def main():
    try: print(await get(URL + "/count"))
    except Exception as error:
        while error:
            print(type(error).__name__, str(error).split(" (_ssl.c")[0])
            error = error.__cause__ or error.__context__
asyncio.run(main())
"""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_server_that_is_not_trusted_is_not_trusted_again(
    library: str, server: Stub, cassette: Path, tmp_path: Path
) -> None:
    program = LIBRARIES[library] + FAILING
    assert b"CERTIFICATE_VERIFY_FAILED" in recorded_and_replayed(cassette, child(program, server, tmp_path))
    assert document(cassette)["interactions"][0]["error"]


@pytest.mark.parametrize("ending", ["closes", "is silent"])
def test_a_handshake_that_the_server_does_not_complete_fails_again(
    ending: str, server: Stub, cassette: Path, tmp_path: Path
) -> None:
    program = """
async def main():
    try: await asyncio.wait_for(asyncio.open_connection("127.0.0.1", {port}, ssl=TRUST), 0.5)
    except Exception as error: print(type(error).__name__)
asyncio.run(main())
"""
    with one_connection(answered=ending == "closes") as port:
        command = child(program.replace("{port}", str(port)), server, tmp_path)
        plain = record(cassette, command)
    assert (plain.out, plain.code) == (b"ConnectionResetError\n" if ending == "closes" else b"TimeoutError\n", 0)
    again = replay(cassette, command)
    assert (again.out, again.err, again.code) == (plain.out, b"", 0)


@contextlib.contextmanager
def one_connection(*, answered: bool) -> Iterator[int]:
    """A server that ends its only connection after the first bytes; or when the client does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock:
                while sock.recv(65_536) and not answered:
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join()


TUNNELS = {
    "httpx2": """
import httpx2
async def main():
    async with httpx2.AsyncClient(verify=TRUST, proxy=PROXY) as client:
        for _ in range(2): print((await client.get(URL + "/count")).text)
""",
    "aiohttp": """
import aiohttp
async def main():
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=TRUST)) as session:
        for _ in range(2):
            async with session.get(URL + "/count", proxy=PROXY) as answer: print(await answer.text())
""",
    "urllib3": """
import urllib3
async def main():
    pool = urllib3.ProxyManager(PROXY, ssl_context=TRUST)
    for _ in range(2): print(pool.request("GET", URL + "/count").data.decode())
""",
}


@pytest.mark.parametrize("library", TUNNELS)
def test_a_tunnel_through_a_proxy(library: str, server: Stub, cassette: Path, tmp_path: Path) -> None:
    with ParentProxy({server.address: server.port}) as proxy:
        program = f"PROXY = {proxy.origin!r}\n" + TUNNELS[library] + "asyncio.run(main())"
        command = child(program, server, tmp_path)
        plain = record(cassette, command)
    assert (plain.out, plain.err, plain.code) == (b"1\n2\n", b"", 0)
    again = replay(cassette, command)
    assert (again.out, again.err, again.code) == (b"1\n2\n", b"", 0)


def test_tls_within_tls_within_memory(server: Stub, cassette: Path, tmp_path: Path) -> None:
    """A proxy that is asked in TLS, and a server behind it: urllib3 encrypts within memory, over a socket in TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "proxy.pem"))
    inner = ParentProxy({server.address: server.port})
    with inner, socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            """Pass on one connection: TLS ends here."""
            sock, _ = listener.accept()
            with (
                context.wrap_socket(sock, server_side=True) as one,
                socket.create_connection(("127.0.0.1", inner.port)) as other,
            ):

                def back() -> None:
                    with contextlib.suppress(OSError):
                        while data := other.recv(65_536):
                            one.sendall(data)

                backwards = threading.Thread(target=back, daemon=True)
                backwards.start()
                with contextlib.suppress(OSError):
                    while data := one.recv(65_536):
                        other.sendall(data)
                    other.shutdown(socket.SHUT_WR)
                backwards.join()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        program = (
            "import urllib3\nTRUST.load_verify_locations({proxy!r})\n"
            "pool = urllib3.ProxyManager('https://127.0.0.1:{port}', ssl_context=TRUST, proxy_ssl_context=TRUST)\n"
            "for _ in range(2): print(pool.request('GET', URL + '/count').data.decode())\npool.clear()"
        )
        values = {"proxy": str(tmp_path / "proxy.pem"), "port": listener.getsockname()[1]}
        command = child(program.format(**values), server, tmp_path)
        plain = record(cassette, command)
        thread.join()
    assert (plain.out, plain.err, plain.code) == (b"1\n2\n", b"", 0)
    again = replay(cassette, command)
    assert (again.out, again.err, again.code) == (b"1\n2\n", b"", 0)


def test_a_server_of_the_childs_own_in_asyncio_is_live(cassette: Path, tmp_path: Path) -> None:
    """TLS of a connection within the child is a real one, in both."""
    program = """
import asyncio, ssl, trustme
authority = trustme.CA()
one, other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
authority.issue_cert("127.0.0.1").configure_cert(one)
authority.configure_trust(other)
async def answer(reader, writer):
    writer.write(await reader.readline())
    writer.close()
async def main():
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=one) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=other)
        writer.write(b"own\\n")
        print(await reader.readline())
        writer.close()
asyncio.run(main())
"""
    assert recorded_and_replayed(cassette, script(program)) == b"b'own\\n'\n"
    assert document(cassette)["interactions"] == []


def test_a_program_that_uses_uvloop_runs_on_asyncios_own_loop(server: Stub, cassette: Path, tmp_path: Path) -> None:
    """Its loop does without Python's sockets; the module here has its names, and raises where it is used."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "uvloop.py").write_text(
        "def new_event_loop(): raise RuntimeError('used')\ndef run(main, **named): new_event_loop()\nLoop = None\n"
    )
    program = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\nimport uvloop\n"
    program += PROGRAMS["open_connection"] + "uvloop.run(main())\nprint(uvloop.new_event_loop().close())"
    assert b"HTTP/1.1 200 OK" in recorded_and_replayed(cassette, child(program, server, tmp_path))
