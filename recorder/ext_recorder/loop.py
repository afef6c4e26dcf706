"""One player on this process' own stdin, stdout and stderr: one thread and one poll()."""

from __future__ import annotations

from select import POLLIN, poll

from .shell import EXIT_CANNOT_PLAY, Shell
from .signals import Signals, signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .outlets import Outlet
    from .player import Player
    from .stage import Output, Stage

__all__ = ["EXIT_CANNOT_PLAY", "play", "wait"]

_STDIN = 0
# Silence of the host after which open calls stop waiting for its next recorded message, in milliseconds: longer than
# hosts compute between two messages, shorter than the shortest usual timeout of a call (10 s).
SILENCE_MS = 5_000
# The same once it was played early: this host waits for each response, so it will most likely do so again.
NEXT_SILENCE_MS = 250


def play(
    player: Player,
    stage: Stage,
    outlets: Mapping[Output, Outlet],
    speed: float,
    on_end: Callable[[int | str], None] | None = None,
) -> int | str:
    """Play to the end: the exit code, or the name of the signal to end by. Arguments as those of `Shell`."""
    signals = Signals()
    signals.catch()
    shell = Shell(player, stage, _STDIN, outlets, speed, on_end=on_end)
    at_rest = poll()
    at_rest.register(signals.fd, POLLIN)
    at_rest.register(_STDIN, POLLIN)
    silence: int | None = SILENCE_MS
    patience = silence
    try:
        shell.start()
        while shell.status is None:
            if not shell.rests:
                _turn(shell, signals)
                continue
            # Nearly always: with nothing to ask or to register, a call takes a fifth less.
            ready = at_rest.poll(patience)
            if len(ready) == 1 and ready[0][0] == _STDIN:
                shell.listen()
                patience = silence
            elif ready:
                _take_signals(shell, signals)
            elif shell.receive_silence():
                patience = silence = NEXT_SILENCE_MS
            else:
                patience = None  # nothing changes before the host writes
    finally:
        while shell.backlog():
            _turn(shell, signals)
        signals.close()
    return shell.status


def _turn(shell: Shell, signals: Signals) -> None:
    ready, asked = wait([shell], [signals.fd])
    if signals.fd in ready:
        _take_signals(shell, signals)
    shell.act(ready, asked)


def _take_signals(shell: Shell, signals: Signals) -> None:
    for number, _ in signals.take():
        shell.receive_signal(signal_name(number))


def wait(
    shells: Iterable[Shell], further: Iterable[int], patience: float | None = None
) -> tuple[dict[int, int], dict[int, int]]:
    """Wait until something can be done.

    Args:
        shells: what they wait for is asked of them.
        further: other files, to be read.
        patience: maximum wait in milliseconds; None: no limit.

    Returns:
        What is ready, and what was asked: file to events of poll().
    """
    waiting = poll()
    asked = dict.fromkeys(further, POLLIN)
    for shell in shells:
        shell.interests(asked)
        due = shell.patience()
        if due is not None and (patience is None or due < patience):
            patience = due
    for fd, events in asked.items():
        waiting.register(fd, events)
    return dict(waiting.poll(patience)), asked
