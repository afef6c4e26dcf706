"""Users' rules for the comparison of HTTP requests: `--ignore`, `--mask` and `--match-on`, of a `--http` command.

A request is compared as a JSON value: {"method", "scheme", "host", "port", "path", "query", "headers", "body"}. So a
rule is a pointer into it, as for a message: /query/nonce, /body/id, 'POST /v1/chat/* /body/metadata'.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ext_recorder.errors import UsageError
from ext_recorder.pointers import without
from ext_recorder.rules import Mask
from ext_sdk.core.wire.json_pointer import MISSING, parts, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Value = dict[str, object]

URI = ("scheme", "host", "port", "path", "query")
PARTS = ("method", *URI, "headers", "body")
# The parts that a word of --match-on names: words of vcrpy, and `params`, everything but the method.
WORDS = {**{part: (part,) for part in PARTS}, "raw_body": ("body",), "uri": URI, "params": (*URI, "body")}
MATCH_ON = ("method", "params")


class Matching:
    """Parts of requests that are compared.

    Args:
        ignore: values of `--ignore`: [METHOD [PATH]] POINTER. PATH may have `*` in it.
        mask: values of `--mask`.
        match_on: values of `--match-on`: words and pointers; () for method, URI and body.
        strict: refuse pointers that are not about requests; else leave them out: they are about messages.

    Attributes:
        any_server: the host or the port of a server does not count.

    Raises:
        UsageError: a value is not of its form.
    """

    def __init__(
        self,
        ignore: Iterable[str] = (),
        mask: Iterable[str] = (),
        match_on: Iterable[str] = (),
        *,
        strict: bool = False,
    ) -> None:
        self._ignored: list[tuple[str, str, str]] = []
        for entry in ignore:
            topic, pointer = _split(entry)
            if _is_of_request("ignore", entry, pointer, strict=strict):
                method, _, path = topic.partition(" ")
                self._ignored.append((method, path.strip(), _lowered(pointer)))
        self._mask = Mask.of(mask)
        self._words: set[str] = set()
        self._places: list[str] = []
        for word in match_on or MATCH_ON:
            if word in WORDS:
                self._words.update(WORDS[word])
            elif not word.startswith("/"):
                known = ", ".join(WORDS)
                raise UsageError(f"--match-on {word}: expected one of {known}, or a place, as /headers/x-tenant")
            elif _is_of_request("match-on", word, word, strict=strict):
                self._places.append(_lowered(word))
        everywhere = {pointer for method, path, pointer in self._ignored if not method and not path}
        self.any_server = bool(everywhere & {"/host", "/port"}) or not self._words >= {"host", "port"}

    @classmethod
    def of(
        cls, ignore: Iterable[str] = (), mask: Iterable[str] = (), match_on: Iterable[str] = (), *, strict: bool = False
    ) -> Matching | None:
        """Return the rules that these values make; None if they change nothing. Arguments as of the class."""
        ignore, mask, match_on = tuple(ignore), tuple(mask), tuple(match_on)
        if not ignore and not mask and match_on in {(), MATCH_ON}:
            return None
        return cls(ignore, mask, match_on, strict=strict)

    def counted(self, request: Value) -> tuple[Value, Mapping[str, object]]:
        """Return what counts of a request: its parts, and what is at the pointers of `--match-on`."""
        method, path = str(request["method"]), str(request["path"])
        pointers = [
            pointer
            for topic, pattern, pointer in self._ignored
            if topic in {"", method} and (not pattern or fnmatchcase(path, pattern))
        ]
        left = without(request, pointers) if pointers else request
        assert isinstance(left, dict)
        if self._mask:
            left = {name: self._masked(name, value) for name, value in left.items()}
        return {name: value for name, value in left.items() if name in self._words}, {
            place: None if (found := resolve(left, place)) is MISSING else found for place in self._places
        }

    def _masked(self, name: str, value: object) -> object:
        if self._mask is None or name not in {"path", "query", "headers", "body"}:
            return value
        if isinstance(value, bytes):
            try:
                return self._mask.text(value.decode()).encode()
            except UnicodeDecodeError:
                return value
        return self._mask.value(value)


def _split(entry: str) -> tuple[str, str]:
    """Return method and path, and the pointer of an entry."""
    if entry.startswith("/") and " /" not in entry:
        return "", entry
    topic, slash, rest = entry.rpartition(" /")
    return (topic.strip(), f"/{rest}") if slash else ("", entry)


def _is_of_request(option: str, entry: str, pointer: str, *, strict: bool) -> bool:
    """Return True if a pointer leads into a request. Raises UsageError if it has to, and does not."""
    try:
        tokens = parts(pointer)
    except ValueError:
        tokens = []
    if tokens and tokens[0] in PARTS:
        return True
    if not strict:
        return False
    known = ", ".join(f"/{part}" for part in PARTS)
    raise UsageError(f"--{option} {entry}: expected a place in HTTP requests, in one of {known}; as /query/nonce")


def _lowered(pointer: str) -> str:
    """Return a pointer with the name of a header as it is compared."""
    return pointer.lower() if pointer.startswith("/headers/") else pointer
