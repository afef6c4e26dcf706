"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.paths import ROOT
from tests.support.ports import reserved_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ports import NewPort


MACOS = ROOT / "tests" / "support" / "systems" / "macos"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--macos`."""
    parser.addoption("--macos", action="store_true", help="hide from all child processes what only Linux has")


def pytest_configure(config: pytest.Config) -> None:
    """Restore signals that shells (in the background) and `nohup` ignore: tests send them to programs."""
    is_worker = hasattr(config, "workerinput")  # of xdist, a child process itself
    if config.getoption("--macos") and (is_worker or not config.getoption("numprocesses", None)):
        os.environ["PYTHONPATH"] = str(MACOS)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return three workers for two cores: many tests wait for child processes and for deadlines."""
    cores = len(os.sched_getaffinity(0))
    return cores + (cores + 1) // 2


def pytest_collection_finish() -> None:
    """Exclude modules and test items from garbage collection: there are thousands, and they stay until the end."""
    gc.freeze()


@pytest.fixture
def new_port() -> Iterator[NewPort]:
    """Return a function that reserves a port until the test ends, see `reserved_port`."""
    with ExitStack() as held:
        yield lambda: held.enter_context(reserved_port())
