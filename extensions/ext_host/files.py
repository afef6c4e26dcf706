"""Task, Eval and Agent files of mcpchecker (apiVersion mcpchecker/v1alpha1 and v1alpha2), as typed objects; templates.

Each object has the document that it was read from, which gives the line and column of every member. Files are read as
mcpchecker reads them: unknown members are ignored (`ext-host lint` and `run` report them), the case of known names
does not matter, and relative paths start at the folder of the file.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ext_sdk.core.text import cut, suggest
from ext_sdk.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import yaml

    Source = Callable[[str], str]  # returns the value of a field of a template, or raises TemplateError

API_VERSIONS = ("mcpchecker/v1alpha1", "mcpchecker/v1alpha2")
PHASES = ("setup", "verify", "cleanup")
LONGEST = 4 * 1024 * 1024  # characters of a file
RUN_VARIABLE = "EXT_RECORDER_RUN"  # `ext-recorder run` records this process: its folder, with copies of files of --wrap
At = tuple[str | int, ...]  # members and indices that lead to a value: ("spec", "setup", 0, "shell.run")


class HostError(Exception):
    """Failure that a user can fix: str() has what failed, where, and the remedy."""


class Problem(NamedTuple):
    """Problem of a file, with its place.

    Attributes:
        line, column: from 1; 0 if the problem concerns the complete file.
        task: name of the task that it prevents; "" if it prevents the complete eval.
    """

    path: Path
    line: int
    column: int
    text: str
    task: str = ""

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.path}{place}: {self.text}"


class FileError(HostError):
    """A file that cannot be read, or is not what it should be.

    Attributes:
        problems: all that were found.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(dict.fromkeys(map(str, problems))))
        self.problems = list(problems)


# --- Documents with positions ----------------------------------------------------------------------------------------


def key_of(members: Collection[str], name: str) -> str | None:
    """Return the member that is meant by a known name; None if there is none. Its case may differ, as in Go's JSON."""
    if name in members:
        return name
    return next((key for key in members if key.lower() == name.lower()), None)


class Document:
    """One YAML document.

    Attributes:
        path: of its file.
        value: the content as a JSON value.
    """

    def __init__(self, path: Path, value: object, root: yaml.Node | None) -> None:
        self.path = path
        self.value = value
        self._root = root

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file that has one YAML document. Raises FileError.

        The path of a copy that `ext-recorder run --wrap` has made ends with that of the user's file, which is the one
        that problems name, and at which relative paths start.
        """
        given, copies = path, f"{os.environ.get(RUN_VARIABLE)}/config/"
        if str(path).startswith(copies):
            path = Path("/", str(path).removeprefix(copies))
            with suppress(ValueError):
                path = path.relative_to(Path.cwd())
        try:
            text = given.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise FileError([Problem(path, 0, 0, f"cannot read this file: {reason}")]) from None
        return cls.parse(path, text)

    @classmethod
    def parse(cls, path: Path, text: str) -> Document:
        """Read a text that has one YAML document; of another kind of file, the first one. Raises FileError."""
        from ext_sdk.expect.documents import NotYaml, yaml_nodes

        if len(text) > LONGEST:
            raise FileError([Problem(path, 0, 0, f"expected at most {LONGEST:,} characters, found {len(text):,}")])
        try:
            found = [(node, value) for node, value in yaml_nodes(text) if value is not None]
        except NotYaml as error:
            mark = getattr(error.__cause__, "problem_mark", None)
            line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
            reason = getattr(error.__cause__, "problem", None) or str(error).removeprefix(": ")
            advice = _advice(reason, text[mark.index : mark.index + 1] if mark else "")
            raise FileError([Problem(path, line, column, f"expected YAML: {reason}{advice}")]) from None
        except RecursionError:
            raise FileError([Problem(path, 0, 0, "the document is nested too deeply")]) from None
        first = found[0][1] if found else None
        other = isinstance(first, dict) and str(first.get("kind", "Task")) not in {"Task", "Eval", "Agent"}
        if len(found) > 1 and not other:  # manifests, which globs of evals match as well
            mark = found[1][0].start_mark
            text = "expected one document, found another one; put each task into a file of its own"
            raise FileError([Problem(path, mark.line + 1, mark.column + 1, text)])
        return cls(path, first, found[0][0] if found else None)

    def get(self, at: At) -> object:
        """Return the value at a place; None if it is missing."""
        value = self.value
        for part in at:
            if isinstance(value, dict):
                value = value.get(key_of(value, str(part)))
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def position(self, at: At, *, key: bool = False) -> tuple[int, int]:
        """Return line and column of a value, or of its nearest parent that exists.

        Args:
            key: of the name of the member, not of its value.
        """
        import yaml

        if self._root is None:
            return 1, 1
        node, mark = self._root, self._root.start_mark
        for part in at:
            inner: yaml.Node | None = None
            if isinstance(node, yaml.MappingNode):
                wanted = key_of([name.value for name, _ in node.value], str(part))
                for name, value in node.value:
                    if name.value == wanted:
                        inner, mark = value, name.start_mark if key or value.value == "" else value.start_mark
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                inner = node.value[part]
                mark = inner.start_mark
            if inner is None:
                break
            node = inner
        return mark.line + 1, mark.column + 1

    def questions(self) -> Iterator[Problem]:
        """Yield the plain scalars in `{}` or `[]` that have a `?`: valid YAML, which parsers of Go refuse."""
        import yaml

        text = "`?` in a text without quotes within {} or [] is a YAML error for mcpchecker; quote the text"
        stack: list[tuple[yaml.Node | None, bool]] = [(self._root, False)]
        seen: set[int] = set()
        while stack:
            node, in_flow = stack.pop()
            if isinstance(node, yaml.CollectionNode) and id(node) not in seen:
                seen.add(id(node))
                inner = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
                stack += [(part, in_flow or bool(node.flow_style)) for part in inner]
            elif isinstance(node, yaml.ScalarNode) and in_flow and not node.style and "?" in node.value:
                yield Problem(self.path, node.start_mark.line + 1, node.start_mark.column + 1, text)

    def problem(self, at: At, text: str, *, key: bool = False, task: str = "") -> Problem:
        """Return a problem at a place of this document."""
        return Problem(self.path, *self.position(at, key=key), text, task)


def shown(at: At) -> str:
    """Return a place as text: `spec.setup[0]`."""
    return re.sub(r"\.\[", "[", ".".join(f"[{part}]" if isinstance(part, int) else part for part in at))


class Reader:
    """Typed access to the members of a document, which collects problems.

    Args:
        strict: refuse numbers and booleans in place of strings, as mcpchecker does in tasks only.
    """

    def __init__(self, document: Document, *, strict: bool = False) -> None:
        self.document = document
        self._strict = strict
        self.problems: list[Problem] = []

    def refuse(self, at: At, text: str) -> None:
        self.problems.append(self.document.problem(at, f"{shown(at)}: {text}" if at else text))

    def _expect(self, at: At, what: str, value: object) -> None:
        import json

        self.refuse(at, f"expected {what}, found {cut(json.dumps(value, default=str, ensure_ascii=False), 60)}")

    def mapping(self, at: At, *, required: bool = False) -> dict[str, object]:
        value = self.document.get(at)
        if isinstance(value, dict):
            return value
        if value is not None:
            self._expect(at, "an object", value)
        elif required:
            self.refuse(at, "expected an object, found nothing")
        return {}

    def items(self, at: At) -> Iterator[At]:
        """Yield the places of the items of a list."""
        value = self.document.get(at)
        if isinstance(value, list):
            for index in range(len(value)):
                yield (*at, index)
        elif value is not None:
            self._expect(at, "a list", value)

    def text(self, at: At, *, required: bool = False) -> str:
        value = self.document.get(at)
        if isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)) and not self._strict:
            return str(value).lower() if isinstance(value, bool) else str(value)
        if value is not None:
            self._expect(at, "a string (in quotes, if it looks like another type)", value)
        elif required:
            self.refuse(at, "expected a string, found nothing")
        return ""

    def texts(self, at: At) -> dict[str, str]:
        return {name: self.text((*at, name)) for name in self.mapping(at)}

    def flag(self, at: At) -> bool:
        value = self.document.get(at)
        if value is not None and not isinstance(value, bool):
            self._expect(at, "true or false", value)
        return value is True

    def integer(self, at: At) -> int:
        value = self.document.get(at)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            self._expect(at, "an integer", value)
            return 0
        return value or 0

    def duration(self, at: At) -> Duration | None:
        text = self.text(at)
        try:
            duration = Duration.parse(text) if text else None
        except ValueError as error:
            self.refuse(at, str(error))
            return None
        if duration is not None and duration.nanoseconds <= 0:
            self._expect(at, "a duration over 0", text)
            return None
        return duration

    def kind(self, expected: str) -> str:
        """Check `kind` and `apiVersion`; return the latter. Raises FileError: nothing else can be read."""
        found = self.document.value
        if not isinstance(found, dict):
            self._expect((), f"an object with kind: {expected}", found)
        elif (kind := self.document.get(("kind",))) != expected:
            self.refuse(("kind",), f"expected {expected}, found {kind or 'nothing'}")
        version = str(self.document.get(("apiVersion",)) or API_VERSIONS[0])
        if not self.problems and version not in API_VERSIONS:
            self.refuse(("apiVersion",), f"expected {' or '.join(API_VERSIONS)}, found {version}")
        self.done()
        return version

    def done(self, problems: list[Problem] | None = None) -> None:
        """Raise FileError if there are problems, or add them to a list if it is given."""
        if problems is not None:
            problems += self.problems
        elif self.problems:
            raise FileError(self.problems)


# --- Task ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits of a task; None if the task has none of its own.

    Attributes:
        timeout: of setup, agent and verify together.
        cleanup: of the phase cleanup.
    """

    timeout: Duration | None = None
    cleanup: Duration | None = None


@dataclass(frozen=True)
class Requirement:
    """Extension or MCP server that a task uses, under the name of its steps.

    Attributes:
        kind: extension or mcpServer.
        name: in the eval.
        alias: first part of the names of its steps.
        at: place in the document.
    """

    kind: str
    name: str
    alias: str
    at: At


@dataclass(frozen=True)
class StepSpec:
    """One step as it is in the file.

    Attributes:
        phase: setup, verify or cleanup.
        name: ALIAS.OPERATION, script, http or llmJudge; "" if the step does not have exactly one member.
        args: value of that member.
        names: all members but `id`.
        at: place of the arguments, or of the step if it has no single name.
    """

    phase: str
    name: str
    args: object
    names: tuple[str, ...]
    at: At


@dataclass(frozen=True)
class TaskFile:
    """Task.

    Attributes:
        document: the file; its path is as given.
        name: metadata.name.
        runs: metadata.runs; 0 if it is missing.
        steps: of the phases setup, verify and cleanup.
        prompt: prompt.inline, or "".
        prompt_file: prompt.file, or None.
        legacy: it is of apiVersion v1alpha1.
    """

    document: Document
    name: str
    difficulty: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    parallel: bool = False
    runs: int = 0
    requires: tuple[Requirement, ...] = ()
    limits: Limits = field(default_factory=Limits)
    steps: Mapping[str, tuple[StepSpec, ...]] = field(default_factory=dict)
    prompt: str = ""
    prompt_file: Path | None = None
    legacy: bool = False

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.document.path

    @property
    def folder(self) -> Path:
        """Absolute folder of the file: the working directory of its steps."""
        return self.document.path.absolute().parent

    def read_prompt(self) -> str:
        """Return the prompt. Raises HostError if there is none, or its file cannot be read."""
        if self.prompt or self.prompt_file is None:
            if not self.prompt:
                raise HostError(f"{self.path}: the task has no prompt: set prompt.inline or prompt.file")
            return self.prompt
        try:
            return self.prompt_file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise HostError(f"{self.prompt_file}: cannot read the prompt: {reason}") from None


def read_task(path: Path) -> TaskFile:
    """Read a Task. Raises FileError."""
    return task_of(Document.read(path))


_QUOTE = "put a value that begins with one of @ ` % * & ! ? into quotes"
# What to change, by a part of the reason of the YAML parser.
_YAML_ADVICE = {
    "unhashable key": "put a value that begins with a brace into quotes, such as '{{ .Prompt }}'",
    "mapping values are not allowed": "correct the indentation, or put a value with a colon and a blank into quotes",
    "block sequence entries are not allowed": "begin the list in a new line",
    "expected key": "correct the indentation: members of one object begin in the same column",
    "unknown escape": "put the value into single quotes",
    "cannot start any token": _QUOTE,
    "alphabetic or numeric": _QUOTE,
    "undefined alias": _QUOTE,
    "for the tag": _QUOTE,
    "node content": _QUOTE,
}


def _advice(reason: str, character: str) -> str:
    """Return what to change in a text that is not YAML; "" if that is not known.

    Args:
        reason: of the YAML parser.
        character: where it stopped.
    """
    if character == "\t":
        return "; indent with blanks, not with a tab"
    return next((f"; {advice}" for part, advice in _YAML_ADVICE.items() if part in reason), "")


def no_version(document: Document) -> str:
    """Return the problem of a task of the current format without its version."""
    found = document.get(("apiVersion",)) or "nothing"
    return f"the task has `spec`; set apiVersion: {API_VERSIONS[1]} (found {found})"


def task_of(document: Document, problems: list[Problem] | None = None) -> TaskFile:
    """Return the Task of a document. Raises FileError.

    Args:
        problems: receives those of single members, which are then missing in the task; None: they are raised.
    """
    reader = Reader(document, strict=True)
    legacy = reader.kind("Task") == API_VERSIONS[0]
    body: At = ("steps",) if legacy else ("spec",)
    reader.mapping(("metadata",), required=True)
    if legacy and document.get(("spec",)) is not None and document.get(body) is None:
        reader.refuse((), no_version(document))
    reader.mapping(body, required=True)
    prompt_file = reader.text((*body, "prompt", "file")) if reader.mapping((*body, "prompt")) else ""
    task = TaskFile(
        document,
        name=reader.text(("metadata", "name")),
        difficulty=reader.text(("metadata", "difficulty")),
        labels=reader.texts(("metadata", "labels")),
        parallel=reader.flag(("metadata", "parallel")),
        runs=reader.integer(("metadata", "runs")),
        requires=() if legacy else tuple(_requirements(reader)),
        limits=Limits() if legacy else _limits(reader, ("spec", "limits")),
        steps={phase: tuple(_legacy_steps(reader, phase) if legacy else _steps(reader, phase)) for phase in PHASES},
        prompt=reader.text((*body, "prompt", "inline")),
        prompt_file=document.path.absolute().parent / prompt_file if prompt_file else None,
        legacy=legacy,
    )
    reader.done(problems)
    return task


def _limits(reader: Reader, at: At) -> Limits:
    if not reader.mapping(at):
        return Limits()
    return Limits(reader.duration((*at, "timeout")), reader.duration((*at, "cleanupTimeout")))


def _requirements(reader: Reader) -> Iterator[Requirement]:
    for at in reader.items(("spec", "requires")):
        reader.mapping(at, required=True)
        given = [(kind, name) for kind in ("extension", "mcpServer") if (name := reader.text((*at, kind)))]
        if len(given) > 1:
            reader.refuse(at, "expected one of extension and mcpServer, found both")
        for kind, name in given[:1]:
            yield Requirement(kind, name, reader.text((*at, "as")) or name, at)


def _steps(reader: Reader, phase: str) -> Iterator[StepSpec]:
    for at in reader.items(("spec", phase)):
        step = reader.mapping(at)
        names = tuple(str(name) for name in step if name != "id")
        if len(names) == 1:
            yield StepSpec(phase, names[0], step[names[0]], names, (*at, names[0]))
        else:
            yield StepSpec(phase, "", step, names, at)


def _legacy_steps(reader: Reader, phase: str) -> Iterator[StepSpec]:
    """Return the step that mcpchecker makes of a phase of v1alpha1: a script, or a judgement of the output."""
    at = ("steps", phase)
    given = reader.document.get if reader.mapping(at) else lambda _: None
    script = {name: reader.text((*at, name)) for name in ("inline", "file") if given((*at, name)) is not None}
    judge = {name: reader.text((*at, name)) for name in ("exact", "contains") if given((*at, name)) is not None}
    if any(script.values()):
        yield StepSpec(phase, "script", {name: text for name, text in script.items() if text}, ("script",), at)
    elif judge and not script and phase == "verify":
        yield StepSpec(phase, "llmJudge", judge, ("llmJudge",), at)


# --- Eval and Agent --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExtensionSpec:
    """Extension of an eval.

    Attributes:
        package: path of its program; "" for the program ext-NAME in PATH.
        env: variables, with templates.
        config: for `initialize`, with templates; None if it is missing.
    """

    name: str
    package: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, object] | None = None
    at: At = ()


@dataclass(frozen=True)
class McpServer:
    """Enabled MCP server of an eval: `spec` is its entry in the file as it is."""

    name: str
    spec: Mapping[str, object]

    def allows(self, title: str) -> bool:
        """Return True if the title of a tool call names a tool that `alwaysAllow` or `enableAllTools` allows."""
        named = "mcp" in title or self.name in title
        if self.spec.get("enableAllTools"):
            return named
        tools = self.spec.get("alwaysAllow")
        return isinstance(tools, list) and any(title == tool or (named and str(tool) in title) for tool in tools)


@dataclass(frozen=True)
class TaskSet:
    """Tasks of an eval: those whose files match, and that have all labels.

    Attributes:
        pattern: glob or path, absolute; "" selects none.
        is_glob: the pattern is a glob.
        source: name of a repository in `config.sources`, which this host does not fetch; "" for local files.
        assertions: names of assertions on tool calls, which this host does not evaluate.
    """

    pattern: str
    is_glob: bool
    source: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    assertions: tuple[str, ...] = ()
    at: At = ()


@dataclass(frozen=True)
class AgentRef:
    """`config.agent`: type is `file`, with a path, or builtin.NAME."""

    type: str
    path: Path | None = None
    model: str = ""
    at: At = ()


@dataclass(frozen=True)
class EvalFile:
    """Eval, or tasks that were given without one.

    Attributes:
        document: the file; None for tasks without an eval.
        folder: absolute; relative packages start here.
        limits: for tasks without limits of their own.
        llm_judge: `config.llmJudge` is set; this host runs no model.
        skills: the eval mounts skills into the folder of the agent.
    """

    document: Document | None
    folder: Path
    name: str = ""
    agent: AgentRef | None = None
    extensions: Mapping[str, ExtensionSpec] = field(default_factory=dict)
    task_sets: tuple[TaskSet, ...] = ()
    limits: Limits = field(default_factory=Limits)
    mcp_config: Path | None = None
    llm_judge: bool = False
    skills: bool = False

    @classmethod
    def of_tasks(cls, paths: Sequence[Path]) -> EvalFile:
        """Return an eval of tasks, in which each extension NAME is the program ext-NAME in PATH."""
        sets = tuple(TaskSet(str(path), is_glob=False) for path in paths)
        return cls(None, Path.cwd(), task_sets=sets)

    @property
    def path(self) -> Path:
        """Path of the file; of tasks without an eval, that of the first one."""
        return self.document.path if self.document else Path(self.task_sets[0].pattern)

    def problem(self, at: At, text: str) -> Problem:
        """Return a problem at a place of this file."""
        return self.document.problem(at, text) if self.document else Problem(self.path, 0, 0, text)

    def extension(self, name: str) -> ExtensionSpec | None:
        """Return the extension of a name; None if the eval does not have it."""
        return self.extensions.get(name) if self.document else ExtensionSpec(name)

    def mcp_servers(self) -> tuple[McpServer, ...]:
        """Return the enabled MCP servers of `mcpConfigFile`. Raises FileError."""
        if self.mcp_config is None:
            return ()
        reader = Reader(Document.read(self.mcp_config))
        servers = reader.mapping(("mcpServers",), required=True)
        specs = [(name, reader.mapping(("mcpServers", name), required=True)) for name in servers]
        reader.done()
        return tuple(McpServer(name, spec) for name, spec in specs if spec.get("disabled") is not True)


def read_eval(path: Path) -> EvalFile:
    """Read an Eval. Raises FileError."""
    return eval_of(Document.read(path))


def eval_of(document: Document, problems: list[Problem] | None = None) -> EvalFile:
    """Return the Eval of a document. Raises FileError.

    Args:
        problems: see `task_of`.
    """
    reader = Reader(document)
    reader.kind("Eval")
    reader.mapping(("config",), required=True)
    folder = document.path.absolute().parent
    mcp_config = reader.text(("config", "mcpConfigFile"))
    extensions = {}
    for name in reader.mapping(("config", "extensions")):
        at = ("config", "extensions", name)
        reader.mapping(at, required=True)
        config = reader.mapping((*at, "config")) if document.get((*at, "config")) is not None else None
        package = reader.text((*at, "package"), required=True)
        extensions[name] = ExtensionSpec(name, package, reader.texts((*at, "env")), config, at)
    agent = None
    if reader.mapping(("config", "agent")):
        ref = ("config", "agent")
        path, kind = reader.text((*ref, "path")), reader.text((*ref, "type"), required=True)
        if kind == "file" and not path:
            reader.refuse(ref, "expected `path`, the file of the agent, for type: file")
        elif kind != "file" and not kind.startswith("builtin."):
            reader.refuse((*ref, "type"), f"expected file or builtin.NAME, found {kind!r}")
        agent = AgentRef(kind, folder / path if path else None, reader.text((*ref, "model")), ref)
    result = EvalFile(
        document,
        folder,
        name=reader.text(("metadata", "name")) if reader.mapping(("metadata",)) else "",
        agent=agent,
        extensions=extensions,
        task_sets=tuple(_task_sets(reader, folder)),
        limits=_limits(reader, ("config", "defaultTaskLimits")),
        mcp_config=folder / mcp_config if mcp_config else None,
        llm_judge=bool(reader.mapping(("config", "llmJudge"))),
        skills=bool(reader.mapping(("config", "skills"))),
    )
    reader.done(problems)
    return result


def _task_sets(reader: Reader, folder: Path) -> Iterator[TaskSet]:
    for at in reader.items(("config", "taskSets")):
        reader.mapping(at, required=True)
        pattern, path, source = (reader.text((*at, name)) for name in ("glob", "path", "source"))
        given = pattern or path
        assertions = reader.mapping((*at, "assertions"))
        if given and not source:
            root = glob.escape(str(folder)) if pattern else str(folder)
            given = os.path.normpath(os.path.join(root, given))  # noqa: PTH118 - a pattern is not a path
        yield TaskSet(
            given,
            is_glob=bool(pattern),
            source=source,
            labels=reader.texts((*at, "labelSelector")),
            assertions=tuple(
                name for name, value in assertions.items() if not (value is None or value is False or value == [])
            ),
            at=at,
        )


@dataclass(frozen=True)
class AgentFile:
    """Agent.

    Attributes:
        run_prompt: commands.runPrompt, a template of Go; "" if it is missing.
        mcp_server_template: commands.argTemplateMcpServer.
        allowed_tools_template: commands.argTemplateAllowedTools.
        acp: argv of an agent with the Agent Client Protocol; () if it has none.
        builtin: builtin.type; "" if it has none.
    """

    document: Document
    name: str
    run_prompt: str = ""
    mcp_server_template: str = ""
    allowed_tools_template: str = ""
    acp: tuple[str, ...] = ()
    builtin: str = ""

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.document.path


def read_agent(path: Path) -> AgentFile:
    """Read an Agent. Raises FileError."""
    return agent_of(Document.read(path))


def agent_of(document: Document) -> AgentFile:
    """Return the Agent of a document. Raises FileError."""
    reader = Reader(document)
    reader.kind("Agent")
    has_acp = bool(reader.mapping(("acp",)))
    reader.mapping(("commands",))
    agent = AgentFile(
        document,
        name=reader.text(("metadata", "name")) if reader.mapping(("metadata",)) else "",
        run_prompt=reader.text(("commands", "runPrompt")),
        mcp_server_template=reader.text(("commands", "argTemplateMcpServer")),
        allowed_tools_template=reader.text(("commands", "argTemplateAllowedTools")),
        acp=(reader.text(("acp", "cmd"), required=True), *(reader.text(at) for at in reader.items(("acp", "args"))))
        if has_acp
        else (),
        builtin=reader.text(("builtin", "type")) if reader.mapping(("builtin",)) else "",
    )
    if not (agent.run_prompt or agent.acp or agent.builtin):
        reader.refuse((), "expected one of commands.runPrompt, acp and builtin, found none")
    reader.done()
    return agent


READERS: Mapping[str, Callable[[Document], TaskFile | EvalFile | AgentFile]] = {
    "Task": task_of,
    "Eval": eval_of,
    "Agent": agent_of,
}


def read_file(path: Path) -> TaskFile | EvalFile | AgentFile:
    """Read a file by its `kind`. Raises FileError."""
    document = Document.read(path)
    kind = document.get(("kind",))
    reader = READERS.get(str(kind))
    if reader is None:
        found = f"found {kind!r}; {suggest(kind, READERS)}" if isinstance(kind, str) else "found none"
        raise FileError([document.problem(("kind",), f"expected a file of kind Task, Eval or Agent, {found}")])
    return reader(document)


# --- Selection -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SelectedTask:
    """Task of an eval.

    Attributes:
        assertions: problem for each kind of assertion that its task sets have; this host evaluates none.
    """

    task: TaskFile
    assertions: tuple[Problem, ...] = ()


class Labels:
    """Selection by labels: `suite=kubernetes,suite=helm,difficulty=easy`; the values of one key are alternatives."""

    def __init__(self, text: str) -> None:
        self._wanted: dict[str, set[str]] = {}
        for pair in filter(None, (part.strip() for part in text.split(","))):
            key, equals, value = (part.strip() for part in pair.partition("="))
            if not (key and equals and value):
                raise HostError(f"labels: expected KEY=VALUE, found {pair!r}; separate several by commas")
            self._wanted.setdefault(key, set()).add(value)

    def match(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels have one of the values of each key."""
        return all(labels.get(key) in values for key, values in self._wanted.items())


def select(
    spec: EvalFile, *, pattern: str = "", labels: str = "", empty: list[Problem] | None = None
) -> list[SelectedTask]:
    """Return the tasks of an eval, each file once, in the order of the task sets.

    Args:
        pattern: regular expression that is searched in the names; "" selects all.
        labels: see Labels; "" selects all.
        empty: receives a problem for each task set that has no task, whatever the pattern and the labels.

    Raises:
        FileError: a file cannot be read; files that are not a Task are skipped, as in mcpchecker.
        HostError: the pattern or the labels are wrong.
    """
    try:
        name = re.compile(pattern)
    except re.error as error:
        raise HostError(f"expected a regular expression for the names of tasks, found {pattern!r}: {error}") from None
    wanted = Labels(labels)
    found: dict[Path, SelectedTask] = {}
    problems: list[Problem] = []
    for task_set in spec.task_sets:
        tasks: list[TaskFile] = []
        for path in task_paths(task_set):
            try:
                document = Document.read(path)
                if spec.document and isinstance(document.value, dict) and document.get(("kind",)) != "Task":
                    continue
                task = task_of(document)
            except FileError as error:
                problems += error.problems
                continue
            tasks.append(task)
            selector = task_set.labels.items()
            if not (name.search(task.name) and selector <= task.labels.items() and wanted.match(task.labels)):
                continue
            known = found.get(path.resolve(), SelectedTask(task))
            refused = tuple(
                spec.problem(
                    (*task_set.at, "assertions", each), f"assertions.{each}: ext-host does not record tool calls"
                )._replace(task=task.name)
                for each in task_set.assertions
            )
            found[path.resolve()] = SelectedTask(known.task, known.assertions + refused)
        if empty is not None and spec.document and (problem := no_task(spec.document, task_set, tasks)):
            empty.append(problem)
    if problems:
        raise FileError(list(dict.fromkeys(problems)))
    return list(found.values())


def no_task(document: Document, task_set: TaskSet, tasks: Sequence[TaskFile]) -> Problem | None:
    """Return why a task set of an eval selects none of the tasks in its files; None if it selects one.

    Args:
        tasks: those of its files, with all labels.
    """
    wanted = task_set.labels.items()
    if task_set.source or any(wanted <= task.labels.items() for task in tasks):
        return None
    member = "glob" if task_set.is_glob else "path"
    files = f"the {member} {document.get((*task_set.at, member))!r}"
    if not task_set.pattern:
        return document.problem(task_set.at, "expected glob or path, found neither")
    if not tasks:
        paths = task_paths(task_set)
        what = "no file is a Task that matches" if any(path.exists() for path in paths) else "no file matches"
        return document.problem((*task_set.at, member), f"{what} {files}")
    keys = task_set.labels.keys()
    found = sorted({f"{key}={task.labels[key]}" for task in tasks for key in keys & task.labels.keys()})
    given = ", ".join(f"{key}={value}" for key, value in wanted)
    text = f"no task of {files} has the labels {given}; found {', '.join(found) or 'no task with such a key'}"
    return document.problem((*task_set.at, "labelSelector"), text)


def task_paths(task_set: TaskSet) -> list[Path]:
    """Return the files that a task set selects by its glob or path, not by labels."""
    if not task_set.pattern or task_set.source:
        return []
    if not task_set.is_glob:
        return [Path(task_set.pattern)]
    pattern = task_set.pattern.replace("[^", "[!")  # Go's syntax for a set of other characters
    return [Path(name) for name in sorted(glob.glob(pattern, include_hidden=True))]  # noqa: PTH207 - hidden names match, as in Go


# --- Templates -------------------------------------------------------------------------------------------------------

ENV = "env"


class TemplateError(ValueError):
    """A template that is not valid, or whose value is not known; str() is the reason."""


class Reference(NamedTuple):
    """Part of a template that is replaced: a field of a source."""

    source: str
    field: str
    offset: int


class Template:
    """Text with references: `{steps.shell.run.stdout}`, `{random.id}`, `{agent.output}`, `{env.NAME}` or `${NAME}`.

    The grammar is that of mcpchecker (package template of gen-mcp): each brace belongs to a reference, so a text with
    any other brace is refused.

    Args:
        text: the template.
        sources: names of the sources that it may use, besides env.

    Attributes:
        parts: texts and references, in their order.

    Raises:
        TemplateError: a brace does not belong to a reference.
    """

    __slots__ = ("parts",)

    def __init__(self, text: str, sources: Collection[str] = ()) -> None:
        self.parts: list[str | Reference] = []
        at = 0
        while at < len(text):
            begin = min((found for mark in "{}" if (found := text.find(mark, at)) >= 0), default=len(text))
            if begin == len(text):
                self.parts.append(text[at:])
                break
            if text[begin] == "}":
                raise TemplateError(f"the brace at character {begin + 1} is not opened; there is no escape for braces")
            end = text.find("}", begin)
            if end < 0:
                raise TemplateError(f"the brace at character {begin + 1} is not closed; there is no escape for braces")
            dollar = begin > at and text[begin - 1] == "$"
            name = text[begin + 1 : end]
            source, dot, field = (ENV, ".", name) if dollar else name.partition(".")
            if not dot or source not in {ENV, *sources}:
                known = ", ".join(f"{{{each}.NAME}}" for each in (ENV, *sources))
                raise TemplateError(f"expected {known} or ${{NAME}}, found {{{name}}}")
            if source == ENV and not re.fullmatch(r"\w+", field):
                raise TemplateError(f"expected the name of an environment variable, found {field!r}")
            if not field:
                raise TemplateError(f"expected the name of a field, found {{{name}}}")
            self.parts += [text[at : begin - dollar], Reference(source, field, begin)]
            at = end + 1

    @property
    def references(self) -> list[Reference]:
        """Return the references, in their order."""
        return [part for part in self.parts if isinstance(part, Reference)]

    def fill(self, environ: Mapping[str, str], sources: Mapping[str, Source] | None = None) -> str:
        """Return the text with all references replaced. Raises TemplateError for one that has no value."""
        texts = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
            elif part.source != ENV:
                texts.append((sources or {})[part.source](part.field))
            elif part.field in environ:
                texts.append(environ[part.field])
            else:
                raise TemplateError(f"the environment variable {part.field} is not set")
        return "".join(texts)
