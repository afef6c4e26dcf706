"""`verify` with real children: their ends, their framings, reports, and the cassette that --update makes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from ext_recorder.cassette.reader import Reader
from ext_sdk.core.wire.framing import FRAMINGS
from tests.support.host import PATIENCE_S
from tests.support.player_host import cassette
from tests.support.recorder_process import RECORDER, messages, python, run, wait_until_gone

if TYPE_CHECKING:
    from collections.abc import Mapping

# Answers every request by its params, as {"result": params}; tells how often it was asked; `die` ends it.
SERVER = python(
    "import json, os, sys\n"
    "for line in sys.stdin:\n"
    "    message = json.loads(line)\n"
    "    params = message.get('params')\n"
    "    if message['method'] == 'die': os._exit(params)\n"
    "    if message['method'] == 'hang':\n"
    "        import time; time.sleep(1000)\n"
    "    if message['method'] == 'env': params = os.environ.get(params)\n"
    "    if message['method'] == 'warn': print(params, file=sys.stderr, flush=True)\n"
    "    if 'id' in message:\n"
    "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': params}), flush=True)\n"
)
EVENTS = """
- {t: 0.1, in: '{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}'}
- {t: 0.2, out: '{"jsonrpc":"2.0","id":1,"result":[1]}'}
- {t: 0.3, eof: in}
- {t: 0.4, exit: 0}
"""


def verify(
    *words: str, child: list[str] = SERVER, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RECORDER, "verify", *words, "--", *child],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,  # some wait half a minute for what does not come
        check=False,
        cwd=cwd,
        env=os.environ | (env or {}),
    )


def asked(path: Path, method: str, params: str, *, answer: str = "", end: str = "- {t: 1, exit: 0}") -> Path:
    """A cassette of one call."""
    said = f"""- {{t: 0.2, out: '{{"jsonrpc":"2.0","id":1,"result":{answer}}}'}}""" if answer else ""
    request = f"""- {{t: 0.1, in: '{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}'}}"""
    lines = [request, said, "- {t: 0.3, eof: in}", end]
    return cassette(path, "\n".join(line for line in lines if line), protocol="jsonrpc", bindings={})


def test_a_child_that_answers_as_recorded_is_ok(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", EVENTS, protocol="jsonrpc")
    done = verify(str(path))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ok      {path}\n", "")


def test_a_child_that_answers_otherwise_makes_the_exit_code_1(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", EVENTS.replace('"result":[1]', '"result":[2]'), protocol="jsonrpc")
    done = verify("c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "differs c.yaml: 1 difference",
        "        c.yaml:8: the answer to a (id 1): /result/0",
        "          expected  2",
        "          found     1",
        "          around    [1]",
    ]
    assert path.read_text().count('"result":[2]') == 1


def test_the_exit_code_is_compared_and_last_words_are_told(tmp_path: Path) -> None:
    asked(tmp_path / "c.yaml", "die", "7", end="- {t: 1, exit: 0}")
    child = python("import os, sys\nsys.stdin.readline()\nprint('no disk', file=sys.stderr)\nsys.exit(7)")
    done = verify("c.yaml", cwd=tmp_path, child=child)
    assert done.returncode == 1
    assert "c.yaml: the exit\n          expected  0\n          found     7\n" in done.stdout
    assert "the end of its output on stderr:\n          no disk\n" in done.stdout


def test_the_exit_status_of_a_child_that_exits_early_is_reported(tmp_path: Path) -> None:
    asked(tmp_path / "c.yaml", "a", "1", answer="1")
    done = verify("c.yaml", cwd=tmp_path, child=python("import sys\nsys.stdin.readline()\nsys.exit(7)"))
    assert done.returncode == 1
    assert "the child has ended its output before" in done.stdout
    assert "the child exited before the end of the session: exit code 7" in done.stdout


def test_a_language_server_gets_the_process_id_of_this_client(tmp_path: Path) -> None:
    dead = 2**22 + 1  # above the highest process id
    request = f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"processId":{dead}}}}}'
    answer = '{"jsonrpc":"2.0","id":1,"result":"it runs"}'
    events = f"- {{t: 0.1, in: '{request}'}}\n- {{t: 0.2, out: '{answer}'}}\n- {{t: 0.3, eof: in}}\n- {{t: 1, exit: 0}}"
    cassette(tmp_path / "c.yaml", events, protocol="lsp", framing="ndjson", bindings={})
    child = python(
        "import json, os, sys\n"
        "os.kill(json.loads(sys.stdin.readline())['params']['processId'], 0)\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': 'it runs'}))\n"
    )
    assert verify("c.yaml", cwd=tmp_path, child=child).stdout == "ok      c.yaml\n"


@pytest.mark.parametrize("end", ["7", "SIGKILL"])
def test_a_child_that_dies_as_recorded_is_ok(tmp_path: Path, end: str) -> None:
    asked(tmp_path / "c.yaml", "x", "7", end=f"- {{t: 1, exit: {end}}}")
    ways = {"7": "os._exit(7)", "SIGKILL": "os.kill(os.getpid(), 9)"}
    done = verify("c.yaml", cwd=tmp_path, child=python(f"import os, sys\nsys.stdin.readline()\n{ways[end]}"))
    assert (done.returncode, done.stdout) == (0, "ok      c.yaml\n")


def test_a_signal_of_the_host_is_sent(tmp_path: Path) -> None:
    events = """
    - {t: 0.1, out: 'ready'}
    - {t: 0.2, signal: SIGUSR1}
    - {t: 0.3, out: 'got it'}
    - {t: 0.4, exit: SIGTERM}
    """
    cassette(
        tmp_path / "c.yaml", events.replace("- {t: 0.4", "- {t: 0.35, signal: SIGTERM}\n- {t: 0.4"), protocol="raw"
    )
    child = python(
        "import os, signal\n"
        "signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'got it\\n'))  # print cannot be interrupted by itself\n"
        "os.write(1, b'ready\\n')\n"
        "while True: signal.pause()"
    )
    done = verify("c.yaml", cwd=tmp_path, child=child)
    assert (done.returncode, done.stdout) == (0, "ok      c.yaml\n")


def test_a_child_that_hangs_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    asked(tmp_path / "c.yaml", "hang", "1", answer="1")
    pid = tmp_path / "pid"
    child = python(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if not os.fork():\n"
        "    os.setsid()\n"
        f"    open({str(pid)!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(1000)"
    )
    done = verify("--timeout", "8", "c.yaml", cwd=tmp_path, child=child)
    assert done.returncode == 1
    assert "the answer to hang (id 1): it did not come within 8.1 s (recorded after 0.100 s" in done.stdout
    wait_until_gone(int(pid.read_text()))


def test_a_child_that_does_not_end_is_told_and_stopped(tmp_path: Path) -> None:
    asked(tmp_path / "c.yaml", "a", "1", answer="1")
    child = python(
        "import sys, time\n"
        "sys.stdin.readline()\n"
        'print(\'{"id":1,"jsonrpc":"2.0","result":1}\', flush=True)\n'
        "time.sleep(1000)"
    )
    done = verify("--timeout", "8", "c.yaml", cwd=tmp_path, child=child)
    assert done.returncode == 1
    assert "found     none in time; the child was stopped" in done.stdout


def test_a_command_that_is_not_there_is_an_error_of_each_cassette(tmp_path: Path) -> None:
    asked(tmp_path / "c.yaml", "a", "1", answer="1")
    done = verify("c.yaml", cwd=tmp_path, child=["no-such-command"])
    assert done.returncode == 2
    assert done.stdout.startswith("error   c.yaml: command not found: 'no-such-command'")


def test_stderr_counts_when_it_is_asked_for(tmp_path: Path) -> None:
    path = asked(tmp_path / "c.yaml", "warn", '"mind"', answer='"mind"')
    path.write_text(path.read_text().replace("events:\n", "events:\n- {t: 0.05, err: 'never mind'}\n"))
    assert verify("c.yaml", cwd=tmp_path).returncode == 0
    done = verify("--stderr", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "a line of stderr\n          expected  never mind\n          found     mind\n" in done.stdout


@pytest.mark.parametrize("framing", ["content-length", "uint32"])
def test_every_framing_is_verified(tmp_path: Path, framing: str) -> None:
    program = (
        "import sys\n"
        "from ext_sdk.core.wire.framing import FRAMINGS\n"
        f"framing = FRAMINGS[{framing!r}]\n"
        "decoder = framing.decoder()\n"
        "while data := sys.stdin.buffer.raw.read(65536):\n"
        "    decoder.receive_data(data)\n"
        "    while frame := decoder.next_event():\n"
        '        sys.stdout.buffer.write(framing.encode(frame.payload.replace(b\'"method":"a"\', b\'"result":1\')))\n'
        "        sys.stdout.buffer.flush()\n"
    )
    child = [sys.executable, "-c", program]
    message = b'{"jsonrpc":"2.0","id":1,"method":"a"}'
    frame = FRAMINGS[framing].encode(message)
    path = tmp_path / "c.yaml"
    run(path, child, "--protocol", "jsonrpc", "--framing", framing, stdin=frame * 2)
    done = verify("c.yaml", cwd=tmp_path, child=child)
    assert (done.returncode, done.stdout) == (0, "ok      c.yaml\n")
    path.write_text(path.read_text().replace('"id":1,"result":1', '"id":1,"result":2', 1))
    assert verify("c.yaml", cwd=tmp_path, child=child).returncode == 1


def test_the_working_directory_is_made_for_the_run_and_gone_afterwards(tmp_path: Path) -> None:
    execute = '{"jsonrpc":"2.0","id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"}}}'
    answer = '{"jsonrpc":"2.0","id":1,"result":{"context":{"workdir":"/tmp/workdir"}}}'
    cassette(tmp_path / "c.yaml", f"- {{t: 0, in: '{execute}'}}\n- {{t: 1, out: '{answer}'}}")
    child = python(
        "import json, os, sys\n"
        "message = json.loads(sys.stdin.readline())\n"
        "workdir = message['params']['context']['workdir']\n"
        "assert os.listdir(workdir) == []\n"
        f"open({str(tmp_path / 'seen')!r}, 'w').write(workdir)\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': message['params']}))"
    )
    assert verify("c.yaml", cwd=tmp_path, child=child).stdout == "ok      c.yaml\n"
    workdir = (tmp_path / "seen").read_text()
    assert workdir.endswith("/workdir")
    assert workdir != "/tmp/workdir"
    assert not os.path.exists(workdir)  # noqa: PTH110


def test_the_working_directory_may_have_files_in_it_which_stay_as_they_are(tmp_path: Path) -> None:
    execute = '{"jsonrpc":"2.0","id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"}}}'
    said = """- {t: 1, out: '{"jsonrpc":"2.0","id":1,"result":["a.txt"]}'}"""
    cassette(tmp_path / "c.yaml", f"- {{t: 0, in: '{execute}'}}\n{said}\n- {{t: 2, exit: 0}}")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a")
    child = python(
        "import json, os, sys\n"
        "os.chdir(json.loads(sys.stdin.readline())['params']['context']['workdir'])\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': os.listdir('.')}))\n"
        "os.remove('a.txt')"
    )
    assert verify("--files", "files", "c.yaml", cwd=tmp_path, child=child).stdout == "ok      c.yaml\n"
    assert verify("c.yaml", cwd=tmp_path, child=child).returncode == 1
    assert (tmp_path / "files" / "a.txt").read_text() == "a"


LSP_EVENTS = """
- {t: 0, in: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file:///tmp/root","workspaceFolders":[{"uri":"file:///tmp/root"}]}}'}
- {t: 1, out: '{"jsonrpc":"2.0","id":1,"result":["/tmp/root","a.txt"]}'}
- {t: 2, exit: 0}
"""
LSP_CHILD = python(
    "import json, os, sys\n"
    "root = json.loads(sys.stdin.readline())['params']['rootUri'].removeprefix('file://')\n"
    "print(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': [root, *os.listdir(root)]}))\n"
)


def test_the_root_of_a_language_server_is_a_folder_with_the_files(tmp_path: Path) -> None:
    neutral = {"root": "/tmp/root", "folder": "/tmp/folder"}
    cassette(tmp_path / "c.yaml", LSP_EVENTS, protocol="lsp", framing="ndjson", bindings=neutral)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").touch()

    assert verify("--files", "files", "c.yaml", cwd=tmp_path, child=LSP_CHILD).stdout == "ok      c.yaml\n"
    assert verify(f"--bind=root={tmp_path}/files", "c.yaml", cwd=tmp_path, child=LSP_CHILD).returncode == 0
    without = verify("c.yaml", cwd=tmp_path, child=LSP_CHILD)
    assert without.returncode == 1
    assert (
        "root was a new, empty folder; --files FOLDER copies files into it, --bind root=… names another"
        in without.stdout
    )


@pytest.mark.parametrize("folder", ["files", "files/a.txt"])
def test_bindings_of_one_folder_or_in_each_other_are_no_difference(tmp_path: Path, folder: str) -> None:
    neutral = {"root": "/tmp/root", "folder": "/tmp/folder"}
    cassette(tmp_path / "c.yaml", LSP_EVENTS, protocol="lsp", framing="ndjson", bindings=neutral)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").touch()
    given = [f"--bind=root={tmp_path}/files", f"--bind=folder={tmp_path}/{folder}"]

    assert verify(*given, "c.yaml", cwd=tmp_path, child=LSP_CHILD).stdout == "ok      c.yaml\n"


def test_with_http_the_real_extension_runs_without_its_server(tmp_path: Path) -> None:
    folder = Path(__file__).parents[4] / "cassettes" / "http"
    for name in ("offline.yaml", "offline.http.yaml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    child = [sys.executable, "-m", "ext_http"]
    done = verify("--http", "offline.yaml", cwd=tmp_path, child=child)
    assert done.returncode == 0, done.stdout
    address = f"file://{tmp_path}/offline.yaml"
    done = verify("--http", address, child=child)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(f"ok      {address}\n")
    answers = tmp_path / "offline.http.yaml"
    answers.write_text(answers.read_text().replace("method: GET", "method: PUT"))
    done = verify("--http", "--timeout", "30", "offline.yaml", cwd=tmp_path, child=child)
    assert done.returncode == 1, done.stdout
    no_python = ["sh", "-c", "read line"]
    done = verify("--http", "offline.yaml", cwd=tmp_path, child=no_python)
    assert done.returncode == 2
    assert "has not loaded the HTTP layer" in done.stdout


def test_with_http_rules_apply_to_requests_too(tmp_path: Path) -> None:
    child = [sys.executable, "-c", ASKING.replace("SERVER", "http://127.0.0.1:9")]
    (tmp_path / "c.yaml").write_text(
        "cassette: 1\nprotocol: jsonrpc\nframing: ndjson\ncommand: [x]\nevents:\n"
        '- {t: 0, in: \'{"jsonrpc":"2.0","id":1,"method":"get"}\'}\n'
        '- {t: 0, out: \'{"jsonrpc":"2.0","id":1,"result":"found"}\'}\n'
        "- {t: 0, eof: in}\n- {t: 0, exit: 0}\nredacted: []\n"
    )
    (tmp_path / "c.http.yaml").write_text(
        "interactions:\n- request: {method: GET, uri: 'http://127.0.0.1:9/?nonce=1', body: null, headers: {}}\n"
        "  response: {status: {code: 200, message: OK}, headers: {}, body: {string: found}}\nversion: 1\n"
    )
    assert verify("--http", "c.yaml", cwd=tmp_path, child=child).returncode == 1
    done = verify("--http", "--ignore", "GET /query/nonce", "c.yaml", cwd=tmp_path, child=child)
    assert (done.returncode, done.stdout) == (0, "ok      c.yaml\n"), done.stdout + done.stderr


ASKING = """
import json, sys, urllib.request, uuid
for line in sys.stdin:
    found = urllib.request.urlopen(f"SERVER/?nonce={uuid.uuid4()}").read().decode()
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": found}), flush=True)
"""


# --- Several ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "all").mkdir()
    asked(tmp_path / "all/a.yaml", "a", "1", answer="1")
    asked(tmp_path / "all/b.yaml", "b", "1", answer="2")
    (tmp_path / "all/c.yaml").write_text("cassette: 99\n")
    asked(tmp_path / "all/d.yaml", "d", "1", answer="1")
    return tmp_path


def test_a_folder_is_verified_in_the_order_of_its_names(folder: Path) -> None:
    done = verify("all", cwd=folder)
    assert done.returncode == 2
    heads = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert heads[:2] == ["ok      all/a.yaml", "differs all/b.yaml: 1 difference"]
    assert heads[2].startswith("error   all/c.yaml:1: expected format version 1, found 99")
    assert heads[3:] == ["ok      all/d.yaml", "4 cassettes: 2 ok, 1 differing, 1 broken"]


def test_a_part_of_them_is_verified_by_each_of_several_machines(folder: Path) -> None:
    parts = [verify("--shard", f"{number}/2", "all", cwd=folder).stdout for number in (1, 2)]
    assert ["all/a.yaml" in part for part in parts] == [True, False]
    assert ["all/b.yaml" in part for part in parts] == [False, True]
    empty = verify("--shard", "9/9", "all", cwd=folder)
    assert (empty.returncode, empty.stdout) == (0, "no cassettes in this part\n")


def test_reports_say_it_as_json_and_as_junit(folder: Path) -> None:
    done = verify("--json", "--junit", "reports/out.xml", "all", cwd=folder)
    a, b, c, _ = (json.loads(line) for line in done.stdout.splitlines())
    assert (a["cassette"], a["ok"]) == ("all/a.yaml", True)
    (problem,) = b["problems"]
    assert {key: problem[key] for key in ("kind", "line", "pointer", "expected", "found")} == {
        "kind": "differs", "line": 7, "pointer": "/result", "expected": 2, "found": 1,
    }  # fmt: skip
    assert "expected format version 1" in c["error"]
    suites = ET.parse(folder / "reports" / "out.xml").getroot()
    assert {key: suites.get(key) for key in ("name", "tests", "failures", "errors")} == {
        "name": "ext-recorder verify", "tests": "4", "failures": "1", "errors": "1",
    }  # fmt: skip
    cases = {case.get("name"): case for case in suites.iter("testcase")}
    assert [child.tag for child in cases["b.yaml"]] == ["failure"]
    assert [child.tag for child in cases["c.yaml"]] == ["error"]
    assert "expected  2" in (cases["b.yaml"][0].text or "")


def test_a_report_holds_no_control_character_and_no_secret(tmp_path: Path) -> None:
    asked(tmp_path / "c.yaml", "env", '"API_TOKEN"', answer='"\\u001b[31m"')
    done = verify("--junit", "out.xml", "c.yaml", cwd=tmp_path, env={"API_TOKEN": "hunter22secret"})
    assert done.returncode == 1
    report = (tmp_path / "out.xml").read_text()
    ET.fromstring(report)
    for text in (done.stdout, report):
        assert "hunter22secret" not in text
        assert "[redacted:env.API_TOKEN#1]" in text
        assert "\x1b" not in text


# --- Update -----------------------------------------------------------------------------------------------------------


def test_what_differs_is_accepted_by_update(tmp_path: Path) -> None:
    path = asked(tmp_path / "c.yaml", "a", "[1]", answer="[2]")
    done = verify("--update", "c.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ok      c.yaml\n        updated: 1 difference accepted\n")
    assert messages(path, "out") == [b'{"jsonrpc": "2.0", "id": 1, "result": [1]}']
    assert messages(path, "in") == [b'{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}']
    assert verify("c.yaml", cwd=tmp_path).returncode == 0
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_a_cassette_in_which_nothing_differs_stays_as_it_is(tmp_path: Path) -> None:
    path = asked(tmp_path / "c.yaml", "a", "[1]", answer="[1]")
    before = path.read_bytes()
    done = verify("--update", "c.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ok      c.yaml\n        not updated: nothing differs\n")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_half_a_session_is_never_accepted(tmp_path: Path) -> None:
    path = asked(tmp_path / "c.yaml", "die", "3", answer="1")
    before = path.read_bytes()
    done = verify("--update", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "not updated: the session did not get to its end" in done.stdout
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_an_updated_cassette_has_no_secrets_and_no_paths_of_this_machine(tmp_path: Path) -> None:
    params = '{"context":{"workdir":"/tmp/workdir"},"t":"[redacted:env.API_TOKEN#1]"}'
    execute = f'{{"jsonrpc":"2.0","id":1,"method":"execute","params":{params}}}'
    cassette(
        tmp_path / "c.yaml",
        f"- {{t: 0, in: '{execute}'}}\n- {{t: 1, out: '{{\"id\":1,\"result\":0}}'}}\n- {{t: 2, exit: 0}}",
    )
    done = verify("--update", "c.yaml", cwd=tmp_path, env={"API_TOKEN": "hunter22secret"})
    assert "accepted" in done.stdout
    text = (tmp_path / "c.yaml").read_text()
    assert text.count('{"context": {"workdir": "/tmp/workdir"}, "t": "[redacted:env.API_TOKEN#1]"}') == 1
    assert "hunter22secret" not in text
    with Reader(tmp_path / "c.yaml") as reader:
        list(reader)
        assert reader.redacted == ("env.API_TOKEN",)
        assert reader.header.bindings["workdir"] == "/tmp/workdir"


WAZA = {"home": "/home/user", "eval": "/tmp/eval", "context": "/tmp/context", "evals": "/tmp/evals"}


def waza(path: Path) -> Path:
    """A session of waza's in which one folder has a name, and the server has said something else."""
    get = '{"jsonrpc":"2.0","id":1,"method":"eval.get","params":{"path":"/tmp/evals/a/eval.yaml"}}'
    answer = '{"jsonrpc":"2.0","id":1,"result":0}'
    events = f"- {{t: 0, in: '{get}'}}\n- {{t: 1, out: '{answer}'}}\n- {{t: 2, eof: in}}\n- {{t: 3, exit: 0}}"
    return cassette(path, events, protocol="waza", bindings=WAZA)


@pytest.mark.parametrize("given", [[], ["--bind=evals=/srv/my/evals"]])
def test_an_updated_cassette_keeps_its_bindings_and_what_they_stand_for(tmp_path: Path, given: list[str]) -> None:
    path = waza(tmp_path / "c.yaml")
    asked = messages(path, "in")
    done = verify("--update", *given, "c.yaml", cwd=tmp_path, env={"HOME": "/home/somebody"})
    assert "updated: 1 difference accepted" in done.stdout
    with Reader(path) as reader:
        assert reader.header.bindings == WAZA
    assert messages(path, "in") == asked
    assert messages(path, "out") == [b'{"jsonrpc": "2.0", "id": 1, "result": {"path": "/tmp/evals/a/eval.yaml"}}']


def test_the_second_value_of_a_binding_has_a_name_too(tmp_path: Path) -> None:
    path = waza(tmp_path / "c.yaml")
    path.write_text(path.read_text().replace("/tmp/evals/a/", "/tmp/evals-2/"))
    asked = messages(path, "in")
    assert "live values: --bind evals-2=…\n" in verify("c.yaml", cwd=tmp_path).stdout
    verify("--update", "--bind=evals-2=/srv/my/evals", "c.yaml", cwd=tmp_path)
    assert messages(path, "in") == asked
    assert messages(path, "out") == [b'{"jsonrpc": "2.0", "id": 1, "result": {"path": "/tmp/evals-2/eval.yaml"}}']
    refused = verify("--bind=eval-x=/srv/my/evals", "c.yaml", cwd=tmp_path)
    assert "the cassette has no such binding; it has: home, eval, context, evals" in refused.stdout + refused.stderr


def test_only_bindings_that_were_sent_are_asked_for(tmp_path: Path) -> None:
    waza(tmp_path / "c.yaml")
    assert "live values: --bind evals=…\n" in verify("c.yaml", cwd=tmp_path).stdout
    assert "--bind" not in verify("--bind=evals=/srv/my/evals", "c.yaml", cwd=tmp_path).stdout


WRONG = [
    (["c.yaml"], [], "expected the command to verify after `--`"),
    (["--timeout", "soon", "c.yaml"], ["x"], "--timeout soon: expected a number of seconds"),
    (["--ignore", "result", "c.yaml"], ["x"], "'result' is not a JSON pointer"),
    (["--mask", "(", "c.yaml"], ["x"], "--mask (: not a regular expression"),
    (["--shard", "3/2", "c.yaml"], ["x"], "expected NUMBER/COUNT"),
    (["--jobs", "many", "c.yaml"], ["x"], "--jobs many: expected a number"),
    (["--files", "nowhere", "c.yaml"], ["x"], "--files nowhere: expected a folder"),
    (["*.yaml"], ["x"], "no cassette; expected"),
    (["--update", "memory://c.yaml"], ["x"], "is read-only"),
]


@pytest.mark.parametrize(("words", "child", "says"), WRONG)
def test_a_wrong_command_line_is_told_in_one_line(
    words: list[str], child: list[str], says: str, tmp_path: Path
) -> None:
    done = verify(*words, child=child, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_verification_that_is_ended_leaves_nothing_behind(tmp_path: Path, count: int, name: str) -> None:
    execute = '{"jsonrpc":"2.0","id":1,"method":"execute","params":{"context":{"workdir":"/tmp/workdir"}}}'
    said = """- {t: 1, out: '{"jsonrpc":"2.0","id":1,"result":0}'}"""
    for number in range(count):
        cassette(tmp_path / f"{number}.yaml", f"- {{t: 0, in: '{execute}'}}\n{said}\n- {{t: 2, exit: 0}}")
    child = python(
        "import json, os, sys, time\n"
        "workdir = json.loads(sys.stdin.readline())['params']['context']['workdir']\n"
        f"name = {str(tmp_path)!r} + '/pid-' + str(os.getpid())\n"
        "open(name + '.new', 'w').write(workdir)\n"
        "os.rename(name + '.new', name)\n"
        "time.sleep(1000)"
    )
    cassettes = [f"{number}.yaml" for number in range(count)]
    command = [*RECORDER, "verify", "--update", "--jobs", str(count), "--timeout", "600", *cassettes, "--", *child]
    verifying = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while len(told := [path for path in tmp_path.glob("pid-*") if not path.suffix]) < count:
        assert verifying.poll() is None
        select.select([], [], [], 0.01)
    verifying.send_signal(signal.Signals[name])
    out, _ = verifying.communicate(timeout=PATIENCE_S)
    assert (verifying.returncode, out) == (128 + signal.Signals[name], b"")
    for path in told:
        wait_until_gone(int(path.name.removeprefix("pid-")))
        assert not os.path.exists(path.read_text())  # noqa: PTH110
    assert sorted(path.name for path in tmp_path.iterdir() if path not in told) == cassettes
