"""The process of the command: its variables, its start, its signals and its end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from ext_recorder.http.kubeconfig import Kubeconfig
from ext_recorder.http.worker_context import WorkerContext, WorkerOutcome
from ext_recorder.posix.child import CommandError
from ext_recorder.run.command import Access, Ended, run_command

KUBECONFIG = """
current-context: kind
contexts: [{name: kind, context: {cluster: kind, user: me}}]
clusters: [{name: kind, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: me, user: {token: secret-token}}]
"""


def work(context: WorkerContext) -> WorkerOutcome:
    """Serve no program, and report the end."""
    context.ready("", 0, [])
    os.read(context.control, 1)
    return WorkerOutcome(ok=True, lines=["", "a line"], traffic={"http://a": ((1, 0, 0, 0), (), ())})


def ran(*command: str) -> Ended[str]:
    access = Access(Kubeconfig([]))
    access.variables = lambda folder, client="": {"FOLDER": str(folder)}  # type: ignore[method-assign]  # no proxy
    return run_command(lambda folder, variables: command, access, work, time.monotonic(), lambda: "result")


def test_the_end_of_a_command_is_reported_with_what_the_worker_has_counted() -> None:
    ended = ran("sh", "-c", 'test -d "$FOLDER" && exit 7')
    assert (os.waitstatus_to_exitcode(ended.status), ended.interrupted, ended.ok) == (7, "", True)
    assert (ended.lines, ended.result, ended.traffic["http://a"].recorded.requests) == (["a line"], "result", 1)


def test_a_command_that_a_signal_has_ended_is_interrupted() -> None:
    ended = ran("sh", "-c", "kill -TERM $$")
    assert (os.waitstatus_to_exitcode(ended.status), ended.interrupted) == (-signal.SIGTERM, "SIGTERM")


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/", 126)])
def test_a_command_that_cannot_start_has_the_exit_code_of_a_shell(program: str, code: int) -> None:
    with pytest.raises(CommandError) as caught:
        ran(program)
    assert caught.value.exit_code == code


def test_each_client_has_a_proxy_and_a_kubeconfig_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    access = Access(Kubeconfig([(KUBECONFIG, tmp_path)]), clients=["shell"])
    command, shell = access.variables(tmp_path), access.variables(tmp_path, "shell")
    assert command["HTTP_PROXY"] != shell["HTTP_PROXY"]
    files = Path(command["KUBECONFIG"]), Path(shell["KUBECONFIG"])
    assert files[0] != files[1]
    assert all("secret-token" not in file.read_text() for file in files)
    ports = [listener.port for listener in access.proxy.listeners]
    assert len(set(ports)) == len(ports)
    for listener in access.proxy.listeners:
        listener.socket.close()
