"""Which extensions are asked: those of the command line, or the project's own and two small ones."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.clauses import CLAUSES
from tests.conformance.surroundings import cluster, web

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
GREETER = HERE.parents[1] / "docs" / "examples" / "greeter.py"
KUBERNETES = "ext-kubernetes"
HTTP = "ext-http"
Targets = Mapping[str, tuple[tuple[str, ...], Path | None]]

OWN: Targets = {
    HTTP: ((sys.executable, "-m", "ext_http"), HERE / "profiles" / "http.json"),
    KUBERNETES: ((sys.executable, "-m", "ext_kubernetes"), HERE / "profiles" / "kubernetes.json"),
    "ext-shell": ((sys.executable, "-m", "ext_shell"), HERE / "profiles" / "shell.json"),
    "greeter": ((sys.executable, str(GREETER)), HERE / "profiles" / "greeter.json"),
    "foreign": ((sys.executable, str(HERE / "foreign.py")), HERE / "profiles" / "foreign.json"),
}


@pytest.fixture(scope="session")
def cluster_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """See `surroundings`."""
    with cluster(tmp_path_factory.mktemp("cluster")) as variables:
        yield variables


@pytest.fixture(scope="session")
def web_environment() -> Iterator[Mapping[str, str]]:
    """See `surroundings`."""
    with web() as variables:
        yield variables


@pytest.fixture
def environment(request: pytest.FixtureRequest, command: tuple[str, ...]) -> Mapping[str, str]:
    """Variables for the extension; one that was given on the command line brings its own."""
    fixtures = {OWN[KUBERNETES][0]: "cluster_environment", OWN[HTTP][0]: "web_environment"}
    return request.getfixturevalue(fixtures[command]) if command in fixtures else {}


def given(config: pytest.Config) -> Targets:
    """The extension of the command line, if any. It runs elsewhere, so files in its command become absolute."""
    command, profile = config.getoption("--extension"), config.getoption("--profile")
    if not command:
        return {}
    here = config.invocation_params.dir
    words = (str(here / word) if (here / word).is_file() else word for word in shlex.split(command))
    return {"given": (tuple(words), here / profile if profile else None)}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With an extension given, it alone is tested, and not the tests themselves."""
    if given(config):
        others = [item for item in items if "command" not in getattr(item, "fixturenames", ())]
        items[:] = [item for item in items if item not in others]
        config.hook.pytest_deselected(items=others)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each clause and extension."""
    if "command" not in metafunc.fixturenames:
        return
    targets = given(metafunc.config) or OWN
    rows = [
        pytest.param(clause, command, profile, id=f"{name}-{clause.id}")
        for name, (command, profile) in targets.items()
        for clause in CLAUSES
    ]
    metafunc.parametrize(("clause", "command", "profile"), rows)
