"""`make-temp`."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.wire.errors import RpcError

if TYPE_CHECKING:
    from tests.support.ext_shell_files import FileHost


def test_a_directory_is_made_in_the_working_directory(host: FileHost, workdir: Path) -> None:
    result = host.ok("make-temp")
    path = Path(result.outputs["path"])
    assert path.parent == workdir
    assert path.is_dir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert path.name == result.outputs["name"]
    assert path.name.startswith("tmp-")


def test_a_file_is_made_with_prefix_and_suffix(host: FileHost, workdir: Path) -> None:
    result = host.ok("make-temp", kind="file", prefix="data.", suffix=".json")
    path = Path(result.outputs["path"])
    assert path.parent == workdir
    assert path.read_bytes() == b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.name.startswith("data.")
    assert path.name.endswith(".json")


def test_every_call_makes_another_one(host: FileHost) -> None:
    assert len({host.ok("make-temp").outputs["path"] for _ in range(20)}) == 20


def test_what_is_in_the_working_directory_stays(host: FileHost) -> None:
    path = Path(host.ok("make-temp").outputs["path"])
    host.close()
    assert path.exists()


def test_a_private_one_is_outside_usable_by_the_file_operations_and_gone_at_the_end(
    host: FileHost, workdir: Path
) -> None:
    path = Path(host.ok("make-temp", location="private", **{"as": "TMP"}).outputs["path"])
    assert not path.is_relative_to(workdir)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    host.ok("write-file", path="${TMP.path}/a/b", content="x")
    host.ok("assert-file", path="${TMP.path}/a/b", content="x")
    host.ok("copy", source="${TMP.path}/a/b", destination="taken")
    assert (workdir / "taken").read_text() == "x"
    host.ok("copy", source="taken", destination="${TMP.path}/back")
    host.ok("remove", path="${TMP.path}/a", recursive=True)
    assert [entry.name for entry in path.iterdir()] == ["back"]
    host.close()
    assert not path.parent.exists()


@pytest.mark.parametrize("beyond", ["..", "../../etc/passwd", "../../{workdir}/../outside/secret"])
def test_a_private_one_is_no_way_out(host: FileHost, workdir: Path, beyond: str) -> None:
    path = host.ok("make-temp", location="private").outputs["path"]
    failure = host.failed("read-file", path=f"{path}/../{beyond.format(workdir=workdir.name)}")
    assert "not a path inside" in failure.error


def test_the_private_one_of_another_working_directory_is_out_of_reach(
    host: FileHost, workdir: Path, tmp_path: Path
) -> None:
    path = host.ok("make-temp", location="private", kind="file").outputs["path"]
    host.ok("write-file", path=path, content="mine")
    (tmp_path / "other").mkdir()
    host.workdir = tmp_path / "other"
    assert "not a path inside" in host.failed("read-file", path=path).error
    host.workdir = workdir
    assert host.ok("read-file", path=path).outputs["content"] == "mine"


def test_a_name_that_is_taken_is_left_and_another_one_tried(
    host: FileHost, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workdir / "tmp-taken").write_text("mine")
    names = iter(["taken", "free"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(names, "taken"))
    assert host.ok("make-temp", kind="file").outputs["name"] == "tmp-free"
    assert "all 100 tried names" in host.failed("make-temp", kind="file").message
    assert (workdir / "tmp-taken").read_text() == "mine"


@pytest.mark.parametrize("prefix", ["../", "a/b", "a\0", "x" * 65, "ä"])
def test_a_prefix_is_part_of_a_name(host: FileHost, prefix: str) -> None:
    with pytest.raises(RpcError, match="prefix"):
        host("make-temp", prefix=prefix)
