"""`download`: a file in the workdir, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_http import Extension
    from tests.support.http_stub import Stub

DATA = bytes(range(256)) * 1000


def left(http: Extension) -> list[str]:
    return sorted(str(path.relative_to(http.workdir)) for path in http.workdir.rglob("*") if path.is_file())


def test_a_file_is_fetched_byte_for_byte(http: Extension, stub: Stub) -> None:
    result = http.ok("download", url=stub.says("/f", DATA), path="a/b/file.bin", query={"x": 1})
    path = http.workdir / "a/b/file.bin"
    assert path.read_bytes() == DATA
    assert result.outputs["path"] == str(path)
    assert result.outputs["size"] == str(len(DATA))
    assert result.outputs["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert "256,000 bytes" in result.message
    assert stub.asked[-1].path == "/f?x=1"


def test_a_checksum_is_checked(http: Extension, stub: Stub) -> None:
    url = stub.says("/f", DATA)
    http.ok("download", url=url, path="good", sha256=hashlib.sha256(DATA).hexdigest().upper())
    result = http.failed("download", url=url, path="bad", sha256="0" * 64)
    assert (
        f"sha256:\n  expected to equal {'0' * 64}\n  got               {hashlib.sha256(DATA).hexdigest()}"
        in result.error
    )
    assert "no file was created" in result.error
    assert left(http) == ["good"]


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_more_than_the_limit_is_no_file(coding: str, http: Extension, stub: Stub) -> None:
    data = gzip.compress(DATA) if coding == "gzip" else DATA
    stub.routes["/f"] = lambda handler, asked: handler.answer(200, data, {"Content-Encoding": coding})
    error = http.failed("download", url=stub.url("/f"), path="f", maxSize=len(DATA) - 1).error
    assert "expected to have at most 255,999 bytes (maxSize)" in error
    assert left(http) == []
    http.ok("download", url=stub.url("/f"), path="f", maxSize=len(DATA))
    assert (http.workdir / "f").read_bytes() == DATA


def test_an_error_is_no_file(http: Extension, stub: Stub) -> None:
    url = stub.says("/f", "not here", status=404, Content_Type="text/plain")
    result = http.failed("download", url=url, path="f")
    assert "expected to be 2xx, got 404" in result.error
    assert "body: not here" in result.error
    assert left(http) == []
    assert "to be a file" in http.failed("download", url=url, path="f", expect={"status": 404}).error


def test_what_breaks_off_is_no_file_and_leaves_the_old_one(http: Extension, stub: Stub) -> None:
    (http.workdir / "f").write_text("old")
    url = stub.does("/f", lambda handler, asked: handler.begin("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nabc"))
    assert "ended too soon" in http.failed("download", url=url, path="f").error
    assert left(http) == ["f"]
    assert (http.workdir / "f").read_text() == "old"


def test_a_file_is_replaced_unless_it_must_not_be(http: Extension, stub: Stub) -> None:
    (http.workdir / "f").write_text("old")
    url = stub.says("/f", "new")
    error = http.failed("download", url=url, path="f", overwrite=False).error
    assert "`overwrite: true` replaces it" in error
    assert stub.asked == []
    http.ok("download", url=url, path="f")
    assert (http.workdir / "f").read_text() == "new"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "link/x", "a/../../x", ""])
def test_nothing_is_written_outside_of_the_workdir(path: str, http: Extension, stub: Stub) -> None:
    (http.workdir / "link").symlink_to("/tmp")
    url = stub.says("/f", DATA)
    answer = http.peer.execute("download", {"url": url, "path": path}, workdir=str(http.workdir))
    told = repr(answer)
    assert "not a path inside the working directory" in told or "path" in told
    assert stub.asked == []
    assert left(http) == []


def test_redirects_lead_to_the_file(http: Extension, stub: Stub) -> None:
    stub.says("/f", "content")
    stub.says("/old", "moved", status=302, Location="/f")
    http.ok("download", url=stub.url("/old"), path="f", redirects=1)
    assert (http.workdir / "f").read_text() == "content"


def test_headers_and_duration_can_be_expected_but_not_the_body(http: Extension, stub: Stub) -> None:
    url = stub.says("/f", "content", Content_Type="text/csv")
    http.ok("download", url=url, path="f", expect={"headers": {"content-type": "text/csv"}, "duration": {"lt": "20s"}})
    error = http.failed("download", url=url, path="g", expect={"headers": {"content-type": "text/html"}}).error
    assert "content-type" in error.lower()
    bad = stub.says("/bad", "content", status=500, Content_Type="text/csv")
    error = http.failed("download", url=bad, path="g", expect={"headers": {"content-type": "text/csv"}}).error
    assert "status: expected to be 2xx, got 500" in error
    assert "check its `sha256`" in http.refused("download", url=url, path="g", expect={"body": "content"})
    assert left(http) == ["f"]
