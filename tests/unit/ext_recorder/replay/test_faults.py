"""Faults laid over a replay: what a host meets when its child fails."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.faults import KINDS, parse_fault_rules
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

CALLS = 4
HEAD = "cassette: 1\nprotocol: jsonrpc\nframing: {framing}\nevents:\n"


def request(id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b"}' % (id, b"even" if id % 2 == 0 else b"odd")


def answer(id: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":"%d"}' % (id, id)


def cassette(folder: Path, framing: str = "ndjson") -> str:
    """Four calls of two methods, and a notification before the last answer."""
    lines = HEAD.format(framing=framing)
    for id in range(1, CALLS + 1):
        lines += f"- {{t: {id}.0, in: '{request(id).decode()}'}}\n"
        if id == CALLS:
            lines += f"- {{t: {id}.1, out: '{NEWS.decode()}'}}\n"
        lines += f"- {{t: {id}.2, out: '{answer(id).decode()}'}}\n"
    path = folder / "session.yaml"
    end = "- {t: 9.0, eof: in}\n- {t: 9.1, eof: err}\n- {t: 9.1, eof: out}\n- {t: 9.1, exit: 0}\n"
    path.write_text(f"{lines}{end}redacted: []\n")
    return str(path)


NEWS = b'{"jsonrpc":"2.0","method":"news"}'
ALL = [answer(1), answer(2), answer(3), NEWS, answer(4)]


def play(folder: Path, *faults: str, seed: str = "") -> subprocess.CompletedProcess[bytes]:
    words = [f"--fault={fault}" for fault in faults] + ([f"--seed={seed}"] if seed else [])
    sent = b"\n".join(request(id) for id in range(1, CALLS + 1)) + b"\n"
    command = [*RECORDER, "replay", *words, cassette(folder)]
    return subprocess.run(command, input=sent, capture_output=True, timeout=PATIENCE_S, check=False)


def lines(done: subprocess.CompletedProcess[bytes]) -> list[bytes]:
    assert done.stdout.endswith(b"\n")
    return done.stdout.splitlines()


def test_without_a_fault_all_is_as_recorded(tmp_path: Path) -> None:
    done = play(tmp_path)
    assert (lines(done), done.returncode) == (ALL, 0)


def test_a_dropped_answer_does_not_come_and_the_rest_does(tmp_path: Path) -> None:
    assert lines(play(tmp_path, "drop@method=odd,nth=2")) == [answer(1), answer(2), NEWS, answer(4)]


def test_a_notification_has_a_method_of_its_own(tmp_path: Path) -> None:
    assert lines(play(tmp_path, "drop@method=news")) == [*ALL[:3], ALL[4]]


def test_every_and_duplicate(tmp_path: Path) -> None:
    assert lines(play(tmp_path, "duplicate@every=2")) == [ALL[0], ALL[1], ALL[1], ALL[2], NEWS, NEWS, ALL[4]]


def test_a_message_that_is_cut_has_no_end(tmp_path: Path) -> None:
    done = play(tmp_path, "cut@nth=1")
    assert done.stdout.startswith(answer(1)[: (len(answer(1)) + 1) // 2] + answer(2) + b"\n")


def test_garbage_comes_between_messages_and_is_no_message(tmp_path: Path) -> None:
    found = lines(play(tmp_path, "garbage=10@nth=2"))
    assert found[:1] + found[2:] == ALL
    assert len(found[1]) == 9
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(found[1])


def test_an_oversized_message_is_the_same_message_padded(tmp_path: Path) -> None:
    found = lines(play(tmp_path, "oversized@nth=1"))
    assert len(found[0]) == 65_536
    assert [each.rstrip(b" ") for each in found] == ALL


def test_an_error_comes_in_the_place_of_an_answer_with_its_id(tmp_path: Path) -> None:
    found = [json.loads(line) for line in lines(play(tmp_path, "error=-32603@method=even"))]
    assert [each.get("error", {}).get("code") for each in found] == [None, -32603, None, None, -32603]
    assert found[1]["id"] == 2


def test_the_child_ends_before_or_in_the_middle_of_a_message(tmp_path: Path) -> None:
    done = play(tmp_path, "exit=7@nth=3")
    assert (lines(done), done.returncode) == (ALL[:2], 7)
    killed = play(tmp_path, "kill@nth=2")
    assert killed.returncode == -9
    assert killed.stdout == answer(1) + b"\n" + answer(2)[: (len(answer(2)) + 1) // 2]


def test_a_delay_keeps_the_order_of_what_comes_behind_it(tmp_path: Path) -> None:
    began = time.monotonic()
    assert lines(play(tmp_path, "delay=300ms@nth=2")) == ALL
    assert time.monotonic() - began >= 0.3  # never less than was asked for


def test_chances_fall_the_same_way_for_the_same_seed(tmp_path: Path) -> None:
    outcomes = {seed: play(tmp_path, "drop@chance=0.5", seed=seed).stdout for seed in "abcdefgh"}
    assert outcomes == {seed: play(tmp_path, "drop@chance=0.5", seed=seed).stdout for seed in "abcdefgh"}
    assert len(set(outcomes.values())) > 1


def test_a_file_of_rules(tmp_path: Path) -> None:
    rules = tmp_path / "faults"
    rules.write_text("# the host's patience\n\ndrop@nth=1\nduplicate@nth=2\n")
    assert lines(play(tmp_path, f"@{rules}")) == [ALL[1], ALL[1], *ALL[2:]]


def test_a_fault_that_befell_nothing_is_told(tmp_path: Path) -> None:
    done = play(tmp_path, "drop@method=never", "drop@nth=1")
    assert b"--fault drop@method=never matched no message" in done.stderr
    assert b"nth=1 has" not in done.stderr


@pytest.mark.parametrize("framing", ["content-length", "uint32"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_faults_are_framed_as_the_protocol_is(tmp_path: Path, framing: str, kind: str) -> None:
    from ext_sdk.core.wire.framing import FRAMINGS

    frames = FRAMINGS[framing]
    value = "=1ms" if kind == "delay" else ""
    command = [*RECORDER, "replay", f"--fault={kind}{value}@nth=2", cassette(tmp_path, framing)]
    sent = b"".join(frames.encode(request(id)) for id in range(1, CALLS + 1))
    done = subprocess.run(command, input=sent, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.stdout.startswith(frames.encode(answer(1)))
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("burn", "expected one of delay, drop, duplicate, cut, garbage, oversized, error, exit, kill"),
        ("delay", "expected a time, as 200ms or 2s after delay="),
        ("delay=fast", "expected a time"),
        ("delay=-1s", "expected a time"),
        ("drop=3", "drop has no value"),
        ("exit=256", "expected an exit code"),
        ("oversized=999999999999", "expected a number of bytes"),
        ("drop@when=3", "expected method, nth, every, chance after the @, found 'when'"),
        ("drop@nth=0", "expected which of those that fit, from 1"),
        ("drop@chance=2", "expected a probability"),
        ("drop@nth=1,every=2", "exclude each other"),
        ("@/no/such/file", "can't be read: No such file"),
    ],
)
def test_a_rule_that_can_t_be_understood_is_explained(rule: str, said: str) -> None:
    with pytest.raises(UsageError) as wrong:
        parse_fault_rules([rule], "")
    assert said in str(wrong.value)


def test_the_dialect_s_own_error_form_is_used(tmp_path: Path) -> None:
    assert DIALECTS["jsonrpc"].refusals
    found = json.loads(lines(play(tmp_path, "error@nth=1"))[0])
    assert found["error"]["data"] == {"fault": "error@nth=1"}
