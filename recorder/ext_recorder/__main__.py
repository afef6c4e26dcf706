"""Entry point of ext-recorder: the only place that turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys

from ext_recorder.cli.command_line import read, run_command
from ext_recorder.cli.commands import COMMANDS
from ext_sdk.core import unsupported_system
from ext_sdk.core.stdio import run_program

from .errors import RecorderError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_WRONG = 2  # a wrong command line, or a file that cannot be read or written
EXIT_INTERNAL = 70  # a defect of ext-recorder; EX_SOFTWARE of sysexits.h
EXIT_INTERRUPTED = 130  # 128 + SIGINT


def main() -> int:
    """Run the command line of this process. Return its exit code."""
    return run_program("ext-recorder", _main)


def _main() -> int:
    if reason := unsupported_system():
        return _say(reason, EXIT_WRONG)
    try:
        return run(sys.argv[1:])
    except RecorderError as failure:
        return _say(str(failure), getattr(failure, "exit_code", EXIT_WRONG))
    except BrokenPipeError:
        raise
    except OSError as failure:
        return _say(f"{failure.filename}: {failure.strerror}" if failure.filename else str(failure), EXIT_WRONG)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as failure:  # noqa: BLE001 - users get a message instead of a traceback
        trace = failure.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        place = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})" if trace else ""
        what = f"{type(failure).__name__}: {failure}{place}"
        return _say(f"internal error, please report it with this line: {what}", EXIT_INTERNAL)


def run(words: Sequence[str]) -> int:
    """Parse a command line, with the fast parser or click, and run its command. Return the exit code."""
    command = COMMANDS.get(words[0]) if words else None
    given = read(command, words[1:]) if command else None
    if command is None or given is None:
        from ext_recorder.cli.click_app import run as run_by_click

        return run_by_click(words)
    return run_command(command, given)


def _say(message: str, code: int) -> int:
    try:  # noqa: SIM105 - contextlib takes a millisecond to import
        os.write(2, f"ext-recorder: {message}\n".encode(errors="backslashreplace"))
    except OSError:  # standard error is closed
        pass
    return code


if __name__ == "__main__":
    sys.exit(main())
