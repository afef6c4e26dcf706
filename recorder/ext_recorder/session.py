"""What a recording is asked to be."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Session:
    """One session to be recorded.

    Attributes:
        cassette: the file that it becomes.
        command: what is run, with its arguments.
        protocol: the name of a dialect.
        framing: the name of a framing; "" for the dialect's own.
        bind: further bindings, name to value of this machine.
        redact: names of further environment variables whose values are secrets.
        partial: the file while it is being written.
    """

    __slots__ = ("bind", "cassette", "command", "framing", "protocol", "redact")

    def __init__(
        self,
        cassette: str,
        command: tuple[str, ...],
        *,
        protocol: str,
        framing: str = "",
        bind: Mapping[str, str] | None = None,
        redact: tuple[str, ...] = (),
    ) -> None:
        self.cassette = cassette
        self.command = command
        self.protocol = protocol
        self.framing = framing
        self.bind = bind or {}
        self.redact = redact

    @property
    def partial(self) -> str:
        return f"{self.cassette}.partial"

    def secrets(self) -> dict[str, str]:
        """What is to be redacted beside what looks secret, by the name that stands in its place."""
        return {f"env.{name}": os.environ[name] for name in self.redact if name in os.environ}
