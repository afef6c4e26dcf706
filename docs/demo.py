"""`make demo`: record an eval and sessions of ext-shell and ext-kubernetes, and replay, verify and view them.

The commands are printed as a user types them. The requests are those of `cassettes/*_sessions.py`, sent by the host of
`docs/examples`. The demo needs neither a cluster nor a network.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, cast

from cassettes import kubernetes_sessions, shell_sessions
from cassettes.session import INITIALIZE, SHUTDOWN, execute, in_workdir
from docs.examples.host import Host
from ext_sdk.wire import RpcError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cassettes.session import Step

SCRIPTS = Path(sys.executable).parent
RECORDER = str(SCRIPTS / "ext-recorder")
OUT_OF_REACH = {"PATH": "/nonexistent", "KUBECONFIG": "/nonexistent"}  # neither an extension nor a cluster
HERE = Path("build/demo")
TASK, GREETING = str(HERE / "task.yaml"), str(HERE / "greeting.yaml")
STEPS = shell_sessions.SESSIONS["shell/eval-task"].steps
GREETER = Path("docs/examples/greeter.py")
BOOKING = Path("docs/examples/booking")
FAILING, OFFLINE = "cassettes/kubernetes/failing.yaml", "cassettes/kubernetes/offline.yaml"
PLUGIN = "cassettes/gassist/greeter.yaml"
CALLING = "cassettes/pi/served.yaml"


def main() -> int:
    """Run all steps of the demo. Return 1 if one of them did not do what its title announces."""
    shutil.rmtree(HERE, ignore_errors=True)
    workdir = HERE.absolute() / "workdir"
    workdir.mkdir(parents=True)
    demo_steps = (
        *(run_eval, record_and_replay, display, request_unrecorded, verify, replay_cluster, replay_http),
        *(serve_tools, serve_plugin, serve_calling, serve_evals, serve_agent),
    )
    for number, step in enumerate(demo_steps, 1):
        title = (step.__doc__ or "").partition("\n")[0].rstrip(".")
        heading(f"{number}. {title}")
        if not step(workdir):
            print(f"This step failed: {title}", file=sys.stderr)
            return 1
    heading("End of the demo. Its files are in build/demo; continue with README.md")
    return 0


# --- Steps. The first line of the docstring is the title; the result is True if the step did what it announces ----


def run_eval(_: Path) -> bool:
    """Record an eval with its model, agent, extension and service, and replay it without model and service."""
    folder = HERE / "booking"
    host = f"ext-host run {folder}/eval.yaml"
    copy_booking(folder, SCRIPTS / "ext-http")
    with servers(folder):
        recorded = show(f"ext-recorder run --wrap {folder}/eval.yaml {HERE}/eval -- {host}")
    (folder / "ext-http").unlink()
    print("# Now the model and the service are stopped, and ext-http is removed.")
    replayed = show(f"ext-recorder run --mode none {HERE}/eval -- {host}")
    viewed = show(f"ext-recorder view -o {HERE}/eval.html {HERE}/eval")
    return (recorded, replayed, viewed) == (0, 0, 0)


def record_and_replay(workdir: Path) -> bool:
    """Record a session of ext-shell, and replay it without ext-shell.

    The output of the replay is only compared with the recorded output, not printed.
    """
    _, recorded, live = session([RECORDER, "record", TASK, "--", str(SCRIPTS / "ext-shell")], STEPS, workdir, shown=2)
    code, replayed, seconds = session([RECORDER, "replay", TASK], STEPS, workdir, environment=OUT_OF_REACH)
    same = code == 0 and recorded == replayed
    verdict = "the same" if same else "NOT THE SAME"
    print(f"  {len(replayed):,} bytes, {verdict}, in {seconds:.2f} s instead of {live:.2f} s")
    return same


def display(_: Path) -> bool:
    """Display the session in the terminal, and as an HTML page."""
    show(f"ext-recorder show {TASK} | head -n 7")
    return show(f"ext-recorder view -o {HERE}/task.html {TASK}") == 0


def request_unrecorded(workdir: Path) -> bool:
    """Send a request that was not recorded: the error states the difference."""
    method, params = STEPS[1]
    args = cast("dict[str, object]", params["args"]) | {"content": 'print("Hi")\n'}
    changed = [STEPS[0], (method, params | {"args": args}), *STEPS[2:]]
    code, _, _ = session([RECORDER, "replay", "--order", "any", TASK], changed, workdir, environment=OUT_OF_REACH)
    print(f"  exit code {code}")
    return code != 0


def verify(workdir: Path) -> bool:
    """Send the recorded requests to the real extension, and to a changed one."""
    changed = HERE / "greeter.py"
    changed.write_text(GREETER.read_text().replace('f"Hello, {args.name}!"', 'f"Hi, {args.name}!"'))
    steps = (INITIALIZE, execute("greet", {"name": "Ada"}), SHUTDOWN)
    session([RECORDER, "record", GREETING, "--", sys.executable, str(GREETER)], steps, workdir)
    codes = [show(f"ext-recorder verify {GREETING} -- python {path}") for path in (GREETER, changed)]
    return codes == [0, 1]


def replay_cluster(workdir: Path) -> bool:
    """Replay a session of ext-kubernetes without a cluster: each failure states its reason."""
    steps = kubernetes_sessions.SESSIONS["kubernetes/failing"].steps
    code, _, _ = session([RECORDER, "replay", FAILING], steps, workdir, environment=OUT_OF_REACH, shown=3)
    return code == 0


def replay_http(_: Path) -> bool:
    """Run the real ext-kubernetes with recorded HTTP traffic instead of a cluster."""
    files = HERE / "files"
    files.mkdir()
    for name, text in kubernetes_sessions.SESSIONS["kubernetes/offline"].files.items():
        (files / name).write_text(text)
    return show(f"ext-recorder verify --http --files {files} {OFFLINE} -- ext-kubernetes") == 0


def serve_tools(workdir: Path) -> bool:
    """Serve operations as tools of the Model Context Protocol; a client calls one, and one that is not allowed."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
    command = [str(SCRIPTS / "ext-shell"), "serve", "--protocol", "mcp", "--allow", "run", "--workdir", str(workdir)]
    print(f"$ ext-shell {shlex.join(command[1:-2])}", flush=True)
    with Host(command) as host:
        host.call("initialize", client)
        tools = cast("dict[str, list[dict[str, object]]]", host.call("tools/list"))["tools"]
        print(f"  tools: {', '.join(str(tool['name']) for tool in tools)}")
        call = {"name": "run", "arguments": {"command": ["echo", "Hello from a tool"]}}
        result = cast("dict[str, dict[str, object]]", host.call("tools/call", call))["structuredContent"]
        print(f"  run: {result['message']}")
        refused = host.try_call("tools/call", {"name": "remove", "arguments": {"path": "."}})
        print(f"  remove: {refused}", flush=True)
        return host.end() == 0 and result["success"] is True and isinstance(refused, RpcError)


def serve_plugin(_: Path) -> bool:
    """Serve an extension as a plugin of G-Assist: it sends what was recorded."""
    return show(f"ext-recorder verify {PLUGIN} -- python {GREETER} serve --protocol gassist") == 0


def serve_calling(_: Path) -> bool:
    """Serve operations to Pi: they call tools and the user interface of their host, and send what was recorded."""
    return show(f"ext-recorder verify {CALLING} -- python docs/examples/reviewer.py serve --protocol pi") == 0


def serve_evals(_: Path) -> bool:
    """Run an eval over the protocol of waza, as an editor does."""
    request = '{"jsonrpc":"2.0","id":1,"method":"eval.run","params":{"path":"docs/examples/greetings/eval.yaml"}}'
    return show(f"echo '{request}' | ext-host serve | tail -n 1") == 0


def serve_agent(_: Path) -> bool:
    """Serve an agent over the protocol of Kaiak: the requests of a recorded session get the recorded responses."""
    project = HERE / "project"
    shutil.copytree("docs/examples/fixing/project", project)
    agent = "ext-host agent --protocol kaiak -- docs/examples/fixing/agent.sh"
    verified = show(f"ext-recorder verify --bind workspace=$PWD/{project} cassettes/kaiak/served.yaml -- {agent}")
    print("# The changes that the session has approved are written.")
    return (verified, show(f"cat {project}/src/DataConverter.java")) == (0, 0)


def copy_booking(folder: Path, program: Path) -> None:
    """Copy the eval of docs/examples/booking, with free ports for its servers and this program as ext-http."""
    shutil.copytree(BOOKING, folder)
    with ExitStack() as stack:
        for port in ("18644", "18645"):
            holder = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            for path in (file for file in folder.rglob("*.*") if file.is_file()):
                path.write_text(re.sub(port, str(holder.getsockname()[1]), path.read_text()))
    (folder / "ext-http").symlink_to(program)


@contextmanager
def servers(folder: Path) -> Iterator[None]:
    """Run the servers of this copy."""
    command = [sys.executable, str(folder / "servers.py")]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)


# --- Output ---------------------------------------------------------------------------------------------------------


def session(
    command: Sequence[str],
    steps: Sequence[Step],
    workdir: Path,
    *,
    environment: Mapping[str, str] | None = None,
    shown: int = 0,
) -> tuple[int, bytes, float]:
    """Act as the host of a complete session.

    Args:
        command: the child.
        steps: the requests.
        workdir: of the session.
        environment: variables in addition to those of this process.
        shown: how many results are printed.

    Returns:
        The exit code, the output of the child, and the duration in seconds.
    """
    words = [Path(word).name if Path(word).parent == SCRIPTS else word for word in command]
    print(f"$ {shlex.join(words)}", flush=True)
    began = perf_counter()
    with Host(command, {**os.environ, **(environment or {})}) as host:
        for method, params in steps:
            result = host.try_call(method, in_workdir(params, str(workdir)))
            if method == "execute" and shown:
                print("\n".join(f"  {line}" for line in lines(params["operation"], result)), flush=True)
                shown -= 1
        return host.end(), host.received, perf_counter() - began


def lines(operation: object, result: object) -> list[str]:
    """Return one line for a result, and further ones with the reason if it is a failure."""
    if isinstance(result, RpcError):
        return [f"ERROR  {operation!s:17} {result}"]
    members = cast("dict[str, object]", result)
    first = f"{'ok' if members['success'] else 'FAILED':6} {operation!s:17} {members['message']}"
    return [first, *(f"       {line}" for line in str(members.get("error", "")).splitlines())]


def show(line: str) -> int:
    """Print a command line and run it. Return its exit code, which is printed if it is not 0."""
    print(f"$ {line}", flush=True)
    path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
    code = subprocess.run(["sh", "-c", line], env=os.environ | {"PATH": path}, check=False).returncode
    if code:
        print(f"  exit code {code}")
    return code


def heading(text: str) -> None:
    """Print a title, bold on a terminal."""
    bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{text}{plain}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
