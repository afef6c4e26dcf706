"""`run` with servers that fail: the program sees the same failure live, while recorded, and on replay."""

from __future__ import annotations

import datetime as dt
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
import trustme
import yaml

from tests.support.host import PATIENCE_S
from tests.support.ports import reserved_port
from tests.support.raw_server import RawServer
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.raw_server import Talk

# Requests each URL, and writes the response or the class of the failure.
CLIENT = """
import http.client, json, os, socket, ssl, sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    url, result = os.environ.get(url, url), {}
    try:
        with urllib.request.urlopen(url, timeout=1.5) as response:
            result["status"] = response.status
            body = b""
            while piece := response.read1(65536):
                body += piece
                result["body"] = body.decode()
    except urllib.error.HTTPError as error:
        result["failure"] = f"HTTP {error.code}"
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        name = type(reason).__name__
        result["failure"] = f"{name}: {reason.verify_message}" if name == "SSLCertVerificationError" else name
    print(json.dumps(result), flush=True)
"""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def site(released: threading.Event) -> Talk:
    """Return a server with a failure at each path."""

    def talk(connection: socket.socket, head: bytes) -> None:
        path = head.split()[1]
        if b"half" in path:
            connection.sendall(HEAD + b"half ")
        if b"stall" in path:
            released.wait(PATIENCE_S)
        elif b"reset" in path:
            reset(connection)
        elif b"close" in path:
            connection.shutdown(socket.SHUT_RDWR)
        else:
            connection.sendall(HEAD + b"all of it.")

    return talk


FAILURES = {
    "ok": {"status": 200, "body": "all of it."},
    "reset": {"failure": "ConnectionResetError"},
    "close": {"failure": "RemoteDisconnected"},
    "stall": {"failure": "TimeoutError"},
    "half-reset": {"status": 200, "body": "half ", "failure": "ConnectionResetError"},
    "half-close": {"status": 200, "body": "half "},
    "half-stall": {"status": 200, "body": "half ", "failure": "TimeoutError"},
}


class Command:
    """The client, with and without the recorder."""

    def __init__(self, folder: Path, urls: list[str], environ: dict[str, str]) -> None:
        (folder / "client.py").write_text(CLIENT)
        self._folder = folder
        self._command = [sys.executable, "client.py", *urls]
        self._environ = {**os.environ, **environ}
        self.err = ""

    def run(self, *options: str, expected: int = 0) -> list[dict[str, object]]:
        before = [*RECORDER, "run", *options, "rec", "--"] if options else []
        done = subprocess.run(
            [*before, *self._command],
            cwd=self._folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        self.err = done.stderr
        assert done.returncode == expected, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def test_each_failure_of_a_server_is_recorded_and_replayed_as_it_was(tmp_path: Path) -> None:
    released = threading.Event()
    with RawServer(site(released)) as server:
        urls = [server.url + path for path in FAILURES]
        command = Command(tmp_path, urls, {})
        live = command.run()
        assert dict(zip(FAILURES, live, strict=True)) == FAILURES
        recorded = command.run("--mode=once")
        released.set()
    assert dict(zip(FAILURES, recorded, strict=True)) == FAILURES
    replayed = command.run("--mode=none")
    assert dict(zip(FAILURES, replayed, strict=True)) == FAILURES
    assert "never" not in command.err


def test_a_server_that_cannot_be_reached_is_explained_in_both(tmp_path: Path) -> None:
    with reserved_port() as port:
        command = Command(tmp_path, [f"http://127.0.0.1:{port}/", "http://missing.invalid/"], {})
        recorded = command.run("--mode=once")
        assert [result["failure"] for result in recorded] == ["HTTP 502", "HTTP 502"]
        assert command.run("--mode=none") == recorded
    traffic = yaml.safe_load((tmp_path / "rec" / "traffic.http.yaml").read_text())
    # A program may connect to its own server before that listens, so a port of loopback is recorded at the end.
    assert [each["error"]["type"] for each in traffic["interactions"]] == ["gaierror", "ConnectionRefusedError"]


# Requests a path of each port; then that of a server of its own, before and after it listens.
WITH_OWN_SERVER = """
import http.server, os, threading, urllib.error, urllib.request
def get(port):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/a").status
    except urllib.error.HTTPError as error:
        return error.code
statuses = [get(port) for port in os.environ["PORTS"].split()]
statuses.append(get(os.environ["OWN"]))
server = http.server.HTTPServer(("127.0.0.1", int(os.environ["OWN"])), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.handle_request, daemon=True).start()
print(*statuses, get(os.environ["OWN"]))
"""


def test_a_server_that_ran_before_the_command_or_never_is_not_one_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("own")

    def run(mode: str, *ports: int, expected: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [*RECORDER, "run", "--mode", mode, "rec", "--", sys.executable, "-c", WITH_OWN_SERVER],
            cwd=tmp_path,
            env={**os.environ, "PORTS": " ".join(map(str, ports)), "OWN": str(own)},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == expected, done.stderr
        return done.stdout.strip(), done.stderr

    def ok(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(HEAD + b"all of it.")

    with (
        reserved_port() as own,
        reserved_port() as closed,
        reserved_port() as unknown,
        RawServer(ok) as server,
        RawServer(ok) as other,
    ):
        port, before = int(server.url.rstrip("/").rpartition(":")[2]), int(other.url.rstrip("/").rpartition(":")[2])
        out, err = run("once", port, closed, closed)
        assert out == "200 502 502 502 200"
        assert f"127.0.0.1:{closed}: 2 failed connections: Connection refused\n" in err
        assert str(own) not in err
        for mode in ("once", "none", "new_episodes"):
            assert run(mode, port, closed, closed, closed)[0] == "200 502 502 502 502 200"
        out, err = run("once", before, expected=3)
        assert (out, other.connections) == ("499 502 200", 0)
        assert f"GET http://127.0.0.1:{before}/a: differs from recorded interaction 1: address: recorded " in err
        out, err = run("once", port, unknown, expected=3)
        assert out == "200 502 502 200"
        assert f"127.0.0.1:{unknown}: never recorded, and no server of the command listens there\n" in err
        assert f"127.0.0.1:{own}" not in err
        for mode in ("new_episodes", "once"):
            assert run(mode, port, unknown)[0] == "200 502 502 200"


# --- Certificates -----------------------------------------------------------------------------------------------------


def self_signed() -> ssl.SSLContext:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with trustme.Blob(authority.private_key_pem.bytes() + authority.cert_pem.bytes()).tempfile() as file:
        context.load_cert_chain(file)
    return context


def signed(authority: trustme.CA, *names: str, expired: bool = False) -> ssl.SSLContext:
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC) if expired else None
    certificate = authority.issue_cert(*names, not_after=past) if past else authority.issue_cert(*names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, RawServer], str]]:
    """Servers by the defect of their certificate, and the file of the authority that the client trusts."""
    trusted, unknown = trustme.CA(), trustme.CA()
    file = tmp_path_factory.mktemp("trust") / "ca.pem"
    trusted.cert_pem.write_to_path(str(file))
    contexts = {
        "valid": signed(trusted, "localhost"),
        "expired": signed(trusted, "localhost", expired=True),
        "wrong host": signed(trusted, "other.example"),
        "unknown authority": signed(unknown, "localhost"),
        "self-signed": self_signed(),
    }
    talk = site(threading.Event())
    with ExitStack() as stack:
        yield {name: stack.enter_context(RawServer(talk, context)) for name, context in contexts.items()}, str(file)


def test_a_base_url_with_an_invalid_certificate_is_refused_because_the_program_does_not_see_it(
    tmp_path: Path, servers: tuple[dict[str, RawServer], str]
) -> None:
    named, authority = servers
    for name, expected in (("valid", FAILURES["ok"]), ("unknown authority", {"failure": "HTTP 502"})):
        (folder := tmp_path / name).mkdir()
        url = named[name].url.replace("127.0.0.1", "localhost")
        command = Command(folder, ["OPENAI_BASE_URL"], {"SSL_CERT_FILE": authority, "OPENAI_BASE_URL": url})
        before = len(named[name].heads)
        assert command.run("--mode=once") == [expected]
        assert command.run("--mode=none") == [expected]
        assert len(named[name].heads) - before == (1 if name == "valid" else 0)


def test_each_defect_of_a_certificate_is_recorded_and_replayed_as_it_was(
    tmp_path: Path, servers: tuple[dict[str, RawServer], str]
) -> None:
    named, authority = servers
    urls = [server.url.replace("127.0.0.1", "localhost") for server in named.values()]
    command = Command(tmp_path, urls, {"SSL_CERT_FILE": authority})
    live = dict(zip(named, command.run(), strict=True))
    assert live["valid"] == FAILURES["ok"]
    failures = [str(result["failure"]) for name, result in live.items() if name != "valid"]
    for failure, text in zip(failures, ("expired", "mismatch", "local issuer", "self-signed"), strict=True):
        assert failure.startswith("SSLCertVerificationError: ")
        assert text in failure
    assert dict(zip(named, command.run("--mode=once"), strict=True)) == live
    assert dict(zip(named, command.run("--mode=none"), strict=True)) == live
