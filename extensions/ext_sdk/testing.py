"""Tests of operations in the process of the test: calls as a host makes them, without a child process and waiting.

    from ext_sdk.testing import call

    def test_a_person_is_greeted(tmp_path: Path) -> None:
        result = call(extension, "greet", {"name": "Ada"}, workdir=tmp_path)
        assert result.outputs == {"name": "Ada", "letters": "3"}

`Host` is for several steps of one task, and `FakeClock` for operations that wait. In pytest, `ext_host` is the Host of
the fixture `extension`, which the author defines in conftest.py.
"""

from __future__ import annotations

import heapq
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self

from .polling import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    from .context import SendHostCall
    from .definition import Definition
    from .result import Result
    from .server.session import Call

__all__ = ["FakeClock", "Host", "Logged", "call"]


class FakeClock(Clock):
    """Clock that only waits move: `context.deadline.wait(30)` returns at once, 30 seconds later by this clock.

    Deadlines and `attempts_until` use it. Other waits, such as those for a process, take their real time.
    """

    __slots__ = ("_now", "_order", "_plans")

    def __init__(self) -> None:
        self._now = 0.0
        self._order = 0
        self._plans: list[tuple[float, int, Callable[[], object]]] = []

    def now(self) -> float:
        """Return the seconds since the clock was created."""
        return self._now

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Plan an action, such as to write the file that an operation waits for; waits that reach its time run it."""
        self._order += 1
        heapq.heappush(self._plans, (self._now + seconds, self._order, action))

    def advance(self, seconds: float) -> None:
        """Move the time, and run the actions that were planned until then."""
        end = self._now + seconds
        while self._plans and self._plans[0][0] <= end:
            self._now, _, action = heapq.heappop(self._plans)
            action()
        self._now = end

    def wait(self, stopped: threading.Event, seconds: float) -> None:
        """Move the time, to the next planned action at a time: one that sets `stopped` ends the wait."""
        end = self._now + seconds
        while self._now < end and not stopped.is_set():
            self.advance(min(end, self._plans[0][0] if self._plans else end) - self._now)


class Logged(NamedTuple):
    """Log message of an operation, as the host gets it."""

    level: str
    message: str
    data: dict[str, object]


class Host:
    """Host of an extension in this process: it calls operations one after the other, with the checks of a real session.

    Arguments are validated, defaults and references `${NAME.key}` filled in, and secrets in results and logs redacted.
    Use it as a context manager, or close it: this closes the state of the operations.

    Args:
        extension: the `ext_sdk.Extension`.
        workdir: directory of the task.
        config: the configuration, as the host sends it.
        env: variables of the task.
        clock: a FakeClock, to test operations that wait. Default: the system's clock.
        answer: responds to calls of the host (`context.host`): gets method and params, and returns the output, or
            raises HostCallFailed. Default: a host without such calls.

    Attributes:
        log: the log messages of all calls.

    Raises:
        RpcError: the configuration is invalid.
    """

    def __init__(
        self,
        extension: Definition,
        *,
        workdir: Path,
        config: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        answer: Callable[[str, Mapping[str, object]], Mapping[str, object]] | None = None,
    ) -> None:
        import os

        from .context import HostOutput
        from .core.redaction.redactor import Redactor
        from .core.redaction.secret_names import secret_variables
        from .server.session import Session

        self.log: list[Logged] = []
        self._workdir = workdir
        self._env = dict(env or {})
        self._redactor = Redactor(secret_variables(os.environ))
        self._session = Session(extension, self._redactor, dict(config or {}), clock=clock)
        self._call: Call | None = None
        self._call_host: SendHostCall | None = None
        if answer is not None:
            self._call_host = lambda method, params, _: HostOutput([answer(method, params)])

    def call(
        self,
        operation: str,
        args: Mapping[str, object] | None = None,
        *,
        phase: str = "",
        timeout: str = "",
        agent_output: str | None = None,
        agent_prompt: str = "",
    ) -> Result:
        """Call an operation to its end, and return its result as a host gets it, without secrets.

        `Result.secret_outputs` and `Result.whole` are complete, for tests of these.

        Args:
            operation: its name.
            args: its arguments, as users write them: values of JSON; also `as` and `scope`.
            phase: setup, verify or cleanup. Default: none, as mcpchecker sends it; the time limit is then 28 s.
            timeout: the host's time limit, such as "30s".
            agent_output: output of the agent, for operations of the verify phase.
            agent_prompt: prompt of the agent.

        Raises:
            RpcError: the operation is unknown, or the JSON Schema of its arguments refuses them.
            Exception: the unexpected exception that the operation raised. A host gets the error -32603.
        """
        from .core.gevals_spec import INTERNAL_ERROR
        from .core.wire.errors import RpcError
        from .core.wire.json_codec import dumps, loads
        from .result import Result

        context: dict[str, object] = {"workdir": str(self._workdir), "phase": phase, "env": self._env}
        if timeout:
            context["timeout"] = timeout
        if agent_output is not None:
            context["agent"] = {"prompt": agent_prompt, "output": agent_output}
        params = loads(dumps({"operation": operation, "args": dict(args or {}), "context": context}))
        self._call = self._session.prepare(params, self._receive_log, call_host=self._call_host)
        try:
            result = self._session.perform(self._call)
        except RpcError as error:
            if error.code == INTERNAL_ERROR and error.__cause__ is not None:
                raise error.__cause__ from None
            raise
        redact = self._redactor.redact_text
        return Result(
            success=result.success,
            message=redact(result.message),
            error=redact(result.error),
            outputs={name: redact(value) for name, value in result.outputs.items()},
            secret_outputs=result.secret_outputs,
            whole=result.whole,
        )

    def disconnect(self) -> None:
        """Stop the running call, as if the host had exited; for an action of FakeClock.after, or another thread."""
        if self._call is not None:
            self._call.context.deadline.stopped.set()

    def close(self) -> None:
        """Close the state of the operations."""
        for close in self._session.begin_shutdown():
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive_log(self, level: str, message: str, data: Mapping[str, object]) -> None:
        self.log.append(Logged(level, self._redactor.redact_text(message), dict(data)))


def call(
    extension: Definition,
    operation: str,
    args: Mapping[str, object] | None = None,
    *,
    workdir: Path,
    config: Mapping[str, object] | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    phase: str = "",
    timeout: str = "",
    agent_output: str | None = None,
) -> Result:
    """Call one operation, and close its state; see Host and Host.call."""
    with Host(extension, workdir=workdir, config=config, env=env, clock=clock) as host:
        return host.call(operation, args, phase=phase, timeout=timeout, agent_output=agent_output)


with suppress(ImportError):  # the rest of the module needs no pytest
    import pytest

    @pytest.fixture
    def ext_clock() -> FakeClock:
        """Return a FakeClock. A test that requests it gives it to `ext_host`."""
        return FakeClock()

    @pytest.fixture
    def ext_host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
        """Yield a Host of the fixture `extension`, whose workdir is `tmp_path`.

        The fixture `extension_config`, if it is defined, is the configuration.
        """
        try:
            extension: Definition = request.getfixturevalue("extension")
        except pytest.FixtureLookupError:
            pytest.fail(
                "ext_host needs a fixture `extension` that returns your ext_sdk.Extension; add to conftest.py:\n\n"
                "@pytest.fixture\ndef extension() -> ext_sdk.Extension:\n    return my_package.extension",
                pytrace=False,
            )
        try:
            config: Mapping[str, object] = request.getfixturevalue("extension_config")
        except pytest.FixtureLookupError:
            config = {}
        clock = request.getfixturevalue("ext_clock") if "ext_clock" in request.fixturenames else SYSTEM_CLOCK
        with Host(extension, workdir=tmp_path, config=config, clock=clock) as host:
            yield host
