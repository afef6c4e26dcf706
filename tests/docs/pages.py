"""Code blocks of the pages that people read, and what each kind of them promises.

| block | promise |
|---|---|
| `console` | each line after `$ ` is a command that succeeds; the lines below are its output, `…` is any text; of
`make TARGET` it is the target that is looked for. The commands run in the checkout; those of a page below
docs/examples/ run in its folder |
| `console not-run` | shown only, for commands that set up a machine |
| `python` | runs |
| `go`, `javascript`, `rust` | with `file=PATH`: a test that passes (test_hosts) |
| `yaml`, `json`, `toml` | can be parsed; steps of an eval task in it (`shell.run: {…}`) fit the manifest |
| with `file=PATH` | is the text of that file (`make docs` keeps it so) |
| `text` | nothing |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("console", "python", "go", "javascript", "rust", "yaml", "json", "toml", "text")
FENCE = re.compile(r"^```+(?P<info>.*)\n(?P<text>(?:.*\n)*?)```+$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    info: str
    text: str

    @property
    def kind(self) -> str:
        """The first word after the fence."""
        return self.info.partition(" ")[0]

    @property
    def flags(self) -> list[str]:
        """The other words."""
        return self.info.split()[1:]

    def __str__(self) -> str:
        """For the name of a test."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a console block and the output that the page shows."""

    text: str
    output: str


def blocks() -> Iterator[Block]:
    """All blocks of README and of the pages in docs/."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        page = path.read_text()
        for match in FENCE.finditer(page):
            line = page.count("\n", 0, match.start()) + 1
            yield Block(str(path.relative_to(ROOT)), line, match["info"].strip(), match["text"])


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block; a line that ends with a backslash continues on the next line."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        match = re.match(r"(?:.*\\\n)*.*\n", part)
        assert match, part
        yield Command(match[0].rstrip("\n"), part[match.end() :])


def agrees(shown: str, found: str) -> bool:
    """Return True if an output is the one shown, `…` standing for any text."""
    pattern = "".join(".*" if piece == "…" else re.escape(piece) for piece in re.split("(…)", shown.strip()))
    return re.fullmatch(pattern, found.strip(), re.DOTALL) is not None
