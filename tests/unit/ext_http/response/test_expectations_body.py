"""Checks of bodies."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from ext_http.client.response import Response
from ext_http.response.expectations import BLOCK, BodyExpectation, check_body
from ext_http.response.header_check import CheckContext
from ext_sdk import OperationFailed
from ext_sdk.expect import Searcher, failure_text
from ext_sdk.server.validation import validate

if TYPE_CHECKING:
    from pathlib import Path


def failures(expectation: object, body: bytes, workdir: Path, *, truncated: bool = False) -> str:
    response = Response(status=200, body=body, truncated=truncated)
    with Searcher() as searcher:
        context = CheckContext(workdir, searcher, str)
        return failure_text(check_body(validate(BodyExpectation, expectation), response, context))


def test_bytes_are_compared_with_size_hash_and_file(tmp_path: Path) -> None:
    content = b"x" * BLOCK + b"abc"
    (tmp_path / "a.bin").write_bytes(content)
    expectation = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "sameAsFile": "a.bin"}
    assert failures(expectation, content, tmp_path) == ""
    assert f"differ from offset {BLOCK + 1:,} on" in failures({"sameAsFile": "a.bin"}, b"x" * BLOCK + b"aXc", tmp_path)


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    assert failures({"jsonEquals": {"a": 1}}, b'\xef\xbb\xbf{"a": 1}', tmp_path) == ""


def test_a_schema_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "array"}')
    (tmp_path / "bad.json").write_text("{")
    assert failures({"jsonSchemaFile": "schema.json"}, b"[]", tmp_path) == ""
    assert failures({"jsonSchemaFile": "schema.json"}, b"{}", tmp_path)
    with pytest.raises(OperationFailed, match="can't use the schema"):
        failures({"jsonSchemaFile": "bad.json"}, b"[]", tmp_path)


def test_a_truncated_body_passes_no_check(tmp_path: Path) -> None:
    assert "expected to be read completely" in failures({"contains": "a"}, b"a", tmp_path, truncated=True)
