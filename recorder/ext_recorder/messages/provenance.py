"""Provenance of a cassette: which command it was recorded from, when, and in which environment.

A cassette must not be replayed for another program than the recorded one, so commands compare theirs with the header's.
Paths, interpreters and secrets differ between machines without being another command.
"""

from __future__ import annotations

import os

from ext_recorder.cassette.yaml_scalars import holds
from ext_recorder.errors import UsageError
from ext_sdk.core import CHOICE, EXECUTABLE, own_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ext_recorder.cassette.header import Header

    from .redaction import Redaction

QUIET = "EXT_RECORDER_QUIET"  # environment variable: any text in it has the effect of `--quiet`

_REDACTED = "[redacted:"
_SHOWN = 200  # characters of a command in a message,
_IN_HEADLINE = 60  # and in the line about a replay
# `python`, `python3` and `python3.12` name one interpreter: a cassette is for any version of it.
_INTERPRETERS = ("python", "pypy")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Live:
    """Command that a host starts, to be compared with that of a cassette.

    Attributes:
        command: its words; () if it is not known.
        passed: number of the last words that a host passed to a shim; -1 if the host does not start a shim. If these
            are all words, the others are not known, and not compared.
        match_env: names of environment variables whose values must be the recorded ones.
        bind: values of --bind.
        redact: redaction, also of messages; None: the default redaction.
    """

    __slots__ = ("bind", "command", "match_env", "passed", "redact")

    def __init__(
        self,
        command: Sequence[str],
        *,
        passed: int = -1,
        match_env: tuple[str, ...] = (),
        bind: Mapping[str, str] | None = None,
        redact: Redaction | None = None,
    ) -> None:
        self.command = tuple(command)
        self.passed = passed
        self.match_env = match_env
        self.bind = bind or {}
        self.redact = redact


def headline(path: str, header: Header) -> str:
    """Return the first line of a replay: the file, its date and its command."""
    when = f"recorded {readable(header.recorded)}" if header.recorded else ""
    source = f"from {shown(header.command, _IN_HEADLINE)}" if header.command else ""
    origin = " ".join(filter(None, (when, source if when else source and f"recorded {source}")))
    return f"replaying {path}" + (f", {origin}" if origin else "")


def quiet(flag: tuple[str, ...]) -> bool:
    """Return True if `--quiet` was given, or its environment variable is set."""
    return bool(flag or os.environ.get(QUIET))


def shown(words: Iterable[str], most: int = _SHOWN) -> str:
    """Return a command for people: on one line, quoted where a word has spaces, and not too long."""
    text = " ".join(word if word and word.isprintable() and " " not in word else repr(word) for word in words)
    text = readable(text)
    return text if len(text) <= most else f"{text[:most]}…"


def readable(text: str) -> str:
    """Return text without control characters, which could move a terminal's cursor."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def recordable(command: Sequence[str]) -> list[str]:
    """Return a command as a header has it, but not yet redacted: without the folders of this machine.

    Of a program with a full path only the name is kept, and one of our programs has the name that users type. An
    argument below the working directory is relative to it.
    """
    if not command:
        return []
    words = own_name(command, os.environ.get(CHOICE, ""))
    program, *arguments = (os.fsencode(word).decode(errors="replace") for word in words)
    name = program.rpartition("/")[2] if program.startswith("/") else program
    folder = _working_directory()
    return [name, *(_relative(word, folder) for word in arguments)]


def neutral_command(command: Sequence[str], clean: Callable[[bytes], bytes]) -> tuple[str, ...]:
    """Return a command as a header has it.

    It is cleaned as one text: that `hunter2` is a secret follows from the word before it, `--password`.
    """
    from ext_sdk.core.wire.json_codec import dumps, loads

    words = loads(clean(dumps(recordable(command)).encode()).decode())
    return tuple(map(str, words)) if isinstance(words, list) else ()


def neutral_environment(names: Iterable[str], clean: Callable[[bytes], bytes]) -> dict[str, str]:
    """Return the values of environment variables as a header has them; an unset one counts as empty."""
    from ext_sdk.core.wire.json_codec import dumps, loads

    values = {name: recorded_value(name) for name in names}
    cleaned = loads(clean(dumps(values).encode()).decode()) if values else {}
    return {str(name): str(value) for name, value in cleaned.items()} if isinstance(cleaned, dict) else {}


def recorded_value(name: str) -> str:
    """Return the value of an environment variable, before redaction; "" if it is not set."""
    value = os.fsencode(os.environ.get(name, "")).decode(errors="replace")
    return _relative(value, _working_directory())


def same_command(header: Header, live: Live) -> bool:
    """Return True if a header is of this command: of the same program, with the same arguments but for paths."""
    words = tuple(recordable(live.command))
    recorded = own_name(header.command, os.environ.get(CHOICE, ""))
    same = _program(recorded[0]) == _program(words[0])
    return same and _same(header, live, recorded[1:], words[1:])


def first_difference(recorded: Sequence[str], words: Sequence[str]) -> tuple[str, str]:
    """Return the first word of a recorded command that another one does not have, and its word, for people."""
    from itertools import zip_longest

    one = other = None
    for number, (one, other) in enumerate(zip_longest(recorded, words)):
        if one is None or other is None:
            break
        if not (_program(one) == _program(other) if number == 0 else _same_word(one, other)):
            break
    return ("nothing" if one is None else shown((one,)), "nothing" if other is None else shown((other,)))


def check(path: str, header: Header, live: Live) -> None:
    """Raise UsageError if a cassette was recorded from another command, or with other values of matched variables.

    A cassette without a command (one that was converted, or merged from several commands) is for any command.
    """
    remedy = _REMEDY if live.passed < 0 else _REMEDY_OF_SHIM
    if header.command and live.command and not _is_same(header, live):
        found = shown(_redacted(header, live, live.command))
        what = "the host passes" if live.passed == len(live.command) else "this command is"
        raise UsageError(f"{path}: recorded from another command: {shown(header.command)}; {what}: {found}; {remedy}")
    known = header.environment
    for name in dict.fromkeys((*known, *live.match_env)):
        value = recorded_value(name)
        if name not in known:
            problem = f"recorded without --match-env {name}"
        elif not _same(header, live, (known[name],), (value,)):
            found = shown(_redacted(header, live, (f"{name}={value}",)))
            problem = f"recorded with {shown((f'{name}={known[name]}',))}, now {found}"
        else:
            continue
        raise UsageError(f"{path}: {problem}; {remedy}")


_REMEDY = (
    "give each command a cassette of its own, record this one again (--mode all), or replay it for any command "
    "(--mode none, or --accept-command)"
)
_REMEDY_OF_SHIM = (
    "give each set of arguments a cassette of its own ({args} in its name), record this one again (--mode all), or "
    "write the shim for any arguments (--accept-command)"
)


def _is_same(header: Header, live: Live) -> bool:
    count = len(live.command)
    if count != live.passed:
        return same_command(header, live)
    # The words before those that the host passed are not known.
    if count < len(header.command) and _same(header, live, header.command[-count:], live.command):
        return True
    # One of our programs, whose recorded name stands for `python -m MODULE`, for example.
    ways = (Live((program, *live.command), bind=live.bind) for program in ("python", EXECUTABLE))
    return any(same_command(header, way) for way in ways)


def _same(header: Header, live: Live, recorded: Sequence[str], words: Sequence[str]) -> bool:
    if len(recorded) != len(words):
        return False
    if all(map(_same_word, recorded, words)):
        return True
    from .path_bindings import ReplayBindings

    bindings = ReplayBindings(header.bindings, live.bind, os.environ.get("HOME", ""))
    folder = _working_directory()

    def neutral(word: str) -> str:
        return bindings.to_placeholders(_relative(word, folder).encode("utf-8", "replace")).decode("utf-8", "replace")

    return all(
        _same_word(one, other) or _same_word(one, neutral(other)) for one, other in zip(recorded, words, strict=True)
    )


def _same_word(recorded: str, live: str) -> bool:
    recorded, live = (
        word if holds(word) else "".join(char if holds(char) else "\ufffd" for char in word)  # as a header is written
        for word in (recorded, live)
    )
    if recorded == live:
        return True
    if _REDACTED in recorded:
        return _same_but_for_secrets(recorded, live)
    # A relative path, and an absolute path that ends in it, as words or as values of one option.
    option, equals, path = recorded.partition("=")
    if equals and live.startswith(f"{option}="):
        recorded, live = path, live[len(option) + 1 :]
    if recorded.startswith("/") == live.startswith("/"):
        return recorded.removeprefix("./") == live.removeprefix("./") != ""
    absolute, relative = (recorded, live) if recorded.startswith("/") else (live, recorded)
    relative = relative.removeprefix("./")
    return bool(relative) and not relative.startswith("../") and absolute.endswith(f"/{relative}")


def _same_but_for_secrets(recorded: str, live: str) -> bool:
    """Return True if the live word has any text in the place of each recorded placeholder."""
    first, *others = recorded.split(_REDACTED)
    pieces = [first, *(piece.partition("]")[2] for piece in others)]
    if not live.startswith(first):
        return False
    at = len(first)
    for piece in pieces[1:-1]:
        at = live.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return live.endswith(pieces[-1]) and at + len(pieces[-1]) <= len(live)


def _program(word: str) -> str:
    scheme, is_url, rest = word.partition("://")
    if is_url:  # of a server; on loopback, it may have another port each time
        host, _, path = rest.partition("/")
        name, _, port = host.rpartition(":")
        return f"{scheme}://{name if port.isdigit() and name in _LOOPBACK else host}/{path}"
    name = word.rpartition("/")[2]
    for known in _INTERPRETERS:
        if name.startswith(known) and not name[len(known) :].strip("0123456789."):
            return known
    return name


def _relative(word: str, folder: str) -> str:
    """Return a word with a path below a folder relative to it, also behind the `=` of an option."""
    head, equals, path = word.partition("=") if not word.startswith("/") else ("", "", word)
    if folder and f"{path}/".startswith(f"{folder}/"):
        return f"{head}{equals}{path[len(folder) + 1 :] or '.'}"
    return word


def _working_directory() -> str:
    try:
        folder = os.getcwd()  # noqa: PTH109 - pathlib costs 5 ms
    except OSError:  # it was deleted
        return ""
    return folder if folder != "/" else ""


def _redacted(header: Header, live: Live, words: Sequence[str]) -> tuple[str, ...]:
    """Return words of this session as a recorder would have written them."""
    from .path_bindings import ReplayBindings
    from .redaction import Redaction

    redactor = (live.redact or Redaction()).redactor()
    bindings = ReplayBindings(header.bindings, live.bind, os.environ.get("HOME", ""))
    return neutral_command(words, lambda data: bindings.to_placeholders(redactor.redact(data)))
