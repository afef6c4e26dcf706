"""Who was connected in a recorded session, at a glance."""

from __future__ import annotations

from ext_recorder.cassette.events import OWN_FILES, Data
from ext_recorder.cassette.reader import Reader


class Connection:
    """One recorded connection.

    Attributes:
        number: as `conn` has it.
        line: where it begins.
        greets: the server speaks first.
        first: the first event of the client; None where it says nothing.
        closed: its end was recorded; without, it was open when the server ended.
    """

    __slots__ = ("closed", "first", "greets", "line", "number")

    def __init__(self, number: int, line: int) -> None:
        self.number = number
        self.line = line
        self.greets = False
        self.first: Data | None = None
        self.closed = False


def connections(path: str) -> list[Connection]:
    """The recorded connections, in their order. Reads all of the file, and keeps the first message of each.

    Raises:
        CassetteError: it can't be read.
    """
    found: dict[int, Connection] = {}
    with Reader(path) as reader:
        for event in reader:
            if event.conn == OWN_FILES:
                continue
            one = found.get(event.conn)
            if one is None:
                one = found[event.conn] = Connection(event.conn, reader.line)
            if not isinstance(event, Data):
                one.closed = one.closed or event.kind == "eof"
            elif event.kind == "in" and one.first is None:
                one.first = event
            elif event.kind == "out" and one.first is None:
                one.greets = True
    return [found[number] for number in sorted(found)]
