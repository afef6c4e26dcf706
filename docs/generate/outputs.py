"""What the operations put out, by name. A test runs every example and finds each output here.

An output whose description begins with "where" is not always there.
"""

from __future__ import annotations

from .http_outputs import HTTP
from .kubernetes_outputs import KUBERNETES

COMMAND = {
    "exitCode": "where the command ended by itself: its exit code",
    "signal": "where a signal ended it: the signal's name, such as `SIGTERM`",
    "stdout": "what it wrote; of a long text the beginning and the end",
    "stderr": "the same for standard error",
    "stdoutFile": "where `stdout` does not say it all: the file that does",
    "stderrFile": "the same for standard error",
    "duration": "how long it ran, such as `1.52s`",
    "NAME": "where `capture` has this name: what was captured",
}
PROCESS = {
    "name": "the process's name",
    "pid": "its process id",
    "logFile": "the file that all it writes goes to",
    "port": "where a port was chosen for it: the number",
}
FILE = {
    "path": "the absolute path",
    "size": "in bytes",
    "sha256": "SHA-256 of the content, in hex",
}

OUTPUTS: dict[str, dict[str, dict[str, str]]] = {
    "ext-http": HTTP,
    "ext-kubernetes": KUBERNETES,
    "ext-shell": {
        "run": COMMAND | {"attempts": "where `retry` is given: how often it was run"},
        "start": PROCESS,
        "wait": PROCESS | COMMAND | {"running": "whether it still runs"},
        "stop": PROCESS | COMMAND | {"running": "whether it still runs"},
        "write-file": FILE,
        "read-file": FILE
        | {
            "content": "the text; with `encoding: base64` the bytes",
            "encoding": "`utf-8` or `base64`",
            "mode": "permissions, such as `0644`",
        },
        "assert-file": {
            "path": "the absolute path",
            "exists": "`true` or `false`",
            "type": "where it exists: `file`, `directory` or another kind",
            "size": "where it exists: in bytes",
            "mode": "where it exists: permissions, such as `0644`",
            "sha256": "where `sha256` is given: SHA-256 of the content, in hex",
            "attempts": "how often it was looked at",
        },
        "copy": {
            "path": "the absolute path of the copy",
            "files": "how many files were copied",
            "size": "bytes, all together",
        },
        "make-temp": {"path": "the absolute path", "name": "its last part"},
        "remove": {"removed": "how many entries were removed"},
        "assert-agent": {"output": "where the host sends it: what the agent said"},
    },
}
