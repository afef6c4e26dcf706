"""`ext-recorder scrub`: remove secrets from existing cassettes."""

from __future__ import annotations

from ext_recorder.cli.common_options import NAMING, REDACTING, SEVERAL, chosen, jobs, one
from ext_recorder.cli.options import Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.batch.selection import Cassette
    from ext_recorder.cli.options import Values
    from ext_recorder.tools.scrub import Scrubbed


def run(values: Values) -> int:
    """Run the command. Return its exit code."""
    import sys
    from functools import partial

    from ext_recorder.batch.pool import map_cassettes
    from ext_recorder.errors import UsageError
    from ext_recorder.messages.redaction import Redaction
    from ext_recorder.tools.scrub import scrub

    check = bool(values["check"])
    redaction = Redaction.of(values, _listed(one(values, "secrets")))
    for note in redaction.require(for_recording=not check):
        sys.stderr.write(f"ext-recorder: {note}\n")
    cassettes = _with_traffic(chosen(values))
    if not check and (remote := next((found.name for found in cassettes if found.remote), "")):
        raise UsageError(f"{remote} is read-only; scrub a copy of it, or use --check")
    code = 0
    for outcome in map_cassettes(cassettes, partial(scrub, redaction=redaction, check=check), jobs=jobs(values)):
        if outcome.result is None:
            sys.stderr.write(f"ext-recorder: {outcome.error}\n")
            code = 2
            continue
        sys.stdout.write(_told(outcome.result, check=check))
        if check and outcome.result.replaced:
            code = code or 1
    return code


def _with_traffic(cassettes: list[Cassette]) -> list[Cassette]:
    """Return the cassettes, each followed by the file of its HTTP traffic, if it exists."""
    from pathlib import Path

    from ext_recorder.batch.selection import Cassette
    from ext_recorder.cassette.paths import beside

    found = {}
    for map_cassettes in cassettes:
        found[map_cassettes.name] = map_cassettes
        traffic = beside(map_cassettes.name)
        if not map_cassettes.remote and Path(traffic).is_file():
            found.setdefault(traffic, Cassette(traffic))
    return list(found.values())


def _listed(path: str) -> dict[str, str]:
    """Return the secrets listed in a file, one per line."""
    if not path:
        return {}
    from pathlib import Path

    from ext_recorder.errors import UsageError

    try:
        lines = Path(path).read_text("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        raise UsageError(f"--secrets {path}: can't be read: {error.strerror}") from None
    return {f"listed.{number}": line.strip() for number, line in enumerate(lines, 1) if line.strip()}


def _told(found: Scrubbed, *, check: bool) -> str:
    if not found.replaced:
        return f"{found.name}: nothing to replace\n"
    rules = ", ".join(f"{rule} ({count})" for rule, count in sorted(found.replaced.items()))
    numbers = ", ".join(map(str, found.numbers))
    return f"{found.name}: {'found' if check else 'replaced'} {rules}; {found.places} {numbers or 'of the head'}\n"


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

--redact names an environment variable whose value is a secret; variables whose names look secret are included by
default. Git keeps earlier commits: a secret that was published must be changed.

{NAMING}""",
    run,
    arguments=("CASSETTE",),
    repeats=True,
    optional=True,
    options=(CHECK, *REDACTING, SECRETS, *SEVERAL),
)
