"""`scrub`: redact the secrets in a cassette or a recording, with the rules of a recorder.

The cassette is read twice: a secret that one message shows by its key may be in a previous message without it. Existing
placeholders are kept, and new ones get other numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.cassette.events import Data, cleaned_head, note
from ext_recorder.cassette.git_patch import SUFFIX as PATCHES
from ext_recorder.cassette.paths import SUFFIX
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.recording import HEADER, KEY_PLACEHOLDER, change_header, opened
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import CassetteError
from ext_recorder.http.reader import load
from ext_recorder.http.sanitizer import Sanitizer
from ext_recorder.http.writer import Writer, without_clients
from ext_recorder.messages.redaction import PLACEHOLDER
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.header import Header
    from ext_recorder.cassette.recording import Recorded
    from ext_recorder.http.reader import Document
    from ext_recorder.messages.redaction import Redaction
    from ext_sdk.core.redaction.redactor import Redactor
    from ext_sdk.core.wire.framing import Framing


REPLACED = "replacement"  # name of rules that replace by a text of the user


class Scrubbed(NamedTuple):
    """Result for one file.

    Attributes:
        name: name of the file.
        replaced: number of replacements by rule.
        numbers: the first few lines or interactions with a replacement.
        places: the unit of `numbers`: "lines" or "interactions".
    """

    name: str
    replaced: Mapping[str, int]
    numbers: tuple[int, ...]
    places: str = "lines"


def scrub_all(path: Path, name: str, *, redaction: Redaction, check: bool = False) -> list[Scrubbed]:
    """Redact a file, or all files of a recording. Arguments and errors as of `scrub`."""
    if path.is_dir():
        return _scrub_recording(opened(path), name, redaction=redaction, check=check)
    return [scrub(path, name, redaction=redaction, check=check)]


def scrub(path: Path, name: str, *, redaction: Redaction, check: bool = False) -> Scrubbed:
    """Redact a cassette, or a file of HTTP interactions. A file without secrets is not written.

    Args:
        name: name of the file in messages.
        check: do not write the file.

    Raises:
        CassetteError, CassetteInUse, OSError: the file cannot be read, or rewritten.
    """
    redactor = redaction.redactor()
    if name.endswith(SUFFIX):
        return scrub_traffic(path, name, redactor, check=check)
    if name.endswith(PATCHES):
        return _scrub_bytes(path, name, redactor, check=check)
    _learn(path, redactor)
    return _scrub_cassette(path, name, redactor, check=check)


def _scrub_recording(recorded: Recorded, name: str, *, redaction: Redaction, check: bool) -> list[Scrubbed]:
    """Redact a copy of the folder, which then replaces it. A secret that one file shows is replaced in all of them."""
    redactor, folder = redaction.redactor(), recorded.path
    for part in recorded.parts:
        _learn(part.path, redactor)
    traffic = recorded.traffic
    if traffic is not None:
        scrub_traffic(traffic, name, redactor, check=True)
    if check:
        return _scrub_files(folder, name, recorded, redactor, check=True)
    with TemporaryDirectory(prefix=f".{folder.resolve().name}-", dir=folder.resolve().parent) as temporary:
        copy = Path(temporary) / "recording"
        copytree(folder, copy, symlinks=True)
        results = _scrub_files(copy, name, opened(copy), redactor, check=False)
        if any(result.replaced for result in results):
            target = folder.resolve()
            previous = target.with_name(f"{target.name}.previous")  # as of a run that records again
            rmtree(previous, ignore_errors=True)
            target.rename(previous)
            copy.rename(target)
            rmtree(previous)
    return results


def _scrub_files(folder: Path, name: str, recorded: Recorded, redactor: Redactor, *, check: bool) -> list[Scrubbed]:
    changes: Counter[str] = Counter()

    def redacted(value: object) -> object:
        # The placeholders of keys are needed for a replay. They are null meanwhile, because null is not a secret.
        data = dumps(_replaced(value, KEY_PLACEHOLDER, None)).encode("utf-8", "replace")
        clean = redactor.redact(data)
        _count(data, clean, changes)
        return _replaced(loads(clean.decode()), None, KEY_PLACEHOLDER)

    change_header(folder, redacted, write=not check)
    results = [Scrubbed(f"{name}/{HEADER}", changes, ())]
    results += [_scrub_cassette(part.path, f"{name}/{part.label}", redactor, check=check) for part in recorded.parts]
    if recorded.traffic is not None:
        results.append(scrub_traffic(recorded.traffic, f"{name}/{recorded.traffic.name}", redactor, check=check))
    known = {folder / HEADER, *(part.path for part in recorded.parts), recorded.traffic}
    for path in sorted(folder.rglob("*")):  # files of other kinds, such as patches
        if path.is_file() and not path.is_symlink() and path not in known:
            results.append(_scrub_bytes(path, f"{name}/{path.relative_to(folder)}", redactor, check=check))
    return results


def _replaced(header: object, old: str | None, new: str | None) -> object:
    """Return the values of a header in which variables of the environment have another value; its comments as is."""
    if not isinstance(header, dict) or not isinstance(environment := header.get("environment"), dict):
        return header
    return {**header, "environment": {name: new if value == old else value for name, value in environment.items()}}


def _scrub_bytes(path: Path, name: str, redactor: Redactor, *, check: bool) -> Scrubbed:
    """Redact a file of another kind, such as a patch."""
    changes: Counter[str] = Counter()
    data = path.read_bytes()
    clean = redactor.redact(data)
    _count(data, clean, changes)
    if changes and not check:
        path.write_bytes(clean)
    return Scrubbed(name, changes, ())


def _scrub_cassette(path: Path, name: str, redactor: Redactor, *, check: bool) -> Scrubbed:
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
    result = Scrubbed(name, changes, tuple(lines[:10]))
    if changes and not check:
        with Reader(path) as reader:
            counted: Counter[str] = Counter()
            redacted_lines = (line for event in reader for line in _scrubbed(event, framing, redactor, counted))
            rules = tuple(sorted({*redacted, *changes}))
            write_cassette(Path(path), header, redacted_lines, lambda: rules, replace=True)
    return result


def _learn(path: Path, redactor: Redactor) -> None:
    """Pass all messages to the redactor; existing placeholders first, so that they keep their numbers."""
    placeholders: dict[bytes, None] = {}
    with Reader(path) as reader:
        for event in reader:
            if isinstance(event, Data) and b"[redacted:" in event.payload:
                for match in re.finditer(PLACEHOLDER, event.payload):
                    placeholders[match[0]] = None
    redactor.redact(b"token: " + b" ".join(placeholders))  # without the word, the text would not be searched
    with Reader(path) as reader:
        for event in reader:
            if isinstance(event, Data):
                redactor.redact(event.payload)
                cleaned_head(event.head, redactor.redact)


def _header(header: Header, redactor: Redactor, changes: Counter[str]) -> Header:
    """Return the header with a redacted command. It is redacted as one text: `--password` marks the next word."""

    def redacted(value: object) -> object:
        data = dumps(value).encode("utf-8", "replace")
        clean = redactor.redact(data)
        _count(data, clean, changes)
        return loads(clean.decode())

    words, environment = redacted(list(header.command)), redacted(header.environment)
    return header.replace(
        command=tuple(map(str, words)) if isinstance(words, list) else (),
        environment={str(name): str(value) for name, value in environment.items()}
        if isinstance(environment, dict)
        else {},
        redacted=None,
    )


def _scrubbed(event: Event, framing: Framing, redactor: Redactor, changes: Counter[str]) -> Iterator[bytes]:
    """Yield the redacted lines of an event, usually one."""

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
        redactor.redact(item.wire) == item.wire for item in event.items(framing)
    ):
        yield encode_event(event, framing)
    else:
        for item in event.items(framing):
            yield note(event.kind, event.time, item, event.own_framing(framing), clean, conn=event.conn)


def _count(before: bytes, after: bytes, changes: Counter[str]) -> None:
    """Count the new placeholders; or one change, if a rule replaces by a text of the user."""
    if after is not before and after != before:
        new = _count_rules(after)
        new.subtract(_count_rules(before))
        changes.update(+new or {REPLACED: 1})


def _count_rules(data: bytes) -> Counter[str]:
    """Count the placeholders of each rule."""
    return Counter(match[1].decode() for match in re.finditer(PLACEHOLDER, data))


HEAD = ("recorder", "recorded", "epoch", "seed", "bindings", "deterministic")  # members before the interactions
WRITERS_OWN = ("http", "version")  # members that the writer adds


def scrub_traffic(path: Path, name: str, redactor: Redactor, *, check: bool = False) -> Scrubbed:
    """Redact a file of HTTP interactions; see `scrub`.

    Returns:
        The number of different secrets by rule, and the interactions with them.
    """
    without_clients()
    document = load(path)
    if "http" not in document.values:
        raise CassetteError(path, 0, "this file was written by vcrpy", "use the filters of vcrpy to remove secrets")
    secrets = _Secrets(redactor, path.read_bytes())
    secrets.redact_interactions(path, load(path))  # a secret that one shows may be in a previous one
    numbers = secrets.redact_interactions(path, document)
    values = {key: secrets.redacted(value) for key, value in document.values.items()}
    result = Scrubbed(name, secrets.replaced(), tuple(numbers[:10]), places="interactions")
    if not result.replaced or check:
        return result
    writer = Writer(path)
    try:
        writer.head({key: values[key] for key in HEAD if key in values})
        for interaction in document.interactions:
            writer.append(interaction)
        tail = {key: value for key, value in values.items() if key not in (*HEAD, *WRITERS_OWN)}
        redacted = values.get("redacted")
        known = {str(rule) for rule in redacted} if isinstance(redacted, list) else set()
        writer.finish(tail | {"redacted": sorted({*known, *result.replaced})}, [])
    except BaseException:
        path.with_name(path.name + ".partial").unlink(missing_ok=True)
        raise
    return result


class _Secrets:
    """Secrets of one file of HTTP interactions."""

    def __init__(self, redactor: Redactor, data: bytes) -> None:
        self._redactor = redactor
        self._before = {match[0] for match in re.finditer(PLACEHOLDER, data)}
        self._redactor.redact(b"token: " + b" ".join(sorted(self._before)))  # existing placeholders keep their numbers
        self._new: set[bytes] = set()
        self._changed = self._ever_changed = False
        self._cleaner = Sanitizer(self._clean)

    def redact_interactions(self, path: Path, document: Document) -> list[int]:
        """Redact all interactions. Return the numbers of those with secrets, counted from 1."""
        numbers = []
        for number, interaction in enumerate(document.interactions, 1):
            self._changed = False
            try:
                self._cleaner.interaction(interaction)
            except ValueError as error:
                raise CassetteError(path, 0, f"interaction {number}: {error}") from None
            if self._changed:
                numbers.append(number)
        return numbers

    def redacted(self, value: object) -> object:
        """Return a value of the rest of the file without secrets."""
        if isinstance(value, str):
            return self._cleaner.text(value)
        if isinstance(value, list):
            return [self.redacted(item) for item in value]
        if isinstance(value, dict):
            return {key: self.redacted(item) for key, item in value.items()}
        return value

    def replaced(self) -> Counter[str]:
        """Return the number of different secrets, by rule."""
        counts = _count_rules(b" ".join(self._new))
        return counts if counts or not self._ever_changed else Counter({REPLACED: 1})

    def _clean(self, data: bytes) -> bytes:
        clean = self._redactor.redact(data)
        if clean != data:
            self._changed = self._ever_changed = True
            self._new |= {match[0] for match in re.finditer(PLACEHOLDER, clean)} - self._before
        return clean
