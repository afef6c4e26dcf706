"""Changes between two states, and the patterns of names that may change."""

from __future__ import annotations

import pytest

import ext_sdk
from ext_sdk.expect import passed
from ext_sdk.expect.changes import (
    MOST_SNAPSHOTS,
    Changes,
    ChangesArgs,
    Snapshots,
    check_changes,
    compare,
    matches,
    shown_name,
)

BEFORE = {"a": 1, "b": 2, "src/c": 3}
AFTER = {"a": 1, "b": 5, "src/d": 4}


def describe(before: int, after: int) -> str:
    return "" if before == after else f"{after} instead of {before}"


CHANGES = compare(BEFORE, AFTER, describe)


def failed(only: tuple[str, ...] = (), required: tuple[str, ...] = ()) -> list[str]:
    args = ChangesArgs(only=list(only), required=list(required))
    return [str(check) for check in check_changes(args, CHANGES) if not check.ok]


def test_outputs_list_names_by_kind_of_change() -> None:
    assert CHANGES.outputs() == {"added": "src/d", "changed": "b", "removed": "src/c", "count": 3}


def test_every_change_that_no_pattern_allows_fails_with_its_kind() -> None:
    assert failed() == [
        "b: expected no change since snapshot 'default', got a change: 5 instead of 2",
        "src/c: expected no change since snapshot 'default', got a removal",
        "src/d: expected no change since snapshot 'default', got an addition",
    ]
    assert failed(only=("b", "src/*")) == []
    assert failed(only=("b",), required=("src/**",)) == []


def test_a_folder_without_wildcard_gets_the_pattern_that_was_meant() -> None:
    assert all("`src/**` accepts everything in it" in text for text in failed(only=("b", "src")))


def test_a_required_pattern_without_a_change_fails_with_the_changes() -> None:
    assert failed(only=("**",), required=("a",)) == [
        "'a': expected a change since snapshot 'default', got only changes of b, src/c, src/d"
    ]
    nothing = compare(BEFORE, BEFORE, describe)
    (_, check) = check_changes(ChangesArgs(required=["a"]), nothing)
    assert str(check) == "'a': expected a change since snapshot 'default', got none at all"


def test_a_change_of_several_parts_has_a_line_for_each() -> None:
    (check,) = check_changes(ChangesArgs(), Changes((), {"a": "x is 1\ny is 2"}, ()))
    assert str(check) == "a: expected no change since snapshot 'default', got a change:\n  x is 1\n  y is 2"
    assert check.brief == "a: expected no change since snapshot 'default', got a change: x is 1; y is 2"


def test_equal_states_pass_one_check() -> None:
    checks = check_changes(ChangesArgs(), compare({}, {}, describe))
    assert passed(checks)
    assert len(checks) == 1


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("a.txt", ["a.txt"], ["b/a.txt", "a-txt", "a.txt.orig"]),
        ("*.txt", ["a.txt", ".a.txt"], ["b/a.txt"]),
        ("b/*", ["b/x", "b/x/"], ["b", "b/x/y", "c/x"]),
        ("b/**", ["b/x", "b/x/y", "b"], ["c/b/x", "bb/x"]),
        ("b/", ["b/", "b/x", "b/x/y"], ["bb"]),
        ("**", ["a", "a/b/c"], []),
        ("**/*.py", ["a.py", "x/y/a.py"], ["a.pyc"]),
        ("**/cache/**", ["cache/x", "a/b/cache/c/d"], ["caches/x"]),
        ("a/**/z", ["a/z", "a/b/c/z"], ["a/b", "z"]),
        ("?[0-9]", ["a1"], ["a", "a11", "a/1"]),
        ("**/**/**/**/x", ["x", "/".join("a" * 200) + "/x"], ["/".join("a" * 200)]),
    ],
)
def test_patterns(pattern: str, good: list[str], bad: list[str]) -> None:
    assert [name for name in good if not matches(pattern, name)] == []
    assert [name for name in bad if matches(pattern, name)] == []


def test_names_are_shown_on_one_line() -> None:
    assert shown_name("naïve file.txt") == "naïve file.txt"
    assert shown_name("a\nb\\\udcff") == "a\\nb\\\\\\udcff"


def test_an_unknown_snapshot_is_refused_with_the_known_ones() -> None:
    snapshots: Snapshots[int] = Snapshots()
    with pytest.raises(ext_sdk.OperationFailed) as empty:
        snapshots.get("before")
    assert "found 'before'; take it with `snapshot`, in a previous step" in empty.value.error
    assert empty.value.error.endswith("; none was taken")
    for number in range(MOST_SNAPSHOTS):
        snapshots.keep(f"s{number}", number)
    snapshots.keep("s0", 7)
    assert snapshots.get("s0") == 7
    with pytest.raises(ext_sdk.OperationFailed, match="no more than 32 snapshots"):
        snapshots.keep("one-more", 1)
    with pytest.raises(ext_sdk.OperationFailed) as unknown:
        snapshots.get("s-1")
    assert "did you mean 's1'?" in unknown.value.error
