"""Secrets are taken out of cassettes that are there, once and for all, and nothing else is touched."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import CassetteError
from ext_recorder.http.interaction_file import InteractionFile
from ext_recorder.messages.redaction import Redaction
from ext_recorder.tools.scrub import scrub
from tests.support.host import PATIENCE_S
from tests.support.player_host import cassette
from tests.support.recorder_process import RECORDER, events

if TYPE_CHECKING:
    from collections.abc import Mapping

GITHUB = "ghp_" + "a1b2" * 9
OTHER = "ghp_" + "c3d4" * 9
PLAIN = "Zk4nQ8vR2mX7pL1w"
END = "\n- {t: 9, exit: 0}"


def command(*words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RECORDER, "scrub", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | (env or {}),
    )


def payloads(path: Path) -> list[str]:
    return [each.payload.decode() for each in events(path) if hasattr(each, "payload")]


def test_what_a_recorder_would_have_replaced_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    path = cassette(
        tmp_path / "c.yaml", f"""- {{t: 0.5, in: '{{"token": "{GITHUB}", "n": 1.0}}'}}\n- {{t: 1, err: 'fine'}}{END}"""
    )
    before = path.read_text()
    found = scrub(path, "c", redaction=Redaction())
    (rule,) = found.replaced
    assert (found.replaced[rule], found.numbers) == (1, (7,))
    changed = before.replace(GITHUB, f"[redacted:{rule}#1]").replace("redacted: []", f"redacted: [{rule}]")
    assert path.read_text() == changed.replace("t: 0.5,", "t: 0.500000,").replace("t: 1,", "t: 1.000000,").replace(
        "t: 9,", "t: 9.000000,"
    )


def test_scrubbing_twice_changes_nothing_the_second_time(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, in: 'Authorization: Bearer {GITHUB}'}}{END}")
    scrub(path, "c", redaction=Redaction())
    once = path.read_bytes()
    assert scrub(path, "c", redaction=Redaction()).replaced == {}
    assert path.read_bytes() == once
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_a_cassette_without_secrets_is_not_touched_however_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text('cassette: 1\nprotocol: raw\nframing: ndjson\nevents:\n  - {"t": 0, "in": "hello"}\nredacted: []\n')
    before = path.stat()
    assert scrub(path, "c", redaction=Redaction()).replaced == {}
    assert path.stat() == before


def test_a_secret_is_found_before_the_message_that_tells_of_it(tmp_path: Path) -> None:
    path = cassette(
        tmp_path / "c.yaml",
        f"- {{t: 0, out: 'the value is {PLAIN}, is it not'}}\n- {{t: 1, in: '{{\"password\":\"{PLAIN}\"}}'}}{END}",
    )
    scrub(path, "c", redaction=Redaction())
    assert PLAIN not in path.read_text()


def test_an_older_placeholder_keeps_its_number_to_itself(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, in: '{GITHUB}'}}{END}")
    (rule,) = scrub(path, "c", redaction=Redaction(), check=True).replaced
    path = cassette(
        tmp_path / "c.yaml", f"- {{t: 0, in: '{OTHER}'}}\n- {{t: 1, in: 'was [redacted:{rule}#1] before'}}{END}"
    )
    scrub(path, "c", redaction=Redaction())
    assert payloads(path) == [f"[redacted:{rule}#2]", f"was [redacted:{rule}#1] before"]


def test_secrets_in_raw_bytes_and_on_stderr_are_found(tmp_path: Path) -> None:
    raw = base64.b64encode(f'{{"token":"{GITHUB}"}}\n\x00junk'.encode()).decode()
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, out: {{raw: '{raw}'}}}}\n- {{t: 1, err: 'token={GITHUB}'}}{END}")
    assert sum(scrub(path, "c", redaction=Redaction()).replaced.values()) == 2
    assert GITHUB not in "".join(payloads(path))
    assert "junk" in "".join(payloads(path))


@pytest.mark.parametrize("framing", ["content-length", "uint32"])
def test_frames_are_whole_again_after_scrubbing(tmp_path: Path, framing: str) -> None:
    message = f'{{"token":"{GITHUB}"}}'.encode()
    frame = len(message).to_bytes(4, "big") + message
    if framing == "content-length":
        frame = b"Content-Length:%d\r\n\r\n%b" % (len(message), message)  # a spelling that only raw can keep
    raw = base64.b64encode(frame).decode()
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, out: {{raw: '{raw}'}}}}{END}", framing=framing)
    scrub(path, "c", redaction=Redaction())
    (payload,) = payloads(path)
    assert GITHUB not in payload
    assert '{"token":"[redacted:' in payload


def test_the_recorded_command_is_scrubbed_too(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "cassette: 1\nprotocol: raw\nframing: ndjson\ncommand: [tool, '--password', Tr0ub4dor3]\nevents:\n"
        "- {t: 0, in: hello}\nredacted: []\n"
    )
    scrub(path, "c", redaction=Redaction())
    assert "Tr0ub4dor3" not in path.read_text()
    with Reader(path) as reader:
        assert reader.header.command[:2] == ("tool", "--password")


def test_the_command_knows_variables_and_listed_secrets_and_says_what_it_did(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, in: 'quicksilver and marmalade and API_TOKEN'}}{END}")
    (tmp_path / "list.txt").write_text("marmalade\n\n")
    done = command(
        "--redact", "PLAIN", "--secrets", str(tmp_path / "list.txt"), str(path), env={"PLAIN": "quicksilver"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: replaced env.PLAIN (1), listed.1 (1); lines 7\n"
    assert payloads(path) == ["[redacted:env.PLAIN#1] and [redacted:listed.1#1] and API_TOKEN"]
    with Reader(path) as reader:
        list(reader)
        assert reader.redacted == ("env.PLAIN", "listed.1")


def test_check_writes_nothing_and_fails_where_there_is_something(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, in: '{GITHUB}'}}{END}")
    before = path.read_bytes()
    done = command("--check", str(tmp_path))
    assert done.returncode == 1
    assert "found " in done.stdout
    assert path.read_bytes() == before
    command(str(tmp_path))
    assert command("--check", str(tmp_path)).returncode == 0


def test_a_broken_cassette_stays_as_it_is(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, in: '{GITHUB}'}}\n- {{t: 1, in: 'x'y'}}{END}")
    before = path.read_bytes()
    done = command(str(path))
    assert done.returncode == 2
    assert "c.yaml:8: not YAML" in done.stderr
    assert GITHUB not in done.stderr
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["c.yaml"]


def test_what_is_on_another_machine_is_only_looked_at(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", f"- {{t: 0, in: '{GITHUB}'}}{END}")
    done = command(f"file://{path}")
    assert done.returncode == 2
    assert "is read-only" in done.stderr
    assert command("--check", f"file://{path}").returncode == 1


def test_a_variable_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = command("--redact", "NO_SUCH_VARIABLE", str(tmp_path))
    assert done.returncode == 2
    assert "--redact NO_SUCH_VARIABLE: expected the name" in done.stderr


# --- HTTP traffic -----------------------------------------------------------------------------------------------------


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    """A recorded session of ext-http, with its HTTP traffic: of that, the file."""
    folder = Path(__file__).parents[4] / "cassettes" / "http"
    for name in ("offline.yaml", "offline.http.yaml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path / "offline.http.yaml"


def test_the_traffic_beside_a_cassette_is_scrubbed_with_it_and_nothing_else_in_it_changes(traffic: Path) -> None:
    before = traffic.read_text()
    traffic.write_text(before.replace("/count/up\n", f"/count/up?token={PLAIN}\n", 1))
    found = command("--check", str(traffic.parent / "offline.yaml"))
    assert (found.returncode, PLAIN in traffic.read_text()) == (1, True)
    assert found.stdout.endswith("offline.http.yaml: found key.token (1); interactions 1\n")
    done = command(str(traffic.parent))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("offline.http.yaml: replaced key.token (1); interactions 1\n")
    rules = yaml.load(before, yaml.CSafeLoader)["redacted"]
    redacted = ", ".join(sorted([*rules, "key.token"]))
    expected = before.replace("/count/up\n", "/count/up?token=[redacted:key.token#1]\n", 1).replace(
        f"redacted: [{', '.join(rules)}]", f"redacted: [{redacted}]"
    )
    assert traffic.read_text().partition("\nindex: ")[0] == expected.partition("\nindex: ")[0]
    with InteractionFile(traffic) as file:
        assert file.frame.index == file.scan()


def test_traffic_without_secrets_is_not_touched(traffic: Path) -> None:
    before = traffic.read_bytes()
    done = command(str(traffic), str(traffic.parent / "offline.yaml"))
    assert done.stdout.count("nothing to replace\n") == 2
    assert traffic.read_bytes() == before


def test_a_secret_in_traffic_is_found_before_the_request_that_tells_of_it(traffic: Path) -> None:
    text = traffic.read_text()
    first, second = text.index("uri: http"), text.rindex("uri: http")
    ends = [text.index("\n", at) for at in (first, second)]
    told = text[: ends[0]] + f"?x={PLAIN}" + text[ends[0] : ends[1]] + f"?token={PLAIN}" + text[ends[1] :]
    traffic.write_text(told)
    found = scrub(traffic, str(traffic), redaction=Redaction())
    assert len(found.numbers) == 2
    assert PLAIN not in traffic.read_text()
    assert scrub(traffic, str(traffic), redaction=Redaction()).replaced == {}


def test_a_file_of_vcrpy_itself_is_left_to_vcrpy(tmp_path: Path) -> None:
    path = tmp_path / "other.http.yaml"
    path.write_text("interactions: []\nversion: 1\n")
    with pytest.raises(CassetteError, match="written by vcrpy"):
        scrub(path, str(path), redaction=Redaction())
