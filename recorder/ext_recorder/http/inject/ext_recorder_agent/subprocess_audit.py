"""Audit of programs that the child runs, whose traffic is not recorded: the recorder reports their names."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Programs by which the libraries of Python ask about the machine. They do not use the network.
OFFLINE = frozenset(
    {"uname", "lsb_release", "sw_vers", "sysctl", "locale", "ldconfig", "gcc", "cc", "ld", "objdump", "stty", "tput"}
)
BLIND = ("I", "E", "S")  # options of Python with which it does not load the agent


def audit_subprocesses(module: Any, tell: Callable[[str], None]) -> None:
    """Report the name of each program that is started and may use the network, unless it is a Python with the agent.

    Args:
        module: subprocess.
        tell: takes a name.
    """
    begin: Callable[..., None] = module.Popen.__init__

    def begin_and_tell(self: object, args: Any, *more: Any, **named: Any) -> None:
        begin(self, args, *more, **named)
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
        if words and not _is_seen(words, named.get("env")):
            name = os.path.basename(os.fsdecode(words[0]).split(" ")[0])  # noqa: PTH119
            if name not in OFFLINE:
                tell(name)

    module.Popen.__init__ = begin_and_tell


def _is_seen(words: list[Any], env: Any) -> bool:
    """Return True if a command runs a Python that loads the agent."""
    name = os.path.basename(os.fsdecode(words[0]))  # noqa: PTH119
    if not name.startswith("python") and os.fsdecode(words[0]) != sys.executable:
        return False
    options = [os.fsdecode(word) for word in words[1:4]]
    blind = any(word[:1] == "-" and word[1:2] != "-" and set(word[1:]) & set(BLIND) for word in options)
    return not blind and (env is None or "EXT_RECORDER_HTTP" in env)
