"""pytest plugin: fixtures that replace a child process by its recording.

    @pytest.mark.recorded("ext-shell")
    def test_a_greeting(recorded_child):
        manifest = recorded_child.request("initialize", {"protocolVersion": "0.0.1"})

The marker gives the command. The cassette is `cassettes/<module>/<test>.yaml` next to the test. `recorded_child` is a
running child; `recorded_command` is a command line, for a host under test that starts its children itself.
`--record-mode` has the values and the default of pytest-recording: `none` replays, `once` records missing cassettes,
`all` (or `rewrite`) records all again.

With `http=True` the real child runs, and its HTTP requests are recorded or replayed.

Every run of pytest imports this module, so the fixtures import everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .cassette_files import Stale

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .child import RecordedChild

MARKER = "recorded"
MODES = ("none", "once", "new_episodes", "all", "rewrite")
_STALE = pytest.StashKey[Stale]()
_HELP = (
    "none: only replay; once: record if the cassette is missing; new_episodes: add requests without a match; "
    "all, rewrite: record again"
)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add `--record-mode`, unless pytest-recording adds it; then both plugins use its option."""
    from importlib.util import find_spec

    if find_spec("pytest_recording") is None or pluginmanager.is_blocked("recording"):
        group = parser.getgroup("ext-recorder", "recorded children")
        group.addoption("--record-mode", choices=MODES, default="none", help=_HELP)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and the search for cassettes that no test names."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*command, cassette=None, protocol='auto', framing=None, order='strict', ignore=(), mask=(), "
        "match_on=(), repeat=(), bind={}, redact=(), redact_except=(), no_redact=False, http=False): a child process "
        "that is recorded to a cassette, or replayed from it.",
    )
    stale = config.stash[_STALE] = Stale()
    config.pluginmanager.register(stale, "ext-recorder-stale")


@pytest.fixture(scope="module")
def recorder_cassette_dir(request: pytest.FixtureRequest) -> Path:
    """Return the folder of a module's cassettes, `cassettes/<module>` next to it. Override it for another folder."""
    from .cassette_files import cassette_dir

    return cassette_dir(request.path)


@pytest.fixture
def recorded_command(
    request: pytest.FixtureRequest, recorder_cassette_dir: Path, tmp_path: Path
) -> Iterator[list[str]]:
    """Yield the command line of the recorded child. A test may start it several times.

    After the test, it fails if a replay had a request without a match, or a recorded request did not arrive.
    """
    from .command import Recorded

    # The option of pytest-recording has no default of its own: None.
    mode = request.config.getoption("--record-mode") or "none"
    recorded = Recorded.of(request.node, recorder_cassette_dir, mode)
    report = tmp_path / "ext-recorder.report"
    yield recorded.command(report)
    faults = recorded.faults(report)
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.fixture
def recorded_child(
    request: pytest.FixtureRequest, recorded_command: list[str], recorder_cassette_dir: Path, tmp_path: Path
) -> Iterator[RecordedChild]:
    """Yield the running recorded child. It is ended after the test."""
    from .child import RecordedChild
    from .command import Recorded

    framing = Recorded.of(request.node, recorder_cassette_dir, "none").framing
    with RecordedChild(recorded_command, framing, stderr=tmp_path / "ext-recorder.stderr") as child:
        yield child
