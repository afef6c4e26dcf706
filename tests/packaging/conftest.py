"""What is shipped, built once for this folder, from a copy that holds the tracked files alone."""

from __future__ import annotations

import shutil
import sys
import sysconfig

import pytest

from tests.packaging.artefacts import ROOT, Installed, Shipped, build, run, tracked_files


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
def installed(shipped: Shipped, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    base = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=base)
    python = base / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    run(*pip, "--no-deps", "--no-index", str(shipped.wheel), cwd=base)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = base / "venv" / "lib" / version / "site-packages"
    # The dependencies come from the environment of the tests. A path in a .pth file is searched for packages,
    # but .pth files found there are not read: the editable install, and with it the source tree, stays out of
    # reach.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(python, site_packages)
