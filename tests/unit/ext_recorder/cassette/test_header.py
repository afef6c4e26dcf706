"""Headers: each key is read as it was written; a wrong value is an error with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.header import Header, encode_header, encode_trailer, header_of
from ext_recorder.errors import CassetteError

if TYPE_CHECKING:
    from ext_recorder.cassette.yaml_scalars import Flow

NEEDED: dict[str, Flow] = {"cassette": "1", "protocol": "gevals", "framing": "ndjson"}


def test_all_keys_are_written_in_their_order() -> None:
    header = Header(
        "gevals",
        "ndjson",
        command=("a", "b c"),
        recorder="0.1.0",
        recorded="2026-11-21T21:00:00Z",
        bindings={"workdir": "/tmp/workdir"},
        environment={"MODE": "x: y"},
    )
    assert encode_header(header).decode().splitlines()[1:] == [
        "cassette: 1",
        "recorder: 0.1.0",
        "protocol: gevals",
        "framing: ndjson",
        "command: [a, 'b c']",
        "environment: {MODE: 'x: y'}",
        "recorded: 2026-11-21T21:00:00Z",
        "bindings: {workdir: /tmp/workdir}",
        "events:",
    ]
    assert encode_trailer(("bearer", "env.TOKEN")) == b"redacted: [bearer, env.TOKEN]\n"


def test_a_header_needs_three_keys() -> None:
    assert header_of("x", NEEDED) == Header("gevals", "ndjson")
    for name in NEEDED:
        with pytest.raises(CassetteError, match=name):
            header_of("x", {key: value for key, value in NEEDED.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("cassette", "2", "expected format version 1, found 2 \\(upgrade ext-recorder"),
        ("cassette", "one", "expected format version 1, found one \\(record the session again"),
        ("framing", "lines", "expected `framing` to be one of"),
        ("command", "a b", "expected `command` to be a list"),
        ("bindings", ["a"], "expected `bindings` to be a mapping"),
        ("environment", ["a"], "expected `environment` to be a mapping"),
        ("redacted", "bearer", "expected `redacted` to be a list"),
        ("recorder", ["1"], "expected a text under the key `recorder`"),
    ],
)
def test_a_wrong_value_is_an_error_with_its_line(name: str, value: Flow, problem: str) -> None:
    with pytest.raises(CassetteError, match=problem) as wrong:
        header_of("x", {**NEEDED, name: value}, {name: 7})
    assert str(wrong.value).startswith("x:7: ")
