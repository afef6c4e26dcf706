"""The extension with its operations, in the order of the reference page."""

from __future__ import annotations

import ext_sdk
from ext_shell.operations.assertions import assert_agent, assert_changes, assert_file, snapshot
from ext_shell.operations.files import copy, make_temp, read_file, remove, write_file
from ext_shell.operations.processes import start, stop, wait
from ext_shell.operations.run import run

from .config import ShellConfig

OPERATIONS = (
    ext_sdk.Operation("run", run, {"command": ["echo", "hi"], "expect": {"stdout": "hi"}}),
    ext_sdk.Operation(
        "start", start, {"name": "web", "script": "echo listening; sleep 3600", "ready": {"logLine": "^listening"}}
    ),
    ext_sdk.Operation("wait", wait, {"name": "web", "for": {"logLine": "^listening"}}),
    ext_sdk.Operation("stop", stop, {"name": "web", "expect": {"signal": "SIGTERM"}}),
    ext_sdk.Operation("write-file", write_file, {"path": "notes/todo.txt", "content": "buy milk\n"}),
    ext_sdk.Operation("read-file", read_file, {"path": "notes/todo.txt"}),
    ext_sdk.Operation(
        "assert-file", assert_file, {"path": "notes/todo.txt", "content": {"contains": "milk"}, "size": 9}
    ),
    ext_sdk.Operation("snapshot", snapshot, {"path": "notes", "exclude": ["**/.git"]}),
    ext_sdk.Operation("assert-changes", assert_changes, {"only": ["todo.txt", "done/**"]}),
    ext_sdk.Operation("copy", copy, {"source": "notes", "destination": "backup"}),
    ext_sdk.Operation("make-temp", make_temp, {"prefix": "build-"}),
    ext_sdk.Operation("remove", remove, {"path": "backup", "recursive": True}),
    ext_sdk.Operation("assert-agent", assert_agent, {"output": {"contains": "created", "ignoreCase": True}}),
)

extension = ext_sdk.Extension(
    "shell",
    version=ext_sdk.__version__,
    description="Run programs and scripts, manage background processes, and check files and agent answers",
    config=ShellConfig,
)

for operation in OPERATIONS:
    extension.add(operation)
