"""ext-kubernetes on a live cluster, as a real process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from tests.support.host import ExtensionHost, execute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

COMMAND = [sys.executable, "-m", "ext_kubernetes"]
# The `timeout` of what has to succeed, or to end early: what works is done in a second or two, on a busy machine in
# more. So that it may take as long, an operation gets more than the 28 s that it has where a host names no phase.
LONG = "100s"
MOST = "110s"
PATIENCE_SECONDS = 150.0  # without a line from the extension: it hangs
Result: TypeAlias = dict[str, Any]


class Kube:
    """A host of ext-kubernetes; ends with the `with` block.

    Operations are called by name, with arguments as a mapping or by name.

    Args:
        config: of the extension.
        workdir: of all calls that name no other.
        env: variables beside those of the tests.

    Attributes:
        workdir: as given.
    """

    def __init__(self, config: Mapping[str, object], workdir: Path, env: Mapping[str, str] | None = None) -> None:
        self.workdir = workdir
        self._peer = ExtensionHost(COMMAND, env)
        self._peer.process.patience = PATIENCE_SECONDS
        self._calls = 1000  # ids that the peer's own calls don't have
        self._open: set[object] = set()  # calls without an answer
        self._answers: dict[object, Any] = {}
        self._logs: list[str] = []
        answer = self._peer.initialize({"maxOperationTime": MOST, **config})
        assert "result" in answer, answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._peer.__exit__(*exc)

    # --- Several at once ---------------------------------------------------------------------------------------------

    def start(
        self, operation: str, args: Mapping[str, object] | None = None, *, at: Path | None = None, **more: object
    ) -> int:
        """Call an operation.

        Args:
            operation: its name.
            args: its arguments.
            at: another workdir.
            more: further arguments.

        Returns:
            the request's id, for `answer`.
        """
        self._calls += 1
        context = {"workdir": str(at or self.workdir), "phase": ""}  # which real hosts leave empty
        self._open.add(self._calls)
        self._peer.send(execute(self._calls, operation, {**(args or {}), **more}, **context))
        return self._calls

    def answer(self, id: int) -> Result:
        """The result of a call that was started."""
        while id not in self._answers:
            self._read()
        answer = self._answers.pop(id)
        assert "result" in answer, answer
        result: Result = answer["result"]
        return result

    def succeeded(self, *ids: int) -> None:
        """Calls that were started end, and succeed."""
        failed = [result for result in map(self.answer, ids) if not result["success"]]
        assert not failed, failed

    def heard(self, text: str) -> None:
        """Wait until a text is logged: a wait logs what it sees."""
        while not any(text in line for line in self._logs):
            assert self._open, f"{text!r} was not logged; {self._answers}"
            self._read()

    # --- One call ----------------------------------------------------------------------------------------------------

    def result(
        self, operation: str, args: Mapping[str, object] | None = None, *, at: Path | None = None, **more: object
    ) -> Result:
        """The result of a call; see `start`."""
        return self.answer(self.start(operation, args, at=at, **more))

    def ok(
        self, operation: str, args: Mapping[str, object] | None = None, *, at: Path | None = None, **more: object
    ) -> dict[str, str]:
        """The outputs of a call that succeeds, with what it says as `message`."""
        result = self.result(operation, args, at=at, **more)
        assert result["success"] is True, result
        return {**(result.get("outputs") or {}), "message": str(result.get("message", ""))}

    def failed(
        self, operation: str, args: Mapping[str, object] | None = None, *, at: Path | None = None, **more: object
    ) -> str:
        """What a call says that fails."""
        result = self.result(operation, args, at=at, **more)
        assert result["success"] is False, result
        return f"{result.get('message', '')}\n{result.get('error', '')}"

    def _read(self) -> None:
        message = self._peer.message()
        if "id" in message:
            self._answers[message["id"]] = message
            self._open.discard(message["id"])
        else:
            self._logs.append(str(message["params"]))
