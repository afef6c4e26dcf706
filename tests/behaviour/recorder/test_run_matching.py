"""`run`: requests that differ in each run match by known APIs and rules; `--learn` proposes rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.host import PATIENCE_S
from tests.support.http_stub import Stub
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.http_stub import Asked, Handler

# An agent with two turns: its requests name a new session, the folder of the task and the date.
AGENT = """
import json, os, sys, urllib.request, uuid
task, day = os.environ["TASK"], os.environ["DAY"]
session = str(uuid.uuid4())
def ask(messages, path="/v1/messages"):
    body = {"model": "m", "max_tokens": 9, "metadata": {"user_id": session}, "messages": messages,
            "system": f"Today's date: {day}\\nWorking directory: {task}"}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json", "X-Session-Id": session})
    return json.load(urllib.request.urlopen(request))["content"][0]["text"]
first = [{"role": "user", "content": os.environ.get("PROMPT", "list the files")}]
answer = ask(first)
print(answer, ask([*first, {"role": "assistant", "content": answer}, {"role": "user", "content": "and now?"}]))
"""


# An agent that prints what the model streams, as its client puts it together.
STREAMING = """
import json, os, urllib.request
body = {"model": "m", "messages": [], "system": f"cwd {os.getcwd()} task {os.environ['TASK']}"}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode())
for line in urllib.request.urlopen(request):
    if line.startswith(b"data:"):
        print(json.loads(line[5:])["delta"]["text"], end="")
"""


def _stream(handler: Handler, asked: Asked) -> None:
    """Stream the paths of the prompt in pieces of five characters."""
    text = f"Wrote {json.loads(asked.body)['system'].replace(' ', '/a.txt ')}/b.txt."
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    events = [{"type": "content_block_delta", "index": 0, "delta": {"text": piece}} for piece in pieces]
    handler.answer(200, "".join(f"data: {json.dumps(event)}\n\n" for event in events), {"Content-Type": EVENTS})


def _model(handler: Handler, asked: Asked) -> None:
    handler.answer(200, json.dumps({"content": [{"text": f"answer {asked.number}"}]}))


@pytest.fixture
def model() -> Iterator[str]:
    with Stub(default=_model) as stub:
        yield stub.url("")


class Result:
    """Result of a run of an agent."""

    def __init__(self, folder: Path, model: str, *options: str, agent: str = AGENT, **environ: str) -> None:
        environ = {"ANTHROPIC_BASE_URL": model, "TASK": "/tmp/task-x1", "DAY": "2026-11-22"} | environ
        done = subprocess.run(
            [*RECORDER, "run", *options, "rec", "--", sys.executable, "-c", agent],
            cwd=folder,
            env=os.environ | environ,
            capture_output=True,
            timeout=PATIENCE_S,
            text=True,
            check=False,
        )
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


EVENTS = "text/event-stream"
OTHER = {"TASK": "/tmp/task-k8", "DAY": "2026-12-24"}


def test_a_session_id_of_an_agent_need_not_match(tmp_path: Path, model: str) -> None:
    recorded = Result(tmp_path, model)
    assert (recorded.code, recorded.out) == (0, "answer 1 answer 2\n"), recorded.err
    replayed = Result(tmp_path, model, "--mode", "none")
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err
    assert Result(tmp_path, model, "--exact").code != 0
    assert "/body/metadata/user_id" in Result(tmp_path, model, "--exact").err


def test_a_miss_names_the_closest_request_what_differs_and_the_rule(tmp_path: Path, model: str) -> None:
    assert Result(tmp_path, model).code == 0
    missed = Result(tmp_path, model, "--mode", "none", **OTHER)
    assert missed.code == 3
    assert f"POST {model}/v1/messages: differs from recorded interaction 1: /body/system: recorded " in missed.err
    assert "date: 2026-11-22, now " in missed.err
    assert "--ignore /body/system" in missed.err
    assert "run --learn" in missed.err
    masked = Result(tmp_path, model, "--mode", "none", "--mask", "@date", "--mask", "@tmp", **OTHER)
    assert (masked.code, masked.out) == (0, "answer 1 answer 2\n"), masked.err


def test_learned_rules_apply_to_later_replays_and_recordings(tmp_path: Path, model: str) -> None:
    assert Result(tmp_path, model).code == 0
    header = tmp_path / "rec" / "recording.yaml"
    header.write_text(f"# mine\n{header.read_text()}")
    before = header.read_text()
    learning = Result(tmp_path, model, "--learn", **OTHER)
    assert (learning.code, learning.out) == (3, "answer 1 answer 2\n"), learning.err
    assert "2 requests differed only in what looks volatile" in learning.err
    assert "2 rules written to rec/recording.yaml: review" in learning.err
    text = header.read_text()
    assert text.startswith(before)
    assert yaml.safe_load(text)["rules"] == [{"mask": "@date"}, {"path": "@tmp"}]
    assert "# a date: recorded 2026-11-22, now 2026-12-24 (POST /v1/messages /body/system, interaction 1)\n" in text

    replayed = Result(tmp_path, model, "--mode", "none", TASK="/tmp/another", DAY="2027-01-01")
    assert (replayed.code, replayed.out) == (0, "answer 1 answer 2\n"), replayed.err
    again = Result(tmp_path, model, "--learn", **OTHER)
    assert (again.code, header.read_text()) == (0, text), again.err
    other = Result(tmp_path, model, "--mode", "none", PROMPT="delete the files")
    assert other.code == 3  # the rules set aside nothing else
    assert "/body/messages/0/content: recorded list the files, now delete the files" in other.err

    assert Result(tmp_path, model, "--mode", "all").code == 0
    assert yaml.safe_load(header.read_text())["rules"] == [{"mask": "@date"}, {"path": "@tmp"}]
    assert "# a date: recorded 2026-11-22" in header.read_text()


def test_nothing_is_learned_from_a_request_that_differs_in_its_meaning(tmp_path: Path, model: str) -> None:
    assert Result(tmp_path, model).code == 0
    header = (tmp_path / "rec" / "recording.yaml").read_text()
    learning = Result(tmp_path, model, "--learn", PROMPT="delete the files", **OTHER)
    assert learning.code == 3
    assert "differs from recorded interaction 1" in learning.err
    assert (tmp_path / "rec" / "recording.yaml").read_text() == header


def test_learning_requires_a_recording_and_valid_rules(tmp_path: Path, model: str) -> None:
    unrecorded = Result(tmp_path, model, "--learn")
    assert (unrecorded.code, "--learn compares with a recording, and there is none" in unrecorded.err) == (2, True)
    assert Result(tmp_path, model).code == 0
    assert "--mode all makes a new one" in Result(tmp_path, model, "--learn", "--mode", "all").err
    header = tmp_path / "rec" / "recording.yaml"
    header.write_text(f"{header.read_text()}rules: [mask]\n")
    invalid = Result(tmp_path, model)
    assert invalid.code == 2
    assert "rec/recording.yaml: rules: expected a list of" in invalid.err


def test_paths_that_a_model_streams_in_pieces_are_those_of_the_replay(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    with Stub(default=_stream) as stub:
        recorded = Result(one, stub.url(""), agent=STREAMING)
        url = stub.url("")
    assert f"{one}/a.txt" in recorded.out
    assert "/tmp/task-x1/b.txt." in recorded.out
    assert str(one) not in (one / "rec" / "traffic.http.yaml").read_text()
    header = one / "rec" / "recording.yaml"
    header.write_text(f"{header.read_text()}rules: [path: '@tmp']\n")
    one.rename(other)
    replayed = Result(other, url, "--mode", "none", agent=STREAMING, TASK="/tmp/task-k8")
    assert replayed.code == 0, replayed.err
    assert replayed.out == recorded.out.replace(str(one), str(other)).replace("task-x1", "task-k8")


def test_the_same_command_in_another_checkout_by_another_interpreter_is_replayed(tmp_path: Path, model: str) -> None:
    def run(folder: Path, interpreter: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*RECORDER, "run", "../rec", "--", interpreter, f"{folder}/agent.py", f"--in={folder}", *words],
            cwd=folder, env=os.environ | {"ANTHROPIC_BASE_URL": model, "TASK": "a", "DAY": "b"},
            capture_output=True, timeout=PATIENCE_S, text=True, check=False,
        )  # fmt: skip

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.py").write_text(AGENT)
    recorded = run(tmp_path / "one", sys.executable)
    assert recorded.returncode == 0, recorded.stderr
    assert str(tmp_path) not in (tmp_path / "rec" / "recording.yaml").read_text()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    replayed = run(tmp_path / "two", f"{tmp_path}/bin/python3")
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout), replayed.stderr
    other = run(tmp_path / "two", sys.executable, "--fast")
    assert (other.returncode, "recorded with another command: python" in other.stderr) == (2, True), other.stderr
