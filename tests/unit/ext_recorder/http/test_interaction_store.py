"""Selection of the recorded response for a request: polls in order, calls apart, and the reason of a miss."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.interaction import CONNECT, TCP, Body, Headers, Interaction
from ext_recorder.http.interaction_store import InteractionStore
from ext_recorder.http.request_matching import Difference, PathPairs, Subject, different

if TYPE_CHECKING:
    from collections.abc import Sequence

JSON = [("Content-Type", "application/json")]


def asked(
    method: str = "GET",
    uri: str = "http://h/a",
    body: bytes = b"",
    headers: Headers | None = None,
    call: int | None = 1,
) -> Interaction:
    made = Interaction(method, uri, headers or [], Body(body))
    made.call, made.status = call, 200
    return made


def answered(
    text: str, method: str = "GET", uri: str = "http://h/a", body: bytes = b"", call: int | None = 1
) -> Interaction:
    made = asked(method, uri, body, call=call)
    made.body = Body(text.encode())
    return made


def library(*interactions: Interaction) -> InteractionStore:
    return InteractionStore(interactions, {}, {})


def text(found: Interaction | str) -> str:
    assert isinstance(found, Interaction), found
    assert found.body is not None
    return found.body.whole().decode()


def test_a_poll_gets_its_answers_in_order_and_then_the_last_one_again() -> None:
    """The number of polls depends on time, their last result does not."""
    shelf = library(answered("no"), answered("soon"), answered("yes"))
    live = Subject(asked())
    assert [text(shelf.take(live, 1)) for _ in range(5)] == ["no", "soon", "yes", "yes", "yes"]
    assert shelf.never_played() == []


def test_a_request_that_was_sent_once_is_answered_once() -> None:
    shelf = library(answered("once"))
    assert text(shelf.take(Subject(asked()), 1)) == "once"
    assert "used up: it is recorded once" in str(shelf.take(Subject(asked()), 1))


def test_what_changes_something_is_never_answered_twice() -> None:
    shelf = library(answered("1", "POST", body=b"{}"), answered("2", "POST", body=b"{}"))
    live = Subject(asked("POST", body=b"{}"))
    assert [text(shelf.take(live, 1)) for _ in range(2)] == ["1", "2"]
    assert "used up: it is recorded 2 times" in str(shelf.take(live, 1))


def test_calls_that_overlap_get_their_own_answers_whatever_their_ids() -> None:
    shelf = library(answered("a1", call=1), answered("b1", call=2), answered("a2", call=1), answered("b2", call=2))
    live = Subject(asked())
    assert [text(shelf.take(live, call)) for call in (71, 72, 72, 71)] == ["a1", "b1", "b2", "a2"]


def test_a_call_of_a_recorded_id_is_that_call() -> None:
    shelf = library(answered("a", call=1), answered("b", call=2))
    assert text(shelf.take(Subject(asked()), 2)) == "b"
    assert text(shelf.take(Subject(asked()), 1)) == "a"


def test_what_another_call_asked_for_is_not_given_away() -> None:
    shelf = library(answered("mine", call=1), answered("other", call=2), answered("x", call=1, uri="http://h/b"))
    assert text(shelf.take(Subject(asked(uri="http://h/b")), 1)) == "x"
    assert text(shelf.take(Subject(asked()), 1)) == "mine"
    assert "recorded for another call (2)" in str(shelf.take(Subject(asked()), 1))


@pytest.mark.parametrize(
    ("live", "reason"),
    [
        (asked(uri="http://h/b"), "GET http://h/b: never recorded"),
        (asked("DELETE"), "never recorded; with this path there are GET, POST"),
        (asked(uri="http://other/a"), "address: recorded http://h, now http://other"),
        (asked(uri="http://h/a?x=2"), "/query/x: recorded nothing, now 2"),
        (asked("POST", body=b'{"a": {"b": [1, 2]}}'), "/body/a/b/1: recorded 3, now 2"),
        (asked("POST", body=b"\xff"), '/body: recorded {"a": {"b": [1, 3]}}, now 1 bytes'),
    ],
)
def test_a_miss_says_which_of_the_reasons_it_was(live: Interaction, reason: str) -> None:
    shelf = library(answered("a"), answered("b", method="POST", body=b'{"a": {"b": [1, 3]}}'))
    assert reason in str(shelf.take(Subject(live), 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (asked("POST", body=b'{"a":1,"b":[2]}'), asked("POST", body=b'{ "b": [2], "a": 1 }')),
        (asked(uri="http://h/a?x=1&y=2"), asked(uri="http://H:80/a?y=2&x=1")),
        (asked(uri="https://h"), asked(uri="https://h:443/")),
        (asked(uri="http://h/a?t=[redacted:env.A#1]"), asked(uri="http://h/a?t=[redacted:bearer#7]")),
        (asked("POST", body=b'{"t":"[redacted:env.A#1]"}'), asked("POST", body=b'{"t":"[redacted:key.t#2]"}')),
        (
            asked(
                "POST",
                body=b"--x1\r\n\r\nfile\r\n--x1--",
                headers=[("Content-Type", "multipart/form-data; boundary=x1")],
            ),
            asked(
                "POST",
                body=b"--y2\r\n\r\nfile\r\n--y2--",
                headers=[("content-type", "multipart/form-data; boundary=y2")],
            ),
        ),
    ],
)
def test_requests_that_mean_the_same_are_the_same(one: Interaction, other: Interaction) -> None:
    assert Subject(one).key() == Subject(other).key()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (asked("POST", body=b'{"a":1}'), asked("POST", body=b'{"a":"1"}')),
        (asked("POST", body=b'{"a":1}'), asked("POST", body=b'{"a":true}')),
        (asked("POST", body=b"[1,2]"), asked("POST", body=b"[2,1]")),
        (asked("POST", body=b"9007199254740993"), asked("POST", body=b"9007199254740992")),
        (asked(), asked(uri="https://h/a")),
        (asked(uri="http://h/a?x=1&x=2"), asked(uri="http://h/a?x=1")),
    ],
)
def test_requests_that_do_not_are_not(one: Interaction, other: Interaction) -> None:
    assert Subject(one).key() != Subject(other).key()


def test_a_miss_names_the_interaction_and_what_to_ignore() -> None:
    shelf = library(answered("a"), answered("b", uri="http://h/b?q=a&x/y=1"))
    miss = str(shelf.take(Subject(asked(uri="http://h/b?q=b&x/y=2")), 1))
    assert "differs from recorded interaction 2: /query/q: recorded a, now b; /query/x~1y: recorded 1, now 2" in miss
    assert miss.endswith("set aside what may differ (--ignore /query/q --ignore '/query/x~1y')")


def test_a_miss_names_the_closest_request_with_a_similar_path() -> None:
    shelf = library(
        answered("a", uri="http://h/v1/jobs/17/logs"),
        answered("b", uri="http://h/v1/tasks/80/logs"),
        answered("c", uri="http://h/v1/jobs/17/logs?follow=1"),
    )
    miss = str(shelf.take(Subject(asked(uri="http://h/v1/jobs/80/logs?follow=1")), 1))
    assert "recorded interaction 3 (GET http://h/v1/jobs/17/logs?follow=1): /path: recorded /v1/jobs/17/logs" in miss
    far = str(shelf.take(Subject(asked(uri="http://h/v2/pods/5/logs")), 1))
    assert far.endswith("never recorded")


def test_the_closest_request_has_the_fewest_differences_and_was_not_replayed() -> None:
    def turn(*texts: str, session: str) -> bytes:
        return json.dumps({"session": session, "messages": list(texts)}).encode()

    shelf = library(
        answered("1", "POST", body=turn("a", session="x")),
        answered("2", "POST", body=turn("a", "b", session="x")),
        answered("3", "POST", body=turn("a", session="x")),
    )
    assert "recorded interaction 2: /body/session" in str(
        shelf.take(Subject(asked("POST", body=turn("a", "b", session="y"))), 1)
    )
    assert text(shelf.take(Subject(asked("POST", body=turn("a", session="x"))), 1)) == "1"
    assert "recorded interaction 3: /body/session" in str(
        shelf.take(Subject(asked("POST", body=turn("a", session="y"))), 1)
    )


def test_the_closest_of_several_prompts_is_the_most_similar_one_and_a_mask_is_proposed() -> None:
    """Three prompts whose date differs on replay: each is compared with its own recorded one."""

    def prompt(date: str, text: str, run: str = "x") -> bytes:
        return json.dumps({"prompt": f"Today is {date}. {text}", "run": run}).encode()

    prompts = ("List the pods.", "Delete the pod web-1, then wait.", "List the services of the cluster.")
    shelf = library(*(answered(text, "POST", body=prompt("2026-11-22", text)) for text in prompts))
    for number, one in enumerate(prompts, 1):
        miss = str(shelf.take(Subject(asked("POST", body=prompt("2026-11-23", one))), 1))
        assert f"differs from recorded interaction {number}: /body/prompt" in miss
        assert miss.endswith("(--mask @date)")
        miss = str(shelf.take(Subject(asked("POST", body=prompt("2026-11-23", one, "y"))), 1))
        assert miss.endswith("(--mask @date --ignore /body/run)")
    assert text(shelf.take(Subject(asked("POST", body=prompt("2026-11-22", prompts[1]))), 1)) == prompts[1]
    miss = str(shelf.take(Subject(asked("POST", body=prompt("2026-11-23", prompts[1]))), 1))
    assert "recorded interaction 2" not in miss  # it was replayed


class Accepting:
    """A learner for which everything looks volatile."""

    def __init__(self) -> None:
        self.paths = PathPairs()
        self.numbers: list[int] = []

    def learn(self, number: int, recorded: Subject, live: Subject, differences: Sequence[Difference], /) -> bool:
        assert different(recorded, live) == list(differences)
        self.numbers.append(number)
        return True


def test_while_rules_are_learned_the_closest_request_is_replayed_once() -> None:
    shelf = library(answered("1", "POST", body=b'{"n": 1}'), answered("2", "POST", body=b'{"n": 1}'))
    shelf.learner = learner = Accepting()
    live = Subject(asked("POST", body=b'{"n": 2}'))
    assert [text(shelf.take(live, 1)) for _ in range(2)] == ["1", "2"]
    assert "differs from recorded interaction" in str(shelf.take(live, 1))
    assert len(learner.numbers) == 2
    assert shelf.never_played() == []


def test_what_was_recorded_outside_of_calls_and_never_sent_has_no_call() -> None:
    assert library(answered("a", call=None)).never_played()[1] == "  GET http://h/a"


def test_what_was_recorded_and_never_sent_is_told() -> None:
    shelf = library(answered("a"), answered("b", uri="http://h/b"))
    shelf.take(Subject(asked()), 1)
    assert shelf.never_played() == ["one recorded request was never sent:", "  GET http://h/b (call 1)"]


def test_a_poll_that_ends_before_it_saw_what_was_waited_for_is_told() -> None:
    shelf = library(answered("no"), answered("no"), answered("yes"))
    shelf.take(Subject(asked()), 1)
    assert shelf.never_played()[0] == "one recorded request was never sent:"  # the second `no` may be missing


def test_a_connection_fails_where_it_failed() -> None:
    refusal = Interaction(CONNECT, f"{TCP}h:80", error={"type": "ConnectionRefusedError"})
    shelf = library(refusal, answered("a"))
    assert shelf.refusal(TCP, "h:80") is refusal
    assert shelf.refusal(TCP, "h:80") is None
    assert text(shelf.take(Subject(asked()), 1)) == "a"


def test_every_failure_of_a_connection_is_replayed_before_it_succeeds() -> None:
    refusals = [Interaction(CONNECT, f"{TCP}h:80", error={"type": "ConnectionRefusedError"}) for _ in "ab"]
    shelf = library(refusals[0], refusals[1], answered("a"))
    assert [shelf.refusal(TCP, "h:80") for _ in "abc"] == [*refusals, None]


def test_a_server_that_was_never_reached_is_not_reached_however_often_it_is_tried() -> None:
    refusals = [Interaction(CONNECT, f"{TCP}h:80", error={"type": "ConnectionRefusedError"}) for _ in "ab"]
    shelf = library(answered("a"), *refusals)
    assert text(shelf.take(Subject(asked()), 1)) == "a"
    assert [shelf.refusal(TCP, "h:80") for _ in "abc"] == [*refusals, refusals[1]]


def test_a_call_stays_the_recorded_call_that_it_was_first() -> None:
    recorded = [answered(text, "POST", call=int(text[1])) for text in ("a1", "b2", "c1", "d2", "e1")]
    shelf = library(*recorded)
    live = Subject(asked("POST"))
    assert [text(shelf.take(live, call)) for call in (71, 72, 72, 71, 71)] == ["a1", "b2", "d2", "c1", "e1"]


def test_requests_outside_of_calls_are_not_played_to_calls_if_their_clock_is() -> None:
    shelf = InteractionStore([answered("a", call=None)], {(None, ""): [[1]]}, {})
    assert shelf.clock(5, "") == (None, [[1]])
    assert "recorded for another call (None)" in str(shelf.take(Subject(asked()), 6))
    assert text(shelf.take(Subject(asked()), 5)) == "a"
