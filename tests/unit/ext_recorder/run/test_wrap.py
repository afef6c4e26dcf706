"""Copies of configuration files: only what starts children changes, and the copy means the same elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ext_recorder.errors import UsageError
from ext_recorder.run.wrap import Wrapping


def copy_of(file: Path) -> tuple[Wrapping, str]:
    """Return the wrapping of a file, and the text of its copy."""
    session = file.parent / "session"
    wrapping = Wrapping([str(file)], ["host", f"--config={file}"])
    (host, option) = wrapping.write(str(session))
    assert host == "host"
    assert option == f"--config={session}/config{file}"
    return wrapping, Path(f"{session}/config{file}").read_text()


def test_servers_of_vs_code_with_comments(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(
        '{\n\t// ours, at "home"\n\t"servers": {\n'
        '\t\t"a b": {"type": "stdio", "command": "${folder}/a\\/b", "args": []}, /* http */\n'
        '\t\t"far": {"type": "http", "url": "https://x//y"},\n'
        '\t\t"off": {"command": "off", "disabled": true},\n'
        '\t\t"none": {"command": "c"},\n'
        '\t\t"some": {"command": "d", "args": ["-x", "1"], "env": {"K": "v"}},\n\t}\n}\n'
    )
    wrapping, text = copy_of(file)
    assert list(wrapping.commands) == ["a-b", "none", "some"]
    session = tmp_path / "session"
    assert text == (
        '{\n\t// ours, at "home"\n\t"servers": {\n'
        f'\t\t"a b": {{"type": "stdio", "command": "{session}/shims/a-b", "args": ["${{folder}}/a/b"]}}, /* http */\n'
        '\t\t"far": {"type": "http", "url": "https://x//y"},\n'
        '\t\t"off": {"command": "off", "disabled": true},\n'
        f'\t\t"none": {{"command": "{session}/shims/none", "args": ["c"]}},\n'
        f'\t\t"some": {{"command": "{session}/shims/some", "args": ["d", "-x", "1"], "env": {{"K": "v"}}}},\n\t}}\n}}\n'
    )


def test_servers_in_yaml_and_in_a_project(tmp_path: Path) -> None:
    file = tmp_path / "servers.yaml"
    file.write_text(
        "projects:\n  /home/ada:\n    mcpServers:\n"
        "      one:\n        command: a # program\n        args:\n        - -x\n        - 2\n"
        "mcpServers:\n  two:\n    command: b\n  three: {command: c, args: }\n  four:\n    command: d\n    args:\n"
    )
    wrapping, text = copy_of(file)
    assert list(wrapping.commands) == ["two", "three", "four", "one"]
    content = yaml.safe_load(text)
    shims = f"{tmp_path}/session/shims"
    assert content["projects"]["/home/ada"]["mcpServers"] == {
        "one": {"command": f"{shims}/one", "args": ["a", "-x", 2]}
    }
    assert content["mcpServers"] == {
        "two": {"command": f"{shims}/two", "args": ["b"]},
        "three": {"command": f"{shims}/three", "args": ["c"]},
        "four": {"command": f"{shims}/four", "args": ["d"]},
    }
    assert "# program" in text


def test_an_eval_with_the_files_that_it_names(tmp_path: Path) -> None:
    folder = tmp_path / "evals"
    folder.mkdir()
    (folder / "mcp.json").write_text('{"mcpServers": {"kubernetes": {"command": "x"}}}')
    (folder / "agent.yaml").write_text(
        "kind: Agent\nmetadata: {name: My agent}\nacp:\n  cmd: ./agent\n  args: [--fast]\n"
    )
    file = folder / "eval.yaml"
    file.write_text(
        "kind: Eval\nconfig:\n  agent: {type: file, path: agent.yaml}\n  mcpConfigFile: ./mcp.json\n"
        "  llmJudge: {ref: {type: file, path: missing.yaml}}\n  extensions:\n    kubernetes: {package: ../bin/ext}\n"
        "    far: {package: github.com/some/ext@v1}\n  sources: {other: {repo: r, ref: main}}\n"
        "  skills: {sources: [{type: path, path: skills}]}\n"
        "  taskSets:\n  - glob: '*/task.yaml'\n  - {source: other, path: tasks/a.yaml}\n  - path: /tasks/b.yaml\n"
    )
    wrapping, text = copy_of(file)
    session = f"{folder}/session"
    assert wrapping.commands == {"kubernetes": (f"{tmp_path}/bin/ext",), "My-agent": (), "kubernetes-server": ()}
    assert (wrapping.agents, wrapping.extensions) == ({"My-agent"}, {"kubernetes"})
    (remark,) = wrapping.remarks
    assert remark.startswith(
        "not recorded: extension far: the host fetches its package github.com/some/ext@v1; to record"
    )
    assert yaml.safe_load(text)["config"] == {
        "agent": {"type": "file", "path": f"{session}/config{folder}/agent.yaml"},
        "mcpConfigFile": f"{session}/config{folder}/mcp.json",
        "llmJudge": {"ref": {"type": "file", "path": f"{folder}/missing.yaml"}},
        "extensions": {
            "kubernetes": {"package": f"{session}/shims/kubernetes"},
            "far": {"package": "github.com/some/ext@v1"},
        },
        "sources": {"other": {"repo": "r", "ref": "main"}},
        "skills": {"sources": [{"type": "path", "path": f"{folder}/skills"}]},
        "taskSets": [
            {"glob": f"{folder}/*/task.yaml"}, {"source": "other", "path": "tasks/a.yaml"}, {"path": "/tasks/b.yaml"},
        ],
    }  # fmt: skip
    agent = yaml.safe_load(Path(f"{session}/config{folder}/agent.yaml").read_text())
    assert agent["acp"] == {"cmd": f"{session}/shims/My-agent", "args": ["./agent", "--fast"]}
    servers = json.loads(Path(f"{session}/config{folder}/mcp.json").read_text())["mcpServers"]
    assert servers == {"kubernetes": {"command": f"{session}/shims/kubernetes-server", "args": ["x"]}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "neither YAML nor JSON: "),
        ("a: 1", "no children that use stdio found; expected "),
        ('{"mcpServers": {"far": {"url": "http://x"}}}', None),
    ],
)
def test_a_file_without_children(tmp_path: Path, text: str, problem: str | None) -> None:
    file = tmp_path / "f.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=problem or "no children"):
        Wrapping([str(file)], ["host", str(file)])
    with pytest.raises(UsageError, match="COMMAND does not name this file"):
        Wrapping([str(file)], ["host"])
