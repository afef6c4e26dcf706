"""The linter's command: which files it checks, which manifest it uses, and what it writes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from jsonschema import Draft7Validator

from ext_host.__main__ import main
from ext_host.schema import definition_of
from tests.support.paths import ROOT
from tests.support.program_packages import npm_package

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TASK = """\
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: NAME, parallel: true}
spec:
  requires: [{extension: shell}, {extension: http}]
  prompt: {inline: Fix it.}
"""
RIGHT = TASK + "  verify: [shell.run: {command: [ls]}]\n"
WRONG = TASK + "  verify: [shell.rum: {command: [ls]}]\n"
WARNING = TASK + "  verify: [shell.copy: {source: a, destination: b}]\n"
EVAL = """\
kind: Eval
metadata: {name: e}
config:
  extensions: {shell: {package: ./ext-shell}, http: {package: 'https://github.com/o/http@v1'}}
  taskSets: [{glob: '*/task.yaml'}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def lint(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Return the exit code and the output of a command line."""
    code = main(["lint", *words])
    ended = capsys.readouterr()
    return code, ended.out + ended.err


def test_a_folder_is_searched_for_tasks_and_other_files_are_skipped(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        folder,
        {
            "a/task.yaml": WRONG,
            "b/task.yml": RIGHT,
            "b/tekton.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nspec: {}\n",
            "b/objects.yaml": "kind: Pod\n---\nkind: Service\n",
            "c/kind.yaml": RIGHT.replace("Task", "Tsk"),
            "b/template.yaml": "kind: {{ .Kind }}\n",
            ".git/task.yaml": WRONG,
        },
    )
    code, text = lint(capsys, ".")
    assert code == 1
    assert text == (
        "a/task.yaml:7:12: error: shell has no operation 'rum'; did you mean 'run'? [step]\n"
        "c/kind.yaml:1:7: error: expected `kind: Task` or `kind: Eval` of mcpchecker, found 'Tsk' with apiVersion "
        "'mcpchecker/v1alpha2'; did you mean 'Task'? [file]\n"
        "3 files checked: 2 errors, 0 warnings\n"
    )


def test_a_check_of_nothing_does_not_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"values.yaml": "a: 1\n", "tasks/readme.txt": ""})
    code, text = lint(capsys, ".")
    assert (code, text) == (2, "ext-host: nothing checked: found no file of kind Task, Eval or Agent in .\n")
    code, text = lint(capsys, "values.yaml")
    assert code == 1
    assert "values.yaml:1:1: error: expected `kind: Task` or `kind: Eval` of mcpchecker, found neither [file]" in text
    assert lint(capsys, "--skip-others", "values.yaml") == (0, "0 files checked: 0 errors, 0 warnings\n")
    assert lint(capsys, "absent.yaml") == (2, "ext-host: absent.yaml: expected a file or folder, found nothing\n")
    assert lint(capsys)[0] == 2


def test_a_file_that_cannot_be_read_is_an_error_at_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"task.yaml": RIGHT + "  cleanup: [a: {b: ]\n"})
    code, text = lint(capsys, "task.yaml")
    assert code == 1
    assert text.startswith("task.yaml:8:20: error: expected YAML: ")


def test_warnings_fail_with_strict_only_and_rules_can_be_ignored(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"task.yaml": WARNING, "other.yaml": RIGHT.replace("shell", "shel")})
    code, text = lint(capsys, "other.yaml", "--strict")
    assert (
        code,
        text.count("steps of shel are not checked: its manifest is not installed; did you mean 'shell'?"),
    ) == (
        1,
        1,
    )
    assert lint(capsys, "task.yaml")[0] == 0
    assert lint(capsys, "task.yaml", "--strict")[0] == 1
    assert lint(capsys, "task.yaml", "--strict", "--ignore", "no-check,step")[0] == 0
    assert lint(capsys, "task.yaml", "--ignore", "no-chek") == (
        2,
        "ext-host: --ignore: unknown rule 'no-chek'; did you mean 'no-check'?\n",
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (WRONG.replace("[ls]}]", "[ls]}] # ext-host: ignore[step]"), 0),
        (WRONG.replace("  verify", "  # ext-host: ignore\n  verify"), 0),
        (WRONG.replace("  verify", "  # ext-host: ignore[output, step]\n  verify"), 0),
        (WRONG.replace("[ls]}]", "[ls]}] # ext-host: ignore[output]"), 1),
        (WRONG.replace("Fix it.}", "Fix it.} # ext-host: ignore[step]"), 1),
    ],
)
def test_a_comment_ignores_rules_in_its_line_or_the_next(
    text: str, code: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"task.yaml": text})
    assert lint(capsys, "task.yaml")[0] == code


def test_an_eval_stands_for_its_tasks_and_gives_the_programs_of_their_extensions(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = TASK + "  verify: [http.no-such-operation: {}, shell.rum: {}]\n"
    write(folder, {"eval.yaml": EVAL, "a/task.yaml": unknown, "ext-shell": ""})
    code, text = lint(capsys, "eval.yaml")
    assert (code, text) == (
        1,
        (
            "a/task.yaml:5:46: warning: steps of http are not checked: its manifest is not installed; --extension "
            "http=PROGRAM, or =MANIFEST, gives it [not-checked]\n"
            "a/task.yaml:7:40: error: shell has no operation 'rum'; did you mean 'run'? [step]\n"
            "2 files checked: 1 error, 1 warning\n"
        ),
    )
    code, text = lint(capsys, "eval.yaml", "--extension", "http=ext-http")
    assert "http has no operation 'no-such-operation'" in text
    assert "no-such-operation" in lint(capsys, "a")[1]  # without an eval: the installed extension
    assert "found 'ext-no'; " in lint(capsys, "a", "--extension", "http=ext-no")[1]


def test_the_executable_is_the_extension_that_its_variable_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = EVAL.replace("package: ./ext-shell", "package: ./gevals-extensions, env: {GEVALS_EXTENSION: shell}")
    files = {"eval.yaml": spec, "a/task.yaml": f"{TASK}  verify: [shell.rum: {{}}]\n", "gevals-extensions": ""}
    write(folder, files)
    for words in (["eval.yaml"], ["a", "--extension", "shell=./gevals-extensions"]):
        code, text = lint(capsys, *words)
        assert (code, "shell has no operation 'rum'" in text) == (1, True)
    write(folder, {"eval.yaml": spec.replace(", env: {GEVALS_EXTENSION: shell}", "")})
    assert "steps of shell are not checked" in lint(capsys, "eval.yaml")[1]


def test_a_manifest_of_another_extension_is_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params = {"type": "object", "properties": {"sql": {"type": "string"}}, "additionalProperties": False}
    manifest = {"name": "db", "operations": {"query": {"params": params}}}
    task = RIGHT.replace("{extension: http}", "{extension: db}").replace(
        "[shell.run: {command: [ls]}]", "[db.query: {sq: '${HOME}'}]"
    )
    write(folder, {"task.yaml": task, "manifest.json": json.dumps(manifest), "broken.json": "{}"})
    assert lint(capsys, "task.yaml")[0] == 0
    code, text = lint(capsys, "task.yaml", "--extension", "db=manifest.json")
    assert (code, text.partition("\n")[0]) == (
        1,
        "task.yaml:7:23: error: db.query: unknown argument 'sq'; did you mean 'sql'? [arguments]",
    )
    assert "expected the manifest of an extension" in lint(capsys, "task.yaml", "--extension", "db=broken.json")[1]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("./ext-shell", "./ext-shel", "eval.yaml:4:33: warning: no such program: ./ext-shel [missing-program]"),
        ("./ext-shell", "ext-shell", "eval.yaml:4:33: error: expected a path that begins with ./, /, ~/ or file://"),
        ("shell: ", "shel: ", "a/task.yaml:5:26: warning: the eval eval.yaml has no extension 'shell'; did you mean"),
        ("*/task.yaml", "*/tusk.yaml", "eval.yaml:5:21: error: no file matches the glob '*/tusk.yaml' [no-tasks]"),
        ("*/task.yaml", "*.yaml", "eval.yaml:5:21: error: no file is a Task that matches the glob '*.yaml' [no-tasks]"),
        (
            "glob: '*/task.yaml'",
            "path: no.yaml",
            "eval.yaml:5:21: error: no file matches the path 'no.yaml' [no-tasks]",
        ),
        ("glob: '*/task.yaml'", "", "eval.yaml:5:14: error: expected glob or path, found neither [no-tasks]"),
        (
            "'}]",
            "', labelSelector: {suite: b}}]",
            "eval.yaml:5:51: error: no task of the glob '*/task.yaml' has the labels suite=b; found suite=a [no-tasks]",
        ),
        ("  taskSets: [{glob: '*/task.yaml'}]\n", "", "eval.yaml:4:3: error: the eval has no task sets, so that it"),
        ("taskSets: [{glob: '*/task.yaml'}]", "taskSets: a", "warning: the tasks of this eval are not checked"),
        (
            "./ext-shell}",
            "./ext-shell, config: {maxOperationTime: -5s}}",
            "eval.yaml:4:73: error: config of shell: maxOperationTime: expected a duration of more than 0s [arguments]",
        ),
        (
            "./ext-shell}",
            "./ext-shell, config: {maxOperatonTime: 5s}}",
            "error: config of shell: unknown argument 'maxOperatonTime'; did you mean 'maxOperationTime'? [arguments]",
        ),
        ("config:", "config:\n  agent: {type: file, path: a.yaml}", "eval.yaml:4:29: error: no such file: a.yaml"),
        (
            "{name: e}",
            "{name: ''}",
            "eval.yaml:2:12: error: metadata.name: expected at least 1 character, found",
        ),
        ("config:", "config:\n  agentFile: a.yaml", "eval.yaml:4:3: warning: config: unknown member 'agentFile'"),
    ],
)
def test_problems_of_an_eval_are_found(
    old: str, new: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = RIGHT.replace("parallel: true", "parallel: true, labels: {suite: a}")
    write(folder, {"eval.yaml": EVAL.replace(old, new), "a/task.yaml": task, "ext-shell": ""})
    assert expected in lint(capsys, "eval.yaml")[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acp: {cmd: a, arg: [b]}", "agent.yaml:2:15: warning: acp: unknown member 'arg'; did you mean 'args'?"),
        ("commands: {getVersion: a}", "agent.yaml:1:1: error: expected one of commands.runPrompt, acp and builtin"),
        (
            "metadata: {name: ''}\nacp: {cmd: a}",
            "agent.yaml:2:12: error: metadata.name: expected at least 1 character,",
        ),
        ("acp: {cmd: a, args: [b, 1]}", "1 file checked: 0 errors, 0 warnings"),
    ],
)
def test_problems_of_an_agent_are_found(
    text: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"agent.yaml": f"kind: Agent\n{text}\n"})
    assert expected in lint(capsys, "agent.yaml")[1]


def test_an_extension_that_cannot_be_imported_is_checked_by_its_manifest(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {"task.yaml": RIGHT.replace("[ls]}", "[ls], timeout: -5s, cwd: 1}")})
    monkeypatch.setitem(sys.modules, "ext_shell.extension", None)
    definition_of.cache_clear()
    assert "1 error" in lint(capsys, "task.yaml")[1]
    monkeypatch.undo()
    definition_of.cache_clear()
    assert "2 errors" in lint(capsys, str(folder / "task.yaml"))[1]


def test_a_judge_without_a_model_and_a_verify_with_assertions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = TASK + "  verify: [llmJudge: {contains: done}]\n"
    write(folder, {"eval.yaml": EVAL, "a/task.yaml": judged, "ext-shell": ""})
    assert "a/task.yaml:7:12: warning: the eval has no `config.llmJudge`" in lint(capsys, ".")[1]
    with_judge = EVAL + "  llmJudge: {ref: {type: builtin.claude-code}}\n"
    write(folder, {"eval.yaml": with_judge})
    assert lint(capsys, ".")[1] == "2 files checked: 0 errors, 0 warnings\n"
    asserted = EVAL.replace("'}]", "', assertions: {minToolCalls: 1}}]")
    write(folder, {"eval.yaml": asserted, "a/task.yaml": TASK})
    assert lint(capsys, ".")[1] == "2 files checked: 0 errors, 0 warnings\n"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("shell.run: {command: [ls], as: a}", "uses the name of outputs 'a', too"),
        ("shell.write-file: {path: a.txt, content: a}", "uses the file 'a.txt', too"),
        ("shell.start: {command: [ls], name: web}, shell.stop: {name: web}", "uses the process 'web', too"),
        ("shell.run: {command: [ls], as: a, scope: NAME}", ""),
        ("shell.run: {command: [ls]}", ""),
    ],
)
def test_parallel_tasks_of_a_folder_do_not_share_names(
    step: str, expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TASK + f"  setup: [{step}]\n  verify: [shell.run: {{command: [ls]}}]\n"
    write(folder, {f"{name}.yaml": text.replace("NAME", name) for name in ("one", "two")})
    found = lint(capsys, ".")[1]
    assert ("two.yaml:7:11: warning: the parallel task 'one' of this folder " + expected in found) == bool(expected)
    assert "1 warning" in found if expected else "0 warnings" in found


def test_parallel_tasks_do_not_create_the_same_namespace(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TASK.replace("{extension: http}", "{extension: kubernetes}") + (
        "  setup: [kubernetes.create-namespace: {name: web}]\n  verify: [shell.run: {command: [ls]}]\n"
        "  cleanup: [kubernetes.delete-namespace: {name: web}]\n"
    )
    write(folder, {f"{name}/task.yaml": text.replace("NAME", name) for name in ("one", "two")})
    found = lint(capsys, ".")[1]
    assert "two/task.yaml:7:11: warning: the parallel task 'one' creates the namespace 'web', too" in found
    assert "1 warning" in found


def test_parallel_tasks_do_not_share_a_port_and_names_are_unique(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mock = (
        "  setup: [http.mock-start: {upstream: {url: 'http://127.0.0.1:1'}, port: PORT}]\n"
        "  cleanup: [http.mock-stop: {}]\n"
    )
    texts = {f"{name}/task.yaml": RIGHT + mock.replace("PORT", "8080") for name in ("a", "b")}
    write(folder, texts | {"c/task.yaml": RIGHT + mock.replace("PORT", "8081"), "eval.yaml": EVAL, "ext-shell": ""})
    found = lint(capsys, "eval.yaml", "--extension", "http=ext-http")[1]
    assert "b/task.yaml:8:74: warning: the parallel task 'NAME' uses the port 8080, too" in found
    assert found.count("[shared-port]") == 1
    assert found.count("[duplicate-name]") == 2


def test_findings_are_written_as_json_and_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"task.yaml": WRONG})
    assert lint(capsys, "task.yaml", "--format", "json", "-o", "out.json") == (1, "")
    assert json.loads((folder / "out.json").read_text()) == {
        "files": 1,
        "findings": [
            {
                "path": "task.yaml",
                "line": 7,
                "column": 12,
                "rule": "step",
                "severity": "error",
                "text": "shell has no operation 'rum'; did you mean 'run'?",
            }
        ],
    }


def test_findings_are_annotations_of_github(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, {"a,b/100%.yaml": WRONG})
    code, text = lint(capsys, "a,b", "--format", "github")
    assert (code, text) == (
        1,
        (
            "::error file=a%2Cb/100%25.yaml,line=7,col=12,title=ext-host step::"
            "shell has no operation 'rum'; did you mean 'run'?\n"
        ),
    )


def test_sarif_is_valid_by_its_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = npm_package("@microsoft/jest-sarif", "1.0.0-beta.0")
    write(folder, {"a b/task.yaml": WRONG, "broken.yaml": "kind: Task\napiVersion: mcpchecker/v1alpha2\n"})
    code, text = lint(capsys, ".", "--format", "sarif")
    log = json.loads(text)
    schema = json.loads(next(package.glob("lib/schemas/sarif-2.1.0*.json")).read_bytes())
    assert [error.message for error in Draft7Validator(schema).iter_errors(log)] == []
    assert code == 1
    result = next(each for each in log["runs"][0]["results"] if each["ruleId"] == "step")
    place = result["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "a%20b/task.yaml"},
        "region": {"startLine": 7, "startColumn": 12},
    }
    assert log["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "step"


def test_the_hook_of_pre_commit_skips_other_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    write(folder, {"values.yaml": "a: 1\n", "task.yaml": WRONG})
    program, name, *words = hook["entry"].split()
    assert (program, name) == ("ext-host", "lint")
    assert main([name, *words, "values.yaml"]) == 0
    assert main([name, *words, "values.yaml", "task.yaml"]) == 1
    assert "1 error" in capsys.readouterr().out


def test_the_examples_of_this_project_have_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    """Except for links to programs, which users create."""
    code, text = lint(capsys, str(ROOT / "docs" / "examples"), "--strict", "--ignore", "missing-program")
    assert (code, text.partition(":")[2]) == (0, " 0 errors, 0 warnings\n"), text


@pytest.mark.parametrize(
    "task",
    [
        RIGHT + "  cleanup: [a: {b: ]\n",
        RIGHT.replace("kind: Task", "kind: Tasks"),
        RIGHT.replace("apiVersion: mcpchecker/v1alpha2\n", ""),
        RIGHT + "  prompt: {inline: Twice.}\n",
    ],
)
def test_a_task_with_an_error_of_its_own_is_not_missing_in_the_eval(
    task: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, {"a/task.yaml": task, "eval.yaml": EVAL})
    code, text = lint(capsys, "eval.yaml")
    assert code == 1
    assert "a/task.yaml:" in text
    assert "[no-tasks]" not in text
