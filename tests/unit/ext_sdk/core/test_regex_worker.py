"""What the child process that searches reads and answers, byte by byte."""

from __future__ import annotations

import io
import re
import resource
import signal
import struct
import sys
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core import regex_worker

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], bytes]:
    """Runs the loop over these bytes, in this process: without its limits, which would be ours from then on."""
    for module, name in ((resource, "setrlimit"), (signal, "signal"), (signal, "setitimer")):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["pattern_worker.py", "2.0"])

    def serve(requests: bytes) -> bytes:
        answers = io.BytesIO()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(requests)))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(answers, write_through=True))
        regex_worker.main()
        return answers.getvalue()

    return serve


def request(pattern: str, text: str, flags: int = 0, which: int = 0) -> bytes:
    parts = [part.encode("utf-8", "surrogatepass") for part in (pattern, text)]
    return struct.pack("<BIII", which, flags, *map(len, parts)) + b"".join(parts)


def test_a_match_is_answered_by_the_places_of_its_groups(serve: Callable[[bytes], bytes]) -> None:
    assert serve(request("(b)(x)?", "äb")) == struct.pack("<BI6i", 1, 3, 1, 2, 1, 2, -1, -1)


def test_all_matches_are_answered_by_the_places_of_their_groups(serve: Callable[[bytes], bytes]) -> None:
    assert serve(request("(b)|a", "äab", which=1)) == struct.pack("<BI8i", 1, 4, 1, 2, -1, -1, 2, 3, 2, 3)
    assert serve(request("x", "ab", which=1)) == struct.pack("<BI", 0, 0)


def test_a_match_of_the_complete_text_is_answered_by_its_place(serve: Callable[[bytes], bytes]) -> None:
    assert serve(request("a|ab", "ab", which=2)) == struct.pack("<BI2i", 1, 1, 0, 2)
    assert serve(request("a", "ab", which=2)) == struct.pack("<BI", 0, 0)


def test_a_system_without_a_limit_of_memory_is_served(
    serve: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:  # as macOS does
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert serve(request("x", "ab")) == struct.pack("<BI", 0, 0)


def test_no_match_is_answered_by_nothing(serve: Callable[[bytes], bytes]) -> None:
    assert serve(request("x", "ab")) == struct.pack("<BI", 0, 0)


def test_flags_count(serve: Callable[[bytes], bytes]) -> None:
    assert serve(request("B", "ab", re.IGNORECASE)) == struct.pack("<BI2i", 1, 1, 1, 2)


def test_a_wrong_pattern_is_answered_by_the_reason(serve: Callable[[bytes], bytes]) -> None:
    answer = serve(request("(", "a"))
    assert answer[0] == 2
    assert answer[5:].startswith(b"missing ), unterminated subpattern")


def test_too_little_memory_is_answered(serve: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(re, "compile", compile_)
    assert serve(request("a", "a"))[5:] == b"it needs too much memory"


def test_requests_are_answered_in_order_until_input_ends(serve: Callable[[bytes], bytes]) -> None:
    found, missing = struct.pack("<BI2i", 1, 1, 0, 1), struct.pack("<BI", 0, 0)
    assert serve(request("a", "a") + request("b", "a") + request("a", "a")) == found + missing + found
    assert serve(b"") == b""


def test_a_search_has_a_time_and_a_memory_limit(
    serve: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[float] = []
    limits: list[object] = []
    monkeypatch.setattr(signal, "setitimer", lambda _, seconds: alarms.append(seconds))
    monkeypatch.setattr(resource, "setrlimit", lambda *args: limits.append(args))
    serve(request("a", "a"))
    assert alarms == [2.0, 0.0]
    assert limits == [(resource.RLIMIT_AS, (1 << 30, 1 << 30))]
