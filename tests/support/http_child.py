"""Children of the HTTP layer: a few lines of Python, recorded with a server, and run again without it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import yaml

from tests.support.host import PATIENCE_S, Session
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def script(program: str) -> list[str]:
    """The command of a child that is a few lines of Python, and may be injected into."""
    return [sys.executable, "-c", program]


def record(cassette: Path, child: Sequence[str], env: Mapping[str, str] | None = None, *options: str) -> Session:
    """Record a child with its HTTP traffic."""
    return _run(["record", "--http", *options, str(cassette), "--", *child], env)


def replay(cassette: Path, child: Sequence[str], env: Mapping[str, str] | None = None, *options: str) -> Session:
    """Run any child on recorded answers. The line about what is replayed is left out, if replay got that far."""
    done = _run(["replay", "--http", "--accept-command", *options, str(cassette), "--", *child], env)
    if done.err.startswith(b"ext-recorder: replaying "):
        return done._replace(err=done.err.partition(b"\n")[2])
    return done


def _run(words: Sequence[str], env: Mapping[str, str] | None) -> Session:
    done = subprocess.run(
        [*RECORDER, *words],
        input=b"",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | dict(env or {}),
    )
    return Session(done.returncode, done.stdout, done.stderr)


def document(cassette: Path) -> dict[str, list[dict[str, object]]]:
    """The HTTP traffic of a cassette, as plain data."""
    path = cassette.with_name(cassette.name.replace(".yaml", ".http.yaml"))
    return cast("dict[str, list[dict[str, object]]]", yaml.load(path.read_bytes(), yaml.CSafeLoader))
