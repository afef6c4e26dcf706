"""Where the cluster and its programs come from. A script stands in for Go, so that nothing is compiled."""

from __future__ import annotations

import os
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from tests.live import build
from tests.live.build import CONTROL_PLANE, NODE_SERVER, CannotBuild, built
from tests.live.cluster import FoundCluster, NoCluster, find_programs
from tests.live.processes import ProgramEnded

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.cluster import Cluster

# Writes what it is asked for: a program that succeeds, or nothing where SABOTAGE names the step.
GO = """#!/bin/sh
echo "$1" >>"$GO_CALLS"
if [ "$1" = "$SABOTAGE" ]; then echo "no route to anywhere" >&2; exit 1; fi
case $1 in
build) shift; while [ "$1" != -o ]; do shift; done; program=$2 ;;
install) program=$GOBIN/kwok ;;
*) exit 0 ;;
esac
printf '#!/bin/sh\\n' >"$program"; chmod +x "$program"
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no other programs than the system's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "nice", "chmod"):
        (programs / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(programs))
    return tmp_path / "cache" / "gevals-extensions" / "controlplane"


@pytest.fixture
def calls(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Go was called for, a line each."""
    go = tmp_path / "bin" / "go"
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    assert not cache.exists()
    return tmp_path / "calls"


def test_the_programs_are_built_once(cache: Path, calls: Path) -> None:
    place = built(print)
    assert place.parent == cache
    assert all(os.access(place / name, os.X_OK) for name in (*CONTROL_PLANE, NODE_SERVER, "kwok"))
    assert built(print) == place
    assert calls.read_text().split() == ["list", "build", "install"]


def test_two_that_need_them_at_once_build_once(calls: Path) -> None:
    both = [threading.Thread(target=built, args=[lambda line: None]) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert calls.read_text().split() == ["list", "build", "install"]


@pytest.mark.parametrize("step", ["build", "install"])
def test_a_build_that_fails_leaves_nothing_to_use(
    cache: Path, calls: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setenv("SABOTAGE", step)
    with pytest.raises(ProgramEnded, match="no route to anywhere"):
        built(print)
    monkeypatch.delenv("SABOTAGE")
    assert not (cache / build.checksum()).exists()
    assert built(print).is_dir()
    assert calls.read_text().split()[-3:] == ["list", "build", "install"]


def test_what_nobody_used_for_a_month_makes_room(cache: Path, calls: Path) -> None:
    for name, days in (("old", 31), ("young", 1)):
        (cache / name).mkdir(parents=True)
        then = (cache / name).stat().st_mtime - days * 24 * 3600
        os.utime(cache / name, (then, then))
    built(print)
    assert calls.exists()
    assert (cache / "young").exists()
    assert not (cache / "old").exists()


def test_without_the_network_there_is_no_cluster(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SABOTAGE", "list")
    with pytest.raises(CannotBuild, match=r"(?s)can't get the modules.*no route to anywhere"):
        built(print)
    assert calls.read_text().split() == ["list"]


@pytest.mark.usefixtures("cache")
def test_without_anything_there_is_no_cluster_and_each_way_says_why() -> None:
    with (
        pytest.raises(NoCluster, match="no --kubeconfig; no docker in PATH; Go is not in PATH"),
        FoundCluster("", "", print),
    ):
        pass


def test_programs_that_are_there_are_used_without_go(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    for name in (*CONTROL_PLANE, "kwok"):
        with pytest.raises(CannotBuild):
            find_programs(print)
        (assets / name).touch()
    assert find_programs(print).control_plane == assets
    assert not cache.exists()


def test_the_cluster_that_is_given_is_the_one(cluster: Cluster) -> None:
    with FoundCluster(cluster.kubeconfig, "", print) as given:
        assert (given.way, given.kubeconfig) == ("kubeconfig", cluster.kubeconfig)
        assert given.kubelets == cluster.kubelets
