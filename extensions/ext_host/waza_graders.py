"""Graders of waza's own evals: what they require, which are supported, and how they check a trial.

Patterns are searched in a child process with a limit of time, and assertions are evaluated in one, so that none of them
can hang the server.
"""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ext_sdk.core.text import cut, suggest
from ext_sdk.expect import json_schema, regex
from ext_sdk.files import Workdir
from ext_sdk.polling import Deadline
from ext_sdk.result import OperationFailed

from .commands import Commands
from .files import HostError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

Fields = dict[str, object]
WORKSPACE = "WAZA_WORKSPACE_DIR"  # variable of the programs that grade, as in waza
GRADER_SECONDS = 30  # for a grader that is a program, without a `timeout`, as in waza
MOST_BYTES = 1024 * 1024  # of a file that a grader reads


@dataclass(frozen=True)
class Grader:
    """Grader of an eval or a task.

    Attributes:
        params: `config`, and the members next to it.
        fields: as in the file.
    """

    type: str
    name: str
    params: Mapping[str, object]
    fields: Fields


_MODEL_JUDGES, _PERSON_JUDGES = "a model grades", "a person grades"
_TOOL_CALLS = "the tool calls of the agent are not recorded"
_UNSUPPORTED = {
    "prompt": _MODEL_JUDGES,
    "llm": _MODEL_JUDGES,
    "llm_comparison": _MODEL_JUDGES,
    "human": _PERSON_JUDGES,
    "human_calibration": _PERSON_JUDGES,
    "tool_calls": _TOOL_CALLS,
    "tool_constraint": _TOOL_CALLS,
    "action_sequence": _TOOL_CALLS,
    "skill_invocation": _TOOL_CALLS,
    "diff": "snapshots are compared by waza only",
}
# Members of each grader that are lists of texts; at least one is required.
_LISTS = {
    "code": ("assertions",),
    "text": ("contains", "not_contains", "contains_cs", "not_contains_cs", "regex_match", "regex_not_match"),
    "regex": ("must_match", "must_not_match"),
    "file": ("must_exist", "must_not_exist"),
}
_UNKNOWN = {"tool_calls", "transcript", "errors", "outcome"}  # names of assertions; those of a command are not recorded
_PATTERNS = {"regex_match", "regex_not_match", "must_match", "must_not_match"}
_TEXTS = {"file_exists": "path", "program": "command", "script": "script"}  # the member that each of these requires


def unsupported_grader(grader: Grader) -> str:
    """Return why a valid grader is not supported; "" if it is."""
    kind, reason = grader.type, _UNSUPPORTED.get(grader.type, "")
    if kind == "code" and grader.params.get("language", "python") != "python":
        reason = "assertions are evaluated in Python only"
    elif kind == "code" and (unknown := sorted(_names(grader.params) & _UNKNOWN)):
        reason = f"the assertions use {', '.join(unknown)}: only output and duration_ms are known"
    if kind == "behavior" and (others := [name for name in grader.params if name != "max_duration_ms"]):
        reason = f"{', '.join(others)}: {_TOOL_CALLS}"
    return f"the grader {grader.name!r} of type {kind} is not supported: {reason}" if reason else ""


def _names(params: Mapping[str, object]) -> set[str]:
    """Return the names in assertions that are Python. Raises SyntaxError, ValueError."""
    trees = [ast.parse(text.strip(), mode="eval") for text in _texts(params, "assertions")]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def grader_problem(grader: Grader) -> str:
    """Return what is wrong with a grader; "" if it is valid."""
    kind, params = grader.type, grader.params
    if kind in _UNSUPPORTED:
        return ""
    if kind in _LISTS:
        return _lists_problem(kind, params)
    if kind in _TEXTS:
        name = _TEXTS[kind]
        return "" if isinstance(params.get(name), str) and params[name] else f"{kind}: expected {name}, a text"
    if kind == "json_schema":
        if not isinstance(params.get("schema"), dict) and not isinstance(params.get("schema_file"), str):
            return "json_schema: expected schema, an object, or schema_file, the path of a file"
        return json_schema.problem(params["schema"]) if "schema" in params else ""
    if kind == "behavior":
        most = params.get("max_duration_ms", 0)
        return "" if isinstance(most, int) and params else "behavior: expected max_duration_ms, an integer"
    return f"Invalid grader type: {cut(kind, 80)}; {suggest(kind, [*_GRADE, *_UNSUPPORTED])}"


def _lists_problem(kind: str, params: Mapping[str, object]) -> str:
    patterns = params.get("content_patterns") if kind == "file" else None
    entries = [("", params, _LISTS[kind])]
    if patterns is not None:
        if not isinstance(patterns, list) or not all(
            isinstance(entry, dict) and isinstance(entry.get("path"), str) for entry in patterns
        ):
            return "file: expected content_patterns as a list of objects with a path"
        entries += [(f"content_patterns[{n}].", entry, _LISTS["regex"]) for n, entry in enumerate(patterns)]
    checks = 0
    for place, fields, names in entries:
        for name in names:
            values = fields.get(name, [])
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                return f"{kind}: expected {place}{name} as a list of texts"
            checks += len(values)
            for wrong in filter(None, map(regex.problem, values if name in _PATTERNS else [])):
                return f"{kind}: {place}{name}: {wrong}"
    if kind == "code" and params.get("language", "python") == "python":
        try:
            _names(params)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f"code: assertions: not an expression of Python: {error}"
    return "" if checks else f"{kind}: nothing to check: expected {' or '.join(_LISTS[kind])}"


@dataclass(frozen=True)
class Attempt:
    """Work of the agent in one trial, and the means to check it."""

    output: str
    workspace: Path
    seconds: float
    folder: Path
    environ: Mapping[str, str]
    stopped: threading.Event
    searcher: regex.Searcher


def grade(grader: Grader, attempt: Attempt) -> list[str]:
    """Return the failures of a grader; empty if it passes."""
    try:
        return list(_GRADE[grader.type](grader.params, attempt))
    except (HostError, OSError, OperationFailed, regex.SearchFailed, json_schema.SchemaFailed, ValueError) as error:
        return [str(error)]


def _grade_text(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    folded = attempt.output.casefold()
    for name in ("contains", "not_contains", "contains_cs", "not_contains_cs"):
        exact, wanted = name.endswith("_cs"), not name.startswith("not_")
        for text in _texts(params, name):
            found = text in attempt.output if exact else text.casefold() in folded
            if found != wanted:
                yield f"Missing expected text: {text}" if wanted else f"Found forbidden text: {text}"
    options = _texts(params, "contains_any")
    if options and not any(text.casefold() in folded for text in options):
        yield f"Missing any of the expected texts: {', '.join(options)}"
    yield from _search(params, attempt.output, attempt, ("regex_match", "regex_not_match"))


def _search(
    params: Mapping[str, object], text: str, attempt: Attempt, names: tuple[str, str], *, ignore_case: bool = False
) -> Iterator[str]:
    for name, wanted in zip(names, (True, False), strict=True):
        for pattern in _texts(params, name):
            if (attempt.searcher.search(pattern, text, ignore_case=ignore_case) is not None) != wanted:
                yield f"Missing expected pattern: {pattern}" if wanted else f"Found forbidden pattern: {pattern}"


def _grade_regex(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    return _search(params, attempt.output, attempt, ("must_match", "must_not_match"), ignore_case=True)


def _grade_file(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    workdir = Workdir(attempt.workspace)
    for name, wanted in (("must_exist", True), ("must_not_exist", False)):
        for path in _texts(params, name):
            if workdir.exists(path) != wanted:
                yield (f"File must exist, but is missing: {path}" if wanted else f"File must not exist: {path}")
    for entry in cast("list[Fields]", params.get("content_patterns") or []):
        path = str(entry["path"])
        try:
            text = workdir.read(path, limit=MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            yield f"File {path} cannot be read: {error.strerror}"
            continue
        yield from (
            f"File {path}: {failure}" for failure in _search(entry, text, attempt, ("must_match", "must_not_match"))
        )


def _grade_file_exists(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    return _grade_file({"must_exist": [params["path"]]}, attempt)


def _grade_json_schema(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    try:
        document = json.loads(attempt.output)
    except ValueError as error:
        yield f"The output is not JSON: {error}"
        return
    schema = params.get("schema")
    if schema is None:
        path = str(params["schema_file"])
        try:
            schema = json.loads(Workdir(attempt.folder).read(path, limit=MOST_BYTES))
        except (OSError, ValueError) as error:
            yield f"The schema {path} cannot be read: {error}"
            return
        if wrong := json_schema.problem(schema):
            yield f"The schema {path}: {wrong}"
            return
    check = json_schema.check_schema(cast("json_schema.Schema", schema), document, where="output")
    if not check.ok:
        yield str(check)


def _grade_behavior(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    most = cast("int", params["max_duration_ms"])
    if attempt.seconds * 1000 > most:
        yield f"Took {attempt.seconds * 1000:.0f} ms, more than max_duration_ms: {most}"


def _grade_program(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    argv = [str(params["command"]), *_texts(params, "args")]
    failure, output = _run_grader(argv, attempt.output, params, attempt)
    if failure:
        yield f"The program failed: {failure}" + (f"; its output: {cut(output.strip(), 500)}" if output.strip() else "")


def _grade_script(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    stdin = json.dumps(_context(attempt))
    failure, output = _run_grader([sys.executable, str(params["script"])], stdin, params, attempt)
    if failure:
        yield f"The script failed: {failure}; its output: {cut(output.strip(), 500)}"
        return
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        yield f"The script did not print a JSON object with passed; its output: {cut(output.strip(), 500)}"
    elif answer.get("passed") is not True:
        yield str(answer.get("message") or "The script did not pass")


# The names are those that waza gives to assertions. It is a program of its own, so that it can be stopped.
_ASSERT = """
import json, re, sys
data = json.load(sys.stdin)
names = {"output": data["output"], "duration_ms": data["duration_ms"], "re": re}
names |= {f.__name__: f for f in (len, any, all, str, int, float, bool, list, dict)}
failures = []
for text in data["assertions"]:
    try:
        if not eval(text.strip(), {"__builtins__": {}}, names):
            failures.append(f"Failed: {text}")
    except BaseException as error:
        failures.append(f"Error in {text!r}: {error}")
print()
print(json.dumps(failures))
"""


def _grade_code(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    stdin = json.dumps({**_context(attempt), "assertions": params["assertions"]})
    failure, output = _run_grader([sys.executable, "-I", "-W", "ignore", "-c", _ASSERT], stdin, params, attempt)
    if failure:
        yield f"The assertions could not be evaluated: {failure}; output: {cut(output.strip(), 500)}"
    else:
        yield from json.loads(output.rstrip().rpartition("\n")[2])


def _context(attempt: Attempt) -> Fields:
    """Return the input of graders that are programs, with the names of waza."""
    return {"output": attempt.output, "duration_ms": round(attempt.seconds * 1000)}


def _run_grader(argv: Sequence[str], stdin: str, params: Mapping[str, object], attempt: Attempt) -> tuple[str, str]:
    """Run a program in the folder of the eval. Returns the reason of its failure, or "", and its output."""
    given = params.get("timeout")
    seconds = given if isinstance(given, (int, float)) and given > 0 else GRADER_SECONDS
    environ = {**attempt.environ, WORKSPACE: str(attempt.workspace)}
    with Commands() as commands:
        end = commands.run(
            argv,
            env=environ,
            folder=attempt.folder,
            deadline=Deadline(seconds, attempt.stopped),
            stdin=stdin.encode("utf-8", "surrogatepass"),
        )
    return end.failure, end.output.text


def _texts(params: Mapping[str, object], name: str) -> list[str]:
    return [str(value) for value in cast("list[object]", params.get(name) or [])]


_GRADE: dict[str, Callable[[Mapping[str, object], Attempt], Iterator[str]]] = {
    "behavior": _grade_behavior,
    "code": _grade_code,
    "file": _grade_file,
    "file_exists": _grade_file_exists,
    "json_schema": _grade_json_schema,
    "program": _grade_program,
    "regex": _grade_regex,
    "script": _grade_script,
    "text": _grade_text,
}
