"""What `make demo` shows: an extension recorded, played, held against a changed one, and looked at; and a cluster.

The commands are printed as a user types them. What a host sends to them is in `cassettes/*_sessions.py`; the host is
that of `docs/examples`. There is no cluster and no network.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter
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
OUT_OF_REACH = {"PATH": "/nonexistent", "KUBECONFIG": "/nonexistent"}  # no extension, nothing it would run, no cluster
HERE = Path("build/demo")
TASK, GREETING = str(HERE / "task.yaml"), str(HERE / "greeting.yaml")
STEPS = shell_sessions.SESSIONS["shell/eval-task"].steps
GREETER = Path("docs/examples/greeter.py")
FAILING, OFFLINE = "cassettes/kubernetes/failing.yaml", "cassettes/kubernetes/offline.yaml"


def main() -> int:
    """Play the acts. Returns 1 where one did not come out as announced."""
    shutil.rmtree(HERE, ignore_errors=True)
    workdir = HERE.absolute() / "workdir"
    workdir.mkdir(parents=True)
    acts = (recorded, looked_at, missed, verified, cluster, offline)
    for number, act in enumerate(acts, 1):
        title = (act.__doc__ or "").partition("\n")[0].rstrip(".")
        heading(f"{number}. {title}")
        if not act(workdir):
            print(f"This is not what was announced: {title}", file=sys.stderr)
            return 1
    heading("That was all. What to do next is in README.md; the files are in build/demo")
    return 0


# --- The acts, each with its title. They return whether all came out so -------------------------------------------


def recorded(workdir: Path) -> bool:
    """Record an extension at work, and play the recording without it.

    Of the replay, only whether every byte is the same.
    """
    _, said, live = session([RECORDER, "record", TASK, "--", str(SCRIPTS / "ext-shell")], STEPS, workdir, shown=20)
    code, again, played = session([RECORDER, "replay", TASK], STEPS, workdir, environment=OUT_OF_REACH)
    same = code == 0 and said == again
    verdict = "the same" if same else "NOT THE SAME"
    print(f"  {len(again):,} bytes, {verdict}, in {played:.2f} s instead of {live:.2f} s")
    return same


def looked_at(_: Path) -> bool:
    """Look at it: in a terminal, and as a page for a browser."""
    show(f"ext-recorder show {TASK} | head -n 9")
    return show(f"ext-recorder view -o {HERE}/task.html {TASK}") == 0


def missed(workdir: Path) -> bool:
    """A request that was not recorded is told, with what differs."""
    method, params = STEPS[1]
    args = cast("dict[str, object]", params["args"]) | {"content": 'print("Hi")\n'}
    changed = [STEPS[0], (method, params | {"args": args}), *STEPS[2:]]
    code, _, _ = session([RECORDER, "replay", "--order", "any", TASK], changed, workdir, environment=OUT_OF_REACH)
    print(f"  exit code {code}")
    return code != 0


def verified(workdir: Path) -> bool:
    """Play the recorded requests to the real extension, and to a changed one."""
    changed = HERE / "greeter.py"
    changed.write_text(GREETER.read_text().replace('f"Hello, {args.name}!"', 'f"Hi, {args.name}!"'))
    steps = (INITIALIZE, execute("greet", {"name": "Ada"}), SHUTDOWN)
    session([RECORDER, "record", GREETING, "--", sys.executable, str(GREETER)], steps, workdir)
    codes = [show(f"ext-recorder verify {GREETING} -- python {path}") for path in (GREETER, changed)]
    return codes == [0, 1]


def cluster(workdir: Path) -> bool:
    """Play a session with a cluster that is not there: what fails tells why."""
    steps = kubernetes_sessions.SESSIONS["kubernetes/failing"].steps
    code, _, _ = session([RECORDER, "replay", FAILING], steps, workdir, environment=OUT_OF_REACH, shown=3)
    return code == 0


def offline(_: Path) -> bool:
    """Run the real ext-kubernetes, with the cluster's recorded HTTP traffic in the place of the cluster."""
    files = HERE / "files"
    files.mkdir()
    for name, text in kubernetes_sessions.SESSIONS["kubernetes/offline"].files.items():
        (files / name).write_text(text)
    return show(f"ext-recorder verify --http --files {files} {OFFLINE} -- ext-kubernetes") == 0


# --- How they are shown ---------------------------------------------------------------------------------------------


def session(
    command: Sequence[str],
    steps: Sequence[Step],
    workdir: Path,
    *,
    environment: Mapping[str, str] | None = None,
    shown: int = 0,
) -> tuple[int, bytes, float]:
    """Be the host of a whole session, and show so many of its results. Returns exit code, what was said, seconds."""
    words = [Path(word).name if Path(word).parent == SCRIPTS else word for word in command]
    print(f"$ {shlex.join(words)}", flush=True)
    began = perf_counter()
    with Host(command, {**os.environ, **(environment or {})}) as host:
        for method, params in steps:
            result = host.try_call(method, in_workdir(params, str(workdir)))
            if method == "execute" and shown:
                print("\n".join(f"  {line}" for line in told(params["operation"], result)), flush=True)
                shown -= 1
        return host.end(), host.received, perf_counter() - began


def told(operation: object, result: object) -> list[str]:
    """A result in one line, and below it why it is a failure."""
    if isinstance(result, RpcError):
        return [f"ERROR  {operation!s:17} {result}"]
    members = cast("dict[str, object]", result)
    first = f"{'ok' if members['success'] else 'FAILED':6} {operation!s:17} {members['message']}"
    return [first, *(f"       {line}" for line in str(members.get("error", "")).splitlines())]


def show(line: str) -> int:
    """Run a command line in sight; its exit code, which is shown where it is not 0."""
    print(f"$ {line}", flush=True)
    path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
    code = subprocess.run(["sh", "-c", line], env=os.environ | {"PATH": path}, check=False).returncode
    if code:
        print(f"  exit code {code}")
    return code


def heading(text: str) -> None:
    """A title, bold on a terminal."""
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{text}{plain}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
