"""Names of cassettes that depend on the session: templates such as `sessions/{time}-{pid}.yaml` and `{args}.yaml`.

A name with `{time}` or `{pid}` is another one for each session, so it is always recorded and never replayed. A name
with `{args}` or `{env}` is another one for each set of arguments or variables, for programs that do one thing and exit.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .provenance import Live

EACH_SESSION = "{time}-{pid}.yaml"  # in the folder of `record --dir`
NOTHING = "none"  # in the place of no arguments, and of an empty variable

_UNIQUE = ("{time}", "{pid}")
_LONGEST = 80  # characters that arguments take in a name
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")
_DIGEST = 10  # hexadecimal digits that tell two sets of arguments apart whose names are the same otherwise


def is_unique(name: str) -> bool:
    """Return True if each session has a cassette of its own by this name."""
    return any(field in name for field in _UNIQUE)


def expanded(name: str, live: Live) -> str:
    """Return the name of a cassette for a command, with its `{args}` and `{env}` filled in.

    Args:
        name: may be a template.
        live: the command; its arguments are those that a host passed to a shim, or all of them.
    """
    if "{args}" in name:
        passed = live.command[len(live.command) - live.passed :] if live.passed >= 0 else live.command[1:]
        name = name.replace("{args}", _slug(_neutral(passed, live)))
    if "{env}" in name:
        from .provenance import recorded_value

        name = name.replace("{env}", _slug(_neutral(filter(None, map(recorded_value, live.match_env)), live)))
    return name


def reserved(name: str) -> str:
    """Return a name that no other session has, and create its partial file so that none gets it.

    If that file cannot be created, the name is returned all the same: the session counts more than its recording, and
    the recorder reports the cause when it writes.

    Args:
        name: a template with `{time}` or `{pid}`.
    """
    from time import gmtime, strftime, time_ns

    from .http.naming import beside

    now = time_ns()
    moment = strftime("%Y%m%dT%H%M%S", gmtime(now // 1_000_000_000)) + f".{now // 1_000 % 1_000_000:06}Z"
    name = name.replace("{time}", moment).replace("{pid}", str(os.getpid()))
    base, dot, suffix = name.rpartition(".")
    if not dot or "/" in suffix:
        base, suffix = name, ""
    number = 1
    with suppress(OSError):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)  # noqa: PTH103, PTH120 - pathlib costs 5 ms
    while True:
        found = name if number == 1 else f"{base}-{number}{dot}{suffix}"
        number += 1
        partial = f"{found}.partial"
        try:
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            continue
        except OSError:
            return found
        if not any(os.path.lexists(each) for each in (found, beside(found))):
            return found
        os.unlink(partial)  # noqa: PTH108


def release(name: str) -> None:
    """Remove the reservation of a name for a session that did not begin."""
    with suppress(OSError):
        os.unlink(f"{name}.partial")  # noqa: PTH108


def _neutral(words: Iterable[str], live: Live) -> tuple[str, ...]:
    """Return words as a header would have them: without secrets, and without folders of this machine."""
    from ext_sdk.redaction import Redactor, secret_variables

    from .provenance import neutral_command

    redactor = Redactor(secret_variables(os.environ) | dict(live.redact), rules=True)
    home = os.environ.get("HOME", "")
    places = {**({"home": home} if home.count("/") > 1 else {}), **live.bind}

    def clean(data: bytes) -> bytes:
        data = redactor.redact(data)
        for place, path in places.items():
            data = data.replace(os.fsencode(path), b"{%b}" % place.encode())
        return data

    return neutral_command(["program", *words], clean)[1:]


def _slug(words: tuple[str, ...]) -> str:
    """Return words as a part of a file name: readable, and another one for other words."""
    if not words:
        return NOTHING
    plain = all(word and word[0] != "." and _PLAIN.issuperset(word) for word in words)
    text = "_".join("".join(char if char in _PLAIN else "-" for char in word) for word in words).lstrip(".")
    if plain and len(text) <= _LONGEST and text != NOTHING:
        return text
    from hashlib import sha256

    digest = sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()
    return f"{text[:_LONGEST]}-{digest[:_DIGEST]}".lstrip("-")
