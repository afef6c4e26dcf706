"""Steps of a task: operations of extensions, `script` and `http`; and what this host does not support.

`parse_steps` checks all steps of a task before the first one runs, as mcpchecker does. A step gives a StepResult; a
step that cannot be performed raises StepError, which ends its phase.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import string
import threading
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol, cast

from ext_sdk.core.text import cut, suggest
from ext_sdk.duration import Duration
from ext_sdk.wire import RpcError

from .commands import excerpt, shell
from .extension_process import ExtensionError
from .files import HostError, Template, TemplateError, key_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ext_sdk.polling import Deadline

    from .commands import CommandEnd, Commands
    from .extension_process import Extension, Extensions
    from .files import Problem, Source, StepSpec, TaskFile

STEP_SECONDS = 300.0  # limit of a script or an http step without `timeout`
CALL_SECONDS = 30.0  # limit of one operation of an extension
LONGEST_BODY = 64 * 1024 * 1024  # bytes of a response to an http step
OWN_STEPS = ("script", "http", "llmJudge")


class StepError(HostError):
    """A step that cannot be performed. The steps after it in its phase are not run.

    Attributes:
        broken: the step or what it uses is broken; False for a check that failed, such as a script's exit code.
    """

    def __init__(self, text: str, *, broken: bool = True) -> None:
        super().__init__(text)
        self.broken = broken


@dataclass(frozen=True)
class StepResult:
    """Result of a step.

    Attributes:
        phase: setup, verify or cleanup.
        name: as in the file: shell.run.
        message: summary for people; of a script its output.
        error: why it failed; "" if it did not.
        outputs: for templates of later steps.
        aborted: the step could not be performed, which ended the phase.
    """

    phase: str
    name: str
    success: bool
    message: str = ""
    error: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    aborted: bool = False


class Random:
    """Values of `{random.id}` and `{random.port}`, which stay the same for one run of a task."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def value(self, name: str) -> str:
        """Return the value of a field. Raises TemplateError."""
        if name not in self._values:
            if name == "id":
                letters = string.ascii_lowercase + string.digits
                self._values[name] = "".join(secrets.choice(letters) for _ in range(8))
            elif name == "port":
                with socket.create_server(("127.0.0.1", 0)) as server:
                    self._values[name] = str(server.getsockname()[1])
            else:
                raise TemplateError(f"expected {{random.id}} or {{random.port}}, found {{random.{name}}}")
        return self._values[name]


@dataclass
class StepContext:
    """Context of a running step.

    Attributes:
        folder: working directory.
        outputs: of previous steps, by EXTENSION.OPERATION.
        agent: prompt and output of the agent; None before it has run, and in cleanup.
        commands: runs the scripts of this trial.
        environ: environment of the host.
        log: receives level and message of what an extension logs.
    """

    folder: Path
    outputs: dict[str, Mapping[str, str]]
    random: Random
    agent: tuple[str, str] | None
    deadline: Deadline
    commands: Commands
    environ: Mapping[str, str]
    log: Callable[[str, str], object] = lambda _level, _message: None

    def sources(self) -> dict[str, Source]:
        """Return the sources of templates."""
        return {"steps": self._output, "random": self.random.value, "agent": self._agent_value}

    def _output(self, name: str) -> str:
        step, _, key = name.rpartition(".")
        if step not in self.outputs:
            near = suggest(step, self.outputs, none="")
            hint = f"; {near}" if near.startswith("did") else ""
            raise TemplateError(f"{{steps.{name}}}: no step {step!r} with outputs has succeeded before this one{hint}")
        if key not in self.outputs[step]:
            raise TemplateError(f"{{steps.{name}}}: {step} has no output {key!r}; {suggest(key, self.outputs[step])}")
        return self.outputs[step][key]

    def _agent_value(self, name: str) -> str:
        if self.agent is None:
            raise TemplateError(f"{{agent.{name}}} is known in verify only, after the agent has run")
        if name not in {"prompt", "output"}:
            raise TemplateError(f"expected {{agent.prompt}} or {{agent.output}}, found {{agent.{name}}}")
        return self.agent[name == "output"]


class Step(Protocol):
    """Parsed step. `output_name` is the name under which templates find its outputs."""

    spec: StepSpec
    output_name: str

    def run(self, context: StepContext) -> StepResult:
        """Perform the step. Raises StepError."""


def fill_prompt(prompt: str, context: StepContext) -> tuple[str, str]:
    """Return the prompt with outputs of setup for `{steps.NAME.OUTPUT}`, and why it has references; "" if it has none.

    As in mcpchecker, a prompt with another brace, or with an unknown output, is returned unchanged.
    """
    if "{steps." not in prompt:
        return prompt, ""
    try:
        template = Template(prompt, ("steps",))
        return (template.fill(context.environ, context.sources()) if context.outputs else prompt), (
            "" if context.outputs else "no step with outputs has succeeded in setup"
        )
    except TemplateError as error:
        return prompt, str(error)


# --- Parsing ---------------------------------------------------------------------------------------------------------


def unsupported(task: TaskFile) -> Iterator[Problem]:
    """Yield the parts of a task that mcpchecker runs, and this host does not."""
    servers = {each.alias: each.name for each in task.requires if each.kind == "mcpServer"}
    for step in (step for steps in task.steps.values() for step in steps):
        alias = step.name.partition(".")[0]
        text = ""
        if step.name == "llmJudge":
            text = "ext-host runs no model; check the output by steps, such as shell.assert-agent"
        elif "." in step.name and alias in servers:
            text = f"ext-host does not call tools of MCP servers ({servers[alias]})"
        if text:
            yield task.document.problem(step.at, f"{shown(step.at)}: {text}", key=True, task=task.name)


def parse_steps(task: TaskFile, extensions: Extensions, deadline: Deadline) -> dict[str, list[Step]]:
    """Return the steps of each phase. Starts the extensions that they need.

    Raises:
        HostError: steps are not valid, or an extension cannot be started; it lists all problems with their places.
    """
    aliases = {each.alias: each.name for each in task.requires if each.kind == "extension"}
    problems = list(_requirement_problems(task, extensions))
    parsed: dict[str, list[Step]] = {}
    for phase, specs in task.steps.items():
        parsed[phase] = []
        for spec in specs:
            try:
                parsed[phase].append(_parse(spec, aliases, extensions, deadline))
            except ExtensionError:
                raise
            except HostError as error:
                problems.append(task.document.problem(spec.at, f"{shown(spec.at)}: {error}", key=True))
    if problems:
        raise HostError("\n".join(dict.fromkeys(str(problem) for problem in problems)))
    return parsed


def _requirement_problems(task: TaskFile, extensions: Extensions) -> Iterator[Problem]:
    seen: set[str] = set()
    for each in task.requires:
        text = ""
        if each.alias in seen:
            text = f"the name {each.alias!r} is used twice; set `as`"
        elif "." in each.alias:
            text = f"expected a name without dots, found {each.alias!r}"
        else:
            text = extensions.missing(each)
        seen.add(each.alias)
        if text:
            yield task.document.problem(each.at, f"{shown(each.at)}: {text}")


def _parse(spec: StepSpec, aliases: Mapping[str, str], extensions: Extensions, deadline: Deadline) -> Step:
    if not spec.name:
        found = ", ".join(spec.names) or "none"
        raise HostError(f"expected one member that names the step, besides id, found {found}")
    alias, dot, operation = spec.name.partition(".")
    if dot:
        if alias not in aliases:
            known = suggest(alias, aliases, none="the task requires no extension")
            raise HostError(f"the task requires no extension under the name {alias!r}; {known}")
        return ExtensionStep(spec, extensions.get(aliases[alias], deadline), operation)
    if spec.name == "script":
        return ScriptStep(spec)
    if spec.name == "http":
        return HttpStep(spec)
    names = [*OWN_STEPS, *(f"{alias}.OPERATION" for alias in aliases)]
    raise HostError(f"unknown step {spec.name!r}; {suggest(spec.name, names)}")


class _Args:
    """Members of a step's arguments."""

    def __init__(self, args: object, name: str = "") -> None:
        if args is not None and not isinstance(args, dict):
            raise HostError(f"{name or 'arguments'}: expected an object, found {cut(json.dumps(args), 60)}")
        self.members: dict[str, object] = args or {}

    def get(self, name: str) -> object:
        return self.members.get(key_of(self.members, name) or "")

    def text(self, name: str) -> str:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            quote = "" if isinstance(value, (dict, list)) else "; put it into quotes"
            raise HostError(f"{name}: expected a string, found {cut(json.dumps(value), 60)}{quote}")
        return value or ""

    def texts(self, name: str) -> dict[str, str]:
        values = _Args(self.get(name), name)
        return {key: values.text(key) for key in values.members}

    def template(self, name: str, sources: tuple[str, ...]) -> Template:
        return _template(name, self.text(name), sources)

    def timeout(self) -> float:
        text = self.text("timeout")
        try:
            seconds = Duration.parse(text).seconds if text else STEP_SECONDS
        except ValueError as error:
            raise HostError(f"timeout: {error}") from None
        if seconds <= 0:
            raise HostError(f"timeout: expected a duration over 0, found {text!r}")
        return seconds


def _template(name: str, text: str, sources: tuple[str, ...]) -> Template:
    try:
        return Template(text, sources)
    except TemplateError as error:
        raise HostError(f"{name}: {error}") from None


# --- Operations of extensions ----------------------------------------------------------------------------------------


class ExtensionStep:
    """Operation of an extension. Raises HostError if its manifest does not allow the arguments."""

    def __init__(self, spec: StepSpec, extension: Extension, operation: str) -> None:
        self.spec = spec
        self.output_name = f"{extension.name}.{operation}"  # not the alias: as in mcpchecker
        self._extension = extension
        self._operation = operation
        if operation not in extension.operations:
            raise HostError(
                f"extension {extension.name} has no operation {operation!r}; {suggest(operation, extension.operations)}"
            )
        if problem := extension.refusal(operation, _Args(spec.args).members):
            raise HostError(problem)

    def run(self, context: StepContext) -> StepResult:
        agent = context.agent
        params = {
            "operation": self._operation,
            "args": self.spec.args,
            "context": {
                "workdir": str(context.folder),
                "phase": self.spec.phase,
                **({"agent": {"prompt": agent[0], "output": agent[1]}} if agent else {}),
            },
        }
        try:
            found = self._extension.call("execute", params, context.deadline.limit(CALL_SECONDS), context.log)
        except RpcError as error:
            raise StepError(f"{error} (error {error.code} of the protocol)") from None
        except ExtensionError as error:
            raise StepError(str(error)) from None
        if not isinstance(found, dict) or not isinstance(found.get("success"), bool):
            raise StepError(f"expected a result with `success`, found {excerpt(repr(found), 80)}")
        outputs = found.get("outputs")
        return StepResult(
            self.spec.phase,
            self.spec.name,
            success=found["success"],
            message=str(found.get("message") or ""),
            error=str(found.get("error") or ""),
            outputs={str(key): str(value) for key, value in outputs.items()} if isinstance(outputs, dict) else {},
        )


# --- Scripts ---------------------------------------------------------------------------------------------------------


class ScriptStep:
    """Script of a file, or inline: with a `#!` line it is run as a file, else it is the input of $SHELL."""

    def __init__(self, spec: StepSpec) -> None:
        self.spec = spec
        self.output_name = ""
        args = _Args(spec.args)
        self._inline, self._file = args.text("inline"), args.text("file")
        if bool(self._inline) == bool(self._file):
            raise HostError(f"expected one of file and inline, found {'both' if self._file else 'none'}")
        self._env = {
            name: _template(f"env.{name}", text, ("steps", "random", "agent"))
            for name, text in args.texts("env").items()
        }
        self._seconds = args.timeout()
        self._continues = args.get("continueOnError") is True

    def run(self, context: StepContext) -> StepResult:
        try:
            end = self._execute(context)
        except (HostError, OSError) as error:
            return self._failed(str(error), "", broken=True)
        if end.failure:
            limit = f" (timeout {self._seconds:g} s)" if end.reason else ""
            return self._failed(f"script failed: {end.failure}{limit}", end.output.text, broken=False)
        return StepResult(self.spec.phase, self.spec.name, success=True, message=end.output.text)

    def _failed(self, error: str, output: str, *, broken: bool) -> StepResult:
        text = error + (f"\noutput: {output}" if output.strip() else "")
        if not self._continues:
            raise StepError(text, broken=broken)
        return StepResult(self.spec.phase, self.spec.name, success=False, message=output, error=text)

    def _execute(self, context: StepContext) -> CommandEnd:
        try:
            own = {name: each.fill(context.environ, context.sources()) for name, each in self._env.items()}
        except TemplateError as error:
            raise HostError(f"env: {error}") from None
        run = context.commands.run
        env, deadline = {**context.environ, **own}, context.deadline.limit(self._seconds)
        if self._file:
            path = context.folder / self._file
            _make_executable(path)
            return run([str(path)], env=env, folder=path.parent, deadline=deadline)
        if not self._inline.strip().startswith("#!"):
            return run([shell()], env=env, folder=context.folder, deadline=deadline, stdin=self._inline.encode())
        path = context.folder / f".ext-host-step-{secrets.token_hex(6)}.sh"
        try:
            path.write_text(self._inline)
            _make_executable(path)
            return run([str(path)], env=env, folder=context.folder, deadline=deadline)
        finally:
            path.unlink(missing_ok=True)


def _make_executable(path: Path) -> None:
    try:
        mode = path.stat().st_mode
        if not mode & 0o100:
            path.chmod(mode | 0o111)
    except OSError as error:
        raise HostError(f"cannot run {path}: {error.strerror}") from None


# --- HTTP ------------------------------------------------------------------------------------------------------------


class HttpStep:
    """HTTP request with checks of the response."""

    SOURCES = ("random", "agent")

    def __init__(self, spec: StepSpec) -> None:
        self.spec = spec
        self.output_name = ""
        args = _Args(spec.args)
        self._url = args.template("url", self.SOURCES)
        self._method = args.template("method", self.SOURCES)
        self._headers = {
            name: _template(f"headers.{name}", text, self.SOURCES) for name, text in args.texts("headers").items()
        }
        self._body = None
        if args.get("body") is not None:
            body = _Args(args.get("body"), "body")
            given = [name for name in ("raw", "json") if body.get(name) is not None]
            if len(given) != 1:
                raise HostError(f"body: expected one of raw and json, found {'both' if given else 'none'}")
            self._body = body.text("raw") if given == ["raw"] else _Args(body.get("json"), "body.json").members
        expect = args.get("expect")
        self._expect = None if expect is None else ExpectedResponse(expect)
        self._seconds = args.timeout()

    def run(self, context: StepContext) -> StepResult:
        try:
            sources = context.sources()
            url, method = (each.fill(context.environ, sources) for each in (self._url, self._method))
            headers = {name: each.fill(context.environ, sources) for name, each in self._headers.items()}
        except TemplateError as error:
            raise StepError(str(error)) from None
        content = self._body.encode() if isinstance(self._body, str) else b""
        if isinstance(self._body, dict):
            content = json.dumps(self._body, ensure_ascii=False).encode()
            if "content-type" not in {name.lower() for name in headers}:
                headers["Content-Type"] = "application/json"
        status, body = _request(method or "GET", url, headers, content, context.deadline.limit(self._seconds))
        if self._expect is None:
            text = "request completed (no expectations defined)"
            return StepResult(self.spec.phase, self.spec.name, success=True, message=text)
        problems = list(self._expect.problems(status, body, context.deadline))
        return StepResult(
            self.spec.phase,
            self.spec.name,
            success=not problems,
            message="" if problems else "response passed all validation",
            error=f"response failed validation check: {'; '.join(problems)}" if problems else "",
        )


def _request(
    method: str, url: str, headers: Mapping[str, str], content: bytes, deadline: Deadline
) -> tuple[int, bytes]:
    """Send a request, and return the status and the body. Raises StepError.

    A thread of its own sends it, because a server may keep any read waiting; it ends with this process.
    """
    found: list[tuple[int, bytes] | str] = []

    def send() -> None:
        import httpx2

        seconds = min(deadline.remaining(), STEP_SECONDS * 100)
        try:
            with (
                httpx2.Client(follow_redirects=True, timeout=max(seconds, 0.001)) as client,
                client.stream(method, url, headers=dict(headers), content=content) as response,
            ):
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > LONGEST_BODY:
                        found.append(f"the response is longer than {LONGEST_BODY:,} bytes")
                        return
                found.append((response.status_code, body))
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            found.append(str(error) or type(error).__name__)

    thread = threading.Thread(target=send, daemon=True, name="http step")
    began = time.monotonic()
    thread.start()
    while thread.is_alive() and not deadline.expired:
        thread.join(min(0.05, deadline.remaining() or 0.001))
    if not found:
        cause = "cancelled" if deadline.stopped.is_set() else f"no response in {time.monotonic() - began:.1f} s"
        raise StepError(f"{method} {url} failed: {cause}")
    if isinstance(found[0], str):
        raise StepError(f"{method} {url} failed: {found[0]}")
    return found[0]


class ExpectedResponse:
    """`expect` of an http step. Raises HostError for members of a wrong type, as mcpchecker does."""

    def __init__(self, expect: object) -> None:
        self._status = _Args(expect, "expect").get("status")
        body = _Args(_Args(expect).get("body"), "expect.body")
        self._pattern = body.text("match") if body.get("match") is not None else None
        fields = body.get("fields") or []
        if not isinstance(fields, list):
            raise HostError(f"expect.body.fields: expected a list, found {cut(json.dumps(fields), 60)}")
        self._fields = [_Args(item, f"expect.body.fields[{index}]") for index, item in enumerate(fields)]
        for each in self._fields:
            for name in ("path", "type", "match"):
                each.text(name)

    def problems(self, status: int, body: bytes, deadline: Deadline) -> Iterator[str]:
        """Yield the differences of a response."""
        if self._status and self._status != status:
            yield f"expected status code {self._status}, got {status}"
        if self._pattern is not None:
            problem = f"body did not match {self._pattern!r}"
            yield from _match_problems(self._pattern, body.decode("utf-8", "replace"), problem, deadline)
        if not self._fields:
            return
        if not body:
            yield "expected a JSON body, got an empty response"
            return
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError) as error:
            yield f"failed to parse response body as JSON: {error}"
            return
        for each in self._fields:
            members = {name: each.get(name) for name in ("path", "type", "equals", "match", "exists")}
            yield from _field_problems(members, parsed, deadline)


def _match_problems(pattern: str, text: str, problem: str, deadline: Deadline) -> Iterator[str]:
    from ext_sdk.core.regex import Searcher, SearchFailed
    from ext_sdk.core.regex import problem as wrong_pattern

    if wrong := wrong_pattern(pattern):
        yield f"{wrong}: {pattern!r}"
        return
    with Searcher(deadline=deadline) as searcher:
        try:
            if not searcher.search(pattern, text):
                yield problem
        except SearchFailed as error:
            yield f"{problem}: {error}"


_TYPES: dict[type, str] = {str: "string", int: "number", float: "number", bool: "bool", list: "array", dict: "object"}


def _field_problems(field: Mapping[str, object], data: object, deadline: Deadline) -> Iterator[str]:
    path = str(field.get("path") or "")
    exists, value = _by_path(data, path)
    wanted = {name: field[name] for name in ("type", "equals", "match") if field.get(name) not in (None, "")}
    if field.get("equals") == "":
        wanted["equals"] = ""
    if isinstance(field.get("exists"), bool) and field["exists"] != exists:
        yield f"field {path!r} {'exists but should not' if exists else 'does not exist'}"
        return
    if not exists:
        if wanted:
            yield f"field {path!r} does not exist"
        return
    found = "null" if value is None else _TYPES[type(value)]
    if "type" in wanted and found != wanted["type"]:
        yield f"field {path!r}: expected type {wanted['type']}, got {found}"
    if "equals" in wanted and _go_text(value) != _go_text(wanted["equals"]):
        yield f"field {path!r}: expected {_go_text(wanted['equals'])}, got {_go_text(value)}"
    if "match" in wanted:
        if not isinstance(value, str):
            yield f"field {path!r}: match requires a string, got {found}"
            return
        problem = f"field {path!r}: value {value!r} did not match {wanted['match']!r}"
        yield from _match_problems(str(wanted["match"]), value, problem, deadline)


def _by_path(data: object, path: str) -> tuple[bool, object]:
    """Return whether `items[0].name` exists, and its value. Only brackets are indices."""
    for part in re.finditer(r"\[([^\].\[]*)[\].]?|([^.\[\]]+)", path):
        index, name = part.groups()
        if index is not None:
            number = re.match(r"\s*[+-]?\d+", index)
            if not isinstance(data, list) or not number or not 0 <= int(number[0]) < len(data):
                return False, None
            data = data[int(number[0])]
        elif isinstance(data, dict) and name in data:
            data = data[name]
        else:
            return False, None
    return True, data


def _go_text(value: object) -> str:
    """Return a JSON value as Go's `%v` prints it, which is what mcpchecker compares."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        # The shortest digits, with an exponent if that is below -4 or above 5.
        number = Decimal(repr(float(value))).normalize()
        sign, digits, exponent = number.as_tuple()
        first, rest = str(digits[0]), "".join(map(str, digits[1:]))
        power = int(exponent) + len(rest)
        if -4 <= power < 6:
            return f"{number:f}"
        return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{power:+03}"
    if isinstance(value, list):
        return f"[{' '.join(_go_text(item) for item in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_text(value[key])}' for key in sorted(value))}]"
    return cast("str", value)
