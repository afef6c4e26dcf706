"""`ext-recorder conformance`: the clauses of the protocol, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ext_recorder.conformance.checks import CLAUSES
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER

ROOT = Path(__file__).parents[4]
GREETER = (sys.executable, str(ROOT / "docs" / "examples" / "greeter.py"))
PROFILE = ROOT / "tests" / "conformance" / "profiles" / "greeter.json"
INDEPENDENT = (sys.executable, str(ROOT / "tests" / "conformance" / "independent_extension.py"))


def ask(*words: str, command: tuple[str, ...] = GREETER) -> subprocess.CompletedProcess[str]:
    whole = [*RECORDER, "conformance", *words, "--", *command]
    return subprocess.run(whole, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_clauses_are_a_table_with_their_numbers() -> None:
    done = ask("--only=spec:initialize", "--only=host:eof")
    assert (done.returncode, done.stderr) == (0, "")
    numbers = {clause.id: number for number, clause in enumerate(CLAUSES, 1)}
    first, *_, last, summary = done.stdout.splitlines()
    assert first.split()[:3] == [str(numbers["spec:initialize"]), "met", "spec:initialize"]
    assert last.split()[:3] == [str(numbers["host:eof"]), "met", "host:eof"]
    assert summary.endswith(" met")


def test_what_the_profile_lacks_is_skipped_with_the_reason(tmp_path: Path) -> None:
    report = tmp_path / "conformance.xml"
    done = ask("--only=host:kin-eof", f"--profile={PROFILE}", f"--junit={report}")
    assert ET.parse(report).getroot().get("skipped") == "1"
    assert done.returncode == 0
    assert "skipped" in done.stdout
    assert "the profile has no entry 'background'" in done.stdout


def test_a_violation_is_shown_and_makes_exit_code_1(tmp_path: Path) -> None:
    report = tmp_path / "reports" / "conformance.xml"
    silent = (sys.executable, "-c", "input()")
    done = ask("--only=spec:initialize", f"--junit={report}", command=silent)
    assert done.returncode == 1
    assert "VIOLATED" in done.stdout
    suite = ET.parse(report).getroot()
    assert (suite.get("failures"), len(suite.findall(".//failure"))) == ("1", 1)
    assert "initialize returns the manifest" in str(suite.find(".//testcase").attrib)  # type: ignore[union-attr]


def test_lines_for_programs() -> None:
    done = ask("--only=spec:initialize", "--json")
    (first, *_) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (first["clause"], first["verdict"]) == ("spec:initialize", "met")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only=spec:nothing",), "no clause has this id"),
        (("--profile=/no/such/file",), "--profile /no/such/file: cannot be read: No such file"),
        (("--protocol=mcp",), "--protocol mcp: expected one of gevals, pi, gassist, waza, kaiak"),
        (("--connect=http://127.0.0.1:1/mcp",), "expected tcp:HOST:PORT or unix:PATH; for MCP, check"),
        (("--jobs=many",), "--jobs many: expected a number, such as 4"),
    ],
)
def test_a_wrong_option_is_explained(words: tuple[str, ...], said: str) -> None:
    done = ask(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "profile"),
        ('{"work": {}}', "found work"),
        ('{"fails": 1}', "fails must be an object"),
    ],
)
def test_a_wrong_profile_is_explained(tmp_path: Path, text: str, said: str) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(text)
    done = ask(f"--profile={profile}")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert str(profile) in done.stderr


def test_no_command_is_an_error_that_shows_how() -> None:
    done = subprocess.run([*RECORDER, "conformance"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, "ext-recorder conformance -- COMMAND" in done.stderr) == (2, True)


@pytest.mark.parametrize("protocol", ["gevals", "waza"])
def test_a_command_that_cannot_be_started_is_told_once_and_no_clause_is_blamed(protocol: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("no program")
    for command, said in [
        ("no-such-program", "the command 'no-such-program' is not in PATH"),
        (str(tmp_path / "none"), f"the command '{tmp_path}/none' does not exist"),
        (str(plain), f"the command '{plain}' is not executable (chmod +x)"),
    ]:
        done = ask(f"--protocol={protocol}", command=(command,))
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"ext-recorder: {said}\n")
