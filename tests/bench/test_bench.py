"""The bench itself, in its smallest size. Nothing here asks how fast anything is."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.bench.__main__ import main, measured
from tests.bench.building import build, find_compiler
from tests.bench.clusters import Cluster
from tests.bench.evaluation import judge
from tests.bench.figures import FIGURES, Figure, Limit
from tests.bench.harness import Bench, BenchError, NotHere
from tests.bench.load_driver import drive
from tests.bench.peers.recorders import ABSENT
from tests.bench.report import summary
from tests.bench.scale import TINY
from tests.bench.traffic import write_requests
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
    "peers.mitmproxy",
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
        if each.figure.name.startswith(OTHER_PEERS) or each.figure.name == "start.executable":
            assert each.verdict == "not measured"
            assert each.reason
            continue
        assert each.value is not None, each.figure.name
        assert each.ratio is not None, each.figure.name
        assert 0 < each.value.least <= each.value.median <= each.value.most < math.inf, each.figure.name
        assert 0 < each.ratio.median < math.inf, each.figure.name


def test_a_wrong_answer_is_no_measurement(bench: Bench, tmp_path: Path) -> None:
    requests = write_requests(tmp_path / "asked", 3)
    others = write_requests(tmp_path / "others", 3, first_id=7)
    for there in (bench, in_c(tmp_path)):
        with pytest.raises(BenchError, match="answer 1 is not the expected one"):
            drive(there, there.programs.echo, requests, others, cores=())


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
