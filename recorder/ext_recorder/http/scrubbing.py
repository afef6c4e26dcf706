"""`scrub` for the HTTP traffic beside a cassette: what is in the file passes once more through what a recorder uses.

What was replaced before keeps its placeholder. Where there is nothing to replace the file stays as it is, to the byte;
else it is written anew, its interactions in the order in which they began.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ext_recorder.errors import CassetteError
from ext_recorder.scrub import PLACEHOLDER, REPLACED, Scrubbed

from .cleaning import Cleaner
from .reader import load
from .vcr import without_clients
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ext_recorder.redaction import Redaction

    from .reader import Document

HEAD = ("recorder", "recorded", "epoch", "seed", "bindings", "deterministic")  # what stands before the interactions
WRITERS_OWN = ("http", "version")  # what the writer says itself


def scrub(path: Path, name: str, *, redaction: Redaction, check: bool = False) -> Scrubbed:
    """Redact a file anew.

    Args:
        path: the file.
        name: what it is called in messages.
        redaction: what is redacted.
        check: only look.

    Returns:
        What became of it; how many different secrets each rule has found, and in which interactions.

    Raises:
        CassetteError, CassetteInUse, OSError: it can't be read, looked into, or rewritten.
    """
    without_clients()
    document = load(path)
    if "http" not in document.values:
        raise CassetteError(path, 0, "vcrpy has written this; its filters take secrets out")
    scrubbing = _Scrubbing(redaction, path.read_bytes())
    scrubbing.interactions(path, load(path))  # a secret that one of them tells of may stand in an earlier one
    numbers = scrubbing.interactions(path, document)
    values = {key: scrubbing.value(value) for key, value in document.values.items()}
    found = Scrubbed(name, scrubbing.replaced(), tuple(numbers[:10]), places="interactions")
    if found.replaced and not check:
        _write(path, document, values, found)
    return found


class _Scrubbing:
    """One file's secrets."""

    def __init__(self, redaction: Redaction, data: bytes) -> None:
        self._redactor = redaction.redactor()
        self._before = {match[0] for match in PLACEHOLDER.finditer(data)}
        self._redactor.redact(b"token: " + b" ".join(sorted(self._before)))  # so that their numbers stay theirs
        self._new: set[bytes] = set()
        self._changed = self._ever_changed = False
        self._cleaner = Cleaner(self._clean)

    def interactions(self, path: Path, document: Document) -> list[int]:
        """Clean all of them. Returns the numbers of those that had something, counted from 1."""
        numbers = []
        for number, each in enumerate(document.interactions, 1):
            self._changed = False
            try:
                self._cleaner.interaction(each)
            except ValueError as error:
                raise CassetteError(path, 0, f"interaction {number}: {error}") from None
            if self._changed:
                numbers.append(number)
        return numbers

    def value(self, value: object) -> object:
        """What else is in the file."""
        if isinstance(value, str):
            return self._cleaner.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {key: self.value(each) for key, each in value.items()}
        return value

    def replaced(self) -> Counter[str]:
        """How many different secrets, by rule."""
        found = Counter(rule.decode() for placeholder in self._new for rule in PLACEHOLDER.findall(placeholder))
        return found if found or not self._ever_changed else Counter({REPLACED: 1})

    def _clean(self, data: bytes) -> bytes:
        clean = self._redactor.redact(data)
        if clean != data:
            self._changed = self._ever_changed = True
            self._new |= {match[0] for match in PLACEHOLDER.finditer(clean)} - self._before
        return clean


def _write(path: Path, document: Document, values: Mapping[str, object], found: Scrubbed) -> None:
    """Put the clean file in the place of the old one."""
    writer = Writer(path)
    try:
        writer.head({key: values[key] for key in HEAD if key in values})
        for each in document.interactions:
            writer.append(each)
        tail = {key: value for key, value in values.items() if key not in (*HEAD, *WRITERS_OWN)}
        redacted = values.get("redacted")
        known = {str(each) for each in redacted} if isinstance(redacted, list) else set()
        writer.finish(tail | {"redacted": sorted({*known, *found.replaced})}, [])
    except BaseException:
        path.with_name(path.name + ".partial").unlink(missing_ok=True)
        raise
