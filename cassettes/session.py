"""Sessions to record: the requests of a host, in order, and the files and variables they need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Step = tuple[str, dict[str, object]]  # method and params

INITIALIZE: Step = ("initialize", {"protocolVersion": "0.0.1"})
SHUTDOWN: Step = ("shutdown", {})


@dataclass(frozen=True, slots=True)
class Session:
    """A session to be recorded.

    Attributes:
        steps: the requests; a text that is only `{workdir}` becomes the live workdir. A single request is a one-shot
            call.
        files: files of the workdir before the session, text by path.
        cluster: ~/.kube/config is that of a control plane started for the session.
        kubeconfig: text of ~/.kube/config if no cluster is needed; "" for none.
        http: the HTTP traffic of the extension is recorded too, so that it runs again without a server.
        port: of this machine, where a server of tests/support/http_site.py is started for it; 0: no server.
    """

    steps: list[Step]
    files: Mapping[str, str] = field(default_factory=dict)
    cluster: bool = False
    kubeconfig: str = ""
    http: bool = False
    port: int = 0


def execute(operation: str, args: object, *, phase: str = "setup", **context: object) -> Step:
    """Return a request to run an operation in the workdir of the session."""
    return "execute", {
        "operation": operation,
        "args": args,
        "context": {"workdir": "{workdir}", "phase": phase} | context,
    }


def in_workdir(value: object, workdir: str) -> object:
    """Replace {workdir} in a value by the live workdir."""
    if isinstance(value, dict):
        return {name: in_workdir(item, workdir) for name, item in value.items()}
    return workdir if value == "{workdir}" else value
