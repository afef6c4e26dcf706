"""What is imported before the first answer: a host waits for that, and these are what makes Python start slowly."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.packaging.artefacts import ROOT

SLOW = {
    *("argparse", "asyncio", "click", "dataclasses", "enum", "json", "jsonpath", "logging", "msgspec"),
    *("kubernetes", "pathlib", "re", "subprocess", "threading", "typing", "urllib3", "yaml"),
}
# Tells, at the first write to the wire, what has been imported until then.
WATCHED = """
import sys
from ext_sdk.transport import Stdio

write = Stdio.write

def first_write(stdio, data):
    Stdio.write = write
    sys.stderr.write("\\n".join(sys.modules) + "\\n")
    write(stdio, data)

Stdio.write = first_write
from PACKAGE.__main__ import main
sys.exit(main())
"""


def imported_before_the_answer(package: str, *requests: dict[str, object]) -> set[str]:
    text = "".join(json.dumps({"jsonrpc": "2.0"} | request) + "\n" for request in requests)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.replace("PACKAGE", package)],
        cwd=ROOT,
        # `make coverage` measures child processes by loading itself first
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")},
        input=text,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer["id"] == requests[0]["id"]
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("package", ["ext_http", "ext_kubernetes", "ext_shell"])
def test_the_manifest_is_out_before_anything_slow_is_imported(package: str) -> None:
    initialize = {"id": 1, "method": "initialize", "params": {"protocolVersion": "0.0.1"}}
    found = imported_before_the_answer(package, initialize, {"id": 2, "method": "shutdown"})
    assert "ext_sdk.boot" in found
    assert not found & SLOW
    assert f"{package}.extension" not in found


def test_the_watch_sees_what_is_imported() -> None:
    found = imported_before_the_answer("ext_shell", {"id": 2, "method": "shutdown"})
    assert {"msgspec", "ext_shell.extension"} <= found
