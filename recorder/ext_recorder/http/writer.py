"""Writer of NAME.http.yaml in vcrpy's format, by its serializer and its safe loader. Only this module imports vcrpy.

vcrpy's patches are not used. It imports client libraries to patch them, which takes a third of a second; in this worker
process, those imports are made to fail.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import b64encode
from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, cast
from uuid import uuid4

import yaml

from ext_recorder.cassette.paths import target_of
from ext_recorder.cassette.writer import claim

from .interaction import BINARY_LINE, TCP, TEXT_LIMIT, TLS, addresses_of
from .interaction_yaml import emit_interaction, emit_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from .interaction import Body, Call, Interaction


CLIENTS = (
    "aiohttp", "botocore", "httplib2", "httpx", "httpx2", "httpx_curl_cffi", "pyreqwest", "requests", "tornado",
    "urllib3",
)  # fmt: skip


def without_clients() -> None:
    """Hide all client libraries from vcrpy. Only for a process that uses none."""
    for name in CLIENTS:
        sys.modules.setdefault(name, cast("type[object]", None))  # type: ignore[arg-type]  # its import fails


def serialized(
    request: tuple[str, str, Mapping[str, str], bytes | None],
    response: tuple[int, str, Mapping[str, Sequence[str]], bytes],
) -> str:
    """Return an interaction as vcrpy's serializer writes it: an item of a YAML list, from `- request:` on.

    Args:
        request: method, URI, headers, body.
        response: status, reason, headers, body.
    """
    from vcr.request import Request  # type: ignore[import-untyped]
    from vcr.serialize import serialize  # type: ignore[import-untyped]
    from vcr.serializers import yamlserializer  # type: ignore[import-untyped]

    make = cast("Callable[..., object]", Request)
    write = cast("Callable[..., str]", serialize)
    method, uri, sent, body = request
    status, reason, received, content = response
    data = {"status": {"code": status, "message": reason}, "headers": dict(received), "body": {"string": content}}
    text = write({"requests": [make(method, uri, body, dict(sent))], "responses": [data]}, yamlserializer)
    return text.removeprefix("interactions:\n").rpartition("version:")[0]


def load_yaml(text: str) -> object:
    """Return a file as data, without constructing objects. Raises ValueError for anything else."""
    import yaml
    from vcr.serializers import yamlserializer

    read = cast("Callable[[str], object]", yamlserializer.deserialize)
    try:
        return read(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


VERSION = 1
TITLE = "# The HTTP traffic of a recorded session. Play it: ext-recorder replay --http FILE -- COMMAND…\n"

# Placeholders for long bodies in the output of the serializer; random, so that no body contains them.
REQUEST_MARK, RESPONSE_MARK = f"@@request {uuid4().hex}@@", f"@@response {uuid4().hex}@@"

UNCLAIMED = b"  call: null\n"
NEVER_FOLD = 1 << 20  # columns


class Index(NamedTuple):
    """Last line of a file: what is required to read its interactions one by one.

    Attributes:
        end: offset of the line after the interactions.
        late: offset and start of each interaction that began before one that precedes it.
        long: offset and size of each body that is streamed.
        addresses: of all servers.
        failures: number of failed connections.
    """

    end: int
    late: Sequence[tuple[int, float]] = ()
    long: Sequence[tuple[int, int]] = ()
    addresses: AbstractSet[str] = frozenset()
    failures: int = 0

    def line(self) -> bytes:
        """Return the index as YAML."""
        late = ", ".join(f"{at}, {round(start * 1e6)}" for at, start in self.late)  # in microseconds
        long = ", ".join(f"{at}, {size}" for at, size in self.long)
        names = yaml.safe_dump(sorted(self.addresses), default_flow_style=True, width=NEVER_FOLD).strip()
        counts = f"failures: {self.failures}, addresses: {names}"
        return f"index: {{end: {self.end}, late: [{late}], long: [{long}], {counts}}}\n".encode()

    @classmethod
    def of_line(cls, line: bytes) -> Index | None:
        """Return the index of a file, from its last line; None if it is not an index."""
        match = _INDEX.fullmatch(line)
        if match is None:
            return None
        late, long = ([int(number) for number in match[group].split(b", ") if number] for group in (2, 3))
        try:
            names = yaml.safe_load(match[5])
        except yaml.YAMLError:
            return None
        starts = [start / 1e6 for start in late[1::2]]
        pairs = list(zip(late[::2], starts, strict=False)), list(zip(long[::2], long[1::2], strict=False))
        return cls(int(match[1]), *pairs, frozenset(map(str, names)), int(match[4]))

    def shifted(self, shifts: Sequence[tuple[int, int]]) -> Index:
        """Return the index of a copy.

        Args:
            shifts: offsets in order, and by how much the copy is ahead from there on.
        """

        def moved(at: int) -> int:
            return at + shifts[bisect_right(shifts, at, key=itemgetter(0)) - 1][1]

        late, long = [(moved(at), start) for at, start in self.late], [(moved(at), size) for at, size in self.long]
        return self._replace(end=moved(self.end), late=late, long=long)


_INDEX = re.compile(
    rb"index: \{end: (\d+), late: \[([\d, ]*)\], long: \[([\d, ]*)\], failures: (\d+), addresses: (\[.*\])\}\n"
)


class Indexer:
    """Collects an index from interactions in the order of the file.

    Attributes:
        long: offset and size of each body that is streamed.
    """

    def __init__(self) -> None:
        self._latest = 0.0
        self._late: list[tuple[int, float]] = []
        self.long: list[tuple[int, int]] = []
        self._addresses: set[str] = set()
        self._failures = 0

    def add(self, at: int, interaction: Interaction, start: float) -> None:
        """Add the interaction at an offset, with its start as in the file."""
        if start < self._latest:
            self._late.append((at, start))
        self._latest = max(start, self._latest)
        self._addresses |= addresses_of(interaction)
        self._failures += interaction.uri.startswith((TCP, TLS))

    def index(self, end: int) -> Index:
        """Return the index.

        Args:
            end: offset of the line after the interactions.
        """
        long = [pair for pair in self.long if pair[0] < end]
        return Index(end, self._late, long, self._addresses, self._failures)


def end_of(values: Mapping[str, object], index: Index) -> bytes:
    """Return the lines after the interactions."""
    return _dumped({"version": 1, **values}).encode() + index.line()


class Writer:
    """Writes NAME.partial, and renames it to NAME at the end.

    Args:
        path: NAME.

    Raises:
        CassetteInUse: another process writes it.
        UsageError: NAME is not a regular file.
        OSError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path = type(path)(target_of(str(path)))
        self._fd, _ = claim(path)
        self._partial = path.with_name(path.name + ".partial")
        self.count = 0
        self.unclaimed: list[float] = []  # start times of interactions whose call is unknown
        self._size = 0  # bytes written
        self._indexer = Indexer()

    def head(self, values: Mapping[str, object]) -> None:
        """Write the values that are known when the session begins."""
        self._write((TITLE + _dumped({"http": VERSION, **values})).encode())

    def append(self, interaction: Interaction) -> None:
        """Write an interaction."""
        if not self.count:
            self._write(b"interactions:\n")
        self.count += 1
        self._indexer.add(self._size, interaction, round(interaction.time, 6))
        request_headers: dict[str, str] = {}  # vcrpy has one value for each name of a request
        for name, value in interaction.request_headers:
            separator = "; " if name.lower() == "cookie" else ", "
            request_headers[name] = request_headers[name] + separator + value if name in request_headers else value
        headers: dict[str, list[str]] = {}
        for name, value in interaction.headers:
            headers.setdefault(name, []).append(value)
        request = interaction.method, interaction.uri, request_headers, _short(interaction.request_body, REQUEST_MARK)
        response = interaction.status, interaction.reason, headers, _short(interaction.body, RESPONSE_MARK) or b""
        rest = emit_interaction(request, response) or serialized(request, response)
        for mark, body, indent in ((REQUEST_MARK, interaction.request_body, 6), (RESPONSE_MARK, interaction.body, 8)):
            before, is_long, after = rest.partition(f"'{mark}'")
            if is_long and body is not None:
                self._write(before.encode() + b"!!binary |\n")
                self._stream(body, indent)
                rest = after.removeprefix("\n")
        if interaction.call is None:
            self.unclaimed.append(interaction.time)
        extras = "".join(f"  {line}\n" for line in _dumped(_extras(interaction)).splitlines())
        self._write((rest + extras).encode())

    def _stream(self, body: Body, indent: int) -> None:
        self._indexer.long.append((self._size, body.size))
        held = b""
        for piece in body.pieces():
            held += piece
            whole = len(held) - len(held) % BINARY_LINE
            self._write(_base64(held[:whole], indent))
            held = held[whole:]
        self._write(_base64(held, indent))

    def finish(self, values: Mapping[str, object], claims: list[Call]) -> None:
        """Write the end, and rename the file.

        Args:
            values: of the end.
            claims: calls for `unclaimed`, in its order.
        """
        index = self._indexer.index(self._size)
        self._end(values)
        if any(claim is not None for claim in claims):
            # Add the calls of interactions that have none yet, in a copy that replaces the partial file.
            calls = iter(claims)
            shifts = [(0, 0)]  # offset in the partial file, and by how much the copy is ahead from there on
            copy = self._partial.with_name(self._partial.name + ".claimed")
            with self._partial.open("rb") as old, copy.open("wb") as new:
                at = ahead = 0
                for line in old:
                    if at == index.end:
                        break
                    at += len(line)
                    if line == UNCLAIMED:  # no line of a body has less indentation
                        claimed = b"  " + _dumped({"call": next(calls)}).encode()
                        new.write(claimed)
                        ahead += len(claimed) - len(line)
                        shifts.append((at, ahead))
                    else:
                        new.write(line)
                new.write(end_of(values, index.shifted(shifts)))
            copy.replace(self._partial)
        os.fsync(self._fd)
        self._partial.replace(self._path)
        os.close(self._fd)

    def leave(self, values: Mapping[str, object]) -> None:
        """Write the end after the recorder was killed, so that the file can be recovered. It keeps its partial name."""
        self._end(values)
        os.fsync(self._fd)
        os.close(self._fd)

    def _end(self, values: Mapping[str, object]) -> None:
        if not self.count:
            self._write(b"interactions: []\n")
        self._write(end_of(values, self._indexer.index(self._size)))

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def _dumped(values: Mapping[str, object]) -> str:
    """Return lines of YAML: flow style for small values, block style at the top."""
    return "".join(f"{name}:{_value(value)}" for name, value in values.items()).replace("\n}", "}")


def _value(value: object) -> str:
    """Return a value as YAML after the colon of its name. The library is slow, so the usual values do without it."""
    if value is None or isinstance(value, (bool, int, float)):
        text = json.dumps(value)
        # YAML 1.1 requires a point in a number with an exponent.
        return f" {text.replace('e', '.0e') if isinstance(value, float) and '.' not in text else text}\n"
    if isinstance(value, list) and all(
        type(item) is int or (isinstance(item, str) and _WORD.fullmatch(item)) for item in value
    ):
        return f" [{', '.join(map(str, value))}]\n"
    if isinstance(value, str) and value and (line := emit_text(value)) is not None:
        return f" {line}\n"
    if isinstance(value, str) and "\n" in value:
        return " |\n" + "".join(f"  {line}\n" for line in value.splitlines())
    flow = None if isinstance(value, (dict, list)) else False
    text = yaml.safe_dump({"x": value}, default_flow_style=flow, width=NEVER_FOLD, allow_unicode=False)
    return text.removeprefix("x:")


_WORD = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)+|(?!yes|true|null)[A-Z][a-z]{3,}")  # no other type for YAML


def _extras(interaction: Interaction) -> dict[str, object]:
    """Return the members of an interaction that vcrpy does not have."""
    extras: dict[str, object] = {"call": interaction.call, "t": round(interaction.time, 6)}
    extras |= {name: value for name in EXTRAS if (value := getattr(interaction, name))}
    order = [name for name, _ in interaction.headers]
    if order != sorted(order):  # the order of the serializer
        extras["order"] = order
    if interaction.http_version != "1.1":
        extras["http_version"] = interaction.http_version
    extras["elapsed"] = round(interaction.elapsed, 6)  # the last one: an interaction without it is incomplete
    return extras


EXTRAS = ("error", "cut", "chunks", "reads", "peer", "socket", "client")


def _short(body: Body | None, mark: str) -> bytes | None:
    if body is None or not body.size:
        return None
    return body.whole() if body.size <= TEXT_LIMIT else mark.encode()


def _base64(data: bytes, indent: int) -> bytes:
    pad = b" " * indent
    return b"".join(pad + b64encode(data[at : at + BINARY_LINE]) + b"\n" for at in range(0, len(data), BINARY_LINE))
