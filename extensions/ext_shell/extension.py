"""The extension with its operations, in the order of the reference page."""

from __future__ import annotations

import ext_sdk
from ext_shell.operations.assertions import assert_agent, assert_changes, assert_file, snapshot
from ext_shell.operations.files import copy, make_temp, read_file, remove, write_file
from ext_shell.operations.processes import start, stop, wait
from ext_shell.operations.run import run

from .config import ShellConfig

COMMAND = {
    "exitCode?": "exit code, if the command exited by itself",
    "signal?": "name of the signal, such as `SIGTERM`, if a signal ended the command",
    "stdout": "standard output; of a long text the beginning and the end",
    "stderr": "standard error; of a long text the beginning and the end",
    "stdoutFile?": "path of a file with the complete output, if `stdout` is shortened",
    "stderrFile?": "path of a file with the complete output, if `stderr` is shortened",
    "duration": "run time, such as `1.52s`",
    "NAME?": "captured value, if `capture` has this name",
}
PROCESS = {
    "name": "name of the process",
    "pid": "process id",
    "logFile": "path of the file with all output of the process",
    "port?": "port number, if `start` chose one",
}
FILE = {
    "path": "absolute path",
    "size": "size in bytes",
    "sha256": "SHA-256 of the content, in hex",
}

OPERATIONS = (
    ext_sdk.Operation(
        "run",
        run,
        {"command": ["echo", "hi"], "expect": {"stdout": "hi"}},
        outputs=(
            COMMAND
            | {
                "attempts?": "number of runs, if `retry` is given",
                "done?": "`false` if the time was up before the result was as expected, if `retry` is given",
            }
        ),
        title="Run command",
    ),
    ext_sdk.Operation(
        "start",
        start,
        {"name": "web", "script": "echo listening; sleep 3600", "ready": {"logLine": "^listening"}},
        outputs=PROCESS | {"done": "`false` if the time was up before it was ready; it is running then"},
        title="Start process",
    ),
    ext_sdk.Operation(
        "wait",
        wait,
        {"name": "web", "for": {"logLine": "^listening"}},
        outputs=(
            PROCESS
            | {name if name.endswith("?") else f"{name}?": text for name, text in COMMAND.items()}
            | {
                "running": "`true` if the process is still running",
                "done": "`false` if the time was up before the end, or before the conditions were met",
            }
        ),
        title="Wait for process",
        read_only=True,
        open_world=False,
        needs="start",
    ),
    ext_sdk.Operation(
        "stop",
        stop,
        {"name": "web", "expect": {"signal": "SIGTERM"}},
        outputs=PROCESS | COMMAND | {"running": "`true` if the process is still running"},
        title="Stop process",
        destructive=False,
        open_world=False,
        needs="start",
    ),
    ext_sdk.Operation(
        "write-file",
        write_file,
        {"path": "notes/todo.txt", "content": "buy milk\n"},
        outputs=FILE,
        idempotent=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "read-file",
        read_file,
        {"path": "notes/todo.txt"},
        outputs=(
            FILE
            | {
                "content": "the text; with `encoding: base64` the bytes",
                "encoding": "`utf-8` or `base64`",
                "mode": "permissions, such as `0644`",
            }
        ),
        read_only=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "assert-file",
        assert_file,
        {"path": "notes/todo.txt", "content": {"contains": "milk"}, "size": 9},
        outputs={
            "path?": "absolute path, if `path` is given",
            "exists?": "`true` or `false`, if `path` is given",
            "matches?": "paths that match `glob`, one per line",
            "count?": "number of paths that match `glob`",
            "type?": "`file`, `directory`, `symlink` or another kind of the entry itself, if the path exists",
            "size?": "size in bytes, if the path exists",
            "mode?": "permissions, such as `0644`, if the path exists",
            "sha256?": "SHA-256 of the content in hex, if `sha256` is given",
            "owner?": "name of the user that owns it, if `owner` is given",
            "group?": "name of its group, if `group` is given",
            "mtime?": "time of the last modification, such as `2026-01-31T12:00:00Z`, if `mtime` is given",
            "target?": "target of the symbolic link, if `target` is given",
            "attempts": "number of checks",
            "done": "`true` if all checks passed",
        },
        title="Check file",
        read_only=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "snapshot",
        snapshot,
        {"path": "notes", "exclude": ["**/.git"]},
        outputs={"name": "name of the snapshot", "path": "absolute path of the folder", "files": "number of files"},
        title="Remember state of folder",
        read_only=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "assert-changes",
        assert_changes,
        {"only": ["todo.txt", "done/**"]},
        outputs={
            "added": "paths that are new, one per line",
            "changed": "paths of files with another content, permissions, owner or link target, one per line",
            "removed": "paths that no longer exist, one per line",
            "count": "number of all these paths",
        },
        title="Check changes of folder",
        read_only=True,
        open_world=False,
        needs="snapshot",
    ),
    ext_sdk.Operation(
        "copy",
        copy,
        {"source": "notes", "destination": "backup"},
        outputs={
            "path": "absolute path of the copy",
            "files": "number of copied files",
            "size": "total size in bytes",
        },
        title="Copy files",
        idempotent=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "make-temp",
        make_temp,
        {"prefix": "build-"},
        outputs={"path": "absolute path", "name": "last component of the path"},
        title="Create temporary file or folder",
        destructive=False,
        open_world=False,
    ),
    ext_sdk.Operation(
        "remove",
        remove,
        {"path": "backup", "recursive": True},
        outputs={"removed": "number of removed entries"},
        title="Remove files",
        idempotent=True,
        open_world=False,
    ),
    ext_sdk.Operation(
        "assert-agent",
        assert_agent,
        {"output": {"contains": "created", "ignoreCase": True}},
        outputs={
            "output?": "output of the agent, if the host sends it",
            "NAME?": "captured value, if `capture` has this name",
        },
        title="Check output of agent",
        read_only=True,
        open_world=False,
        needs="agent",
    ),
)

extension = ext_sdk.Extension(
    "shell",
    version=ext_sdk.__version__,
    description="Run programs and scripts, manage background processes, and check files and agent answers",
    config=ShellConfig,
)

for operation in OPERATIONS:
    extension.add(operation)
