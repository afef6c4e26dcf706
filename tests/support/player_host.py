"""A host in memory for the tests of replay: it says bytes to a player and keeps what comes back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from ext_recorder.cassette.header import Header, encode_header, encode_trailer
from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.actions import ActionBuffer, ChangeFiles, Close, Exit
from ext_recorder.replay.replay import Options, make_action_buffer, make_player

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from ext_recorder.replay.actions import Action

WORKDIR = {"workdir": "/tmp/workdir"}
END = "- {t: 9.1, eof: in}\n- {t: 9.2, exit: 0}"


def cassette(
    path: Path,
    events: str,
    *,
    protocol: str = "gevals",
    framing: str = "ndjson",
    bindings: Mapping[str, str] | None = None,
) -> Path:
    """Write a cassette; its events are given as they stand in the file, indented or not."""
    lines = [line.strip() for line in events.strip().splitlines()]
    header = Header(protocol, framing, bindings=WORKDIR if bindings is None else bindings)
    path.write_bytes(encode_header(header) + "".join(f"{line}\n" for line in lines).encode() + encode_trailer(()))
    return path


class Host:
    """A host beside a player.

    Attributes:
        err: what came on stderr.
        closed: the streams that the child has closed.
        status: how it ended; None while it lives.
        actions: everything, as it came.
    """

    def __init__(self, path: Path, options: Options | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._reader = Reader(path)
        if options is not None and options.faults:
            self._stage = make_action_buffer(self._reader.header, options)
        else:
            self._stage = ActionBuffer(paced=bool(options and options.speed))
        self.err = ""
        self.closed: list[str] = []
        self.status: int | str | None = None
        self.actions: list[Action] = []
        try:
            self._player = make_player(self._reader, self._stage, options or Options(), environ or {})
            self._player.on_host_data = self._stage.on_host_data
            self._player.start()
        except BaseException:
            self._reader.close()
            raise
        self.greeting = self._take()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    @property
    def repeated(self) -> int:
        """The number of messages that were played again, on request."""
        return self._player.repeated

    def say(self, *texts: str) -> list[str]:
        """Say lines; the lines that come back."""
        return self.write("".join(f"{text}\n" for text in texts).encode()).decode("utf-8", "replace").splitlines()

    def call(self, id: object, method: str = "execute", **params: object) -> dict[str, object]:
        """Make a call that is answered at once, by one line."""
        (line,) = self.say(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        return cast("dict[str, object]", json.loads(line))

    def write(self, data: bytes) -> bytes:
        """Say bytes; the bytes that come back."""
        self._player.receive_data(data)
        return self._take()

    def close(self) -> list[str]:
        """Say no more; the lines that come back."""
        self._player.receive_eof()
        return self._take().decode("utf-8", "replace").splitlines()

    def fall_silent(self) -> list[str]:
        """Send nothing for a while; the lines that come back."""
        self._player.receive_silence()
        return self._take().decode("utf-8", "replace").splitlines()

    def signal(self, name: str) -> list[str]:
        """Send a signal."""
        self._player.receive_signal(name)
        return self._take().decode("utf-8", "replace").splitlines()

    def _take(self) -> bytes:
        while self._player.more:
            self._player.proceed()
        out = b""
        for action in self._stage.take():
            self.actions.append(action)
            if isinstance(action, Exit):
                self.status = action.status
            elif isinstance(action, Close):
                self.closed.append(action.stream)
            elif isinstance(action, ChangeFiles):
                continue
            elif action.stream == "err":
                self.err += action.data.decode("utf-8", "replace")
            else:
                out += action.data
        return out


def error_of(line: str) -> dict[str, object]:
    """The error of an answer, which has to be one."""
    return cast("dict[str, object]", json.loads(line)["error"])


def message_of(line: str) -> str:
    """What the error of an answer says."""
    return str(error_of(line)["message"])
