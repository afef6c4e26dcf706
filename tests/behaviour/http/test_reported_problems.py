"""What users of other tools complain of: each is a test here, named after where it was said."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.http_stub import echo

if TYPE_CHECKING:
    from tests.support.ext_http import Extension
    from tests.support.http_stub import Stub


def test_hurl_1314_leading_zeros_stay(http: Extension, stub: Stub) -> None:
    http.get(stub.json("/", {"code": "003"}), capture={"code": {"json": "$.code"}}, **{"as": "one"})
    body = http.get(stub.does("/echo", echo), body={"json": {"code": "${one.code}"}}).json()["body"]
    assert body == '{"code":"003"}'


def test_hurl_3136_a_captured_array_goes_into_a_body(http: Extension, stub: Stub) -> None:
    http.get(stub.json("/", {"ids": [1, "2", None]}), capture={"ids": {"json": "$.ids"}}, **{"as": "one"})
    http.get(stub.does("/echo", echo), body={"raw": '{"ids": ${one.ids}}', "contentType": "application/json"})
    assert stub.asked[-1].body == b'{"ids": [1,"2",null]}'


def test_hurl_4455_and_1733_braces_can_be_written(http: Extension, stub: Stub) -> None:
    http.get(stub.does("/echo", echo), body={"json": {"a": "{{ x }}", "b": "$${y}", "c": "$"}})
    assert stub.asked[-1].body == b'{"a":"{{ x }}","b":"${y}","c":"$"}'


def test_hurl_543_json_schema(http: Extension, stub: Stub) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    url = stub.json("/", {"id": "7"})
    assert "id" in http.failed("request", url=url, expect={"body": {"jsonSchema": schema}}).error
    http.get(stub.json("/good", {"id": 7}), expect={"body": {"jsonSchema": schema}})


def test_hurl_5289_no_symbolic_link_leads_out(http: Extension, stub: Stub) -> None:
    (http.workdir / "link.txt").symlink_to("/etc/hostname")
    assert "not a path inside" in http.failed("request", url=stub.url(), body={"file": "link.txt"}).error


def test_hurl_retries_have_one_deadline_and_not_one_each(http: Extension, stub: Stub) -> None:
    begun = time.monotonic()
    result = http.failed("wait", url=stub.says("/", status=503), timeout="2s", interval="1ms")
    assert int(result.outputs["attempts"]) > 3
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("value", ["159295", "1", "true", "null", "1.0"])
def test_tavern_60_174_20_a_text_is_no_number(value: str, http: Extension, stub: Stub) -> None:
    import json

    url = stub.json("/", {"value": value})
    http.get(url, expect={"body": {"json": [{"path": "$.value", "equals": value}]}})
    wrong = {"body": {"json": [{"path": "$.value", "equals": json.loads(value)}]}}
    assert "(string)" in http.failed("request", url=url, expect=wrong).error


def test_tavern_884_braces_in_an_answer_break_no_message(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "{0} {name} %s ${x.y} {{", status=500, Content_Type="text/plain")
    assert "body: {0} {name} %s ${x.y} {{" in http.failed("request", url=url).error


def test_tavern_186_and_354_a_failure_is_one_short_text(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "x" * 50_000, status=500)
    assert len(http.failed("request", url=url, expect={"status": 200, "body": "y"}).error) < 2500


def test_venom_261_411_527_names_keep_their_case(http: Extension, stub: Stub) -> None:
    outputs = http.get(
        stub.says("/", '{"userName": "Ada", "username": "eve"}', X_Request_ID="AbC"),
        capture={"userName": {"json": "$.userName"}, "RequestID": {"from": "header", "header": "x-request-id"}},
    ).outputs
    assert (outputs["userName"], outputs["RequestID"]) == ("Ada", "AbC")


def test_venom_579_and_612_names_with_blanks_and_items_of_arrays(http: Extension, stub: Stub) -> None:
    url = stub.json("/", {"a b.c": {"x-y": [{"n": 1}, {"n": 2}]}})
    capture = {"n": {"json": "$['a b.c']['x-y'][1].n"}}
    assert http.get(url, capture=capture).outputs["n"] == "2"


def test_venom_715_and_921_a_secret_is_hidden_in_all_its_spellings(http: Extension, stub: Stub) -> None:
    import base64
    from urllib.parse import quote

    secret = 'p@ss "w/ord" ä'
    spellings = (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), secret.encode().hex())
    url = stub.says("/", "\n".join(spellings), status=500)
    result = http.failed("request", url=url, auth={"basic": {"username": "u", "password": secret}})
    for spelling in spellings:
        assert spelling not in repr(result), spelling


def test_venom_926_an_empty_secret_replaces_nothing(http: Extension, stub: Stub) -> None:
    result = http.get(stub.says("/", "as it is"), auth={"basic": {"username": "u", "password": ""}})
    assert result.outputs["body"] == "as it is"


def test_runn_299_a_dollar_sign_is_not_swallowed(http: Extension, stub: Stub) -> None:
    http.get(stub.does("/echo", echo), query={"price": "$5", "var": "$HOME", "re": "^a$"})
    assert stub.asked[-1].path == "/echo?price=%245&var=%24HOME&re=%5Ea%24"


def test_a_secret_is_in_no_file_either(http: Extension, stub: Stub) -> None:
    secret = "file-secret-4711"
    url = stub.says("/", f"{secret}\n" * 10_000)
    result = http.get(url, auth={"bearer": secret})
    data = Path(result.outputs["bodyFile"]).read_text()
    assert secret not in data
    assert data.count("[redacted:") == 10_000


# --- The step `http` of mcpchecker: what it can say can be said here, and its faults are absent ---


def test_mcpchecker_all_that_its_step_can_say(http: Extension, stub: Stub) -> None:
    url = stub.json("/items", {"items": [{"id": 7, "name": "lamp"}], "total": 1})
    http.get(
        url,
        method="POST",
        headers={"X-Trace": "abc"},
        body={"json": {"q": "lamp"}},
        timeout="5m",
        expect={
            "status": 200,
            "body": {
                "matches": "lamp",
                "json": [
                    {"path": "$.items[0].id", "equals": 7},
                    {"path": "$.total", "type": "number"},
                    {"path": "$.items[0].name", "matches": "^la"},
                    {"path": "$.items[0].gone", "exists": False},
                ],
            },
        },
    )
    http.get(url, method="POST", body={"raw": '{"q": 1}'})
    http.get(stub.says("/any", status=500), expect={"status": "100-599"})


def test_mcpchecker_a_body_may_be_an_array(http: Extension, stub: Stub) -> None:
    http.get(stub.does("/echo", echo), body={"json": [1, 2]})
    assert stub.asked[-1].body == b"[1,2]"


@pytest.mark.parametrize(
    ("found", "expected"),
    [('"1"', 1), ("9007199254740993", 9007199254740992), ("true", 1), ("1", "1"), ("[1]", [True])],
)
def test_mcpchecker_values_are_compared_with_their_types(
    found: str, expected: object, http: Extension, stub: Stub
) -> None:
    url = stub.says("/", f'{{"v": {found}}}')
    error = http.failed("request", url=url, expect={"body": {"json": [{"path": "$.v", "equals": expected}]}}).error
    assert re.search(r"body at \$\.v(\[0\])?: expected to equal", error)


def test_mcpchecker_a_path_that_is_none_is_refused(http: Extension, stub: Stub) -> None:
    expect = {"body": {"json": [{"path": "$.items.0.id", "equals": 7}]}}
    assert "items of an array are written [0]" in http.refused("request", url=stub.url(), expect=expect)


def test_mcpchecker_an_expectation_that_checks_nothing_is_refused(http: Extension, stub: Stub) -> None:
    empty: list[object] = [{}, {"body": {}}, {"body": {"json": [{"path": "$.a"}]}}, {"status": []}, {"headers": {}}]
    for expect in empty:
        http.refused("request", url=stub.url(), expect=expect)


def test_mcpchecker_a_refused_connection_is_a_failed_step_and_not_an_error(http: Extension) -> None:
    assert "Connection refused" in http.failed("request", url="http://127.0.0.1:1/").error


def test_mcpchecker_its_answers_have_outputs(http: Extension, stub: Stub) -> None:
    assert http.get(stub.says("/", "x")).outputs["body"] == "x"


def test_a_line_is_never_longer_than_the_host_reads(http: Extension, stub: Stub) -> None:
    """One byte more than 65,535 stops the known host for good, without a word."""
    for body in ("\\\0" * 30_000, "😀" * 30_000, '"' * 60_000, b"\xff\xfe" * 30_000):
        url = stub.says("/", body, status=500)
        params = {"operation": "request", "args": {"url": url, "expect": {"body": "y"}}}
        context = {"workdir": str(http.workdir), "phase": "setup"}
        http.peer.send({"jsonrpc": "2.0", "id": 1, "method": "execute", "params": {**params, "context": context}})
        line = http.peer.line()
        assert line is not None
        assert len(line) <= 65_536
