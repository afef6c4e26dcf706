"""Start of the agent when the child's interpreter starts. It does as little as possible."""

from __future__ import annotations

import os

from . import call_context
from .clock import RecordedClock
from .import_hook import ImportHook
from .subprocess_audit import audit_subprocesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .channel import Channel

VARIABLE = "EXT_RECORDER_HTTP"  # MODE:SEED:EPOCH:KINDS:FOLDER
RECORD, REPLAY = "record", "replay"
# Clients that do without Python's sockets; what they send can't be seen from here.
AROUND = ("pycurl", "grpc")
# Event loops of their own, which are drop-in replacements of that of asyncio.
LOOPS = ("uvloop", "winloop")


def start() -> None:
    """Read the configuration, confirm that to the recorder, and wait for `socket` to be imported."""
    mode, _, rest = os.environ.get(VARIABLE, "").partition(":")
    seed, _, rest = rest.partition(":")
    epoch, _, rest = rest.partition(":")
    kinds, _, folder = rest.partition(":")
    if mode not in {RECORD, REPLAY} or not os.path.isdir(folder):  # noqa: PTH112
        return
    os.close(os.open(f"{folder}/loaded.{os.getpid()}", os.O_CREAT | os.O_WRONLY, 0o600))
    times = RecordedClock(seed, folder, int(epoch or 0), replay=mode == REPLAY)
    times.install()
    patch_tls: list[Callable[[ModuleType], None]] = []

    def socket_imported(module: ModuleType) -> None:
        install: Callable[[ModuleType, Channel, RecordedClock], Callable[[ModuleType], None]]
        if mode == RECORD:
            from .record_sockets import install
        else:
            from .replay_sockets import install
        patch_tls.append(install(module, times.channel(), times))

    def ssl_imported(module: ModuleType) -> None:
        for patch in patch_tls:
            patch(module)

    def around_imported(module: ModuleType) -> None:
        text = f"{module.__name__} does not use Python's sockets"
        if mode == REPLAY:
            raise ImportError(f"ext-recorder: {text}, and would reach the network")
        times.channel().send({"k": "problem", "text": text})

    def program_started(name: str) -> None:
        times.channel().send({"k": "program", "name": name})

    actions: dict[str, Callable[[ModuleType], None]] = {
        "socket": socket_imported,
        "ssl": ssl_imported,
        "threading": lambda module: _with_real_clock(module, times),
        "queue": times.leave_alone,
        "random": times.seed,
        "subprocess": lambda module: audit_subprocesses(module, program_started),
        "concurrent.futures.thread": call_context.follow_executors,
        **dict.fromkeys(AROUND, around_imported),
        **dict.fromkeys(LOOPS, _use_asyncio),
    }
    if kinds:
        from . import determinism

        call_context.everywhere = True
        repeated = determinism.install(kinds.split(","), seed, times, int(epoch or 0) if mode == REPLAY else 0)
        actions |= {name: _each([*filter(None, [actions.get(name)]), *more]) for name, more in repeated.items()}
    ImportHook(actions).install()


def _each(actions: list[Callable[[ModuleType], None]]) -> Callable[[ModuleType], None]:
    """Return an action that runs several actions."""

    def act(module: ModuleType) -> None:
        for action in actions:
            action(module)

    return act


def _with_real_clock(module: ModuleType, times: RecordedClock) -> None:
    times.leave_alone(module)
    call_context.follow_threads(module)


def _use_asyncio(module: Any) -> None:
    """Make a package with its own event loop return that of asyncio, whose sockets are Python's.

    Args:
        module: uvloop, or its namesake on Windows.
    """
    import asyncio

    def run(main: Any, *, loop_factory: Any = asyncio.SelectorEventLoop, debug: Any = None, **named: Any) -> object:
        with asyncio.Runner(loop_factory=loop_factory, debug=debug) as runner:
            return runner.run(main)

    module.Loop = module.new_event_loop = asyncio.SelectorEventLoop
    module.run = run
