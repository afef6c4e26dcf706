"""The contracts of who may import whom are alive: each is broken by the import that it forbids."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.packaging.artefacts import ROOT

CONTRACTS = [
    contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
]
(
    LAYERS,
    RECORDER_PARTS,
    RECORDER_AUTHORS,
    NO_IO,
    WIRE,
    PROTOCOLS,
    SHARED,
    RECORDER_LIBRARIES,
    EXTENSION_LIBRARIES,
    KUBERNETES_LAYERS,
    KUBERNETES_OPERATIONS,
    KUBERNETES,
    SHELL_OPERATIONS,
    SHELL_LAYERS,
    HTTP_LAYERS,
    HTTP_OPERATIONS,
    HTTP,
    JSON_PATH,
    JSON_SCHEMA,
    YAML,
    VCRPY,
    HTTP_AGENT,
    FSSPEC,
) = CONTRACTS

SDK = "extensions/ext_sdk"
PLANTED = [
    (LAYERS, f"{SDK}/planted.py", "import ext_shell"),
    (LAYERS, f"{SDK}/planted.py", "import ext_recorder"),
    (LAYERS, "extensions/ext_shell/planted.py", "import ext_recorder"),
    (LAYERS, "extensions/ext_kubernetes/planted.py", "import ext_shell"),
    (LAYERS, "extensions/ext_shell/planted.py", "import ext_kubernetes"),
    (LAYERS, "extensions/ext_http/planted.py", "import ext_shell"),
    (LAYERS, "recorder/ext_recorder/planted.py", "import ext_shell"),
    (RECORDER_PARTS, "recorder/ext_recorder/planted.py", "from ext_sdk import server"),
    (RECORDER_PARTS, "recorder/ext_recorder/planted.py", "import ext_sdk.duration"),
    (RECORDER_AUTHORS, "recorder/ext_recorder/planted.py", "import ext_sdk"),
    *((NO_IO, f"{SDK}/wire/planted.py", f"import {name}") for name in ("os", "socket", "threading", "time", "select")),
    (NO_IO, f"{SDK}/protocols/planted.py", "import subprocess"),
    (WIRE, f"{SDK}/wire/planted.py", "from ext_sdk import duration"),
    (WIRE, f"{SDK}/wire/planted.py", "from ext_sdk.protocols import gevals"),
    (PROTOCOLS, f"{SDK}/protocols/planted.py", "from ext_sdk import deadline"),
    (SHARED, f"{SDK}/process/planted.py", "from ext_sdk import context"),
    (SHARED, f"{SDK}/redaction/planted.py", "from ext_sdk.process import run"),
    (SHARED, f"{SDK}/process/planted.py", "import msgspec"),
    (RECORDER_LIBRARIES, "recorder/ext_recorder/planted.py", "import msgspec"),
    (EXTENSION_LIBRARIES, "extensions/ext_shell/planted.py", "import click"),
    (EXTENSION_LIBRARIES, f"{SDK}/planted.py", "import asyncio"),
    (EXTENSION_LIBRARIES, "extensions/ext_kubernetes/planted.py", "import yaml"),
    (KUBERNETES_LAYERS, "extensions/ext_kubernetes/api/planted.py", "from ext_kubernetes import targets"),
    (KUBERNETES_LAYERS, "extensions/ext_kubernetes/objects/planted.py", "from ext_kubernetes.api import client"),
    (
        KUBERNETES_OPERATIONS,
        "extensions/ext_kubernetes/operations/planted.py",
        "from ext_kubernetes.operations import get",
    ),
    (KUBERNETES, "extensions/ext_kubernetes/planted.py", "from kubernetes.client import ApiClient"),
    (KUBERNETES, "extensions/ext_kubernetes/planted.py", "import urllib3"),
    (KUBERNETES, f"{SDK}/planted.py", "import kubernetes"),
    (SHELL_OPERATIONS, "extensions/ext_shell/operations/planted.py", "from ext_shell.operations import run"),
    (SHELL_LAYERS, "extensions/ext_shell/files/planted.py", "from ext_shell import runner"),
    (HTTP_LAYERS, "extensions/ext_http/client/planted.py", "from ext_http.request import url"),
    (HTTP_LAYERS, "extensions/ext_http/response/planted.py", "from ext_http.mock import registry"),
    (HTTP_OPERATIONS, "extensions/ext_http/operations/planted.py", "from ext_http.operations import wait"),
    (HTTP, "extensions/ext_http/planted.py", "import httpx2"),
    (HTTP, "extensions/ext_http/response/planted.py", "from httpcore2 import URL"),
    (HTTP, "extensions/ext_shell/planted.py", "import httpx2"),
    (JSON_PATH, f"{SDK}/planted.py", "import jsonpath"),
    (JSON_SCHEMA, f"{SDK}/planted.py", "import jsonschema"),
    (YAML, "recorder/ext_recorder/planted.py", "import yaml"),
    (VCRPY, "recorder/ext_recorder/planted.py", "import vcr"),
    (HTTP_AGENT, "recorder/ext_recorder/http/inject/planted.py", "import yaml"),
    (FSSPEC, "recorder/ext_recorder/planted.py", "import fsspec"),
]


def lint(tree: Path) -> str:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=tree,
        # the sources of this tree come before those of the editable install
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(tree / root) for root in ("extensions", "recorder"))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return " ".join(done.stdout.split())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sources, to be planted into."""
    for root in ("extensions", "recorder"):
        shutil.copytree(ROOT / root, tmp_path / root, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_are_kept(tree: Path) -> None:
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in lint(tree)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_contract_is_broken_by_what_it_forbids(contract: str, tree: Path) -> None:
    planted = [(path, line) for name, path, line in PLANTED if name == contract]
    assert planted
    for path, line in planted:
        (tree / path).write_text(f"{line}\n")
        assert f"{contract} BROKEN" in lint(tree), line
        (tree / path).unlink()
