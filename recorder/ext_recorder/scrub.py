"""`scrub`: take out of a cassette what should not be in it, as a recorder would have done.

The cassette is read twice: a secret that is known by its key in one message may stand without it in an earlier one.
What was replaced before keeps its placeholder, and no new one gets its number.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads

from .cassette.events import OWN_FILES, STDERR_FRAMING, Data, cleaned_head, note, pieces
from .cassette.header import Header
from .cassette.reader import Reader
from .http.naming import SUFFIX
from .rewriting import line_of, write_cassette

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_recorder.redaction import Redaction
    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.core.wire.framing import Framing

    from .cassette.events import Event

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
        from .http.scrubbing import scrub as scrub_traffic

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
        yield line_of(event, framing)
    elif not event.raw:
        payload = clean(event.payload)
        head = cleaned_head(event.head, clean) if event.head else ()
        yield line_of(Data(event.kind, event.time, payload, head=head, conn=event.conn), framing)
    elif redactor.redact(event.payload) == event.payload and all(
        redactor.redact(item.wire) == item.wire for item in pieces(event.payload, own)
    ):
        yield line_of(event, framing)
    else:
        for item in pieces(event.payload, own):
            yield note(event.kind, event.time, item, own, clean, conn=event.conn)


def _count(before: bytes, after: bytes, changes: Counter[str]) -> None:
    """Count the placeholders that are new, or the change if a rule has a replacement of its own."""
    if after is not before and after != before:
        new = Counter(PLACEHOLDER.findall(after)) - Counter(PLACEHOLDER.findall(before))
        changes.update({rule.decode(): count for rule, count in new.items()} or {REPLACED: 1})
