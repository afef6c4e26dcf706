"""Task, Eval and Agent files: both versions, positions, problems, selection, templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_host.files import (
    AgentFile,
    AgentRef,
    Document,
    EvalFile,
    FileError,
    HostError,
    Labels,
    Reference,
    Requirement,
    Template,
    TemplateError,
    agent_of,
    eval_of,
    read_agent,
    read_file,
    read_task,
    select,
    shown,
    task_of,
)
from ext_sdk.duration import Duration

TASK = """\
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata:
  name: fix
  difficulty: easy
  labels: {suite: web, level: "1"}
  parallel: true
  runs: 2
spec:
  requires: [{extension: shell}, {extension: http, as: web}, {mcpServer: m}]
  limits: {timeout: 5m, cleanupTimeout: 10s}
  prompt: {file: prompt.txt}
  setup:
    - id: first
      shell.run: {command: [ls]}
    - script: {inline: "true"}
      http: {}
  verify:
    - web.request:
        url: http://127.0.0.1/
        method: yes
"""
PATH = Path("/tasks/fix.yaml")


def problems_of(text: str, reader: object = task_of) -> list[str]:
    with pytest.raises(FileError) as error:
        reader(Document.parse(PATH, text))  # type: ignore[operator]
    assert str(error.value) == "\n".join(map(str, error.value.problems))
    return [str(problem).removeprefix(f"{PATH}:") for problem in error.value.problems]


def test_a_task_has_all_its_members() -> None:
    task = task_of(Document.parse(PATH, TASK))
    assert (task.name, task.difficulty, task.parallel, task.runs, task.legacy) == ("fix", "easy", True, 2, False)
    assert task.labels == {"suite": "web", "level": "1"}
    assert [(each.kind, each.name, each.alias) for each in task.requires] == [
        ("extension", "shell", "shell"), ("extension", "http", "web"), ("mcpServer", "m", "m"),
    ]  # fmt: skip
    assert (task.limits.timeout, task.limits.cleanup) == (Duration.parse("5m"), Duration.parse("10s"))
    assert task.prompt_file == Path("/tasks/prompt.txt")
    first, second = task.steps["setup"]
    assert (first.name, first.args, first.phase) == ("shell.run", {"command": ["ls"]}, "setup")
    assert (second.name, second.names) == ("", ("script", "http"))
    assert task.steps["verify"][0].args == {"url": "http://127.0.0.1/", "method": True}
    assert task.steps["cleanup"] == ()


def test_each_member_has_its_place() -> None:
    document = Document.parse(PATH, TASK)
    at = ("spec", "verify", 0, "web.request", "url")
    assert document.position(at) == (20, 14)
    assert document.position(at, key=True) == (20, 9)
    assert document.position((*at, "deeper")) == (20, 14)
    assert document.position(("spec", "cleanup")) == (10, 3)
    assert document.position(("spec", "setup", 1)) == (16, 7)
    assert document.get(at) == "http://127.0.0.1/"
    assert document.get(("spec", "setup", 7)) is None
    assert shown(at) == "spec.verify[0].web.request.url"
    assert Document.parse(PATH, "").position(at) == (1, 1)


def test_all_problems_are_reported_with_their_places() -> None:
    wrong = """\
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata: {name: 7, labels: [a], parallel: "yes", runs: many}
spec:
  requires: [{extension: a, mcpServer: b}, x]
  limits: {timeout: 5 minutes, cleanupTimeout: -1s}
  prompt: {inline: {}}
  setup: {shell.run: {}}
"""
    assert problems_of(wrong) == [
        "3:18: metadata.name: expected a string (in quotes, if it looks like another type), found 7",
        '3:29: metadata.labels: expected an object, found ["a"]',
        '3:44: metadata.parallel: expected true or false, found "yes"',
        '3:57: metadata.runs: expected an integer, found "many"',
        "5:14: spec.requires[0]: expected one of extension and mcpServer, found both",
        '5:44: spec.requires[1]: expected an object, found "x"',
        (
            "6:21: spec.limits.timeout: invalid duration '5 minutes': unknown unit ' minutes'; write numbers with "
            "units h, m, s, ms, us or ns, like 30s, 1h30m or 1.5s"
        ),
        '6:48: spec.limits.cleanupTimeout: expected a duration over 0, found "-1s"',
        '8:10: spec.setup: expected a list, found {"shell.run": {}}',
        "7:20: spec.prompt.inline: expected a string (in quotes, if it looks like another type), found {}",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: expected an object with kind: Task, found null"),
        ("- a", '1:1: expected an object with kind: Task, found ["a"]'),
        ("kind: Eval", "1:7: kind: expected Task, found Eval"),
        ("apiVersion: v1", "1:1: kind: expected Task, found nothing"),
        ("kind: Task\napiVersion: v1", "2:13: apiVersion: expected mcpchecker/v1alpha1 or"),
        ("kind: Task\nmetadata: {}", "1:1: steps: expected an object, found nothing"),
        ("kind: Task\nkind: Task", "2:1: expected YAML: duplicate key 'kind'"),
        ("kind: [", "2:1: expected YAML: did not find expected node content"),
        ("kind: Task\n---\nkind: Task", "3:1: expected one document, found another one"),
        ("[" * 300, "1:0: expected YAML: "),
    ],
)  # fmt: skip
def test_a_file_that_is_no_task_is_refused(text: str, problem: str) -> None:
    found = problems_of(text)[0]
    assert found.startswith(problem) or (text.startswith("[[") and "more than 200 levels deep" in found)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"kind: \xe9")
    for name, reason in (("none.yaml", "No such file or directory"), ("latin.yaml", "it is not UTF-8"), ("", "Is a")):
        with pytest.raises(FileError, match=f"{name}: cannot read this file: {reason}"):
            read_task(tmp_path / name)


def test_a_copy_made_by_the_recorder_has_the_path_of_the_users_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    copy = tmp_path / f"session/config{folder}/evals/agent.yaml"
    copy.parent.mkdir(parents=True)
    copy.write_text("kind: Agent\ncommands: {runPrompt: echo}")
    monkeypatch.setenv("EXT_RECORDER_RUN", str(tmp_path / "session"))
    assert read_agent(copy).path == folder / "evals" / "agent.yaml"
    (folder / "evals").mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert read_agent(copy).path == Path("evals/agent.yaml")
    with pytest.raises(FileError, match=r"^evals/none\.yaml: cannot read this file"):
        read_agent(copy.with_name("none.yaml"))


@pytest.mark.parametrize(
    ("verify", "name", "args"),
    [
        ("{inline: exit 0}", "script", {"inline": "exit 0"}),
        ("{file: check.sh, contains: x}", "script", {"file": "check.sh"}),
        ("{contains: x}", "llmJudge", {"contains": "x"}),
        ("{exact: x}", "llmJudge", {"exact": "x"}),
        ("{inline: ''}", "", None),
        ("{}", "", None),
    ],
)
def test_a_phase_of_v1alpha1_is_one_step(verify: str, name: str, args: object) -> None:
    steps = f"  setup: {{file: s.sh}}\n  verify: {verify}\n  prompt: {{inline: p}}"
    text = f"kind: Task\nmetadata: {{name: old}}\nsteps:\n{steps}"
    task = task_of(Document.parse(PATH, text))
    assert (task.legacy, task.prompt, task.read_prompt()) == (True, "p", "p")
    assert [(step.name, step.args) for step in task.steps["verify"]] == ([(name, args)] if name else [])
    assert [step.name for step in task.steps["setup"]] == ["script"]


def test_a_prompt_is_inline_or_a_file(tmp_path: Path) -> None:
    text = "kind: Task\napiVersion: mcpchecker/v1alpha2\nspec: {prompt: {file: p.txt}}\nmetadata: {}"
    task = task_of(Document.parse(tmp_path / "t.yaml", text))
    with pytest.raises(HostError, match=r"p\.txt: cannot read the prompt: No such file"):
        task.read_prompt()
    (tmp_path / "p.txt").write_text("Do it.")
    assert (task.read_prompt(), task.folder, task.path) == ("Do it.", tmp_path, tmp_path / "t.yaml")
    with pytest.raises(HostError, match="the task has no prompt: set prompt"):
        task_of(Document.parse(PATH, text.replace("{file: p.txt}", "{}"))).read_prompt()


# --- Eval and Agent --------------------------------------------------------------------------------------------------

EVAL = """\
kind: Eval
metadata: {name: 7}
config:
  agent: {type: file, path: agent.yaml}
  mcpConfigFile: mcp.json
  llmJudge: {ref: {type: builtin.llm-agent}}
  extensions:
    shell: {package: ./ext-shell, env: {A: 1, B: true}, config: {limits: {cpu: 1s}}}
    plain: {package: /bin/x}
  defaultTaskLimits: {timeout: 1m}
  taskSets:
    - {glob: "*/task.yaml", labelSelector: {suite: web}}
    - {path: /abs/task.yaml, assertions: {maxToolCalls: 0, noDuplicateCalls: false, toolsUsed: []}}
    - {glob: "t/*.yaml", source: other}
"""


def test_an_eval_has_all_its_members() -> None:
    spec = eval_of(Document.parse(Path("/my [eval]/eval.yaml"), EVAL))
    assert (spec.name, spec.folder, spec.llm_judge, spec.skills) == ("7", Path("/my [eval]"), True, False)
    assert spec.agent is not None
    assert (spec.agent.type, spec.agent.path) == ("file", Path("/my [eval]/agent.yaml"))
    shell = spec.extension("shell")
    assert shell is not None
    assert (shell.package, shell.env, shell.config) == (
        "./ext-shell", {"A": "1", "B": "true"}, {"limits": {"cpu": "1s"}}
    )  # fmt: skip
    assert spec.extensions["plain"].config is None
    assert spec.extension("other") is None
    assert (spec.limits.timeout, spec.mcp_config) == (Duration.parse("1m"), Path("/my [eval]/mcp.json"))
    assert [(each.pattern, each.is_glob, each.source, each.assertions) for each in spec.task_sets] == [
        ("/my [[]eval]/*/task.yaml", True, "", ()),
        ("/abs/task.yaml", False, "", ("maxToolCalls",)),
        ("t/*.yaml", True, "other", ()),
    ]


def test_problems_of_an_eval_have_places() -> None:
    wrong = "kind: Eval\nconfig:\n  agent: {type: file}\n  extensions: {a: {}, b: x}\n  taskSets: [1]"
    texts = " ".join(problems_of(wrong, eval_of))
    for text in (
        "config.extensions.a.package: expected a string, found nothing",
        'config.extensions.b: expected an object, found "x"',
        "config.agent: expected `path`, the file of the agent, for type: file",
        "config.taskSets[0]: expected an object, found 1",
    ):
        assert text in texts
    assert problems_of("kind: Eval\nconfig: {agent: {type: claude}}", eval_of) == [
        "2:24: config.agent.type: expected file or builtin.NAME, found 'claude'"
    ]


def test_enabled_mcp_servers_are_those_of_the_file(tmp_path: Path) -> None:
    spec = EvalFile(None, tmp_path, mcp_config=tmp_path / "mcp.json")
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"url": "u", "disabled": true}}}')
    assert [(server.name, server.spec) for server in spec.mcp_servers()] == [("a", {"command": "x"})]
    (tmp_path / "mcp.json").write_text("{}")
    with pytest.raises(FileError, match=r"mcpServers: expected an object, found nothing"):
        spec.mcp_servers()
    assert EvalFile(None, tmp_path).mcp_servers() == ()


def test_an_agent_has_a_command_acp_or_a_builtin(tmp_path: Path) -> None:
    def parse(text: str) -> AgentFile:
        return agent_of(Document.parse(PATH, f"kind: Agent\nmetadata: {{name: a}}\n{text}"))

    command = parse(
        "commands: {runPrompt: 'x {{.Prompt}}', argTemplateMcpServer: '{{.File}}', argTemplateAllowedTools: t}"
    )
    assert (command.name, command.run_prompt, command.mcp_server_template) == ("a", "x {{.Prompt}}", "{{.File}}")
    assert (command.allowed_tools_template, command.acp, command.builtin) == ("t", (), "")
    assert parse("acp: {cmd: agent, args: [--acp, 7]}").acp == ("agent", "--acp", "7")
    assert parse("builtin: {type: claude-code}").builtin == "claude-code"
    assert problems_of("kind: Agent", agent_of) == [
        "1:1: expected one of commands.runPrompt, acp and builtin, found none"
    ]
    (tmp_path / "a.yaml").write_text("kind: Agent\nacp: {}\nbuiltin: {type: x}")
    assert read_agent(tmp_path / "a.yaml").builtin == "x"
    assert AgentRef("builtin.x").path is None


def test_a_file_is_read_by_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    for text, kind in ((TASK, "TaskFile"), (EVAL, "EvalFile"), ("kind: Agent\nbuiltin: {type: x}", "AgentFile")):
        path.write_text(text)
        assert type(read_file(path)).__name__ == kind
    for text, found in (
        ("kind: Tsk", "found 'Tsk'; did you mean 'Task'?"),
        ("a: 1", "found none"),
        ("kind: [a]", "none"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match="expected a file of kind Task, Eval or Agent, ") as error:
            read_file(path)
        assert found in str(error.value)


# --- Selection -------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, labels in (("b", "{suite: web, level: easy}"), ("a", "{suite: db}"), (".c", "{}")):
        (tmp_path / f"{name}.yaml").write_text(
            f"kind: Task\nmetadata: {{name: task-{name}, labels: {labels}}}\nsteps: {{prompt: {{inline: p}}}}"
        )
    (tmp_path / "other.yaml").write_text("kind: Pod")
    (tmp_path / "several.yaml").write_text("kind: Service\n---\nkind: Pod\n")
    (tmp_path / "link.yaml").symlink_to("a.yaml")
    return tmp_path


def names(folder: Path, sets: str, pattern: str = "", labels: str = "") -> list[str]:
    spec = eval_of(Document.parse(folder / "eval.yaml", f"kind: Eval\nconfig: {{taskSets: [{sets}]}}"))
    return [selected.task.name for selected in select(spec, pattern=pattern, labels=labels)]


def test_tasks_are_selected_once_in_the_order_of_the_sets(folder: Path) -> None:
    assert names(folder, "{path: b.yaml}, {glob: '*.yaml'}") == ["task-b", "task-.c", "task-a"]
    assert names(folder, "{glob: '[^.ol]*.yaml'}") == ["task-a", "task-b"]
    assert names(folder, "{glob: '*.yaml', labelSelector: {suite: web, level: easy}}") == ["task-b"]
    assert names(folder, "{glob: '*.yaml', labelSelector: {suite: web, level: hard}}, {}") == []


def test_names_and_labels_select_further(folder: Path) -> None:
    assert names(folder, "{glob: '*.yaml'}", pattern="[ab]$") == ["task-a", "task-b"]
    assert names(folder, "{glob: '*.yaml'}", labels="suite=web, suite=db") == ["task-a", "task-b"]
    assert names(folder, "{glob: '*.yaml'}", labels="suite=web,level=hard") == []
    for options, problem in (
        ({"pattern": "["}, "expected a regular expression"),
        ({"labels": "a"}, "expected KEY=VALUE, found 'a'"),
        ({"labels": "=b"}, "expected KEY=VALUE"),
    ):
        with pytest.raises(HostError, match=problem):
            names(folder, "{glob: '*.yaml'}", **options)
    assert Labels("").match({})


def test_assertions_of_all_sets_of_a_task_are_problems_of_it(folder: Path) -> None:
    text = "{path: a.yaml, assertions: {toolsUsed: [x]}}, {path: link.yaml, assertions: {maxToolCalls: 1}}"
    spec = eval_of(Document.parse(folder / "eval.yaml", f"kind: Eval\nconfig: {{taskSets: [{text}]}}"))
    (selected,) = select(spec)
    assert [problem.text.partition(":")[0] for problem in selected.assertions] == [
        "assertions.toolsUsed", "assertions.maxToolCalls",
    ]  # fmt: skip
    assert {problem.task for problem in selected.assertions} == {"task-a"}


def test_all_files_that_are_not_valid_are_reported(folder: Path) -> None:
    (folder / "a.yaml").write_text("kind: Task\nsteps: 1")
    with pytest.raises(FileError) as error:
        names(folder, "{glob: '*.yaml'}, {path: none.yaml}")
    assert {problem.path.name for problem in error.value.problems} == {"a.yaml", "link.yaml", "none.yaml"}
    spec = EvalFile.of_tasks([folder / "other.yaml"])
    with pytest.raises(FileError, match="expected Task, found Pod"):
        select(spec)
    assert (spec.path, spec.extension("any")) == (folder / "other.yaml", spec.extension("any"))
    assert spec.problem((), "text").line == 0
    assert Requirement("extension", "a", "a", ()).alias == "a"


# --- Templates -------------------------------------------------------------------------------------------------------


def test_references_are_replaced() -> None:
    text = "a{env.A}b${A}c{steps.shell.run.stdout}d{random.id}$%s"
    template = Template(text, ("steps", "random"))
    assert template.references == [
        Reference("env", "A", 1), Reference("env", "A", 10), Reference("steps", "shell.run.stdout", 14),
        Reference("random", "id", 39),
    ]  # fmt: skip
    filled = template.fill({"A": "{x}"}, {"steps": lambda name: f"<{name}>", "random": str.upper})
    assert filled == "a{x}b{x}c<shell.run.stdout>dID$%s"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a}", "the brace at character 2 is not opened"),
        ("a{b", "the brace at character 2 is not closed"),
        ("{}", "expected {env.NAME}, {steps.NAME} or ${NAME}, found {}"),
        ("{other.x}", "expected {env.NAME}, {steps.NAME} or ${NAME}, found {other.x}"),
        ("{steps.}", "expected the name of a field, found {steps.}"),
        ("${}", "expected the name of an environment variable, found ''"),
        ("${a-b}", "expected the name of an environment variable, found 'a-b'"),
        ("{env.a.b}", "expected the name of an environment variable, found 'a.b'"),
    ],
)
def test_a_brace_of_no_reference_is_refused(text: str, problem: str) -> None:
    with pytest.raises(TemplateError) as error:
        Template(text, ("steps",))
    assert problem in str(error.value)


def test_a_variable_that_is_not_set_is_an_error() -> None:
    with pytest.raises(TemplateError, match="the environment variable A is not set"):
        Template("${A}").fill({})


@given(st.text())
def test_a_text_without_braces_is_itself(text: str) -> None:
    text = text.translate({ord("{"): None, ord("}"): None})
    assert Template(text).fill({}) == text


@given(st.text("{}$ae.nv", max_size=12))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        parts = Template(text, ("a",)).parts
    except TemplateError:
        return
    assert sum(isinstance(part, Reference) for part in parts) == text.count("}") <= text.count("{")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a: @x", "put a value that begins with one of @ ` % * & ! ? into quotes"),
        ("a: *x", "put a value that begins with one of @ ` % * & ! ? into quotes"),
        ("a: &", "put a value that begins with one of @ ` % * & ! ? into quotes"),
        ("a: !x y", "put a value that begins with one of @ ` % * & ! ? into quotes"),
        ("a: {b: ?c}", "put a value that begins with one of @ ` % * & ! ? into quotes"),
        ("a: b: c", "correct the indentation, or put a value with a colon and a blank into quotes"),
        ("a: {{ .Prompt }}", "put a value that begins with a brace into quotes, such as '{{ .Prompt }}'"),
        ("a: - b", "begin the list in a new line"),
        ("a:\n\tb: 1", "indent with blanks, not with a tab"),
        ("a:\n  - b\n c: 1", "correct the indentation: members of one object begin in the same column"),
        ('a: "\\d"', "put the value into single quotes"),
    ],
)
def test_a_text_that_is_not_yaml_has_advice(text: str, advice: str) -> None:
    with pytest.raises(FileError, match=rf"a\.yaml:\d+:\d+: expected YAML: [^;]+; {re.escape(advice)}$"):
        Document.parse(Path("a.yaml"), text)


def test_a_task_of_the_current_format_without_its_version_is_named() -> None:
    document = Document.parse(Path("a.yaml"), "kind: Task\nmetadata: {name: x}\nspec: {verify: []}\n")
    with pytest.raises(FileError, match=r"the task has `spec`; set apiVersion: mcpchecker/v1alpha2 \(found nothing\)"):
        task_of(document)
