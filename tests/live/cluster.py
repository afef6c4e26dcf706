"""The cluster that live tests run against, and where it comes from.

In this order: `--kubeconfig`; kind, where it and Docker are there; a control plane of one's own, of the programs in
KUBEBUILDER_ASSETS, or built from Go modules. Where there is none, the reasons are told and the tests are skipped.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.build import CONTROL_PLANE, NODE_SERVER, CannotBuild, built
from tests.live.client import Client
from tests.live.control_plane import ControlPlane, Programs
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
        kubelets: its pods are real; else kwok plays them, and what becomes of them follows from their manifest
            (kwok/). `exec` then runs on this machine, in a folder of the container's own; a port of a pod is
            one of this machine's loopback; logs are what the `echo`s in a container's command say.
        streams: exec, logs and port-forward are served.
        logs: folder of what the programs of the control plane say; "" where they are out of reach.
    """

    way: str
    kubeconfig: str
    context: str = ""
    kubelets: bool = True
    streams: bool = True
    logs: str = ""

    def as_dict(self) -> dict[str, str | bool]:
        """For another process."""
        return asdict(self)


def find_programs(report: Report) -> Programs:
    """Find the programs of a control plane in KUBEBUILDER_ASSETS, and build them if they are not all there.

    Raises:
        CannotBuild: no Go, or no modules.
        ProgramEnded: the compiler refused.
    """
    assets = Path(os.environ.get("KUBEBUILDER_ASSETS") or "/nonexistent")
    # envtest's own assets are two of the five; with them alone no Deployment would ever have a pod.
    if all((assets / name).is_file() for name in (*CONTROL_PLANE, "kwok")):
        return Programs(assets, assets / "kwok", None)
    made = built(report)
    whole = all((assets / name).is_file() for name in CONTROL_PLANE)
    return Programs(assets if whole else made, made / "kwok", made / NODE_SERVER)


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
        path = Path(self._kubeconfig).expanduser().resolve(strict=True)
        client = Client(path)
        nodes = client.get("/api/v1/nodes")["items"]
        client.close()
        real = [node for node in nodes if not node["status"]["nodeInfo"]["kubeletVersion"].startswith("kwok")]
        return Cluster("kubeconfig", str(path), kubelets=bool(real))

    def _kind(self, stack: ExitStack) -> Cluster:
        if reason := why_no_kind():
            raise NoCluster(reason)
        return Cluster("kind", str(stack.enter_context(kind_cluster(self._report))))

    def _control_plane(self, stack: ExitStack) -> Cluster:
        try:
            programs = find_programs(self._report)
        except CannotBuild as error:
            raise NoCluster(str(error)) from error
        plane = stack.enter_context(ControlPlane(programs))
        return Cluster(
            "control-plane",
            str(plane.kubeconfig),
            kubelets=False,
            streams=programs.node_server is not None,
            logs=str(plane.logs),
        )
