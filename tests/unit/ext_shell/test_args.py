"""Arguments of commands: combinations that are refused."""

from __future__ import annotations

import pytest
from msgspec import ValidationError, convert

from ext_sdk import Duration
from ext_shell.args import CommandArgs, Ready, codes_of


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"command": ["true"], "shell": "sh"}, "`shell` requires `script`"),
        ({"command": ["true"], "stdin": "", "stdinFile": "a"}, "expected one of stdin and stdinFile"),
        ({"command": ["true"], "killAfter": Duration.parse("-1s")}, "killAfter: expected a duration of 0s or more"),
    ],
)
def test_commands_that_contradict_themselves_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        convert(given, CommandArgs)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no condition is given"),
        ({"port": False}, "no condition is given"),
        ({"logLine": "("}, "logLine: .* regular expression"),
        ({"httpStatus": 200, "file": "a"}, "`httpStatus` requires `http`"),
    ],
)
def test_readiness_without_a_condition_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        convert(given, Ready)


def test_one_code_is_a_list_of_one() -> None:
    assert (codes_of(3), codes_of([0, 1])) == ([3], [0, 1])
