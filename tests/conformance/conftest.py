"""Which extensions are asked: those of the command line, or the project's own and two small ones."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.conformance.clauses import CLAUSES

HERE = Path(__file__).parent
GREETER = HERE.parents[1] / "docs" / "examples" / "greeter.py"
OWN = {
    "ext-shell": ((sys.executable, "-m", "ext_shell"), HERE / "profiles" / "shell.json"),
    "greeter": ((sys.executable, str(GREETER)), HERE / "profiles" / "greeter.json"),
    "foreign": ((sys.executable, str(HERE / "foreign.py")), HERE / "profiles" / "foreign.json"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each clause and extension."""
    if "command" not in metafunc.fixturenames:
        return
    option = metafunc.config.getoption
    targets: dict[str, tuple[tuple[str, ...], Path | None]] = dict(OWN)
    if given := option("--extension"):
        profile = Path(path) if (path := option("--profile")) else None
        targets = {"given": (tuple(shlex.split(given)), profile)}
    rows = [
        pytest.param(clause, command, profile, id=f"{name}-{clause.id}")
        for name, (command, profile) in targets.items()
        for clause in CLAUSES
    ]
    metafunc.parametrize(("clause", "command", "profile"), rows)
