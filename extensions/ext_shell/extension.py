"""The extension: its operations, in the order in which users read about them."""

from __future__ import annotations

import ext_sdk

from . import agent, files
from .config import ShellConfig
from .run import run
from .start import start
from .stop import stop
from .wait import wait

COMMANDS = (
    ext_sdk.Operation("run", run, {"command": ["echo", "hi"], "expect": {"stdout": "hi"}}),
    ext_sdk.Operation(
        "start", start, {"name": "web", "script": "echo listening; sleep 3600", "ready": {"logLine": "^listening"}}
    ),
    ext_sdk.Operation("wait", wait, {"name": "web", "for": {"logLine": "^listening"}}),
    ext_sdk.Operation("stop", stop, {"name": "web", "expect": {"signal": "SIGTERM"}}),
)

extension = ext_sdk.Extension(
    "shell",
    version=ext_sdk.__version__,
    description="Run programs and scripts, keep processes in the background, and look at files and answers",
    config=ShellConfig,
)

for operation in (*COMMANDS, *files.OPERATIONS, *agent.OPERATIONS):
    extension.add(operation)
