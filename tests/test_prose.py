"""The texts of the project follow its word list."""

from __future__ import annotations

import subprocess
from collections import defaultdict

import pytest

from tests.support import prose
from tests.support.paths import ROOT

# Texts of each folder that do not follow the list. These numbers only get smaller.
LIMITS = {
    ".": 0,
    ".ci": 1,
    "cassettes": 3,
    "docs": 3,
    "extensions/ext_kubernetes": 1,
    "extensions/ext_sdk": 6,
    "recorder": 14,
    "tests": 628,
}
# The word list itself; texts that are generated from the code; a protocol's own words, quoted.
LEFT_OUT = ("tests/support/prose.py", "docs/reference/")


def files() -> list[str]:
    """Return the Python and Markdown files of the repository."""
    command = ["git", "ls-files", "*.py", "*.md"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if not name.startswith(LEFT_OUT) and (ROOT / name).is_file()]


def folder_of(path: str) -> str:
    """Return the folder of a file in LIMITS."""
    folder, _, rest = path.rpartition("/")[0].partition("/")
    return f"{folder}/{rest.partition('/')[0]}" if folder == "extensions" else folder or "."


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the files of a checkout are listed by git")
def test_texts_follow_the_word_list() -> None:
    places = [place for name in files() for place in prose.places(ROOT / name)]
    found: dict[str, list[str]] = defaultdict(list)
    for place in places:
        found[folder_of(place.path)].append(str(place))
    above = {folder: listed for folder, listed in found.items() if len(listed) > LIMITS.get(folder, 0)}
    assert not above, "\n".join(f"{len(listed)} in {folder}:\n" + "\n".join(listed) for folder, listed in above.items())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('"""What is not as expected."""\n', ["What"]),
        ("x = 1  # it goes on\n", ["goes on"]),
        ('raise ValueError("somebody said so")\n', ["said so", "somebody"]),
        ('"""Return the `told` part.\n\nNobody reads it."""\n', ["Nobody"]),
        ('told = "somebody"\n', []),
    ],
)
def test_docstrings_comments_and_strings_are_checked(source: str, words: list[str]) -> None:
    path = ROOT / "tests" / "support" / "paths.py"
    assert [place.word for place in prose.places(path, source)] == words


def test_paragraphs_of_markdown_are_checked_and_code_is_not() -> None:
    source = "A cassette goes on.\n\n```text\nnobody\n```\n\n    nobody\n\nSee `nobody`.\n"
    places = list(prose.places(ROOT / "README.md", source))
    assert [(place.line, place.word) for place in places] == [(1, "goes on")]
