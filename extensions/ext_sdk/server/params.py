"""Parameters of a request (gevals 0.0.1, "Execute"), parsed strictly: each error has the path of its member.

All functions raise RpcError, INVALID_PARAMS.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from ext_sdk.context import Agent
from ext_sdk.core import gevals_spec
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping


def parse_object(value: object, name: str) -> dict[str, object]:
    """Return an object; `name` is its path in an error."""
    if not isinstance(value, dict):
        raise RpcError(gevals_spec.INVALID_PARAMS, f"{name}: expected an object, found {shown(value)}")
    return value


def _of_the_system(value: object) -> TypeGuard[str]:
    """Return True for a text that can be a path or a variable of this system: no NUL, no lone surrogate."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def parse_workdir(value: object) -> Path:
    """Return an absolute path. The directory need not exist."""
    if not value or not _of_the_system(value):
        raise RpcError(gevals_spec.INVALID_PARAMS, f"context.workdir: expected a directory, found {shown(value)}")
    return Path(os.path.abspath(value))  # noqa: PTH100  (without reading the disk)


def parse_phase(value: object) -> str:
    """Return one of the phases, or "". Missing and empty are accepted: mcpchecker sends it empty."""
    if value is None or value == "":
        return ""
    if value not in gevals_spec.PHASES:
        raise RpcError(
            gevals_spec.INVALID_PARAMS,
            f"context.phase: expected one of {', '.join(gevals_spec.PHASES)}, found {shown(value)}",
        )
    return str(value)


def parse_timeout(value: object) -> float | None:
    """Return seconds. Missing, null and empty are no limit."""
    if value is None or value == "":
        return None
    invalid = RpcError(
        gevals_spec.INVALID_PARAMS, f'context.timeout: expected a duration such as "30s", found {shown(value)}'
    )
    if not isinstance(value, str):
        raise invalid
    try:
        seconds = Duration.parse(value).seconds
    except ValueError as error:
        raise RpcError(gevals_spec.INVALID_PARAMS, f"context.timeout: {error}") from error
    if seconds <= 0:
        raise invalid
    return seconds


def parse_env(value: object) -> dict[str, str]:
    """Return the variables of the task; none if missing or null."""
    if value is None:
        return {}
    env: dict[str, str] = {}
    for name, text in parse_object(value, "context.env").items():
        if not name or "=" in name or not _of_the_system(name):
            raise RpcError(gevals_spec.INVALID_PARAMS, f"context.env: expected names of variables, found {shown(name)}")
        if not _of_the_system(text):
            raise RpcError(gevals_spec.INVALID_PARAMS, f"context.env.{name}: expected a string, found {shown(text)}")
        env[name] = text
    return env


def parse_agent(value: object) -> Agent | None:
    """Return the agent's prompt and output; a part that is missing is None."""
    if value is None:
        return None
    members = parse_object(value, "context.agent")
    return Agent(_agent_text(members, "prompt"), _agent_text(members, "output"))


def _agent_text(members: Mapping[str, object], name: str) -> str | None:
    text = members.get(name)
    if name in members and not isinstance(text, str):
        raise RpcError(gevals_spec.INVALID_PARAMS, f"context.agent.{name}: expected a string, found {shown(text)}")
    return text if isinstance(text, str) else None


def shown(value: object) -> str:
    """Return a received value as short JSON, for errors."""
    text = dumps(value)
    return "nothing" if value is None else text if len(text) <= 60 else f"{text[:60]}…"
