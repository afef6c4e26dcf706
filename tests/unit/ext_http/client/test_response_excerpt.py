"""Bodies in outputs and errors."""

from __future__ import annotations

from pathlib import Path

from ext_http.client.response import EXCERPT, SIZES, Response, excerpt, show, status_line, whole
from ext_sdk import NotKept
from ext_sdk.context import Artifacts
from tests.support.http_contexts import context_in


def response(body: bytes, *, truncated: bool = False) -> Response:
    return Response(status=503, reason="Busy", headers=(("Content-Type", "a/b"),), body=body, truncated=truncated)


def test_a_long_body_is_cut_and_written_to_a_file(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    context._artifacts = Artifacts(str(tmp_path / "artifacts"), "http")
    body = b"line\n" * SIZES.complete
    text, path = show(response(body), context)
    assert "bytes left out; all of it is in bodyFile" in text
    assert Path(path).read_bytes() == body
    assert show(response(b"short"), context) == ("short", "")
    assert show(response(b"short", truncated=True), context)[0].endswith("more that were not read (maxBody) ...]")
    assert show(response(b"a\0b"), context)[0] == "[binary: 3 bytes]"


def test_a_later_step_gets_complete_text_only() -> None:
    assert whole(response(b"text")) == "text"
    for refused in (response(b"text", truncated=True), response(b"\0"), response(b"\xff")):
        assert isinstance(whole(refused), NotKept)


def test_an_error_has_the_status_and_the_beginning_of_the_body(tmp_path: Path) -> None:
    secrets = context_in(tmp_path, {"token": "token-of-the-task"}).secrets
    assert status_line(response(b"")) == "503 Busy (a/b)"
    assert excerpt(response(b"a\n  b"), secrets) == "a b"
    assert "token-of-the-task" not in excerpt(response(b"token-of-the-task"), secrets)
    assert excerpt(response(b"x" * 1000), secrets) == "x" * EXCERPT + " …"
