"""`ext-recorder convert`: cassettes from and to other formats."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import BIND, FORCE, REDACTING, bindings, redaction, to_file, value_of
from ext_recorder.protocols import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys

    from ext_recorder.batch.selection import file_of
    from ext_recorder.tools.convert import STDOUT, Options, convert

    options = Options(protocol=value_of(values, "protocol"), redact=redaction(values), bind=bindings(values))
    for note in options.notes:
        sys.stderr.write(f"ext-recorder: {note}\n")
    with file_of(value_of(values, "FILE")) as (path, _):
        message = convert(
            path,
            value_of(values, "output") or STDOUT,
            options,
            source=value_of(values, "from"),
            to=value_of(values, "to"),
            replace=bool(values["force"]),
        )
    if message:
        sys.stdout.write(f"{message}\n")
    return 0


FORMATS = ("cassette", "jsonl", "mcp-rec", "mcp-cassette-ts", "mcp-cassette", "mcpsnoop")
FROM = Option("from", "Format of FILE. Default: detected from its beginning.", "NAME", choices=FORMATS)
TO = Option(
    "to",
    "Format of the output. Default: jsonl for a cassette, har for a recording of a run, cassette for others.",
    "NAME",
    choices=(*FORMATS[:2], "har"),
)
PROTOCOL = Option(
    "protocol", "Protocol of the messages in a recording of another program.", "NAME", choices=NAMES, default="mcp"
)
OUTPUT = to_file("New file. Default for JSON lines and HAR: standard output.")
COMMAND = Command(
    "convert",
    "Convert cassettes to and from JSON lines, HTTP traffic to HAR, and recordings of other programs to cassettes.",
    """
JSON lines contain everything that a cassette contains, one event per line, with messages as texts. Converting there and
back gives the same bytes. Recordings of mcp-rec, mcp-cassette (Python: versions 1 to 3; TypeScript: 1 and 2) and
mcpsnoop become cassettes of MCP, redacted as `record` does. They do not contain the end of the process, so it is
neither compared nor replayed.

The HTTP traffic of a recording of `ext-recorder run`, of a cassette with NAME.http.yaml, and of such a file itself,
becomes a HTTP Archive (HAR 1.2), which the developer tools of browsers and many proxies open.

    ext-recorder convert session.yaml
    ext-recorder convert -o session.jsonl session.yaml
    ext-recorder convert -o session.yaml session.jsonl
    ext-recorder convert --to har -o create-pod.har recordings/create-pod
    ext-recorder convert --from mcp-rec -o session.yaml mcp-session.jsonl
""",
    run,
    arguments=("FILE",),
    options=(FROM, TO, PROTOCOL, BIND, *REDACTING, OUTPUT, FORCE),
)
