"""Names and values of one session by those of another."""

from __future__ import annotations

import json

from ext_recorder.messages.name_map import NameMap
from ext_recorder.protocols.dialect import DIALECTS, ClassifiedMessage


def message(**members: object) -> ClassifiedMessage:
    return DIALECTS["gevals"].classify(json.dumps({"method": "m", **members}).encode())


def test_two_names_that_were_compared_belong_to_each_other_from_then_on() -> None:
    names = NameMap()
    names.learn(message(run="run-1"), message(run="run-7"), ["/run"])
    assert names.live(b'"run-1"') == "run-7"
    assert names.translated({"run": "run-1"}, {"run": "run-7"}, ["/run"]) == {"run": "run-1"}
    assert names.translated({"run": "run-1"}, {"run": "run-8"}, ["/run"]) == {"run": "run-8"}
    assert names.translated({"run": "run-2"}, {"run": "run-7"}, ["/run"]) == {"run": "run-7"}


def test_new_names_may_be_counterparts() -> None:
    assert NameMap().translated({"a": [{"id": 1}]}, {"a": [{"id": 2}]}, ["/a/0/id"]) == {"a": [{"id": 1}]}
    assert NameMap().translated({"id": True}, {"id": False}, ["/id"]) == {"id": False}


def test_a_value_that_was_handed_out_is_replaced_wherever_it_is() -> None:
    names = NameMap()
    names.hand_out(
        message(token="recorded-token"), message(token="redacted-token"), message(token="live-token"), ["/token"]
    )
    live = {"auth": "Bearer redacted-token", "list": ["redacted-token", "redacted"]}
    assert names.translated({}, live, []) == {"auth": "Bearer recorded-token", "list": ["recorded-token", "redacted"]}


def test_a_recorded_value_is_sent_as_the_live_one() -> None:
    names = NameMap()
    names.hand_out(
        message(token="recorded-token"), message(token="redacted"), message(token='live "token"'), ["/token"]
    )
    text = '{"recorded-token":"Bearer recorded-token"}'
    assert list(names.sent(text, 0, len(text))) == [(18, 41, '"Bearer live \\"token\\""')]


def test_short_values_are_replaced_as_complete_strings_only() -> None:
    names = NameMap()
    names.hand_out(message(cursor="7"), message(cursor="8"), message(cursor="8"), ["/cursor"])
    assert names.translated({}, {"cursor": "8", "text": "18 of 80"}, []) == {"cursor": "7", "text": "18 of 80"}
