"""Start of the agent in a child that has neither ext-recorder nor any other package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ext_recorder.http import inject

# Without site-packages (-S), `sitecustomize` is imported by hand. The program imports what the agent patches.
PROGRAM = """
import sitecustomize, socket, ssl, subprocess, concurrent.futures, datetime, random, sys, uuid
agent = {name.partition(".")[2] for name in sys.modules if name.startswith("ext_recorder_agent.")}
assert {"start", "call_context", "clock", *sys.argv[1:]} <= agent, agent
assert not [name for name in sys.modules if name.startswith(("ext_recorder.", "ext_sdk"))]
"""


@pytest.mark.parametrize(
    ("mode", "kinds", "modules"),
    [("record", "time,uuid,random", ["record_tls", "determinism"]), ("replay", "", ["replay_tls"])],
)
def test_the_agent_starts_in_a_child_without_ext_recorder(
    mode: str, kinds: str, modules: list[str], tmp_path: Path
) -> None:
    variables = {"EXT_RECORDER_HTTP": f"{mode}:seed:1:{kinds}:{tmp_path}", "PYTHONPATH": inject.__path__[0]}
    subprocess.run([sys.executable, "-S", "-c", PROGRAM, *modules], env=os.environ | variables, check=True)
    assert list(tmp_path.glob("loaded.*"))
