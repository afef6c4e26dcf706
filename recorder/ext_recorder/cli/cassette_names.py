"""Names of cassettes that depend on the session: templates such as `sessions/{time}-{pid}.yaml` and `{args}.yaml`.

`{time}` and `{pid}` differ in each session, so such a cassette is always recorded and never replayed. `{args}`, `{env}`
and `{stdin}` differ for each set of arguments or variables, or each input, for programs that do one thing and exit.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ext_recorder.messages.provenance import Live

STDIN_BYTES = 65_536  # most bytes of standard input, whose digest is `{stdin}`
EACH_SESSION = "{time}-{pid}.yaml"  # in the folder of `record --dir`
NOTHING = "none"  # replaces no arguments, and an empty variable

_UNIQUE = ("{time}", "{pid}")
_LONGEST = 80  # most characters of arguments in a name
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")
_DIGEST = 10  # hexadecimal digits that distinguish two sets of arguments with equal names


def is_unique(name: str) -> bool:
    """Return True if each session has a cassette of its own by this name."""
    return any(field in name for field in _UNIQUE)


def expanded(name: str, live: Live) -> str:
    """Return the name of a cassette for a command, with its `{args}`, `{env}` and `{stdin}` filled in.

    For `{stdin}`, standard input is read to its end first.

    Args:
        name: may be a template.
        live: the command; its arguments are those that a host passed to a shim, or all of them.
    """
    if "{args}" in name:
        passed = live.command[len(live.command) - live.passed :] if live.passed >= 0 else live.command[1:]
        name = name.replace("{args}", _slug(_neutral(passed, live)))
    if "{env}" in name:
        from ext_recorder.messages.provenance import recorded_value

        name = name.replace("{env}", _slug(_neutral(filter(None, map(recorded_value, live.match_env)), live)))
    if "{stdin}" in name:
        data = _cleaner(live)(_standard_input())
        name = name.replace("{stdin}", _digest(data) if data else NOTHING)
    return name


def reserved(name: str) -> str:
    """Return a name that no other session has, and create its partial file to reserve it.

    If that file cannot be created, the name is still returned: the session matters more than its recording, and the
    recorder reports the cause when it writes.

    Args:
        name: a template with `{time}` or `{pid}`.
    """
    from time import gmtime, strftime, time_ns

    from ext_recorder.cassette.paths import beside

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
        candidate = name if number == 1 else f"{base}-{number}{dot}{suffix}"
        number += 1
        partial = f"{candidate}.partial"
        try:
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            continue
        except OSError:
            return candidate
        if not any(os.path.lexists(path) for path in (candidate, beside(candidate))):
            return candidate
        os.unlink(partial)  # noqa: PTH108


def release(name: str) -> None:
    """Remove the reservation of a name for a session that did not begin."""
    with suppress(OSError):
        os.unlink(f"{name}.partial")  # noqa: PTH108


def _standard_input() -> bytes:
    """Read standard input to its end, and replace it by a copy. Raises UsageError if it is too long."""
    data = b""
    while len(data) <= STDIN_BYTES and (piece := os.read(0, STDIN_BYTES)):
        data += piece
    if len(data) > STDIN_BYTES:
        from ext_recorder.errors import UsageError

        raise UsageError(f"{{stdin}} in the name of a cassette: expected at most {STDIN_BYTES} bytes of standard input")
    if hasattr(os, "memfd_create"):
        again = os.memfd_create("stdin")
        os.write(again, data)
        os.lseek(again, 0, os.SEEK_SET)
    else:  # the buffer of a pipe is as large
        again, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
    os.dup2(again, 0)
    os.close(again)
    return data


def _digest(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()[:_DIGEST]


def _neutral(words: Iterable[str], live: Live) -> tuple[str, ...]:
    """Return words as a header contains them: without secrets, and without folders of this machine."""
    from ext_recorder.messages.provenance import neutral_command

    return neutral_command(["program", *words], _cleaner(live))[1:]


def _cleaner(live: Live) -> Callable[[bytes], bytes]:
    from ext_recorder.messages.redaction import Redaction

    redactor = (live.redact or Redaction()).redactor()
    home = os.environ.get("HOME", "")
    places = {**({"home": home} if home.count("/") > 1 else {}), **live.bind}

    def clean(data: bytes) -> bytes:
        data = redactor.redact(data)
        for place, path in places.items():
            data = data.replace(os.fsencode(path), b"{%b}" % place.encode())
        return data

    return clean


def _slug(words: tuple[str, ...]) -> str:
    """Return words as a readable part of a file name; different words give different parts."""
    if not words:
        return NOTHING
    plain = all(word and word[0] != "." and _PLAIN.issuperset(word) for word in words)
    text = "_".join("".join(char if char in _PLAIN else "-" for char in word) for word in words).lstrip(".")
    if plain and len(text) <= _LONGEST and text != NOTHING:
        return text
    digest = _digest("\0".join(words).encode("utf-8", "surrogateescape"))
    return f"{text[:_LONGEST]}-{digest}".lstrip("-")
