"""What a recording is asked to be."""

from __future__ import annotations

from .targets import target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .bindings import Playing
    from .redaction import Redaction


class Base:
    """A cassette that is recorded on.

    Attributes:
        path: the cassette.
        upto: its events above this line are kept; 0: all of them, but for the end.
        early: lines below it that are kept as well: they were played before their place in the recording.
        bindings: paths, and what stands for them in it.
        lines: of the new cassette, that were taken over from it, with the header.
    """

    __slots__ = ("bindings", "early", "lines", "path", "upto")

    def __init__(self, path: str, upto: int, early: frozenset[int], bindings: Playing) -> None:
        self.path = path
        self.early = early
        self.upto = upto
        self.lines = 0
        self.bindings = bindings


class Session:
    """One session to be recorded.

    Attributes:
        name: the cassette, as it was given.
        cassette: the file that it becomes: the same, or where a symbolic link of that name leads.
        partial: the file while it is being written.
        command: what is run, with its arguments; () where the server is there already.
        protocol: the name of a dialect.
        framing: the name of a framing; "" for the dialect's own.
        bind: further bindings, name to value of this machine.
        listen: where clients of a socket server connect; "" for a child on stdio.
        connect: where that server listens.
        match_env: names of the environment variables that are part of what is recorded, kept with their values.
        base: what is recorded on; None: nothing.
        http: the HTTP traffic of the child is recorded, too.
        redact: what is redacted; None: what looks secret.

    Raises:
        UsageError: a variable to be redacted is missing, or the cassette has the name of something else than a file.
    """

    __slots__ = (
        "base",
        "bind",
        "cassette",
        "command",
        "connect",
        "framing",
        "http",
        "listen",
        "match_env",
        "name",
        "partial",
        "protocol",
        "redact",
    )

    def __init__(
        self,
        cassette: str,
        command: tuple[str, ...],
        *,
        protocol: str,
        framing: str = "",
        bind: Mapping[str, str] | None = None,
        redact: Redaction | None = None,
        listen: str = "",
        connect: str = "",
        match_env: tuple[str, ...] = (),
        http: bool = False,
    ) -> None:
        self.name = cassette
        self.cassette = target_of(cassette)
        self.partial = f"{self.cassette}.partial"
        self.command = command
        self.protocol = protocol
        self.framing = framing
        self.bind = bind or {}
        self.base: Base | None = None
        self.http = http
        self.listen = listen
        self.connect = connect
        self.match_env = match_env
        if redact:
            redact.require()
        self.redact = redact
