"""Standard error, line by line: recorded lines beside live ones."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import STDERR_FRAMING
from ext_recorder.compare.words import shortened
from ext_sdk.core.wire.frames import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ext_sdk.core.wire.frames import Junk

    from .findings import LiveFindings


class Lines:
    """Compares them, the first with the first, and so on.

    Args:
        findings: where differences go.
        clean: returns live text as the recorder would have written it.
        canonical: returns recorded text with the placeholders that `clean` uses.
    """

    def __init__(
        self, findings: LiveFindings, clean: Callable[[bytes], bytes], canonical: Callable[[bytes], bytes]
    ) -> None:
        self._findings = findings
        self._clean = clean
        self._canonical = canonical
        self._decoder = STDERR_FRAMING.decoder()
        self._expected: deque[tuple[bytes, int]] = deque()
        self._heard: deque[bytes] = deque()

    def expect(self, items: Iterable[Frame | Junk], number: int) -> None:
        """Recorded lines, and where they stand."""
        self._expected += ((self._canonical(_line_of(item)), number) for item in items)
        self._compare()

    def receive_data(self, data: bytes) -> None:
        """Live bytes; b"" at the end."""
        if data:
            self._decoder.receive_data(data)
        else:
            self._decoder.receive_eof()
        while (item := self._decoder.next_event()) is not None:
            self._heard.append(self._clean(_line_of(item)))
        self._compare()

    def finish(self) -> None:
        """Nothing more comes."""
        for line, number in self._expected:
            self._findings.line(number, _text(line), None)
        for line in self._heard:
            self._findings.line(0, None, _text(line))

    def _compare(self) -> None:
        while self._expected and self._heard:
            (expected, number), heard = self._expected.popleft(), self._heard.popleft()
            if expected != heard:
                self._findings.line(number, _text(expected), _text(heard))


def _line_of(item: Frame | Junk) -> bytes:
    return item.payload if isinstance(item, Frame) else item.wire.removesuffix(b"\n")


def _text(line: bytes) -> str:
    return shortened(line.decode("utf-8", "surrogateescape"))
