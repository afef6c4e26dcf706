"""Steps of a release that run on any machine. The Makefile has a target for each; docs/releasing.md has their order.

    python .ci/release.py dist             build the wheels and sdists of both distributions into dist/
    python .ci/release.py sbom             write a bill of materials (CycloneDX) of each into dist/
    python .ci/release.py checksums        write dist/SHA256SUMS
    python .ci/release.py notes VERSION    print the section of CHANGELOG.md
    python .ci/release.py check [TAG]      check version, tag, changelog and the files in dist/
    python .ci/release.py sizes            install each distribution into an empty folder and print the sizes

`sbom` and `sizes` install dependencies from the package index.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# Each with the folder of its pyproject.toml.
DISTRIBUTIONS = {"ext_recorder": ROOT / "recorder", "gevals_extensions": ROOT}


class ReleaseError(Exception):
    """A step failed; the text says why."""


def version() -> str:
    """Return the version of both distributions."""
    text = (ROOT / "extensions/ext_sdk/core/__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+?)"', text, re.MULTILINE)
    assert found, text
    return found[1]


def run(*command: str | Path, **environ: str) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def wheels() -> dict[str, Path]:
    """Return the wheel of each distribution in dist/."""
    found = {name: DIST / f"{name}-{version()}-py3-none-any.whl" for name in DISTRIBUTIONS}
    for path in found.values():
        if not path.is_file():
            raise ReleaseError(f"{path.relative_to(ROOT)}: no such file; build it with: make dist")
    return found


def build() -> None:
    """Build the sdists, and the wheels from the sdists. Times in them are those of the last commit."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    committed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    epoch = {"SOURCE_DATE_EPOCH": committed} if committed and "SOURCE_DATE_EPOCH" not in os.environ else {}
    for folder in DISTRIBUTIONS.values():
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, folder, **epoch)
    for path in sorted(DIST.glob(f"*-{version()}*")):
        print(f"{path.stat().st_size / 1000:8.0f} kB  {path.relative_to(ROOT)}")


def install(name: str, *options: str | Path) -> None:
    """Install a wheel of dist/, with its dependencies: the other one from dist/, the rest from the package index."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", *options]
    run(*pip, "--quiet", "--find-links", DIST, wheels()[name])


def write_bills_of_materials() -> None:
    """Write NAME-VERSION.cdx.json: the components of an environment in which only this distribution is installed."""
    for name, source in DISTRIBUTIONS.items():
        target = DIST / f"{name}-{version()}.cdx.json"
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=False)
            python = Path(folder, "bin", "python")
            install(name, "--python", python, "install")
            tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--validate"]
            run(*tool, "--pyproject", source / "pyproject.toml", "--output-file", target, python)
        bill = json.loads(target.read_text())
        purl = f"pkg:pypi/{name.replace('_', '-')}@{version()}"
        bill["metadata"]["component"] |= {"version": version(), "purl": purl}  # the tool reads no dynamic version
        target.write_text(json.dumps(bill, indent=2) + "\n")
        print(target.relative_to(ROOT))


def write_checksums() -> None:
    """Write SHA256SUMS of all other files in dist/, as `sha256sum --check` reads it."""
    files = sorted(path for path in DIST.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(lines))


def notes(number: str) -> str:
    """Return the section of a version in CHANGELOG.md, without its heading."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    heading = rf"^## \[{re.escape(number)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## \[|^\[[^\]]+\]: |\Z)"
    found = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise ReleaseError(f"CHANGELOG.md: no section `## [{number}] - YYYY-MM-DD` with text; add it before the tag")
    return found[1].strip()


def check(tag: str) -> None:
    """Check that a tag, the version, the changelog, the address of the repository and the files in dist/ agree."""
    number = version()
    if tag and tag != f"v{number}":
        raise ReleaseError(f"tag {tag}: the version of extensions/ext_sdk/core/__init__.py is {number}; tag v{number}")
    notes(number)
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    repository = os.environ.get("GITHUB_REPOSITORY")
    if repository and not address.endswith(f"/{repository}"):
        raise ReleaseError(
            f"pyproject.toml: [project.urls] has {address}, but the release is of {repository}; correct the addresses "
            "there and in recorder/pyproject.toml"
        )
    files = [*wheels().values(), *(DIST / f"{name}-{number}.tar.gz" for name in DISTRIBUTIONS)]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    others = {path.name for kind in ("*.whl", "*.tar.gz") for path in DIST.glob(kind)} - {path.name for path in files}
    if others:
        raise ReleaseError(f"dist/: {', '.join(sorted(others))}: of another version; delete it with: make clean")
    print(f"{number}: tag, version, changelog and {len(files)} files agree")


def sizes() -> None:
    """Print what an installation of each distribution takes, with the .pyc files that pip writes."""
    print(f"{'distribution':<38} {'wheel':>8} {'installed':>10} {'packages':>9}")
    for name, *others in (("ext_recorder",), ("gevals_extensions",), ("gevals_extensions", "kubernetes<36")):
        with tempfile.TemporaryDirectory() as folder:
            install(name, "install", "--target", folder, *others)
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            total = sum(path.stat().st_size for path in files) / 1e6
            packages = len(list(Path(folder).glob("*.dist-info")))
            wheel = wheels()[name].stat().st_size / 1e6
            print(f"{', '.join([name, *others]):<38} {wheel:>5.1f} MB {total:>7.0f} MB {packages:>9}")


def main(arguments: list[str]) -> int:
    """Run a step. Return the exit code."""
    steps = {
        ("dist", 1): build,
        ("sbom", 1): write_bills_of_materials,
        ("checksums", 1): write_checksums,
        ("notes", 2): lambda: print(notes(arguments[1])),
        ("check", 1): lambda: check(""),
        ("check", 2): lambda: check(arguments[1]),
        ("sizes", 1): sizes,
    }
    step = steps.get((arguments[0] if arguments else "", len(arguments)))
    if step is None:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        step()
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
