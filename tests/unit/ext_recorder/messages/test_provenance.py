"""Which command a cassette was recorded from: another one is not replayed, the same one on another machine is."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.header import Header, encode_header
from ext_recorder.cassette.reader import Reader, read_header
from ext_recorder.errors import UsageError
from ext_recorder.messages.provenance import Live, check, first_difference, headline, neutral_command
from tests.support.host import PATIENCE_S
from tests.support.player_host import END, cassette
from tests.support.recorder_process import ECHO, RECORDER, after_headline, python, run

if TYPE_CHECKING:
    from pathlib import Path

LINE = b'{"jsonrpc":"2.0","id":1,"method":"a"}\n'
ARGUMENTS = python("import sys; print(sys.argv[1:])")


def header(*command: str, **values: str) -> Header:
    return Header("raw", "ndjson", command=command, bindings={"data": "/tmp/data"}, environment=values)


def is_refused(recorded: Header, *command: str, passed: int = -1, match_env: tuple[str, ...] = ()) -> bool:
    live = Live(command, passed=passed, match_env=match_env, bind={"data": "/srv/data"})
    try:
        check("c.yaml", recorded, live)
    except UsageError:
        return True
    return False


SAME = [
    (("cat",), ("/usr/bin/cat",)),
    (("./server",), ("/srv/app/server",)),
    (("python", "a.py"), ("/a/.venv/bin/python", "a.py")),
    (("python3.11", "a.py"), ("python3", "a.py")),
    (("node", "build/index.js"), ("node", "/builds/project/build/index.js")),
    (("node", "/home/ada/build/index.js"), ("node", "build/index.js")),
    (("x", "--config=c/d.json"), ("x", "--config=/etc/c/d.json")),
    (("x", "/tmp/data/f"), ("x", "/srv/data/f")),
    (("x", "--token", "[redacted:key.token#1]"), ("x", "--token", "another secret")),
    (("x", "-p[redacted:a#1]:[redacted:b#2]@host"), ("x", "-pone:two@host")),
    (("x", "a\ufffdb"), ("x", "a\nb")),
    (("http://127.0.0.1:8080/mcp",), ("http://127.0.0.1:9090/mcp",)),
]
OTHER = [
    (("cat",), ("tac",)),
    (("python", "a.py"), ("node", "a.py")),
    (("git", "credential-store", "get"), ("git", "credential-store", "store")),
    (("x", "get"), ("x", "get", "more")),
    (("x",), ("x", "")),
    (("x", "/etc/a/f"), ("x", "/etc/b/f")),
    (("x", "a/f"), ("x", "b/f")),
    (("x", "f"), ("x", "/etc/af")),
    (("x", "../f"), ("x", "/etc/f")),
    (("x", "--token=[redacted:key.token#1]"), ("x", "--user=ada")),
    (("x", "-p[redacted:a#1]:[redacted:b#2]@host"), ("x", "-pone@host")),
    (("python2", "a.py"), ("python-config", "a.py")),
    (("https://a.example/mcp",), ("https://b.example/mcp",)),
    (("https://a.example/mcp",), ("http://a.example/mcp",)),
    (("https://a.example:8443/mcp",), ("https://a.example/mcp",)),
    (("http://127.0.0.1:8080/mcp",), ("http://127.0.0.1:8080/other",)),
]


@pytest.mark.parametrize(("recorded", "live"), SAME)
def test_the_same_command_on_another_machine_is_accepted(recorded: tuple[str, ...], live: tuple[str, ...]) -> None:
    assert not is_refused(header(*recorded), *live)


@pytest.mark.parametrize(("recorded", "live"), OTHER)
def test_another_command_is_refused(recorded: tuple[str, ...], live: tuple[str, ...]) -> None:
    assert is_refused(header(*recorded), *live)


def test_without_a_command_on_either_side_there_is_nothing_to_compare() -> None:
    assert not is_refused(header(), "x", "get")
    assert not is_refused(header("x", "get"))


PASSED = [((), False), (("get",), False), (("-f", "get"), False), (("list",), True), (("x", "-f", "get"), True)]


@pytest.mark.parametrize(("passed", "refused"), PASSED)
def test_of_a_shim_without_a_command_what_the_host_passes_is_compared(passed: tuple[str, ...], refused: bool) -> None:
    assert is_refused(header("x", "-f", "get"), *passed, passed=len(passed)) == refused


@given(st.lists(st.text(max_size=20).filter(lambda word: "\0" not in word), min_size=1, max_size=5))
def test_a_command_is_the_one_that_its_header_was_made_of(command: list[str]) -> None:
    words = neutral_command(["program", *command], lambda data: data)
    found = read_header("c.yaml", io.BufferedReader(io.BytesIO(encode_header(header(*words)))))
    assert found is not None
    assert not is_refused(found[0], "/usr/bin/program", *command)


def test_arguments_below_the_working_directory_are_relative_in_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["/usr/bin/x", f"{tmp_path}/a.py", f"--config={tmp_path}/b/c.json", str(tmp_path), f"{tmp_path}else"]
    words = neutral_command(command, lambda data: data)
    assert words == ("x", "a.py", "--config=b/c.json", ".", f"{tmp_path}else")


# --- Variables --------------------------------------------------------------------------------------------------------


def test_variables_that_are_named_have_to_have_their_recorded_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "a")
    assert not is_refused(header("x", PLACE="a"), "x")
    assert not is_refused(header("x", PLACE="a"), "x", match_env=("PLACE",))
    assert not is_refused(header("x", PLACE="[redacted:env.PLACE#1]"), "x")
    assert is_refused(header("x", PLACE="b"), "x")
    assert is_refused(header("x"), "x", match_env=("PLACE",))
    monkeypatch.delenv("PLACE")
    assert is_refused(header("x", PLACE="a"), "x")
    assert not is_refused(header("x", PLACE=""), "x")


def test_a_variable_is_kept_and_compared_and_a_secret_one_is_redacted(tmp_path: Path) -> None:
    path = tmp_path / "session.yaml"
    variables = {"PLACE": "berlin", "THE_TOKEN": "hunter2-hunter2"}
    options = ["--match-env=PLACE", "--match-env", "THE_TOKEN"]
    first = run(path, ECHO, *options, stdin=LINE, env=variables)
    assert b"hunter2" not in path.read_bytes()
    with Reader(path) as reader:
        assert reader.header.environment == {"PLACE": "berlin", "THE_TOKEN": "[redacted:env.THE_TOKEN#1]"}
    assert run(path, ECHO, stdin=LINE, env={**variables, "THE_TOKEN": "another-secret"}).out == first.out
    other = run(path, ECHO, stdin=LINE, env={**variables, "PLACE": "paris"})
    assert (other.code, other.out) == (2, b"")
    assert b"recorded with PLACE=berlin, now PLACE=paris; give each command" in other.err
    unknown = run(path, ECHO, "--match-env=HOME", stdin=LINE, env=variables)
    assert (unknown.code, b"recorded without --match-env HOME" in unknown.err) == (2, True)


# --- The process ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["once", "new_episodes"])
def test_the_cassette_of_another_command_is_refused_with_both_and_the_remedies(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "session.yaml"
    run(path, [*ARGUMENTS, "get"])
    before = path.read_bytes()
    other = run(path, [*ARGUMENTS, "list", "--password", "hunter2x"], f"--mode={mode}")
    assert (other.code, other.out) == (2, b"")
    said = other.err.decode()
    assert said.startswith(f"ext-recorder: {path}: recorded from another command: python -S -E -c ")
    assert " get; this command is: python -S -E -c " in said
    for remedy in ("--mode all", "--mode none", "--accept-command"):
        assert remedy in said
    assert "hunter2x" not in said
    assert (said.count("\n"), path.read_bytes()) == (1, before)


def test_it_is_replayed_where_that_is_meant(tmp_path: Path) -> None:
    path = tmp_path / "session.yaml"
    run(path, [*ARGUMENTS, "get"])
    other = [*ARGUMENTS, "list"]
    for options in (["--mode=none"], ["--accept-command"], ["--accept-command", "--mode=new_episodes"]):
        accepted = run(path, other, *options)
        assert (accepted.code, accepted.out, after_headline(accepted.err)) == (0, b"['get']\n", b"")
    again = run(path, other, "--mode=all")
    assert (again.code, again.out) == (0, b"['list']\n")


def test_replay_checks_a_command_that_it_is_given_and_starts_none(tmp_path: Path) -> None:
    path = tmp_path / "session.yaml"
    run(path, [*ARGUMENTS, "get"])

    def replay(*words: str) -> subprocess.CompletedProcess[bytes]:
        command = [*RECORDER, "replay", str(path), *words]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)

    assert replay().stdout == b"['get']\n"
    assert replay("--", "/no/such/python", *ARGUMENTS[1:], "get").stdout == b"['get']\n"
    assert (replay("--", *ARGUMENTS, "list").returncode, replay("--", *ARGUMENTS, "list").stdout) == (2, b"")


def test_a_session_with_http_traffic_is_checked_as_well(tmp_path: Path) -> None:
    path = tmp_path / "session.yaml"
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
    assert run(path, [*command, "get"], "--http").code == 0
    other = run(path, [*command, "list"], "--http")
    assert (other.code, b"recorded from another command" in other.err) == (2, True)
    same = run(path, [*command, "get"], "--http")
    assert (same.code, same.out) == (0, b"['get']\n")
    assert b"session.http.yaml, recorded 20" in same.err


# --- The line about a replay ------------------------------------------------------------------------------------------


def test_the_headline_says_when_and_from_what() -> None:
    made = Header("raw", "ndjson", command=("ext-shell", "a b", "\x1b[2J"), recorded="2026-11-20T10:00:00Z")
    assert headline("c.yaml", made) == "replaying c.yaml, recorded 2026-11-20T10:00:00Z from ext-shell 'a b' '\\x1b[2J'"
    made.recorded = ""
    assert headline("c.yaml", made).startswith("replaying c.yaml, recorded from ext-shell")
    assert headline("c.yaml", Header("raw", "ndjson")) == "replaying c.yaml"
    made.command = ("x" * 1000,)
    assert len(headline("c.yaml", made)) < 100


def test_it_comes_before_all_that_the_recorded_child_wrote(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", "- {t: 0.1, err: 'first'}\n- {t: 0.2, out: 'second'}\n" + END, protocol="raw")
    done = subprocess.run(
        [*RECORDER, "replay", str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout == b"ext-recorder: replaying %b\nfirst\nsecond\n" % os.fsencode(path)


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (("python3.12", "-m", "x", "./task.yaml", "-v"), ("nothing", "-v")),
        (("python", "-m", "x", "other.yaml"), ("task.yaml", "other.yaml")),
        (("python", "-m", "x"), ("task.yaml", "nothing")),
        (("ruby", "-m", "x", "task.yaml"), ("python3", "ruby")),
    ],
)
def test_the_first_difference_of_two_commands_is_named(live: tuple[str, ...], expected: tuple[str, str]) -> None:
    assert first_difference(("python3", "-m", "x", "task.yaml"), live) == expected
