"""`run --mode none` is isolated from the network; a system that forbids this is named in the summary."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S
from tests.support.raw_server import RawServer, sends
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

# Requests the URL by the proxy; then connects to the server without it, and looks up the interfaces.
CLIENT = """
import os, socket, sys, urllib.parse, urllib.request
print(urllib.request.urlopen(sys.argv[1]).read().decode())
if os.environ.get("BYPASS"):
    url = urllib.parse.urlsplit(sys.argv[1])
    print("direct", socket.socket().connect_ex((url.hostname, url.port)))
    print("interfaces", [name for _, name in socket.if_nameindex()])
print("user", os.getuid(), os.access(sys.argv[0], os.W_OK))
"""
OK = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlive")
SYSCALLS = {"x86_64": 272, "aarch64": 97}  # unshare(2)


def forbid_namespaces() -> None:
    """Make unshare(2) fail in this process, as on systems that forbid namespaces of users."""
    number = SYSCALLS[platform.machine()]
    program = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (0x20, 0, 0, 0),  # load the number of the system call
            (0x15, 0, 1, number),  # unless it is unshare, skip one
            (0x06, 0, 0, 0x00050001),  # fail with EPERM
            (0x06, 0, 0, 0x7FFF0000),  # allow
        )
    )
    buffer = ctypes.create_string_buffer(program)
    filters = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filters, 0, 0):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        os._exit(77)


class Runs:
    """The client, recorded with a server that stays."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        (folder / "client.py").write_text(CLIENT)

    def run(self, *options: str, bypass: bool = False, forbidden: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*RECORDER, "run", *options, "rec", "--", sys.executable, "client.py", self._url],
            cwd=self._folder,
            env={**os.environ, "BYPASS": "1" if bypass else ""},
            preexec_fn=forbid_namespaces if forbidden else None,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )


def allowed() -> bool:
    done = subprocess.run(["unshare", "--map-root-user", "--net", "true"], capture_output=True, check=False)
    return done.returncode == 0


def test_a_replay_without_recording_runs_in_an_empty_network(tmp_path: Path) -> None:
    if not allowed():
        pytest.skip("network namespaces can't be made here")
    with RawServer(OK) as server:
        runs = Runs(tmp_path, server.url)
        recorded = runs.run("--mode=once")
        assert recorded.returncode == 0, recorded.stderr
        before = server.connections
        replayed = runs.run("--mode=none", bypass=True)
        assert server.connections == before
    assert replayed.returncode == 0, replayed.stderr
    lines = replayed.stdout.splitlines()
    assert lines[0] == "live"
    assert lines[1] != "direct 0"  # nothing listens in the namespace
    assert lines[2:] == ["interfaces ['lo']", *recorded.stdout.splitlines()[1:]]
    assert "isolated: the command ran without any network but loopback" in replayed.stderr


@pytest.mark.skipif(platform.machine() not in SYSCALLS, reason="the number of the system call is not known")
def test_where_namespaces_are_forbidden_the_proxy_refuses_and_the_summary_says_what_was_not_checked(
    tmp_path: Path,
) -> None:
    with RawServer(OK) as server:
        runs = Runs(tmp_path, server.url)
        assert runs.run("--mode=once").returncode == 0
        before = server.connections
        replayed = runs.run("--mode=none", forbidden=True)
        if replayed.returncode == 77:
            pytest.skip("system calls can't be filtered here")
        assert server.connections == before
        assert (replayed.returncode, replayed.stdout.splitlines()[0]) == (0, "live"), replayed.stderr
        note = "not isolated from the network (namespaces: Operation not permitted), so it was not checked that no"
        assert note in replayed.stderr
        bypassing = runs.run("--mode=none", bypass=True, forbidden=True)
        assert "direct 0" in bypassing.stdout.splitlines()
        assert note in bypassing.stderr
