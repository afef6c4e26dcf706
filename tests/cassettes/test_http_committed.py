"""Every recording of HTTP traffic runs its real extension: its own code, without a server, without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import yaml

from cassettes.http_sessions import TOKEN
from cassettes.kubernetes_sessions import PASSWORD
from cassettes.record import SESSIONS
from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from tests.support.secret_encodings import spellings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
FILES = sorted((ROOT / "cassettes").glob("*/*.http.yaml"))
TIMEOUT_SECONDS = 60
WITHOUT_NETWORK = ["unshare", "--map-root-user", "--net"]


def names(path: Path) -> str:
    """A recording's name in the test's."""
    return str(path.relative_to(ROOT / "cassettes")).removesuffix(".http.yaml")


def said(path: Path) -> Iterator[Data]:
    """What was said on stdio."""
    with Reader(path.with_name(path.name.replace(".http.yaml", ".yaml"))) as reader:
        yield from (event for event in reader if isinstance(event, Data) and event.kind != "err")


def played(
    path: Path, workdir: Path, before: Sequence[str] = (), program: Sequence[str] = ()
) -> tuple[list[bytes], list[bytes], int, bytes]:
    """Run the real extension on recorded answers: what it said, what it had said, its exit code, its stderr."""
    for name, text in SESSIONS[names(path)].files.items():
        (workdir / name).write_text(text)
    command = [
        *before,
        str(BIN / "ext-recorder"),
        "replay",
        "--quiet",
        "--http",
        str(path),
        "--",
        *(program or [f"ext-{path.parent.name}"]),
    ]
    environment = {"PATH": f"{BIN}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(workdir / "home")}
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert child.stdin
    assert child.stdout
    live, recorded = [], []
    with child:
        for event in said(path):
            if event.kind == "in":
                child.stdin.write(event.payload.replace(b"/tmp/workdir", str(workdir).encode()) + b"\n")
                child.stdin.flush()
            else:
                recorded.append(event.payload)
                live.append(child.stdout.readline().rstrip(b"\n").replace(str(workdir).encode(), b"/tmp/workdir"))
        _, told = child.communicate(timeout=TIMEOUT_SECONDS)
    return live, recorded, child.returncode, told


def test_there_are_recordings_of_both_layers() -> None:
    assert {names(path) for path in FILES} >= {"http/offline", "kubernetes/offline"}


@pytest.mark.parametrize("path", FILES, ids=names)
def test_the_real_extension_says_byte_for_byte_what_it_said(path: Path, tmp_path: Path) -> None:
    live, recorded, code, told = played(path, tmp_path)
    assert live == recorded
    assert (code, told) == (0, b"")


@pytest.mark.parametrize("path", FILES, ids=names)
def test_it_does_so_where_there_is_no_network_at_all(path: Path, tmp_path: Path) -> None:
    tried = subprocess.run([*WITHOUT_NETWORK, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"an empty network namespace can't be made here: {tried.stderr.strip()}")
    live, recorded, code, told = played(path, tmp_path, WITHOUT_NETWORK)
    assert live == recorded
    assert (code, told) == (0, b"")


# An interpreter that needs 60 ms to start each operation, and more to import modules.
SLOW = """
import sys, time
from ext_sdk.server.server import Server
sleep, perform = time.sleep, Server._perform
class SlowImports:
    def find_spec(self, *args): sleep(0.001)
sys.meta_path.insert(0, SlowImports())
def slow(self, call):
    sleep(0.06)
    perform(self, call)
Server._perform = slow
from ext_{name}.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("path", FILES, ids=names)
def test_a_slow_interpreter_polls_as_often_as_the_recorded_one(path: Path, tmp_path: Path) -> None:
    program = [sys.executable, "-c", SLOW.replace("{name}", path.parent.name)]
    live, recorded, code, told = played(path, tmp_path, program=program)
    assert live == recorded
    assert (code, told) == (0, b"")


@pytest.mark.parametrize("path", FILES, ids=names)
def test_verify_finds_no_difference(path: Path, tmp_path: Path) -> None:
    for name, text in SESSIONS[names(path)].files.items():
        (tmp_path / name).write_text(text)
    cassette = path.with_name(path.name.replace(".http.yaml", ".yaml"))
    command = [str(BIN / "ext-recorder"), "verify", "--http", "--files", str(tmp_path), str(cassette), "--"]
    done = subprocess.run(
        [*command, str(BIN / f"ext-{path.parent.name}")],
        capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.startswith(f"ok      {cassette}\n")


@pytest.mark.parametrize("path", FILES, ids=names)
def test_vcrpy_loads_it(path: Path) -> None:
    """In a process of its own: importing vcrpy imports every client library that there is."""
    program = (
        "import sys\nfrom vcr.serialize import deserialize\nfrom vcr.serializers import yamlserializer\n"
        "requests, responses = deserialize(open(sys.argv[1]).read(), yamlserializer)[:2]\nprint(len(requests))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(content(path)["interactions"])


def content(path: Path) -> dict[str, list[dict[str, object]]]:
    """The file as plain data."""
    return cast("dict[str, list[dict[str, object]]]", yaml.load(path.read_bytes(), yaml.CSafeLoader))


@pytest.mark.parametrize("path", FILES, ids=names)
def test_each_interaction_names_the_call_that_it_served(path: Path) -> None:
    calls = {
        match[1] for match in re.finditer(rb'"id":(\d+),"method":"execute"', b"\n".join(e.payload for e in said(path)))
    }
    assert {str(each["call"]).encode() for each in content(path)["interactions"]} <= calls


@pytest.mark.parametrize("path", FILES, ids=names)
def test_it_has_no_secret_and_no_path_of_the_machine_that_recorded_it(path: Path) -> None:
    text = path.read_bytes()
    assert [each for secret in (PASSWORD, TOKEN) for each in spellings(secret) if each in text] == []
    assert not re.search(rb"/(root|home|Users|work)/(?!user\b)", text)
    assert content(path)["unrecorded"] == []
