"""`copy`, against an API server on loopback whose containers have a tar of the tests'."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.ext_kubernetes.conftest import Extension
    from tests.ext_kubernetes.fake_api import FakeApi

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
    api.commands["tar"] = lambda _: [(1, data.getvalue()), SUCCESS]


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
    assert "no path inside" in kube.failed("copy", DOWN | {"local": "d", "remote": "/d"})
    assert not (kube.workdir.parent / "x").exists()


@pytest.mark.parametrize("args", [UP, DOWN])
def test_no_path_leads_out_of_the_workdir(kube: Extension, pod: FakeApi, args: dict[str, str]) -> None:
    sends(pod, (tarfile.TarInfo("x"), b"x"))
    (kube.workdir / "link").symlink_to("/tmp")
    for local in ("../x", "link/x", "/etc/x"):
        assert "no path inside" in kube.failed("copy", args | {"local": local, "remote": "/x"})


def test_what_tar_says_is_told(kube: Extension, pod: FakeApi) -> None:
    status = b'{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"2"}]}}'
    pod.commands["tar"] = lambda _: [(2, b"tar: x: no such file"), (3, status)]
    told = kube.failed("copy", DOWN | {"local": "x", "remote": "/x"})
    assert "tar ended with exit code 2: tar: x: no such file" in told
