"""From the start of an extension to its manifest, beside the start of Python itself, or of another extension."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING

from tests.bench.errors import NotHere
from tests.bench.process_times import memory_at_line, seconds_to_exit, seconds_to_line
from tests.bench.timed_host import Talk
from tests.bench.traffic import (
    CONFIGURED,
    HTTP_MANIFEST,
    INITIALIZE,
    KUBERNETES_MANIFEST,
    MANIFEST,
    MCP_INITIALIZE,
    MCP_INITIALIZED,
    PI_REGISTER,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.bench.harness import Bench, Series

# Says as much as a manifest is, and so has to wait with it.
SHELL_CONFIG = {"maxOperationTime": "28s", "secrets": ["API_TOKEN"], "passEnv": ["LANG"], "env": {"A": "b"}}
HTTP_CONFIG = {"maxOperationTime": "28s", "baseUrl": "http://127.0.0.1", "allowHosts": ["*.test", "[::1]:80"]}
AFTER_JSON = "import json, os; os.read(0, 1); os.write(1, b'.' * 40_000)"


def measure(bench: Bench) -> Series:
    """Milliseconds and MiB: "ext-shell ms", "ext-http ms" and others, "import json ms", "pass ms", "ext-shell MiB".

    "ext-shell configured ms" and the like are with a configuration, "ext-shell mcp ms" over MCP, "ext-shell pi ms" to
    `register` of Pi.
    """
    python = bench.programs.python
    kubeconfig = bench.directory / "some.kubeconfig"
    kubeconfig.touch()
    kubernetes_config = {"kubeconfig": str(kubeconfig), "namespace": "web", "watch": False}

    def to_manifest(program: str, begin: bytes, config: object = None) -> Mapping[str, float]:
        request = INITIALIZE if config is None else CONFIGURED % json.dumps(config).encode()
        return {"ms": seconds_to_line(bench, [program], request, begin) * 1e3}

    def to_mcp() -> Mapping[str, float]:
        command = [bench.programs.shell, "serve", "--protocol", "mcp"]
        return {"ms": seconds_to_line(bench, command, MCP_INITIALIZE, MCP_INITIALIZED) * 1e3}

    def to_register() -> Mapping[str, float]:
        command = [bench.programs.shell, "serve", "--protocol", "pi"]
        return {"ms": seconds_to_line(bench, command, b"", PI_REGISTER) * 1e3}

    def to_end(code: str) -> Mapping[str, float]:
        return {"ms": seconds_to_exit(bench, [python, "-c", code]) * 1e3}

    times = bench.take_turns(
        {
            "ext-shell": lambda: to_manifest(bench.programs.shell, MANIFEST),
            "ext-shell mcp": to_mcp,
            "ext-shell pi": to_register,
            "ext-http": lambda: to_manifest(bench.programs.http, HTTP_MANIFEST),
            "ext-kubernetes": lambda: to_manifest(bench.programs.kubernetes, KUBERNETES_MANIFEST),
            "ext-shell configured": lambda: to_manifest(bench.programs.shell, MANIFEST, SHELL_CONFIG),
            "ext-http configured": lambda: to_manifest(bench.programs.http, HTTP_MANIFEST, HTTP_CONFIG),
            "ext-kubernetes configured": lambda: to_manifest(
                bench.programs.kubernetes, KUBERNETES_MANIFEST, kubernetes_config
            ),
            "import json": lambda: to_end("import json"),
            "pass": lambda: to_end("pass"),
        },
        times=bench.scale.starts,
    )
    memory = bench.take_turns(
        {
            "ext-shell": lambda: {"MiB": memory_at_line(bench, [bench.programs.shell], INITIALIZE) / 1024},
            "import json": lambda: {"MiB": memory_at_line(bench, [python, "-c", AFTER_JSON], INITIALIZE) / 1024},
        }
    )
    return {**times, **memory}


def measure_executable(bench: Bench) -> Series:
    """Milliseconds to the manifest, by the executable from its second start on: "executable ms"; "ext-shell ms".

    Raises NotHere if GEVALS_EXECUTABLE does not name it.
    """
    program = os.environ.get("GEVALS_EXECUTABLE")
    if not program:
        raise NotHere("GEVALS_EXECUTABLE does not name an executable; `make executable` builds one")
    commands = {"executable": [os.path.abspath(program), "shell"], "ext-shell": [bench.programs.shell]}  # noqa: PTH100

    def to_manifest(command: Sequence[str]) -> Mapping[str, float]:
        return {"ms": seconds_to_line(bench, command, INITIALIZE, MANIFEST) * 1e3}

    candidates = {name: partial(to_manifest, command) for name, command in commands.items()}
    return bench.take_turns(candidates, times=bench.scale.starts)


def measure_exit(bench: Bench) -> Series:
    """Milliseconds from the response to shutdown to the end of the process, after an operation: "ext-shell ms".

    Beside: "import json ms", a process from its start to its end.
    """
    command = [bench.programs.python, "-c", "import json"]

    def after_shutdown() -> Mapping[str, float]:
        with Talk(bench, [bench.programs.shell], config=SHELL_CONFIG, warm_up=("run", {"command": ["true"]})) as talk:
            return {"ms": talk.end().seconds * 1e3}

    return bench.take_turns(
        {"ext-shell": after_shutdown, "import json": lambda: {"ms": seconds_to_exit(bench, command) * 1e3}},
        times=bench.scale.first_calls,
    )


def measure_help(bench: Bench) -> Series:
    """Milliseconds to the end of `ext-recorder --help`, "ext-recorder ms"; "import json ms"."""
    json = [bench.programs.python, "-c", "import json"]

    def to_end(command: Sequence[str]) -> Mapping[str, float]:
        return {"ms": seconds_to_exit(bench, command) * 1e3}

    return bench.take_turns(
        {"ext-recorder": lambda: to_end([bench.programs.recorder, "--help"]), "import json": lambda: to_end(json)},
        times=bench.scale.starts,
    )
