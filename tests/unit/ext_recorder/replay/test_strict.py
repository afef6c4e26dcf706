"""Replay in the recorded order: what the child says, where it says it, and what stays as it was."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.replay.actions import Write
from ext_recorder.replay.player import EXIT_DIFFERS, Divergence
from ext_recorder.replay.replay import Options
from tests.support.player_host import END, Host, cassette, message_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.yaml"


def raw(data: bytes) -> str:
    return f"{{raw: '{base64.b64encode(data).decode()}'}}"


# --- Order ----------------------------------------------------------------------------------------------------------


def test_notifications_come_before_between_and_after_answers_as_recorded(path: Path) -> None:
    cassette(
        path,
        """
        - {t: 0.1, out: '{"method":"banner"}'}
        - {t: 0.2, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
        - {t: 0.3, out: '{"method":"before"}'}
        - {t: 0.4, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
        - {t: 0.5, out: '{"method":"after"}'}
        - {t: 0.6, in: '{"jsonrpc":"2.0","id":2,"method":"a"}'}
        - {t: 0.7, out: '{"jsonrpc":"2.0","id":2,"result":2}'}
        """
        + END,
    )
    with Host(path) as host:
        assert host.greeting == b'{"method":"banner"}\n'
        assert host.say('{"jsonrpc":"2.0","id":1,"method":"a"}') == [
            '{"method":"before"}',
            '{"jsonrpc":"2.0","id":1,"result":1}',
            '{"method":"after"}',
        ]
        assert host.say('{"jsonrpc":"2.0","id":2,"method":"a"}') == ['{"jsonrpc":"2.0","id":2,"result":2}']


def test_overlapping_calls_are_answered_in_the_recorded_order(path: Path) -> None:
    calls = [f'{{"jsonrpc":"2.0","id":{id},"method":"m{id}"}}' for id in (1, 2, 3)]
    answers = [f'{{"jsonrpc":"2.0","id":{id},"result":{id}}}' for id in (2, 3, 1)]
    events = [f"- {{t: 0.1, in: '{call}'}}" for call in calls] + [f"- {{t: 0.2, out: '{each}'}}" for each in answers]
    cassette(path, "\n".join([*events, END]))

    with Host(path) as host:
        assert host.say(calls[0]) == []
        assert host.say(calls[1]) == []
        assert host.say(calls[2]) == answers


def test_a_request_of_the_child_waits_for_nothing_and_what_follows_it_waits_for_the_hosts_answer(path: Path) -> None:
    cassette(
        path,
        """
        - {t: 0.1, in: '{"jsonrpc":"2.0","id":1,"method":"run"}'}
        - {t: 0.2, out: '{"jsonrpc":"2.0","id":1,"method":"ask","params":["really?"]}'}
        - {t: 0.3, in: '{"jsonrpc":"2.0","id":1,"result":"yes"}'}
        - {t: 0.4, out: '{"jsonrpc":"2.0","id":1,"result":"done"}'}
        """
        + END,
    )
    with Host(path) as host:
        # The same id in both directions is two calls: the child's keeps its id, the host's gets the live one.
        asked = host.say('{"jsonrpc":"2.0","id":77,"method":"run"}')
        assert asked == ['{"jsonrpc":"2.0","id":1,"method":"ask","params":["really?"]}']
        assert host.say('{"jsonrpc":"2.0","result":"yes","id":1}') == ['{"jsonrpc":"2.0","id":77,"result":"done"}']
        host.close()
        assert host.status == 0


def test_stderr_and_the_end_of_a_stream_come_in_their_places(path: Path) -> None:
    cassette(
        path,
        f"""
        - {{t: 0.1, err: 'it''s starting'}}
        - {{t: 0.2, in: 'go'}}
        - {{t: 0.3, out: 'going'}}
        - {{t: 0.4, err: {raw(b"no line feed")}}}
        - {{t: 0.5, eof: out}}
        - {{t: 0.6, eof: err}}
        - {{t: 0.7, exit: 3}}
        """,
        protocol="raw",
    )
    with Host(path) as host:
        assert host.err == "it's starting\n"
        assert host.say("go") == ["going"]
        assert host.err == "it's starting\nno line feed"
        assert host.closed == ["out", "err"]
        assert host.status == 3


# --- Ids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "live", ["1", "0", "-7", '"a string"', '"1"', '"\\u00e9"', "1.5", "12345678901234567890123", "null"]
)
@pytest.mark.parametrize("recorded", ["1", "0", '"x"', "1e2", "null", "[1]"])
def test_answers_carry_the_live_id_in_its_own_spelling_and_nothing_else_changes(
    path: Path, live: str, recorded: str
) -> None:
    cassette(
        path,
        f"""
        - {{t: 0.1, in: '{{"jsonrpc":"2.0","id":{recorded},"method":"m","params":[1.0]}}'}}
        - {{t: 0.2, out: '{{ "result": {{"id":1, "a":1.0,"a":1E2, "b":"\\/"}} ,"id" : {recorded}, "jsonrpc":"2.0"}}'}}
        """
        + END,
    )
    with Host(path) as host:
        assert host.say(f'{{"jsonrpc":"2.0","id":{live},"method":"m","params":[1.0]}}') == [
            f'{{ "result": {{"id":1, "a":1.0,"a":1E2, "b":"\\/"}} ,"id" : {live}, "jsonrpc":"2.0"}}'
        ]
        host.close()
        assert host.status == 0


def test_an_id_that_comes_back_in_a_session_is_another_call(path: Path) -> None:
    events = [
        f"""
        - {{t: {at}, in: '{{"jsonrpc":"2.0","id":0,"method":"m{at}"}}'}}
        - {{t: {at}, out: '{{"jsonrpc":"2.0","id":0,"result":{at}}}'}}
        """
        for at in range(4)
    ]
    cassette(path, "".join(events) + END)
    with Host(path) as host:
        for at, id in enumerate(["5", "0", '"a"', "5"]):
            assert host.say(f'{{"jsonrpc":"2.0","id":{id},"method":"m{at}"}}') == [
                f'{{"jsonrpc":"2.0","id":{id},"result":{at}}}'
            ]


def test_two_open_calls_of_one_id_are_answered_in_their_order(path: Path) -> None:
    cassette(
        path,
        """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m"}'}
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"n"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":"m"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":"n"}'}
        """
        + END,
    )
    with Host(path) as host:
        assert host.say('{"jsonrpc":"2.0","id":8,"method":"m"}', '{"jsonrpc":"2.0","id":9,"method":"n"}') == [
            '{"jsonrpc":"2.0","id":8,"result":"m"}',
            '{"jsonrpc":"2.0","id":9,"result":"n"}',
        ]


def test_an_answer_to_nothing_and_one_without_an_id_stay_as_they_are(path: Path) -> None:
    cassette(
        path,
        """
        - {t: 1, in: '{broken'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'}
        - {t: 2, out: '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":9,"result":"late"}'}
        """
        + END,
    )
    with Host(path) as host:
        assert len(host.say("{broken")) == 3


def test_a_cancelled_call_is_known_by_the_live_id(path: Path) -> None:
    cassette(
        path,
        """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"slow"}'}
        - {t: 2, in: '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}'}
        - {t: 3, out: '{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}'}
        """
        + END,
        protocol="jsonrpc",
    )
    with Host(path) as host:
        host.say('{"jsonrpc":"2.0","id":40,"method":"slow"}')
        answer = host.say('{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":40}}')
        assert answer == ['{"jsonrpc":"2.0","id":40,"error":{"code":-32800,"message":"cancelled"}}']
        host.close()
        assert host.status == 0


def test_a_progress_token_that_the_host_made_up_is_echoed_as_the_live_one(path: Path) -> None:
    cassette(
        path,
        """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1}}}'}
        - {t: 2, out: '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'}
        - {t: 3, out: '{"jsonrpc":"2.0","id":1,"result":{"progressToken":1}}'}
        """
        + END,
        protocol="jsonrpc",
    )
    with Host(path) as host:
        assert host.say('{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":"t5"}}}') == [
            '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t5","progress":1}}',
            '{"jsonrpc":"2.0","id":5,"result":{"progressToken":1}}',
        ]


# --- Bindings -------------------------------------------------------------------------------------------------------


def run_in(folder: str, id: int = 1, **args: str) -> str:
    params = {"args": args, "context": {"workdir": folder}}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "execute", "params": params}, ensure_ascii=False)


IN_A_FOLDER = f"""
    - {{t: 1, in: '{run_in("/tmp/workdir", f="/tmp/workdir/f")}'}}
    - {{t: 2, out: '{{"jsonrpc":"2.0","method":"log","params":{{"message":"in /tmp/workdir."}}}}'}}
    - {{t: 2, err: 'cd /tmp/workdir'}}
    - {{t: 3, out: '{{"jsonrpc":"2.0","id":1,"result":{{"f":"/tmp/workdir/f","other":"/tmp/workdir-old"}}}}'}}
    - {{t: 4, in: '{run_in("/tmp/workdir-2", 2)}'}}
    - {{t: 5, out: '{{"jsonrpc":"2.0","id":2,"result":{{"f":"/tmp/workdir-2/f /tmp/workdir/f"}}}}'}}
    {END}
    """


def test_the_working_directory_of_this_session_stands_where_the_recorded_one_stood(path: Path) -> None:
    with Host(cassette(path, IN_A_FOLDER)) as host:
        assert host.say(run_in("/home/é/w", f="/home/é/w/f")) == [
            '{"jsonrpc":"2.0","method":"log","params":{"message":"in /home/é/w."}}',
            '{"jsonrpc":"2.0","id":1,"result":{"f":"/home/é/w/f","other":"/tmp/workdir-old"}}',
        ]
        assert host.err == "cd /home/é/w\n"
        assert host.say(run_in("/srv/second/", 2)) == [
            '{"jsonrpc":"2.0","id":2,"result":{"f":"/srv/second/f /home/é/w/f"}}'
        ]
        host.close()
        assert host.status == 0


def test_a_path_that_json_has_to_escape_is_escaped_in_messages_and_not_on_stderr(path: Path) -> None:
    with Host(cassette(path, IN_A_FOLDER)) as host:
        live = '/a\\b/"w'
        lines = host.say(run_in(live, f=f"{live}/f"))
        assert json.loads(lines[1])["result"]["f"] == f"{live}/f"
        assert host.err == f"cd {live}\n"


def test_one_recorded_folder_can_not_be_two_here(path: Path) -> None:
    call = """
        - {{t: 1, in:
        '{{"jsonrpc":"2.0","id":{0},"method":"execute","params":{{"context":{{"workdir":"/tmp/workdir"}}}}}}'}}
        - {{t: 1, out: '{{"jsonrpc":"2.0","id":{0},"result":1}}'}}
        """
    with Host(cassette(path, call.format(1) + call.format(2) + END)) as host:
        host.call(1, context={"workdir": "/a/one"})
        answer = host.call(2, context={"workdir": "/a/two"})
        assert "/params/context/workdir" in str(answer["error"])
        assert "result" in host.call(3, context={"workdir": "/a/one"})


@pytest.mark.parametrize("workdir", [".", "/usr", "relative/folder"])
def test_a_relative_folder_or_one_of_the_system_is_not_bound(path: Path, workdir: str) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"}}}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":"/tmp/workdir/f"}'}
        """
    with Host(cassette(path, events + END)) as host:
        assert host.call(1, context={"workdir": workdir})["result"] == "/tmp/workdir/f"


@pytest.mark.parametrize("workdir", ["/app", "/src/", "/tmp", "/root"])
def test_a_folder_of_one_component_is_bound_when_a_request_names_it(path: Path, workdir: str) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"}}}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":"/tmp/workdir/f"}'}
        """
    with Host(cassette(path, events + END)) as host:
        assert host.call(1, context={"workdir": workdir})["result"] == f"{workdir.rstrip('/')}/f"


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize(
    ("given", "file"),
    [
        ({"root": "/w/x", "folder": "/w/x"}, "/w/x/a"),
        ({"root": "/w/x", "folder": "/w/x/a"}, "/w/x/a"),
        ({"root": "/w/x/a", "folder": "/w/x"}, "/w/x/a"),
    ],
)
def test_bindings_of_one_folder_or_in_each_other_match_under_any_of_their_names(
    path: Path, order: str, given: dict[str, str], file: str
) -> None:
    neutral = {"root": "/tmp/root", "folder": "/tmp/folder"}
    recorded = file.replace(given["root"], "/tmp/root")
    events = f"""
        - {{t: 1, in: '{{"jsonrpc":"2.0","id":1,"method":"read","params":{{"seed":1,"file":"{recorded}"}}}}'}}
        - {{t: 2, out: '{{"jsonrpc":"2.0","id":1,"result":"read {recorded}"}}'}}
        """
    played = cassette(path, events + END, protocol="jsonrpc", bindings=neutral)
    with Host(played, Options(bind=given, order=order)) as host:
        live = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "read",
            "params": {"file": file, "seed": 1},
        }  # another order of members
        assert json.loads(host.say(json.dumps(live))[0]) == {"jsonrpc": "2.0", "id": 7, "result": f"read {file}"}


def test_home_and_given_bindings_are_live_from_the_start(path: Path) -> None:
    events = """
        - {t: 1, out: 'config in /home/user/.config and /tmp/data/x'}
        - {t: 2, in: 'read /tmp/data/x'}
        - {t: 3, out: 'read it'}
        """
    bindings = {"home": "/home/user", "data": "/tmp/data"}
    cassette(path, events + END, protocol="raw", bindings=bindings)
    with Host(path, Options(bind={"data": "/srv/files"}), {"HOME": "/root/me"}) as host:
        assert host.greeting == b"config in /root/me/.config and /srv/files/x\n"
        assert host.say("read /srv/files/x") == ["read it"]


def test_a_binding_that_the_cassette_does_not_have_is_refused_by_name(path: Path) -> None:
    with pytest.raises(UsageError, match=r"dta.*workdir"):
        Host(cassette(path, END), Options(bind={"dta": "/srv"}))


# --- Not by the book ------------------------------------------------------------------------------------------------


def test_junk_of_the_child_comes_out_byte_by_byte(path: Path) -> None:
    junk = b"\x1b[31mwarn\x1b[0m\n\n\xff\xfe\n"
    answer = b'{"jsonrpc":"2.0","id":1,"result":1}\r\n'
    events = f"""
        - {{t: 1, in: '{{"jsonrpc":"2.0","id":1,"method":"m"}}'}}
        - {{t: 2, out: {raw(junk)}}}
        - {{t: 3, out: {raw(answer)}}}
        - {{t: 4, out: {raw(b"tail")}}}
        """
    with Host(cassette(path, events + END)) as host:
        out = host.write(b'{"jsonrpc":"2.0","id":"live","method":"m"}\n')
        assert out == junk + answer.replace(b'"id":1', b'"id":"live"') + b"tail"


def test_junk_of_the_host_is_waited_for_and_blank_lines_are_not_minded(path: Path) -> None:
    zeros, blank = raw(b"\0\0\n"), raw(b"\n")
    events = f"""
        - {{t: 1, in: {zeros}}}
        - {{t: 2, out: 'pardon?'}}
        - {{t: 3, in: {blank}}}
        - {{t: 4, exit: 1}}
        """
    with Host(cassette(path, events)) as host:
        assert host.write(b"\n  \n") == b""
        assert host.write(b"\0\0\n") == b"pardon?\n"
        assert host.status is None
        host.write(b"\n")
        assert host.status == 1


def test_a_line_with_a_secret_is_the_recorded_one_with_another_secret(path: Path) -> None:
    events = "- {t: 1, in: 'login [redacted:env.OLD_TOKEN#7]'}\n- {t: 2, out: 'welcome'}\n"
    with Host(cassette(path, events + END, protocol="raw"), environ={"NEW_TOKEN": "hunter2-hunter2"}) as host:
        assert host.say("login hunter2-hunter2") == ["welcome"]


def test_a_batch_is_played_when_it_is_the_same_json(path: Path) -> None:
    events = """
        - {t: 1, in: '[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]'}
        - {t: 2, out: '[{"jsonrpc":"2.0","id":2,"result":2},{"jsonrpc":"2.0","id":1,"result":1}]'}
        """
    with Host(cassette(path, events + END)) as host:
        assert len(host.say('[{"id":1,"jsonrpc":"2.0","method":"a"}, {"jsonrpc":"2.0","id":2,"method":"b"}]')) == 1


def test_a_crash_in_mid_call_is_a_crash_in_mid_call(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m"}'}
        - {t: 2, err: 'Traceback'}
        - {t: 3, exit: SIGSEGV}
        """
    with Host(cassette(path, events)) as host:
        assert host.say('{"jsonrpc":"2.0","id":1,"method":"m"}') == []
        assert host.status == "SIGSEGV"


def test_a_one_shot_session_without_a_line_feed_is_played_with_another_id_and_folder(path: Path) -> None:
    request = b'{"jsonrpc":"2.0","id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"}}}'
    events = f"""
        - {{t: 1, in: {raw(request)}}}
        - {{t: 2, eof: in}}
        - {{t: 3, out: '{{"jsonrpc":"2.0","id":1,"result":"/tmp/workdir/x"}}'}}
        - {{t: 4, exit: 0}}
        """
    with Host(cassette(path, events)) as host:
        live = b'{"jsonrpc":"2.0","id":"one","method":"execute","params":{"context":{"workdir":"/w/x"}}}'
        assert host.write(live) == b""
        assert host.close() == ['{"jsonrpc":"2.0","id":"one","result":"/w/x/x"}']
        assert host.status == 0


def test_a_recorded_line_is_the_same_message_without_its_line_feed(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m"}'}
        - {t: 2, eof: in}
        - {t: 3, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
        - {t: 4, exit: 0}
        """
    with Host(cassette(path, events)) as host:
        host.write(b'{"jsonrpc":"2.0","id":1,"method":"m"}')
        assert host.close() == ['{"jsonrpc":"2.0","id":1,"result":1}']
        assert host.status == 0


# --- The end --------------------------------------------------------------------------------------------------------


def test_the_child_ends_after_the_answer_to_shutdown_though_the_host_keeps_its_input_open(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"shutdown"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":{}}'}
        - {t: 3, eof: in}
        - {t: 4, err: 'bye'}
        - {t: 5, exit: 0}
        """
    with Host(cassette(path, events)) as host:
        assert host.say('{"jsonrpc":"2.0","id":1,"method":"shutdown"}') == ['{"jsonrpc":"2.0","id":1,"result":{}}']
        assert host.err == "bye\n"
        assert host.status == 0


def test_otherwise_the_end_of_the_input_is_waited_for(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":{}}'}
        - {t: 3, eof: in}
        - {t: 4, out: '{"jsonrpc":"2.0","method":"log"}'}
        - {t: 5, exit: 4}
        """
    with Host(cassette(path, events)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"m"}')
        assert host.status is None
        assert host.close() == ['{"jsonrpc":"2.0","method":"log"}']
        assert host.status == 4


def test_an_answer_that_was_recorded_after_the_end_of_the_input_does_not_wait_for_it(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
        - {t: 1, in: '{"jsonrpc":"2.0","id":2,"method":"b"}'}
        - {t: 2, eof: in}
        - {t: 3, out: '{"jsonrpc":"2.0","method":"log"}'}
        - {t: 3, err: 'still here'}
        - {t: 4, out: '{"jsonrpc":"2.0","id":2,"result":"b"}'}
        - {t: 4, out: '{"jsonrpc":"2.0","id":1,"result":"a"}'}
        - {t: 5, out: '{"jsonrpc":"2.0","method":"bye"}'}
        - {t: 6, exit: 0}
        """
    with Host(cassette(path, events)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"a"}')
        assert host.say('{"jsonrpc":"2.0","id":2,"method":"b"}') == [
            '{"jsonrpc":"2.0","method":"log"}',
            '{"jsonrpc":"2.0","id":2,"result":"b"}',
            '{"jsonrpc":"2.0","id":1,"result":"a"}',
        ]
        assert host.status is None
        assert host.close() == ['{"jsonrpc":"2.0","method":"bye"}']
        assert host.status == 0


def test_a_call_in_which_the_child_exits_by_itself_ends_as_it_ended(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
        - {t: 3, err: 'giving up'}
        - {t: 4, exit: 1}
        """
    with Host(cassette(path, events)) as host:
        assert host.say('{"jsonrpc":"2.0","id":1,"method":"a"}') == []
        assert host.err == "giving up\n"
        assert host.status == 1


# How a recording ends whose host did not wait for an answer: with its recorder, its input, a signal.
INTERRUPTED = [
    "",
    "- {t: 2, eof: in}\n- {t: 4, exit: 0}",
    "- {t: 2, signal: SIGINT}\n- {t: 4, exit: SIGINT}",
    "- {t: 2, eof: in}\n- {t: 3, signal: SIGTERM}\n- {t: 4, exit: SIGTERM}",
]


@pytest.mark.parametrize("end", INTERRUPTED)
@pytest.mark.parametrize("order", ["strict", "any"])
def test_a_call_that_was_cut_off_is_refused_at_once(path: Path, order: str, end: str) -> None:
    events = f"""
        - {{t: 1, in: '{{"jsonrpc":"2.0","id":1,"method":"a"}}'}}
        - {{t: 1, out: '{{"jsonrpc":"2.0","id":1,"result":"a"}}'}}
        - {{t: 1, in: '{{"jsonrpc":"2.0","id":2,"method":"b"}}'}}
        - {{t: 2, out: '{{"jsonrpc":"2.0","method":"log"}}'}}
        {end}
        """
    with Host(cassette(path, events), Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"a"}')
        log, line = host.say('{"jsonrpc":"2.0","id":"x","method":"b"}')
        assert log == '{"jsonrpc":"2.0","method":"log"}'
        assert json.loads(line)["id"] == "x"
        assert 'request b (id "x"): cut off: the recording was interrupted before its answer' in message_of(line)
        assert host.status is None
        host.close()
        if host.status is None:  # this child had to be ended by a signal
            host.signal("SIGTERM")
        assert host.status == EXIT_DIFFERS


@pytest.mark.parametrize("order", ["strict", "any"])
def test_a_call_that_its_host_cancelled_waits_for_no_answer(path: Path, order: str) -> None:
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    events = f"""
        - {{t: 1, in: '{{"jsonrpc":"2.0","id":1,"method":"slow"}}'}}
        - {{t: 2, in: '{cancel}'}}
        {END}
        """
    with Host(cassette(path, events, protocol="mcp"), Options(order=order)) as host:
        assert host.say('{"jsonrpc":"2.0","id":1,"method":"slow"}', cancel) == []
        host.close()
        assert host.status == 0


@pytest.mark.parametrize("order", ["strict", "any"])
def test_what_the_child_asks_in_a_call_that_was_cut_off_is_asked_before_it_is_refused(path: Path, order: str) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"run"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":7,"method":"ask"}'}
        - {t: 3, in: '{"jsonrpc":"2.0","id":7,"result":"yes"}'}
        """
    with Host(cassette(path, events), Options(order=order)) as host:
        assert host.say('{"jsonrpc":"2.0","id":1,"method":"run"}') == ['{"jsonrpc":"2.0","id":7,"method":"ask"}']
        (line,) = host.say('{"jsonrpc":"2.0","id":7,"result":"yes"}')
        assert "cut off" in message_of(line)


def test_a_recorded_signal_is_waited_for_and_another_one_ends_the_child(path: Path) -> None:
    events = """
        - {t: 1, signal: SIGTERM}
        - {t: 2, out: 'cleaning up'}
        - {t: 3, exit: 0}
        """
    with Host(cassette(path, events, protocol="raw")) as host:
        assert host.signal("SIGTERM") == ["cleaning up"]
        assert host.status == 0
    with Host(cassette(path, "- {t: 1, eof: in}\n- {t: 2, exit: 0}", protocol="raw")) as host:
        assert host.signal("SIGHUP") == []
        assert host.status == "SIGHUP"
        assert host.err == ""


def test_a_recovered_session_without_an_exit_ends_with_its_host(path: Path) -> None:
    with Host(cassette(path, "- {t: 1, in: 'a'}\n- {t: 1, out: 'b'}", protocol="raw")) as host:
        assert host.say("a") == ["b"]
        host.close()
        assert host.status == 0


def test_nothing_is_played_after_the_exit(path: Path) -> None:
    events = """
        - {t: 1, in: 'a'}
        - {t: 2, exit: 1}
        - {t: 3, in: 'b'}
        """
    with Host(cassette(path, events, protocol="raw")) as host:
        assert host.say("a", "b") == []
        assert host.status == 1


# --- Other framings -------------------------------------------------------------------------------------------------


def test_header_lines_are_kept_and_the_length_follows_the_live_id(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m"}', head: ['Content-Length: 37']}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":1}', head: ['Content-Type: x', 'content-length:35']}
        - {t: 3, out: '{"jsonrpc":"2.0","method":"n"}'}
        """
    with Host(cassette(path, events + END, protocol="jsonrpc", framing="content-length")) as host:
        live = b'{"jsonrpc":"2.0","id":1234,"method":"m"}'
        out = host.write(b"Content-Length: %d\r\n\r\n" % len(live) + live)
        first = b'{"jsonrpc":"2.0","id":1234,"result":1}'
        assert out == (
            b"Content-Type: x\r\ncontent-length:38\r\n\r\n"
            + first
            + b'Content-Length: 30\r\n\r\n{"jsonrpc":"2.0","method":"n"}'
        )


def test_four_byte_lengths_are_put_in_front(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
        """
    with Host(cassette(path, events + END, protocol="jsonrpc", framing="uint32")) as host:
        live = b'{"jsonrpc":"2.0","id":22,"method":"m"}'
        answer = b'{"jsonrpc":"2.0","id":22,"result":1}'
        assert host.write(len(live).to_bytes(4, "big") + live) == len(answer).to_bytes(4, "big") + answer


def test_frames_that_only_raw_bytes_hold_get_the_live_id_too(path: Path) -> None:
    message = '{"jsonrpc":"2.0","id":1,"result":"\u2028"}'.encode()
    said = raw(b"log line\nContent-Length: %d\r\n\r\n" % len(message) + message)
    events = f"""
        - {{t: 1, in: '{{"jsonrpc":"2.0","id":1,"method":"m"}}'}}
        - {{t: 2, out: {said}}}
        """
    with Host(cassette(path, events + END, protocol="jsonrpc", framing="content-length")) as host:
        live = b'{"jsonrpc":"2.0","id":10,"method":"m"}'
        out = host.write(b"Content-Length: %d\r\n\r\n" % len(live) + live)
        assert out == b"log line\nContent-Length: %d\r\n\r\n" % (len(message) + 1) + message.replace(b":1,", b":10,")


# --- Time -----------------------------------------------------------------------------------------------------------


def test_each_event_keeps_its_distance_from_what_the_host_did(path: Path) -> None:
    events = """
        - {t: 0.5, out: 'banner'}
        - {t: 1.0, in: 'a'}
        - {t: 1.25, out: 'b'}
        - {t: 1.5, out: 'c'}
        - {t: 1.75, err: 'd'}
        """
    with Host(cassette(path, events + END, protocol="raw"), Options(speed=1)) as host:
        host.say("a")
        assert [(action.data, action.after) for action in host.actions if isinstance(action, Write)] == [
            (b"banner\n", 0.5),
            (b"b\n", 0.25),
            (b"c\n", 0.5),
            (b"d\n", 0.75),
        ]


# --- Cassettes that can't be played ---------------------------------------------------------------------------------


def test_a_session_over_sockets_is_refused_on_stdio_where_it_stands(path: Path) -> None:
    cassette(path, "- {t: 1, in: 'a'}\n- {t: 2, conn: 2, open: in}\n" + END, protocol="raw")
    with Host(path) as host, pytest.raises(UsageError, match=r"session\.yaml:\d+: a session over sockets"):
        host.say("a")


def test_a_broken_line_is_an_error_when_it_is_reached_not_an_end(path: Path) -> None:
    cassette(path, "- {t: 1, in: 'a'}\n- {t: 2, out: 'b}\n" + END, protocol="raw")
    with Host(path) as host, pytest.raises(CassetteError, match=r"session\.yaml:\d+:"):
        host.say("a")


def test_an_unknown_protocol_is_refused_with_the_known_ones(path: Path) -> None:
    with pytest.raises(CassetteError, match=r"gevals, pi, gassist.*raw.*'morse'"):
        Host(cassette(path, END, protocol="morse"))


ASK = '{"jsonrpc":"2.0","id":%s,"method":"ask","params":{"n":%d}}'
SAY = '{"jsonrpc":"2.0","id":%s,"result":{"n":%d}}'


def ask(id: object, n: int) -> str:
    return ASK % (id, n)


def say(id: object, n: int) -> str:
    return SAY % (id, n)


def lines(*messages: str) -> str:
    """Lines of a cassette; a message of the child begins with `<`."""
    said = (f"out: '{each[1:]}'" if each.startswith("<") else f"in: '{each}'" for each in messages)
    return "\n".join(
        [*(f"- {{t: {number}.000000, {each}}}" for number, each in enumerate(said)), "- {t: 90.000000, exit: 0}"]
    )


def pairs(count: int) -> list[str]:
    return [message for n in range(1, count + 1) for message in (ask(n, n), f"<{say(n, n)}")]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The messages of the host that were not played by their bytes."""
    from ext_recorder.replay.request_matcher import RecordedRequest, RequestMatcher

    seen: list[bytes] = []
    accepts = RequestMatcher.accepts

    def looked_at(self: RequestMatcher, recorded: RecordedRequest, payload: bytes) -> bool:
        seen.append(payload)
        return accepts(self, recorded, payload)

    monkeypatch.setattr(RequestMatcher, "accepts", looked_at)
    return seen


@pytest.mark.parametrize("form", ["{{{0},{1}}}", "{{{1},{0}}}"])
def test_requests_with_other_ids_are_answered_by_their_bytes(tmp_path: Path, looks: list[bytes], form: str) -> None:
    def message(id: int, members: str) -> str:
        return form.format(f'"jsonrpc":"2.0","id":{id}', members)

    recorded = [
        each
        for n in range(1, 9)
        for each in (message(n, f'"method":"ask","params":[{n}]'), "<" + message(n, f'"result":[{n}]'))
    ]
    with Host(cassette(tmp_path / "a.yaml", lines(*recorded))) as host:
        said = host.say(*(message(40 + n, f'"method":"ask","params":[{n}]') for n in range(1, 9)))
    assert said == [message(40 + n, f'"result":[{n}]') for n in range(1, 9)]
    assert len(looks) == 1  # nothing is known to follow the last one


def test_a_line_that_comes_in_pieces_is_the_same_line(tmp_path: Path, looks: list[bytes]) -> None:
    text = "".join(f"{ask(n, n)}\n" for n in range(1, 9)).encode()
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(8)))) as host:
        said = b"".join(host.write(text[at : at + 150]) for at in range(0, len(text), 150))
    assert said.decode().splitlines() == [say(n, n) for n in range(1, 9)]
    assert 1 < len(looks) < 8


def test_what_stands_before_a_request_on_its_line_belongs_to_it(tmp_path: Path) -> None:
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(3)))) as host:
        assert host.write(b"junk") == b""
        assert host.write(f"{ask(1, 1)}\n".encode()) == b""
        assert "had no match" not in host.err
        assert "junk" in host.err


def test_calls_of_one_id_are_answered_in_their_order(tmp_path: Path) -> None:
    recorded = lines(ask(1, 1), ask(1, 2), f"<{say(1, 1)}", ask(3, 3), f"<{say(1, 2)}", f"<{say(3, 3)}", ask(4, 4))
    with Host(cassette(tmp_path / "a.yaml", recorded)) as host:
        assert host.say(ask(7, 1), ask(8, 2), ask(9, 3)) == [say(7, 1), say(8, 2), say(9, 3)]


def test_a_call_that_was_answered_can_still_be_cancelled(tmp_path: Path) -> None:
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}'
    recorded = lines(*pairs(4), cancel % 2, ask(5, 5), f"<{say(5, 5)}")
    with Host(cassette(tmp_path / "a.yaml", recorded, protocol="mcp")) as host:
        assert host.say(*(ask(10 + n, n) for n in range(1, 5))) == [say(10 + n, n) for n in range(1, 5)]
        assert host.say(cancel % 12, ask(15, 5)) == [say(15, 5)]
        assert not host.err


def test_an_id_that_notifications_repeat_is_the_live_one_in_them(tmp_path: Path) -> None:
    listen = '{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{}}'
    changed = (
        '{"jsonrpc":"2.0","method":"notifications/tools/list_changed",'
        '"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}}'
    )
    recorded = lines(
        listen % 1, f"<{say(1, 1)}", ask(2, 2), f"<{say(2, 2)}", ask(3, 3), f"<{changed % 1}", f"<{say(3, 3)}"
    )
    with Host(cassette(tmp_path / "a.yaml", recorded, protocol="mcp")) as host:
        assert host.say(listen % 7, ask(8, 2), ask(9, 3)) == [say(7, 1), say(8, 2), changed % 7, say(9, 3)]


def test_a_token_that_notifications_repeat_is_that_of_the_latest_call(tmp_path: Path) -> None:
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":%d}}}'
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}'
    first = [call % (1, 1), f"<{progress % 1}", f"<{say(1, 1)}"]
    later = [call % (2, 1), f"<{say(2, 2)}", ask(3, 3), f"<{progress % 1}", f"<{say(3, 3)}"]
    with Host(cassette(tmp_path / "a.yaml", lines(*first, *later), protocol="mcp")) as host:
        assert host.say(call % (5, 6)) == [progress % 6, say(5, 1)]
        assert host.say(call % (8, 1), ask(9, 3)) == [say(8, 2), progress % 1, say(9, 3)]


def test_after_a_miss_only_the_next_message_may_skip(tmp_path: Path) -> None:
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(6)))) as host:
        host.say(ask(10, 99))
        assert host.say(ask(11, 1), ask(12, 2)) == [say(11, 1), say(12, 2)]
        (refused,) = host.say(ask(13, 5))
        assert "out of turn" in refused
        assert host.say(ask(14, 3)) == [say(14, 3)]


def test_what_follows_a_message_that_diverges_is_not_lost(tmp_path: Path) -> None:
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(4)))) as host:
        host._player.diverges = True
        with pytest.raises(Divergence):
            host.say(ask(1, 1), ask(2, 2), ask(9, 99), ask(10, 3), ask(11, 4))
        assert host._player.unconsumed_input().decode().splitlines() == [ask(9, 99), ask(10, 3), ask(11, 4)]


def test_many_large_responses_are_not_held_at_once(tmp_path: Path, looks: list[bytes]) -> None:
    large = '{"jsonrpc":"2.0","id":%d,"result":"' + "." * 300_000 + '"}'
    recorded = [message for n in range(1, 13) for message in (ask(n, n), f"<{large % n}")]
    with Host(cassette(tmp_path / "a.yaml", lines(*recorded))) as host:
        host._player.receive_data("".join(f"{ask(n, n)}\n" for n in range(1, 13)).encode())
        assert host._player.more
        assert host._stage.size < 3_000_000
        text = host._take()
    assert text.decode().splitlines() == [large % n for n in range(1, 13)]
