"""A peer with one fault: `python -m tests.conformance.altering CLAUSE FRAMING COMMAND…` breaks that clause."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, cast

from ext_sdk.wire import FRAMINGS, Frame, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, object]


def result(message: Message) -> Message:
    """The result of an answer; empty for anything else."""
    found = message.get("result")
    return cast("Message", found) if isinstance(found, dict) else {}


def spoil_result(*members: str) -> Callable[[Message], list[Message]]:
    """Answers whose result has these members lose the last of them."""

    def change(message: Message) -> list[Message]:
        if all(name in result(message) for name in members):
            del result(message)[members[-1]]
        return [message]

    return change


def spoil(holder: str, said: str, member: str) -> Callable[[Message], list[Message]]:
    """Messages of one method or type lose a member of what they say."""

    def change(message: Message) -> list[Message]:
        if said in {message.get("method"), message.get("type")}:
            cast("Message", message[holder]).pop(member, None)
        return [message]

    return change


def without(name: str) -> Callable[[Message], list[Message]]:
    """Every message loses a member."""
    return lambda message: [{key: value for key, value in message.items() if key != name}]


def twice(message: Message) -> list[Message]:
    """Answers come twice."""
    return [message] * (2 if "id" in message and "method" not in message and "type" not in message else 1)


def renamed(name: str) -> Callable[[Message], list[Message]]:
    """Notifications get a name that no specification has."""
    return lambda message: [message | {"method": "made/up"} if message.get("method") == name else message]


def error_without_code(message: Message) -> list[Message]:
    """Errors lose their code."""
    if isinstance(error := message.get("error"), dict):
        error.pop("code", None)
    return [message]


def silent(message: Message) -> list[Message]:
    """Answers do not come."""
    return [] if "id" in message and "method" not in message and "result" in message else [message]


def other_session(message: Message) -> list[Message]:
    """What is streamed about a run comes before anything named it."""
    return [{"jsonrpc": "2.0", "method": "eval.log", "params": {"runId": "?", "level": "info", "message": ""}}, message]


def gone(message: Message) -> list[Message]:
    """What was cancelled is said to be gone."""
    if result(message).get("status") == "cancelled":
        result(message)["status"] = "gone"
    return [message]


def late_ping(message: Message) -> list[Message]:
    """Pongs tell another time."""
    if "timestamp" in result(message):
        result(message)["timestamp"] = 1
    return [message]


def twice_registered(message: Message) -> list[Message]:
    """It registers twice."""
    return [message] * (2 if message.get("type") == "register" else 1)


ALTERATIONS: dict[str, Callable[[Message], list[Message]]] = {
    "waza:version-2": without("jsonrpc"),
    "waza:error-object": error_without_code,
    "waza:answer-known": twice,
    "waza:answer-each": silent,
    "waza:run": spoil_result("runId", "status"),
    "waza:list": spoil_result("evals"),
    "waza:get": spoil_result("config", "path"),
    "waza:validate": spoil_result("valid"),
    "waza:tasks": spoil_result("tasks"),
    "waza:task": spoil_result("prompt", "id"),
    "waza:status": spoil_result("result", "error"),
    "waza:cancel": lambda message: [
        message | {"result": result(message) | {"status": "gone"}}
        if result(message).get("status") == "cancelled"
        else message
    ],
    "waza:progress": spoil("params", "eval.progress", "event"),
    "waza:log": spoil("params", "eval.log", "level"),
    "waza:complete": spoil("params", "eval.complete", "summary"),
    "waza:named": other_session,
    "waza:methods": renamed("eval.log"),
    "gassist:version-2": without("jsonrpc"),
    "gassist:answer-known": twice,
    "gassist:initialize": spoil_result("version", "name"),
    "gassist:ping": late_ping,
    "gassist:stream": spoil("params", "stream", "data"),
    "gassist:complete": spoil("params", "complete", "success"),
    "gassist:log": spoil("params", "log", "level"),
    "gassist:methods": renamed("log"),
    "kaiak:version-2": without("jsonrpc"),
    "kaiak:error-object": error_without_code,
    "kaiak:answer-known": twice,
    "kaiak:configure": spoil_result("configuration_applied"),
    "kaiak:fix": spoil_result("request_id", "session_id"),
    "kaiak:delete": spoil_result("session_id"),
    "kaiak:stream": spoil("params", "kaiak/stream/system", "message_id"),
    "kaiak:methods": renamed("kaiak/stream/system"),
    "pi:envelope": without("version"),
    "pi:register": spoil("payload", "register", "name"),
    "pi:tool": spoil("payload", "tool_result", "is_error"),
    "pi:slash": spoil("payload", "slash_result", "is_error"),
    "pi:log": spoil("payload", "log", "level"),
    "pi:order": twice_registered,
    "pi:types": lambda message: [message, message | {"type": "slash_command", "payload": {"name": "x"}, "id": "odd"}],
}


def main(arguments: list[str]) -> int:
    """See the module."""
    clause, framing, *command = arguments
    change, framed = ALTERATIONS[clause], FRAMINGS[framing]
    decoder = framed.decoder()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        threading.Thread(target=pass_on, args=(child.stdin.fileno(), child.stdin.close), daemon=True).start()
        while data := os.read(child.stdout.fileno(), 65_536):
            decoder.receive_data(data)
            while item := decoder.next_event():
                assert isinstance(item, Frame)
                for message in change(cast("Message", loads(item.payload.decode()))):
                    os.write(1, framed.encode(dumps(message).encode()))
    return child.returncode


def pass_on(sink: int, close: Callable[[], None]) -> None:
    """All that the host says."""
    while data := os.read(0, 65_536):
        os.write(sink, data)
    close()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
