"""`ext-recorder config`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.project_files import call, write

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
