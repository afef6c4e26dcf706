"""Workflows of this repository and its action, as far as they can be checked without GitHub."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.packaging.artefacts import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
USES = re.compile(r"^ *(?:- )?uses: (?P<action>[^@\s]+)(?:@(?P<ref>\S+))?(?P<comment> +#.*)?$", re.MULTILINE)
MAKE = re.compile(r"\bmake ([a-z-]+)")
ACTIONLINT = shutil.which("actionlint") or shutil.which("actionlint", path=Path(sys.executable).parent)

named = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: str(path.name))


def checked(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def jobs(path: Path) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = yaml.safe_load(path.read_text())["jobs"]
    return found


@named
def test_a_workflow_is_valid(path: Path) -> None:
    checked(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", path)


def test_the_configuration_of_dependabot_is_valid() -> None:
    file = ROOT / ".github" / "dependabot.yml"
    checked(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.dependabot", file)


def test_every_action_is_pinned_by_its_commit_with_its_version_and_nowhere_by_another() -> None:
    pins: dict[str, set[tuple[str, str]]] = {}
    for path in (*WORKFLOWS, ROOT / "action.yml"):
        for match in USES.finditer(path.read_text()):
            if match["action"].startswith("./"):
                assert (ROOT / match["action"]).is_file()
                continue
            assert re.fullmatch("[0-9a-f]{40}", match["ref"]), match[0]
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", match["comment"] or ""), match[0]
            pins.setdefault(match["action"], set()).add((match["ref"], match["comment"]))
    assert pins
    assert {action: found for action, found in pins.items() if len(found) > 1} == {}


@named
def test_every_job_has_a_limit_and_names_the_rights_that_it_needs(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {}
    for name, job in jobs(path).items():
        assert "permissions" in job, name
        assert "uses" in job or "timeout-minutes" in job, name


@named
def test_every_target_of_make_exists(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(MAKE.findall(path.read_text()))
    assert targets
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


def test_only_the_jobs_of_a_release_that_write_may_write() -> None:
    allowed: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for name, job in jobs(path).items():
            permissions = job["permissions"]
            assert isinstance(permissions, dict)
            if written := {right for right, access in permissions.items() if access == "write"}:
                allowed[f"{path.stem} {name}"] = written
    assert allowed == {
        "release sign": {"id-token"},
        "release pypi-ext-recorder": {"id-token"},
        "release pypi-gevals-extensions": {"id-token"},
        "release github-release": {"contents"},
        "release pages": {"pages", "id-token"},
    }


def test_nothing_is_published_before_the_tests_the_executables_and_the_signatures() -> None:
    found = jobs(ROOT / ".github" / "workflows" / "release.yml")

    def before(name: str) -> set[str]:
        needs = found[name].get("needs", [])
        names = [needs] if isinstance(needs, str) else needs
        assert isinstance(names, list)
        return set(names).union(*(before(one) for one in names))

    publishing = ("pypi-ext-recorder", "pypi-gevals-extensions", "github-release", "pages")
    assert all(before(name) >= {"ci", "dist", "executable", "sign"} for name in publishing)
    assert "pypi-ext-recorder" in before("pypi-gevals-extensions")


def test_the_versions_of_python_are_the_supported_ones() -> None:
    matrix = jobs(ROOT / ".github" / "workflows" / "ci.yml")["test"]["strategy"]
    assert isinstance(matrix, dict)
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert set(supported) <= set(matrix["matrix"]["python"])


def test_zizmor_finds_nothing() -> None:
    checked(Path(sys.executable).parent / "zizmor", "--offline", "--quiet", ".github", "action.yml")


@pytest.mark.skipif(ACTIONLINT is None, reason="actionlint is not installed; `make check-workflows` builds it with Go")
def test_actionlint_finds_nothing() -> None:
    assert ACTIONLINT
    assert checked(ACTIONLINT, *WORKFLOWS) == ""
