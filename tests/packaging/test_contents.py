"""The exact content of what is shipped."""

from __future__ import annotations

import tarfile
import tomllib
import zipfile
from configparser import ConfigParser
from email.parser import Parser
from typing import TYPE_CHECKING

from ext_recorder.tools.view.page import SCRIPTS
from ext_sdk.core import __version__
from tests.packaging.artefacts import ROOT, Shipped, build, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = f"gevals_extensions-{__version__}"
EXTENSIONS = ("ext_http", "ext_kubernetes", "ext_shell")
SOURCE_ROOTS = dict.fromkeys(("ext_sdk", "ext_host", "gevals_extensions", *EXTENSIONS), "extensions") | {
    "ext_recorder": "recorder"
}
# Everything else in a package is Python. A file of another kind is named here or does not belong there.
DATA_FILES = {
    *(f"{package}/py.typed" for package in SOURCE_ROOTS),
    *(f"{one}/manifest.json" for one in EXTENSIONS),
    *(f"{one}/config-schema.json" for one in EXTENSIONS),
    *(f"{one}/tools.ndjson" for one in EXTENSIONS),
    "ext_sdk/server/pi_bridge.ts",
    *(f"{one}/operations.json" for one in EXTENSIONS),
    *("ext_recorder/http/known_apis.yaml", "ext_recorder/run/node_proxy.cjs"),
    *(f"ext_recorder/tools/view/page.{kind}" for kind in ("css", "html")),
    *(f"ext_recorder/tools/view/scripts/{name}.js" for name in SCRIPTS),
}
# What lies at the top, as DESIGN has it; a new name here is a decision.
TOP_LEVEL = {
    *("pyproject.toml", "README.md", "action.yml", "kind-config.yaml", "extensions", "recorder", "cassettes", "tests"),
    *("Makefile", "LICENSE", "CHANGELOG.md", "SECURITY.md", "docs", ".ci", ".gitignore", ".pre-commit-hooks.yaml"),
}


def names_in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def read_from_wheel(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()


def packaged(files: Iterable[str]) -> set[str]:
    """What of the source tree belongs into the wheel, by its name there."""
    roots = {f"{root}/{package}/": f"{root}/" for package, root in SOURCE_ROOTS.items()}
    return {name.removeprefix(root) for name in files for start, root in roots.items() if name.startswith(start)}


def test_the_wheel_holds_the_packages_and_its_metadata_and_nothing_else(shipped: Shipped) -> None:
    metadata = {
        f"{NAME}.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    assert names_in_wheel(shipped.wheel) == packaged(shipped.files) | metadata


def test_the_packages_hold_python_and_the_data_files_named_here(shipped: Shipped) -> None:
    assert {name for name in packaged(shipped.files) if not name.endswith(".py")} == DATA_FILES


def test_every_package_of_the_source_roots_is_shipped(shipped: Shipped) -> None:
    found = {
        name.split("/")[1]
        for name in shipped.files
        if name.startswith(("extensions/", "recorder/")) and name.count("/") > 1
    }
    assert found == set(SOURCE_ROOTS)


def test_the_source_roots_are_no_packages_themselves(shipped: Shipped) -> None:
    assert not shipped.files & {"extensions/__init__.py", "recorder/__init__.py"}


def test_the_sdist_holds_every_tracked_file_and_nothing_else(shipped: Shipped) -> None:
    with tarfile.open(shipped.sdist) as archive:
        names = {member.name for member in archive if not member.isdir()}
    assert names == {f"{NAME}/{name}" for name in shipped.files} | {f"{NAME}/PKG-INFO"}


def test_the_top_of_the_tree_has_only_what_a_person_expects(shipped: Shipped) -> None:
    assert {name.split("/")[0] for name in shipped.files} == TOP_LEVEL


def test_a_wheel_built_from_the_sdist_is_the_wheel_built_from_the_tree(shipped: Shipped, tmp_path: Path) -> None:
    run("tar", "-xzf", shipped.sdist, "-C", tmp_path, cwd=tmp_path)
    rebuilt = build(tmp_path / NAME, "wheel", tmp_path / "dist")
    assert rebuilt.read_bytes() == shipped.wheel.read_bytes()


def test_the_entry_points_are_the_programs_that_exist_and_the_pytest_plugin(shipped: Shipped) -> None:
    text = read_from_wheel(shipped.wheel, f"{NAME}.dist-info/entry_points.txt")
    entries = ConfigParser()
    entries.read_string(text)
    programs = sorted({*EXTENSIONS, "ext_host", "ext_recorder", "gevals_extensions"})
    expected = {one.replace("_", "-"): f"{one}.__main__:main" for one in programs} | {"ext-sdk": "ext_sdk.new:main"}
    assert dict(entries["console_scripts"]) == expected
    assert dict(entries["pytest11"]) == {"ext-recorder": "ext_recorder.plugin", "ext-sdk": "ext_sdk.testing"}


def test_the_version_is_the_one_of_ext_sdk_version(shipped: Shipped) -> None:
    metadata = Parser().parsestr(read_from_wheel(shipped.wheel, f"{NAME}.dist-info/METADATA"))
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_every_dependency_is_one_that_the_code_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    imported_as = {"python-jsonpath": "jsonpath", "pyyaml": "yaml", "vcrpy": "vcr"}
    code = "\n".join(path.read_text() for root in ("extensions", "recorder") for path in (ROOT / root).rglob("*.py"))
    for requirement in project["dependencies"]:
        name = requirement.split(">")[0].partition("[")[0]
        module = imported_as.get(name, name)
        assert f"import {module}\n" in code or f"from {module} import" in code or f"from {module}." in code, requirement
