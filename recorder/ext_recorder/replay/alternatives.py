"""Choice between recorded sessions of one command: for children that a host starts in parallel.

Such sessions begin alike, so a child begins with any of them. If the host sends a message that this session does not
have, the child continues with another session, in which the host has sent the same messages until then. The host knows
the output of the first session: tokens that differ, such as the ids of conversations, are translated from then on.
"""

from __future__ import annotations

import re

from ext_recorder.errors import RecorderError
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads

from .actions import ActionBuffer, Write
from .player import Divergence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Protocol

    from .player import Player

    class Alternatives(Protocol):
        """Recorded sessions of one command."""

        def others(self) -> Sequence[str]:
            """Return the cassettes of the sessions that are not played now, the best ones first."""

        def choose(self, cassette: str) -> None:
            """Note that this session is played from now on."""

        def remaining(self) -> str:
            """Return the session that is played now, or, if another child plays it, one that no child plays."""


LINES = "ndjson"  # the framing whose messages can be translated, since no length precedes them
TOKEN_CHARS = range(4, 200)  # length of a string in which two sessions may differ
WITHIN = 8  # length from which a token is also translated within a longer string
MOST_BYTES = 16 * 1024 * 1024  # of a session, in both directions, until which another session may replace it


class LoggedActions(ActionBuffer):
    """Action buffer that keeps the messages on stdout.

    Attributes:
        log: the messages, unless `keeps` is False.
        logged: their number of bytes.
        live: live tokens by the recorded ones.
    """

    __slots__ = ("keeps", "live", "log", "logged")

    def __init__(self, *, paced: bool = False, apart: bool = False) -> None:
        super().__init__(paced=paced, apart=apart)
        self.log: list[bytes] = []
        self.logged = 0
        self.keeps = True
        self.live: Mapping[bytes, bytes] = {}

    @property
    def plain(self) -> bool:
        """Return False: all messages are needed one by one."""
        return False

    def out(self, data: bytes, *, answers: bool = False) -> None:
        data = _translated(data, self.live)
        if self.keeps:
            self.log.append(data)
            self.logged += len(data)
        super().out(data, answers=answers)

    def omit(self, count: int, differences: Sequence[str]) -> None:
        """Remove the first messages, which the host has received already, and of stderr all but the differences."""
        others = [action for action in self.take() if not isinstance(action, Write)]
        for message in self.log[count:]:
            super().out(message)
        for text in differences:
            self.err(f"ext-recorder: {text}\n".encode("utf-8", "backslashreplace"))
        self._flush()
        self._actions += others


class Choice:
    """The session that is played, and those that may replace it.

    Args:
        path: the session to begin with.
        opened: opens a session.
        framing: of all sessions.
        settled: is called with a session that is played from now on.

    Attributes:
        player, actions: of the session that is played.
    """

    def __init__(
        self,
        path: str,
        alternatives: Alternatives,
        *,
        opened: Callable[[str], tuple[Player, LoggedActions]],
        framing: str,
        settled: Callable[[str, Player], None],
    ) -> None:
        self._path = path
        self._settled = settled
        self._alternatives = alternatives
        self._opened = opened
        self._lines = framing == LINES
        self._received: list[bytes] = []  # complete lines of the host
        self._rest = b""
        self._size = 0
        self._recorded: dict[bytes, bytes] = {}  # recorded tokens by the live ones
        self.player, self.actions = opened(path)
        settled(path, self.player)

    def received(self, data: bytes) -> bytes:
        """Return input of the host as the recorded host would have sent it; of lines, only complete ones.

        Args:
            data: the input; b"" at its end.
        """
        if self._lines and data:
            lines, feed, self._rest = (self._rest + data).rpartition(b"\n")
            data = lines + feed
        else:
            data, self._rest = self._rest + data, b""
        self._size += len(data)
        if self.player.chooses and self._size + self.actions.logged > MOST_BYTES:
            self._decide()
        if data and self.player.chooses:
            self._received += data.splitlines(keepends=True) if self._lines else [data]
        return _translated(data, self._recorded)

    def other(self, *, ended: bool) -> tuple[Player, LoggedActions]:
        """Return the session to continue with: another one; or the same one, in which the last message is a miss.

        Args:
            ended: the input of the host has ended.
        """
        for path in self._alternatives.others():
            if self._plays(path, ended=ended):
                self._alternatives.choose(path)
                break
        else:  # none has the message, so it is a miss, of a session that no other child plays
            claimed = self._alternatives.remaining()
            if claimed != self._path and self._plays(claimed, ended=ended, chooses=False):
                self._alternatives.choose(claimed)
            else:
                self._plays(self._path, ended=ended, chooses=False)
            self._decide()
        self._settled(self._path, self.player)
        return self.player, self.actions

    def _decide(self) -> None:
        """Continue without other sessions."""
        self.player.chooses = self.actions.keeps = False
        self.actions.log.clear()
        self._received.clear()

    def _plays(self, path: str, *, ended: bool, chooses: bool = True) -> bool:
        """Play the input so far in a session, and continue with it if its output is what the host has received.

        Args:
            chooses: the session must have all messages of the host.
        """
        player, actions = self._opened(path)
        player.chooses = chooses
        said = self.actions.log
        comparison = _Comparison(actions, said, in_lines=self._lines)
        try:
            player.start()
            for data in self._received:
                if not comparison.agrees(player):
                    return False
                player.receive_data(_translated(data, comparison.recorded))
            if ended:
                player.receive_eof()
        except (Divergence, RecorderError):
            return False
        if not comparison.agrees(player) or len(actions.log) < len(said):
            return False
        actions.omit(len(said), player.differences)
        self._path, self.player, self.actions, self._recorded = path, player, actions, comparison.recorded
        return True


class _Comparison:
    """Comparison of the messages of a session with those that the host has received.

    Attributes:
        recorded: recorded tokens by the live ones.
    """

    def __init__(self, actions: LoggedActions, said: Sequence[bytes], *, in_lines: bool) -> None:
        self.recorded: dict[bytes, bytes] = {}
        self._actions = actions
        self._said = said
        self._in_lines = in_lines
        self._count = 0

    def agrees(self, player: Player) -> bool:
        """Compare the messages since the last call. Return True if they differ in tokens alone."""
        while player.more:
            player.proceed()
        for message, sent in zip(self._actions.log[self._count :], self._said[self._count :], strict=False):
            self._count += 1
            if message == sent:
                continue
            pairs = list(_differing(message, sent)) if self._in_lines else [None]
            if None in pairs:
                return False
            self.recorded.update((live, recorded) for recorded, live in filter(None, pairs))
            self._actions.live = {recorded: live for live, recorded in self.recorded.items()}
        return True


def _differing(recorded: bytes, live: bytes) -> Iterator[tuple[bytes, bytes] | None]:
    """Yield the tokens in which two messages differ; None if they differ in something else."""
    try:
        pending = [(loads(recorded.decode()), loads(live.decode()))]
    except (UnicodeDecodeError, MessageError):
        yield None
        return
    while pending:
        one, other = pending.pop()
        if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            pending += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            pending += zip(one, other, strict=True)
        elif isinstance(one, str) and isinstance(other, str) and one != other:
            yield (_token(one), _token(other)) if _is_token(one) and _is_token(other) else None
        elif one != other:
            yield None


def _is_token(text: str) -> bool:
    return len(text) in TOKEN_CHARS and not any(char.isspace() for char in text)


def _token(text: str) -> bytes:
    encoded = dumps(text).encode()
    return encoded[1:-1] if len(text) >= WITHIN else encoded


def _translated(data: bytes, tokens: Mapping[bytes, bytes]) -> bytes:
    if not tokens:
        return data
    pattern = b"|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True))
    return re.sub(pattern, lambda found: tokens[found[0]], data)
