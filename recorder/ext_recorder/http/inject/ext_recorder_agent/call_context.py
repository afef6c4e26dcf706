"""Context of the host's call that a thread works for.

A program sets a context variable named CALL_VARIABLE to the id of the request, as extensions of ext_sdk do. Neither
side imports the other; they share only this name. Threads started by a call belong to that call.

A deadline that is computed before the variable is set is on the live clock, and all readings of the call are on the
recorded one: the program has to set it before it computes anything from the clock for this call.
"""

from __future__ import annotations

from _contextvars import ContextVar, copy_context
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    CallId: TypeAlias = int | str | float | None

CALL_VARIABLE = "jsonrpc_call"

# Number threads outside calls, too, because their random values and clock readings are replayed.
everywhere = False
_known: list[ContextVar[CallId]] = []  # the variable, after it was found
# Thread of a call: "" for its own, "/1" for the first that this one starts, "/1/2" for the second of that one.
_branch: ContextVar[str] = ContextVar("ext_recorder_branch", default="")
# A pool starts a thread if none is idle, which depends on time: its tasks are numbered instead of its threads.
_pooling: ContextVar[bool] = ContextVar("ext_recorder_pooling", default=False)
_counts: dict[tuple[CallId, str], int] = {}
_lock = allocate_lock()


def current() -> CallId:
    """Return the id of the call; None outside calls."""
    if _known:
        return _known[0].get(None)
    for variable in copy_context():
        if variable.name == CALL_VARIABLE:
            _known.append(variable)
            return current()
    return None


def branch() -> str:
    """Return the number of this thread within its call; equal on replay, where a call starts its threads in order."""
    return _branch.get()


def _branching(run: Callable[..., object]) -> Callable[..., object]:
    """Return a function that runs in another thread as a part of this thread's call."""
    context, key = copy_context() if current() is not None else None, (current(), branch())
    with _lock:
        number = _counts[key] = _counts.get(key, 0) + 1

    def running(*args: object, **named: object) -> object:
        _branch.set(f"{key[1]}/{number}")
        return run(*args, **named)

    return running if context is None else lambda *args, **named: context.run(running, *args, **named)


def follow_threads(module: Any) -> None:
    """Make threads that a call starts belong to it.

    Args:
        module: threading.
    """
    start: Callable[[object], None] = module.Thread.start

    def start_in_context(thread: Any) -> None:
        if current() is not None or (everywhere and not _pooling.get()):
            thread.run = _branching(thread.run)
        start(thread)

    module.Thread.start = start_in_context


def follow_executors(module: Any) -> None:
    """Make tasks that a call submits to a thread pool belong to it.

    Args:
        module: concurrent.futures.thread.
    """
    submit: Callable[..., object] = module.ThreadPoolExecutor.submit

    def submit_in_context(pool: object, function: Callable[..., object], /, *args: object, **named: object) -> object:
        if not everywhere and current() is None:
            return submit(pool, function, *args, **named)
        if current() is not None:
            return submit(pool, _branching(function), *args, **named)
        token = _pooling.set(True)
        try:
            return submit(pool, _branching(function), *args, **named)
        finally:
            _pooling.reset(token)

    module.ThreadPoolExecutor.submit = submit_in_context
