"""Reader of a cassette: its header at once, its events one by one, in constant memory.

`fast_parser` parses the lines. PyYAML (`yaml_parser`) parses single lines that have another form, and the complete file
if it was re-wrapped. Any other file is a CassetteError with its line, never a shorter cassette.
"""

from __future__ import annotations

import os
from io import BytesIO

from ext_recorder.errors import CassetteError
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.wire.framing import FRAMINGS

from .events import OWN_FILES, Data, Mark
from .fast_parser import CUT_OFF, cut, parse_line
from .header import header_of
from .yaml_scalars import parse_flow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from os import PathLike
    from typing import Self

    from ext_recorder.protocols.dialect import Dialect

    from .events import Event
    from .fast_parser import Block
    from .header import Header
    from .yaml_scalars import Flow


_BLOCK_BYTES = 32_768  # read at once; small enough that the first response does not wait for long
_LONG_BYTES = 1_048_576  # a block with a line of this length is not copied
_USUAL_END = b"'}\n"  # of a line that `cut` can parse; the lines at the end of a session have another one
_HEADER_LINES = 100  # a header has about ten lines; a file without `events` until this line is not a cassette


class Reader:
    """Reader of a cassette. A context manager; iterate over it once.

    Attributes:
        header: its header.
        line: line of the latest event.
        block: the latest lines that were parsed together. The iteration continues at its `position`.
        redacted: redaction rules that have replaced something, complete after the last event; None if they are not
            listed.

    Raises:
        CassetteError: the file cannot be read; also while iterating.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path = os.fspath(path)
        self.line = 0
        self.block: Block | None = None
        self.redacted: tuple[str, ...] | None = None
        self._trailer = False  # `redacted:` after the events was read: the file is complete
        self._beside: list[Reader] = []
        self._whole: list[tuple[int, Event]] = []  # all events, if PyYAML had to read the file
        try:
            self._file: BufferedReader = open(path, "rb")  # noqa: PTH123, SIM115 - pathlib is not imported for this alone
        except FileNotFoundError:
            advice = "record it first: ext-recorder record" if "://" not in str(path) else _NO_ADDRESS
            if os.path.exists(f"{path}.partial"):  # noqa: PTH110 - pathlib is not imported for this alone
                advice = f"its recording was interrupted: ext-recorder recover {path}.partial"
            raise CassetteError(path, 0, "no such file", advice) from None
        except OSError as error:
            raise CassetteError(path, 0, f"can't be read: {error.strerror}") from None
        try:
            parsed = read_header(path, self._file)
            self.header, self.line = parsed or (self._load(), 0)
            self.redacted = self.header.redacted
        except BaseException:
            self._file.close()
            raise

    def again(self) -> Reader:
        """Return another reader of the same events, at their start."""
        return Reader(self.path)

    def beside(self) -> Reader:
        """Return another reader of the same events, at their start, which is closed together with this one."""
        self._beside.append(self.again())
        return self._beside[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        for reader in self._beside:
            reader.close()

    def __iter__(self) -> Iterator[Event]:
        count = 0
        number = self.line
        event: Event | None = None
        while not self._whole and (block := self._file.read(_BLOCK_BYTES)):
            block += self._file.readline()
            end = block.rfind(_USUAL_END) + len(_USUAL_END)
            usual = cut(block[:end]) if len(block) < _LONG_BYTES and not self._trailer else None
            if usual is not None:
                self.block = usual
                usual.line = number
                size = len(usual)
                count += size
                while usual.position < size:
                    event = usual.take()
                    self.line = number + usual.position
                    yield event
                number += size
                block = block[end:]
            for line in BytesIO(block) if block else ():
                number += 1
                parsed = (None if self._trailer else parse_line(line)) or self._unusual(number, line)
                if parsed is not None:
                    event = parsed
                    count += 1
                    self.line = number
                    yield event
                if self._whole:
                    break
        for number, event in self._whole[count:]:
            count += 1
            self.line = number
            yield event
        if not count:
            raise CassetteError(self.path, 0, "the cassette holds no events", "record the session again")
        if not self._trailer and not (isinstance(event, Mark) and event.kind == "exit"):
            problem = "the cassette ends without an exit and without `redacted:`"
            raise CassetteError(self.path, number, problem, _recover(self.path))

    def messages(self) -> Iterator[tuple[Data, bytes]]:
        """Iterate over the messages of the host and the child: yield the event of each, and its payload."""
        framing = FRAMINGS[self.header.framing]
        for event in self:
            if isinstance(event, Data) and event.kind != "err" and event.conn != OWN_FILES:
                for payload in event.payloads(framing):
                    yield event, payload

    def _unusual(self, number: int, line: bytes) -> Event | None:
        """Parse a line that the fast parser does not: another form of YAML, the trailer, a comment."""
        if line.isspace() or line.startswith(b"#"):
            return None
        if self._trailer:  # nothing comes after it
            pass
        elif line.startswith(b"- "):
            event = parse_line(line.rstrip() + b"\n")
            if event is None:
                from .yaml_parser import load_line

                event = load_line(self.path, line)
            if event is not None:
                return event
        elif line.startswith(b"redacted: "):
            value = _flow(line.partition(b":")[2])
            if isinstance(value, list):
                self.redacted = tuple(value)
                self._trailer = True
                return None
        try:
            self._load()
        except CassetteError as error:
            if not line or line.endswith(b"\n"):
                raise
            raise CassetteError(self.path, number, "the last line is cut off", _recover(self.path)) from error
        return None

    def _load(self) -> Header:
        """Read the complete file with PyYAML."""
        from ext_recorder.cassette import yaml_parser

        self._file.seek(0)
        file = yaml_parser.load(self.path, self._file.read())
        self.redacted = (header := header_of(self.path, file.header, file.lines)).redacted
        if file.events is None:
            raise CassetteError(self.path, 0, "no `events` key", "record the session again")
        if not file.events:
            raise CassetteError(self.path, 0, "the cassette holds no events", "record the session again")
        self._trailer = header.redacted is not None
        self._whole = file.events
        return header


def read_header(path: str, file: BufferedReader) -> tuple[Header, int] | None:
    """Return the header, and the line of its `events:`; None for a form that `writer` does not write.

    Args:
        file: at its start; afterwards at the first event.

    Raises:
        CassetteError: a value is wrong, or the version is another one.
    """
    fields: dict[str, Flow] = {}
    lines: dict[str, int] = {}
    for number in range(1, _HEADER_LINES):
        line = file.readline()
        if line.startswith(b"#") or (line and line.isspace()):
            continue
        key, colon, rest = line.partition(b":")
        name = key.decode("ascii", "replace")
        if line == b"events:\n" and "cassette" in fields:
            return header_of(path, fields, lines), number
        value = _flow(rest)
        if not colon or value is None or name in fields or not name.isidentifier():
            break
        fields[name], lines[name] = value, number
    return None


_NO_ADDRESS = "a cassette must be a local file; download it first"


def _recover(path: str) -> str:
    """Return the advice for a file without an end."""
    return f"{CUT_OFF} {path}; one written by hand: end it with `redacted: []`"


def _flow(data: bytes) -> Flow | None:
    try:
        return parse_flow(data.decode().strip())
    except UnicodeDecodeError:
        return None


def dialect_of(header: Header, path: str) -> Dialect:
    """Return the dialect of a cassette. Raises CassetteError."""
    dialect = DIALECTS.get(header.protocol)
    if dialect is None:
        known = ", ".join(DIALECTS)
        raise CassetteError(path, 1, f"expected `protocol` to be one of {known}, found {header.protocol!r}")
    return dialect
