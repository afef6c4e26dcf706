"""What hosts say to the reference peers: one conversation for each, which asserts what it hears.

Each takes a speaker and `Names`, which gives the host's ids and whatever else it makes up, so that the same
conversation can be held with other ids: with a peer, with its recording, with a replay of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.host import Message, MessageStream

    Conversation = Callable[[MessageStream, "Names", Path], None]
    Meeting = Callable[[MessageStream, MessageStream, "Names", Path], None]  # two clients of one server


class Names:
    """What a host makes up.

    Args:
        first: the first id; they are counted from there.
        prefix: of every name.
    """

    def __init__(self, first: int = 1, prefix: str = "") -> None:
        self._next = first
        self._prefix = prefix
        self.base = first

    def id(self) -> int:
        """The next id of a request."""
        self._next += 1
        return self._next - 1

    def name(self, name: str) -> str:
        """A name of this session."""
        return self._prefix + name


def call(id: int, method: str, **params: object) -> Message:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def answers(id: object) -> Callable[[Message], bool]:
    """Is this the answer to a request?"""
    return lambda message: message.get("id") == id and "method" not in message


def tells(method: str, **params: object) -> Callable[[Message], bool]:
    """Is this that notification?"""
    return lambda message: message.get("method") == method and params.items() <= inside(message).items()


def inside(message: Message, *members: str) -> Message:
    """A member's member: `params` where none is named."""
    value: object = message
    for member in members or ("params",):
        assert isinstance(value, dict), message
        value = value[member]
    return cast("Message", value)


def until_each(host: MessageStream, *wanted: Callable[[Message], bool]) -> list[Message]:
    """The messages up to the one by which each of these has come, in whatever order."""
    told: list[Message] = []
    while not all(any(map(each, told)) for each in wanted):
        told.append(host.next())
    return told


# --- waza ------------------------------------------------------------------------------------------------------------

_AZURE = '"skill":"azure","version":"1.0","tasks"'
EVALS = {
    "evals/functions/eval.yaml": f'{{"name":"functions",{_AZURE}:[{{"id":"create"}},{{"id":"delete"}}]}}',
    "evals/storage/eval.yaml": f'{{"name":"storage",{_AZURE}:[{{"id":"upload","fails":true}}]}}',
    "evals/broken/eval.yaml": '{"name":"broken"}',
}


def write_evals(folder: Path) -> None:
    """The files that the server of the conversation reads."""
    for name, text in EVALS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def waza(host: MessageStream, names: Names, folder: Path) -> None:
    """Look around, run two evals at once, cancel a third."""
    functions, storage, broken = (
        str(folder / f"evals/{name}/eval.yaml") for name in ("functions", "storage", "broken")
    )
    looks: tuple[tuple[str, Message], ...] = (
        ("eval.list", {"directory": str(folder / "evals")}),
        ("eval.get", {"path": functions}),
        ("eval.validate", {"path": storage}),
        ("eval.validate", {"path": broken}),
        ("task.list", {"path": functions}),
        ("task.get", {"path": functions, "taskId": "create"}),
        ("task.get", {"path": functions, "taskId": "none"}),
        ("eval.get", {"path": str(folder / "evals/missing/eval.yaml")}),
        ("eval.find", {}),
    )
    for method, params in looks:
        id = names.id()
        host.send(call(id, method, **params))
        assert host.next()["id"] == id
    assert inside(host.received[0], "result")["evals"] != []
    two = names.id(), names.id()
    host.send(
        call(two[0], "eval.run", path=functions, executor="mock"), call(two[1], "eval.run", path=storage, verbose=True)
    )
    told = until_each(host, *(answers(id) for id in two), tells("eval.complete"))
    runs = [str(inside(next(filter(answers(id), told)), "result")["runId"]) for id in two]
    ended = [inside(message)["runId"] for message in told if tells("eval.complete")(message)]
    while len(ended) < 2:
        ended.append(inside(host.until(tells("eval.complete"))[-1])["runId"])
    assert sorted(ended, key=str) == sorted(runs)
    host.send(call(names.id(), "run.status", runId=runs[0]))
    assert inside(host.next(), "result")["status"] == "completed"
    host.send(call(names.id(), "eval.run", path=functions, executor="never"))
    run = str(inside(host.next(), "result")["runId"])
    host.until(tells("eval.progress", runId=run, event="run_complete"))
    for method in ("run.status", "run.cancel", "run.cancel"):
        host.send(call(names.id(), method, runId=run))
        host.next()
    assert "error" in host.received[-1]


HOST_EVALS = {
    "evals/greetings/eval.yaml": (
        "name: greetings\nskill: greeter\nversion: '1.2'\n"
        "config: {executor: mock, trials_per_task: 2, timeout_seconds: 60}\n"
        "metrics: [{name: task_completion, weight: 1.0, threshold: 0.8}]\ntasks: [tasks/*.yaml]\n"
    ),
    "evals/greetings/tasks/farewell.yaml": (
        "id: farewell\nname: Say goodbye\ninputs: {prompt: Bye}\n"
        "graders: [{type: text, name: waves, config: {contains: [goodbye]}}]\n"
    ),
    "evals/greetings/tasks/greeting.yaml": (
        "id: greeting\nname: Say hello\ninputs: {prompt: Say hello}\n"
        "graders: [{type: text, name: greets, config: {contains: [hello]}}]\n"
    ),
    "evals/checks/eval.yaml": (
        "apiVersion: mcpchecker/v1alpha2\nkind: Eval\nmetadata: {name: checks}\n"
        "config:\n  taskSets: [{path: task.yaml}]\n"
    ),
    "evals/checks/task.yaml": (
        "apiVersion: mcpchecker/v1alpha2\nkind: Task\nmetadata: {name: check}\nspec:\n"
        "  verify: [{script: {inline: 'true'}}]\n  prompt: {inline: Do nothing}\n"
    ),
    "evals/broken/eval.yaml": "name: broken\n",
}


def host_serve(host: MessageStream, names: Names, folder: Path) -> None:
    """Describe and run the evals of HOST_EVALS, by requests that are valid and others; cancel a run."""
    greetings, checks, broken = (str(folder / f"evals/{name}/eval.yaml") for name in ("greetings", "checks", "broken"))
    requests: tuple[tuple[str, Message], ...] = (
        ("eval.list", {"directory": str(folder / "evals")}),
        ("eval.get", {"path": greetings}),
        ("eval.validate", {"path": checks}),
        ("eval.validate", {"path": broken}),
        ("task.list", {"path": greetings}),
        ("task.get", {"path": checks, "taskId": "check"}),
        ("task.get", {"path": checks, "taskId": "chek"}),
        ("eval.get", {"path": str(folder / "evals/missing/eval.yaml")}),
        ("eval.run", {"path": broken}),
        ("eval.run", {"path": greetings, "executor": "copilot-sdk"}),
        ("eval.run", {}),
    )
    for method, params in requests:
        id = names.id()
        host.send(call(id, method, **params))
        assert host.next()["id"] == id
    for path, options in ((greetings, {"verbose": True}), (checks, {"executor": "none"})):
        host.send(call(names.id(), "eval.run", path=path, **options))
        run = str(inside(host.next(), "result")["runId"])
        assert "summary" in inside(host.until(tells("eval.complete", runId=run))[-1])
        host.send(call(names.id(), "run.status", runId=run))
        assert inside(host.next(), "result")["status"] == "completed"
    host.send(call(names.id(), "eval.run", path=greetings, executor="never"))
    run = str(inside(host.next(), "result")["runId"])
    host.until(tells("eval.progress", runId=run, event="trial_start"))
    host.send(call(names.id(), "run.cancel", runId=run))
    assert inside(host.next(), "result")["status"] == "cancelled"
    assert "error" in inside(host.until(tells("eval.complete", runId=run))[-1])
    host.send(call(names.id(), "run.cancel", runId=run))
    assert "error" in host.next()


def waza_two_clients(first: MessageStream, second: MessageStream, names: Names, folder: Path) -> None:
    """Each has a run of its own, and hears of no other."""
    for host, name in ((first, "functions"), (second, "storage")):
        host.send(call(names.id(), "eval.run", path=str(folder / f"evals/{name}/eval.yaml")))
    for host in (first, second):
        run = inside(host.next(), "result")["runId"]
        told = host.until(tells("eval.complete"))
        assert {inside(message)["runId"] for message in told} == {run}
        host.send(call(names.id(), "run.status", runId=run))
        assert inside(host.next(), "result")["status"] == "completed"


def waza_python(host: MessageStream, names: Names, folder: Path) -> None:
    """What comes after `eval.complete`, a parse error without id, members that are null."""
    host.send(call(names.id(), "eval.run", path=str(folder / "evals/functions/eval.yaml")))
    host.until(tells("eval.progress", task_num=5))
    host.write(b"{not json}\n")
    assert "id" not in host.next()
    host.send(call(names.id(), "run.status", runId=inside(host.received[0], "result")["runId"]))
    assert inside(host.next(), "result")["error"] is None


def waza_go(host: MessageStream, names: Names, folder: Path) -> None:
    """Other names, ids last, no notification, and an end after what can't be read."""
    path, storage, broken = (str(folder / f"evals/{name}/eval.yaml") for name in ("functions", "storage", "broken"))

    def asked(method: str, **params: object) -> Message:
        id = names.id()
        host.send(call(id, method, **params))
        answer = host.next()
        assert (answer["id"], list(answer)[-1]) == (id, "id")
        return answer

    assert inside(asked("eval.list", dir=str(folder / "evals")), "result")["evals"] is not None
    assert inside(asked("eval.list", dir="nowhere"), "result")["evals"] is None
    assert inside(asked("eval.list", directory="elsewhere"), "error")["data"] == "dir is required"
    assert inside(asked("eval.get", path=path), "result")["name"] == "functions"
    assert inside(asked("eval.get", path=str(folder / "evals/missing/eval.yaml")), "error")["code"] == -32000
    assert inside(asked("eval.validate", path=storage), "result") == {"valid": True}
    assert inside(asked("eval.validate", path=broken), "result")["valid"] is False
    assert inside(asked("task.list", path=path), "result")["tasks"] is not None
    assert inside(asked("task.get", path=path, task_id="create"), "result")["test_id"] == "create"
    run = inside(asked("eval.run", path=path), "result")["run_id"]
    assert inside(asked("run.status", run_id=run), "result")["id"] == run
    assert inside(asked("run.cancel", run_id=run), "result")["canceled"] is False
    assert "error" in asked("run.status", run_id="run-0")
    host.write(b"{not json}\n")
    assert host.next()["id"] is None


# --- G-Assist --------------------------------------------------------------------------------------------------------


def gassist(host: MessageStream, names: Names, _: Path) -> None:
    """A search with a session that is kept, pings in between, an error, an answer without streaming."""
    host.send(call(names.id(), "initialize", protocol_version="2.0", engine_version=names.name("1.0"), capabilities=[]))
    host.next()
    id, ping = names.id(), names.id()
    now = 1_700_000_000 + names.base
    host.send(
        call(id, "execute", function="search", arguments={"query": "x"}, context=[names.name("c")], system_info="s"),
        call(ping, "ping", timestamp=now),
    )
    pong: Message = {"jsonrpc": "2.0", "id": ping, "result": {"timestamp": now}}
    # Nobody says which of the two comes first: a plugin works and is asked how it is side by side.
    told = until_each(host, tells("complete"), lambda message: message == pong)
    assert {inside(message).get("request_id") for message in told if message != pong} == {id, None}
    id = names.id()
    host.send(call(id, "input", content="Tell me more", timestamp=now + 1))
    assert host.next() == {"jsonrpc": "2.0", "id": id, "result": {"acknowledged": True}}
    assert all(inside(message)["request_id"] == id for message in host.until(tells("complete")))
    id = names.id()
    host.send(call(id, "input", content="bye", timestamp=now + 2))
    host.until(tells("complete", keep_session=False))
    for function, arguments in (("limited", {}), ("add", {"a": 1, "b": 2}), ("nothing", {})):
        id = names.id()
        host.send(call(id, "execute", function=function, arguments=arguments))
        message = host.next()
        assert id in {message.get("id"), cast("Message", message.get("params", {})).get("request_id")}


def gassist_shutdown(host: MessageStream, names: Names, folder: Path) -> None:
    """The same, and a shutdown that wants an answer."""
    gassist(host, names, folder)
    id = names.id()
    host.send(call(id, "shutdown"))
    assert host.next()["id"] == id


def gassist_notified(host: MessageStream, names: Names, folder: Path) -> None:
    """The same, and a shutdown that wants none."""
    gassist(host, names, folder)
    host.send({"jsonrpc": "2.0", "method": "shutdown", "params": {}})


def gassist_greeter(host: MessageStream, names: Names, _: Path) -> None:
    """The example extension as a plugin: calls that the user completes or cancels, pings, errors, a shutdown."""
    host.send(call(names.id(), "initialize", protocol_version="2.0", engine_version=names.name("1.0"), capabilities=[]))
    assert inside(host.next(), "result")["name"] == "greeter"
    now = 1_700_000_000 + names.base
    context = [{"role": "user", "content": names.name("hello")}]
    for reply, success in (("Ada", True), ("exit", False)):
        id = names.id()
        host.send(call(id, "execute", function="greeter_greet", arguments={}, context=context))
        assert inside(host.next()).items() >= {"request_id": id, "success": True, "keep_session": True}.items()
        id = names.id()
        host.send(call(id, "ping", timestamp=now))
        assert inside(host.next(), "result") == {"timestamp": now}
        id = names.id()
        host.send(call(id, "input", content=reply, timestamp=now + 1))
        assert host.next() == {"jsonrpc": "2.0", "id": id, "result": {"acknowledged": True}}
        told = host.until(tells("complete", success=success, keep_session=False))
        assert all(inside(message)["request_id"] == id for message in told)
        assert len(told) == 1 + success  # the log entry of the operation
    id = names.id()
    host.send(call(id, "execute", function="greeter_greet", arguments={"name": "Eve"}))
    assert inside(host.until(tells("complete"))[-1])["request_id"] == id
    for function, name in (("greeter_greet", 1), ("greeter_great", "Ada")):
        id = names.id()
        host.send(call(id, "execute", function=function, arguments={"name": name}))
        assert inside(host.until(tells("error"))[0])["request_id"] == id
    id = names.id()
    host.send(call(id, "shutdown"))
    assert host.next() == {"jsonrpc": "2.0", "id": id, "result": {}}


def gassist_sdk(host: MessageStream, names: Names, _: Path) -> None:
    """A plugin that never says which call it ends, and does not answer the shutdown."""
    host.send(call(names.id(), "initialize", protocol_version="2.0"))
    host.next()
    for function in ("search", "nothing"):
        host.send(call(names.id(), "execute", function=function, arguments={}))
        host.until(lambda message: message.get("method") in {"complete", "error"})
    host.send(call(names.id(), "shutdown"))


# --- Kaiak -----------------------------------------------------------------------------------------------------------

INCIDENT = {
    "rule_id": "deprecated-api-usage",
    "message": "Use of deprecated API",
    "effort": "trivial",
    "severity": "warning",
}


def command(id: int, name: str, **argument: object) -> Message:
    """A request of Kaiak's."""
    return call(id, "workspace/executeCommand", command=f"kaiak/{name}", arguments=[argument])


def kaiak(host: MessageStream, names: Names, folder: Path) -> None:
    """Configure, fix with an approval, a session in use, a session of the server's own, delete."""
    host.send(command(names.id(), "configure", configuration={"workspace": {}}))
    assert inside(host.next(), "error")["code"] == -32014
    workspace = {"working_dir": str(folder), "include_patterns": ["**/*.java"]}
    host.send(command(names.id(), "configure", configuration={"workspace": workspace}, reset_existing=False))
    assert inside(host.next(), "result", "configuration_applied", "workspace")["working_dir"] == str(folder)
    session = names.name("550e8400")
    incidents = [{"id": f"incident-{number}"} | INCIDENT for number in (1, 2)]
    fix = names.id()
    host.send(command(fix, "generate_fix", session_id=session, incidents=incidents))
    asked = host.until(tells("kaiak/stream/user_interaction"))
    assert {inside(message)["session_id"] for message in asked} == {session}
    second = names.id()
    host.send(command(second, "generate_fix", session_id=session, incidents=incidents))
    refused = host.until(answers(second))[-1]
    assert inside(refused, "error", "data")["session_id"] == session
    approve(host, names, session, asked[-1])
    done = host.until(answers(fix))[-1]
    assert inside(done, "result")["session_id"] == session
    other = names.id()
    host.send(command(other, "generate_fix", incidents=incidents[:1]))
    asked = host.until(tells("kaiak/stream/user_interaction"))
    own = str(inside(asked[-1])["session_id"])
    approve(host, names, own, asked[-1])
    assert inside(host.until(answers(other))[-1], "result")["session_id"] == own
    for name in (session, own, own):
        host.send(command(names.id(), "delete_session", session_id=name, force=False))
        host.next()
    assert inside(host.received[-3], "result")["session_id"] == session
    assert inside(host.received[-1], "error", "data")["session_id"] == own


def kaiak_served(host: MessageStream, names: Names, folder: Path) -> None:
    """Proposals of ext-host: one is refused, one approved, one edited."""
    workspace = {"working_dir": str(folder), "include_patterns": ["**/*.java"]}
    host.send(command(names.id(), "configure", configuration={"workspace": workspace}, reset_existing=False))
    assert inside(host.next(), "result")["warnings"] == []
    session, fix = names.name("550e8400"), names.id()
    incidents = [{"id": "incident-1"} | INCIDENT]
    host.send(
        command(fix, "generate_fix", session_id=session, incidents=incidents, options={"max_processing_time": 60})
    )
    for action, more in (("deny", {}), ("edit", {"content": "// Tests\n"}), ("approve", {})):
        asked = host.until(tells("kaiak/stream/user_interaction"))[-1]
        payload = {"request_id": inside(asked, "params", "content")["interaction_id"], "action": action, **more}
        reply = names.id()
        host.send(call(reply, "kaiak/client/user_message", session_id=session, kind="approval", payload=payload))
        host.until(answers(reply))
    assert inside(host.until(answers(fix))[-1], "result")["status"] == "completed"
    host.send(command(names.id(), "delete_session", session_id=session))
    assert inside(host.next(), "result")["status"] == "deleted"


def kaiak_head_served(host: MessageStream, names: Names, folder: Path) -> None:
    """The same in the later dialect: approved once for all."""
    about = {"id": "1", "uri": "file:///a", "message": "deprecated", "description": "Use of deprecated API"}
    agent = {"workspace": {"working_dir": str(folder)}}
    fix, reply = names.id(), names.id()
    host.send(call(fix, "kaiak/generate_fix", incidents=[about], agent_config=agent))
    asked = host.until(tells("kaiak/generate_fix/data", kind="user_interaction"))[-1]
    session = str(inside(asked)["session_id"])
    payload = {"request_id": inside(asked, "params", "payload")["id"], "action": "always_allow"}
    said = {"session_id": session, "kind": "tool_confirmation", "timestamp": f"2026-01-01T00:00:{names.base % 60:02}Z"}
    host.send(call(reply, "kaiak/client/user_message", **said, payload=payload))
    host.until(answers(reply))
    host.until(answers(fix))
    for _ in range(2):
        host.send(call(names.id(), "kaiak/delete_session", session_id=session))
        assert inside(host.next(), "result")["status"] == "deleted"


def kaiak_two_clients(first: MessageStream, second: MessageStream, names: Names, folder: Path) -> None:
    """A session that another client uses, and may use once it is free; what is streamed is for its own client alone."""
    session = names.name("550e8400")
    about = {"session_id": session, "incidents": [{"id": "incident-1"} | INCIDENT]}
    fix, second_fix = names.id(), names.id()
    first.send(command(fix, "generate_fix", **about))
    asked = first.until(tells("kaiak/stream/user_interaction"))[-1]
    second.send(command(second_fix, "generate_fix", **about))
    assert inside(second.next(), "error")["code"] == -32016
    approve(first, names, session, asked)
    first.until(answers(fix))
    again = names.id()
    second.send(command(again, "generate_fix", **about))
    asked = second.until(tells("kaiak/stream/user_interaction"))[-1]
    approve(second, names, session, asked)
    assert inside(second.until(answers(again))[-1], "result")["session_id"] == session
    gone = names.id()
    first.send(command(gone, "delete_session", session_id=session))
    assert inside(first.next(), "result")["status"] == "deleted"


def kaiak_greeted(host: MessageStream, names: Names, folder: Path) -> None:
    """A client that greets the server as those of LSP are greeted, and takes leave so."""
    id = names.id()
    host.send(call(id, "initialize", processId=None, rootUri=None, capabilities={}))
    provider = inside(host.next(), "result", "capabilities", "executeCommandProvider")
    assert "kaiak/generate_fix" in str(provider["commands"])
    host.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
    host.send(command(names.id(), "configure", configuration={"workspace": {"working_dir": str(folder)}}))
    assert inside(host.next(), "result")["status"] == "success"
    host.send(call(names.id(), "shutdown"))
    host.next()
    host.send({"jsonrpc": "2.0", "method": "exit"})


def approve(host: MessageStream, names: Names, session: str, asked: Message) -> None:
    """Answer an interaction."""
    payload = {"request_id": inside(asked, "params", "content")["interaction_id"], "action": "allow_once"}
    host.send(call(names.id(), "kaiak/client/user_message", session_id=session, kind="approval", payload=payload))


def kaiak_head(host: MessageStream, names: Names, folder: Path) -> None:
    """Logs between frames, a session of the server's own, in use and not known, what can't be read."""
    agent = {"workspace": {"working_dir": str(folder)}}
    about = {"id": "1", "uri": "file:///a", "message": "deprecated", "description": "Use of deprecated API"}
    fix, *others = (names.id() for _ in range(4))
    host.send(call(fix, "kaiak/generate_fix", incidents=[about], agent_config=agent))
    asked = host.until(tells("kaiak/generate_fix/data", kind="user_interaction"))[-1]
    session = str(inside(asked)["session_id"])
    host.send(call(others[0], "kaiak/generate_fix", session_id=session, incidents=[about], agent_config=agent))
    assert inside(host.until(answers(others[0]))[-1], "error")["code"] == -32013
    payload = {"request_id": inside(asked, "params", "payload")["id"], "action": "allow_once"}
    confirmed = {
        "session_id": session,
        "kind": "tool_confirmation",
        "timestamp": f"2026-01-01T00:00:{names.base % 60:02}Z",
    }
    host.send(call(others[1], "kaiak/client/user_message", **confirmed, payload=payload))
    assert inside(host.until(answers(others[1]))[-1], "result")["success"] is True
    assert inside(host.until(answers(fix))[-1], "result")["session_id"] == session
    host.write(b"Content-Length: 4\r\n\r\n{no}")
    assert "id" not in host.next()
    for _ in range(2):
        host.send(call(names.id(), "kaiak/delete_session", session_id=session))
        assert inside(host.next(), "result")["status"] == "deleted"
    host.send(call(others[2], "kaiak/generate_fix", session_id=session, incidents=[about], agent_config=agent))
    assert inside(host.next(), "error")["code"] == -32003
    assert b"\x1b[32m INFO" in host.junk


# --- Pi --------------------------------------------------------------------------------------------------------------


def envelope(id: str, type: str, **payload: object) -> Message:
    """A message of Pi's."""
    return {"id": id, "version": "1.0", "type": type, "payload": payload}


def pi(host: MessageStream, names: Names, _: Path) -> None:
    """Two tool calls at once, of which one calls the host and gets its answer in pieces; a slash command; a hook."""
    assert host.next()["type"] == "register"
    host.send(
        envelope(
            names.name("m1"), "tool_call", call_id=names.name("c1"), name="count-lines", input={"path": "notes.txt"}
        ),
        envelope(names.name("m2"), "tool_call", call_id=names.name("c2"), name="shout", input={"text": "hi"}),
    )
    asked = host.until(lambda message: message["type"] == "tool_result")
    assert inside(asked[-1], "payload")["call_id"] == names.name("c2")
    read = inside(next(message for message in asked if message["type"] == "host_call"), "payload")
    for index, text in enumerate(("one\ntwo\n", "three\n")):
        chunk = {"index": index, "is_last": index == 1}
        result = {"call_id": read["call_id"], "output": {"text": text}, "is_error": False, "chunk": chunk}
        host.send(envelope(names.name(f"r{index}"), "host_result", **result))
    counted = inside(host.next(), "payload")
    assert (counted["call_id"], counted["output"]) == (names.name("c1"), {"lines": 3})
    host.send(
        envelope(names.name("m3"), "tool_call", call_id=names.name("c3"), name="count-lines", input={"path": "no"})
    )
    read = inside(host.until(lambda message: message["type"] == "host_call")[-1], "payload")
    error = {"code": "denied", "message": "not allowed"}
    host.send(envelope(names.name("r2"), "host_result", call_id=read["call_id"], output={}, is_error=True, error=error))
    assert inside(host.next(), "payload")["is_error"] is True
    host.send(envelope(names.name("s1"), "slash_command", name="hello", args=["there"]))
    assert host.next()["type"] == "slash_result"
    host.send(envelope(names.name("e1"), "event_hook", event="turn_end", data={"turn": 1}))
    assert host.next()["type"] == "log"


def pi_served(host: MessageStream, names: Names, _: Path) -> None:
    """The reviewer of docs/examples: two calls at once, which call the host; failures; a command; a stopped call."""

    def begin(call_id: str, tool: str, **input: object) -> Message:
        host.send(envelope(names.name(f"m-{call_id}"), "tool_call", call_id=call_id, name=tool, input=input))
        return inside(host.until(lambda message: message["type"] != "log")[-1], "payload")

    def reply(asked: Message, *outputs: Message, **more: object) -> Message:
        for index, output in enumerate(outputs):
            chunk = {"index": index, "is_last": index == len(outputs) - 1}
            result = {"call_id": asked["call_id"], "output": output, "is_error": False, "chunk": chunk} | more
            host.send(envelope(names.name(f"r{index}-{asked['call_id']}"), "host_result", **result))
        return inside(host.next(), "payload")

    assert inside(host.next(), "payload")["name"] == "reviewer"
    counting, approving, refused, failing, stopped, unknown = (names.name(f"c{number}") for number in range(1, 7))
    read = begin(counting, "reviewer-count-lines", path="notes.txt")
    confirm = begin(approving, "reviewer-approve", question="Is it good?")
    assert (read["capability"], confirm["capability"]) == ("read", "ui")
    approved = reply(confirm, {"value": True})
    assert (approved["call_id"], approved["is_error"]) == (approving, False)
    counted = reply(read, {"text": "one\ntwo\n"}, {"text": "three\n"})
    assert (counted["call_id"], inside(counted, "output", "details", "outputs")) == (counting, {"lines": "3"})
    assert reply(begin(refused, "reviewer-approve", question="Sure?"), {"value": False})["is_error"] is True
    error = {"code": "denied", "message": "not allowed"}
    denied = reply(begin(failing, "reviewer-count-lines", path="no"), {}, is_error=True, error=error)
    assert "not allowed" in str(denied["output"])
    assert "did you mean" in str(begin(unknown, "reviewer-count-line", path="no")["output"])
    host.send(envelope(names.name("s1"), "slash_command", name="reviewer", args=[]))
    assert host.next()["type"] == "slash_result"
    asked = begin(stopped, "reviewer-approve", question="Still there?")
    host.send(envelope(names.name("e1"), "event_hook", event="tool_call_cancel", data={"call_id": stopped}))
    assert inside(host.next(), "payload")["call_id"] == stopped
    late = {"call_id": asked["call_id"], "output": {"value": True}, "is_error": False}
    host.send(
        envelope(names.name("r-late"), "host_result", **late),
        envelope(names.name("e2"), "event_hook", event="session_shutdown", data={}),
    )


# --- Plain JSON-RPC, and lines ---------------------------------------------------------------------------------------


def calls(host: MessageStream, names: Names, _: Path) -> None:
    """Several calls in one write, one that is answered by a question first, one that is cancelled."""
    two = names.id(), names.id()
    host.send(call(two[0], "greet"), {"jsonrpc": "2.0", "id": two[1], "method": "sum", "params": [1, 2]})
    question = host.next()
    assert host.next() == {"jsonrpc": "2.0", "id": two[1], "result": 3}
    host.send({"jsonrpc": "2.0", "id": question["id"], "result": "you"})
    assert host.next() == {"jsonrpc": "2.0", "id": two[0], "result": "Hello, you"}
    job = names.id()
    host.send(call(job, "job"))
    assert host.next()["method"] == "started"
    host.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": job}})
    assert inside(host.next(), "error")["code"] == -32800
    host.send(call(names.id(), "no/such/method"))
    assert "error" in host.next()


def mcp(host: MessageStream, names: Names, _: Path) -> None:
    """A session of MCP without a handshake: pages, input required, progress, a subscription, a task that is polled."""
    prefix = "io.modelcontextprotocol"
    client = {"name": names.name("host"), "version": names.name("1.0")}
    about = {f"{prefix}/protocolVersion": "2026-07-28", f"{prefix}/clientInfo": client}
    traced = 0

    def ask(method: str, meta: Message | None = None, **params: object) -> int:
        nonlocal traced
        traced += 1
        traceparent = f"00-{names.base:032x}-{traced:016x}-01"
        id = names.id()
        host.send(call(id, method, **params, _meta={**about, "traceparent": traceparent, **(meta or {})}))
        return id

    def result(method: str, meta: Message | None = None, **params: object) -> Message:
        return inside(host.until(answers(ask(method, meta, **params)))[-1], "result")

    assert result("server/discover")["supportedVersions"] == ["2026-07-28"]
    page = result("tools/list")
    assert "nextCursor" not in result("tools/list", cursor=page["nextCursor"])
    asked = result("tools/call", name="greet", arguments={})
    assert asked["resultType"] == "input_required"
    replies = {"who": {"action": "accept", "content": {"name": "you"}}}
    state = asked["requestState"]
    greeted = result("tools/call", name="greet", arguments={}, inputResponses=replies, requestState=state)
    assert "Hello, you" in str(greeted)
    token = names.name("token")
    result("tools/call", {"progressToken": token}, name="count", arguments={})
    assert inside(host.received[-2])["progressToken"] == token
    listener = ask("subscriptions/listen", notifications={"toolsListChanged": True})
    own = {f"{prefix}/subscriptionId": listener}
    assert inside(host.next())["_meta"] == own
    result("tools/call", name="rename", arguments={})
    assert inside(host.received[-2])["_meta"] == own
    host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listener}})
    task = inside(result("tools/call", name="build", arguments={}), "task")
    while task["status"] != "completed":
        task = result("tasks/get", taskId=task["taskId"])
    assert "built" in str(result("tasks/result", taskId=task["taskId"]))


def lines(host: MessageStream, _names: Names, _folder: Path) -> None:
    """Two lines, each with its answer; there is nothing in them that a host makes up."""
    for line in (b"hello", b"{not json}"):
        host.write(line + b"\n")
        assert host.payload() == b"you said: " + line
