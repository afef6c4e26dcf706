"""A miss: which of the four it was, how near it came, in what form it is told, and how the replay ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.messages.matcher import Matcher
from ext_recorder.replay.player import EXIT_DIFFERS
from ext_recorder.replay.replay import Options
from tests.support.player_host import END, Host, cassette, error_of, message_of

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.protocols.dialect import ClassifiedMessage

HELLO = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"0.0.1"}}'
RUN = '{"jsonrpc":"2.0","id":2,"method":"execute","params":{"operation":"run","args":{"command":["echo","hi"]}}}'
WAIT = '{"jsonrpc":"2.0","id":3,"method":"execute","params":{"operation":"wait","args":{"port":80}}}'
BYE = '{"jsonrpc":"2.0","id":4,"method":"shutdown","params":{}}'
SESSION = f"""
    - {{t: 1, in: '{HELLO}'}}
    - {{t: 1, out: '{{"jsonrpc":"2.0","id":1,"result":{{}}}}'}}
    - {{t: 2, in: '{RUN}'}}
    - {{t: 2, out: '{{"jsonrpc":"2.0","id":2,"result":{{"success":true}}}}'}}
    - {{t: 3, in: '{WAIT}'}}
    - {{t: 3, out: '{{"jsonrpc":"2.0","id":3,"result":{{"success":false}}}}'}}
    - {{t: 4, in: '{BYE}'}}
    - {{t: 4, out: '{{"jsonrpc":"2.0","id":4,"result":{{}}}}'}}
    {END}
    """


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return cassette(tmp_path / "session.yaml", SESSION)


@pytest.fixture(params=["strict", "any"])
def order(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def line_of(path: Path, text: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


LEGACY = f"""
    - {{t: 1, in: '{HELLO}'}}
    - {{t: 1, out: '{{"jsonrpc":"2.0","id":1,"result":{{}}}}'}}
    {END}
    """
DISCOVER = '{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{}}'


def test_a_newer_mcp_client_is_told_that_the_recorded_server_has_a_handshake(tmp_path: Path, order: str) -> None:
    with Host(cassette(tmp_path / "c.yaml", LEGACY, protocol="mcp"), Options(order=order)) as host:
        (refused,) = host.say(DISCOVER)
        assert json.loads(refused)["id"] == "d"
        assert error_of(refused)["code"] == -32601
        assert json.loads(host.say(HELLO)[0])["result"] == {}
        host.close()
        assert (host.status, host.err) == (0, "")


def test_a_recorded_discovery_that_is_used_up_is_a_miss(tmp_path: Path, order: str) -> None:
    session = LEGACY.replace("initialize", "server/discover")
    with Host(cassette(tmp_path / "c.yaml", session, protocol="mcp"), Options(order=order)) as host:
        host.say(HELLO.replace("initialize", "server/discover"))
        assert error_of(host.say(DISCOVER)[0])["code"] == -32099
        host.close()
        assert host.status == EXIT_DIFFERS


def test_a_method_that_was_never_recorded_is_told_with_those_that_were(path: Path, order: str) -> None:
    with Host(path, Options(order=order)) as host:
        (line,) = host.say('{"jsonrpc":"2.0","id":"x","method":"exekute","params":{}}')

        assert json.loads(line)["id"] == "x"
        assert error_of(line)["code"] == -32099
        assert "never recorded" in message_of(line)
        assert "initialize, execute, shutdown" in message_of(line)
        assert error_of(line)["data"] == {
            "reason": "never-recorded",
            "methods": ["initialize", "execute", "shutdown"],
            "cassette": str(path),
        }


def test_a_request_that_was_played_as_often_as_recorded_is_used_up(path: Path, order: str) -> None:
    with Host(path, Options(order=order)) as host:
        host.say(HELLO, RUN)
        (line,) = host.say(RUN)

        assert f"used up: it is recorded once ({path}:{line_of(path, 'echo')})" in message_of(line)


def test_other_arguments_are_told_with_the_closest_request_and_where_they_differ(path: Path, order: str) -> None:
    with Host(path, Options(order=order)) as host:
        host.say(HELLO)
        (line,) = host.say(RUN.replace('"hi"', "1").replace("[", '["-n",'))

        text = message_of(line)
        assert f"arguments differ from the closest one, {path}:{line_of(path, 'echo')}:" in text
        assert '/params/args/command/0: recorded "echo", now "-n"' in text
        assert '/params/args/command/1: recorded "hi", now "echo"' in text
        assert "/params/args/command/2: recorded nothing, now 1" in text
        assert text.endswith("; record it again (--mode all), or set aside what may differ (--ignore POINTER)")


def test_advice_can_be_copied_into_a_shell(tmp_path: Path, order: str) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"POST /mcp","params":{"x y":{"a/b":1}}}'}
        - {t: 1, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
        """
    with Host(cassette(tmp_path / "c.yaml", events + END, protocol="jsonrpc"), Options(order=order)) as host:
        (other,) = host.say('{"jsonrpc":"2.0","id":1,"method":"POST /mcp","params":{"x y":{"a/b":2}}}')
        assert "(--ignore '/params/x y/a~1b')" in message_of(other)
        same = '{"jsonrpc":"2.0","id":1,"method":"POST /mcp","params":{"x y":{"a/b":1}}}'
        host.say(same)
        (again,) = host.say(same)
        assert "(--repeat 'POST /mcp' plays it again)" in message_of(again)


def test_paths_that_differ_are_bound(tmp_path: Path, order: str) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m","params":{"file":"/home/ann/a.txt"}}'}
        - {t: 1, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
        """
    with Host(cassette(tmp_path / "c.yaml", events + END, protocol="jsonrpc"), Options(order=order)) as host:
        (other,) = host.say('{"jsonrpc":"2.0","id":1,"method":"m","params":{"file":"/srv/my files/a.txt"}}')
        assert "--bind NAME=/home/ann/a.txt, and replay with --bind NAME='/srv/my files/a.txt'" in message_of(other)


def test_the_closest_request_is_the_one_that_differs_least_near_its_root(path: Path) -> None:
    with Host(path) as host:
        (line,) = host.say(WAIT.replace("80", "81"))

        assert f"{path}:{line_of(path, 'port')}" in message_of(line)
        assert "/params/args/port: recorded 80, now 81" in message_of(line)
        assert message_of(line).endswith("or set aside what may differ (--ignore /params/args/port)")


def test_a_recorded_request_before_its_turn_is_told_as_that(path: Path) -> None:
    with Host(path) as host:
        host.say(HELLO)
        (line,) = host.say(WAIT)

        text = message_of(line)
        assert "out of turn" in text
        assert f"{path}:{line_of(path, 'port')}" in text
        assert f"line {line_of(path, 'echo')}" in text
        assert "--order any" in text


def test_a_message_before_something_else_that_the_host_has_to_do_is_told_what_that_is(tmp_path: Path) -> None:
    played = f'- {{t: 1, in: \'{RUN}\'}}\n- {{t: 1, out: \'{{"jsonrpc":"2.0","id":2,"result":1}}\'}}\n'
    events = played + "- {t: 2, signal: SIGUSR1}\n" + played
    with Host(cassette(tmp_path / "again.yaml", events + END)) as host:
        host.say(RUN)
        (line,) = host.say(RUN)
        assert "out of turn" in message_of(line)
        assert "next is its signal SIGUSR1" in message_of(line)
        host.signal("SIGUSR1")
        assert "result" in host.say(RUN)[0]


def test_after_a_miss_the_message_that_was_due_still_is(path: Path) -> None:
    with Host(path) as host:
        host.say(HELLO, WAIT)
        assert host.say(RUN) == ['{"jsonrpc":"2.0","id":2,"result":{"success":true}}']
        assert host.say(WAIT) == ['{"jsonrpc":"2.0","id":3,"result":{"success":false}}']
        host.say(BYE)
        assert host.status == EXIT_DIFFERS
        assert "one message of the host had no match" in host.err
        assert "never played" not in host.err


def test_after_a_miss_a_later_recorded_message_continues_there(path: Path) -> None:
    with Host(path) as host:
        host.say(HELLO)
        (line,) = host.say(RUN.replace('"hi"', '"other"'))
        assert "arguments differ" in message_of(line)
        assert host.say(WAIT) == ['{"jsonrpc":"2.0","id":3,"result":{"success":false}}']
        host.say(BYE)

        assert host.status == EXIT_DIFFERS
        assert "one message of the host had no match" in host.err
        assert "one recorded message of the host was never played:" in host.err
        assert f"  {path}:{line_of(path, 'echo')}: request execute" in host.err


def test_what_was_skipped_is_still_told_as_out_of_turn(path: Path) -> None:
    with Host(path) as host:
        host.say(HELLO, '{"jsonrpc":"2.0","id":9,"method":"nope"}', WAIT)
        (line,) = host.say(RUN)
        assert "out of turn" in message_of(line)


def test_an_open_call_gets_its_recorded_answer_when_its_host_goes_on_elsewhere(tmp_path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"slow"}'}
        - {t: 2, in: '{"jsonrpc":"2.0","id":2,"method":"b"}'}
        - {t: 3, out: '{"jsonrpc":"2.0","id":2,"result":"b"}'}
        - {t: 3, out: '{"jsonrpc":"2.0","id":1,"result":"slow"}'}
        - {t: 3, out: '{"jsonrpc":"2.0","method":"log"}'}
        - {t: 4, in: '{"jsonrpc":"2.0","id":3,"method":"c"}'}
        - {t: 5, out: '{"jsonrpc":"2.0","id":3,"result":"c"}'}
        """
    with Host(cassette(tmp_path / "x.yaml", events + END)) as host:
        assert host.say('{"jsonrpc":"2.0","id":11,"method":"slow"}') == []
        answer, refusal = host.say('{"jsonrpc":"2.0","id":12,"method":"other"}')
        assert "never recorded" in message_of(refusal)
        assert answer == '{"jsonrpc":"2.0","id":11,"result":"slow"}'
        assert host.say('{"jsonrpc":"2.0","id":13,"method":"c"}') == ['{"jsonrpc":"2.0","id":13,"result":"c"}']


def test_the_message_that_ends_the_session_is_answered_out_of_turn(path: Path) -> None:
    with Host(path) as host:
        host.say(HELLO)
        assert host.say(BYE.replace("4", "40")) == ['{"jsonrpc":"2.0","id":40,"result":{}}']

        assert host.status == EXIT_DIFFERS
        assert "2 recorded messages of the host were never played:" in host.err


def test_a_message_that_ends_the_session_and_was_never_recorded_ends_it(tmp_path: Path, order: str) -> None:
    events = f'- {{t: 1, in: \'{HELLO}\'}}\n- {{t: 1, out: \'{{"jsonrpc":"2.0","id":1,"result":{{}}}}\'}}\n{END}'
    with Host(cassette(tmp_path / "x.yaml", events), Options(order=order)) as host:
        host.say(HELLO)
        (line,) = host.say(BYE)

        assert "never recorded" in message_of(line)
        assert host.status == EXIT_DIFFERS


def test_the_end_tells_what_was_recorded_and_never_played(path: Path) -> None:
    with Host(path) as host:
        host.say(HELLO)
        host.close()

        assert host.status == EXIT_DIFFERS
        assert "3 recorded messages of the host were never played:" in host.err
        assert f"{path}:{line_of(path, 'echo')}: request execute (id 2)" in host.err


def test_of_many_messages_never_played_the_first_ones_are_listed(tmp_path: Path) -> None:
    events = "".join(f"- {{t: 1, in: 'line {number}'}}\n" for number in range(20))
    path = cassette(tmp_path / "many.yaml", events + END, protocol="raw")
    with Host(path) as host:
        host.close()

        assert host.err.count(f"{path}:") == 5
        assert "and 15 more" in host.err


def test_in_any_order_a_part_of_the_recording_is_told_and_no_fault(path: Path) -> None:
    with Host(path, Options(order="any")) as host:
        host.say(WAIT, HELLO)
        host.close()

        assert host.status == 0
        assert "2 recorded messages of the host were never played:" in host.err


def test_in_any_order_nothing_of_the_recording_is_a_fault(path: Path) -> None:
    with Host(path, Options(order="any")) as host:
        host.close()

        assert host.status == EXIT_DIFFERS
        assert "4 recorded messages of the host were never played:" in host.err


def test_a_session_without_a_miss_says_nothing_of_its_own(path: Path, order: str) -> None:
    with Host(path, Options(order=order)) as host:
        assert len(host.say(HELLO, RUN, WAIT, BYE)) == 4

        assert host.err == ""
        assert host.status == 0


def test_a_notification_without_a_match_is_told_on_stderr_alone(path: Path, order: str) -> None:
    with Host(path, Options(order=order)) as host:
        assert host.say('{"jsonrpc":"2.0","method":"hurry"}') == []
        host.say(HELLO, RUN, WAIT, BYE)

        assert "notification hurry: never recorded" in host.err
        assert host.status == EXIT_DIFFERS


@pytest.mark.parametrize("junk", ["{broken", "hello", "[]", "\x1b[2J\x07", '{"jsonrpc":"2.0","id":5,"result":1}'])
def test_what_is_no_request_gets_no_answer_and_can_not_touch_the_terminal(path: Path, order: str, junk: str) -> None:
    with Host(path, Options(order=order)) as host:
        assert host.say(junk) == []
        host.close()

        assert host.status == EXIT_DIFFERS
        assert host.err.replace("\n", "").isprintable()


ASKING = """
    - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"run"}'}
    - {t: 2, out: '{"jsonrpc":"2.0","id":7,"method":"ask"}'}
    - {t: 3, in: '{"jsonrpc":"2.0","id":7,"result":{"text":"yes"}}'}
    - {t: 4, out: '{"jsonrpc":"2.0","method":"log"}'}
    - {t: 4, out: '{"jsonrpc":"2.0","id":1,"result":"done"}'}
    - {t: 5, in: '{"jsonrpc":"2.0","id":2,"method":"next"}'}
    - {t: 6, out: '{"jsonrpc":"2.0","id":2,"result":"next"}'}
    """


@pytest.mark.parametrize(
    ("answer", "difference"),
    [
        ('{"jsonrpc":"2.0","id":7,"result":{"text":"no"}}', ("/result/text", '"yes"', '"no"')),
        ('{"jsonrpc":"2.0","id":7,"error":{"code":1}}', ("/result", '{"text":"yes"}', "nothing")),
        ('{"jsonrpc":"2.0","id":"7","result":{"text":"yes"}}', ("/id", '"7"', '"\\"7\\""')),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}', ("/id", '"7"', '"null"')),
    ],
)
def test_a_different_response_to_the_child_ends_the_open_call_and_the_session_continues(
    tmp_path: Path, order: str, answer: str, difference: tuple[str, str, str]
) -> None:
    pointer, expected, found = difference
    path = cassette(tmp_path / "ask.yaml", ASKING + END)
    with Host(path, Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":"a","method":"run"}')
        (line,) = host.say(answer)

        assert json.loads(line)["id"] == "a"
        data = error_of(line)["data"]
        assert isinstance(data, dict)
        assert (data["reason"], data["line"]) == ("response-differs", line_of(path, '"yes"'))
        assert data["differences"][0] == {"pointer": pointer, "expected": expected, "found": found}
        assert f"the response to the child's request ask (id 7): differs from the recorded one, {path}:" in host.err
        assert f"{pointer}: recorded {expected}, now {found}" in host.err
        assert host.say('{"jsonrpc":"2.0","id":"b","method":"next"}') == ['{"jsonrpc":"2.0","id":"b","result":"next"}']
        host.close()
        assert host.status == EXIT_DIFFERS


def test_an_error_in_place_of_a_recorded_result_and_the_other_way_round(tmp_path: Path, order: str) -> None:
    events = ASKING.replace('"result":{"text":"yes"}', '"error":{"code":-1}')
    with Host(cassette(tmp_path / "ask.yaml", events + END), Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"run"}')
        (line,) = host.say('{"jsonrpc":"2.0","id":7,"result":1}')
        assert "/error: recorded" in message_of(line)


def test_a_response_sent_twice_or_too_late_is_told_and_ends_nothing(tmp_path: Path, order: str) -> None:
    events = (
        ASKING.replace('"id":1,"result":"done"', '"id":8,"method":"ask again"')
        + """
        - {t: 6, in: '{"jsonrpc":"2.0","id":8,"result":8}'}
        - {t: 7, out: '{"jsonrpc":"2.0","id":1,"result":"done"}'}
        """
    )
    first, *_, next, answered, asked, done = events.strip().splitlines()
    events = "\n".join([first, *_, asked, done, next, answered])
    yes = '{"jsonrpc":"2.0","id":7,"result":{"text":"yes"}}'
    with Host(cassette(tmp_path / "ask.yaml", f"{events}\n{END}"), Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"run"}')
        assert len(host.say(yes)) == 2
        assert host.say(yes) == []
        assert host.say('{"jsonrpc":"2.0","id":8,"result":8}') == ['{"jsonrpc":"2.0","id":1,"result":"done"}']
        host.close()
        assert "one message of the host had no match" in host.err


def test_a_response_that_never_comes_ends_the_call_when_the_host_closes_its_input(tmp_path: Path, order: str) -> None:
    path = cassette(tmp_path / "ask.yaml", ASKING + END)
    with Host(path, Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":5,"method":"run"}')
        (line,) = host.close()

        assert json.loads(line)["id"] == 5
        assert message_of(line) == (
            "ext-recorder: the response to the child's request ask (id 7): not sent: the host closed its input; "
            f"the recorded one is {path}:{line_of(path, 'yes')}"
        )
        assert host.status == EXIT_DIFFERS


def test_a_response_out_of_turn_is_told_and_its_call_continues(tmp_path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"run"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":7,"method":"ask"}'}
        - {t: 3, in: '{"jsonrpc":"2.0","method":"hurry"}'}
        - {t: 3, in: '{"jsonrpc":"2.0","id":7,"result":"yes"}'}
        - {t: 4, out: '{"jsonrpc":"2.0","id":1,"result":"done"}'}
        """
    with Host(cassette(tmp_path / "ask.yaml", events + END)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"run"}')
        assert host.say('{"jsonrpc":"2.0","id":7,"result":"yes"}') == ['{"jsonrpc":"2.0","id":1,"result":"done"}']
        assert "out of turn" in host.err
        host.say('{"jsonrpc":"2.0","method":"hurry"}')
        host.close()
        assert host.err.count("\n") == 2
        assert host.status == EXIT_DIFFERS


def test_a_request_of_the_child_stays_with_the_call_that_it_belongs_to(tmp_path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
        - {t: 2, in: '{"jsonrpc":"2.0","id":2,"method":"b"}'}
        - {t: 3, out: '{"jsonrpc":"2.0","id":7,"method":"ask"}'}
        - {t: 4, out: '{"jsonrpc":"2.0","id":1,"result":"a"}'}
        - {t: 5, in: '{"jsonrpc":"2.0","id":7,"result":"yes"}'}
        - {t: 6, out: '{"jsonrpc":"2.0","id":2,"result":"b"}'}
        """
    with Host(cassette(tmp_path / "ask.yaml", events + END)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"a"}')
        answer, _ = host.say('{"jsonrpc":"2.0","id":5,"method":"other"}')
        assert answer == '{"jsonrpc":"2.0","id":1,"result":"a"}'
        asked = host.say('{"jsonrpc":"2.0","id":2,"method":"b"}')
        assert asked == ['{"jsonrpc":"2.0","id":7,"method":"ask"}']
        assert host.say('{"jsonrpc":"2.0","id":7,"result":"yes"}') == ['{"jsonrpc":"2.0","id":2,"result":"b"}']


def test_many_responses_that_nothing_waits_for_take_one_pass_through_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[Reader] = []
    again = Reader.again

    def counted(reader: Reader) -> Reader:
        passes.append(reader)
        return again(reader)

    monkeypatch.setattr(Reader, "again", counted)
    with Host(cassette(tmp_path / "ask.yaml", ASKING + END)) as host:
        host.say(*['{"jsonrpc":"2.0","id":99,"result":1}'] * 100)
        assert "too many misses" in host.err
        # Of these, ten are for the explanations of the first misses, and one is for later messages.
        assert len(passes) <= 10 + 1 + 1


def test_many_requests_that_differ_compare_and_read_each_recorded_message_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 200
    calls = [f'{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{"n":{id}}}}}' for id in range(count)]
    pairs = [
        f'- {{t: 1, in: \'{call}\'}}\n- {{t: 1, out: \'{{"jsonrpc":"2.0","id":{id},"result":{id}}}\'}}'
        for id, call in enumerate(calls)
    ]
    done: dict[str, int] = {"key": 0, "again": 0}
    key, again = Matcher.key, Reader.again

    def counted_key(matcher: Matcher, message: ClassifiedMessage) -> str:
        done["key"] += 1
        return key(matcher, message)

    def counted_again(reader: Reader) -> Reader:
        done["again"] += 1
        return again(reader)

    monkeypatch.setattr(Matcher, "key", counted_key)
    monkeypatch.setattr(Reader, "again", counted_again)
    with Host(cassette(tmp_path / "calls.yaml", "\n".join([*pairs, END]), protocol="jsonrpc")) as host:
        host.say(*(call.replace('"n":', '"n":-1') for call in calls))
        assert f"{count - 1} recorded" not in host.err
        assert done["key"] <= 2 * count
        assert done["again"] <= 10 + 1
        # The session continues at a later message; only the events from the first skipped one on are cut into calls.
        assert host.say(calls[100]) == ['{"jsonrpc":"2.0","id":100,"result":100}']


def test_of_two_open_calls_the_one_whose_response_differs_ends(tmp_path: Path, order: str) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
        - {t: 1, out: '{"jsonrpc":"2.0","id":7,"method":"ask"}'}
        - {t: 2, in: '{"jsonrpc":"2.0","id":2,"method":"b"}'}
        - {t: 3, in: '{"jsonrpc":"2.0","id":7,"result":"yes"}'}
        - {t: 4, out: '{"jsonrpc":"2.0","id":1,"result":"a"}'}
        - {t: 4, out: '{"jsonrpc":"2.0","id":2,"result":"b"}'}
        - {t: 5, in: '{"jsonrpc":"2.0","id":3,"method":"c"}'}
        - {t: 5, out: '{"jsonrpc":"2.0","id":3,"result":"c"}'}
        """
    with Host(cassette(tmp_path / "ask.yaml", events + END), Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"a"}')
        host.say('{"jsonrpc":"2.0","id":2,"method":"b"}')
        said = [json.loads(line) for line in host.say('{"jsonrpc":"2.0","id":7,"result":"no"}')]
        assert ["error" in each for each in said if each["id"] == 1] == [True]
        host.say('{"jsonrpc":"2.0","id":3,"method":"c"}')
        host.close()
        assert host.err.count("no match in") == 1


def test_an_approval_that_differs_ends_the_call_that_waits_for_it(tmp_path: Path, order: str) -> None:
    command = '{"jsonrpc":"2.0","id":1,"method":"workspace/executeCommand","params":{"command":"fix","arguments":[]}}'
    approved = '{"payload":{"request_id":"r","ok":true}}'
    approval = f'{{"jsonrpc":"2.0","method":"kaiak/client/user_message","params":{approved}}}'
    events = f"""
        - {{t: 1, in: '{command}'}}
        - {{t: 1, out: '{{"jsonrpc":"2.0","method":"kaiak/stream/system","params":{{"request_id":"r"}}}}'}}
        - {{t: 2, in: '{approval}'}}
        - {{t: 3, out: '{{"jsonrpc":"2.0","id":1,"result":{{"request_id":"r"}}}}'}}
        """
    path = cassette(tmp_path / "k.yaml", events + END, protocol="kaiak", bindings={})
    with Host(path, Options(order=order)) as host:
        host.say(command)
        (line,) = host.say(approval.replace("true", "false"))
        assert json.loads(line)["id"] == 1
        assert "/params/payload/ok: recorded true, now false" in message_of(line)


def test_a_miss_overrides_the_recorded_exit_code(tmp_path: Path, order: str) -> None:
    events = '- {t: 1, in: \'{"jsonrpc":"2.0","id":1,"method":"m"}\'}\n- {t: 2, exit: 0}'
    with Host(cassette(tmp_path / "x.yaml", events), Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"other"}')
        host.say('{"jsonrpc":"2.0","id":1,"method":"m"}')

        assert host.status == EXIT_DIFFERS


def test_a_secret_of_this_session_is_in_no_message_about_a_miss(path: Path, order: str) -> None:
    with Host(path, Options(order=order), {"API_TOKEN": "hunter2-hunter2"}) as host:
        (line,) = host.say(RUN.replace('"hi"', '"hunter2-hunter2"'))

        assert "hunter2" not in line + host.err
        assert "[redacted:env.API_TOKEN#1]" in line


def test_long_values_are_cut_in_messages(path: Path, order: str) -> None:
    with Host(path, Options(order=order)) as host:
        (line,) = host.say(RUN.replace('"hi"', '"' + "x" * 100_000 + '"'))

        assert len(line) < 2_000


def test_no_error_is_longer_than_a_line_that_the_host_can_read(path: Path, order: str) -> None:
    names = [f"{'k' * 5000}{n}" for n in range(9)]
    with Host(path, Options(order=order)) as host:
        (line,) = host.say(RUN.replace('"hi"', json.dumps(dict.fromkeys(names, names))))
        assert len(line) < 5_000
        (line,) = host.say(RUN.replace("execute", "x" * 100_000))
        assert len(line) < 5_000


def test_a_host_that_has_lost_its_way_is_told_in_short(path: Path) -> None:
    with Host(path) as host:
        lines = [host.say(f'{{"jsonrpc":"2.0","id":{id},"method":"execute","params":{{}}}}')[0] for id in range(30)]

        assert "arguments differ" in lines[0]
        assert "too many misses" in lines[-1]
        host.close()
        assert "30 messages of the host had no match" in host.err


def test_other_framings_get_the_error_in_their_own_frame(tmp_path: Path) -> None:
    path = cassette(tmp_path / "x.yaml", SESSION, protocol="jsonrpc", framing="content-length")
    with Host(path) as host:
        request = b'{"jsonrpc":"2.0","id":1,"method":"nope"}'
        head, _, body = host.write(b"Content-Length: %d\r\n\r\n" % len(request) + request).partition(b"\r\n\r\n")

        assert head == b"Content-Length: %d" % len(body)
        assert json.loads(body)["error"]["code"] == -32099


@pytest.mark.parametrize("order", ["strict", "any"])
def test_a_line_that_differs_is_shown_with_its_control_characters_and_is_not_to_be_ignored(
    tmp_path: Path, order: str
) -> None:
    events = """
        - {t: 1, in: "PING\\r"}
        - {t: 2, out: "+PONG\\r"}
        """
    path = cassette(tmp_path / "raw.yaml", events + END, protocol="raw")
    with Host(path, Options(order=order)) as host:
        host.say("QUIT\r")

        assert "the line QUIT\\r" in host.err
        assert "--ignore" not in host.err
        assert host.write(b"PING\r\n") == b"+PONG\r\n"


def test_a_binding_without_a_path_is_the_remedy_of_a_miss(tmp_path: Path, order: str) -> None:
    session = cassette(
        tmp_path / "bound.yaml",
        f"""
    - {{t: 1, in: '{RUN.replace('"hi"', '"/tmp/repo/x"')}'}}
    - {{t: 1, out: '{{"jsonrpc":"2.0","id":2,"result":{{}}}}'}}
    {END}
    """,
        bindings={"repo": "/tmp/repo"},
    )
    with Host(session, Options(order=order)) as host:
        (line,) = host.say(RUN.replace('"hi"', '"/srv/repo/x"'))
        assert message_of(line).endswith("; replay with --bind repo=PATH")
