"""The buffer between a player and its output."""

from __future__ import annotations

from ext_recorder.replay.actions import ActionBuffer, Exit, Write


def as_tuples(actions: ActionBuffer) -> list[tuple[object, ...]]:
    taken: list[tuple[object, ...]] = []
    for action in actions.take():
        if isinstance(action, Write):
            taken.append((action.stream, action.data, action.after, action.apart))
        else:
            taken.append((getattr(action, "stream", None) or getattr(action, "status", None), action.after))
    return taken


def test_output_without_a_time_is_one_piece() -> None:
    actions = ActionBuffer()
    assert actions.take_out() == b""
    actions.out(b"a\n", answers=True)
    actions.out(b"b\n")
    assert (actions.size, actions.take_out(), actions.size) == (4, b"a\nb\n", 0)
    assert actions.plain


def test_output_before_and_after_an_error_line_is_kept_in_order() -> None:
    actions = ActionBuffer()
    actions.out(b"a\n")
    actions.err(b"warning\n")
    actions.out(b"b\n")
    actions.close("out")
    assert actions.take_out() is None
    assert as_tuples(actions) == [
        ("out", b"a\n", 0.0, False),
        ("err", b"warning\n", 0.0, False),
        ("out", b"b\n", 0.0, False),
        ("out", 0.0),
    ]


def test_each_event_of_a_paced_replay_has_its_own_time() -> None:
    actions = ActionBuffer(paced=True)
    for after in (0.5, 1.5):
        actions.after = after
        actions.out(b"x")
    assert as_tuples(actions) == [("out", b"x", 0.5, False), ("out", b"x", 1.5, False)]
    assert not actions.plain


def test_responses_and_other_messages_are_apart() -> None:
    actions = ActionBuffer(apart=True)
    actions.out(b"1", answers=True)
    actions.out(b"2", answers=True)
    actions.out(b"news")
    actions.out(b"3", answers=True)
    assert as_tuples(actions) == [
        ("out", b"12", 0.0, False),
        ("out", b"news", 0.0, True),
        ("out", b"3", 0.0, True),
    ]


def test_there_is_one_exit() -> None:
    actions = ActionBuffer()
    actions.exit(3)
    actions.exit(0)
    assert actions.over
    (last,) = actions.take()
    assert isinstance(last, Exit)
    assert last.status == 3
