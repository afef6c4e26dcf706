"""`ext-recorder shim`."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.support.host import PATIENCE_S
from tests.support.project_files import call, write
from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from pathlib import Path


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
