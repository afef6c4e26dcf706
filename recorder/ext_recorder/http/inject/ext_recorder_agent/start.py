"""Start of the agent when the child's interpreter starts. It does as little as possible.

An import hook runs actions after modules were imported, without importing them earlier. Programs that the child runs,
whose traffic is not recorded, are reported by name.
"""

from __future__ import annotations

import os
import sys

from . import call_context
from .clock import RecordedClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from .channel import Channel

VARIABLE = "EXT_RECORDER_HTTP"  # MODE:SEED:EPOCH:KINDS:FOLDER
RECORD, REPLAY = "record", "replay"
# Clients that do not use Python's sockets; their traffic cannot be recorded.
AROUND = ("pycurl", "grpc")
# Packages with a drop-in replacement of the event loop of asyncio.
LOOPS = ("uvloop", "winloop")
# Programs by which the libraries of Python get properties of the machine. They do not use the network.
OFFLINE = frozenset(
    {"uname", "lsb_release", "sw_vers", "sysctl", "locale", "ldconfig", "gcc", "cc", "ld", "objdump", "stty", "tput"}
)
BLIND = ("I", "E", "S")  # options of Python with which it does not load the agent


def start() -> None:
    """Read the configuration, confirm the start to the recorder, and wait for `socket` to be imported."""
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
        "threading": _sequence([times.leave_alone, call_context.follow_threads]),
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
        actions |= {name: _sequence([*filter(None, [actions.get(name)]), *more]) for name, more in repeated.items()}
    ImportHook(actions).install()


def _sequence(actions: list[Callable[[ModuleType], None]]) -> Callable[[ModuleType], None]:
    """Return an action that runs several actions."""

    def act(module: ModuleType) -> None:
        for action in actions:
            action(module)

    return act


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


class ImportHook:
    """Finder that precedes all others for a few names.

    Args:
        actions: run with the module of that name once it has been imported.
    """

    def __init__(self, actions: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._actions = dict(actions)

    def install(self) -> None:
        """Install the hook, and run the actions of modules that are imported already."""
        for name in [name for name in self._actions if name in sys.modules]:
            self._actions.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the other finders, with the action added to its execution."""
        action = self._actions.pop(name, None)
        if action is None:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is None:
                continue
            loader = spec.loader
            if loader is not None and hasattr(loader, "exec_module"):
                _run_after(loader, action)
            return spec
        return None


def _run_after(loader: Any, action: Callable[[ModuleType], None]) -> None:
    """Run an action after a loader has executed its module."""
    execute: Callable[[ModuleType], None] = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        action(module)

    loader.exec_module = exec_module


def audit_subprocesses(module: Any, report: Callable[[str], None]) -> None:
    """Report the name of each program that is started and may use the network, unless it is a Python with the agent.

    Args:
        module: subprocess.
        report: receives a name.
    """
    begin: Callable[..., None] = module.Popen.__init__

    def begin_and_report(self: object, args: Any, *more: Any, **named: Any) -> None:
        begin(self, args, *more, **named)
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
        if words and not _loads_agent(words, named.get("env")):
            name = os.path.basename(os.fsdecode(words[0]).split(" ")[0])  # noqa: PTH119
            if name not in OFFLINE:
                report(name)

    module.Popen.__init__ = begin_and_report


def _loads_agent(words: list[Any], env: Any) -> bool:
    """Return True if a command runs a Python that loads the agent."""
    name = os.path.basename(os.fsdecode(words[0]))  # noqa: PTH119
    if not name.startswith("python") and os.fsdecode(words[0]) != sys.executable:
        return False
    options = [os.fsdecode(word) for word in words[1:4]]
    blind = any(word[:1] == "-" and word[1:2] != "-" and set(word[1:]) & set(BLIND) for word in options)
    return not blind and (env is None or "EXT_RECORDER_HTTP" in env)
