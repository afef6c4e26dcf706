"""Commands and options that the pages name exist, also in prose and in commands that the tests do not run."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.docs.pages import FENCE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPTS = Path(sys.executable).parent
# Help of the reference pages is that of the programs.
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "recorder/README.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "reference" not in page.parts),
]
PROGRAMS = ("ext-host", "ext-http", "ext-kubernetes", "ext-recorder", "ext-sdk", "ext-shell", "gevals-extensions")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
# Options of other programs in prose.
OTHERS = {
    "Chainsaw": {"--include-test-regex", "--report-format", "--selector"},
    "cosign": {"--new-bundle-format"},
    "kubectl": {"--as", "--for", "--rm", "--server-side"},
    "Claude Code": {"--scope"},
    "targets of make": {"--macos", "--peers", "--quick", "--rebuild", "--rounds"},
    "mcp-cassette": {
        *("--cassette", "--faults", "--grep", "--ignore-param", "--ordering", "--pace", "--pace-scale", "--scan"),
        *("--timeline", "--tools-only", "--url"),
    },
    "mcpchecker": {"--label-selector", "--task"},
    "pex": {"--scie"},
    "pip and pipx": {"--editable", "--python"},
    "pytest, with and without plugins": {"--block-network", "--record-mode"},
    "any server": {"--api-key"},
}


class Use(NamedTuple):
    """A command of this project in a page: the program, the first word after it, and options up to `--`."""

    place: str
    program: str
    command: str
    options: tuple[str, ...]


@functools.cache
def shown_help(program: str, command: str = "") -> str:
    """Return the help of a program or of a command of it; "" if it has no such command."""
    words = [str(SCRIPTS / program), *([command] if command else []), "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout if done.returncode == 0 else ""


@functools.cache
def own_options() -> set[str]:
    """Return the options of all programs and commands."""
    found: set[str] = set()
    for program in PROGRAMS:
        top = shown_help(program)
        commands = re.findall(r"^ +([a-z][a-z-]+)(?: {2,}|$)", top, re.MULTILINE)
        found.update(*(OPTION.findall(shown_help(program, command)) for command in ("", *commands)))
    return found


def texts(page: Path) -> Iterator[tuple[str, bool, str]]:
    """Yield place, False and text of each line of a block, and place, True and text of each code span."""
    text, name = page.read_text(), page.relative_to(ROOT)
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        shell = block["info"].startswith(("console", "text"))
        for each in re.sub(r"\\\n", " ", block["text"]).splitlines() if shell else ():
            yield f"{name}:{line}", False, each
    prose = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    for span in re.finditer(r"`([^`\n]+)`", prose):
        yield f"{name}:{prose.count(chr(10), 0, span.start()) + 1}", True, span[1]


def uses(page: Path) -> Iterator[Use]:
    """Yield the commands of this project in a page."""
    for place, in_prose, text in texts(page):
        if not in_prose and not text.startswith("$ "):
            continue
        for part in re.split(r"[|;&<>]+", re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", text)):
            if found := re.search(rf"(?<![\w/.-])({'|'.join(PROGRAMS)})(?: +(\S+)(.*))?$", part.strip()):
                own = re.split(r" -- | --$", f"{found[2] or ''} {found[3] or ''}")[0]
                if part.strip().startswith(("$ ln ", "$ rm ", "$ npx ", "$ pip ", "ln ", "rm ")):
                    continue  # files and distributions of that name; options of the Inspector
                yield Use(place, found[1], found[2] or "", tuple(OPTION.findall(own)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_pages_exist_with_their_options(page: Path) -> None:
    for use in uses(page):
        command = use.command if re.fullmatch(r"[a-z][a-z-]+", use.command) else ""
        if use.program == "gevals-extensions":
            assert not command or re.search(rf"\b{command}\b", shown_help(use.program)), use
            continue
        assert shown_help(use.program, command), use
        assert set(use.options) <= set(OPTION.findall(shown_help(use.program, command))), use


def test_options_in_prose_are_of_a_program_that_is_known() -> None:
    named = {
        option: place
        for page in PAGES
        for place, in_prose, text in texts(page)
        if in_prose
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)
    }
    others = set().union(*OTHERS.values())
    assert {place: option for option, place in named.items() if option not in own_options() | others} == {}
    assert others - own_options() - set(named) == set(), "no page names these any more"


def test_a_command_or_option_that_does_not_exist_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.test_commands.ROOT", tmp_path)
    page = tmp_path / "page.md"
    for wrong in ("`ext-recorder replays x.yaml`", "`ext-host run --recrd x`", "```console\n$ ext-shell serv\n```\n"):
        page.write_text(f"# Page\n\n{wrong}\n")
        with pytest.raises(AssertionError):
            test_commands_of_pages_exist_with_their_options(page)
    page.write_text("`ext-host run task.yaml --agent 'sed --no-such'`, `ext-recorder record x -- cat --no-such`\n")
    test_commands_of_pages_exist_with_their_options(page)
