"""What counts as a difference between a recorded message of the child and a live one, and how it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from tests.support.scripted_child import Child
from tests.unit.ext_recorder.verify.test_host_script import answer, ask, tell, told

if TYPE_CHECKING:
    from pathlib import Path


def differences(path: Path, recorded: str, live: str, **options: object) -> list[tuple[object, object, object]]:
    """Of an answer's result: (pointer, expected, found)."""
    child = Child(path, told(("in", ask(1)), ("out", answer(1, recorded))), **options)  # type: ignore[arg-type]
    child.hears()
    child.says(answer(1, live))
    return [(each.data["pointer"], each.data["expected"], each.data["found"]) for each in child.ends()]


BIG = 12345678901234567890123
SAME = [
    ('{"a":1,"b":[2]}', '{ "b": [2], "a": 1 }'),
    ("1", "1.0"),
    ("100", "1e2"),
    ('"\\u00e4"', '"ä"'),
    ("12345678901234567890123", "12345678901234567890123"),
    ('{"a":1,"a":2}', '{"a":2}'),
    ("[]", "[]"),
]
DIFFERENT = [
    ("1", "2", ("/result", 1, 2)),
    ("1", "true", ("/result", 1, True)),
    ("1", '"1"', ("/result", 1, "1")),
    ("null", '""', ("/result", None, "")),
    (
        "12345678901234567890123",
        "12345678901234567890124",
        ("/result", 12345678901234567890123, 12345678901234567890124),
    ),
    ("12345678901234567890123", "1.2345678901234568e+22", ("/result", 12345678901234567890123, 1.2345678901234568e22)),
    ('{"a":{"b":[1,2]}}', '{"a":{"b":[1,3]}}', ("/result/a/b/1", 2, 3)),
    ('{"a":1}', "{}", ("/result/a", 1, None)),
    ("[1]", "[1,2]", ("/result/1", None, 2)),
    ('{"a/b":1}', '{"a/b":2}', ("/result/a~1b", 1, 2)),
]


@pytest.mark.parametrize(("recorded", "live"), SAME)
def test_values_are_compared_and_not_their_spelling(tmp_path: Path, recorded: str, live: str) -> None:
    assert differences(tmp_path, recorded, live) == []


@pytest.mark.parametrize(("recorded", "live", "found"), DIFFERENT)
def test_a_difference_has_its_pointer_and_both_values(
    tmp_path: Path, recorded: str, live: str, found: tuple[object, object, object]
) -> None:
    assert differences(tmp_path, recorded, live) == [found]


def test_an_error_in_the_place_of_a_result_is_a_difference(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1)), ("out", answer(1))))
    child.hears()
    child.says('{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}')
    assert [each.data["pointer"] for each in child.ends()] == ["/result", "/error"]


def test_a_difference_is_told_with_what_is_around_it(tmp_path: Path) -> None:
    child = Child(tmp_path, told(("in", ask(1, "tools/call")), ("out", answer(1, '{"text":"3 files","more":true}'))))
    child.hears()
    child.says(answer(1, '{"text":"4 files","more":true}'))
    (problem,) = child.ends()
    assert problem.text.splitlines() == [
        "c.yaml:7: the answer to tools/call (id 1): /result/text",
        '  expected  "3 files"',
        '  found     "4 files"',
        '  around    {"text":"4 files","more":true}',
    ]


def test_what_is_ignored_may_differ(tmp_path: Path) -> None:
    recorded, live = '{"a":[{"t":1},{"t":2}],"b":1}', '{"a":[{"t":3},{"t":4}],"b":1}'
    assert differences(tmp_path, recorded, live, ignore=["/result/a/*/t"]) == []
    assert len(differences(tmp_path, recorded, live, ignore=["/result/a/0/t"])) == 1


def test_what_is_masked_may_differ_within_a_text(tmp_path: Path) -> None:
    recorded, live = '{"m":"done after 12ms (pid 7)"}', '{"m":"done after 1.5s (pid 8)"}'
    assert differences(tmp_path, recorded, live, mask=["[0-9.]+m?s", "pid [0-9]+"]) == []
    assert len(differences(tmp_path, recorded, live, mask=["[0-9.]+m?s"])) == 1


@pytest.mark.parametrize("options", [{"ignore": ["result"]}, {"mask": ["("]}])
def test_what_is_no_pointer_and_no_pattern_is_refused(tmp_path: Path, options: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError, match=r"--ignore|--mask"):
        differences(tmp_path, "1", "1", **options)


# --- Which message is which -------------------------------------------------------------------------------------------


def notified(path: Path, recorded: list[str], live: list[str]) -> list[str]:
    """Notifications before one answer: the findings."""
    child = Child(path, told(("in", ask(1)), *(("out", each) for each in recorded), ("out", answer(1))))
    child.hears()
    child.says(*live, answer(1))
    found = [(each.kind, each.data.get("expected"), each.data.get("found")) for each in child.ends()]
    return [" ".join(str(part) for part in parts if part) for parts in found]


def log(*texts: str) -> list[str]:
    return [tell("log", f'["{text}"]') for text in texts]


def test_one_notification_of_many_that_is_missing_is_the_one_that_is_told(tmp_path: Path) -> None:
    assert notified(tmp_path, log("a", "b", "c"), log("b", "c")) == [f"missing {log('a')[0]}"]
    assert notified(tmp_path, log("a", "b", "c"), log("a", "c")) == [f"missing {log('b')[0]}"]


def test_one_that_is_new_is_the_one_that_is_told(tmp_path: Path) -> None:
    assert notified(tmp_path, log("a", "b"), log("a", "x", "b")) == [f"unexpected {log('x')[0]}"]


def test_one_that_is_changed_is_compared_with_the_one_that_it_was(tmp_path: Path) -> None:
    assert notified(tmp_path, log("a", "b", "c"), log("a", "x", "c")) == ["differs b x"]


def test_another_method_is_another_message(tmp_path: Path) -> None:
    found = notified(tmp_path, [tell("log")], [tell("progress")])
    assert [each.split()[0] for each in found] == ["missing", "unexpected"]


def test_two_in_the_other_order_are_told_once(tmp_path: Path) -> None:
    assert [each.split()[0] for each in notified(tmp_path, log("a", "b"), log("b", "a"))] == ["order"]


def test_lines_that_are_no_messages_count_unless_they_are_set_aside(tmp_path: Path) -> None:
    events = told(("in", ask(1)), ("out", "starting at 12:00"), ("out", answer(1)))
    for junk, count in ((True, 1), (False, 0)):
        child = Child(tmp_path, events, junk=junk)
        child.hears()
        child.says("starting at 12:01", answer(1))
        assert len(child.ends()) == count


def test_lines_of_stderr_count_when_they_are_asked_for(tmp_path: Path) -> None:
    events = "- {t: 0, err: 'one'}\n- {t: 1, err: 'two'}\n" + told(("in", ask(1)), ("out", answer(1)))
    for stderr, found in ((False, []), (True, ["stderr", "stderr"])):
        child = Child(tmp_path, events, stderr=stderr)
        child.hears()
        child.script.receive_error(b"one\nzw")
        child.script.receive_error(b"ei\nthree")
        child.script.receive_error(b"")
        child.says(answer(1))
        assert child.kinds() == found


# --- What is another one each time ------------------------------------------------------------------------------------


def test_names_that_the_child_makes_up_stand_for_each_other(tmp_path: Path) -> None:
    start, status = '{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{}}', "run.status"
    events = told(
        ("in", start),
        ("out", answer(1, '{"runId":"aaa","status":"running"}')),
        ("out", tell("eval.progress", '{"runId":"aaa"}')),
        ("in", f'{{"jsonrpc":"2.0","id":2,"method":"{status}","params":{{"runId":"aaa"}}}}'),
        ("out", answer(2, '{"runId":"aaa"}')),
    )
    child = Child(tmp_path, events, protocol="waza")
    child.hears()
    child.says(answer(1, '{"runId":"bbb","status":"running"}'))
    (asked,) = child.says(tell("eval.progress", '{"runId":"bbb"}'))
    assert '"runId":"bbb"' in asked
    child.says(answer(2, '{"runId":"bbb"}'))
    assert child.ends() == []


def test_what_is_about_two_runs_may_come_in_any_order(tmp_path: Path) -> None:
    def ran(number: int, run: str) -> tuple[str, str]:
        return answer(number, f'{{"runId":"{run}"}}'), tell("eval.complete", f'{{"runId":"{run}"}}')

    starts = [f'{{"jsonrpc":"2.0","id":{number},"method":"eval.run","params":{{}}}}' for number in (1, 2)]
    (one, ended), (other, other_ended) = ran(1, "a"), ran(2, "b")
    events = told(*(("in", start) for start in starts), *(("out", each) for each in (one, other, ended, other_ended)))
    orders = {
        (one, ended, other, other_ended): 0,
        (other, other_ended, one, ended): 0,
        (ended, one, other_ended, other): 2,
    }
    for order, count in orders.items():
        child = Child(tmp_path, events, protocol="waza")
        child.hears()
        child.says(*order)
        assert child.kinds() == ["order"] * count


def test_a_name_that_stands_for_two_things_is_a_difference(tmp_path: Path) -> None:
    start = '{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{}}'
    events = told(("in", start), ("out", answer(1, '{"runId":"a"}')), ("out", tell("eval.progress", '{"runId":"a"}')))
    child = Child(tmp_path, events, protocol="waza")
    child.hears()
    child.says(answer(1, '{"runId":"b"}'), tell("eval.progress", '{"runId":"c"}'))
    assert [each.data["found"] for each in child.ends()] == ["c"]


def test_paths_are_those_of_a_fresh_folder_and_compared_by_their_neutral_names(tmp_path: Path) -> None:
    params = '{"operation":"x","context":{"workdir":"/tmp/workdir"}}'
    execute = f'{{"jsonrpc":"2.0","id":1,"method":"execute","params":{params}}}'
    events = told(("in", execute), ("out", answer(1, '{"message":"in /tmp/workdir/a"}')))
    child = Child(tmp_path, events, protocol="gevals", bindings={"workdir": "/tmp/workdir"})
    (sent,) = child.hears()
    assert '"workdir":"/live/workdir1"' in sent
    child.says(answer(1, '{"message":"in /live/workdir1/a"}'))
    assert child.folders == ["workdir"]
    assert child.ends() == []


def test_a_second_folder_of_the_recording_is_a_second_one_here(tmp_path: Path) -> None:
    def execute(number: int, folder: str) -> str:
        params = f'{{"operation":"x","context":{{"workdir":"{folder}"}}}}'
        return f'{{"jsonrpc":"2.0","id":{number},"method":"execute","params":{params}}}'

    events = told(("in", execute(1, "/tmp/workdir")), ("in", execute(2, "/tmp/workdir-2")), ("out", answer(1)),
                  ("out", answer(2)))  # fmt: skip
    child = Child(tmp_path, events, protocol="gevals", bindings={"workdir": "/tmp/workdir"})
    one, two = child.hears()
    assert "/live/workdir1" in one
    assert "/live/workdir2" in two


def test_a_secret_of_this_environment_is_sent_and_never_shown(tmp_path: Path) -> None:
    request = '{"jsonrpc":"2.0","id":1,"method":"login","params":["[redacted:env.API_TOKEN#1]","[redacted:bearer#1]"]}'
    child = Child(
        tmp_path, told(("in", request), ("out", answer(1, '"hello"'))), secrets={"env.API_TOKEN": 'hun"ter22'}
    )
    (sent,) = child.hears()
    assert r'["hun\"ter22","[redacted:bearer#1]"]' in sent
    assert list(child.sender.unknown_secrets) == ["[redacted:bearer#1]"]
    child.says(answer(1, r'"hello hun\"ter22"'))
    (problem,) = child.ends()
    assert "hun" not in problem.text
    assert "[redacted:env.API_TOKEN#1]" in problem.text


def test_secrets_may_have_other_numbers_and_stand_for_each_other_throughout(tmp_path: Path) -> None:
    one, two = "ghp_" + "a1" * 18, "ghp_" + "b2" * 18
    recorded = '["[redacted:github#7]","[redacted:github#7]","[redacted:github#8]"]'
    assert differences(tmp_path, recorded, f'["{one}","{one}","{two}"]') == []
    assert differences(tmp_path, recorded, f'["{one}","{two}","{two}"]') != []
