"""Agents: what gets the prompt of a task. `Agent` is their interface; here are commands, agent files and none.

`agent_of` makes an agent of the value of `--agent`, and `agent_of_eval` of `config.agent` of an eval. Agents that use a
protocol are in `acp_agent` and `kaiak_agent`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ext_sdk.core.text import cut, suggest

from .commands import AgentResult, Commands, excerpt, shell
from .files import AgentFile, HostError, read_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ext_sdk.polling import Deadline

    from .files import AgentRef, McpServer

TASK_FOLDER = "EXT_HOST_TASK_FOLDER"  # variable of agents: folder of the task's file
PROMPT = "EXT_HOST_PROMPT"  # variable of agents that are commands
_ACTION = re.compile(r"(?P<before>\s*)\{\{(?P<left>-\s)?\s*\.(?P<name>\w+)\s*(?P<right>\s-)?\}\}(?P<after>\s*)")
_VALUES = ("Prompt", "McpServerFileArgs", "AllowedToolArgs")  # of commands.runPrompt


class Agent(Protocol):
    """Agent. One object runs all tasks of an eval, several at a time if they are parallel.

    Attributes:
        name: for reports.
    """

    @property
    def name(self) -> str: ...

    def check(self) -> str:
        """Return the reason why it cannot run, such as a missing program; "" if nothing is known to prevent it."""

    def run(
        self,
        prompt: str,
        workdir: Path,
        environ: Mapping[str, str],
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> AgentResult:
        """Run the agent to its end, and return its result. Raises HostError if it cannot be started.

        Args:
            workdir: its working directory, empty; the caller deletes it.
            environ: its complete environment; EXT_HOST_TASK_FOLDER is the folder of the task.
            on_output: receives text for people while the agent works.
            deadline: the agent is to end when `deadline.expired`, which is also set by a cancellation
                (`deadline.stopped`). It returns a result then, too, with the output so far and an error.
        """


class NoAgent:
    """No agent: the task is verified without any work, as a check of the task itself."""

    name = "none"

    def check(self) -> str:
        return ""

    def run(
        self,
        prompt: str,
        workdir: Path,
        environ: Mapping[str, str],
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> AgentResult:
        return AgentResult("")


class CommandAgent:
    """Shell command that gets the prompt as $1, as the variable EXT_HOST_PROMPT and as its input.

    Args:
        command: for `$SHELL -c`.
    """

    def __init__(self, command: str) -> None:
        self.name = excerpt(command, 80)
        self._command = command

    def check(self) -> str:
        if ".Prompt" in self._command and "{{" in self._command:
            return 'the agent is a shell command, which gets the prompt as "$1": write this in place of {{ .Prompt }}'
        return _check_shell()

    def run(
        self,
        prompt: str,
        workdir: Path,
        environ: Mapping[str, str],
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> AgentResult:
        argv = [shell(), "-c", self._command, shell(), prompt]
        environ = {**environ, PROMPT: prompt}
        return run_agent(argv, workdir, environ, on_output, deadline, stdin=prompt.encode())


class FileAgent:
    """Agent file with `commands.runPrompt`, whose templates are filled in as in mcpchecker.

    Args:
        file: the agent.
        servers: MCP servers of the eval. The agent connects to them itself: there is no proxy that records calls.

    Attributes:
        file: as given.
    """

    def __init__(self, file: AgentFile, servers: Sequence[McpServer] = ()) -> None:
        self.name = file.name or file.path.name
        self.file = file
        self._servers = servers

    def check(self) -> str:
        template = self.file.run_prompt
        rest = _ACTION.sub("", template)
        if "{{" in rest:
            return (
                f"{self.file.path}: commands.runPrompt: expected {{{{ .Prompt }}}} or another name in braces, found "
                f"{cut(rest[rest.index('{{') :], 40)!r}; ext-host has no other actions of Go's templates"
            )
        for name in (found["name"] for found in _ACTION.finditer(template)):
            if name not in _VALUES:
                text = f"commands.runPrompt: the template has no value {{{{ .{name} }}}}; {suggest(name, _VALUES)}"
                return str(self.file.document.problem(("commands", "runPrompt"), text))
        if self._servers and "AllowedToolArgs" in {found["name"] for found in _ACTION.finditer(template)}:
            return (
                f"{self.file.path}: commands.runPrompt: {{{{ .AllowedToolArgs }}}} is not supported: ext-host does "
                "not list the tools of MCP servers; write the names into runPrompt"
            )
        return _check_shell()

    def run(
        self,
        prompt: str,
        workdir: Path,
        environ: Mapping[str, str],
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> AgentResult:
        with tempfile.TemporaryDirectory(prefix="ext-host-mcp-") as folder:
            servers = []
            for number, server in enumerate(self._servers):
                path = Path(folder, f"{number}.json")
                path.write_text(json.dumps({"mcpServers": {server.name: server.spec}}))
                values = {"File": str(path), "URL": str(server.spec.get("url", ""))}
                servers.append(_fill(self.file.mcp_server_template, values))
            values = {"Prompt": prompt, "McpServerFileArgs": " ".join(servers), "AllowedToolArgs": ""}
            argv = [shell(), "-c", _fill(self.file.run_prompt, values)]
            return run_agent(argv, workdir, environ, on_output, deadline)


def run_agent(
    argv: Sequence[str],
    workdir: Path,
    environ: Mapping[str, str],
    on_output: Callable[[str], object],
    deadline: Deadline,
    *,
    stdin: bytes = b"",
) -> AgentResult:
    """Run a command as the agent; its output is the result. Raises HostError if it cannot be started."""
    commands = Commands()
    end = commands.run(argv, env=environ, folder=workdir, deadline=deadline, stdin=stdin, on_output=on_output)
    error = f"the agent failed: {end.failure}" if end.failure else ""
    return AgentResult(end.output.text, error, close=commands.close)


def agent_of(text: str, servers: Sequence[McpServer] = (), permissions: str = "") -> Agent:
    """Return the agent that the value of `--agent` names.

    Args:
        text: `none`; `file:PATH` for an agent file; `acp:COMMAND`, `kaiak:COMMAND` or `kaiak:unix:PATH` for an agent
            with a protocol; else a shell command.
        servers: MCP servers for the agent.
        permissions: of agents with a protocol, see AcpAgent; "" for mcp if there are MCP servers, else allow.

    Raises:
        HostError: it is not valid.
        FileError: the agent file cannot be read.
    """
    kind, _, rest = text.partition(":")
    if text.strip() == "none":
        return NoAgent()
    if kind == "file":
        return _agent_of_file(read_agent(Path(rest).expanduser()), servers, permissions)
    if kind not in {"acp", "kaiak"}:
        if not text.strip():
            raise HostError("--agent: expected a command, file:PATH or none, found an empty text")
        if Path(text).is_file() and not shutil.which(text):
            hint = "make it executable" if "/" in text else f"make it executable and use ./{text}"
            raise HostError(
                f"--agent: {text} is not a command; for an agent file, use file:{text}; for a program, {hint}"
            )
        return CommandAgent(text)
    try:
        command = shlex.split(rest)
    except ValueError as error:
        raise HostError(f"--agent: expected {kind}:COMMAND, found {text!r}: {error}") from None
    if not command:
        raise HostError(f"--agent: expected {kind}:COMMAND, found {text!r}")
    if kind == "acp":
        from .acp_agent import AcpAgent

        return AcpAgent(command, servers=servers, permissions=permissions or _default(servers))
    from .kaiak_agent import KaiakAgent

    if rest.startswith("unix:"):
        return KaiakAgent(address=rest.removeprefix("unix:"), permissions=permissions or "allow")
    return KaiakAgent(command=command, permissions=permissions or "allow")


def agent_of_eval(ref: AgentRef, servers: Sequence[McpServer], permissions: str = "") -> Agent:
    """Return the agent of an eval. Raises HostError for a builtin one, FileError."""
    if ref.type != "file" or ref.path is None:
        raise HostError(f"the agent {ref.type} is run by mcpchecker only; choose another with --agent")
    return _agent_of_file(read_agent(ref.path), servers, permissions)


def _agent_of_file(file: AgentFile, servers: Sequence[McpServer], permissions: str) -> Agent:
    if file.acp:  # before the others, as in mcpchecker
        from .acp_agent import AcpAgent

        return AcpAgent(file.acp, servers=servers, permissions=permissions or _default(servers), file=file)
    if not file.run_prompt:
        which = f"builtin {file.builtin}"
        raise HostError(f"{file.path}: the agent ({which}) is run by mcpchecker only; choose another with --agent")
    return FileAgent(file, servers)


def _default(servers: Sequence[McpServer]) -> str:
    """Return the permissions of an ACP agent: those of mcpchecker, which always has MCP servers."""
    return "mcp" if servers else "allow"


def _check_shell() -> str:
    program = shell()
    return "" if shutil.which(program) else f"cannot run the shell {program!r}: no such program; set SHELL"


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Fill in `{{ .Name }}`; a dash in the braces removes the white space next to them."""
    return _ACTION.sub(
        lambda found: (
            ("" if found["left"] else found["before"])
            + values.get(found["name"], "")
            + ("" if found["right"] else found["after"])
        ),
        template,
    )
