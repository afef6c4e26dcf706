"""How to verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.messages.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATIENCE_S = 10.0


class Options:
    """How to verify; picklable.

    Attributes:
        command: what is run as the child, with its arguments; () for a socket server that is there.
        recorded_command: run the command of the cassette instead.
        max_age: age at which a cassette is refused, see `age`; "" for none.
        ignore: places that need not be equal, see `rules.Places`.
        mask: parts of texts that may differ, see `rules.Mask`.
        name: where the child hands out values that the host sends back, see `rules.Places`.
        bind: live values of bindings, by name.
        redact: what is redacted.
        patience: how many seconds longer than in the recording an answer may take.
        in_order: whether the order of the child's messages counts.
        stderr: whether its stderr has to be as recorded.
        junk: whether lines that are no messages have to be.
        update: accept what differs: write the new session into the cassette.
        files: a folder whose content is in the working directory when a session begins; "" for an empty one.
        http: answer the child's HTTP requests from the file beside the cassette.
        connect: where the child listens, a socket server; "" for a child on stdio.
    """

    __slots__ = (
        "bind", "command", "connect", "files", "http", "ignore", "in_order", "junk", "mask", "max_age", "name",
        "patience", "recorded_command", "redact", "stderr", "update",
    )  # fmt: skip

    def __init__(
        self,
        command: Sequence[str],
        *,
        ignore: Sequence[str] = (),
        mask: Sequence[str] = (),
        name: Sequence[str] = (),
        bind: Mapping[str, str] | None = None,
        redact: Redaction | None = None,
        patience: float = PATIENCE_S,
        in_order: bool = True,
        stderr: bool = False,
        junk: bool = True,
        update: bool = False,
        files: str = "",
        http: bool = False,
        connect: str = "",
        recorded_command: bool = False,
        max_age: str = "",
    ) -> None:
        self.command = tuple(command)
        self.ignore = tuple(ignore)
        self.mask = tuple(mask)
        self.name = tuple(name)
        self.bind = dict(bind or {})
        self.redact = redact or Redaction()
        self.patience = patience
        self.in_order = in_order
        self.stderr = stderr
        self.junk = junk
        self.update = update
        self.files = files
        self.http = http
        self.connect = connect
        self.recorded_command = recorded_command
        self.max_age = max_age
