"""Validation by JSON Schema, with the library jsonschema, in a child process with limits on time and memory.

A schema is from a task file and the document from a server or a program: `pattern` may explode, references may be
circular, and `uniqueItems` of a large array may take forever. A child process can be killed in any case. Starting it
takes 0.1 s.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from .check import Check, Json, quoted, redact_named, shown
from .json_equality import member_path, type_name
from .json_schema_keywords import SAY_NOTHING, unknown_word
from .regex import TIME_UP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .check import Redact

Schema = dict[str, Json]

LIMIT = 5.0  # seconds for one document
GRACE = 3.0  # seconds until a child that survives its own alarm is killed
_WORKER = str(Path(__file__).with_name("json_schema_worker.py"))


class SchemaFailed(Exception):
    """Invalid schema; str() is the reason."""


class SchemaTooSlow(SchemaFailed):
    """Validation that did not end within its limit."""


def problem(schema: object) -> str:
    """Return an error in a schema that shows without validation, or ""; other errors show during validation."""
    if not isinstance(schema, dict):
        return f"expected a JSON Schema, which is an object, found {shown(schema)}"
    if all(word in SAY_NOTHING or word.startswith("x-") for word in schema):
        return "this schema checks nothing; every document matches it"
    try:
        return unknown_word(schema)
    except RecursionError:
        return "the schema is nested too deeply"


def check_schema(
    schema: Schema, text: str, document: object, *, where: str, limit: float = LIMIT, redact: Redact = str
) -> Check:
    """Validate a document by a schema, `format` included.

    Args:
        schema: of the draft in its `$schema`. Default: 2020-12.
        where: name of the document in messages: `body`.
        limit: seconds.
        redact: redacts the values that are shown.

    Raises:
        SchemaFailed, SchemaTooSlow: see there.
    """
    answer = _ask(schema, text, limit)
    if "wrong" in answer:
        raise SchemaFailed(f"the schema can't be used: {answer['wrong']}")
    if not answer["errors"]:
        return Check(ok=True, what="to fit the schema", where=where)
    steps = answer["at"]
    assert isinstance(steps, list)
    found = document
    for step in steps:
        if isinstance(found, list):
            found = found[step] if isinstance(step, int) else None
        elif isinstance(found, dict):
            found = found[step]
    path = "".join(f"[{step}]" if isinstance(step, int) else member_path(step) for step in steps)
    redact = redact_named(path, redact)
    missing = answer.get("missing")
    more = f"; {answer['errors']} places don't fit" if answer["errors"] != 1 else ""
    what, expected = "to fit the schema's", "false"
    if isinstance(missing, list):
        what = "to have the required member" + ("s" if len(missing) > 1 else "")
        expected = ", ".join(quoted(name, redact) for name in missing)
    elif answer["keyword"]:
        expected = f"{answer['keyword']}: {shown(answer['value'], redact)}"
    return Check(
        False,  # noqa: FBT003  # as Check has it
        what,
        expected,
        f"{shown(found, redact)} ({type_name(found)}){more}",
        where=f"{where} at ${path}",
    )


def _ask(schema: Schema, text: str, limit: float) -> dict[str, object]:
    if limit <= 0:
        raise SchemaTooSlow(TIME_UP)
    header = json.dumps({"path": sys.path, "schema": schema}).encode()
    command = [sys.executable, "-I", "-S", "-W", "ignore", _WORKER, str(limit)]
    try:
        # An empty environment: it has secrets, and PYTHON… variables would change the child.
        done = subprocess.run(
            command,
            input=header + b"\n" + text.encode("utf-8", "surrogatepass"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            timeout=limit + GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SchemaTooSlow(_too_long(limit)) from None
    except OSError as error:
        raise SchemaFailed(f"no process for the schema: {error}") from error
    if done.returncode == -signal.SIGALRM:
        raise SchemaTooSlow(_too_long(limit))
    if done.returncode or not done.stdout:
        raise SchemaFailed(f"the process that validates by the schema ended with status {done.returncode}")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def _too_long(limit: float) -> str:
    return f"validating the document by the schema took longer than {limit:.3g} s; make the schema simpler"
