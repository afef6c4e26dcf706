"""`--protocol auto`: detection of the protocol before the first line of a cassette is written.

It does not delay the session: the proxy forwards all bytes. The writer process holds its notes back until a message,
usually the first one, shows framing and protocol, and then writes the header and the notes. Until then it keeps a draft
of the notes as lines, in case it is killed.
"""

from __future__ import annotations

from itertools import chain

from ext_recorder.protocols.detection import Detector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .note_queue import Note

AUTO = "auto"
# Most bytes that are held back, stderr included; after that, the most likely protocol is used.
HELD_BYTES = 16_777_216
_HTTP_VERSIONS = frozenset((b"HTTP/1.1", b"HTTP/1.0"))


class DetectedProtocol:
    """Protocol and framing of a session, as detected.

    Attributes:
        protocol: the name of a dialect.
        framing: the name of a framing.
        batches: all notes, including those that were read for the detection.
    """

    __slots__ = ("batches", "framing", "protocol")

    def __init__(self, protocol: str, framing: str, batches: Iterator[list[Note]]) -> None:
        self.protocol = protocol
        self.framing = framing
        self.batches = batches


def detect_protocol(
    batches: Iterator[list[Note]], framing: str, keep: Callable[[list[Note]], None]
) -> DetectedProtocol:
    """Read events of a session until protocol and framing are clear.

    Args:
        batches: the notes as they come; waited for.
        framing: where it is known; "" to find that out, too.
        keep: called with what is held back.
    """
    detector = Detector(framing)
    held: list[list[Note]] = []
    size = 0
    for queue in batches:
        held.append(queue)
        for _, name, data in queue:
            if not isinstance(data, bytes):
                continue
            stream, _, connection = name.partition(":")  # "in:2": of the second connection of a socket server
            size += len(data)
            if connection == "0" or stream == "err":
                continue
            if connection and stream == "in" and not framing:
                words = data.partition(b"\r\n")[0].split(b" ")  # of the first line of an HTTP/1.1 request
                if len(words) == 3 and words[0].isalpha() and words[0].isupper() and words[2] in _HTTP_VERSIONS:
                    return DetectedProtocol("http", "http", chain(held, batches))
            detector.receive("in" if stream == "in" else "out", data)
        if detector.found or size > HELD_BYTES:
            break
        keep(queue)
    return DetectedProtocol(*detector.settle(), chain(held, batches))
