"""Several sessions as one, in which can be asked what was asked in any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.replay.replay import Options
from ext_recorder.tools.merge import merge
from tests.support.player_host import Host, cassette
from tests.support.recorder_process import events, marks, messages
from tests.unit.ext_recorder.tools.test_trim import INITIALIZE, INITIALIZED, answer, ask, log

if TYPE_CHECKING:
    from pathlib import Path


def session(*messages: tuple[str, str], end: str = "shutdown") -> str:
    """A session with a handshake and an end around some messages."""
    begin = [("in", INITIALIZE), ("out", answer(0)), ("in", INITIALIZED)]
    final = [("in", ask(9, end)), ("out", answer(9))]
    lines = [f"- {{t: {at}.5, {stream}: '{text}'}}" for at, (stream, text) in enumerate([*begin, *messages, *final])]
    return "\n".join([*lines, "- {t: 90, eof: in}", "- {t: 91, exit: 0}"])


def merged(path: Path, *sessions: str, **header: str) -> Path:
    paths = [cassette(path / f"{at}.yaml", each, **header) for at, each in enumerate(sessions)]  # type: ignore[arg-type]
    merge(paths, path / "all.yaml")
    return path / "all.yaml"


ONE = session(("in", ask(1, "a")), ("out", log("a")), ("out", answer(1, '"of a"')))
TWO = session(("in", ask(1, "b")), ("out", answer(1, '"of b"')))


def test_the_sessions_have_one_beginning_and_one_end(tmp_path: Path) -> None:
    path = merged(tmp_path, ONE, TWO)
    heard = [payload.decode() for payload in messages(path, "in")]
    assert heard == [INITIALIZE, INITIALIZED, ask(1, "a"), ask(1, "b"), ask(9, "shutdown")]
    assert marks(path, "eof", "exit") == [("eof", "in"), ("exit", 0)]
    times = [event.time for event in events(path)]
    assert times == sorted(times)


def test_a_host_plays_all_of_them_in_their_order(tmp_path: Path) -> None:
    with Host(merged(tmp_path, ONE, TWO)) as host:
        assert host.say(INITIALIZE, INITIALIZED) == [answer(0)]
        assert host.say(ask(1, "a")) == [log("a"), answer(1, '"of a"')]
        assert host.say(ask(2, "b")) == [answer(2, '"of b"')]
        assert host.say(ask(3, "shutdown")) == [answer(3)]
        host.close()
        assert host.status == 0


def test_a_host_plays_what_it_wants_of_them_in_its_own_order(tmp_path: Path) -> None:
    with Host(merged(tmp_path, ONE, TWO, session(("in", ask(4, "c")))), Options(order="any")) as host:
        assert host.say(INITIALIZE) == [answer(0)]
        assert host.say(ask(1, "b")) == [answer(1, '"of b"')]
        assert host.say(ask(1, "a")) == [log("a"), answer(1, '"of a"')]
        assert host.say(ask(1, "shutdown")) == [answer(1)]
        host.close()
        assert host.status == 0


def test_another_handshake_stays(tmp_path: Path) -> None:
    other = TWO.replace('"method":"initialize"', '"method":"initialize","params":{"config":{"x":1}}')
    path = merged(tmp_path, ONE, other)
    assert sum(b'"initialize"' in payload for payload in messages(path, "in")) == 2


def test_a_call_without_an_answer_is_left_out_where_its_session_goes_on(tmp_path: Path) -> None:
    broken = session(("in", ask(1, "a")), ("out", answer(1)), ("in", ask(5, "crash")))
    other = session(("in", ask(5, "b")), ("out", answer(5, '"of b"')))
    path = merged(tmp_path, broken, other)
    assert ask(5, "crash").encode() not in messages(path, "in")
    merge([tmp_path / "1.yaml", tmp_path / "0.yaml"], path, replace=True)
    assert ask(5, "crash").encode() in messages(path, "in")


def test_numbers_of_placeholders_go_on(tmp_path: Path) -> None:
    call = (("in", ask(1)), ("out", answer(1)))
    one = session(*call, ("out", log("[redacted:bearer#1] [redacted:bearer#2]")))
    path = merged(tmp_path, one, one, one)
    texts = [payload.decode() for payload in messages(path, "out") if b"redacted" in payload]
    assert texts == [log(f"[redacted:bearer#{number}] [redacted:bearer#{number + 1}]") for number in (1, 3, 5)]


def test_the_header_is_that_of_the_first_with_the_bindings_of_all(tmp_path: Path) -> None:
    one = cassette(tmp_path / "a.yaml", ONE, bindings={"workdir": "/tmp/workdir"})
    two = cassette(tmp_path / "b.yaml", TWO, bindings={"data": "/tmp/data", "workdir": "/tmp/workdir"})
    merge([one, two], tmp_path / "all.yaml")
    with Reader(tmp_path / "all.yaml") as reader:
        assert reader.header.bindings == {"workdir": "/tmp/workdir", "data": "/tmp/data"}


def refused(path: Path) -> list[tuple[list[Path], str]]:
    one = cassette(path / "one.yaml", ONE)
    return [
        ([one, cassette(path / "p.yaml", TWO, protocol="jsonrpc")], "its protocol is jsonrpc"),
        ([one, cassette(path / "f.yaml", TWO, framing="uint32")], "its framing is uint32"),
        (
            [one, cassette(path / "b.yaml", TWO, bindings={"workdir": "/tmp/other"})],
            "binding workdir is /tmp/other",
        ),
        ([one, cassette(path / "s.yaml", "- {t: 0, conn: 2, in: 'x'}\n" + TWO)], "a session over sockets"),
        ([one, cassette(path / "x.yaml", TWO + "\n- {t: 99, in: 'x'y'}")], "not YAML"),
    ]


@pytest.mark.parametrize("case", range(5))
def test_what_does_not_go_together_is_refused_and_nothing_is_written(tmp_path: Path, case: int) -> None:
    paths, says = refused(tmp_path)[case]
    there = set(tmp_path.iterdir())
    with pytest.raises((UsageError, CassetteError), match=says):
        merge(paths, tmp_path / "all.yaml")
    assert set(tmp_path.iterdir()) == there


def test_one_of_them_may_become_all_of_them(tmp_path: Path) -> None:
    one, two = cassette(tmp_path / "a.yaml", ONE), cassette(tmp_path / "b.yaml", TWO)
    with pytest.raises(UsageError, match="exists already"):
        merge([one, two], one)
    merge([one, two], one, replace=True)
    assert ask(1, "b").encode() in messages(one, "in")


def test_a_session_with_changed_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="a session with changed files cannot be merged"):
        merged(tmp_path, ONE, TWO.replace("- {t: 90, eof: in}", "- {t: 89, files: 1}\n- {t: 90, eof: in}"))
