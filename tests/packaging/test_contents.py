"""The exact content of what is shipped."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from configparser import ConfigParser
from email.parser import Parser
from typing import TYPE_CHECKING

import pytest

from ext_recorder.tools.view.page import SCRIPTS
from ext_sdk.core import __version__
from tests.packaging.artefacts import ROOT, Published, Shipped, build, publish, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from email.message import Message
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
    *(
        "Makefile",
        "LICENSE",
        "CHANGELOG.md",
        "SECURITY.md",
        "docs",
        ".ci",
        ".github",
        ".gitignore",
        ".pre-commit-hooks.yaml",
    ),
}


def names_in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def read_from_wheel(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name).decode()


def read_from_sdist(sdist: Path, name: str) -> str:
    with tarfile.open(sdist) as archive:
        member = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/{name}")
        assert member
        return member.read().decode()


def packaged_files(wheel: Path) -> dict[str, bytes]:
    """Return the files of the packages, without metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def packaged(files: Iterable[str]) -> set[str]:
    """What of the source tree belongs into the wheel, by its name there."""
    roots = {f"{root}/{package}/": f"{root}/" for package, root in SOURCE_ROOTS.items()}
    return {name.removeprefix(root) for name in files for start, root in roots.items() if name.startswith(start)}


def test_the_wheel_holds_the_packages_and_its_metadata_and_nothing_else(shipped: Shipped) -> None:
    own = {
        f"{NAME}.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }
    assert names_in_wheel(shipped.wheel) == packaged(shipped.files) | own


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


def test_the_wheels_of_the_package_index_are_the_wheel_of_a_checkout_in_two_parts(
    shipped: Shipped, published: Published
) -> None:
    first, second = (packaged_files(wheel) for wheel in published.wheels.values())
    assert first.keys() & second.keys() == set()
    assert first | second == packaged_files(shipped.wheel)
    assert {name for name in first if not name.startswith(("ext_recorder/", "ext_sdk/core/"))} == set()


def test_the_wheel_of_the_recorder_is_the_same_from_its_sdist_and_from_a_checkout(
    shipped: Shipped, published: Published, tmp_path: Path
) -> None:
    rebuilt = build(shipped.source / "recorder", "wheel", tmp_path)
    assert rebuilt.read_bytes() == published.wheels["ext_recorder"].read_bytes()


def test_the_sdist_of_the_recorder_holds_its_files_and_nothing_else(shipped: Shipped, published: Published) -> None:
    with tarfile.open(published.sdists["ext_recorder"]) as archive:
        names = {member.name for member in archive if not member.isdir()}
    own = {name.removeprefix("recorder/") for name in shipped.files if name.startswith("recorder/")}
    core = {name.removeprefix("extensions/") for name in shipped.files if name.startswith("extensions/ext_sdk/core/")}
    assert names == {f"ext_recorder-{__version__}/{name}" for name in own | core | {"PKG-INFO", ".gitignore"}}


def digests(published: Published) -> dict[str, str]:
    paths = [*published.wheels.values(), *published.sdists.values()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_two_builds_give_equal_bytes(shipped: Shipped, published: Published, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(shipped.source, again, ignore=shutil.ignore_patterns("dist"), copy_function=shutil.copy)
    for path in again.rglob("*"):  # as another umask leaves them; the times are others, too
        path.chmod(path.stat().st_mode | 0o060)
    second = publish(again)
    assert digests(second) == digests(published)


def test_gevals_extensions_depends_on_the_recorder_of_its_version(published: Published) -> None:
    wheel = metadata(read_from_wheel(published.wheels["gevals_extensions"], f"{NAME}.dist-info/METADATA"))
    sdist = metadata(read_from_sdist(published.sdists["gevals_extensions"], "PKG-INFO"))
    assert f"ext-recorder=={__version__}" in (wheel.get_all("Requires-Dist") or [])
    # Installers that read the metadata of an sdist without building it find the same.
    assert sdist.get_all("Requires-Dist") == wheel.get_all("Requires-Dist")
    assert sdist.get_all("Dynamic") is None


def test_the_readmes_on_the_package_index_have_no_relative_links_and_the_links_lead_to_files(
    shipped: Shipped, published: Published
) -> None:
    renderer = pytest.importorskip("readme_renderer.markdown", reason="the environment is older than pyproject.toml")
    addresses = set()
    for name, wheel in published.wheels.items():
        info = metadata(read_from_wheel(wheel, f"{name}-{__version__}.dist-info/METADATA"))
        assert info["Description-Content-Type"] == "text/markdown"
        text = info.get_payload()
        assert isinstance(text, str)
        assert metadata(read_from_sdist(published.sdists[name], "PKG-INFO")).get_payload() == text
        page = renderer.render(text)
        assert page
        found = re.findall(r'\b(?:href|src)="([^"]*)"', page) + re.findall(r'\bsrcset="([^"]*)"', text)
        assert [address for address in found if not address.startswith(("https://", "#"))] == []
        addresses.update(found)
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    own = {re.sub(r"#.*", "", address) for address in addresses if address.startswith(f"{repository}/")}
    assert f"{repository}/blob/v{__version__}/CHANGELOG.md" in own
    assert f"{repository}/raw/v{__version__}/docs/images/first-task.svg" in own
    files = {re.sub(rf"^{re.escape(repository)}/(raw|blob)/v{re.escape(__version__)}/", "", address) for address in own}
    assert {name for name in files if not (shipped.source / name).is_file()} == set()


def test_an_editable_installation_of_a_checkout_needs_no_second_distribution(shipped: Shipped, tmp_path: Path) -> None:
    program = f"import hatchling.build; print(hatchling.build.build_editable({str(tmp_path)!r}))"
    wheel = tmp_path / run(sys.executable, "-c", program, cwd=shipped.source).split()[-1]
    assert names_in_wheel(wheel) == {
        "_gevals_extensions.pth",
        *(f"{NAME}.dist-info/{n}" for n in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")),
    }
    assert "ext-recorder==" not in read_from_wheel(wheel, f"{NAME}.dist-info/METADATA")
    assert "ext-recorder = ext_recorder.__main__:main" in read_from_wheel(wheel, f"{NAME}.dist-info/entry_points.txt")


def test_the_recorder_has_the_license_and_the_requirements_of_the_tree() -> None:
    own, tree = (tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in ("recorder", "."))
    assert (ROOT / "recorder/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert set(own["dependencies"]) <= set(tree["dependencies"])
    assert own["optional-dependencies"]["remote"] == tree["optional-dependencies"]["remote"]
    assert own["urls"] == tree["urls"]
    assert own["requires-python"] == tree["requires-python"]
    assert {one for one in own["classifiers"] if "Python ::" in one} == {
        one for one in tree["classifiers"] if "Python ::" in one
    }


def metadata(text: str) -> Message:
    """Return the fields of METADATA or PKG-INFO."""
    return Parser().parsestr(text)


def programs(wheel: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return console scripts and pytest plugins."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        entries = ConfigParser()
        entries.read_string(archive.read(name).decode())
    return dict(entries["console_scripts"]), dict(entries["pytest11"])


def test_the_entry_points_are_the_programs_that_exist_and_the_pytest_plugin(
    shipped: Shipped, published: Published
) -> None:
    names = sorted({*EXTENSIONS, "ext_host", "ext_recorder", "gevals_extensions"})
    expected = {one.replace("_", "-"): f"{one}.__main__:main" for one in names} | {"ext-sdk": "ext_sdk.new:main"}
    plugins = {"ext-recorder": "ext_recorder.plugin", "ext-sdk": "ext_sdk.testing"}
    assert programs(shipped.wheel) == (expected, plugins)
    own = {"ext-recorder": expected.pop("ext-recorder")}, {"ext-recorder": plugins.pop("ext-recorder")}
    assert programs(published.wheels["ext_recorder"]) == own
    assert programs(published.wheels["gevals_extensions"]) == (expected, plugins)


def test_the_version_is_the_one_of_ext_sdk_version(shipped: Shipped) -> None:
    fields = metadata(read_from_wheel(shipped.wheel, f"{NAME}.dist-info/METADATA"))
    assert fields["Version"] == __version__
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["Requires-Python"] == ">=3.11"


def test_every_dependency_is_one_that_the_code_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sources = [ROOT / root / package for package, root in SOURCE_ROOTS.items()]
    assert_imported(project["dependencies"], sources)


def test_every_dependency_of_the_recorder_is_one_that_it_imports() -> None:
    project = tomllib.loads((ROOT / "recorder/pyproject.toml").read_text())["project"]
    assert_imported(project["dependencies"], [ROOT / "recorder/ext_recorder", ROOT / "extensions/ext_sdk/core"])


def assert_imported(requirements: list[str], sources: list[Path]) -> None:
    imported_as = {"python-jsonpath": "jsonpath", "pyyaml": "yaml", "vcrpy": "vcr"}
    code = "\n".join(path.read_text() for source in sources for path in source.rglob("*.py"))
    for requirement in requirements:
        name = requirement.split(">")[0].partition("[")[0]
        module = imported_as.get(name, name)
        assert f"import {module}\n" in code or f"from {module} import" in code or f"from {module}." in code, requirement
