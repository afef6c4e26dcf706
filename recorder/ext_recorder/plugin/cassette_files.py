"""Names of the cassettes of tests, and the search for cassettes that no test names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = "cassettes"
SUFFIX = ".yaml"

# Characters that are not allowed in a file name on every system. They are replaced by "-".
_ODD = re.compile(r"[^\w.,=+@\[\]-]+")
_LONGEST = 200  # characters of a name; most file systems allow 255 bytes


def cassette_dir(module: Path) -> Path:
    """Return the folder for the cassettes of a test module."""
    return module.parent / FOLDER / module.stem


def cassette_name(item: pytest.Item, given: str | None) -> str:
    """Return the name of a test's cassette in its folder.

    Args:
        given: the name in its marker, with or without `.yaml`; None for the name of the test.
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
    """Hooks that find cassettes without a test. Under xdist each process has one.

    A folder is only checked if its module was collected completely, not if single tests are run (`file.py::test`).
    """

    def __init__(self) -> None:
        self._named: set[str] = set()  # cassettes of the collected tests
        self._complete: set[str] = set()  # folders of modules that were collected completely

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Collect the names before -k and -m deselect tests: a test that is not run has a cassette as well."""
        parts = {Path(arg.partition("::")[0]).resolve() for arg in config.args if "::" in arg}
        for item in items:
            info = getattr(item, "_fixtureinfo", None)
            definitions = info.name2fixturedefs.get(FIXTURE, ()) if info else ()
            # If the fixture is overridden, the folder is only known when it runs.
            if FIXTURE not in getattr(item, "fixturenames", ()) or len(definitions) > 1:
                continue
            marker = item.get_closest_marker(MARKER)
            given = marker.kwargs.get("cassette") if marker else None
            folder = cassette_dir(item.path)
            self._named.add(str(folder / cassette_name(item, given)))
            if item.path not in parts:
                self._complete.add(str(folder))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the names to the controller, if this is a worker of xdist."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_KEY] = (sorted(self._named), sorted(self._complete))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """Receive the names from a worker."""
        named, complete = getattr(node, "workeroutput", {}).get(_KEY, ((), ()))
        self._named.update(named)
        self._complete.update(complete)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the cassettes in the checked folders that no test names."""
        stale = []
        for folder in sorted(self._complete):
            for path in sorted(Path(folder).rglob("*.yaml")):
                # NAME.http.yaml, a file of HTTP interactions, belongs to the cassette NAME.yaml.
                session = path.with_name(path.name.removesuffix(".http.yaml").removesuffix(".yaml") + ".yaml")
                if not {str(path), str(session)} & self._named and _is_cassette(path):
                    stale.append(path)
        if stale:
            terminalreporter.section("cassettes that no test names")
            for path in stale:
                terminalreporter.line(str(path))
            terminalreporter.line("Delete them, or name them in a marker: @pytest.mark.recorded(…, cassette=NAME).")


def _is_cassette(path: Path) -> bool:
    """Return True for a file of this recorder: pytest-recording keeps its own in the same folders."""
    try:
        with path.open("rb") as file:
            lines = [line for line in file.read(_HEAD_BYTES).splitlines() if not line.startswith(b"#")]
    except OSError:
        return False
    return bool(lines) and lines[0].startswith((b"cassette:", b"http:"))
