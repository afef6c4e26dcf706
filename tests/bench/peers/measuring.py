"""`ext-recorder` beside other recorders, each with the same host, the same child and the same calls."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.errors import BenchError, NotHere
from tests.bench.harness import pinned
from tests.bench.load_driver import WINDOW, drive
from tests.bench.peers.environment import installed
from tests.bench.peers.recorders import ABSENT, PEERS
from tests.bench.process_times import seconds_to_exit
from tests.bench.traffic import LATER_IDS, answer, write_cassette, write_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.bench.harness import Bench, Candidate, Series
    from tests.bench.peers.recorders import Peer

OURS = "ext-recorder"
QUICKEST = "quickest peer"
ANY_EXIT = range(256)  # some tell of what was not played, some of how they ended their child
_PROGRAMS = Path(__file__).parent / "programs"
_NOT_ASKED = "other recorders: measured with --peers"


def absent(name: str) -> Callable[[Bench], Series]:
    """Says why a peer has no figures."""

    def measure(_: Bench) -> Series:
        raise NotHere(f"{name}: {ABSENT[name]}")

    return measure


def measure_trips(bench: Bench) -> Series:
    """Microseconds of a recorded round trip: "NAME p50" and "NAME p99" of ours, each peer, and the best of them."""
    requests = write_requests(bench.directory / "peer-trips.jsonl", bench.scale.peer_calls)
    file = bench.directory / "peer-recorded"

    def through(words: Sequence[str]) -> Mapping[str, float]:
        for left in bench.directory.glob("peer-recorded*"):
            left.unlink()
        command = [*words, *bench.programs.echo]
        driven = drive(bench, command, requests, requests, cores=bench.one_core, exits=ANY_EXIT)
        return {"p50": driven.p50 * 1e6, "p99": driven.p99 * 1e6}

    def candidate(words: Sequence[str]) -> Candidate:
        return lambda: through(words)

    candidates = {OURS: candidate([bench.programs.recorder, "record", str(file), "--"])}
    candidates |= {peer.name: candidate(peer.record(program, file)) for peer, program in there(bench).items()}
    return _with_best(bench.take_turns(candidates, warm_up=False), {"p50": min, "p99": min})


def measure_few(bench: Bench) -> Series:
    """Calls a second of a replay: "NAME trips/s", one at a time, and "NAME pipelined/s", of a short cassette."""
    return _replays(bench, bench.scale.few)


def measure_many(bench: Bench) -> Series:
    """The same of the first calls of a long cassette: the slowest would take many minutes for all of it."""
    return _replays(bench, bench.scale.many)


def measure_help(bench: Bench) -> Series:
    """Milliseconds of `--help`: "NAME ms"."""

    def candidate(program: str) -> Candidate:
        return lambda: {"ms": seconds_to_exit(bench, [program, "--help"]) * 1e3}

    candidates = {OURS: candidate(bench.programs.recorder)}
    candidates |= {peer.name: candidate(program) for peer, program in there(bench).items()}
    return _with_best(bench.take_turns(candidates, times=bench.scale.starts), {"ms": min})


def there(bench: Bench) -> dict[Peer, str]:
    """The peers of this machine, and their programs. Raises NotHere."""
    folder = _folder(bench)
    found = {peer: shutil.which(peer.program, path=folder) or shutil.which(peer.program) for peer in PEERS}
    return {peer: program for peer, program in found.items() if program}


def _folder(bench: Bench) -> str:
    """Return the folder with the programs of the peers. Raises NotHere."""
    if not bench.programs.with_peers:
        raise NotHere(_NOT_ASKED)
    return bench.programs.peers or str(installed(bench.tell))


def measure_sdk(bench: Bench) -> Series:
    """Calls a second of a client and a server of the official MCP SDK: "NAME recorded/s" and "NAME replayed/s".

    NAME is "ext-recorder" or "mcp-cassette"; "direct recorded/s" is without a recorder.
    """
    folder = Path(_folder(bench))
    python, peer = folder / "python", folder / "mcp-cassette"
    if not python.exists() or not peer.exists():
        raise NotHere("the MCP SDK and mcp-cassette: need Python 3.12 or newer, which is not in PATH")
    ours, theirs = bench.directory / "sdk.yaml", bench.directory / "sdk.json"
    server = [str(python), str(_PROGRAMS / "mcp_server.py")]

    def rate(command: Sequence[str]) -> float:
        words = [str(python), str(_PROGRAMS / "mcp_client.py"), str(bench.scale.sdk_calls), *command]
        with pinned(bench.two_cores):
            done = subprocess.run(words, env=bench.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"{command[0]}: {done.stderr[-500:]}")
        return bench.scale.sdk_calls / float(done.stdout)

    def both(record: Sequence[str], replay: Sequence[str], file: Path) -> Mapping[str, float]:
        file.unlink(missing_ok=True)
        return {"recorded/s": rate([*record, *server]), "replayed/s": rate(replay)}

    recorder = bench.programs.recorder
    return bench.take_turns(
        {
            OURS: lambda: both([recorder, "record", str(ours), "--"], [recorder, "replay", str(ours)], ours),
            "mcp-cassette": lambda: both(
                [str(peer), "record", "--cassette", str(theirs), "--"], [str(peer), "serve", str(theirs)], theirs
            ),
            "direct": lambda: {"recorded/s": rate(server)},
        },
        warm_up=False,
    )


def _replays(bench: Bench, recorded: int) -> Series:
    asked = min(bench.scale.peer_calls, recorded)
    requests = write_requests(bench.directory / f"peer-asked-{asked}.jsonl", asked, LATER_IDS)
    exact = write_requests(bench.directory / f"peer-answered-{asked}.jsonl", asked, LATER_IDS, answer)
    spaced = write_requests(bench.directory / f"peer-spaced-{asked}.jsonl", asked, LATER_IDS, _spaced)

    def candidate(command: Sequence[str], answers: Path) -> Candidate:
        def measured() -> Mapping[str, float]:
            one = drive(bench, command, requests, answers, cores=bench.one_core, exits=ANY_EXIT)
            more = drive(bench, command, requests, answers, window=WINDOW, cores=bench.two_cores, exits=ANY_EXIT)
            return {"trips/s": asked / one.seconds, "pipelined/s": asked / more.seconds}

        return measured

    ours = bench.directory / f"peer-ours-{recorded}.yaml"
    write_cassette(ours, recorded)
    candidates = {OURS: candidate([bench.programs.recorder, "replay", "--speed", "max", str(ours)], exact)}
    for peer, program in there(bench).items():
        if peer.replay and peer.write:
            file = bench.directory / f"peer-{peer.name}-{recorded}"
            peer.write(file, recorded)
            candidates[peer.name] = candidate(peer.replay(program, file), spaced)
    return _with_best(bench.take_turns(candidates, warm_up=False), {"trips/s": max, "pipelined/s": max})


def _spaced(number: int, id: int, workdir: str) -> bytes:
    """An answer as Python's json writes it: the peers don't keep the bytes."""
    return json.dumps(json.loads(answer(number, id, workdir))).encode()


def _with_best(found: Series, best: Mapping[str, Callable[[Sequence[float]], float]]) -> Series:
    """Add, of each round, the best of the peers."""
    whole = dict(found)
    for name, choose in best.items():
        others = [values for key, values in found.items() if key.endswith(f" {name}") and not key.startswith(OURS)]
        if others:
            whole[f"{QUICKEST} {name}"] = [choose(values) for values in zip(*others, strict=True)]
    return whole
