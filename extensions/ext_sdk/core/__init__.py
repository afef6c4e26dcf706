"""Code that the recorder shares with the SDK: wire, redaction, processes, stdio and the words of the protocol.

`ext_recorder` imports this folder of `ext_sdk` and nothing else. Nothing here imports the rest of the SDK.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__version__ = "0.1.0"  # of the distribution; set only here

own_arguments: list[str] = []  # of `gevals-extensions`: the name of the program that it runs

EXECUTABLE = "gevals-extensions"
CHOICE = "GEVALS_EXTENSION"  # variable with the name of the extension that the executable runs
# Modules with a function `main`, by the name of the program without `ext-`.
PROGRAMS = {
    "shell": "ext_shell.__main__",
    "kubernetes": "ext_kubernetes.__main__",
    "http": "ext_http.__main__",
    "host": "ext_host.__main__",
    "recorder": "ext_recorder.__main__",
    "sdk": "ext_sdk.new",
}
_RELEASED = (f"{EXECUTABLE}-linux-", f"{EXECUTABLE}-darwin-")  # beginnings of the executable's name in a release
_INTERPRETERS = (EXECUTABLE, "python", "pypy")
_ISOLATION = "BEIPSsu"  # options of an interpreter with which a program is the same one


def own_program(module: str) -> list[str]:
    """Return the command that runs a module of this project, with the interpreter and the isolation of this process.

    The executable `gevals-extensions` has an interpreter of its own, which reads neither variables nor `site`. Others
    need `site` to find the project, but no module of the current folder (-P).
    """
    return [sys.executable, *(["-I", "-S"] if sys.flags.no_site else ["-P"]), "-m", module]


def own_name(command: Sequence[str], choice: str = "") -> tuple[str, ...]:
    """Return a command of one of our programs as a user types it, such as `ext-shell`, however it is installed.

    Other commands are returned unchanged. Of ext-host, an internal option and a default are omitted, which are in older
    recordings, and programs of extensions have these names, too.

    Args:
        choice: value of GEVALS_EXTENSION, which chooses the program if the arguments do not.
    """
    program, words = os.path.basename(command[0]) if command else "", list(command)  # noqa: PTH119
    is_executable = program == EXECUTABLE or program.startswith(_RELEASED)
    if program.rstrip("0123456789.") in _INTERPRETERS:
        at = 1
        while words[at:] and words[at][:1] == "-" and not words[at][1:].strip(_ISOLATION):
            at += 1
        module = words[at + 1] if words[at : at + 1] == ["-m"] and words[at + 1 :] else ""
        named = [name for name, known in PROGRAMS.items() if known.removesuffix(".__main__") == module]
        if named or module == "gevals_extensions":
            words[: at + 2] = [EXECUTABLE, *named]
            is_executable = True
    if is_executable and words[1:2] and words[1].removeprefix("ext-") in PROGRAMS:
        words[:2] = [f"ext-{words[1].removeprefix('ext-')}"]
    elif is_executable and choice in PROGRAMS:
        words[0] = f"ext-{choice}"
    if words[:2] == ["ext-host", "run"]:
        words = [
            _own_extension(word) for word in words if word != "--parallel=1" and not word.startswith("--programs=")
        ]
    return tuple(words)


def _own_extension(option: str) -> str:
    """Return an option --extension=NAME=COMMAND with the name of our program; other words as they are."""
    name, equals, command = option.removeprefix("--extension=").partition("=")
    if not equals or not option.startswith("--extension="):
        return option
    from shlex import join, split

    try:
        program, *arguments = own_name(split(command), name)
    except ValueError:  # no program, or a quotation mark without its end
        return option
    program = os.path.basename(program)  # noqa: PTH119
    is_own = program.startswith("ext-") and program[4:] in PROGRAMS
    return f"--extension={name}={join([program, *arguments])}" if is_own else option


def load_failure(error: Exception) -> str:
    """Return the reason why a program cannot be loaded. The executable puts its own function here, see START there."""
    return f"{type(error).__name__}: {error}"


def unsupported_system() -> str:
    """Return the reason why no program of this distribution can run on this system; "" if they can."""
    if hasattr(os, "fork"):
        return ""
    remedy = "install it in WSL (wsl --install)" if sys.platform == "win32" else "use Linux or macOS"
    return f"cannot run on {sys.platform}: it has no POSIX processes, signals and file locks; {remedy}"
