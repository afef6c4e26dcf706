"""A part of a session, which still plays."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.tools.trim import Part, parse_calls, trim
from tests.support.player_host import Host, cassette
from tests.support.recorder_process import events, marks, messages
from tests.support.recorder_tools import call

if TYPE_CHECKING:
    from pathlib import Path

INITIALIZE = '{"jsonrpc":"2.0","id":0,"method":"initialize"}'
INITIALIZED = '{"jsonrpc":"2.0","method":"initialized"}'
SHUTDOWN = '{"jsonrpc":"2.0","id":9,"method":"shutdown"}'


def ask(number: int, method: str = "a") -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}"}}'


def answer(number: int, result: str = "1") -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'


def log(text: str) -> str:
    return f'{{"jsonrpc":"2.0","method":"log","params":"{text}"}}'


SESSION = f"""
- {{t: 0.1, in: '{INITIALIZE}'}}
- {{t: 0.2, out: '{answer(0)}'}}
- {{t: 0.3, in: '{INITIALIZED}'}}
- {{t: 1.0, in: '{ask(1)}'}}
- {{t: 1.1, out: '{log("one")}'}}
- {{t: 2.0, in: '{ask(2, "b")}'}}
- {{t: 2.1, out: '{ask(70, "roots")}'}}
- {{t: 2.2, out: '{answer(1)}'}}
- {{t: 2.3, in: '{answer(70)}'}}
- {{t: 2.4, err: 'about b'}}
- {{t: 2.5, out: '{answer(2)}'}}
- {{t: 3.0, in: '{ask(3)}'}}
- {{t: 3.1, out: '{log("three")}'}}
- {{t: 3.2, out: '{answer(3)}'}}
- {{t: 8.0, in: '{SHUTDOWN}'}}
- {{t: 8.1, out: '{answer(9)}'}}
- {{t: 8.2, exit: 0}}
"""


def trimmed(path: Path, part: Part, session: str = SESSION, **header: str) -> Path:
    source = cassette(path / "c.yaml", session, **header)  # type: ignore[arg-type]
    trim(source, path / "out.yaml", part)
    return path / "out.yaml"


def heard(path: Path) -> list[str]:
    return [payload.decode() for payload in messages(path, "in")]


def said(path: Path) -> list[str]:
    return [payload.decode() for payload in messages(path, "out")]


FRAME = [INITIALIZE, INITIALIZED]


def test_nothing_given_keeps_all(tmp_path: Path) -> None:
    out = trimmed(tmp_path, Part())
    assert events(out) == events(tmp_path / "c.yaml")


def test_a_call_that_goes_takes_all_that_belongs_to_it_along(tmp_path: Path) -> None:
    out = trimmed(tmp_path, Part(without=["b"]))
    assert heard(out) == [*FRAME, ask(1), ask(3), SHUTDOWN]
    assert said(out) == [answer(0), log("one"), answer(1), log("three"), answer(3), answer(9)]
    assert messages(out, "err") == []


def test_the_answer_of_a_call_that_stays_stays_wherever_it_stands(tmp_path: Path) -> None:
    out = trimmed(tmp_path, Part(before=1.5))
    assert heard(out) == [*FRAME, ask(1), SHUTDOWN]
    assert said(out) == [answer(0), log("one"), answer(1), answer(9)]


def test_the_beginning_and_the_end_always_stay(tmp_path: Path) -> None:
    out = trimmed(tmp_path, Part(after=100.0))
    assert heard(out) == [*FRAME, SHUTDOWN]
    assert marks(out, "exit") == [("exit", 0)]


def test_calls_are_chosen_by_their_numbers(tmp_path: Path) -> None:
    assert heard(trimmed(tmp_path, Part(calls=((4, 4),)))) == [*FRAME, ask(3), SHUTDOWN]
    assert parse_calls("3-7,9,11-") == ((3, 7), (9, 9), (11, 10**9))
    assert parse_calls("") == ()
    for text in ("x", "3-x", "-3", "1.5", "7-3"):
        with pytest.raises(UsageError, match="--calls"):
            parse_calls(text)


def test_notifications_of_the_child_are_cut_away_by_their_method(tmp_path: Path) -> None:
    assert said(trimmed(tmp_path, Part(without=["log"]))) == [
        answer(0), ask(70, "roots"), answer(1), answer(2), answer(3), answer(9),
    ]  # fmt: skip


def test_what_the_child_requests_in_a_call_that_stays_stays_too(tmp_path: Path) -> None:
    kept = trimmed(tmp_path, Part(only=["b"]))
    assert said(kept) == [answer(0), ask(70, "roots"), answer(2), answer(9)]
    assert heard(kept) == [*FRAME, ask(2, "b"), answer(70), SHUTDOWN]
    kept.unlink()
    assert said(trimmed(tmp_path, Part(only=["b"], without=["roots"]))) == [answer(0), answer(2), answer(9)]


def test_what_is_cut_away_may_be_said_by_what_a_call_is_about(tmp_path: Path) -> None:
    def execute(number: int, operation: str) -> str:
        return f'{{"jsonrpc":"2.0","id":{number},"method":"execute","params":{{"operation":"{operation}"}}}}'

    session = f"""
    - {{t: 0, in: '{INITIALIZE}'}}
    - {{t: 1, in: '{execute(1, "run")}'}}
    - {{t: 2, in: '{execute(2, "wait")}'}}
    - {{t: 3, exit: 0}}
    """
    assert heard(trimmed(tmp_path, Part(without=["execute run"]), session)) == [INITIALIZE, execute(2, "wait")]


def test_of_raw_bytes_the_messages_that_stay_are_kept(tmp_path: Path) -> None:
    raw = base64.b64encode(f"{answer(1)}\r\n{answer(2)}\r\n".encode()).decode()
    session = f"""
    - {{t: 0, in: '{INITIALIZE}'}}
    - {{t: 1, in: '{ask(1)}'}}
    - {{t: 2, in: '{ask(2, "b")}'}}
    - {{t: 3, out: {{raw: '{raw}'}}}}
    - {{t: 4, exit: 0}}
    """
    assert said(trimmed(tmp_path, Part(only=["b"]), session)) == [f"{answer(2)}\r\n"]


@pytest.mark.parametrize("part", [Part(without=["b"]), Part(before=1.5), Part(calls=((3, 4),))])
def test_what_is_left_plays(tmp_path: Path, part: Part) -> None:
    out = trimmed(tmp_path, part)
    with Host(out) as host:
        for message in heard(out):
            host.say(message)
        assert host.status == 0
        assert host.err == "about b\n" if b"about b" in out.read_bytes() else host.err == ""


def test_a_file_that_is_there_gives_way_only_when_it_is_said(tmp_path: Path) -> None:
    source = cassette(tmp_path / "c.yaml", SESSION)
    before = source.read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        trim(source, source, Part(without=["b"]))
    assert source.read_bytes() == before
    assert trim(source, source, Part(without=["b"]), replace=True) == (11, 15)
    assert heard(source) == [*FRAME, ask(1), ask(3), SHUTDOWN]
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


@pytest.mark.parametrize(
    ("part", "says"),
    [
        (Part(calls=parse_calls("2,99")), "--calls 99: the host's requests in {path} are 1 to 5"),
        (Part(only=["bb"]), "--only bb: no such method in {path}; there are initialize, "),
        (Part(without=["lgo"]), "--without lgo: no such method in {path}; there are initialize, "),
    ],
)
def test_what_the_session_does_not_have_is_told_and_nothing_is_written(part: Part, says: str, tmp_path: Path) -> None:
    source = cassette(tmp_path / "c.yaml", SESSION)
    with pytest.raises(UsageError) as told:
        trim(source, tmp_path / "out.yaml", part)
    assert str(told.value).startswith(says.format(path=source))
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_a_broken_cassette_leaves_nothing_behind(tmp_path: Path) -> None:
    source = cassette(tmp_path / "c.yaml", SESSION + "- {t: 9, in: 'x'y'}")
    with pytest.raises(CassetteError, match="not YAML"):
        trim(source, tmp_path / "out.yaml", Part())
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_the_command_says_what_was_kept(tmp_path: Path) -> None:
    cassette(tmp_path / "c.yaml", SESSION)
    done = call("trim", "--before", "1.5", "--without", "log", "-o", "out.yaml", "c.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "out.yaml: 7 of 15 messages kept\n", "")
    wrong = {
        "-o FILE": ["c.yaml"],
        "--after x: expected seconds": ["--after", "x", "-o", "y", "c.yaml"],
        "expected --after to be less than --before": ["--after", "2", "--before", "1.5", "-o", "y", "c.yaml"],
    }
    for says, words in wrong.items():
        done = call("trim", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert says in done.stderr
