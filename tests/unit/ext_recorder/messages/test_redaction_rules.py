"""Rules of users about redaction: patterns, pointers, globs of keys, exceptions, and none at all."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cli.command_line import read, resolve_values
from ext_recorder.cli.commands import COMMANDS
from ext_recorder.errors import PatternTooSlow, UsageError
from ext_recorder.messages.redaction import Redaction
from tests.support.host import PATIENCE_S
from tests.support.http_child import record as record_http
from tests.support.http_child import script
from tests.support.http_site import serving
from tests.support.recorder_process import ECHO, RECORDER, messages, python, run

if TYPE_CHECKING:
    from pathlib import Path

CALL = (
    '{"jsonrpc":"2.0","id":1,"method":"pay","params":{"pin":1234,"cards":[{"no":"12"},{"no":"34"}],"to":"EMP-1234567"}}'
)
SLOW = "pattern:(a+)+$"
LONG = "a" * 60 + "!"


def redacted(text: str, *redact: str, excepted: tuple[str, ...] = (), env: dict[str, str] | None = None) -> str:
    return Redaction(redact, excepted).redactor(env or {}).redact_text(text)


# --- What a rule finds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("pattern:EMP-[0-9]{7}", {"EMP-1234567": "[redacted:pattern#1]"}),
        ("pattern:EMP-([0-9]{7})", {"EMP-1234567": "EMP-[redacted:pattern#1]"}),
        ("pattern:12345", {"EMP-1234567": "EMP-[redacted:pattern#1]67"}),
        ("pattern:123[0-9]", {":1234": ':"[redacted:pattern#1]"', "-1234": "-[redacted:pattern#1]"}),
        ('pattern:"pin":([0-9]+)', {":1234": ':"[redacted:pattern#1]"'}),
        ("pointer:/params/pin", {":1234": ':"[redacted:pointer.pin#1]"'}),
        ("pointer:/params/cards/1/no", {'"34"': '"[redacted:pointer.no#1]"'}),
        ("pointer:/params/cards/*/no", {'"12"': '"[redacted:pointer.no#1]"', '"34"': '"[redacted:pointer.no#2]"'}),
        ("pointer:/params/cards", {'"12"': '"[redacted:pointer.cards#1]"', '"34"': '"[redacted:pointer.cards#2]"'}),
        ("pointer:/params/none/x", {}),
        ("key:pin", {":1234": ':"[redacted:key.pin#1]"'}),
        ("key:P?N", {":1234": ':"[redacted:key.pin#1]"'}),
        ("key:*_pin", {}),
        ('{"key":"pin","replacement":"0"}', {":1234": ":0"}),
        ('{"key":"pin","replacement":"0000"}', {":1234": ':"0000"'}),
        ('{"pattern":"EMP-[0-9]+","replacement":"EMP-0"}', {"EMP-1234567": "EMP-0"}),
        ('{"pattern":"EMP-[0-9]+","name":"employee"}', {"EMP-1234567": "[redacted:employee#1]"}),
        ('{"pointer":"/params/to","replacement":""}', {"EMP-1234567": ""}),
    ],
)
def test_a_rule_replaces_what_it_names(rule: str, changes: dict[str, str]) -> None:
    found = CALL
    for before, after in changes.items():
        found = found.replace(before, after)
    assert redacted(CALL, rule) == found
    assert redacted(found, rule) == found
    json.loads(found)


@pytest.mark.parametrize(
    ("rule", "text", "found"),
    [
        ("pattern:EMP-[0-9]+", '{"a":"{\\"b\\":\\"\\u0045MP-12\\"}"}', '{"a":"{\\"b\\":\\"[redacted:pattern#1]\\"}"}'),
        ("pattern:Größe [0-9]+", '{"ä":"Größe 12 ü"}', '{"ä":"[redacted:pattern#1] ü"}'),
        ("pattern:Gr..e [0-9]+", "ä: Größe 12 ü", "ä: [redacted:pattern#1] ü"),
        ("key:door_code", "door_code: 99 north", "door_code: [redacted:key.door_code#1]"),
        ("key:door_code", "open --door_code 99 now", "open --door_code [redacted:key.door_code#1] now"),
        ("key:door_code", '{"x":"{\\"door_code\\":9}"}', '{"x":"{\\"door_code\\":\\"[redacted:key.door_code#1]\\"}"}'),
        ("key:x-*-code", "x-door-code: 99", "x-door-code: [redacted:key.x-door-code#1]"),
    ],
)
def test_a_rule_finds_in_texts_and_in_json_within_json(rule: str, text: str, found: str) -> None:
    assert redacted(text, rule) == found


def test_a_pattern_cannot_break_json() -> None:
    found = redacted('{"a":"one","b":[1,22,true],"c":"two"}', "pattern:ne.*tw")
    first, numbers, last = json.loads(found).values()
    assert (first, last) == ("o[redacted:pattern#1]", "[redacted:pattern#6]o")
    assert numbers == ["[redacted:pattern#3]", "[redacted:pattern#4]", True]


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
rules = st.sampled_from(["pattern:.+", 'pattern:[a-z0-9"]', "pattern:[^a]", "pointer:/*", "pointer:/*/*", "key:*a*"])


@given(values, rules, st.booleans())
def test_a_json_text_stays_one_whatever_a_rule_says(value: object, rule: str, ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    redactor = Redaction([rule]).redactor({})
    once = redactor.redact(data)
    json.loads(once)
    assert redactor.redact(once) == once


# --- Exceptions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "exception",
    ["value:hunter2", "pattern:hunt.*2", "key:pass*", "pointer:/params/password", "pointer:/params"],
)
def test_an_exception_stays_as_it_is(exception: str) -> None:
    text = '{"params":{"password":"hunter2"}}'
    assert redacted(text, excepted=(exception,)) == text
    other = '{"result":{"secret":"hunter3"}}'
    assert redacted(other, excepted=(exception,)) == '{"result":{"secret":"[redacted:key.secret#1]"}}'


def test_a_pattern_excepts_only_what_it_matches_completely() -> None:
    text = '{"password":"test-1","secret":"test-1-and-more"}'
    assert redacted(text, excepted=("pattern:test-[0-9]",)) == text.replace(
        "test-1-and-more", "[redacted:key.secret#1]"
    )


def test_an_exception_is_one_from_own_rules_too() -> None:
    assert redacted("EMP-0 EMP-1", "pattern:EMP-[0-9]", excepted=("value:EMP-0",)) == "EMP-0 [redacted:pattern#1]"


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("pattern:(", "not a regular expression: missing ), unterminated subpattern at position 0"),
        ("pattern:a*", "matches an empty text"),
        ("pattern:", "expected text after pattern:"),
        ("pointer:params", "is not a JSON pointer"),
        ("pointer:tools/call /params/x", "is not a JSON pointer"),
        ("key:*", "matches every key"),
        ("value:hunter2", "put the value into an environment variable"),
        ('{"pattern":"a","key":"b"}', "expected one of pattern, pointer and key, found pattern, key"),
        ('{"replacement":"b"}', "expected one of pattern, pointer and key, found none"),
        ('{"pattern":"a","colour":"b"}', "unknown key 'colour'"),
        ('{"pattern":1}', "pattern: expected a string"),
        ('{"pattern":"a","replacement":"\\""}', "has a quote"),
        ('{"pattern', "not valid JSON"),
    ],
)
def test_a_wrong_rule_is_refused(rule: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        Redaction([rule])
    assert str(caught.value).startswith(f"--redact {rule}: ")
    assert problem in str(caught.value)


def test_a_pattern_that_takes_too_long_is_stopped() -> None:
    redactor = Redaction([SLOW]).redactor({})
    with pytest.raises(PatternTooSlow, match=r"--redact pattern:\(a\+\)\+\$: took more than 1 s"):
        redactor.redact_text(LONG)


def test_an_exception_that_takes_too_long_is_stopped() -> None:
    redactor = Redaction(["pattern:a+!"], [SLOW]).redactor({})
    with pytest.raises(PatternTooSlow, match=r"--redact-except pattern:\(a\+\)\+\$: took more than 1 s"):
        redactor.redact_text(LONG)


def test_a_long_message_is_searched() -> None:
    text = "b" * 200_000 + " EMP-1234567 EMP-7654321"
    found = redacted(text, "pattern:EMP-([0-9]{7})", excepted=("pattern:7.*1",))
    assert found == "b" * 200_000 + " EMP-[redacted:pattern#1] EMP-7654321"


# --- With processes ---------------------------------------------------------------------------------------------------

RULES = ("--redact", "pattern:EMP-[0-9]{7}", "--redact", "pointer:/params/pin", "--redact", "key:door_*")


def replay(cassette: Path, stdin: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [*RECORDER, "replay", *options, str(cassette)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False)


def test_a_session_is_recorded_and_replayed_by_the_same_rules(cassette: Path) -> None:
    run(cassette, ECHO, *RULES, stdin=CALL.encode() + b"\n")
    kept = cassette.read_text()
    assert "EMP-1234567" not in kept
    assert '"pin":1234' not in kept
    assert kept.endswith("redacted: [pattern, pointer.pin]\n")
    other = CALL.replace("EMP-1234567", "EMP-7654321").replace('"pin":1234', '"pin":99')
    assert replay(cassette, other.encode() + b"\n", *RULES).returncode == 0
    without = replay(cassette, other.encode() + b"\n")
    assert without.returncode == 3


def test_a_replacement_is_written_and_named(cassette: Path) -> None:
    rule = '{"pattern":"EMP-[0-9]+","replacement":"EMP-0","name":"employee"}'
    run(cassette, ECHO, "--redact", rule, stdin=CALL.encode() + b"\n")
    assert b'"to":"EMP-0"' in messages(cassette, "in")[0]
    assert cassette.read_text().endswith("redacted: [employee]\n")
    assert replay(cassette, CALL.replace("1234567", "9").encode() + b"\n", "--redact", rule).returncode == 0


def test_without_redaction_a_session_is_kept_as_it_is_and_that_is_reported(cassette: Path) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"password":"hunter2","was":"[redacted:bearer#7]"}}'
    session = run(cassette, ECHO, "--no-redact", stdin=line + b"\n", env={"API_TOKEN": "hunter2"})
    assert b"is recorded without redaction (--no-redact)" in session.err
    assert messages(cassette, "in") == [line]
    assert cassette.read_text().endswith("redacted: []\n")
    assert replay(cassette, line + b"\n").returncode == 0


def test_own_rules_hold_without_the_built_in_ones(cassette: Path) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"password":"hunter2","to":"EMP-1"}}'
    run(cassette, ECHO, "--no-redact", "--redact", "pattern:EMP-[0-9]", stdin=line + b"\n")
    assert messages(cassette, "in") == [line.replace(b"EMP-1", b"[redacted:pattern#1]")]


def test_a_wrong_rule_is_refused_before_anything_starts(cassette: Path) -> None:
    session = run(cassette, ECHO, "--redact", "pattern:(", stdin=b"x\n")
    assert (session.code, session.out) == (2, b"")
    assert b"--redact pattern:(: not a regular expression: missing )" in session.err


def test_a_pattern_that_takes_too_long_ends_the_recording_and_not_the_session(cassette: Path) -> None:
    session = run(cassette, ECHO, "--redact", SLOW, stdin=b"first\n" + LONG.encode() + b"\nlast\n")
    assert session.out == b"first\n" + LONG.encode() + b"\nlast\n"
    assert session.code == 0
    assert b"--redact pattern:(a+)+$: took more than 1 s of processor time on a message of" in session.err
    assert not cassette.exists()


def test_the_rules_come_from_the_project_file_and_survive_a_shim(tmp_path: Path) -> None:
    (tmp_path / "ext-recorder.toml").write_text(
        'redact = ["key:door_*", {pattern = "EMP-[0-9]+", replacement = "EMP-0"}]\nredact-except = ["value:hunter2"]\n'
    )
    cassette, shim = tmp_path / "session.yaml", tmp_path / "child"
    line = b'{"id":1,"method":"a","params":{"door_code":12,"to":"EMP-7","password":"hunter2"}}\n'
    done = subprocess.run(
        [*RECORDER, "shim", *RULES, str(shim), str(cassette), "--", *ECHO],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    subprocess.run([str(shim)], input=line, capture_output=True, timeout=PATIENCE_S, check=False)
    kept = cassette.read_text()
    assert 'door_code":"[redacted:key.door_code#1]"' in kept
    assert "EMP-0" in kept
    assert "hunter2" in kept


def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "ext-recorder.toml").write_text('order = "any"\nredact = [{patern = "x"}]\n')
    found = read(COMMANDS["replay"], [str(tmp_path / "c.yaml")])
    assert found is not None
    with pytest.raises(UsageError, match=r"ext-recorder.toml:2: redact: unknown key 'patern'; known: key, name"):
        resolve_values(COMMANDS["replay"], found)


def scrub(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RECORDER, "scrub", *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_scrub_uses_the_rules(cassette: Path) -> None:
    run(cassette, ECHO, stdin=CALL.encode() + b"\n")
    assert "EMP-1234567" in cassette.read_text()
    rules = ("--redact", "pattern:EMP-[0-9]{7}", "--redact", '{"key":"pin","replacement":"0"}')
    assert scrub("--check", *rules, str(cassette)).returncode == 1
    done = scrub(*rules, str(cassette))
    assert "replaced pattern (2), replacement" in done.stdout or "replaced pattern (2)" in done.stdout
    kept = cassette.read_text()
    assert "EMP-1234567" not in kept
    assert '"pin":0' in kept
    assert scrub("--check", *rules, str(cassette)).returncode == 0


def test_scrub_writes_a_replacement_that_leaves_no_placeholder(cassette: Path) -> None:
    run(cassette, ECHO, stdin=CALL.encode() + b"\n")
    done = scrub("--redact", '{"key":"pin","replacement":"0"}', str(cassette))
    assert done.stdout.endswith("replaced replacement (2); lines 10, 12\n")
    assert '"pin":0' in cassette.read_text()


def test_verify_uses_the_rules(cassette: Path) -> None:
    child = python("import os, sys\nfor line in sys.stdin: print(f'EMP-{os.getpid()} {line.strip()}', flush=True)")
    rules = ("--redact", "pattern:EMP-[0-9]+")
    run(cassette, child, *rules, stdin=b"id one\n")

    def verify(*options: str) -> int:
        command = [*RECORDER, "verify", *options, str(cassette), "--", *child]
        return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False).returncode

    assert verify(*rules) == 0
    assert verify() == 1


def test_convert_uses_the_rules(tmp_path: Path) -> None:
    given = tmp_path / "given.jsonl"
    given.write_text(json.dumps({"ts": 1, "dir": "client->server", "msg": json.loads(CALL)}) + "\n")
    target = tmp_path / "c.yaml"
    command = [*RECORDER, "convert", "--redact", "pattern:EMP-[0-9]+", str(given), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "[redacted:pattern#1]" in target.read_text()


def test_http_traffic_is_redacted_by_the_rules(tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"
    sending = "import urllib.request\nurllib.request.urlopen({url!r} + '/echo/1?to=EMP-7', data=b'to EMP-8').read()"
    with serving() as server:
        child = script(sending.format(url=server.origin))
        session = record_http(cassette, child, None, "--redact", "pattern:EMP-[0-9]")
    assert session.code == 0
    kept = (tmp_path / "session.http.yaml").read_text()
    assert "EMP-7" not in kept
    assert "EMP-8" not in kept
    assert "[redacted:pattern#2]" in kept


@pytest.mark.parametrize("rule", ["pointer:/result/handle", "key:hand*"])
def test_a_value_that_a_rule_found_has_the_same_placeholder_in_later_messages(rule: str) -> None:
    redactor = Redaction((rule,), ()).redactor({})
    value = "0aad4d86ee2946dab7b94cc4c0c3d4c5"
    first = redactor.redact_text(f'{{"id":1,"result":{{"handle":"{value}"}}}}')
    placeholder = f"[redacted:{rule.partition(':')[0]}.handle#1]"
    assert first == f'{{"id":1,"result":{{"handle":"{placeholder}"}}}}'
    later = redactor.redact_text(f'{{"id":2,"params":{{"via":"Bearer {value}","n":"{value}"}}}}')
    assert later == f'{{"id":2,"params":{{"via":"Bearer {placeholder}","n":"{placeholder}"}}}}'
