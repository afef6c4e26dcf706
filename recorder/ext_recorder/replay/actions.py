"""Actions of a replay as data: players add them, the event loop performs them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    Output = Literal["out", "err"]
else:
    Output = str


class Write:
    """Write bytes to stdout or stderr.

    Attributes:
        stream: "out" or "err".
        data: the bytes.
        after: seconds since the host's last message, in the recording.
        delay: seconds to wait in addition, at any speed.
        apart: write it only after the reader has read all previous output.
    """

    __slots__ = ("after", "apart", "data", "delay", "stream")

    def __init__(
        self, stream: Output, data: bytes, after: float = 0.0, delay: float = 0.0, *, apart: bool = False
    ) -> None:
        self.stream = stream
        self.data = data
        self.after = after
        self.delay = delay
        self.apart = apart

    def __repr__(self) -> str:
        return f"Write({self.stream!r}, {self.data!r})"


class Close:
    """Close stdout or stderr; `after` as in Write."""

    __slots__ = ("after", "stream")

    def __init__(self, stream: Output, after: float = 0.0) -> None:
        self.stream = stream
        self.after = after

    def __repr__(self) -> str:
        return f"Close({self.stream!r})"


class Exit:
    """Exit with this code, or by the signal of this name; it is the last action. `after` as in Write."""

    __slots__ = ("after", "status")

    def __init__(self, status: int | str, after: float = 0.0) -> None:
        self.status = status
        self.after = after

    def __repr__(self) -> str:
        return f"Exit({self.status!r})"


class ChangeFiles:
    """Change files of the workspace, by the patch with this number. `after` as in Write."""

    __slots__ = ("after", "number")

    def __init__(self, number: int, after: float = 0.0) -> None:
        self.number = number
        self.after = after

    def __repr__(self) -> str:
        return f"ChangeFiles({self.number})"


Action = Write | Close | Exit | ChangeFiles


class ActionBuffer:
    """Buffer of actions. Consecutive writes are merged, unless the replay is paced.

    Args:
        paced: keep each event's own time.
        apart: keep responses and other messages in separate writes, see `event_loop`.

    Attributes:
        after: recorded time of the next output, see Write.
        on_host_data: receives all bytes of the host; None for no receiver.
        over: an Exit was added; later actions have no effect.
        size: bytes of output since the last `take`.
    """

    __slots__ = ("_actions", "_apart", "_last", "_next_apart", "_out", "_paced", "_patches", "after", "over", "size")

    def __init__(self, *, paced: bool = False, apart: bool = False) -> None:
        self._actions: list[Action] = []
        self._out: list[bytes] = []
        self._paced = paced
        self._apart = apart
        self._last: bool | None = None  # the last message is a response
        self._next_apart = False
        self._patches: set[int] = set()
        self.after = 0.0
        self.over = False
        self.size = 0

    on_host_data: Callable[[bytes], None] | None = None

    @property
    def plain(self) -> bool:
        """Return True if the recorded time of a message does not matter, and messages are not changed."""
        return not self._paced

    @property
    def unused_rules(self) -> list[str]:
        """Return the fault rules that matched no message."""
        return []

    def out(self, data: bytes, *, answers: bool = False) -> None:
        """Write to stdout.

        Args:
            data: a message, with its framing.
            answers: the message is a response.
        """
        if answers is not self._last and data:
            self.separate(answers=answers)
        self._out.append(data)
        self.size += len(data)
        if self._paced:
            self._flush()

    def err(self, data: bytes) -> None:
        """Write to stderr."""
        self._flush()
        self._actions.append(Write("err", data, self.after))
        self.size += len(data)

    def close(self, stream: Output) -> None:
        """Close stdout or stderr."""
        self._flush()
        self._actions.append(Close(stream, self.after))

    def change_files(self, number: int) -> None:
        """Change files of the workspace, by the patch with this number."""
        if number not in self._patches:
            self._flush()
            self._patches.add(number)
            self._actions.append(ChangeFiles(number, self.after))

    def exit(self, status: int | str) -> None:
        """Exit with this code, or by the signal of this name."""
        if not self.over:
            self._flush()
            self._actions.append(Exit(status, self.after))
            self.over = True

    def take_out(self) -> bytes | None:
        """Return the output since the last call if all of it is bytes on stdout without a time; else None.

        After None, call `take`.
        """
        if self._actions or self._next_apart:
            return None
        if not self.size:
            return b""
        out = self._out
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        self.size = 0
        return data

    def take(self) -> list[Action]:
        """Return the actions since the last call."""
        self._flush()
        actions, self._actions = self._actions, []
        self.size = 0
        return actions

    def separate(self, *, answers: bool) -> None:
        """Separate the next message from the previous ones, which are of the other kind."""
        if self._apart and self._last is not None:
            self._flush()
            self._next_apart = True
        self._last = answers

    def _flush(self) -> None:
        if self._out:
            self.write_out(b"".join(self._out))
            self._out.clear()

    def write_out(self, data: bytes, delay: float = 0.0) -> None:
        """Write bytes to stdout, after a delay in seconds."""
        self._actions.append(Write("out", data, self.after, delay, apart=self._next_apart))
        self._next_apart = False
