"""`scrub`: take out of a cassette what should not be in it, as a recorder would have done.

The cassette is read twice: a secret that is known by its key in one message may stand without it in an earlier one.
What was replaced before keeps its placeholder, and no new one gets its number.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import OWN_FILES, STDERR_FRAMING, Data, cleaned_head, note, pieces
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.paths import SUFFIX
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import CassetteError
from ext_recorder.http.reader import load
from ext_recorder.http.sanitizer import Sanitizer
from ext_recorder.http.writer import Writer, without_clients
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_recorder.cassette.events import Event
    from ext_recorder.http.reader import Document
    from ext_recorder.messages.redaction import Redaction
    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.core.wire.framing import Framing


REPLACED = "replacement"  # the name of rules with a replacement of their own
PLACEHOLDER = re.compile(rb"\[redacted:([A-Za-z0-9_.-]{1,96})#[0-9]{1,9}\]")


class Scrubbed:
    """What became of one file; picklable.

    Attributes:
        name: the file's.
        replaced: how often each rule has replaced something.
        numbers: where the first few of these places are.
        places: what is numbered.
    """

    __slots__ = ("name", "numbers", "places", "replaced")

    def __init__(
        self, name: str, replaced: Mapping[str, int], numbers: tuple[int, ...], *, places: str = "lines"
    ) -> None:
        self.name = name
        self.replaced = dict(replaced)
        self.numbers = numbers
        self.places = places


def scrub(path: Path, name: str, *, redaction: Redaction, check: bool = False) -> Scrubbed:
    """Redact a cassette anew, or the HTTP traffic beside one; without anything to redact it stays as it is.

    Args:
        path: the file.
        name: what it is called in messages.
        redaction: what is redacted.
        check: only look.

    Raises:
        CassetteError, CassetteInUse, OSError: it can't be read, or rewritten.
    """
    if name.endswith(SUFFIX):
        return scrub_traffic(path, name, redaction=redaction, check=check)
    redactor = redaction.redactor()
    _learn(path, redactor)
    changes: Counter[str] = Counter()
    lines: list[int] = []
    with Reader(path) as reader:
        framing = FRAMINGS[reader.header.framing]
        header = _header(reader.header, redactor, changes)
        for event in reader:
            before = sum(changes.values())
            for _ in _scrubbed(event, framing, redactor, changes):
                pass
            if sum(changes.values()) > before:
                lines.append(reader.line)
        redacted = reader.redacted or ()
    found = Scrubbed(name, changes, tuple(lines[:10]))
    if changes and not check:
        with Reader(path) as reader:
            again: Counter[str] = Counter()
            fresh = (line for event in reader for line in _scrubbed(event, framing, redactor, again))
            rules = tuple(sorted({*redacted, *changes}))
            write_cassette(Path(path), header, fresh, lambda: rules, replace=True)
    return found


def _learn(path: Path, redactor: Redactor) -> None:
    """Have the redactor see all of it once: earlier placeholders first, so that their numbers stay theirs."""
    placeholders: dict[bytes, None] = {}
    with Reader(path) as reader:
        for event in reader:
            if isinstance(event, Data) and b"[redacted:" in event.payload:
                for match in PLACEHOLDER.finditer(event.payload):
                    placeholders[match[0]] = None
    redactor.redact(b"token: " + b" ".join(placeholders))  # a word that makes it look closely
    with Reader(path) as reader:
        for event in reader:
            if isinstance(event, Data):
                redactor.redact(event.payload)
                cleaned_head(event.head, redactor.redact)


def _header(header: Header, redactor: Redactor, changes: Counter[str]) -> Header:
    """Return the header with a clean command, cleaned as one text: `--password` shows what the next word is."""

    def cleaned(value: object) -> object:
        data = dumps(value).encode("utf-8", "replace")
        clean = redactor.redact(data)
        _count(data, clean, changes)
        return loads(clean.decode())

    words, environment = cleaned(list(header.command)), cleaned(header.environment)
    return Header(
        header.protocol,
        header.framing,
        command=tuple(map(str, words)) if isinstance(words, list) else (),
        recorder=header.recorder,
        recorded=header.recorded,
        bindings=header.bindings,
        environment={str(name): str(value) for name, value in environment.items()}
        if isinstance(environment, dict)
        else {},
    )


def _scrubbed(event: Event, framing: Framing, redactor: Redactor, changes: Counter[str]) -> Iterator[bytes]:
    """The lines for an event: most often the one that it was."""
    own = STDERR_FRAMING if isinstance(event, Data) and (event.kind == "err" or event.conn == OWN_FILES) else framing

    def clean(data: bytes) -> bytes:
        redacted = redactor.redact(data)
        _count(data, redacted, changes)
        return redacted

    if not isinstance(event, Data):
        yield encode_event(event, framing)
    elif not event.raw:
        payload = clean(event.payload)
        head = cleaned_head(event.head, clean) if event.head else ()
        yield encode_event(Data(event.kind, event.time, payload, head=head, conn=event.conn), framing)
    elif redactor.redact(event.payload) == event.payload and all(
        redactor.redact(item.wire) == item.wire for item in pieces(event.payload, own)
    ):
        yield encode_event(event, framing)
    else:
        for item in pieces(event.payload, own):
            yield note(event.kind, event.time, item, own, clean, conn=event.conn)


def _count(before: bytes, after: bytes, changes: Counter[str]) -> None:
    """Count the placeholders that are new, or the change if a rule has a replacement of its own."""
    if after is not before and after != before:
        new = Counter(PLACEHOLDER.findall(after)) - Counter(PLACEHOLDER.findall(before))
        changes.update({rule.decode(): count for rule, count in new.items()} or {REPLACED: 1})


HEAD = ("recorder", "recorded", "epoch", "seed", "bindings", "deterministic")  # what stands before the interactions
WRITERS_OWN = ("http", "version")  # what the writer says itself


def scrub_traffic(path: Path, name: str, *, redaction: Redaction, check: bool = False) -> Scrubbed:
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
        self._cleaner = Sanitizer(self._clean)

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
