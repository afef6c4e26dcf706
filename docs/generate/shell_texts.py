"""Causes of failures and further examples of ext-shell, for its reference page. Tests run all examples."""

from __future__ import annotations

NOT_FOUND = "the program is not found, or cannot be executed"
NO_PROCESS = "no process has this name in the workdir and scope"
OUTSIDE = "a path leads outside of the workdir"

FAILURES = {
    "run": (
        NOT_FOUND,
        "the exit code is not 0, or the result does not match `expect`",
        "the command runs longer than `timeout`, unless `onTimeout` is ok, or exceeds one of `limits`",
        "a captured value is not found, and has no default",
    ),
    "start": (
        NOT_FOUND,
        "a process of this name is already running",
        "the process exits before it is ready, or is not ready before `timeout`, unless `onTimeout` is ok",
        "the port is in use, or the file of `ready` already exists",
    ),
    "wait": (
        NO_PROCESS,
        "the process is still running at `timeout`, unless `onTimeout` is ok",
        "the exit code is not 0, or the result does not match `expect`",
    ),
    "stop": (
        f"{NO_PROCESS}, unless `ignoreMissing` is given",
        "the process does not end",
        "the result does not match `expect`",
    ),
    "write-file": (
        OUTSIDE,
        "the file exists, and `overwrite` is false",
        "the directory is missing, and `parents` is false",
    ),
    "read-file": (
        OUTSIDE,
        "the file is missing, or is larger than `maxSize`",
        "`encoding` is utf-8, and the content is not",
    ),
    "assert-file": (
        OUTSIDE,
        "a check does not hold, or does not hold before `timeout`",
        "no path matches `glob`, unless `exists` is false or `count` is 0",
    ),
    "snapshot": (
        OUTSIDE,
        "the folder is missing, or has more than 100,000 files that `exclude` does not leave out",
        "a file cannot be read",
    ),
    "assert-changes": (
        "no snapshot has this name in the workdir and scope",
        "something was added, changed or removed that neither `only` nor `required` matches",
        "nothing that a pattern of `required` matches was added, changed or removed",
    ),
    "copy": (
        OUTSIDE,
        "the source is missing",
        "the destination exists, and `overwrite` is false",
        "a symbolic link in a directory leads outside of the workdir",
    ),
    "make-temp": ("the directory cannot be written",),
    "remove": (
        OUTSIDE,
        "nothing exists at the path, unless `ignoreMissing` is given",
        "it is a directory, and `recursive` is false",
    ),
    "assert-agent": (
        "the host does not send the agent's output, as in phases other than verify",
        "the output or the prompt does not match",
        "a captured value is not found, and has no default",
    ),
}

EXAMPLES: dict[str, dict[str, list[tuple[str, dict[str, object]]]]] = {
    "run": {
        "Variables": [
            (
                "run",
                {
                    "command": ["env"],
                    "env": {"PORT": 8080, "DEBUG": True},
                    "expect": {"stdout": {"containsLines": ["PORT=8080", "DEBUG=true"]}},
                },
            )
        ],
        "YAML in the output, a file by its text, and a captured value that is decoded": [
            (
                "run",
                {
                    "script": "printf 'kind: Secret\\ndata: {user: YWRh}\\n' | tee secret.yaml",
                    "expect": {
                        "stdout": {
                            "format": "yaml",
                            "jsonSchema": {"required": ["kind"], "properties": {"kind": {"const": "Secret"}}},
                        },
                        "files": {"secret.yaml": "kind: Secret\ndata: {user: YWRh}"},
                    },
                    "capture": {
                        "user": {"format": "yaml", "json": "$.data.user", "filters": [{"decode": "base64"}]},
                    },
                },
            ),
        ],
        "A script with variables and limits; the output of one step is used in the next": [
            (
                "run",
                {
                    "script": 'for name in ada grace; do\n  echo "$GREETING, $name"\ndone\n',
                    "env": {"GREETING": "hello"},
                    "limits": {"cpu": "10s", "memory": "1GiB", "openFiles": 64},
                    "expect": {"stdout": {"lineCount": 2, "matches": "(?m)^hello, grace$"}},
                    "capture": {"first": {"regex": "hello, (\\w+)"}},
                    "as": "greeting",
                },
            ),
            ("run", {"command": ["echo", "${greeting.first}"], "expect": {"stdout": "ada"}}),
        ],
        "JSON output, checked and captured by JSONPath": [
            (
                "run",
                {
                    "command": ["echo", '{"items": [{"name": "lamp", "price": 12}]}'],
                    "expect": {
                        "stdout": {
                            "json": [
                                {"path": "$.items", "length": 1},
                                {"path": "$.items[0].price", "gte": 10, "lt": 20},
                            ]
                        }
                    },
                    "capture": {"item": {"json": "$.items[0].name"}},
                },
            )
        ],
        "Run again until the command succeeds": [
            (
                "run",
                {
                    "script": "echo x >> attempts\ntest $(wc -l < attempts) -ge 3\n",
                    "retry": {"attempts": 5, "interval": "100ms", "backoff": 2},
                    "timeout": "10s",
                },
            )
        ],
        "Runs that continue in the next step, if a call may not take long enough for all": [
            (
                "run",
                {
                    "command": ["test", "-e", "report.txt"],
                    "retry": {"interval": "100ms"},
                    "timeout": "1s",
                    "onTimeout": "ok",
                },
            ),
            ("run", {"script": "touch report.txt"}),
            (
                "run",
                {"command": ["test", "-e", "report.txt"], "retry": {"interval": "100ms"}, "timeout": "20s"},
            ),
        ],
    },
    "start": {
        "A server on a free port, ready when it answers": [
            (
                "start",
                {
                    "name": "files",
                    "script": 'exec python3 -m http.server --bind 127.0.0.1 "$PORT"',
                    "port": "auto",
                    "ready": {"http": "/"},
                    "as": "files",
                },
            ),
            ("stop", {"name": "files"}),
        ],
        "A server that takes long to start, over two steps": [
            (
                "start",
                {
                    "name": "slow",
                    "script": 'sleep 1\nexec python3 -m http.server --bind 127.0.0.1 "$PORT"',
                    "port": "auto",
                    "ready": {"http": "/"},
                    "timeout": "500ms",
                    "onTimeout": "ok",
                },
            ),
            ("wait", {"name": "slow", "for": "ready", "timeout": "25s"}),
            ("stop", {"name": "slow"}),
        ],
    },
    "assert-file": {
        "JSON in a file, with members of any order": [
            ("write-file", {"path": "settings.json", "json": {"colour": "blue", "sizes": [1, 2]}}),
            (
                "assert-file",
                {"path": "settings.json", "content": {"jsonContains": {"sizes": [2, 1]}, "lists": "unordered"}},
            ),
        ],
        "A symbolic link, and all files that match a pattern": [
            ("run", {"script": "mkdir -p releases/2\necho 2 > releases/2/version\nln -sfn releases/2 current\n"}),
            ("assert-file", {"path": "current", "target": "releases/2"}),
            ("assert-file", {"glob": "releases/*/version", "count": 1, "content": "2", "mtime": {"age": {"lt": "1h"}}}),
        ],
    },
    "assert-agent": {
        "YAML in the answer, and a value of it that later steps use": [
            (
                "assert-agent",
                {
                    "output": {
                        "extract": "first",
                        "format": "yaml",
                        "json": [{"path": "$.created", "length": 1}],
                    },
                    "capture": {"file": {"extract": "first", "format": "yaml", "json": "$.created[0]"}},
                    "as": "answer",
                },
            ),
            ("assert-file", {"path": "${answer.file}", "content": {"contains": "milk"}}),
        ],
    },
    "assert-changes": {
        "Only these files of a folder changed": [
            ("write-file", {"path": "repo/app.py", "content": "print(1)\n", "parents": True}),
            ("write-file", {"path": "repo/README.md", "content": "One.\n"}),
            ("snapshot", {"name": "repo", "path": "repo", "exclude": ["**/__pycache__"]}),
            ("write-file", {"path": "repo/app.py", "content": "print(2)\n"}),
            ("assert-changes", {"since": "repo", "required": ["app.py"], "only": ["tests/**"]}),
        ]
    },
}
