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
from .event_loop import EventLoop
from .kubeconfig import KubeconfigTemplate
from .reader import HEAD, open_document
from .sanitizer import Sanitizer, with_decodable_secrets
from .server import serve
from .traffic_counts import Traffic
from .worker_context import ADDED, KUBECONFIG, WHOLE, WorkerOutcome
from .writer import Writer, without_clients

SHOWN = 10  # messages that were replayed differently

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterable, Mapping

    from ext_recorder.messages.redaction import Redaction

    from .capture import TrafficCapture
    from .interaction import Call
    from .interaction_store import Learner
    from .proxy.service import ProxyOptions
    from .reader import Document
    from .request_matching import RequestRules
    from .worker_context import Origin, WorkerContext


def record(
    context: WorkerContext,
    path: Path,
    bind: Mapping[str, str],
    redaction: Redaction,
    origin: Origin,
    *,
    proxy: ProxyOptions | None = None,
) -> WorkerOutcome:
    """Record until the session is over.

    Args:
        proxy: for programs of any language; None for Python children alone.

    Raises:
        RecorderError, OSError: the file can't be written.
    """
    writer = Writer(path)
    if proxy is None:
        context.ready(context.seed, context.epoch, origin.kinds)
    without_clients()
    from .capture import TrafficCapture

    redactor = redaction.redactor()
    kubeconfig = KubeconfigTemplate(os.environ)
    for credential in kubeconfig.credentials:
        redactor.add("kubeconfig", credential)
    bindings = Bindings(DIALECTS["raw"], bind, os.environ.get("HOME", ""))
    head: dict[str, object] = {"recorder": origin.version}
    head["recorded"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    epoch = context.epoch + int(origin.started * 1e9)
    head |= {"epoch": epoch, "seed": context.seed, "bindings": bindings.neutral()}
    if origin.kinds:
        head["deterministic"] = list(origin.kinds)
    writer.head(head)

    def clean(data: bytes) -> bytes:
        context.proceed()
        return bindings.clean(redactor.redact(data))

    recording = TrafficCapture(writer, Sanitizer(clean, redactor.replacements, redactor.redact_known), origin.started)
    loop = EventLoop()
    process = None
    if proxy is not None:
        from .proxy.service import ProxyProcess

        process = ProxyProcess(proxy, context.folder, origin.started)
        context.ready(context.seed, context.epoch, origin.kinds)
    received = serve(loop, context.listener, context.control, recording, process.stop if process else None)
    outline = clean(kubeconfig.of(recording.addresses).encode()).decode()
    values: dict[str, object] = {"kubeconfig": outline} if outline else {}
    values |= _known(recording, epoch) | {"redacted": list(redactor.fired)}
    if process is not None and process.was_killed:
        writer.leave(values)
        return WorkerOutcome(ok=False, lines=["the process of the proxy was killed; later requests failed"])
    if received != WHOLE:
        writer.leave(values)
        if not received:
            rmtree(context.folder, ignore_errors=True)
        if process is not None:
            return WorkerOutcome(ok=False, lines=[])  # the run reports it
        kept = f"what was recorded until then is in {path}.partial, for `ext-recorder recover`"
        return WorkerOutcome(ok=False, lines=[f"{path}: not made, the session was interrupted; {kept}"])
    offset = context.offset(origin.started)
    writer.finish(values, attribute_calls(origin.cassette, writer.unclaimed, offset) if origin.cassette else [])
    count = "one HTTP interaction" if writer.count == 1 else f"{writer.count} HTTP interactions"
    lines = [f"not recorded: {problem}" for problem in recording.problems]
    done = [] if lines or proxy else [f"recorded {path}: {count}"]
    traffic = {endpoint: (tuple(counts), (), ()) for endpoint, counts in recording.traffic.items()}
    remarks = [*_unseen(recording.programs), *_passed(recording.passed), *(_failed(recording.failed) if proxy else ())]
    return WorkerOutcome(not lines, [*lines, *done], remarks, traffic)


def _known(recording: TrafficCapture, epoch: int) -> dict[str, object]:
    """Return the members of the file that are known at the end, apart from the interactions.

    Clock readings are written as differences from the previous reading, the first of the wall clock from the start.
    """
    clock = []
    for (call, thread), groups in recording.clock.items():
        differences, last = [], 0
        for moments in groups:
            differences.append([later - sooner for sooner, later in pairwise([last, *moments])])
            last = moments[-1] if moments else last
        clock.append({"call": call, **({"thread": thread} if thread else {}), "ns": differences})
    readings = {
        place: [later - sooner for sooner, later in pairwise([epoch, *moments])]
        for place, moments in sorted(recording.readings.items())
    }
    return {
        "hosts": recording.hosts,
        "servers": recording.servers,
        "clock": clock,
        **({"readings": readings} if readings else {}),
        "unrecorded": recording.problems,
        "programs": recording.programs,
    }


def replay(
    context: WorkerContext,
    path: Path,
    bind: Mapping[str, str],
    redaction: Redaction,
    *,
    matching: RequestRules | None,
    misses: list[str] | None = None,
    proxy: ProxyOptions | None = None,
    absent: Collection[str] = (),
    learner: Learner | None = None,
) -> WorkerOutcome:
    """Respond until the session is over.

    Args:
        misses: receives a line for each request without a response, immediately.
        absent: names of recorded clients that do not run, so their requests are not sent.
        learner: receives requests without a match.

    Raises:
        RecorderError: the file can't be read.
    """
    without_clients()
    from .interaction_store import InteractionStore
    from .playback import EXPLAINED, Playback
    from .request_matching import PathPairs

    document = open_document(path)
    neutral = {name: str(value) for name, value in document.mapping("bindings").items()}
    bindings = ReplayBindings(neutral, bind, os.environ.get("HOME", ""))
    redactor = redaction.redactor()
    cleaner = Sanitizer(lambda data: bindings.to_placeholders(redactor.redact(data)), known=redactor.redact_known)
    if kubeconfig := document.text("kubeconfig"):
        (Path(context.folder) / KUBECONFIG).write_bytes(bindings.to_live(kubeconfig.encode(), json=False))
    clocks = _clocks(document.values.get("clock"))
    store = InteractionStore(document.file or document.interactions, clocks, document.mapping("servers"), matching)
    store.learner = learner
    paths = PathPairs(matching.path if matching is not None else ())
    if learner is not None:
        learner.paths = paths
    decodable = with_decodable_secrets if proxy is not None else bytes
    live = Sanitizer(lambda data: decodable(paths.to_live(bindings.to_live(data, json=False))))
    playback = Playback(store, document.mapping("hosts"), cleaner, live, paths)
    if misses is not None:
        playback.misses = misses
    epoch = document.values.get("epoch")
    start = epoch if isinstance(epoch, int) else 0
    playback.readings = {
        str(place): list(accumulate(map(int, differences), initial=start))[1:]
        for place, differences in document.mapping("readings").items()
        if isinstance(differences, list)
    }
    kinds = document.values.get("deterministic")
    loop = EventLoop()
    end = None
    if proxy is not None:
        from .proxy.service import replay_requests

        end = replay_requests(loop, proxy, context.folder, playback, store)
    context.ready(document.text("seed"), start, [str(kind) for kind in kinds] if isinstance(kinds, list) else [])
    if not serve(loop, context.listener, context.control, playback, end):
        rmtree(context.folder, ignore_errors=True)
    lines = playback.misses[:EXPLAINED]
    if len(playback.misses) > EXPLAINED:
        lines.append(f"and {len(playback.misses) - EXPLAINED} more requests had no answer")
    lines += store.never_played(absent)
    counts = store.traffic(absent) if proxy is not None else {}
    traffic = {endpoint: tuple(map(tuple, each)) for endpoint, each in counts.items()}
    remarks = [*_unseen(sorted(playback.programs)), *_passed(playback.passed)]
    return WorkerOutcome(not lines, [f"{path}: {line}" for line in lines], remarks, traffic)


def extend(
    context: WorkerContext,
    recorded: Path,
    path: Path,
    bind: Mapping[str, str],
    redaction: Redaction,
    *,
    matching: RequestRules,
    proxy: ProxyOptions,
) -> WorkerOutcome:
    """Respond until the session is over, and record requests without a response, in a copy of the file.

    Args:
        recorded: the file.
        path: the copy; it is made only if such requests exist.

    Raises:
        RecorderError, OSError: a file can't be read, or written.
    """
    without_clients()
    from .capture import TrafficCapture
    from .interaction_store import InteractionStore
    from .playback import Playback
    from .proxy.service import extend_requests
    from .request_matching import PathPairs

    document = open_document(recorded)
    redactor = redaction.redactor()
    kubeconfig = KubeconfigTemplate(os.environ)
    for credential in kubeconfig.credentials:
        redactor.add("kubeconfig", credential)
    neutral = {name: str(value) for name, value in document.mapping("bindings").items()}
    bindings = ReplayBindings(neutral, bind, os.environ.get("HOME", ""))

    def clean(data: bytes) -> bytes:
        return bindings.to_placeholders(redactor.redact(data))

    writer = Writer(path)
    writer.head({name: document.values[name] for name in HEAD if name in document.values})
    latest = 0.0
    for interaction in document.interactions or (each for _, each in document.file or ()):
        writer.append(interaction)
        latest = max(latest, interaction.time + interaction.elapsed)
    copied, started = writer.count, time.monotonic() - latest
    servers = document.mapping("servers")
    store = InteractionStore(document.file or document.interactions, {}, servers, matching)
    cleaner = Sanitizer(clean, redactor.replacements)
    paths = PathPairs(matching.path)
    live = Sanitizer(lambda data: paths.to_live(bindings.to_live(data, json=False)))
    playback = Playback(store, document.mapping("hosts"), cleaner, live, paths)
    capture = TrafficCapture(writer, cleaner, started)
    loop = EventLoop()
    end = extend_requests(loop, proxy, context.folder, playback, store, capture=capture, started=started)
    context.ready(document.text("seed"), 0, [])
    received = serve(loop, context.listener, context.control, playback, end)
    values = _extended(document, capture, redactor.fired)
    if outline := clean(kubeconfig.of({*capture.addresses, *store.addresses}).encode()).decode():
        values = {"kubeconfig": outline} | {name: value for name, value in values.items() if name != "kubeconfig"}
    if received != WHOLE:
        writer.leave(values)
        if not received:
            rmtree(context.folder, ignore_errors=True)
        return WorkerOutcome(ok=False, lines=[])  # the run reports it
    writer.finish(values, [])
    added = writer.count - copied
    if not added:
        path.unlink()
    counts = store.traffic()
    for place, count in capture.traffic.items():
        before, played, absent = counts.get(place, (Traffic(), Traffic(), Traffic()))
        counts[place] = (before + count, played, absent)
    traffic = {endpoint: tuple(map(tuple, each)) for endpoint, each in counts.items()}
    lines = [f"not recorded: {problem}" for problem in capture.problems]
    lines += playback.misses[:SHOWN]
    done = [f"{ADDED}{added} new request{'' if added == 1 else 's'}"] if added else []
    remarks = [*_unseen(capture.programs), *_passed(playback.passed), *_failed(capture.failed)]
    return WorkerOutcome(not lines, [*lines, *done], remarks, traffic)


def _extended(document: Document, capture: TrafficCapture, redacted: Iterable[str]) -> dict[str, object]:
    """Return the members after the interactions of a file and of what was added to it."""
    values = {name: value for name, value in document.values.items() if name not in {*HEAD, "http", "version"}}
    values["servers"] = {**document.mapping("servers"), **capture.servers}
    # The last member is "redacted": a file without it is incomplete.
    for name, new in (("unrecorded", capture.problems), ("programs", capture.programs), ("redacted", redacted)):
        old = values.pop(name, None)
        values[name] = list(dict.fromkeys([*(old if isinstance(old, list) else []), *new]))
    return values


def _unseen(programs: list[str]) -> list[str]:
    """Return a remark on programs that are not part of the recording."""
    return [f"not recorded: network traffic of {', '.join(programs)}, which the child ran"] if programs else []


def _passed(places: Mapping[str, int]) -> list[str]:
    """Return a remark on servers that were passed through."""
    listed = [f"{place} ({count} connection{'s' if count > 1 else ''})" for place, count in sorted(places.items())]
    return [f"passed through, not recorded: {', '.join(listed)}"] if listed else []


def _failed(places: Mapping[str, Counter[str]]) -> list[str]:
    """Return a remark on each server to which connections have failed."""
    return [
        f"{place}: {reasons.total()} failed connection{'s' if reasons.total() > 1 else ''}: {', '.join(reasons)}"
        for place, reasons in places.items()
    ]


def _clocks(recorded: object) -> dict[tuple[Call, str], list[list[int]]]:
    """Return the clock readings of each thread of each call, as moments, after each step."""
    clocks: dict[tuple[Call, str], list[list[int]]] = {}
    for entry in recorded if isinstance(recorded, list) else ():
        groups, last = [], 0
        for differences in entry["ns"] if isinstance(entry, dict) and isinstance(entry.get("ns"), list) else ():
            moments = list(accumulate(map(int, differences), initial=last))
            last = moments[-1]
            groups.append(moments[1:])
        if groups:
            clocks[entry.get("call"), str(entry.get("thread") or "")] = groups
    return clocks
