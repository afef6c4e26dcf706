"""Options of `verify`, as its command line gives them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from ext_recorder.messages.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATIENCE_S = 10.0


@dataclass
class Options:
    """Options of `verify`; picklable.

    Attributes:
        command: program and arguments of the child; () for a socket server that is already running.
        recorded_command: run the command of the cassette instead.
        max_age: age from which on a cassette is refused; "" for none.
        ignore: JSON pointers of values that may differ.
        mask: patterns of parts of texts that may differ.
        name: JSON pointers of values that the child generates and the host sends back.
        bind: live values of bindings, by name.
        redact: redaction rules.
        patience: maximum seconds that a response may take in addition to its time in the recording.
        in_order: whether the order of the child's messages is compared.
        stderr: whether its stderr is compared.
        junk: whether lines that are not messages are compared.
        update: write the new session to the cassette, if it differs.
        files: folder whose content is copied to the working directory before a session; "" for none.
        http: replay responses to HTTP requests of the child from the file next to the cassette.
        connect: address of a socket server; "" for a child on stdio.
    """

    command: Sequence[str]
    _: KW_ONLY
    recorded_command: bool = False
    max_age: str = ""
    ignore: Sequence[str] = ()
    mask: Sequence[str] = ()
    name: Sequence[str] = ()
    bind: Mapping[str, str] = field(default_factory=dict)
    redact: Redaction = field(default_factory=Redaction)
    patience: float = PATIENCE_S
    in_order: bool = True
    stderr: bool = False
    junk: bool = True
    update: bool = False
    files: str = ""
    http: bool = False
    connect: str = ""
