"""Entry points of the HTTP worker process: record and replay."""

from __future__ import annotations

import os
import time
from itertools import accumulate, pairwise
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from ext_recorder.messages.path_bindings import RecordBindings as Bindings
from ext_recorder.messages.path_bindings import ReplayBindings
from ext_recorder.protocols.dialect import DIALECTS

from .capture import attribute_calls
from .kubeconfig import KubeconfigTemplate
from .reader import load
from .sanitizer import Sanitizer
from .server import serve
from .worker_context import KUBECONFIG, WHOLE, WorkerOutcome
from .writer import Writer, without_clients

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_recorder.messages.redaction import Redaction

    from .capture import TrafficCapture
    from .interaction import Call
    from .request_matching import RequestRules
    from .server import ChildConnection
    from .worker_context import Origin, WorkerContext


class _RecordingHandler:
    """Message handler of a recording: passes frames to the capture."""

    def __init__(self, recording: TrafficCapture) -> None:
        self._recording = recording

    def frame(self, peer: ChildConnection, told: dict[str, object], data: bytes) -> None:
        self._recording.take(peer.number, told, data)

    def data(self, peer: ChildConnection, data: bytes) -> None:
        """Do nothing: on recording, children send only frames."""

    def gone(self, peer: ChildConnection) -> None:
        self._recording.gone(peer.number)


def record(
    station: WorkerContext, path: Path, bind: Mapping[str, str], redaction: Redaction, origin: Origin
) -> WorkerOutcome:
    """Record until the session is over. Raises RecorderError, OSError."""
    writer = Writer(path)
    station.ready(station.seed, station.epoch, origin.kinds)
    without_clients()
    from .capture import TrafficCapture

    redactor = redaction.redactor()
    kubeconfig = KubeconfigTemplate(os.environ)
    for credential in kubeconfig.credentials:
        redactor.add("kubeconfig", credential)
    bindings = Bindings(DIALECTS["raw"], bind, os.environ.get("HOME", ""))
    head: dict[str, object] = {"recorder": origin.version}
    head["recorded"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    head |= {"epoch": station.epoch + int(origin.started * 1e9), "seed": station.seed, "bindings": bindings.neutral()}
    if origin.kinds:
        head["deterministic"] = list(origin.kinds)
    writer.head(head)
    recording = TrafficCapture(writer, Sanitizer(lambda data: bindings.clean(redactor.redact(data))), origin.started)
    said = serve(station.listener, station.control, _RecordingHandler(recording))
    recording.readings = _since(recording.readings, head["epoch"])
    outline = bindings.clean(redactor.redact(kubeconfig.of(recording.addresses).encode())).decode()
    values = ({"kubeconfig": outline} if outline else {}) | _known(recording) | {"redacted": list(redactor.fired)}
    if said != WHOLE:
        writer.leave(values)
        if not said:
            rmtree(station.folder, ignore_errors=True)
        kept = f"what was recorded until then is in {path}.partial, for `ext-recorder recover`"
        return WorkerOutcome(ok=False, lines=[f"{path}: not made, the session was interrupted; {kept}"])
    offset = station.offset(origin.started)
    writer.finish(values, attribute_calls(origin.cassette, writer.unclaimed, offset) if origin.cassette else [])
    count = "one HTTP interaction" if writer.count == 1 else f"{writer.count} HTTP interactions"
    lines = [f"not recorded: {problem}" for problem in recording.problems]
    done = [] if lines else [f"recorded {path}: {count}"]
    return WorkerOutcome(ok=not lines, lines=[*lines, *done], remarks=_unseen(recording.programs))


def _known(recording: TrafficCapture) -> dict[str, object]:
    """Return the members of the file that are known at the end, apart from the interactions."""
    clock = [
        {"call": call, **({"thread": thread} if thread else {}), "ns": _differences(moments)}
        for (call, thread), moments in recording.clock.items()
    ]
    return {
        "hosts": recording.hosts,
        "servers": recording.servers,
        "clock": clock,
        **({"readings": recording.readings} if recording.readings else {}),
        "unrecorded": recording.problems,
        "programs": recording.programs,
    }


def replay(
    station: WorkerContext,
    path: Path,
    bind: Mapping[str, str],
    redaction: Redaction,
    *,
    matching: RequestRules | None,
    misses: list[str],
) -> WorkerOutcome:
    """Respond until the session is over. Raises RecorderError."""
    without_clients()
    from .library import InteractionStore
    from .playback import EXPLAINED, Playback

    document = load(path)
    neutral = {name: str(value) for name, value in document.mapping("bindings").items()}
    bindings = ReplayBindings(neutral, bind, os.environ.get("HOME", ""))
    redactor = redaction.redactor()
    cleaner = Sanitizer(lambda data: bindings.to_placeholders(redactor.redact(data)))
    if kubeconfig := document.text("kubeconfig"):
        (Path(station.folder) / KUBECONFIG).write_bytes(bindings.to_live(kubeconfig.encode(), json=False))
    clocks = _clocks(document.values.get("clock"))
    library = InteractionStore(document.interactions, clocks, document.mapping("servers"), matching)
    answers = Playback(library, document.mapping("hosts"), cleaner, lambda data: bindings.to_live(data, json=False))
    answers.misses = misses
    epoch = document.values.get("epoch")
    start = epoch if isinstance(epoch, int) else 0
    answers.readings = {
        str(place): list(accumulate(map(int, differences), initial=start))[1:]
        for place, differences in document.mapping("readings").items()
        if isinstance(differences, list)
    }
    kinds = document.values.get("deterministic")
    station.ready(document.text("seed"), start, [str(each) for each in kinds] if isinstance(kinds, list) else [])
    if not serve(station.listener, station.control, answers):
        rmtree(station.folder, ignore_errors=True)
    lines = answers.misses[:EXPLAINED]
    if len(answers.misses) > EXPLAINED:
        lines.append(f"and {len(answers.misses) - EXPLAINED} more requests had no answer")
    lines += library.never_played()
    return WorkerOutcome(
        ok=not lines, lines=[f"{path}: {line}" for line in lines], remarks=_unseen(sorted(answers.programs))
    )


def _unseen(programs: list[str]) -> list[str]:
    """Return a remark on programs that are not part of the recording."""
    return [f"not seen: what is said to the network by {', '.join(programs)}, which the child ran"] if programs else []


def _since(readings: Mapping[str, list[int]], epoch: object) -> dict[str, list[int]]:
    """Return readings of the wall clock as differences from the previous reading, the first from the start."""
    start = epoch if isinstance(epoch, int) else 0
    return {
        place: [later - sooner for sooner, later in pairwise([start, *moments])]
        for place, moments in sorted(readings.items())
    }


def _differences(groups: list[list[int]]) -> list[list[int]]:
    """Return moments as differences from the previous one."""
    found, last = [], 0
    for moments in groups:
        found.append([later - sooner for sooner, later in pairwise([last, *moments])])
        last = moments[-1] if moments else last
    return found


def _clocks(recorded: object) -> dict[tuple[Call, str], list[list[int]]]:
    """Return the clock readings of each thread of each call, as moments, after each step."""
    found: dict[tuple[Call, str], list[list[int]]] = {}
    for each in recorded if isinstance(recorded, list) else ():
        groups, last = [], 0
        for differences in each["ns"] if isinstance(each, dict) and isinstance(each.get("ns"), list) else ():
            moments = list(accumulate(map(int, differences), initial=last))
            last = moments[-1]
            groups.append(moments[1:])
        if groups:
            found[each.get("call"), str(each.get("thread") or "")] = groups
    return found
