"""A host that keeps the time at which each answer comes, however many calls are open."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from tests.bench.harness import Bench, BenchError, pinned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

PATIENCE_SECONDS = 120.0


class Answered(NamedTuple):
    """An answer.

    Attributes:
        at: when it came, as perf_counter has it.
        message: the whole of it.
    """

    at: float
    message: dict[str, object]


class Ended(NamedTuple):
    """The end of an extension.

    Attributes:
        seconds: from the response to shutdown to the end of the process.
        cpu: seconds of processor time that the process and its children used, user and system.
    """

    seconds: float
    cpu: float


class Talk:
    """A session with an extension, on all cores. A context manager: at its end there is no such process.

    Args:
        bench: says where it runs.
        command: its argv.
        kubeconfig: KUBECONFIG of the extension; None for none.
        config: of `initialize`.
        warm_up: a call that does not count, made when the manifest is there: operation and arguments.

    Attributes:
        started: when the process was started.
    """

    def __init__(
        self,
        bench: Bench,
        command: Sequence[str],
        kubeconfig: Path | None = None,
        config: object = None,
        warm_up: tuple[str, object] | None = None,
    ) -> None:
        self._command = command
        self._workdir = str(bench.directory)
        self._config = config
        self._warm_up = warm_up
        self._answers: dict[int, Answered] = {}
        self._came = threading.Condition()
        self._last = 0
        with pinned(bench.two_cores):
            self.started = perf_counter()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=bench.environment | ({} if kubeconfig is None else {"KUBECONFIG": str(kubeconfig)}),
            )
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        self.answer(self._send("initialize", {"protocolVersion": "0.0.1", "config": self._config or {}}))
        if self._warm_up:
            self.call(*self._warm_up)
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            stream.close()

    def begin(self, operation: str, args: object) -> int:
        """Call an operation in the bench's directory, and don't wait for it. Returns the id of the call."""
        context = {"workdir": self._workdir, "phase": "setup"}
        return self._send("execute", {"operation": operation, "args": args, "context": context})

    def answer(self, id: int) -> Answered:
        """What is answered to a call. Raises BenchError where nothing comes, or no success."""
        with self._came:
            if not self._came.wait_for(lambda: id in self._answers, PATIENCE_SECONDS):
                raise BenchError(f"{self._command[0]}: no answer after {PATIENCE_SECONDS:g} s")
            answered = self._answers.pop(id)
        result = answered.message.get("result")
        if not isinstance(result, dict) or result.get("success") is False:
            raise BenchError(f"{self._command[0]}: {json.dumps(answered.message)[:500]}")
        return answered

    def call(self, operation: str, args: object) -> float:
        """Call an operation that succeeds. Returns seconds from the call to the answer."""
        began = perf_counter()
        return self.answer(self.begin(operation, args)).at - began

    def end(self) -> Ended:
        """Shut the extension down and wait for its process. Raises BenchError if it fails."""
        answered = self.answer(self._send("shutdown", {}))
        _, status, usage = os.wait4(self._process.pid, 0)
        at = perf_counter()
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise BenchError(f"{self._command[0]}: exit code {self._process.returncode}, expected 0")
        return Ended(at - answered.at, usage.ru_utime + usage.ru_stime)

    def _send(self, method: str, params: object) -> int:
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        return self._last

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            at = perf_counter()
            message = json.loads(line)
            if "id" in message:
                with self._came:
                    self._answers[message["id"]] = Answered(at, message)
                    self._came.notify_all()
