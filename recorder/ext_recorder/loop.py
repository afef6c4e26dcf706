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
    try:
        shell.start()
        while shell.status is None:
            if not shell.rests:
                _turn(shell, signals)
                continue
            ready = at_rest.poll()  # nearly always: with nothing to ask or to register, a call takes a fifth less
            if len(ready) == 1 and ready[0][0] == _STDIN:
                shell.listen()
            else:
                _take_signals(shell, signals)
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


def wait(shells: Iterable[Shell], further: Iterable[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Wait until something can be done.

    Args:
        shells: what they wait for is asked of them.
        further: other files, to be read.

    Returns:
        What is ready, and what was asked: file to events of poll().
    """
    waiting = poll()
    asked = dict.fromkeys(further, POLLIN)
    patience = None
    for shell in shells:
        shell.interests(asked)
        due = shell.patience()
        if due is not None and (patience is None or due < patience):
            patience = due
    for fd, events in asked.items():
        waiting.register(fd, events)
    return dict(waiting.poll(patience)), asked
