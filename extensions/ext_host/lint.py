"""`ext-host lint`: check task and eval files without running anything.

`lint_rules` has the rules. This module finds the files, decides which manifest an extension of a task has, and writes
the findings as text, JSON, SARIF or annotations of GitHub Actions.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ext_sdk.core import CHOICE, __version__
from ext_sdk.core.text import counted, suggest

from .files import Document, EvalFile, FileError, HostError, TaskFile, agent_of, eval_of, no_task, task_of, task_paths
from .lint_rules import (
    ERROR,
    IGNORE,
    RULES,
    WARNING,
    Finding,
    TaskRules,
    eval_findings,
    finding,
    format_findings,
    kept_names,
    shared,
    unknown_rules,
)
from .schema import Extension, extension_of, extensions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .files import At, Problem

EXIT_FOUND, EXIT_NOTHING = 1, 2
SUFFIXES = (".yaml", ".yml")
_KIND = re.compile(r"^[\"']?kind[\"']?:\s*[\"']?(Task|Eval|Agent)\b", re.MULTILINE)
_OTHER = re.compile(
    r"^[\"']?apiVersion[\"']?:\s*[\"']?(?!mcpchecker/|gevals/)[^\s\"'#]", re.MULTILINE
)  # of Tekton, for one
_STEP = re.compile(r"spec\.(setup|verify|cleanup)\[")  # the schema of files does not have steps
_OURS = re.compile(r"^[\"']?apiVersion[\"']?:\s*[\"']?mcpchecker/", re.MULTILINE)


@dataclass
class Eval:
    """Eval that was read, with the tasks that it selects: by the place of each task set with local files."""

    spec: EvalFile
    selected: list[tuple[At, list[TaskFile]]] = field(default_factory=list)

    @cached_property
    def paths(self) -> dict[Path, bool]:
        """The files of all tasks, resolved, with True for those in a task set with assertions."""
        found: dict[Path, bool] = {}
        with_assertions = {task_set.at for task_set in self.spec.task_sets if task_set.assertions}
        for at, tasks in self.selected:
            for task in tasks:
                path = task.path.resolve()
                found[path] = found.get(path, False) or at in with_assertions
        return found


class Linter:
    """One run of the linter.

    Args:
        named: extensions by name, in place of those of the evals.
        skip_others: accept given files that are not tasks or evals.

    Attributes:
        checked: number of files of mcpchecker's format.
        findings: without duplicates, in the order of their places.
    """

    def __init__(self, named: Sequence[str] = (), *, skip_others: bool = False) -> None:
        self._extensions = extensions_of(named)
        self._named = {option.partition("=")[0] for option in named}
        self._skip_others = skip_others
        self._tasks: dict[Path, TaskFile] = {}
        self._evals: list[Eval] = []
        self._read: dict[Path, Document | None] = {}
        self._found: list[Finding] = []

    @property
    def checked(self) -> int:
        return sum(document is not None for document in self._read.values())

    @property
    def findings(self) -> list[Finding]:
        return sorted(set(self._found))

    @property
    def _wrong(self) -> set[Path]:
        """The files with errors, resolved."""
        return {each.path.resolve() for each in self._found if each.severity == ERROR}

    def run(self, paths: Sequence[Path]) -> None:
        """Check files, and all files in folders. Raises HostError for a path that does not exist."""
        for path in paths:
            if path.is_dir():
                for each in _files_in(path):
                    self._file(each, given=False)
            elif path.exists():
                self._file(path, given=not self._skip_others)
            else:
                raise HostError(f"{path}: expected a file or folder, found nothing")
        for one in self._evals:
            sets = [task_set for task_set in one.spec.task_sets if not task_set.source]
            for task_set in sets:
                paths = task_paths(task_set)
                tasks = self._tasks_of(paths)
                selected = [task for task in tasks if task_set.labels.items() <= task.labels.items()]
                one.selected.append((task_set.at, selected))
                problem = no_task(one.spec.document, task_set, tasks) if one.spec.document else None
                if problem and not self._wrong.intersection(path.resolve() for path in paths if path.exists()):
                    self._add_problems([problem], "no-tasks")
            self._found += eval_findings(one.spec, one.selected, extension_of)
        self._apply()

    def _apply(self) -> None:
        """Apply the rules for tasks, when all files are known."""
        rules = [self._task_rules(path, task) for path, task in self._tasks.items()]
        for one in rules:
            self._found += one.run()
        for group in self._groups(rules):
            self._found += shared(group)

    def _tasks_of(self, paths: Sequence[Path]) -> list[TaskFile]:
        for path in paths:
            self._file(_shown_path(path), given=False)
        return [self._tasks[key] for path in paths if (key := path.resolve()) in self._tasks]

    def _file(self, path: Path, *, given: bool) -> None:
        """Read a file and check its members, once.

        Args:
            given: by a user, who expects a file of this format.
        """
        key = path.resolve()
        if key in self._read:
            return
        self._read[key] = None
        try:
            text = path.read_text("utf-8", "replace") if path.is_file() else ""
            if not given and not _OURS.search(text) and (not _KIND.search(text) or _OTHER.search(text)):
                return
            document = Document.read(path)
        except FileError as error:
            self._add_problems(error.problems)
            self._read[key] = Document(path, None, None)
            return
        self._read[key] = document
        self._found += unknown_rules(document, text)
        kind, version = document.get(("kind",)), document.get(("apiVersion",))
        if kind not in ("Task", "Eval", "Agent") or _OTHER.search(text):
            found = "neither" if not kind else f"{kind!r} with apiVersion {version!r}" if version else repr(kind)
            wrong = f"expected `kind: Task` or `kind: Eval` of mcpchecker, found {found}"
            near = suggest(str(kind), ("Task", "Eval", "Agent"), none="")
            wrong += f"; {near}" if kind and near.startswith("did") else ""
            self._found.append(finding(document, "file", ("kind",), wrong))
            return
        self._add_problems(list(document.questions()) if "?" in text else [])
        found_here = list(format_findings(document))
        self._found += found_here
        self._parse(key, document, [each for each in found_here if each.rule == "file"])

    def _parse(self, key: Path, document: Document, found: list[Finding]) -> None:
        """Read the Task, Eval or Agent of a document, without the members that are wrong.

        Args:
            found: wrong members that were reported.
        """
        problems: list[Problem] = []
        what, read = "the tasks of this eval", False
        try:
            if document.get(("kind",)) == "Task":
                what = "the steps of this task"
                self._tasks[key] = task = task_of(document, problems)
                read = any(task.steps.values())
            elif document.get(("kind",)) == "Eval":
                self._evals.append(Eval(spec := eval_of(document, problems)))
                read = bool(spec.task_sets)
            else:
                read = bool(agent_of(document))
        except FileError as error:
            problems += error.problems
        new = [each for each in problems if not found or _STEP.match(each.text)]  # else they are the same
        found = [*found, *self._add_problems(new)]
        if problems and not read and document.get(("kind",)) != "Agent":
            text = f"{what} are not checked before this is correct"
            self._found.append(min(found)._replace(rule="not-checked", text=text))

    def _add_problems(self, problems: Sequence[Problem], rule: str = "file") -> list[Finding]:
        found = [Finding(each.path, each.line, each.column, rule, each.text) for each in problems]
        self._found += found
        return found

    def _task_rules(self, path: Path, task: TaskFile) -> TaskRules:
        evals = [each for each in self._evals if path in each.paths]
        return TaskRules(
            task,
            extensions=partial(self._extension, evals),
            neighbours=partial(self._neighbours, path),
            has_judge=all(each.spec.document and each.spec.document.get(("config", "llmJudge")) for each in evals),
            asserted=any(each.paths[path] for each in evals),
            known=() if evals else self._extensions,
        )

    def _extension(self, evals: Sequence[Eval], name: str) -> Extension | None:
        """Return the manifest of an extension, of which the evals of a task give the program."""
        specs = [each.spec.extensions[name] for each in evals if name in each.spec.extensions]
        if specs and name not in self._named:
            known = [extension_of(each.package, each.env.get(CHOICE, "")) for each in specs]
            return None if None in known else known[0]
        return self._extensions.get(name)

    def _neighbours(self, path: Path) -> set[str]:
        others = (task for other, task in self._tasks.items() if other != path and other.parent == path.parent)
        return {name for task in others for name in kept_names(task)}

    def _groups(self, rules: Sequence[TaskRules]) -> Iterator[list[TaskRules]]:
        """Yield tasks that may run at the same time: those of an eval; without one, those in the same parent folder."""
        groups: defaultdict[object, list[TaskRules]] = defaultdict(list)
        for one in rules:
            path = one.task.path.resolve()
            keys: list[object] = [index for index, each in enumerate(self._evals) if path in each.paths]
            for key in keys or [path.parent.parent]:
                groups[key].append(one)
        yield from groups.values()

    def without_ignored(self, rules: Sequence[str]) -> list[Finding]:
        """Return the findings without those of some rules, and those that a comment in their line ignores."""
        lines: dict[Path, list[str]] = {}
        kept = []
        for each in self.findings:
            if each.rule in rules:
                continue
            if each.path not in lines:
                lines[each.path] = each.path.read_text("utf-8", "replace").split("\n") if each.path.is_file() else []
            own = lines[each.path][max(each.line - 2, 0) : each.line]
            if len(own) == 2 and not own[0].lstrip().startswith("#"):  # a comment after other content is about its line
                own = own[1:]
            names = [match[1] for line in own for match in IGNORE.finditer(line)]
            if not any(name is None or each.rule in re.split(r"[\s,]+", name.strip()) for name in names):
                kept.append(each)
        return kept


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the YAML files in a folder, without hidden folders and those of packages."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(SUFFIXES))


def _shown_path(path: Path) -> Path:
    """Return a path relative to the current folder, if it is in it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


# --- Formats ---------------------------------------------------------------------------------------------------------


def as_text(findings: Sequence[Finding], checked: int) -> str:
    """Return one line for each finding, and a summary."""
    places = [f"{each.path}:{each.line}:{each.column}" if each.line else str(each.path) for each in findings]
    lines = [f"{at}: {each.severity}: {each.text} [{each.rule}]" for at, each in zip(places, findings, strict=True)]
    counts = [counted(sum(each.severity == kind for each in findings), kind) for kind in (ERROR, WARNING)]
    return "\n".join([*lines, f"{counted(checked, 'file')} checked: {', '.join(counts)}"]) + "\n"


def as_json(findings: Sequence[Finding], checked: int) -> str:
    """Return an object with the findings."""
    items = [each._asdict() | {"path": str(each.path), "severity": each.severity} for each in findings]
    return json.dumps({"files": checked, "findings": items}, ensure_ascii=False, indent=2) + "\n"


def as_github(findings: Sequence[Finding], checked: int) -> str:
    """Return workflow commands of GitHub Actions, which become annotations, and the summary."""

    def escaped(text: str, more: str = "") -> str:
        for mark in f"%\r\n{more}":
            text = text.replace(mark, f"%{ord(mark):02X}")
        return text

    lines = []
    for each in findings:
        place = f"file={escaped(str(each.path), ':,')}"
        place += f",line={each.line},col={each.column}" if each.line else ""
        lines.append(
            f"::{each.severity} {place},title={escaped(f'ext-host {each.rule}', ':,')}::{escaped(each.text)}\n"
        )
    return "".join(lines) + as_text((), checked).replace(", 0 warnings", "") if not lines else "".join(lines)


def as_sarif(findings: Sequence[Finding], checked: int) -> str:
    """Return a log in SARIF 2.1.0, for code scanning."""
    from urllib.parse import quote

    names = list(RULES)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": severity},
        }
        for name, (severity, text) in RULES.items()
    ]
    results = []
    for each in findings:
        path = _shown_path(each.path)
        uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
        location: dict[str, object] = {"artifactLocation": {"uri": uri}}
        if each.line:
            location["region"] = {"startLine": each.line, "startColumn": each.column}
        results.append(
            {
                "ruleId": each.rule,
                "ruleIndex": names.index(each.rule),
                "level": each.severity,
                "message": {"text": each.text},
                "locations": [{"physicalLocation": location}],
            }
        )
    driver = {"name": "ext-host lint", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "properties": {"files": checked},
        "results": results,
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=2) + "\n"


FORMATS: Mapping[str, Callable[[Sequence[Finding], int], str]] = {
    "text": as_text,
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
}


@click.command("lint")
@click.argument("paths", nargs=-1, metavar="FILE|FOLDER...", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="text", show_default=True, help="Output.")
@click.option("-o", "--output", metavar="FILE", help="File to write. Default: standard output.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@click.option("--ignore", multiple=True, metavar="RULE,...", help="Rules that are not applied.")
@click.option(
    "--extension",
    "extensions",
    multiple=True,
    metavar="NAME=PROGRAM|MANIFEST",
    help="Manifest of an extension, in place of its package in evals. Default: the installed extension of this name.",
)
@click.option("--skip-others", is_flag=True, help="Skip files of other kinds, and succeed if no task or eval is left.")
@click.option("--rules", is_flag=True, help="List the rules and exit.")
def command(
    paths: Sequence[Path],
    form: str,
    output: str | None,
    ignore: Sequence[str],
    extensions: Sequence[str],
    *,
    strict: bool,
    skip_others: bool,
    rules: bool,
) -> int:
    """Check task and eval files without running anything.

    Of a folder, all its files of these kinds are checked; of an eval, also its tasks. A comment
    `# ext-host: ignore[RULE]` in a line, or in a line of its own before it, ignores findings there. Exit codes: 0
    without errors, 1 with errors, 2 if nothing was checked.
    """
    if rules:
        for name, (severity, text) in RULES.items():
            click.echo(f"{name:16} {severity:8} {text}")
        return 0
    if not paths:
        raise click.UsageError("expected files or folders with tasks and evals, found none.")
    ignored = [name for text in ignore for name in re.split(r"[\s,]+", text.strip())]
    for name in ignored:
        if name not in RULES:
            raise HostError(f"--ignore: unknown rule {name!r}; {suggest(name, RULES)}")
    linter = Linter(extensions, skip_others=skip_others)
    gc.disable()  # a third of the time, for objects that are not in cycles
    try:
        linter.run(paths)
    finally:
        gc.freeze()  # the first collection would search all that was read
        gc.enable()
    if not linter.checked and not skip_others:
        raise HostError(f"nothing checked: found no file of kind Task, Eval or Agent in {', '.join(map(str, paths))}")
    findings = linter.without_ignored(ignored)
    text = FORMATS[form](findings, linter.checked)
    if output:
        Path(output).write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
    failing = [each for each in findings if strict or each.severity == ERROR]
    return EXIT_FOUND if failing else 0
