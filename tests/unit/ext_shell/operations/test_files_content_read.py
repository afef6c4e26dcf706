"""`read-file`."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.wire.errors import RpcError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_shell_files import FileHost


def test_text_and_facts_are_outputs(host: FileHost, workdir: Path) -> None:
    (workdir / "a").write_bytes("ä\r\n".encode())
    (workdir / "a").chmod(0o640)
    result = host.ok("read-file", path="a")
    assert result.message == "Read 4 bytes from a"
    assert result.outputs == {
        "content": "ä\r\n",
        "encoding": "utf-8",
        "path": str(workdir / "a"),
        "size": "4",
        "mode": "0640",
        "sha256": hashlib.sha256("ä\r\n".encode()).hexdigest(),
    }


def test_what_is_no_text_comes_in_base64(host: FileHost, workdir: Path) -> None:
    (workdir / "a").write_bytes(b"\xff\0")
    result = host.ok("read-file", path="a")
    assert (result.outputs["content"], result.outputs["encoding"]) == ("/wA=", "base64")
    failure = host.failed("read-file", path="a", encoding="utf-8")
    assert failure.error == "a: expected UTF-8, got byte 0xff at offset 0; read it with `encoding: base64`"


def test_base64_can_be_asked_for(host: FileHost, workdir: Path) -> None:
    (workdir / "a").write_bytes(b"a")
    assert host.ok("read-file", path="a", encoding="base64").outputs["content"] == "YQ=="


def test_a_file_over_the_limit_is_a_failure(host: FileHost, workdir: Path) -> None:
    with (workdir / "big").open("wb") as file:
        file.truncate(1 << 40)
    assert host.failed("read-file", path="big").error == (
        "big: expected at most 10,485,760 bytes, got more; raise `maxSize`"
    )
    (workdir / "a").write_bytes(b"12345")
    host.failed("read-file", path="a", maxSize=4)
    host.ok("read-file", path="a", maxSize=5)


@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "out", "out-dir/secret", "absolute", "a\0"])
def test_nothing_outside_is_read(host: FileHost, workdir: Path, path: str) -> None:
    (workdir / "out").symlink_to("../outside/secret")
    (workdir / "out-dir").symlink_to("../outside")
    (workdir / "absolute").symlink_to(workdir.parent / "outside" / "secret")
    failure = host.failed("read-file", path=path)
    assert "not a path inside the working directory" in failure.error
    assert failure.outputs == {}


def test_a_fifo_is_refused_without_waiting(host: FileHost, workdir: Path) -> None:
    os.mkfifo(workdir / "fifo")
    assert host.failed("read-file", path="fifo").error == "fifo: expected a regular file, got a fifo"


def test_a_missing_file_is_told(host: FileHost) -> None:
    assert "could not read 'a': No such file or directory" in host.failed("read-file", path="a").error


def test_a_wrong_argument_is_refused(host: FileHost) -> None:
    with pytest.raises(RpcError, match="maxSize"):
        host("read-file", path="a", maxSize=-1)
