"""What later steps get as `${NAME.key}`: the output itself, complete and with its secrets, while people see neither."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_shell import Answer, Extension

SECRET = "open-sesame-4711"
ENV = {"DB_PASSWORD": SECRET}
LONG = "seq 50000"  # 288,894 bytes
LONG_BYTES = "".join(f"{number}\n" for number in range(1, 50_001))


def _texts(answer: Answer) -> str:
    """Everything that the host got of an answer, and the files that it names."""
    files = [Path(path).read_text() for name, path in answer.outputs.items() if name.endswith("File")]
    return "\n".join([repr(answer.raw), repr(answer.logs), *files])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_secret_in_an_output_is_real_in_a_later_step_and_shown_nowhere(stream: str, shell: Extension) -> None:
    redirect = " >&2" if stream == "stderr" else ""
    shown = shell.ok("run", script=f'echo "postgres://u:$DB_PASSWORD@h/db"{redirect}', env=ENV, **{"as": "dsn"})
    assert SECRET not in _texts(shown)
    later = shell.ok("run", script="cat | tee used.txt", stdin=f"${{dsn.{stream}}}")
    assert (shell.workdir / "used.txt").read_text() == f"postgres://u:{SECRET}@h/db\n"
    assert SECRET not in _texts(later)


def test_a_long_output_is_whole_in_a_later_step(shell: Extension) -> None:
    assert len(shell.ok("run", script=LONG, **{"as": "big"}).outputs["stdout"]) < 20_000
    assert shell.ok("run", command=["wc", "-c"], stdin="${big.stdout}").outputs["stdout"] == "288894\n"
    shell.ok("write-file", path="copy.txt", content="${big.stdout}")
    assert (shell.workdir / "copy.txt").read_text() == LONG_BYTES


@pytest.mark.parametrize("operation", ["wait", "stop"])
def test_what_a_process_in_the_background_wrote_is_whole_and_real_too(operation: str, shell: Extension) -> None:
    shell.ok("start", name="job", script=f'{LONG}; echo "$DB_PASSWORD"', env=ENV, ready={"exit": 0})
    shown = shell.ok(operation, name="job", **{"as": "job"})
    assert SECRET not in _texts(shown)
    shell.call("stop", {"name": "job", "ignoreMissing": True})
    shell.ok("write-file", path="copy.txt", content="${job.stdout}")
    assert (shell.workdir / "copy.txt").read_text() == f"{LONG_BYTES}{SECRET}\n"


def test_a_file_that_was_read_is_whole_and_real_too(shell: Extension) -> None:
    shell.ok("run", command=["true"], env=ENV)  # from here on it is known to be a secret
    (shell.workdir / "long.txt").write_text(LONG_BYTES + SECRET)
    assert SECRET not in _texts(shell.ok("read-file", path="long.txt", **{"as": "file"}))
    shell.ok("write-file", path="copy.txt", content="${file.content}")
    assert (shell.workdir / "copy.txt").read_text() == LONG_BYTES + SECRET


def _reference(shell: Extension, name: str) -> str:
    """The text of the failure of a step that refers to an output."""
    answer = shell.call("write-file", {"path": "copy.txt", "content": f"${{{name}}}"})
    assert not answer.success
    assert not (shell.workdir / "copy.txt").exists()
    return answer.error or answer.message


def test_an_output_over_the_limit_is_refused_rather_than_cut(fresh: Callable[..., Extension]) -> None:
    shell = fresh(config={"outputLimit": "1KiB"})
    shell.ok("run", script=LONG + "; " + LONG, **{"as": "big"})
    error = _reference(shell, "big.stdout")
    assert "the value of ${big.stdout} was not kept: stdout has 577,788 bytes, more than `outputLimit` keeps" in error


def test_an_output_that_is_not_text_is_refused_rather_than_changed(shell: Extension) -> None:
    shell.ok("run", script=r"printf 'a\xff'", **{"as": "bytes"})
    assert "stdout is not UTF-8 (byte 0xff at offset 1); write it to a file" in _reference(shell, "bytes.stdout")


def test_an_output_that_was_withheld_is_not_handed_on(shell: Extension) -> None:
    capture = {"pin": {"regex": "pin=(.*)", "secret": True}}  # too short to be hidden anywhere
    shell.ok("run", command=["echo", "pin=123"], capture=capture, **{"as": "x"})
    assert "a secret was to be captured from this output" in _reference(shell, "x.stdout")


def test_a_file_that_an_output_names_is_read_and_not_written(shell: Extension) -> None:
    path = shell.ok("run", script=LONG).outputs["stdoutFile"]
    assert shell.ok("read-file", path=path).outputs["size"] == str(len(LONG_BYTES))
    shell.ok("assert-file", path=path, size=len(LONG_BYTES))
    other = Path(path).with_name("other.txt")  # of another process in the same directory
    other.write_text("x")
    for operation, args in (("read-file", {"path": str(other)}), ("write-file", {"path": path, "content": "x"})):
        assert "is not a path inside the working directory" in str(shell.call(operation, args).raw)
    assert Path(path).read_text() == LONG_BYTES
