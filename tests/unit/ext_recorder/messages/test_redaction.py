"""Redaction options: names of variables, rules, exceptions."""

from __future__ import annotations

import pickle

import pytest

from ext_recorder.errors import UsageError
from ext_recorder.messages.redaction import ProjectVariable, Redaction, table


def redacted(text: str, redaction: Redaction, environment: dict[str, str]) -> str:
    return redaction.redactor(environment).redact_text(text)


def test_a_variable_can_be_excepted() -> None:
    env = {"API_TOKEN": "hunter2x", "DB_PASSWORD": "hunter3x"}
    expected = "hunter2x [redacted:env.DB_PASSWORD#1]"
    assert redacted("hunter2x hunter3x", Redaction(excepted=["API_TOKEN"]), env) == expected


def test_a_table_of_a_project_file_is_a_rule() -> None:
    assert Redaction(table({"pattern": "x+", "replacement": "y"})).redactor({}).redact_text("axxb") == "ayb"
    with pytest.raises(ValueError, match=r"^not a regular expression"):
        table({"pattern": "("})


def test_values_of_named_variables_and_of_the_caller_are_secrets() -> None:
    redaction = Redaction(["CITY"], built_in=False, further={"path": "/home/me"})
    environment = {"CITY": "Atlantis", "API_TOKEN": "hunter2x"}
    assert redaction.secrets(environment) == {"env.CITY": "Atlantis", "path": "/home/me"}
    assert redaction.off
    assert redacted("Atlantis hunter2x", pickle.loads(pickle.dumps(redaction)), environment) == (
        "[redacted:env.CITY#1] hunter2x"
    )


def test_a_named_variable_must_exist() -> None:
    with pytest.raises(UsageError, match="--redact CITY: expected the name of an environment variable"):
        Redaction(["CITY"]).require({})
    assert Redaction(["CITY"]).require({"CITY": ""}) == []


def test_a_variable_of_a_project_file_must_exist_for_a_recording_only() -> None:
    redaction = Redaction([ProjectVariable("CITY")])
    with pytest.raises(UsageError, match="redact CITY in the project file: this environment variable is not set"):
        redaction.require({})
    assert redaction.require({}, for_recording=False) == [
        "redact CITY in the project file: this environment variable is not set; its value is not recognized"
    ]


def test_an_exception_is_a_name_or_has_a_known_form() -> None:
    with pytest.raises(UsageError, match="--redact-except text:x: expected the name of an environment variable"):
        Redaction(excepted=["text:x"])


def test_the_values_of_a_command_line_make_a_redaction() -> None:
    redaction = Redaction.of({"redact": ("CITY",), "redact-except": (), "no-redact": ("",)})
    assert (redaction.off, redaction.secrets({"CITY": "x", "API_TOKEN": "y"})) == (True, {"env.CITY": "x"})
