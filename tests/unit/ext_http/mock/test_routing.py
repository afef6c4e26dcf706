"""What a mock answers: routes, canned and templated answers, sequences, delays and faults, over real sockets."""

from __future__ import annotations

import base64
import copy
import http.client
import json
import shutil
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from ext_http.operations.mock import MockStart
from ext_sdk.context import Place
from ext_sdk.server.validation import validate
from tests.support.mocks import MockMaker, read_all

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ports import NewPort


def says(text: str, **more: object) -> dict[str, object]:
    return {"answer": {"text": text}} | more


# --- Which route ----------------------------------------------------------------------------------------------------


def test_the_first_route_that_fits_takes_a_request(mocks: MockMaker) -> None:
    mock = mocks(
        says("seven", name="seven", path="/items/7"),
        says("posted", name="post", method=["POST", "PUT"], path="/items/{id}"),
        says("any ${request.path.id}", name="any", path="/items/{id}"),
        says("found ${request.path.rest}", name="regex", pathMatches="^/files/(?P<rest>.*)$"),
    )
    assert mock.ask("/items/7").text == "seven"
    assert mock.ask("/items/7", "POST").text == "seven"
    assert mock.ask("/items/8", "PUT").text == "posted"
    assert mock.ask("/items/8").text == "any 8"
    assert mock.ask("/items/a%20b%2Fc").text == "any a b/c"
    assert mock.ask("/files/a/b.txt?x=1").text == "found a/b.txt"
    assert mock.ask("/%69tems/7").text == "seven"
    assert mock.ask("/items/").status == mock.ask("/items/8/").status == mock.ask("/Items/8").status == 404


def test_query_headers_and_body_choose_among_routes_of_one_path(mocks: MockMaker) -> None:
    mock = mocks(
        says("metric", name="q", path="/w", query={"units": "metric"}),
        says("both", name="qs", path="/w", query={"id": ["1", "2"]}),
        says("known", name="h", path="/w", headers={"X-Id": {"matches": "^[0-9]+$"}}),
        says("json", name="j", path="/w", body={"jsonContains": {"kind": "order"}}),
        says("text", name="t", path="/w", body={"contains": "hello"}),
        says("else", name="e", path="/w"),
    )
    assert mock.ask("/w?units=metric&more=1").text == "metric"
    assert mock.ask("/w?id=1&id=2").text == "both"
    assert mock.ask("/w?id=2&id=1").text == "else"
    assert mock.ask("/w?units=me%74ric").text == "metric"
    assert mock.ask("/w", headers={"x-id": "42"}).text == "known"
    assert mock.ask("/w", headers={"x-id": "a42"}).text == "else"
    assert mock.ask("/w", "POST", '{"kind": "order", "n": 1}').text == "json"
    assert mock.ask("/w", "POST", "hello you").text == "text"


FORECAST = says("x", name="forecast", method="GET", path="/v1/{city}/forecast", query={"units": "metric"})
REPORTS = says("y", name="reports", method="POST", path="/v1/reports")


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        (b"GET /v1/Oslo/forecast?units=kelvin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404, b"Not Found"),
        (b"GET /v1/reports HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404, b"Not Found"),
        (b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 500, b"Internal Server Error"),
        (b"GET /head?q=%0d%0aX:1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 500, b"Internal Server Error"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413, None),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, b"Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431, b"Request Header Fields Too Large"),
        (b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505, b"HTTP Version Not Supported"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX:", 408, b"Request Timeout"),
    ],
)
def test_an_answer_of_the_mock_s_own_does_not_reveal_that_it_is_one_or_what_is_expected(
    mocks: MockMaker, request_: bytes, status: int, text: bytes | None
) -> None:
    mock = mocks(
        FORECAST,
        REPORTS,
        {"name": "echo", "path": "/echo", "answer": {"text": "${request.query.q}"}},
        {"name": "head", "path": "/head", "answer": {"headers": {"X-Echo": "${request.query.q}"}}},
        limits={"body": 1000, "requestTime": "1s"},
    )
    head, _, body = mock.raw(request_).partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    assert first.startswith(b"HTTP/1.1 %d " % status)
    assert body == first.removeprefix(b"HTTP/1.1 %d " % status) + b"\n"
    assert text in {None, body.rstrip()}
    assert {line.partition(b":")[0].lower() for line in headers} <= {b"connection", b"content-type", b"content-length"}


def test_with_hints_a_call_that_no_route_takes_is_told_the_nearest_one_and_why_not(mocks: MockMaker) -> None:
    mock = mocks(FORECAST, REPORTS, hints=True)
    told = mock.ask("/v1/Oslo/forecast?units=kelvin")
    assert told.status == 404
    assert told.text == (
        "mock 'mock': no route matches GET /v1/Oslo/forecast?units=kelvin; the nearest is forecast: query units: "
        'expected to be exactly "metric", got "kelvin"\n'
    )
    assert "the nearest is reports: method: expected to be POST, got GET" in mock.ask("/v1/reports").text


def test_with_hints_what_is_no_request_is_told_what_is_wrong(mocks: MockMaker) -> None:
    mock = mocks(REPORTS, hints=True)
    assert b"not HTTP/1.1: illegal request line" in mock.raw(b"NOT HTTP\r\n\r\n")


@pytest.mark.parametrize("hints", [False, True])
def test_what_no_route_takes_may_get_another_answer(mocks: MockMaker, *, hints: bool) -> None:
    mock = mocks(says("x", path="/a"), otherwise={"status": 418, "json": {"asked": "${request.url}"}}, hints=hints)
    got = mock.ask("/b?c=1")
    assert (got.status, json.loads(got.body)) == (418, {"asked": "/b?c=1"})


# --- What it answers ------------------------------------------------------------------------------------------------


def test_a_body_is_text_json_a_file_or_base64(mocks: MockMaker) -> None:
    (mocks.workdir / "page.html").write_bytes(b"<p>\xff</p>")
    data = bytes(range(256))
    mock = mocks(
        {"path": "/text", "answer": {"text": "straße"}},
        {"path": "/json", "answer": {"json": [1, "2", None, 9007199254740993, 1.0]}},
        {"path": "/file", "answer": {"file": "page.html"}},
        {"path": "/base64", "answer": {"base64": base64.b64encode(data).decode(), "status": 203}},
        {"path": "/none", "answer": {"status": 204}},
        {"path": "/empty", "answer": {}},
        {"path": "/type", "answer": {"text": "a,b", "headers": {"content-type": "text/csv", "X-A": ["1", "2"]}}},
    )
    assert mock.ask("/text").text == "straße"
    assert mock.ask("/text").headers["content-type"] == "text/plain; charset=utf-8"
    assert mock.ask("/json").body == b'[1, "2", null, 9007199254740993, 1.0]'
    assert mock.ask("/json").headers["content-type"] == "application/json"
    assert (mock.ask("/file").body, mock.ask("/file").headers["content-type"]) == (b"<p>\xff</p>", "text/html")
    assert (mock.ask("/base64").body, mock.ask("/base64").status) == (data, 203)
    assert (mock.ask("/none").status, mock.ask("/none").headers) == (204, {})
    assert (mock.ask("/empty").body, mock.ask("/empty").headers) == (b"", {"content-length": "0"})
    connection = mock.client()
    connection.request("GET", "/type")
    response = connection.getresponse()
    assert response.headers.get_all("x-a") == ["1", "2"]
    assert response.headers.get_all("content-type") == ["text/csv"]
    connection.close()


def test_a_file_is_read_when_the_mock_starts(mocks: MockMaker) -> None:
    (mocks.workdir / "a.txt").write_text("before")
    mock = mocks({"path": "/a", "answer": {"file": "a.txt"}})
    (mocks.workdir / "a.txt").write_text("after")
    assert mock.ask("/a").text == "before"


def test_answers_come_one_after_the_other_and_the_last_one_repeats(mocks: MockMaker) -> None:
    mock = mocks(
        {
            "path": "/job",
            "answer": [{"status": 503, "times": 2}, {"status": 202}, {"text": "done ${request.count}"}],
        }
    )
    assert [mock.ask("/job").status for _ in range(5)] == [503, 503, 202, 200, 200]
    assert mock.ask("/job").text == "done 6"


def test_parts_of_the_request_are_filled_in(mocks: MockMaker) -> None:
    mock = mocks(
        {
            "path": "/{user}/x",
            "answer": {
                "headers": {"X-Echo": "${request.header.x-in|none}", "Location": "/next/${request.path.user}"},
                "json": {
                    "user": "${request.path.user}",
                    "who": "${request.json/people/1/name}",
                    "person": "${request.json/people/0}",
                    "text": "it is ${request.json/people/0/age} in ${request.query.year|2026}, $${x} ${request.method}",
                    "number": "${request.json/people/0/age}",
                    "${request.path.user}": 1,
                },
            },
        }
    )
    body = json.dumps({"people": [{"name": "Ann ${request.path.user}", "age": 9007199254740993}, {"name": "Bob"}]})
    got = mock.ask("/carl/x", "POST", body, {"X-In": "out"})
    assert (got.headers["x-echo"], got.headers["location"]) == ("out", "/next/carl")
    assert json.loads(got.body) == {
        "user": "carl",
        "who": "Bob",
        "person": {"name": "Ann ${request.path.user}", "age": 9007199254740993},
        "text": "it is 9007199254740993 in 2026, ${x} POST",
        "number": 9007199254740993,
        "${request.path.user}": 1,
    }
    assert mock.ask("/carl/x", "POST", body).headers["x-echo"] == "none"


def test_a_request_that_lacks_what_the_answer_needs_gets_500_and_with_hints_the_reason(mocks: MockMaker) -> None:
    mock = mocks({"name": "echo", "path": "/e", "answer": {"text": "${request.json/a}"}}, hints=True)
    got = mock.ask("/e", "POST", "no json")
    assert got.status == 500
    problem = "the request has no value for ${request.json/a}; set a default with ${request.json/a|TEXT}"
    assert got.text == f"mock 'mock': echo: {problem}\n"


def test_head_has_the_headers_of_get_and_no_body(mocks: MockMaker) -> None:
    mock = mocks({"method": "GET", "path": "/a", "answer": {"text": "abc"}})
    connection = mock.client()
    for method, body in (("HEAD", b""), ("GET", b"abc"), ("HEAD", b""), ("GET", b"abc")):
        connection.request(method, "/a")
        response = connection.getresponse()
        assert (response.status, response.headers["content-length"], response.read()) == (200, "3", body)
    connection.close()


def test_a_connection_is_kept_and_requests_may_be_pipelined(mocks: MockMaker) -> None:
    mock = mocks(says("${request.path.n};", path="/{n}"))
    one = b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n"
    last = b"GET /4 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    got = mock.raw(one % 1 + one % 2 + one % 3 + last)
    assert got.count(b"HTTP/1.1 200 OK") == 4
    assert [got.find(b"\r\n\r\n%d;" % number) > 0 for number in (1, 2, 3, 4)] == [True] * 4


def test_chunks_go_both_ways(mocks: MockMaker) -> None:
    mock = mocks({"path": "/e", "answer": {"text": "${request.body}", "chunked": True}})
    chunks = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
    got = mock.raw(b"POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunks)
    head, _, body = got.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head.lower()
    assert b"content-length" not in head.lower()
    assert body == b"b\r\nhello world\r\n0\r\n\r\n"


def test_a_client_that_waits_for_100_continue_gets_it(mocks: MockMaker) -> None:
    mock = mocks(says("${request.body}", path="/e"))
    with mock.socket() as one:
        one.sendall(b"POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert one.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"ok")
        assert one.recv(1000).endswith(b"\r\n\r\nok")


def test_http_1_0_and_absolute_targets_are_understood(mocks: MockMaker) -> None:
    mock = mocks(says("a", path="/a"))
    assert mock.raw(b"GET /a HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\na")
    assert b"\r\n\r\na" in mock.raw(b"GET http://example.com/a?b HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
    assert b" 404 " in mock.raw(b"OPTIONS * HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")
    assert b" 404 " in mock.raw(b"CONNECT b:443 HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n")


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not there")
def test_curl_is_answered(mocks: MockMaker) -> None:
    mock = mocks(says("${request.method} ${request.json/a}", path="/e"))
    command = ["curl", "-sS", "--max-time", "20", "-d", '{"a": [1]}', "-H", "Expect: 100-continue", f"{mock.url}/e"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "POST [1]"


# --- How it answers -------------------------------------------------------------------------------------------------


def test_an_answer_is_delayed_until_its_time_or_the_end_of_the_mock(mocks: MockMaker) -> None:
    mock = mocks(
        {"path": "/soon", "answer": {"text": "x", "delay": "20ms"}}, {"answer": {"delay": "1h"}, "path": "/late"}
    )
    assert mock.ask("/soon").text == "x"
    with mock.socket() as one:
        one.sendall(b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
        assert mock.verify(calls=[{"path": "/late"}], timeout="20s").success
        mock.stop()
        assert read_all(one) == b""


def test_a_body_is_dripped_after_a_head_that_comes_at_once(mocks: MockMaker) -> None:
    mock = mocks(
        {"path": "/soon", "answer": {"text": "x" * 250, "drip": "50ms"}},
        {"path": "/chunks", "answer": {"text": "y" * 500, "drip": "50ms", "chunked": True}},
        {"path": "/late", "answer": {"text": "xyz", "drip": "1h"}},
    )
    assert mock.ask("/soon").text == "x" * 250
    assert mock.ask("/chunks").text == "y" * 500
    with mock.socket() as one:
        one.sendall(b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
        assert one.recv(1000).endswith(b"Content-Length: 3\r\n\r\n")
        mock.stop()
        assert read_all(one) == b""


def test_faults_are_what_they_are_called(mocks: MockMaker) -> None:
    mock = mocks(
        *({"path": f"/{fault}", "answer": {"fault": fault}} for fault in ("reset", "close", "malformed")),
        {"path": "/truncate", "answer": {"fault": "truncate", "text": "x" * 1000}},
        {"path": "/chunks", "answer": {"fault": "truncate", "text": "x" * 1000, "chunked": True}},
        {"path": "/head", "answer": {"fault": "truncate"}},
    )
    with pytest.raises(ConnectionResetError):
        mock.ask("/reset")
    with pytest.raises(http.client.RemoteDisconnected):
        mock.ask("/close")
    with pytest.raises(http.client.BadStatusLine):
        mock.ask("/malformed")
    with pytest.raises(http.client.IncompleteRead) as cut:
        mock.ask("/truncate")
    assert cut.value.partial == b"x" * 500
    with pytest.raises(http.client.IncompleteRead):
        mock.ask("/chunks")
    assert mock.raw(b"GET /head HTTP/1.1\r\nHost: a\r\n\r\n")[:8] == b"HTTP/1.1"
    assert mock.verify(calls=[{"exactly": 6}], unmatched=0).success


def test_the_first_n_may_fail_by_a_fault(mocks: MockMaker) -> None:
    mock = mocks({"path": "/", "answer": [{"fault": "close", "times": 2}, {"text": "ok"}]})
    for _ in range(2):
        with pytest.raises(http.client.RemoteDisconnected):
            mock.ask("/")
    assert mock.ask("/").text == "ok"


def test_ipv6_loopback_is_listened_at(mocks: MockMaker) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    mock = mocks(says("six", path="/"), host="::1")
    assert mock.url == f"http://[::1]:{mock.port}"
    assert mock.ask("/").text == "six"


def test_tls_is_trusted_by_who_trusts_the_authority_and_by_nobody_else(mocks: MockMaker) -> None:
    mock = mocks(says("secure", path="/"), tls=True)
    assert mock.url.startswith("https://127.0.0.1:")
    with ssl.create_default_context(cafile=mock.outputs["caFile"]).wrap_socket(
        socket.create_connection(("127.0.0.1", mock.port), timeout=20), server_hostname="localhost"
    ) as one:
        certificate = str(one.getpeercert())
    for word in ("mock", "test", "trustme", "ext-"):  # the agent under test sees it
        assert word not in certificate.lower()
    trusting = ssl.create_default_context(cafile=mock.outputs["caFile"])
    for host in ("127.0.0.1", "localhost"):
        connection = http.client.HTTPSConnection(host, mock.port, timeout=20, context=trusting)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"secure"
        connection.close()
    strange = http.client.HTTPSConnection("127.0.0.1", mock.port, timeout=20, context=ssl.create_default_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        strange.request("GET", "/")
    strange.close()
    assert mock.raw(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") == b""
    pem = (mocks.workdir / mock.outputs["caFile"]).read_text()
    assert "PRIVATE KEY" not in pem


def test_the_port_may_be_chosen_and_one_that_is_taken_is_refused(mocks: MockMaker, new_port: NewPort) -> None:
    port = new_port()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ext_sdk.OperationFailed) as failed:
        mocks(says("x"), port=port)
    assert f"port: expected a free one on 127.0.0.1, found {port}" in failed.value.error
    assert "mock" not in failed.value.error
    assert mocks(says("x"), port=port).port == port


def test_a_port_that_another_mock_holds_is_refused_with_that_mock_and_its_workdir(
    mocks: MockMaker, tmp_path: Path
) -> None:
    first = mocks(says("x"), name="weather")
    other = MockMaker(tmp_path / "other")
    other.context = copy.copy(mocks.context)  # of the same process
    other.context.workdir = tmp_path / "other"
    for maker in (mocks, other):
        with pytest.raises(ext_sdk.OperationFailed) as failed:
            maker(says("x"), port=first.port)
        assert f"found {first.port}: Address already in use" in failed.value.error
        assert f"mock 'weather' of workdir {tmp_path} listens on it; stop that mock" in failed.value.error
    first.stop()
    other.context.place = Place.of(tmp_path / "other", "second")
    second = other(says("x"), port=first.port, name="trips")
    with pytest.raises(ext_sdk.OperationFailed, match="can't listen") as failed:
        mocks(says("x"), port=first.port)
    assert f"mock 'trips' of workdir {tmp_path / 'other'}, scope 'second', listens on it" in failed.value.error
    second.stop()


def test_several_mocks_stand_side_by_side_by_name(mocks: MockMaker) -> None:
    one, two = mocks(says("1"), name="one"), mocks(says("2"), name="two")
    assert (one.ask("/").text, two.ask("/").text) == ("1", "2")
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        mocks(says("x"), name="one")
    assert f"'one', which listens at {one.url}" in failed.value.error
    assert "use another name, `scope`, or one folder for each parallel task" in failed.value.error
    assert one.ask("/").text == "1"
    one.stop()
    assert mocks(says("3"), name="one").ask("/").text == "3"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"routes": []}, "at least one of routes, routesFile and upstream"),
        ({"routes": [{"path": "/a"}]}, "routes[0].answer: this argument is required"),
        ({"routes": [{"pth": "/a", "answer": {}}]}, "did you mean 'path'?"),
        ({"routes": [says("a", path="a")]}, "path: expected one that begins with /"),
        ({"routes": [says("a", path="/a?b=1")]}, "set `query` instead"),
        ({"routes": [says("a", path="/a{b}")]}, "a parameter is a complete segment"),
        ({"routes": [says("a", path="/{a b}")]}, "in braces"),
        ({"routes": [says("a", path="/{a}/{a}")]}, "each name once"),
        ({"routes": [says("a", path="/a", pathMatches="b")]}, "one of path and pathMatches"),
        ({"routes": [says("a", pathMatches="(")]}, "not a regular expression"),
        ({"routes": [says("a", method="get")]}, "method: expected one in capitals"),
        ({"routes": [says("a", query={})]}, "length >= 1"),
        ({"routes": [says("a", path="/a"), says("b", path="/a")]}, "set a different `name` for each"),
        ({"routes": [{"answer": []}]}, "length >= 1"),
        ({"routes": [{"answer": {"text": "a", "json": 1}}]}, "expected one body, found text and json"),
        ({"routes": [{"answer": {"status": 204, "text": "a"}}]}, "a response with status 204 has no body"),
        ({"routes": [{"answer": {"status": 100}}]}, "status"),
        ({"routes": [{"answer": {"headers": {"Content-Length": "1"}}}]}, "Content-Length is computed from the body"),
        ({"routes": [{"answer": {"headers": {"X": ["a", "b\r\nY: c"]}}}]}, "headers.X: expected one line, found '\\r'"),
        ({"routes": [{"answer": {"headers": {"a b": "1"}}}]}, "headers"),
        ({"routes": [{"answer": {"fault": "reset", "text": "a"}}]}, "sends no response"),
        ({"routes": [{"answer": {"fault": "explode"}}]}, 'expected one of "close"'),
        ({"routes": [{"answer": {"delay": "-1s"}}]}, "delay: expected 0s or more"),
        ({"routes": [{"answer": {"times": 0}}]}, "times"),
        ({"routes": [says("a")], "host": "localhost"}, "expected an IP address of this machine"),
        ({"routes": [says("a")], "port": 65536}, "port"),
        ({"routes": [says("a")], "name": "../x"}, "name"),
        ({"routes": [says("a")], "limits": {"requestTime": "0s"}}, "requestTime: expected a duration over 0"),
    ],
)
def test_what_can_not_be_meant_is_refused(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(ext_sdk.InvalidArgs) as refused:
        validate(MockStart, arguments)
    assert told in str(refused.value)
