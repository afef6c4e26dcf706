"""Replay in any order: which thread of the recording a message takes, and what comes with it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.replay.replay import Options
from tests.support.player_host import END, Host, cassette, message_of

if TYPE_CHECKING:
    from pathlib import Path

ANY = Options(order="any")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.yaml"


def call(id: object, method: str) -> str:
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}'


def answer(id: object, result: object) -> str:
    return f'{{"jsonrpc":"2.0","id":{id},"result":{result}}}'


def said(*events: tuple[str, str]) -> str:
    return "".join(f"- {{t: 0.{at}, {kind}: '{text}'}}\n" for at, (kind, text) in enumerate(events))


def test_calls_may_come_in_another_order(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("out", answer(1, 1)), ("in", call(2, "b")), ("out", answer(2, 2)), ("in", call(3, "c")),
        ("out", answer(3, 3)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(7, "c")) == [answer(7, 3)]
        assert host.say(call(7, "a")) == [answer(7, 1)]
        assert host.say(call('"x"', "b")) == [answer('"x"', 2)]
        host.close()
        assert host.status == 0


def test_what_was_said_on_the_way_to_an_answer_comes_with_it(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("out", '{"method":"log","params":"a1"}'), ("err", "a"), ("out", answer(1, 1)),
        ("out", '{"method":"log","params":"a2"}'),
        ("in", call(2, "b")), ("out", '{"method":"log","params":"b"}'), ("out", answer(2, 2)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(2, "b")) == ['{"method":"log","params":"b"}', answer(2, 2)]
        assert host.err == ""
        assert host.say(call(1, "a")) == [
            '{"method":"log","params":"a1"}',
            answer(1, 1),
            '{"method":"log","params":"a2"}',
        ]
        assert host.err == "a\n"


def test_an_answer_depends_on_its_own_request_alone(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("in", call(2, "b")), ("in", call(3, "c")),
        ("out", answer(2, 2)), ("out", answer(3, 3)), ("out", answer(1, 1)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(1, "a")) == [answer(1, 1)]
        assert host.say(call(3, "c")) == [answer(3, 3)]
        assert host.say(call(2, "b")) == [answer(2, 2)]


def test_an_answer_that_only_bytes_can_hold_belongs_to_its_request_too(path: Path) -> None:
    crlf = [base64.b64encode(f"{answer(id, id)}\r\n".encode()).decode() for id in (2, 1)]
    events = said(("in", call(1, "a")), ("in", call(2, "b"))) + "".join(
        f"- {{t: 1, out: {{raw: '{each}'}}}}\n" for each in crlf
    )
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(8, "a")) == [answer(8, 1)]
        assert host.say(call(9, "b")) == [answer(9, 2)]


def test_a_request_asked_again_gets_its_answers_in_the_recorded_order_and_then_none(path: Path) -> None:
    events = said(*[each for n in (1, 2, 3) for each in (("in", call(n, "read")), ("out", answer(n, n)))])
    with Host(cassette(path, events + END), ANY) as host:
        assert [host.say(call(0, "read"))[0] for _ in range(3)] == [answer(0, n) for n in (1, 2, 3)]
        assert "used up: it is recorded 3 times" in message_of(host.say(call(0, "read"))[0])


def test_the_childs_own_request_is_answered_within_its_thread(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("out", call(1, "ask a")), ("in", answer(1, '"ya"')), ("out", answer(1, 1)),
        ("in", call(2, "b")), ("out", call(2, "ask b")), ("in", answer(2, '"yb"')), ("out", '{"method":"log"}'),
        ("out", answer(2, 2)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(5, "b")) == [call(2, "ask b")]
        assert host.say(call(6, "a")) == [call(1, "ask a")]
        assert host.say(answer(1, '"ya"')) == [answer(6, 1)]
        assert host.say(answer(2, '"yb"')) == ['{"method":"log"}', answer(5, 2)]
        host.close()
        assert host.status == 0


def test_a_call_that_was_answered_before_the_childs_question_was_has_not_asked_it(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("in", call(2, "b")), ("out", call(7, "ask")), ("out", answer(2, 2)),
        ("in", answer(7, 7)), ("out", answer(1, 1)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(5, "b")) == [answer(5, 2)]
        assert host.say(call(6, "a")) == [call(7, "ask")]
        assert host.say(answer(7, 7)) == [answer(6, 1)]
        host.close()
        assert (host.status, host.err) == (0, "")


def test_a_question_belongs_to_the_one_call_that_is_open_whatever_came_last(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("in", call(2, "b")), ("out", answer(2, 2)), ("out", call(7, "ask")),
        ("in", answer(7, 7)), ("out", answer(1, 1)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(6, "a")) == [call(7, "ask")]
        assert host.say(answer(7, 7)) == [answer(6, 1)]
        assert host.say(call(5, "b")) == [answer(5, 2)]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_calls_of_which_either_may_have_asked_play_as_one_from_question_to_answer(
    path: Path, order: tuple[str, str]
) -> None:
    events = said(
        ("in", call(1, "a")), ("in", call(2, "b")), ("out", call(7, "ask")), ("in", answer(7, 7)),
        ("out", answer(2, 2)), ("out", '{"method":"log"}'), ("out", answer(1, 1)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(1, order[0])) == []
        assert host.say(call(2, order[1])) == [call(7, "ask")]
        ids = {method: id for id, method in enumerate(order, 1)}
        assert host.say(answer(7, 7)) == [answer(ids["b"], 2), '{"method":"log"}', answer(ids["a"], 1)]
        host.close()
        assert (host.status, host.err) == (0, "")


def test_a_call_that_waits_in_vain_for_another_is_told_with_what_it_waits_for(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("in", call(2, "b")), ("out", call(7, "ask")), ("in", answer(7, 7)),
        ("out", answer(2, 2)), ("out", answer(1, 1)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(1, "a")) == []
        host.close()
        assert f"{path}:7: request a (id 1): what follows waits for {path}:8: request b (id 2)\n" in host.err
        assert host.status == 0


def test_two_questions_at_once_are_answered_in_any_order(path: Path) -> None:
    events = said(
        ("in", call(1, "a")), ("in", call(2, "b")), ("out", call(7, "ask a")), ("out", call(8, "ask b")),
        ("in", answer(7, 7)), ("in", answer(8, 8)), ("out", answer(1, 1)), ("out", answer(2, 2)),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(1, "a"), call(2, "b")) == [call(7, "ask a"), call(8, "ask b")]
        assert host.say(answer(8, 8)) == []
        assert host.say(answer(7, 7)) == [answer(1, 1), answer(2, 2)]
        host.close()
        assert (host.status, host.err) == (0, "")


CANCEL = '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}'
CANCELLED = '{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}'


def test_an_error_that_came_of_a_cancellation_waits_for_it(path: Path) -> None:
    events = said(("in", call(1, "a")), ("out", '{"method":"log"}'), ("in", CANCEL), ("out", CANCELLED))
    with Host(cassette(path, events + END, protocol="jsonrpc"), ANY) as host:
        assert host.say(call(1, "a")) == ['{"method":"log"}']
        assert host.say(CANCEL) == [CANCELLED]


def test_a_result_that_came_in_spite_of_a_cancellation_does_not_wait_for_one(path: Path) -> None:
    events = said(("in", call(1, "a")), ("in", CANCEL), ("out", answer(1, 1)))
    with Host(cassette(path, events + END, protocol="jsonrpc"), ANY) as host:
        assert host.say(call(1, "a")) == [answer(1, 1)]


def test_what_the_child_says_first_comes_first_and_its_end_with_the_end_of_the_input(path: Path) -> None:
    events = (
        said(("out", "banner"), ("err", "starting"), ("in", "a"), ("out", "A"))
        + """
        - {t: 1, eof: in}
        - {t: 2, out: 'bye'}
        - {t: 3, exit: 4}
        """
    )
    with Host(cassette(path, events, protocol="raw"), ANY) as host:
        assert host.greeting == b"banner\n"
        assert host.err == "starting\n"
        assert host.say("a") == ["A"]
        assert host.close() == ["bye"]
        assert host.status == 4


def test_a_one_shot_answer_after_the_end_of_the_input_still_belongs_to_its_request(path: Path) -> None:
    events = said(("in", call(1, "a"))) + "- {t: 1, eof: in}\n" + said(("out", answer(1, 1))) + "- {t: 3, exit: 0}"
    with Host(cassette(path, events), ANY) as host:
        assert host.say(call(9, "a")) == [answer(9, 1)]
        host.close()
        assert host.status == 0


def test_a_crash_comes_with_the_call_that_it_came_with(path: Path) -> None:
    events = said(("in", call(1, "a")), ("out", answer(1, 1)), ("in", call(2, "b"))) + "- {t: 3, exit: SIGABRT}"
    with Host(cassette(path, events), ANY) as host:
        host.say(call(1, "a"))
        assert host.status is None
        assert host.say(call(2, "b")) == []
        assert host.status == "SIGABRT"


def test_the_child_ends_after_shutdown_without_the_end_of_the_input(path: Path) -> None:
    events = said(("in", call(1, "a")), ("out", answer(1, 1)), ("in", call(2, "shutdown")), ("out", answer(2, "{}")))
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(1, "shutdown")) == [answer(1, "{}")]
        assert host.status == 0


def test_a_signal_brings_what_came_of_it(path: Path) -> None:
    events = said(("in", "a"), ("out", "A")) + "- {t: 1, signal: SIGINT}\n- {t: 2, err: 'ouch'}\n- {t: 3, exit: 130}"
    with Host(cassette(path, events, protocol="raw"), ANY) as host:
        assert host.say("a") == ["A"]
        host.signal("SIGINT")
        assert host.err == "ouch\n"
        assert host.status == 130


def test_each_working_directory_finds_its_own_recorded_one(path: Path) -> None:
    def run(id: int, folder: str, step: str) -> str:
        return (
            f'{{"jsonrpc":"2.0","id":{id},"method":"execute",'
            f'"params":{{"args":{{"f":"{folder}/{step}"}},"context":{{"workdir":"{folder}"}}}}}}'
        )

    events = said(
        ("in", run(1, "/tmp/workdir", "one")), ("out", answer(1, '"in /tmp/workdir"')),
        ("in", run(2, "/tmp/workdir-2", "two")), ("out", answer(2, '"in /tmp/workdir-2"')),
        ("in", run(3, "/tmp/workdir", "three")), ("out", answer(3, '"in /tmp/workdir"')),
    )  # fmt: skip
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(run(1, "/w/b", "two")) == [answer(1, '"in /w/b"')]
        assert host.say(run(2, "/w/a", "three")) == [answer(2, '"in /w/a"')]
        assert host.say(run(3, "/w/a", "one")) == [answer(3, '"in /w/a"')]
        assert host.err == ""


def test_a_request_in_another_spelling_and_with_another_secret_is_found(path: Path) -> None:
    events = said(
        ("in", '{"jsonrpc":"2.0","id":1,"method":"a","params":{"n":1,"token":"[redacted:key.token#3]"}}'),
        ("out", answer(1, 1)),
    )
    live = '{"method":"a","params":{"token":"s3cr3t-of-today","n":1.0},"jsonrpc":"2.0","id":1}'
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(live) == [answer(1, 1)]


def test_junk_of_the_host_has_a_thread_of_its_own(path: Path) -> None:
    zeros = base64.b64encode(b"\0\0\n").decode()
    junk = f"- {{t: 1, in: {{raw: '{zeros}'}}}}\n- {{t: 1, out: 'pardon?'}}\n"
    events = junk + said(("in", call(1, "a")), ("out", answer(1, 1)))
    with Host(cassette(path, events + END), ANY) as host:
        assert host.say(call(1, "a")) == [answer(1, 1)]
        assert host.write(b"\0\0\n\n") == b"pardon?\n"
        assert host.write(b"\0\0\n") == b""
        host.close()
        assert host.status == 3


def test_a_line_with_a_secret_is_found_by_what_it_would_be_in_a_cassette(path: Path) -> None:
    events = said(("in", "login [redacted:env.OLD_TOKEN#7]"), ("out", "welcome"))
    with Host(cassette(path, events + END, protocol="raw"), ANY, {"NEW_TOKEN": "hunter2-hunter2"}) as host:
        assert host.say("login hunter2-hunter2") == ["welcome"]


def test_frames_are_found_in_any_framing(path: Path) -> None:
    events = said(("in", call(1, "a")), ("out", answer(1, 1)), ("in", call(2, "b")), ("out", answer(2, 2)))
    with Host(cassette(path, events + END, framing="uint32"), ANY) as host:
        live, reply = call(5, "b").encode(), answer(5, 2).encode()
        assert host.write(len(live).to_bytes(4, "big") + live) == len(reply).to_bytes(4, "big") + reply


def test_lines_without_any_protocol_are_found_by_their_text(path: Path) -> None:
    events = said(("in", "a"), ("out", "A"), ("in", "b"), ("out", "B1"), ("out", "B2"), ("in", "a"), ("out", "A again"))
    with Host(cassette(path, events + END, protocol="raw"), ANY) as host:
        assert host.say("b") == ["B1", "B2"]
        assert host.say("a", "a") == ["A", "A again"]


def test_a_session_over_sockets_is_refused_on_stdio(path: Path) -> None:
    with pytest.raises(UsageError, match=r"a session over sockets.*--listen"):
        Host(cassette(path, "- {t: 1, conn: 2, open: in}\n" + END), ANY)


def test_an_order_that_there_is_not_is_refused_with_those_that_there_are(path: Path) -> None:
    with pytest.raises(UsageError, match="strict, any"):
        Host(cassette(path, END), Options(order="random"))
