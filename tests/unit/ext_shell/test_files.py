"""Working directories, private temporary directories, permissions, checksums."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from ext_sdk import Deadline, OperationFailed
from ext_sdk.files import Workdir
from ext_shell.files import PrivateTemps, check_time, permissions_text, sha256_of, workdir_for
from tests.support.shell_contexts import shell_call

if TYPE_CHECKING:
    from pathlib import Path


def test_a_path_is_in_the_workdir_or_in_a_private_directory(tmp_path: Path) -> None:
    with shell_call(tmp_path) as call:
        private = call.context.state(PrivateTemps).make()
        assert workdir_for(call.context, "a").root == tmp_path
        assert workdir_for(call.context, f"{private}/a").root == private
        assert workdir_for(call.context, str(private)).root == private
        assert private.is_dir()
    assert not private.exists()


def test_a_missing_workdir_is_a_failure_of_the_host(tmp_path: Path) -> None:
    with (
        shell_call(tmp_path / "missing") as call,
        pytest.raises(OperationFailed, match="the working directory does not exist") as failure,
    ):
        workdir_for(call.context, "a")
    assert "the host must create it" in failure.value.error


def test_permissions_are_octal() -> None:
    assert permissions_text(0o100640) == "0640"


def test_a_checksum_needs_time(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    assert sha256_of(Workdir(tmp_path), "a", Deadline()) == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    with pytest.raises(OperationFailed, match="the time was up while reading 'a'"):
        sha256_of(Workdir(tmp_path), "a", Deadline(0))
    check_time(Deadline(), "anything")
