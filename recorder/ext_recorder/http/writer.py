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

from .interaction import BINARY_LINE, TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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
    method: str, uri: str, body: bytes | None, headers: Mapping[str, str], response: Mapping[str, object]
) -> str:
    """Return an interaction as vcrpy writes it: an item of a YAML list, from `- request:` on."""
    from vcr.request import Request  # type: ignore[import-untyped]
    from vcr.serialize import serialize  # type: ignore[import-untyped]
    from vcr.serializers import yamlserializer  # type: ignore[import-untyped]

    make = cast("Callable[..., object]", Request)
    write = cast("Callable[..., str]", serialize)
    text = write({"requests": [make(method, uri, body, dict(headers))], "responses": [dict(response)]}, yamlserializer)
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
        late: offset and start, in microseconds, of each interaction that began before one that precedes it.
        long: offset and size of each body that is streamed.
    """

    end: int
    late: Sequence[tuple[int, int]] = ()
    long: Sequence[tuple[int, int]] = ()

    def line(self) -> bytes:
        """Return the index as YAML."""
        late, long = (", ".join(f"{at}, {number}" for at, number in pairs) for pairs in (self.late, self.long))
        return f"index: {{end: {self.end}, late: [{late}], long: [{long}]}}\n".encode()

    @classmethod
    def of_line(cls, line: bytes) -> Index | None:
        """Return the index of a file, from its last line; None if it is not an index."""
        match = _INDEX.fullmatch(line)
        if match is None:
            return None
        numbers = [[int(number) for number in match[group].split(b", ") if number] for group in (2, 3)]
        late, long = (list(zip(each[::2], each[1::2], strict=False)) for each in numbers)
        return cls(int(match[1]), late, long)

    def shifted(self, shifts: Sequence[tuple[int, int]]) -> Index:
        """Return the index of a copy.

        Args:
            shifts: offsets in order, and by how much the copy is ahead from there on.
        """

        def moved(at: int) -> int:
            return at + shifts[bisect_right(shifts, at, key=itemgetter(0)) - 1][1]

        return Index(
            moved(self.end), *([(moved(at), number) for at, number in pairs] for pairs in (self.late, self.long))
        )


_INDEX = re.compile(rb"index: \{end: (\d+), late: \[([\d, ]*)\], long: \[([\d, ]*)\]\}\n")


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
        self._latest = 0  # start of an interaction, in microseconds
        self._late: list[tuple[int, int]] = []
        self._long: list[tuple[int, int]] = []

    def head(self, values: Mapping[str, object]) -> None:
        """Write the values that are known when the session begins."""
        self._write((TITLE + _dumped({"http": VERSION, **values})).encode())

    def append(self, interaction: Interaction) -> None:
        """Write an interaction."""
        if not self.count:
            self._write(b"interactions:\n")
        self.count += 1
        start = round(round(interaction.time, 6) * 1e6)  # of the number that is written
        if start < self._latest:
            self._late.append((self._size, start))
        self._latest = max(start, self._latest)
        request_headers: dict[str, str] = {}  # vcrpy has one value for each name of a request
        for name, value in interaction.request_headers:
            separator = "; " if name.lower() == "cookie" else ", "
            request_headers[name] = request_headers[name] + separator + value if name in request_headers else value
        headers: dict[str, list[str]] = {}
        for name, value in interaction.headers:
            headers.setdefault(name, []).append(value)
        rest = serialized(
            interaction.method,
            interaction.uri,
            _short(interaction.request_body, REQUEST_MARK),
            request_headers,
            {
                "status": {"code": interaction.status, "message": interaction.reason},
                "headers": headers,
                "body": {"string": _short(interaction.body, RESPONSE_MARK) or b""},
            },
        )
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
        self._long.append((self._size, body.size))
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
        index = Index(self._size, self._late, self._long)
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
        self._write(end_of(values, Index(self._size, self._late, self._long)))

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


EXTRAS = ("error", "cut", "chunks", "reads", "peer", "socket")


def _short(body: Body | None, mark: str) -> bytes | None:
    if body is None or not body.size:
        return None
    return body.whole() if body.size <= TEXT_LIMIT else mark.encode()


def _base64(data: bytes, indent: int) -> bytes:
    pad = b" " * indent
    return b"".join(pad + b64encode(data[at : at + BINARY_LINE]) + b"\n" for at in range(0, len(data), BINARY_LINE))
