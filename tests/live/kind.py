"""A kind cluster for the tests: the user's, where `make kind-up` has made one, or one that lasts as long as they do."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "gevals-extensions"  # of the cluster that `make kind-up` makes
CONFIG = Path(__file__).parents[2] / "kind-config.yaml"
READY = "180s"  # for all nodes; 20 to 60 s are usual
DOCKER_SECONDS = 10.0
DELETE_SECONDS = 60.0

# Ends with this process, even if that is killed, and takes the cluster with it.
KEEPER = 'trap "kind delete cluster --name $1 --kubeconfig $2" EXIT; trap "exit 0" TERM; sleep 1000000 & wait'


def why_no_kind() -> str:
    """What is missing for a kind cluster; "" where nothing is."""
    for program in ("docker", "kind"):
        if shutil.which(program) is None:
            return f"no {program} in PATH"
    try:
        _run("docker", "info", "--format", "{{.ServerVersion}}", timeout=DOCKER_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return "the Docker engine does not answer"
    return ""


@contextmanager
def kind_cluster(report: Callable[[str], None]) -> Iterator[Path]:
    """Yield the kubeconfig of a kind cluster.

    Args:
        report: gets a line while the cluster is made.

    Raises:
        subprocess.CalledProcessError: kind can't make one.
    """
    with tempfile.TemporaryDirectory(prefix="gevals-kind-") as directory:
        kubeconfig = Path(directory, "kubeconfig")
        if NAME in _run("kind", "get", "clusters").split():
            report(f"using the kind cluster {NAME}, which is there already")
            kubeconfig.write_text(_run("kind", "get", "kubeconfig", "--name", NAME))
            yield kubeconfig
            return
        with Processes(Path(directory), Path(directory, "logs")) as processes:
            name = f"{NAME}-{os.getpid()}"
            argv = ["/bin/sh", "-c", KEEPER, "keeper", name, str(kubeconfig)]
            processes.start("keeper", argv, os.environ, grace=DELETE_SECONDS)
            try:
                report("making a kind cluster: about a minute")
                _run("kind", "create", "cluster", "--name", name, "--kubeconfig", str(kubeconfig), *_options())
                yield kubeconfig
            finally:
                processes.stop("keeper", signal.SIGTERM, DELETE_SECONDS)


def _options() -> list[str]:
    image = os.environ.get("KIND_NODE_IMAGE")
    return ["--config", str(CONFIG), "--wait", READY, *(["--image", image] if image else [])]


def _run(*argv: str, timeout: float | None = None) -> str:
    """Run a command and return what it says.

    Raises:
        subprocess.CalledProcessError: with what it said on stderr in a note.
    """
    try:
        done = subprocess.run(
            argv, check=True, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )
    except subprocess.CalledProcessError as error:
        error.add_note(str(error.stderr))
        raise
    return done.stdout
