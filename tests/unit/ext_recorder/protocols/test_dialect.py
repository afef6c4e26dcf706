"""Dialects: what a payload is, by which id, and how a miss is told."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ext_recorder.protocols.dialect import DIALECTS, id_key
from ext_sdk.core import gevals_spec
from ext_sdk.core.wire.framing import FRAMINGS

JSONRPC = DIALECTS["jsonrpc"]


@pytest.mark.parametrize(
    ("payload", "kind", "method", "key"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"a"}', "request", "a", b"1"),
        ('{"jsonrpc":"2.0","id":null,"method":"a"}', "request", "a", b"null"),
        ('{"id":"é","method":"a"}', "request", "a", '"é"'.encode()),
        ('{"method":"a"}', "notification", "a", None),
        ('{"jsonrpc":"2.0","id":1,"result":null}', "response", "", b"1"),
        ('{"id":1.0,"error":{}}', "response", "", b"1"),
        ('{"error":{}}', "response", "", None),
        ('{"id":1}', "other", "", None),
        ('{"id":1,"method":7}', "other", "", None),
        ("[]", "other", "", None),
        ("{", "other", "", None),
        ("", "other", "", None),
        ("hello", "other", "", None),
    ],
)
def test_a_payload_is_a_request_a_response_a_notification_or_something_else(
    payload: str, kind: str, method: str, key: bytes | None
) -> None:
    message = JSONRPC.classify(payload.encode())

    assert (message.kind, message.method, message.key) == (kind, method, key)


def test_bytes_that_are_no_utf8_are_kept() -> None:
    payload = b'{"id":1,"method":"a","params":"\xff"}'
    message = JSONRPC.classify(payload)

    assert message.kind == "request"
    assert message.text.encode("utf-8", "surrogateescape") == payload


def test_without_a_protocol_every_payload_stands_for_itself() -> None:
    assert DIALECTS["raw"].classify(b'{"id":1,"method":"a"}').kind == "other"
    assert DIALECTS["raw"].refusal(JSONRPC.classify(b'{"id":1,"method":"a"}'), "no", {}) is None


def test_ids_are_the_same_when_their_json_values_are() -> None:
    same: list[list[tuple[object, str]]] = [
        [(1, "1"), (1.0, "1.0"), (1.0, "1e0")],
        [("1", '"1"')],
        [(True, "true")],
        [(None, "null")],
        [(1.5, "1.5")],
    ]
    keys = [{id_key(value, spelling) for value, spelling in group} for group in same]

    assert all(len(group) == 1 for group in keys)
    assert len(set.union(*keys)) == len(same)


@pytest.mark.parametrize("id", ["1", '"a\\u0062"', "1.50", "null", "[1]"])
def test_a_refusal_is_an_error_answer_with_the_id_as_it_was_spelled(id: str) -> None:
    request = JSONRPC.classify(f'{{"jsonrpc":"2.0","id":{id},"method":"a"}}'.encode())

    refusal = JSONRPC.refusal(request, "nothing \ud800 recorded", {"reason": "used-up"})

    assert refusal is not None
    assert f'"id":{id},'.encode() in refusal
    answer = json.loads(refusal)
    assert answer["error"]["code"] == -32099
    assert answer["error"]["data"] == {"reason": "used-up"}


def test_every_dialect_has_a_framing_that_there_is() -> None:
    assert {dialect.framing for dialect in DIALECTS.values()} <= FRAMINGS.keys()


def test_the_constants_of_spec_0_cost_a_start_nothing() -> None:
    program = (
        "import sys; before = set(sys.modules); import ext_sdk.core.gevals_spec\n"
        "print({name for name in set(sys.modules) - before if name.partition('.')[0] != 'ext_sdk'} - {'__future__'})"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "set()"
    assert gevals_spec.PROTOCOL_VERSION == "0.0.1"
