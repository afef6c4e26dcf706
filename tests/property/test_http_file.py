"""Writer and reader of single interactions have the results of vcrpy, for files as written, edited and cut."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.errors import CassetteError
from ext_recorder.http.interaction import TEXT_LIMIT, Body, Interaction
from ext_recorder.http.interaction_file import InteractionFile
from ext_recorder.http.interaction_yaml import emit_interaction
from ext_recorder.http.reader import Document, load, open_document, recover_traffic
from ext_recorder.http.writer import Writer, serialized

if TYPE_CHECKING:
    from ext_recorder.http.interaction import Call

NAMES = st.one_of(
    st.sampled_from(["Content-Type", "Set-Cookie", "yes", "On", "Null", "x"]),
    st.text("abcXYZ019-_.!#$%&'*+^`|~", min_size=1, max_size=140),
)
VALUES = st.one_of(
    st.sampled_from(["12", "1.5", "yes", "null", "", "a: b", "a #b", "'", '"', "- a", "text " * 30, "2026-11-23", "é"]),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=30),
)
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
BODIES = st.one_of(
    st.binary(max_size=150),
    st.text(max_size=150).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text(" {}[]\":\n\t\\-#'abc", max_size=300).map(str.encode),
    st.sampled_from(
        [b"x" * (TEXT_LIMIT + 1), bytes(range(256)) * 2000, b"\n- request:\n\nversion: 1\n", b"\nindex: {}"]
    ),
)


@st.composite
def interactions(draw: st.DrawFn) -> Interaction:
    made = Interaction(draw(st.sampled_from(["GET", "POST"])), f"http://h/{draw(VALUES)}", draw(HEADERS))
    made.request_body, made.body = Body(draw(BODIES)), Body(draw(BODIES))
    made.status, made.reason, made.headers = 200, draw(VALUES), draw(HEADERS)
    made.call = draw(st.sampled_from([None, None, 7, "b", 1.5, 1e300]))
    made.time = draw(st.sampled_from([0.0, 0.000012, 1.5, 2.25, 2.250001]))
    made.elapsed = draw(st.sampled_from([0.0, 0.00001, 3.125]))
    error: dict[str, object] = {"type": "TimeoutError", "errno": None, "message": "é: b"}
    made.error = draw(st.sampled_from([None, error]))
    made.chunks, made.reads = draw(st.sampled_from([([], []), ([1, 2], [3, 4])]))
    made.cut, made.peer = draw(st.booleans()), draw(st.sampled_from(["", "127.0.0.1:80"]))
    return made


def written(folder: str, items: list[Interaction], claims: list[Call]) -> Path:
    path = Path(folder) / "session.http.yaml"
    writer = Writer(path)
    writer.head({"seed": "x", "bindings": {"home": "/home/user"}})
    for item in items:
        writer.append(item)
    calls = [claims[number % len(claims)] if claims else None for number in range(len(writer.unclaimed))]
    writer.finish(
        {"kubeconfig": "a: b\nc: d\n", "hosts": {}, "clock": [{"call": 1, "ns": [[1]]}], "redacted": []}, calls
    )
    return path


def content(document: Document) -> list[object]:
    if document.file is None:
        return [dict(document.values), *map(plain, document.interactions)]
    with document.file as file:
        return [dict(document.values), *(plain(item) for _, item in file)]


def plain(item: Interaction) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(item, name) for name in Interaction.__slots__}
    bodies = {name: body.whole() for name, body in values.items() if isinstance(body, Body)}
    assert all(len(body) == getattr(item, name).size for name, body in bodies.items())
    return values | bodies


@given(st.lists(interactions(), min_size=1, max_size=6), st.lists(st.sampled_from([None, 7, "call"]), max_size=3))
def test_a_file_of_the_writer_is_read_by_its_index_as_by_the_library(
    items: list[Interaction], claims: list[Call]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, items, claims)
        document = open_document(path)
        assert document.file is not None
        assert document.file.frame.index is not None
        assert document.file.frame.index == document.file.scan()
        assert content(document) == content(load(path))


WORDS = st.lists(
    st.sampled_from(["a", "word", "it's", "'", "", " ", "x" * 30, "y" * 75, 'data: {"a": "b"}', "-", "# b", "é"]),
    max_size=40,
)
TEXTS = st.one_of(
    VALUES.filter(str.isascii),
    WORDS.map(" ".join).filter(str.isascii),
    st.text(st.sampled_from("ab:#-?,[]{}&*!|>'\"%@`. ~=_0"), max_size=120),
    st.sampled_from(["1:30", "+1", "1_0", "0o7", "=", "<<", "---", "--- a", "...", "?x", "a:", "y", "~"]),
)
CONTENTS = st.one_of(BODIES, WORDS.map(" ".join).map(str.encode), WORDS.map("\n".join).map(str.encode))
KEYS = st.one_of(NAMES.filter(lambda name: len(name) <= 100), st.sampled_from(["1", "=", "<<", "-", "?", ":a", "0x1f"]))


def by_name(names: list[str]) -> list[str]:  # vcrpy merges the headers of a request whose names differ in case only
    return list({name.lower(): name for name in names}.values())


@given(st.data())
def test_an_interaction_has_the_lines_of_vcrpy(data: st.DataObject) -> None:
    draw = data.draw
    sent = {name: draw(TEXTS) for name in by_name(draw(st.lists(KEYS, max_size=3)))}
    received = {name: draw(st.lists(TEXTS, min_size=1, max_size=3)) for name in draw(st.lists(KEYS, max_size=3))}
    request = draw(TEXTS), f"http://h/{draw(TEXTS)}", sent, draw(st.one_of(st.none(), CONTENTS))
    response = 200, draw(TEXTS), received, draw(CONTENTS)
    assert emit_interaction(request, response) == serialized(request, response)


LINES = [
    b"# comment\n",
    b"- request:\n",
    b"  cut: true\n",
    b"      '\n",
    b"version: 1\n",
    b"    'x\n",
    b"---\n",
    b"\n",
    b"&a\n",
]


@given(st.lists(interactions(), min_size=1, max_size=3), st.data())
def test_an_edited_file_is_read_as_by_the_library(items: list[Interaction], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, items, [])
        lines = path.read_bytes().splitlines(keepends=True)
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(lines) - 1))
            edit = data.draw(st.sampled_from(["insert", "remove", "repeat", "indent", "return", "plain"]))
            line = lines[at]
            if edit == "plain":
                lines[at] = line.replace(b"'", b"")
            elif edit == "return":
                lines[at] = line.replace(b"\n", b"\r\n")
            else:
                new = {"insert": [line, data.draw(st.sampled_from(LINES)) + b"\n"], "repeat": [line, line]}
                lines[at : at + 1] = new.get(edit, [b"  " + line] if edit == "indent" else [])
                lines = lines or [b""]
        path.write_bytes(b"".join(lines))
        try:
            expected = content(load(path))
        except CassetteError:
            with pytest.raises(CassetteError):
                content(open_document(path))
        else:
            assert content(open_document(path)) == expected


@given(st.lists(interactions(), min_size=1, max_size=4), st.data())
def test_a_recording_that_was_cut_off_anywhere_is_recovered_to_its_last_interaction(
    items: list[Interaction], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, items, [])
        with InteractionFile(path) as file:
            begins = [file.frame.begin, *sorted(at for at, _ in file)[1:], file.frame.end]
        cut = data.draw(st.one_of(st.integers(0, path.stat().st_size - 1), st.sampled_from(begins)))
        path.write_bytes(path.read_bytes()[:cut])
        partial = path.rename(path.with_name(path.name + ".partial"))
        complete = sum(end <= cut for end in begins[1:])
        if not complete:
            with pytest.raises(CassetteError, match="nothing to recover"):
                recover_traffic(partial, path)
            return
        assert recover_traffic(partial, path).kept == complete
        expected = sorted(items[:complete], key=lambda item: item.time)
        assert [item["uri"] for item in content(load(path))[1:]] == [str(item.uri) for item in expected]  # type: ignore[index]
        document = open_document(path)
        assert document.file is not None
        assert content(document) == content(load(path))
