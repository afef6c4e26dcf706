"""Users' rules for which HTTP requests are the same: what `--ignore`, `--mask` and `--match-on` set aside or add."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.errors import UsageError
from ext_recorder.http.interaction import Body, Headers, Interaction
from ext_recorder.http.request_matching import (
    LONG,
    MOST_HIDDEN,
    WINDOW,
    WORDS,
    Digest,
    PathPairs,
    RequestRules,
    Subject,
    different,
)
from tests.support.http_child import record, replay, script
from tests.support.http_site import serving

if TYPE_CHECKING:
    from pathlib import Path

JSON = [("Content-Type", "application/json")]
FORM = [("Content-Type", "application/x-www-form-urlencoded")]


def request(
    uri: str = "https://h/a?n=1&n=2&q=x",
    body: object = b"",
    headers: Headers | None = None,
    method: str = "POST",
) -> Interaction:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Interaction(method, uri, headers or JSON, Body(content))


def same(one: Interaction, other: Interaction, matching: RequestRules | None) -> bool:
    left, right = Subject(one, matching), Subject(other, matching)
    equal = left.key() == right.key()
    assert not equal or not different(left, right)
    return equal


ID, OTHER_ID = "6f9619ff-8b86-4011-b42d-00c04fc964ff", "0d5f3ad8-9e7c-4f0b-9e56-5a1d1f0f7a55"
# Two requests, rules with which they are the same, and rules with which they are not.
CASES: dict[str, tuple[Interaction, Interaction, dict[str, list[str]], dict[str, list[str]]]] = {
    "a parameter": (
        request(),
        request("https://h/a?n=7&q=x"),
        {"ignore": ["/query/n"]},
        {"ignore": ["/query/q"]},
    ),
    "all parameters": (request(), request("https://h/a"), {"ignore": ["/query"]}, {"ignore": ["/path"]}),
    "a member": (
        request(body={"id": ID, "a": 1}),
        request(body={"a": 1, "id": OTHER_ID}),
        {"ignore": ["/body/id"]},
        {"ignore": ["GET /body/id"]},
    ),
    "a member of one path": (
        request(body={"id": 1}),
        request(body={"id": 2}),
        {"ignore": ["POST /a /body/id"]},
        {"ignore": ["POST /b /body/id"]},
    ),
    "a member of paths of a form": (
        request("https://h/v1/chat/7", {"id": 1}),
        request("https://h/v1/chat/7", {"id": 2}),
        {"ignore": ["POST /v1/*/7 /body/id"]},
        {"ignore": ["POST /v2/* /body/id"]},
    ),
    "members of items": (
        request(body={"m": [{"id": 1}, {"id": 2}]}),
        request(body={"m": [{"id": 3}, {"id": 4}]}),
        {"ignore": ["/body/m/*/id"]},
        {"ignore": ["/body/m/0/id"]},
    ),
    "an item": (request(body=[1, 2]), request(body=[7, 2]), {"ignore": ["/body/0"]}, {"ignore": ["/body/1"]}),
    "the body": (request(body=b"\xff"), request(body=b"\xfe"), {"ignore": ["/body"]}, {"ignore": ["/headers"]}),
    "a field of a form": (
        request(body=b"id=1&a=b", headers=FORM),
        request(body=b"a=b&id=2", headers=FORM),
        {"ignore": ["/body/id"]},
        {"ignore": ["/body/a"]},
    ),
    "a member of JSON that curl sends as a form": (
        request(body={"id": 1, "a": 1}, headers=FORM),
        request(body={"id": 2, "a": 1}, headers=FORM),
        {"ignore": ["/body/id"]},
        {"ignore": ["/body/a"]},
    ),
    "the port": (request("http://h:1/"), request("http://h:2/"), {"ignore": ["/port"]}, {"ignore": ["/host"]}),
    "host and scheme": (
        request("http://h/"),
        request("https://i/"),
        {"ignore": ["/host", "/scheme", "/port"]},
        {"ignore": ["/host", "/port"]},
    ),
    "a pattern in the path": (
        request(f"https://h/jobs/{ID}"),
        request(f"https://h/jobs/{OTHER_ID}"),
        {"mask": ["@uuid"]},
        {"mask": ["@port"]},
    ),
    "a pattern in the query and a JSON body": (
        request(f"https://h/?job={ID}", {"text": [f"job {ID} begins"]}),
        request(f"https://h/?job={OTHER_ID}", {"text": [f"job {OTHER_ID} begins"]}),
        {"mask": ["[0-9a-f-]{36}"]},
        {"mask": ["begins"]},
    ),
    "a pattern in a text body": (
        request(body=f"<id>{ID}</id>".encode()),
        request(body=f"<id>{OTHER_ID}</id>".encode()),
        {"mask": ["@uuid"]},
        {"mask": ["id"]},
    ),
    "a time as a number": (
        request(body={"at": 1795392178.25}),
        request(body={"at": 1795392999}),
        {"mask": ["@epoch"]},
        {},
    ),
    "some words": (
        request(body=b"x"),
        request("https://h/a", body=b"y"),
        {"match_on": ["method", "host", "path"]},
        {"match_on": ["method", "uri"]},
    ),
    "another method": (request(), request(method="PUT"), {"match_on": ["uri", "body"]}, {"match_on": ["method"]}),
    "a header": (
        request(headers=[("X-Tenant", "a"), ("Date", "1")]),
        request(headers=[("x-tenant", "a"), ("Date", "2")]),
        {"match_on": ["method", "params", "/headers/X-Tenant"]},
        {"match_on": ["method", "params", "/headers/Date"]},
    ),
    "headers but one": (
        request(headers=[("X-Tenant", "a"), ("X-Request-Id", "1")]),
        request(headers=[("X-Tenant", "a"), ("X-Request-Id", "2")]),
        {"match_on": ["method", "params", "headers"], "ignore": ["/headers/X-Request-Id"]},
        {"match_on": ["method", "params", "headers"]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rules_decide_which_requests_are_the_same(case: str) -> None:
    recorded, live, loose, strict = CASES[case]
    assert same(recorded, live, RequestRules(**loose, strict=True, exact=True))
    assert not same(recorded, live, RequestRules(**strict, strict=True, exact=True))


def test_a_header_does_not_count_unless_it_is_named() -> None:
    assert same(request(headers=[("A", "1")]), request(headers=[("A", "2")]), None)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values, st.lists(st.tuples(st.text("ab&=é", min_size=1), st.text()), max_size=4))
def test_the_default_rules_decide_as_no_rules_do(body: object, query: list[tuple[str, str]]) -> None:
    from urllib.parse import urlencode

    one, other = request(f"https://h/a?{urlencode(query)}", body), request("https://h/a", body)
    explicit = RequestRules(match_on=["method", "params"])
    assert same(one, other, explicit) == same(one, other, None)
    assert same(one, one, explicit)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("ignore", "/params/id", "expected a pointer into HTTP requests"),
        ("ignore", "query:nonce", "expected a pointer into HTTP requests"),
        ("ignore", "POST /params/id", "expected a pointer into HTTP requests"),
        ("match_on", "/params/id", "expected a pointer into HTTP requests"),
        ("match_on", "bodies", f"expected one of {', '.join(WORDS)}, or a pointer"),
        ("mask", "(", "not a regular expression"),
        ("mask", "@uid", "expected a regular expression or one of @uuid"),
    ],
)
def test_a_rule_of_no_form_is_refused(option: str, value: str, told: str) -> None:
    with pytest.raises(UsageError, match="--.*" + told.replace("(", r"\(")):
        RequestRules(**{option: [value]}, strict=True, exact=True)


def test_rules_for_messages_in_a_project_file_are_left_out() -> None:
    rules = RequestRules(ignore=["/params/id", "tools/call /result"], match_on=["method", "/params/name"])
    assert same(request(), request("https://h/b"), rules)


POSTING = """
import json, sys, urllib.request, uuid
body = json.dumps({"id": str(uuid.uuid4()), "text": "hello"}).encode()
url = sys.argv[1] + "/made?nonce=" + uuid.uuid4().hex
request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
print(len(urllib.request.urlopen(request).read()))
"""


def test_a_body_with_a_new_id_is_replayed_with_a_rule_and_refused_without(cassette: Path) -> None:
    with serving() as server:
        child = [*script(POSTING), server.origin]
        plain = record(cassette, child)
    assert (plain.code, plain.err) == (0, b"")
    missed = replay(cassette, child)
    assert missed.code == 3
    assert b"/body/id: recorded" in missed.err
    by_place = replay(cassette, child, None, "--ignore", "POST /made /body/id", "--ignore", "/query/nonce")
    assert (by_place.out, by_place.err, by_place.code) == (plain.out, b"", 0)
    by_pattern = replay(cassette, child, None, "--mask", "@uuid", "--mask", "[0-9a-f]{32}")
    assert (by_pattern.out, by_pattern.err, by_pattern.code) == (plain.out, b"", 0)


def test_a_server_at_another_port_is_the_recorded_one_with_a_rule(cassette: Path) -> None:
    program = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read())"
    with serving() as server:
        plain = record(cassette, [*script(program), f"{server.origin}/count"])
    other = [*script(program), "http://elsewhere.example:81/count"]
    assert replay(cassette, other).code == 3
    again = replay(cassette, other, None, "--ignore", "/port", "--ignore", "/host")
    assert (again.out, again.err, again.code) == (plain.out, b"", 0)


def test_a_rule_of_no_form_ends_replay_before_the_child_runs(cassette: Path) -> None:
    assert record(cassette, script("pass")).code == 0
    again = replay(cassette, script("print('ran')"), None, "--ignore", "/params/id")
    assert (again.out, again.code) == (b"", 2)
    assert b"--ignore /params/id: expected a pointer into HTTP requests" in again.err


@pytest.mark.parametrize("start", [b"\xff\xd8", b"--b\r\n", b"\0\0{"])
@pytest.mark.parametrize("shift", [*range(3), WINDOW - MOST_HIDDEN - 40, WINDOW - 1030, WINDOW - 3])
def test_a_long_body_is_compared_as_a_short_one_would_be(start: bytes, shift: int) -> None:
    """A boundary and placeholders do not count, wherever the pieces end."""

    def body(boundary: bytes, number: int, content: bytes) -> bytes:
        lines = b"".join(b"[redacted:env.KEY#%d]\n--%b\n" % (number, boundary) for _ in range(100))
        return start + bytes(shift) + lines + bytes(LONG) + lines + content

    def multipart(boundary: str, number: int, content: bytes) -> Interaction:
        headers = [("Content-Type", f"multipart/form-data; boundary={boundary}")]
        return request(body=body(boundary.encode(), number, content), headers=headers)

    one = multipart("b1", 1, b"end")
    assert isinstance(Subject(one).content, Digest)
    assert same(one, multipart("abcdef", 72, b"end"), None)
    other = multipart("b1", 1, b"END")
    assert not same(one, other, None)
    assert "bytes, now " in different(Subject(one), Subject(other))[0].text


def test_rules_do_not_bring_a_long_body_into_memory() -> None:
    rules = RequestRules(["/body/id"], ["[0-9]+"])
    one, other = request(body=b"text 1 " + bytes(LONG)), request(body=b"text 2 " + bytes(LONG))
    assert isinstance(Subject(one, rules).content, Digest)
    assert same(one, one, rules)
    assert not same(one, other, rules)


@pytest.mark.parametrize("spaces", [b"", b"\xef\xbb\xbf ", b"\n" * 70_000])
def test_a_long_value_is_compared_as_a_value(spaces: bytes) -> None:
    text = b" " * LONG
    assert same(
        request(body=spaces + b'{"a": 1, "b":' + text + b"2}"), request(body=b'{"b": 2,' + text + b'"a": 1}'), None
    )


def test_paths_of_requests_that_match_replace_those_of_the_recording() -> None:
    recorded = request(body={"b": "in /tmp/x1/src and /tmp/y1", "a": ["/tmp/x1"]})
    live = request(body={"a": ["/tmp/x2"], "b": "in /tmp/x2/src and /tmp/y2"})
    pairs = PathPairs(["@tmp"])
    assert pairs.to_live(b"/tmp/x1/a") == b"/tmp/x1/a"
    pairs.observe(recorded, live)
    assert pairs.to_live(b'"/tmp/x1/a /tmp/y1, /tmp/x1.old"') == b'"/tmp/x2/a /tmp/y2, /tmp/x1.old"'
    pairs.observe(request(body={"b": "/tmp/x1"}), request(body={"b": "/tmp/a /tmp/b"}))  # they do not correspond
    assert pairs.to_live(b"/tmp/x1") == b"/tmp/x2"
    pairs.add("/tmp/(y1)(/z)?|y2")  # the first group, or the match if it does not participate
    pairs.observe(recorded, live)
    assert pairs.to_live(b"y1, y2") == b"y2, y2"
    matching = RequestRules(path=["@tmp"])
    assert same(recorded, live, matching)
    assert not same(recorded, request(body={"a": ["/tmp/x2"], "b": "in /tmp/x2/lib and /tmp/y2"}), matching)
