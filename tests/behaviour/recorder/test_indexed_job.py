"""The manifest for a Kubernetes Indexed Job: its pods share the cassettes, each of which is verified once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from tests.support.host import PATIENCE_S
from tests.support.player_host import cassette
from tests.support.recorder_process import ECHO

MANIFEST = Path(__file__).parents[3] / "docs" / "examples" / "verify-job.yaml"


def test_the_pods_of_the_job_verify_each_cassette_once(tmp_path: Path) -> None:
    job = yaml.safe_load(MANIFEST.read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    count = job["spec"]["completions"]
    (tmp_path / "cassettes").mkdir()
    for name in "abcde":
        events = "- {t: 0, in: 'x'}\n- {t: 1, out: 'x'}\n- {t: 2, eof: in}\n- {t: 3, exit: 0}"
        cassette(tmp_path / "cassettes" / f"{name}.yaml", events, protocol="raw")
    (tmp_path / "ext-shell").write_text(f"#!{sys.executable} -SE\n{ECHO[-1]}\n")
    (tmp_path / "ext-shell").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [
        word.replace("/cassettes", str(tmp_path / "cassettes")) for word in container["command"] + container["args"]
    ]
    verified = []
    for index in range(count):
        environment = os.environ | {"PATH": path, "JOB_COMPLETION_INDEX": str(index)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        verified += [line.rpartition("/")[2] for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert sorted(verified) == ["a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml"]
