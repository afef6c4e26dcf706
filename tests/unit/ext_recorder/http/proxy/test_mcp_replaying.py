"""What a cassette tells about HTTP, and the form of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.proxy.mcp_replaying import Facts, head_of

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "cassette: 1\nprotocol: mcp\nframing: ndjson\nevents:\n"
REQUEST = """- {t: 0.1, in: '{"jsonrpc":"2.0","id":7,"method":"tools/list"}', head: ['POST 1']}\n"""


def facts(folder: Path, events: str) -> Facts:
    cassette = folder / "mcp.yaml"
    cassette.write_text(f"{HEADER}{events}- {{t: 9.000000, exit: 0}}\nredacted: []\n")
    return Facts(str(cassette))


def test_a_session_of_stdio_may_use_all_of_http(tmp_path: Path) -> None:
    found = facts(tmp_path, """- {t: 0.1, in: '{"jsonrpc":"2.0","id":7,"method":"tools/list"}'}\n""")

    assert (found.has_session, found.get, found.delete, found.accepted) == (True, 200, 200, 202)
    assert not found.requests


def test_a_session_of_http_has_what_was_recorded(tmp_path: Path) -> None:
    found = facts(
        tmp_path,
        REQUEST
        + """- {t: 0.2, out: '{"jsonrpc":"2.0","id":7,"result":{}}', head: ['POST 1', 'json', 'session']}\n"""
        + "- {t: 0.3, http: POST 2 204}\n- {t: 0.3, http: POST 3 404}\n- {t: 0.4, http: DELETE 4 405}\n",
    )

    assert (found.has_session, found.get, found.delete, found.accepted) == (True, 405, 405, 204)
    assert found.requests == {"POST 1": [b"7"]}
    assert not found.has_ids


@pytest.mark.parametrize(
    ("marks", "status"),
    [
        (("GET 2",), 200),
        (("GET 2", "GET 2 405"), 405),
        (("GET 2", "GET 2 405", "GET 3", "GET 3 end"), 200),
        ((), 405),
    ],
)
def test_a_stream_is_opened_if_one_was(tmp_path: Path, marks: tuple[str, ...], status: int) -> None:
    events = "".join(f"- {{t: 1.000000, http: {mark}}}\n" for mark in marks)

    assert facts(tmp_path, REQUEST + events).get == status


def test_streams_that_continue_others_are_known(tmp_path: Path) -> None:
    found = facts(tmp_path, f"{REQUEST}- {{t: 1.0, http: POST 1 primed}}\n- {{t: 1.0, http: GET 2 resumes 1}}\n")

    assert found.resumed == {"GET 2"}
    assert found.is_primed
    assert found.has_ids


def test_the_head_of_a_response() -> None:
    assert head_of(202, [("Content-Length", "0")]) == b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
