"""`request`: what goes over the wire, and what comes back of it."""

from __future__ import annotations

import base64
import json
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from tests.support.http_stub import echo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.ext_http import Extension
    from tests.support.http_stub import Asked, Handler, Stub


def test_status_body_duration_url_and_attempts_are_outputs(http: Extension, stub: Stub) -> None:
    result = http.get(stub.says("/hello", "hi there"))
    assert result.outputs.keys() == {"status", "body", "duration", "url", "attempts"}
    assert result.outputs["status"] == "200"
    assert result.outputs["body"] == "hi there"
    assert result.outputs["url"] == stub.url("/hello")
    assert result.outputs["attempts"] == "1"
    assert result.outputs["duration"].endswith(("ms", "s"))
    assert "status 200" in result.message
    assert "1 check passed" in result.message


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "QUERY", "get"]
)
def test_every_method_can_be_sent(method: str, http: Extension, stub: Stub) -> None:
    http.get(stub.says("/", "ok"), method=method)
    assert stub.asked[-1].method == method.upper()


def test_the_method_is_get_or_with_a_body_post(http: Extension, stub: Stub) -> None:
    http.get(stub.says("/", "ok"))
    http.get(stub.url("/"), body={"raw": "x"})
    assert [asked.method for asked in stub.asked] == ["GET", "POST"]


def test_query_parameters_are_added_to_those_of_the_url_escaped_and_repeated(http: Extension, stub: Stub) -> None:
    query = {"q": "a&b=ä", "n": [1, 2], "big": 9007199254740993, "yes": True, "x": 1.5}
    http.get(stub.does("/s", echo) + "?first=%2F", query=query)
    assert stub.asked[-1].path == "/s?first=%2F&q=a%26b%3D%C3%A4&n=1&n=2&big=9007199254740993&yes=true&x=1.5"


def test_headers_go_as_they_are_and_a_list_repeats_one(http: Extension, stub: Stub) -> None:
    http.get(stub.says("/"), headers={"X-One": "1", "X-Many": ["a", "b"], "Host": "shop.test", "User-Agent": "me"})
    asked = stub.asked[-1]
    assert [value for name, value in asked.headers if name == "X-Many"] == ["a", "b"]
    assert asked.header("host") == "shop.test"
    assert [value for name, value in asked.headers if name.lower() == "user-agent"] == ["me"]


@pytest.mark.parametrize(
    ("body", "sent", "content_type"),
    [
        ({"json": [1, "1", None, 9007199254740993]}, b'[1,"1",null,9007199254740993]', "application/json"),
        ({"json": None}, b"null", "application/json"),
        ({"json": "ä"}, '"ä"'.encode(), "application/json"),
        ({"form": {"a": "1 2", "b": ["x", "y"]}}, b"a=1+2&b=x&b=y", "application/x-www-form-urlencoded"),
        ({"raw": "<x/>", "contentType": "text/xml"}, b"<x/>", "text/xml"),
        ({"raw": "ä"}, "ä".encode(), "text/plain; charset=utf-8"),
        ({"base64": "AAEC/w=="}, b"\x00\x01\x02\xff", "application/octet-stream"),
        (
            {"graphql": {"query": "{a}", "variables": {"n": 1}, "operationName": "q"}},
            b'{"query":"{a}","variables":{"n":1},"operationName":"q"}',
            "application/json",
        ),
    ],
)
def test_bodies(body: object, sent: bytes, content_type: str, http: Extension, stub: Stub) -> None:
    http.get(stub.says("/"), body=body)
    assert stub.asked[-1].body == sent
    assert stub.asked[-1].header("content-type") == content_type
    assert stub.asked[-1].header("content-length") == str(len(sent))


def test_a_file_of_the_workdir_is_a_body(http: Extension, stub: Stub) -> None:
    (http.workdir / "data.json").write_text("[1]")
    http.get(stub.says("/"), body={"file": "data.json"})
    assert stub.asked[-1].body == b"[1]"
    assert stub.asked[-1].header("content-type") == "application/json"


def test_fields_and_files_are_a_multipart_body(http: Extension, stub: Stub) -> None:
    (http.workdir / "a.txt").write_text("content of a")
    parts = {
        "plain": "text",
        "file": {"file": "a.txt"},
        "named": {"text": "{}", "filename": "x.json", "contentType": "application/json"},
        "many": [1, True],
    }
    http.get(stub.says("/"), body={"multipart": parts})
    asked = stub.asked[-1]
    content_type = asked.header("content-type")
    assert content_type
    assert content_type.startswith("multipart/form-data; boundary=")
    text = asked.body.decode()
    assert 'name="plain"\r\n\r\ntext\r\n' in text
    assert 'name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\ncontent of a\r\n' in text
    assert 'name="named"; filename="x.json"\r\nContent-Type: application/json\r\n\r\n{}\r\n' in text
    assert text.count('name="many"') == 2


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"url": "shop.test/x"}, "expected a URL with http:// or https://"),
        ({"url": "ftp://shop.test/x"}, "found ftp://"),
        ({"url": "file:///etc/passwd"}, "http:// or https://"),
        ({"url": "http://"}, "host"),
        ({"url": "http://a:99999/"}, "Port out of range"),
        ({"url": "/path"}, "without a baseUrl"),
        ({"url": "http://a/", "method": "GET /"}, "method"),
        ({"url": "http://a/", "method": "CONNECT"}, "tunnel"),
        ({"url": "http://a/", "body": {}}, "expected one of json, form"),
        ({"url": "http://a/", "body": {"raw": "", "json": 1}}, "found json and raw"),
        ({"url": "http://a/", "body": {"base64": "§"}}, "Base64"),
        ({"url": "http://a/", "sttus": 200}, "sttus"),
        ({"url": "http://a/", "expect": {"sttus": 200}}, "status"),
        ({"url": "http://a/", "expect": {}}, "checks nothing"),
        ({"url": "http://a/", "headers": {"X": "a\r\nY: b"}}, "one line"),
        ({"url": "http://a/", "headers": {"X Y": "a"}}, "name of a header"),
        ({"url": "http://a/", "headers": {"Content-Length": "1"}}, "is computed from the request"),
        ({"url": "http://a/", "headers": {"transfer-encoding": "chunked"}}, "is computed from the request"),
        ({"url": "http://a/", "auth": {}}, "expected one of basic"),
        ({"url": "http://a/", "allowHosts": ["http://x"]}, "expected a host"),
        ({"url": "http://a/", "capture": {"status": {}}}, "another output"),
        ({"url": "http://a/", "capture": {"a.b": {}}}, "without dots"),
        ({"url": "http://a/", "capture": {"a": {"json": "items"}}}, "JSONPath"),
        ({"url": "http://a/", "capture": {"a": {"from": "header"}}}, "header and `from: header` require each other"),
        ({"url": "http://a/", "capture": {"a": {"json": "$", "regex": "x"}}}, "excludes regex"),
        ({"url": "http://a/", "capture": {"a": {"group": 1}}}, "`group` requires `regex`"),
        ({"url": "http://a/", "capture": {"a": {"type": "null"}}}, "type requires json"),
        ({"url": "http://a/", "capture": {"a": {"regex": "("}}}, "not a regular expression"),
        ({"url": "http://a:b@c:d/"}, "expected a URL"),
        ({"url": "http://a/", "auth": {"basic": {"username": "a:b", "password": "long-enough"}}}, "without a colon"),
        ({"url": "http://a/", "body": {"multipart": {"a": {}}}}, "expected one of text and file"),
        ({"url": "http://a/", "timeout": 5}, "duration"),
        ({"url": "http://a/", "connectTimeout": "0s"}, "over 0"),
    ],
)
def test_what_can_not_be_sent_is_refused_before_anything_is(
    args: dict[str, object], told: str, http: Extension
) -> None:
    assert told in http.refused("request", **args)


def test_without_expectations_a_status_of_200_to_299_is_expected(http: Extension, stub: Stub) -> None:
    assert http.get(stub.says("/", status=204)).outputs["status"] == "204"
    result = http.failed("request", url=stub.says("/no", "why not", status=503, Content_Type="text/plain"))
    assert "expected to be 2xx, got 503" in result.error
    assert "response: 503 Service Unavailable (text/plain)\nbody: why not" in result.error
    assert result.outputs["status"] == "503"


def test_redirects_are_not_followed_and_the_failure_says_how_to(http: Extension, stub: Stub) -> None:
    url = stub.says("/old", status=302, Location="/new")
    assert "it redirects to /new; set `redirects` to follow redirects" in http.failed("request", url=url).error
    assert http.get(url, expect={"status": 302}).outputs["url"] == url
    assert all(asked.path == "/old" for asked in stub.asked)


def test_a_query_that_makes_the_url_too_long_is_refused(http: Extension, stub: Stub) -> None:
    assert "query: expected a URL" in http.refused("request", url=stub.url(), query={"a": "b" * 100_000})


def test_a_relative_url_is_completed_by_the_configuration(fresh: Callable[..., Extension], stub: Stub) -> None:
    stub.does("/api/items", echo)
    http = fresh({"baseUrl": stub.url("/api/"), "headers": {"X-Team": "blue", "X-Own": "no"}})
    headers = http.get("/items", headers={"x-own": "yes"}).json()["headers"]
    assert isinstance(headers, dict)
    assert (headers["x-team"], headers["x-own"]) == ("blue", "yes")


def test_a_relative_url_never_leaves_the_base_for_another_host(fresh: Callable[..., Extension], stub: Stub) -> None:
    http = fresh({"baseUrl": stub.origin})
    http.call("request", {"url": "//evil.test/x"})
    assert [asked.path for asked in stub.asked] == ["/evil.test/x"]


def test_connections_are_kept_from_one_call_to_the_next(http: Extension, stub: Stub) -> None:
    for _ in range(3):
        http.get(stub.says("/", "x"))
    assert len({asked.client for asked in stub.asked}) == 1


def test_a_connection_that_the_server_has_closed_is_replaced(http: Extension, stub: Stub) -> None:
    def once(handler: Handler, asked: Asked) -> None:
        handler.close_connection = True
        handler.answer(200, "x")

    url = stub.does("/", once)
    for _ in range(3):
        http.get(url)
    assert len(stub.asked) == 3


def test_a_connection_that_is_reset_as_the_next_request_comes_is_replaced(http: Extension, stub: Stub) -> None:
    def then_reset(handler: Handler, asked: Asked) -> None:
        handler.answer(200, "x")
        if len(stub.asked) % 2:
            handler.rfile.peek(1)  # type: ignore[attr-defined]  # the next request is on its way
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True

    url = stub.does("/", then_reset)
    for _ in range(4):
        assert http.get(url).outputs["body"] == "x"


def test_a_compressed_body_is_decoded(http: Extension, stub: Stub) -> None:
    import gzip
    import zlib

    stub.routes["/gzip"] = lambda handler, asked: handler.answer(
        200, gzip.compress(b"small"), {"Content-Encoding": "gzip"}
    )
    stub.routes["/deflate"] = lambda handler, asked: handler.answer(
        200, zlib.compress(b"small"), {"Content-Encoding": "deflate"}
    )
    assert http.get(stub.url("/gzip")).outputs["body"] == "small"
    assert http.get(stub.url("/deflate")).outputs["body"] == "small"
    assert stub.asked[-1].header("accept-encoding") == "gzip, deflate"


def test_a_coding_that_can_not_be_undone_is_told(http: Extension, stub: Stub) -> None:
    stub.routes["/"] = lambda handler, asked: handler.answer(200, b"\x0b\x02", {"Content-Encoding": "br"})
    assert "Content-Encoding, br, is not supported" in http.failed("request", url=stub.url()).error


def test_text_is_read_in_its_charset(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "Käse".encode("latin-1"), Content_Type="text/plain; charset=ISO-8859-1")
    assert http.get(url, expect={"body": "Käse"}).outputs["body"] == "Käse"


def test_a_binary_body_is_a_file_byte_for_byte(http: Extension, stub: Stub) -> None:
    data = bytes(range(256)) * 3
    result = http.get(stub.says("/", data))
    assert result.outputs["body"] == "[binary: 768 bytes]"
    from pathlib import Path

    assert Path(result.outputs["bodyFile"]).read_bytes() == data


def test_a_long_body_is_cut_to_the_line_and_whole_in_a_file(http: Extension, stub: Stub) -> None:
    from pathlib import Path

    text = "".join(f"line {number}\n" for number in range(20_000))
    result = http.get(stub.says("/", text))
    assert len(result.outputs["body"]) < 30_000
    assert result.outputs["body"].startswith("line 0\n")
    assert result.outputs["body"].endswith("line 19999\n")
    assert "left out; all of it is in bodyFile" in result.outputs["body"]
    assert Path(result.outputs["bodyFile"]).read_text() == text


def test_captures_are_outputs_exact_and_typed(http: Extension, stub: Stub) -> None:
    body = '{"id": 9007199254740993, "code": "007", "one": "1", "x": 1.50, "list": [1, {"a": null}], "yes": true}'
    url = stub.says("/", body, X_Id="abc-12")
    capture = {
        "id": {"json": "$.id", "type": "integer"},
        "code": {"json": "$.code"},
        "list": {"json": "$.list"},
        "yes": {"json": "$.yes"},
        "number": {"from": "header", "header": "x-id", "regex": r"\d+"},
        "whole": {"from": "status"},
        "none": {"json": "$.none", "default": "-"},
    }
    outputs = http.get(url, capture=capture).outputs
    assert outputs["id"] == "9007199254740993"
    assert outputs["code"] == "007"
    assert outputs["list"] == '[1,{"a":null}]'
    assert outputs["yes"] == "true"
    assert (outputs["number"], outputs["whole"], outputs["none"]) == ("12", "200", "-")
    error = http.failed("request", url=url, capture={"one": {"json": "$.one", "type": "integer"}}).error
    assert "capture one: expected to be found, got a value of type string at '$.one' in body, where integer" in error


def test_a_capture_that_finds_nothing_is_a_failure(http: Extension, stub: Stub) -> None:
    result = http.failed("request", url=stub.json("/", {"a": 1}), capture={"b": {"json": "$.b"}})
    assert "capture b: expected to be found, got 0 values at '$.b' in body" in result.error


def test_a_header_that_is_not_there_is_not_captured(http: Extension, stub: Stub) -> None:
    capture = {"a": {"from": "header", "header": "x-none"}, "b": {"from": "url", "regex": "x(y)?", "group": 1}}
    error = http.failed("request", url=stub.says("/x"), capture=capture).error
    assert "capture a: expected to be found, got no header x-none" in error
    assert "capture b: expected to be found, got no text in group 1" in error


def test_a_charset_that_nobody_knows_is_read_as_utf_8(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "Käse", Content_Type="text/plain; charset=klingon")
    assert http.get(url).outputs["body"] == "Käse"


def test_captures_reach_later_calls_of_the_workdir(http: Extension, stub: Stub) -> None:
    http.get(stub.json("/items", {"id": 7}), capture={"id": {"json": "$.id"}}, **{"as": "item"})
    http.get(stub.does("/items/7", echo), body={"json": {"parent": "${item.id}"}})
    http.ok("request", url=stub.url("/items/${item.id}"))
    assert stub.asked[-1].path == "/items/7"


def test_a_secret_capture_reaches_later_calls_and_is_seen_nowhere(http: Extension, stub: Stub) -> None:
    token = "s3cr3t-t0k3n-99"
    login = http.get(
        stub.json("/login", {"token": token}), capture={"token": {"json": "$.token", "secret": True}}, **{"as": "login"}
    )
    assert "token" not in login.outputs
    assert token not in repr(login)
    later = http.get(stub.does("/me", echo), auth={"bearer": "${login.token}"})
    assert stub.asked[-1].header("authorization") == f"Bearer {token}"
    assert token not in repr(later)


def test_a_short_secret_that_can_not_be_hidden_withholds_the_body(http: Extension, stub: Stub) -> None:
    result = http.get(stub.says("/", "pin=42"), capture={"pin": {"regex": r"\d+", "secret": True}})
    assert result.outputs["body"].startswith("[withheld")
    assert "42" not in repr(result.outputs["body"])


@pytest.mark.parametrize("encode", [str, lambda text: base64.b64encode(f"ada:{text}".encode()).decode()])
def test_passwords_are_hidden_in_answers_that_repeat_them(
    encode: Callable[[str], str], http: Extension, stub: Stub
) -> None:
    password = "correct-horse-7"
    url = stub.says("/", f"you said {encode(password)}")
    result = http.get(url, auth={"basic": {"username": "ada", "password": password}})
    assert stub.asked[-1].header("authorization") == "Basic " + base64.b64encode(f"ada:{password}".encode()).decode()
    assert password not in repr(result)
    assert encode(password) not in repr(result)


def test_json_is_shown_as_it_came(http: Extension, stub: Stub) -> None:
    body = '{"a": 1.0, "b": 1e2,  "a": 2}'
    assert http.get(stub.says("/", body)).outputs["body"] == body
    assert json.loads(body) == {"a": 2, "b": 100.0}


def test_files_outside_of_the_workdir_are_not_sent(http: Extension, stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    for path in ("/etc/hostname", "../../etc/hostname", "link"):
        for body in ({"file": path}, {"multipart": {"f": {"file": path}}}):
            assert "not a path inside the working directory" in http.failed("request", url=stub.url(), body=body).error
    assert stub.asked == []


def test_a_later_step_gets_the_complete_body(http: Extension, stub: Stub) -> None:
    """It got 20 kB of these 200 kB, without notice."""
    text = "".join(f"line {number}\n" for number in range(20_000))
    stub.does("/echo", lambda handler, asked: handler.answer(200, asked.body))
    shown = http.get(stub.says("/", text), **{"as": "big"})
    assert "left out; all of it is in bodyFile" in shown.outputs["body"]
    http.ok("request", url=stub.url("/echo"), body={"raw": "${big.body}"})
    assert stub.asked[-1].body == text.encode()


def test_a_later_step_gets_the_secrets_of_a_body_that_are_shown_redacted(
    fresh: Callable[..., Extension], stub: Stub
) -> None:
    http = fresh(env={"DB_PASSWORD": "swordfish-77"})
    url = stub.says("/", '{"dsn": "postgres://u:swordfish-77@h/db"}')
    for operation in ("request", "wait"):
        shown = http.ok(operation, url=url, **{"as": "dsn"})
        assert "swordfish" not in repr(shown)
        assert "[redacted:env.DB_PASSWORD#1]" in shown.outputs["body"]
        again = http.ok("request", url=stub.says("/next"), body={"raw": "${dsn.body}"})
        assert stub.asked[-1].body == b'{"dsn": "postgres://u:swordfish-77@h/db"}'
        assert "swordfish" not in repr(again)


@pytest.mark.parametrize(
    ("body", "args", "told"),
    [
        (b"\0\1\2", {}, "the body is binary, 3 bytes; use `download`"),
        (b"ab\xff", {}, "the body is not text in utf-8: byte 0xff at offset 2; use `download`"),
        (b"abcdef", {"maxBody": 3}, "only the first 3 bytes of the body were read; raise `maxBody`, or use `download`"),
    ],
)
def test_a_body_that_is_no_complete_text_is_refused_where_a_later_step_refers_to_it(
    body: bytes, args: dict[str, object], told: str, http: Extension, stub: Stub
) -> None:
    http.get(stub.says("/", body), **{"as": "page"}, **args)
    assert told in http.refused("request", url=stub.url("/"), body={"raw": "${page.body}"})


@pytest.mark.parametrize("charset", ["idna", "undefined", "punycode", "hex", "klingon"])
def test_any_charset_that_a_server_names_is_no_fault_of_the_extension(
    charset: str, http: Extension, stub: Stub
) -> None:
    url = stub.says("/", "Käse".encode(), Content_Type=f"text/plain; charset={charset}")
    assert http.get(url).success
    assert "expected to be text" in http.failed("request", url=url, expect={"body": "Käse"}).error


def test_the_type_of_a_part_is_one_line(http: Extension, stub: Stub) -> None:
    part = {"text": "x", "contentType": "text/plain\r\nX-Evil: 1"}
    told = http.refused("request", url=stub.url(), body={"multipart": {"file": part}})
    assert "body.multipart.file: contentType: expected one line" in told
    assert stub.asked == []


@pytest.mark.parametrize("kind", ["form", "multipart"])
def test_fields_of_a_form_that_sound_secret_are_hidden(kind: str, fresh: Callable[..., Extension], stub: Stub) -> None:
    http = fresh()
    url = stub.does("/", lambda handler, asked: handler.answer(200, asked.body))
    result = http.get(url, body={kind: {"user": "ada", "password": "swordfish-77"}})
    assert b"swordfish-77" in stub.asked[-1].body
    assert "[redacted:form.password#1]" in result.outputs["body"]
    assert "swordfish" not in repr(result)
    assert "ada" in result.outputs["body"]


def test_a_header_without_a_value_is_named(http: Extension) -> None:
    told = http.refused("request", url="http://127.0.0.1:9/", headers={"X-Name": "a", "X-Count": None})
    assert "headers.X-Count: expected " in told
    assert "found null" in told


def test_headers_may_be_numbers_and_booleans(http: Extension, stub: Stub) -> None:
    http.get(stub.says("/"), headers={"X-Count": 5, "X-On": True, "X-Half": 0.5})
    asked = dict(stub.asked[-1].headers)
    assert [asked[name] for name in ("X-Count", "X-On", "X-Half")] == ["5", "true", "0.5"]


def test_a_schema_in_a_file_and_a_document_of_another_format(http: Extension, stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"required": ["pods"]}')
    url = stub.says("/", "pods: [a]", Content_Type="application/yaml; charset=utf-8")
    body = {"jsonSchemaFile": "schema.json", "jsonEquals": {"pods": ["a"]}, "format": "yaml"}
    http.get(url, expect={"headers": {"content-type": "application/yaml"}, "body": body})
    captured = http.get(url, capture={"pod": {"json": "$.pods[0]", "format": "yaml"}}).outputs["pod"]
    assert captured == "a"
