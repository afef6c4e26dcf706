"""A session that passes the check while it is recorded has no open call, in any order of its messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay.unanswered import CompletenessCheck, _Calls

FORMS = (
    b'{"jsonrpc":"2.0","id":%b,"method":"m","params":{}}',
    b'{"jsonrpc": "2.0", "id": %b, "method": "m"}',
    b'{"method":"m","params":{"id":1},"jsonrpc":"2.0","id":%b}',
    b'{"method":"m","params":{},"jsonrpc":"2.0","id":%b}',
    b'{"jsonrpc":"2.0","id":%b,"method":"shutdown"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}',
    b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%b}}',
    b'{"jsonrpc":"2.0","method":"$/progress","params":{"token":%b}}',
    b'{"jsonrpc":"2.0","id":%b,"result":{}}',
    b'{"jsonrpc": "2.0", "id": %b, "error": {"code": 1, "message": "no"}}',
    b'{"result":{},"jsonrpc":"2.0","id":%b}',
    b"[%b]",
)
MESSAGES = st.builds(
    lambda form, key: form % key, st.sampled_from(FORMS), st.sampled_from((b"1", b"2", b'"a"', b"1.0"))
)
SESSIONS = st.lists(st.tuples(st.integers(1, 2), st.sampled_from(("in", "out")), MESSAGES), max_size=12)


@pytest.mark.parametrize("protocol", ["jsonrpc", "mcp", "lsp", "gevals", "dap", "pi", "raw"])
@given(session=SESSIONS)
def test_a_session_that_passes_has_no_open_call(protocol: str, session: list[tuple[int, str, bytes]]) -> None:
    check, calls = CompletenessCheck(DIALECTS[protocol]), _Calls(DIALECTS[protocol])
    for line, (conn, stream, payload) in enumerate(session):
        check.add_message(conn, stream, payload)
        if DIALECTS[protocol].calls:
            calls.take(conn, stream, payload, line)
    if check.is_complete:
        assert calls.left() == []


def test_requests_with_responses_pass_and_open_ones_do_not() -> None:
    check = CompletenessCheck(DIALECTS["mcp"])
    for stream, payload in (("in", FORMS[0]), ("in", FORMS[1]), ("out", FORMS[8])):
        check.add_message(1, stream, payload % (b"2" if payload == FORMS[1] else b"1"))
    assert not check.is_complete
    check.add_message(1, "out", FORMS[9] % b"2")
    assert check.is_complete


@pytest.mark.parametrize(
    ("kind", "value"), [("signal", "SIGTERM"), ("omitted", "70000000 bytes of out"), ("exit", "SIGKILL")]
)
def test_a_signal_or_an_omitted_message_leaves_a_doubt(kind: str, value: str) -> None:
    check = CompletenessCheck(DIALECTS["mcp"])
    check.add_mark("exit", 0)
    assert check.is_complete
    check.add_mark(kind, value)
    assert not check.is_complete
