"""Input and output of commands: all of it, in bounded memory, without a way to get stuck."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.process.child import CommandNotStarted
from ext_sdk.core.process.output import LineSplitter, Output, Pump, start_piped
from ext_sdk.core.process.spawner import Command

if TYPE_CHECKING:
    from ext_sdk.core.process.spawner import Spawner
    from tests.unit.ext_sdk.core.process.conftest import Shell


def test_input_and_output_larger_than_any_pipe_pass_through(shell: Shell) -> None:
    data = os.urandom(3_000_000)
    child, output = shell.run_argv(["cat"], data=data, cap=4_000_000)
    assert output.data == data
    assert child.status is not None
    assert child.status.code == 0


def test_a_command_that_does_not_read_its_input_is_not_waited_for(shell: Shell) -> None:
    child, output = shell.run("exec 0<&-; echo done", data=b"x" * 1_000_000)
    assert output.text == "done\n"
    assert child.gone


def test_a_command_without_input_reads_its_end_at_once(shell: Shell) -> None:
    _, output = shell.run("cat; echo end")
    assert output.text == "end\n"


def test_empty_input_ends_at_once(shell: Shell) -> None:
    _, output = shell.run("cat; echo end", data=b"")
    assert output.text == "end\n"


def test_a_pump_stops_when_it_is_told_to_and_can_go_on(shell: Shell, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    child = shell.spawn(["bash", "-c", "echo begin; read -r line <go; echo $line"], null, writer)
    os.close(null)
    os.close(writer)
    output = Output(1000)
    pump = Pump(child, {reader: output.write})
    assert not pump.run(lambda: output.text == "begin\n")
    (tmp_path / "go").write_text("end\n")
    assert pump.run(lambda: False)
    assert output.text == "begin\nend\n"


def open_pipes() -> set[str]:
    """Return the pipes of this process, as "pipe:[INODE]"; other tests' files may be closed meanwhile."""
    links = {str(entry.readlink()) for entry in list(Path("/proc/self/fd").iterdir()) if entry.is_symlink()}
    return {link for link in links if link.startswith("pipe:")}


@pytest.mark.parametrize("data", [None, b"", b"x" * 200_000])
def test_a_command_is_started_with_pipes_for_its_streams(spawner: Spawner, tmp_path: Path, data: bytes | None) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    stdout, stderr = Output(1_000_000), Output(1000)
    command = Command(["bash", "-c", "cat; echo problem >&2"], env=dict(os.environ), directory=directory)
    child, pump = start_piped(spawner, command, stdout.write, stderr.write, data=data)
    assert pump.run(lambda: False)
    assert (stdout.data, stderr.text) == (data or b"", "problem\n")
    child.close()
    pipes = open_pipes()
    with pytest.raises(CommandNotStarted):
        start_piped(spawner, Command(["./missing"], env={}, directory=directory), stdout.write, stderr.write, data=data)
    assert open_pipes() <= pipes
    os.close(directory)


def test_an_output_that_a_stranger_holds_open_is_let_go(shell: Shell) -> None:
    """This test itself is the stranger: it keeps the writing end."""
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    child = shell.spawn(["echo", "hi"], null, writer)
    os.close(null)
    output = Output(1000)
    assert Pump(child, {reader: output.write}).run(lambda: False)
    assert output.text == "hi\n"
    os.close(writer)


class TestOutput:
    def test_everything_is_kept_up_to_the_cap(self) -> None:
        output = Output(10)
        output.write(b"01234")
        output.write(b"56789")
        assert (output.data, output.size, output.lost, output.exact) == (b"0123456789", 10, 0, True)

    def test_past_the_cap_the_end_is_kept_as_well(self) -> None:
        output = Output(10)
        output.write(b"0123456789abc")
        output.write(b"def")
        assert (output.data, output.lost) == (b"0123456789abcdef", 0)

    def test_what_is_missing_between_them_is_said(self) -> None:
        output = Output(4)
        output.write(b"head" + b"x" * 100_000 + b"tail")
        assert output.size == 100_008
        assert output.lost == 100_008 - 4 - 65_536
        assert output.text.startswith(f"head\n[... {output.lost} of 100008 bytes were not kept ...]\nxxx")
        assert output.text.endswith("tail")
        assert not output.exact

    def test_memory_stays_flat(self) -> None:
        output = Output(1000)
        for _ in range(1000):
            output.write(b"x" * 100_000)
        assert output.size == 100_000_000
        assert len(output.data) < 1000 + 65_536 + 100

    def test_bytes_that_are_no_utf_8_are_replaced_in_the_text_only(self) -> None:
        output = Output(1000)
        output.write(b"a\xffb\0c")
        assert output.text == "a\ufffdb\0c"
        assert output.data == b"a\xffb\0c"
        assert not output.exact


class TestLineSplitter:
    @pytest.mark.parametrize("size", [1, 2, 3, 100])
    def test_lines_are_the_same_however_the_bytes_come(self, size: int) -> None:
        data = "one\ntwö\r\n\nlast".encode()
        splitter = LineSplitter()
        lines = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]
        assert [*lines, *splitter.finish()] == ["one", "twö", "", "last"]
        assert splitter.finish() == []

    def test_a_line_that_is_too_long_is_cut(self) -> None:
        splitter = LineSplitter(limit=4)
        assert splitter.feed(b"0123456789") == ["0123"]
        assert splitter.feed(b"abc") == []
        assert splitter.feed(b"def\nnext\nand longer\nend") == ["next", "and "]
        assert splitter.finish() == ["end"]

    @pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
    def test_as_many_lines_are_passed_over_as_would_be_given(self, size: int) -> None:
        data = b"one\nlonger than the limit\n\r\nx\nand this too, with\nlast"
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        for turn in range(3):  # which of the pieces are passed over
            given, mixed = LineSplitter(limit=8), LineSplitter(limit=8)
            for number, piece in enumerate(pieces):
                lines = given.feed(piece)
                if number % 3 == turn:
                    assert mixed.skip(piece) == len(lines)
                else:
                    assert len(mixed.feed(piece)) == len(lines)
            assert mixed.finish() == given.finish()


class TestReadingAlong:
    @pytest.mark.parametrize("cap", [0, 1, 4, 1000])
    def test_what_is_new_is_given_once(self, cap: int) -> None:
        output, offset, seen = Output(cap), 0, b""
        for number in range(50):
            output.write(b"%d," % number)
            if number % 3 == 0:
                data, offset = output.since(offset)
                seen += data
        data, offset = output.since(offset)
        assert seen + data == b"".join(b"%d," % number for number in range(50))
        assert output.since(offset) == (b"", output.size)

    def test_what_was_not_kept_is_passed_over(self) -> None:
        output = Output(4)
        output.write(b"head" + b"x" * 100_000)
        assert output.since(2) == (b"ad" + b"x" * 65_536, 100_004)

    def test_a_copy_does_not_grow(self) -> None:
        output = Output(4)
        output.write(b"head and tail")
        copy = output.copy()
        output.write(b"!")
        assert (copy.data, copy.size) == (b"head and tail", 13)
