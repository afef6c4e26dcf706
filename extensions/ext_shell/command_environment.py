"""Environment of commands, and the secrets in it."""

from __future__ import annotations

import fnmatch
import os
from typing import TYPE_CHECKING

from ext_sdk.core.redaction.secret_names import secret_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ext_sdk import Secrets

    from .config import ShellConfig


# Variables that every command gets. It gets no others of the extension's environment, which holds the host's API keys.
# A task must have the same result everywhere, so language and time zone are fixed; `env` or `passEnv` can set both.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR")
FIXED = {"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
DEFAULTS = {"PATH": os.defpath, "HOME": "/", "TMPDIR": "/tmp"}  # noqa: S108 - as POSIX defines it
SHORTEST_LINE = 8  # characters of a line of a secret that is redacted by itself
_WILDCARDS = frozenset("*?[")


def make_environment(
    config: ShellConfig, task: Mapping[str, str], pass_env: Iterable[str], env: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a command: the fixed variables, overridden by configuration, task and operation.

    Args:
        config: of the extension.
        task: `context.env` of the call.
        pass_env: names or patterns of further variables of this process's environment.
        env: variables with their values.
    """
    own = os.environ
    environment = FIXED | {
        name: own.get(name, DEFAULTS.get(name, "")) for name in INHERITED if name in own or name in DEFAULTS
    }
    environment |= _passed(own, config.pass_env) | dict(config.env)
    environment |= dict(task)
    environment |= _passed(own, pass_env) | dict(env)
    return environment


def hide_secrets(env: Mapping[str, str], names: Iterable[str], secrets: Secrets) -> None:
    """Register the values of secret variables for redaction: by the words in their names, and by the given names.

    A value of several lines is also redacted line by line, because logs are written line by line.
    """
    values = secret_variables(env)
    values |= {f"env.{name}": value for name in names if (value := env.get(name) or os.environ.get(name))}
    for name, value in values.items():
        secrets.add(name, value)
        lines = [line.strip() for line in value.splitlines()]
        for line in lines if len(lines) > 1 else ():
            if len(line) >= SHORTEST_LINE and not line.startswith("-----"):  # "-----BEGIN …" is not secret
                secrets.add(name, line)


def _passed(own: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Return the variables whose names match."""
    passed: dict[str, str] = {}
    for pattern in patterns:
        if _WILDCARDS & set(pattern):
            passed |= {name: value for name, value in own.items() if fnmatch.fnmatchcase(name, pattern)}
        elif pattern in own:
            passed[pattern] = own[pattern]
    return passed
