"""`shim`: an executable in the place of a child."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.record.config import MODES
from ext_recorder.tools import shim
from tests.support.host import PATIENCE_S, HostProcess
from tests.support.recorder_process import ECHO, RECORDER, messages, run

if TYPE_CHECKING:
    from pathlib import Path

LINE = b'{"jsonrpc":"2.0","id":1,"method":"a"}\n'
# Quotation marks, spaces, a dollar, a new line: what a shell could take for its own.
AWKWARD = 'it\'s a "dir" $HOME `x`\n\\ é'


def write(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [*RECORDER, "shim", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=cwd)


def play(
    path: Path, *arguments: str, cwd: Path | None = None, stdin: bytes = LINE
) -> subprocess.CompletedProcess[bytes]:
    command = [str(path), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False, cwd=cwd)


def test_a_shim_records_at_first_and_replays_from_then_on(tmp_path: Path) -> None:
    file, cassette = tmp_path / "child", tmp_path / "session.yaml"
    assert write(str(file), str(cassette), "--", *ECHO).returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    first = play(file)
    assert (first.stdout, first.returncode) == (LINE, 0)
    before = cassette.read_bytes()
    assert play(file).stdout == LINE
    assert cassette.read_bytes() == before


@pytest.mark.parametrize("mode", MODES)
def test_what_it_will_do_is_told(mode: str, tmp_path: Path) -> None:
    done = write("--mode", mode, "child", "c.yaml", "--", *ECHO, cwd=tmp_path)
    assert done.stdout == f"child, with {tmp_path}/c.yaml: {MODES[mode].help}\n"


def test_what_the_host_passes_goes_to_the_command(tmp_path: Path) -> None:
    program = "import sys; print(sys.argv[1:])"
    write(str(tmp_path / "child"), str(tmp_path / "c.yaml"), "--", sys.executable, "-c", program, "own")
    assert play(tmp_path / "child", "--mode", "it's").stdout == b"['own', '--mode', \"it's\"]\n"


def test_awkward_names_are_quoted(tmp_path: Path) -> None:
    folder = tmp_path / AWKWARD
    folder.mkdir()
    program = "import sys; print(ascii(sys.argv[1:])); print(sys.stdin.read(), end='')"
    write(str(folder / "child"), str(folder / "c.yaml"), "--", sys.executable, "-c", program, AWKWARD)
    assert play(folder / "child").stdout == f"{[AWKWARD]!a}\n".encode() + LINE
    assert (folder / "c.yaml").exists()


def test_a_shim_works_in_any_folder_and_imports_nothing_from_there(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    for name in ("ext_recorder", "os", "select", "signal"):
        (tmp_path / "there" / f"{name}.py").write_text("raise SystemExit('imported from the working directory')")
    assert write("child", "session.yaml", "--", *ECHO, cwd=tmp_path / "here").returncode == 0
    assert play(tmp_path / "here" / "child", cwd=tmp_path / "there").stdout == LINE
    assert messages(tmp_path / "here" / "session.yaml", "out") == [LINE[:-1]]


def test_a_command_that_is_in_path_is_written_by_its_full_path(tmp_path: Path) -> None:
    write(str(tmp_path / "child"), str(tmp_path / "c.yaml"), "--", "cat")
    command = [str(tmp_path / "child")]
    done = subprocess.run(
        command, input=LINE, capture_output=True, timeout=PATIENCE_S, check=False, env={"PATH": "/none"}
    )
    assert done.stdout == LINE


def test_a_shim_without_a_command_only_replays(tmp_path: Path) -> None:
    file, cassette = tmp_path / "child", tmp_path / "session.yaml"
    done = write(str(file), str(cassette))
    said = f"ext-recorder: {file} can only replay {cassette}, which does not exist yet\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file}, with {cassette}: replay only\n", said)
    missing = play(file, "what a host passes")
    assert missing.returncode == 2
    assert b"no such file" in missing.stderr
    run(cassette, ECHO, stdin=LINE)
    assert play(file).stdout == LINE
    assert write(str(file), str(cassette)).stderr == ""


def test_mode_none_never_records(tmp_path: Path) -> None:
    file, cassette = tmp_path / "child", tmp_path / "session.yaml"
    assert write("--mode", "none", str(file), str(cassette), "--", *ECHO).returncode == 0
    assert play(file).returncode == 2
    assert not cassette.exists()


def test_what_a_host_passes_is_compared(tmp_path: Path) -> None:
    program = "import sys; print(sys.argv[1:])"
    recording, cassette = tmp_path / "child", tmp_path / "session.yaml"
    write(str(recording), str(cassette), "--", sys.executable, "-c", program)
    assert play(recording, "get", stdin=b"").stdout == b"['get']\n"
    replaying, without = tmp_path / "replaying", tmp_path / "without"
    write("--mode=none", str(replaying), str(cassette), "--", sys.executable, "-c", program)
    write(str(without), str(cassette))
    for each in (recording, replaying, without):
        assert (play(each, "get", stdin=b"").stdout, play(each, "get", stdin=b"").returncode) == (b"['get']\n", 0)
        other = play(each, "list", stdin=b"")
        assert (other.stdout, other.returncode) == (b"", 2)
        assert b"recorded from another command: python" in other.stderr
        assert b"get" in other.stderr
        assert b"list; give each set of arguments a cassette of its own ({args} in its name)" in other.stderr
    write("--accept-command", str(without), str(cassette))
    assert play(without, "list", stdin=b"").stdout == b"['get']\n"


def test_a_shim_keeps_a_cassette_for_each_set_of_arguments(tmp_path: Path) -> None:
    program = "import sys; print(sys.argv[1:], sys.stdin.read().strip())"
    file, name = tmp_path / "helper", tmp_path / "cassettes" / "{args}.yaml"
    write(str(file), str(name), "--", sys.executable, "-c", program, "fixed")
    calls = [(), ("get",), ("list",), ("get", "-a"), ("get -a",), ("a/b",), ("a_b",), ("a", "b"), ("",), ("none",)]
    first = [play(file, *call, stdin=b"ada\n").stdout for call in calls]
    cassettes = sorted(each.name for each in (tmp_path / "cassettes").iterdir())
    assert {"none.yaml", "get.yaml", "list.yaml", "get_-a.yaml", "a_b.yaml"} <= set(cassettes)
    assert len(cassettes) == len(calls)
    write("--mode=none", str(file), str(name), "--", "/no/such/place/python", "-c", program, "fixed")
    assert [play(file, *call, stdin=b"ada\n").stdout for call in calls] == first
    never = play(file, "erase")
    assert (never.returncode, b"erase.yaml: no such file" in never.stderr) == (2, True)


def test_a_shim_keeps_a_cassette_for_each_input(tmp_path: Path) -> None:
    program = "import sys; data = sys.stdin.buffer.read(); print(sys.argv[1:], len(data), data[:9])"
    file, name = tmp_path / "helper", tmp_path / "cassettes" / "{args}-{stdin}.yaml"
    write(str(file), str(name), "--", sys.executable, "-c", program)
    inputs = [b"", b"host=a\n", b"host=b\n", b"\0\xff\n", b"password=Wq7Rk2xx\n"]
    first = [play(file, "get", stdin=data).stdout for data in inputs]
    assert first[1] == b"['get'] 7 b'host=a\\n'\n"
    assert len(list((tmp_path / "cassettes").iterdir())) == len(inputs)
    write("--mode=none", str(file), str(name), "--", sys.executable, "-c", program)
    assert [play(file, "get", stdin=data).stdout for data in inputs] == first
    assert play(file, "get", stdin=b"password=another1\n").stdout == first[-1]  # a secret makes no other name
    never = play(file, "get", stdin=b"host=c\n")
    assert (never.returncode, b"no such file" in never.stderr) == (2, True)
    assert play(file, "get", stdin=b"x" * 65_536).returncode == 2  # not recorded
    many = play(file, "get", stdin=b"x" * 65_537)
    assert b"expected at most 65536 bytes of standard input" in many.stderr


def test_options_go_along(tmp_path: Path) -> None:
    file, cassette = tmp_path / "child", tmp_path / "session.yaml"
    write("--protocol", "raw", "--bind", "data=/srv/data", str(file), str(cassette), "--", "cat")
    command = [str(file)]
    done = subprocess.run(command, input=b"/srv/data/x\n", capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.stdout == b"/srv/data/x\n"
    assert messages(cassette, "in") == [b"/tmp/data/x"]


def test_the_shim_is_replaced_by_the_recorder_which_dies_as_the_child_does(tmp_path: Path) -> None:
    program = "import os, signal; print(os.getppid(), flush=True); signal.pause()"
    write(str(tmp_path / "child"), str(tmp_path / "c.yaml"), "--", sys.executable, "-c", program)
    host = HostProcess([str(tmp_path / "child")])
    assert int(host.read_line()) == host.pid
    host.terminate()
    assert host.wait(PATIENCE_S) == -15
    host.communicate()


def test_another_file_is_not_overwritten_but_a_shim_is(tmp_path: Path) -> None:
    file = tmp_path / "child"
    file.write_text("precious")
    done = write(str(file), "c.yaml")
    assert done.returncode == 2
    assert "exists and is not a shim" in done.stderr
    assert file.read_text() == "precious"
    assert write("--force", str(file), "c.yaml").returncode == 0
    assert write(str(file), "d.yaml").returncode == 0
    assert "d.yaml" in file.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["child"]


def test_a_shim_that_would_start_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert write(str(tmp_path / "tool"), "c.yaml").returncode == 0
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    done = write(str(tmp_path / "tool"), "c.yaml", "--", "tool")
    assert done.returncode == 2
    assert "would start itself" in done.stderr


def test_a_failure_to_write_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "child"
    file.mkdir()
    with pytest.raises(UsageError, match="expected a file to write, found a folder"):
        shim.write(file, "text", force=True)
    assert [each.name for each in tmp_path.iterdir()] == ["child"]
