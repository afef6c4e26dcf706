"""The extension: its operations, in the order in which users read about them."""

from __future__ import annotations

import ext_sdk

from .agent import assert_agent
from .config import ShellConfig
from .files.assert_file import assert_file
from .files.copy import copy
from .files.make_temp import make_temp
from .files.read_file import read_file
from .files.remove import remove
from .files.write_file import write_file
from .run import run
from .start import start
from .stop import stop
from .wait import wait

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
    ext_sdk.Operation("copy", copy, {"source": "notes", "destination": "backup"}),
    ext_sdk.Operation("make-temp", make_temp, {"prefix": "build-"}),
    ext_sdk.Operation("remove", remove, {"path": "backup", "recursive": True}),
    ext_sdk.Operation("assert-agent", assert_agent, {"output": {"contains": "created", "ignoreCase": True}}),
)

extension = ext_sdk.Extension(
    "shell",
    version=ext_sdk.__version__,
    description="Run programs and scripts, keep processes in the background, and look at files and answers",
    config=ShellConfig,
)

for operation in OPERATIONS:
    extension.add(operation)
