"""Which call of the host an interaction served, where the child does not tell: the one that was open at that moment.

Where several were, nobody can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import RecorderError
from ext_sdk.core.wire.json_codec import loads
from ext_sdk.protocols.dialect import DIALECTS

from .interaction import call_id

if TYPE_CHECKING:
    from pathlib import Path

    from .interaction import Call

NEVER = float("inf")


def calls_at(cassette: Path, moments: list[float], offset: float) -> list[Call]:
    """The call that was open at each moment; None where there was none, or there were several.

    Args:
        cassette: what was said on stdio.
        moments: in seconds, on the clock of the HTTP layer, which began
        offset: seconds before that of the cassette.
    """
    spans = _spans(cassette)
    found: list[Call] = []
    for moment in moments:
        here = [id for id, begin, end in spans if begin <= moment - offset <= end]
        found.append(here[0] if len(here) == 1 else None)
    return found


def _spans(cassette: Path) -> list[tuple[Call, float, float]]:
    """The calls of the host: id, begin, end."""
    began: dict[tuple[int, bytes], tuple[Call, float]] = {}  # clients of a socket server have ids of their own
    found: list[tuple[Call, float, float]] = []
    try:
        with Reader(cassette) as reader:
            dialect = DIALECTS.get(reader.header.protocol)
            for event in reader if dialect is not None and dialect.calls else ():
                if not isinstance(event, Data) or event.raw or event.kind == "err" or dialect is None:
                    continue
                message = dialect.classify(event.payload)
                if event.kind == "in" and message.kind == "request" and message.key is not None:
                    began[event.conn, message.key] = (call_id(loads(message.text[slice(*message.span)])), event.time)
                elif event.kind == "out" and message.kind == "response" and message.key is not None:
                    id, time = began.pop((event.conn, message.key), (None, NEVER))
                    found.append((id, time, event.time))
    except (RecorderError, OSError):  # there is no cassette, for which there are reasons that are told elsewhere
        return []
    return [*found, *((id, time, NEVER) for id, time in began.values())]
