"""Every figure of the bench: what is measured, beside what, and what is asked for. A new figure is a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tests.bench import (
    bulk_transfer,
    calls,
    host_tasks,
    http_layer,
    http_requests,
    kubernetes,
    parsing,
    proxy,
    recording,
    replaying,
    start_up,
)
from tests.bench.harness import Bench, Series
from tests.bench.peers import measuring, recorders

Measure: TypeAlias = Callable[[Bench], Series]


@dataclass(frozen=True, slots=True)
class Limit:
    """What is asked of a figure.

    Attributes:
        of: what it is about: the value, or its ratio to what was measured beside it.
        better: which way is good.
        number: what must be kept.
        goal: what should be reached; the same number where no more is asked.
    """

    of: Literal["value", "ratio"]
    better: Literal["less", "more"]
    number: float
    goal: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One number.

    Attributes:
        name: as --only has it.
        what: in words; {calls} and the like are sizes of the scale.
        unit: of the value, and of what is beside it.
        measure: what measures it, and others of its kind with it.
        series: which of the measured series it is.
        beside: which series is measured side by side; the ratio is the figure divided by this.
        limit: None: the figure is there for orientation.
        without: why the series may not be there.
    """

    name: str
    what: str
    unit: str
    measure: Measure
    series: str
    beside: str
    limit: Limit | None = None
    without: str = ""


def _at_most(number: float, *, goal: float | None = None) -> Limit:
    return Limit("value", "less", number, goal)


def _at_least(number: float) -> Limit:
    return Limit("value", "more", number)


def _times_at_least(ratio: float) -> Limit:
    return Limit("ratio", "more", ratio)


def _times_at_most(ratio: float, *, goal: float | None = None) -> Limit:
    return Limit("ratio", "less", ratio, goal)


_large, _in_flight = bulk_transfer.measure_large, bulk_transfer.measure_in_flight
_beside = measuring.measure_trips
_few, _many = measuring.measure_few, measuring.measure_many
_start, _call, _parse = start_up.measure, calls.measure, parsing.measure
_trip, _flood = recording.measure_sequential, recording.measure_pipelined
_first, _replay = replaying.measure_first, replaying.measure_whole

# "Better than every peer": the best of them, in each round, is beside it.
_WITH_PEERS = (
    Figure("peers.p50", "record, median round trip, beside the quickest peer", "µs", _beside, "ext-recorder p50",
           "quickest peer p50", _times_at_most(1)),
    Figure("peers.replay-trips", "replay, {few:,} interactions, sequential, the same", "1/s", _few,
           "ext-recorder trips/s", "quickest peer trips/s", _times_at_least(1.5)),
    Figure("peers.replay-flood", "the same, pipelined", "1/s", _few, "ext-recorder pipelined/s",
           "quickest peer pipelined/s", _times_at_least(1.5)),
    Figure("peers.replay-trips-of-many", "replay, {peer_calls:,} of {many:,}, sequential", "1/s", _many,
           "ext-recorder trips/s", "quickest peer trips/s", _times_at_least(1.5)),
    Figure("peers.replay-flood-of-many", "the same, pipelined", "1/s", _many, "ext-recorder pipelined/s",
           "quickest peer pipelined/s", _times_at_least(1.5)),
    Figure("peers.sdk-record", "a call of the official MCP SDK, recorded", "1/s", measuring.measure_sdk,
           "ext-recorder recorded/s", "mcp-cassette recorded/s", _times_at_least(1)),
    Figure("peers.sdk-replay", "the same, replayed", "1/s", measuring.measure_sdk, "ext-recorder replayed/s",
           "mcp-cassette replayed/s", _times_at_least(1)),
    Figure("peers.sdk-direct", "the same without a recorder", "1/s", measuring.measure_sdk, "direct recorded/s",
           "ext-recorder recorded/s"),
    Figure("peers.mitmproxy", "added by mitmproxy to a request of 2 KB", "µs", proxy.measure_mitmproxy,
           "mitmproxy added µs", "mitmproxy direct µs", without="mitmdump is not in PATH"),
    Figure("peers.help", "--help", "ms", measuring.measure_help, "ext-recorder ms", "quickest peer ms"),
    *(
        Figure(f"peers.{peer.name}.{name}", f"{peer.name}: {what}", unit, measure, f"{peer.name} {series}",
               f"ext-recorder {series}", without=peer.without)
        for peer in recorders.PEERS
        for name, what, unit, measure, series in (
            ("p50", "record, median round trip", "µs", _beside, "p50"),
            ("p99", "record, 99th percentile", "µs", _beside, "p99"),
            *((
                ("trips", "replay, {few:,}, sequential", "1/s", _few, "trips/s"),
                ("flood", "replay, {few:,}, pipelined", "1/s", _few, "pipelined/s"),
                ("trips-of-many", "replay, {peer_calls:,} of {many:,}, sequential", "1/s", _many, "trips/s"),
                ("flood-of-many", "replay, {peer_calls:,} of {many:,}, pipelined", "1/s", _many, "pipelined/s"),
            ) if peer.replay else ()),
            ("help", "--help", "ms", measuring.measure_help, "ms"),
        )
    ),
    *(Figure(f"peers.{name.replace(' ', '-')}", name, "", measuring.absent(name), "", "") for name in recorders.ABSENT),
)  # fmt: skip

FIGURES = (
    # name, what, unit, measure, series, beside, limit
    Figure("start.manifest", "ext-shell, spawn to manifest", "ms", _start, "ext-shell ms", "import json ms",
           _times_at_most(0.95, goal=0.6)),
    Figure("start.configured", "ext-shell with a configuration, spawn to manifest", "ms", _start,
           "ext-shell configured ms", "import json ms", _times_at_most(2)),
    Figure("start.mcp", "ext-shell, spawn to the response over MCP, next to the manifest", "ms", _start,
           "ext-shell mcp ms", "ext-shell ms", _times_at_most(1.1)),
    Figure("start.pi", "ext-shell, spawn to `register` of Pi, next to the manifest", "ms", _start,
           "ext-shell pi ms", "ext-shell ms", _times_at_most(1.1)),
    Figure("start.executable", "the executable as ext-shell, spawn to manifest, next to the console script", "ms",
           start_up.measure_executable, "executable ms", "ext-shell ms", _times_at_most(1.5)),
    Figure("start.exit", "ext-shell, response to shutdown to the end of the process", "ms", start_up.measure_exit,
           "ext-shell ms", "import json ms", _at_most(15)),
    Figure("start.memory", "ext-shell, resident at the manifest", "MiB", _start, "ext-shell MiB", "import json MiB",
           _at_most(14)),
    Figure("start.python", "python -c pass, to its end", "ms", _start, "pass ms", "import json ms"),
    Figure("start.help", "ext-recorder --help", "ms", start_up.measure_help, "ext-recorder ms", "import json ms",
           _at_most(90)),
    Figure("call.rate", "an operation that does nothing, sequential", "1/s", _call, "extension calls/s", "echo calls/s",
           _at_least(5_000)),
    Figure("call.mcp", "the same over MCP, next to gevals", "1/s", _call, "mcp calls/s", "extension calls/s",
           _at_least(4_000)),
    Figure("call.memory", "resident after {calls:,} calls, beside after {early:,}", "MiB", _call, "extension last MiB",
           "extension early MiB", _times_at_most(1.02)),
    Figure("record.p50", "record, redacting, sequential, median round trip of 300 bytes", "µs", _trip,
           "ext-recorder p50", "C copier p50", _times_at_most(1.25)),
    Figure("record.p99", "the same, 99th percentile", "µs", _trip, "ext-recorder p99", "C copier p99",
           _times_at_most(3)),
    Figure("record.python", "a copier in Python, median round trip", "µs", _trip, "copier p50", "C copier p50"),
    Figure("record.direct", "no stand-in, median round trip", "µs", _trip, "direct p50", "C copier p50"),
    Figure("record.large", "a message of {large_mb} MB and its echo, to the last byte", "ms", _large,
           "ext-recorder ms", "C copier ms", _times_at_most(1.3)),
    Figure("record.in-flight", "peak memory, {many:,} calls before the first answer, and a slow reader", "MB",
           _in_flight, "record MB", "copier MB", _at_most(64)),
    Figure("record.flood", "record, {flood:,} calls pipelined, to the last answer", "1/s", _flood,
           "ext-recorder calls/s", "copier calls/s", _at_least(40_000)),
    Figure("record.whole", "the same, to the recorder's exit", "1/s", _flood, "ext-recorder whole", "copier whole",
           _at_least(40_000)),
    Figure("record.cpu", "processor time for a call (a message and its echo)", "µs", _flood,
           "ext-recorder cpu", "copier cpu"),
    Figure("replay.first", "first answer, {few:,} interactions", "ms", _first, "strict few ms", "import json ms",
           _at_most(60)),
    Figure("replay.first-of-many", "first answer, {many:,} interactions", "ms", _first, "strict many ms",
           "import json ms", _at_most(60)),
    Figure("replay.first-any", "first answer, {few:,}, order any", "ms", _first, "any few ms", "strict few ms",
           _at_most(250)),
    Figure("replay.first-of-many-any", "first answer, {many:,}, order any", "ms", _first, "any many ms",
           "strict many ms", _at_most(250)),
    Figure("replay.memory", "peak memory, {few:,} interactions", "MB", _replay, "strict few MB", "import json MB",
           _at_most(40)),
    Figure("replay.memory-of-many", "peak memory, {many:,} interactions", "MB", _replay, "strict many MB",
           "strict few MB", _at_most(40)),
    Figure("replay.memory-any", "peak memory, {many:,}, order any", "MB", _replay, "any many MB", "strict many MB",
           _at_most(40)),
    Figure("replay.in-flight", "peak memory, {many:,} requests before an answer is read, slowly", "MB", _in_flight,
           "replay MB", "copier MB", _at_most(64)),
    Figure("replay.rate", "interactions, sequential", "1/s", _replay, "strict many trips/s", "echo trips/s",
           _at_least(10_000)),
    Figure("replay.flood", "interactions, pipelined", "1/s", _replay, "strict many pipelined/s", "echo pipelined/s",
           _at_least(40_000)),
    Figure("replay.rate-any", "sequential, order any", "1/s", _replay, "any many trips/s", "echo trips/s"),
    Figure("replay.flood-any", "pipelined, order any", "1/s", _replay, "any many pipelined/s", "echo pipelined/s"),
    Figure("parse.whole", "a cassette of {parsed:,}, beside PyYAML's CSafeLoader", "s", _parse, "reader s",
           "CSafeLoader s", _times_at_most(0.05)),
    Figure("http.manifest", "ext-http, spawn to manifest", "ms", _start, "ext-http ms", "ext-shell ms",
           _times_at_most(1.1)),
    Figure("http.configured", "ext-http with a configuration, spawn to manifest", "ms", _start,
           "ext-http configured ms", "import json ms", _times_at_most(2)),
    Figure("http.gets", "{gets:,} keep-alive GETs, one `request` each", "s", http_requests.measure, "ext-http s",
           "bare loop s", _times_at_most(3)),
    Figure("http.body", "peak memory, a body of {body_mib} MiB with a cap of 10", "MiB", http_requests.measure,
           "big body MiB", "small body MiB", _at_most(80)),
    Figure("http.bomb", "the same, a gzip bomb of twice as much", "MiB", http_requests.measure, "bomb MiB",
           "small body MiB", _at_most(80)),
    Figure("layer.record", "{gets:,} GETs of a child under `record --http`", "s", http_layer.measure, "recorded s",
           "alone s"),
    Figure("layer.replay", "the same answered by `replay --http`", "s", http_layer.measure, "replayed s", "alone s"),
    Figure("layer.replay-many", "five times as many, beside five times as long", "s", http_layer.measure,
           "replayed many s", "five times s", _times_at_most(1.5)),
    Figure("layer.body", "peak memory under `record --http`, a body of {body_mib} MiB with a cap of 10", "MiB",
           http_layer.measure_memory, "recorded body MiB", "small MiB", _at_most(80)),
    Figure("layer.bomb", "the same, a gzip bomb of twice as much", "MiB", http_layer.measure_memory,
           "recorded bomb MiB", "small MiB", _at_most(80)),
    Figure("proxy.trip", "added by `run` to a request of 2 KB, keep-alive, median", "µs", proxy.measure,
           "trips added µs", "trips direct µs", _at_most(1000)),
    Figure("proxy.first-event", "added to the first server-sent event", "µs", proxy.measure,
           "trips added first event µs", "trips direct first event µs", _at_most(1000)),
    Figure("proxy.flood", "{proxied:,} requests from 16 connections, to the exit of the recorder", "1/s",
           proxy.measure, "flood 1/s", "trips direct µs", _at_least(1_000)),
    Figure("proxy.replay-first", "first replayed response, {proxied:,} interactions, beside a tenth of them", "ms",
           proxy.measure_replay, "many first ms", "few first ms", _times_at_most(1.5)),
    Figure("proxy.replay", "{proxied:,} replayed interactions, beside ten times a tenth of them", "s",
           proxy.measure_replay, "many s", "ten times s", _times_at_most(1.5)),
    *(
        Figure(f"proxy.{kind}-{name}", f"peak memory, a {kind} {name} of {{body_mib}} MiB", "MiB",
               proxy.measure_memory, f"{kind} {name} MiB", "small MiB", _at_most(64))
        for kind in ("recorded", "replayed")
        for name in ("download", "upload")
    ),
    Figure("proxy.eval", "an example eval, replayed, beside its recording", "s", proxy.measure_eval, "replayed s",
           "recorded s", _times_at_most(0.1)),
    Figure("host.tasks", "a task of ext-host with a trivial agent, of {applied} by 8 workers; agents alone", "ms",
           host_tasks.measure, "tasks ms", "agents ms", _at_most(30)),
    Figure("kubernetes.manifest", "ext-kubernetes, spawn to manifest", "ms", _start, "ext-kubernetes ms",
           "ext-shell ms", _times_at_most(1.1)),
    Figure("kubernetes.configured", "ext-kubernetes with a configuration, spawn to manifest", "ms", _start,
           "ext-kubernetes configured ms", "import json ms", _times_at_most(2)),
    Figure("kubernetes.first", "first operation at once, from spawn to its answer", "ms", kubernetes.measure_first,
           "at once ms", "import kubernetes ms", _at_most(350)),
    Figure("kubernetes.first-get", "first operation at once, `get`, from its request to its answer", "ms",
           kubernetes.measure_first, "at once call ms", "import kubernetes ms", _at_most(120)),
    Figure("kubernetes.first-create", "the same, `create-namespace`", "ms", kubernetes.measure_first,
           "created call ms", "import kubernetes ms", _at_most(120)),
    Figure("kubernetes.first-later", "first operation, a second after the manifest", "ms", kubernetes.measure_first,
           "later ms", "later again ms", _at_most(40)),
    Figure("kubernetes.cpu", "processor time of a session of six operations, from spawn to exit", "s",
           kubernetes.measure_session, "session cpu s", "import kubernetes cpu s", _at_most(0.2)),
    Figure("kubernetes.exit", "its response to shutdown to the end of the process", "ms", kubernetes.measure_session,
           "session exit ms", "import json ms", _at_most(15)),
    Figure("kubernetes.flip", "a condition that flips, from its sending to the answer", "ms", kubernetes.measure_flips,
           "watch ms", "watch patch ms", _at_most(25)),
    Figure("kubernetes.flip-polling", "the same by polling alone, the worst after 0.5, 1 and 2 s", "ms",
           kubernetes.measure_flips, "polling ms", "polling waited ms", _times_at_most(0.1)),
    Figure("kubernetes.flip-late", "the same, where 10 % of the time waited would be more", "ms",
           kubernetes.measure_flips, "polling late ms", "polling late waited ms", _at_most(500)),
    Figure("kubernetes.apply", "apply of {applied} objects in one file, from spawn", "s", kubernetes.measure_apply,
           "ext-kubernetes s", "kubectl s", _times_at_most(0.15)),
    Figure("kubernetes.create", "{created} create calls in a row", "s", kubernetes.measure_create, "ext-kubernetes s",
           "plain requests s", _at_most(0.4)),
    Figure("kubernetes.waits", "{waits} waits at once, the longest from flip to answer", "s", kubernetes.measure_waits,
           "all seen s", "all flips s", _at_most(1)),
    Figure("kubernetes.waits-idle", "requests while they all wait, the cluster's own with them", "1/s",
           kubernetes.measure_waits, "all idle 1/s", "all before 1/s", _at_most(20)),
    *_WITH_PEERS,
)  # fmt: skip
