"""Commands on the recording of a run: show, stats, diff, lint, scrub and convert. `view` has its own tests."""

from __future__ import annotations

import base64
import json
import shutil
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ext_recorder.cassette.recording import Child, read_header
from tests.support.recorder_tools import call
from tests.support.recordings import FAILURE, Eval
from tests.support.run_recordings import run_recorder

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
COOKIE = "Zk81qLw02mXv73RtYb"


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return Eval().write(tmp_path / "before")


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# --- show and stats ---------------------------------------------------------------------------------------------------


def test_show_prints_all_lanes_in_the_order_of_time(recording: Path) -> None:
    shown = call("show", str(recording)).stdout
    assert shown.startswith(f"{recording}: run of 19.2 s, exit 0, recorded 2026-11-23T16:00:00Z\n")
    assert "children: kubernetes, shell, cluster-tools, agent (2 sessions)\n" in shown
    assert "  cluster-tools  →  tools/call pods_list #2  " in shown
    assert "  api.anthropic…  ⇄  anthropic claude-sonnet-5" in shown
    entries = lines(call("show", "--json", str(recording)).stdout)
    assert [each["t"] for each in entries] == sorted(each["t"] for each in entries)
    assert {each["lane"] for each in entries} == {
        "kubernetes", "shell", "cluster-tools", "agent", "api.anthropic.com", "10.0.0.1:6443", "service",
    }  # fmt: skip
    at = {(each["lane"], each.get("label", "")): each["t"] for each in reversed(entries)}
    assert at["agent", "session/prompt #99"] < at["api.anthropic.com", "anthropic claude-sonnet-5"]


def test_stats_counts_by_child_and_server_with_tokens(recording: Path) -> None:
    rows = lines(call("stats", "--json", str(recording)).stdout)
    found = {(each["where"], each["method"]): each for each in rows}
    assert (found["kubernetes", "execute"]["count"], found["kubernetes", "execute"]["errors"]) == (10, 1)
    assert found["agent", "session/prompt"]["count"] == 2, "of both sessions"
    model = found["api.anthropic.com", "anthropic"]
    assert (model["count"], model["input_tokens"], model["output_tokens"]) == (6, 10440, 350)
    assert (found["10.0.0.1:6443", "get pods"]["count"], found["10.0.0.1:6443", "get pods"]["errors"]) == (38, 2)
    table = call("stats", "--subjects", str(recording)).stdout
    assert "tokens in  tokens out\n" in table
    assert "get pods task-1/nginx" in table
    assert "anthropic" in table


# --- diff -------------------------------------------------------------------------------------------------------------


def test_equal_recordings_do_not_differ(recording: Path, tmp_path: Path) -> None:
    other = Eval(port=40002)
    for item in other.traffic:  # values that a cluster sets
        assert item.body is not None
        item.body.write(b" ")
    same = call("diff", str(recording), str(other.write(tmp_path / "after")))
    assert (same.returncode, same.stderr) == (0, "")
    assert "agent (children/agent-2.yaml): no difference\n" in same.stdout
    assert "https://api.anthropic.com: no difference\n" in same.stdout


def test_diff_names_where_two_runs_part_before_what_follows(recording: Path, tmp_path: Path) -> None:
    changed = Eval(image="nginx:1.30")
    changed.http((3.0, 0.1), "GET", "https://10.0.0.1:6443/api/v1/nodes", None, {"kind": "NodeList"})
    after = changed.write(tmp_path / "after")
    done = call("diff", str(recording), str(after))
    assert done.returncode == 1
    head, first, second, *rest = done.stdout.splitlines()
    assert head == f"differs {recording} {after}: 3 differences"
    assert first == (
        f"        they part at 3.000 s  {after}/traffic.http.yaml: interaction 12: "
        f"GET https://10.0.0.1:6443/api/v1/nodes: is not in {recording}"
    )
    assert second.startswith(f"        at 6.110 s  {recording}/children/kubernetes.yaml:15: the request execute")
    assert second.endswith("/params/args/expected/spec/containers/0/image")
    assert [line.strip() for line in rest if ": " in line and "difference" in line] == [
        "kubernetes (children/kubernetes.yaml): 2 differences",
        "shell (children/shell.yaml): no difference",
        "cluster-tools (children/cluster-tools.yaml): no difference",
        "agent (children/agent.yaml): no difference",
        "agent (children/agent-2.yaml): no difference",
        "https://10.0.0.1:6443: 1 difference",
        "https://api.anthropic.com: no difference",
        "http://docs.internal.example:8080: no difference",
    ]
    ignored = call("diff", "--ignore", "/params/args/expected", "--json", str(recording), str(after))
    (case,) = lines(ignored.stdout)
    assert [(each["kind"], each["t"], each["interaction"]) for each in case["problems"]] == [("unexpected", 3.0, 12)]


def test_diff_compares_what_a_model_says_and_what_a_server_responds(recording: Path, tmp_path: Path) -> None:
    changed = Eval()
    model = next(item for item in changed.traffic if "anthropic" in item.uri)
    pod = next(item for item in changed.traffic if "pods/nginx" in item.uri)
    assert model.body is not None
    assert pod.body is not None
    text = model.body.whole().replace(b'"will "', b'"might "')
    model.body.close()
    model.body.size = 0
    model.body.write(text)
    value = json.loads(pod.body.whole()) | {"metadata": {"name": "nginx", "uid": "other", "resourceVersion": "7"}}
    value["status"]["phase"] = "Running"
    pod.body.close()
    pod.body.size = 0
    pod.body.write(json.dumps(value).encode())
    after = changed.write(tmp_path / "after")
    (case,) = lines(call("diff", "--json", str(recording), str(after)).stdout)
    assert [(each["pointer"], each["found"]) for each in case["problems"]] == [
        ("/response/body/status/phase", "Running"),
        ("/response/reply/0/text", "I might look at the pods of the namespace first."),
    ]
    masks = ("--ignore", "/response/body/status/phase", "--mask", "(might|will)")
    assert call("diff", *masks, str(recording), str(after)).returncode == 0


def test_sessions_of_one_child_are_paired_by_their_messages(recording: Path, tmp_path: Path) -> None:
    swapped = Eval()
    swapped.agents[0].name, swapped.agents[1].name = swapped.agents[1].name, swapped.agents[0].name
    swapped.agents.reverse()
    assert call("diff", str(recording), str(swapped.write(tmp_path / "swapped"))).returncode == 0
    fewer = Eval(tasks=1)
    fewer.end = Eval().end
    done = call("diff", str(recording), str(fewer.write(tmp_path / "fewer")))
    assert f"{recording}/children/agent-2.yaml: child agent: this session is not in {tmp_path}/fewer" in done.stdout


def test_a_cassette_and_a_recording_are_not_compared(recording: Path) -> None:
    done = call("diff", str(recording), str(recording / "children" / "shell.yaml"))
    assert (done.returncode, "expected two cassettes, or two recordings" in done.stderr) == (2, True)
    missing = call("diff", str(recording), str(recording.parent / "nothing"))
    assert (missing.returncode, "nothing: no such file or folder" in missing.stderr) == (2, True)


# --- lint -------------------------------------------------------------------------------------------------------------


def test_lint_checks_all_files_and_their_list(recording: Path) -> None:
    done = call("lint", str(recording))
    assert (done.returncode, done.stdout) == (0, f"ok      {recording}\n")
    nested = call("lint", str(recording.parent))
    assert nested.stdout == f"ok      {recording}\n", "a folder of recordings"
    (recording / "children" / "shell.yaml").rename(recording / "children" / "other.yaml")
    kubernetes = recording / "children" / "kubernetes.yaml"
    kubernetes.write_text(kubernetes.read_text().replace('"success":true', '"success":7', 1))
    traffic = recording / "traffic.http.yaml"
    traffic.write_text(traffic.read_text().replace("code: 404", "code: 4040", 1))
    header = read_header(recording)
    child = Child("up", (), ("../elsewhere.yaml",))
    (recording.parent / "elsewhere.yaml").write_text("")
    text = yaml.safe_load((recording / "recording.yaml").read_text())
    text["children"].append({"name": child.name, "cassettes": list(child.cassettes)})
    text["children"][0]["started"] = [1, 2]
    (recording / "recording.yaml").write_text(yaml.safe_dump(text))
    done = call("lint", "--json", str(recording))
    assert (done.returncode, header.children[0].name) == (1, "kubernetes")
    (case,) = lines(done.stdout)
    kinds = [each["kind"] for each in case["problems"]]
    assert sorted(kinds) == ["missing", "outside", "result", "started", "status", "unlisted"]
    assert any(
        "children/other.yaml: a cassette that the header does not list" in each["text"] for each in case["problems"]
    )
    (recording / "recording.yaml").write_text("recording: 7\n")
    done = call("lint", str(recording))
    assert (done.returncode, "expected `recording: 1`" in done.stdout) == (2, True)


# --- scrub ------------------------------------------------------------------------------------------------------------


def test_scrub_replaces_a_secret_in_all_files_at_once(tmp_path: Path) -> None:
    made = Eval(tasks=1)
    made.shell.command = ("ext-shell", "--token", TOKEN)
    made.http((0.1, 0.1), "GET", f"https://s.test/?access_token={TOKEN}", None, {"password": COOKIE})
    made.agents[0].line(2.0, f"seen {COOKIE} in a message")
    folder = made.write(tmp_path / "run")
    (folder / "files.patch").write_text(f"+token={TOKEN}\n+plain\n")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    checked = call("scrub", "--check", str(folder))
    assert checked.returncode == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    done = call("scrub", str(folder))
    assert done.returncode == 0, done.stderr
    for name in ("recording.yaml", "children/shell.yaml", "children/agent.yaml", "traffic.http.yaml", "files.patch"):
        assert f"{folder}/{name}: replaced " in done.stdout, done.stdout
    for path in folder.rglob("*"):
        if path.is_file():
            assert TOKEN not in path.read_text(), path
            assert COOKIE not in path.read_text(), path
    assert list(tmp_path.iterdir()) == [folder], "neither a copy nor the old folder is left"
    assert call("lint", str(folder)).returncode == 0
    assert "replaced" not in call("scrub", str(folder)).stdout


def test_scrub_keeps_what_a_replay_sets_in_place_of_keys(tmp_path: Path) -> None:
    page = "import os; print(len(os.environ['MY_API_KEY']))"
    hello = ["sh", "-c", "echo hi"]
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"a": {"command": "sh", "args": hello[1:]}}}))
    start = f"import json, subprocess, sys; s = json.load(open(sys.argv[1]))['mcpServers']['a']; {page}; "
    start += "subprocess.run([s['command'], *s['args']], stdin=subprocess.DEVNULL)"
    command = ("rec", "--", sys.executable, "-c", start, "mcp.json")
    key = "sk-0123456789abcdef0123"
    assert run_recorder(tmp_path, "--wrap", "mcp.json", *command, MY_API_KEY=key).code == 0
    header = tmp_path / "rec" / "recording.yaml"
    before = header.read_text()
    assert "environment: {MY_API_KEY: ext-recorder}" in before
    checked = call("scrub", "--check", str(tmp_path / "rec"))
    assert checked.returncode == 0, checked.stdout
    header.write_text(f"# {key}\n{before}")
    assert f"{header}: replaced " in call("scrub", str(tmp_path / "rec")).stdout
    assert "environment: {MY_API_KEY: ext-recorder}" in header.read_text()
    assert key not in header.read_text()


def test_a_scrub_that_fails_changes_nothing(tmp_path: Path) -> None:
    made = Eval(tasks=1)
    made.shell.line(1.0, f"token={TOKEN}")
    folder = made.write(tmp_path / "run")
    traffic = folder / "traffic.http.yaml"
    traffic.write_text(traffic.read_text().replace("method: POST", "method: [", 1))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = call("scrub", str(folder))
    assert done.returncode == 2
    assert "traffic.http.yaml" in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert list(tmp_path.iterdir()) == [folder]


# --- convert ----------------------------------------------------------------------------------------------------------


def test_a_recording_becomes_a_har_file(recording: Path, tmp_path: Path) -> None:
    done = call("convert", "-o", str(tmp_path / "run.har"), str(recording))
    assert done.stdout == f"{tmp_path}/run.har: HAR, from {recording}/traffic.http.yaml\n"
    log = json.loads((tmp_path / "run.har").read_text())["log"]
    assert (log["version"], log["pages"][0]["title"], len(log["entries"])) == ("1.2", "mcpchecker check eval.yaml", 52)
    model = next(entry for entry in log["entries"] if "anthropic" in entry["request"]["url"])
    assert json.loads(model["request"]["postData"]["text"])["model"] == "claude-sonnet-5"
    assert model["response"]["content"]["text"].startswith("event: message_start\n")
    assert (model["time"], model["timings"]["wait"]) == (900, 900)
    begun = datetime.fromisoformat(log["pages"][0]["startedDateTime"])
    assert (datetime.fromisoformat(model["startedDateTime"]) - begun).total_seconds() == pytest.approx(1.41)
    required = {"startedDateTime", "time", "request", "response", "cache", "timings"}
    assert all(required <= entry.keys() for entry in log["entries"])
    again = call("convert", "-o", str(tmp_path / "run.har"), str(recording))
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    wrong = call("convert", "--to", "jsonl", str(recording))
    assert (wrong.returncode, "becomes har" in wrong.stderr) == (2, True)


def test_har_has_binary_bodies_failures_and_no_secrets(tmp_path: Path) -> None:
    made = Eval(tasks=1)
    made.http((0.1, 0.1), "POST", f"https://a.test/x?q=1&q=2&access_token={TOKEN}", None, b"\xff\x00binary")
    made.http((0.2, 0.1), "GET", "https://b.test/", None, b"", status=0)
    made.traffic[-1].error = {"type": "ConnectionReset", "message": "reset by peer"}
    done = call("convert", "--to", "har", str(made.write(tmp_path / "run") / "traffic.http.yaml"))
    entries = json.loads(done.stdout)["log"]["entries"]
    assert base64.b64decode(entries[0]["response"]["content"]["text"]) == b"\xff\x00binary"
    assert entries[0]["response"]["content"]["encoding"] == "base64"
    assert [pair["value"] for pair in entries[0]["request"]["queryString"][:2]] == ["1", "2"]
    assert (entries[1]["response"]["status"], entries[1]["_error"]) == (0, "reset by peer")
    assert TOKEN not in done.stdout


# --- What is not a recording ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["show", "view"])
def test_another_folder_is_named_as_such(command: str, tmp_path: Path) -> None:
    partial = tmp_path / "run.partial"
    partial.mkdir()
    for folder, advised in ((tmp_path, False), (partial, True)):
        done = call(command, str(folder))
        assert (done.returncode, "the folder of a recording, with recording.yaml" in done.stderr) == (2, True)
        assert ("ext-recorder recover" in done.stderr) == advised


def test_the_page_of_a_recording_has_the_name_of_its_folder(recording: Path, tmp_path: Path) -> None:
    done = call("view", "before/", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("before.html\n", "")
    assert FAILURE in (tmp_path / "before.html").read_text()
    shutil.rmtree(recording / "children")
    failed = call("view", "before", cwd=tmp_path)
    assert (failed.returncode, "children/kubernetes.yaml" in failed.stderr) == (2, True)
