"""`copy`, against an API server on loopback whose containers have a tar of the tests'."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.operations.exec import unpack
from ext_sdk import Deadline, OperationFailed
from ext_sdk.files import Workdir

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

SUCCESS = (3, b'{"status":"Success"}')
UP = {"resource": "pod/web", "direction": "toContainer"}
DOWN = {"resource": "pod/web", "direction": "fromContainer"}


@pytest.fixture
def pod(api: FakeApi) -> FakeApi:
    spec = {"containers": [{"name": "main"}]}
    api.put("pods", {"metadata": {"name": "web"}, "spec": spec, "status": {"phase": "Running"}})
    return api


def sends(api: FakeApi, *members: tuple[tarfile.TarInfo, bytes]) -> None:
    """Let the container send an archive."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    sends_bytes(api, data.getvalue())


def sends_bytes(api: FakeApi, data: bytes) -> None:
    pieces = [(1, data[at : at + 60_000]) for at in range(0, len(data), 60_000)]
    api.commands["tar"] = lambda _: [*pieces, SUCCESS]


def link(name: str, to: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, to
    return member


def test_a_directory_goes_into_a_container_under_its_new_name(kube: Extension, pod: FakeApi) -> None:
    got: list[bytes] = []

    def tar(stdin: bytes) -> list[tuple[int, bytes]]:
        got.append(stdin)
        return [SUCCESS]

    pod.commands["tar"] = tar
    (kube.workdir / "site" / "sub").mkdir(parents=True)
    (kube.workdir / "site" / "sub" / "x").write_bytes(b"\xff")
    assert kube.ok("copy", UP | {"local": "site", "remote": "/srv/www"})["files"] == "1"
    with tarfile.open(fileobj=io.BytesIO(got[0])) as archive:
        assert archive.getnames() == ["www", "www/sub", "www/sub/x"]
        content = archive.extractfile("www/sub/x")
        assert content is not None
        assert content.read() == b"\xff"


def test_a_file_comes_out_of_a_container(kube: Extension, pod: FakeApi) -> None:
    sends(pod, (tarfile.TarInfo("hosts"), b"\xfe"))
    assert kube.ok("copy", DOWN | {"local": "got/it", "remote": "/etc/hosts"})["files"] == "1"
    assert (kube.workdir / "got" / "it").read_bytes() == b"\xfe"


def test_links_of_a_container_are_left_out(kube: Extension, pod: FakeApi) -> None:
    sends(pod, (link("d/link", "/etc"), b""), (tarfile.TarInfo("d/file"), b"x"))
    assert kube.ok("copy", DOWN | {"local": "d", "remote": "/d"})["skipped"] == "link"
    assert not (kube.workdir / "d" / "link").is_symlink()


@pytest.mark.parametrize("name", ["../x", "d/../../x", "/x", "other"])
def test_a_container_cannot_write_elsewhere(kube: Extension, pod: FakeApi, name: str) -> None:
    sends(pod, (tarfile.TarInfo(name), b"x"))
    assert "not a path inside" in kube.failed("copy", DOWN | {"local": "d", "remote": "/d"})
    assert not (kube.workdir.parent / "x").exists()


@pytest.mark.parametrize("args", [UP, DOWN])
def test_no_path_leads_out_of_the_workdir(kube: Extension, pod: FakeApi, args: dict[str, str]) -> None:
    sends(pod, (tarfile.TarInfo("x"), b"x"))
    (kube.workdir / "link").symlink_to("/tmp")
    for local in ("../x", "link/x", "/etc/x"):
        assert "not a path inside" in kube.failed("copy", args | {"local": local, "remote": "/x"})


def test_what_tar_says_is_told(kube: Extension, pod: FakeApi) -> None:
    status = b'{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"2"}]}}'
    pod.commands["tar"] = lambda _: [(2, b"tar: x: no such file"), (3, status)]
    told = kube.failed("copy", DOWN | {"local": "x", "remote": "/x"})
    assert "tar exited with code 2: tar: x: no such file" in told


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_an_archive_is_never_decompressed(kube: Extension, pod: FakeApi, compress: Callable[[bytes], bytes]) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        member = tarfile.TarInfo("x")
        member.size = 1024 * 1024
        archive.addfile(member, io.BytesIO(bytes(member.size)))
    sends_bytes(pod, compress(data.getvalue()))
    assert "expected a tar archive" in kube.failed("copy", DOWN | {"local": "x", "remote": "/x"})
    assert not (kube.workdir / "x").exists()


def test_a_sparse_file_counts_with_its_whole_size(kube: Extension, pod: FakeApi) -> None:
    size = 65 * 1024 * 1024
    headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,1"}
    member = tarfile.TarInfo("x")
    member.pax_headers = headers | {"GNU.sparse.size": str(size), "GNU.sparse.numblocks": "1"}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with tarfile.open(fileobj=io.BytesIO(data.getvalue())) as archive:
        assert archive.getmember("x").size == size
    sends_bytes(pod, data.getvalue())
    assert "expected at most 67,108,864 bytes" in kube.failed("copy", DOWN | {"local": "x", "remote": "/x"})
    assert not (kube.workdir / "x").exists()


def test_no_file_is_written_after_the_deadline(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"))
    with pytest.raises(OperationFailed, match="could not be copied"):
        unpack(data.getvalue(), Workdir(tmp_path), "x", "x", Deadline(0))
    assert not (tmp_path / "x").exists()
