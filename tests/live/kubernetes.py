"""ext-kubernetes on the live cluster, as a real process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from tests.ext_sdk.peer import Peer

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "ext_kubernetes"]


class Kube:
    """A host of ext-kubernetes with one workdir; ends with the `with` block.

    Args:
        kubeconfig: whom to talk to, as whom.
        context: of the kubeconfig; "" for its current one.
        namespace: where operations are at home.
        workdir: of all calls.
    """

    def __init__(self, kubeconfig: Path, context: str, namespace: str, workdir: Path) -> None:
        self.workdir = workdir
        self._peer = Peer(COMMAND, {"KUBECONFIG": str(kubeconfig)})
        answer = self._peer.initialize({"context": context, "namespace": namespace})
        assert "result" in answer, answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._peer.__exit__(*exc)

    def result(self, operation: str, args: object = None) -> dict[str, object]:
        """The result of a call."""
        return self._peer.result(operation, args, workdir=str(self.workdir), phase="")

    def ok(self, operation: str, args: object = None) -> dict[str, str]:
        """The outputs of a call that succeeds, with its message as `message`."""
        result = self.result(operation, args)
        assert result["success"] is True, result
        outputs = result.get("outputs") or {}
        assert isinstance(outputs, dict)
        return {**outputs, "message": str(result.get("message", ""))}

    def failed(self, operation: str, args: object = None) -> str:
        """What a call says that fails."""
        result = self.result(operation, args)
        assert result["success"] is False, result
        return f"{result.get('message', '')}\n{result.get('error', '')}"
