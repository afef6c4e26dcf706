"""Searching in a child process: what is found, and what ends it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core import regex
from ext_sdk.core.regex import Searcher, SearchFailed, TimedSearch

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_match_has_place_groups_and_names() -> None:
    with Searcher() as searcher:
        found = searcher.search(r"(?P<key>\w+)=(\d+)?(;)?", "say a=12 b=3")
    assert found
    assert (found.start, found.end) == (4, 8)
    assert found.groups == ("a=12", "a", "12", None)
    assert found.named == {"key": "a"}


def test_what_is_not_there_is_not_found() -> None:
    with Searcher() as searcher:
        assert searcher.search("x", "abc") is None
        assert searcher.search("B", "abc") is None
        assert searcher.search("B", "abc", ignore_case=True)


def test_every_character_survives_the_way_to_the_child_and_back() -> None:
    text = "\0\r\n\x1b ä€😀 \u2028 \ud800"
    with Searcher() as searcher:
        found = searcher.search(r"\A\0(?s:.*)\ud800\Z", text)
    assert found
    assert found.groups == (text,)


def test_a_large_text_is_searched() -> None:
    with Searcher() as searcher:
        found = searcher.search("needle$", "hay" * 2_000_000 + "needle")
    assert found
    assert found.start == 6_000_000


def test_one_child_serves_many_searches() -> None:
    with Searcher() as searcher:
        assert all(searcher.search("a", "a") for _ in range(100))


def test_a_search_without_end_is_stopped_and_the_next_one_works() -> None:
    with Searcher(1.0) as searcher:
        with pytest.raises(SearchFailed, match=r"'\(a\+\)\+\$' took longer than 1 s; make the pattern simpler"):
            searcher.search("(a+)+$", "a" * 100 + "b")
        assert searcher.search("a", "a")


def test_a_search_that_eats_memory_is_stopped() -> None:
    with Searcher(20) as searcher:
        with pytest.raises(SearchFailed, match="it needs too much memory"):
            searcher.search(r"(?:(a|b)|c)*x", "abc" * 4_000_000)
        assert searcher.search("a", "a")


def test_a_pattern_that_is_none_is_told() -> None:
    assert "missing )" in regex.problem("(a")
    assert "not a regular expression" in regex.problem("a{99999999999}")
    assert "not a regular expression" in regex.problem("(" * 5000 + ")" * 5000)
    assert regex.problem("((a{1000}){1000}){1000}") == ""
    assert regex.problem("[[a]") == ""
    with Searcher() as searcher, pytest.raises(SearchFailed, match="missing"):
        searcher.search("(a", "a")


def test_the_child_knows_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "hush-hush")
    monkeypatch.setenv("PYTHONSTARTUP", "/nonexistent")
    with Searcher() as searcher:
        searcher.search("a", "a")
        environment = Path(f"/proc/{child_of(searcher)}/environ").read_bytes()
    assert environment == b""


def test_the_child_ends_with_the_searcher() -> None:
    with Searcher() as searcher:
        searcher.search("a", "a")
        child = child_of(searcher)
    assert not Path(f"/proc/{child}").exists()


def test_closing_twice_or_before_the_first_search_is_fine() -> None:
    searcher = Searcher()
    searcher.close()
    searcher.close()


def test_the_child_ends_when_its_owner_is_killed_in_the_middle_of_a_search() -> None:
    program = (
        "from ext_sdk.expect import Searcher\n"
        "searcher = Searcher(0.5)\n"
        "searcher.search('a', 'a')\n"
        "print(searcher._child.pid, flush=True)\n"
        "searcher.search('(a+)+$', 'a' * 100 + 'b')\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert owner.stdout
    child = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    give_up = time.monotonic() + 60
    while is_running(child):
        assert time.monotonic() < give_up, "the child outlived its owner"
        time.sleep(0.02)


def test_a_child_that_ends_is_told_and_replaced() -> None:
    with Searcher() as searcher:
        searcher.search("a", "a")
        os.kill(child_of(searcher), signal.SIGTERM)
        with pytest.raises(SearchFailed, match="the process that searched for 'a' ended with status -15"):
            searcher.search("a", "a")
        assert searcher.search("a", "a")


def test_a_child_that_does_not_end_by_itself_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "GRACE", -60.0)  # gives up at once, where the child would go on for a minute
    with Searcher(60) as searcher, pytest.raises(SearchFailed, match="took longer"):
        searcher.search("(a+)+$", "a" * 100 + "b")


def test_no_process_to_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with Searcher() as searcher, pytest.raises(SearchFailed, match="no process for the search"):
        searcher.search("a", "a")


# --- Limited time in this process -------------------------------------------------------------------------------------


@pytest.fixture(params=["here", "child"])
def timed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[TimedSearch]:
    if request.param == "child":
        monkeypatch.setattr(regex, "_MOST", -1)
    with TimedSearch(1.0) as search:
        yield search


@pytest.mark.parametrize("pattern", [r"(\w)(\d)?", "x*", "(?i)B|A", "z", r"(?s)\A.*\Z", "\ud800"])
def test_all_matches_are_those_of_re(timed: TimedSearch, pattern: str) -> None:
    text, compiled = "a1 b\n😀\ud800c", re.compile(pattern)
    assert list(timed.find_all(compiled, text)) == [match.regs for match in compiled.finditer(text)]
    assert timed.replaced(compiled, "…", text) == compiled.sub("…", text)
    assert timed.matches(compiled, text) == bool(compiled.fullmatch(text))
    assert (timed.pattern, timed.size, timed.characters) == (pattern, len(text), 3 * len(text))


def test_a_search_that_takes_too_long_is_stopped(timed: TimedSearch) -> None:
    reason = "took longer than 2 s" if regex._MOST < 0 else "took more than 1 s of processor time on a text of 41 char"
    with pytest.raises(SearchFailed, match=reason):
        timed.find_all(re.compile("(a+)+$"), "a" * 40 + "b")


def test_a_text_that_is_too_long_to_be_interrupted_is_searched_in_a_child() -> None:
    text = "b" * 3_000_000
    with TimedSearch(1.0) as search, pytest.raises(SearchFailed, match="took longer than 2 s"):
        search.replaced(re.compile(r"\w+x"), "", text)  # signals are checked once in minutes


def test_a_thread_searches_in_a_child() -> None:
    failed = []

    def search() -> None:
        with TimedSearch(1.0) as limited:
            assert limited.replaced(re.compile("a"), "b", "a") == "b"
            try:
                limited.matches(re.compile("(a+)+"), "a" * 40 + "b")
            except SearchFailed as error:
                failed.append(str(error))

    thread = threading.Thread(target=search)
    thread.start()
    thread.join(60)
    assert failed == ["searching for '(a+)+' took longer than 2 s; make the pattern simpler"]


def test_the_timer_and_its_signal_are_as_before(timed: TimedSearch) -> None:
    before = signal.getsignal(signal.SIGVTALRM), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with TimedSearch(1.0, "the subject") as search:
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
        assert search.matches(re.compile("a"), "a")
    assert (signal.getsignal(signal.SIGVTALRM), signal.pthread_sigmask(signal.SIG_BLOCK, [])) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0


def child_of(searcher: Searcher) -> int:
    child = searcher._child
    assert child
    return child.pid


def is_running(process: int) -> bool:
    """Whether it runs; one that has ended and waits to be collected does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text()
        return state.rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
