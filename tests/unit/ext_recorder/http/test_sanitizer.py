"""Sanitizer of recorded HTTP interactions."""

from __future__ import annotations

import gzip

import pytest

from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.sanitizer import HELD_BACK, WHOLE, Sanitizer

SECRET = b"hunter2"


def clean(data: bytes) -> bytes:
    return data.replace(SECRET, b"[redacted]")


SANITIZER = Sanitizer(clean)


def test_the_value_of_a_cookie_is_removed_and_its_attributes_stay() -> None:
    headers = [("Set-Cookie", "id=hunter2; Path=/hunter2"), ("Set-Cookie", "id=; Path=/"), ("X", "hunter2")]
    assert SANITIZER.headers(headers) == [
        ("Set-Cookie", "id=[redacted]; Path=/[redacted]"),
        ("Set-Cookie", "id=; Path=/"),
        ("X", "[redacted]"),
    ]


def test_a_changed_body_has_its_new_length_and_no_recorded_chunks() -> None:
    interaction = Interaction("GET", "http://h/hunter2", body=Body(b"a hunter2"), chunks=[9])
    interaction.headers = [("Content-Length", "9")]
    SANITIZER.interaction(interaction)
    assert interaction.uri == "http://h/[redacted]"
    assert interaction.body is not None
    assert interaction.body.whole() == b"a [redacted]"
    assert (interaction.headers, interaction.chunks) == ([("Content-Length", "12")], [])


@pytest.mark.parametrize("start", [0, WHOLE - 3, WHOLE + HELD_BACK, 2 * WHOLE])
def test_a_secret_is_found_anywhere_in_a_long_body_also_across_windows(start: int) -> None:
    data = bytearray(b"x" * (2 * WHOLE + len(SECRET)))
    data[start : start + len(SECRET)] = SECRET
    recorded = Body()
    recorded.write(data)
    body = SANITIZER.body(recorded, [])
    assert body is not None
    assert body.whole() == clean(bytes(data))
    recorded.close()
    body.close()


def test_compressed_content_is_sanitized_and_a_clean_body_is_the_same_object() -> None:
    packed = Body(gzip.compress(b"a hunter2"))
    for headers in ([("Content-Encoding", "gzip")], []):  # or a compressed file
        body = SANITIZER.body(packed, headers)
        assert body is not None
        assert gzip.decompress(body.whole()) == b"a [redacted]"
    unchanged = Body(gzip.compress(b"nothing"))
    assert SANITIZER.body(unchanged, [("Content-Encoding", "gzip")]) is unchanged


def test_a_body_that_cannot_be_decoded_is_refused_or_searched_as_it_is() -> None:
    with pytest.raises(ValueError, match="a body in br, which cannot be searched for secrets"):
        SANITIZER.body(Body(b"?"), [("Content-Encoding", "br")])
    body = SANITIZER.body(Body(b"not gzip: hunter2"), [("Content-Encoding", "gzip")])
    assert body is not None
    assert body.whole() == b"not gzip: [redacted]"
