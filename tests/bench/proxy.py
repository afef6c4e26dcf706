"""`ext-recorder run`: requests through the proxy, next to direct ones; replays, memory, and an example eval."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.building import SOURCES
from tests.bench.harness import Bench, BenchError, NotHere, pinned
from tests.bench.http_layer import peak_mib
from tests.bench.http_requests import MIB, server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.bench.harness import Series

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "booking"
TEN = 10  # times as many requests, to see whether each takes longer then
STARTED_S = 30.0  # until a server listens
LEAST_US = 0.1  # a difference of few requests may be negative by chance


def measure(bench: Bench) -> Series:
    """Measure requests that are recorded.

    Returns:
        Microseconds: "trips direct µs", "trips added µs", "trips direct first event µs", "trips added first event µs";
        requests in a second, from the first to the end of the recorder: "flood 1/s".
    """
    with server(bench) as origin:

        def trips() -> Mapping[str, float]:
            return _added(_recorded(bench, _client("trips", origin, bench.scale.gets)))

        def flood() -> Mapping[str, float]:
            found = _recorded(bench, _client("flood", origin, bench.scale.proxied))
            return {"1/s": bench.scale.proxied / (time.monotonic() - found["begin"])}

        return bench.take_turns({"trips": trips, "flood": flood})


def measure_mitmproxy(bench: Bench) -> Series:
    """Measure the same requests through mitmproxy: "mitmproxy added µs", "mitmproxy direct µs". Raises NotHere."""
    program = shutil.which("mitmdump") if bench.programs.with_peers else None
    if program is None:
        raise NotHere("mitmdump is not in PATH, or --peers was not given")
    port = _free_port()
    options = ["-q", "--listen-host", "127.0.0.1", "-p", str(port), "--set", f"confdir={bench.directory}"]
    with server(bench) as origin, _running(bench, [program, *options, "-w", str(bench.directory / "flows")], port):
        variables = {"HTTP_PROXY": f"http://127.0.0.1:{port}"}

        def trips() -> Mapping[str, float]:
            return _added(_output(bench, _client("trips", origin, bench.scale.gets), variables))

        return bench.take_turns({"mitmproxy": trips})


def measure_replay(bench: Bench) -> Series:
    """Measure replays: "few s", "ten times s" of that, "many s"; "few first ms", "many first ms"."""
    many = bench.scale.proxied
    with server(bench) as origin:
        clients = {count: _client("different", origin, count) for count in (many // TEN, many)}
        for count, client in clients.items():
            _recorded(bench, client, f"different-{count}")

        def replayed(count: int) -> Mapping[str, float]:
            return _output(bench, _run(bench, f"different-{count}", clients[count]))

        found = bench.take_turns({"few": lambda: replayed(many // TEN), "many": lambda: replayed(many)}, warm_up=False)
    return {**found, "ten times s": [TEN * seconds for seconds in found["few s"]]}


def measure_memory(bench: Bench) -> Series:
    """MiB of the largest process: "NAME MiB" for a recorded and a replayed download and upload, and a small body."""
    size = bench.scale.body_mib * MIB
    with server(bench) as origin:
        clients = {"download": _client("get", origin, size), "upload": _client("post", origin, size)}
        small = _client("different", origin, 1)

        def peak(name: str, client: Sequence[str], *mode: str) -> Callable[[], Mapping[str, float]]:
            return lambda: {"MiB": peak_mib(bench, _run(bench, f"body-{name}", client, *mode))}

        candidates = {"small": peak("small", small, "--mode", "all")}
        for name, client in clients.items():
            _recorded(bench, client, f"body-{name}")
            candidates[f"recorded {name}"] = peak(name, client, "--mode", "all")
            candidates[f"replayed {name}"] = peak(name, client)
        return bench.take_turns(candidates, warm_up=False)


def measure_eval(bench: Bench) -> Series:
    """Seconds of the example eval with a model that takes its time: "recorded s", "replayed s"."""
    folder = bench.directory / "eval"
    shutil.copytree(EXAMPLE, folder)
    (folder / "ext-http").symlink_to(bench.programs.http)
    model, trips = _free_port(), _free_port()
    for file in folder.rglob("*.*"):
        text = file.read_text().replace("18644", str(model)).replace("18645", str(trips))
        file.write_text(text.replace("SECONDS = 0.5", f"SECONDS = {bench.scale.think_s}"))
    client = [bench.programs.python, "-m", "ext_host", "run", str(folder / "eval.yaml")]
    wrap = ["--wrap", str(folder / "eval.yaml")]

    def seconds(*mode: str) -> Mapping[str, float]:
        begin = time.monotonic()
        _done(bench, _run(bench, "eval-run", client, *mode, *wrap), {"PYTHONPATH": str(ROOT)})
        return {"s": time.monotonic() - begin}

    with _running(bench, [bench.programs.python, str(folder / "servers.py")], trips):
        seconds("--mode", "all")
        return bench.take_turns(
            {"recorded": lambda: seconds("--mode", "all"), "replayed": lambda: seconds("--mode", "none")},
            warm_up=False,
        )


# --- Processes -------------------------------------------------------------------------------------------------------


def _client(what: str, origin: str, count: int) -> list[str]:
    return [sys.executable, str(SOURCES / "proxied.py"), what, origin, str(count)]


def _run(bench: Bench, name: str, client: Sequence[str], *options: str) -> list[str]:
    return [bench.programs.recorder, "run", *options, str(bench.directory / name), "--", *client]


def _recorded(bench: Bench, client: Sequence[str], name: str = "recorded") -> dict[str, float]:
    """Record a client again. Return what it has measured."""
    return _output(bench, _run(bench, name, client, "--mode", "all"))


def _added(found: Mapping[str, float]) -> dict[str, float]:
    """Return the times of direct requests, and those that the proxy adds."""
    added = {
        f"added{kind} µs": max(LEAST_US, found[f"proxied{kind} µs"] - found[f"direct{kind} µs"])
        for kind in ("", " first event")
    }
    return {**{name: value for name, value in found.items() if name.startswith("direct")}, **added}


def _output(bench: Bench, command: Sequence[str], variables: Mapping[str, str] | None = None) -> dict[str, float]:
    found: dict[str, float] = json.loads(_done(bench, command, variables or {}))
    return found


def _done(bench: Bench, command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return the output of a command. Raises BenchError."""
    with pinned(bench.two_cores):
        done = subprocess.run(
            command,
            env={**bench.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise BenchError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _running(bench: Bench, command: Sequence[str], port: int) -> Iterator[None]:
    """Run a server, on a core of its own, from the moment when it listens at a port."""
    with ExitStack() as stack:
        with pinned(bench.own_core), open(os.devnull, "wb") as null:  # noqa: PTH123 - a device
            process = stack.enter_context(subprocess.Popen(command, env=bench.environment, stdout=null, stderr=null))
        stack.callback(process.kill)
        until = time.monotonic() + STARTED_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > until:
                raise BenchError(f"{' '.join(command)}: does not listen at port {port}")
            time.sleep(0.01)
        yield


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
