"""A peer with one fault: `python -m tests.conformance.faulty_peer FAULT [--listen ADDRESS]`.

It is the reference peer of a protocol, but for one clause. A fault is named after that; where a clause can be broken in
several ways, the name goes on after a slash.
"""

from __future__ import annotations

import signal
import sys
import time
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads
from tests.peers.gassist import Plugin
from tests.peers.kaiak import Kaiak
from tests.peers.pi import Pi
from tests.peers.transport import serve
from tests.peers.waza import Waza

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.peers.transport import Peer, Write

Message = dict[str, object]
# What is said in the place of one message: messages, or bytes as they are.
Change: TypeAlias = "Callable[[Message], list[Message | bytes]]"


def result(message: Message) -> Message:
    """The result of an answer; empty for anything else."""
    found = message.get("result")
    return cast("Message", found) if isinstance(found, dict) else {}


def is_result(message: Message) -> bool:
    """Is it an answer, and no error? Of Pi: is it the result of a tool?"""
    return "result" in message or message.get("type") == "tool_result"


def says(message: Message, name: str) -> bool:
    """Is it of this method or type?"""
    return name in {message.get("method"), message.get("type")}


def as_it_is(message: Message) -> list[Message | bytes]:
    """Without a fault."""
    return [message]


def nothing(_: Message) -> list[Message | bytes]:
    """The same for what is heard."""
    return []


# --- What is said otherwise ------------------------------------------------------------------------------------------


def with_result(*members: str, **instead: object) -> Change:
    """Answers whose result has these members lose the last of them, or get another value of some."""

    def change(message: Message) -> list[Message | bytes]:
        found = result(message)
        if all(name in found for name in members):
            rest = {name: value for name, value in found.items() if instead or name != members[-1]}
            return [message | {"result": rest | instead}]
        return [message]

    return change


def without(holder: str, said: str, member: str) -> Change:
    """Messages of one method or type lose a member of what they say."""

    def change(message: Message) -> list[Message | bytes]:
        if says(message, said):
            inside = {name: value for name, value in cast("Message", message[holder]).items() if name != member}
            return [message | {holder: inside}]
        return [message]

    return change


def lacking(name: str) -> Change:
    """Every message loses a member."""
    return lambda message: [{key: value for key, value in message.items() if key != name}]


def renamed(name: str) -> Change:
    """Notifications get a name that no specification has."""
    return lambda message: [message | {"method": "made/up"} if says(message, name) else message]


def recoded(code: int) -> Change:
    """Errors of this code get another one."""

    def change(message: Message) -> list[Message | bytes]:
        error = cast("Message", message.get("error", {}))
        return [message | {"error": error | {"code": -32603}} if error.get("code") == code else message]

    return change


def followed(said: Callable[[Message], bool], *more: Message | bytes) -> Change:
    """Something more comes after such messages."""
    return lambda message: [message, *(more if said(message) else ())]


def preceded(said: Callable[[Message], bool], *more: Message | bytes) -> Change:
    """Something more comes before such messages."""
    return lambda message: [*(more if said(message) else ()), message]


def silent(said: Callable[[Message], bool]) -> Change:
    """Such messages do not come."""
    return lambda message: [] if said(message) else [message]


def twice(said: Callable[[Message], bool]) -> Change:
    """Such messages come twice."""
    return lambda message: [message, message] if said(message) else [message]


def error_without_code(message: Message) -> list[Message | bytes]:
    """Errors lose their code."""
    error = message.get("error")
    return [message | {"error": {"message": error.get("message")}} if isinstance(error, dict) else message]


def refused(member: str) -> Change:
    """Results with this member are errors instead."""
    error = {"code": -32601, "message": "Method not found"}

    def change(message: Message) -> list[Message | bytes]:
        return [{"jsonrpc": "2.0", "id": message["id"], "error": error} if member in result(message) else message]

    return change


def result_and_error(message: Message) -> list[Message | bytes]:
    """Results come with an error."""
    return [message | {"error": {"code": 1, "message": "?"}} if "result" in message else message]


def told_with_id(message: Message) -> list[Message | bytes]:
    """Notifications have an id."""
    return [message | {"id": 77} if "method" in message else message]


def id_of_its_own(message: Message) -> list[Message | bytes]:
    """Errors about what could not be read have an id."""
    return [message | {"id": 90} if message.get("id", 0) is None else message]


class Late:
    """Such messages come after the one that follows them."""

    def __init__(self, said: Callable[[Message], bool]) -> None:
        self.said = said
        self.kept: list[Message | bytes] = []

    def __call__(self, message: Message) -> list[Message | bytes]:
        if self.said(message):
            self.kept.append(message)
            return []
        kept, self.kept = self.kept, []
        return [message, *kept]


class Refused:
    """Results of fixes become errors, from the nth on."""

    def __init__(self, code: int, first: int) -> None:
        self.error = {"code": code, "message": "?"}
        self.first = first
        self.count = 0

    def __call__(self, message: Message) -> list[Message | bytes]:
        if not (is_result(message) and "incident_count" in result(message)):
            return [message]
        self.count += 1
        refused: Message = {"jsonrpc": "2.0", "id": message["id"], "error": self.error}
        return [refused if self.count >= self.first else message]


class StreamedOn:
    """The last notification comes again after the result of a fix."""

    def __init__(self) -> None:
        self.last: list[Message | bytes] = []

    def __call__(self, message: Message) -> list[Message | bytes]:
        if "method" in message:
            self.last = [message]
        return [message, *(self.last if "incident_count" in result(message) else ())]


def latin_1(message: Message) -> list[Message | bytes]:
    """Another encoding."""
    payload = dumps(message).encode("latin-1", "replace")
    return [len(payload).to_bytes(4, "big") + payload]


def line_feeds(message: Message) -> list[Message | bytes]:
    """Header lines end by a line feed alone."""
    payload = dumps(message).encode()
    return [b"Content-Length: %d\n\n%b" % (len(payload), payload)]


def late_pong(message: Message) -> list[Message | bytes]:
    """A pong takes longer than a second; that is the fault, nothing waits for it."""
    if "timestamp" in result(message):
        time.sleep(1.1)
    return [message]


# --- What is heard otherwise, and other ends -------------------------------------------------------------------------


def answers_notifications(message: Message) -> list[Message | bytes]:
    """To notifications of the host, too, there is an answer."""
    error = {"code": -32601, "message": "Method not found"}
    return [{"jsonrpc": "2.0", "id": None, "error": error}] if "method" in message and "id" not in message else []


class Lingering(Waza):
    """A server that goes on after the end of its input."""

    def receive(self, data: bytes) -> None:
        if not data:
            signal.pause()
        super().receive(data)


class Undying(Plugin):
    """A plugin that goes on after `shutdown`."""

    def notified(self, method: str, params: Message) -> None:
        pass


class Deaf(Pi):
    """An extension that does not take in what the host answers."""

    def host_result(self, _: str, payload: Message) -> None:
        pass


# --- The faults ------------------------------------------------------------------------------------------------------


def of_json_rpc(protocol: str) -> dict[str, Change]:
    """The faults that are the same in three protocols."""
    return {
        f"{protocol}:version-2": lacking("jsonrpc"),
        f"{protocol}:error-object": error_without_code,
        f"{protocol}:answer-known": twice(is_result),
        f"{protocol}:answer-each": silent(is_result),
        f"{protocol}:either": result_and_error,
        f"{protocol}:message": followed(is_result, {"jsonrpc": "2.0"}),
        f"{protocol}:no-id": told_with_id,
        f"{protocol}:parse-error": recoded(-32700),
        f"{protocol}:parse-error/id": id_of_its_own,
        f"{protocol}:invalid-request": recoded(-32600),
        f"{protocol}:unknown-method": recoded(-32601),
        f"{protocol}:invalid-params": recoded(-32602),
    }


_OTHER_RUN: Message = {"jsonrpc": "2.0", "method": "eval.log", "params": {"runId": "?", "level": "info", "message": ""}}
_STREAM: Message = {"jsonrpc": "2.0", "method": "stream", "params": {"request_id": 3, "data": "?"}}
_MADE_UP: Message = {"id": "odd", "version": "1.0", "type": "made_up", "payload": {}}
_OF_HOST: Message = {"id": "odd", "version": "1.0", "type": "slash_command", "payload": {"name": "x"}}

SAID: dict[str, Change] = {
    **of_json_rpc("waza"),
    "waza:run": with_result("runId", "status"),
    "waza:list": with_result("evals"),
    "waza:list/refused": refused("evals"),
    "waza:get": with_result("config", "path"),
    "waza:validate": with_result("valid"),
    "waza:validate/all": with_result("errors", valid=True, name="?"),
    "waza:tasks": with_result("tasks"),
    "waza:task": with_result("prompt", "id"),
    "waza:status": with_result("result", "error"),
    "waza:cancel": lambda message: [
        message | {"result": result(message) | {"status": "gone"}}
        if result(message).get("status") == "cancelled"
        else message
    ],
    "waza:progress": without("params", "eval.progress", "event"),
    "waza:log": without("params", "eval.log", "level"),
    "waza:complete": without("params", "eval.complete", "summary"),
    "waza:complete/never": silent(lambda message: says(message, "eval.complete")),
    "waza:named": preceded(is_result, _OTHER_RUN),
    "waza:named/late": Late(lambda message: cast("Message", message.get("params", {})).get("event") == "run_complete"),
    "waza:methods": renamed("eval.log"),
    "waza:stdout": preceded(is_result, b"Loading...\n"),
    "waza:not-found": recoded(-32000),
    "waza:not-valid": recoded(-32001),
    **of_json_rpc("gassist"),
    "gassist:framing": preceded(is_result, b"\0\0\0\0"),
    "gassist:initialize": with_result("version", "name"),
    "gassist:ping": with_result("timestamp", timestamp=1),
    "gassist:ping/refused": refused("timestamp"),
    "gassist:execute": with_result("data", "success"),
    "gassist:input": Late(lambda message: "acknowledged" in result(message)),
    "gassist:input/not": with_result("acknowledged", acknowledged=False),
    "gassist:stream": without("params", "stream", "data"),
    "gassist:complete": without("params", "complete", "success"),
    "gassist:error": without("params", "error", "message"),
    "gassist:log": without("params", "log", "level"),
    "gassist:once": preceded(lambda message: "name" in result(message), _STREAM),
    "gassist:session": without("params", "complete", "keep_session"),
    "gassist:running": followed(lambda message: says(message, "complete"), _STREAM),
    "gassist:timeouts": late_pong,
    "gassist:methods": renamed("log"),
    "gassist:utf-8": latin_1,
    **of_json_rpc("kaiak"),
    "kaiak:framing": preceded(is_result, b"INFO kaiak: answering\n"),
    "kaiak:framing/line-feeds": line_feeds,
    "kaiak:configure": with_result("configuration_applied"),
    "kaiak:fix": with_result("session_id", "request_id"),
    "kaiak:delete": with_result("deleted_at", "session_id"),
    "kaiak:delete/refused": refused("deleted_at"),
    "kaiak:stream": without("params", "kaiak/stream/system", "message_id"),
    "kaiak:during": StreamedOn(),
    "kaiak:session": with_result("incident_count", session_id="other"),
    "kaiak:about": with_result("incident_count", request_id="other"),
    "kaiak:in-use": recoded(-32016),
    "kaiak:methods": renamed("kaiak/stream/system"),
    "kaiak:configuration": recoded(-32014),
    "kaiak:created": Refused(-32003, 1),
    "kaiak:released": Refused(-32016, 2),
    "kaiak:not-found": recoded(-32003),
    "pi:answer-known": twice(is_result),
    "pi:answer-each": silent(is_result),
    "pi:message": followed(is_result, _MADE_UP),
    "pi:message/lines": followed(is_result, b"Loading...\n"),
    "pi:envelope": lacking("version"),
    "pi:register": without("payload", "register", "name"),
    "pi:tool": without("payload", "tool_result", "is_error"),
    "pi:slash": without("payload", "slash_result", "is_error"),
    "pi:host-call": without("payload", "host_call", "capability"),
    "pi:log": without("payload", "log", "level"),
    "pi:error": without("payload", "error", "code"),
    "pi:order": twice(lambda message: says(message, "register")),
    "pi:order/never": silent(lambda message: says(message, "register")),
    "pi:types": followed(is_result, _OF_HOST),
}
HEARD: dict[str, Change] = {
    f"{protocol}:unanswered": answers_notifications for protocol in ("waza", "gassist", "kaiak")
}
MADE: dict[str, Callable[[Write], Peer]] = {
    "waza:end": Lingering,
    "gassist:shutdown": Undying,
    "pi:answer-each/deaf": Deaf,
}
FAULTS = (*SAID, *HEARD, *MADE)

PEERS: dict[str, Callable[[Write], Peer]] = {"waza": Waza, "gassist": Plugin, "kaiak": partial(Kaiak, {}), "pi": Pi}


class Faulty:
    """One session of a peer with a fault.

    Args:
        fault: its name.
        write: takes the bytes to the host.
    """

    def __init__(self, fault: str, write: Write) -> None:
        protocol = fault.partition(":")[0]
        self.framing = FRAMINGS[DIALECTS[protocol].framing]
        self.said, self.heard = self.framing.decoder(), self.framing.decoder()
        self.change = deepcopy(SAID.get(fault, as_it_is))  # some remember what was said
        self.answer = HEARD.get(fault, nothing)
        self.write = write
        self.peer = MADE.get(fault, PEERS[protocol])(self.say)
        self.ended = False

    def receive(self, data: bytes) -> None:
        """Bytes of the host."""
        self.heard.receive_data(data)
        while item := self.heard.next_event():
            try:
                message = loads(item.payload.decode()) if isinstance(item, Frame) else None
            except MessageError:
                continue
            for each in self.answer(message) if isinstance(message, dict) else ():
                self.send(each)
        self.peer.receive(data)
        self.ended = self.peer.ended

    def tick(self) -> bool:
        """As the peer does."""
        more = self.peer.tick()
        self.ended = self.peer.ended
        return more

    def say(self, data: bytes) -> None:
        """What the peer says, changed."""
        self.said.receive_data(data)
        while item := self.said.next_event():
            assert isinstance(item, Frame)
            for each in self.change(cast("Message", loads(item.payload.decode()))):
                self.send(each)

    def send(self, each: Message | bytes) -> None:
        """What is said to the host."""
        self.write(each if isinstance(each, bytes) else self.framing.encode(dumps(each).encode()))


if __name__ == "__main__":
    raise SystemExit(serve(partial(Faulty, sys.argv[1]), sys.argv[2:]))
