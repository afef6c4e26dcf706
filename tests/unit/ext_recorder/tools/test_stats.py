"""How long calls took: counts, percentiles, errors, bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_recorder.tools.stats import MethodStats, collect, merge_stats, percentile, table
from tests.support import recorder_tools
from tests.support.player_host import cassette

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


def stats(*words: str) -> subprocess.CompletedProcess[str]:
    return recorder_tools.call("stats", *words)


def call(number: int, began: float, took: float, *, method: str = "a", answer: str = '"result":1') -> str:
    return (
        f'- {{t: {began}, in: \'{{"jsonrpc":"2.0","id":{number},"method":"{method}"}}\'}}\n'
        f'- {{t: {began + took:.6f}, out: \'{{"jsonrpc":"2.0","id":{number},{answer}}}\'}}\n'
    )


def tallies(path: Path, events: str, protocol: str = "jsonrpc", **options: bool) -> dict[str, MethodStats]:
    file = cassette(path / "c.yaml", events + "- {t: 99, exit: 0}", protocol=protocol)
    return {f"{each.by} {each.method}": each for each in collect(file, "c", **options)}


def test_percentiles_are_times_that_were_measured() -> None:
    times = [float(number) for number in range(1, 11)]
    assert [percentile(times, rank) for rank in (50, 90, 99, 100)] == [5.0, 9.0, 10.0, 10.0]
    assert percentile([3.0], 50) == 3.0
    assert percentile([], 50) is None


def test_calls_are_counted_by_method_with_their_times(tmp_path: Path) -> None:
    events = call(1, 0, 0.5) + call(1, 1, 1.5) + call(2, 3, 0.25, method="b")
    found = tallies(tmp_path, events)
    assert list(found["in a"].times) == pytest.approx([0.5, 1.5])
    assert list(found["in b"].times) == pytest.approx([0.25])
    assert (found["in a"].count, found["in a"].open, found["in a"].errors) == (2, 0, 0)
    assert found["in a"].asked == 2 * len('{"jsonrpc":"2.0","id":1,"method":"a"}')
    assert found["in a"].answered == 2 * len('{"jsonrpc":"2.0","id":1,"result":1}')


def test_overlapping_calls_keep_their_own_times(tmp_path: Path) -> None:
    one, two = call(1, 0, 9).splitlines(), call(2, 1, 2).splitlines()
    found = tallies(tmp_path, "\n".join([one[0], two[0], two[1], one[1], ""]))
    assert sorted(found["in a"].times) == pytest.approx([2.0, 9.0])


def test_errors_of_the_protocol_and_failures_of_the_call_are_errors(tmp_path: Path) -> None:
    events = call(1, 0, 1, answer='"error":{"code":-1,"message":"no"}')
    events += call(2, 2, 1, answer='"result":{"success":false}') + call(3, 4, 1, answer='"result":{"success":true}')
    assert tallies(tmp_path, events, "gevals")["in a"].errors == 2


def test_what_was_never_answered_is_open_and_has_no_time(tmp_path: Path) -> None:
    found = tallies(tmp_path, call(1, 0, 1).splitlines()[0] + "\n")["in a"]
    assert (found.count, found.open, len(found.times)) == (1, 1, 0)
    assert found.as_json()["p50_ms"] is None


def test_calls_of_the_child_and_notifications_are_rows_of_their_own(tmp_path: Path) -> None:
    events = """- {t: 0, out: '{"jsonrpc":"2.0","id":1,"method":"roots"}'}
- {t: 2, in: '{"jsonrpc":"2.0","id":1,"result":[]}'}
- {t: 3, out: '{"jsonrpc":"2.0","method":"log"}'}
- {t: 4, err: 'a line'}
- {t: 4, out: 'no message'}
"""
    found = tallies(tmp_path, events)
    assert found.keys() == {"out roots", "out log"}
    assert list(found["out roots"].times) == pytest.approx([2.0])


def test_an_answer_in_parts_takes_until_its_last_part(tmp_path: Path) -> None:
    events = """- {t: 0, in: '{"jsonrpc":"2.0","id":"1","method":"execute","params":{"function":"f"}}'}
- {t: 1, out: '{"jsonrpc":"2.0","id":"1","result":{"acknowledged":true}}'}
- {t: 5, out: '{"jsonrpc":"2.0","method":"complete","params":{"request_id":"1","success":true,"data":""}}'}
"""
    assert list(tallies(tmp_path, events, "gassist")["in execute"].times) == pytest.approx([5.0])


def test_rows_may_be_operations_and_tools(tmp_path: Path) -> None:
    execute = '{"jsonrpc":"2.0","id":1,"method":"execute","params":{"operation":"run"}}'
    events = f"- {{t: 0, in: '{execute}'}}\n"
    assert list(tallies(tmp_path, events, "gevals")) == ["in execute"]
    assert list(tallies(tmp_path, events, "gevals", subjects=True)) == ["in execute run"]


def test_several_cassettes_are_counted_together(tmp_path: Path) -> None:
    one, two = (list(tallies(tmp_path, call(1, 0, took)).values()) for took in (1.0, 3.0))
    (both,) = merge_stats([one, two])
    assert both.count == 2
    assert sorted(both.times) == pytest.approx([1.0, 3.0])


def test_the_table_has_units_and_is_aligned(tmp_path: Path) -> None:
    events = call(1, 0, 0.000123) + call(2, 1, 0.0123) + call(3, 2, 1.5) + call(4, 9, 2, method="longer")
    lines = table(merge_stats([list(tallies(tmp_path, events).values())]))
    assert lines[0].split() == ["method", "count", "errors", "open", "p50", "p90", "p99", "max", "asked", "answered"]
    assert " ".join(lines[1].split()) == "→ a 3 0 0 12.3 ms 1.50 s 1.50 s 1.50 s 111 B 105 B"
    assert len({len(line) for line in lines}) == 1


def test_the_command_counts_folders_and_tells_what_it_could_not_read(tmp_path: Path) -> None:
    cassette(tmp_path / "a.yaml", call(1, 0, 1) + "- {t: 9, exit: 0}", protocol="jsonrpc")
    cassette(tmp_path / "b.yaml", call(1, 0, 2) + "- {t: 9, exit: 0}", protocol="jsonrpc")
    done = stats("--json", str(tmp_path))
    row = json.loads(done.stdout)
    assert done.returncode == 0
    assert {key: row[key] for key in ("by", "method", "count", "p50_ms", "max_ms")} == {
        "by": "host", "method": "a", "count": 2, "p50_ms": 1000.0, "max_ms": 2000.0,
    }  # fmt: skip
    (tmp_path / "c.yaml").write_text("cassette: 1\n")
    done = stats(str(tmp_path))
    assert done.returncode == 2
    assert "c.yaml" in done.stderr
    assert "→  a " in done.stdout


def test_where_no_cassette_could_be_read_there_is_no_table(tmp_path: Path) -> None:
    done = stats(str(tmp_path / "missing.yaml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing.yaml: no such file" in done.stderr
