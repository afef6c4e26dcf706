"""Search for passwords on command lines after options of one letter, as in ``mysql -pX`` or ``curl -u user:X``.

Options with telling names, as ``--password``, are found as assignments and members. The meaning of ``-p`` depends on
the program: listed are the programs that accept a password with it, or with another letter. A list of arguments
(``["-p", "x"]``) whose program is unknown counts if the value looks like a password.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .patterns import beside_placeholder, is_harmless
from .spans import in_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .escapes import View
    from .spans import Finding

# Program, option, and the separator of user and password: b"" if the value is the password.
_OPTIONS: Final = (
    (rb"sshpass", b"-p", b""),
    (rb"(?:mysql|mariadb)[a-z-]*", b"-p", b""),
    (rb"redis-cli", b"-a", b""),
    (rb"curl", b"-u", b":"),
    (rb"curl", b"--user", b":"),
    (rb"curl", b"-U", b":"),
    (rb"curl", b"--proxy-user", b":"),
    (rb"mongo[a-z]*", b"-p", b""),
    (rb"ldap[a-z]+", b"-w", b""),
    (rb"mosquitto_(?:pub|sub|rr)", b"-P", b""),
    (rb"smbclient", b"-U", b"%"),
    (rb"login", b"-p", b""),
)
# Programs that accept the password only in the same word: `mysql -p x` prompts for it, and opens the database x.
_GLUED_ONLY: Final = (b"mysql", b"mariadb")
_PROGRAM: Final = re.compile(
    rb"(?<![A-Za-z0-9_.-])(%b)(?:\.exe)?(?=[\s\0\"',])" % b"|".join(dict.fromkeys(each for each, _, _ in _OPTIONS))
)
# Only a text with one of these is searched: `in` takes a fraction of the time.
_NAMES: Final = (
    *(b"sshpass", b"mysql", b"mariadb", b"redis-cli", b"curl", b"mongo", b"ldap", b"mosquitto_", b"smbclient"),
    b"login",
)
_ARGUMENT_ENDS: Final = (b"-p\0", b'-p"', b"-p'")
# One word of a command line: a string in a list of arguments, or a word of a shell in a text.
_WORD: Final = re.compile(
    rb"[ \t]*+(?:\\\r?\n[ \t]*+)?"
    rb"(?:\0[ \t]*+,?[ \t\r\n]*+\0([^\0]*+)|\"[ \t]*+,[ \t]*+\"([^\"\0]*+)|,[ \t]*+'([^'\0]*+)'"
    rb"|\"([^\"\0\n]*+)\"|'([^'\0\n]*+)'|([^\s\0\"'`;|&<>()\[\]{}]++))"
)
_MOST_WORDS: Final = 64
_ARGUMENT: Final = re.compile(rb"[\0\"']-p(?:[\0\"'][ \t]*,[ \t]*[\0\"'])([^\0\"'\s]{6,64})[\0\"']")
_MIXED: Final = re.compile(rb"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9]*[0-9])[^/:.,=]+")


def find_options(view: View) -> Iterator[Finding]:
    """Yield the passwords after options of one letter."""
    text = view.text
    if b"-" not in text:
        return
    for match in _PROGRAM.finditer(text) if any(name in text for name in _NAMES) else ():
        for start, end, option in _values(text, match.end(), match[1]):
            value = text[start:end]
            if value and not is_harmless("", value) and not beside_placeholder(text, start, end):
                yield in_view(view, start, end, f"option.{option.strip(b'-').decode()}")
    for match in _ARGUMENT.finditer(text) if any(end in text for end in _ARGUMENT_ENDS) else ():
        if _MIXED.fullmatch(match[1]):
            yield in_view(view, *match.span(1), "option.p")


def _values(text: bytes, at: int, program: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (start, end, option) of the passwords of a command."""
    options = [(name, mark) for pattern, name, mark in _OPTIONS if re.fullmatch(pattern, program)]
    pending: tuple[bytes, bytes] | None = None  # option whose value is the next word
    for _ in range(_MOST_WORDS):
        word = _WORD.match(text, at)
        if word is None or word.end() == at:
            return
        at = word.end()
        start, end = word.span(word.lastindex or 0)
        if pending:
            yield from _password(text, start, end, *pending)
            pending = None
            continue
        for name, mark in options:
            if text[start:end] == name:
                pending = None if program.startswith(_GLUED_ONLY) else (name, mark)
            elif not name.startswith(b"--") and text.startswith(name, start) and end - start > len(name):
                yield from _password(text, start + len(name), end, name, mark)


def _password(text: bytes, start: int, end: int, name: bytes, mark: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the part of a value that is the password."""
    if mark:
        user = text.find(mark, start, end)
        if user < 0:
            return
        start = user + len(mark)
    if start < end:
        yield start, end, name
