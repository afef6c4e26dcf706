"""What `make demo` shows: an extension runs, its session is recorded, and the recording plays without the extension.

The commands are printed as a user would type them. The session is the one of `cassettes/shell/eval-task.yaml`; then
come an extension that was changed, and sessions with a cluster, which is not there.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cassettes import kubernetes_sessions, shell_sessions
from cassettes.session import INITIALIZE, SHUTDOWN, execute, in_workdir
from docs.examples.host import Host
from ext_sdk.wire import RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cassettes.session import Step

SCRIPTS = Path(sys.executable).parent
RECORDER = str(SCRIPTS / "ext-recorder")
COMMITTED = "cassettes/shell/eval-task.yaml"
SESSION = shell_sessions.SESSIONS["shell/eval-task"].steps
OUT_OF_REACH = {"PATH": "/nonexistent", "KUBECONFIG": "/nonexistent"}  # no ext-shell, nothing it would run, no cluster
PAGE = "build/eval-task.html"
GREETER = Path("docs/examples/greeter.py")
GREETING = (INITIALIZE, execute("greet", {"name": "Ada"}), SHUTDOWN)
KUBERNETES = {
    "create-pod": "a task: a namespace, what the agent did, what is verified, and the cleanup",
    "objects": "a Deployment, changed and rolled out",
    "failing": "what fails tells why",
}


def main() -> int:
    """Play the seven acts. Returns 1 where one did not come out as announced."""
    with tempfile.TemporaryDirectory(prefix="demo-") as directory:
        workdir = Path(directory) / "task"
        workdir.mkdir()
        cassette = str(Path(directory) / "demo.yaml")

        heading("1. An extension runs the steps of a task, and its session is recorded")
        recorded = session([RECORDER, "record", cassette, "--", str(SCRIPTS / "ext-shell")], SESSION, workdir)

        heading("2. The recording plays without the extension: there is nothing in PATH now")
        replayed = session([RECORDER, "replay", cassette], SESSION, workdir, OUT_OF_REACH)
        same = recorded == replayed
        print(f"{len(replayed)} bytes, {'the same as' if same else 'NOT the same as'} those of the extension")

        heading("3. So does the one that is kept in cassettes/, a text for people to review")
        show([RECORDER, "show", COMMITTED])
        session([RECORDER, "replay", COMMITTED], SESSION, workdir, OUT_OF_REACH)

        heading("4. What was never recorded is told, with what differs, and the exit code says so")
        missed = miss([RECORDER, "replay", COMMITTED], workdir)

        heading("5. Be the host for the real extension, and for a changed one: what it says otherwise is told")
        told_apart = verified(Path(directory))

        heading("6. A session as a page for a browser, with everything in it")
        show([RECORDER, "view", COMMITTED, "-o", PAGE])

        heading("7. ext-kubernetes, recorded on a real control plane: there is no cluster now")
        for name, about in KUBERNETES.items():
            print(f"# {about}")
            steps = kubernetes_sessions.SESSIONS[f"kubernetes/{name}"].steps
            session([RECORDER, "replay", f"cassettes/kubernetes/{name}.yaml"], steps, workdir, OUT_OF_REACH)
    return 0 if same and missed and told_apart else 1


def session(
    command: Sequence[str], steps: Sequence[Step], workdir: Path, environment: Mapping[str, str] | None = None
) -> bytes:
    """Be the host of the whole session; what the extension said."""
    print(f"$ {typed(command)}", flush=True)
    with Host(command, {**os.environ, **(environment or {})}) as host:
        for method, params in steps:
            result = host.try_call(method, in_workdir(params, str(workdir)))
            if method == "execute":
                print("\n".join(f"  {line}" for line in told(params["operation"], result)))
        if code := host.end():
            raise SystemExit(f"{typed(command)} ended with exit code {code}")
        return host.received


def told(operation: object, result: object) -> list[str]:
    """A result in one line, and below it why it is a failure."""
    if isinstance(result, RpcError):
        return [f"ERROR  {operation!s:16} {result}"]
    members = cast("dict[str, object]", result)
    first = f"{'ok' if members['success'] else 'FAILED':6} {operation!s:16} {members['message']}"
    return [first, *(f"       {line}" for line in str(members.get("error", "")).splitlines())]


def miss(command: Sequence[str], workdir: Path) -> bool:
    """Ask a replay for a step that the recording does not have; whether it said so and failed."""
    print(f"$ {typed(command)}", flush=True)
    with Host(command, {**os.environ, **OUT_OF_REACH}) as host:
        host.call(*SESSION[0])
        method, params = SESSION[1]
        args = cast("dict[str, object]", params["args"]) | {"content": "something else"}
        answer = host.try_call(method, in_workdir(params | {"args": args}, str(workdir)))
        print(f"  {answer}")
        code = host.end()
        print(f"  exit code {code}")
        return isinstance(answer, RpcError) and code != 0


def verified(directory: Path) -> bool:
    """Record an extension, change it, and play the recorded requests to both; whether these could be told apart."""
    cassette = str(directory / "greeter.yaml")
    changed = directory / "greeter.py"
    changed.write_text(GREETER.read_text().replace('f"Hello, {args.name}!"', 'f"Hi, {args.name}!"'))
    session([RECORDER, "record", cassette, "--", sys.executable, str(GREETER)], GREETING, directory)
    codes = [show([RECORDER, "verify", cassette, "--", sys.executable, str(path)], 0, 1) for path in (GREETER, changed)]
    return codes == [0, 1]


def show(command: Sequence[str], *codes: int) -> int:
    """Run a command in sight; its exit code, which has to be 0 or one of these."""
    print(f"$ {typed(command)}", flush=True)
    code = subprocess.run(command, check=False).returncode
    if code not in (0, *codes):
        raise SystemExit(f"{typed(command)} ended with exit code {code}")
    if code:
        print(f"  exit code {code}")
    return code


def heading(text: str) -> None:
    """A title, bold on a terminal."""
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{text}{plain}", flush=True)


def typed(command: Sequence[str]) -> str:
    """A command as a user would type it: programs by name."""
    return shlex.join(Path(word).name if Path(word).parent == SCRIPTS else word for word in command)


if __name__ == "__main__":
    sys.exit(main())
