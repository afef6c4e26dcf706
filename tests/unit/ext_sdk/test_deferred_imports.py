"""Deferred modules that several threads use at the same time."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from ext_sdk import deferred_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# `gate` is this test module's class Gate. The name after the gate is what other threads need.
SLOW = """
import sys
gate = sys.modules[__name__ + "_gate"]
gate.runs += 1
gate.begun.set()
assert gate.go.wait(60)
if gate.fails:
    raise ImportError("the code failed")
VALUE = 42
"""
AGAIN_SECONDS = 0.1  # in which a thread that does not wait would have failed


class Gate:
    """Holds the code of the module until `go`."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.runs = 0
        self.fails = False


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """The deferred module `slow_library`, which has not run."""
    (tmp_path / "slow_library.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(deferred_imports, "MODULES", {})
    gate = Gate()
    monkeypatch.setitem(sys.modules, "slow_library_gate", gate)
    deferred_imports.defer({"slow_library": {}})
    yield gate
    del sys.modules["slow_library"]


def by_import() -> object:
    from slow_library import VALUE  # type: ignore[import-not-found]

    return VALUE


def by_attribute() -> object:
    return sys.modules["slow_library"].VALUE


@pytest.mark.parametrize("first", [by_import, by_attribute])
@pytest.mark.parametrize("second", [by_import, by_attribute])
def test_other_threads_wait_for_the_code(gate: Gate, first: Callable[[], object], second: Callable[[], object]) -> None:
    with ThreadPoolExecutor(4) as pool:
        early = pool.submit(first)
        assert gate.begun.wait(60)
        late = [pool.submit(second) for _ in range(3)]
        try:
            with pytest.raises(TimeoutError):
                late[0].result(AGAIN_SECONDS)
        finally:
            gate.go.set()
        assert [future.result(60) for future in (early, *late)] == [42] * 4
    assert gate.runs == 1
    assert type(sys.modules["slow_library"]) is type(sys)


def test_the_thread_that_runs_the_code_does_not_wait_for_itself(gate: Gate) -> None:
    gate.go.set()
    module = import_module("slow_library")
    assert module.VALUE == 42
    with pytest.raises(AttributeError, match="no attribute 'OTHER'"):
        module.OTHER  # noqa: B018


def test_code_that_fails_leaves_no_thread_waiting(gate: Gate) -> None:
    gate.fails = True
    with ThreadPoolExecutor(2) as pool:
        early = pool.submit(by_attribute)
        assert gate.begun.wait(60)
        late = pool.submit(by_attribute)
        gate.go.set()
        with pytest.raises(ImportError, match="the code failed"):
            early.result(60)
        with pytest.raises(AttributeError, match="no attribute 'VALUE'"):
            late.result(60)
