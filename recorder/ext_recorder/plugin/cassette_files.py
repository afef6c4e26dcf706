"""Which file is the cassette of a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


FOLDER = "cassettes"
SUFFIX = ".yaml"

# What a file name may hold on every system; anything else in a parameter becomes "-".
_ODD = re.compile(r"[^\w.,=+@\[\]-]+")
_LONGEST = 200  # of a name, in characters; most file systems take 255 bytes


def cassette_dir(module: Path) -> Path:
    """The folder for the cassettes of a test module."""
    return module.parent / FOLDER / module.stem


def cassette_name(item: pytest.Item, given: str | None) -> str:
    """The name of a test's cassette within its folder.

    Args:
        item: the test.
        given: what its marker says: a name, with or without `.yaml`; None for the test's own.
    """
    if given is not None:
        return given if given.endswith(SUFFIX) else given + SUFFIX
    cls = getattr(item, "cls", None)
    name = f"{cls.__name__}.{item.name}" if cls else item.name
    return _ODD.sub("-", name)[:_LONGEST].rstrip(".") + SUFFIX


MARKER = "recorded"
FIXTURE = "recorder_cassette_dir"
_KEY = "ext_recorder_cassettes"
_HEAD_BYTES = 4096


class Stale:
    """Knows the cassettes of all collected tests; pytest calls it. One in each process of a run under xdist.

    A folder is looked at when all of its module was collected: a run of single tests (`file.py::test`) says nothing.
    """

    def __init__(self) -> None:
        self._named: set[str] = set()  # cassettes that a test has
        self._whole: set[str] = set()  # folders of which every test was seen

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Before -k and -m take tests away: a test that is not run still has its cassette."""
        parts = {Path(arg.partition("::")[0]).resolve() for arg in config.args if "::" in arg}
        for item in items:
            if not _is_recorded(item) or _has_folder_of_its_own(item):
                continue
            marker = item.get_closest_marker(MARKER)
            given = marker.kwargs.get("cassette") if marker else None
            folder = cassette_dir(item.path)
            self._named.add(str(folder / cassette_name(item, given)))
            if item.path not in parts:
                self._whole.add(str(folder))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker of xdist tells what it collected."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_KEY] = (sorted(self._named), sorted(self._whole))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """And its controller hears it."""
        named, whole = getattr(node, "workeroutput", {}).get(_KEY, ((), ()))
        self._named.update(named)
        self._whole.update(whole)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them."""
        stale = self.stale()
        if stale:
            terminalreporter.section("cassettes that no test names")
            for path in stale:
                terminalreporter.line(str(path))
            terminalreporter.line("Delete them, or name them in a marker: @pytest.mark.recorded(…, cassette=NAME).")

    def stale(self) -> Iterable[Path]:
        """The cassettes in the folders seen that no test names."""
        return [
            path
            for folder in sorted(self._whole)
            for path in sorted(Path(folder).rglob("*.yaml"))
            if str(path) not in self._named and not _belongs(path, self._named) and _is_cassette(path)
        ]


def _is_cassette(path: Path) -> bool:
    """Return True for a file of this recorder: pytest-recording keeps its own in the same folders."""
    try:
        with path.open("rb") as file:
            lines = [line for line in file.read(_HEAD_BYTES).splitlines() if not line.startswith(b"#")]
    except OSError:
        return False
    return bool(lines) and lines[0].startswith((b"cassette:", b"http:"))


def _belongs(path: Path, named: set[str]) -> bool:
    """Is this the HTTP half of a cassette?"""
    return (
        path.name.endswith(".http.yaml")
        and str(path.with_name(path.name.removesuffix(".http.yaml") + ".yaml")) in named
    )


def _is_recorded(item: pytest.Item) -> bool:
    return FIXTURE in getattr(item, "fixturenames", ())


def _has_folder_of_its_own(item: pytest.Item) -> bool:
    """Is the fixture overridden? Then only running it would tell where."""
    info = getattr(item, "_fixtureinfo", None)
    found = info.name2fixturedefs.get(FIXTURE, ()) if info else ()
    return len(found) > 1
