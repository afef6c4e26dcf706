"""The HTML page of a cassette: its data, and what it does in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ext_recorder.tools.view import bodies, rows
from ext_recorder.tools.view.page import page
from tests.support.browser import CHROMIUM, Browser
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER
from tests.support.recorder_tools import call
from tests.support.recordings import FAILURE, THOUGHTS, Eval

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[5]
TASK = ROOT / "cassettes" / "shell" / "eval-task.yaml"
HTTP = ROOT / "cassettes" / "kubernetes" / "offline.yaml"
HEAD = "cassette: 1\nprotocol: {protocol}\nframing: {framing}\ncommand: [my-server, '--name=it''s']\nevents:\n"
END = "- {t: 9.000000, exit: 1}\nredacted: []\n"
CALL = """\
- {t: 0.500000, in: '{"jsonrpc":"2.0","id":1,"method":"add","params":[1.0,12345678901234567890123]}'}
- {t: 0.750000, out: '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"<b>no</b></script><script>alert(1)"}}'}
- {t: 1.000000, err: 'a line & more'}
"""
# A PNG of one pixel, and an SVG with a script.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SVG = base64.b64encode(
    b"<svg xmlns='http://www.w3.org/2000/svg'><script>document.title='svg'</script></svg>" * 3
).decode()


def message(time: float, stream: str, **members: object) -> str:
    text = json.dumps({"jsonrpc": "2.0", **members}).replace("'", "''")
    return f"- {{t: {time:.6f}, {stream}: '{text}'}}\n"


def request(time: float, id: int, method: str, stream: str = "in", /, **params: object) -> str:
    return message(time, stream, id=id, method=method, params=params)


def result(time: float, id: int, stream: str = "out", /, **result: object) -> str:
    return message(time, stream, id=id, result=result)


# Overlapping calls, a request of the child, progress, a cancellation, a failure, a call without an answer.
SESSION = "".join(
    (
        request(0.0, 1, "initialize", protocolVersion="2025-06-18"),
        result(0.1, 1, serverInfo={"name": "s"}),
        message(0.2, "in", method="notifications/initialized"),
        request(1.0, 2, "tools/call", name="slow", _meta={"progressToken": "p"}),
        request(1.1, 3, "tools/call", name="other"),
        message(1.2, "out", method="notifications/progress", params={"progressToken": "p", "progress": 1}),
        result(1.3, 3, content=[{"type": "text", "text": "no"}], isError=True),
        request(1.4, 1, "sampling/createMessage", "out", messages=[]),
        result(1.5, 1, "in", model="m"),
        "- {t: 1.550000, err: 'a warning'}\n",
        result(1.6, 2, content=[{"type": "text", "text": '{"deep":{"er":[1,2]}}'}]),
        request(2.0, 4, "tools/call", name="never"),
        request(2.1, 5, "tools/call", name="cancelled"),
        message(2.2, "in", method="notifications/cancelled", params={"requestId": 5}),
    )
)


def write(folder: Path, events: str = CALL, framing: str = "ndjson", protocol: str = "jsonrpc") -> Path:
    path = folder / "session.yaml"
    path.write_text(HEAD.format(framing=framing, protocol=protocol) + events + END)
    return path


def page_of(path: Path) -> str:
    return b"".join(page(path, {})).decode()


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script id="rows" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def table(data: dict[str, Any], *columns: str) -> list[tuple[object, ...]]:
    """The rows, with their texts in the place of numbers."""
    texts = ("kind", "status", "outcome", "stream", "method", "subject", "id", "says", "answers")
    lists = [[data["texts"][each] for each in data[name]] if name in texts else data[name] for name in columns]
    return list(zip(*lists, strict=True))


# --- The data ---------------------------------------------------------------------------------------------------------


def test_a_row_is_a_call_with_its_response(tmp_path: Path) -> None:
    data = data_of(page_of(write(tmp_path)))
    columns = ("kind", "outcome", "stream", "method", "id", "time", "took", "number", "line")
    assert table(data, *columns) == [
        ("call", "error -1", "in", "add", "1", 500_000, 250_000, 1, 6),
        ("stderr", "", "err", "", "", 1_000_000, -1, 0, 8),
        ("mark", "", "", "exit 1", "", 9_000_000, -1, 0, 9),
    ]
    assert [data["bodies"]["names"][name] for name in data["bodies"]["name"]] == ["params", "error", ""]


def test_what_belongs_to_a_call_is_below_it(tmp_path: Path) -> None:
    data = data_of(page_of(write(tmp_path, SESSION, protocol="mcp")))
    parents = {row[:2]: row[2] for row in table(data, "method", "subject", "parent")}
    slow = [row[:2] for row in table(data, "method", "subject")].index(("tools/call", "slow"))
    assert parents["notifications/progress", ""] == slow, "by its token, though two calls were open"
    assert parents["sampling/createMessage", ""] == slow, "the only open call"
    assert parents["tools/call", "other"] == -1
    outcomes = {row[0]: row[1] for row in table(data, "subject", "outcome")}
    assert [outcomes[name] for name in ("slow", "other", "never", "cancelled")] == [
        "ok", "failed", "no answer", "cancelled",
    ]  # fmt: skip
    took = {row[0]: row[1] for row in table(data, "subject", "took")}
    assert took["cancelled"] == 100_000, "until it was cancelled"


def test_lines_are_shown_without_colors(tmp_path: Path) -> None:
    events = '- {t: 1, in: "PING\\r"}\n- {t: 2, err: "\\e[1;32mready\\e[0m to \\e[31mserve"}\n'

    text = page_of(write(tmp_path, events, protocol="raw"))

    assert "PINGready to serve" in text
    assert "\x1b" not in text


def test_http_interactions_are_below_their_calls() -> None:
    data = data_of(page_of(HTTP))
    found = table(data, "kind", "method", "time", "took", "parent")
    interactions = [row for row in found if row[0] == "http"]
    assert len(interactions) == HTTP.with_suffix(".http.yaml").read_text().count("- request:") > 0
    for _, method, time, took, parent in interactions:
        kind, _, start, length, _ = found[int(str(parent))]
        assert kind == "call"
        assert int(str(start)) <= int(str(time)), method
        assert int(str(time)) + int(str(took)) <= int(str(start)) + int(str(length)), method
    assert "[redacted:" in page_of(HTTP)


def test_nothing_in_a_message_is_taken_for_html(tmp_path: Path) -> None:
    text = page_of(write(tmp_path, CALL + "- {t: 2.0, err: '<!--<script>'}\n"))
    assert text.count("<script") == 3  # the table, the script, the messages
    assert text.count("</script>") == 3
    assert "<b>no" not in text
    assert "<!--" not in text


def test_the_page_is_allowed_to_run_its_own_script_and_nothing_else(tmp_path: Path) -> None:
    text = page_of(write(tmp_path))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src 'none'; img-src data:; ")
    for kind, pattern in (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>")):
        part = re.search(pattern, text, re.DOTALL)
        assert part
        digest = base64.b64encode(hashlib.sha256(part[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert "http://" not in text
    assert "https://" not in text


def test_the_script_makes_no_markup_of_texts() -> None:
    scripts = (ROOT / "recorder/ext_recorder/tools/view/scripts").glob("*.js")
    markup = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|\.href ="
    )
    assert [path.name for path in scripts if markup.search(path.read_text())] == []


def test_secrets_of_this_environment_stay_out_of_it(tmp_path: Path) -> None:
    cassette = write(tmp_path, CALL.replace("a line", "hunter2!"))
    assert b"hunter2!" not in b"".join(page(cassette, {"MY_TOKEN": "hunter2!"}))


def test_the_same_cassette_makes_the_same_page() -> None:
    assert page_of(TASK) == page_of(TASK)


CASSETTES = [path for path in sorted(ROOT.glob("cassettes/*/*.yaml")) if not path.name.endswith(".http.yaml")]


@pytest.mark.parametrize("path", CASSETTES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_call_of_the_cassettes_here_has_its_response(path: Path) -> None:
    found = table(data_of(page_of(path)), "kind", "response", "status")
    stats = [json.loads(line) for line in call("stats", "--json", str(path)).stdout.splitlines()]
    assert sum(1 for kind, *_ in found if kind in {"call", "notification"}) == sum(each["count"] for each in stats)
    calls = [row for row in found if row[0] == "call"]
    assert sum(1 for _, response, _ in calls if response != -1) >= sum(each["answered"] for each in stats)
    failed = sum(1 for _, response, status in calls if status in {"error", "cancelled"} and response != -1)
    assert failed == sum(each["errors"] for each in stats)


def test_what_is_not_utf_8_is_kept_as_base64(tmp_path: Path) -> None:
    raw = base64.b64encode(bytes(range(256))).decode()
    blank = base64.b64encode(b"\n").decode()
    events = f"- {{t: 0.1, out: {{raw: '{raw}'}}}}\n- {{t: 0.2, err: {{raw: '{blank}'}}}}\n"
    data = data_of(text := page_of(write(tmp_path, events)))
    kinds = [("junk", "error"), ("junk", "error"), ("stderr", ""), ("mark", "error")]
    assert table(data, "kind", "status") == kinds
    assert data["bodies"]["names"][data["bodies"]["name"][1]] == "base64"
    assert base64.b64encode(bytes(range(11, 256))).decode() in text


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), max_size=9), st.integers(1, 200))
def test_every_body_is_where_its_columns_say(texts: list[str], chunk: int) -> None:
    store = bodies.Bodies()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "_CHUNK", chunk)
        for text in texts:
            store.add(text, content=("x", len(text) // 2, len(text)))
        columns: Any = store.columns()
    elements = b"".join(store.elements()).decode()
    store.close()
    within = re.compile(r'<script type="text/plain" id="bodies-\d+">([^<]*)</script>\n')
    assert within.sub("", elements) == ""
    chunks = [each.translate(DECODED).encode("utf-16-le") for each in within.findall(elements)]
    found, begin = [], 0
    for end, data in zip(columns["chunks"], chunks, strict=True):
        offset = 0
        for length, half in zip(columns["length"][begin:end], columns["start"][begin:end], strict=True):
            parts = data[2 * offset : 2 * (offset + half)], data[2 * (offset + half) : 2 * (offset + length)]
            found.append(tuple(part.decode("utf-16-le") for part in parts))
            offset += length
        begin = end
    kept = [re.sub("[\ufdd0-\ufdd2]", "\ufffd", text) for text in texts]
    assert found == [(text[: len(text) // 2], text[len(text) // 2 :]) for text in kept]


# What `bodies.js` does with the noncharacters.
DECODED = str.maketrans("\ufdd0\ufdd1\ufdd2", "<\r\0")


# --- A recorded run ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Eval().write(tmp_path_factory.mktemp("run") / "repair")


def test_a_recording_has_a_lane_for_each_part(recording: Path) -> None:
    data = data_of(page_of(recording))
    assert [(lane["role"], lane["name"]) for lane in data["about"]["lanes"]] == [
        ("host", "host"), ("agent", "agent"), ("model", "api.anthropic.com"), ("mcp", "cluster-tools"),
        ("extension", "kubernetes"), ("extension", "shell"), ("cluster", "10.0.0.1:6443"), ("service", "services"),
    ]  # fmt: skip
    assert {each["name"] for each in data["about"]["sources"] if each["lane"] == 1} == {"agent", "agent-2"}
    assert (data["about"]["steps"], data["about"]["chats"], data["about"]["tokens"]) == ([12, 1], 6, [10440, 350])


def test_tasks_have_phases_and_phases_what_happened_during_them(recording: Path) -> None:
    data = data_of(page_of(recording))
    columns = ("kind", "method", "subject", "outcome", "parent", "time", "took")
    found = table(data, *columns)

    def path(row: int) -> list[str]:
        _, method, subject, _, parent, _, _ = found[row]
        return [*(path(int(str(parent))) if parent != -1 else []), f"{method} {subject}".strip()]

    phases = [(method, outcome) for kind, method, _, outcome, *_ in found if kind in {"task", "phase"}]
    assert phases == [
        ("task 1", "ok"), ("setup", "ok"), ("agent", ""), ("verify", "ok"), ("cleanup", "ok"),
        ("task 2", "1 of 6 failed"), ("setup", "ok"), ("agent", ""), ("verify", "1 of 3 failed"), ("cleanup", "ok"),
    ]  # fmt: skip
    paths = [path(row) for row in range(len(found))]
    assert ["task 1", "setup", "execute apply", "get pods task-1/nginx"] in paths
    assert ["task 2", "agent", "session/prompt", "anthropic claude-sonnet-5"] in paths
    assert ["task 2", "agent", "session/prompt", "tools/call pods_list", "list pods task-2"] in paths
    for row, (*_, parent, time, took) in enumerate(found):
        if parent != -1:
            start, length = found[int(str(parent))][-2:]
            assert int(str(start)) <= int(str(time)), paths[row]
            assert int(str(time)) + max(0, int(str(took))) <= int(str(start)) + int(str(length)) + 1, paths[row]


def test_a_turn_of_an_agent_or_a_model_is_one_text(recording: Path) -> None:
    text = page_of(recording)
    rows_of = table(data_of(text), "method", "subject", "says", "answers", "chat")
    prompts = [row for row in rows_of if row[0] == "session/prompt"]
    assert [row[3] for row in prompts] == [THOUGHTS[-1]] * 2
    models = [row for row in rows_of if row[0] == "anthropic"]
    assert models[0][2:4] == (
        "The pod nginx in the namespace task-1 does not become ready. Find out why, and repair it.",
        "I will look at the pods of the namespace first. · pods_list(namespace: task-1)",
    )
    assert models[1][2] == "nginx 0/1 ImagePullBackOff", "what is new in the request"
    assert all(row[4] != -1 for row in [*prompts, *models])
    pieces = [row for row in rows_of if row[1] == "agent_message_chunk"]
    assert "I will look at the pods of the namespace first." in {row[2] for row in pieces}


def step(number: int, source: int, task: str, phase: str = "", prompt: str = "") -> rows.Step:
    return rows.Step(number, source, task, phase, prompt, "output" if prompt else "")


def test_steps_of_a_host_that_does_not_name_phases_are_those_before_and_after_the_agent() -> None:
    steps = [
        step(0, 0, "/tmp/workdir"), step(1, 0, "/tmp/workdir", "", "do"), step(2, 1, "/tmp/workdir", "", "do"),
        step(3, 0, "/tmp/workdir"), step(4, 1, "/tmp/workdir-2"), step(5, 1, "/tmp/workdir-2", "", "in /tmp/workdir-2"),
        step(6, 0, "/tmp/workdir-3", "", "in /tmp/workdir-3"),
    ]  # fmt: skip
    found = [[(each.row, each.phase) for each in task] for task in rows.tasks_of(steps)]
    assert found == [
        [(0, "setup"), (1, "verify"), (3, "cleanup"), (2, "verify")],
        [(4, "setup"), (5, "verify"), (6, "verify")],
    ]


def test_runs_of_one_task_are_tasks_of_their_own() -> None:
    phases = ("setup", "verify", "cleanup")
    named = [step(n, 0, "/w", phases[n % 3], "do" if n % 3 == 1 else "") for n in range(6)]
    assert [[each.row for each in task] for task in rows.tasks_of(named)] == [[0, 1, 2], [3, 4, 5]]
    unnamed = [each._replace(phase="") for each in named]
    found = [[(each.row, each.phase) for each in task] for task in rows.tasks_of(unnamed)]
    between = "cleanup, setup"
    assert found == [[(0, "setup"), (1, "verify"), (2, between), (3, between)], [(4, "verify"), (5, "cleanup")]]


def test_overlapping_tasks_get_nothing_that_may_belong_to_another(tmp_path: Path) -> None:
    made = Eval(tasks=1)
    step: dict[str, object] = {"operation": "run", "args": {}}
    step["context"] = {"workdir": "/tmp/other", "phase": "verify", "agent": {"prompt": "another", "output": "done"}}
    made.shell.call(0.5, made.end, "execute", step, {"success": True, "message": "ran"})
    found = table(data_of(page_of(made.write(tmp_path / "run"))), "kind", "method", "parent")
    assert {row[2] for row in found if row[1] == "anthropic"} != {-1}, "the other task is around all of it"
    made = Eval(tasks=1)
    made.shell.call(2.0, made.end, "execute", step, {"success": True, "message": "ran"})
    found = table(data_of(page_of(made.write(tmp_path / "overlapping"))), "kind", "method", "parent")
    assert [row[2] for row in found if row[1] == "anthropic"][-1] == -1
    for item in made.traffic:
        item.client = "agent" if "anthropic" in item.uri else "kubernetes"
    found = table(data_of(page_of(made.write(tmp_path / "known"))), "kind", "method", "parent")
    assert {found[int(str(row[2]))][1] for row in found if row[1] == "anthropic"} == {"session/prompt"}
    assert {row[2] for row in found if row[1] == "list pods"} == {-1}, "no call of this client was open"


def test_times_of_a_recording_without_starts_are_those_of_the_headers(recording: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recording, copy)
    header = copy / "recording.yaml"
    header.write_text(re.sub(r"\n +started: \[[^]]*\]", "", header.read_text()))
    agent = copy / "children" / "agent.yaml"
    agent.write_text(agent.read_text().replace("16:00:00Z", "16:00:07Z"))
    found = table(data_of(page_of(copy)), "method", "time")
    assert min(int(str(time)) for method, time in found if method == "session/new") == 60_000
    assert max(int(str(time)) for method, time in found if method == "session/new") > 7_000_000


# --- What is left out -------------------------------------------------------------------------------------------------


def test_rows_above_the_limit_are_counted_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 5)
    data = data_of(page_of(write(tmp_path, SESSION, protocol="mcp")))
    assert (len(data["kind"]), data["about"]["leftOut"]["rows"]) == (5, 7)


def test_long_messages_are_cut_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LONGEST_BODY", 60)
    data = data_of(page_of(write(tmp_path)))
    assert data["bodies"]["cut"] == [0, 1]
    assert (data["bodies"]["length"][:2], data["bodies"]["size"][0]) == ([60, 60], 78)
    monkeypatch.setattr(bodies, "ALL_BODIES", 70)
    data = data_of(page_of(write(tmp_path)))
    assert (data["bodies"]["cut"], data["bodies"]["length"]) == ([0, 1, 2], [60, 10, 0])


def test_memory_does_not_grow_with_the_messages(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = write(tmp_path, "".join(f"- {{t: 1.0, err: '{'a few words ' * 9_000}'}}\n" for _ in range(count)))
        program = (
            "import resource, sys\nfrom pathlib import Path\nfrom ext_recorder.tools.view.page import page\n"
            f"for _ in page(Path({str(path)!r})): pass\n"
            "sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", program], capture_output=True, timeout=PATIENCE_S, check=True
        )
        return int(done.stdout)

    assert peak(250) < peak(20) + 10_000  # kB, for 25 MB more


# --- The command ------------------------------------------------------------------------------------------------------


def view(*words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*RECORDER, "view", *words], capture_output=True, timeout=PATIENCE_S, check=False, cwd=cwd)


def test_the_command_writes_it_beside_you_and_replaces_only_its_own(tmp_path: Path) -> None:
    done = view(str(TASK), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"eval-task.html\n")
    assert view(str(TASK), cwd=tmp_path).returncode == 0
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    refused = view("-o", "mine.html", str(TASK), cwd=tmp_path)
    assert (refused.returncode, b"--force" in refused.stderr) == (2, True)
    assert view("-o", "mine.html", "--force", str(TASK), cwd=tmp_path).returncode == 0
    assert view("-o", "-", str(TASK), cwd=tmp_path).stdout == (tmp_path / "mine.html").read_bytes()


def test_a_cassette_in_an_archive_has_its_http_traffic(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    archive = tmp_path / "sessions.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (HTTP, HTTP.with_name("offline.http.yaml"), TASK):
            file.write(path, path.name)
    assert view(f"zip://offline.yaml::{archive}", cwd=tmp_path).returncode == 0
    assert (tmp_path / "offline.html").read_bytes() == b"".join(page(HTTP))
    assert view(f"zip://eval-task.yaml::{archive}", cwd=tmp_path).returncode == 0, "it has none"


def test_a_cassette_that_can_t_be_read_makes_no_page(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("cassette: 1\nevents:\n- {t: 0, in: 'x\n")
    done = view("broken.yaml", cwd=tmp_path)
    assert (done.returncode, b"broken.yaml" in done.stderr) == (2, True)
    assert not (tmp_path / "broken.html").exists()


# --- In a browser -----------------------------------------------------------------------------------------------------

in_browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install Debian's package chromium")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        opened(started, TASK)
        yield started


def opened(browser: Browser, cassette: Path, fragment: str = "", **size: Any) -> Browser:
    browser.problems.clear()
    browser.requests.clear()
    path = browser.profile / "page.html"
    path.write_bytes(b"".join(page(cassette, {})))
    browser.open(path, fragment, **size)
    return browser


BOXES = "[...document.querySelectorAll('.pane')].map((pane) => pane.getBoundingClientRect().toJSON())"


def names(browser: Browser) -> list[str]:
    return [text.strip("▾▸ ") for text in browser.texts("#rows-shown .name, #rows-shown .says")]


@in_browser
def test_a_browser_shows_calls_as_a_tree_with_bars(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"))
    assert browser.texts("#count") == ["11 rows"]
    assert names(browser) == [
        "initialize", "notifications/initialized", "tools/call slow", "notifications/progress",
        "sampling/createMessage", "tools/call other", "a warning", "tools/call never", "tools/call cancelled",
        "notifications/cancelled", "exit 1",
    ]  # fmt: skip
    levels = browser.run("[...document.querySelectorAll('#rows-shown .row')].map((row) => row.ariaLevel)")
    assert levels == ["1", "1", "1", "2", "2", "1", "1", "1", "1", "2", "1"]
    assert browser.texts("#rows-shown .outcome") == [
        "ok", "", "ok", "", "ok", "failed", "", "no answer", "cancelled", "", "",
    ]  # fmt: skip
    # The bar of the slow call spans the one that overlaps it, and that of the child's request.
    bars = "[...document.querySelectorAll('#rows-shown .bar')].map((bar) => parseFloat(bar.style[name]))"
    left, width = browser.run(f"['left', 'width'].map((name) => {bars})")
    assert left[1] < left[2] < left[1] + width[1]
    assert left[2] + width[2] < left[1] + width[1]
    assert browser.problems == []


@in_browser
def test_a_browser_shows_request_and_response_side_by_side(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path), "call-1")
    assert browser.texts(".pane h3") == ["Request", "Response"]
    boxes = browser.run(BOXES)
    assert boxes[0]["top"] == boxes[1]["top"]
    assert boxes[0]["right"] <= boxes[1]["left"]
    request, response = browser.texts(".pane .content")
    assert request == "1.012345678901234567890123", "the parameters, as they are spelled"
    assert "jsonrpc" not in request + response
    assert browser.texts(".problem") == ["<b>no</b></script><script>alert(1)"]
    browser.click(".raw")
    assert browser.texts(".pane .content")[0] == (
        '{"jsonrpc":"2.0","id":1,"method":"add","params":[1.0,12345678901234567890123]}'
    )


@in_browser
def test_a_browser_unfolds_json_in_texts_and_draws_images(browser: Browser, tmp_path: Path) -> None:
    content = [
        {"type": "text", "text": json.dumps({"inner": json.dumps({"innermost": 1.50})})},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "image", "data": SVG, "mimeType": "image/svg+xml"},
        {"type": "text", "text": f"data:image/png;base64,{PNG}"},
        {"type": "text", "text": f"data:image/svg+xml;base64,{SVG}"},
        {"type": "text", "text": "# Title\n\n- a\n- b"},
        {"type": "text", "text": 'Found it:\n{"after": 1}'},
    ]
    opened(browser, write(tmp_path, request(0, 1, "tools/call", name="x") + result(1, 1, content=content)), "call-1")
    assert browser.texts(".inner .inner .items .key") == ["innermost"]
    assert browser.texts(".inner .inner .number") == ["1.5"]
    browser.wait("[...document.images].every((image) => image.complete)")
    assert browser.run("[...document.images].map((image) => image.naturalWidth)") == [1, 1]
    assert "# Title\n\n- a\n- b" in browser.texts("pre.string")
    assert "Found it:" in browser.texts("pre.string")
    assert browser.texts(".inner .key")[-1] == "after"
    assert "Found it:" in browser.texts("pre.string")
    assert browser.texts(".inner .key")[-1] == "after"
    assert browser.problems == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
# A tree written as JSON again, from the spelling that it has kept.
WRITTEN = """((text) => {
  const value = (tree) => tree.type === "{" ? `{${tree.items.map((each) => each.key + ":" + value(each)).join(",")}}`
    : tree.type === "[" ? `[${tree.items.map(value).join(",")}]` : tree.raw;
  for (let end = 0; end < text.length; end += 7) parseTree(text.slice(0, end));
  return value(parseTree(text));
})"""


@in_browser
@given(JSON, st.booleans(), st.sampled_from([None, 1]))
@settings(deadline=None, max_examples=50)
def test_a_tree_is_the_json_that_it_was(browser: Browser, value: object, ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent).encode("utf-8", "replace").decode()
    assert json.loads(browser.run(f"{WRITTEN}({json.dumps(text)})")) == json.loads(text)


@in_browser
def test_a_browser_filters_by_search_status_method_and_time(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), "q=DEEP+er")
    assert names(browser) == ["tools/call slow"]
    browser.click("#clear")
    assert browser.texts("#count") == ["11 rows"]
    browser.click(".chip.error")
    assert names(browser) == ["tools/call other", "exit 1"]
    browser.click(".chip.open")
    assert names(browser) == ["tools/call other", "tools/call never", "exit 1"]
    browser.wait("location.hash === '#status=error%2Copen'")
    browser.run("change({ ...DEFAULTS, method: 'tools/call other' })")
    assert names(browser) == ["tools/call other"]
    browser.run("change({ ...DEFAULTS, way: 'out', kind: 'calls' })")
    assert names(browser) == ["sampling/createMessage"]
    browser.run("change({ ...DEFAULTS, q: 'tools -slow -never' })")
    assert names(browser) == ["tools/call other", "tools/call cancelled"]
    browser.run("change({ ...DEFAULTS, q: 'nothing of this' })")
    assert browser.texts("#empty:not([hidden])") == ["No row passes the filters."]


@in_browser
def test_a_browser_sorts_by_a_column(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), "kind=calls")
    browser.click("#heads [data-sort=took] button")
    assert names(browser)[-1] == "tools/call never", "without an answer it lasts until the end"
    browser.click("#heads [data-sort=took] button")
    assert names(browser)[:3] == ["tools/call never", "tools/call slow", "tools/call other"]
    assert browser.run("document.querySelector('#heads [data-sort=took]').ariaSort") == "descending"
    browser.click("#heads [data-sort=took] button")
    assert names(browser)[0] == "initialize"


@in_browser
def test_a_browser_zooms_to_a_dragged_range(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), "idle=keep")
    left, top, width = browser.run("{ const b = at('axis').getBoundingClientRect(); [b.left, b.top, b.width] }")
    browser.drag((left + width * 1.05 / 9, top + 30), (left + width * 1.57 / 9, top + 30))
    assert names(browser) == [
        "tools/call slow", "notifications/progress", "sampling/createMessage", "tools/call other", "a warning",
    ]  # fmt: skip
    browser.wait("/^#from=1[.]0\\d+&to=1[.]5\\d+&idle=keep$/.test(location.hash)")
    browser.press("0")
    assert browser.texts("#count") == ["11 rows"]


@in_browser
def test_a_link_has_the_filters_and_the_row(browser: Browser, tmp_path: Path) -> None:
    cassette = write(tmp_path, SESSION, protocol="mcp")
    opened(browser, cassette, "q=tools&status=open")
    browser.click("#rows-shown .row")
    link = "#call-4&q=tools&status=open"
    browser.wait(f"location.hash === '{link}'")
    opened(browser, cassette, link[1:])
    assert browser.texts("#title") == ["tools/call never #4"]
    assert names(browser) == ["tools/call never"]
    browser.run("{ location.hash = '#line-11'; new Promise((done) => addEventListener('hashchange', done)) }")
    assert browser.texts("#title") == ["notifications/progress "], "a message by the line of the cassette"


@in_browser
def test_a_browser_is_used_by_keys(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"))
    browser.press("j", "j", "ArrowDown", "k")
    assert browser.texts("#title") == ["notifications/initialized "]
    browser.press("e")
    assert browser.texts("#title") == ["tools/call other #3"]
    browser.run("choose(2)")
    browser.press("ArrowLeft")
    assert "sampling/createMessage" not in names(browser)
    browser.press("Escape")
    assert browser.run("at('detail').hidden")
    browser.press("/")
    browser.press(*"never", "Enter")
    assert browser.texts("#title") == ["tools/call never #4"]
    browser.press("Enter")
    assert browser.run("document.activeElement.id") == "detail"
    browser.press("Escape")
    assert browser.run("document.activeElement.id") == "list"


@in_browser
def test_a_browser_shows_figures_that_follow_the_filters(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), "kind=calls")
    browser.press("f")
    cells = browser.run("[...at('table').tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent))")
    assert cells[0][:7] == ["→ tools/call", "4", "1", "1", "200 ms", "600 ms", "600 ms"]
    assert {row[0] for row in cells} == {"→ initialize", "→ tools/call", "← sampling/createMessage"}
    browser.click("#subjects")
    assert "→ tools/call slow" in browser.texts("#table tbody th")
    browser.click("#table thead button", 6)
    assert browser.texts("#table tbody th")[0] == "→ tools/call slow", "sorted by the longest"


@in_browser
def test_a_browser_shows_http_below_its_call(browser: Browser) -> None:
    statuses = re.findall(r"^      code: (\d+)$", HTTP.with_suffix(".http.yaml").read_text(), re.MULTILINE)
    opened(browser, HTTP, f"http-{statuses.index('404') + 1}")
    assert browser.texts("#rows-shown .row[aria-selected=true] .outcome") == ["404 Not Found"]
    assert browser.texts("#rows-shown .row[aria-selected=true] .waterfall .bar") == [""]
    assert "Belongs to" in browser.texts("#near h3")
    request, response = browser.texts(".pane .content")
    assert request.startswith("GET https://")
    assert "reasonNotFound" in response.replace(" ", "")
    opened(browser, ROOT / "cassettes" / "http" / "offline.yaml", "http-1")
    assert "Authorization: Bearer [redacted:bearer#1]" in browser.run("bodyText(page.request[state.row])")
    assert "Bearer [redacted:bearer#1]" in browser.texts(".headers dd")


@in_browser
def test_a_browser_shows_binary_data_as_bytes(browser: Browser, tmp_path: Path) -> None:
    raw = base64.b64encode(b"\xff\x00binary\xfe" * 400).decode()
    opened(browser, write(tmp_path, f"- {{t: 0.1, out: {{raw: '{raw}'}}}}\n", protocol="raw"), "line-6")
    (shown,) = browser.texts(".hex")
    assert shown.startswith("000000  ff 00 62 69 6e 61 72 79 fe ff 00 62 69 6e 61 72  ..binary...binar\n")
    assert shown.endswith("\n… 1.6 kB more")


@in_browser
def test_a_printed_page_has_all_rows_and_the_chosen_call(browser: Browser, tmp_path: Path) -> None:
    many = "".join(f"- {{t: {n / 1000}, err: 'line {n}'}}\n" for n in range(500))
    opened(browser, write(tmp_path, SESSION + many, protocol="mcp"), "call-2")
    browser.send("Emulation.setEmulatedMedia", media="print")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert len(names(browser)) == 511
    assert browser.run("at('filters').checkVisibility()") is False
    assert browser.run("at('main').scrollHeight") <= browser.run("document.documentElement.scrollHeight")
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert len(names(browser)) < 100
    browser.send("Emulation.setEmulatedMedia", media="")


@in_browser
def test_a_hostile_cassette_does_nothing(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>document.title=1</script><img src=x onerror='document.title=2'><!--<script>"
    deep = "[" * 100_000 + "]" * 100_000
    session = "".join(
        (
            request(0.1, 1, evil, "in", **{evil: evil, "link": "https://example.com/x.png", "__proto__": {"a": 1}}),
            result(0.2, 1, text=evil, link="javascript:alert(1)", bidi="safe\u202e\u2066gnp.exe\u0000\u001b[31m"),
            f'- {{t: 0.300000, out: \'{{"jsonrpc":"2.0","id":2,"method":"deep","params":{deep}}}\'}}\n',
            message(0.4, "out", method="constructor", params={"toString": "x", "text": deep}),
            message(
                0.41,
                "out",
                method="slow",
                params=["\\n" * 300_000, " " * 300_000 + "!", "iVBORw0KGgo" + "A=" * 200_000],
            ),
            "- {t: 0.500000, err: '<script>document.title=1</script>'}\n",
        )
    )
    opened(browser, write(tmp_path, session), "call-1")
    assert browser.run("document.title") == "session.yaml"
    assert "safe⟨202E⟩⟨2066⟩gnp.exe⟨0000⟩" in browser.texts(".string")[-1]
    for _ in range(7):
        browser.press("j")
    browser.press("f")
    assert browser.run("document.title") == "session.yaml"
    assert browser.run("document.querySelectorAll('img, a, iframe, object').length") == 0
    assert [address for address in browser.requests if not address.startswith(("file:", "data:"))] == []
    assert browser.problems == []


@in_browser
@pytest.mark.parametrize("framing", ["ndjson", "content-length"])
def test_a_copied_command_gets_the_answer_of_a_server(browser: Browser, tmp_path: Path, framing: str) -> None:
    server = tmp_path / "server.py"
    server.write_text(SERVER.format(framing=framing))
    command = json.dumps([sys.executable, str(server)])
    cassette = tmp_path / "session.yaml"
    head = HEAD.format(protocol="mcp", framing=framing).replace("[my-server, '--name=it''s']", command)
    events = SESSION.replace('"name": "other"', '"name": "it\'\'s \\u00e4 $HOME `x`"')
    cassette.write_text(head + events + END)
    opened(browser, cassette, "call-3")
    text = browser.run("commandFor(state.row)")
    done = subprocess.run(["/bin/sh", "-c", text], capture_output=True, timeout=PATIENCE_S, check=True)
    assert b'"id": 3, "result": {"name": "it\'s \\u00e4 $HOME `x`"}' in done.stdout
    assert b"before initialize" not in done.stdout
    browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.click("#command")
    browser.wait("at('command').textContent === 'Copied'")
    assert browser.run("navigator.clipboard.readText()") == text
    browser.run("choose(2)")
    command = browser.run("commandFor(state.row)")
    assert command.startswith("ext-recorder trim --calls 2 -o session-call-2.yaml session.yaml && ext-recorder verify ")


# Answers as an MCP server does: nothing before initialize, and nothing more once its input has ended.
SERVER = """
import json, sys
ready = False
def read():
    if "{framing}" == "ndjson":
        return sys.stdin.buffer.readline()
    length = sys.stdin.buffer.readline()
    sys.stdin.buffer.readline()
    return sys.stdin.buffer.read(int(length.split(b":")[1])) if length else b""
while line := read():
    message = json.loads(line)
    ready = ready or message["method"] == "initialize"
    if "id" in message:
        said = dict(result={{"name": message["params"].get("name")}}) if ready else dict(error="before initialize")
        print(json.dumps({{"id": message["id"], **said}}), flush=True)
"""


@in_browser
def test_a_copied_curl_command_sends_the_request(browser: Browser) -> None:
    opened(browser, ROOT / "cassettes" / "http" / "offline.yaml", "http-5")
    command = browser.run("commandFor(state.row)")
    assert command.splitlines()[-1].startswith("curl --globoff --compressed -i -X POST -H ")
    assert "# [redacted:…] was a secret: put it in its place" in command
    assert "--data-raw '{" in command
    shown = subprocess.check_output(
        ["/bin/sh", "-c", command.replace("\ncurl ", "\nprintf '%s\\n' ")], timeout=PATIENCE_S
    )
    body = shown.decode().split("--data-raw\n")[1].split("\n--url\n")[0]
    assert json.loads(body) == {"name": "lamp"}


@in_browser
def test_no_command_is_offered_that_would_do_something_else(browser: Browser, tmp_path: Path) -> None:
    def offered(address: str, header: str, body: str = "x") -> object:
        (tmp_path / "session.http.yaml").write_text(
            json.dumps(
                {
                    "interactions": [
                        {
                            "request": {"method": "GET", "uri": address, "headers": {header: [""]}, "body": body},
                            "response": {"status": {"code": 200, "message": ""}, "headers": {}, "body": {"string": ""}},
                        }
                    ]
                }
            )
        )
        opened(browser, write(tmp_path), "http-1")
        return browser.run("commandFor(state.row)")

    assert offered("http://a/", "X-A") == "curl --globoff --compressed -i -X GET -H X-A: --data-raw x --url http://a/"
    assert offered("http://a/", "@/etc/passwd") == (
        "curl --globoff --compressed -i -X GET --data-raw x --url http://a/"
    )
    assert offered("-o/tmp/x", "X-A") is None
    assert offered("http://a/", "X-A", "\x1b[201~rm -rf /") is None


@in_browser
def test_a_browser_says_what_is_left_out(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 5)
    monkeypatch.setattr(bodies, "LONGEST_BODY", 60)
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), "call-1")
    (note,) = browser.texts("#left-out:not([hidden])")
    assert "messages after the first 5 rows are not on this page" in note
    assert "messages too long for this page" in note
    assert any("Cut: the page has 60 B of " in text for text in browser.texts(".pane .note"))


@in_browser
def test_a_browser_draws_only_what_is_in_view_of_a_long_session(browser: Browser, tmp_path: Path) -> None:
    many = "".join(f"- {{t: {n}.0, err: 'line {n}'}}\n" for n in range(20_000))
    opened(browser, write(tmp_path, many), "line-15006")
    assert browser.texts("#count") == ["20,001 rows"]
    assert 10 < len(names(browser)) < 100
    assert browser.texts("#rows-shown .row[aria-selected=true] .says") == ["line 15000"]
    browser.press("G")
    assert names(browser)[-1] == "line 19999"


@in_browser
def test_a_browser_shows_the_lanes_of_a_run(browser: Browser, recording: Path) -> None:
    opened(browser, recording)
    assert browser.texts("#lanes .lane-name")[:3] == ["host", "agent", "api.anthropic.com"]
    assert browser.texts(".badge") == [
        "✗ 1 of 12 steps failed",
        "exit 0",
        "6 model calls",
        "10,440 tokens in, 350 out",
    ]
    assert {"task 1", "setup", "execute create-namespace", "anthropic claude-sonnet-5"} <= set(names(browser))
    assert not any(name.startswith("get pods") for name in names(browser)), "requests of a step are folded"
    browser.click("#lanes button", 3)
    assert browser.texts("#count") == ["8 of 190 rows"]
    browser.wait("location.hash === '#lane=3'")
    browser.click("#clear")
    browser.press("h")
    assert browser.texts("#count") == ["40 of 190 rows"]
    assert "session/update agent_message_chunk" not in names(browser)
    assert (browser.problems, [each for each in browser.requests if not each.startswith("file:")]) == ([], [])


@in_browser
def test_a_bar_of_a_lane_selects_its_row(browser: Browser, recording: Path) -> None:
    opened(browser, recording)
    middle = browser.run(
        "{ const box = at('axis').getBoundingClientRect(); const { top, height } = layout[2]; "
        "[box.left + scale().x(3.2e6) * box.width, box.top + top + height / 2] }"
    )
    browser.drag(middle, middle)
    assert browser.texts("#title") == ["anthropic claude-sonnet-5 "]
    assert browser.texts(".bubble .who") == ["system", "result", "answer", "tool call"][1:]
    assert browser.texts(".bubble.call b") == ["pods_set_image"]
    list_, detail = browser.run("['list', 'detail'].map((id) => at(id).getBoundingClientRect().toJSON())")
    assert list_["right"] <= detail["left"] + 1, "the detail is beside the list"
    browser.wait("location.hash.startsWith('#http-')")


@in_browser
def test_a_link_into_a_run_names_the_cassette_and_the_call(browser: Browser, recording: Path) -> None:
    opened(browser, recording, "agent-2.call-3")
    assert browser.texts("#title") == ["session/prompt #99"]
    assert browser.texts(".bubble .who")[0] == "user"
    opened(browser, recording, "kubernetes.call-10&q=condition")
    assert browser.texts("#title") == ["execute condition #10"]
    assert browser.texts("#verdict.error") == [FAILURE]
    assert "children/kubernetes.yaml:" in "".join(browser.texts("#facts"))
    assert "During" in browser.texts("#near h3")


@in_browser
def test_a_long_run_is_drawn_as_far_as_it_is_in_view(browser: Browser, tmp_path: Path) -> None:
    folder = Eval(tasks=30, requests=20).write(tmp_path / "long")
    opened(browser, folder)
    assert browser.texts("#count") == ["5,110 rows"]
    assert 10 < len(names(browser)) < 100
    browser.press("G")
    assert 10 < len(names(browser)) < 100
    assert browser.problems == []
    browser.press("/")
    browser.press(*"nosuchword")
    browser.wait("at('count').textContent === '0 of 5,110 rows'")


@in_browser
def test_a_hostile_recording_does_nothing(browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>document.title=1</script><img src=x onerror='document.title=2'>"
    made = Eval(tasks=1, image=evil)
    made.tools.name = "evil<img src=x onerror=alert(1)>"
    made.shell.message(3.0, "out", method=evil, params={evil: evil, "__proto__": {"a": 1}})
    reply = {"content": [{"type": "text", "text": evil}, {"type": "tool_use", "name": evil, "input": {evil: evil}}]}
    ask = {"model": evil, "system": evil, "messages": [{"role": evil, "content": [{"type": evil}, {"text": evil}]}]}
    made.http((0.1, 0.2), "POST", f"https://model.test/v1/messages?{evil}", ask, reply)
    opened(browser, made.write(tmp_path / "evil"), "http-1")
    assert browser.texts(".bubble.call b") == [evil]
    for row in ("j", "j", "j", "h", "f"):
        browser.press(row)
    assert browser.run("document.title") == "evil"
    assert browser.run("document.querySelectorAll('img, a, iframe, object').length") == 0
    assert ([each for each in browser.requests if not each.startswith("file:")], browser.problems) == ([], [])


@in_browser
@pytest.mark.parametrize("dark", [False, True])
def test_texts_of_a_run_have_contrast(browser: Browser, recording: Path, *, dark: bool) -> None:
    for fragment in ("", "http-9", "kubernetes.call-10"):
        opened(browser, recording, fragment, dark=dark)
        worst = browser.run(CONTRAST)
        assert worst[0] >= 4.5, worst


@in_browser
def test_a_phone_shows_a_run(browser: Browser, recording: Path) -> None:
    opened(browser, recording, "http-9", width=390, height=844)
    assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.run("at('detail').getBoundingClientRect().width") == 390
    browser.click("#close")
    assert browser.run("at('lanes').offsetWidth + at('axis').clientWidth") <= 390


@in_browser
@pytest.mark.parametrize("dark", [False, True])
def test_texts_have_contrast(browser: Browser, tmp_path: Path, *, dark: bool) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), "call-3", dark=dark)
    worst = browser.run(CONTRAST)
    assert worst[0] >= 4.5, worst
    browser.click("#theme")
    worst = browser.run(CONTRAST)
    assert worst[0] >= 4.5, worst


# The lowest contrast (WCAG 2) of any text with the ground on which it stands, and the text.
CONTRAST = r"""(() => {
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const linear = (c) => c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (e) => {
    const colour = getComputedStyle(e).backgroundColor;
    return !colour.startsWith("rgb") || channels(colour)[3] === 0 ? ground(e.parentElement) : channels(colour);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = walker.nextNode()); ) {
    const e = text.parentElement;
    if (!text.data.trim() || !e.checkVisibility() || ["SCRIPT", "STYLE", "OPTION"].includes(e.tagName)) continue;
    const [one, other] = [luminance(channels(getComputedStyle(e).color)), luminance(ground(e))].sort((a, b) => b - a);
    found.push([(one + 0.05) / (other + 0.05), text.data]);
  }
  return found.sort((a, b) => a[0] - b[0])[0];
})()"""


@in_browser
def test_a_phone_shows_the_detail_over_the_list(browser: Browser, tmp_path: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), width=390, height=844)
    assert browser.run("document.documentElement.scrollWidth") == 390
    browser.click("#rows-shown .row", 2)
    box = browser.run("at('detail').getBoundingClientRect().toJSON()")
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 390, 844)
    one, other = browser.run(BOXES)
    assert one["bottom"] <= other["top"]
    browser.click("#close")
    assert browser.run("at('detail').hidden")


@in_browser
def test_everything_interactive_has_a_name(browser: Browser, tmp_path: Path, recording: Path) -> None:
    opened(browser, write(tmp_path, SESSION, protocol="mcp"), "call-2")
    browser.press("f")
    tree = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "searchbox", "combobox", "checkbox", "treegrid", "columnheader", "separator", "img"}
    opened(browser, recording, "http-9")
    tree += browser.send("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node["ignored"] and node["role"]["value"] in roles and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    assert {"treegrid", "row", "gridcell", "status"} <= {node["role"]["value"] for node in tree if not node["ignored"]}
