"""Commands that write cassettes from others: scrub, trim, merge, convert, recover."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import (
    BIND,
    FORCE,
    NAMING,
    REDACTING,
    SEVERAL,
    bindings,
    chosen,
    jobs,
    number,
    output,
    redaction,
    to_file,
    value_of,
)
from ext_recorder.protocols import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values
    from ext_recorder.tools.scrub import Scrubbed


# --- scrub ------------------------------------------------------------------------------------------------------------


def _scrub(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from functools import partial
    from pathlib import Path

    from ext_recorder.batch.pool import map_cassettes
    from ext_recorder.batch.selection import Cassette
    from ext_recorder.cassette.git_patch import file_of
    from ext_recorder.cassette.paths import beside
    from ext_recorder.errors import UsageError
    from ext_recorder.messages.redaction import Redaction
    from ext_recorder.tools.scrub import scrub_all

    check = bool(values["check"])
    redaction = Redaction.of(values, _listed_secrets(value_of(values, "secrets")))
    for note in redaction.require(for_recording=not check):
        sys.stderr.write(f"ext-recorder: {note}\n")
    cassettes = {}
    for cassette in chosen(values, recordings=True):
        cassettes[cassette.name] = cassette
        for further in (beside(cassette.name), file_of(cassette.name)):
            if not cassette.remote and Path(further).is_file():
                cassettes.setdefault(further, Cassette(further))
    if not check and (remote := next((cassette.name for cassette in cassettes.values() if cassette.remote), "")):
        raise UsageError(f"{remote} is read-only; scrub a copy of it, or use --check")
    code = 0
    work = partial(scrub_all, redaction=redaction, check=check)
    for outcome in map_cassettes(list(cassettes.values()), work, jobs=jobs(values)):
        if outcome.result is None:
            sys.stderr.write(f"ext-recorder: {outcome.error}\n")
            code = 2
            continue
        for result in outcome.result:
            sys.stdout.write(_line(result, "found" if check else "replaced"))
            code = code or int(check and bool(result.replaced))
    return code


def _line(result: Scrubbed, action: str) -> str:
    if not result.replaced:
        return f"{result.name}: nothing to replace\n"
    rules = ", ".join(f"{rule} ({count})" for rule, count in sorted(result.replaced.items()))
    numbers = ", ".join(map(str, result.numbers))
    places = f"; {result.places} {numbers}" if numbers else "; lines of the head" if result.places else ""
    return f"{result.name}: {action} {rules}{places}\n"


def _listed_secrets(path: str) -> dict[str, str]:
    """Return the secrets listed in a file, one per line."""
    if not path:
        return {}
    from pathlib import Path

    from ext_recorder.errors import UsageError

    try:
        lines = Path(path).read_text("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        raise UsageError(f"--secrets {path}: cannot be read: {error.strerror}") from None
    return {f"listed.{number}": line.strip() for number, line in enumerate(lines, 1) if line.strip()}


CHECK = Option("check", "Do not write; the exit code is 1 if there is anything to replace.")
SECRETS = Option("secrets", "File that lists secrets, one per line.", "FILE")
SCRUB_COMMAND = Command(
    "scrub",
    "Remove secrets from existing cassettes.",
    f"""
For cassettes that were recorded before a secret was known, written by hand, or converted. Secrets are replaced by
numbered placeholders in messages, in lines of standard error and in the recorded command. Existing placeholders are
kept, and a cassette without secrets is not modified. The output names the rules that matched. The HTTP traffic of a
cassette, NAME.http.yaml, is scrubbed with it.

    ext-recorder scrub session.yaml
    ext-recorder scrub --redact DB_URL --secrets leaked.txt cassettes/
    ext-recorder scrub --check cassettes/
    ext-recorder scrub recordings/create-pod

All files of a recording are scrubbed together: a secret that one of them shows is replaced in all of them, and the
folder is replaced at once.

--redact names an environment variable whose value is a secret; variables whose names look secret are included by
default. Git keeps earlier commits: a secret that was published must be changed.

{NAMING}""",
    _scrub,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(CHECK, *REDACTING, SECRETS, *SEVERAL),
)


# --- trim -------------------------------------------------------------------------------------------------------------


def _trim(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.batch.selection import file_of
    from ext_recorder.errors import UsageError
    from ext_recorder.tools.trim import Part, parse_calls, trim

    part = Part(
        after=_moment(values, "after", 0.0),
        before=_moment(values, "before", float("inf")),
        calls=parse_calls(value_of(values, "calls")),
        only=values["only"],
        without=values["without"],
    )
    if part.before <= part.after:
        raise UsageError(f"--after {part.after:g} --before {part.before:g}: expected --after to be less than --before")
    target = output(values)
    with file_of(value_of(values, "CASSETTE")) as (path, _):
        kept, count = trim(path, Path(target), part, replace=bool(values["force"]))
    sys.stdout.write(f"{target}: {kept} of {count} messages kept\n")
    return 0


def _moment(values: Values, name: str, default: float) -> float:
    text = value_of(values, name)
    return number(name, text, "seconds of the session, as 2.5") if text else default


AFTER = Option("after", "Remove calls that the host made before this time of the session.", "SECONDS")
BEFORE = Option("before", "Remove calls that the host made at or after this time of the session.", "SECONDS")
CALLS = Option("calls", "Keep these requests of the host, counted from 1: 3-7,9.", "NUMBERS")
ONLY = Option("only", "Keep only this method, or one subject of it: 'execute run'. Repeatable.", "METHOD", many=True)
WITHOUT = Option("without", "Remove messages of this method, or of one subject of it. Repeatable.", "METHOD", many=True)
TRIM_COMMAND = Command(
    "trim",
    "Extract part of a session into a cassette that can be replayed.",
    """
A call that is removed takes with it its response, all that the child sent during the call, and the responses to that.
Requests of the child during a call that stays are kept unless --without names them. The handshake (everything before
the second request of the host) and the end of the session are always kept.

    ext-recorder trim --before 30 -o short.yaml session.yaml
    ext-recorder trim --calls 3-7,9 -o part.yaml session.yaml
    ext-recorder trim --only tools/call -o calls.yaml session.yaml
    ext-recorder trim --without log --without textDocument/publishDiagnostics -o quiet.yaml session.yaml
""",
    _trim,
    arguments=("CASSETTE",),
    options=(AFTER, BEFORE, CALLS, ONLY, WITHOUT, to_file("New cassette."), FORCE),
)


# --- merge ------------------------------------------------------------------------------------------------------------


def _merge(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from contextlib import ExitStack
    from pathlib import Path

    from ext_recorder.batch.selection import file_of
    from ext_recorder.tools.merge import merge

    target = output(values)
    with ExitStack() as stack:
        paths = [stack.enter_context(file_of(word))[0] for word in values["CASSETTE"]]
        events = merge(paths, Path(target), replace=bool(values["force"]))
    sys.stdout.write(f"{target}: {len(paths)} sessions, {events} events\n")
    return 0


MERGE_COMMAND = Command(
    "merge",
    "Merge several sessions into one that can answer any request recorded in them.",
    """
The sessions follow each other as if one host had held them with one child. Only the last session keeps its end (end of
input, exit, shutdown), and a handshake that repeats the first one is left out. All sessions must use the same protocol.
Paths with the same placeholder become the same folder in the merged session.

    ext-recorder merge -o all.yaml first.yaml second.yaml

For a host that sends some of the requests, in its own order, replay the result with `replay --order any`.
""",
    _merge,
    arguments=("CASSETTE",),
    repeats=True,
    options=(to_file("New cassette."), FORCE),
)


# --- convert ----------------------------------------------------------------------------------------------------------


def _convert(values: Values) -> int:
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
CONVERT_COMMAND = Command(
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
    _convert,
    arguments=("FILE",),
    options=(FROM, TO, PROTOCOL, BIND, *REDACTING, OUTPUT, FORCE),
)


# --- recover ----------------------------------------------------------------------------------------------------------


def _recover(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from pathlib import Path

    from ext_recorder.cassette.paths import SUFFIX
    from ext_recorder.cassette.recovery import name_of, recover

    partial, replace = Path(value_of(values, "PARTIAL")), bool(values["force"])
    output = value_of(values, "output")
    path = Path(output) if output else name_of(partial)
    if partial.is_dir():
        from ext_recorder.run import folder

        sys.stdout.writelines(f"{line}\n" for line in folder.recover(partial, path, replace=replace))
        return 0
    if path.name.endswith(SUFFIX):
        from ext_recorder.http.reader import recover_traffic as recover_http

        traffic = recover_http(partial, path, replace=replace)
        what = "1 HTTP interaction" if traffic.kept == 1 else f"{traffic.kept} HTTP interactions"
        dropped = f"; the last one was incomplete: {traffic.dropped} bytes removed" if traffic.dropped else ""
        unknown = f"; unknown, because the end is missing: {traffic.unknown}" if traffic.unknown else ""
        sys.stdout.write(f"{path}: {what} kept{dropped}{unknown}\n")
        return 0
    recovered = recover(partial, Path(output) if output else None, replace=replace)
    dropped = f"; the last line was incomplete: {recovered.dropped} bytes removed" if recovered.dropped else ""
    events = "1 event" if recovered.events == 1 else f"{recovered.events} events"
    sys.stdout.write(f"{recovered.path}: {events} kept{dropped}\n")
    return 0


RECOVER_COMMAND = Command(
    "recover",
    "Recover a cassette from the partial file of a killed recorder, or the recording of a killed run.",
    """
A session is written to NAME.partial, which is renamed to NAME when the session ends. If the session was interrupted,
everything except an incomplete last line can be recovered. This includes the HTTP traffic in NAME.http.yaml.partial,
except an incomplete last interaction. If its end is missing, the traffic of `ext-recorder run` can be replayed; the
traffic of a Python program can be replayed without its recorded host names, clock and calls. A
cassette that was truncated later, for example by a failed copy, is recovered in place.

`ext-recorder run FOLDER` records in FOLDER.partial. A recording is made of the complete HTTP interactions and of the
complete messages of each child; its header and the output of this command list what is missing.

    ext-recorder recover session.yaml.partial
    ext-recorder recover recordings/create-pod.partial
    ext-recorder recover session.yaml.partial -o rescued.yaml
    ext-recorder recover session.http.yaml.partial
    ext-recorder recover cut.yaml
""",
    _recover,
    arguments=("PARTIAL",),
    options=(
        to_file("Recovered cassette or recording. Default: NAME for NAME.partial, otherwise the file itself."),
        FORCE,
    ),
)


COMMANDS = (SCRUB_COMMAND, TRIM_COMMAND, MERGE_COMMAND, CONVERT_COMMAND, RECOVER_COMMAND)
