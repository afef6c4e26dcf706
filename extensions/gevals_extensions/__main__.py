"""Choice of a program by the name of a link, the first argument, or a variable of the host.

Imports nothing but what the chosen program imports, because a host waits for the start.
"""

from __future__ import annotations

import os
import sys

from ext_sdk.core import CHOICE, PROGRAMS, __version__, own_arguments
from ext_sdk.core.stdio import run_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EXTENSIONS = ("shell", "kubernetes", "http")
USAGE_ERROR = 2
HELP = f"""\
usage: gevals-extensions PROGRAM [ARGUMENTS]

  shell, kubernetes, http   extensions for evals: ext-shell, ext-kubernetes, ext-http
  host                      run eval tasks without another host: ext-host
  recorder                  record and replay programs: ext-recorder
  sdk                       write your own extension: ext-sdk

A host starts the program without arguments and sets the variable {CHOICE} to the name of an extension:

  extensions:
    shell:
      package: github.com/OWNER/gevals-extensions
      env: {{{CHOICE}: shell}}

A link to the program with the name ext-PROGRAM, such as ext-shell, starts that program.
"""


def choose() -> Callable[[], int]:
    """Import the program that the command line or the environment names. Return its function `main`."""
    variable = os.environ.get(CHOICE, "")
    link, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]  # noqa: PTH119  (no pathlib here)
    first = arguments[0].removeprefix("ext-") if arguments else ""
    if link.startswith("ext-") and link[4:] in PROGRAMS:
        name = link[4:]
    elif first in PROGRAMS:
        name = first
        own_arguments.append(sys.argv.pop(1))
    elif variable in EXTENSIONS:
        name = variable
        own_arguments.append(name)
    else:
        return lambda: run_program("gevals-extensions", lambda: _without_program(link, arguments, variable))
    if name in EXTENSIONS:  # the recorder starts programs that the variable chooses; an extension does not
        os.environ.pop(CHOICE, "")
    module = PROGRAMS[name]
    __import__(module)
    program: Callable[[], int] = sys.modules[module].main
    return program


def main() -> int:
    """Run the chosen program. Return its exit code."""
    return choose()()


def _without_program(link: str, arguments: Sequence[str], variable: str) -> int:
    """Write the help for a person, or an error, which is a response if a host sent a request. Return the exit code."""
    if variable:
        wrong = f"{CHOICE}: expected one of {', '.join(EXTENSIONS)}, found {variable!r}"
    elif arguments in (["--version"], ["-h"], ["--help"]) or (not arguments and os.isatty(0)):
        sys.stdout.write(f"gevals-extensions {__version__}\n" if arguments == ["--version"] else HELP)
        return 0
    elif link.startswith("ext-"):
        wrong = f"{link}: expected a link with the name ext-{', ext-'.join(PROGRAMS)}; see gevals-extensions --help"
    elif arguments:
        wrong = f"expected one of {', '.join(PROGRAMS)}, found {arguments[0]!r}; see gevals-extensions --help"
    else:
        wrong = f"no extension is chosen; set {CHOICE} to one of {', '.join(EXTENSIONS)} in `env` of the extension"
    if not arguments and not os.isatty(0):
        from contextlib import suppress

        from ext_sdk.core.wire.errors import INVALID_REQUEST, MessageError, RpcError
        from ext_sdk.core.wire.jsonrpc import ErrorResponse, Request, encode, parse

        with suppress(MessageError):
            request = parse(sys.stdin.buffer.readline())
            if isinstance(request, Request):
                os.write(1, encode(ErrorResponse(request.id, RpcError(INVALID_REQUEST, wrong))) + b"\n")
    sys.stderr.write(f"gevals-extensions: {wrong}\n")
    return USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
