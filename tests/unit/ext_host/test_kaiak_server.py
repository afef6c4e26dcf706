"""Parts of the server of Kaiak's agent API; tests/behaviour/host has its conversations."""

from __future__ import annotations

import pytest

from ext_host.kaiak_server import Interaction
from ext_sdk.core.wire.errors import RpcError


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
