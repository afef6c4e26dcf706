"""Reports about misses: messages of the host without a recorded response, with the closest recorded message.

    never recorded       no message of this kind and method is in the cassette
    used up              the message is recorded, and was played as often as it is recorded
    arguments differ     the method is recorded with other arguments
    out of turn          the message is recorded, but another one is next (order `strict` only)
    cut off              the request is recorded without a response, since the recording was interrupted
    response differs     a response to a request of the child is not the recorded one
    not sent             an open call waits for a message that the host can no longer send

The cassette is read again from its beginning for each miss, so that a replay without misses needs no memory.
"""

from __future__ import annotations

from ext_recorder.cassette.yaml_scalars import visible
from ext_recorder.errors import RECORD_AGAIN
from ext_recorder.messages.comparison_rules import preset_of
from ext_recorder.protocols.fast_id import scan_id
from ext_sdk.core.text import cut
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.json_pointer import MISSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal, TypeAlias

    from ext_recorder.messages.matcher import Difference
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import ClassifiedMessage

    from .request_matcher import RecordedRequest, RequestMatcher

    Reason = Literal[
        "never-recorded", "used-up", "arguments-differ", "out-of-turn", "cut-off", "response-differs", "not-sent", ""
    ]
    # A recorded message that differs: its distance, its line, the differences.
    _Candidate: TypeAlias = tuple[tuple[int, int, bool], int, list[Difference]]
    # All messages of the host in the cassette: whether it has been played, whether it is compared by value.
    History = Callable[[], Iterator[tuple[RecordedRequest, bool, bool]]]

SHOWN_DIFFERENCES = 5
SHOWN_METHODS = 20
SHOWN_CHARS = 80  # of a value in an error message
_WHOLE = {"", "/"}  # pointers of a difference in text that is not JSON: it has no parts that may differ
_COUNTED_DIFFERENCES = 50  # per message; further ones do not affect the search for the closest message


class Mismatch:
    """Report about one message without a recorded response.

    Attributes:
        reason: see the module; "" if it was not determined.
        text: one line for users.
        data: the same for programs, as JSON values.
    """

    __slots__ = ("data", "reason", "text")

    def __init__(self, reason: Reason, text: str, data: dict[str, object]) -> None:
        self.reason = reason
        self.text = text
        self.data = data


def explain_mismatch(
    request_matcher: RequestMatcher, live: ClassifiedMessage, history: History, *, where: str, turn: str = ""
) -> Mismatch:
    """Return why a live message has no response.

    Args:
        live: the message, without secrets and paths of this machine.
        history: the messages of the cassette.
        turn: description of the next recorded message, in order `strict`.
    """
    equal, closest, methods = _search(request_matcher, live, history)
    subject = describe(live)
    left = [line for line, was_played in equal if not was_played]
    if left:
        text = f"{subject}: out of turn: it is at {where}:{left[0]}, but next is {turn} (--order any plays either)"
        return Mismatch("out-of-turn", text, {"reason": "out-of-turn", "line": left[0]})
    if equal:
        line = equal[-1][0]
        times = "once" if len(equal) == 1 else f"{len(equal)} times"
        text = f"{subject}: used up: it is recorded {times} ({where}:{line}) and has been played as often"
        if method := _cut(live.method):
            text += f" (--repeat {quoted(method)} plays it again)"
        return Mismatch("used-up", text, {"reason": "used-up", "recorded": len(equal), "line": line})
    if closest is not None:
        (_, _, was_played), line, differences = closest
        shown, pointers, advice = _shown(differences, request_matcher.bindings)
        status = " (already played)" if was_played else ""
        text = f"{subject}: arguments differ from the closest one, {where}:{line}{status}: {shown}; {advice}"
        return Mismatch("arguments-differ", text, {"reason": "arguments-differ", "line": line, **pointers})
    known = [_cut(method) for method in methods[:SHOWN_METHODS]]
    if live.kind in {"request", "notification"}:
        text = f"{subject}: never recorded: {where} has no such {live.kind}; it has: {', '.join(known) or 'none'}"
    else:
        text = f"{subject}: never recorded: {where} has nothing like it"
    return Mismatch("never-recorded", text, {"reason": "never-recorded", "methods": known})


def cut_off(request: ClassifiedMessage, recorded: RecordedRequest, where: str, *, omitted: bool = False) -> Mismatch:
    """Return the miss of a request that matched, and whose response is not in the cassette `where`.

    Args:
        request: with its live id.
        omitted: a message over the limit was left out, which may be the response.
    """
    why = (
        "its answer was left out, it is over the limit"
        if omitted
        else "the recording was interrupted before its answer"
    )
    advice = "have it answer less" if omitted else f"record it again ({RECORD_AGAIN})"
    text = f"{describe(request)}: cut off: {why} ({where}:{recorded.line}); {advice}"
    return Mismatch("cut-off", text, {"reason": "cut-off", "line": recorded.line})


def response_differs(
    request_matcher: RequestMatcher, live: ClassifiedMessage, recorded: RecordedRequest, requests: str, where: str
) -> Mismatch:
    """Return the miss of a host message that replaces another one, for which open calls wait.

    Args:
        live: the message, without secrets and paths of this machine.
        requests: description of the child's request that both respond to; "" for a message that is not a response.
    """
    expected = recorded.message(request_matcher.dialect)
    differences = request_matcher.matcher.differences(expected, live, most=_COUNTED_DIFFERENCES)
    subject = f"the response to the child's {requests}" if requests else describe(live)
    shown, pointers, advice = _shown(differences, request_matcher.bindings)
    text = f"{subject}: differs from the recorded one, {where}:{recorded.line}: {shown}; {advice}"
    data: dict[str, object] = {"reason": "response-differs", "line": recorded.line, **pointers}
    if requests:
        data["request"] = requests
    return Mismatch("response-differs", text, data)


def not_sent(recorded: RecordedRequest, what: str, where: str, why: str) -> Mismatch:
    """Return the miss of a message of the host that open calls wait for, and that can no longer come.

    Args:
        what: description of the message, or of the child's request that it responds to.
        why: the reason why it can no longer come.
    """
    text = f"{what}: not sent: {why}; the recorded one is {where}:{recorded.line}"
    return Mismatch("not-sent", text, {"reason": "not-sent", "line": recorded.line})


def unexplained(live: ClassifiedMessage) -> Mismatch:
    """Return the miss of a message after many other misses."""
    return Mismatch("", f"{describe(live)}: no match; too many misses to look closer", {})


def _search(
    request_matcher: RequestMatcher, live: ClassifiedMessage, history: History
) -> tuple[list[tuple[int, bool]], _Candidate | None, list[str]]:
    """Compare a live message with the recorded ones; with those that are not near only by their text.

    Returns:
        The lines of the messages that match, each with whether it was played; the least different one of the near
        messages of the same method; and the methods of the near messages.
    """
    text = _without_id(live.text.encode("utf-8", "surrogateescape"))
    equal: list[tuple[int, bool]] = []
    closest: _Candidate | None = None
    methods: dict[str, None] = {}
    for recorded, played, near in history():
        if not near and _without_id(recorded.payload) != text:
            continue
        message = request_matcher.dialect.classify(recorded.payload)
        if message.kind != live.kind:
            continue
        methods[message.method] = None
        if message.method != live.method:
            continue
        differences = request_matcher.matcher.differences(message, live, most=_COUNTED_DIFFERENCES)
        if not differences:
            equal.append((recorded.line, played))
            continue
        # Differences near the root count most; messages that were not played come first.
        near_root = sum(difference.pointer.count("/") <= 2 for difference in differences)
        distance = (near_root, len(differences), played)
        if closest is None or distance < closest[0]:
            closest = distance, recorded.line, differences
    return equal, closest, list(methods)


def _without_id(payload: bytes) -> tuple[bytes, bytes]:
    seen = scan_id(payload)
    return (payload, b"") if seen is None else (payload[: seen[1]], payload[seen[2] :])


def describe(message: ClassifiedMessage) -> str:
    """Return a short description of a message."""
    if message.kind == "other":
        return f"the line {_cut(message.text)}"
    if message.kind == "response":
        return f"the answer to the child's request {message.text[slice(*message.span)] or 'null'}"
    id = f" (id {_cut(message.id)})" if message.kind == "request" and message.id else ""
    return f"{message.kind} {_cut(message.method)}{id}"


def _shown(differences: list[Difference], bindings: ReplayBindings) -> tuple[str, dict[str, object], str]:
    """Return the differences as text and for programs, and a remedy."""
    first = differences[:SHOWN_DIFFERENCES]
    shown = "; ".join(
        ("" if difference.pointer in _WHOLE else f"{_cut(difference.pointer)}: ")
        + f"recorded {_value(difference.recorded)}, now {_value(difference.live)}"
        for difference in first
    )
    if len(differences) > SHOWN_DIFFERENCES:
        shown += f"; and {len(differences) - SHOWN_DIFFERENCES} more"
    place = _cut(differences[0].pointer) if len(differences) == 1 else "POINTER"
    advice = f"record it again ({RECORD_AGAIN})"
    if all(_is_path(difference.recorded) and _is_path(difference.live) for difference in differences):
        there, here = (quoted(_cut(str(value))) for value in (differences[0].recorded, differences[0].live))
        advice += f" with --bind NAME={there}, and replay with --bind NAME={here}, if the path depends on the machine"
    recorded = "".join(_value(difference.recorded) for difference in differences).encode()
    missing = [name for name in dict.fromkeys(bindings.unbound(recorded)) if name in bindings.spellings]
    if missing:
        return shown, _data(differences), f"replay with {' '.join(f'--bind {name}=PATH' for name in missing)}"
    preset = preset_of((difference.recorded, difference.live) for difference in differences)
    if preset:
        advice += f", or set aside what may differ (--mask {preset})"
    elif differences[0].pointer not in _WHOLE:
        advice += f", or set aside what may differ (--ignore {quoted(place)})"
    return shown, _data(differences), advice


def _data(differences: list[Difference]) -> dict[str, object]:
    first = differences[:SHOWN_DIFFERENCES]
    return {
        "pointers": [_cut(item.pointer) for item in first],
        "differences": [
            {"pointer": _cut(item.pointer), "expected": _value(item.recorded), "found": _value(item.live)}
            for item in first
        ],
    }


def quoted(text: str) -> str:
    """Return a text as a word for a shell."""
    from shlex import quote  # imported at a miss only: its import takes longer than a short replay

    return quote(text)


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/") and "\n" not in value


def _value(value: object) -> str:
    return "nothing" if value is MISSING else _cut(dumps(value))


def _cut(text: str) -> str:
    return cut(visible(text[: SHOWN_CHARS + 1]), SHOWN_CHARS)
