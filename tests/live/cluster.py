"""The cluster that live tests run against, and where it comes from.

In this order: `--kubeconfig`; kind, where it and Docker are there; a control plane of one's own, of the programs in
KUBEBUILDER_ASSETS, or built from Go modules. Where there is none, the reasons are told and the tests are skipped.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.live.build import CONTROL_PLANE, CannotBuild, built
from tests.live.control_plane import ControlPlane
from tests.live.kind import kind_cluster, why_no_kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    Report = Callable[[str], None]  # gets lines to show while something takes long

WAYS = ("kubeconfig", "kind", "control-plane")


class NoCluster(Exception):
    """There is none to be had on this machine; the text says why, way by way."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, as far as a test has to know it. Goes from process to process as a dictionary.

    Attributes:
        way: where it came from: one of WAYS.
        kubeconfig: of somebody who may do everything.
        context: the one to use of it; "" for its current one.
        kubelets: its pods are real; else kwok plays them, and what becomes of them follows from their manifest.
        logs: folder of what the programs of the control plane say; "" where they are out of reach.
    """

    way: str
    kubeconfig: str
    context: str = ""
    kubelets: bool = True
    logs: str = ""

    def as_dict(self) -> dict[str, str | bool]:
        """For another process."""
        return asdict(self)


class Programs:
    """Where the programs of a control plane are.

    Attributes:
        control_plane: folder of etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
        kwok: path of that.
    """

    __slots__ = ("control_plane", "kwok")

    def __init__(self, control_plane: Path, kwok: Path) -> None:
        self.control_plane = control_plane
        self.kwok = kwok

    @classmethod
    def find(cls, report: Report) -> Self:
        """Find them in KUBEBUILDER_ASSETS, and build what is not there.

        Raises:
            CannotBuild: no Go, or no modules.
            ProgramEnded: the compiler refused.
        """
        assets = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
        # envtest's own assets are two of the four; with them alone no Deployment would ever have a pod.
        whole = all((assets / name).is_file() for name in CONTROL_PLANE)
        kwok = assets / "kwok" if (assets / "kwok").is_file() else shutil.which("kwok")
        if whole and kwok:
            return cls(assets, Path(kwok))
        made = built(report)
        return cls(assets if whole else made, made / "kwok")


class FoundCluster:
    """The first cluster that can be had; it ends with the `with` block if it was made here.

    Args:
        kubeconfig: of a cluster to use; "" for none.
        way: one of WAYS, to have it that way or not at all; "" for any.
        report: gets lines to show while something takes long.

    Raises:
        NoCluster: from `with`.
    """

    def __init__(self, kubeconfig: str, way: str, report: Report) -> None:
        self._kubeconfig = kubeconfig
        self._ways = [way] if way else list(WAYS)
        self._report = report
        self._stack = ExitStack()

    def __enter__(self) -> Cluster:
        with ExitStack() as stack:
            cluster = self._find(stack)
            self._stack = stack.pop_all()
            return cluster

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _find(self, stack: ExitStack) -> Cluster:
        ways = {"kubeconfig": self._given, "kind": self._kind, "control-plane": self._control_plane}
        reasons = []
        for way in self._ways:
            try:
                return ways[way](stack)
            except NoCluster as reason:
                reasons.append(str(reason))
        raise NoCluster("no cluster: " + "; ".join(reasons))

    def _given(self, stack: ExitStack) -> Cluster:
        if not self._kubeconfig:
            raise NoCluster("no --kubeconfig")
        return Cluster("kubeconfig", str(Path(self._kubeconfig).expanduser().resolve(strict=True)))

    def _kind(self, stack: ExitStack) -> Cluster:
        if reason := why_no_kind():
            raise NoCluster(reason)
        return Cluster("kind", str(stack.enter_context(kind_cluster(self._report))))

    def _control_plane(self, stack: ExitStack) -> Cluster:
        try:
            programs = Programs.find(self._report)
        except CannotBuild as error:
            raise NoCluster(str(error)) from error
        plane = stack.enter_context(ControlPlane(programs.control_plane, programs.kwok))
        return Cluster("control-plane", str(plane.kubeconfig), kubelets=False, logs=str(plane.logs))
