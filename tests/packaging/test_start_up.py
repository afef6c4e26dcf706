"""What is imported before the first answer: a host waits for that, and these are what makes Python start slowly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.packaging.artefacts import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

SLOW = {
    *("argparse", "asyncio", "click", "dataclasses", "enum", "json", "jsonpath", "logging", "msgspec"),
    *("kubernetes", "pathlib", "re", "subprocess", "threading", "typing", "urllib3", "yaml"),
}
# Tells, at the first write to the wire, what has been imported until then.
WATCHED = """
import sys
from ext_sdk.core.stdio import Stdio

write = Stdio.write

def first_write(stdio, data):
    Stdio.write = write
    sys.stderr.write("\\n".join(sys.modules) + "\\n")
    write(stdio, data)

Stdio.write = first_write
from PACKAGE.__main__ import main
sys.exit(main())
"""


def imported_before_the_answer(package: str, *requests: dict[str, object], arguments: Sequence[str] = ()) -> set[str]:
    text = "".join(json.dumps({"jsonrpc": "2.0"} | request) + "\n" for request in requests)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.replace("PACKAGE", package), *arguments],
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


COMMON: dict[str, object] = {"maxOperationTime": "20s", "artifacts": "/tmp/texts"}
CONFIGURATIONS: list[tuple[str, dict[str, object]]] = [
    ("ext_http", {}),
    ("ext_http", COMMON | {"baseUrl": "http://127.0.0.1", "headers": {"a": "b"}, "caFile": "a", "proxy": "env"}),
    ("ext_http", {"allowHosts": ["127.0.0.1:8080", "*.test", "[::1]:80", "::1", "*"]}),
    ("ext_kubernetes", {}),
    ("ext_kubernetes", COMMON | {"kubeconfig": __file__, "context": "a", "namespace": "b", "watch": False}),
    ("ext_kubernetes", {"serviceAccount": "/folder"}),
    ("ext_shell", {}),
    ("ext_shell", COMMON | {"passEnv": ["A*"], "env": {"A": "b"}, "secrets": ["A"], "shell": "sh"}),
    ("ext_shell", {"outputLimit": 1000, "limits": {"cpu": "2s", "memory": 2**30, "openFiles": 10}}),
]


@pytest.mark.parametrize(("package", "config"), CONFIGURATIONS)
def test_the_manifest_is_out_before_anything_slow_is_imported(package: str, config: dict[str, object]) -> None:
    initialize = {"id": 1, "method": "initialize", "params": {"protocolVersion": "0.0.1", "config": config}}
    found = imported_before_the_answer(package, initialize, {"id": 2, "method": "shutdown"})
    assert "ext_sdk.boot" in found
    assert not found & SLOW
    assert f"{package}.extension" not in found


def test_the_program_of_all_extensions_imports_what_the_chosen_one_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEVALS_EXTENSION", "shell")
    initialize = {"id": 1, "method": "initialize", "params": {"protocolVersion": "0.0.1"}}
    alone, chosen = (imported_before_the_answer(name, initialize) for name in ("ext_shell", "gevals_extensions"))
    assert chosen - alone == {"gevals_extensions", "gevals_extensions.__main__"}


META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.mark.parametrize("package", ["ext_http", "ext_kubernetes", "ext_shell"])
@pytest.mark.parametrize(
    ("method", "params"),
    [("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}), ("server/discover", {"_meta": META})],
)
def test_a_client_of_mcp_is_answered_before_anything_slow_is_imported(
    package: str, method: str, params: dict[str, object]
) -> None:
    arguments = ["serve", "--protocol", "mcp", "--config", '{"maxOperationTime": "10m"}']
    found = imported_before_the_answer(package, {"id": 1, "method": method, "params": params}, arguments=arguments)
    assert "ext_sdk.boot" in found
    assert not found & SLOW
    assert f"{package}.extension" not in found


def test_a_pattern_in_the_configuration_imports_re_and_nothing_else_that_is_slow() -> None:
    params = {"protocolVersion": "0.0.1", "config": {"outputLimit": "4MiB", "limits": {"memory": "1GiB"}}}
    initialize = {"id": 1, "method": "initialize", "params": params}
    found = imported_before_the_answer("ext_shell", initialize, {"id": 2, "method": "shutdown"})
    assert "re" in found
    assert not found & (SLOW - {"re", "enum"})


def test_the_watch_sees_what_is_imported() -> None:
    found = imported_before_the_answer("ext_shell", {"id": 2, "method": "shutdown"})
    assert {"msgspec", "ext_shell.extension"} <= found
