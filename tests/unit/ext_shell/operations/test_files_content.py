"""`write-file`."""

from __future__ import annotations

import hashlib
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ext_sdk.core.wire.errors import RpcError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_shell_files import FileHost


def test_text_is_written_in_utf8(host: FileHost, workdir: Path) -> None:
    result = host.ok("write-file", path="a/b.txt", content="ä\n😀")
    assert (workdir / "a" / "b.txt").read_bytes() == "ä\n😀".encode()
    assert result.message == "Wrote 7 bytes to a/b.txt"
    assert result.outputs == {
        "path": str(workdir / "a" / "b.txt"),
        "size": "7",
        "sha256": hashlib.sha256("ä\n😀".encode()).hexdigest(),
    }


def test_bytes_are_written_from_base64(host: FileHost, workdir: Path) -> None:
    host.ok("write-file", path="a", base64="AAEC\n/w==")
    assert (workdir / "a").read_bytes() == b"\0\1\2\xff"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "ä"]}, '{\n  "b": 1,\n  "a": [\n    true,\n    null,\n    "ä"\n  ]\n}\n'),
        (None, "null\n"),
        (9007199254740993, "9007199254740993\n"),
        ("text", '"text"\n'),
    ],
)
def test_a_value_is_written_as_json(host: FileHost, workdir: Path, value: object, text: str) -> None:
    host.ok("write-file", path="a.json", json=value)
    assert (workdir / "a.json").read_text() == text


def test_an_empty_file_is_content_too(host: FileHost, workdir: Path) -> None:
    host.ok("write-file", path="a", content="")
    assert (workdir / "a").read_bytes() == b""


def test_content_is_added_to_the_end(host: FileHost, workdir: Path) -> None:
    host.ok("write-file", path="log", content="1\n", append=True)
    result = host.ok("write-file", path="log", content="2\n", append=True)
    assert (workdir / "log").read_text() == "1\n2\n"
    assert result.message == "Appended 2 bytes to log"


def test_permissions_are_set(host: FileHost, workdir: Path) -> None:
    host.ok("write-file", path="run.sh", content="#!/bin/sh\n", mode="0755")
    assert stat.S_IMODE((workdir / "run.sh").stat().st_mode) == 0o755


def test_an_existing_file_is_replaced_unless_that_is_forbidden(host: FileHost, workdir: Path) -> None:
    (workdir / "a").write_text("old")
    failure = host.failed("write-file", path="a", content="new", overwrite=False)
    assert failure.error == "could not write 'a': File exists; `overwrite: true` replaces it"
    assert (workdir / "a").read_text() == "old"
    host.ok("write-file", path="a", content="new")
    assert (workdir / "a").read_text() == "new"


def test_a_file_in_the_place_of_a_directory_is_named(host: FileHost, workdir: Path) -> None:
    (workdir / "a.txt").write_text("file")
    failure = host.failed("write-file", path="a.txt/b", content="x")
    assert failure.error == "could not write 'a.txt/b': 'a.txt' is a file, not a directory"


@pytest.mark.parametrize("append", [False, True])
def test_a_link_that_stays_inside_is_followed(host: FileHost, workdir: Path, append: bool) -> None:
    (workdir / "real").touch()
    (workdir / "link").symlink_to("real")
    host.ok("write-file", path="link", content="new", append=append)
    assert (workdir / "link").is_symlink()
    assert (workdir / "real").read_text() == "new"


def test_directories_are_not_made_when_that_is_forbidden(host: FileHost) -> None:
    failure = host.failed("write-file", path="no/a", content="x", parents=False)
    assert "No such file or directory" in failure.error


@pytest.mark.parametrize(
    "path", ["../outside/new", "/tmp/new", "out/new", "a/../../outside/new", ".", "", "out", "secret-link"]
)
def test_nothing_is_written_outside(host: FileHost, workdir: Path, path: str) -> None:
    (workdir / "out").symlink_to("../outside")
    (workdir / "secret-link").symlink_to("../outside/secret")
    for append in (False, True):
        with suppress(RpcError):  # an empty path is no path
            host("write-file", path=path, content="overwritten", append=append)
    assert (workdir.parent / "outside" / "secret").read_text() == "secret"
    assert [entry.name for entry in (workdir.parent / "outside").iterdir()] == ["secret"]


def test_a_value_of_an_earlier_step_is_filled_in_and_is_never_a_path_that_leads_out(
    host: FileHost, workdir: Path
) -> None:
    host.ok("write-file", path="name", content="../outside/secret")
    host.ok("read-file", path="name", **{"as": "NAME"})
    failure = host.failed("write-file", path="${NAME.content}", content="x")
    assert "not a path inside the working directory" in failure.message
    host.ok("write-file", path="copy", content="<${NAME.content}> $${NAME.content}")
    assert (workdir / "copy").read_text() == "<../outside/secret> ${NAME.content}"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"path": "a"}, "expected one of content, base64 and json, found none"),
        ({"path": "a", "content": "", "json": None}, "found content and json"),
        ({"path": "a", "content": "x", "append": True, "overwrite": False}, "`append` changes an existing file"),
        ({"path": "a", "content": "x", "mode": 644}, "mode: expected a string, found an integer"),
        (
            {"path": "a", "content": "x", "mode": "rwx"},
            "mode: expected a string matching regex '^[0-7]{3,4}$', such as \"0644\"",
        ),
        (
            {"path": "a", "content": "x", "mode": 0o755},
            'mode: expected a string, found an integer; quote it, as in "0644"',
        ),
        ({"path": "a", "base64": "=x="}, "base64: not valid base64"),
        ({"path": "a", "content": "\ud800"}, "content: cannot be encoded in UTF-8: half a character (U+D800)"),
        ({"path": "a", "contents": "x"}, "did you mean 'content'?"),
        ({"content": "x"}, "path: this argument is required"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    host: FileHost, workdir: Path, args: dict[str, object], told: str
) -> None:
    assert told.replace("`", "") in host.refused("write-file", **args).replace("`", "")
    assert list(workdir.iterdir()) == []


def test_a_working_directory_that_is_not_there_is_told(host: FileHost, workdir: Path) -> None:
    workdir.rmdir()
    failure = host.failed("write-file", path="a", content="x")
    assert f"the working directory {workdir} does not exist" in failure.error
