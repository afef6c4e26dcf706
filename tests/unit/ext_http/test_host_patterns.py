"""Patterns of `allowHosts`."""

from __future__ import annotations

import pytest

from ext_http.host_patterns import check_config, check_pattern, matches, names


@pytest.mark.parametrize("pattern", ["", "a/b", "http://a", "me@a", "a b", "a.*", "*a", "a:x", "${a.b}"])
def test_a_text_that_is_not_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="expected a host"):
        check_pattern(pattern)
    with pytest.raises(ValueError, match="expected a host"):
        check_config({"allowHosts": [pattern]})


@pytest.mark.parametrize(
    ("pattern", "host", "port", "named", "matched"),
    [
        ("a.test", "a.test", 80, True, True),
        ("A.test", "a.test.", 80, True, True),
        ("a.test:81", "a.test", 80, False, False),
        ("*.test", "a.test", 80, False, True),
        ("*.test", "test", 80, False, False),
        ("*", "a.test", 80, False, True),
        ("[::1]:80", "::1", 80, True, True),
        ("::1", "::1", 443, True, True),
    ],
)
def test_a_wildcard_matches_hosts_but_names_none(
    pattern: str, host: str, port: int, named: bool, matched: bool
) -> None:
    assert (names(pattern, host, port), matches(pattern, host, port)) == (named, matched)
