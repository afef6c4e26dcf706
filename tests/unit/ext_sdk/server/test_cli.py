"""An extension for people: real processes, their output and exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ext_sdk.core.stdio import EXIT_NO_READER
from tests.support.host import PATIENCE_S, PROBE, ExtensionHost, execute


def probe(*arguments: str, env: dict[str, str] | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        [*PROBE, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | (env or {}),
        check=False,
    )
    assert "Traceback" not in ran.stdout
    return ran


def call(operation: str, args: object = None, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    return probe("call", operation, *([] if args is None else [json.dumps(args)]), *options, env=env)


# --- What it says about itself ---


def test_help_tells_what_it_is_for_and_what_it_can_do() -> None:
    ran = probe("--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("usage: ext-probe ")
    assert "For tests. An eval host starts this program without arguments" in ran.stdout
    assert "  echo               Give the text back.\n" in ran.stdout
    assert """  ext-probe call echo '{"text":"hi"}'\n""" in ran.stdout


def test_its_version_and_its_manifest_are_told() -> None:
    assert probe("--version").stdout == "ext-probe 1.2.3\n"
    with ExtensionHost() as peer:
        assert json.loads(probe("--manifest").stdout) == peer.initialize()["result"]


def test_on_a_terminal_without_input_it_explains_itself() -> None:
    terminal, end = pty.openpty()
    with subprocess.Popen(PROBE, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    os.close(terminal)
    os.close(end)
    assert process.returncode == 0
    assert out.startswith("usage: ext-probe ")
    assert err == ""


def test_an_operation_is_explained() -> None:
    ran = call("circumstances", None, "--describe")
    assert ran.stdout == (
        "circumstances: Tell what the operation was given.\n"
        "\n"
        "effects: may change or delete what exists\n"
        "\n"
        "arguments:\n"
        '  text (string, default "")\n'
        "  timeout (string)\n"
        "  as (string)\n"
        "      Keep outputs for later steps: ${NAME.key}\n"
        "  scope (string)\n"
        "      Separates tasks of one workdir\n"
        "  verbatim (boolean)\n"
        "      Replace no ${NAME.key}\n"
    )
    assert '  to (["data","error","exception","log","message","output"], required)' in (
        call("spill", None, "--describe").stdout
    )


def test_the_outputs_of_an_operation_are_explained() -> None:
    """A prompt needs their names: `{steps.shell.copy.path}`."""
    shell = [sys.executable, "-m", "ext_shell", "call", "copy", "--describe"]
    explained = subprocess.run(shell, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    outputs = explained.rpartition("\noutputs (? is not always present):\n")[2].partition("\n\n")[0]
    assert outputs.splitlines()[:2] == ["  path", "      absolute path of the copy"]


def test_the_explanation_ends_with_the_example_as_it_is_typed() -> None:
    explained = call("echo", None, "--describe").stdout
    example = explained.rpartition("example:\n  ext-probe ")[2]
    assert shlex.split(example) == ["call", "echo", '{"text":"hi"}']
    assert probe(*shlex.split(example)).returncode == 0


# --- Calls ---


def test_options_may_stand_anywhere_in_a_call(tmp_path: Path) -> None:
    workdir, args = ["--workdir", str(tmp_path)], '{"text": "hi"}'
    for words in (["echo", args, *workdir], ["echo", *workdir, args], [*workdir, "echo", args]):
        ran = probe("call", *words)
        assert (ran.returncode, ran.stdout.partition("\n")[0], ran.stderr) == (0, "ok: hi", "")


def test_a_call_shows_its_result() -> None:
    ran = call("echo", {"text": "hi"})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ok: hi\n  text: hi\n  length: 2\n  empty: false\n", "")


def test_outputs_of_several_lines_are_indented() -> None:
    assert "  text:\n    a\n    b\n" in call("echo", {"text": "a\nb\n"}).stdout


def test_a_call_that_fails_shows_why_and_exits_1() -> None:
    ran = call("end-badly", {"how": "fail"})
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout == "failed: not ready\nexpected Ready, found Pending\n  lastStatus: Pending\n"


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("refuse", "failed: end-badly: how: expected something else\n"),
        ("require", "failed: end-badly: required command not found in PATH: frobnicate; install it\n"),
    ],
)
def test_a_refusal_of_the_operation_is_a_failure(how: str, says: str) -> None:
    ran = call("end-badly", {"how": how})
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, says, "")


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = "a\x1b[2Jb\x07\x9bc\r\td\u00e9"
    assert "  text: a\\u001b[2Jb\\u0007\\u009bc\\u000d\td\u00e9\n" in call("echo", {"text": text}).stdout
    as_json = call("echo", {"text": text}, "--json").stdout
    assert "\x9b" not in as_json
    assert json.loads(as_json)["outputs"]["text"] == text
    refused = call("echo", {"\x1b[2J": 1})
    assert "\x1b" not in refused.stderr
    assert "[2J" in refused.stderr


def test_a_result_as_json() -> None:
    ran = call("end-badly", {"how": "fail"}, "--json")
    assert ran.returncode == 1
    assert json.loads(ran.stdout) == {
        "success": False,
        "message": "not ready",
        "error": "expected Ready, found Pending",
        "outputs": {"lastStatus": "Pending"},
    }


def test_logs_are_on_stderr() -> None:
    ran = call("log", {"text": "x"})
    assert ran.stdout == "ok: five\n"
    assert ran.stderr == "debug: one text=x\ninfo: two\nwarn: three path=/x number=1 nan=nan\nerror: four\n"


def test_the_circumstances_of_a_call_can_be_given(tmp_path: Path) -> None:
    ran = call(
        "circumstances",
        None,
        *("--workdir", str(tmp_path), "--env", "A=1", "--env", "B=x=y", "--timeout", "1h", "--agent-output", "it said"),
        *("--config", '{"greeting": "hi"}'),
    )
    assert f"  workdir: {tmp_path}\n" in ran.stdout
    assert "  phase: verify\n" in ran.stdout
    assert "  env: {'A': '1', 'B': 'x=y'}\n" in ran.stdout
    assert "  output: it said\n" in ran.stdout
    assert "  greeting: hi\n" in ran.stdout
    assert "  remaining: 3599\n" in ran.stdout
    ran = call("circumstances", None, "--phase", "cleanup")
    assert "  phase: cleanup\n" in ran.stdout
    assert "  output: no agent\n" in ran.stdout
    assert "  remaining: unlimited\n" in ran.stdout


def test_state_is_closed_after_a_call(tmp_path: Path) -> None:
    ran = call("count", None, "--config", json.dumps({"trace": str(tmp_path / "trace")}))
    assert ran.returncode == 0
    assert (tmp_path / "trace").read_text() == "closed at 1\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cal"], "ext-probe: argument COMMAND: invalid choice: 'cal'"),
        (["--manifset"], "ext-probe: unrecognized arguments: --manifset\nSee ext-probe --help\n"),
        (["call"], "ext-probe: call: expected an OPERATION: one of echo, circumstances, "),
        (["call", "ehco"], "ext-probe: unknown operation: ehco; did you mean 'echo'?\n"),
        (["call", "ehco", "--describe"], "did you mean 'echo'?"),
        (["echo", "{}"], "ext-probe: echo is an operation: ext-probe call echo '{…}'\n"),
        (["call", "echo", "{}", "{}"], "ext-probe call: unrecognized arguments: {}\nSee ext-probe call --help\n"),
        (["call", "echo", "{"], """ext-probe: ARGS: expected an object of JSON, as '{"name": "value"}': not JSON: """),
        (["call", "echo", "[]"], "ext-probe: echo: args: expected an object, found []\n"),
        (
            ["call", "echo", '{"txt": 1}'],
            "ext-probe: echo: unknown argument 'txt'; did you mean 'text'?\nSee ext-probe call echo --describe\n",
        ),
        (["call", "echo", '{"text": %s}' % ("[" * 500 + "]" * 500)], "ext-probe: "),
        (["call", "echo", "--env", "A"], "ext-probe: --env: expected NAME=VALUE, found 'A'\n"),
        (["call", "echo", "--env", "=x"], "expected NAME=VALUE"),
        (["call", "echo", "--timeout", "1d"], "ext-probe: context.timeout: invalid duration '1d'"),
        (["call", "echo", "--phase", "x"], "argument --phase: invalid choice: 'x'"),
        (["--config", "{", "call", "echo"], "ext-probe: --config: expected an object of JSON, "),
        (["--config", "{"], "ext-probe: --config: expected an object of JSON, "),
        (["--config", '{"greetin": 1}'], "ext-probe: config: unknown argument 'greetin'; did you mean 'greeting'?\n"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_a_command_line_that_cannot_be_used_exits_2_and_says_why(arguments: list[str], says: str) -> None:
    ran = probe(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("boom", "ext-probe: end-badly: unexpected ValueError: boom"),
        ("leave", "ext-probe: end-badly: unexpected SystemExit: left"),
    ],
)
def test_a_call_that_could_not_be_made_exits_1_and_says_why(how: str, says: str) -> None:
    ran = call("end-badly", {"how": how})
    assert (ran.returncode, ran.stdout) == (1, "")
    assert says in ran.stderr


def test_an_interrupted_call_closes_its_state_and_exits_130(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    reader = os.open(tmp_path / "started", os.O_RDWR)
    args = json.dumps({"started": str(tmp_path / "started")})
    with ExtensionHost([*PROBE, "call", "wait-for-stop", args]) as peer:
        assert select.select([reader], [], [], PATIENCE_S)[0]
        peer.process.send_signal(signal.SIGINT)
        assert peer.exit_code() == 130
        assert peer.stderr == ""
    os.close(reader)


# --- Secrets and odd texts ---


def test_secrets_are_shown_nowhere() -> None:
    ran = call("hide", {"text": "swordfish"})
    assert ran.stdout == "ok: it is [redacted:told#1]\n  value: [redacted:told#1]\n"
    assert ran.stderr == "info: it is [redacted:told#1] value=[redacted:told#1]\n"
    ran = call("spill", {"to": "exception", "text": "swordfish"}, PROBE_PASSWORD="swordfish")
    assert "swordfish" not in ran.stderr
    assert "[redacted:env.PROBE_PASSWORD#1]" in ran.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_a_terminal_cannot_show_is_escaped(options: list[str], encoding: str) -> None:
    ran = call("echo", {"text": "ä\ud800"}, *options, PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\\ud800" in ran.stdout
    assert ("ä" if encoding == "utf-8" else "\\xe4") in ran.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["--manifest"], ["call", "echo", "--describe"], ["call", "echo"]])
def test_a_reader_that_has_seen_enough_is_no_fault(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with ExtensionHost([*PROBE, *arguments], stdout=writer) as peer:
        os.close(writer)
        assert peer.exit_code() in (0, EXIT_NO_READER)
        assert peer.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_behind_stdout_is_told() -> None:
    with open("/dev/full", "wb") as full, ExtensionHost([*PROBE, "--manifest"], stdout=full) as peer:  # noqa: PTH123
        assert peer.exit_code() == 2
        assert peer.stderr == (
            "ext-probe: standard output: No space left on device; free space there, or redirect it to another file\n"
        )


# --- Serving a host with a configuration ---


def test_one_shot_use_takes_its_configuration_from_the_command_line() -> None:
    ran = probe("--config", '{"greeting": "hi"}', stdin=json.dumps(execute(1, "circumstances")))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["result"]["outputs"]["greeting"] == "hi"


def test_a_configuration_of_the_host_replaces_that_of_the_command_line() -> None:
    with ExtensionHost([*PROBE, "--config", '{"greeting": "hi"}']) as peer:
        assert peer.initialize({"greeting": "hey"})["result"]
        assert peer.outputs("circumstances")["greeting"] == "hey"


def test_it_is_the_same_program_by_any_interpreter_flags() -> None:
    ran = subprocess.run([sys.executable, "-OO", *PROBE[1:], "--version"], capture_output=True, timeout=60, check=True)
    assert ran.stdout == b"ext-probe 1.2.3\n"


# --- Export ---


def export(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return probe("export", "--protocol", "gassist", str(folder), *options)


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_an_export_is_written_and_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "plugins" / "probe"
    ran = export(folder)
    assert (ran.returncode, ran.stderr) == (0, "")
    names = ("manifest.json", "launch", "README.md")
    assert ran.stdout == "".join(f"{folder / name}: written\n" for name in names)
    first = files(folder)
    assert first.keys() == {*names, ".exported.json"}
    assert f"exec {shlex.join(PROBE)} serve --protocol gassist\n" in first["launch"]
    assert os.access(folder / "launch", os.X_OK)
    assert not os.access(folder / "manifest.json", os.X_OK)
    assert export(folder).stdout == "".join(f"{folder / name}: unchanged\n" for name in names)
    assert files(folder) == first
    config = '{"greeting": "it\'s"}'
    options = ["--config", config, "--allow", "echo,log", "--deny", "hang", "--workdir", "."]
    assert export(folder, *options).stdout == "".join(f"{folder / name}: written\n" for name in names)
    words = shlex.split(files(folder)["launch"].splitlines()[-1])
    assert words[-4:] == ["--allow=echo,log", "--deny=hang", f"--workdir={Path.cwd()}", f"--config={config}"]


@pytest.mark.parametrize("protocol", ["gassist", "pi"])
def test_an_export_keeps_its_configuration_private(protocol: str, tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    config = '{"env": {"DB_PASSWORD": "hunter2"}}'
    ran = probe("export", "--protocol", protocol, str(folder), "--allow=*", "--config", config)
    assert f"warning: a file in {folder} has a value of --config that looks secret in clear" in ran.stderr
    assert "hunter2" not in ran.stderr + ran.stdout
    (holding,) = (path for path in folder.iterdir() if "hunter2" in path.read_text())
    assert holding.name == {"gassist": "launch", "pi": "package.json"}[protocol]
    assert holding.stat().st_mode & 0o777 == (0o700 if protocol == "gassist" else 0o600)
    holding.chmod(0o755)  # as an earlier version wrote it
    ran = probe("export", "--protocol", protocol, str(folder), "--allow=*", "--config", config)
    assert f"{holding}: unchanged" in ran.stdout
    assert holding.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("found", ["current", "variable"])
def test_a_module_that_is_not_installed_is_found_by_the_launcher(found: str, tmp_path: Path) -> None:
    package = tmp_path / "src" / "lamps"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(Path(PROBE[-1]).read_text())
    done = subprocess.run(
        [sys.executable, "-m", "lamps", "export", "--protocol=gassist", str(tmp_path / "plugin")],
        cwd=package.parent if found == "current" else tmp_path,
        env=os.environ | ({} if found == "current" else {"PYTHONPATH": "src"}),
        timeout=PATIENCE_S, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    command = (tmp_path / "plugin" / "launch").read_text().splitlines()[-1]
    assert command == (f"exec env PYTHONPATH={package.parent} {sys.executable} -m lamps serve --protocol gassist")
    ran = subprocess.run(
        [tmp_path / "plugin" / "launch"], cwd="/", stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, (tmp_path / "plugin" / "plugin.log").read_text()) == (0, "", "")


def test_files_of_a_previous_export_are_removed_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    export(folder)
    record = json.loads((folder / ".exported.json").read_text())
    for name in ("old", "changed", "../outside"):
        (folder / name).write_text("text\n")
        record[name] = record["old"] = hashlib.sha256(b"text\n").hexdigest()
    (folder / "changed").write_text("mine\n")
    (folder / "own").write_text("mine\n")
    (folder / ".exported.json").write_text(json.dumps(record))
    assert export(folder).returncode == 0
    assert files(folder).keys() == {"manifest.json", "launch", "README.md", ".exported.json", "changed", "own"}
    assert (tmp_path / "outside").exists()


@pytest.mark.parametrize("made", ["file", "link", "folder", "changed"])
def test_an_export_never_overwrites_a_file_of_a_user(made: str, tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    path = folder / "launch"
    if made == "changed":
        export(folder)
        path.write_text("changed")
    else:
        folder.mkdir()
        (tmp_path / "target").write_text("kept")
        if made == "file":
            path.write_text("mine")
        elif made == "link":
            path.symlink_to(tmp_path / "target")
        else:
            path.mkdir()
    before = sorted(folder.iterdir())
    ran = export(folder, "--config", "{}")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"ext-probe: export: {path}: the file exists, and was not written by this command, or was changed since; "
        "move it away, or choose another DIR\n"
    )
    assert sorted(folder.iterdir()) == before
    assert (made != "link") or (tmp_path / "target").read_text() == "kept"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--protocol", "gassist"], "the following arguments are required: DIR"),
        (["probe"], "the following arguments are required: --protocol"),
        (["--protocol", "telnet", "probe"], "argument --protocol: invalid choice: 'telnet'"),
        (["--protocol", "gassist", "my plugin"], "export: 'my plugin' cannot be the name of a plugin's folder"),
        (["--protocol", "gassist", "--config", "{", "probe"], "--config: expected an object of JSON"),
        (["--protocol", "gassist", "--allow", "ecko", "probe"], "--allow ecko: matches no operation of probe; did you"),
        (
            ["--protocol", "gassist", "--workdir", "/dev/null", "probe"],
            "expected a directory that exists, found '/dev/nul",
        ),
        (
            ["--protocol", "gassist", "--allow", " ,", "probe"],
            "--allow: expected names of operations, or patterns with",
        ),
        (
            ["--protocol", "pi", "--allow=*", "/dev/null"],
            "export: /dev/null: expected a folder, or a new name, found a file; choose",
        ),
        (["--protocol", "gassist", "/dev/null/probe"], "export: /dev/null/probe: Not a directory"),
    ],
)
def test_a_wrong_export_names_the_remedy(words: list[str], said: str) -> None:
    ran = probe("export", *words)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
