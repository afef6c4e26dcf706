"""Parts of the server of Kaiak's agent API; tests/behaviour/host has its conversations."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from ext_host import kaiak_server
from ext_host.kaiak_server import AgentOptions, Client, Interaction, Server
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Request, encode
from tests.support.host import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"action": "allow_once"}, ("approve", None)),
        ({"action": "deny", "content": "x"}, ("deny", None)),
        ({"action": "edit", "content": "x"}, ("edit", "x")),
    ],
)
def test_a_response_has_an_action_of_either_dialect(payload: dict[str, object], expected: object) -> None:
    interaction = Interaction("s", editable=True)
    assert interaction.accept(payload) in interaction.options
    assert interaction.response == expected


def test_an_unknown_response_is_refused_with_what_is_possible() -> None:
    expected = "payload.action: expected one of allow_once, always_allow, approve, deny, found 'edit'"
    with pytest.raises(RpcError, match=expected):
        Interaction("s", editable=False).accept({"action": "edit", "content": "x"})


def test_a_response_is_given_once() -> None:
    interaction = Interaction("s", editable=True)
    interaction.accept({"action": "deny"})
    assert not interaction.done.is_set()  # the client gets its response first
    with pytest.raises(RpcError, match="already responded"):
        interaction.accept({"action": "approve"})
    assert not interaction.use_default("approve")
    assert interaction.response == ("deny", None)
    assert Interaction("s", editable=True).use_default("approve")


def test_a_client_that_does_not_read_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kaiak_server, "STALL_S", 0.1)
    monkeypatch.setattr(kaiak_server, "TICK_MS", 10)
    (tmp_path / "workspace").mkdir()
    program = "echo started; sleep 600 & i=0; while [ $i -lt 99999 ]; do echo $i; i=$((i + 1)); done; wait"
    server = Server(AgentOptions(("sh", "-c", program)), tmp_path)
    (source, write), (read, sink) = os.pipe(), os.pipe()
    configuration = {"workspace": {"working_dir": str(tmp_path / "workspace")}}
    commands = (("configure", {"configuration": configuration}), ("generate_fix", {"incidents": [{"id": "1"}]}))
    for id, (name, argument) in enumerate(commands):
        params = {"command": f"kaiak/{name}", "arguments": [argument]}
        request = Request(id, "workspace/executeCommand", params)
        os.write(write, FRAMINGS["content-length"].encode(encode(request)))
    reader = threading.Thread(target=Client(server, source, sink).run, daemon=True)
    reader.start()
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    server.stop()
    for descriptor in (source, write, read, sink, server.stopping):
        os.close(descriptor)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("run")] == []
