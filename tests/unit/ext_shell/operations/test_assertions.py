"""`assert-agent`."""

from __future__ import annotations

import hashlib
import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ext_sdk
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.files import Workdir
from ext_sdk.polling import Deadline
from ext_sdk.server.session import Session
from ext_shell.expectations import time_at, time_text
from ext_shell.extension import OPERATIONS
from tests.support.rejections import answered, refusal

if TYPE_CHECKING:
    from tests.support.ext_shell_files import FileHost


PROMPT = "Create a pod named nginx"
OUTPUT = 'I\'ve created the pod.\n\n{"pod": "nginx", "replicas": 1}'


def assert_agent(context: dict[str, object], args: dict[str, object]) -> ext_sdk.Result:
    extension = ext_sdk.Extension("agent", version="1.0.0")
    for operation in OPERATIONS:
        extension.add(operation)
    session = Session(extension, Redactor())
    params = {"operation": "assert-agent", "args": args, "context": {"workdir": str(Path.cwd()), **context}}
    return session.perform(session.prepare(params, lambda *_: None))


def verify(args: dict[str, object], *, answer: str = OUTPUT) -> ext_sdk.Result:
    return assert_agent({"phase": "verify", "agent": {"prompt": PROMPT, "output": answer}}, args)


@pytest.mark.parametrize(
    ("args", "checks"),
    [
        ({"output": {"contains": "created"}}, 1),
        ({"output": {"contains": ["CREATED", "Pod"], "ignoreCase": True}}, 2),
        ({"output": {"containsAny": ["made", "created"], "notContains": "error"}}, 2),
        ({"output": {"matches": r"(?m)^\{.*\}$", "notMatches": "fail(ed|ure)", "lineCount": 3}}, 3),
        ({"prompt": PROMPT}, 1),
        ({"prompt": {"contains": "nginx"}, "output": {"startsWith": "I've"}}, 2),
    ],
)
def test_an_answer_as_expected_passes(args: dict[str, object], checks: int) -> None:
    result = verify(args)
    assert result.success, result
    assert result.message == f"Checked the agent: {checks} check{'s' if checks > 1 else ''} passed"
    assert result.outputs == {"output": OUTPUT}


def test_an_answer_in_json_is_checked_by_paths() -> None:
    args: dict[str, object] = {
        "output": {"json": [{"path": "$.pod", "equals": "nginx"}, {"path": "$.replicas", "type": "integer"}]}
    }
    assert verify(args, answer='{"pod": "nginx", "replicas": 1}').success
    failure = verify(args, answer='{"pod": "nginx", "replicas": "1"}')
    assert failure.error == ('the agent\'s output at $.replicas: expected to be of type integer, got "1" (string)')
    assert "expected to be JSON" in verify(args).error


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            {"output": {"contains": "deleted"}},
            "the agent's output: expected to contain \"deleted\", got 3 lines:\n  | I've",
        ),
        ({"output": {"notContains": "created"}}, "the agent's output: expected not to contain"),
        ({"prompt": "x"}, 'the prompt: expected to equal "x", got "Create a pod named nginx"'),
    ],
)
def test_another_answer_fails_and_says_expected_and_got(args: dict[str, object], told: str) -> None:
    result = verify(args)
    assert not result.success
    assert told in result.error


ANSWER = 'Done, on port 8080.\n\n```json\n{"token": "sesame-opens-it", "short": "x7"}\n```\n'


def test_parts_of_an_answer_become_outputs() -> None:
    capture = {
        "port": {"regex": r"port (\d+)"},
        "first": {"line": 1, "filters": [{"split": ","}]},
        "task": {"from": "prompt", "regex": r"\w+$"},
    }
    result = verify({"capture": capture}, answer=ANSWER)
    assert result.success
    assert result.message == "Captured port, first, task from the agent"
    assert result.outputs == {"output": ANSWER, "port": "8080", "first": "Done", "task": "nginx"}
    checked = verify({"output": {"contains": "Done"}, "capture": capture}, answer=ANSWER)
    assert checked.message == "Checked the agent: 1 check passed"


@pytest.mark.parametrize(
    ("capture", "told"),
    [
        ({"x": {"json": "$.port"}}, "capture x: expected to be found, got output is not JSON"),
        ({"x": {"line": 9}}, "capture x: expected to be found, got no line 9 in output, which has 5"),
        ({"output": {"line": 1}}, "capture.output: another output has this name"),
        ({"x": {"from": "stdout"}}, "capture"),
    ],
)
def test_a_part_that_can_not_be_captured_fails(capture: dict[str, object], told: str) -> None:
    assert told in str(answered(lambda: verify({"capture": capture}, answer=ANSWER)))


def test_captured_secrets_are_for_later_steps_alone() -> None:
    secret = {"extract": "fenced", "json": "$.token", "secret": True}
    result = verify({"capture": {"token": secret}}, answer=ANSWER)
    assert result.secret_outputs == {"token": "sesame-opens-it"}
    short = secret | {"json": "$.short"}
    hidden = verify({"output": {"contains": "secret"}, "capture": {"token": short}}, answer=ANSWER)
    assert "x7" not in hidden.error
    assert hidden.outputs["output"].startswith("[withheld: ")
    assert "x7" not in repr(hidden.whole)


def test_verify_without_the_agent_is_refused_with_the_option_of_call() -> None:
    assert (
        "`ext-shell call` sends the text of --agent-output" in assert_agent({"phase": "verify"}, {"output": "x"}).error
    )


@pytest.mark.parametrize("context", [{"phase": "setup"}, {"phase": "cleanup"}, {"phase": ""}, {}])
def test_without_an_agent_it_says_where_it_belongs(context: dict[str, object]) -> None:
    result = assert_agent(context, {"output": {"contains": "x"}})
    assert not result.success
    assert f"phase: {context.get('phase') or 'unknown'}" in result.error
    assert "make this a step of verify" in result.error


@pytest.mark.parametrize("args", [{}, {"output": {}}, {"output": {"contains": []}}, {"outptu": "x"}, {"output": None}])
def test_a_check_of_nothing_is_refused(args: dict[str, object]) -> None:
    assert refusal("ext_shell", "assert-agent", args, answered(lambda: verify(args)))


def test_an_answer_made_to_hang_a_pattern_is_a_failure() -> None:
    result = verify({"output": {"matches": "^(a+)+$"}}, answer="a" * 60 + "b")
    assert "took longer than 2 s" in result.error


def test_checks_end_with_the_time_of_the_call() -> None:
    agent = {"prompt": PROMPT, "output": "a" * 60 + "b"}
    context: dict[str, object] = {"phase": "verify", "agent": agent, "timeout": "200ms"}
    result = assert_agent(context, {"output": {"matches": "^(a+)+$"}})
    assert "the time of the operation was up" in result.error


HELLO = hashlib.sha256(b"hello\n").hexdigest()


@pytest.fixture(autouse=True)
def _entries(workdir: Path) -> None:
    (workdir / "file").write_text("hello\n")
    (workdir / "file").chmod(0o644)
    noon = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC).timestamp()
    os.utime(workdir / "file", (noon, noon))
    (workdir / "data.json").write_text('{"items": [{"id": 9007199254740993, "ok": true}]}')
    (workdir / "binary").write_bytes(b"ab\xff")
    (workdir / "dir").mkdir()
    (workdir / "link").symlink_to("file")
    (workdir / "broken").symlink_to("nothing")
    (workdir / "out").symlink_to("../outside/secret")
    os.mkfifo(workdir / "fifo")


HOLD: list[tuple[dict[str, object], int]] = [
    ({"path": "file"}, 1),
    ({"path": "dir"}, 1),
    ({"path": "nothing", "exists": False}, 1),
    ({"path": "dir/nothing/at/all", "exists": False}, 1),
    ({"path": "file/nothing", "exists": False}, 1),
    ({"path": "file", "type": "file", "mode": "644", "size": 6, "sha256": HELLO.upper()}, 5),
    ({"path": "file", "content": "hello"}, 2),
    ({"path": "file", "content": {"matches": "^h", "lineCount": 1, "notContains": ["x", "y"]}}, 5),
    ({"path": "file", "size": {"gt": 5, "lt": 7}}, 3),
    ({"path": "dir", "type": "directory"}, 2),
    ({"path": "link", "type": "symlink"}, 2),
    ({"path": "link", "type": "file", "content": "hello"}, 3),
    ({"path": "broken", "type": "symlink"}, 2),
    ({"path": "fifo"}, 1),
    ({"path": "data.json", "content": {"json": [{"path": "$.items[0].id", "equals": 9007199254740993}]}}, 2),
    ({"path": "data.json", "content": {"jsonContains": {"items": [{"ok": True}]}}}, 2),
    ({"path": "file", "owner": os.getuid(), "group": str(os.getgid())}, 3),
    ({"path": "file", "owner": pwd.getpwuid(os.getuid()).pw_name, "group": os.getgid()}, 3),
    ({"path": "file", "mtime": "2026-01-31T13:00:00.25+01:00"}, 2),
    ({"path": "file", "mtime": {"after": "2026-01-31T12:00:00Z", "before": "2026-01-31T12:00:01Z"}}, 3),
    ({"path": "dir", "mtime": {"age": {"lt": "1h"}}}, 2),
    ({"path": "link", "target": "file"}, 2),
    ({"path": "broken", "type": "symlink", "target": {"startsWith": "no"}}, 3),
    ({"path": "link", "target": "file", "content": "hello"}, 3),
    ({"glob": "*.json"}, 2),
    ({"glob": "**/[fd]*", "count": 4}, 5),
    ({"glob": "f*e", "content": "hello"}, 3),
    ({"glob": "*.txt", "exists": False}, 1),
    ({"glob": "*.txt", "count": 0}, 1),
]

FAIL: list[tuple[dict[str, object], str]] = [
    ({"path": "nothing"}, "nothing: expected to exist, got nothing"),
    ({"path": "broken"}, 'broken: expected to exist, got a broken symlink to "nothing"'),
    ({"path": "file", "exists": False}, "file: expected not to exist, got a file"),
    ({"path": "broken", "exists": False}, "broken: expected not to exist, got a symlink"),
    ({"path": "file", "type": "directory"}, "file: expected to be a directory, got a file"),
    ({"path": "link", "type": "directory"}, "link: expected to be a directory, got a file"),
    ({"path": "file", "type": "symlink"}, "file: expected to be a symlink, got a file"),
    ({"path": "file", "mode": "0600"}, "mode of file: expected to be 0600, got 0644"),
    ({"path": "file", "size": 7}, "size of file: expected to equal 7, got 6"),
    ({"path": "file", "sha256": "0" * 64}, f"SHA-256 of file:\n  expected to be {'0' * 64}\n  got            {HELLO}"),
    ({"path": "file", "content": "bye"}, 'file: expected to equal "bye", got "hello"'),
    ({"path": "binary", "content": "ab"}, "binary: expected to be UTF-8, got byte 0xff at offset 2"),
    ({"path": "dir", "content": "x"}, "dir: expected a regular file, got a directory"),
    ({"path": "fifo", "content": "x"}, "fifo: expected a regular file, got a fifo"),
    ({"path": "fifo", "sha256": HELLO}, "fifo: expected a regular file, got a fifo"),
    ({"path": "file", "content": "x", "maxSize": 1}, "file: expected at most 1 bytes, got more"),
    ({"path": "out", "content": "secret"}, "not a path inside the working directory"),
    ({"path": "../outside/secret"}, "not a path inside the working directory"),
    (
        {"path": "data.json", "content": {"json": [{"path": "$.items[0].id", "equals": "9007199254740993"}]}},
        'data.json at $.items[0].id: expected to equal "9007199254740993"\n  got 9007199254740993 (integer)',
    ),
    ({"path": "file", "owner": "nobody-here"}, "; this machine has no user 'nobody-here'"),
    ({"path": "file", "group": "nobody-here"}, "; this machine has no group 'nobody-here'"),
    ({"path": "file", "group": os.getgid() + 1}, f"group of file: expected to be {os.getgid() + 1}, got "),
    (
        {"path": "file", "mtime": {"after": "2026-01-31T12:00:00.25Z"}},
        "modification time of file: expected to be after 2026-01-31T12:00:00.25Z, got 2026-01-31T12:00:00.250000Z",
    ),
    ({"path": "file", "mtime": "2026-01-31T12:00:00Z"}, "expected to equal 2026-01-31T12:00:00Z, got 2026-01-31T12:00"),
    ({"path": "file", "mtime": {"age": {"lt": "1s"}}}, "time since the modification time of file: expected to be less"),
    ({"path": "link", "target": "other"}, 'target of link: expected to equal "other", got "file"'),
    ({"path": "file", "target": "file"}, "file: expected to be a symlink, got a file"),
    ({"glob": "*.txt"}, "*.txt: expected to match at least one path, got none"),
    ({"glob": "*.txt", "count": {"gte": 1}}, "number of paths that match *.txt: expected to be at least 1, got 0"),
    ({"glob": "fi*", "exists": False}, "fi*: expected to match nothing, got fifo, file"),
    ({"glob": "fil*", "content": "bye"}, 'file: expected to equal "bye", got "hello"'),
    ({"glob": "../outside/*"}, "not a path inside the working directory"),
]


@pytest.mark.parametrize(("args", "checks"), HOLD)
def test_what_is_so_passes_with_the_number_of_checks(host: FileHost, args: dict[str, object], checks: int) -> None:
    result = host.ok("assert-file", **args)
    assert (
        result.message
        == f"Checked {args.get('path', args.get('glob'))}: {checks} check{'s' if checks > 1 else ''} passed"
    )


@pytest.mark.parametrize(("args", "told"), FAIL)
def test_what_is_not_so_fails_and_says_expected_and_got(host: FileHost, args: dict[str, object], told: str) -> None:
    assert told in host.failed("assert-file", **args).error


def test_all_that_is_wrong_is_told_at_once(host: FileHost) -> None:
    failure = host.failed("assert-file", path="file", type="directory", size=1, content="x", mode="0644")
    assert failure.message == "Checked file: 3 of 5 checks failed"
    assert failure.error.count("expected") == 3


def test_facts_are_outputs(host: FileHost, workdir: Path) -> None:
    assert host.ok("assert-file", path="file", sha256=HELLO).outputs == {
        "path": str(workdir / "file"),
        "exists": "true",
        "type": "file",
        "size": "6",
        "mode": "0644",
        "sha256": HELLO,
        "attempts": "1",
        "done": "true",
    }
    assert host.failed("assert-file", path="nothing").outputs["exists"] == "false"


def test_the_output_type_is_that_of_the_entry_while_the_target_of_a_link_is_checked(host: FileHost) -> None:
    outputs = host.ok("assert-file", path="link", type="file", size=6).outputs
    assert (outputs["type"], outputs["size"]) == ("symlink", "6")
    assert host.ok("assert-file", path="link", type="symlink").outputs["type"] == "symlink"


def test_owner_time_and_target_are_outputs_if_they_are_checked(host: FileHost, workdir: Path) -> None:
    (workdir / "link").unlink()
    (workdir / "link").symlink_to("file")
    os.utime(workdir / "link", ns=(0, 1_500), follow_symlinks=False)
    args = {"owner": os.getuid(), "group": os.getgid(), "mtime": {"before": "1971-01-01T00:00:00Z"}}
    outputs = host.ok("assert-file", path="link", target="file", **args).outputs
    assert outputs["owner"] == pwd.getpwuid(os.getuid()).pw_name
    assert outputs["mtime"] == "1970-01-01T00:00:00.000001Z"
    assert outputs["target"] == "file"
    matches = host.ok("assert-file", glob="fi*", count={"gt": 1}).outputs
    assert matches == {"matches": "fifo\nfile", "count": "2", "attempts": "1", "done": "true"}


def test_times_that_no_calendar_has_are_the_first_or_the_last() -> None:
    assert time_text(time_at(1_500)) == "1970-01-01T00:00:00.000001Z"
    assert time_text(time_at(10**30)) == "9999-12-31T00:00:00Z"
    assert time_text(time_at(-(10**30))) == "0001-01-01T00:00:00Z"


def test_a_file_that_comes_in_time_is_waited_for(
    host: FileHost, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = iter(["not yet", "ready"])

    def write_meanwhile(deadline: Deadline, seconds: float) -> bool:
        (workdir / "soon").write_text(next(texts))
        return not deadline.expired

    monkeypatch.setattr(Deadline, "wait", write_meanwhile)
    result = host.ok("assert-file", path="soon", content="ready", timeout="1h")
    assert result.outputs["attempts"] == "3"


def test_a_file_that_goes_in_time_is_waited_for(host: FileHost, workdir: Path) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(host, "assert-file", path="file", exists=False, timeout="1h")
        (workdir / "file").unlink()
        assert waiting.result().success


def test_the_timeout_ends_the_waiting_and_the_last_look_is_told(host: FileHost) -> None:
    failure = host.failed("assert-file", path="file", content="bye", timeout="1s")
    attempts = int(failure.outputs["attempts"])
    assert attempts > 1
    assert failure.error == (
        f'file: expected to equal "bye", got "hello"\nchecked {attempts} times until the timeout of 1s'
    )


def test_a_file_may_be_as_expected_in_a_later_step(host: FileHost, workdir: Path) -> None:
    wait = {"path": "file", "content": "bye", "timeout": "10ms", "onTimeout": "ok"}
    first = host.ok("assert-file", **wait)
    assert first.outputs["done"] == "false"
    assert 'last seen: file: expected to equal "bye", got "hello"' in first.message
    (workdir / "file").write_text("bye")
    assert host.ok("assert-file", **wait).outputs["done"] == "true"
    assert "`onTimeout` requires `timeout`" in host.refused("assert-file", path="file", onTimeout="ok")


@pytest.mark.parametrize("path", ["../outside/secret", "out", "fifo", "dir"])
def test_what_waiting_does_not_mend_fails_at_once(host: FileHost, path: str) -> None:
    # An hour: the test would not end if this waited.
    failure = host.failed("assert-file", path=path, content="x", timeout="1h")
    assert failure.error


def test_an_extension_that_shuts_down_does_not_wait_on(host: FileHost) -> None:
    call = host.prepare("assert-file", path="nothing", timeout="1h")
    call.context.deadline.stopped.set()
    result = host.perform(call)
    assert (result.success, result.outputs["attempts"]) == (False, "1")


def test_a_file_that_goes_while_it_is_looked_at_is_not_there(
    host: FileHost, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Workdir.stat

    def look_and_remove(looked: Workdir, text: str, *, follow: bool = True) -> os.stat_result:
        found = look(looked, text, follow=follow)
        (workdir / "file").unlink()
        return found

    monkeypatch.setattr(Workdir, "stat", look_and_remove)
    failure = host.failed("assert-file", path="file", content="hello")
    assert failure.error == "file: expected to exist, got nothing"


@pytest.mark.parametrize("content", ["x", {"notContains": "horse"}, {"matches": "x"}, {"jsonEquals": 1}])
def test_no_secret_not_even_half_of_one_is_told(host: FileHost, workdir: Path, content: object) -> None:
    (workdir / "file").write_text("begin " * 24 + "correct horse battery staple" + " end" * 100)
    told = host.failed("assert-file", path="file", content=content).error
    assert not any(word in told.replace('"horse"', "") for word in ("correct", "horse", "battery", "staple"))


def test_the_timeout_of_the_host_counts_too(host: FileHost) -> None:
    host.more_context = {"timeout": "200ms"}
    host.failed("assert-file", path="nothing", timeout="1h").error.startswith("nothing: expected to exist")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"path": "a", "exists": False, "size": 1, "mode": "0644"}, "excludes mode and size"),
        ({"path": "a", "content": {}}, "content: this checks nothing"),
        ({"path": "a", "content": {"contains": []}}, "content.contains"),
        ({"path": "a", "sha256": "abc"}, "sha256"),
        ({"path": "a", "mode": "999"}, "mode"),
        ({"path": "a", "size": []}, "size"),
        ({"path": "a", "timeout": "-1s"}, "timeout"),
        ({"path": "a", "timeout": 5}, "timeout"),
        ({"path": "a", "typ": "file"}, "did you mean 'type'?"),
        ({"path": "a", "glob": "*"}, "expected one of path and glob, found both"),
        ({"path": "a", "count": 1}, "`count` requires `glob` and excludes path"),
        ({"path": "a", "type": "file", "target": "b"}, "`target` is that of a symlink, found `type: file`"),
        ({"path": "a", "mtime": "yesterday"}, "mtime: expected a time with its zone, such as 2026-01-31T12:00:00Z"),
        ({"path": "a", "mtime": {"after": "2026-01-31T12:00:00"}}, "after: expected a time with its zone"),
        ({"path": "a", "mtime": {}}, "mtime: this checks nothing"),
        ({"path": ""}, "path"),
    ],
)
def test_arguments_that_check_nothing_or_make_no_sense_are_refused(
    host: FileHost, args: dict[str, object], told: str
) -> None:
    assert told in host.refused("assert-file", **args)
