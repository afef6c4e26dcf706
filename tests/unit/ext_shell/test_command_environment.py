"""`run`: a clean environment, what is let into it, and what of it is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.ext_shell import HOST_ENV, TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_shell import Extension

ALWAYS = {"PATH", "HOME", "TMPDIR", "LANG", "TZ", "TERM"}


def _environment(shell: Extension, **args: object) -> dict[str, str]:
    text = shell.ok("run", command=["env", "-0"], log=False, **args).outputs["stdout"]
    return dict(entry.split("=", 1) for entry in text.split("\0")[:-1])


def test_nothing_of_the_host_but_the_few_that_everything_needs(shell: Extension) -> None:
    env = _environment(shell)
    assert set(env) == ALWAYS
    assert env == {
        "PATH": HOST_ENV["PATH"],
        "HOME": "/nonexistent",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
    }


def test_variables_are_let_through_by_name_and_by_pattern(shell: Extension) -> None:
    assert set(_environment(shell, passEnv=["PLAIN", "NOT_SET"])) == ALWAYS | {"PLAIN"}
    assert set(_environment(shell, passEnv=["PLAIN*"])) == ALWAYS | {"PLAIN", "PLAIN_2"}


def test_variables_of_the_operation_win_over_those_of_the_task(shell: Extension) -> None:
    command = {
        "command": ["bash", "-c", "echo $A $B $LANG $PLAIN"],
        "env": {"B": "op", "LANG": "C"},
        "passEnv": ["PLAIN"],
    }
    answer = shell.call("run", command, env={"A": "task", "B": "task", "PLAIN": "task"})
    assert answer.outputs["stdout"] == "task op C visible\n"


def test_the_configuration_adds_variables_for_all(fresh: Callable[..., Extension]) -> None:
    shell = fresh(config={"passEnv": ["PLAIN"], "env": {"A": "config", "B": "config"}})
    answer = shell.call("run", {"command": ["bash", "-c", "echo $A $B $PLAIN"], "env": {"B": "op"}})
    assert answer.outputs["stdout"] == "config op visible\n"


def test_a_secret_that_was_let_through_is_hidden_wherever_it_comes_back(shell: Extension) -> None:
    script = "echo $API_TOKEN; echo -n $API_TOKEN | base64; echo -n $API_TOKEN | xxd -p >&2 || true; seq 10000; exit 1"
    answer = shell.failed("run", script=script, passEnv=["API_TOKEN"])
    text = repr(answer.raw) + repr(answer.logs) + Path(answer.outputs["stdoutFile"]).read_text()
    assert TOKEN not in text
    assert "c2VzYW1lLW9wZW5zLTQy" not in text
    assert TOKEN.encode().hex() not in text
    assert "[redacted:env.API_TOKEN" in answer.outputs["stdout"]


def test_secrets_in_variables_of_the_operation_are_hidden_by_their_names(shell: Extension) -> None:
    answer = shell.ok("run", command=["env"], env={"DB_PASSWORD": "rosebud-1941", "COLOR": "burgundy-red"})
    assert "rosebud-1941" not in repr(answer.raw) + repr(answer.logs)
    assert "COLOR=burgundy-red" in answer.outputs["stdout"]


def test_secrets_of_the_task_are_hidden_too(shell: Extension) -> None:
    answer = shell.call("run", {"command": ["env"]}, env={"SESSION_TOKEN": "rosebud-1942"})
    assert "rosebud-1942" not in repr(answer.raw) + repr(answer.logs)


def test_further_secrets_are_named_by_the_configuration(fresh: Callable[..., Extension]) -> None:
    shell = fresh({"HARMLESS_NAME": "rosebud-1943"}, {"secrets": ["HARMLESS_NAME"]})
    answer = shell.ok("run", command=["env"], passEnv=["HARMLESS*"])
    assert "rosebud-1943" not in repr(answer.raw) + repr(answer.logs)


def test_a_secret_of_several_lines_is_hidden_line_by_line(shell: Extension) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
    answer = shell.ok(
        "run", script='echo "$TLS_PRIVATE_KEY" | sed -n 2p; echo "$TLS_PRIVATE_KEY"', env={"TLS_PRIVATE_KEY": key}
    )
    for part in ("MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC"):
        assert part not in repr(answer.raw) + repr(answer.logs)
