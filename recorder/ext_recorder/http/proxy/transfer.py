"""Interactions on their way from the proxy process to the worker that writes them: as frames, like those of agents.

A body that is long follows in pieces before its interaction, so that neither process has it in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.http.inject.ext_recorder_agent.channel import frame
from ext_recorder.http.interaction import IN_MEMORY, Body, Interaction, call_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_recorder.http.interaction import Headers

SHORT_BYTES = 65_536  # of both bodies together, which are sent with their interaction
PLAIN = (
    "method", "uri", "status", "reason", "chunks", "reads", "call", "time", "elapsed", "http_version", "error", "cut",
    "peer", "tls", "socket", "client",
)  # fmt: skip
INTERACTION, PIECE = "interaction", "piece"


def frames_of(interaction: Interaction, number: int) -> Iterator[bytes]:
    """Yield the frames of an interaction. Its bodies are released at the end.

    Args:
        number: of the interaction, for its pieces.
    """
    bodies = {"request": interaction.request_body or Body(), "response": interaction.body or Body()}
    short = sum(body.size for body in bodies.values()) <= SHORT_BYTES
    if not short:
        for part, body in bodies.items():
            for piece in body.pieces():
                yield frame({"k": PIECE, "n": number, "part": part}, piece)
    event: dict[str, object] = {name: getattr(interaction, name) for name in PLAIN}
    event |= {"k": INTERACTION, "n": number, "request": interaction.request_headers, "response": interaction.headers}
    event["split"] = bodies["request"].size if short else None
    event["none"] = interaction.body is None
    yield frame(event, b"".join(body.whole() for body in bodies.values()) if short else b"")
    for body in bodies.values():
        body.close()


def held_bytes(interaction: Interaction) -> int:
    """Return the bytes of the bodies of an interaction that are in memory."""
    bodies = (interaction.request_body, interaction.body)
    return sum(body.size for body in bodies if body is not None and body.size <= IN_MEMORY)


class Arrivals:
    """Interactions that are arriving."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[object, object], Body] = {}

    def piece(self, event: Mapping[str, object], data: bytes) -> None:
        """Take a piece of a body."""
        self._bodies.setdefault((event["n"], event["part"]), Body()).write(data)

    def interaction(self, event: Mapping[str, object], data: bytes) -> Interaction:
        """Return an interaction whose frames have all arrived."""
        interaction = Interaction(**{name: event[name] for name in PLAIN})  # type: ignore[arg-type]  # our own frame
        interaction.call = call_id(event["call"])
        interaction.request_headers, interaction.headers = _pairs(event["request"]), _pairs(event["response"])
        number, split = event["n"], event["split"]
        if isinstance(split, int):
            interaction.request_body, interaction.body = Body(data[:split]), Body(data[split:])
        else:
            interaction.request_body = self._bodies.pop((number, "request"), Body())
            interaction.body = self._bodies.pop((number, "response"), Body())
        if event["none"]:
            interaction.body = None
        return interaction


def _pairs(headers: object) -> Headers:
    return [(str(name), str(value)) for name, value in headers] if isinstance(headers, list) else []
