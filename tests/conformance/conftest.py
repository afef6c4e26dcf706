"""Extensions to check: the project's own, and one without its SDK. A page of docs/ checks the greeter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.conformance.checks import CLAUSES
from tests.conformance.profile_environment import cluster, web

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
KUBERNETES = "ext-kubernetes"
HTTP = "ext-http"
Targets = Mapping[str, tuple[tuple[str, ...], Path | None]]

OWN: Targets = {
    HTTP: ((sys.executable, "-m", "ext_http"), HERE / "profiles" / "http.json"),
    KUBERNETES: ((sys.executable, "-m", "ext_kubernetes"), HERE / "profiles" / "kubernetes.json"),
    "ext-shell": ((sys.executable, "-m", "ext_shell"), HERE / "profiles" / "shell.json"),
    "independent": ((sys.executable, str(HERE / "independent_extension.py")), HERE / "profiles" / "independent.json"),
}


@pytest.fixture(scope="session")
def cluster_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """See `profile_environment`."""
    with cluster(tmp_path_factory.mktemp("cluster")) as variables:
        yield variables


@pytest.fixture(scope="session")
def web_environment() -> Iterator[Mapping[str, str]]:
    """See `profile_environment`."""
    with web() as variables:
        yield variables


@pytest.fixture
def environment(request: pytest.FixtureRequest, command: tuple[str, ...]) -> Mapping[str, str]:
    """Variables for the extension."""
    fixtures = {OWN[KUBERNETES][0]: "cluster_environment", OWN[HTTP][0]: "web_environment"}
    return request.getfixturevalue(fixtures[command]) if command in fixtures else {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each clause and extension."""
    if "command" not in metafunc.fixturenames:
        return
    rows = [
        pytest.param(clause, command, profile, id=f"{name}-{clause.id}")
        for name, (command, profile) in OWN.items()
        for clause in CLAUSES
    ]
    metafunc.parametrize(("clause", "command", "profile"), rows)
