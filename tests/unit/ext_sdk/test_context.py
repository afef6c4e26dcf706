"""What operations are given: state, artifacts, log, secrets."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from ext_sdk import Config, Context, OperationFailed
from ext_sdk.context import Artifacts, Log, Secrets, States, remove_old
from ext_sdk.core.redaction.redactor import Redactor

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_SECONDS = 30.0


class Thing:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Plain:
    pass


def new_context(workdir: Path, states: States, artifacts: Artifacts | None = None, scope: str = "") -> Context:
    return Context(
        workdir=workdir,
        scope=scope,
        log=Log(lambda level, message, data: None),
        config=Config(),
        secrets=Secrets(Redactor()),
        states=states,
        artifacts=artifacts or Artifacts("", "probe"),
    )


# --- State ---


def test_a_scope_has_a_state_of_its_own(tmp_path: Path) -> None:
    states = States()
    contexts = [new_context(tmp_path, states, scope=scope) for scope in ("", "a", "b", "a")]
    things = [context.state(Plain) for context in contexts]
    assert len(set(map(id, things))) == 3
    assert things[1] is things[3]
    assert len({id(context.extension_state(Plain)) for context in contexts}) == 1


def test_state_is_made_once_for_each_workdir_and_factory(tmp_path: Path) -> None:
    states = States()
    here, there = new_context(tmp_path, states), new_context(tmp_path / "x", states)
    thing = here.state(Thing)
    assert here.state(Thing) is thing
    assert new_context(tmp_path, states).state(Thing) is thing
    assert there.state(Thing) is not thing
    assert here.state(Plain) is here.state(Plain)
    assert here.extension_state(Thing) is there.extension_state(Thing)
    assert here.extension_state(Thing) is not thing


def test_a_workdir_has_one_state_by_any_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    states = States()
    assert new_context(tmp_path / "link", states).state(Thing) is new_context(tmp_path, states).state(Thing)
    loop = new_context(tmp_path / "loop", states)  # no directory at all, but a name for one
    assert loop.state(Thing) is loop.state(Thing)


def test_closing_hands_out_each_state_that_can_be_closed_once() -> None:
    states = States()
    things = [states.get("a", Thing), states.get("b", Thing)]
    states.get("a", Plain)
    assert states.close() == things
    assert states.close() == []


def test_no_state_is_made_after_the_end_began() -> None:
    """Nobody would close it: a process in it would be an orphan."""
    states = States()
    states.get("a", Thing)
    states.close()
    with pytest.raises(OperationFailed, match="shutting down"):
        states.get("a", Thing)


def test_a_factory_may_use_other_state() -> None:
    states = States()

    def factory() -> list[Thing]:
        return [states.get(None, Thing)]

    found: list[list[Thing]] = []
    asks = threading.Thread(target=lambda: found.append(states.get("a", factory)), daemon=True)
    asks.start()
    asks.join(PATIENCE_SECONDS)
    assert found == [[states.get(None, Thing)]]


def test_operations_that_ask_at_the_same_time_get_the_same_state() -> None:
    states = States()
    barrier = threading.Barrier(8, timeout=PATIENCE_SECONDS)
    found: list[Thing] = []

    def ask() -> None:
        barrier.wait()
        found.append(states.get("a", Thing))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert len(found) == 8
    assert len({id(thing) for thing in found}) == 1


def test_a_factory_that_fails_leaves_no_state() -> None:
    states = States()
    with pytest.raises(ZeroDivisionError):
        states.get("a", lambda: 1 // 0)
    assert states.close() == []


# --- Artifacts ---


def test_an_artifact_is_a_new_private_file_that_is_named_after_its_use(tmp_path: Path) -> None:
    context = new_context(tmp_path, States(), Artifacts(str(tmp_path / "a" / "b"), "probe"))
    path = context.artifact("stdout.txt")
    assert path.parent == tmp_path / "a" / "b"
    assert path.name == "001-stdout.txt"
    assert path.read_bytes() == b""
    assert path.stat().st_mode & 0o777 == 0o600
    assert context.artifact("stdout.txt").name == "002-stdout.txt"


def test_an_artifact_of_another_process_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "001-a").write_text("not mine")
    (tmp_path / "002-a").symlink_to(tmp_path / "nowhere")
    assert Artifacts(str(tmp_path), "probe").new("a") == tmp_path / "003-a"
    assert (tmp_path / "001-a").read_text() == "not mine"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("name", "file"),
    [("../../etc/passwd", "001-.._.._etc_passwd"), ("a/b\0c\nd", "001-a_b_c_d"), ("ä€", "001-__"), ("", "001-")],
)
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str, file: str) -> None:
    assert Artifacts(str(tmp_path), "probe").new(name) == tmp_path / file


def test_a_long_name_keeps_its_end(tmp_path: Path) -> None:
    name = Artifacts(str(tmp_path), "probe").new("x" * 5000 + ".txt").name
    assert name == "001-" + "x" * 76 + ".txt"


def test_a_directory_is_made_private_at_the_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    artifacts = Artifacts("", "probe")
    assert list(tmp_path.iterdir()) == []
    path = artifacts.new("a")
    assert path.parent.parent == tmp_path
    assert path.parent.name.startswith("ext-probe-")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert artifacts.new("b").parent == path.parent


def test_old_private_directories_are_removed(tmp_path: Path) -> None:
    names = ("ext-probe-0123abc_", "ext-probe-00000000", "ext-probe-other-0123abc_", "ext-other-0123abc_")
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "001-a").touch()
        os.utime(tmp_path / name, (1, 2000 if "00000000" in name else 1000))
    (tmp_path / "ext-probe-abcdefgh").symlink_to(tmp_path / "ext-other-0123abc_")

    remove_old("probe", tmp_path, 1500)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({*names, "ext-probe-abcdefgh"} - {names[0]})


def test_a_relative_directory_gives_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Artifacts("kept", "probe").new("a")
    assert path == tmp_path / "kept" / "001-a"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        Artifacts(str(tmp_path), "probe").new("a")


def test_a_directory_that_is_a_file_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Artifacts(str(tmp_path / "file"), "probe").new("a")


# --- Log and secrets ---


def test_a_log_has_a_level_a_message_and_data() -> None:
    sent: list[object] = []
    log = Log(lambda level, message, data: sent.append((level, message, data)))
    log.debug("a")
    log.info("b", number=1)
    log.warn("c", level="mine", text="x")
    log.error("d")
    assert sent == [
        ("debug", "a", {}),
        ("info", "b", {"number": 1}),
        ("warn", "c", {"level": "mine", "text": "x"}),
        ("error", "d", {}),
    ]


def test_a_secret_is_taken_out_of_text_from_then_on() -> None:
    secrets = Secrets(Redactor())
    assert secrets.redact("swordfish") == "swordfish"
    secrets.add("password", "swordfish")
    assert secrets.redact("it is swordfish") == "it is [redacted:password#1]"


def test_a_context_has_defaults_for_what_a_host_leaves_out(tmp_path: Path) -> None:
    context = new_context(tmp_path, States())
    assert (context.phase, context.env, context.agent) == ("", {}, None)
    assert context.deadline.remaining() == float("inf")
