"""`conformance --protocol`: the reference peers conform, on standard files and on sockets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast
from xml.etree import ElementTree as ET

import pytest

from ext_recorder.conformance.conversation_runner import ConversationRunner
from ext_recorder.conformance.conversations import CONVERSATIONS
from ext_recorder.conformance.peer import ChildUnderTest
from ext_recorder.conformance.protocol_clauses import clauses_of
from ext_recorder.errors import RecorderError
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.sockets.address import Address
from tests.conformance.reference_peers import ROOT, peer, profile, verdicts
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 120.0


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peers are found, and a busy machine makes none of them late."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    timeouts = DIALECTS["gassist"].timeouts
    monkeypatch.setattr(DIALECTS["gassist"], "timeouts", dict.fromkeys(timeouts, PATIENCE_S))


def all_met(protocol: str) -> dict[str, tuple[str, str]]:
    return {clause.id: ("met", "") for clause in clauses_of(protocol)}


@contextmanager
def running(protocol: str, listen: str) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
    """A peer that runs already; where it listens."""
    with subprocess.Popen([*peer(protocol), "--listen", listen], stderr=subprocess.PIPE, env=os.environ) as process:
        try:
            said = cast("IO[bytes]", process.stderr).readline().decode()
            yield Address.parse(said.split()[-1], "--connect"), process
        finally:
            process.kill()


@pytest.mark.parametrize("protocol", CONVERSATIONS)
def test_the_reference_peer_meets_every_clause(protocol: str, tmp_path: Path) -> None:
    found = verdicts(protocol, tmp_path, peer(protocol))
    assert found == all_met(protocol)
    assert list(found) == list(all_met(protocol))


@pytest.mark.parametrize("protocol", ["waza", "kaiak"])
def test_a_server_is_started_asked_at_its_socket_and_ended(protocol: str, tmp_path: Path) -> None:
    address = Address.parse(f"unix:{tmp_path}/server.sock", "--connect")
    command = [*peer(protocol), "--listen", str(address)]
    assert verdicts(protocol, tmp_path, command, address=address) == all_met(protocol)
    with pytest.raises(ConnectionRefusedError):
        address.connect()


@pytest.mark.parametrize(("protocol", "listen"), [("waza", "tcp:127.0.0.1:0"), ("kaiak", "unix:{folder}/server.sock")])
def test_a_server_that_runs_already_is_asked_and_left_running(protocol: str, listen: str, tmp_path: Path) -> None:
    with running(protocol, listen.format(folder=tmp_path)) as (address, process):
        for name in ("one", "other"):
            folder = tmp_path / name
            folder.mkdir()
            assert verdicts(protocol, folder, (), address=address) == all_met(protocol)
        assert process.poll() is None


def test_on_a_socket_it_is_another_client_who_finds_a_session_in_use(tmp_path: Path) -> None:
    # Every connection has sessions of its own; from the second on, a fix is done at once.
    forgetful = (
        "import sys; from tests.peers.kaiak import Fix, Kaiak; from tests.peers.transport import serve\n"
        "class Forgetful(Kaiak):\n"
        "    made = 0\n"
        "    def __init__(self, write):\n"
        "        super().__init__({}, write)\n"
        "        Forgetful.made += 1\n"
        "        self.quick = Forgetful.made > 1\n"
        "    def generate_fix(self, id, argument):\n"
        "        done = Fix(id, argument['session_id'], argument['incidents'])\n"
        "        return self.result(done) if self.quick else super().generate_fix(id, argument)\n"
        "serve(Forgetful, sys.argv[1:])"
    )
    address = Address.parse(f"unix:{tmp_path}/server.sock", "--connect")
    command = [sys.executable, "-c", forgetful]
    listening = [*command, "--listen", str(address)]
    on_socket = verdicts("kaiak", tmp_path, listening, only={"kaiak:in-use"}, address=address)
    assert on_socket["kaiak:in-use"][0] == "violated"
    assert on_socket["kaiak:created"] == ("met", "")
    assert verdicts("kaiak", tmp_path, command, only={"kaiak:in-use"})["kaiak:in-use"] == ("met", "")


def test_a_server_that_dies_of_bad_input_is_started_again_for_what_comes_after(tmp_path: Path) -> None:
    fragile = (
        "import os, sys; from tests.peers.waza import Waza; from tests.peers.transport import serve\n"
        "class Fragile(Waza):\n"
        "    def refuse(self, error): os._exit(3)\n"
        "serve(Fragile, sys.argv[1:])"
    )
    address = Address.parse(f"unix:{tmp_path}/server.sock", "--connect")
    command = [sys.executable, "-c", fragile, "--listen", str(address)]
    found = verdicts("waza", tmp_path, command, address=address)
    wrong = {id for id, verdict in found.items() if verdict[0] != "met"}
    assert wrong == {"waza:parse-error", "waza:invalid-request"}
    assert "found no response" in found["waza:parse-error"][1]


def test_an_address_without_a_server_is_told(tmp_path: Path) -> None:
    address = Address.parse(f"unix:{tmp_path}/server.sock", "--connect")
    with pytest.raises(RecorderError, match=r"^no connection to unix:.*: No such file or directory$"):
        verdicts("waza", tmp_path, (), address=address)
    with pytest.raises(RecorderError, match=r"the server has exited \(exit code 3\); its output on stderr:\nbroken$"):
        verdicts("waza", tmp_path, ["sh", "-c", "echo broken >&2; exit 3"], address=address)


def test_the_host_answers_what_an_extension_calls_it_for_in_pieces_or_by_denial(tmp_path: Path) -> None:
    results = []
    for session in CONVERSATIONS["pi"].sessions[:2]:
        with ChildUnderTest(peer("pi"), tmp_path) as asked, asked.session() as place:
            talk = ConversationRunner(place, "pi", profile("pi", tmp_path), session, PATIENCE_S)
            talk.run()
            heard = [each.value["payload"] for each in talk.exchange.received if isinstance(each.value, dict)]
            results.append(
                {each["call_id"]: each["output"] for each in heard if "output" in each and "call_id" in each}
            )
    assert results[0]["call 3"] == {"lines": 2}
    assert results[1] == {"call 1": {"error": {"code": "denied", "message": "not allowed"}}}


def test_a_child_that_does_not_read_is_not_waited_for_longer_than_asked(tmp_path: Path) -> None:
    long = profile("pi", tmp_path) | {"input": {"text": "x" * 1_000_000}}
    deaf = 'import time; print(\'{"id":"1"}\', flush=True); time.sleep(600)'
    with ChildUnderTest([sys.executable, "-c", deaf], tmp_path) as asked, asked.session() as place:
        talk = ConversationRunner(place, "pi", long, CONVERSATIONS["pi"].sessions[0], 0.5)
        talk.run()
    assert talk.violations == {"order": ["register does not come"]}


def test_without_a_profile_what_needs_one_is_skipped(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RECORDER, "conformance", "--json", "--protocol=waza", "--", *peer("waza")],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    told = {line["clause"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0
    assert told["waza:unknown-method"]["verdict"] == "met"
    assert told["waza:run"]["verdict"] == "skipped"
    assert told["waza:run"]["reason"].endswith("add entries to the profile")


def test_a_table_a_report_and_an_exit_code_tell_of_a_server_on_a_socket(tmp_path: Path) -> None:
    (tmp_path / "profile.json").write_text(json.dumps(profile("waza", tmp_path)))
    address, report = f"unix:{tmp_path}/server.sock", tmp_path / "report.xml"
    faulty = [sys.executable, "-m", "tests.conformance.faulty_peer", "waza:not-found", "--listen", address]
    words = ["--protocol=waza", f"--connect={address}", "--profile=profile.json", f"--junit={report}", "--timeout=60"]
    done = subprocess.run(
        [*RECORDER, "conformance", *words, "--only=waza:not-", "--", *faulty],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    first, why, second, summary = done.stdout.splitlines()
    assert first.split()[1:3] == ["VIOLATED", "waza:not-found"]
    assert why.strip().startswith('expected -32000 at /error/code, found {"jsonrpc":"2.0"')
    assert second.split()[1:3] == ["met", "waza:not-valid"]
    assert summary == "2 clauses: 1 met, 1 violated"
    assert ET.parse(report).getroot().get("failures") == "1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--protocol=pi", "--only=spec:"], "--only spec:: no clause has this id; --only pi: select all of one"),
        (["--protocol=pi", "--profile=none.json"], "--profile none.json: cannot be read"),
        (["--protocol=pi", "--profile=odd.json"], "expected an object with entries of tool, input, asking, asking-i"),
        (["--protocol=pi", "--profile=broken.json"], "--profile broken.json: not valid JSON"),
        (["--protocol=waza", "--connect=morse:1"], "--connect morse:1: expected tcp:HOST:PORT or unix:PATH"),
        (["--connect=tcp:1"], "--connect is for servers on sockets"),
        (["--protocol=pi", "--timeout=soon"], "--timeout soon: expected a number of seconds above 0"),
        (["--protocol=waza", "--connect=unix:none.sock"], "no connection to unix:none.sock: the server has exited"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_told(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('{"eval": 1}')
    (tmp_path / "broken.json").write_text("{")
    command = [*RECORDER, "conformance", *words, "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_child_that_says_nothing_violates_and_its_last_words_are_told(tmp_path: Path) -> None:
    command = [*RECORDER, "conformance", "--protocol=waza", "--", "sh", "-c", "echo 'no licence' >&2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "VIOLATED  waza:answer-each" in done.stdout
    assert "no licence" in done.stdout
