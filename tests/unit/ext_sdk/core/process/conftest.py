from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypedDict, Unpack

import pytest

from ext_sdk.core.process.output import Output, Pump
from ext_sdk.core.process.spawner import Command, Spawner
from tests.support.process_tracker import ProcessTracker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ext_sdk.core.process.child import Child


class Options(TypedDict, total=False):
    env: Mapping[str, str]
    limits: Mapping[int, tuple[int, int]]
    umask: int
    grace: float
    keep: bool


class Shell:
    """Runs scripts under a Spawner and reads their output."""

    def __init__(self, spawner: Spawner, directory: Path, stack: ExitStack) -> None:
        self.spawner = spawner
        self.directory = directory
        self._stack = stack

    def start(self, script: str, *arguments: str, **options: Unpack[Options]) -> Child:
        """Start a script; its output goes nowhere."""
        null = os.open(os.devnull, os.O_RDWR)
        try:
            return self.spawn(["bash", "-c", script, "bash", *arguments], null, null, **options)
        finally:
            os.close(null)

    def spawn(self, argv: list[str], stdin: int, stdout: int, **options: Unpack[Options]) -> Child:
        directory = os.open(self.directory, os.O_RDONLY)
        options.setdefault("env", {"PATH": os.environ["PATH"]})
        try:
            command = Command(argv, directory=directory, **options)
            child = self.spawner.spawn(command, stdin=stdin, stdout=stdout, stderr=stdout)
        finally:
            os.close(directory)
        self._stack.callback(child.close)
        return child

    def run(
        self, script: str, *arguments: str, data: bytes | None = None, **options: Unpack[Options]
    ) -> tuple[Child, Output]:
        """Run a script to its end; the output has both streams."""
        return self.run_argv(["bash", "-c", script, "bash", *arguments], data=data, **options)

    def run_argv(
        self, argv: list[str], *, data: bytes | None = None, cap: int = 1 << 20, **options: Unpack[Options]
    ) -> tuple[Child, Output]:
        output = Output(cap)
        reader, writer = os.pipe()
        if data is None:
            stdin, feed = os.open(os.devnull, os.O_RDONLY), None
        else:
            stdin, feed = os.pipe()
        try:
            child = self.spawn(argv, stdin, writer, **options)
        finally:
            os.close(writer)
            os.close(stdin)
        pump = Pump(child, {reader: output.write}, stdin=feed, data=data or b"")
        self._stack.callback(pump.close)
        assert pump.run(lambda: False)
        return child, output


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[ProcessTracker]:
    tracker = ProcessTracker(tmp_path / "tracker")
    yield tracker
    tracker.close()


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    one = Spawner()
    yield one
    one.close()


@pytest.fixture
def shell(spawner: Spawner, tmp_path: Path) -> Iterator[Shell]:
    with ExitStack() as stack:
        yield Shell(spawner, tmp_path, stack)


@pytest.fixture
def group_shell(tmp_path: Path) -> Iterator[Shell]:
    """As on a system where process groups are all there is."""
    spawner = Spawner(contained=False)
    with ExitStack() as stack:
        stack.callback(spawner.close)
        yield Shell(spawner, tmp_path, stack)


@pytest.fixture
def python() -> str:
    return sys.executable
