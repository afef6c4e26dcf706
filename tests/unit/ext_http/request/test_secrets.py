"""Secret values and PEM files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.request.secrets import FromEnv, read_pem, resolve_secret, resolve_value
from ext_sdk import InvalidArgs, OperationFailed
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path


def test_a_value_of_the_task_stays_visible_and_one_of_the_process_is_redacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWN", "value-of-the-process")
    context = context_in(tmp_path)
    context.env["TASK"] = "value-of-the-task"
    assert resolve_value(FromEnv(env="TASK"), "headers.a", context) == "value-of-the-task"
    assert context.secrets.redact("value-of-the-task") == "value-of-the-task"
    assert resolve_value(FromEnv(env="OWN"), "headers.a", context) == "value-of-the-process"
    assert "process" not in context.secrets.redact("value-of-the-process")


def test_a_missing_variable_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgs, match="found no variable 'NO_SUCH'"):
        resolve_secret(FromEnv(env="NO_SUCH"), "auth.bearer", context_in(tmp_path))


def test_pem_is_text_or_a_file_of_the_workdir(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    (tmp_path / "no.pem").write_text("nothing")
    assert read_pem("-----BEGIN X", "tls.ca", context) == "-----BEGIN X"
    assert read_pem("ca.pem", "tls.ca", context) == "-----BEGIN CERTIFICATE-----"
    with pytest.raises(InvalidArgs, match="expected PEM"):
        read_pem("no.pem", "tls.ca", context)
    with pytest.raises(OperationFailed):
        read_pem("missing.pem", "tls.ca", context)
