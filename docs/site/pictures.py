"""Make the pictures of docs/images/ from real runs: `make pictures` (`python -m docs.site.pictures`).

- `view.png`, `view-dark.png`: the page of `ext-recorder view` for a recorded eval, in headless Chromium;
- `first-task.svg`, `first-recording.svg`: terminal sessions. Each command runs on a terminal of its own. Lines light up
  at the recorded times, shortened where nothing happens; all are readable from the start, and without animation;
- `first-task-narrow.svg`, `first-recording-narrow.svg`: the same sessions with folded lines, for a phone.
"""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from docs.demo import SCRIPTS
from docs.site.recordings import record_eval, view
from tests.support.browser import Browser

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
LONGEST_PAUSE_S = 1.0
WIDE, NARROW = 200, 54  # columns of the pictures: as on the terminal, and for a phone
TYPING_S = 0.8  # between the end of a command and the next one
AGENT = "--workspace hello --agent 'sed -i.bak s/Helo/Hello/ greet.sh'"
SESSIONS = {
    "first-task": ("ext-host run task.yaml --agent none", f"ext-host run task.yaml {AGENT}"),
    "first-recording": (
        f"ext-host run task.yaml {AGENT} --record greeting",
        f"ext-host run task.yaml {AGENT} --replay greeting",
        "ext-recorder view greeting",
    ),
}
# The format of rich without its web fonts: a picture is shown without network.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre }}
.{unique_id}-title {{ font: 600 18px system-ui, sans-serif }}
{styles}
{animation}
</style>
<defs>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass
class Session:
    """Lines of a terminal with the times at which they appeared."""

    lines: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    now: float = 0.0

    def add(self, text: str, after: float) -> None:
        """Add a line that appeared some seconds after the previous one."""
        self.now += min(after, LONGEST_PAUSE_S)
        self.lines.append(text)
        self.times.append(self.now)

    def run(self, command: str, folder: Path) -> None:
        """Run a command on a terminal of its own, and add what it prints."""
        self.add(f"\033[32m$\033[0m \033[1m{command}\033[0m", TYPING_S if self.lines else 0)
        ours, theirs = pty.openpty()
        path = os.pathsep.join((str(SCRIPTS), os.environ["PATH"]))
        environment = os.environ | {"PATH": path, "TERM": "xterm-256color", "COLUMNS": "110"}
        with subprocess.Popen(
            ["sh", "-c", command], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        ):
            os.close(theirs)
            self._read(ours)
        os.close(ours)

    def _read(self, terminal: int) -> None:
        before, rest = monotonic(), b""
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                # A line that a program replaces, such as its progress, is not part of the picture.
                text = line.decode().rstrip("\r").rpartition("\r\033[K")[2]
                self.add(text, monotonic() - before)
                before = monotonic()
        if rest:
            self.add(rest.decode(), 0)

    def svg(self, title: str, columns: int) -> str:
        """Return the session as a picture, with lines of at most so many columns."""
        parts = [fold(Text.from_ansi(line), columns) for line in self.lines]
        texts = list(chain.from_iterable(parts))
        times = [time for part, time in zip(parts, self.times, strict=True) for _ in part]
        width = max(text.cell_len for text in texts) + 1
        console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
        for text in texts:
            console.print(text, soft_wrap=True)
        name = re.sub(r"\W+", "-", title.lower())
        delays = "\n".join(
            f'[clip-path="url(#{name}-line-{number})"] {{ animation-delay: {time:.2f}s }}'
            for number, time in enumerate(times)
        )
        animation = (
            "@media (prefers-reduced-motion: no-preference) {\n"
            "[clip-path*='-line-'] { animation: light-up 1ms backwards }\n"
            f"{delays}\n}}\n@keyframes light-up {{ from {{ opacity: 0.65 }} }}"
        )
        code_format = FORMAT.replace("{animation}", animation.replace("{", "{{").replace("}", "}}"))
        return console.export_svg(title=title, theme=MONOKAI, unique_id=name, code_format=code_format)


def fold(line: Text, columns: int) -> list[Text]:
    """Return the parts of a line: one that is too long is folded at its widest gap, if any, and between words."""
    if line.cell_len <= columns:
        return [line]
    gaps = re.finditer(r"(?<=\S) {3,}(?=\S)", line.plain)
    gap = max(gaps, key=lambda found: len(found[0]), default=None)
    first, rest = ([line[: gap.start()]], line[gap.end() :]) if gap else ([], line)
    left = len(rest.plain) - len(rest.plain.lstrip())
    parts = [*first, *rest[left:].wrap(Console(), columns - (left or 2))]
    for number, part in enumerate(parts):
        part.pad_left(left or 2 * (number > 0))
    return parts


def terminal_session(name: str, folder: Path) -> Session:
    """Run the commands of a session in an empty folder."""
    shutil.copy(ROOT / "docs" / "examples" / "first" / "task.yaml", folder)
    session = Session()
    for command in SESSIONS[name]:
        session.run(command, folder)
    return session


def terminal_pictures() -> None:
    """Write the pictures of the terminal sessions."""
    for name in SESSIONS:
        with TemporaryDirectory(prefix="eval-") as folder:
            session = terminal_session(name, Path(folder))
        for file, columns in ((name, WIDE), (f"{name}-narrow", NARROW)):
            svg = session.svg(name.replace("-", " ").capitalize(), columns)
            text = re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
            (IMAGES / f"{file}.svg").write_text(text.rstrip("\n") + "\n")


def screenshots() -> None:
    """Write the pictures of the viewer."""
    with TemporaryDirectory(prefix="eval-") as folder, Browser(Path(folder, "profile")) as browser:
        page = Path(folder, "page.html")
        view(record_eval(Path(folder)), page)
        for file, dark in (("view.png", False), ("view-dark.png", True)):
            browser.open(page, width=1280, height=720, dark=dark)
            number = next(i for i, text in enumerate(browser.texts("#rows-shown .row")) if "openai" in text)
            browser.click("#rows-shown .row", number)
            browser.screenshot(IMAGES / file)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    terminal_pictures()
    screenshots()
    for path in sorted(IMAGES.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
