"""Patches: `git apply` accepts what we write, and we apply what `git diff --binary` writes."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ext_recorder.cassette.git_patch import (
    EXECUTABLE,
    FILE,
    LINK,
    Entry,
    PatchError,
    encode,
    object_id,
    patch_of,
    patched,
    read,
)
from ext_recorder.errors import CassetteError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CEILING_DIRECTORIES": "/"}

LINES = st.lists(
    st.sampled_from([b"a", b"b", b"", b"# patch: 1, folder: x, t: 1.0", b"-- x", b"\xff", b"d\r"]), max_size=30
)
TEXTS = st.builds(lambda lines, end: b"\n".join(lines) + end, LINES, st.sampled_from([b"", b"\n"]))
CONTENTS = TEXTS | st.binary(max_size=200).map(lambda data: b"\0" + data)
MODES = st.sampled_from([FILE, EXECUTABLE])
STATES = st.none() | st.tuples(MODES, CONTENTS).map(lambda state: Entry(*state))


def git(folder: Path, *words: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **ALONE}, input=stdin, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def same(data: bytes) -> bytes:
    return data


def applied(patch: bytes, content: bytes) -> bytes | str:
    (file,) = read(patch)
    return patched(file, content, same, same)


def put(folder: Path, name: str, entry: Entry | None) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    if entry is not None:
        assert entry.content is not None
        path.write_bytes(entry.content)
        path.chmod(entry.mode & 0o777)


@needs_git
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STATES, STATES)
def test_git_applies_what_is_written(tmp_path: Path, old: Entry | None, new: Entry | None) -> None:
    if old == new:
        return
    put(tmp_path, 'a "file"\tö', old)
    patch = encode('a "file"\tö', old, new)
    git(tmp_path, "apply", "--whitespace=nowarn", "-", stdin=patch)
    path = tmp_path / 'a "file"\tö'
    assert path.exists() is (new is not None)
    if new is not None:
        assert path.read_bytes() == new.content
        assert bool(path.stat().st_mode & 0o100) is (new.mode == EXECUTABLE)
    assert applied(patch, (old.content if old else None) or b"") == ((new.content if new else None) or b"")


@needs_git
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CONTENTS, CONTENTS)
def test_what_git_writes_is_applied(tmp_path: Path, old: bytes, new: bytes) -> None:
    if old == new:
        return
    for side, content in (("x", old), ("y", new)):
        (tmp_path / side).write_bytes(content)
    diff = subprocess.run(
        ["git", "diff", "--no-index", "--binary", "x", "y"],
        cwd=tmp_path,
        env={**os.environ, **ALONE},
        capture_output=True,
        check=False,
    )
    assert applied(diff.stdout, old) == new


@needs_git
def test_renames_links_deltas_and_modes_of_git_are_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    big = os.urandom(3000)
    (tmp_path / "a b").write_text("".join(f"line {number}\n" for number in range(40)))
    (tmp_path / "data").write_bytes(b"\0" + big)
    (tmp_path / "link").symlink_to("a b")
    git(tmp_path, "add", ".")
    tree = git(tmp_path, "write-tree").decode().strip()
    (tmp_path / "a b").rename(tmp_path / "ü")
    with (tmp_path / "ü").open("a") as file:
        file.write("more")
    (tmp_path / "data").write_bytes(b"\0" + big[:2000] + b"new" + big[2000:])
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    git(tmp_path, "add", ".")
    patches = {patch.new: patch for patch in read(git(tmp_path, "diff", "--cached", "--binary", "-M", tree))}
    assert patches["ü"].old == "a b"
    expected = "".join(f"line {number}\n" for number in range(40)).encode()
    assert patched(patches["ü"], expected, same, same) == expected + b"more"
    assert patches["data"].binary is not None
    assert patches["data"].binary[0] == "delta"
    assert patched(patches["data"], b"\0" + big, same, same) == (tmp_path / "data").read_bytes()
    assert "another" in str(patched(patches["data"], b"\0" + big + b"x", same, same))
    assert (patches["link"].old_mode, patches["link"].new_mode) == (LINK, LINK)
    assert patched(patches["link"], b"a b", same, same) == b"data"
    assert patches["tool"].new_mode == EXECUTABLE


def test_a_change_is_written_with_the_lines_around_it() -> None:
    old = b"".join(b"%d\n" % number for number in range(1, 10))
    new = old.replace(b"5\n", b"five\n") + b"no end"
    patch = encode("n.txt", Entry(FILE, old), Entry(FILE, new))
    assert patch.decode().splitlines()[:2] == [
        "diff --git a/n.txt b/n.txt",
        f"index {object_id(old)}..{object_id(new)} 100644",
    ]
    assert patch.endswith(
        b"@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+no end\n\\ No newline at end of file\n"
    )


def test_a_text_with_other_lines_is_patched_where_the_context_is_found() -> None:
    old = b"".join(b"%d\n" % number for number in range(1, 10))
    patch = encode("n.txt", Entry(FILE, old), Entry(FILE, old.replace(b"5\n", b"five\n")))
    assert applied(patch, b"0\n" + old) == b"0\n" + old.replace(b"5\n", b"five\n")
    assert applied(patch, old.replace(b"5\n", b"V\n")) == "line 5: expected '5\\n', found 'V\\n'"
    assert applied(patch, b"") == "line 2: expected '2\\n', found the end of the file"


def test_context_is_compared_without_secrets_and_kept_with_them() -> None:
    old = b"key [redacted:env.KEY#1]\nmode a\n"
    patch = encode("c", Entry(FILE, old), Entry(FILE, old.replace(b"mode a", b"mode /tmp/cwd/b")))
    (file,) = read(patch)
    result = patched(
        file,
        b"key hunter2\nmode a\n",
        lambda data: data.replace(b"hunter2", b"[redacted:env.KEY#7]"),
        lambda data: data.replace(b"/tmp/cwd", b"/srv/work"),
    )
    assert result == b"key hunter2\nmode /srv/work/b\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"diff --git a/x b/x\n--- a/x\n", r"\+\+\+"),
        (b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n", "fewer lines"),
        (b"diff --git a/x b/x\nnew file mode x\n", "mode"),
        (b"diff --git a/x b/x\nGIT binary patch\nliteral 3\n~~~\n\n", "binary|base"),
        (b"diff --git a/x b/x\nGIT binary patch\n", "no content"),
    ],
)
def test_a_damaged_patch_is_refused(text: bytes, problem: str) -> None:
    with pytest.raises(PatchError, match=problem):
        list(read(text))


PIECES = (
    b"diff --git a/x b/x\n", b"--- a/x\n", b"+++ b/x\n", b"@@ -1 +1 @@\n", b"-a\n", b"+b\n", b"GIT binary patch\n",
    b"delta 3\n", b"literal 1\n", b"Bc$\n", b"\n", b"index 1234567..1234567\n", b"\\ No newline at end of file\n",
    b'diff --git "a/\\" b/x\n', b"rename from \n",
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES)))
def test_arbitrary_text_raises_no_other_error(lines: Sequence[bytes]) -> None:
    try:
        for patch in read(b"".join(lines)):
            patched(patch, b"a\n", same, same)
    except PatchError:
        pass


def test_a_patch_is_found_by_its_number(tmp_path: Path) -> None:
    cassette = str(tmp_path / "s.yaml")
    with pytest.raises(CassetteError, match=r"s\.patch.*keep both files together"):
        patch_of(cassette, 1)
    text = encode("x", None, Entry(FILE, b"# patch: 2, folder: y, t: 1.0\n"))
    (tmp_path / "s.patch").write_bytes(b"# patch: 1, folder: ., t: 0.5\n# empty folder: e\n" + text)
    patch = patch_of(cassette, 1)
    assert (patch.folder, [file.new for file in patch.files], patch.empty) == (".", ["x"], ("e",))
    with pytest.raises(CassetteError, match="has no patch 2"):
        patch_of(cassette, 2)
