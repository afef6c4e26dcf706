"""Writing the file: a cassette as vcrpy has it, with what vcrpy does not know beside it.

    # The HTTP traffic of a recorded session. …
    http: 1                       the version of what is said here; vcrpy looks at none of it
    recorder: 0.1.0
    recorded: 2026-11-22T02:00:00Z
    epoch: 1790000000000000000    when the session began, nanoseconds since 1970
    seed: …                       where `random` begins for each call
    bindings: {home: /home/user}
    deterministic: [time, uuid]   which values of the child are replayed, on request
    interactions:
    - request: {…}                as vcrpy has it, and so
      response: {…}
      call: 3                     the id of the request of the host that it served
      t: 0.123456                 seconds since the start
      elapsed: 0.004210
      …                           what `EXTRAS` names, and the order of the headers, where there is something to say
    version: 1                    vcrpy's
    kubeconfig: |                 what the child finds as its kubeconfig, without credentials
    hosts: {example.com: [93.184.215.14]}
    servers: {…}                  version, ALPN and certificate of their TLS, by host and port
    clock: [{call: 3, ns: […]}]   what the clock said to each call, nanoseconds since the last time; a list for each
                                  time that a connection did something for it
    readings: {…: […]}            what the wall clock said to each function, nanoseconds since the last time
    unrecorded: […]               what could not be recorded
    redacted: […]

Interactions are written as they end; NAME.partial becomes NAME when the session has ended. Where the recorder was
killed NAME.partial is whole all the same, but for `call` where it is found out in the end; `recover` gives it its name.
"""

from __future__ import annotations

import os
from base64 import b64encode
from typing import TYPE_CHECKING
from uuid import uuid4

import yaml

from ext_recorder.cassette.claim import claim
from ext_recorder.targets import target_of

from .interaction import TEXT_LIMIT
from .vcr import serialized

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .body import Body
    from .interaction import Call, Headers, Interaction

VERSION = 1
TITLE = "# The HTTP traffic of a recorded session. Play it: ext-recorder replay --http FILE -- COMMAND…\n"
# Stand for long bodies in what the serializer gives; nobody can have written them before.
REQUEST_MARK, RESPONSE_MARK = f"@@request {uuid4().hex}@@", f"@@response {uuid4().hex}@@"
UNCLAIMED = b"  call: null\n"
BINARY_LINE = 57  # bytes in a line of base64, 76 characters
NEVER_FOLD = 1 << 20  # columns


class Writer:
    """Writes NAME.partial, and makes it NAME.

    Args:
        path: NAME.

    Raises:
        CassetteInUse: somebody else writes it.
        UsageError: NAME is that of something else than a file.
        OSError: it can't be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path = type(path)(target_of(str(path)))
        self._fd, _ = claim(path)
        self._partial = path.with_name(path.name + ".partial")
        self.count = 0
        self.unclaimed: list[float] = []  # when interactions began that served nobody knows which call

    def head(self, values: Mapping[str, object]) -> None:
        """What is known when the session begins."""
        self._write((TITLE + _dumped({"http": VERSION, **values})).encode())

    def append(self, each: Interaction) -> None:
        """One more interaction."""
        if not self.count:
            self._write(b"interactions:\n")
        self.count += 1
        text = serialized(
            each.method,
            each.uri,
            _short(each.request_body, REQUEST_MARK),
            _joined(each.request_headers),
            {
                "status": {"code": each.status, "message": each.reason},
                "headers": _listed(each.headers),
                "body": {"string": _short(each.body, RESPONSE_MARK) or b""},
            },
        )
        rest = text
        for mark, body, indent in ((REQUEST_MARK, each.request_body, 6), (RESPONSE_MARK, each.body, 8)):
            before, found, after = rest.partition(f"'{mark}'")
            if found and body is not None:
                self._write(before.encode() + b"!!binary |\n")
                self._stream(body, indent)
                rest = after.removeprefix("\n")
        if each.call is None:
            self.unclaimed.append(each.time)
        extras = "".join(f"  {line}\n" for line in _dumped(_extras(each)).splitlines())
        self._write((rest + extras).encode())

    def _stream(self, body: Body, indent: int) -> None:
        held = b""
        for piece in body.pieces():
            held += piece
            whole = len(held) - len(held) % BINARY_LINE
            self._write(_base64(held[:whole], indent))
            held = held[whole:]
        self._write(_base64(held, indent))

    def finish(self, values: Mapping[str, object], claims: list[Call]) -> None:
        """Nothing more comes: write the end, and give the file its name.

        Args:
            values: of the end.
            claims: the calls of `unclaimed`, in its order.
        """
        self._end(values)
        if any(claim is not None for claim in claims):
            self._claim(claims)
        os.fsync(self._fd)
        self._partial.replace(self._path)
        os.close(self._fd)

    def leave(self, values: Mapping[str, object]) -> None:
        """The recorder was killed: write the end, for who recovers what there is. The file has no name yet."""
        self._end(values)
        os.fsync(self._fd)
        os.close(self._fd)

    def _end(self, values: Mapping[str, object]) -> None:
        tail = "" if self.count else "interactions: []\n"
        self._write((tail + _dumped({"version": 1, **values})).encode())

    def _claim(self, claims: list[Call]) -> None:
        """Name the calls of interactions that have none yet, in a copy that takes the place of the partial file."""
        left = iter(claims)
        copy = self._partial.with_name(self._partial.name + ".claimed")
        with self._partial.open("rb") as old, copy.open("wb") as new:
            for line in old:
                # No line of a body has so little before it.
                new.write(b"  " + _dumped({"call": next(left)}).encode() if line == UNCLAIMED else line)
        copy.replace(self._partial)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def _dumped(values: Mapping[str, object]) -> str:
    """Lines of YAML: flow style for small things, block style for the top."""
    return "".join(
        yaml.safe_dump({name: value}, default_flow_style=_is_small(value), width=NEVER_FOLD, allow_unicode=False)
        if not isinstance(value, str) or "\n" not in value
        else f"{name}: |\n" + "".join(f"  {line}\n" for line in value.splitlines())
        for name, value in values.items()
    ).replace("\n}", "}")


def _is_small(value: object) -> bool | None:
    return None if isinstance(value, (dict, list)) else False


def _extras(each: Interaction) -> dict[str, object]:
    found: dict[str, object] = {"call": each.call, "t": round(each.time, 6), "elapsed": round(each.elapsed, 6)}
    found |= {name: value for name, value in ((name, getattr(each, name)) for name in EXTRAS) if value}
    order = [name for name, _ in each.headers]
    if order != sorted(order):  # as the serializer has them
        found["order"] = order
    if each.http_version != "1.1":
        found["http_version"] = each.http_version
    return found


EXTRAS = ("error", "cut", "chunks", "reads", "peer", "socket")


def _short(body: Body | None, mark: str) -> bytes | None:
    if body is None or not body.size:
        return None
    return body.whole() if body.size <= TEXT_LIMIT else mark.encode()


def _joined(headers: Headers) -> dict[str, str]:
    """Headers as vcrpy has those of requests: one value for a name."""
    found: dict[str, str] = {}
    for name, value in headers:
        separator = "; " if name.lower() == "cookie" else ", "
        found[name] = found[name] + separator + value if name in found else value
    return found


def _listed(headers: Headers) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name, []).append(value)
    return found


def _base64(data: bytes, indent: int) -> bytes:
    pad = b" " * indent
    return b"".join(pad + b64encode(data[at : at + BINARY_LINE]) + b"\n" for at in range(0, len(data), BINARY_LINE))
