"""The cluster that ext-kubernetes is measured on: a control plane of the bench's own, as the live tests have it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.errors import BenchError, NotHere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COUNT = re.compile(r"^apiserver_request_total\{.*\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster.

    Attributes:
        kubeconfig: of somebody who may do everything.
        requests: how many the server has been asked so far, by anybody: its own programs, too, and whoever counts.
            A watch is one when it ends.
    """

    kubeconfig: Path
    requests: Callable[[], float]


@contextmanager
def control_plane(tell: Callable[[str], None]) -> Iterator[Cluster]:
    """Start one; it has ended after the `with` block.

    Raises:
        NotHere: there is none to be had, and why.
        BenchError: there should be, and it does not come up.
    """
    from tests.live.client import Client
    from tests.live.cluster import FoundCluster, NoCluster
    from tests.live.processes import NotReady, ProgramEnded

    try:
        found = FoundCluster("", "control-plane", tell)
        with found as cluster:
            client = Client(Path(cluster.kubeconfig))

            def requests() -> float:
                client.get("/api/v1/namespaces/default")  # none at all would be no measurement
                return sum(float(count) for count in _COUNT.findall(client.text("GET", "/metrics")))

            yield Cluster(Path(cluster.kubeconfig), requests)
            client.close()
    except NoCluster as reason:
        raise NotHere(str(reason)) from reason
    except (ProgramEnded, NotReady) as error:
        raise BenchError(f"the control plane does not come up: {error}") from error
