"""`ext-host agent --protocol kaiak`: proposals of a command's changes, approvals, sessions, limits and codes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from random import Random

import pytest

from ext_recorder.verify.session import VerifyOptions
from ext_recorder.verify.verify import verify
from tests.peers.conversations import answers, inside
from tests.support.host import PATIENCE_S, MessageHost
from tests.support.kaiak import AGENT, Client, connection, on_socket, on_stdio
from tests.support.paths import ROOT
from tests.support.process_tracker import ProcessTracker

THREE_CHANGES = """
pwd; cat
printf '%s\\n' '{"kaiak/stream/progress": {"percentage": 50, "phase": "editing"}}'
printf '%s\\n' '{"kaiak/stream/tool_call": {"tool_name": "read_file", "parameters": {"file_path": "'"$PWD"'/a"}}}'
printf '%s\\n' '{"kaiak/stream/progress": {"percentage": "half"}}'
echo new > a; echo new > c; rm b; echo new > log.tmp; printf end
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a").write_text("old\n")
    (folder / "b").write_text("old\n")
    return folder


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_changes_are_proposed_and_only_those_that_are_approved_are_written(workspace: Path) -> None:
    with on_stdio(THREE_CHANGES) as client:
        client.configure(workspace, workspace={"exclude_patterns": ["*.tmp"]})
        id = client.fix(incidents=[{"id": "1", "message": f"old() in {workspace}/a"}])
        asked = client.asked()
        assert files(workspace) == {"a": "old\n", "b": "old\n"}
        assert inside(asked, "params", "content")["options"] == ["approve", "deny"]
        assert client.reply(asked, "deny")["result"]
        assert client.reply(client.asked(), "approve")["result"]
        assert files(workspace) == {"a": "old\n", "b": "old\n"} or files(workspace)["a"] == "new\n"
        assert client.reply(client.asked(), "edit", content="edited\n")["result"]
        result = client.result(id)
        assert (result["session_id"], result["status"], result["incident_count"]) == ("s", "completed", 1)

        assert files(workspace) == {"a": "new\n", "b": "old\n", "c": "edited\n"}
        proposals = client.streamed("file_modification")
        assert [(each["file_path"], each["operation"], each["risk_level"]) for each in proposals] == [
            ("b", "delete", "high"), ("a", "modify", "low"), ("c", "create", "medium"),
        ]  # fmt: skip
        assert str(proposals[1]["diff"]).endswith("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n")
        text = "".join(str(each["text"]) for each in client.streamed("ai_response"))
        assert text.startswith(f"{workspace}\nFix these incidents")  # the paths of the copy are not shown
        assert f"1. 1: old() in {workspace}/a" in text
        assert text.endswith('{"kaiak/stream/progress": {"percentage": "half"}}\nend')
        assert [each["partial"] for each in client.streamed("ai_response")][-1] is False
        assert {"percentage": 50, "phase": "editing"} in client.streamed("progress")
        own, denied, *written = client.streamed("tool_call")
        assert own["parameters"] == {"file_path": f"{workspace}/a"}
        assert (denied["status"], [each["status"] for each in written]) == ("failed", ["completed", "completed"])
        assert client.streamed("system")[-1]["message"] == "3 changes: 2 applied, 1 denied"
        params = [inside(message) for message in client.stream.received if "method" in message]
        assert [each["message_id"] for each in params] == [f"msg-{number + 1}" for number in range(len(params))]
        assert {each["request_id"] for each in params} == {result["request_id"]}
        deleted = client.result(client.command("delete_session", session_id="s"))
        assert inside(deleted, "cleanup_summary") == {
            "session_removed": True, "messages_cleaned": len(params), "temp_files_removed": 0, "errors": [],
        }  # fmt: skip


def test_the_command_gets_prompt_request_and_a_folder_that_lasts_as_long_as_the_session(workspace: Path) -> None:
    script = """
    cat > stdin; printf %s "$EXT_HOST_PROMPT" | cmp - stdin && cmp "$EXT_HOST_PROMPT_FILE" stdin || exit 1
    cat "$EXT_HOST_REQUEST_FILE" > request; echo "$EXT_HOST_SESSION $EXT_HOST_MAX_TURNS" > about
    echo x >> "$EXT_HOST_SESSION_FOLDER/state"; wc -l < "$EXT_HOST_SESSION_FOLDER/state"
    """
    with on_stdio(script) as client:
        client.configure(
            workspace, session={"max_turns": 2}, model={"model": "m"},
            permissions={"tool_permissions": {"write_file": "allow"}},
        )  # fmt: skip
        for number in "12":
            assert client.result(client.fix(session="me", migration_context={"hint": "a"}))["status"] == "completed"
            assert "".join(str(each["text"]) for each in client.streamed("ai_response")).split()[-1] == number
        assert client.streamed("user_interaction") == []
        assert (workspace / "about").read_text() == "me 2\n"
        request = json.loads((workspace / "request").read_text())
        assert request["configuration"]["model"] == {"model": "m"}
        assert request["migration_context"] == {"hint": "a"}
        assert request["configuration"]["workspace"]["working_dir"] != str(workspace)
        assert client.error(client.fix(session="me"))[0] == -32015  # max_turns
        deleted = client.result(client.command("delete_session", session_id="me"))
        assert inside(deleted, "cleanup_summary")["temp_files_removed"] == 1


@pytest.mark.parametrize(
    ("permission", "options", "expected", "asks"),
    [
        ("deny", {}, "old\n", 0),
        ("allow", {}, "new\n", 0),
        ("approve", {"auto_apply_safe_fixes": True}, "new\n", 0),
        ("approve", {}, "new\n", 1),
    ],
)
def test_permissions_decide_who_approves(
    permission: str, options: dict[str, object], expected: str, asks: int, workspace: Path
) -> None:
    with on_stdio("echo new > a; echo new > b") as client:
        client.configure(workspace, permissions={"tool_permissions": {"write_file": permission}})
        id = client.fix(options=options)
        if asks:
            client.reply(client.asked(), "always_allow")  # the second change as well
        assert client.result(id)["status"] == "completed"
        assert len(client.streamed("user_interaction")) == asks
    assert files(workspace) == {"a": expected, "b": expected}


@pytest.mark.parametrize(("default", "expected"), [("deny", "old\n"), ("approve", "new\n")])
def test_a_question_without_a_response_gets_the_default_one(default: str, expected: str, workspace: Path) -> None:
    with on_stdio("echo new > a", f"--default-response={default}", "--approval-timeout=10ms") as client:
        client.configure(workspace)
        asked_for = client.fix()
        asked = client.asked()
        assert inside(asked, "params", "content")["default_response"] == default
        assert client.result(asked_for)["status"] == "completed"
        assert inside(client.reply(asked, "approve"), "error")["code"] == -32010
    assert files(workspace)["a"] == expected


def test_input_from_a_pipe_is_processed_to_its_end(workspace: Path) -> None:
    configuration = {"workspace": {"working_dir": str(workspace)}}
    arguments = {"configure": {"configuration": configuration}, "generate_fix": {"incidents": [{"id": "1"}]}}
    data = b""
    for id, (name, argument) in enumerate(arguments.items()):
        params = {"command": f"kaiak/{name}", "arguments": [argument]}
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": "workspace/executeCommand", "params": params})
        data += f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
    command = [*AGENT, "--default-response=approve", "--", "sh", "-c", "sleep 0.2; echo new > a"]
    done = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'"status":"completed"' in done.stdout.rsplit(b"Content-Length", 1)[1].replace(b" ", b"")
    assert files(workspace)["a"] == "new\n"


def test_what_fails_is_reported_and_changes_nothing(workspace: Path, tmp_path: Path) -> None:
    with on_stdio("echo new > a; echo broken >&2; exit 3") as client:
        client.configure(workspace)
        assert client.result(client.fix())["status"] == "failed"
        (error,) = client.streamed("error")
        assert error["message"] == "sh failed: exit code 3; its changes are discarded"
        assert error["details"] == "broken"
    done = subprocess.run([*AGENT, "--", "no-such-program"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[0][:52]) == (
        2,
        "ext-host: COMMAND: command not found: 'no-such-progr",
    )
    with on_stdio("", folder=tmp_path) as client:
        for name in ("session_id", "incidents"):
            assert client.error(client.command("generate_fix", **{name: 7}))[0] == -32602
        assert client.error(client.fix())[0] == -32014  # not configured
        client.configure(workspace)
        for path in workspace.iterdir():
            path.unlink()
        workspace.rmdir()
        assert client.error(client.fix())[0] == -32002
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_is_gone_or_changes_too_much_is_an_error(workspace: Path, tmp_path: Path) -> None:
    with on_stdio("i=0; while [ $i -lt 501 ]; do echo > f$i; i=$((i + 1)); done") as client:
        client.configure(workspace)
        assert client.error(client.fix())[0] == -32015
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with MessageHost([*AGENT, "--", str(program)], "content-length") as host:
        client = Client(host)
        client.configure(workspace)
        program.unlink()
        assert client.error(client.fix())[0] == -32006
        assert host.end() == 0


def test_names_of_files_of_the_workspace_lead_to_the_copy(tmp_path: Path) -> None:
    workspace = tmp_path / "my project"
    workspace.mkdir()
    paths = [f"{workspace}/a", f"in {workspace}.", (workspace / "a").as_uri(), f"{workspace}-2/a", str(tmp_path)]
    with on_stdio("cat > prompt; pwd > where") as client:
        client.configure(workspace, permissions={"tool_permissions": {"write_file": "allow"}})
        incidents = [{"id": str(number), "message": path} for number, path in enumerate(paths)]
        assert client.result(client.fix(incidents=incidents))["status"] == "completed"
    copy = Path((workspace / "where").read_text().strip())
    assert (workspace / "prompt").read_text().splitlines()[2:] == [
        f"1. 0: {copy}/a", f"2. 1: in {copy}.", f"3. 2: {copy.as_uri()}/a", f"4. 3: {paths[3]}", f"5. 4: {paths[4]}",
    ]  # fmt: skip


def test_a_command_that_takes_too_long_is_ended_with_all_its_processes(workspace: Path, tmp_path: Path) -> None:
    tracker = ProcessTracker(tmp_path / "pipe")
    with on_stdio(f"{tracker.hold}; echo new > a; sleep 600 & sleep 600") as client:
        client.configure(workspace)
        code, data = client.error(client.fix(options={"max_processing_time": 0.3}))
        assert (code, data["session_id"], data["max_processing_time"]) == (-32013, "s", 0.3)
        assert not tracker.left()
        assert client.result(client.command("delete_session", session_id="s"))["status"] == "deleted"
    assert files(workspace)["a"] == "old\n"
    tracker.close()


def test_a_file_that_the_user_changes_during_the_approval_is_kept(workspace: Path) -> None:
    with on_stdio("echo new > a") as client:
        client.configure(workspace)
        id = client.fix()
        asked = client.asked()
        (workspace / "a").write_text("user\n")
        client.reply(asked, "approve")
        code, data = client.error(id)
        assert code == -32012
        assert data["files"] == [
            {"file_path": "a", "details": "the file has changed in the workspace since it was copied; not written"}
        ]
        assert client.streamed("error")[-1]["error_code"] == "FILE_MODIFICATION_FAILED"
    assert files(workspace)["a"] == "user\n"


def test_a_session_in_use_is_locked_and_can_be_cancelled_or_deleted_by_force(workspace: Path) -> None:
    with on_stdio("echo new > a; echo started; sleep 600") as client:
        client.configure(workspace)
        first = client.fix()
        started = client.stream.until(lambda message: "started" in str(message))[-1]
        code, data = client.error(client.fix())
        assert (code, data["session_id"], str(data["in_use_since"])[-1]) == (-32016, "s", "Z")
        assert client.error(client.command("delete_session", session_id="s"))[0] == -32016
        assert client.error(client.say("s", {"request_id": "other"}, "control_signal"))[0] == -32007
        assert client.error(client.say("s", {"signal": "pause"}, "control_signal"))[0] == -32011
        assert client.error(client.say("s", {}, "user_input"))[0] == -32011
        request = inside(started)["request_id"]
        assert client.result(client.say("s", {"request_id": request}, "control_signal"))["success"] is True
        assert client.result(first)["status"] == "cancelled"
        assert client.error(client.say("s", {"request_id": request}, "control_signal"))[0] == -32008
        assert client.error(client.say("s", {}, "control_signal"))[0] == -32005

        second = client.fix()
        client.stream.until(lambda message: "started" in str(message))
        client.stream.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": second}})
        assert client.result(second)["status"] == "cancelled"

        third = client.fix()
        client.stream.until(lambda message: "started" in str(message))
        delete = client.command("delete_session", session_id="s", force=True)
        assert client.error(third)[0] == -32004
        assert client.result(delete)["status"] == "deleted"
        assert client.error(client.command("delete_session", session_id="s"))[0] == -32004
        assert client.error(client.say("s", {}))[0] == -32004
        assert client.error(client.say("unknown", {}))[0] == -32003
    assert files(workspace)["a"] == "old\n"


def test_responses_to_questions_are_checked(workspace: Path) -> None:
    with on_stdio("rm a; echo new > b", "--max-running=1") as client:
        client.configure(workspace)
        id = client.fix()
        asked = client.asked()
        assert inside(client.reply(asked, "maybe"), "error")["code"] == -32011
        assert inside(client.reply(asked, "edit", content="x"), "error")["code"] == -32011  # it is deleted
        assert client.error(client.say("s", {"request_id": "other", "action": "deny"}))[0] == -32009
        assert client.error(client.fix(session="other"))[0] == -32015
        client.reply(asked, "deny")
        assert inside(client.reply(asked, "approve"), "error")["code"] == -32010
        second = client.asked()
        assert inside(client.reply(second, "edit"), "error")["code"] == -32011  # without content
        client.reply(second, "deny")
        assert client.result(id)["status"] == "completed"
    assert files(workspace) == {"a": "old\n", "b": "old\n"}


def test_a_configuration_is_checked_merged_and_reset(workspace: Path) -> None:
    with on_stdio("") as client:
        data = client.error(client.command("configure", configuration={"workspace": {"working_dir": "/no/such"}}))
        assert data == (-32014, {"field": "workspace.working_dir", "details": "Directory '/no/such' does not exist"})
        wrong = {"permissions": {"tool_permissions": {"write_file": "ask"}}}
        code, data_ = client.error(client.command("configure", configuration=wrong))
        assert (code, data_["field"]) == (-32014, "permissions.tool_permissions[...]")
        done = client.configure(
            workspace, model={"model": "m"}, other=1, session={"retry_config": {"n": 1}, "odd": 1},
            permissions={"tool_permissions": {"shell_command": "deny"}},
        )  # fmt: skip
        assert [str(each).split(" has no effect", 1)[0] for each in done["warnings"]] == [  # type: ignore[attr-defined]
            "other", "session.odd", "permissions.tool_permissions.shell_command", "session.retry_config",
        ]  # fmt: skip
        again = inside(client.configure(workspace, model={"temperature": 0.5}), "configuration_applied")
        assert again["model"] == {"model": "m", "temperature": 0.5}
        reset = client.result(client.command("configure", configuration={}, reset_existing=True))
        assert inside(reset, "configuration_applied")["model"] == {}


def test_the_handshake_of_lsp_is_accepted(workspace: Path) -> None:
    with on_stdio("") as client:
        result = client.result(client.ask("initialize", {"capabilities": {}}))
        assert inside(result, "capabilities", "executeCommandProvider")["commands"] == [
            "kaiak/configure", "kaiak/generate_fix", "kaiak/delete_session",
        ]  # fmt: skip
        client.stream.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        client.configure(workspace)
        assert client.response(client.ask("shutdown", None))["result"] is None
        assert client.error(client.ask("shutdown", None))[0] == -32600
        client.stream.send({"jsonrpc": "2.0", "method": "exit"})
        assert client.stream.rest() == []


def test_clients_of_a_socket_share_sessions_and_one_may_respond_for_another(workspace: Path, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with on_socket("echo new >> a", path) as server:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        other = subprocess.run([*AGENT, f"--socket={path}", "--", "true"], capture_output=True, text=True, check=False)
        assert (other.returncode, "another server listens there" in other.stderr) == (2, True)
        with connection(path) as one, connection(path) as two:
            one.configure(workspace)
            id = one.fix()
            asked = one.asked()
            with connection(path) as three:  # gets the last configuration
                assert three.error(three.fix())[0] == -32016
                assert three.reply(asked, "approve")["result"]
            assert one.result(id)["status"] == "completed"
            two.configure(workspace)
            two.fix(session="left")
            two.asked()
        with connection(path) as client:  # the request of a client that has gone is cancelled
            delete = client.command("delete_session", session_id="left", force=True)
            assert client.result(delete)["status"] == "deleted"
        assert files(workspace)["a"] == "old\nnew\n"
        server.kill()
        server.wait(PATIENCE_S)
    with on_socket("", path):  # replaces the socket of the server that was killed
        assert path.is_socket()


def test_a_path_that_is_no_socket_is_kept_and_a_long_one_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for path, reason in ((tmp_path / "file", "Address already in use"), (tmp_path / ("x" * 120), "use a shorter path")):
        done = subprocess.run([*AGENT, f"--socket={path}", "--", "true"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n"), reason in done.stderr) == (2, 1, True)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_killed_server_leaves_no_process(workspace: Path, tmp_path: Path) -> None:
    tracker = ProcessTracker(tmp_path / "pipe")
    with on_stdio("true", folder=tmp_path):
        pass
    path = tmp_path / "socket"
    script = f"{tracker.hold}; (trap '' TERM; sleep 600) & echo ready >&9; sleep 600"
    with on_socket(script, path) as server, connection(path) as client:
        client.configure(workspace)
        client.fix()
        assert tracker.line() == "ready"
        server.kill()
        server.wait(PATIENCE_S)
        assert not tracker.left()
    tracker.close()


def test_the_later_dialect_works_as_kaiaks_command_line_uses_it(workspace: Path, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    config = {"workspace": str(workspace), "override_base_config": {"tool_permissions": {"delete_file": "never_allow"}}}
    with on_socket("echo new > a; rm b; echo done", path, "--dialect=kaiak-head"):
        with connection(path, head=True) as client:
            id = client.command(
                "generate_fix", incidents=[{"id": "1", "uri": "a", "message": "m"}], agent_config=config
            )
            asked = inside(client.asked())
            payload = inside(asked, "payload")
            with connection(path, head=True) as other:  # `send_user_message`: a notification, and `message_type`
                params = {"session_id": asked["session_id"], "message_type": "tool_confirmation",
                          "payload": {"request_id": payload["id"], "action": "allow_once"}}  # fmt: skip
                other.stream.send({"jsonrpc": "2.0", "method": "kaiak/client/user_message", "params": params})
                result = client.result(id)
            assert result.keys() == {"session_id", "request_id", "created_at"}
            assert files(workspace) == {"a": "new\n", "b": "old\n"}
            assert client.streamed("ai_message")[-1] == {"role": "Assistant", "text": "done\n"}
            assert client.streamed("tool_call")[0]["tool_name"] == "write_file"
            assert client.streamed("tool_response") == [{"id": payload["id"], "is_error": False, "content_count": 1}]
            refused = client.result(client.say(asked["session_id"], {"request_id": "x", "action": "deny"}))
            assert refused == {"success": False, "message": "Interaction not found"}
            assert client.error(client.fix(session="unknown", agent_config=config))[0] == -32003
            assert client.error(client.fix(session="unknown"))[0] == -32602
            assert client.error(client.ask("workspace/executeCommand", {}))[0] == -32601
        with connection(path, head=True) as client:  # `kaiak delete-session` sends `inner`
            for removed in (True, False):
                id = client.ask("kaiak/delete_session", {"inner": {"session_id": asked["session_id"]}})
                assert inside(client.result(id), "cleanup_results")["session_removed"] is removed


def test_a_client_that_closes_its_connection_ends_its_request(workspace: Path, tmp_path: Path) -> None:
    tracker = ProcessTracker(tmp_path / "pipe")
    path = tmp_path / "socket"
    with on_socket(f"{tracker.hold}; echo ready >&9; sleep 600", path):
        with connection(path) as client:
            client.configure(workspace)
            client.fix()
            assert tracker.line() == "ready"
        assert not tracker.left()
    tracker.close()


def test_the_temporary_files_of_a_killed_server_are_removed_by_the_next_one(workspace: Path, tmp_path: Path) -> None:
    path, folder = tmp_path / "socket", tmp_path / "tmp"
    folder.mkdir()
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(folder)
    try:
        with on_socket("echo new > a", path) as server, connection(path) as client:
            client.configure(workspace)
            client.fix()
            client.asked()
            server.kill()
            server.wait(PATIENCE_S)
        (left,) = folder.iterdir()
        with on_socket("", path):
            assert left not in set(folder.iterdir())
        assert list(folder.iterdir()) == []
    finally:
        os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)


@pytest.mark.parametrize("dialect", ["kaiak", "kaiak-head"])
def test_the_recorded_requests_get_the_recorded_responses(
    dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    project = tmp_path / "project"
    shutil.copytree("docs/examples/fixing/project", project)
    command = [*AGENT, f"--dialect={dialect}", "--", "docs/examples/fixing/agent.sh"]
    options = VerifyOptions(command, bind={"workspace": str(project)}, timeout=PATIENCE_S)
    case = verify(ROOT / "cassettes" / dialect / "served.yaml", dialect, options)
    assert [problem.text for problem in case.problems] == []
    assert (project / "src/DataConverter.java").read_text() == "import java.util.Base64;\n"
    assert (project / "src/OldConverter.java").exists() == (dialect == "kaiak")


ARGUMENTS: dict[str, object] = {
    "configure": {"configuration": {"workspace": {"working_dir": "w"}, "session": {"max_turns": 3}}},
    "generate_fix": {"session_id": "s", "incidents": [{"id": "1"}], "options": {"max_processing_time": 9}},
    "delete_session": {"session_id": "s", "force": True},
}
MESSAGES: list[tuple[str, object]] = [
    ("kaiak/client/user_message", {"session_id": "s", "kind": "k", "payload": {"request_id": "r"}}),
    ("initialize", {}),
    *(("workspace/executeCommand", {"command": f"kaiak/{name}", "arguments": [ARGUMENTS[name]]}) for name in ARGUMENTS),
]


def mutated(seed: int) -> bytes:
    """A message with something wrong in it, or not."""
    random = Random(seed)
    method, params = random.choice(MESSAGES)
    text = json.dumps({"jsonrpc": "2.0", "id": seed, "method": method, "params": params})
    at = random.randrange(len(text))
    parts = ['"s"', '"1"', "3", "9", "true", '"w"', "[{", '"2.0"', str(seed)]
    values = ["null", "-1", "1e999", '""', "[]", "{}", '"\\ud800"', "\0", "true", "[" * 5000]
    text = random.choice([
        text[:at] + text[at + random.randrange(9) :],
        text[:at] + chr(random.randrange(32, 1000)) + text[at + 1 :],
        text.replace(random.choice(parts), random.choice(values)),
        text + text[at:],
        f"[{text}]",
    ])  # fmt: skip
    body = text.encode("utf-8", "surrogatepass")
    length = random.choice([str(len(body))] * 20 + ["x", "-1", "0"])
    return f"Content-Length: {length}\r\n\r\n".encode() + body


def test_a_mutated_message_gets_an_error_or_the_right_response(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with on_stdio("", folder=tmp_path) as client:
        for seed in range(300):
            client.stream.write(mutated(seed))
            if seed % 10 == 9:
                client.stream.send({"jsonrpc": "2.0", "id": f"probe {seed}", "method": "no/such"})
                (*_, last) = client.stream.until(answers(f"probe {seed}"))
                assert inside(last, "error")["code"] == -32601
        assert {message["jsonrpc"] for message in client.stream.received} == {"2.0"}
