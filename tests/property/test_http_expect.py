"""Expectations of answers hold for what they were made of, and fail for what differs."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ext_http.client.response import Response
from ext_http.response.expectations import Expect, check, check_status
from ext_sdk.expect import Check, Searcher, passed
from ext_sdk.expect.json_equality import equal
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

CONTEXT = context_in(Path("/nonexistent"))
STATUS = st.integers(100, 599)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
HEADER_VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8)


def checks_of(expectation: dict[str, object], answer: Response) -> list[Check]:
    return check(validate(Expect, expectation), answer, CONTEXT, Searcher())


@given(STATUS, STATUS, STATUS)
def test_a_status_is_in_a_range_a_class_or_a_list_as_numbers_are(status: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert check_status(f"{low}-{high}", status).ok == (low <= status <= high)
    assert check_status(f"{one // 100}xx", status).ok == (status // 100 == one // 100)
    assert check_status([one, f"{other}"], status).ok == (status in {one, other})
    expectation = validate(Expect, {"status": {"not": [one, f"{other // 100}xx"]}})
    assert passed(check(expectation, Response(status=status), CONTEXT, Searcher())) == (
        status != one and status // 100 != other // 100
    )


@given(st.lists(HEADER_VALUES, min_size=1, max_size=4), HEADER_VALUES)
def test_values_of_a_repeated_header_are_held_together_all_or_any(values: list[str], other: str) -> None:
    answer = Response(status=200, headers=tuple(("X-A" if at % 2 else "x-a", one) for at, one in enumerate(values)))
    assert passed(checks_of({"headers": {"X-a": values}}, answer))
    assert passed(checks_of({"headers": {"X-a": [*values, other]}}, answer)) is False
    for how, holds in (("any", other in values), ("all", set(values) == {other})):
        assert passed(checks_of({"headers": {"X-a": {"values": how, "equals": other}}}, answer)) == holds
    assert passed(checks_of({"headers": {"X-a": other}}, answer)) == (values == [other])


@given(VALUES, VALUES)
def test_a_body_equals_the_json_it_was_made_of_and_no_other(value: object, other: object) -> None:
    answer = Response(status=200, body=json.dumps(value).encode())
    assert passed(checks_of({"body": {"jsonEquals": value}}, answer))
    assert passed(checks_of({"body": {"jsonEquals": other}}, answer)) == equal(value, other)
    assert passed(checks_of({"body": {"json": [{"path": "$", "equals": other}]}}, answer)) == equal(value, other)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_bytes_have_their_own_digest_and_size(body: bytes, other: bytes) -> None:
    wanted = {"sha256": hashlib.sha256(other).hexdigest(), "size": len(other)}
    assert passed(checks_of({"body": wanted}, Response(status=200, body=body))) == (body == other)


@given(st.binary(max_size=60), st.sampled_from(["utf-8", "latin-1", "utf-16", "ascii", "utf-7", "idna", "x", ""]))
def test_any_bytes_in_any_charset_are_checked_without_an_error(body: bytes, charset: str) -> None:
    headers = (("Content-Type", f'text/plain; charset="{charset}"'),)
    checks = checks_of(
        {"body": {"contains": "a", "jsonContains": {}}}, Response(status=200, headers=headers, body=body)
    )
    assert checks
    assert all("\n" not in one.brief for one in checks)
    assert not any(re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", str(one)) for one in checks)
