"""Commands that set up a project: shim, config."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.support.host import PATIENCE_S
from tests.support.project_files import call, write
from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from pathlib import Path


def test_config_prints_the_file_and_what_it_sets(project: Path) -> None:
    everywhere = 'ignore = ["/a"]\nbind = {data = "x"}\nspeed = 2\n'
    file = write(project, f"[tool.ext-recorder]\n{everywhere}[tool.ext-recorder.verify]\nhttp = true\n")
    done = call("config", str(project / "cassettes"))
    expected = f"# {file} [tool.ext-recorder]\n{everywhere}\n[verify]\nhttp = true\n"
    assert (done.returncode, done.stdout) == (0, expected)
    file.unlink()
    done = call("config", cwd=project / "cassettes")
    assert (done.returncode, done.stdout) == (1, f"# no project file in {project}/cassettes, {project}\n")
    assert call("config", "--config", "none").stdout == "# no project file: switched off\n"


def test_a_shim_reads_the_file_when_it_runs(project: Path) -> None:
    cassette = project / "cassettes" / "echo.yaml"
    line = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"n":1}}\n'
    run(cassette, ECHO, stdin=line)
    write(project, 'ignore = ["/params/n"]', "ext-recorder.toml")
    shim = project / "shim"
    assert call("shim", str(shim), str(cassette), "--mode", "once", "--", *ECHO).returncode == 0
    assert "ignore" not in shim.read_text()
    assert "--mode=once" in shim.read_text()

    def played() -> int:
        return subprocess.run(
            [str(shim)],
            input=line.replace(b'"n":1', b'"n":2'),
            capture_output=True,
            timeout=PATIENCE_S,
            cwd="/",
            check=False,
        ).returncode

    assert played() == 0
    write(project, "", "ext-recorder.toml")
    assert played() == 3
