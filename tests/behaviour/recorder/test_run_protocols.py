"""`run` and traffic that can't be recorded, or that is reached in another way: refused, forwarded or named."""

from __future__ import annotations

import hashlib
import shutil
import socket
import ssl
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.http_stub import Stub
from tests.support.parent_proxy import ParentProxy
from tests.support.raw_server import RawServer, sends
from tests.support.run_recordings import Recording, server_context

if TYPE_CHECKING:
    from pathlib import Path

# Opens a tunnel of the proxy to HOST:PORT.
TUNNEL = """
import os, socket, ssl, struct, sys, urllib.request
from urllib.parse import urlsplit

place = sys.argv[1]
proxy = urlsplit(urllib.request.getproxies()["https"])
sock = socket.create_connection((proxy.hostname, proxy.port), 20)
sock.sendall(f"CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n".encode())
head = b""
while b"\\r\\n\\r\\n" not in head and (data := sock.recv(65536)):
    head += data

def read():
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except OSError as error:
        data += type(error).__name__.encode()
    return data
"""
TLS = """
def secure(protocols):
    context = ssl.create_default_context()
    context.set_alpn_protocols(protocols)
    return context.wrap_socket(sock, server_hostname=place.rpartition(":")[0])
"""


def command(folder: Path, program: str, *words: str) -> list[str]:
    (folder / "program.py").write_text(program)
    return [sys.executable, "program.py", *words]


def header(recording: Recording) -> dict[str, object]:
    return dict(yaml.safe_load((recording.folder / "rec" / "recording.yaml").read_text()))


# --- HTTP/2 without HTTP/1.1 -----------------------------------------------------------------------------------------

HTTP2 = """
sock.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
data = read()
while data:
    length, kind = struct.unpack(">I", b"\\0" + data[:3])[0], data[3]
    if kind == 7:
        print("GOAWAY", data[9:][8:length].decode())
    data = data[9 + length:]
"""


@pytest.mark.parametrize("is_secure", [False, True])
def test_a_program_that_uses_only_http2_is_refused_with_a_remedy(tmp_path: Path, *, is_secure: bool) -> None:
    program = TUNNEL + (TLS + 'sock = secure(["h2"])\nprint(sock.selected_alpn_protocol())\n' if is_secure else "")
    context = server_context(tmp_path, "localhost") if is_secure else None
    with Stub(context) as server:
        words = command(tmp_path, program + HTTP2, f"localhost:{server.port}")
        recording = Recording(tmp_path, words, SSL_CERT_FILE=str(tmp_path / "ca.pem"))
        recorded = recording.run()
        assert server.asked == []
    assert f"GOAWAY ext-recorder: localhost:{server.port}: HTTP/2 without HTTP/1.1, such as gRPC" in recorded.out
    remedy = "can't be recorded; --pass-through localhost forwards it unrecorded"
    assert recorded.out.rstrip().endswith(remedy)
    assert recorded.err.count(remedy) == 1


# --- Servers that are passed through ---------------------------------------------------------------------------------

FINGERPRINT = (
    TUNNEL
    + TLS
    + """
import hashlib
secured = secure(["h2", "http/1.1"])
print(hashlib.sha256(secured.getpeercert(True)).hexdigest())
secured.sendall(b"GET /x HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
sock = secured
print(read().partition(b"\\r\\n")[0].decode())
"""
)


def test_a_server_that_is_passed_through_is_named_and_not_read(tmp_path: Path) -> None:
    context = server_context(tmp_path, "localhost")
    trusted = {"SSL_CERT_FILE": str(tmp_path / "ca.pem")}
    with Stub(context) as server:
        server.says("/x", "secret answer")
        der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", server.port)))
        recording = Recording(tmp_path, command(tmp_path, FINGERPRINT, f"localhost:{server.port}"), **trusted)
        recorded = recording.run("--pass-through", "localhost")
        assert recorded.code == 0, recorded.err
        assert recorded.out == f"{hashlib.sha256(der).hexdigest()}\nHTTP/1.1 200 OK\n"
        named = f"passed through, not recorded: localhost:{server.port} (1 connection)"
        assert named in recorded.err
        assert header(recording)["pass-through"] == ["localhost"]
        assert "interactions: []" in recording.traffic
        replayed = recording.run()  # the server is still needed
        assert (replayed.code, replayed.out) == (0, recorded.out)
        assert named in replayed.err
    offline = recording.run("--mode", "none")
    assert offline.code != 0
    assert "not reachable without network: localhost, passed through in the recording" in offline.err


# --- Other protocols -------------------------------------------------------------------------------------------------


def test_another_protocol_in_a_tunnel_is_refused(tmp_path: Path) -> None:
    program = TUNNEL + 'sock.sendall(b"SSH-2.0-OpenSSH_9.2\\r\\n")\nprint(read().decode())'
    with RawServer(sends()) as server:
        port = server.url.rstrip("/").rpartition(":")[2]
        recording = Recording(tmp_path, command(tmp_path, program, f"localhost:{port}"))
        recorded = recording.run()
    assert "HTTP/1.1 400 Bad Request" in recorded.out
    assert "--pass-through localhost forwards another protocol unrecorded" in recorded.err


def test_an_upgrade_to_spdy_is_forwarded_and_its_replay_is_refused_at_once(tmp_path: Path) -> None:
    """Versions of kubectl before 1.31 use it for exec and port-forward."""
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
    program = (
        TUNNEL
        + """
lines = ["POST /exec HTTP/1.1", f"Host: {place}", "Connection: Upgrade", "Upgrade: SPDY/3.1", "Content-Length: 0"]
sock.sendall("\\r\\n".join([*lines, "", ""]).encode())
print(sock.recv(65536).partition(b"\\r\\n")[0].decode())
sock.sendall(b"ping\\r\\n\\r\\n")
print(sock.recv(65536).decode())
"""
    )
    with RawServer(lambda connection, head: connection.sendall(upgrade if b"POST" in head else b"pong")) as server:
        port = server.url.rstrip("/").rpartition(":")[2]
        recording = Recording(tmp_path, command(tmp_path, program, f"localhost:{port}"))
        recorded = recording.run()
        assert recorded.out == "HTTP/1.1 101 Switching Protocols\npong\n"
        assert "the connection becomes one of SPDY/3.1, which is not recorded; kubectl 1.31" in recorded.err
        replayed = recording.run()  # the server runs, but must not be used
    assert "HTTP/1.1 499 Not Recorded" in replayed.out
    assert (replayed.code, "the connection became one of SPDY/3.1, which was not recorded" in replayed.err) == (3, True)


# --- Proxies of the user ---------------------------------------------------------------------------------------------

FETCH = """
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=20).read().decode())
    except (OSError, urllib.error.URLError) as error:
        print(error)
"""


def test_servers_are_reached_through_a_proxy_of_the_user(tmp_path: Path) -> None:
    context = server_context(tmp_path, "api.example.com")
    with Stub(context) as secure, Stub() as plain, Stub() as direct:
        names = {"api.example.com:443": secure.port, "api.example.com:80": plain.port}
        urls = [secure.says("/a", "one"), plain.says("/b", "two"), direct.says("/c", "three")]
        with ParentProxy(names, "Basic dTpw") as parent:
            urls = ["https://api.example.com/a", "http://api.example.com/b", urls[2], "https://other.example.com/"]
            recording = Recording(tmp_path, command(tmp_path, FETCH, *urls))
            recording.environ |= {
                "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
                "HTTP_PROXY": f"http://u:p@{parent.address}",
            }
            recording.environ |= {"https_proxy": f"http://u:p@{parent.address}"}
            out = recording.record().out.splitlines()
            assert [asked.path for asked in parent.asked] == [
                "api.example.com:443", "http://api.example.com/b", "other.example.com:443",
            ]  # fmt: skip
    assert out[:3] == ["one", "two", "three"]
    assert "502" in out[3]
    replayed = recording.check_replay(environ={})
    assert "3 of 3" not in replayed.err or replayed.code == 0


def test_a_proxy_of_the_user_that_is_not_supported_is_refused_at_the_start(tmp_path: Path) -> None:
    recording = Recording(tmp_path, command(tmp_path, "print(1)"), ALL_PROXY="socks5://u:secret@localhost:1080")
    recorded = recording.run()
    assert (recorded.code, recorded.out) == (2, "")
    assert "proxy socks5://localhost:1080: only http://HOST:PORT is supported" in recorded.err
    assert not (tmp_path / "rec").exists()


# --- Certificates ----------------------------------------------------------------------------------------------------


def test_a_program_that_trusts_only_its_own_certificates_is_named(tmp_path: Path) -> None:
    program = TUNNEL + "ssl.create_default_context(cafile='own.pem').wrap_socket(sock, server_hostname='localhost')"
    with Stub(server_context(tmp_path, "localhost")) as server:
        (tmp_path / "own.pem").write_bytes((tmp_path / "ca.pem").read_bytes())
        words = command(tmp_path, program, f"localhost:{server.port}")
        recorded = Recording(tmp_path, words, SSL_CERT_FILE=str(tmp_path / "ca.pem")).run()
    assert recorded.code == 1
    assert f"localhost:{server.port}: the program does not trust the certificate of the recorder" in recorded.err


def test_a_program_that_verifies_after_the_handshake_refuses_the_same_certificate_on_replay(tmp_path: Path) -> None:
    """Node completes the handshake, and then closes the connection."""
    program = (
        TUNNEL
        + """
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
secured = context.wrap_socket(sock)
trusted = ssl.create_default_context()
with open("found.pem", "w") as file:
    file.write(ssl.DER_cert_to_PEM_cert(secured.getpeercert(True)))
import subprocess
done = subprocess.run(["openssl", "verify", "-CAfile", os.environ["SSL_CERT_FILE"], "found.pem"], capture_output=True)
print(done.returncode == 0)
secured.close()
"""
    )
    if not shutil.which("openssl"):
        pytest.skip("no openssl in PATH")
    with Stub(server_context(tmp_path, "localhost")) as server:
        recording = Recording(tmp_path, command(tmp_path, program, f"localhost:{server.port}"))
        assert recording.record().out == "False\n"  # its authority is not a trusted one
    recording.check_replay()


# --- Messages of HTTP/1 ----------------------------------------------------------------------------------------------

RESPONSES = {
    "1.0": b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    "304": b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 20\r\n\r\n",
    "trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: 1\r\n\r\n",
    "extension": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n",
    "reason": b"HTTP/1.1 299 \xe4\xe4 odd\r\nContent-Length: 0\r\nX-Bytes: \xff\xfe\r\n\r\n",
    "close": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nno length",
}
CLIENT = """
import http.client, sys
from urllib.parse import urlsplit
import urllib.request
proxy = urlsplit(urllib.request.getproxies()["http"])
for url in sys.argv[1:]:
    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
    connection.request("GET", url)
    response = connection.getresponse()
    print(response.status, ascii(response.reason), response.read(), response.getheader("X-Bytes"), response.version)
"""


def test_unusual_messages_of_http1(tmp_path: Path) -> None:
    def talk(connection: socket.socket, head: bytes) -> None:
        kind = head.split()[1].decode().strip("/")
        connection.sendall(RESPONSES[kind])
        if kind in {"1.0", "close"}:
            connection.shutdown(socket.SHUT_RDWR)

    with RawServer(talk) as server:
        recording = Recording(tmp_path, command(tmp_path, CLIENT, *(server.url + kind for kind in RESPONSES)))
        out = recording.record().out
    assert out.count("200 'OK' b'") == 4
    recording.check_replay()


UPLOAD = """
import socket, sys, urllib.request
from urllib.parse import urlsplit
proxy = urlsplit(urllib.request.getproxies()["http"])
sock = socket.create_connection((proxy.hostname, proxy.port), 20)
head = f"POST {sys.argv[1]} HTTP/1.1\\r\\nHost: x\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: X-Sum\\r\\n\\r\\n"
sock.sendall(head.encode() + b"3;name=value\\r\\nabc\\r\\n0\\r\\nX-Sum: 7\\r\\n\\r\\n")
print(sock.recv(65536))
"""


def test_header_lines_after_an_upload_in_chunks_reach_the_server(tmp_path: Path) -> None:
    def talk(connection: socket.socket, head: bytes) -> None:
        if head.endswith(b"X-Sum: 7"):  # before the empty line at the end
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with RawServer(talk) as server:
        recording = Recording(tmp_path, command(tmp_path, UPLOAD, server.url))
        assert "200 OK" in recording.record().out
    recording.check_replay()
