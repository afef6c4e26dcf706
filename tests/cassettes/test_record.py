"""`make cassettes`: what it records, and what it says where it can't."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cassettes import record
from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from tests.live.cluster import NoCluster

if TYPE_CHECKING:
    from pathlib import Path

COMMITTED = record.FOLDER


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    return tmp_path


def answers(path: Path) -> list[object]:
    """The results of operations; the manifest is another matter."""
    with Reader(path) as reader:
        said = [json.loads(event.payload) for event in reader if isinstance(event, Data) and event.kind == "out"]
    return [message for message in said if "operations" not in message.get("result", {})]


def test_a_session_that_needs_no_cluster_is_recorded_as_it_was(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record.main(["kubernetes/contexts"]) == 0
    assert "contexts.yaml" in capsys.readouterr().out
    recorded = folder / "kubernetes" / "contexts.yaml"
    assert answers(recorded) == answers(COMMITTED / "kubernetes" / "contexts.yaml")


def test_without_a_cluster_sessions_are_left_out_with_the_reason(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def none(*args: object) -> None:
        asked.append(args)
        raise NoCluster("no cluster: no Go")

    monkeypatch.setattr(record, "FoundCluster", none)
    assert record.main(["kubernetes/create-pod", "kubernetes/objects"]) == 0
    assert capsys.readouterr().out == (
        "kubernetes/create-pod: left out: no cluster: no Go\nkubernetes/objects: left out: no cluster: no Go\n"
    )
    assert len(asked) == 1
    assert list(folder.iterdir()) == []


def test_an_unknown_session_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert record.main(["kubernetes/nothing"]) == 2
    assert "kubernetes/nothing: no such session; there are shell/eval-task" in capsys.readouterr().err
