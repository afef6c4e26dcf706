"""Record the cassettes of this folder again: `make cassettes`, or `make cassettes ARGS=NAME`.

Each session is data: the requests of a host. The extension is the real one, run under `ext-recorder record`, on a real
control plane if it needs a cluster (as in `make live`; without one, the session is left out). A cassette is a test (it
is replayed byte for byte) and an example, so record again only if a session should change, and review the changes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Self

import yaml

from cassettes import (
    http_sessions,
    http_task_sessions,
    kubernetes_sessions,
    peer_recording,
    peer_sessions,
    shell_sessions,
)
from cassettes.session import in_workdir
from docs.examples.host import Host
from ext_sdk.wire import Request, encode
from tests.live.cluster import FoundCluster, NoCluster
from tests.support.http_site import serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassettes.session import Session

FOLDER = Path(__file__).parent
BIN = Path(sys.executable).parent
SESSIONS: dict[str, Session] = (
    shell_sessions.SESSIONS | kubernetes_sessions.SESSIONS | http_sessions.SESSIONS | http_task_sessions.SESSIONS
)
CONTEXT = "eval"  # name of the cluster, the user and the context of a recording


def main(names: list[str]) -> int:
    """Record the named cassettes, or all."""
    known = [*SESSIONS, *peer_sessions.SESSIONS, *peer_sessions.MEETINGS]
    if unknown := [name for name in names if name not in known]:
        print(f"{unknown[0]}: no such session; there are {', '.join(known)}", file=sys.stderr)
        return 2
    with Clusters() as clusters:
        for name in names or known:
            if name in peer_sessions.SESSIONS:
                print(peer_recording.record(name))
                continue
            if name in peer_sessions.MEETINGS:
                print(peer_recording.record_meeting(name))
                continue
            try:
                kubeconfig = clusters.kubeconfig() if SESSIONS[name].cluster else SESSIONS[name].kubeconfig
            except NoCluster as reason:
                print(f"{name}: left out: {reason}")
                continue
            path = record(name, kubeconfig)
            shown = subprocess.run([BIN / "ext-recorder", "show", path], capture_output=True, text=True, check=True)
            print(f"{path}: {len(shown.stdout.splitlines())} lines")
    return 0


class Clusters:
    """Control plane shared by sessions, started for the first of them and stopped at the end of the `with` block."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._kubeconfig = ""
        self._reason: NoCluster | None = None

    def kubeconfig(self) -> str:
        """Return a kubeconfig whose names reveal nothing about this machine. Raises the same NoCluster each time."""
        if self._reason:
            raise self._reason
        if not self._kubeconfig:
            try:
                cluster = self._stack.enter_context(FoundCluster("", "control-plane", print))
            except NoCluster as reason:
                self._reason = reason
                raise
            self._kubeconfig = _renamed(Path(cluster.kubeconfig).read_text())
        return self._kubeconfig

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()


def record(name: str, kubeconfig: str = "") -> Path:
    """Record one session.

    Args:
        name: of SESSIONS.
        kubeconfig: text of ~/.kube/config; "" for none.

    Returns:
        the cassette's path.
    """
    session = SESSIONS[name]
    path = FOLDER / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as workdir, tempfile.TemporaryDirectory() as home:
        _write(Path(workdir), session.files)
        if kubeconfig:
            _write(Path(home), {".kube/config": kubeconfig})
        environment = {"PATH": f"{BIN}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": home, "LANG": "C.UTF-8"}
        program = f"ext-{path.parent.name}"
        options = ["--mode", "all", *(["--http"] if session.http else [])]
        command = [str(BIN / "ext-recorder"), "record", *options, str(path), "--", program]
        told = [(method, in_workdir(params, workdir)) for method, params in session.steps]
        with serving(port=session.port) if session.port else nullcontext():
            code = _converse(command, environment, told) if len(told) > 1 else _pipe(command, environment, *told[0])
    if code != 0:
        raise SystemExit(f"{name}: the extension ended with exit code {code}")
    return path


def _write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)


def _renamed(kubeconfig: str) -> str:
    content = yaml.safe_load(kubeconfig)
    for kind in ("clusters", "contexts", "users"):
        for entry in content[kind]:
            entry["name"] = CONTEXT
    content["contexts"][0]["context"] = {"cluster": CONTEXT, "user": CONTEXT}
    return yaml.safe_dump(content | {"current-context": CONTEXT})


def _converse(command: list[str], environment: dict[str, str], requests: list[tuple[str, object]]) -> int:
    """Act as the host of a session. Return the exit code."""
    with Host(command, environment) as host:
        for method, params in requests:
            host.try_call(method, params)
        return host.end()


def _pipe(command: list[str], environment: dict[str, str], method: str, params: object) -> int:
    """Send one request and close the input at once, as `echo … | ext-shell` does. Return the exit code."""
    line = encode(Request(1, method, params)) + b"\n"
    return subprocess.run(command, input=line, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
