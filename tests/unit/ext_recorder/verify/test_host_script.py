"""When a recorded message of the host goes out, and what is done when the child does not do its part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import CassetteError, UsageError
from tests.support.scripted_child import CLOSED, Child

if TYPE_CHECKING:
    from pathlib import Path

END = "- {t: 9.1, eof: in}\n- {t: 9.2, exit: 0}"


def ask(number: int, method: str = "a") -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}"}}'


def answer(number: int, result: str = "1") -> str:
    return f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'


def tell(method: str, params: str = "[]") -> str:
    return f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}'


def told(*messages: tuple[str, str]) -> str:
    """Events with a second between them."""
    lines = [f"- {{t: {at}.5, {stream}: '{text}'}}" for at, (stream, text) in enumerate(messages)]
    return "\n".join([*lines, END])


def test_a_message_goes_out_when_the_answers_before_it_have_come(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1)), ("in", ask(2)), ("out", answer(2))))
    assert child.hears() == [ask(1)]
    assert child.says(answer(1)) == [ask(2)]
    assert child.says(answer(2)) == [CLOSED]
    assert child.script.over
    assert child.ends() == []


def test_messages_without_an_answer_between_them_go_out_together(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("in", ask(2)), ("out", answer(1)), ("in", ask(3)), ("out", answer(2)),
                                 ("out", answer(3))))  # fmt: skip
    assert child.hears() == [ask(1), ask(2)]
    assert child.says(answer(2)) == []
    assert child.says(answer(1)) == [ask(3)]
    assert child.says(answer(3)) == [CLOSED]
    assert child.ends() == []


def test_an_id_used_twice_is_two_calls(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1, "1")), ("in", ask(1)), ("out", answer(1, "2"))))
    child.hears()
    assert child.says(answer(1, "1")) == [ask(1)]
    assert child.says(answer(1, "2")) == [CLOSED]
    assert child.ends() == []


def test_requests_of_the_child_are_answered_from_the_cassette_with_their_live_ids(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", ask(70, "roots")), ("in", answer(70, '"x"')),
                                 ("out", answer(1))))  # fmt: skip
    assert child.hears() == [ask(1)]
    assert child.says(ask(5, "roots")) == [answer(5, '"x"')]
    assert child.says(answer(1)) == [CLOSED]
    assert child.ends() == []


def test_a_request_that_was_never_recorded_is_refused_at_once(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1))))
    child.hears()
    (refusal,) = child.says(ask(5, "roots"))
    assert '"id":5,"error"' in refusal
    assert child.says(answer(1)) == [CLOSED]
    (problem,) = child.ends()
    assert problem.kind == "unexpected"
    assert "the request roots (id 5): nothing like it is recorded" in problem.text


def test_a_request_that_comes_before_its_turn_is_answered_at_its_turn(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1)), ("in", ask(2)), ("out", ask(7, "roots")),
                                 ("in", answer(7)), ("out", answer(2))))  # fmt: skip
    child.hears()
    assert child.says(ask(7, "roots")) == []
    assert child.says(answer(1)) == [ask(2), answer(7)]
    assert child.says(answer(2)) == [CLOSED]
    assert child.kinds() == ["order"]


def test_an_answer_to_a_request_that_the_child_does_not_make_is_not_sent(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", ask(7, "roots")), ("in", answer(7)), ("out", answer(1))))
    child.hears()
    assert child.says(answer(1)) == []
    assert child.waits() == [CLOSED]
    assert child.kinds() == ["missing"]


def test_a_notification_that_something_later_has_overtaken_is_not_waited_for(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", tell("log")), ("out", answer(1)), ("in", ask(2)),
                                 ("out", answer(2))))  # fmt: skip
    child.hears()
    assert child.says(answer(1)) == [ask(2)]
    child.says(answer(2))
    (problem,) = child.ends()
    assert problem.kind == "missing"
    assert "c.yaml:7: the notification log: it did not come" in problem.text


def test_a_late_notification_is_told_as_one_that_is_out_of_order(tmp_path: Path) -> None:
    events = told(("in", ask(1)), ("out", tell("log")), ("out", answer(1)), ("in", ask(2)), ("out", answer(2)))
    child = Child(tmp_path, events)
    child.hears()
    child.says(answer(1), tell("log"), answer(2))
    (problem,) = child.ends()
    assert problem.kind == "order"
    assert (
        "came after the answer to a (id 1), recorded in the other order (lines 7 and 8; --order any accepts any order)"
        in problem.text
    )
    relaxed = Child(tmp_path, events, in_order=False)
    relaxed.hears()
    relaxed.says(answer(1), tell("log"), answer(2))
    assert relaxed.ends() == []


def test_overlapping_calls_may_be_answered_in_any_order(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("in", ask(2)), ("out", answer(2)), ("out", answer(1))))
    child.hears()
    child.says(answer(1), answer(2))
    assert child.ends() == []


def test_the_end_of_the_input_and_signals_keep_their_places(tmp_path: Path) -> None:
    child = Child(
        tmp_path,
        f"- {{t: 0, in: '{ask(1)}'}}\n- {{t: 1, out: '{answer(1)}'}}\n- {{t: 2, signal: SIGTERM}}\n"
        "- {t: 3, out: bye}\n- {t: 4, eof: in}\n- {t: 5, exit: 7}",
        protocol="raw",
    )
    assert child.hears() == [ask(1)]
    assert child.says(answer(1)) == ["SIGTERM"]
    assert child.says("bye") == [CLOSED]
    assert child.script.exit == 7
    assert child.ends() == []


def test_a_child_that_ends_by_itself_keeps_its_input_open(tmp_path: Path) -> None:
    child = Child(tmp_path, f"- {{t: 0, in: '{ask(1)}'}}\n- {{t: 1, out: '{answer(1)}'}}\n- {{t: 2, exit: 0}}")
    child.hears()
    assert child.says(answer(1)) == []
    assert child.script.over


def test_without_a_recorded_end_the_input_is_closed_at_the_end(tmp_path: Path) -> None:
    child = Child(tmp_path, f"- {{t: 0, in: '{ask(1)}'}}\n- {{t: 1, out: '{answer(1)}'}}")
    child.hears()
    assert child.says(answer(1)) == [CLOSED]
    assert child.script.exit is None


# --- Patience ---------------------------------------------------------------------------------------------------------


def test_an_answer_may_take_as_long_as_in_the_recording_and_patience_more(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("in", ask(2)), ("out", answer(2))), patience=4.0)
    assert child.script.deadline() == 1.0 + 4.0
    child.now = 3.0
    child.says(tell("noise"))
    assert child.script.deadline() == 1.0 + 4.0  # what nobody waits for is no progress


def test_what_is_awaited_and_comes_is_progress(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", tell("log")), ("out", answer(1))), patience=4.0)
    child.now = 3.0
    child.says(tell("log"))
    assert child.script.deadline() == 3.0 + 1.0 + 4.0


def test_an_answer_that_does_not_come_ends_the_session(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1)), ("in", ask(2)), ("out", answer(2)), ("in", "x")))
    child.hears()
    assert child.waits() == []
    assert child.script.gave_up
    timeout, left = child.ends()
    assert timeout.kind == "timeout"
    assert "c.yaml:7: the answer to a (id 1): it did not come within 11 s (recorded after 1.000 s" in timeout.text
    assert left.text == "c.yaml: 2 messages of the host could not be sent any more"


def test_a_notification_that_does_not_come_costs_its_patience_and_no_more(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1)), ("out", tell("log")), ("in", ask(2)),
                                 ("out", answer(2))))  # fmt: skip
    child.hears()
    assert child.says(answer(1)) == []
    assert child.waits() == [ask(2)]
    child.says(answer(2))
    assert child.kinds() == ["missing"]


def test_a_child_that_ends_its_output_too_early_is_told_at_once(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1)), ("in", ask(2)), ("out", answer(2))))
    child.hears()
    child.says(answer(1))
    (ended,) = child.ends()
    assert ended.kind == "ended"
    assert "c.yaml:9: the answer to a (id 2): the child has ended its output before" in ended.text


def test_a_child_that_ends_its_output_where_it_did_is_as_recorded(tmp_path: Path) -> None:
    child = Child(tmp_path, f"- {{t: 0, in: '{ask(1)}'}}\n- {{t: 1, exit: SIGKILL}}")
    child.hears()
    assert child.ends() == []
    assert child.script.exit == "SIGKILL"


# --- Long sessions ----------------------------------------------------------------------------------------------------


def test_no_more_is_read_than_the_child_takes(tmp_path: Path) -> None:
    big = "x" * 100_000
    child = Child(
        tmp_path, "\n".join(f"- {{t: {at}, in: '{big}{at}'}}" for at in range(50)) + "\n" + END, protocol="raw"
    )
    assert sum(len(each) for each in child.script.outbox if isinstance(each, bytes)) < 1_300_000
    assert len(child.hears()) == 51


def test_a_long_stream_of_the_child_is_compared_as_it_comes(tmp_path: Path) -> None:
    count = 5_000
    events = [("in", ask(1)), *(("out", tell("log", f"[{at}]")) for at in range(count)), ("out", answer(1))]
    child = Child(tmp_path, told(*events))
    child.hears()
    for at in range(count):
        child.says(tell("log", f"[{at}]" if at != 2_500 else "[-1]"))
    assert child.says(answer(1)) == [CLOSED]
    (problem,) = child.ends()
    assert problem.data["expected"] == 2_500


def test_a_second_connection_is_no_session_on_stdio(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"c\.yaml:6: a session over sockets"):
        Child(tmp_path, "- {t: 0, conn: 2, in: 'x'}\n" + END)


def test_a_broken_line_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match=r"c\.yaml:8: not YAML"):
        Child(tmp_path, told(("in", ask(1)), ("out", answer(1)), ("in", "x'y"))).says(answer(1))
