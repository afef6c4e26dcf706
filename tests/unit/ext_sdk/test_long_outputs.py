"""Excerpts: beginning and end of long outputs, without secrets, and a file with all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_sdk import Config, Context, Log, Secrets
from ext_sdk.context import Artifacts, States
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.long_outputs import Sizes, write_excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

SIZES = Sizes(complete=20, head=6, tail=4)


class Warnings:
    """The log of a call."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def send(self, level: str, message: str, data: Mapping[str, object]) -> None:
        self.texts.append(f"{level}: {message}")


@pytest.fixture
def warnings() -> Warnings:
    return Warnings()


@pytest.fixture
def context(tmp_path: Path, warnings: Warnings) -> Context:
    return Context(
        workdir=tmp_path,
        log=Log(warnings.send),
        config=Config(),
        secrets=Secrets(Redactor({"KEY": "opensesame-77"})),
        states=States(),
        artifacts=Artifacts(str(tmp_path / "artifacts"), "test"),
    )


def test_a_short_output_is_complete(context: Context) -> None:
    text, path = write_excerpt(b"x" * 20, "stdout", context, SIZES, file_name="stdout.txt")
    assert text == "x" * 20
    assert Path(path).read_bytes() == b"x" * 20
    assert path.endswith("stdout.txt")


def test_of_a_long_output_beginning_and_end_are_shown(context: Context) -> None:
    text, path = write_excerpt(b"begin-" + b"x" * 2000 + b"-end", "stdout", context, SIZES, file_name="stdout.txt")
    assert text == "begin-\n[... 2,000 of 2,010 bytes left out; all of it is in stdoutFile ...]\n-end"
    assert len(Path(path).read_bytes()) == 2010


def test_the_end_of_an_output_that_is_hardly_too_long_is_complete(context: Context) -> None:
    text, _ = write_excerpt(b"abcdefghijklmnopqrstu", "stdout", context, SIZES, file_name="f")
    assert text == "abcdef\n[... 11 of 21 bytes left out; all of it is in stdoutFile ...]\nrstu"


def test_an_output_that_was_not_kept_completely_has_more_in_its_file(context: Context) -> None:
    text, _ = write_excerpt(b"x" * 30, "body", context, SIZES, file_name="body", all_kept=False)
    assert "bodyFile has more" in text


def test_secrets_are_redacted_before_the_output_is_cut(context: Context) -> None:
    text, path = write_excerpt(b"key opensesame-77" + b"x" * 90, "stdout", context, SIZES, file_name="f")
    assert "open" not in text
    assert b"opensesame" not in Path(path).read_bytes()


def test_characters_that_were_cut_in_two_are_left_out(context: Context) -> None:
    text, _ = write_excerpt("€€€€€€€€€€".encode(), "stdout", context, SIZES, file_name="f")
    assert text.startswith("€€\n[")
    assert text.endswith("]\n€")


def test_without_a_file_the_ends_are_returned_and_a_warning_is_logged(
    context: Context, warnings: Warnings, tmp_path: Path
) -> None:
    (tmp_path / "artifacts").write_text("not a directory")
    text, path = write_excerpt(b"x" * 30, "stdout", context, SIZES, file_name="f")
    assert path == ""
    assert "20 of 30 bytes left out; lost" in text
    assert [line.partition(" to a file")[0] for line in warnings.texts] == ["warn: failed to write all of stdout"]
