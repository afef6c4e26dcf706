"""`ext-recorder scrub`: remove secrets from existing cassettes."""

from __future__ import annotations

from ext_recorder.cli import Command, Option
from ext_recorder.cli.options import NAMING, REDACTING, SEVERAL, chosen, jobs, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cli import Values
    from ext_recorder.tools.scrub import Scrubbed


def run(values: Values) -> int:
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
COMMAND = Command(
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
    run,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(CHECK, *REDACTING, SECRETS, *SEVERAL),
)
