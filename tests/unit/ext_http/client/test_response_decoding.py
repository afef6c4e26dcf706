"""Content codings undone: in any pieces, within bounds, and to their end."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import TYPE_CHECKING

import pytest

from ext_http.client.response import PIECE, Undecodable, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = random.Random(1).randbytes(5_000) + b"the same again and again " * 2_000


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[begin : begin + size] for begin in range(0, len(data), size))


CODED = {
    "gzip": (gzip.compress(TEXT), ["gzip"]),
    "zlib": (zlib.compress(TEXT), ["deflate"]),
    "raw deflate": (raw_deflate(TEXT), ["deflate"]),
    "both": (gzip.compress(zlib.compress(TEXT)), ["deflate", "gzip"]),
    "none": (TEXT, []),
}


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 10**6])
@pytest.mark.parametrize(("data", "codings"), CODED.values(), ids=CODED)
def test_a_body_is_the_same_in_whatever_pieces_it_comes(data: bytes, codings: list[str], size: int) -> None:
    assert b"".join(decode(pieces(data, size), codings)) == TEXT


@pytest.mark.parametrize("size", [1, 10**6])
@pytest.mark.parametrize("rest", [b"", b"\0" * 100, b"\x1f"])
def test_members_of_gzip_follow_each_other_and_padding_is_left_out(rest: bytes, size: int) -> None:
    data = gzip.compress(b"one, ") + gzip.compress(b"two") + rest
    assert b"".join(decode(pieces(data, size), ["gzip"])) == b"one, two"


@pytest.mark.parametrize("size", [1, 10**6])
@pytest.mark.parametrize("coding", ["gzip", "zlib", "raw deflate", "both"])
@pytest.mark.parametrize("left", [0.9, 0.5, 0.0])
def test_an_end_that_is_missing_is_told(coding: str, left: float, size: int) -> None:
    data, codings = CODED[coding]
    with pytest.raises(Undecodable, match="it ends too soon"):
        list(decode(pieces(data[: 1 + int(left * len(data))], size), codings))


def test_a_second_member_that_breaks_off_is_told() -> None:
    data = gzip.compress(b"one") + gzip.compress(TEXT)[:-100]
    with pytest.raises(Undecodable, match="it ends too soon"):
        list(decode([data], ["gzip"]))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_in_another_coding_is_told(coding: str) -> None:
    with pytest.raises(Undecodable, match="Error -3"):
        list(decode([b"plain text, which nothing was done to"], [coding]))


@pytest.mark.parametrize("codings", [["gzip"], ["deflate", "gzip"]])
def test_an_empty_body_has_no_coding(codings: list[str]) -> None:
    assert list(decode([], codings)) == []
    assert list(decode([b""], codings)) == []


def test_what_grows_comes_out_in_bounded_pieces() -> None:
    bomb = gzip.compress(b"\0" * (20 * PIECE))
    sizes = [len(piece) for piece in decode([bomb], ["gzip"])]
    assert max(sizes) <= PIECE
    assert sum(sizes) == 20 * PIECE


def test_more_codings_than_anybody_needs_are_refused() -> None:
    with pytest.raises(Undecodable, match="more than 5"):
        list(decode([b"x"], ["gzip"] * 6))
