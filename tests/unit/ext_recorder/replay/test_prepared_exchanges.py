"""Exchanges that are played by their bytes: in which cases they are, and those in which bytes do not tell enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_recorder.replay.player import Divergence
from tests.support.player_host import Host, cassette

if TYPE_CHECKING:
    from pathlib import Path

ASK = '{"jsonrpc":"2.0","id":%s,"method":"ask","params":{"n":%d}}'
SAY = '{"jsonrpc":"2.0","id":%s,"result":{"n":%d}}'


def ask(id: object, n: int) -> str:
    return ASK % (id, n)


def say(id: object, n: int) -> str:
    return SAY % (id, n)


def lines(*messages: str) -> str:
    """Lines of a cassette; a message of the child begins with `<`."""
    said = (f"out: '{each[1:]}'" if each.startswith("<") else f"in: '{each}'" for each in messages)
    return "\n".join(
        [*(f"- {{t: {number}.000000, {each}}}" for number, each in enumerate(said)), "- {t: 90.000000, exit: 0}"]
    )


def pairs(count: int) -> list[str]:
    return [message for n in range(1, count + 1) for message in (ask(n, n), f"<{say(n, n)}")]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The messages of the host that were not played by their bytes."""
    from ext_recorder.replay.request_matcher import RecordedRequest, RequestMatcher

    seen: list[bytes] = []
    accepts = RequestMatcher.accepts

    def looked_at(self: RequestMatcher, recorded: RecordedRequest, payload: bytes) -> bool:
        seen.append(payload)
        return accepts(self, recorded, payload)

    monkeypatch.setattr(RequestMatcher, "accepts", looked_at)
    return seen


@pytest.mark.parametrize("form", ["{{{0},{1}}}", "{{{1},{0}}}"])
def test_requests_with_other_ids_are_answered_by_their_bytes(tmp_path: Path, looks: list[bytes], form: str) -> None:
    def message(id: int, members: str) -> str:
        return form.format(f'"jsonrpc":"2.0","id":{id}', members)

    recorded = [
        each
        for n in range(1, 9)
        for each in (message(n, f'"method":"ask","params":[{n}]'), "<" + message(n, f'"result":[{n}]'))
    ]
    with Host(cassette(tmp_path / "a.yaml", lines(*recorded))) as host:
        said = host.say(*(message(40 + n, f'"method":"ask","params":[{n}]') for n in range(1, 9)))
    assert said == [message(40 + n, f'"result":[{n}]') for n in range(1, 9)]
    assert len(looks) == 1  # nothing is known to follow the last one


def test_a_line_that_comes_in_pieces_is_the_same_line(tmp_path: Path, looks: list[bytes]) -> None:
    text = "".join(f"{ask(n, n)}\n" for n in range(1, 9)).encode()
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(8)))) as host:
        said = b"".join(host.write(text[at : at + 150]) for at in range(0, len(text), 150))
    assert said.decode().splitlines() == [say(n, n) for n in range(1, 9)]
    assert 1 < len(looks) < 8


def test_what_stands_before_a_request_on_its_line_belongs_to_it(tmp_path: Path) -> None:
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(3)))) as host:
        assert host.write(b"junk") == b""
        assert host.write(f"{ask(1, 1)}\n".encode()) == b""
        assert "had no match" not in host.err
        assert "junk" in host.err


def test_calls_of_one_id_are_answered_in_their_order(tmp_path: Path) -> None:
    recorded = lines(ask(1, 1), ask(1, 2), f"<{say(1, 1)}", ask(3, 3), f"<{say(1, 2)}", f"<{say(3, 3)}", ask(4, 4))
    with Host(cassette(tmp_path / "a.yaml", recorded)) as host:
        assert host.say(ask(7, 1), ask(8, 2), ask(9, 3)) == [say(7, 1), say(8, 2), say(9, 3)]


def test_a_call_that_was_answered_can_still_be_cancelled(tmp_path: Path) -> None:
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}'
    recorded = lines(*pairs(4), cancel % 2, ask(5, 5), f"<{say(5, 5)}")
    with Host(cassette(tmp_path / "a.yaml", recorded, protocol="mcp")) as host:
        assert host.say(*(ask(10 + n, n) for n in range(1, 5))) == [say(10 + n, n) for n in range(1, 5)]
        assert host.say(cancel % 12, ask(15, 5)) == [say(15, 5)]
        assert not host.err


def test_an_id_that_notifications_repeat_is_the_live_one_in_them(tmp_path: Path) -> None:
    listen = '{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{}}'
    changed = (
        '{"jsonrpc":"2.0","method":"notifications/tools/list_changed",'
        '"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}}'
    )
    recorded = lines(
        listen % 1, f"<{say(1, 1)}", ask(2, 2), f"<{say(2, 2)}", ask(3, 3), f"<{changed % 1}", f"<{say(3, 3)}"
    )
    with Host(cassette(tmp_path / "a.yaml", recorded, protocol="mcp")) as host:
        assert host.say(listen % 7, ask(8, 2), ask(9, 3)) == [say(7, 1), say(8, 2), changed % 7, say(9, 3)]


def test_a_token_that_notifications_repeat_is_that_of_the_latest_call(tmp_path: Path) -> None:
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":%d}}}'
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1}}'
    first = [call % (1, 1), f"<{progress % 1}", f"<{say(1, 1)}"]
    later = [call % (2, 1), f"<{say(2, 2)}", ask(3, 3), f"<{progress % 1}", f"<{say(3, 3)}"]
    with Host(cassette(tmp_path / "a.yaml", lines(*first, *later), protocol="mcp")) as host:
        assert host.say(call % (5, 6)) == [progress % 6, say(5, 1)]
        assert host.say(call % (8, 1), ask(9, 3)) == [say(8, 2), progress % 1, say(9, 3)]


def test_after_a_miss_only_the_next_message_may_skip(tmp_path: Path) -> None:
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(6)))) as host:
        host.say(ask(10, 99))
        assert host.say(ask(11, 1), ask(12, 2)) == [say(11, 1), say(12, 2)]
        (refused,) = host.say(ask(13, 5))
        assert "out of turn" in refused
        assert host.say(ask(14, 3)) == [say(14, 3)]


def test_what_follows_a_message_that_diverges_is_not_lost(tmp_path: Path) -> None:
    with Host(cassette(tmp_path / "a.yaml", lines(*pairs(4)))) as host:
        host._player.diverges = True
        with pytest.raises(Divergence):
            host.say(ask(1, 1), ask(2, 2), ask(9, 99), ask(10, 3), ask(11, 4))
        assert host._player.unconsumed_input().decode().splitlines() == [ask(9, 99), ask(10, 3), ask(11, 4)]


def test_many_large_responses_are_not_held_at_once(tmp_path: Path, looks: list[bytes]) -> None:
    large = '{"jsonrpc":"2.0","id":%d,"result":"' + "." * 300_000 + '"}'
    recorded = [message for n in range(1, 13) for message in (ask(n, n), f"<{large % n}")]
    with Host(cassette(tmp_path / "a.yaml", lines(*recorded))) as host:
        host._player.receive_data("".join(f"{ask(n, n)}\n" for n in range(1, 13)).encode())
        assert host._player.more
        assert host._stage.size < 3_000_000
        text = host._take()
    assert text.decode().splitlines() == [large % n for n in range(1, 13)]
