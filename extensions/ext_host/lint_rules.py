"""Rules of `ext-host lint`: what can be wrong in a task or eval file, found without running anything.

A rule only reports what is certainly wrong for mcpchecker or for an extension whose manifest is known. Values that are
only known at run time, such as references, and steps of unknown extensions are not checked.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple, cast

from ext_sdk.core import CHOICE
from ext_sdk.core.text import cut, suggest
from ext_sdk.duration import DURATION_PATTERN, Duration
from ext_sdk.references import RESERVED, Expansion
from ext_sdk.references import Template as References
from ext_sdk.result import InvalidArgs

from .files import PHASES, Template, TemplateError, key_of, no_version, shown
from .schema import FORMAT, OWN_STEPS, definition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ext_sdk.operation import Operation
    from ext_sdk.references import Reference

    from .files import At, Document, EvalFile, StepSpec, TaskFile
    from .schema import Extension, Schema

ERROR, WARNING = "error", "warning"
# By name: severity and description of each rule.
RULES = {
    "file": (ERROR, "The file cannot be read, or a value of it has a wrong type."),
    "unknown-member": (WARNING, "A member that the format does not have, which hosts ignore."),
    "not-checked": (WARNING, "What is not checked, because a manifest is not known, or a member of the file is wrong."),
    "unknown-rule": (WARNING, "A comment that ignores a rule which does not exist."),
    "step": (
        ERROR,
        "A step that no `requires` provides, an operation that does not exist, or several types in one step.",
    ),
    "arguments": (ERROR, "Arguments that the manifest of the extension does not allow."),
    "reference": (ERROR, "A reference ${NAME.key} that no earlier step of the task sets."),
    "output": (ERROR, "A reference to an output that the operation does not have."),
    "template": (ERROR, "A template {steps.…}, {agent.…} or {random.…} without a value, or where none is replaced."),
    "phase": (ERROR, "A step that needs the answer of the agent, outside of verify."),
    "no-check": (WARNING, "A task whose verify cannot fail."),
    "no-verify": (ERROR, "A task without verify, with an unknown member of a similar name."),
    "long-wait": (WARNING, "A timeout that is longer than hosts wait for one call."),
    "no-cleanup": (WARNING, "A namespace, a mock or a process that no step removes."),
    "shared-name": (WARNING, "Parallel tasks of one folder that use the same names."),
    "shared-port": (WARNING, "Parallel tasks that use the same port."),
    "missing-file": (ERROR, "A file that does not exist."),
    "missing-program": (WARNING, "The program of an extension does not exist."),
    "extension": (WARNING, "A task that requires an extension which its eval does not have."),
    "no-tasks": (ERROR, "A task set that selects no file."),
    "duplicate-name": (WARNING, "Tasks of one eval that have the same name."),
}
IGNORE = re.compile(r"#\s*ext-host: ignore(?:\[([\w\s,-]*)\])?")
CALL_LIMIT = Duration.parse("30s")  # mcpchecker's limit of one call of an extension


class Finding(NamedTuple):
    """Problem at a place of a file; line and column are from 1, or 0 for the complete file."""

    path: Path
    line: int
    column: int
    rule: str
    text: str

    @property
    def severity(self) -> str:
        """Return error or warning."""
        return RULES[self.rule][0]


class Problem(NamedTuple):
    """Problem of a JSON value: its place, the name of the violated keyword, and whether it concerns a name."""

    at: At
    text: str
    keyword: str = ""
    of_name: bool = False


_BROKEN = ("missing )", "unbalanced", "unterminated", "nothing to repeat")  # errors of Python's `re` and of RE2 alike


def _broken_pattern(text: str) -> str:
    """Return why a pattern is not a regular expression; "" if it is one, maybe with another syntax than Python's."""
    try:
        re.compile(text)
    except re.error as error:
        return error.msg if error.msg.startswith(_BROKEN) else ""
    return ""


# --- Values and schemas ----------------------------------------------------------------------------------------------

_TYPES: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value),
}
_BRANCHES = {"allOf", "anyOf", "oneOf"}
_NAMES = {
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
    "number": "a number",
    "integer": "an integer",
}
_LIMITS: Mapping[str, tuple[Callable[[object], bool], str, Callable[[object, float], bool]]] = {
    "minimum": (_TYPES["number"], "at least {}", lambda value, limit: cast("float", value) >= limit),
    "maximum": (_TYPES["number"], "at most {}", lambda value, limit: cast("float", value) <= limit),
    "exclusiveMinimum": (_TYPES["number"], "more than {}", lambda value, limit: cast("float", value) > limit),
    "exclusiveMaximum": (_TYPES["number"], "less than {}", lambda value, limit: cast("float", value) < limit),
    "minLength": (_TYPES["string"], "at least {} characters", lambda value, limit: len(cast("str", value)) >= limit),
    "maxLength": (_TYPES["string"], "at most {} characters", lambda value, limit: len(cast("str", value)) <= limit),
    "minItems": (_TYPES["array"], "at least {} items", lambda value, limit: len(cast("str", value)) >= limit),
    "maxItems": (_TYPES["array"], "at most {} items", lambda value, limit: len(cast("str", value)) <= limit),
    "minProperties": (_TYPES["object"], "at least {} members", lambda value, limit: len(cast("str", value)) >= limit),
    "maxProperties": (_TYPES["object"], "at most {} members", lambda value, limit: len(cast("str", value)) <= limit),
}
_SCALAR = {"pattern", "enum", "const", "not", *_LIMITS}  # keywords that `_scalar` checks


@cache
def _pattern(text: str) -> re.Pattern[str] | None:
    """Return a pattern of RE2 or ECMAScript; None if Python does not have its syntax."""
    with suppress(re.error):
        return re.compile(text)
    return None


def _quoted(value: object) -> str:
    return cut(json.dumps(value, ensure_ascii=False, default=str), 60)


def _choice(words: Iterable[str]) -> str:
    *others, last = dict.fromkeys(words)
    return f"{', '.join(others)} or {last}" if others else last


class Checker:
    """Check of JSON values by one schema, with messages for people.

    Args:
        schema: the document that `$ref` refers to.
        ignored: names of definitions that allow any value.
        lenient: null is a missing value, and other scalars are strings, as where mcpchecker reads YAML.
        folds: the case of known members does not matter, as in mcpchecker's own objects.
    """

    def __init__(
        self, schema: Schema, ignored: Sequence[str] = (), *, lenient: bool = False, folds: bool = False
    ) -> None:
        self._root = schema
        self._lenient = lenient
        self._folds = folds
        self._definitions: dict[str, Schema] = {f"#/$defs/{name}": {} for name in ignored}  # by their references

    def problems(self, value: object, at: At = (), schema: object = None) -> Iterator[Problem]:
        """Yield the problems of a value at a place."""
        rules = self.resolved(self._root if schema is None else schema)
        kinds = rules.get("type")
        if value is None and self._lenient:
            return
        if kinds is not None:
            expected = [kinds] if isinstance(kinds, str) else cast("list[str]", kinds)
            if self._lenient and "string" in expected and isinstance(value, (bool, int, float)):
                value = str(value)
            if not any(_TYPES[kind](value) for kind in expected if kind in _TYPES):
                text = f"expected {_choice(_NAMES.get(kind, kind) for kind in expected)}, found {_quoted(value)}"
                is_text = "string" in expected and isinstance(value, (bool, int, float))
                yield Problem(at, f"{text}; quote it" if is_text else text, "type")
                return
        if not _SCALAR.isdisjoint(rules):
            yield from self._scalar(value, at, rules)
        if isinstance(value, dict):
            yield from self._members(value, at, rules)
        elif isinstance(value, list) and "items" in rules:
            for index, item in enumerate(value):
                yield from self.problems(item, (*at, index), rules["items"])
        if not _BRANCHES.isdisjoint(rules):
            yield from self._branches(value, at, rules)

    def resolved(self, schema: object) -> Schema:
        """Return a schema, or the one that it refers to."""
        rules = schema if isinstance(schema, dict) else {}
        while isinstance(reference := rules.get("$ref"), str):
            if reference not in self._definitions:
                found: object = self._root
                for part in reference.removeprefix("#/").split("/"):
                    found = found.get(part, {}) if isinstance(found, dict) else {}
                self._definitions[reference] = found if isinstance(found, dict) else {}
            rules = self._definitions[reference]
        return rules

    def _scalar(self, value: object, at: At, rules: Schema) -> Iterator[Problem]:
        pattern = rules.get("pattern")
        if isinstance(pattern, str) and isinstance(value, str):
            compiled = _pattern(pattern)
            if compiled and not compiled.search(value):
                yield Problem(at, _mismatch(value, pattern, rules), "pattern")
        for name in ("enum", "const"):
            if name in rules:
                listed = rules[name] if name == "enum" else [rules[name]]
                options = cast("list[object]", listed)
                if not any(option == value and type(option) is type(value) for option in options):
                    near = (
                        suggest(value, [each for each in options if isinstance(each, str)])
                        if isinstance(value, str)
                        else ""
                    )
                    more = f"; {near}" if near.startswith("did") else ""
                    found = _choice(map(_quoted, options))
                    yield Problem(at, f"expected {found}, found {_quoted(value)}{more}", name)
        for name in _LIMITS.keys() & rules.keys():
            applies, text, holds = _LIMITS[name]
            limit = rules[name]
            if isinstance(limit, (int, float)) and applies(value) and not holds(value, limit):
                expected = text.format(limit)
                expected = expected[:-1] if limit == 1 and expected.endswith("s") else expected
                yield Problem(at, f"expected {expected}, found {_quoted(value)}", name)
        if "not" in rules and not any(True for _ in self.problems(value, at, rules["not"])):
            yield Problem(at, f"this value is not allowed: {_quoted(value)}", "not")

    def _members(self, value: dict[str, object], at: At, rules: Schema) -> Iterator[Problem]:
        known = rules.get("properties")
        properties = known if isinstance(known, dict) else {}
        patterns = rules.get("patternProperties")
        others = rules.get("additionalProperties", {})
        for name, member in value.items():
            known = key_of(properties, name) if self._folds else name
            if known in properties:
                yield from self.problems(member, (*at, name), properties[known])
            elif isinstance(patterns, dict) and any(re.search(each, name) for each in patterns):
                continue
            elif others is False:
                hint = suggest(name, properties, none="expected no member")
                yield Problem(
                    (*at, name), f"unknown member {cut(name, 60)!r}; {hint}", "additionalProperties", of_name=True
                )
            else:
                yield from self.problems(member, (*at, name), others)
        required = rules.get("required")
        if not isinstance(required, list) or all(name in value for name in required):
            return
        given = {name.lower() if self._folds else name for name in value}
        if missing := [name for name in required if (name.lower() if self._folds else name) not in given]:
            names = " and ".join(f"`{name}`" for name in missing)
            yield Problem(
                at, f"expected {names}, found {_quoted(list(value)) if value else 'nothing'}", "required", of_name=True
            )

    def _branches(self, value: object, at: At, rules: Schema) -> Iterator[Problem]:
        for keyword in sorted(_BRANCHES):
            branches = rules.get(keyword)
            if not isinstance(branches, list):
                continue
            results = []
            for branch in branches:
                results.append(list(self.problems(value, at, branch)))
                if keyword == "anyOf" and not results[-1]:
                    break
            valid = [branch for branch, problems in zip(branches, results, strict=False) if not problems]
            if keyword == "allOf":
                yield from (problem for problems in results for problem in problems)
            elif keyword == "oneOf" and len(valid) > 1:
                names = " and ".join(f"`{self._first(branch)}`" for branch in valid)
                yield Problem(
                    at,
                    f"expected one of {names}, found both" if len(valid) == 2 else f"expected only one of {names}",
                    keyword,
                    of_name=True,
                )
            elif not valid:
                yield self._no_branch(value, at, branches, results)

    def _first(self, branch: object) -> str:
        required = self.resolved(branch).get("required")
        return str(required[0]) if isinstance(required, list) and required else "the alternatives"

    def _no_branch(self, value: object, at: At, branches: list[object], results: list[list[Problem]]) -> Problem:
        """Return the problem of the branch that is meant: the one of the value's type whose problem is deepest."""
        if all(problems[0].keyword == "required" and problems[0].at == at for problems in results):
            names = _choice(f"`{self._first(branch)}`" for branch in branches)
            return Problem(
                at,
                f"expected {names}, found neither" if len(branches) == 2 else f"expected one of {names}",
                "oneOf",
                of_name=True,
            )
        meant = [problems for problems in results if problems[0].keyword != "type" or problems[0].at != at]
        scalars = [problems for problems in meant if problems[0].keyword in {"enum", "const"} and problems[0].at == at]
        if meant and len(scalars) < len(meant):
            others = [problems for problems in meant if problems not in scalars]
            return min(
                others, key=lambda problems: (problems[0].keyword == "required", -len(problems[0].at), len(problems))
            )[0]
        expected = []
        for branch in branches:
            rules = self.resolved(branch)
            kinds = rules.get("type", [])
            expected += [
                _NAMES.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else cast("list[str]", kinds))
            ]
            expected += [_quoted(each) for each in cast("list[object]", rules.get("enum", []))]
        return Problem(at, f"expected {_choice(expected or ['another value'])}, found {_quoted(value)}", "anyOf")


def _mismatch(value: str, pattern: str, rules: Schema) -> str:
    if rules.get("title") == "duration" or pattern.startswith(DURATION_PATTERN):
        try:
            Duration.parse(value)
        except ValueError as error:
            return str(error)
        return f"expected a duration over 0, such as 30s, found {value!r}"
    examples = rules.get("examples")
    such = f", such as {examples[0]}" if isinstance(examples, list) and examples else ""
    return f"expected text that matches {pattern}{such}, found {_quoted(value)}"


# --- Members ---------------------------------------------------------------------------------------------------------

_FORMAT = Checker({"$defs": FORMAT}, ignored=["step"], lenient=True, folds=True)
_SIMILAR = 0.75  # of a name in `metadata` that may be meant as a known one; others are allowed there


def format_findings(document: Document) -> Iterator[Finding]:
    """Yield where a Task, Eval or Agent differs from the format, apart from its steps."""
    from difflib import get_close_matches

    kind, version = document.get(("kind",)), document.get(("apiVersion",))
    name = "LegacyTask" if kind == "Task" and version in (None, "", "mcpchecker/v1alpha1") else str(kind)
    if name == "LegacyTask" and document.get(("spec",)) is not None and document.get(("steps",)) is None:
        yield finding(document, "file", ("spec",), no_version(document), of_name=True)
        return
    for problem in _FORMAT.problems(document.value, (), {"$ref": f"#/$defs/{name}"}):
        rule = "unknown-member" if problem.keyword == "additionalProperties" else "file"
        where = ".".join(map(str, problem.at[:-1] if problem.of_name and rule != "file" else problem.at))
        text = f"{where}: {problem.text}" if where else problem.text
        yield finding(document, rule, problem.at, text, of_name=problem.of_name)
    metadata = document.get(("metadata",))
    known = cast("dict[str, dict[str, dict[str, object]]]", FORMAT[name]["properties"])["metadata"]["properties"]
    for member in metadata if isinstance(metadata, dict) else ():
        if key_of(known, member) is None and (near := get_close_matches(member, known, 1, _SIMILAR)):
            text = f"metadata: unknown member {member!r}; did you mean {near[0]!r}?"
            yield finding(document, "unknown-member", ("metadata", member), text, of_name=True)


def ignored_members(document: Document, steps: Iterable[StepSpec] = ()) -> Iterator[Finding]:
    """Yield the members of a file that hosts ignore, with those of its steps `script` and `http`."""
    yield from (each for each in format_findings(document) if each.rule == "unknown-member")
    for step in (step for step in steps if step.name in OWN_STEPS and step.at[0] == "spec"):
        for problem in Checker(OWN_STEPS[step.name], folds=True).problems(step.args, step.at):
            if problem.keyword == "additionalProperties":
                text = f"{shown(problem.at[:-1])}: {problem.text}"
                yield finding(document, "unknown-member", problem.at, text, of_name=True)


def unknown_rules(document: Document, text: str) -> Iterator[Finding]:
    """Yield the comments of a file that ignore a rule which does not exist."""
    for number, line in enumerate(text.split("\n"), 1) if "ext-host: ignore" in text else ():
        for match in IGNORE.finditer(line):
            for name in re.findall(r"[\w-]+", match[1] or ""):
                if name not in RULES:
                    problem = f"unknown rule {name!r}; {suggest(name, RULES)}"
                    yield Finding(document.path, number, match.start() + 1, "unknown-rule", problem)


# --- Tasks -----------------------------------------------------------------------------------------------------------

# What extensions of this project do, and no manifest declares: operations by the name of their extension.
NO_CHECK = {
    "shell": {"write-file", "copy", "make-temp", "snapshot", "start", "remove"},
    "http": {"session", "mock-start", "mock-update", "mock-stop"},
    "kubernetes": {
        *("apply", "create", "replace", "create-namespace", "createNamespace", "create-secret", "create-configmap"),
        *("snapshot", "diagnostics", "list-contexts", "listContexts", "current-context", "getCurrentContext"),
        *("view-config", "viewConfig", "helm-list", "helmList", "delete-generated-namespaces"),
    },
}
# What a step starts, and the operations that end it: the kind, and the argument with its name.
STARTS = {
    ("shell", "start"): ("process", "name", ("stop", "wait")),
    ("http", "mock-start"): ("mock", "name", ("mock-stop",)),
}
_STEPS_TEMPLATE = re.compile(r"\{steps\.[\w-]+\.[\w-]+\.[\w-]+\}")
LONGEST_COMMAND, LONGEST_SCRIPT = 4096, 1024 * 1024  # characters, bytes: longer ones are not searched for deletions
_MOCK = "mock"  # name of a mock that has none
NAMESPACES = {"create-namespace", "createNamespace"}
# Members that name files which an operation reads, besides those named `file` or `…File`.
READS: Mapping[tuple[str, str], set[str]] = {
    ("shell", "copy"): {"source"},
    ("shell", "read-file"): {"path"},
    ("kubernetes", "create-secret"): {"files"},
    ("kubernetes", "create-configmap"): {"files"},
    ("kubernetes", "helm-install"): {"valuesFiles"},
    ("kubernetes", "helm-upgrade"): {"valuesFiles"},
} | {("kubernetes", name): {"kustomize"} for name in ("apply", "create", "replace", "delete", "run-job")}
# Of extensions of this project, the operations that write files, with the argument that names the file or folder.
WRITES: Mapping[str, Mapping[str, str]] = {
    "shell": {"write-file": "path", "copy": "destination"},
    "http": {"download": "path"},
    "kubernetes": {"diagnostics": "file", "create-token": "writeKubeconfig"},
}
PROGRAMS = {"run", "start", "exec", "run-job"}  # may write any file
PORTS = {("shell", "start"): "port", ("http", "mock-start"): "port", ("kubernetes", "port-forward"): "localPort"}


@dataclass(frozen=True)
class Step:
    """Step of a task, with what is known about it.

    Attributes:
        number: in the task, from 0.
        prefix, operation: the parts of its name; the prefix is "" for script, http and llmJudge.
        provider: name of the extension or MCP server; "" if no `requires` has the prefix.
        extension: its manifest; None if it is not known.
        args: its arguments; {} if they are not an object.
    """

    number: int
    spec: StepSpec
    prefix: str
    operation: str
    provider: str
    extension: Extension | None

    @cached_property
    def args(self) -> dict[str, object]:
        return self.spec.args if isinstance(self.spec.args, dict) else {}

    @property
    def phase(self) -> str:
        return self.spec.phase

    @property
    def place(self) -> str:
        """Return its place, for messages."""
        return shown(self.spec.at[:3] if self.spec.at[0] == "spec" else self.spec.at)

    @property
    def kind(self) -> tuple[str, str]:
        """Return the name of its extension as the manifest has it, and its operation."""
        return (self.extension.name if self.extension else "", self.operation)

    @property
    def keeps(self) -> str:
        """Return the name under which it keeps its outputs; "" for none."""
        name = self.args.get("as")
        if not isinstance(name, str) or (self.extension and not self.extension.has_references):
            return ""
        own = self.extension.operations.get(self.operation, {}).get("properties") if self.extension else None
        common = own.get("as") if isinstance(own, dict) else {"pattern": ""}
        return name if isinstance(common, dict) and "pattern" in common else ""

    @property
    def scope(self) -> str:
        return str(self.args.get("scope") or "")

    def outputs(self) -> set[str] | None:
        """Return the names of its outputs; None if they are not known."""
        declared = self.extension.outputs(self.operation) if self.extension else None
        if declared is None:
            return None
        names = {name.rstrip("?") for name in declared} | {"outputsFile"}
        if "NAME" in names:
            names |= set(_chosen(self.args))
        return names - {"NAME"}


def _chosen(value: object) -> Iterator[str]:
    """Yield the names of outputs that arguments choose."""
    if isinstance(value, list):
        for item in value:
            yield from _chosen(item)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name in {"capture", "outputs"} and isinstance(member, dict):
                yield from member
            yield from _chosen(member)


def _strings(value: object, at: At) -> Iterator[tuple[At, str]]:
    """Yield each string of a JSON value with its place."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _strings(member, (*at, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, (*at, index))


@dataclass
class TaskRules:
    """Rules for one task.

    Attributes:
        extensions: returns the manifest of the extension of this name; None if it is not known.
        neighbours: names that steps of other tasks in the same folder keep outputs under.
        has_judge: all evals with this task have a model for llmJudge.
        asserted: an eval has assertions on the calls of the agent.
        known: names of extensions that a wrong name may be meant as.
    """

    task: TaskFile
    extensions: Callable[[str], Extension | None]
    neighbours: Callable[[], Iterable[str]] = tuple
    has_judge: bool = True
    asserted: bool = False
    known: Iterable[str] = ()
    findings: list[Finding] = field(default_factory=list)

    def add(self, rule: str, at: At, text: str, *, of_name: bool = False) -> None:
        self.findings.append(finding(self.task.document, rule, at, text, of_name=of_name))

    @cached_property
    def steps(self) -> list[Step]:
        """The steps of the task, in the order in which they run."""
        aliases = {each.alias: each for each in self.task.requires}
        steps: list[Step] = []
        for phase in PHASES:
            for spec in self.task.steps.get(phase, ()):
                if not isinstance(self.task.document.get(spec.at[:3]), dict):
                    continue  # a wrong member
                prefix, dot, operation = spec.name.partition(".")
                needed = aliases.get(prefix) if dot else None
                extension = self.extensions(needed.name) if needed and needed.kind == "extension" else None
                provider = needed.name if needed else ""
                steps.append(Step(len(steps), spec, prefix if dot else "", operation or spec.name, provider, extension))
        return steps

    def run(self) -> list[Finding]:
        """Apply all rules that concern the task alone. Return the findings."""
        body = "steps" if self.task.legacy else "spec"
        if not isinstance(self.task.document.get((body,)), dict):
            return []  # reported with the file
        unread = self._unread()
        for step in self.steps:
            if self._is_known(step):
                of_others = (self.references, self.templates) if unread is None else ()
                for of_step in (self.long_wait, self.agent_phase, *of_others):
                    of_step(step)
        for rule in (self.requires, self.prompt, self.files):
            rule()
        for rule in (self.no_check, self.no_cleanup) if unread is None else ():
            rule()
        if unread is not None:
            text = "references, cleanup and what verify checks are not checked in this task before this is correct"
            self.add("not-checked", unread, text)
        return self.findings

    def _unread(self) -> At | None:
        """Return the first step, or list of steps or requirements, with a wrong type; None if there is none."""
        for name in () if self.task.legacy else ("requires", *PHASES):
            value = self.task.document.get(("spec", name))
            if not isinstance(value, (list, NoneType)):
                return ("spec", name)
            for index, item in enumerate(value or ()):
                if not isinstance(item, dict):
                    return ("spec", name, index)
        return None

    def requires(self) -> None:
        """Check the names of extensions and MCP servers."""
        seen: set[str] = set()
        for each in self.task.requires:
            if each.alias in seen:
                self.add("step", each.at, f"the name {each.alias!r} is used twice; set `as` to another one")
            if "." in each.alias:
                self.add("step", each.at, f"expected a name without dots, found {each.alias!r}; set `as`")
            seen.add(each.alias)
            used = any(step.prefix == each.alias for step in self.steps)
            if used and each.kind == "extension" and self.extensions(each.name) is None:
                hint = suggest(each.name, self.known, none="")
                remedy = f"--extension {each.name}=PROGRAM, or =MANIFEST, gives it"
                text = f"steps of {each.name} are not checked: its manifest is not installed; "
                text += f"{hint}, else {remedy}".replace("?,", "?") if hint.startswith("did") else remedy
                self.add("not-checked", (*each.at, "extension"), text)

    def _is_known(self, step: Step) -> bool:
        """Check the type and the arguments of a step. Return False if its type is wrong."""
        spec = step.spec
        if len(spec.names) != 1:
            found = " and ".join(map(repr, spec.names)) or "none"
            self.add("step", spec.at, f"expected one type in a step, found {found}; begin each step with `-`")
            return False
        if not step.prefix:
            if spec.name not in OWN_STEPS:
                self.add(
                    "step", spec.at, f"unknown type of step {spec.name!r}; {self._known_steps(spec.name)}", of_name=True
                )
                return False
            self._arguments(step, OWN_STEPS[spec.name], {} if spec.args is None else spec.args)
            return True
        if not step.provider:
            aliases = [each.alias for each in self.task.requires]
            hint = suggest(step.prefix, aliases, none="")
            if not hint.startswith("did"):
                hint = f"add `- extension: {step.prefix}` to spec.requires"
            self.add("step", spec.at, f"no entry of spec.requires has the name {step.prefix!r}; {hint}", of_name=True)
            return False
        if step.extension is None:
            return True
        params = step.extension.operations.get(step.operation)
        if params is None:
            hint = suggest(step.operation, step.extension.operations)
            self.add("step", spec.at, f"{step.provider} has no operation {step.operation!r}; {hint}", of_name=True)
            return False
        self._arguments(step, params, {} if spec.args is None else spec.args)
        return True

    def _known_steps(self, name: str) -> str:
        names = [*OWN_STEPS]
        for each in self.task.requires:
            extension = self.extensions(each.name) if each.kind == "extension" else None
            names += [f"{each.alias}.{operation}" for operation in extension.operations] if extension else []
        ends = [each for each in names if each.endswith(f".{name}")]
        return f"did you mean {ends[0]!r}?" if ends else suggest(name, names)

    def _arguments(self, step: Step, schema: Schema, args: object) -> None:
        wrong: set[str] = set()
        for problem in Checker(schema, folds=not step.prefix).problems(args, step.spec.at):
            name = shown(problem.at[len(step.spec.at) :])
            wrong.add(str((*problem.at, "")[len(step.spec.at)]))
            if self.task.legacy and problem.keyword == "additionalProperties":
                continue
            text = (
                problem.text.replace("unknown member", "unknown argument")
                if problem.keyword == "additionalProperties"
                else problem.text
            )
            where = f"{step.spec.name}: " + (f"{name}: " if name and problem.keyword != "additionalProperties" else "")
            self.add("arguments", problem.at, where + text, of_name=problem.of_name)
        if step.spec.name == "http":
            for at, pattern in _strings(step.args.get("expect"), (*step.spec.at, "expect")):
                if at[-1] == "match" and (reason := _broken_pattern(pattern)):
                    where = shown(at[len(step.spec.at) :])
                    self.add("arguments", at, f"http: {where}: {pattern!r} is not a regular expression: {reason}")
        definition = definition_of(step.extension.package) if step.extension and step.extension.package else None
        if definition and step.operation in definition.operations and isinstance(args, dict):
            for error in refusals(definition.operations[step.operation], args, wrong):
                at = (*step.spec.at, *_place(error.field))
                self.add("arguments", at, f"{step.spec.name}: {error}", of_name=not error.field)

    # --- References ---

    def references(self, step: Step) -> None:
        """Check `${NAME.key}` in the arguments of a step, and templates of mcpchecker, which are not replaced there."""
        for at, text in _strings(step.args, step.spec.at) if step.spec.name in {"script", "http"} else ():
            for reference in References.parse(text).references if "${" in text else ():
                if any(each.keeps == reference.name for each in self.steps):
                    remedy = (
                        "write {steps.EXTENSION.OPERATION.key} in `env`"
                        if step.spec.name == "script"
                        else "use http.request"
                    )
                    self.add("reference", at, f"{reference.source} is not replaced in steps of the host; {remedy}")
        verbatim = self._verbatim(step)
        if verbatim is None:
            return
        base = len(step.spec.at)
        for at, text in _strings(step.args, step.spec.at):
            if _STEPS_TEMPLATE.search(text):
                advice = "keep the outputs with `as: NAME`, and write ${NAME.key}"
                self.add("template", at, f"{{steps.…}} is not replaced in arguments of extensions; {advice}")
            for reference in References.parse(text).references if "${" in text else ():
                if at[base] not in verbatim:
                    self._reference(step, reference, at)
                elif self._setters(reference.name, step.scope):
                    remedy = "pass it in `env`" if at[base] == "script" else "set `expand: true`"
                    self.add("reference", at, f"{reference.source} is not replaced in `{at[base]}`; {remedy}")

    def _verbatim(self, step: Step) -> set[str] | None:
        """Return the arguments of a step in which references are not replaced; None if they are in none."""
        extension = step.extension
        if extension is None or not extension.has_references or step.args.get("verbatim") is True:
            return None
        found = extension.facts.get(step.operation, {}).get("verbatim")
        return set(found) if isinstance(found, list) and step.args.get("expand") is not True else set()

    def _setters(self, name: str, scope: str) -> list[Step]:
        return [each for each in self.steps if each.keeps == name and each.scope == scope]

    def _reference(self, step: Step, reference: Reference, at: At) -> None:
        name, key = reference.name, reference.key
        if name in RESERVED or "${" in step.scope:
            return
        where = f"{reference.source}: "
        if not reference.source.endswith("}"):
            self.add("reference", at, f"{where}the reference does not end; add `}}`, or write $${{ for a literal ${{")
            return
        literal = "write $${ for a literal ${, or set `verbatim: true`"
        if reference.default is not None:
            return
        if not key:
            self.add("reference", at, f"{where}expected ${{NAME.key}}; {literal}")
            return
        setters = self._setters(name, step.scope)
        before = [each for each in setters if each.number < step.number]
        if not before:
            self.add("reference", at, where + self._why_unset(step, name, setters, literal))
            return
        outputs = before[-1].outputs()
        if outputs is not None and key not in outputs:
            setter = before[-1]
            hint = suggest(key, sorted(outputs))
            self.add("output", at, f"{where}{setter.spec.name} ({setter.place}) has no output {key!r}; {hint}")

    def _why_unset(self, step: Step, name: str, setters: list[Step], literal: str) -> str:
        if setters:
            return f"the name is set later, by {setters[0].place}"
        others = {each.scope for each in self.steps if each.keeps == name}
        if others:
            scope = next(iter(others))
            own = f"scope {step.scope!r}" if step.scope else "no scope"
            return f"this step has {own}, and the name is set " + (
                f"in scope {scope!r}" if scope else "without a scope"
            )
        if name in self.neighbours():
            return "only another task in this folder sets the name; set it in this task, too"
        known = [each.keeps for each in self.steps if each.keeps and each.number < step.number]
        hint = suggest(name, known, none="")
        return f"no step before this one has `as: {name}`; {hint + '; ' if hint else ''}{literal}"

    # --- Templates of mcpchecker ---

    def templates(self, step: Step) -> None:
        """Check `{steps.…}`, `{agent.…}` and `{random.…}` in steps of the host."""
        name, base = step.spec.name, step.spec.at
        members = {"script": ("env",), "llmJudge": ("contains", "exact"), "http": ("url", "method", "headers")}
        sources = ("random", "agent") if name == "http" else ("steps", "random", "agent")
        for at, text in _strings({each: step.args.get(each) for each in members.get(name, ())}, base):
            try:
                references = Template(text, sources).references
            except TemplateError as error:
                self.add("template", at, f"{shown(at[len(base) :])}: {error}")
                continue
            for each in references:
                if problem := self._template_problem(each.source, each.field, step):
                    self.add("template", at, f"{{{each.source}.{each.field}}}: {problem}")
        if name == "script" and _STEPS_TEMPLATE.search(str(step.args.get("inline"))):
            self.add("template", (*base, "inline"), "{steps.…} is not replaced in a script; pass it in `env`")

    def _template_problem(self, source: str, name: str, step: Step) -> str:
        if source == "steps":
            return self._unset_output(name, step.phase, step.number)
        if source == "random":
            return "" if name in {"id", "port"} else "expected {random.id} or {random.port}"
        if source == "agent" and step.phase != "verify":
            return "the answer of the agent is known in verify only"
        known = source != "agent" or name in {"prompt", "output"}
        return "" if known else "expected {agent.prompt} or {agent.output}"

    def _unset_output(self, name: str, phase: str, number: int) -> str:
        """Return why `{steps.NAME}` has no value in a phase; "" if it has one."""
        kind, _, key = name.rpartition(".")
        visible = {"verify": ("verify",), "cleanup": ("setup", "cleanup")}.get(phase, ("setup",))
        found = [each for each in self.steps if each.prefix and f"{each.provider}.{each.operation}" == kind]
        before = [each for each in found if each.phase in visible and each.number < number]
        if before:
            outputs = before[-1].outputs()
            missing = outputs is not None and key not in outputs
            return f"{kind} has no output {key!r}; {suggest(key, sorted(outputs or ()))}" if missing else ""
        if found:
            at = found[0]
            if at.phase in visible:
                return f"{at.place} runs later"
            return f"outputs of {at.phase} are not known in {'the prompt' if phase == 'prompt' else phase}"
        if any(each.prefix == kind.partition(".")[0] and not each.provider for each in self.steps):
            return ""  # the missing entry of `requires` is reported
        for each in self.steps:
            if each.prefix and each.spec.name == kind:
                right = f"{{steps.{each.provider}.{each.operation}.{key}}}"
                return f"templates have the name of the extension, not its alias; write {right}"
        known = [f"{each.provider}.{each.operation}" for each in self.steps if each.prefix and each.phase in visible]
        hint = suggest(kind, known, none="no step there has outputs")
        return f"no step {kind!r} is in {' and '.join(visible)}; {hint}"

    def prompt(self) -> None:
        """Check the prompt and its templates."""
        base: At = ("steps" if self.task.legacy else "spec", "prompt")
        at: At = (*base, "inline") if self.task.prompt else (*base, "file")
        text = self.task.prompt
        if not text and self.task.prompt_file:
            if not _exists(self.task.prompt_file):
                self.add("missing-file", at, f"no such file: {self.task.document.get(at)}")
                return
            with suppress(OSError):  # a folder, or a file that only others may read
                text = self.task.prompt_file.read_text("utf-8", "replace")
        if not text and isinstance(self.task.document.get(base), (dict, NoneType)):
            self.add("file", base, "the prompt is empty; set prompt.inline or prompt.file")
        if "{steps." not in text:
            return
        try:
            references = Template(text, ("steps",)).references
        except TemplateError as error:
            self.add("template", at, f"{{steps.…}} is not replaced in this prompt, because of another brace: {error}")
            return
        for each in references:
            if each.source == "steps" and (problem := self._unset_output(each.field, "prompt", len(self.steps))):
                self.add("template", at, f"{{steps.{each.field}}}: {problem}")

    # --- Phases ---

    def agent_phase(self, step: Step) -> None:
        """Check steps that need the answer of the agent, or a model."""
        if step.spec.name == "llmJudge" and step.phase == "verify" and not self.has_judge:
            self.add(
                "no-check",
                step.spec.at,
                "the eval has no `config.llmJudge`, so that this step always passes",
                of_name=True,
            )
        if step.phase != "verify" and (step.spec.name == "llmJudge" or step.kind == ("shell", "assert-agent")):
            self.add(
                "phase",
                step.spec.at,
                f"{step.spec.name} needs the answer of the agent; move it to verify",
                of_name=True,
            )

    def no_check(self) -> None:
        """Check that verify can fail."""
        verify = [step for step in self.steps if step.phase == "verify"]
        if self.asserted or any(map(_checks, verify)):
            return
        at: At = ("steps" if self.task.legacy else "spec", "verify")
        if not verify:
            text = "no step verifies the task: mcpchecker always passes it, `ext-host run` fails it"
            objects = [self.task.document.get(place) for place in (at[:1], ())]
            members = [name for each in objects if isinstance(each, dict) for name in each]
            near = [name for name in members if suggest(name, ["verify"]).startswith("did")]
            if near and self.task.document.get(at) is None:
                self.add("no-verify", at, f"{text}; rename {near[0]!r} to 'verify', in `{at[0]}`", of_name=True)
            else:
                self.add("no-check", at, f"{text}; add steps to verify", of_name=True)
            return
        names = ", ".join(dict.fromkeys(step.spec.name for step in verify))
        self.add("no-check", at, f"no step of verify checks anything ({names}); add an expectation", of_name=True)

    def long_wait(self, step: Step) -> None:
        """Check that a step ends before the host's limit of a call."""
        timeout = step.args.get("timeout")
        if not step.prefix or not isinstance(timeout, str):
            return
        with suppress(ValueError):
            if Duration.parse(timeout) > CALL_LIMIT:
                known = step.extension.operations[step.operation].get("properties") if step.extension else None
                advice = (
                    "use several steps with at most 25s, all but the last with `onTimeout: ok`"
                    if isinstance(known, dict) and "onTimeout" in known
                    else "use a shorter one"
                )
                text = f"timeout {timeout}: mcpchecker ends a call after {CALL_LIMIT}; {advice}"
                self.add("long-wait", (*step.spec.at, "timeout"), text)

    def no_cleanup(self) -> None:
        """Check that what steps create is removed."""
        for step in self.steps:
            if step.kind in STARTS:
                kind, argument, ends = STARTS[step.kind]
                name = str(step.args.get(argument, _MOCK))
                if not any(
                    each.kind[0] == step.kind[0]
                    and each.operation in ends
                    and each.args.get("for", "exit") == "exit"  # a wait for readiness ends nothing
                    and each.scope == step.scope
                    and each.number > step.number
                    and _same(str(each.args.get(argument, _MOCK)), name)
                    for each in self.steps
                ):
                    end = f"{step.prefix}.{ends[0]}: {{name: {name}, ignoreMissing: true}}"
                    text = f"no later step ends the {kind} {name!r}; add `- {end}` to cleanup"
                    self.add("no-cleanup", step.spec.at, text, of_name=True)
            elif (
                (name := _namespace(step))
                and not any(_deletes(each, step, name) for each in self.steps)
                and not any(self._may_delete(each, step, name) for each in self.steps)
            ):
                text = f"no step of verify or cleanup deletes the namespace {name!r}"
                self.add("no-cleanup", step.spec.at, text, of_name=True)

    def _may_delete(self, step: Step, creator: Step, name: str) -> bool:
        """Return True if a program of verify or cleanup, or a file that it names, may delete a namespace."""
        if step.phase == "setup" or step.operation not in {"script", "run", "exec"}:
            return False
        texts = [text for _, text in _strings(step.args, ())]
        for text in [word for each in texts if len(each) < LONGEST_COMMAND for word in each.split()]:
            with suppress(OSError, ValueError):
                path = self.task.folder / text
                if path.is_file() and path.stat().st_size <= LONGEST_SCRIPT:
                    texts.append(path.read_text("utf-8", "replace"))
        content = "\n".join(texts)
        names = (name, f".{creator.operation}.", *([f"${{{creator.keeps}."] if creator.keeps else []))
        if step.phase == "cleanup" and any(each in content for each in names):
            return True
        return bool(re.search(r"(?i)\b(kubectl|oc)\b[^;|&]{0,200}?\bdelete\b", content))

    def files(self) -> None:
        """Check files that steps read before anything can have created them."""
        written: set[str] | None = set()  # None: a program, or an extension of another project, may write any file
        for step in self.steps:
            for at, path in _files_read(step) if written is not None or step.spec.name == "script" else ():
                made = any(_is_in(path, each) or _is_in(each, path) for each in written or ())
                if not (made or any(mark in path for mark in "$*?[{") or _exists(self.task.folder / path)):
                    text = f"{step.spec.name}: no such file: {path}; its path is relative to {self.task.folder.name}/"
                    self.add("missing-file", at, text)
            programs = step.operation in PROGRAMS or "upstream" in step.args
            if step.spec.name == "script" or (step.prefix and (programs or step.kind[0] not in WRITES)):
                written = None
            elif written is not None and (name := WRITES.get(step.kind[0], {}).get(step.operation)):
                written.add(os.path.normpath(str(step.args.get(name, "")) or "."))


SAMPLES = ("30s", "5", "x", "0")  # values of references: an argument is wrong if it is so with all of them
_PART = re.compile(r'(?P<name>[^.\[\]"]+)|\[(?P<index>\d+)\]|\["(?P<key>(?:[^"\\]|\\.)*)"\]')


def refusals(operation: Operation, args: Mapping[str, object], wrong: Collection[str] = ()) -> Iterator[InvalidArgs]:
    """Yield what the extension refuses in arguments, whatever their references have as values: one error for each.

    Args:
        wrong: names of arguments that its schema refuses, and "" for the combination of all.
    """
    from ext_sdk.server.schema import COMMON

    own = operation.args_type.__struct_encode_fields__
    left = {name: value for name, value in args.items() if name not in wrong and (name in own or name not in COMMON)}
    verbatim = args.get("verbatim") is True and "verbatim" not in own
    complete = not wrong
    if "as" not in own and args.get("as") in RESERVED:
        yield InvalidArgs("as", f"${{{args['as']}}} has a value of its own; keep the outputs under another name")
    while (error := _refusal(operation, left, SAMPLES[0], verbatim=verbatim)) is not None:
        name = str((*_place(error.field), "")[0])
        part = left.get(name, left)
        certain = (
            verbatim
            or not _has_reference(part)
            or all(str(_refusal(operation, left, sample, verbatim=False)) == str(error) for sample in SAMPLES)
        )
        if certain and (complete or name in left):
            yield error
        if name not in left:
            return
        del left[name]
        complete = False


def _refusal(operation: Operation, args: object, sample: str, *, verbatim: bool) -> InvalidArgs | None:
    """Return why an operation refuses arguments whose references have this value; None if it accepts them."""
    from ext_sdk.server.session import timeout_problem
    from ext_sdk.server.validation import validate

    try:
        filled = args if verbatim else Expansion(lambda _: sample, str).expand(args, marks=operation.marks)
        return timeout_problem(validate(operation.args_type, filled))
    except InvalidArgs as error:
        return error


def _has_reference(value: object) -> bool:
    return any("${" in text for _, text in _strings(value, ()))


def _place(path: str) -> At:
    """Return the place in arguments that the path of an error means: `expect.lines[0]`."""
    parts: list[str | int] = []
    for part in _PART.finditer(path):
        name = part["name"] or json.loads(f'"{part["key"] or ""}"')
        parts.append(int(part["index"]) if part["index"] else name)
    return tuple(parts)


def finding(document: Document, rule: str, at: At, text: str, *, of_name: bool = False) -> Finding:
    """Return a finding at a place of a document; `of_name` is at the name of the member, not at its value."""
    return Finding(document.path, *document.position(at, key=of_name), rule, text)


def _files_read(step: Step) -> Iterator[tuple[At, str]]:
    """Yield the files that a step reads, with their places. After setup, the agent may have created most of them."""
    base = step.spec.at
    if step.spec.name == "script":
        yield from _strings({"file": step.args.get("file")}, base)
    if step.extension is None or step.kind[0] not in WRITES:
        return
    schema = step.extension.operations.get(step.operation, {})
    names = READS.get(step.kind, set())
    for at in _declared(step.args, schema, Checker(schema)):
        name = at[-1]
        is_file = name in names or name == "file" or str(name).endswith("File")
        if not is_file or set(at) & {"ready", "for"} or (step.phase != "setup" and name != "jsonSchemaFile"):
            continue
        value: object = step.args
        for part in at:
            value = value[part]  # type: ignore[index]  # the place of a value in it
        yield from (
            (place, text)
            for place, text in _strings(value, (*base, *at))
            if text not in {"", "-"} and "://" not in text
        )


def _declared(value: object, schema: object, checker: Checker) -> Iterator[At]:
    """Yield the places of all members of a value that its schema declares."""
    rules = checker.resolved(schema)
    for branch in (each for name in ("anyOf", "oneOf") for each in cast("list[object]", rules.get(name, []))):
        yield from _declared(value, branch, checker)
    inner: list[tuple[str | int, object, object]] = []
    if isinstance(value, list):
        inner = [(index, item, rules.get("items")) for index, item in enumerate(value)]
    elif isinstance(value, dict):
        declared = cast("dict[str, object]", rules.get("properties", {}))
        yield from ((name,) for name in value if name in declared)
        others = rules.get("additionalProperties")
        inner = [(name, member, declared.get(name, others)) for name, member in value.items()]
    for key, member, rule in inner:
        yield from ((key, *at) for at in _declared(member, rule, checker))


def _is_in(path: str, folder: str) -> bool:
    return f"{os.path.normpath(path)}/".startswith(f"{folder}/")


def _exists(path: Path) -> bool:
    """Return True if a file exists; False for a path that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _same(first: str, second: str) -> bool:
    return first == second or "${" in first or "${" in second


def _checks(step: Step) -> bool:
    """Return True if a step of verify may fail because of what the agent did."""
    if step.spec.name == "http":
        return bool(step.args.get("expect"))
    if step.args.get("onTimeout") == "ok":
        return False
    if step.kind[1] in {"auth-can-i", "authCanI"} and step.extension:
        return "expect" in step.args
    return step.operation not in NO_CHECK.get(step.kind[0], ()) or "expect" in step.args or "wait" in step.args


def _namespace(step: Step) -> str:
    """Return the name of the namespace that a step creates; "" for none."""
    if step.extension is None or step.extension.name != "kubernetes":
        return ""
    if step.operation in NAMESPACES:
        if "expect" in step.args:
            return ""
        return str(step.args.get("name") or step.args.get("prefix") or "")
    metadata = step.args.get("metadata")
    if step.operation in {"create", "apply"} and step.args.get("kind") == "Namespace" and isinstance(metadata, dict):
        return "" if "expect" in step.args else str(metadata.get("name") or "")
    return ""


def _deletes(step: Step, creator: Step, name: str) -> bool:
    """Return True if a step deletes a namespace."""
    if step.number <= creator.number or step.extension is None or step.extension.name != "kubernetes":
        return False
    if step.operation in {"delete-generated-namespaces", "deleteGeneratedNamespaces"}:
        return "prefix" in creator.args or name in str(step.args)
    if step.operation == "delete-namespace":
        return _same(str(step.args.get("name", name)), name)
    if step.operation != "delete":
        return False
    metadata, resource = step.args.get("metadata"), str(step.args.get("resource", ""))
    if step.args.get("kind") == "Namespace" and isinstance(metadata, dict):
        return _same(str(metadata.get("name", "")), name)
    kind, _, named = resource.partition("/")
    is_named = kind in {"namespace", "namespaces", "ns"} and (not named or _same(named, name))
    return is_named or "file" in step.args or "manifest" in step.args


# --- Several tasks ---------------------------------------------------------------------------------------------------


def kept_names(task: TaskFile) -> set[str]:
    """Return the names under which steps of a task keep outputs."""
    args = [step.args for steps in task.steps.values() for step in steps]
    return {str(each["as"]) for each in args if isinstance(each, dict) and isinstance(each.get("as"), str)}


_STATE = {
    ("shell", "start"): "process",
    ("http", "mock-start"): "mock",
    ("http", "session"): "HTTP session",
    ("shell", "snapshot"): "snapshot",
    ("kubernetes", "snapshot"): "snapshot",
}


def _state(step: Step) -> Iterator[tuple[str, str, str]]:
    """Yield what a step keeps for its folder: the kind, the scope and the name."""
    if step.extension is None or "${" in step.scope:
        return
    if step.keeps:
        yield "name of outputs", step.scope, step.keeps
    if step.kind in _STATE:
        yield (
            _STATE[step.kind],
            step.scope,
            str(step.args.get("name", _MOCK if step.operation == "mock-start" else "default")),
        )
    if step.kind[0] == "kubernetes" and step.operation in NAMESPACES and step.args.get("use") is not False:
        yield "namespace of later steps", step.scope, ""
    path = step.args.get("path")
    if step.kind == ("shell", "write-file") and isinstance(path, str) and "${" not in path:
        yield "file", "", path


def shared(tasks: Sequence[TaskRules]) -> Iterator[Finding]:
    """Yield the findings on parallel tasks that may run at the same time."""
    names: dict[tuple[object, ...], TaskRules] = {}
    ports: dict[int, TaskRules] = {}
    namespaces: dict[str, TaskRules] = {}
    for rules in (each for each in tasks if each.task.parallel):
        reported = False
        for step in rules.steps:
            for kind, scope, name in _state(step):
                first = names.setdefault((rules.task.folder, kind, scope, name), rules)
                if first is rules or reported:
                    continue
                reported = True
                what = f"the {kind}{f' {name!r}' if name else ''}"
                remedy = "put each task into a folder of its own"
                remedy += "" if kind == "file" else ", or give its steps a `scope`"
                text = f"the parallel task {first.task.name!r} of this folder uses {what}, too; {remedy}"
                yield finding(rules.task.document, "shared-name", step.spec.at, text, of_name=True)
            name = _namespace(step)
            if name and "prefix" not in step.args and "${" not in name:
                first = namespaces.setdefault(name, rules)
                if first is not rules and not reported:
                    reported = True
                    text = (
                        f"the parallel task {first.task.name!r} creates the namespace {name!r}, too; use another name"
                    )
                    yield finding(rules.task.document, "shared-name", step.spec.at, text, of_name=True)
            argument = PORTS.get(step.kind, "")
            port = step.args.get(argument)
            if isinstance(port, int) and not isinstance(port, bool) and port:
                first = ports.setdefault(port, rules)
                if first is not rules:
                    text = (
                        f"the parallel task {first.task.name!r} uses the port {port}, too; let the extension choose one"
                    )
                    yield finding(rules.task.document, "shared-port", (*step.spec.at, argument), text)


# --- Evals -----------------------------------------------------------------------------------------------------------


def eval_findings(
    spec: EvalFile, selected: Sequence[tuple[At, Sequence[TaskFile]]], program_of: Callable[..., Extension | None]
) -> Iterator[Finding]:
    """Yield the findings on an eval.

    Args:
        selected: place and tasks of each task set that has local files.
        program_of: returns the installed extension that a path, and a value of GEVALS_EXTENSION, refer to.
    """
    document = spec.document
    assert document is not None
    for at, value in _paths_of(document):
        if not _exists(spec.folder / value):
            yield finding(document, "missing-file", at, f"no such file: {value}; its path is relative to the eval")
    yield from _missing_programs(spec, document, program_of)
    yield from _configurations(spec, document, program_of)
    by_name: dict[str, TaskFile] = {}
    has_extensions = isinstance(document.get(("config", "extensions")), (dict, NoneType))  # else that is reported
    if not spec.task_sets and isinstance(document.get(("config", "taskSets")), (list, NoneType)):
        text = "the eval has no task sets, so that it runs nothing; set taskSets"
        yield finding(document, "no-tasks", ("config", "taskSets"), text)
    for _, tasks in selected:
        for task in tasks:
            first = by_name.setdefault(task.name, task)
            if first.path.resolve() != task.path.resolve():
                text = f"the eval {spec.name or spec.path} has another task {task.name!r}: {first.path}"
                yield finding(task.document, "duplicate-name", ("metadata", "name"), text)
            for each in task.requires:
                if each.kind == "extension" and each.name not in spec.extensions and has_extensions:
                    hint = suggest(each.name, spec.extensions, none="it has no extensions")
                    text = f"the eval {spec.path} has no extension {each.name!r}; {hint}"
                    yield finding(task.document, "extension", (*each.at, "extension"), text)


def _configurations(
    spec: EvalFile, document: Document, program_of: Callable[..., Extension | None]
) -> Iterator[Finding]:
    """Yield configurations without templates that their extension refuses."""
    for extension in spec.extensions.values():
        known = program_of(extension.package, extension.env.get(CHOICE, ""))
        definition = definition_of(known.package) if known else None
        texts = [text for _, text in _strings(extension.config or {}, ())]
        if definition is None or extension.config is None or any("{" in text for text in texts):
            continue
        from ext_sdk.server.validation import validate_config

        try:
            validate_config(definition.config_type, extension.config)
        except InvalidArgs as error:
            at = (*extension.at, "config", *_place(error.field))
            yield finding(document, "arguments", at, f"config of {extension.name}: {error}")


def _missing_programs(
    spec: EvalFile, document: Document, program_of: Callable[..., Extension | None]
) -> Iterator[Finding]:
    for extension in spec.extensions.values():
        at = (*extension.at, "package")
        package = extension.package.removeprefix("file://")
        if package.startswith(("./", "../", "/")) and not _exists(spec.folder / package):
            known = program_of(package)
            remedy = f'; create a link: ln -s "$(command -v {known.program})" {package}' if known else ""
            yield finding(document, "missing-program", at, f"no such program: {package}{remedy}")
        elif not package.startswith(("./", "../", "/", "~/")) and "github.com/" not in package:
            text = f"expected a path that begins with ./, /, ~/ or file://, or a GitHub package, found {package!r}"
            yield finding(document, "file", at, text)


def _paths_of(document: Document) -> Iterator[tuple[At, str]]:
    """Yield the files that an eval names, with their places."""
    places: defaultdict[At, object] = defaultdict(lambda: None)
    for agent in (("config", "agent"), ("config", "llmJudge", "ref")):
        if document.get((*agent, "type")) == "file":
            places[(*agent, "path")] = document.get((*agent, "path"))
    places["config", "mcpConfigFile"] = document.get(("config", "mcpConfigFile"))
    sources = document.get(("config", "skills", "sources"))
    for index in range(len(sources) if isinstance(sources, list) else 0):
        source: At = ("config", "skills", "sources", index, "path")
        places[source] = document.get(source)
    for at, value in places.items():
        if isinstance(value, str) and value and "{" not in value and "$" not in value:
            yield at, value
