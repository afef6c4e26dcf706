"""The pytest plugin: a test with a recorded child in the place of a real one.

    @pytest.mark.recorded("ext-shell")
    def test_a_greeting(recorded_child):
        manifest = recorded_child.request("initialize", {"protocolVersion": "0.0.1"})

The marker says what is recorded, and the test's name where: `cassettes/<module>/<test>.yaml` beside the test. Two
fixtures use it: `recorded_child` has the child running, `recorded_command` is the command line of it, for a host under
test that starts its children itself. `--record-mode` has the words and the default of pytest-recording: `none` plays,
`once` records what is missing, `all` (or `rewrite`) records anew.

With `http=True` the child is the real one, and what it asks of HTTP servers is recorded, and answered.

Each run of pytest imports this module, whether a test uses it or not: what it needs is imported by the fixtures.
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
    "none: only replay; once: record where there is no cassette; new_episodes: record what a cassette misses; "
    "all, rewrite: record anew"
)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """`--record-mode`, unless pytest-recording brings it: then one option is for both."""
    from importlib.util import find_spec

    if find_spec("pytest_recording") is None or pluginmanager.is_blocked("recording"):
        group = parser.getgroup("ext-recorder", "recorded children")
        group.addoption("--record-mode", choices=MODES, default="none", help=_HELP)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and begin to look for cassettes that no test names."""
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
    """Where the cassettes of this module are: `cassettes/<module>` beside it. Override it to have them elsewhere."""
    from .cassette_files import cassette_dir

    return cassette_dir(request.path)


@pytest.fixture
def recorded_command(
    request: pytest.FixtureRequest, recorder_cassette_dir: Path, tmp_path: Path
) -> Iterator[list[str]]:
    """The command line of the recorded child: start it as often as the test has sessions.

    Behind the test, each replay is asked how it went: a request without a match, or a recorded one that never came,
    fails the test.
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
    """The recorded child, running; it ends with the test."""
    from .child import RecordedChild
    from .command import Recorded

    framing = Recorded.of(request.node, recorder_cassette_dir, "none").framing
    with RecordedChild(recorded_command, framing, stderr=tmp_path / "ext-recorder.stderr") as child:
        yield child
