"""Writing a cassette: claimed, appended, renamed, and never lost or mixed."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data, Mark, mark_line, text_line
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.paths import partial_of
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recovery import recover
from ext_recorder.cassette.writer import Writer
from ext_recorder.errors import CassetteError, CassetteInUse, UsageError

if TYPE_CHECKING:
    from pathlib import Path

HEADER = Header("gevals", "ndjson", command=("ext-shell",), recorder="0.1.0")
EXIT = mark_line("exit", 2, 0)


def line(text: str, time: float = 1) -> bytes:
    made = text_line("in", time, text.encode())
    assert made is not None
    return made


def read(path: Path) -> list[Data | Mark]:
    with Reader(path) as reader:
        return list(reader)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "session.yaml"


def test_a_cassette_gets_its_name_at_the_end(path: Path) -> None:
    with Writer(path, HEADER) as writer:
        writer.append([line("a"), line("b")])
        assert not path.exists()
        assert partial_of(path).exists()
        writer.append([EXIT])
        writer.finish(("bearer",))

    assert not partial_of(path).exists()
    with Reader(path) as reader:
        assert reader.header == HEADER
        assert list(reader) == [Data("in", 1, b"a"), Data("in", 1, b"b"), Mark("exit", 2, 0)]
        assert reader.redacted == ("bearer",)


def test_what_was_appended_is_in_the_file_at_once(path: Path) -> None:
    with Writer(path, HEADER) as writer:
        writer.append([line("a")])

        assert partial_of(path).read_bytes().endswith(line("a"))


def test_an_older_cassette_stays_until_the_new_one_is_whole(path: Path) -> None:
    with Writer(path, HEADER) as writer:
        writer.append([line("old"), EXIT])
        writer.finish()
    with Writer(path, HEADER) as writer:
        writer.append([line("new")])
        assert read(path)[0] == Data("in", 1, b"old")
        writer.append([EXIT])
        writer.finish()

    assert read(path)[0] == Data("in", 1, b"new")


def test_a_second_writer_is_refused_while_the_first_lives(path: Path) -> None:
    with Writer(path, HEADER) as writer:
        with pytest.raises(CassetteInUse, match=r"session\.yaml: another recorder is writing"):
            Writer(path, HEADER)
        writer.append([EXIT])
        writer.finish()
    Writer(path, HEADER).discard()


def test_what_a_crashed_recorder_left_is_moved_aside_not_overwritten(path: Path) -> None:
    for text in ("first", "second"):
        with Writer(path, HEADER) as crashed:
            crashed.append([line(text)])

    with Writer(path, HEADER) as writer:
        assert writer.left_behind == path.with_name("session.yaml.partial.2")
        assert writer.left_behind.read_bytes().endswith(line("second"))
        assert path.with_name("session.yaml.partial.1").read_bytes().endswith(line("first"))


def test_many_writers_at_once_never_mix(path: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ext_recorder.cassette.events import mark_line, text_line\n"
        "from ext_recorder.cassette.header import Header\n"
        "from ext_recorder.cassette.writer import Writer\n"
        "from ext_recorder.errors import CassetteInUse\n"
        "path, name = Path(sys.argv[1]), sys.argv[2].encode()\n"
        "for _ in range(50):\n"
        "    try:\n"
        "        writer = Writer(path, Header('raw', 'ndjson'))\n"
        "    except CassetteInUse:\n"
        "        continue\n"
        "    for _ in range(5):\n"
        "        writer.append([text_line('in', 0, name)])\n"
        "    writer.append([mark_line('exit', 0, 0)])\n"
        "    writer.finish()\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), str(number)]) for number in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]

    events = read(path)
    assert len(events) == 6
    assert len({event.payload for event in events if isinstance(event, Data)}) == 1
    assert list(path.parent.iterdir()) == [path]


def test_a_link_in_the_place_of_the_partial_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    partial_of(path).symlink_to(victim)

    with pytest.raises(OSError, match=r"session\.yaml\.partial"):
        Writer(path, HEADER)

    assert victim.read_text() == "mine"


def test_a_line_for_which_there_is_no_room_is_taken_back(path: Path) -> None:
    program = (
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from ext_recorder.cassette.header import Header\n"
        "from ext_recorder.cassette.writer import Writer\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "writer = Writer(Path(sys.argv[1]), Header('raw', 'ndjson'))\n"
        "writer.append([b'0' * 99 + b'\\n'])\n"
        "try:\n"
        "    writer.append([b'1' * 99 + b'\\n', b'2' * 9999 + b'\\n'])\n"
        "except OSError as error:\n"
        "    print(error.errno)\n"
    )
    limit = 1000  # bytes a file may have

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(path)], capture_output=True, text=True, preexec_fn=limited, check=True
    )

    assert done.stdout.strip()
    written = partial_of(path).read_text()
    assert written.endswith("1\n")
    assert "2" * 9 not in written


# --- Recovery -------------------------------------------------------------------------------------------------------


def crashed(path: Path, *lines: bytes) -> Path:
    writer = Writer(path, HEADER)
    writer.append(list(lines))
    writer.close()
    return partial_of(path)


def test_all_but_a_torn_last_line_is_recovered(path: Path) -> None:
    partial = crashed(path, line("a"), line("b [redacted:env.T#1] [redacted:bearer#12]"), line("torn")[:-7])

    done = recover(partial)

    assert (done.path, done.events, done.dropped) == (path, 2, len(line("torn")) - 7)
    assert not partial.exists()
    with Reader(path) as reader:
        assert [event.payload for event in reader if isinstance(event, Data)] == [
            b"a",
            b"b [redacted:env.T#1] [redacted:bearer#12]",
        ]
        assert reader.redacted == ("bearer", "env.T")


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_file_cut_off_anywhere_is_recovered_or_refused(path: Path, cut: int) -> None:
    partial = crashed(path, line("a"), line("b"))
    whole = partial.read_bytes()
    partial.write_bytes(whole[:-cut])

    if cut <= len(line("b")):
        assert recover(partial).events == 1
        assert read(path) == [Data("in", 1, b"a")]
    else:
        with pytest.raises(CassetteError):
            recover(partial)
        assert partial.exists()


def test_a_session_that_was_killed_before_its_rename_is_whole(path: Path) -> None:
    partial = crashed(path, line("a"), EXIT, b"redacted: [bearer]\n")

    assert recover(partial).dropped == 0
    assert read(path) == [Data("in", 1, b"a"), Mark("exit", 2, 0)]


def test_a_cassette_that_is_there_is_not_replaced_unless_asked(path: Path) -> None:
    with Writer(path, HEADER) as writer:
        writer.append([line("old"), EXIT])
        writer.finish()
    partial = crashed(path, line("new"))

    with pytest.raises(UsageError, match="exists already"):
        recover(partial)
    assert recover(partial, path.with_name("other.yaml")).events == 1
    assert recover(crashed(path, line("newer")), replace=True).events == 1
    assert read(path) == [Data("in", 1, b"newer")]


def test_what_was_moved_aside_is_recovered_by_its_name(path: Path) -> None:
    crashed(path, line("first"))
    crashed(path, line("second"))

    assert recover(path.with_name("session.yaml.partial.1")).path == path
    assert read(path) == [Data("in", 1, b"first")]


def test_a_session_that_is_still_being_recorded_is_left_alone(path: Path) -> None:
    with Writer(path, HEADER) as writer:
        writer.append([line("a")])
        with pytest.raises(CassetteInUse):
            recover(partial_of(path))


@pytest.mark.parametrize("name", ["session.yaml", "session.yaml.part", ".partial", "session.yaml.partial.old"])
def test_what_is_not_a_cassette_is_not_recovered(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")

    with pytest.raises(CassetteError, match="not those of a recording"):
        recover(tmp_path / name)


def test_a_file_that_is_broken_in_its_middle_is_an_error_with_its_line(path: Path) -> None:
    partial = crashed(path, line("a"), b"- {t: 1, in: 'b\n", line("c"))

    with pytest.raises(CassetteError, match=r"session\.yaml\.partial:9: "):
        recover(partial)

    assert partial.exists()
    assert sorted(each.name for each in path.parent.iterdir()) == ["session.yaml.partial"]
