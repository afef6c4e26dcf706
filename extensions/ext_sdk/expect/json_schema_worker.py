"""The child process that holds JSON against a JSON Schema; see json_schema.py. The only module that imports jsonschema.

Reads one request from stdin and answers on stdout, both JSON:

    request:  one line {"path": sys.path of the parent, "schema": …}, then the document to its end
    answer:   {"wrong": why the schema can't be used} or {"errors": how many, and of the one to tell
              "at": its path, "keyword": …, "value": of the keyword}

One that takes too long is ended by SIGALRM, whose default action needs no cooperation; one that needs too much memory
meets RLIMIT_AS. Nothing is fetched: a reference that leads out of the schema is an error.
"""

from __future__ import annotations

import json
import signal
import sys

MEMORY = 1 << 30  # bytes of address space
MOST_ERRORS = 1000  # that are counted


def main() -> None:
    """Serve one request; the argument is the number of seconds that it may take."""
    _limit(float(sys.argv[1]))
    header = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = header["path"]
    answer = _answer(header["schema"], sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(answer))


def _answer(schema: dict[str, object], document: bytes) -> dict[str, object]:
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        return _errors(schema, document)
    except SchemaError as error:
        return {"wrong": f"at {error.json_path}: {error.message:.300}"}
    except Unresolvable as error:
        return {"wrong": f"the reference {error.ref!r:.200} leads to nothing within the schema; nothing is fetched"}
    except RecursionError:
        return {"wrong": "it refers to itself without end, or schema or document is nested too deeply"}
    except MemoryError:
        return {"wrong": "it takes too much memory"}


def _errors(schema: dict[str, object], document: bytes) -> dict[str, object]:
    from itertools import islice

    import jsonschema
    from jsonschema.exceptions import best_match
    from referencing import Registry

    drafts = (
        jsonschema.Draft202012Validator,
        jsonschema.Draft201909Validator,
        jsonschema.Draft7Validator,
        jsonschema.Draft6Validator,
        jsonschema.Draft4Validator,
    )
    known = {str(draft.META_SCHEMA["$schema"]).rstrip("#"): draft for draft in drafts}
    name = str(schema.get("$schema", next(iter(known)))).rstrip("#")
    if name not in known:
        return {"wrong": f"$schema: expected one of {', '.join(known)}, found {name:.100}"}
    draft = known[name]
    draft.check_schema(schema)
    errors = list(islice(draft(schema, registry=Registry()).iter_errors(json.loads(document)), MOST_ERRORS))
    # The first of the outermost ones, and of the alternatives that it stands for the one that was nearest.
    told = best_match(sorted(errors, key=lambda error: len(error.absolute_path))[:1])
    if told is None:
        return {"errors": 0}
    return {
        "errors": len(errors),
        "at": list(told.absolute_path),
        "keyword": told.validator,  # None for a schema that is `false`
        "value": told.validator_value,
    }


def _limit(seconds: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ends with its parent, not before
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        import resource
    except ImportError:  # Windows; the parent's time limit is what remains
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    main()
