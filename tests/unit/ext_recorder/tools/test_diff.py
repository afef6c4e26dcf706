"""What differs between two cassettes."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import CassetteError
from ext_recorder.tools.diff import diff
from tests.support.host import PATIENCE_S
from tests.support.player_host import cassette
from tests.support.recorder_process import RECORDER
from tests.unit.ext_recorder.tools.test_trim import answer, ask, log

if TYPE_CHECKING:
    from pathlib import Path


def told(*messages: tuple[str, str], end: str = "0") -> str:
    lines = [f"- {{t: {at}.5, {stream}: '{text}'}}" for at, (stream, text) in enumerate(messages)]
    return "\n".join([*lines, f"- {{t: 91, exit: {end}}}"])


def differences(path: Path, one: str, other: str, *, protocol: str = "jsonrpc", **options: object) -> list[str]:
    """The kinds of what differs, with the pointers."""
    left = cassette(path / "a.yaml", one, protocol=protocol)
    right = cassette(path / "b.yaml", other, protocol=protocol)
    case = diff(left, right, **options)  # type: ignore[arg-type]
    return [" ".join(filter(None, [each.kind, str(each.data.get("pointer", ""))])) for each in case.problems]


CALLS = (("in", ask(1, "a")), ("out", answer(1, "[1]")), ("in", ask(2, "b")), ("out", answer(2, "2")))


def test_two_recordings_of_one_session_do_not_differ(tmp_path: Path) -> None:
    again = told(*CALLS).replace('"id":1', '"id":"x-1"').replace(".5,", ".75,").replace("[1]", "[ 1.0 ]")
    assert differences(tmp_path, told(*CALLS), again) == []


def test_answers_are_compared_with_those_of_the_same_call(tmp_path: Path) -> None:
    assert differences(tmp_path, told(*CALLS), told(*CALLS).replace("[1]", "[3]")) == ["differs /result/0"]


def test_a_call_that_is_new_moves_nothing_else(tmp_path: Path) -> None:
    new = (("in", ask(7, "new")), ("out", answer(7)))
    assert differences(tmp_path, told(*CALLS), told(*new, *CALLS)) == ["unexpected"]
    assert differences(tmp_path, told(*new, *CALLS), told(*CALLS)) == ["missing"]


def test_one_call_of_many_that_changed_is_compared_with_what_it_was(tmp_path: Path) -> None:
    def call(number: int, text: str) -> tuple[tuple[str, str], ...]:
        asked = f'{{"jsonrpc":"2.0","id":{number},"method":"a","params":"{text}"}}'
        return ("in", asked), ("out", answer(number, f'"{text}"'))

    one = told(*call(1, "x"), *call(2, "y"), *call(3, "z"))
    other = told(*call(1, "x"), *call(2, "changed"), *call(3, "z"))
    assert differences(tmp_path, one, other) == ["differs /params", "differs /result"]


def test_calls_about_other_things_are_not_taken_for_each_other(tmp_path: Path) -> None:
    def execute(operation: str) -> str:
        return f'{{"jsonrpc":"2.0","id":1,"method":"execute","params":{{"operation":"{operation}"}}}}'

    found = differences(tmp_path, told(("in", execute("run"))), told(("in", execute("wait"))), protocol="gevals")
    assert found == ["missing", "unexpected"]


def test_the_fewest_messages_that_moved_are_told(tmp_path: Path) -> None:
    logs = [("out", log(str(number))) for number in range(6)]
    moved = [*logs[1:], logs[0]]
    assert differences(tmp_path, told(*logs), told(*moved)) == ["order"]
    assert differences(tmp_path, told(*logs), told(*moved), in_order=False) == []


def test_an_answer_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert differences(tmp_path, told(*CALLS), told(*CALLS[:3])) == ["missing"]


def test_exit_codes_are_compared(tmp_path: Path) -> None:
    assert differences(tmp_path, told(*CALLS), told(*CALLS, end="SIGKILL")) == ["exit"]


def test_names_that_were_made_up_stand_for_each_other(tmp_path: Path) -> None:
    def run(name: str) -> str:
        start = '{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{}}'
        status = f'{{"jsonrpc":"2.0","id":2,"method":"run.status","params":{{"runId":"{name}"}}}}'
        return told(("in", start), ("out", answer(1, f'{{"runId":"{name}"}}')), ("in", status))

    assert differences(tmp_path, run("r-1"), run("r-2"), protocol="waza") == []


def test_what_is_ignored_and_masked_may_differ(tmp_path: Path) -> None:
    texts = ('{"a":1,"m":"3 ms"}', '{"a":2,"m":"5 ms"}')
    one, other = (told(("in", ask(1)), ("out", answer(1, text))) for text in texts)
    assert differences(tmp_path, one, other) == ["differs /result/a", "differs /result/m"]
    assert differences(tmp_path, one, other, ignore=["/result/a"], mask=["[0-9]+ ms"]) == []


def test_other_protocols_are_not_compared(tmp_path: Path) -> None:
    one = cassette(tmp_path / "a.yaml", told(*CALLS))
    with pytest.raises(CassetteError, match=r"b.yaml:1: its protocol is jsonrpc, and that of .*a.yaml is gevals"):
        diff(one, cassette(tmp_path / "b.yaml", told(*CALLS), protocol="jsonrpc"))


def test_the_command_tells_both_places_and_no_secret(tmp_path: Path) -> None:
    cassette(tmp_path / "a.yaml", told(("in", ask(1)), ("out", answer(1, '"old hunter22secret"'))), protocol="jsonrpc")
    cassette(tmp_path / "b.yaml", told(("in", ask(1)), ("out", answer(1, '"new"'))), protocol="jsonrpc")

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*RECORDER, "diff", *words, "a.yaml", "b.yaml"],
            cwd=tmp_path,
            env=os.environ | {"API_TOKEN": "hunter22secret"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    done = command()
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "differs a.yaml b.yaml: 1 difference",
        "        a.yaml:8: the answer to a (id 1), b.yaml:8: /result",
        '          expected  "old [redacted:env.API_TOKEN#1]"',
        '          found     "new"',
    ]
    report = json.loads(command("--json").stdout)
    assert [(each["kind"], each["line"]) for each in report["problems"]] == [("differs", 8)]
    assert command("--ignore", "/result").returncode == 0
