"""A Kubernetes control plane of one's own: on loopback, at a free port, gone without a trace.

Nodes and pods are played by kwok, by the rules in kwok/: what becomes of a pod follows from its manifest, and a
real kubelet would do the same with it.
"""

from __future__ import annotations

import shutil
import signal
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import urllib3

from tests.live import flags, manifests
from tests.live.client import ApiError, Client, condition
from tests.live.identities import MASTERS, Identities
from tests.live.processes import Processes
from tests.live.stages import stages

if TYPE_CHECKING:
    from types import TracebackType

NODES = ("live-node-0", "live-node-1")
PART_SECONDS = 120.0  # for each part to be ready; 1 to 4 is usual
TERMINATION_SECONDS = 20.0  # for the API server to end politely
PATH = "/usr/local/bin:/usr/bin:/bin"  # of all programs; also of what `exec` into a pod runs


class Programs(NamedTuple):
    """Where the programs are.

    Attributes:
        control_plane: folder of etcd, kube-apiserver, kube-controller-manager and kube-scheduler.
        kwok: plays nodes and pods.
        node_server: serves exec, logs and port-forward (controlplane/node.go); None to go without.
    """

    control_plane: Path
    kwok: Path
    node_server: Path | None


class ControlPlane:
    """A control plane, running between `start` and `stop`.

    Args:
        programs: where they are.

    Attributes:
        identities: makes kubeconfig files of users.
        kubeconfig: the administrator's.
        logs: folder of what each program said.
    """

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._directory = Path(tempfile.mkdtemp(prefix="gevals-live-"))
        self.logs = self._directory / "logs"
        self._processes = Processes(self._directory, self.logs)
        # Bound and never listening: callers are refused while the server is down, and nobody else takes the port.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self._port: int = self._reserved.getsockname()[1]
        self.identities = Identities(self._directory, f"https://127.0.0.1:{self._port}")
        self.kubeconfig = self.identities.user("admin", MASTERS)

    def start(self) -> Self:
        """Start everything, until a pod has run.

        Raises:
            ProgramEnded, NotReady: it does not come up; its logs are kept.
        """
        try:
            self.identities.write()
            self._run("etcd", self._programs.control_plane / "etcd", flags.etcd(self._directory))
            self.start_api_server()
            self._start_others()
            self._settle()
        except BaseException:
            self.stop(keep_logs=True)
            raise
        return self

    def stop(self, *, keep_logs: bool = False) -> None:
        """End everything, and delete all files but, if wanted, the logs."""
        self._processes.close()
        self._reserved.close()
        if not keep_logs:
            shutil.rmtree(self._directory)
            return
        for entry in self._directory.iterdir():
            if entry.is_dir() and entry != self.logs:
                shutil.rmtree(entry)
            elif entry != self.logs:
                entry.unlink()

    def start_api_server(self) -> None:
        """Start the API server, and wait until it finds itself ready."""
        arguments = flags.api_server(self._directory, self._port)
        self._run("kube-apiserver", self._programs.control_plane / "kube-apiserver", arguments)
        client = Client(self.kubeconfig)
        self._processes.wait_until(lambda: _unready(client), PART_SECONDS)
        client.close()

    def stop_api_server(self, *, politely: bool = True) -> None:
        """End the API server. Connections are refused until it is started again.

        Args:
            politely: it may answer what it was asked and end watches; else it is killed.
        """
        if politely:
            self._processes.stop("kube-apiserver", signal.SIGTERM, TERMINATION_SECONDS)
        else:
            self._processes.stop("kube-apiserver")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(keep_logs=isinstance(error, Exception))  # not where somebody just ended it

    def _run(self, name: str, program: Path, arguments: list[str], **env: str) -> None:
        env |= {"PATH": PATH, "HOME": str(self._directory)}
        self._processes.start(name, [str(program), *arguments], env)

    def _start_others(self) -> None:
        """Start what lives on the API server, each of them under its own name."""
        directory, programs, user = self._directory, self._programs, self.identities.user
        for name, arguments in (
            ("kube-controller-manager", flags.controller_manager),
            ("kube-scheduler", flags.scheduler),
        ):
            kubeconfig = user(f"system:{name}", MASTERS)
            self._run(name, programs.control_plane / name, arguments(directory, kubeconfig))
        port = self._start_node_server(programs.node_server) if programs.node_server else ""
        (directory / "kwok.yaml").write_text(stages())
        self._run("kwok", programs.kwok, flags.kwok(directory, user("kwok", MASTERS)), KUBELET_PORT=port)

    def _start_node_server(self, program: Path) -> str:
        kubeconfig = self.identities.user("node-server", MASTERS)
        self._run("node-server", program, flags.node_server(self._directory, kubeconfig))
        port = self._directory / "node-server.port"
        self._processes.wait_until(lambda: "" if port.exists() else "the node server does not listen", PART_SECONDS)
        return port.read_text()

    def _settle(self) -> None:
        """Make the nodes and see a pod admitted, scheduled and run: then every part has worked."""
        client = Client(self.kubeconfig)
        for name in NODES:
            client.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._processes.wait_until(
            lambda: "" if client.exists(account) else "no service account was made", PART_SECONDS
        )
        pod = client.apply(manifests.pod(name="first"), "default")
        self._processes.wait_until(lambda: _not_running(client, pod), PART_SECONDS)
        client.delete(pod)
        client.close()


def _unready(client: Client) -> str:
    try:
        client.text("GET", "/readyz")
    except ApiError as error:
        return str(error)
    except urllib3.exceptions.HTTPError:
        return "the API server does not answer"
    return ""


def _not_running(client: Client, pod: str) -> str:
    found = client.get(pod)
    return "" if condition(found, "Ready") == "True" else f"the first pod does not run: {found['status']}"
