"""Which call of the host this thread works for.

A program tells by a context variable of the name CALL_VARIABLE, set to the id of the request, as extensions of ext_sdk
do. Neither side imports the other: the name is all that they have in common. What runs in threads that a call has
started belongs to that call.
"""

from __future__ import annotations

from _contextvars import copy_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _contextvars import ContextVar
    from collections.abc import Callable
    from typing import Any, TypeAlias

    CallId: TypeAlias = int | str | float | None

CALL_VARIABLE = "jsonrpc_call"

_known: list[ContextVar[CallId]] = []  # the variable, once seen


def current() -> CallId:
    """The id of the call; None where there is none."""
    if _known:
        return _known[0].get(None)
    for variable in copy_context():
        if variable.name == CALL_VARIABLE:
            _known.append(variable)
            return current()
    return None


def follow_threads(module: Any) -> None:
    """Let threads that a call starts belong to it.

    Args:
        module: threading.
    """
    start: Callable[[object], None] = module.Thread.start

    def start_in_context(thread: Any) -> None:
        if current() is not None:
            context, run = copy_context(), thread.run
            thread.run = lambda: context.run(run)
        start(thread)

    module.Thread.start = start_in_context


def follow_executors(module: Any) -> None:
    """The same for what is handed to a pool of threads.

    Args:
        module: concurrent.futures.thread.
    """
    submit: Callable[..., object] = module.ThreadPoolExecutor.submit

    def submit_in_context(pool: object, function: Callable[..., object], /, *args: object, **named: object) -> object:
        if current() is None:
            return submit(pool, function, *args, **named)
        return submit(pool, copy_context().run, function, *args, **named)

    module.ThreadPoolExecutor.submit = submit_in_context
