"""The folder of a recording: complete or missing at any time, and recovered from what an interrupted run has left."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import text_line
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.recording import HEADER, TRAFFIC, Child, RunHeader, read_header
from ext_recorder.cassette.writer import Writer
from ext_recorder.errors import CassetteError, CassetteInUse, UsageError
from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.reader import open_document
from ext_recorder.http.writer import Writer as TrafficWriter
from ext_recorder.run.folder import STARTED, UNKNOWN, RecordingFolder, recover

if TYPE_CHECKING:
    from pathlib import Path

ENDED = RunHeader(("host", "eval.yaml"), "1.0", "2026-11-23T10:00:00Z", 2.5, 0)
BEGUN = ENDED._replace(seconds=0.0, exit=UNKNOWN, children=(Child("web"), Child("web-2")))


def traffic(folder: Path, uris: tuple[str, ...], *, end: bool = True) -> Path:
    """Write HTTP traffic into a folder, and return the file. A URI with "?" has no response."""
    writer = TrafficWriter(folder / TRAFFIC)
    writer.head({"recorder": "1.0", "bindings": {}})
    for number, uri in enumerate(uris):
        interaction = Interaction("GET", uri, time=float(number), elapsed=0.1)
        interaction.status, interaction.reason, interaction.body = 200, "OK", Body(b"x" * 100)
        if "?" in uri:
            interaction.error = {"type": "GaveUp", "errno": None, "message": "the child did not wait for an answer"}
            interaction.status, interaction.body = 0, None
        writer.append(interaction)
    if end:
        writer.finish({"redacted": []}, [])
        return folder / TRAFFIC
    os.close(writer._fd)
    return folder / f"{TRAFFIC}.partial"


def session(folder: Path, name: str, lines: tuple[str, ...], *, end: bool = True) -> Path:
    """Write a child's cassette."""
    writer = Writer(folder / "children" / f"{name}.yaml", Header("raw", "ndjson", command=("server",)))
    writer.append([text_line("out", 0.1, line.encode()) or b"" for line in lines])
    if end:
        writer.finish()
    writer.close()
    return folder / "children" / f"{name}.yaml"


def record(path: Path, uri: str) -> None:
    folder = RecordingFolder(str(path))
    traffic(folder.begin(BEGUN), (uri,))
    folder.finish(ENDED)


def uris(path: Path) -> list[str]:
    document = open_document(path / TRAFFIC)
    assert document.file is not None
    with document.file as file:
        return [interaction.uri for _, interaction in file]


def interrupted(path: Path) -> RecordingFolder:
    """Return a folder whose recorder has ended before its end."""
    folder = RecordingFolder(str(path))
    folder.begin(BEGUN)
    os.close(folder._lock)
    return folder


def test_the_folder_is_there_with_its_header_only_when_it_is_complete(tmp_path: Path) -> None:
    folder = RecordingFolder(str(tmp_path / "a" / "rec"))
    partial = folder.begin(BEGUN)
    traffic(partial, ("http://x/1",))
    assert not RecordingFolder(str(folder.path)).exists
    assert read_header(partial, STARTED).command == ENDED.command
    folder.finish(ENDED)
    assert folder.exists
    assert folder.header() == ENDED
    assert sorted(path.name for path in folder.path.parent.iterdir()) == ["rec"]
    assert sorted(path.name for path in folder.path.iterdir()) == [HEADER, TRAFFIC]


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match="expected the folder of a recording"):
        _ = RecordingFolder(str(tmp_path)).exists


def test_two_recorders_of_one_folder_exclude_each_other(tmp_path: Path) -> None:
    first = RecordingFolder(str(tmp_path / "rec"))
    first.begin(BEGUN._replace(command=("mcpchecker", "check")))
    with pytest.raises(
        CassetteInUse, match=r"rec: another run is recording in \S+/rec\.partial: mcpchecker check; wait"
    ):
        RecordingFolder(str(tmp_path / "rec")).begin(BEGUN)
    with pytest.raises(CassetteInUse):
        recover(tmp_path / "rec.partial", tmp_path / "rec")


@pytest.mark.parametrize("has_older", [True, False])
def test_a_recorder_that_is_killed_at_any_step_of_the_end_leaves_a_complete_recording(
    tmp_path: Path, has_older: bool
) -> None:
    for step in count(1):
        path = tmp_path / str(step) / "rec"
        if has_older:
            record(path, "http://x/old")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                folder = RecordingFolder(str(path))
                traffic(folder.begin(BEGUN), ("http://x/new",))
                left = [step]

                def kill(event: str, _: tuple[object, ...], left: list[int] = left) -> None:
                    if event in {"open", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}:
                        left[0] -= 1
                        if not left[0]:
                            os.kill(os.getpid(), signal.SIGKILL)

                sys.addaudithook(kill)
                folder.finish(ENDED)
                code = 0
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status in {0, -signal.SIGKILL}
        folder = RecordingFolder(str(path))
        is_complete = folder.exists  # completes the last step
        if folder.partial.exists():  # killed before its header was written
            recover(folder.partial, path, replace=True)
            assert folder.header().recovered
        else:
            assert is_complete
            assert folder.header() == ENDED
        assert uris(path) == ["http://x/new"]
        record(path, "http://x/again")
        assert sorted(entry.name for entry in path.parent.iterdir()) == ["rec"]
        if status == 0:
            assert step > 4
            break


def test_what_an_interrupted_recording_left_is_kept_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "rec"
    for number in (1, 2):
        traffic(interrupted(path).partial, (f"http://x/{number}",), end=False)
        record(path, "http://x/whole")
        assert uris(path) == ["http://x/whole"]
    recover(tmp_path / "rec.partial.2", tmp_path / "second")
    assert uris(tmp_path / "second") == ["http://x/2"]
    interrupted(path)
    record(path, "http://x/whole")  # nothing was recorded, so nothing is kept
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["rec", "rec.partial.1", "second"]


def test_recover_keeps_what_is_complete_and_lists_what_is_missing(tmp_path: Path) -> None:
    partial = interrupted(tmp_path / "rec").partial
    file = traffic(partial, ("http://x/1", "http://x/2", "http://x/3"), end=False)
    file.write_bytes(file.read_bytes()[:-40])
    session(partial, "web", ("hello",))
    session(partial, "web-3", ("cut",), end=False)
    session(partial, "web-2", ("other",))
    session(partial, "shim", ("a",))
    session(partial, "shim-2", (), end=False)
    lines = recover(partial, tmp_path / "rec")
    assert lines[0] == f"{tmp_path / 'rec'}: 2 HTTP interactions and 4 sessions of children kept"
    text = "\n".join(lines)
    for missing in ("the exit code", "children/web-3.yaml after", "children/shim-2.yaml: holds no complete event"):
        assert missing in text
    header = RecordingFolder(str(tmp_path / "rec")).header()
    assert (header.command, header.exit) == (ENDED.command, UNKNOWN)
    assert "children/web-3.yaml" in header.recovered
    assert [(child.name, child.cassettes) for child in header.children] == [
        ("shim", ("children/shim.yaml",)),
        ("web", ("children/web.yaml", "children/web-3.yaml")),
        ("web-2", ("children/web-2.yaml",)),
    ]
    assert header.endpoints == {"http://x": {"requests": 2}}
    assert uris(tmp_path / "rec") == ["http://x/1", "http://x/2"]
    assert not partial.exists()


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("kept", [("http://x/1", "http://x/2?", "http://x/3"), ()])
def test_recover_removes_the_requests_that_waited_for_a_response_at_the_end(
    tmp_path: Path, end: bool, kept: tuple[str, ...]
) -> None:
    partial = interrupted(tmp_path / "rec").partial
    traffic(partial, (*kept, "http://x/4?", "http://x/5?"), end=end)
    if end:
        (partial / TRAFFIC).rename(partial / f"{TRAFFIC}.partial")
    lines = recover(partial, tmp_path / "rec")
    assert lines[0].endswith(f": {len(kept)} HTTP interactions kept")
    assert "missing: the responses to 2 requests" in lines
    assert uris(tmp_path / "rec") == list(kept)


def test_recover_of_children_alone_makes_empty_http_traffic(tmp_path: Path) -> None:
    for name, cut in (("no head", 0), ("head", 10_000), ("begun", 140)):
        partial = interrupted(tmp_path / name).partial
        file = traffic(partial, ("http://x/1",) if name == "begun" else (), end=False)
        file.write_bytes(file.read_bytes()[:cut])
        session(partial, "web", ("hello",))
        assert recover(partial, tmp_path / name)[0].endswith("0 HTTP interactions and 1 session of children kept")
        assert uris(tmp_path / name) == []


def test_recover_refuses_what_is_not_an_interrupted_recording(tmp_path: Path) -> None:
    record(tmp_path / "rec", "http://x/1")
    partial = interrupted(tmp_path / "rec").partial
    with pytest.raises(UsageError, match="exists already"):
        recover(partial, tmp_path / "rec")
    with pytest.raises(UsageError, match="a complete recording, nothing to recover"):
        recover(tmp_path / "rec", tmp_path / "rec")
    with pytest.raises(CassetteError, match="nothing was recorded yet"):
        recover(partial, tmp_path / "other")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"expected the folder of an interrupted recording, with recording\.yaml"):
        recover(tmp_path / "empty", tmp_path / "other")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(UsageError, match="replaces nothing else"):
        recover(partial, tmp_path / "mine", replace=True)
