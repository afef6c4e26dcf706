"""The pictures of docs/images/ show what the programs print, and load nothing."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

IMAGES = ROOT / "docs" / "images"
pictures = pytest.importorskip("docs.site.pictures", reason="rich is missing; `make pictures` installs it")
# Times, sizes and temporary folders differ in each run.
VARIABLE = re.compile(r"eval-\w+|/tmp/[\w/-]*|\d+(?:\.\d+)?(?:ms|m|s)?")
ANSI = re.compile(r"\x1b\[[\d;]*m")


def shown(picture: Path) -> str:
    pieces = re.findall(r"<text [^>]*line-\d+[^>]*>([^<]*)</text>", picture.read_text())
    return "".join(html.unescape(piece) for piece in pieces)


def comparable(text: str) -> str:
    return re.sub(r"\s+", "", VARIABLE.sub("#", re.sub(r"\s+", " ", ANSI.sub("", text))))


@pytest.mark.parametrize("name", sorted(pictures.SESSIONS))
def test_terminal_session_of_today_prints_what_its_picture_shows(name: str, tmp_path: Path) -> None:
    session = pictures.terminal_session(name, tmp_path)
    for file in (name, f"{name}-narrow"):
        assert comparable("".join(session.lines)) == comparable(shown(IMAGES / f"{file}.svg"))


@pytest.mark.parametrize("picture", sorted(IMAGES.iterdir()), ids=lambda path: str(path.name))
def test_pictures_are_small_and_load_nothing(picture: Path) -> None:
    content = picture.read_bytes()
    assert len(content) < 200_000
    if picture.suffix == ".svg":
        assert set(re.findall(rb"https?://[^\"' )]+", content)) == {b"http://www.w3.org/2000/svg"}
        assert re.findall(rb"<script|@import|url\((?!#)|href=", content) == []


@pytest.mark.parametrize("name", sorted(pictures.SESSIONS))
def test_pictures_are_readable_on_a_phone_and_before_the_animation(name: str) -> None:
    for file, shown_at in ((name, 1000), (f"{name}-narrow", 358)):  # 390 px without margins
        text = (IMAGES / f"{file}.svg").read_text()
        width = float(re.findall(r'viewBox="0 0 ([\d.]+) ', text)[0])
        size = float(re.findall(r"font-size: ([\d.]+)px", text)[0])
        assert size * shown_at / width >= 10
        assert all(float(opacity) >= 0.6 for opacity in re.findall(r"opacity: ([\d.]+)", text))
