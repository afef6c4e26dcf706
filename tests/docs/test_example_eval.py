"""The example eval, docs/examples/eval: what mcpchecker demands of its files; its tasks, run by ext-host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema
import pytest
import yaml

from tests.docs.pages import ROOT
from tests.docs.running import run

if TYPE_CHECKING:
    from tests.support.ports import NewPort

EVAL = ROOT / "docs" / "examples" / "eval"
TASKS = sorted(EVAL.glob("*/task.yaml"))
RECORDER = (sys.executable, "-P", "-m", "ext_recorder")
LIMIT_SECONDS = 120
IDLE = "echo I did nothing"
SCRIPT = 'sh "$EXT_HOST_TASK_FOLDER/agent.sh" "$1"'
PHASES = ("setup", "verify", "cleanup")
WORKFLOW = Path(".github", "workflows", "evals.yaml")
# An agent over ACP that fixes the greeting, if it is allowed to edit the file.
ACP_AGENT = """
import asyncio, pathlib, re, acp
from acp import schema

class Fixer(acp.Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        mcp = schema.McpCapabilities(http=True)  # mcpchecker requires it
        capabilities = schema.AgentCapabilities(mcp_capabilities=mcp)
        return acp.InitializeResponse(protocol_version=protocol_version, agent_capabilities=capabilities)

    async def new_session(self, cwd, **_):
        return acp.NewSessionResponse(session_id="1")

    async def prompt(self, prompt, session_id, **_):
        file = pathlib.Path(re.search(r"/.*/greet.py", prompt[0].text)[0])
        asked = await self.client.request_permission(
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="edit-1", title="Edit"),
            options=[
                schema.PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
                schema.PermissionOption(option_id="no", name="Reject", kind="reject_once"),
            ],
        )
        if getattr(asked.outcome, "option_id", "") == "yes":
            file.write_text(file.read_text().replace("Helo", "Hello"))
        await self.client.session_update(session_id, acp.update_agent_message_text(f"I fixed {file}"))
        return acp.PromptResponse(stop_reason="end_turn")

asyncio.run(acp.run_agent(Fixer()))
"""
# An extension whose operation `run` ends with an error of the protocol, and whose other operations succeed.
FAULTY = """
import json, pathlib, sys
for line in sys.stdin:
    request = json.loads(line)
    answer = {"result": {"success": True, "message": "fine"}}
    if request["method"] == "initialize":
        answer = {"result": json.loads(pathlib.Path(sys.argv[1]).read_text())}
    elif request["params"].get("operation") == "run":
        answer = {"error": {"code": -32603, "message": "a fault"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""


# --- What mcpchecker demands (pkg/eval, pkg/agent, pkg/mcpclient, pkg/task of its sources) ----------------------------


def read(name: str) -> Any:
    return yaml.safe_load((EVAL / name).read_text())


def test_the_eval_has_an_agent_a_server_and_packages_that_are_paths() -> None:
    spec = read("eval.yaml")
    config = spec["config"]
    assert (spec["kind"], set(spec["metadata"])) == ("Eval", {"name"})
    agent, extensions = config["agent"], config["extensions"]
    assert agent["type"] == "file"
    assert (EVAL / agent["path"]).is_file()
    for extension in extensions.values():
        assert extension["package"].startswith(("./", "../", "/", "~/", "file://"))
        assert set(extension) <= {"package", "env", "config"}
        assert not set("{}") & set(
            json.dumps([*extension.get("env", {}).values(), *extension.get("config", {}).values()])
        )
    servers = read(config["mcpConfigFile"])["mcpServers"]
    assert [one for one in servers.values() if one["command"] and not one.get("disabled")]


def test_the_agent_is_a_command_with_the_prompt() -> None:
    spec = read("agent.yaml")
    assert spec["kind"] == "Agent"
    assert spec["metadata"]["name"]
    assert "{{ .Prompt }}" in spec["commands"]["runPrompt"]


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.parent.name)
def test_a_task_has_a_folder_of_its_own_and_steps_that_fit_the_manifest(path: Path) -> None:
    task = yaml.safe_load(path.read_text())
    assert (task["kind"], task["apiVersion"]) == ("Task", "mcpchecker/v1alpha2")
    assert task["metadata"]["name"] == path.parent.name
    assert task["spec"]["prompt"]["inline"]
    extensions = [each["extension"] for each in task["spec"]["requires"]]
    assert set(extensions) <= set(read("eval.yaml")["config"]["extensions"])
    for phase in PHASES:
        for step in task["spec"][phase]:
            ((name, args),) = step.items()
            extension, _, operation = name.partition(".")
            assert extension in extensions
            manifest = json.loads((ROOT / "extensions" / f"ext_{extension}" / "manifest.json").read_text())
            jsonschema.validate(args, manifest["operations"][operation]["params"])


def test_the_server_answers_every_request_and_ends_with_its_input() -> None:
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "prompts/list"},
    ]
    text = "".join(json.dumps(each) + "\n" for each in requests)
    command = [sys.executable, str(EVAL / "mcp_server.py")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS)
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert (first["id"], first["result"]["protocolVersion"]) == (1, "2025-11-25")
    assert (second["id"], second["result"]) == (2, {"tools": []})
    assert (third["id"], third["error"]["code"]) == (3, -32601)


def test_all_files_are_valid_by_the_schema_and_the_linter(folder: Folder) -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "task.schema.json").read_text())
    for name in ("eval.yaml", *(str(path.relative_to(EVAL)) for path in TASKS)):
        jsonschema.Draft202012Validator(schema).validate(read(name))
    command = [sys.executable, "-m", "ext_host", "lint", "eval.yaml"]
    done = subprocess.run(command, cwd=folder.path, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 errors, 0 warnings" in done.stdout


def test_the_workflow_replays_the_recording_without_extensions_and_runs_the_task_with_them(folder: Folder) -> None:
    jobs = read(str(WORKFLOW))["jobs"]
    (action,) = (step for step in jobs["replay"]["steps"] if "gevals-extensions" in step["uses"])
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    assert set(action["with"]) <= set(inputs)
    replay = f"ext-recorder run --mode none {action['with']['folder']} -- {action['with']['command']}"
    install, *commands = (step["run"] for step in jobs["run"]["steps"] if "run" in step)
    assert install == "pip install gevals-extensions"
    for name in ("shell", "http", "kubernetes"):
        (folder.path / f"ext-{name}").unlink()
    for command in (replay, *commands):
        done = run(["bash", "-e", "-o", "pipefail", "-c", command], folder.path, LIMIT_SECONDS)
        assert done.returncode == 0, done.stdout
    assert 'failures="0"' in (folder.path / "report.xml").read_text()


def test_the_workflow_is_valid_by_the_schema_of_github_workflows() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run(
        [*command, str(EVAL / WORKFLOW)], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- The tasks --------------------------------------------------------------------------------------------------------


class Done(NamedTuple):
    """Result of a run."""

    code: int
    told: str
    errors: str

    @property
    def verdicts(self) -> list[tuple[str, ...]]:
        """(phase, verdict, step) of each step, and ("agent", verdict)."""
        lines = [line.split() for line in self.told.splitlines() if line.startswith((*PHASES, "agent"))]
        return [tuple(words[: 2 if words[0] == "agent" else 3]) for words in lines]


class Folder:
    """A copy of the example eval, with the links to the extensions that its page puts there."""

    def __init__(self, path: Path) -> None:
        self.path = shutil.copytree(EVAL, path, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("shell", "http", "kubernetes"):
            (path / f"ext-{name}").symlink_to(Path(sys.executable).parent / f"ext-{name}")

    def change(self, name: str, old: str, new: str) -> None:
        text = (self.path / name).read_text()
        assert old in text
        (self.path / name).write_text(text.replace(old, new))

    def faulty(self) -> str:
        """Return the option that replaces ext-shell by FAULTY."""
        (self.path / "faulty.py").write_text(FAULTY)
        program, manifest = self.path / "faulty", ROOT / "extensions" / "ext_shell" / "manifest.json"
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{self.path}/faulty.py' '{manifest}'\n")
        program.chmod(0o755)
        return f"--extension=shell='{program}'"

    def run(self, pattern: str, *args: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "ext_host", "run", str(self.path / "eval.yaml"), "--run", pattern, *args],
            cwd=ROOT,
            env=os.environ | {"SHELL": "/bin/sh", "KUBECONFIG": "/nonexistent", "no_proxy": "*"},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "my eval")


def test_the_agent_of_the_eval_fixes_the_greeting(folder: Folder) -> None:
    done = folder.run("fix-the-greeting")
    assert done.code == 0, done.told
    assert done.verdicts == [
        ("setup", "ok", "shell.write-file"),
        ("agent", "ok"),
        ("verify", "ok", "shell.run"),
        ("verify", "ok", "shell.assert-agent"),
        ("cleanup", "ok", "shell.remove"),
    ]
    assert f"I fixed {folder.path}/fix-the-greeting/repo/greet.py\n" in done.told
    assert [path.name for path in (folder.path / "fix-the-greeting").iterdir()] == ["task.yaml"]


def test_an_agent_that_does_nothing_fails_and_all_checks_and_the_cleanup_are_run(folder: Folder) -> None:
    done = folder.run("fix-the-greeting", "--agent", IDLE)
    assert done.code == 1
    assert [verdict for _, verdict, *_ in done.verdicts] == ["ok", "ok", "FAILED", "FAILED", "ok"]
    assert 'stdout: expected to equal "Hello, world", got "Helo, world"' in done.told
    assert not (folder.path / "fix-the-greeting" / "repo").exists()


@pytest.mark.parametrize(("permissions", "code"), [((), 1), (("--permissions", "allow"), 0)])
def test_an_agent_over_acp_needs_the_permission_for_its_own_tools(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, permissions: tuple[str, ...], code: int
) -> None:
    pytest.importorskip("acp")
    program = folder.path / "bin" / read("agent-acp.yaml")["acp"]["cmd"]
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{ACP_AGENT}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join([str(program.parent), os.environ["PATH"]]))
    done = folder.run("fix-the-greeting", "--agent", f"file:{folder.path}/agent-acp.yaml", *permissions)
    assert done.code == code, done.told + done.errors
    assert f"I fixed {folder.path}/fix-the-greeting/repo/greet.py" in done.told


def test_an_error_that_is_equal_to_its_message_is_printed_once(folder: Folder) -> None:
    folder.change("fix-the-greeting/task.yaml", "  setup:\n", '  setup:\n    - shell.run: {command: ["${no.x}"]}\n')
    assert folder.run("fix-the-greeting", "--agent", IDLE).told.count("is not known in this workdir") == 1


def test_an_agent_that_fails_is_not_verified_but_cleaned_up_after(folder: Folder) -> None:
    done = folder.run("fix-the-greeting", "--agent", "echo no; exit 3")
    assert done.code == 1
    assert [tuple(each[:2]) for each in done.verdicts] == [("setup", "ok"), ("agent", "FAILED"), ("cleanup", "ok")]


def test_after_a_setup_step_that_failed_the_agent_runs_and_what_it_achieved_counts(folder: Folder) -> None:
    folder.change("fix-the-greeting/task.yaml", "  setup:\n", '  setup:\n    - shell.run: {command: ["false"]}\n')
    done = folder.run("fix-the-greeting")
    assert done.code == 0, done.told
    assert done.verdicts[:3] == [("setup", "FAILED", "shell.run"), ("setup", "ok", "shell.write-file"), ("agent", "ok")]


def test_after_an_error_of_the_protocol_in_setup_nothing_else_is_run(folder: Folder) -> None:
    folder.change("fix-the-greeting/task.yaml", "  setup:\n", "  setup:\n    - shell.run: {script: x}\n")
    done = folder.run("fix-the-greeting", folder.faulty())
    assert (done.code, done.verdicts) == (1, [("setup", "ERROR", "shell.run")])


def test_steps_that_the_manifest_does_not_allow_are_all_reported_before_the_first_step(folder: Folder) -> None:
    for phase, step in (
        ("setup", 'shell.run: {comand: ["false"]}'),
        ("verify", "shell.rum: {}"),
        ("cleanup", "script: {}"),
    ):
        folder.change("fix-the-greeting/task.yaml", f"  {phase}:\n", f"  {phase}:\n    - {step}\n")
    done = folder.run("fix-the-greeting")
    assert (done.code, done.verdicts) == (1, [])
    assert "unknown member 'comand'; did you mean 'command'?" in done.told
    assert "extension shell has no operation 'rum'; did you mean 'run'?" in done.told
    assert "spec.cleanup[0].script: expected one of file and inline, found none" in done.told
    assert f"{folder.path}/fix-the-greeting/task.yaml:" in done.told


def test_an_error_of_the_protocol_ends_the_checks_and_the_cleanup_but_not_one_the_other(folder: Folder) -> None:
    folder.change("fix-the-greeting/task.yaml", "  cleanup:\n", "  cleanup:\n    - shell.run: {script: x}\n")
    done = folder.run("fix-the-greeting", folder.faulty())
    assert (done.code, done.verdicts[-2:]) == (1, [("verify", "ERROR", "shell.run"), ("cleanup", "ERROR", "shell.run")])


def test_a_prompt_with_another_brace_or_an_unknown_output_is_passed_on_as_it_is(folder: Folder) -> None:
    reference = "{steps.shell.write-file.path}"
    for more in ("{x}", "{steps.shell.write-file.nothing}"):
        folder.change("fix-the-greeting/task.yaml", reference, f"{more} {reference}")
        done = folder.run("fix-the-greeting", "--agent", 'echo "$1"')
        assert f"The program {more} {reference} misspells" in done.told
        folder.change("fix-the-greeting/task.yaml", f"{more} {reference}", reference)


def test_config_and_env_of_the_eval_reach_the_extension(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.change("eval.yaml", "maxOperationTime: 25s", 'env: {GREETED: "{env.GREETED}"}\n        passEnv: [GREETING]')
    folder.change("eval.yaml", "LANG: C.UTF-8", "GREETING: ${GREETING}")
    monkeypatch.setenv("GREETED", "world")
    monkeypatch.setenv("GREETING", "Hello")
    folder.change("fix-the-greeting/task.yaml", "command: [python3, greet.py]", 'script: echo "$GREETING, $GREETED"')
    done = folder.run("fix-the-greeting")
    assert done.code == 0, done.told


def test_a_script_in_the_folder_of_the_task_is_the_agent_until_the_limit_of_the_task(folder: Folder) -> None:
    (folder.path / "fix-the-greeting" / "agent.sh").write_text('echo "got: $1"')
    done = folder.run("fix-the-greeting", "--agent", SCRIPT)
    assert f"got: The program {folder.path}/fix-the-greeting/repo/greet.py misspells" in done.told
    assert "task     FAILED  fix-the-greeting\n" in done.told
    folder.change("fix-the-greeting/task.yaml", "  setup:\n", "  limits: {timeout: 3s}\n  setup:\n")
    (folder.path / "fix-the-greeting" / "agent.sh").write_text("sleep 1000 & wait")
    done = folder.run("fix-the-greeting", "--agent", SCRIPT)
    assert [tuple(each[:2]) for each in done.verdicts] == [("setup", "ok"), ("agent", "FAILED"), ("cleanup", "ok")]
    assert "the task exceeded its limit of 3s: the agent failed: stopped after" in done.told


def test_tasks_are_selected_by_labels_and_prompts_may_be_files(folder: Folder) -> None:
    folder.change(
        "eval.yaml", '- glob: "*/task.yaml"', "- {path: fix-the-greeting/task.yaml, labelSelector: {easy: x}}"
    )
    assert "no task matches name '.'" in folder.run(".").errors
    folder.change("fix-the-greeting/task.yaml", "metadata:\n", "metadata:\n  labels: {easy: x, other: y}\n")
    folder.change("fix-the-greeting/task.yaml", "    inline: The program", "    file: prompt.txt\n#")
    (folder.path / "fix-the-greeting" / "prompt.txt").write_text("Fix it.")
    assert "agent    ok      I cannot do that\n" in folder.run(".").told


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        pytest.param((), 0, marks=pytest.mark.skipif(not shutil.which("curl"), reason="the agent runs curl")),
        (("--agent", IDLE), 1),
        (("--agent", f"{sys.executable} -c {'GUESS'!r}"), 1),
    ],
    ids=["right", "idle", "guesses"],
)
def test_a_trip_is_planned_by_an_agent_that_asks_for_the_weather_only(
    folder: Folder, new_port: NewPort, agent: tuple[str, ...], code: int
) -> None:
    port = str(new_port())
    folder.change("plan-a-trip/task.yaml", "8080", port)
    guess = (
        "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open(r.Request("
        f'"http://127.0.0.1:{port}/trips", data=b"{{\\"city\\": \\"lisbon\\", \\"celsius\\": 21}}"))'
    )
    done = folder.run("plan-a-trip", *(each.replace("'GUESS'", f"'{guess}'") for each in agent))
    assert done.code == code, done.told
    assert {verdict for phase, verdict, *_ in done.verdicts if phase in {"setup", "agent", "cleanup"}} == {"ok"}
    if code:
        assert ("verify", "FAILED", "http.mock-verify") in done.verdicts
        assert "no requests were received" in done.told
    if "GUESS" in str(agent):
        assert ("verify", "ok", "http.request") in done.verdicts


def test_the_task_on_a_cluster_runs_on_its_recorded_session_without_one(folder: Folder, tmp_path: Path) -> None:
    cassette, shim = tmp_path / "task.yaml", tmp_path / "ext-kubernetes"
    session = str(ROOT / "cassettes" / "kubernetes" / "create-pod.yaml")
    without_the_agents = ("--calls", "1-3,5-")  # its fourth request is what an agent does by other means
    for command in (
        ("trim", *without_the_agents, "-o", str(cassette), session),
        ("shim", "--mode", "none", "--ignore", "/params/context", str(shim), str(cassette)),
    ):
        subprocess.run([*RECORDER, *command], check=True, capture_output=True, timeout=LIMIT_SECONDS)
    done = folder.run("create-pod", "--agent", "echo made", f"--extension=kubernetes='{shim}'")
    assert done.code == 0, done.told
    assert [verdict for _, verdict, *_ in done.verdicts] == ["ok"] * 7


def test_what_prevents_a_run_is_reported_before_it_starts(folder: Folder) -> None:
    for pattern, programs, text in (
        ("no-such-task", (), "no task matches name 'no-such-task'"),
        (
            "greeting",
            ("--extension=shell=no-such-program",),
            "extension shell: cannot find its program 'no-such-program'",
        ),
    ):
        done = folder.run(pattern, *programs)
        assert (done.code, done.told) == (2, "")
        assert text in done.errors
        assert done.errors.startswith(f"ext-host: {folder.path}/eval.yaml:")
        assert done.errors.count("\n") == 1
    folder.change("eval.yaml", "type: file", "type: builtin.claude-code")
    assert "the agent builtin.claude-code is run by mcpchecker only" in folder.run("greeting").errors
    folder.change("eval.yaml", "type: builtin.claude-code", "type: file")
    folder.change("eval.yaml", "    shell:\n", "    shall:\n")
    done = folder.run("greeting")
    assert (done.code, done.told, done.errors.count("\n")) == (2, "", 1)
    assert "no extension 'shell', which the task 'fix-the-greeting' requires; did you mean 'shall'?" in done.errors
    folder.change("fix-the-greeting/task.yaml", "  setup:\n", "  setup: [}\n")
    errors = folder.run("greeting").errors
    assert errors.startswith(f"ext-host: {folder.path}/fix-the-greeting/task.yaml:8:11: expected YAML: ")
