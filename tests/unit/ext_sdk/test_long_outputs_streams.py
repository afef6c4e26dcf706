"""Files without secrets, however long they are and however the bytes come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_sdk.context import Secrets
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.long_outputs import PIECE_BYTES, RedactingFile, redacted, redacted_pieces

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "opensesame-90"
PLACEHOLDER = b"[redacted:name#1]"


@pytest.fixture
def secrets() -> Secrets:
    return Secrets(Redactor({"name": SECRET}))


def test_bytes_that_are_no_utf_8_stay_as_they_are(secrets: Secrets) -> None:
    assert redacted(b"\xff" + SECRET.encode() + b"\xc3", secrets) == b"\xff" + PLACEHOLDER + b"\xc3"


@pytest.mark.parametrize("filler", [b"x", b"\n", b"line\n", "ä".encode(), b"\xff", b"\0"])
@pytest.mark.parametrize("before", [-len(SECRET), -7, -1, 0])
def test_a_secret_across_the_end_of_a_piece_is_hidden(filler: bytes, before: int, secrets: Secrets) -> None:
    size = (PIECE_BYTES + before) // len(filler) * len(filler)
    head, tail = filler * (size // len(filler)), filler * 1000
    pieces = list(redacted_pieces(head + SECRET.encode() + tail, secrets))
    assert len(pieces) == 2
    assert b"".join(pieces) == head + PLACEHOLDER + tail


def test_text_that_is_nothing_but_secrets_is_hidden(secrets: Secrets) -> None:
    data = SECRET.encode() * (PIECE_BYTES // 4)
    assert b"".join(redacted_pieces(data, secrets)) == PLACEHOLDER * (PIECE_BYTES // 4)


class TestFile:
    @pytest.mark.parametrize("size", [1, 7, 100, 100_000])
    def test_a_secret_is_hidden_however_it_comes(self, size: int, secrets: Secrets, tmp_path: Path) -> None:
        data = f"begin\nline with {SECRET} in it\n{'x' * 1000}{SECRET}{'x' * 1000}\nend {SECRET}".encode()
        file = RedactingFile(tmp_path / "log", secrets, 1 << 20)
        for at in range(0, len(data), size):
            file.write("stdout", data[at : at + size])
        file.close()
        assert (tmp_path / "log").read_bytes() == data.replace(SECRET.encode(), PLACEHOLDER)

    def test_a_line_without_an_end_is_written_in_time(self, secrets: Secrets, tmp_path: Path) -> None:
        file = RedactingFile(tmp_path / "log", secrets, 1 << 24)
        for _ in range(50):
            file.write("stdout", b"x" * 9_999 + SECRET.encode())
        assert (tmp_path / "log").stat().st_size > 100_000
        file.close()
        assert (tmp_path / "log").read_bytes() == (b"x" * 9_999 + PLACEHOLDER) * 50

    def test_two_streams_do_not_break_each_others_lines(self, secrets: Secrets, tmp_path: Path) -> None:
        file = RedactingFile(tmp_path / "log", secrets, 1 << 20)
        for stream, data in (("stdout", SECRET[:5]), ("stderr", "err\n"), ("stdout", f"{SECRET[5:]}\n")):
            file.write(stream, data.encode())
        file.close()
        assert (tmp_path / "log").read_bytes() == b"err\n" + PLACEHOLDER + b"\n"

    def test_it_ends_at_the_cap_with_a_note(self, secrets: Secrets, tmp_path: Path) -> None:
        file = RedactingFile(tmp_path / "log", secrets, 10)
        for _ in range(5):
            file.write("stdout", b"12345")
        file.close()
        note = b"\n[... the log ends here: 10 bytes are kept, see outputLimit ...]\n"
        assert (tmp_path / "log").read_bytes() == b"1234512345" + note

    def test_without_a_word_there_is_nothing_to_close(self, secrets: Secrets, tmp_path: Path) -> None:
        RedactingFile(tmp_path / "log", secrets, 10).close()
        assert not (tmp_path / "log").exists()
