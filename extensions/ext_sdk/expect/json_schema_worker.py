"""Child process that validates JSON by a JSON Schema; see json_schema.py. The only module that imports jsonschema.

Reads one request from stdin and writes the response to stdout, both JSON:

    request:   one line {"path": sys.path of the parent, "schema": …}, then the document up to end of file
    response:  {"wrong": the reason why the schema can't be used} or {"errors": their number, "others": paths and
               keywords of some, and of the best match "at": its path, "keyword": …, "value": of the keyword, "missing":
               members of `required`, "additional": members that `additionalProperties: false` refuses}

A validation that takes too long is ended by SIGALRM, whose default action needs no cooperation; one that needs too much
memory reaches RLIMIT_AS. Nothing is fetched: a reference that leads out of the schema is an error.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = 1 << 30  # bytes of address space
MOST_ERRORS = 1000  # counted at most
MOST_OTHERS = 4  # errors that are named next to the best match


def main() -> None:
    """Serve one request; the argument is its time limit in seconds."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ends with its parent, not before
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
    with suppress(ValueError):  # macOS has no limit of the address space: only those of time remain
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    header = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = header["path"]
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        answer = _errors(header["schema"], sys.stdin.buffer.read())
    except SchemaError as error:
        answer = {"wrong": f"at {error.json_path}: {error.message:.300}"}
    except Unresolvable as error:
        answer = {"wrong": f"the reference {error.ref!r:.200} leads to nothing within the schema; nothing is fetched"}
    except RecursionError:
        answer = {"wrong": "it refers to itself without end, or schema or document is nested too deeply"}
    except MemoryError:
        answer = {"wrong": "it takes too much memory"}
    sys.stdout.write(json.dumps(answer))


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
    # Not the library's own formats, which depend on the installed packages.
    checker = jsonschema.FormatChecker(formats=())
    for form, check in FORMATS.items():
        checker.checks(form, raises=ValueError)(_of_text(check))
    validator = draft(schema, registry=Registry(), format_checker=checker)
    errors = list(islice(validator.iter_errors(json.loads(document)), MOST_ERRORS))
    # The first of the outermost errors; of those of alternatives, the nearest match.
    if not errors:
        return {"errors": 0}
    first, *others = sorted(errors, key=lambda error: len(error.absolute_path))
    best = best_match([first])
    # `required` has an error for each missing member.
    others = [error for error in others if (error.json_path, error.validator) != (first.json_path, first.validator)]
    closed = best.validator == "additionalProperties" and best.validator_value is False
    declared = best.schema if closed else {}
    missing = best.validator == "required" and isinstance(best.validator_value, list)  # draft 3 had true
    return {
        "errors": len(errors),
        "at": list(best.absolute_path),
        "keyword": best.validator,  # None for a schema that is `false`
        "value": best.validator_value,
        "missing": [name for name in best.validator_value if name not in best.instance] if missing else None,
        "additional": [
            name
            for name in (best.instance if closed else ())
            if name not in declared.get("properties", ())
            and not any(re.search(pattern, name) for pattern in declared.get("patternProperties", ()))
        ],
        "others": [(list(error.absolute_path), error.validator or "false") for error in others[:MOST_OTHERS]],
    }


def _of_text(check: Callable[[str], object]) -> Callable[[object], bool]:
    """Return a check for the library: `format` applies to strings only."""
    return lambda value: not isinstance(value, str) or check(value) not in (None, False)


def _date(text: str) -> bool:
    from datetime import date

    return bool(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and bool(date.fromisoformat(text))


def _time(text: str) -> bool:
    """RFC 3339, 5.6: with seconds and an offset; a leap second only at the end of a day in UTC."""
    match = re.fullmatch(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))", text)
    if not match:
        return False
    hour, minute, second, offset_hour, offset_minute = (int(match[at] or 0) for at in (1, 2, 3, 5, 6))
    offset = (offset_hour * 60 + offset_minute) * (-1 if match[4] == "-" else 1)
    in_range = hour < 24 and minute < 60 and offset_hour < 24 and offset_minute < 60
    return in_range and (second < 60 or (second == 60 and (hour * 60 + minute - offset) % 1440 == 1439))


def _date_time(text: str) -> bool:
    return text[10:11] in {"T", "t"} and _date(text[:10]) and _time(text[11:])


def _email(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    if not at or not re.fullmatch(_LOCAL_PART, local):
        return False
    if not domain.startswith("["):
        return _hostname(domain)
    address = domain[1:].removesuffix("]")
    return domain.endswith("]") and bool(_ipv6(address[5:]) if address.startswith("IPv6:") else _ipv4(address))


def _hostname(text: str) -> bool:
    return len(text) <= 253 and bool(re.fullmatch(rf"{_LABEL}(?:\.{_LABEL})*", text))


def _ipv4(text: str) -> object:
    from ipaddress import IPv4Address

    return IPv4Address(text)


def _ipv6(text: str) -> object:
    from ipaddress import IPv6Address

    return "%" not in text and IPv6Address(text)


def _regex(text: str) -> object:
    try:
        return re.compile(text)
    except re.error:
        return None


def _uri(text: str) -> bool:
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text)) and _uri_reference(text)


def _uri_reference(text: str) -> bool:
    from urllib.parse import urlsplit

    if not re.fullmatch(_URI_REFERENCE, text):
        return False
    parts = urlsplit(text)
    return parts.port is None or parts.port >= 0  # raises ValueError if the port is not a number


_LOCAL_PART = r"[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*|\"(?:[ !#-\[\]-~]|\\[ -~])*\""
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_CHARACTER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"  # RFC 3986
_URI_REFERENCE = (
    rf"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://(?:{_CHARACTER}*@)?\[[0-9A-Fa-f:.]+\])?{_CHARACTER}*"
    rf"(?:\?(?:{_CHARACTER}|\?)*)?(?:#(?:{_CHARACTER}|\?)*)?"
)
_DURATION = (
    r"P(?!\Z)(?:[0-9]+W|(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?)"
)
# Each raises ValueError, or returns None or False, for a text that is not in its format; see json_schema.FORMATS.
FORMATS: dict[str, Callable[[str], object]] = {
    "date": _date,
    "date-time": _date_time,
    "duration": re.compile(_DURATION).fullmatch,
    "email": _email,
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "json-pointer": re.compile(r"(?:/(?:[^~/]|~[01])*)*").fullmatch,
    "regex": _regex,
    "time": _time,
    "uri": _uri,
    "uri-reference": _uri_reference,
    "uuid": re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}").fullmatch,
}


if __name__ == "__main__":
    main()
