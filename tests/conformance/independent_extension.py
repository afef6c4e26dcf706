"""An extension that keeps every clause, written without the SDK.

The conformance tests are tested with it: `test_mutants.py` breaks it once for every clause, and a clause that does not
notice would pass on anything.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

VERSION = "0.0.1"
LIMIT_BYTES = 60_000
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
DURATION = re.compile(rf"[+-]?(?:{PART.pattern})+|[+-]?0")
EXAMPLE = {"word": "value"}

# A process that ends when its stdin does, which is when this one ends, however that comes.
LIFELINE = "import sys; sys.stdin.read()"
PARAMS: dict[str, object] = {
    "type": "object",
    "properties": {
        "how": {"type": "string", "description": "How to work", "pattern": "^[a-z ]*$"},
        "wait": {"type": "string", "default": "0s", "description": "How long first"},
        "only": {"type": "string", "description": "Do nothing but check the arguments"},
    },
    "required": ["how"],
    "additionalProperties": False,
}
MANIFEST: dict[str, object] = {
    "name": "independent",
    "version": "1.0.0",
    "protocolVersion": VERSION,
    "description": "Works",
    "requires": [{"command": "sh"}],
    "operations": {"work": {"description": "Work", "params": PARAMS}},
}


class RpcError(Exception):
    """An error response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def seconds(text: object) -> float:
    """A duration in seconds."""
    if not isinstance(text, str) or not DURATION.fullmatch(text):
        raise RpcError(-32602, f"not a duration: {str(text)[:100]!r}")
    sign = -1.0 if text.startswith("-") else 1.0
    return sign * sum(float(number) * UNITS[unit] for number, unit in PART.findall(text))


def members(value: object, name: str) -> dict[str, object]:
    """The value, an object."""
    if not isinstance(value, dict):
        raise RpcError(-32602, f"{name} must be an object")
    return value


class Extension:
    """One session."""

    def __init__(self, config: object) -> None:
        self.limit = 28.0
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.open = 0
        self.idle = threading.Condition()
        self.children: list[subprocess.Popen[bytes]] = []
        self.configure(config)

    def configure(self, config: object) -> None:
        """Take a configuration over."""
        if "limit" in (given := members(config, "config")):
            self.limit = seconds(given["limit"])

    def write(self, message: dict[str, object]) -> None:
        """Write a message as a line."""
        data = json.dumps({"jsonrpc": "2.0"} | message, ensure_ascii=False).encode("utf-8", "backslashreplace")
        with self.lock:
            try:
                os.write(1, data + b"\n")
            except BrokenPipeError:
                self.end(1)

    def answer(self, line: bytes) -> None:
        """Answer one line."""
        id: object = None
        try:
            request = self.parsed(line)
            if "id" not in request:
                return
            if isinstance(request["id"], (dict, list, bool)):
                raise RpcError(-32600, "an id is a string, a number or null")
            id = request["id"]
            method = str(request["method"])
            if method == "execute":
                self.execute(id, members(request.get("params"), "params"))
                return
            if method not in ("initialize", "shutdown"):
                raise RpcError(-32601, f"unknown method: {method[:100]}")
            self.write({"id": id, "result": self.manifest(request) if method == "initialize" else {}})
            if method == "shutdown":
                self.end(0)
        except RpcError as error:
            self.write({"id": id, "error": {"code": error.code, "message": str(error)}})

    def parsed(self, line: bytes) -> dict[str, object]:
        """The request in a line."""
        try:
            request = json.loads(line.decode(), parse_constant=seconds)
        except (ValueError, RecursionError, RpcError) as error:
            raise RpcError(-32700, str(error)[:200]) from None
        if not isinstance(request, dict) or request.get("jsonrpc") != "2.0":
            raise RpcError(-32600, "not a request")
        if not isinstance(request.get("method"), str):
            raise RpcError(-32600, "a request has a method")
        return request

    def manifest(self, request: dict[str, object]) -> dict[str, object]:
        """Initialize."""
        params = members(request.get("params"), "params")
        if params.get("protocolVersion") != VERSION:
            raise RpcError(-32602, f"expected protocolVersion {VERSION}")
        self.configure(params.get("config", {}))
        return MANIFEST

    def execute(self, id: object, params: dict[str, object]) -> None:
        """Check the arguments, then work in a thread."""
        operation = params.get("operation")
        if operation is None:
            raise RpcError(-32602, "operation is required")
        if operation != "work":
            raise RpcError(-32601, f"unknown operation: {str(operation)[:100]}")
        context = members(params.get("context"), "context")
        args = {} if params.get("args") is None else members(params["args"], "args")
        for name, value in args.items():
            if name not in ("how", "wait", "only") or not isinstance(value, str):
                raise RpcError(-32602, f"{name[:100]}: unknown, or not a string")
        if "how" not in args:
            raise RpcError(-32602, "how is required")
        wait = 0.0 if "only" in args and seconds(args.get("wait", "0s")) else seconds(args.get("wait", "0s"))
        timeout = seconds(context["timeout"]) if context.get("timeout") else None
        limit = timeout if timeout is not None else None if context.get("phase") else self.limit
        with self.idle:
            self.open += 1
        threading.Thread(target=self.work, args=(id, str(args["how"]), wait, limit, context), daemon=True).start()

    def work(self, id: object, how: str, wait: float, limit: float | None, context: dict[str, object]) -> None:
        """The operation."""
        late = limit is not None and wait > limit
        self.stop.wait(limit if late and limit is not None else wait)
        result: dict[str, object]
        if late or self.stop.is_set():
            result = {"success": False, "message": "Not done", "error": "the time was up"}
        else:
            result = self.outcome(how, context)
        self.write({"id": id, "result": result})
        with self.idle:
            self.open -= 1
            self.idle.notify_all()

    def outcome(self, how: str, context: dict[str, object]) -> dict[str, object]:
        """What the work comes to."""
        done: dict[str, object] = {"success": True, "message": "Done"}
        workdir = Path(str(context.get("workdir", ".")))
        if how == "badly":
            return {"success": False, "message": "Not done", "error": "was asked to", "outputs": EXAMPLE}
        if how == "noisily":
            self.write({"method": "log", "params": {"level": "info", "message": "working", "data": EXAMPLE}})
        if how == "at length":
            text = "x" * 200_000
            done |= {"outputs": {"text": text[:LIMIT_BYTES]}}
        if how == "into a file":
            (workdir / "made").touch()
        if how == "with env":
            done |= {"outputs": {"word": members(context.get("env"), "env").get("WORD", "")}}
        if how == "in the background":
            child = subprocess.Popen([sys.executable, "-c", LIFELINE], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            self.children.append(child)
            done |= {"outputs": {"pid": str(child.pid)}}
        if how == "by what the agent says":
            said = str(members(context.get("agent"), "agent").get("output"))
            if "well done" not in said:
                return {"success": False, "message": "Not done", "error": f"the agent said {said!r}"}
        return done

    def end(self, code: int) -> NoReturn:
        """End at once; children end by their lifeline."""
        for child in self.children:
            child.kill()
        os._exit(code)

    def run(self) -> None:
        """Read lines until there are no more, then wait for the work at hand."""
        for line in sys.stdin.buffer:
            if line.strip():
                self.answer(line)
        with self.idle:
            self.idle.wait_for(lambda: self.open == 0)
        self.end(0)


def main() -> None:
    """Be the extension."""
    arguments = sys.argv[1:]
    config = json.loads(arguments[arguments.index("--config") + 1]) if "--config" in arguments else {}
    extension = Extension(config)
    signal.signal(signal.SIGTERM, lambda *_: extension.end(0))
    extension.run()


if __name__ == "__main__":
    main()
