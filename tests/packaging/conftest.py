"""Wheels and sdists, built once for this folder, from a copy that holds the tracked files alone."""

from __future__ import annotations

import shutil
import sysconfig
from typing import TYPE_CHECKING

import pytest

from tests.packaging.artefacts import ROOT, Installed, Published, Shipped, build, environment, publish, tracked_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    base = tmp_path_factory.mktemp("shipped")
    source, dist = base / "source", base / "dist"
    files = tracked_files()
    for name in files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    return Shipped(source, build(source, "wheel", dist), build(source, "sdist", dist), frozenset(files))


@pytest.fixture(scope="session")
def published(shipped: Shipped) -> Published:
    """Build for the package index, as `make dist` does."""
    return publish(shipped.source)


@pytest.fixture(scope="session", params=["a checkout", "the package index"])
def installed(
    request: pytest.FixtureRequest, shipped: Shipped, published: Published, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    base = tmp_path_factory.mktemp("installed")
    wheels: list[Path] = [shipped.wheel] if request.param == "a checkout" else [*published.wheels.values()]
    created = environment(base, *wheels)
    # The dependencies come from the environment of the tests. A path in a .pth file is searched for packages,
    # but .pth files found there are not read: the editable install, and with it the source tree, stays out of
    # reach.
    (created.site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return created
