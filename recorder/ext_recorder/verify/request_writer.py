"""Recorded messages of the host as the live child has to get them.

Ids of the host's own calls are as recorded: they are the host's to choose. An answer to a request of the child carries
the id of the live request. Paths are those of this machine, names that the child has made up are its live ones, and
secrets that a variable of this environment has are themselves again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import pieces
from ext_recorder.messages.path_bindings import path_in
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.json_codec import dumps, quote
from ext_sdk.core.wire.json_pointer import locate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ext_recorder.cassette.events import Data
    from ext_recorder.messages.id_map import IdMap
    from ext_recorder.messages.name_map import NameMap
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing

PROJECTS = ("root", "folder")  # of language servers, which have work only where files are
FOLDERS = ("workdir", "cwd", *PROJECTS)  # bindings for which a folder is created; --bind gives the others
_MARK = b"[redacted:"


class RequestWriter:
    """Recorded messages to live bytes.

    Args:
        dialect: where messages name paths, names and calls.
        framing: what goes around them.
        bindings: paths, neutral and live.
        counterparts: names, recorded and live.
        child_calls: requests of the child, recorded id to live one.
        secrets: values by their rule, as in {"env.API_TOKEN": …}.
        new_folder: makes a folder for a binding of this name; its path.
        handed: return where a message of the host has values that the child handed out.

    Attributes:
        unbound: names of bindings that were sent as they stand, because nothing here says what they stand for.
        unknown_secrets: placeholders that were sent as they are, because nothing here knows what they stand for.
    """

    def __init__(
        self,
        dialect: Dialect,
        framing: Framing,
        *,
        bindings: ReplayBindings,
        counterparts: NameMap,
        child_calls: IdMap,
        secrets: Mapping[str, str],
        new_folder: Callable[[str], str],
        handed: Callable[[ClassifiedMessage], Iterable[str]],
    ) -> None:
        self._dialect = dialect
        self._framing = framing
        self._bindings = bindings
        self._counterparts = counterparts
        self._child_calls = child_calls
        self._secrets = secrets
        self._new_folder = new_folder
        self._handed = handed
        self.unbound: dict[str, None] = {}
        self.unknown_secrets: dict[str, None] = {}

    def wire(self, event: Data) -> Iterator[tuple[ClassifiedMessage | None, bytes]]:
        """What to send for an event: (the message as recorded, or None for other bytes; the bytes).

        The bytes are b"" for an answer to a request that the child did not make.
        """
        if not event.raw:
            message = self._dialect.classify(event.payload)
            payload = self._live(message)
            yield message, b"" if payload is None else self._framing.encode(payload, event.head)
            return
        for item in pieces(event.payload, self._framing):
            if not isinstance(item, Frame):
                yield None, self._bindings.to_live(item.wire, json=False)
                continue
            message = self._dialect.classify(item.payload)
            payload = self._live(message)
            if payload == item.payload:
                yield message, item.wire
            else:
                yield message, b"" if payload is None else self._framing.encode(payload, item.head)

    def _live(self, message: ClassifiedMessage) -> bytes | None:
        for name, pointer in self._dialect.bound.get(message.method, {}).items():
            self._bind(name, message.at(pointer))
        text = message.text
        changes = list(self._changes(message))
        if message.kind == "response" and message.key is not None:
            calls = self._child_calls
            live = calls.end(message.key) if self._dialect.is_last(message) else calls.live(message.key)
            if live is None:
                return None
            changes.append((*message.span, live.decode("utf-8", "surrogateescape")))
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        payload = text.encode("utf-8", "surrogateescape")
        if _MARK in payload:
            payload = self._with_secrets(payload)
        self.unbound.update(dict.fromkeys(self._bindings.unbound(payload)))
        return self._bindings.to_live(payload, json=message.kind != "other") if self._bindings else payload

    def _bind(self, name: str, value: object) -> None:
        """Make the folder that this message is the first to name."""
        path = path_in(value)
        if name in FOLDERS and self._bindings.live(path) is None and self._bindings.is_placeholder(name, path):
            self._bindings.bind(path, self._new_folder(name))

    def _changes(self, message: ClassifiedMessage) -> Iterator[tuple[int, int, str]]:
        """Where a name stands that is another one here."""
        for start, end, value in locate(message.text, pointers_of(self._dialect.names, message.method)):
            live = self._counterparts.live(id_key(value, message.text[start:end]))
            if live is not None:
                yield start, end, dumps(live)
        if message.method == "initialize":  # of LSP: a server exits once the process of its client has exited
            for start, end, value in locate(message.text, ["/params/processId"]):
                if isinstance(value, int):
                    yield start, end, str(os.getpid())
        yield from self._handed_out(message)
        for start, end, value in locate(message.text, pointers_of(self._dialect.mentions, message.method)):
            recorded = id_key(value, message.text[start:end])
            live_id = self._child_calls.live(recorded)
            if live_id != recorded:
                yield start, end, live_id.decode("utf-8", "surrogateescape")

    def _handed_out(self, message: ClassifiedMessage) -> Iterator[tuple[int, int, str]]:
        """Yield where a value is that the child handed out: strings anywhere, numbers where they are named."""
        for start, end, value in locate(message.text, self._handed(message)):
            live = None if isinstance(value, str) else self._counterparts.live(id_key(value, message.text[start:end]))
            if live is not None:
                yield start, end, dumps(live)
        for name in message.form.content if message.envelope else ():
            member = message.envelope.members.get(name) if message.envelope else None
            if member:
                yield from self._counterparts.sent(message.text, member.start, member.end)

    def _with_secrets(self, payload: bytes) -> bytes:
        from ext_sdk.core.redaction.patterns import PLACEHOLDER

        parts: list[bytes] = []
        position = 0
        for match in PLACEHOLDER.finditer(payload):
            placeholder = match[0].decode()
            value = self._secrets.get(placeholder.removeprefix("[redacted:").rpartition("#")[0])
            if value is None:
                self.unknown_secrets[placeholder] = None
                continue
            parts += (payload[position : match.start()], quote(value)[1:-1].encode("utf-8", "surrogateescape"))
            position = match.end()
        return b"".join((*parts, payload[position:]))
