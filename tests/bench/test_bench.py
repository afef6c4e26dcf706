"""The bench itself, in its smallest size. Nothing here asks how fast anything is."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.bench.__main__ import chosen, main, measured
from tests.bench.building import build, find_compiler
from tests.bench.clusters import Cluster
from tests.bench.driving import drive
from tests.bench.figures import FIGURES, Figure, Limit
from tests.bench.harness import Bench, BenchError, NotHere
from tests.bench.http_layer import peak_mib
from tests.bench.judging import judge
from tests.bench.peers.recorders import ABSENT
from tests.bench.report import as_json, conditions, summary, table
from tests.bench.scale import FULL, QUICK, TINY
from tests.bench.spawning import seconds_to_exit, seconds_to_line
from tests.bench.traffic import INITIALIZE, LIVE_WORKDIR, MESSAGE_BYTES, answer, request, write_requests
from tests.live.client import Client
from tests.support.fake_kubernetes import FakeApi

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


# Does what kubectl does for the bench, by way of the extension that is there.
KUBECTL = """#!/bin/sh
for file; do :; done
cd "$(dirname "$file")" && exec {python} -m ext_kubernetes call apply "{{\\"file\\": \\"$(basename "$file")\\"}}"
"""


# Records nothing, and plays what mcp-rec has recorded.
MCP_REC = """#!{python}
import json, os, sys
command, *rest = sys.argv[1:]
if command == "--help":
    raise SystemExit
file, *rest = rest
if command == "record":
    os.execvp(rest[2], rest[2:])  # behind -o FILE --
answers = [entry["msg"] for entry in map(json.loads, open(file)) if entry["dir"] == "server->client"]
for line, answer in zip(sys.stdin, answers):
    print(json.dumps(answer | dict(id=json.loads(line)["id"])), flush=True)
"""

OTHER_PEERS = (
    "peers.sdk",
    "peers.mcp-cassette",
    "peers.mcp-vcr",
    "peers.mcpsnoop",
    *(f"peers.{name}" for name in ABSENT),
)


@contextmanager
def fake_cluster(directory: Path) -> Iterator[Cluster]:
    with FakeApi() as api:
        kubeconfig = api.kubeconfig(directory / "kubeconfig")

        def requests() -> float:
            Client(kubeconfig).get("/api/v1/namespaces")  # a server is never asked nothing
            return len(api.asked)

        yield Cluster(kubeconfig, requests)


def no_cluster(_: object) -> NoReturn:
    raise NotHere("no cluster: no Go")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    programs = replace(build(tmp_path, ""), kubectl="")
    return Bench(TINY, programs, tmp_path, lambda _: None, no_cluster)


def in_c(directory: Path) -> Bench:
    kubectl = directory / "kubectl"
    kubectl.write_text(KUBECTL.format(python=sys.executable))
    kubectl.chmod(0o755)
    peer = directory / "mcp-rec"
    peer.write_text(MCP_REC.format(python=sys.executable))
    peer.chmod(0o755)
    programs = replace(build(directory, find_compiler()), kubectl=str(kubectl), with_peers=True, peers=str(directory))
    return Bench(TINY, programs, directory, lambda _: None, lambda _: fake_cluster(directory))


def nothing(_: Bench) -> Mapping[str, list[float]]:
    return {}


def figure(limit: Limit | None = None) -> Figure:
    return Figure("some.figure", "in words", "ms", nothing, "ours ms", "theirs ms", limit)


# --- Measuring ---


@pytest.mark.skipif(not find_compiler(), reason="no C compiler here; the next test has the rest")
def test_every_figure_is_measured_with_programs_in_c(tmp_path: Path) -> None:
    with in_c(tmp_path) as there:
        found = measured(there, FIGURES)
    assert [each.figure for each in found] == list(FIGURES)
    for each in found:
        if each.figure.name.startswith(OTHER_PEERS):
            assert each.verdict == "not measured"
            assert each.reason
            continue
        assert each.value is not None, each.figure.name
        assert each.ratio is not None, each.figure.name
        assert 0 < each.value.least <= each.value.median <= each.value.most < math.inf, each.figure.name
        assert 0 < each.ratio.median < math.inf, each.figure.name


def test_without_a_c_compiler_the_figures_of_c_programs_are_absent_and_no_others(bench: Bench) -> None:
    found = measured(bench, chosen(["call", "record"]))
    absent = {each.figure.name for each in found if each.value is None or each.beside is None}
    assert absent == {"record.p50", "record.p99", "record.python", "record.direct", "record.large"}
    assert "for want of a C compiler" in conditions(bench)


def test_without_a_cluster_or_kubectl_figures_are_absent_with_the_reason(bench: Bench, tmp_path: Path) -> None:
    found = measured(bench, chosen(["kubernetes"]))
    assert {each.reason for each in found if each.value is None} == {"no cluster: no Go", "no kubectl in PATH"}
    assert [each.figure.name for each in found if each.value is not None] == [
        "kubernetes.manifest",
        "kubernetes.configured",
    ]
    assert summary(found).splitlines()[1:] == ["no cluster: no Go", "no kubectl in PATH"]


def test_other_recorders_are_measured_where_it_is_asked_for_and_those_that_can_not_be_are_named(bench: Bench) -> None:
    found = measured(bench, chosen(["peers"]))
    assert {each.reason for each in found} == {
        "other recorders: measured with --peers",
        *(f"{name}: {reason}" for name, reason in ABSENT.items()),
    }
    assert "npm has no such package" in table(found, bench)


def test_a_compiler_that_fails_is_none(tmp_path: Path) -> None:
    assert build(tmp_path, "false").copy_in_c is None


def test_candidates_take_turns_and_a_value_is_the_median_of_a_round(bench: Bench) -> None:
    bench = Bench(replace(TINY, rounds=2), bench.programs, bench.directory, lambda _: None)
    turns: list[str] = []

    def candidate(name: str) -> Mapping[str, float]:
        turns.append(name)
        return {"count": len(turns)}

    both = {"a": lambda: candidate("a"), "b": lambda: candidate("b")}
    found = bench.take_turns(both, times=3, warm_up=False)
    assert turns == ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b", "b", "a"]
    assert found == {"a count": [4, 9], "b count": [3, 10]}


def test_settings_of_python_in_the_environment_reach_no_candidate(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    there = Bench(TINY, bench.programs, bench.directory, lambda _: None)
    assert not [name for name in there.environment if name.startswith("PYTHON")]
    assert "PATH" in there.environment


def test_a_wrong_answer_is_no_measurement(bench: Bench, tmp_path: Path) -> None:
    requests = write_requests(tmp_path / "asked", 3)
    others = write_requests(tmp_path / "others", 3, first_id=7)
    for there in (bench, in_c(tmp_path)):
        with pytest.raises(BenchError, match="answer 1 is not the expected one"):
            drive(there, there.programs.echo, requests, others, cores=())


def test_a_program_that_ends_early_or_badly_is_no_measurement(bench: Bench, tmp_path: Path) -> None:
    requests = write_requests(tmp_path / "asked", 3)
    one_line = [bench.programs.python, "-c", "import os\nline = input()\nos.close(0)\nprint(line)"]
    failing = [
        bench.programs.python,
        "-c",
        "import os\nwhile d := os.read(0, 9999): os.write(1, d)\nraise SystemExit(3)",
    ]
    for there in (bench, in_c(tmp_path)):
        with pytest.raises(BenchError, match="ended after 1 of 3 answers"):
            drive(there, one_line, requests, None, cores=())
        with pytest.raises(BenchError, match="exit code 3, expected 0"):
            drive(there, failing, requests, None, cores=())


def test_a_start_that_fails_is_no_measurement(bench: Bench) -> None:
    with pytest.raises(BenchError, match="exit code 4, expected 0"):
        seconds_to_exit(bench, [bench.programs.python, "-c", "raise SystemExit(4)"])
    with pytest.raises(BenchError, match="ended without a word"):
        seconds_to_line(bench, [bench.programs.python, "-c", "pass"], INITIALIZE, b"{")
    with pytest.raises(BenchError, match="found b'o'"):
        seconds_to_line(bench, [bench.programs.python, "-c", "print('other')"], INITIALIZE, b"{")


def test_peak_memory_does_not_count_the_memory_of_the_bench(bench: Bench) -> None:
    held = bytearray(b"." * (128 * 1024 * 1024))
    assert 1 < peak_mib(bench, [bench.programs.python, "-S", "-c", "pass"]) < 64
    assert held
    with pytest.raises(BenchError, match="exit code 4, expected 0"):
        peak_mib(bench, [bench.programs.python, "-S", "-c", "raise SystemExit(4)"])


def test_messages_have_the_size_that_is_told() -> None:
    for say in (request, answer):
        for number in (0, 99_999):
            message = say(number, 1_000_000 + number, LIVE_WORKDIR)
            assert json.loads(message)["id"] == 1_000_000 + number
            assert abs(len(message) - MESSAGE_BYTES) < 10


# --- Judging and reporting ---


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        (None, ""),
        (Limit("value", "less", 20), "met"),
        (Limit("value", "less", 19), "MISSED"),
        (Limit("value", "more", 20), "met"),
        (Limit("value", "more", 21), "MISSED"),
        (Limit("ratio", "less", 2), "met"),
        (Limit("ratio", "less", 1.9), "MISSED"),
        (Limit("ratio", "less", 3, goal=2), "goal"),
        (Limit("ratio", "less", 3, goal=1), "met"),
    ],
)
def test_a_limit_is_about_the_median(limit: Limit | None, verdict: str) -> None:
    found = judge(figure(limit), {"ours ms": [20, 10, 99], "theirs ms": [10, 10, 11]})
    assert found.verdict == verdict


def test_a_ratio_is_that_of_each_round() -> None:
    found = judge(figure(), {"ours ms": [10, 40, 90], "theirs ms": [10, 20, 30]})
    assert found.ratio is not None
    assert (found.ratio.least, found.ratio.median, found.ratio.most) == (1, 2, 3)


@pytest.mark.parametrize("measured", [{}, {"ours ms": [0.0], "theirs ms": [1.0]}, {"ours ms": [1.0]}])
def test_what_a_system_does_not_tell_is_not_measured_and_no_miss(measured: Mapping[str, list[float]]) -> None:
    found = judge(figure(Limit("value", "less", 1)), measured)
    assert found.verdict == "not measured"
    assert summary([found]) == "0 of 1 limits are met; not measured here: some.figure"


def test_the_table_shows_value_ratio_limit_and_verdict(bench: Bench) -> None:
    limit = Limit("ratio", "less", 3, goal=1.5)
    text = table([judge(figure(limit), {"ours ms": [20, 22, 24], "theirs ms": [10, 11, 12]})], bench)
    row = text.splitlines()[-1].split("  ")
    assert [cell.strip() for cell in row if cell] == [
        *("some.figure", "in words", "22 (20..24) ms", "11 theirs", "2 (2..2)", "ratio <= 3 (goal 1.5)", "met"),
    ]


def test_every_name_is_there_once_and_sizes_are_told(bench: Bench) -> None:
    assert len({each.name for each in FIGURES}) == len(FIGURES)
    groups = {"start", "call", "record", "replay", "parse", "http", "layer", "kubernetes", "peers"}
    assert {each.name.partition(".")[0] for each in FIGURES} == groups
    assert "beside after 10" in json.dumps(as_json([judge(each, {}) for each in FIGURES], bench))


# --- The command ---


def test_the_command_measures_what_is_named_and_writes_it_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.bench.__main__.FULL", TINY)
    file = tmp_path / "found.json"
    assert main(["--only", "start.manifest", "--json", str(file), "--rounds", "2"]) == 0
    out, err = capsys.readouterr()
    assert "start.manifest" in out
    assert err == ""
    found = json.loads(file.read_text())
    assert [each["name"] for each in found["figures"]] == ["start.manifest"]
    assert found["scale"]["rounds"] == 2
    assert found["figures"][0]["value"]["median"] > 0


@pytest.mark.parametrize("arguments", [["--only", "speed"], ["--rounds", "0"], ["--rounds", "many"]])
def test_a_wrong_command_line_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert arguments[1] in capsys.readouterr().err


def test_the_sizes_of_the_issue_are_those_of_the_full_bench() -> None:
    assert (FULL.calls, FULL.few, FULL.many, FULL.parsed) == (100_000, 1_000, 100_000, 100_000)
    assert QUICK.many == FULL.many
