"""Redaction, whatever the text: JSON stays JSON, twice is once, and a known value is gone in every spelling."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

from hypothesis import assume, given
from hypothesis import strategies as st

from ext_sdk.core.redaction.patterns import same_but_for_numbers
from ext_sdk.core.redaction.redactor import Redactor

SECRET = 'Pa$$w0rd/"1\\n\u00e9 x'
SECRETS = {"env.A_TOKEN": SECRET, "env.PIN": "1234", "env.SHORT": "alse", "b": "true", "c": "tok-5f3a9c7e1b2d"}

KEYS = [
    "password",
    "token",
    "apiKey",
    "name",
    "value",
    "kind",
    "data",
    "Authorization",
    "x",
    "client-key-data",
    "--pwd",
]
TEXTS = [
    *(
        SECRET,
        "1234",
        "tok-5f3a9c7e1b2d",
        "true",
        "",
        "Bearer abcdefgh1234",
        "Secret",
        "\\",
        '"',
        "\n",
        "%41",
        "\\u0041",
    ),
    *("password: x1", "token=abc&b=1", "://u:p@h", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"),
    *(
        "kind: Secret\ndata:\n  a: b\n",
        "[redacted:bearer#3]",
        "[redacted:",
        "sk-abcdef1234567890",
        "--token q",
        "{",
        "'",
    ),
    *(
        "password: |\n  a\n  b\nc: d",
        "token: a1[redacted:x#1]b",
        "password",
        "PASSWORD",
        "eyJhbGciOiJ9.eyJzdWIiOiJ9.a-b",
    ),
]

pieces = st.lists(st.sampled_from(TEXTS) | st.text(max_size=4), max_size=4).map("".join)
scalars = st.none() | st.booleans() | st.integers() | st.sampled_from([1234, 51234.5, 12341234]) | st.floats() | pieces
members = st.sampled_from(KEYS) | pieces


def nested(children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    dumped = st.builds(json.dumps, children, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 1]))
    return st.lists(children, max_size=3) | st.dictionaries(members, children, max_size=4) | dumped


values = st.recursive(scalars, nested, max_leaves=12)
documents = st.builds(json.dumps, values, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 2])).filter(
    lambda text: "NaN" not in text and "Infinity" not in text
)
garbage = st.lists(st.binary(max_size=6) | st.sampled_from([each.encode() for each in TEXTS + KEYS]), max_size=12).map(
    b"".join
)


def redactor() -> Redactor:
    return Redactor(SECRETS, rules=True)


def texts_within(value: object) -> list[str]:
    """All strings of a JSON value, and those of JSON within them."""
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in texts_within(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts_within(each)]
    if not isinstance(value, str):
        return [json.dumps(value)]
    try:
        inner = json.loads(value)
    except ValueError:
        return [value]
    return [value, *(texts_within(inner) if isinstance(inner, str | list | dict) else [])]


@given(documents)
def test_a_json_text_stays_one(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    json.loads(redactor().redact(data))


@given(documents | garbage.map(lambda data: data.decode("latin-1")))
def test_what_is_redacted_is_left_alone(text: str) -> None:
    one = redactor()
    once = one.redact_text(text)
    assert one.redact_text(once) == once
    assert redactor().redact_text(once) == once


@given(garbage)
def test_any_bytes_are_redacted_once_and_the_same_way_everywhere(data: bytes) -> None:
    one = redactor()
    once = one.redact(data)
    assert one.redact(once) == once
    assert redactor().redact(data) == once
    assert redactor().redact_text(data.decode("latin-1")).count("[redacted:") == once.count(b"[redacted:") or any(
        byte > 127 for byte in data
    )


@given(documents)
def test_a_known_value_is_nowhere_in_a_json_text_afterwards(text: str) -> None:
    found = texts_within(json.loads(redactor().redact_text(text)))
    assert not [each for each in found if SECRET in each or "tok-5f3a9c7e1b2d" in each or "1234" in each]


@given(st.text(min_size=4), st.binary(max_size=5), st.binary(max_size=5))
def test_a_known_value_is_gone_in_every_spelling(value: str, before: bytes, after: bytes) -> None:
    value = value.strip()
    assume(len(value) >= 4 and not any("\ud800" <= each <= "\udfff" for each in value))
    known = Redactor({"x": value})
    assume(known.redact_text(value) != value)
    data = value.encode()
    encoded = base64.b64encode(before + data + after)
    start = -(-8 * len(before) // 6)
    core = encoded[start : start + 8 * len(data) // 6 - 1]
    for spelling in (
        data,
        json.dumps(value).encode(),
        json.dumps(json.dumps(value, ensure_ascii=False)).encode(),
        "".join(f"\\u{ord(each):04x}" for each in value if ord(each) < 0x10000).encode()
        if max(value) < "\U00010000"
        else data,
        quote(value, safe="").encode(),
        data.hex().encode(),
        data.hex().upper().encode(),
    ):
        assert b"[redacted:x#1]" in known.redact(b"<" + spelling + b">")
    assert core not in known.redact(b"<" + encoded + b">")


@given(documents, documents)
def test_equal_messages_are_the_same_but_for_numbers_whatever_came_before(text: str, earlier: str) -> None:
    fresh, used = redactor(), redactor()
    used.redact_text(earlier)
    assert same_but_for_numbers(fresh.redact_text(text), fresh.redact_text(text))
    assert same_but_for_numbers(fresh.redact_text(text), redactor().redact_text(text))
