"""An extension with one operation for each thing that an operation can do, well or badly. Tests run it as a program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Callable


class ProbeConfig(ext_sdk.Config):
    trace: Annotated[str, ext_sdk.Meta(description="File to which states write when they are closed")] = ""
    greeting: str = "hello"


class Nothing(ext_sdk.Args):
    pass


class Text(ext_sdk.Args):
    text: str = ""
    timeout: ext_sdk.Duration | None = None


class Pipe(ext_sdk.Args):
    started: Annotated[str, ext_sdk.Meta(description="FIFO to which a line is written when the operation runs")]
    go_on: Annotated[str, ext_sdk.Meta(description="FIFO from which the operation reads a line before it ends")] = ""


class Spill(ext_sdk.Args):
    to: Literal["message", "error", "output", "log", "data", "exception"]
    text: str = "x"
    times: int = 1


class Child(ext_sdk.Args):
    command: list[str]


signal.signal(signal.SIGUSR1, lambda *_: None)  # an extension may have signals of its own

extension = ext_sdk.Extension("probe", version="1.2.3", description="For tests.", requires=("sh",), config=ProbeConfig)


@extension.operation(example={"text": "hi"})
def echo(args: Text, context: ext_sdk.Context) -> ext_sdk.Result:
    """Give the text back."""
    return ext_sdk.Result.ok(args.text, outputs={"text": args.text, "length": len(args.text), "empty": not args.text})


@extension.operation()
def circumstances(args: Text, context: ext_sdk.Context) -> ext_sdk.Result:
    """Tell what the operation was given."""
    assert isinstance(context.config, ProbeConfig)
    remaining = context.deadline.remaining()
    return ext_sdk.Result.ok(
        outputs={
            "workdir": str(context.workdir),
            "phase": context.phase,
            "env": repr(context.env),
            "prompt": str(context.agent.prompt) if context.agent else "no agent",
            "output": str(context.agent.output) if context.agent else "no agent",
            "remaining": "unlimited" if remaining == float("inf") else round(remaining),
            "greeting": context.config.greeting,
        }
    )


@extension.operation()
def meet(args: Pipe, context: ext_sdk.Context) -> ext_sdk.Result:
    """Say that it runs, and go on when told to."""
    Path(args.started).write_text("started\n")
    with Path(args.go_on).open() as pipe:
        return ext_sdk.Result.ok(pipe.readline().strip())


@extension.operation()
def wait_for_stop(args: Pipe, context: ext_sdk.Context) -> ext_sdk.Result:
    """Work until it is told to stop."""
    Path(args.started).write_text("started\n")
    context.deadline.stopped.wait()
    return ext_sdk.Result.failed("stopped", outputs={"remaining": str(context.deadline.remaining())})


@extension.operation()
def wait_for_deadline(args: Text, context: ext_sdk.Context) -> ext_sdk.Result:
    """Work until its time is over."""
    while context.deadline.wait(context.deadline.remaining()):
        pass
    return ext_sdk.Result.failed("time is over", outputs={"lastStatus": args.text})


@extension.operation()
def hang(args: Pipe, context: ext_sdk.Context) -> ext_sdk.Result:
    """Never end, whatever it is told."""
    Path(args.started).write_text("started\n")
    threading.Event().wait()
    raise AssertionError


@extension.operation()
def leave_thread(args: Nothing, context: ext_sdk.Context) -> ext_sdk.Result:
    """Leave a thread that never ends, and for which the interpreter waits."""
    threading.Thread(target=threading.Event().wait, daemon=False).start()
    return ext_sdk.Result.ok("started")


@extension.operation()
def spill(args: Spill, context: ext_sdk.Context) -> ext_sdk.Result:
    """Give a long text."""
    text = args.text * args.times
    if args.to == "log":
        context.log.info(text)
    if args.to == "data":
        context.log.debug("see data", long=text, short="short")
    if args.to == "exception":
        raise ValueError(text)
    if args.to == "error":
        return ext_sdk.Result.failed("it failed", error=text)
    return ext_sdk.Result.ok(
        text if args.to == "message" else "", outputs={"text": text if args.to == "output" else "", "short": "short"}
    )


@extension.operation()
def log(args: Text, context: ext_sdk.Context) -> ext_sdk.Result:
    """Log at every level."""
    context.log.debug("one", text=args.text)
    context.log.info("two")
    context.log.warn("three", path=Path("/x"), number=1, nan=float("nan"))  # a Path and NaN are no JSON
    context.log.error("four")
    return ext_sdk.Result.ok("five")


@extension.operation()
def talk(args: Child, context: ext_sdk.Context) -> ext_sdk.Result:
    """Write wherever one can write, and start a child that inherits everything."""
    print("printed")  # noqa: T201
    sys.stdout.flush()
    os.write(1, b"written\n")
    child = subprocess.run(args.command, check=False, close_fds=False)
    return ext_sdk.Result.ok(outputs={"exitCode": child.returncode})


@extension.operation()
def hide(args: Text, context: ext_sdk.Context) -> ext_sdk.Result:
    """Make the text a secret, and then say it."""
    context.secrets.add("told", args.text)
    context.log.info(f"it is {args.text}", value=args.text)
    return ext_sdk.Result.ok(f"it is {args.text}", outputs={"value": args.text})


@extension.operation()
def mint(args: Text, context: ext_sdk.Context) -> ext_sdk.Result:
    """Give the text to later operations only."""
    return ext_sdk.Result.ok("made", outputs={"public": "yes"}, secret_outputs={"token": args.text})


class Counter:
    """State that writes to a file when it is closed."""

    def __init__(self) -> None:
        self.count = 0
        self.trace = ""

    def close(self) -> None:
        with Path(self.trace).open("a") as trace:
            trace.write(f"closed at {self.count}\n")


@extension.operation()
def count(args: Nothing, context: ext_sdk.Context) -> ext_sdk.Result:
    """Count calls in this workdir."""
    assert isinstance(context.config, ProbeConfig)
    counter = context.state(Counter)
    counter.count += 1
    counter.trace = context.config.trace
    return ext_sdk.Result.ok(outputs={"count": counter.count})


class Fragile:
    """State that fails when it is closed."""

    def close(self) -> None:
        raise ValueError("it broke")


class Stubborn:
    """State that never closes."""

    def close(self) -> None:
        threading.Event().wait()


@extension.operation()
def hold(args: Nothing, context: ext_sdk.Context) -> ext_sdk.Result:
    """Keep state that can't be closed, and state that never is."""
    context.state(Fragile)
    context.state(Stubborn)
    return ext_sdk.Result.ok("held")


def _boom() -> None:
    raise ValueError("boom")


def _fail() -> None:
    raise ext_sdk.OperationFailed("not ready", error="expected Ready, found Pending", outputs={"lastStatus": "Pending"})


def _fail_badly() -> None:
    raise ext_sdk.OperationFailed("not ready", outputs={"a.b": "no name of an output"})


def _refuse() -> None:
    raise ext_sdk.InvalidArgs("how", "expected something else")


def _require() -> None:
    raise ext_sdk.RequirementNotMet("frobnicate", "install it")


def _leave() -> None:
    sys.exit("left")


def _interrupt() -> None:
    raise KeyboardInterrupt


def _cancel() -> None:
    raise asyncio.CancelledError


def _mute() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("nothing to say")

    raise MuteError


class Way(ext_sdk.Args):
    how: Literal["boom", "fail", "fail_badly", "refuse", "require", "leave", "interrupt", "cancel", "mute", "none"]


@extension.operation()
def end_badly(args: Way, context: ext_sdk.Context) -> ext_sdk.Result:
    """Raise something, or give nothing."""
    ways: dict[str, Callable[[], None]] = {
        "boom": _boom,
        "fail": _fail,
        "fail_badly": _fail_badly,
        "refuse": _refuse,
        "require": _require,
        "leave": _leave,
        "interrupt": _interrupt,
        "cancel": _cancel,
        "mute": _mute,
        "none": lambda: None,
    }
    return ways[args.how]()  # type: ignore[return-value]


if __name__ == "__main__":
    raise SystemExit(extension.run())
