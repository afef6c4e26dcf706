"""The HTML page of a cassette: what is in it, and what it does in a browser."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ext_recorder.view.page import page
from tests.ext_recorder.recorded import PATIENCE_S, RECORDER

ROOT = Path(__file__).parents[2]
TASK = ROOT / "cassettes" / "shell" / "eval-task.yaml"
HEAD = "cassette: 1\nprotocol: jsonrpc\nframing: {framing}\ncommand: [my-server, '--name=it''s']\nevents:\n"
END = "- {t: 9.000000, exit: 1}\nredacted: []\n"
CALL = """\
- {t: 0.500000, in: '{"jsonrpc":"2.0","id":1,"method":"add","params":[1.0,12345678901234567890123]}'}
- {t: 0.750000, out: '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"<b>no</b></script><script>alert(1)"}}'}
- {t: 1.000000, err: 'a line & more'}
"""


def write(folder: Path, events: str = CALL, framing: str = "ndjson") -> str:
    path = folder / "session.yaml"
    path.write_text(HEAD.format(framing=framing) + events + END)
    return str(path)


def events_of(text: str) -> list[list[object]]:
    found = re.search(r'<script id="events" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    events: list[list[object]] = json.loads(found[1])
    return events


def test_the_page_has_all_events_with_durations_and_commands(tmp_path: Path) -> None:
    request, error, line, end = events_of(page(write(tmp_path), {}))
    assert request[:4] == [0.5, "request", "in", "add #1"]
    assert "12345678901234567890123" in str(request[4])
    assert request[7] == f"printf '%s\\n' '{request[4]}' | my-server '--name=it'\"'\"'s'"
    assert (error[1], error[5], error[7]) == ("error", 0.25, "")
    assert (line[1], line[4]) == ("stderr", "a line & more")
    assert end[1:4] == ["exit", "", "exit 1"]


def test_a_command_runs_in_a_shell_and_says_the_request(tmp_path: Path) -> None:
    for framing, sent in (("ndjson", "{}\n"), ("content-length", "Content-Length: {size}\r\n\r\n{}")):
        request = events_of(page(write(tmp_path, framing=framing), {}))[0]
        command = str(request[7]).rpartition(" | ")[0]
        said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=False, check=True).stdout.decode()
        assert said == sent.replace("{size}", str(len(str(request[4])))).replace("{}", str(request[4]))


def test_nothing_in_a_message_is_taken_for_html(tmp_path: Path) -> None:
    text = page(write(tmp_path), {})
    assert text.count("<script") == 2
    assert "<b>no" not in text


def test_the_page_is_allowed_to_run_its_own_script_and_nothing_else(tmp_path: Path) -> None:
    text = page(write(tmp_path), {})
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert policy[1].startswith("default-src 'none'")
    for kind, pattern in (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>")):
        part = re.search(pattern, text, re.DOTALL)
        assert part
        digest = base64.b64encode(hashlib.sha256(part[1].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_secrets_of_this_environment_stay_out_of_it(tmp_path: Path) -> None:
    assert "hunter2!" not in page(write(tmp_path, CALL.replace("a line", "hunter2!")), {"MY_TOKEN": "hunter2!"})


def test_the_same_cassette_makes_the_same_page() -> None:
    assert page(str(TASK), {}) == page(str(TASK), {})


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


def test_a_cassette_that_can_t_be_read_makes_no_page(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("cassette: 1\nevents:\n- {t: 0, in: 'x\n")
    done = view("broken.yaml", cwd=tmp_path)
    assert (done.returncode, b"broken.yaml" in done.stderr) == (2, True)
    assert not (tmp_path / "broken.html").exists()


# --- In a browser -----------------------------------------------------------------------------------------------------

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
in_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium: install Debian's package chromium")


def shown(folder: Path, cassette: str, state: str = "") -> str:
    """The page as the browser has it after its script has run."""
    path = folder / "page.html"
    path.write_text(page(cassette, {}), encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        f"--user-data-dir={folder / 'profile'}", "--window-size=1200,800", "--virtual-time-budget=3000", "--dump-dom",
        f"file://{path}#{state}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S * 2, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text: str) -> list[str]:
    listed = re.search(r'<ol id="rows".*?</ol>', text, re.DOTALL)
    assert listed
    return [html.unescape(re.sub("<[^>]*>", " ", each)) for each in re.findall(r"<li.*?</li>", listed[0], re.DOTALL)]


@in_browser
def test_a_browser_shows_every_event_in_its_lane(tmp_path: Path) -> None:
    text = shown(tmp_path, write(tmp_path))
    assert ">4 events<" in text
    found = rows(text)
    assert len(found) == 4
    assert "add #1" in found[0]
    assert "250 ms" in found[1]
    assert re.search(r'<li class="out wrong"', text)
    assert re.search(r"<rect[^>]*class=\"wrong\"", text)


@in_browser
def test_a_browser_searches_and_filters(tmp_path: Path) -> None:
    text = shown(tmp_path, write(tmp_path), "q=MORE+line")
    assert ("1 of 4 events" in text, len(rows(text))) == (True, 1)
    text = shown(tmp_path, write(tmp_path), "show=wrong")
    assert "2 of 4 events" in text


@in_browser
def test_a_browser_shows_a_message_as_indented_json_as_it_was_spelled(tmp_path: Path) -> None:
    text = shown(tmp_path, write(tmp_path), "event=1")
    detail = re.search(r'<pre id="text".*?</pre>', text, re.DOTALL)
    assert detail
    plain = html.unescape(re.sub("<[^>]*>", "", detail[0]))
    assert '\n  "params": [\n    1.0,\n    12345678901234567890123\n  ]\n' in plain
    command = re.search(r'<button id="command"[^>]*>', text)
    assert command
    assert "hidden" not in command[0]
    assert "| my-server" in html.unescape(command[0])


@in_browser
def test_a_browser_runs_nothing_that_a_message_says(tmp_path: Path) -> None:
    evil = CALL.replace("alert(1)", "document.title=1").replace("<b>no", "<img src=x onerror=document.title=2>")
    text = shown(tmp_path, write(tmp_path, evil), "event=2")
    assert "<title>session.yaml</title>" in text
    assert "<img" not in text


@in_browser
def test_a_browser_draws_only_what_is_to_be_seen_of_a_long_session(tmp_path: Path) -> None:
    many = "".join(f"- {{t: {n}.0, err: 'line {n}'}}\n" for n in range(20_000)).replace("9.000000", "30000.0")
    text = shown(tmp_path, write(tmp_path, many))
    assert "20001 events" in text
    assert 10 < len(rows(text)) < 100
