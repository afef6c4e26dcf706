"""The recorded sessions of ext-kubernetes, once more on a real cluster: each step comes out as in its cassette."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from cassettes.kubernetes_sessions import SESSIONS
from cassettes.session import in_workdir
from docs.examples.host import Host
from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from ext_sdk.core.wire.errors import RpcError
from tests.live.kubernetes import COMMAND

if TYPE_CHECKING:
    from tests.live.cluster import Cluster

CASSETTES = Path(__file__).parents[2] / "cassettes"
pytestmark = pytest.mark.usefixtures("streams")


def recorded(name: str) -> list[object]:
    """Whether each step succeeded, or the code of its error."""
    with Reader(CASSETTES / f"{name}.yaml") as reader:
        said = [event.payload for event in reader if isinstance(event, Data) and event.kind == "out"]
    return [
        verdict(message.get("result", message.get("error"))) for message in map(json.loads, said) if "id" in message
    ]


def verdict(answer: object) -> object:
    if isinstance(answer, RpcError):
        return answer.code
    members = cast("dict[str, object]", answer)
    return members.get("code", members.get("success"))


@pytest.mark.parametrize("name", [name for name, session in SESSIONS.items() if session.cluster])
def test_a_session_comes_out_as_it_was_recorded(name: str, cluster: Cluster, kubeconfig: Path, tmp_path: Path) -> None:
    if cluster.kubelets:
        pytest.skip("its pods have images that a real kubelet would have to pull")
    session = SESSIONS[name]
    for path, text in session.files.items():
        (tmp_path / path).write_text(text)
    with Host(COMMAND, os.environ | {"KUBECONFIG": str(kubeconfig)}) as host:
        answers = [host.try_call(method, in_workdir(params, str(tmp_path))) for method, params in session.steps]
    assert [verdict(answer) for answer in answers] == recorded(name), answers
