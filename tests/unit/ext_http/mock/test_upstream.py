"""Requests that a mock forwards, and the routes that it records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

import ext_sdk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http_stub import Stub
    from tests.support.mocks import MockMaker
    from tests.support.ports import NewPort

TOKEN = "ghp_" + "a1B2" * 9  # redacted by its format


def recorded(folder: Path) -> list[dict[str, object]]:
    """Return the recorded routes."""
    args = json.loads((folder / "routes.json").read_text())
    assert args.keys() == {"verbatim", "routes"}
    return cast("list[dict[str, object]]", args["routes"])


def test_what_no_route_matches_is_forwarded_and_recorded(mocks: MockMaker, stub: Stub) -> None:
    stub.json("/v1/items", [{"price": "$(5) ${a.b}"}])
    stub.does("/v1/say", lambda handler, asked: handler.answer(201, asked.body + b"!", {"X-A": ["1", "2"]}))
    stub.says("/v1/data", b"\xff\x00")
    stub.says("/v1/a b{c}", TOKEN)
    stub.does("/v1/count", lambda handler, asked: handler.answer(200, str(min(asked.number, 2))))
    upstream = {"url": stub.url("/v1"), "record": "routes.json"}
    mock = mocks({"name": "own", "path": "/own", "answer": {"text": "own"}}, upstream=upstream)
    assert mock.ask("/own").text == "own"
    items = mock.ask("/items?q=1&q=2", headers={"Host": "shop.test", "X-Id": "7"})
    assert (items.text, items.headers["content-type"]) == ('[{"price": "$(5) ${a.b}"}]', "application/json")
    assert stub.asked[-1].path == "/v1/items?q=1&q=2"
    assert stub.asked[-1].header("host") == stub.address
    assert stub.asked[-1].header("x-id") == "7"
    said = mock.ask("/say", "POST", '{"n": 1}')
    assert (said.status, said.text) == (201, '{"n": 1}!')
    assert mock.ask("/data").body == b"\xff\x00"
    assert [mock.ask("/count").text for _ in range(4)] == ["1", "2", "2", "2"]
    assert mock.ask("/nothing").status == 404
    result = mock.verify(calls=[{"route": "upstream", "exactly": 8}, {"route": "own", "exactly": 1}], unmatched=0)
    assert result.success, result
    assert mock.stop().outputs["recorded"] == "8"
    routes = recorded(mocks.workdir)
    again = mocks(name="again", routesFile="routes.json")
    assert again.ask("/items?q=1&q=2").text.replace(" ", "") == items.text.replace(" ", "")
    assert again.ask("/items").status == 404
    assert again.ask("/say", "POST", '{"n": 1}').status == 201
    assert '"X-A": ["1", "2"]' in json.dumps(routes)
    assert again.ask("/data").body == b"\xff\x00"
    assert [again.ask("/count").text for _ in range(3)] == ["1", "2", "2"]
    assert again.ask("/nothing").status == 404


def test_paths_with_braces_and_secrets(mocks: MockMaker, stub: Stub) -> None:
    stub.default = lambda handler, asked: handler.answer(200, TOKEN)
    mock = mocks(upstream={"url": stub.origin, "record": "routes.json"})
    assert mock.ask("/a%20b%7Bc%7D").text == TOKEN
    mock.stop()
    assert TOKEN not in (mocks.workdir / "routes.json").read_text()
    assert mocks(*recorded(mocks.workdir), name="again").ask("/a%20b%7Bc%7D").status == 200


LOGIN = {"user": "a", "password": "p1", "keys": [{"api_key": "k1", "n": 1}], "ids": [1, TOKEN]}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_a_recording_matches_requests_with_any_secret(mocks: MockMaker, stub: Stub) -> None:
    """A placeholder was the expected value, which no request has."""
    stub.default = lambda handler, asked: handler.answer(200, f"{asked.number}")
    mock = mocks(upstream={"url": stub.origin, "record": "routes.json"})
    mock.ask("/q?api_key=zz&n=1")
    mock.ask(f"/users/{TOKEN}/x")
    mock.ask("/json", "POST", json.dumps(LOGIN))
    mock.ask("/form", "POST", "user=a&password=p1&n=1", FORM)
    mock.ask("/text", "POST", f"my {TOKEN}")
    mock.ask("/open", "POST", "b=1&a=2", FORM)
    assert "secrets are redacted in 5 of the 6 routes of routes.json" in mock.stop().message
    text = (mocks.workdir / "routes.json").read_text()
    assert not [secret for secret in (TOKEN, "zz", "p1", "k1") if secret in text]
    again = mocks(name="again", routesFile="routes.json", hints=True)
    other = {**LOGIN, "password": "p2", "keys": [{"api_key": "k2", "n": 1}], "ids": [1, "t"]}
    for target, body, headers in [
        ("/q?n=1&api_key=yy", None, {}),
        ("/users/other/x", None, {}),
        ("/json", json.dumps(other), {}),
        ("/form", "password=p2&n=1&user=a", FORM),
        ("/text", "my other", {}),
        ("/open", "a=2&b=1", FORM),
    ]:
        got = again.ask(target, "POST" if body else "GET", body, headers)
        assert got.status == 200, got
    for target, body, headers in [
        ("/q?n=2&api_key=yy", None, {}),
        ("/q?n=1", None, {}),
        ("/users/other/y", None, {}),
        ("/json", json.dumps({**other, "user": "b"}), {}),
        ("/json", json.dumps({**other, "keys": [{"api_key": "k1", "n": 2}]}), {}),
        ("/json", json.dumps({"user": "a", "keys": [{"n": 1, "api_key": "k"}], "ids": [1, "t"]}), {}),
        ("/form", "password=p2&n=2&user=a", FORM),
        ("/open", "a=2&b=2", FORM),
    ]:
        got = again.ask(target, "POST" if body else "GET", body, headers)
        assert got.status == 404, (target, body)


def test_an_upstream_server_that_does_not_respond(mocks: MockMaker, new_port: NewPort) -> None:
    mock = mocks(upstream={"url": f"http://127.0.0.1:{new_port()}"})
    assert mock.ask("/").status == 502
    result = mock.verify(calls=[{"route": "upstream"}])
    assert "1 response failed, first #1: the upstream server did not respond" in result.message


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"upstream": {"url": "ftp://a.test"}}, "expected a URL with http"),
        ({"upstream": {"url": "http://a.test"}, "otherwise": {}}, "omit otherwise"),
        ({"upstream": {"url": "http://a.test"}, "routes": [{"name": "upstream", "answer": {}}]}, "named 'upstream'"),
        ({}, "at least one of routes, routesFile and upstream"),
    ],
)
def test_upstream_servers_that_are_refused(mocks: MockMaker, args: dict[str, object], problem: str) -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match=problem):
        mocks(**args)


@pytest.mark.parametrize(
    ("upstream", "problem"),
    [
        ({"url": "http://127.0.0.1:1", "record": "../routes.json"}, "not a path inside the working directory"),
        ({"url": "http://169.254.169.254/"}, "clouds serve credentials"),
    ],
)
def test_files_and_hosts_that_are_refused(mocks: MockMaker, upstream: object, problem: str) -> None:
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        mocks(upstream=upstream)
    assert problem in failed.value.error


def test_a_host_from_a_variable_is_refused_unless_it_is_allowed(mocks: MockMaker, stub: Stub) -> None:
    mocks.context.given = {"upstream": {"url": "${svc.url}"}}
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        mocks(upstream={"url": stub.origin})
    assert "comes from a variable" in failed.value.error
