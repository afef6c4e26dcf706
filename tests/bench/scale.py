"""How much is measured: enough to trust a number, enough to see one soon, enough to know that the bench works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of what is measured.

    Attributes:
        name: for the report.
        rounds: how often each candidate has its turn.
        starts: spawns in a round; the round's value is their median.
        calls: of an operation, one after the other.
        early: the call after which memory should grow no more.
        trips: through a recorder, one after the other. What a recorder may have in its queue, at most.
        flood: through a recorder, many at once. Many times what a recorder may have in its queue.
        few: interactions in a short cassette.
        many: interactions in a long one.
        peer_calls: through other recorders, or of what they play; fewer where a recording has fewer.
        sdk_calls: of a tool, by the official MCP SDK.
        large_mb: megabytes of a large message.
        parsed: interactions in the cassette that a YAML library has to read as well.
        gets: requests of ext-http, one after the other.
        proxied: requests through the recording proxy; a tenth of them, to see whether more take longer each.
        think_s: until the model of an example eval responds.
        body_mib: of a big body; a bomb becomes twice as big.
        first_calls: spawns in a round for the first call of ext-kubernetes.
        flips: of a condition in a round; the round's value is their median.
        flip_scale: by which the times are multiplied after which a condition flips.
        applied: objects in a file.
        created: objects, one call each.
        waits: at the same time.
        idle_seconds: in which requests are counted.
    """

    name: str
    rounds: int
    starts: int
    calls: int
    early: int
    trips: int
    flood: int
    few: int
    many: int
    peer_calls: int
    sdk_calls: int
    large_mb: int
    parsed: int
    gets: int
    proxied: int
    think_s: float
    body_mib: int
    first_calls: int
    flips: int
    flip_scale: float
    applied: int
    created: int
    waits: int
    idle_seconds: float


FULL = Scale(
    "full",
    rounds=5,
    starts=11,
    calls=100_000,
    early=10_000,
    trips=20_000,
    flood=200_000,
    few=1_000,
    many=100_000,
    peer_calls=5_000,
    sdk_calls=500,
    large_mb=20,
    parsed=100_000,
    gets=1_000,
    proxied=10_000,
    think_s=8.0,
    body_mib=100,
    first_calls=3,
    flips=11,
    flip_scale=1.0,
    applied=200,
    created=50,
    waits=500,
    idle_seconds=4.0,
)
# The YAML library needs a minute for the long cassette, and its time grows with the length: a short one does here.
QUICK = Scale(
    "quick",
    rounds=3,
    starts=5,
    calls=20_000,
    early=5_000,
    trips=5_000,
    flood=100_000,
    few=1_000,
    many=100_000,
    peer_calls=2_000,
    sdk_calls=200,
    large_mb=20,
    parsed=10_000,
    gets=1_000,
    proxied=10_000,
    think_s=5.0,
    body_mib=100,
    first_calls=1,
    flips=5,
    flip_scale=1.0,
    applied=200,
    created=50,
    waits=500,
    idle_seconds=2.0,
)
TINY = Scale(
    "tiny",
    rounds=1,
    starts=1,
    calls=20,
    early=10,
    trips=20,
    flood=100,
    few=5,
    many=20,
    peer_calls=10,
    sdk_calls=5,
    large_mb=1,
    parsed=20,
    gets=5,
    proxied=80,
    think_s=0.1,
    body_mib=2,
    first_calls=1,
    flips=1,
    flip_scale=0.1,
    applied=2,
    created=2,
    waits=2,
    idle_seconds=0.2,
)
