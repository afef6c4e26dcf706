"""Recordings of an eval, made without running one: an agent, MCP servers, extensions, a model and a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.recording import CASSETTES, HEADER, TRAFFIC, Child, RunHeader, encode_header
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.writer import Writer, without_clients
from ext_sdk.core.wire.framing import FRAMINGS

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.cassette.events import Event, Stream

MODEL = "https://api.anthropic.com/v1/messages"
CLUSTER = "https://10.0.0.1:6443"
DOCS = "http://docs.internal.example:8080/runbooks/nginx"
THOUGHTS = (
    "I will look at the pods of the namespace first.",
    "The image cannot be pulled: its tag does not exist. The documentation names the right one.",
    "I have set the image to nginx:1.29. The pod is running now, and its readiness probe passes.",
)


FAILURE = (
    "pod/nginx did not become Ready in 5.0 s: container nginx: ImagePullBackOff: Back-off pulling image nginx:1.29"
)


class Session:
    """A cassette that is being made. Times are those of the recording."""

    def __init__(self, name: str, protocol: str, command: str, started: float) -> None:
        self.name = name
        self.protocol = protocol
        self.command = tuple(command.split())
        self.started = started
        self._events: list[Event] = []
        self._id = 0

    def message(self, time: float, stream: Stream, **members: object) -> None:
        text = json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":"), ensure_ascii=False)
        self._events.append(Data(stream, time - self.started, text.encode()))

    def call(self, time: float, took: float, method: str, params: object, result: object) -> None:
        self._id += 1
        self.message(time, "in", id=self._id, method=method, params=params)
        self.message(time + took, "out", id=self._id, result=result)

    def line(self, time: float, text: str) -> None:
        self._events.append(Data("err", time - self.started, text.encode()))

    def write(self, folder: Path, end: float) -> str:
        events: list[Event] = sorted(self._events, key=lambda event: event.time)
        events.append(Mark("exit", end - self.started, 0))
        header = Header(
            self.protocol, "ndjson", command=self.command, recorder="0.1.0", recorded="2026-11-23T16:00:00Z"
        )
        lines = (encode_event(event, FRAMINGS["ndjson"]) for event in events)
        file = f"{CASSETTES}/{self.name}.yaml"
        write_cassette(folder / file, header, lines, lambda: (), replace=True)
        return file


class Eval:
    """Recording of an eval with some tasks.

    Args:
        tasks: number of tasks; the last one fails if there are several.
        requests: number of requests that an operation sends to the cluster.
        image: in steps.
        port: of a server of the host.
    """

    def __init__(self, *, tasks: int = 2, requests: int = 4, image: str = "nginx:1.29", port: int = 40001) -> None:
        self.traffic: list[Interaction] = []
        self.agents: list[Session] = []
        self._requests = requests
        self._image = image
        self._port = port
        self.kubernetes = Session("kubernetes", "gevals", "ext-kubernetes", 0.31)
        self.shell = Session("shell", "gevals", "ext-shell", 0.35)
        self.tools = Session("cluster-tools", "mcp", "npx cluster-tools --stdio", 1.2)
        for each in (self.kubernetes, self.shell):
            manifest = {"name": each.name, "version": "0.1.0", "protocolVersion": "0.0.1", "operations": {}}
            each.call(each.started + 0.01, 0.06, "initialize", {"protocolVersion": "0.0.1"}, manifest)
        version = {"protocolVersion": "2025-06-18", "capabilities": {}}
        party = {"name": "cluster-tools", "version": "2.1.0"}
        self.tools.call(1.25, 0.05, "initialize", {**version, "clientInfo": party}, {**version, "serverInfo": party})
        self.tools.message(1.31, "in", method="notifications/initialized")
        self.tools.line(1.21, "cluster-tools 2.1.0 ready")
        now = 0.6
        for number in range(tasks):
            now = self._task(number, now, fails=number == tasks - 1 > 0)
        self.end = now + 0.2

    def write(self, folder: Path) -> Path:
        """Write the folder. Return its path."""
        (folder / CASSETTES).mkdir(parents=True)
        children = [
            Child(each.name, each.command, [each.write(folder, self.end)], [each.started])
            for each in (self.kubernetes, self.shell, self.tools)
        ]
        files = [agent.write(folder, self.end) for agent in self.agents]
        children.append(Child("agent", self.agents[0].command, files, [agent.started for agent in self.agents]))
        command = ("mcpchecker", "check", "eval.yaml")
        header = RunHeader(command, "0.1.0", "2026-11-23T16:00:00Z", self.end, 0, ("eval.yaml",), tuple(children))
        (folder / HEADER).write_text(encode_header(header))
        without_clients()
        writer = Writer(folder / TRAFFIC)
        writer.head({"recorder": "0.1.0", "recorded": "2026-11-23T16:00:00Z"})
        for item in sorted(self.traffic, key=lambda item: item.time + item.elapsed):
            writer.append(item)
        writer.finish({"redacted": []}, [])
        return folder

    def http(
        self, at: tuple[float, float], method: str, uri: str, body: object, answer: object, *, status: int = 200
    ) -> None:
        """Add an interaction; `at` is its time, and how long it took."""
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        kind = "text/event-stream" if data.startswith(b"event:") else "application/json"
        self.traffic.append(
            Interaction(
                method, uri, [("Content-Type", "application/json"), ("Accept", "*/*")],
                Body(b"" if body is None else json.dumps(body).encode()), status,
                {200: "OK", 201: "Created", 404: "Not Found"}.get(status, ""),
                [("Content-Type", kind), ("Content-Length", str(len(data)))], Body(data), time=at[0], elapsed=at[1],
            )
        )  # fmt: skip

    # --- One task -----------------------------------------------------------------------------------------------------

    def _task(self, number: int, now: float, *, fails: bool) -> float:
        namespace, workdir = f"task-{number + 1}", f"/tmp/workdir{f'-{number + 1}' if number else ''}"
        prompt = f"The pod nginx in the namespace {namespace} does not become ready. Find out why, and repair it."
        context: dict[str, Any] = {"workdir": workdir, "phase": "setup"}
        created = f"Created namespace {namespace}"
        now = self._step((now, 0.14), "create-namespace", {"name": namespace}, context, message=created)
        manifest = {"kind": "Pod", "metadata": {"name": "nginx"}, "spec": {"image": "nginx:oops"}}
        now = self._step((now, 0.22), "apply", {"manifest": manifest}, context, message="Applied 1 object: Pod nginx")
        now, output = self._agent(number, now + 0.2, prompt, namespace)
        context = {"workdir": workdir, "phase": "verify", "agent": {"prompt": prompt, "output": output}}
        expected = {"spec": {"containers": [{"name": "nginx", "image": self._image}]}}
        args: dict[str, object] = {"resource": "pod/nginx", "expected": expected}
        now = self._step((now, 0.4), "assert", args, context, message="pod/nginx is as expected")
        message = "pod/nginx is Ready" if not fails else FAILURE
        args = {"resource": "pod/nginx", "conditionType": "Ready", "timeout": "5s"}
        now = self._step((now, 5.0 if fails else 0.5), "condition", args, context, message=message, ok=not fails)
        self.shell.call(
            now, 0.08, "execute",
            {"operation": "assert-agent", "args": {"output": {"contains": "nginx:1.29"}}, "context": context},
            {"success": True, "message": "The output of the agent contains nginx:1.29"},
        )  # fmt: skip
        context = {"workdir": workdir, "phase": "cleanup"}
        deleted = f"Deleted namespace {namespace}"
        return self._step((now + 0.1, 0.3), "delete-namespace", {"name": namespace}, context, message=deleted)

    def _step(
        self, at: tuple[float, float], operation: str, args: object, context: object, *, message: str, ok: bool = True
    ) -> float:
        now, took = at
        params = {"operation": operation, "args": args, "context": context}
        result = {"success": ok, "message": message} | ({} if ok else {"error": message})
        self.kubernetes.call(now, took, "execute", params, result)
        for number in range(self._requests):
            start = now + took * (0.05 + 0.9 * number / self._requests)
            path, body, method = "/api/v1/namespaces/task-1/pods/nginx", None, "GET"
            if operation == "create-namespace" and not number:
                path, body, method = "/api/v1/namespaces", {"metadata": {"name": "task-1"}}, "POST"
            missing = operation == "apply" and not number
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "nginx"},
                "status": {"phase": "Pending", "number": number},
            }
            answer = {"kind": "Status", "reason": "NotFound"} if missing else pod
            status = 404 if missing else 201 if method == "POST" else 200
            self.http((start, took * 0.5 / self._requests), method, CLUSTER + path, body, answer, status=status)
        if not ok:
            self.kubernetes.line(now + took / 2, "warning: pod/nginx: still not ready, polling every 500 ms")
        return now + took + 0.05

    def _agent(self, number: int, now: float, prompt: str, namespace: str) -> tuple[float, str]:
        name = f"agent-{number + 1}" if number else "agent"
        agent = Session(name, "acp", "kube-agent --acp", now)
        self.agents.append(agent)
        version = {"protocolVersion": 1}
        server = {"type": "http", "name": "cluster-tools", "url": f"http://127.0.0.1:{self._port}/mcp"}
        agent.call(now + 0.02, 0.03, "initialize", {**version, "clientCapabilities": {}}, version)
        agent.call(
            now + 0.06, 0.02, "session/new", {"cwd": "/tmp/cwd", "mcpServers": [server]}, {"sessionId": f"s-{number}"}
        )
        now += 0.1
        content = [{"type": "text", "text": prompt}]
        agent.message(now, "in", id=99, method="session/prompt", params={"sessionId": f"s-{number}", "prompt": content})
        messages: list[object] = [{"role": "user", "content": prompt}]
        calls = (
            ("pods_list", {"namespace": namespace}, "nginx  0/1  ImagePullBackOff"),
            ("pods_set_image", {"namespace": namespace, "pod": "nginx", "image": "nginx:1.29"}, "pod/nginx changed"),
        )
        for turn, text in enumerate(THOUGHTS):
            call = calls[turn] if turn < len(calls) else None
            took = 0.9 + 0.3 * turn
            self.http(
                (now + 0.05, took), "POST", MODEL,
                {"model": "claude-sonnet-5", "max_tokens": 4096, "stream": True, "messages": list(messages),
                 "system": "You are a careful operator of a cluster. Change as little as possible."},
                _stream(text, call, 900 + 260 * turn),
            )  # fmt: skip
            words = text.split(" ")
            for place, word in enumerate(words):
                piece = {"type": "text", "text": word + ("" if place == len(words) - 1 else " ")}
                at = now + 0.3 + took * 0.7 * place / len(words)
                self._update(agent, number, at, "agent_message_chunk", content=piece)
            now += took + 0.1
            if call:
                tool, given, result = call
                self._update(agent, number, now, "tool_call", toolCallId=f"c{turn}", title=tool, rawInput=given)
                params = {"name": tool, "arguments": given}
                block = {"type": "text", "text": result}
                self.tools.call(now + 0.02, 0.25, "tools/call", params, {"content": [block]})
                pods = {"kind": "PodList", "items": [{"metadata": {"name": "nginx"}}]}
                method = "PATCH" if turn else "GET"
                path = f"/api/v1/namespaces/{namespace}/pods" + ("/nginx" if turn else "")
                self.http((now + 0.06, 0.12), method, CLUSTER + path, {"spec": {}} if turn else None, pods)
                if turn:
                    self.http((now - 0.03, 0.02), "GET", DOCS, None, {"image": "nginx:1.29"})
                self._update(agent, number, now + 0.3, "tool_call_update", toolCallId=f"c{turn}", status="completed",
                             content=[{"type": "content", "content": block}])  # fmt: skip
                use = {"type": "tool_use", "id": f"c{turn}", "name": tool, "input": given}
                messages.append({"role": "assistant", "content": [{"type": "text", "text": text}, use]})
                given_back = {"type": "tool_result", "tool_use_id": f"c{turn}", "content": result}
                messages.append({"role": "user", "content": [given_back]})
                now += 0.35
        agent.message(now, "out", id=99, result={"stopReason": "end_turn"})
        return now + 0.15, THOUGHTS[-1]

    def _update(self, agent: Session, number: int, time: float, kind: str, **members: object) -> None:
        update = {"sessionUpdate": kind, **members}
        agent.message(time, "out", method="session/update", params={"sessionId": f"s-{number}", "update": update})


def _stream(text: str, call: tuple[str, object, str] | None, tokens: int) -> bytes:
    """Return a response of Anthropic's API as server-sent events."""
    usage = {"input_tokens": tokens, "cache_read_input_tokens": tokens // 2, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"model": "claude-sonnet-5", "role": "assistant", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    for word in text.split(" "):
        delta = {"type": "text_delta", "text": word if word == text.rsplit(" ", 1)[-1] else f"{word} "}
        events.append({"type": "content_block_delta", "index": 0, "delta": delta})
    if call:
        block = {"type": "tool_use", "id": "toolu_1", "name": call[0], "input": {}}
        events.append({"type": "content_block_start", "index": 1, "content_block": block})
        given = json.dumps(call[1])
        for piece in (given[:12], given[12:]):
            delta = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": 1, "delta": delta})
    stop = {"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn"}}
    events += [{**stop, "usage": {"output_tokens": 40 + len(text) // 4}}, {"type": "message_stop"}]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)
