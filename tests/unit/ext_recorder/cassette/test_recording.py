"""Header of a recording: text and back, and files of other forms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.recording import (
    HEADER,
    TRAFFIC,
    Child,
    RunHeader,
    change_header,
    encode_header,
    files_of,
    is_recording,
    opened,
    read_header,
    with_sessions,
)
from ext_recorder.errors import CassetteError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHILD = Child("shell", ["ext-shell"], ["children/shell.yaml", "children/shell-2.yaml"], [0.25, 1.5])
RUN = RunHeader(("host", "ev\u00e4l: #1"), "0.1.0", "2026-11-23T16:00:00Z", 2.5, "SIGTERM", ("eval.yaml",), (CHILD,))


def test_a_header_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert not is_recording(tmp_path)
    (tmp_path / HEADER).write_text(encode_header(RUN))
    read = read_header(tmp_path)
    assert is_recording(tmp_path)
    assert read._replace(children=()) == RUN._replace(children=())
    (child,) = read.children
    assert (child.name, child.command, child.cassettes) == (CHILD.name, CHILD.command, CHILD.cassettes)
    assert list(child.sessions()) == [("children/shell.yaml", 0.25), ("children/shell-2.yaml", 1.5)]


def test_servers_on_loopback_are_one_child_at_any_port(tmp_path: Path) -> None:
    servers = [Child(f"mcp-127.0.0.1-{port}", (), [f"children/{port}.yaml"], [1.0]) for port in (40001, 40002)]
    (tmp_path / HEADER).write_text(encode_header(RUN._replace(children=(*servers, CHILD))))
    parts = opened(tmp_path).parts
    assert [part.name for part in parts] == ["mcp-127.0.0.1", "mcp-127.0.0.1", "shell", "shell"]
    assert [part.started for part in parts] == [1.0, 1.0, 0.25, 1.5]


def test_the_time_of_a_start_may_be_unknown(tmp_path: Path) -> None:
    (tmp_path / HEADER).write_text("recording: 1\nchildren: [{name: a, cassettes: [children/a.yaml], started: [x]}]\n")
    (child,) = read_header(tmp_path).children
    assert list(child.sessions()) == [("children/a.yaml", None)]


def test_the_files_of_a_recording_are_those_that_exist(tmp_path: Path) -> None:
    (tmp_path / HEADER).write_text(encode_header(RUN))
    (tmp_path / "children").mkdir()
    for name in ("children/shell-2.yaml", "children/other.yaml", TRAFFIC):
        (tmp_path / name).touch()
    assert files_of(tmp_path) == [tmp_path / "children/shell-2.yaml", tmp_path / TRAFFIC]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("recording: 2\n", "expected `recording: 1`"),
        ("- a\n", "expected `recording: 1`"),
        ("{", "cannot be read: while parsing"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / HEADER).write_text(text)
    with pytest.raises(CassetteError, match=problem):
        read_header(tmp_path)


def test_further_sessions_follow_those_of_the_same_command() -> None:
    recorded = (Child("a", ("x",), ("a.yaml",), (0.5,)), Child("b"))
    new = (Child("a", ("x",), ("a-2.yaml",)), Child("b", ("y",), ("b.yaml",)), Child("a", ("z",), ("a-3.yaml",)))
    joined = [(child.name, child.command, child.cassettes) for child in with_sessions(recorded, new)]
    assert joined == [
        ("a", ("x",), ("a.yaml", "a-2.yaml")),
        ("b", ("y",), ("b.yaml",)),
        ("a", ("z",), ("a-3.yaml",)),
    ]


def test_a_change_concerns_values_and_comments(tmp_path: Path) -> None:
    header = tmp_path / HEADER
    text = f"{encode_header(RUN)}rules:  # ours\n# a UUID: recorded abc\n- mask: '@uuid'\n"
    header.write_text(text)

    def without(secret: str) -> Callable[[object], object]:
        return lambda value: json.loads(json.dumps(value).replace(secret, "*"))

    change_header(tmp_path, without("nothing"), write=True)
    change_header(tmp_path, without("abc"), write=False)
    assert header.read_text() == text
    change_header(tmp_path, without("abc"), write=True)
    assert header.read_text() == text.replace("abc", "*")
    change_header(tmp_path, without("host"), write=True)
    assert read_header(tmp_path).command == ("*", RUN.command[1])
    assert read_header(tmp_path).rules == [{"mask": "@uuid"}]
