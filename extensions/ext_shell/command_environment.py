"""The environment that commands run with."""

from __future__ import annotations

import fnmatch
import os
from typing import TYPE_CHECKING

from ext_sdk.core.redaction.secret_names import secret_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ext_sdk import Secrets

    from .config import ShellConfig


# What a command always gets. Everything else of the extension's environment stays out: it holds the host's API keys.
# A task must give the same everywhere, so language and time zone are fixed; both can be set by `env` or `passEnv`.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR")
FIXED = {"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
DEFAULTS = {"PATH": os.defpath, "HOME": "/", "TMPDIR": "/tmp"}  # noqa: S108 - where POSIX says it is
SHORTEST_LINE = 8  # characters of a line of a secret that is hidden by itself
_WILDCARDS = frozenset("*?[")


def make_environment(
    config: ShellConfig, task: Mapping[str, str], pass_env: Iterable[str], env: Mapping[str, str]
) -> dict[str, str]:
    """The environment of one command. Later ones win: what is always there, the configuration, the task, the operation.

    Args:
        config: of the extension.
        task: `context.env` of the call.
        pass_env: names or patterns of further variables of this process's environment.
        env: variables with their values.
    """
    own = os.environ
    made = FIXED | {
        name: own.get(name, DEFAULTS.get(name, "")) for name in INHERITED if name in own or name in DEFAULTS
    }
    made |= _passed(own, config.pass_env) | dict(config.env)
    made |= dict(task)
    made |= _passed(own, pass_env) | dict(env)
    return made


def hide_secrets(env: Mapping[str, str], names: Iterable[str], secrets: Secrets) -> None:
    """Make known what must not be seen: variables with telling names, and those that the configuration names.

    A value of several lines is hidden line by line too, because logs are written line by line.
    """
    found = secret_variables(env)
    found |= {f"env.{name}": value for name in names if (value := env.get(name) or os.environ.get(name))}
    for name, value in found.items():
        secrets.add(name, value)
        lines = [line.strip() for line in value.splitlines()]
        for line in lines if len(lines) > 1 else ():
            if len(line) >= SHORTEST_LINE and not line.startswith("-----"):  # "-----BEGIN …" is no secret
                secrets.add(name, line)


def _passed(own: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str]:
    passed: dict[str, str] = {}
    for pattern in wanted:
        if _WILDCARDS & set(pattern):
            passed |= {name: value for name, value in own.items() if fnmatch.fnmatchcase(name, pattern)}
        elif pattern in own:
            passed[pattern] = own[pattern]
    return passed
