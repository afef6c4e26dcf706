"""Regular expressions that would take years end with an error, whether they are on a command line or in a recording.

No assertion is about time: a program that hangs fails its test, because the test does not wait for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S, HostProcess
from tests.support.http_stub import Stub
from tests.support.recorder_process import ECHO, RECORDER, python, recorder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.support.http_stub import Asked, Handler

SLOW = "(a+)+$"
EDGE = "a" * 40 + "!"
LONG = "b" * 200_000 + "!"  # a search in it can not be interrupted often enough
REASON = "took more than 1 s of processor time on a text of 4"  # 41 characters, or one more
ASKS = """
import os, urllib.request
request = urllib.request.Request(os.environ["MODEL_URL"] + "/say", os.environ["SAYS"].encode(),
                                 {"Content-Type": "text/plain"})
try:
    print(urllib.request.urlopen(request).read().decode())
except OSError as error:
    print("failed:", error)
"""


# A child that repeats each line with another text.
CHANGING = python("import sys\nfor line in sys.stdin: print(line.strip().replace('!', '!?'), flush=True)")


def line(text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "say", "params": {"text": text}}).encode() + b"\n"


def done(words: Sequence[str], folder: Path, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the recorder to its end."""
    ended = subprocess.run(
        [*RECORDER, *words],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env=os.environ | environ,
        timeout=PATIENCE_S,
        check=False,
    )
    return subprocess.CompletedProcess(words, ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def session(folder: Path, name: str, text: str) -> str:
    """Record a child that repeats one message."""
    command = recorder(folder / name, ECHO)[len(RECORDER) :]
    recorded = done(command, folder, line(text))
    assert recorded.returncode == 0, recorded.stderr
    return name


def test_a_replay_ends(tmp_path: Path) -> None:
    cassette = session(tmp_path, "a.yaml", EDGE)
    replayed = done(["replay", "--mask", SLOW, cassette], tmp_path, line(f"{EDGE}?"))
    assert replayed.returncode == 2
    assert f"ext-recorder: --mask {SLOW}: {REASON}" in replayed.stderr


def test_a_replay_in_any_order_ends(tmp_path: Path) -> None:
    cassette = session(tmp_path, "a.yaml", EDGE)
    replayed = done(["replay", "--order", "any", "--mask", SLOW, cassette], tmp_path, line(f"{EDGE}?"))
    assert replayed.returncode == 2
    assert f"--mask {SLOW}: {REASON}" in replayed.stderr


def test_a_long_text_is_searched_in_a_process_that_can_be_ended(tmp_path: Path) -> None:
    cassette = session(tmp_path, "a.yaml", LONG)
    replayed = done(["replay", "--mask", r"\w+[0-9a-z]*\w*x", cassette], tmp_path, line(f"{LONG}?"))
    assert replayed.returncode == 2
    assert "took longer than 2 s; make the pattern simpler" in replayed.stderr


def test_record_with_a_mask_ends(tmp_path: Path) -> None:
    cassette = session(tmp_path, "a.yaml", EDGE)
    for mode in ("once", "none", "new_episodes"):
        replayed = done(["record", "--mode", mode, "--mask", SLOW, cassette, "--", *ECHO], tmp_path, line(f"{EDGE}?"))
        assert replayed.returncode == 2, (mode, replayed.stderr)
        assert f"--mask {SLOW}: {REASON}" in replayed.stderr


def test_diff_and_verify_end(tmp_path: Path) -> None:
    one, other = session(tmp_path, "a.yaml", EDGE), session(tmp_path, "b.yaml", f"{EDGE}?")
    for words in (["diff", "--mask", SLOW, one, other], ["verify", "--mask", SLOW, one, "--", *CHANGING]):
        compared = done(words, tmp_path)
        assert compared.returncode == 2, compared.stderr
        assert f"--mask {SLOW}: {REASON}" in compared.stdout + compared.stderr


def test_scrub_and_convert_end(tmp_path: Path) -> None:
    cassette = session(tmp_path, "a.yaml", EDGE)
    scrubbed = done(["scrub", "--redact", f"pattern:{SLOW}", cassette], tmp_path)
    assert scrubbed.returncode == 2
    assert f"--redact pattern:{SLOW}: took more than 1 s of processor time on a message of" in scrubbed.stderr


# --- Recordings -------------------------------------------------------------------------------------------------------


def _repeat(handler: Handler, asked: Asked) -> None:
    handler.answer(200, asked.body)


@pytest.fixture
def url() -> Iterator[str]:
    with Stub(default=_repeat) as stub:
        yield stub.url("")


def make_recording(folder: Path, url: str, rule: str) -> None:
    made = done(["run", "rec", "--", sys.executable, "-c", ASKS], folder, MODEL_URL=url, SAYS=EDGE)
    assert (made.returncode, made.stdout) == (0, f"{EDGE}\n"), made.stderr
    header = folder / "rec" / "recording.yaml"
    value = SLOW if rule != "ignore" else "/query/x"
    header.write_text(f"{header.read_text()}rules:\n- {rule}: '{value}'\n")


@pytest.mark.parametrize("mode", ["once", "none", "new_episodes"])
@pytest.mark.parametrize("rule", ["mask", "path"])
def test_a_rule_of_a_recording_ends(tmp_path: Path, url: str, rule: str, mode: str) -> None:
    make_recording(tmp_path, url, rule)
    command = ["run", "--mode", mode, "rec", "--", sys.executable, "-c", ASKS]
    replayed = done(command, tmp_path, MODEL_URL=url, SAYS=f"{EDGE}?")
    assert replayed.returncode != 0
    assert f"rec/recording.yaml: rules: {rule}: '{SLOW}': {REASON}" in replayed.stderr


def test_run_with_a_mask_ends(tmp_path: Path, url: str) -> None:
    make_recording(tmp_path, url, "ignore")
    command = ["run", "--mask", SLOW, "rec", "--", sys.executable, "-c", ASKS]
    replayed = done(command, tmp_path, MODEL_URL=url, SAYS=f"{EDGE}?")
    assert replayed.returncode != 0
    assert f"--mask {SLOW}: {REASON}" in replayed.stderr


def test_commands_that_read_a_recording_do_not_search_for_its_patterns(tmp_path: Path, url: str) -> None:
    make_recording(tmp_path, url, "mask")
    for words in (["show", "rec"], ["view", "rec"], ["stats", "rec"], ["lint", "rec"], ["scrub", "--check", "rec"]):
        shown = done(words, tmp_path)
        assert shown.returncode == 0, (words, shown.stderr)


# --- Signals ----------------------------------------------------------------------------------------------------------


def has_searched(pid: int) -> bool:
    """Return True if a process has used processor time for more than its start, or has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0] == "Z" or int(fields[11]) > 60  # user time in 1/100 s: the start takes less


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("words", [["replay"], ["record", "--mode", "none"], ["diff"]], ids=lambda words: words[0])
def test_a_signal_ends_a_search(tmp_path: Path, words: list[str], number: signal.Signals) -> None:
    one, other = session(tmp_path, "a.yaml", EDGE), session(tmp_path, "b.yaml", f"{EDGE}?")
    words = [*words, "--mask", SLOW, one, *([other] if words == ["diff"] else ["--", *ECHO] if len(words) > 1 else [])]
    with HostProcess([*RECORDER, *words], cwd=tmp_path) as host:
        host.write(line(f"{EDGE}?"))
        pause, deadline = select.poll(), time.monotonic() + PATIENCE_S
        while not has_searched(host.pid):
            assert time.monotonic() < deadline, "it does not search"
            pause.poll(5)
        os.kill(host.pid, number)
        assert host.end().code != 0
