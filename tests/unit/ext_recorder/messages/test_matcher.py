"""Which live message is which recorded one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.messages.matcher import Matcher
from ext_recorder.messages.open_calls import IdMap
from ext_recorder.messages.path_bindings import ReplayBindings
from ext_recorder.protocols.dialect import DIALECTS, Dialect

if TYPE_CHECKING:
    from ext_recorder.messages.matcher import Difference

GEVALS = DIALECTS["gevals"]


def matcher(
    dialect: Dialect = GEVALS, *, ignore: tuple[str, ...] = (), match_on: tuple[str, ...] | None = None
) -> Matcher:
    if match_on is None:
        return Matcher(dialect, ReplayBindings({}), IdMap(), ignore=ignore)
    return Matcher(dialect, ReplayBindings({}), IdMap(), ignore=ignore, match_on=match_on)


def same(recorded: str, live: str, compare: Matcher | None = None) -> bool:
    compare = compare or matcher()
    one, other = GEVALS.classify(recorded.encode()), GEVALS.classify(live.encode())
    found = compare.same(one, other)
    if found:
        assert compare.key(one) == compare.key(other), "messages that match are looked up by one key"
    return found


def call(params: str, *, id: str = "1", method: str = "m") -> str:
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}'


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        ('{"a":1,"b":[true,null]}', '{ "b" : [ true , null ] , "a" : 1 }'),
        ('"é\\/"', '"\\u00e9/"'),
        ("[1]", "[1.0]"),
        ("[1]", "[1e0]"),
        ("[100]", "[1E2]"),
        ("[0]", "[-0.0]"),
        ("[0.1]", "[1e-1]"),
        ("[0.1]", "[0.1000000000000000055]"),
        ("[12345678901234567890123]", "[12345678901234567890123]"),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
def test_two_spellings_of_one_value_match(recorded: str, live: str) -> None:
    assert same(call(recorded), call(live, id='"other"'))


@pytest.mark.parametrize(
    ("recorded", "live"),
    [
        ("[1]", "[true]"),
        ("[0]", "[false]"),
        ("[1]", '["1"]'),
        ("[null]", "[0]"),
        ("[null]", "[]"),
        ("[]", "{}"),
        ('{"a":null}', "{}"),
        ("[1,2]", "[2,1]"),
        ("[12345678901234567890123]", "[12345678901234567890124]"),
        ("[9007199254740993]", "[9007199254740992.0]"),
        ('{"a":1}', '{"A":1}'),
        ('"a "', '"a"'),
        ('"é"', '"e\\u0301"'),
    ],
)
def test_values_of_another_type_or_value_do_not_match(recorded: str, live: str) -> None:
    assert not same(call(recorded), call(live))
    assert not same(call(live), call(recorded))


def test_params_that_are_missing_null_or_empty() -> None:
    missing = '{"jsonrpc":"2.0","id":1,"method":"m"}'

    assert same(missing, call("null"))  # Go writes what others leave out
    assert not same(missing, call("{}"))


def test_the_method_and_the_kind_of_message_have_to_be_the_same() -> None:
    notification = '{"jsonrpc":"2.0","method":"m","params":{}}'

    assert not same(call("{}"), call("{}", method="n"))
    assert not same(call("{}"), notification)
    assert same(notification, notification.replace(",", " , "))


def test_an_answer_has_to_name_its_request_and_to_say_the_same() -> None:
    answer = '{"jsonrpc":"2.0","id":1,"result":{"a":1}}'

    assert same(answer, '{"result":{"a":1.0},"id":1.0,"jsonrpc":"2.0"}')
    assert not same(answer, answer.replace('"id":1', '"id":2'))
    assert not same(answer, answer.replace('"id":1', '"id":"1"'))
    assert not same(answer, answer.replace('"a":1', '"a":2'))
    assert not same(answer, answer.replace('"result"', '"error"'))


def test_other_members_of_a_message_do_not_count() -> None:
    assert same(call("{}"), '{"jsonrpc":"1.1","id":1,"method":"m","params":{},"trace":"x"}')


@pytest.mark.parametrize(
    ("ignore", "live", "matches"),
    [
        ("/params/seed", '{"seed":2,"a":[{"t":1,"v":1},{"t":2,"v":2}]}', True),
        ("/params/seed", '{"a":[{"t":1,"v":1},{"t":2,"v":2}]}', True),
        ("/params/other", '{"seed":2,"a":[{"t":1,"v":1},{"t":2,"v":2}]}', False),
        ("/params/a/*/t", '{"seed":1,"a":[{"t":8,"v":1},{"t":9,"v":2}]}', True),
        ("/params/a/*/t", '{"seed":1,"a":[{"t":8,"v":1}]}', False),
        ("/params/a/0", '{"seed":1,"a":[0,{"t":2,"v":2}]}', True),
        ("/params/a/0", '{"seed":1,"a":[0,{"t":3,"v":2}]}', False),
        ("/params", "null", True),
    ],
)
def test_what_is_ignored_need_not_match_and_need_not_be_there(ignore: str, live: str, matches: bool) -> None:
    recorded = call('{"seed":1,"a":[{"t":1,"v":1},{"t":2,"v":2}]}')

    assert same(recorded, call(live), matcher(ignore=(ignore,))) is matches


def test_names_with_slashes_and_tildes_are_spelled_as_json_pointers() -> None:
    assert same(call('{"a/b":{"~":1}}'), call('{"a/b":{"~":2}}'), matcher(ignore=("/params/a~1b/~0",)))


def test_matching_on_less_than_all() -> None:
    assert same(call("[1]"), call("[2]"), matcher(match_on=("method",)))
    assert same(call("[1]"), call("[1]", method="n"), matcher(match_on=("params",)))
    by_name = matcher(match_on=("method", "/params/name"))
    assert same(call('{"name":"a","x":1}'), call('{"name":"a","x":2}'), by_name)
    assert not same(call('{"name":"a"}'), call('{"name":"b"}'), by_name)


@pytest.mark.parametrize("pointer", ["params", "params/a", "$.a"])
def test_what_is_no_pointer_is_refused_with_an_example(pointer: str) -> None:
    if pointer != "params":
        with pytest.raises(
            UsageError, match=r"--match-on: expected method, params or a JSON pointer; .*/params/args/file"
        ):
            matcher(match_on=(pointer,))
    with pytest.raises(UsageError, match="/params/args/file"):
        matcher(ignore=(pointer,))


@pytest.mark.parametrize("payload", ["", "hello", "{broken", '"text"', "17", "[1,2]", "{}", '{"id":1}', "[" * 100_000])
def test_what_is_no_message_matches_itself(payload: str) -> None:
    assert same(payload, payload)
    assert not same(payload, payload + "x")


def test_json_that_is_no_message_matches_by_value() -> None:
    assert same("[1, 2]", "[1,2.0]")
    assert not same("[1, 2]", "[2,1]")


def test_placeholders_match_whatever_their_numbers_if_they_stand_for_each_other_throughout() -> None:
    recorded = call('{"a":"[redacted:bearer#1]","b":"x [redacted:bearer#2]","c":"[redacted:bearer#1]"}')

    assert same(recorded, call('{"a":"[redacted:bearer#5]","b":"x [redacted:env.T#1]","c":"[redacted:bearer#5]"}'))
    assert not same(recorded, call('{"a":"[redacted:bearer#5]","b":"x [redacted:bearer#5]","c":"[redacted:bearer#5]"}'))
    assert not same(recorded, call('{"a":"[redacted:bearer#1]","b":"y [redacted:bearer#2]","c":"[redacted:bearer#1]"}'))
    assert not same(recorded, call('{"a":"secret","b":"x [redacted:bearer#2]","c":"[redacted:bearer#1]"}'))


def pointers(found: list[Difference]) -> list[str]:
    return [each.pointer for each in found]


def test_differences_are_named_by_pointers_in_the_order_of_the_recorded_message() -> None:
    recorded = GEVALS.classify(call('{"z":1,"a":{"b":[1,2]},"gone":0}').encode())
    live = GEVALS.classify(call('{"a":{"b":[1,3,4]},"z":2,"new":0}').encode())

    found = matcher().differences(recorded, live, most=9)

    assert pointers(found) == ["/params/z", "/params/a/b/1", "/params/a/b/2", "/params/gone", "/params/new"]
    assert (found[0].recorded, found[0].live) == (1, 2)
    assert len(matcher().differences(recorded, live, most=2)) == 2


def test_a_value_nested_deeper_than_python_calls_is_compared() -> None:
    deep = "[" * 290 + "1" + "]" * 290  # the params have some levels of their own

    assert same(call(deep), call(deep.replace("1", "1.0")))
    assert not same(call(deep), call(deep.replace("1", "2")))
