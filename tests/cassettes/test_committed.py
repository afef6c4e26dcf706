"""Every cassette of an extension plays byte for byte: without that, and without what it stands on.

Those of other protocols are played in test_protocols.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader

ROOT = Path(__file__).parents[2]
ALL = (path for path in (ROOT / "cassettes").glob("*/*.yaml") if not path.name.endswith(".http.yaml"))
CASSETTES = sorted(path for path in ALL if b"\nprotocol: gevals\n" in path.read_bytes())
# No console script, hence no other program of the package beside it; and nothing of the library that extensions need.
REPLAY = "import sys; sys.modules['msgspec'] = None; from ext_recorder.__main__ import main; sys.exit(main())"
TIMEOUT_SECONDS = 60


def names(path: Path) -> str:
    """A cassette's name in the test's."""
    return str(path.relative_to(ROOT / "cassettes"))


def replay(path: Path, host: bytes) -> subprocess.CompletedProcess[bytes]:
    """Play a cassette to a host that says this, then closes its end."""
    return subprocess.run(
        [sys.executable, "-c", REPLAY, "replay", "--quiet", path],
        input=host,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        env={"PATH": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def said(path: Path, kind: str) -> bytes:
    """All messages of one side, as they were on the wire."""
    with Reader(path) as reader:
        events = [event for event in reader if isinstance(event, Data) and event.kind == kind]
    assert not any(event.raw for event in events)
    return b"".join(event.payload + b"\n" for event in events)


def test_there_are_cassettes_of_each_kind_of_session() -> None:
    assert {path.stem for path in CASSETTES} >= {"eval-task", "failing", "timed-out", "one-shot"}


@pytest.mark.parametrize("path", CASSETTES, ids=names)
def test_a_cassette_plays_byte_for_byte_without_the_extension(path: Path) -> None:
    played = replay(path, said(path, "in"))
    assert played.stdout == said(path, "out")
    assert played.stderr == b""
    assert played.returncode == 0


@pytest.mark.parametrize("path", CASSETTES, ids=names)
def test_the_answers_carry_the_live_ids_and_nothing_else_differs(path: Path) -> None:
    """Requests numbered from 1 are sent as 1001, 1002, …: what comes back is the recording with these ids."""

    def renumbered(text: bytes) -> bytes:
        return re.sub(rb'("jsonrpc":"2.0","id":)(\d+)', lambda m: m[1] + str(1000 + int(m[2])).encode(), text)

    played = replay(path, renumbered(said(path, "in")))
    assert played.stdout == renumbered(said(path, "out"))
    assert played.returncode == 0


@pytest.mark.parametrize("path", CASSETTES, ids=names)
def test_a_live_workdir_comes_back_where_the_recorded_one_was(path: Path) -> None:
    played = replay(path, said(path, "in").replace(b"/tmp/workdir", b"/srv/other/place"))
    assert played.stdout == said(path, "out").replace(b"/tmp/workdir", b"/srv/other/place")
    assert played.returncode == 0


@pytest.mark.parametrize("path", CASSETTES, ids=names)
def test_a_cassette_holds_no_path_of_the_machine_that_recorded_it(path: Path) -> None:
    text = path.read_bytes()
    assert not re.search(rb"/(root|home|Users|work)/(?!user\b)", text)


@pytest.mark.parametrize("path", CASSETTES, ids=names)
def test_a_cassette_is_yaml_for_everybody(path: Path) -> None:
    import yaml

    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert loaded["cassette"] == 1
    assert loaded["command"] == [f"ext-{path.parent.name}"]
    assert loaded["events"][-1].keys() == {"t", "exit"}
