"""Conversation with an extension of spec 1 (Pi), and the responses of the host to its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_sdk.core.wire.json_pointer import resolve

from .steps import Await, AwaitAnswer, Conversation, Say, Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .steps import Message


def envelope(id: str, type: str, **payload: object) -> Message:
    """Return a message."""
    return {"id": id, "version": "1.0", "type": type, "payload": payload}


def use(call_id: str, tool: str, input: object) -> Message:
    """Return a call of a tool."""
    return envelope(f"message {call_id}", "tool_call", call_id=call_id, name=tool, input=input)


def answer(asked: Message, known: Mapping[str, object]) -> Iterator[Message]:
    """Yield the response of the profile to a call of the host: one output, or a list of outputs in chunks."""
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
    """Yield a response that denies the call."""
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
        "host": "responses of the host by method: an output, or a list of outputs, which are sent in chunks",
        "command": "a slash command",
        "event": "an event that it subscribes to",
    },
    {},
    (
        Session(
            (
                _REGISTERS,
                Say(use("call 1", "$tool", "$input")),
                Say(use("call 2", "no-such-tool", {})),
                Say(use("call 3", "$asking", "$asking-input"), waits=False),
                Say(use("call 4", "$tool", "$input")),  # calls in both directions overlap
                AwaitAnswer("call 3"),
                Say(envelope("message 5", "slash_command", name="$command", args=[])),
                Say(envelope("message 6", "event_hook", event="$event", data={})),
            ),
            replies={"host_call": answer},
            lingers=True,
        ),
        Session((_REGISTERS, Say(use("call 1", "$asking", "$asking-input"))), replies={"host_call": refuse}),
        # A call without required members: the extension may respond with an error.
        Session((_REGISTERS, Say(envelope("message 1", "tool_call"), waits=False))),
    ),
)
