"""What the benchmarks start: the installed scripts, and small programs in C, or in Python where nothing compiles C."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(sys.executable).parent
SOURCES = Path(__file__).parent / "programs"
FLAGS = ("-O2", "-D_GNU_SOURCE")


@dataclass(frozen=True, slots=True)
class Programs:
    """Commands, each as its first words.

    Attributes:
        compiler: what compiled the C ones; "" where they are in Python.
        drive: a host that measures; see programs/drive.py.
        echo: a child that gives back what it gets.
        echo_in_python: the same in Python.
        copy: what a stand-in costs that only copies bytes, in Python with poll().
        copy_in_c: the same in C; None: there is no compiler.
        nothing: an extension with an operation that does nothing.
        python: the interpreter of all of them.
        shell: ext-shell, as installed.
        http: ext-http, as installed.
        kubernetes: ext-kubernetes, as installed.
        kubectl: as found in PATH; "" where it is not there.
        recorder: ext-recorder, as installed.
        with_peers: whether other recorders are measured as well.
        peers: the folder with their programs; "": one in the user's cache, made when it is needed.
    """

    compiler: str
    drive: tuple[str, ...]
    echo: tuple[str, ...]
    echo_in_python: tuple[str, ...]
    copy: tuple[str, ...]
    copy_in_c: tuple[str, ...] | None
    nothing: tuple[str, ...]
    python: str = sys.executable
    shell: str = str(SCRIPTS / "ext-shell")
    http: str = str(SCRIPTS / "ext-http")
    kubernetes: str = str(SCRIPTS / "ext-kubernetes")
    kubectl: str = shutil.which("kubectl") or ""
    recorder: str = str(SCRIPTS / "ext-recorder")
    with_peers: bool = False
    peers: str = ""


def find_compiler() -> str:
    """The C compiler of this machine, or ""."""
    return shutil.which("cc") or ""


def build(directory: Path, compiler: str) -> Programs:
    """Compile what there is in C.

    Args:
        directory: where the programs are put.
        compiler: a C compiler; "", or one that can't compile them: those in Python are taken.
    """
    drive, echo, copy, nothing = (_python(name) for name in ("drive", "echo", "copy", "nothing"))
    compiled = [(str(path),) for name in ("drive", "echo", "copy") if (path := _compiled(directory, compiler, name))]
    if len(compiled) < 3:
        return Programs("", drive, echo, echo, copy, None, nothing)
    return Programs(Path(compiler).name, compiled[0], compiled[1], echo, copy, compiled[2], nothing)


def _compiled(directory: Path, compiler: str, name: str) -> Path | None:
    if not compiler:
        return None
    made = directory / name
    done = subprocess.run([compiler, *FLAGS, "-o", made, SOURCES / f"{name}.c"], check=False, capture_output=True)
    return made if done.returncode == 0 else None


def _python(name: str) -> tuple[str, str]:
    return (sys.executable, str(SOURCES / f"{name}.py"))
