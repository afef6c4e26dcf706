"""Whatever links a directory holds and whatever path is asked for: nothing outside is opened, and both ways agree."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_sdk.files import PathEscapes, Workdir, open_by_walk, safe_opener

PARTS = st.sampled_from(["a", "b", "c", "dir", "..", ".", "outside", "workdir", "secret", "..."])
PATHS = st.lists(PARTS, min_size=1, max_size=6).map("/".join)
TARGETS = PATHS | st.sampled_from(["/", "/etc/passwd", "../outside/secret", "../../outside", "../workdir/a"])
NAMES = st.sampled_from(["a", "b", "c", "dir/a", "dir/b", "dir/dir/c"])

pytestmark = pytest.mark.skipif(safe_opener() is open_by_walk, reason="there is only one way on this system")


def outcome(workdir: Workdir, path: str) -> str:
    """What reading a path comes to."""
    try:
        return workdir.read(path, limit=100).decode()
    except PathEscapes:
        return "escapes"
    except OSError as error:
        return os.strerror(error.errno or 0)
    except Exception as error:  # noqa: BLE001  # whatever it is, the other way has to say the same
        return type(error).__name__


@given(
    links=st.dictionaries(NAMES, TARGETS, max_size=4),
    files=st.sets(NAMES, max_size=3),
    paths=st.lists(PATHS, max_size=8),
)
def test_the_kernel_and_the_walk_read_the_same_and_never_the_secret(
    links: dict[str, str], files: set[str], paths: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "workdir"
        (root / "dir" / "dir").mkdir(parents=True)
        (root.parent / "outside").mkdir()
        (root.parent / "outside" / "secret").write_text("SECRET")
        for name in files:
            (root / name).write_text(f"content of {name}")
        for name in set(links) - files:
            (root / name).symlink_to(links[name])
        for path in paths:
            by_kernel = outcome(Workdir(root), path)
            assert by_kernel == outcome(Workdir(root, open_by_walk), path)
            assert by_kernel != "SECRET"


@given(st.text(max_size=20))
def test_any_text_is_a_path_inside_or_refused(text: str) -> None:
    workdir = Workdir(Path("/nonexistent/workdir"))
    try:
        relative = workdir.relative(text)
    except PathEscapes:
        return
    parts = relative.split("/")
    assert ".." not in parts
    assert not relative.startswith("/")
    assert relative == "." or all(part not in {"", "."} for part in parts)
