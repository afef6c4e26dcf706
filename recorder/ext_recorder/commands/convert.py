"""`ext-recorder convert`: cassettes from and to other formats."""

from __future__ import annotations

from ext_recorder.options import Command, Option

from .shared import BIND, FORCE, PROTOCOLS, REDACTING, bindings, one, redaction, to_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.options import Values


def run(values: Values) -> int:
    """Do what the command line says; returns the exit code."""
    import sys

    from ext_recorder.convert.converting import STDOUT, Options, convert
    from ext_recorder.many.names import file_of

    options = Options(protocol=one(values, "protocol"), redact=redaction(values), bind=bindings(values))
    with file_of(one(values, "FILE")) as (path, _):
        told = convert(
            path,
            one(values, "output") or STDOUT,
            options,
            source=one(values, "from"),
            to=one(values, "to"),
            replace=bool(values["force"]),
        )
    if told:
        sys.stdout.write(f"{told}\n")
    return 0


FORMATS = ("cassette", "jsonl", "mcp-rec", "mcp-cassette-ts", "mcp-cassette", "mcpsnoop")
FROM = Option("from", "the format of FILE; by default what it begins like", "NAME", choices=FORMATS)
TO = Option(
    "to",
    "the other format; by default jsonl for a cassette, and a cassette for anything else",
    "NAME",
    choices=FORMATS[:2],
)
PROTOCOL = Option(
    "protocol", "what the messages of another program's recording are", "NAME", choices=PROTOCOLS, default="mcp"
)
OUTPUT = to_file("the new file; JSON lines go to standard output without it")
COMMAND = Command(
    "convert",
    "Make JSON lines of a cassette, and a cassette of JSON lines or of another program's recording.",
    """
JSON lines hold all that a cassette holds, an event a line, messages as texts: a cassette that is converted there and
back is the same to the byte. Recordings of mcp-rec, mcp-cassette (Python: versions 1 to 3; TypeScript: 1 and 2) and
mcpsnoop become cassettes of MCP, redacted as `record` does it; none of them has the end of the process, so none is
compared or replayed.

    ext-recorder convert session.yaml
    ext-recorder convert -o session.jsonl session.yaml
    ext-recorder convert -o session.yaml session.jsonl
    ext-recorder convert --from mcp-rec -o session.yaml mcp-session.jsonl
""",
    run,
    arguments=("FILE",),
    options=(FROM, TO, PROTOCOL, BIND, *REDACTING, OUTPUT, FORCE),
)
