"""States of a mock, form fields, and routes that change while it runs."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from tests.support.mocks import wait_for

if TYPE_CHECKING:
    from tests.support.mocks import MockMaker

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def says(text: str, name: str = "", **route: object) -> dict[str, object]:
    return {"name": name or text, "path": "/", "answer": {"text": text}} | route


def test_a_route_applies_in_its_states_and_sets_the_next(mocks: MockMaker) -> None:
    mock = mocks(
        says("first", inState="start", thenState="second"),
        says("next", inState=["second", "third"], thenState="third"),
        says("other", path="/other", inState="third"),
    )
    assert mock.ask("/other").status == 404
    assert [mock.ask("/").text for _ in range(3)] == ["first", "next", "next"]
    assert mock.ask("/other").text == "other"
    result = mock.verify(state="third", calls=[{"route": "next", "exactly": 2}])
    assert result.outputs["state"] == "third"
    error = mock.verify(state="second", unmatched=0).error
    assert 'state: expected to be "second", got "third"' in error
    assert 'state: expected to be "third", got "start"' in error  # why /other got 404


def test_one_of_many_requests_at_once_changes_a_state(mocks: MockMaker) -> None:
    mock = mocks(says("won", inState="start", thenState="over"), says("lost"))
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(mock.ask("/").text)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["lost"] * 11 + ["won"]


def test_a_state_that_no_route_sets_is_reported(mocks: MockMaker) -> None:
    mock = mocks(says("a", inState="loged-in"), says("b", thenState="logged-in"), state="new")
    result = mock.update(state="loged-in")
    assert "only mock-update leads to" not in result.message
    assert mock.ask("/").text == "a"
    assert "only mock-update leads to state loged-in, and no route does" in mock.update(state="new").message


def test_fields_of_a_form(mocks: MockMaker) -> None:
    mock = mocks(says("ok", method="POST", form={"user": "ada", "tag": ["a", "b"], "note": {"contains": "ä"}}))
    assert mock.ask("/", "POST", "user=ada&tag=a&tag=b&note=%C3%A4+x", FORM).status == 200
    assert mock.ask("/", "POST", "user=eve&tag=a&tag=b&note=%C3%A4", FORM).status == 404
    multipart = "".join(
        f'--X\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'
        for name, value, more in (
            ("user", "ada", ""),
            ("tag", "a", ""),
            ("tag", "b", ""),
            ("note", "ä", '; filename="n.txt"'),
        )
    )
    kind = {"Content-Type": "multipart/form-data; boundary=X"}
    assert mock.ask("/", "POST", f"{multipart}--X--\r\n".encode(), kind).status == 200
    assert mock.ask("/", "POST", '{"user": "ada"}', {"Content-Type": "application/json"}).status == 404
    error = mock.verify(unmatched=0).error
    assert 'form user: expected to be exactly "ada", got "eve"' in error
    assert "body: expected to be a web form, got a body with another Content-Type" in error


def test_routes_change_while_a_mock_runs(mocks: MockMaker) -> None:
    mock = mocks(says("a", "one", answer=[{"text": "a1"}, {"text": "a2"}]), says("b", "two", path="/two"))
    assert mock.ask("/").text == "a1"
    result = mock.update(routes=[says("c", "one", answer=[{"text": "c1"}, {"text": "c2"}]), says("d", path="/two")])
    assert "1 route replaced, 1 route added" in result.message
    assert json.loads(result.outputs["routes"]) == ["d", "one", "two"]
    assert [mock.ask("/").text for _ in range(2)] == ["c1", "c2"]
    assert mock.ask("/two").text == "d"
    assert "1 route removed" in mock.update(remove=["d"]).message
    assert mock.ask("/two").text == "b"
    assert mock.verify(calls=[{"route": "d", "exactly": 1}]).success  # a removed route can be checked
    mock.update(remove=["one", "two"])
    assert mock.ask("/").status == 404
    assert "the mock has no routes" in mock.verify(unmatched=0).error


def test_a_cleared_journal_begins_again(mocks: MockMaker) -> None:
    mock = mocks(says("a"))
    mock.ask("/")
    mock.raw(b"no request\r\n\r\n")
    wait_for(lambda: "valid requests" in mock.verify(unmatched=1).error)
    result = mock.update(clearJournal=True)
    assert "journal of 1 request cleared" in result.message
    assert result.outputs["calls"] == "1"
    mock.ask("/")
    result = mock.verify(calls=[{"route": "a", "exactly": 1}])
    assert result.success
    assert result.outputs["calls"] == "1"
    assert "valid requests" not in mock.verify(unmatched=1).error
    lines = [json.loads(line) for line in Path(result.outputs["journalFile"]).read_text().splitlines()]
    assert [line.get("n", "cleared" in line) for line in lines] == [1, False, True, 1]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "at least one of routes, remove, state and clearJournal"),
        ({"remove": ["b"]}, r"remove\[0\]: expected a route of the mock, found 'b'"),
        ({"routes": [says("a"), says("a")]}, "occurs twice"),
        ({"routes": [says("a")], "remove": ["a"]}, "is also in routes"),
    ],
)
def test_updates_that_are_refused(mocks: MockMaker, args: dict[str, object], problem: str) -> None:
    mock = mocks(says("a"))
    with pytest.raises(ext_sdk.InvalidArgs, match=problem):
        mock.update(**args)
    assert mock.ask("/").text == "a"


def test_a_mock_can_listen_at_all_addresses(mocks: MockMaker) -> None:
    mock = mocks(says("here"), host="0.0.0.0")
    assert mock.url == f"http://127.0.0.1:{mock.port}"
    mock.host = "127.0.0.2"
    assert mock.ask("/").text == "here"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"host": "localhost"}, "host: expected an IP address of this machine"),
        ({"hostNames": ["a.test"]}, "hostNames requires `tls: true`"),
        ({"hostNames": ["a b"], "tls": True}, "hostNames: expected names of hosts"),
    ],
)
def test_addresses_that_are_refused(mocks: MockMaker, args: dict[str, object], problem: str) -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match=problem):
        mocks(says("a"), **args)
