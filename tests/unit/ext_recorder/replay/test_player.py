"""What both players have in common: reports, the exit code, input that is not played yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.actions import ActionBuffer
from ext_recorder.replay.player import EXIT_DIFFERS, Divergence
from ext_recorder.replay.replay import ORDERS, Options, make_player
from tests.support.player_host import END, Host, cassette, message_of

if TYPE_CHECKING:
    from pathlib import Path

CALL, OTHER = '{"jsonrpc":"2.0","id":1,"method":"execute"}', '{"jsonrpc":"2.0","id":2,"method":"other"}'
RESPONSE = '{"jsonrpc":"2.0","id":1,"result":{}}'
EVENTS = f"- {{t: 0.1, in: '{CALL}'}}\n- {{t: 0.2, out: '{RESPONSE}'}}\n{END}"
orders = pytest.mark.parametrize("order", ORDERS)


@orders
def test_a_session_that_repeats_the_recorded_one_exits_as_recorded(tmp_path: Path, order: str) -> None:
    with Host(cassette(tmp_path / "x.yaml", EVENTS), Options(order=order)) as host:
        assert host.say(CALL) == [RESPONSE]
        host.close()
        assert (host.status, host.err) == (0, "")


@orders
def test_a_miss_gets_an_error_response_and_its_own_exit_code(tmp_path: Path, order: str) -> None:
    with Host(cassette(tmp_path / "x.yaml", EVENTS), Options(order=order)) as host:
        (line,) = host.say(OTHER)
        assert "never recorded" in message_of(line)
        assert host.say(CALL) == [RESPONSE]
        host.close()
        assert host.status == EXIT_DIFFERS
        assert "one message of the host had no match" in host.err


@orders
def test_messages_that_were_never_played_are_listed(tmp_path: Path, order: str) -> None:
    path = cassette(tmp_path / "x.yaml", EVENTS)
    with Host(path, Options(order=order)) as host:
        host.close()
        assert host.status == EXIT_DIFFERS
        assert "one recorded message of the host was never played:" in host.err
        assert ": request execute (id 1)" in host.err


@orders
def test_a_divergence_leaves_the_input_that_is_not_played(tmp_path: Path, order: str) -> None:
    with Reader(cassette(tmp_path / "x.yaml", EVENTS)) as reader:
        player = make_player(reader, ActionBuffer(), Options(order=order), {})
        player.diverges = True
        player.start()
        with pytest.raises(Divergence, match="never recorded"):
            player.receive_data(f"{OTHER}\n{CALL}\n{OTHER[:9]}".encode())
        assert player.unconsumed_input() == f"{OTHER}\n{CALL}\n{OTHER[:9]}".encode()
        assert player.left_out("left out").splitlines()[0] == "one recorded message of the host was left out:"
