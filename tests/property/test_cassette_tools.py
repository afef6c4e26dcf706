"""Whatever a cassette is, the tools end well or by our own error, and leave nothing half written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ext_recorder.batch.reports import Case, json_line, junit, lines
from ext_recorder.errors import RecorderError
from ext_recorder.messages.redaction import Redaction
from ext_recorder.tools.convert import Options, convert
from ext_recorder.tools.diff import diff
from ext_recorder.tools.merge import merge
from ext_recorder.tools.scrub import scrub
from ext_recorder.tools.stats import collect, table
from ext_recorder.tools.trim import Part, trim
from tests.support.player_host import cassette
from tests.unit.ext_recorder.tools.test_trim import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROTOCOLS = ("gevals", "gassist", "pi", "dap", "waza", "lsp", "jsonrpc", "raw")
FRAMINGS = ("ndjson", "content-length", "uint32")
RAW = "- {t: 4, out: {raw: 'eyJpZCI6MX0NCgANCg=='}}\n"

# Where a file is changed, as parts of its length, and what is put there in the place of how many bytes.
changes = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.binary(max_size=8)), max_size=4)
swaps = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=3)


def changed(data: bytes, edits: list[tuple[float, int, bytes]], moves: list[tuple[int, int]]) -> bytes:
    rows = data.split(b"\n")
    for one, other in moves:
        if max(one, other) < len(rows):
            rows[one], rows[other] = rows[other], rows[one]
    data = b"\n".join(rows)
    for place, count, new in edits:
        at = int(place * len(data))
        data = data[:at] + new + data[at + count :]
    return data


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150, deadline=None
)
@given(protocol=st.sampled_from(PROTOCOLS), framing=st.sampled_from(FRAMINGS), edits=changes, moves=swaps)
def test_every_tool_ends_by_a_result_or_by_an_error_in_one_line(
    tmp_path: Path, protocol: str, framing: str, edits: list[tuple[float, int, bytes]], moves: list[tuple[int, int]]
) -> None:
    path = cassette(tmp_path / "a.yaml", SESSION.strip("\n") + "\n" + RAW, protocol=protocol, framing=framing)
    sound = cassette(tmp_path / "b.yaml", SESSION, protocol=protocol, framing=framing)
    path.write_bytes(changed(path.read_bytes(), edits, moves))
    out, jsonl = tmp_path / "out.yaml", tmp_path / "out.jsonl"

    def told(case: Case) -> None:
        assert lines(case)
        assert json_line(case)
        assert junit("tools", [case])

    tools: list[Callable[[], object]] = [
        lambda: table(collect(path, "a", subjects=True)),
        lambda: told(diff(path, sound)),
        lambda: told(diff(sound, path)),
        lambda: trim(path, out, Part(after=0.5, without=["log"], calls=((1, 2),)), replace=True),
        lambda: merge([sound, path, sound], out, replace=True),
        lambda: convert(path, str(jsonl), Options(), source="cassette", replace=True),
        lambda: convert(jsonl, str(out), Options(), source="jsonl", replace=True),
        lambda: convert(path, str(out), Options(), to="cassette", replace=True),
        lambda: scrub(path, "a", redaction=Redaction(further={"env.X": "initialize"})),
    ]
    errors = []
    for tool in tools:
        try:
            tool()
        except RecorderError as error:
            errors.append(str(error))
    assert not any("\n" in error for error in errors)
    assert {each.name for each in tmp_path.iterdir()} <= {"a.yaml", "b.yaml", "out.yaml", "out.jsonl"}
