"""Lines that fit: what is cut, where the whole stands, and what is said when even that does not fit."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from ext_sdk import Result
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.server.line_limit import BUDGET_BYTES, ID_LIMIT_BYTES, LineLimiter, cut, id_fits, readable
from tests.support.line_limit import read

if TYPE_CHECKING:
    from collections.abc import Callable


class Files:
    """What was kept whole, by path."""

    def __init__(self, directory: str = "/tmp/ext-probe") -> None:
        self.directory = directory
        self.texts: dict[str, str] = {}

    def keep(self, name: str, text: str) -> str:
        path = f"{self.directory}/{len(self.texts)}-{name}"
        self.texts[path] = text
        return path


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def fitter(files: Files) -> LineLimiter:
    return LineLimiter(Redactor(), files.keep)


def result(line: bytes) -> dict[str, object]:
    members = read(line)["result"]
    assert isinstance(members, dict)
    return members


def outputs(line: bytes) -> dict[str, str]:
    found = result(line)["outputs"]
    assert isinstance(found, dict)
    return found


# --- Results ---


def test_a_result_that_fits_is_written_as_it_is(fitter: LineLimiter, files: Files) -> None:
    line = fitter.result(7, Result.ok("done", outputs={"a": 1, "b": True, "c": "ä"}))
    assert (
        line
        == (
            '{"jsonrpc":"2.0","id":7,"result":{"success":true,"message":"done","outputs":{"a":"1","b":"true","c":"ä"}}}\n'
        ).encode()
    )
    assert files.texts == {}


@pytest.mark.parametrize(
    ("given", "members"),
    [
        (Result.ok(), {"success": True}),
        (Result.ok("m"), {"success": True, "message": "m"}),
        (Result(success=True, message="m", error="ignored"), {"success": True, "message": "m"}),
        (Result.failed("m"), {"success": False, "message": "m", "error": "m"}),
        (Result.failed("", error="e"), {"success": False, "error": "e"}),
        (Result(success=False), {"success": False}),
        (Result.ok(secret_outputs={"token": "t"}), {"success": True}),
        (Result.ok(outputs={"empty": ""}), {"success": True, "outputs": {"empty": ""}}),
    ],
)
def test_members_without_a_value_are_left_out(fitter: LineLimiter, given: Result, members: object) -> None:
    assert result(fitter.result(1, given)) == members


def test_a_result_at_the_budget_is_whole_and_one_byte_over_it_is_cut(fitter: LineLimiter, files: Files) -> None:
    fits = BUDGET_BYTES - 200 - len('"a"') - 8 - 2 - 2 - 2  # room for the name; two empty texts; quotation marks
    assert outputs(fitter.result(1, Result.ok(outputs={"a": "x" * fits}))) == {"a": "x" * fits}
    assert set(outputs(fitter.result(1, Result.ok(outputs={"a": "x" * (fits + 1)})))) == {"a", "aFile"}
    assert list(files.texts.values()) == ["x" * (fits + 1)]


def test_short_texts_stay_whole_beside_a_long_one(fitter: LineLimiter, files: Files) -> None:
    line = fitter.result(
        1,
        Result.failed("it failed", error="e" * 1_000_000, outputs={"stdout": "o" * 1_000_000, "exitCode": 1}),
    )
    members = result(line)
    found = outputs(line)
    assert members["message"] == "it failed"
    assert found["exitCode"] == "1"
    assert files.texts == {found["errorFile"]: "e" * 1_000_000, found["stdoutFile"]: "o" * 1_000_000}
    assert len(line) > 55_000, "the room is used"
    assert abs(len(str(members["error"])) - len(found["stdout"])) < 10, "the two share it"
    assert PurePosixPath(found["stdoutFile"]).name.endswith("-stdout.txt")


def test_an_operation_may_name_the_file_itself(fitter: LineLimiter, files: Files) -> None:
    line = fitter.result(1, Result.ok(outputs={"stdout": "x" * 100_000, "stdoutFile": "/my/own"}))
    assert outputs(line)["stdoutFile"] == "/my/own"
    assert files.texts == {}


def test_so_many_outputs_that_none_has_room_are_kept_in_one_file(fitter: LineLimiter, files: Files) -> None:
    many = {f"output-{at}": "x" * 1000 for at in range(1000)}
    found = outputs(fitter.result(1, Result.ok("m", outputs=many)))
    assert set(found) == {"outputsFile"}
    assert json.loads(files.texts[found["outputsFile"]]) == many
    assert found["outputsFile"].endswith("outputs.json")


def test_a_name_that_fills_the_line_is_kept_in_the_file_too(fitter: LineLimiter, files: Files) -> None:
    found = outputs(fitter.result(1, Result.ok("m", outputs={"n" * 100_000: "value"})))
    assert json.loads(files.texts[found["outputsFile"]]) == {"n" * 100_000: "value"}


def test_long_paths_of_many_files_fit_as_well() -> None:
    fitter = LineLimiter(Redactor(), Files("/very-long-name" * 200).keep)
    line = fitter.result(1, Result.ok(outputs={f"output-{at}": "x" * 10_000 for at in range(60)}))
    assert all(text.startswith(("x", "/very-long-name")) for text in outputs(line).values())


def test_what_fits_in_no_way_is_told_as_an_error() -> None:
    line = LineLimiter(Redactor(), Files("/x" * 100_000).keep).result(1, Result.ok(outputs={"a": "x" * 100_000}))
    assert read(line)["error"] == {
        "code": -32603,
        "message": "the result does not fit on a line, even shortened",
    }


def test_a_file_that_cannot_be_written_is_told_in_its_place() -> None:
    def keep(name: str, text: str) -> str:
        raise OSError(28, "No space left on device")

    line = LineLimiter(Redactor(), keep).result(1, Result.ok(outputs={"a": "x" * 100_000}))
    assert outputs(line)["aFile"] == "(could not be written: [Errno 28] No space left on device)"


# --- Logs ---


def params(line: bytes) -> dict[str, object]:
    found = read(line)["params"]
    assert isinstance(found, dict)
    return found


def test_a_log_is_a_notification(fitter: LineLimiter) -> None:
    assert read(fitter.log("info", "m", {})) == {
        "jsonrpc": "2.0",
        "method": "log",
        "params": {"level": "info", "message": "m"},
    }
    assert params(fitter.log("warn", "m", {"a": [1, None], "b": {"c": "d"}})) == {
        "level": "warn",
        "message": "m",
        "data": {"a": [1, None], "b": {"c": "d"}},
    }


def test_data_that_is_no_json_is_written_as_text(fitter: LineLimiter) -> None:
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    when = datetime(2026, 11, 21, tzinfo=UTC)
    data = params(fitter.log("info", "m", {"when": when, "nan": float("nan"), "bytes": b"x", "deep": deep}))["data"]
    assert data == {
        "when": "2026-11-21 00:00:00+00:00",
        "nan": "nan",
        "bytes": "b'x'",
        "deep": "a list that is nested too deeply",
    }


def test_control_characters_in_a_log_are_escapes(fitter: LineLimiter) -> None:
    line = fitter.log("info", "a\x1b[2Jb\rc\0\n\td", {})
    assert json.loads(line)["params"]["message"] == "a\\u001b[2Jb\\u000dc\\u0000\n\td"


def test_a_long_log_is_cut_and_its_data_too(fitter: LineLimiter) -> None:
    found = params(fitter.log("info", "m" * 100_000, {"text": "t" * 100_000, "list": list(range(50_000)), "short": 1}))
    assert "of 100000 characters left out" in str(found["message"])
    data = found["data"]
    assert isinstance(data, dict)
    assert "of 100000 characters left out" in data["text"]
    assert data["list"].startswith("[0,1,2,3,")
    assert data["short"] == "1"


def test_so_much_data_that_none_has_room_is_counted(fitter: LineLimiter) -> None:
    found = params(fitter.log("info", "m", {f"n{at}": "x" * 100 for at in range(1000)}))
    assert found == {"level": "info", "message": "m", "data": {"cut": "1000 values that do not fit a line"}}


# --- Errors ---


def test_an_error_has_a_code_and_a_message(fitter: LineLimiter) -> None:
    assert read(fitter.error("a", RpcError(-32602, "m"))) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32602, "message": "m"},
    }


def test_a_long_error_is_cut(fitter: LineLimiter) -> None:
    error = read(fitter.error("x" * 1000, RpcError(-32602, "m" * 100_000)))["error"]
    assert isinstance(error, dict)
    assert "of 100000 characters left out" in error["message"]


@pytest.mark.parametrize("id", ["x" * ID_LIMIT_BYTES, "\0" * 200, 10**1100, "\ud800" * 200])
def test_an_id_that_is_too_long_to_come_back_is_null(fitter: LineLimiter, id: str | int) -> None:
    assert not id_fits(id)
    assert read(fitter.error(id, RpcError(-32600, "m")))["id"] is None


@pytest.mark.parametrize("id", ["x" * (ID_LIMIT_BYTES - 2), "\0" * 170, 10**1000, 1e300, None, "", 0])
def test_an_id_of_bearable_length_comes_back(fitter: LineLimiter, id: str | float | None) -> None:
    assert id_fits(id)
    assert read(fitter.error(id, RpcError(-32600, "m")))["id"] == id


# --- Secrets ---


def test_secrets_are_redacted_before_a_text_is_cut(files: Files) -> None:
    """A secret across the cut would be half of one, which nothing finds any more."""
    secret = "0123456789abcdef" * 64
    fitter = LineLimiter(Redactor({"token": secret}), files.keep)
    line = fitter.result(1, Result.failed("m", error=secret * 1000, outputs={"a": secret * 1000}))
    assert b"0123456789abcdef" not in line
    assert not any("0123456789abcdef" in text for text in files.texts.values())
    assert b"0123456789abcdef" not in fitter.log("info", secret * 1000, {"a": secret * 1000, "b": {secret: [secret]}})
    assert b"0123456789abcdef" not in fitter.error(1, RpcError(-1, secret * 1000))


@pytest.mark.parametrize("secret", ["1234", "true", "code", "message", "level", "error", "success", "outputs"])
def test_a_secret_that_is_a_word_of_the_protocol_changes_no_word_of_it(files: Files, secret: str) -> None:
    fitter = LineLimiter(Redactor({"token": secret}), files.keep)
    assert read(fitter.result(1234, Result.ok("m", outputs={"a": "b"}))) == {
        "jsonrpc": "2.0",
        "id": 1234,
        "result": {"success": True, "message": "m", "outputs": {"a": "b"}},
    }
    assert read(fitter.error("1234", RpcError(-1234, "m"))) == {
        "jsonrpc": "2.0",
        "id": "1234",
        "error": {"code": -1234, "message": "m"},
    }
    assert params(fitter.log("error", "m", {"x": "y"})) == {"level": "error", "message": "m", "data": {"x": "y"}}


def test_a_plain_answer_is_written_as_it_is(files: Files) -> None:
    fitter = LineLimiter(Redactor({"token": "string"}), files.keep)
    assert fitter.plain(1, {"type": "string"}) == b'{"jsonrpc":"2.0","id":1,"result":{"type":"string"}}\n'


# --- Cutting ---


def size(text: str) -> int:
    return len(dumps(text).encode("utf-8", "backslashreplace"))


@pytest.mark.parametrize("make", [str, lambda text: text * 10], ids=["fits", "does not"])
def test_a_text_is_cut_only_where_it_does_not_fit(make: Callable[[str], str]) -> None:
    text = make("x" * 1000)
    assert (cut(text, 1002) == text) == (len(text) == 1000)


def test_a_cut_text_has_its_beginning_its_end_and_a_note(fitter: LineLimiter) -> None:
    text = "".join(f"line {at}\n" for at in range(1000))
    shorter = cut(text, 300)
    head, note, tail = shorter.rsplit("\n[", 1)[0], shorter.split("\n[")[1].split("]\n")[0], shorter.split("]\n", 1)[1]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) > len(tail) > 50
    assert note == f"… {len(text) - len(head) - len(tail)} of {len(text)} characters left out …"


@pytest.mark.parametrize("text", ["\0" * 5000, "x" * 4000 + "\0" * 1000, "\0" * 1000 + "x" * 4000, "😀" * 3000])
@pytest.mark.parametrize("limit", [70, 200, 1000, 3999])
def test_a_cut_text_fits_whatever_its_characters_cost(text: str, limit: int) -> None:
    assert size(cut(text, limit)) <= limit
    assert size(cut(text, limit)) > limit / 3, "room is used"


@pytest.mark.parametrize("limit", [-1, 0, 2, 10, 40])
def test_where_there_is_no_room_at_all_only_the_length_is_told(limit: int) -> None:
    assert cut("x" * 500, limit) == "[… 500 characters]"


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (
            {"success": True, "message": "read", "outputs": {"a": "1", "b": "x\ny\n", "c": ""}},
            "read\na: 1\nb:\nx\ny\nc: ",
        ),
        ({"success": True}, "done"),
        ({"success": False}, "failed"),
        ({"success": False, "message": "late", "error": "late"}, "late"),
        (
            {"success": False, "message": "1 check failed", "error": "expected 1, got 2"},
            "1 check failed\nexpected 1, got 2",
        ),
        ({"success": False, "message": "web: timed out", "error": "timed out\nsee log"}, "web: timed out\nsee log"),
        ({"success": False, "message": "no file", "error": "no file: a.txt\ncheck it"}, "no file: a.txt\ncheck it"),
    ],
)
def test_a_result_can_be_read_without_repetitions(members: dict[str, object], text: str) -> None:
    assert readable(members) == text
