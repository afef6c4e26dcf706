"""What is said to an extension of spec 1 (Pi), and what the host answers to its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_sdk.core.wire.json_pointer import resolve

from .steps import Await, AwaitAnswer, Conversation, Say, Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .steps import Message


def envelope(id: str, type: str, **payload: object) -> Message:
    """A message."""
    return {"id": id, "version": "1.0", "type": type, "payload": payload}


def use(call_id: str, tool: str, input: object) -> Message:
    """A call of a tool."""
    return envelope(f"message {call_id}", "tool_call", call_id=call_id, name=tool, input=input)


def answer(asked: Message, known: Mapping[str, object]) -> Iterator[Message]:
    """What the profile has for the method that an extension calls: an output, or several, which come in pieces."""
    host, method = known.get("host"), resolve(asked, "/payload/method")
    outputs = host.get(method) if isinstance(host, dict) and isinstance(method, str) else None
    if not outputs:
        yield from refuse(asked, known)
    elif isinstance(outputs, list):
        for index, output in enumerate(outputs):
            chunk = {"index": index, "is_last": index == len(outputs) - 1}
            yield from _result(asked, output=output, is_error=False, chunk=chunk)
    else:
        yield from _result(asked, output=outputs, is_error=False)


def refuse(asked: Message, _: Mapping[str, object]) -> Iterator[Message]:
    """A host may deny what an extension calls it for."""
    error = {"code": "denied", "message": "not allowed"}
    yield from _result(asked, output={}, is_error=True, error=error)


def _result(asked: Message, **members: object) -> Iterator[Message]:
    call_id = resolve(asked, "/payload/call_id")
    if isinstance(call_id, str):
        yield envelope(f"host_result:{call_id}", "host_result", call_id=call_id, **members)


_REGISTERS = Await("register", clause="order")

PI = Conversation(
    {
        "tool": "a tool",
        "input": "its input",
        "asking": "a tool that calls the host",
        "asking-input": "its input",
        "host": "what the host answers, by method: an output, or a list of outputs, which come in pieces",
        "command": "a slash command",
        "event": "an event that it hooks",
    },
    {},
    (
        Session(
            (
                _REGISTERS,
                Say(use("call 1", "$tool", "$input")),
                Say(use("call 2", "no-such-tool", {})),
                Say(use("call 3", "$asking", "$asking-input"), waits=False),
                Say(use("call 4", "$tool", "$input")),  # calls in both directions go on beside each other
                AwaitAnswer("call 3"),
                Say(envelope("message 5", "slash_command", name="$command", args=[])),
                Say(envelope("message 6", "event_hook", event="$event", data={})),
            ),
            replies={"host_call": answer},
            lingers=True,
        ),
        Session((_REGISTERS, Say(use("call 1", "$asking", "$asking-input"))), replies={"host_call": refuse}),
        # Without all that a call has to have: it may tell of an error.
        Session((_REGISTERS, Say(envelope("message 1", "tool_call"), waits=False))),
    ),
)
