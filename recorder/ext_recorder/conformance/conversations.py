"""What is said to a child of each protocol to hear all that its specification has clauses for, as data.

A conversation is a list of steps, one after the other:

- a message. A request waits for its answer, unless a step that awaits something follows it;
- `{"await": METHOD}`: a message of that method has to come; `{"await": ID}`: the answer to that request.

In a step, the text "$name" stands for an entry of the profile, "$workdir" for the folder of the session, and
"$/result/runId" for what the latest message has there that has it. A step is left out where one of them means nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Step = Mapping[str, object]

AWAIT = "await"


class Conversation:
    """What is said in one protocol.

    Attributes:
        profile: the entries that its steps know, and what they are.
        steps: see the module.
    """

    __slots__ = ("profile", "steps")

    def __init__(self, profile: Mapping[str, str], steps: tuple[Step, ...]) -> None:
        self.profile = profile
        self.steps = steps


def _call(id: int, method: str, **params: object) -> Step:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _command(id: int, name: str, **argument: object) -> Step:
    return _call(id, "workspace/executeCommand", command=f"kaiak/{name}", arguments=[argument])


def _envelope(id: str, type: str, **payload: object) -> Step:
    return {"id": id, "version": "1.0", "type": type, "payload": payload}


_RUN = "$/result/runId"
_SESSION = "conformance-1"
_APPROVAL = {"request_id": "$/params/content/interaction_id", "action": "allow_once"}
CONVERSATIONS = {
    "waza": Conversation(
        {
            "directory": "a folder with evals",
            "eval": "the file of an eval",
            "task": "the id of a task in it",
            "executor": "an executor that takes long, for a run that is cancelled",
        },
        (
            _call(1, "eval.list", directory="$directory"),
            _call(2, "eval.get", path="$eval"),
            _call(3, "eval.validate", path="$eval"),
            _call(4, "task.list", path="$eval"),
            _call(5, "task.get", path="$eval", taskId="$task"),
            _call(6, "eval.get", path="$workdir/no-such-eval.yaml"),
            _call(7, "eval.unknown"),
            _call(8, "eval.run", path="$eval"),
            {AWAIT: "eval.complete"},
            _call(9, "run.status", runId=_RUN),
            _call(10, "eval.run", path="$eval", executor="$executor"),
            _call(11, "run.cancel", runId=_RUN),
        ),
    ),
    "gassist": Conversation(
        {
            "function": "a function that answers at once, or by streaming",
            "arguments": "its arguments",
            "asking": "a function that keeps the session",
            "asking-arguments": "its arguments",
            "input": "what is said to it then",
        },
        (
            _call(1, "initialize", protocol_version="2.0", engine_version="1.0", capabilities=[]),
            _call(2, "ping", timestamp=1_700_000_000),
            _call(3, "execute", function="$function", arguments="$arguments"),
            _call(4, "execute", function="no_such_function", arguments={}),
            _call(5, "execute", function="$asking", arguments="$asking-arguments"),
            {AWAIT: "complete"},
            _call(6, "input", content="$input", timestamp=1_700_000_001),
            {AWAIT: "complete"},
            _call(7, "shutdown"),
        ),
    ),
    "kaiak": Conversation(
        {"incidents": "incidents to fix, in the working directory"},
        (
            _command(1, "configure", configuration={"workspace": {"working_dir": "$workdir"}}, reset_existing=False),
            _command(2, "configure", configuration={"workspace": {}}),
            _command(3, "generate_fix", session_id=_SESSION, incidents="$incidents"),
            {AWAIT: "kaiak/stream/user_interaction"},
            _call(4, "kaiak/client/user_message", session_id=_SESSION, kind="approval", payload=_APPROVAL),
            {AWAIT: 3},
            _command(5, "delete_session", session_id=_SESSION, force=False),
            _command(6, "delete_session", session_id="no-such-session", force=False),
        ),
    ),
    "pi": Conversation(
        {"tool": "a tool", "input": "its input", "command": "a slash command", "event": "an event that it hooks"},
        (
            {AWAIT: "register"},
            _envelope("m1", "tool_call", call_id="c1", name="$tool", input="$input"),
            _envelope("m2", "tool_call", call_id="c2", name="no-such-tool", input={}),
            _envelope("m3", "slash_command", name="$command", args=[]),
            _envelope("m4", "event_hook", event="$event", data={}),
        ),
    ),
}
