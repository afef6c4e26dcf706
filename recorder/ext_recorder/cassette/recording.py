"""Folder of a recorded run: its header, `recording.yaml`, and the files that belong to it.

`run.folder` makes such a folder; the commands on cassettes read it. All times of its files are on one clock: that of
the HTTP traffic begins with the run, and `started` is the time at which the clock of a child's cassette begins.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.errors import CassetteError
from ext_sdk.core import own_name

from .paths import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

VERSION = 1
HEADER, TRAFFIC = "recording.yaml", "traffic.http.yaml"
CASSETTES = "children"  # folder of the cassettes
KEY_PLACEHOLDER = "ext-recorder"  # value in `environment` of a key that was set
TITLE = "# A recorded run of a command. Replay it: ext-recorder run FOLDER -- COMMAND…\n"


class Child:
    """Child of a recording, as its header lists it: the sessions of one name and one command.

    The sessions with an MCP server over HTTP are those of a child, too: its command is the URL of the endpoint.

    Attributes:
        name: its name in the configuration of the host.
        command: without secrets and machine paths; () if it was not started.
        cassettes: paths within the folder of the recording, in the order of the starts.
        started: seconds from the start of the run to the zero of each cassette's clock; () if they are not known.
    """

    __slots__ = ("cassettes", "command", "name", "started")

    def __init__(
        self, name: str, command: Sequence[str] = (), cassettes: Sequence[str] = (), started: Sequence[float] = ()
    ) -> None:
        self.name = name
        self.command = own_name(command)
        self.cassettes = tuple(cassettes)
        self.started = tuple(started)

    @property
    def url(self) -> str:
        """Return the URL of an MCP server over HTTP; "" for a child on stdio."""
        is_url = self.command and self.command[0].startswith(("http://", "https://"))
        return self.command[0] if is_url else ""

    def sessions(self) -> Iterator[tuple[str, float | None]]:
        """Yield each cassette with the time of its start; None if that is not known."""
        for number, cassette in enumerate(self.cassettes):
            yield cassette, self.started[number] if number < len(self.started) else None


def with_sessions(recorded: Sequence[Child], new: Sequence[Child]) -> tuple[Child, ...]:
    """Return the children of a recording with further sessions."""
    joined = {(child.name, child.command): child for child in recorded}
    for child in new:
        known = joined.pop((child.name, ()), None) or joined.get((child.name, child.command)) or Child(child.name)
        cassettes = (*known.cassettes, *child.cassettes)
        joined[child.name, child.command] = Child(child.name, child.command, cassettes, known.started)
    return tuple(joined.values())


class RunHeader(NamedTuple):
    """Header of a recording.

    Attributes:
        command: without secrets and machine paths.
        recorder: version of the recorder.
        recorded: time in UTC, such as "2026-11-21T21:00:00Z".
        seconds: duration of the command.
        exit: its exit code, or the name of the signal that has ended it.
        wrap: configuration files whose children were recorded.
        children: on stdio.
        endpoints: servers by scheme, host and port, with counts of their traffic.
        recovered: what is missing because the run was interrupted, and `recover` has made this recording; "" if it is
            complete.
        rules: what need not match on replay, as it is in the file; `run.learn` reads and writes it.
        pass_through: servers whose traffic was forwarded unrecorded.
        environment: variables that a replay sets if they are missing: addresses of APIs, placeholders of their keys.
    """

    command: tuple[str, ...]
    recorder: str
    recorded: str
    seconds: float
    exit: int | str
    wrap: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()
    endpoints: Mapping[str, Mapping[str, int]] = {}
    recovered: str = ""
    rules: object = None
    pass_through: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


def is_recording(folder: Path) -> bool:
    """Return True if a path is the folder of a recording."""
    return (folder / HEADER).is_file()


def encode_header(header: RunHeader) -> str:
    """Return the text of `recording.yaml`, without rules."""
    values = {"recording": VERSION, **header._asdict(), "command": list(header.command)}
    children: list[dict[str, object]] = []
    for child in header.children:
        children.append({"name": child.name, "command": list(child.command), "cassettes": list(child.cassettes)})
        if child.started:
            children[-1]["started"] = [round(each, 6) for each in child.started]
    values |= {"wrap": list(header.wrap), "children": children}
    values["endpoints"] = [{"server": server, **counts} for server, counts in header.endpoints.items()]
    values["pass-through"] = list(values.pop("pass_through"))
    values = {key: value for key, value in values.items() if value not in ([], "", {}) and key != "rules"}
    return TITLE + _yaml(values)


def read_header(folder: Path, name: str = HEADER) -> RunHeader:
    """Return the header of a recording.

    Args:
        name: of its file.

    Raises:
        CassetteError: it can't be read.
    """
    import yaml

    path = folder / name
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CassetteError(path, 0, f"cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict) or values.get("recording") != VERSION:
        raise CassetteError(path, 0, f"expected `recording: {VERSION}`, as `ext-recorder run` writes it")
    ended, seconds = values.get("exit"), _numbers([values.get("seconds")])
    environment = values.get("environment")
    return RunHeader(
        own_name(_words(values.get("command"))),
        str(values.get("recorder") or ""),
        str(values.get("recorded") or ""),
        seconds[0] if seconds else 0.0,
        ended if isinstance(ended, (int, str)) else 0,
        _words(values.get("wrap")),
        tuple(
            Child(
                str(child.get("name")),
                _words(child.get("command")),
                _words(child.get("cassettes")),
                _numbers(child.get("started")),
            )
            for child in values.get("children") or ()
            if isinstance(child, dict)
        ),
        {
            str(endpoint.get("server")): {name: count for name, count in endpoint.items() if isinstance(count, int)}
            for endpoint in values.get("endpoints") or ()
            if isinstance(endpoint, dict)
        },
        str(values.get("recovered") or ""),
        values.get("rules"),
        _words(values.get("pass-through")),
        {str(name): str(value) for name, value in (environment.items() if isinstance(environment, dict) else ())},
    )


def files_of(folder: Path) -> list[Path]:
    """Return the files of a recording that exist: cassettes of children, then HTTP traffic. Raises CassetteError."""
    listed = [folder / cassette for child in read_header(folder).children for cassette in child.cassettes]
    return [path for path in (*listed, folder / TRAFFIC) if path.is_file()]


_OWN_PORT = re.compile(r"(mcp-(?:127\.0\.0\.1|localhost))-\d+(?:-mcp)?")


class Part(NamedTuple):
    """Cassette of a recording, or a cassette of its own.

    Attributes:
        path: the file.
        name: name of the child, without the port of a server on loopback, which is another one in each run; "" of a
            cassette of its own.
        label: path within the folder, for messages.
        started: time of the recording at which its clock begins, in seconds.
    """

    path: Path
    name: str = ""
    label: str = ""
    started: float = 0.0


class Recorded(NamedTuple):
    """Recording or cassette, as the commands on cassettes read it.

    Attributes:
        path: as given.
        header: of a recording; None for a cassette.
        parts: the cassettes.
        traffic: the file of HTTP interactions; None without one.
    """

    path: Path
    header: RunHeader | None
    parts: tuple[Part, ...]
    traffic: Path | None


def opened(path: Path) -> Recorded:
    """Return the files of a recording, or of a cassette with the HTTP traffic of its child.

    Raises:
        CassetteError: the folder is not a recording.
    """
    if not path.is_dir():
        traffic = Path(beside(str(path)))
        return Recorded(path, None, (Part(path, "", path.name),), traffic if traffic.is_file() else None)
    if not is_recording(path):
        advice = "ext-recorder recover makes one of FOLDER.partial" if path.name.endswith(".partial") else ""
        raise CassetteError(path, 0, f"expected a cassette, or the folder of a recording, with {HEADER}", advice)
    header = read_header(path)
    parts = []
    for child in header.children:
        for cassette, started in child.sessions():
            file = path / cassette
            zero = _seconds_after(header, file) if started is None else started
            parts.append(Part(file, _OWN_PORT.sub(r"\1", child.name), cassette, zero))
    return Recorded(path, header, tuple(parts), path / TRAFFIC if (path / TRAFFIC).is_file() else None)


def _seconds_after(header: RunHeader, cassette: Path) -> float:
    """Return the time between the dates in both headers, in whole seconds; 0 if one of them is missing."""
    from datetime import datetime

    from .reader import Reader

    with suppress(CassetteError, ValueError, OSError), Reader(cassette) as reader:
        began, started = (datetime.fromisoformat(text) for text in (header.recorded, reader.header.recorded))
        return max(0.0, (started - began).total_seconds())
    return 0.0


def change_header(folder: Path, change: Callable[[object], object], *, write: bool) -> None:
    """Change the values and comments of `recording.yaml`, and write it unless nothing has changed.

    Comments of a file whose values change are omitted.

    Raises:
        CassetteError, OSError: the file is not valid, or can't be written.
    """
    import yaml

    from ext_sdk.core.atomic import atomic_write

    read_header(folder)
    path = folder / HEADER
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    comments = {at: line for at, line in enumerate(lines) if line.lstrip().startswith("#")}  # reasons of rules
    before, old = yaml.safe_load(text), list(comments.values())
    values, new = change(before), change(old)
    if (values == before and new == old) or not write:
        return
    for at, line in zip(comments, new if isinstance(new, list) else (), strict=True):
        lines[at] = line
    text = "\n".join(lines) if values == before else TITLE + _yaml(values)
    with atomic_write(str(path)) as file:
        file.write(text.encode())


def _yaml(values: object) -> str:
    import yaml

    text: str = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=1 << 20, allow_unicode=True)
    return text


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _numbers(value: object) -> tuple[float, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(float(each) for each in listed if isinstance(each, (int, float)) and not isinstance(each, bool))
