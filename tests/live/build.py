"""Build the control plane from Go modules: once a machine, into the user's cache.

The cache has a folder for each state of the module, named by its checksum. It is built beside its place and renamed
when it is whole, under a lock: nobody sees half of one, or builds it a second time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.processes import Processes, ProgramEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE = Path(__file__).parent / "controlplane"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE_SERVER = "node-server"
KWOK = "sigs.k8s.io/kwok/cmd/kwok@v0.8.0"  # its libraries are newer ones: it can't be part of the module
FLAGS = "-trimpath"  # the same code makes the same file wherever it lies
STRIP = "-s -w"  # without symbols: a third less to write and to keep
VERSION = "k8s.io/component-base/version"  # where the programs have their version from
REPORT_SECONDS = 30.0
KEEP_SECONDS = 30 * 24 * 3600.0  # a build that nobody used for so long makes room for a new one


class CannotBuild(Exception):
    """This machine has no Go, or can't get the modules."""


def cache() -> Path:
    """The folder of all builds of this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gevals-extensions" / "controlplane"


def checksum() -> str:
    """What the build depends on, as 16 hex digits."""
    digest = hashlib.sha256(repr((KWOK, FLAGS, STRIP, platform.system(), platform.machine())).encode())
    for path in sorted(path for path in MODULE.iterdir() if path.suffix in {".go", ".mod", ".sum"}):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def built(report: Callable[[str], None]) -> Path:
    """The folder with the programs of CONTROL_PLANE, NODE_SERVER and `kwok`, built now if need be.

    Args:
        report: gets a line to show every now and then.

    Raises:
        CannotBuild: no Go, or no modules.
        ProgramEnded: the compiler refused.
    """
    place = cache() / checksum()
    if not place.is_dir():
        go = shutil.which("go")
        if go is None:
            raise CannotBuild("Go is not in PATH, so the control plane can't be built")
        with _only_one(place.parent, report):
            if not place.is_dir():  # another process may have built it while this one waited
                _build(go, place, report)
                _forget_old(place.parent)
    os.utime(place)
    return place


@contextmanager
def _only_one(directory: Path, report: Callable[[str], None]) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:  # left by the system when this process ends, however it does
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that builds the control plane")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(go: str, place: Path, report: Callable[[str], None]) -> None:
    unfinished = place.with_name("unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    env = os.environ | {
        "CGO_ENABLED": "0",
        "GOBIN": str(unfinished),
        "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} {FLAGS}".strip(),
    }
    with Processes(MODULE, place.with_name("logs")) as processes:
        builder = _Builder(processes, [shutil.which("nice") or "nice", "-n", "10", go], env, report)
        builder.modules()
        program = unfinished / "control-plane"
        builder.compile("build", "control plane", ["build", "-v", "-ldflags", _link_flags(), "-o", str(program), "."])
        for name in (*CONTROL_PLANE, NODE_SERVER):
            (unfinished / name).symlink_to(program.name)
        builder.compile("install", "kwok", ["install", "-v", "-ldflags", STRIP, KWOK])
        processes.run("version", [str(unfinished / "kube-apiserver"), "--version"], env, lambda: None)
    unfinished.rename(place)
    report(f"built {place}")


def _forget_old(directory: Path) -> None:
    for build in directory.iterdir():
        if build.is_dir() and time.time() - build.stat().st_mtime > KEEP_SECONDS:
            shutil.rmtree(build)


def _link_flags() -> str:
    found = re.search(r"k8s\.io/kubernetes v((\d+)\.(\d+)\.\S+)", (MODULE / "go.mod").read_text())
    assert found, "go.mod requires k8s.io/kubernetes"
    told = {"gitVersion": f"v{found[1]}", "gitMajor": found[2], "gitMinor": found[3], "gitTreeState": "clean"}
    return " ".join([STRIP, *(f"-X {VERSION}.{name}={value}" for name, value in told.items())])


class _Builder:
    """Runs Go, and tells how far it is."""

    def __init__(self, processes: Processes, go: list[str], env: dict[str, str], report: Callable[[str], None]) -> None:
        self._processes = processes
        self._go = go
        self._env = env
        self._report = report

    def modules(self) -> None:
        """Get the source of all packages: the only step that needs the network, but for kwok's.

        Raises:
            CannotBuild: with what Go said.
        """
        self._report("building the control plane of the live tests: once, about 10 minutes on two cores")
        self._processes.log("modules").unlink(missing_ok=True)
        try:
            self._processes.run("modules", [*self._go, "list", "-deps", "."], self._env, lambda: None)
        except ProgramEnded as error:
            raise CannotBuild(f"Go can't get the modules of the control plane: {error}") from error

    def compile(self, log: str, what: str, arguments: list[str]) -> None:
        """Compile, with a line every half minute."""
        path = self._processes.log(log)
        path.unlink(missing_ok=True)
        began = told = time.monotonic()

        def tick() -> None:
            nonlocal told
            now = time.monotonic()
            if now - told > REPORT_SECONDS:
                told = now
                packages = path.read_bytes().count(b"\n")
                self._report(f"building the {what}: {packages} packages compiled in {now - began:.0f} s")

        self._processes.run(log, [*self._go, *arguments], self._env, tick)
