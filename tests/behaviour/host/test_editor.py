"""Editors: the real YAML language server completes and checks tasks by the schema."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from ext_host.__main__ import main
from tests.support.program_packages import npm_package

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "2.0.0"
TASK = """\
# yaml-language-server: $schema=task.schema.json
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: t}
spec:
  requires: [{extension: shell}, {extension: kubernetes, as: k8s}]
  prompt: {inline: Fix it.}
  verify:
"""


class LanguageServer:
    """Client of a language server on stdio, as an editor is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last = 0
        program = npm_package("yaml-language-server", VERSION) / "bin" / "yaml-language-server"
        # Without the proxy it would download its catalog of schemas, which the configuration turns off as well.
        env = os.environ | {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        self._process = subprocess.Popen(
            ["node", str(program), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        capabilities = {
            "workspace": {"configuration": True},
            "textDocument": {"completion": {"completionItem": {"documentationFormat": ["markdown"]}}},
        }
        self.call("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities})
        self.notify("initialized", {})

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def call(self, method: str, params: object) -> Any:
        """Return the result of a request."""
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        return self._until(lambda message: message.get("id") == self._last and "method" not in message)["result"]

    def notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def _open(self, text: str) -> str:
        """Open a new file; return its URI."""
        self._last += 1
        uri = (self._folder / f"task{self._last}.yaml").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def diagnostics(self, text: str) -> list[tuple[int, int, str]]:
        """Open a file; return line and column, from 1, and the text of each problem."""
        uri = self._open(text)
        published = self._until(
            lambda message: (
                message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri
            )
        )
        starts = [(each["range"]["start"], each["message"]) for each in published["params"]["diagnostics"]]
        return sorted((start["line"] + 1, start["character"] + 1, message) for start, message in starts)

    def completions(self, text: str) -> set[str]:
        """Return the names that are proposed at the end of a text."""
        uri = self._open(text)
        lines = text.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        found = self.call("textDocument/completion", {"textDocument": {"uri": uri}, "position": position})
        return {each["label"] for each in found["items"]}

    def _send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _until(self, matches: Any) -> dict[str, Any]:
        """Read messages and respond to requests, until one matches."""
        assert self._process.stdout
        while True:
            length = 0
            while line := self._process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            message: dict[str, Any] = json.loads(self._process.stdout.read(length))
            if matches(message):
                return message
            if "method" in message and "id" in message:
                offline = {"schemaStore": {"enable": False}, "validate": True, "completion": True}
                items = message["params"].get("items", []) if isinstance(message.get("params"), dict) else []
                settings = [offline if each.get("section") == "yaml" else {} for each in items]
                self._send({"id": message["id"], "result": settings})


# A step, the columns of its problems in line 9, and the text of each.
MISTAKES = [
    ("shell.run: {cwd: a}", [(7, "expected one of command and script, found none")]),
    ("shell.run: {command: [ls], script: ls}", [(34, "expected one of command and script, found both")]),
    ("shell.run: ls", [(18, "Incorrect type. Expected one of object.")]),
    ("shell.run: {command: [ls], timeout: 5x}", [(43, "expected a duration, such as 30s, 1m30s or 500ms")]),
    ("script: {inline: ls, timeout: -5s}", [(37, "expected a duration, such as 30s, 1m30s or 500ms")]),
    ("shell.run: {command: [ls], expect: {stdout: {contain: a}}}", [(52, "Property contain is not allowed.")]),
    (
        "shell.run: {command: [ls], expect: {exitCode: a}}",
        [(53, "expected a number, or a reference, such as ${NAME.key}")],
    ),
    ("http.request: {url: a, expect: {body: {json: {path: a}}}}", [(52, 'Incorrect type. Expected "array".')]),
    ("http.mock-start: {routes: [{path: /a}]}", [(34, 'Missing property "answer".')]),
    ("kubernetes.wait: {resource: a/b}", [(7, "expected one of for, condition and jsonPath, found none")]),
    ("shell.run: {command: [ls]}\n      script: {inline: ls}", [(7, "Object has more properties than limit of 1.")]),
    ("scrip: {inline: ls}", [(7, "Property scrip is not allowed.")]),
    ("script: {}", [(7, "expected one of inline and file, found none")]),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LanguageServer]:
    assert main(["schema", "-o", str(tmp_path / "task.schema.json")]) == 0
    started = LanguageServer(tmp_path)
    yield started
    started.close()


def test_the_yaml_language_server_checks_and_completes_steps(server: LanguageServer) -> None:
    assert server.diagnostics(TASK + "    - shell.run: {command: [ls], timeout: 5s}\n    - k8s.get: {any: 1}\n") == []
    wrong = "    - shell.rum: {command: [ls]}\n    - shell.run: {command: [ls], timeot: 5s, timeout: 5x}\n"
    found = server.diagnostics(TASK + wrong)
    assert [(line, column) for line, column, _ in found] == [(9, 7), (10, 34), (10, 55)]
    assert "shell.rum" in found[0][2]
    assert "timeot" in found[1][2]
    for step, problems in MISTAKES:
        expected = [(9, column, text) for column, text in problems]
        assert server.diagnostics(f"{TASK}    - {step}\n") == expected, step
    steps = server.completions(TASK + "    - ")
    assert {"shell.run", "http.request", "kubernetes.get", "script", "http", "llmJudge"} <= steps
    arguments = server.completions(TASK + "    - shell.run:\n        ")
    assert {"command", "script", "expect", "timeout", "as"} <= arguments
    checks = "    - shell.run:\n        command: [ls]\n        expect:\n          stdout:\n            "
    assert {"contains", "matches", "jsonSchema"} <= server.completions(TASK + checks)
    assert {"ok", "fail"} <= server.completions(TASK + "    - shell.run:\n        command: [ls]\n        onTimeout: ")
    assert {"taskSets", "extensions", "agent"} <= server.completions(
        TASK.partition("\n")[0] + "\nkind: Eval\nconfig:\n  "
    )
