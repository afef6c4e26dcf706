"""Code that the recorder shares with the SDK: wire, redaction, processes, stdio and the words of the protocol.

`ext_recorder` imports this folder of `ext_sdk` and nothing else. Nothing here imports the rest of the SDK.
"""

import os
import sys

__version__ = "0.1.0"  # of the distribution; set only here

own_arguments: list[str] = []  # of `gevals-extensions`: the name of the program that it runs


def own_program(module: str) -> list[str]:
    """Return the command that runs a module of this project, with the interpreter and the isolation of this process.

    The executable `gevals-extensions` has an interpreter of its own, which reads neither variables nor `site`. Others
    need `site` to find the project, but no module of the current folder (-P).
    """
    return [sys.executable, *(["-I", "-S"] if sys.flags.no_site else ["-P"]), "-m", module]


def unsupported_system() -> str:
    """Return the reason why no program of this distribution can run on this system; "" if they can."""
    if hasattr(os, "fork"):
        return ""
    remedy = "install it in WSL (wsl --install)" if sys.platform == "win32" else "use Linux or macOS"
    return f"cannot run on {sys.platform}: it has no POSIX processes, signals and file locks; {remedy}"
